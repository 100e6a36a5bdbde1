"""packer.py - pack sequences as they arrive, in this process.

    packer = packstream.Packer(2048, channels={"labels": "int32"})
    for batch in packer.pack(sequences, size=8):
        batch["tokens"]                     # [8, 2048]

SPDX-License-Identifier: MIT
"""

from __future__ import annotations

import itertools
import warnings
import weakref
from typing import (Any, Dict, Iterable, Iterator, List, Mapping,
                    MutableMapping, Optional, Tuple, Union)

import numpy as np

from packstream.batch import HEAD, Batch, Run, as_batch, empty, join
from packstream.errors import PackError, printable
from packstream.header import ATTENTION, HEADER_BYTES, Header
from packstream.library import (check, ffi, header_of, lib, need_library,
                                new_error)
from packstream.schema import (Channels, Columns, NativeColumns, Schema,
                               as_array, as_lengths, cast)

OVERLONG = ("error", "drop", "truncate", "split")
ORDERS = ("window", "input", "shuffle")
ENOUGH_BYTES = 1 << 20          # size of packs that are returned together
GROUP = 32                      # number of sequences that are put at once


def one_of(names: tuple, name: str, what: str) -> int:
    if name not in names:
        raise ValueError("%s is %s, not %r" % (what, ", ".join(names), name))
    return names.index(name)


def policies() -> tuple:
    """Returns the names of the policies, in the order of their numbers."""
    names = map(lib.ps_policy_name, itertools.count())
    return tuple(ffi.string(name).decode()
                 for name in itertools.takewhile(ffi.NULL.__ne__, names))


def packer_options(capacity: int, depth: Optional[int] = None,
                   window: Optional[int] = None, policy: str = "auto",
                   overlong: str = "error", order: str = "window",
                   seed: int = 0, max_delay: int = 0, max_bytes: int = 0,
                   even_cost: bool = False, align: int = 1, pad_id: int = 0,
                   learn_from: Optional[Mapping[int, int]] = None,
                   group: Optional[str] = None,
                   budget: Optional[Mapping[str, int]] = None,
                   by: Optional[str] = None) -> Any:
    """Returns a ps_packer_options.  Options are named as in packstream(1).  A
    depth of None means no limit; a window of None holds at least 1024
    sequences, and tokens for 64 packs.  learn_from maps expected lengths to
    their counts.  group names a channel with a value per sequence: consecutive
    sequences with the same value share a pack.  budget maps channels with an
    integer per sequence to the most that their sum may be in a pack, list
    channels to the most elements that a pack can have (default: the capacity),
    and "attention" to a limit of the sum of squared lengths.  by names a
    channel with a value per sequence: of equally long sequences, those with the
    value of a pack's first one are preferred."""
    for name, value in (("capacity", capacity), ("depth", depth or 1),
                        ("window", window or 1), ("align", align)):
        if not 1 <= value < 1 << 32:
            raise ValueError("%s: %r is out of range" % (name, value))
    options = ffi.new("ps_packer_options *")
    options.capacity, options.depth, options.window = \
        capacity, depth or 0, window or 0
    options.policy = one_of(policies(), policy, "the policy")
    options.overlong = one_of(OVERLONG, overlong, "overlong")
    options.order = one_of(ORDERS, order, "the order")
    options.seed, options.max_delay = seed, max_delay
    options.max_bytes, options.even_cost = max_bytes, even_cost
    options.align, options.pad_id = align, pad_id
    options.block_packs = 1     # return a pack as soon as it is decided
    LIVES_WITH[options] = kept = []
    if learn_from is not None:
        kept.append(new_histogram(learn_from))
        options.learn_from = kept[-1]
    if group is not None:
        kept.append(ffi.new("char[]", group.encode()))
        options.group = kept[-1]
    if by is not None:
        kept.append(ffi.new("char[]", by.encode()))
        options.by = kept[-1]
    if budget:
        names = [ffi.new("char[]", name.encode()) for name in budget]
        rows = ffi.new("ps_budget_option[]", len(names))
        for row, name, limit in zip(rows, names, budget.values()):
            row.name, row.limit = name, limit
        kept += [*names, rows]
        options.budgets, options.n_budgets = rows, len(names)
    return options


# Keeps objects that options point to, as long as the options exist
LIVES_WITH: MutableMapping[Any, Any] = weakref.WeakKeyDictionary()


def new_histogram(counts: Mapping[int, int]) -> Any:
    handle, err = ffi.new("ps_histogram **"), new_error()
    check(lib.ps_histogram_open(handle, err), err)
    histogram = ffi.gc(handle[0], lib.ps_histogram_free)
    for length, count in counts.items():
        check(lib.ps_histogram_add(histogram, length, count, err), err)
    return histogram


class Packer:
    """Packs sequences of at most `capacity` tokens, as packstream(1) does.

    `options` are those of packer_options: depth, window, policy, overlong,
    order, seed, max_delay, max_bytes, even_cost, align, pad_id, learn_from,
    group, budget, by.  `dtype`, `vocab_size` and `channels` describe sequences,
    as in
    Schema.

    Only one thread at a time may use a packer.  Other threads can run while
    it packs.  A ResourceWarning is issued if a packer is deleted that still
    holds sequences and was neither finished nor saved."""

    def __init__(self, capacity: int, *, dtype: Any = None,
                 vocab_size: int = 0, channels: Optional[Channels] = None,
                 labels: Optional[str] = None, **options: Any):
        need_library("Packer")
        self.capacity = capacity
        self.schema = Schema(dtype, channels, vocab_size, labels)
        self._options = packer_options(capacity, **options)
        self._budget = dict(options.get("budget") or {})
        self._open(None)

    def _open(self, state: Optional[bytes]) -> None:
        sink = ffi.gc(ffi.new("psn_sink *"), lib.psn_sink_free)
        self._options.write = ffi.addressof(lib, "psn_sink_write")
        self._options.write_context = sink
        handle, err = ffi.new("ps_packer **"), new_error()
        if state is None:
            check(lib.ps_packer_open(handle, -1, self.schema.native,
                                     self._options, err), err)
        else:
            check(lib.ps_packer_resume(handle, -1, self.schema.native,
                                       self._options, state, len(state),
                                       err), err)
        # Frees a previous packer before its sink
        self._packer = ffi.gc(handle[0], lib.ps_packer_free)
        self._sink = sink
        self._totals = totals = lib.ps_packer_totals(self._packer)
        # Totals when packs were last returned, and input sequences when the
        # state was last saved, which the state can recreate
        self._taken = totals.sequences, totals.tokens
        self._saved = totals.input_sequences
        self._header: Optional[Header] = None
        self._finished = False
        self._rest: List[Run] = []      # packs that pack() has yet to yield
        self._next = ffi.new("uint64_t *")  # number of the next sequence

    # ------------------------------------------------------------ sequences

    def put(self, sequence: Union[Any, Columns]) -> None:
        """Puts the next sequence: an array of tokens, a mapping of names to
        tokens and channels, or many sequences as Columns.  A sequence without
        tokens is counted and skipped.  Call packs() for packs that this
        completes."""
        columns = self._prepare(sequence)
        self._put_some(NativeColumns(columns), 0, None)

    def _prepare(self, sequence: Union[Any, Columns]) -> Columns:
        if self._finished:
            raise ValueError("this packer has finished")
        given = sequence if isinstance(sequence, Columns) \
            else self.schema.columns([sequence], self._next[0])
        columns = self.schema.prepare(given, self._next[0])
        if (self._options.overlong == lib.PS_OVERLONG_ERROR and
                self._options.policy != lib.PS_POLICY_CONCAT):
            lengths = np.diff(columns.offsets)
            if len(lengths) and lengths.max() > self.capacity:
                i = int((lengths > self.capacity).argmax())
                raise PackError(
                    "%s: %d tokens exceed the capacity of %d; use "
                    "overlong='split', 'truncate' or 'drop'"
                    % (given.where(i=i, number=self._next[0]), lengths[i],
                       self.capacity))
        if self._options.overlong != lib.PS_OVERLONG_DROP:
            self._check_lists(given, columns)
        return columns

    def _check_lists(self, given: Columns, columns: Columns) -> None:
        """Raises PackError for a list that exceeds its budget."""
        for name, offsets in columns.lists.items():
            limit = self._budget.get(name, self.capacity)
            lengths = np.diff(offsets)
            if len(lengths) and lengths.max() > limit:
                i = int((lengths > limit).argmax())
                raise PackError(
                    "%s: %d elements exceed the budget of %d; raise the budget "
                    "or use overlong='drop'"
                    % (given.where(name, i, self._next[0]), lengths[i], limit))

    def _put_some(self, columns: NativeColumns, begin: int,
                  enough: Optional[int]) -> int:
        """Puts sequences from `begin` on, until all are put or there are
        `enough` bytes of packs.  Returns the index of the first sequence that
        was not put."""
        at, err = ffi.new("int64_t *", begin), new_error()
        result = lib.psn_pack(self._packer, self.schema.native,
                              columns.native, self._next, at, self._sink,
                              enough or ffi.cast("size_t", -1), err)
        # Only for a group or a budget.
        if result in (lib.PS_ERR_OVERLONG, lib.PS_ERR_RANGE):
            raise PackError("%s; use overlong='split', 'truncate' or 'drop'"
                            % ffi.string(err.text).decode())
        check(result, err)
        return at[0]

    # ---------------------------------------------------------------- packs

    def packs(self) -> Optional[Batch]:
        """Returns all packs that are decided but not returned yet, or None."""
        return self._flush(lib.PS_FLUSH_DECIDED)

    def drain(self) -> Optional[Batch]:
        """Packs everything in the window and returns it like packs().
        Sequences can be put afterwards.  The result depends on when this is
        called."""
        return self._flush(lib.PS_FLUSH_DRAIN)

    def finish(self) -> Optional[Batch]:
        """Packs all remaining sequences, verifies that nothing was lost, and
        returns packs like packs().  No sequences can be put afterwards."""
        return self._flush(lib.PS_FLUSH_FINISH)

    def _flush(self, how: int) -> Optional[Batch]:
        run = self._packs(how)
        return as_batch(run, self._header) if run else None

    def _packs(self, how: int) -> Optional[Run]:
        """Flushes, and returns the packs that have not been returned yet."""
        err, sink = new_error(), self._sink
        check(lib.ps_packer_flush(self._packer, how, err), err)
        self._finished = self._finished or how == lib.PS_FLUSH_FINISH
        self._taken = self._totals.sequences, self._totals.tokens
        info, begin = lib.ps_packer_info(self._packer), 0
        if self._header is None and sink.size:
            self._header, begin = header_of(info), HEADER_BYTES
        runs, self._rest = self._rest, []
        counts = ffi.new("uint64_t[2]")
        lib.psn_count(info, sink.bytes + begin, sink.size - begin, counts,
                      counts + 1)
        if counts[0]:
            row, sequence = self._header.row, self._header.sequence
            run = Run(empty(counts[0] * row.itemsize).view(row),
                      np.empty(counts[0], HEAD), np.empty(counts[1], sequence))
            lib.psn_split(info, sink.bytes + begin, counts[0], *(
                ffi.from_buffer("unsigned char[]", array)
                for array in (run.rows, run.heads, run.table)))
            runs.append(run)
        sink.size = 0
        return join(runs) if runs else None

    def pack(self, sequences: Iterable[Union[Any, Columns]],
             size: int = 1) -> Iterator[Batch]:
        """Puts all sequences, finishes, and yields batches of `size` packs as
        soon as they are complete; the last batch may have fewer.  If
        `sequences` raises, the first totals["input_sequences"] of them have
        been put, and packs() and finish() return the remaining packs."""
        if size < 1:
            raise ValueError("a batch has at least one pack")
        for run in self._packed(sequences):
            n = len(run) if self._finished else len(run) // size * size
            self._rest = [run]
            for i in range(0, n, size):
                self._rest = [run[i + size:]] if i + size < len(run) else []
                yield as_batch(run[i:i + size], self._header)

    def _packed(self, sequences: Iterable[Union[Any, Columns]]
                ) -> Iterator[Run]:
        totals = lib.ps_packer_totals(self._packer)
        given = totals.packs
        for columns in self._in_columns(sequences):
            native, at = NativeColumns(columns), 0
            while at < len(columns):
                at = self._put_some(native, at, ENOUGH_BYTES)
                if totals.packs > given:
                    given = totals.packs
                    yield from filter(None, [
                        self._packs(lib.PS_FLUSH_DECIDED)])
        yield from filter(None, [self._packs(lib.PS_FLUSH_FINISH)])

    def _in_columns(self, sequences: Iterable[Union[Any, Columns]]
                    ) -> Iterator[Columns]:
        """Yields some sequences at a time, few compared to the window.  If a
        sequence is invalid, the sequences before it are yielded first."""
        most = GROUP if self._options.window == 0 else \
            max(1, min(GROUP, self._options.window // GROUP))
        group: List[Any] = []
        end = Columns(np.zeros(1, np.int64), {})
        for sequence in itertools.chain(sequences, [end]):
            if group and (len(group) == most or
                          isinstance(sequence, Columns)):
                try:
                    yield self._prepare(self.schema.columns(group))
                except ValueError:
                    yield from map(self._prepare, group)
                group = []
            if not isinstance(sequence, Columns):
                group.append(sequence)
            elif sequence is not end:
                yield self._prepare(sequence)

    def _held(self) -> Tuple[int, int]:
        """Returns the numbers of sequences and tokens that would be lost with
        this packer: in packs that were not returned, or not packed yet."""
        totals = self._totals
        sequences, tokens = (totals.sequences - self._taken[0],
                             totals.tokens - self._taken[1])
        for run in self._rest:
            sequences += int(run.heads["n_seq"].sum())
            tokens += int(run.heads["n_tok"].sum())
        if totals.input_sequences != self._saved and not self._finished:
            sequences += (totals.input_sequences + totals.extra_pieces -
                          totals.rejected_sequences - totals.sequences)
            tokens += (totals.input_tokens - totals.rejected_tokens -
                       totals.truncated_tokens - totals.tokens)
        return sequences, tokens

    def __del__(self, _warn: Any = warnings.warn) -> None:
        held = self._held() if hasattr(self, "_next") else (0, 0)
        if held[1]:
            _warn("Packer deleted with %d sequences (%d tokens) that were not "
                  "returned; call finish() and use the packs it returns" % held,
                  ResourceWarning, source=self)

    # ------------------------------------------------------- the outcome

    @property
    def header(self) -> Optional[Header]:
        """The header of the packs; None before the first pack."""
        return self._header

    @property
    def totals(self) -> Dict[str, int]:
        """Counts of the input so far; see ps_totals in packstream.h."""
        totals = lib.ps_packer_totals(self._packer)
        return {name: getattr(totals, name)
                for name, _ in ffi.typeof("ps_totals").fields}

    # ---------------------------------------------------- save and resume

    def save(self) -> bytes:
        """Returns the state between two sequences.  It does not contain packs
        that have not been returned yet: call packs() first."""
        state, size, err = (ffi.new("unsigned char **"), ffi.new("size_t *"),
                            new_error())
        if self.totals["packs"]:
            check(lib.ps_packer_save(self._packer, ffi.NULL, 0, state, size,
                                     err), err)
        else:
            check(lib.ps_state_blank(ffi.NULL, 0, state, size, err), err)
        kept = ffi.gc(state[0], lib.free)
        self._saved = self._totals.input_sequences
        return bytes(ffi.buffer(kept, size[0]))

    def resume(self, state: bytes) -> int:
        """Continues from the state of a packer with the same options.  Returns
        the number of the first sequence to put again.  The packs are the same
        that the other packer would have returned.  This packer can be saved
        once all sequences that the other packer had received are put again."""
        summary, err = ffi.new("ps_state *"), new_error()
        check(lib.ps_state_read(state, len(state), summary, err), err)
        if summary.blank:
            self._open(None)
            return 0
        self._open(state)
        self._header = header_of(lib.ps_packer_info(self._packer))
        self._next[0] = summary.resume_from_id
        return summary.resume_from_id


def budget_uses(lengths: np.ndarray, uses: Mapping[str, Any],
                budget: Mapping[str, int]) -> np.ndarray:
    """Returns the uses of each sequence as a row, in the order of budget."""
    if set(uses) - set(budget):
        raise ValueError("uses: %s has no budget"
                         % printable(min(set(uses) - set(budget))))
    table = np.empty((len(lengths), len(budget)), np.uint64)
    for i, name in enumerate(budget):
        if name not in uses and name != ATTENTION:
            raise ValueError("uses: budget %s needs what each sequence uses"
                             % printable(name))
        own = as_array(uses[name], name) if name in uses else \
            lengths.astype(np.uint64) ** 2
        if own.shape != lengths.shape:
            raise ValueError("uses: %s has the shape %s, the lengths have %s"
                             % (printable(name), own.shape, lengths.shape))
        table[:, i] = cast(own, np.dtype(np.uint64), lambda at: printable(name)
                           if at is None else "%s of sequence %d"
                           % (printable(name), at))
    return table


def pack_lengths(lengths: Any, capacity: int,
                 uses: Optional[Mapping[str, Any]] = None,
                 **options: Any) -> tuple:
    """Groups sequences into packs by their lengths.  Returns `order`, the
    numbers of the sequences, pack after pack, and `ends`, the end of each pack
    in `order`.

    The options are those of Packer, except overlong.  With budget, `uses` gives
    the amounts that the sequences use under the same keys; without it,
    "attention" uses the square of the length."""
    need_library("pack_lengths")
    lengths = as_lengths(lengths)
    order, ends = (np.empty(len(lengths), np.uint64) for _ in range(2))
    n_packs, err = ffi.new("uint64_t *"), new_error()
    table = budget_uses(lengths, uses or {}, options.get("budget") or {})
    check(lib.ps_pack_lengths(
        ffi.from_buffer("uint32_t[]", lengths),
        ffi.from_buffer("uint64_t[]", table) if table.size else ffi.NULL,
        len(lengths),
        packer_options(capacity, **options),
        ffi.from_buffer("uint64_t[]", order),
        ffi.from_buffer("uint64_t[]", ends), n_packs, err), err)
    return order.astype(np.int64), ends[:n_packs[0]].astype(np.int64)
