"""dataset.py - pack the rows of a datasets.Dataset or of an Arrow table.

    packed = packstream.pack_dataset(dataset, seq_length=2048)

An IterableDataset is packed lazily, STREAM_ROWS rows at a time, in one process.

SPDX-License-Identifier: MIT
"""

from __future__ import annotations

import contextlib
import hashlib
import math
import os
import uuid
from concurrent.futures import ThreadPoolExecutor
from typing import (Any, Dict, Iterator, List, Mapping, NamedTuple, Optional,
                    Sequence, Tuple, Union)

import numpy as np
import pyarrow as pa

from packstream.arrow import (MASK, TOKENS, check_columns, check_is_list,
                              check_lengths, check_transform, elements_of,
                              first_null, is_list, is_number, list_parts,
                              numpy_type, split_lists, storage_type, unpadded,
                              vector_length)
from packstream.errors import PackError, printable
from packstream.header import ATTENTION
from packstream.library import ffi, lib, need_library
from packstream.packer import OVERLONG, one_of, pack_lengths, packer_options
from packstream.tokenize import TextSequences
from packstream.views import IGNORED, MASKS

# Values of a column per batch.  Allocating larger buffers takes more time than
# copying, if the system searches for huge pages.
BATCH_VALUES = 1 << 18
# Rows per plan; plans run in parallel.  This is constant because packs depend
# on it, but must not depend on the machine.
PLAN_ROWS = 1 << 16
STREAM_ROWS = 1 << 13           # rows of an IterableDataset packed at a time
MADE = ("position_ids", "seq_lengths")
LENGTHS = "_lengths"            # NAME_lengths has the lengths of lists
FINGERPRINT = b"packstream.fingerprint"     # metadata key in a cache file
END_OF_STREAM = b"\xff\xff\xff\xff\0\0\0\0"


class Pieces(NamedTuple):
    """Sequences or parts of sequences: `lengths` tokens, which start at
    `starts` in chunk `chunks`, and the table row of each."""
    chunks: np.ndarray
    starts: np.ndarray
    lengths: np.ndarray
    rows: np.ndarray


class Plan(NamedTuple):
    """Pack p consists of pieces ends[p - 1] to ends[p] - 1."""
    pieces: Pieces
    ends: np.ndarray


def whole_rows(spans: List[tuple], rows: Optional[np.ndarray]) -> Pieces:
    """Returns all rows, or the rows with the numbers `rows`, in this order.  A
    span has the starts and lengths of a chunk's rows."""
    lengths = np.concatenate([lengths for _, lengths in spans])
    all_rows = Pieces(
        np.concatenate([np.full(len(starts), i)
                        for i, (starts, _) in enumerate(spans)]),
        np.concatenate([starts for starts, _ in spans]), lengths,
        np.arange(len(lengths)))
    return all_rows if rows is None else Pieces(*(a[rows] for a in all_rows))


def cut_rows(rows: Pieces, capacity: int, overlong: str,
             limit: str = "seq_length") -> Pieces:
    """Returns the rows, shortened to the capacity, without empty rows."""
    chunks, starts, lengths, row_of = rows
    longer = lengths > capacity
    if not longer.any():
        kept = lengths > 0
    elif overlong == "error":
        row = int(longer.argmax())
        raise PackError("row %d: %d tokens exceed %s %d; use "
                        "overlong='split', 'truncate' or 'drop'"
                        % (row, lengths[row], limit, capacity))
    elif overlong == "split":
        parts = -(-lengths // capacity)
        row = np.repeat(np.arange(len(lengths)), parts)
        begin = (np.arange(len(row)) -
                 np.repeat(np.cumsum(parts) - parts, parts)) * capacity
        return Pieces(chunks[row], starts[row] + begin,
                      np.minimum(lengths[row] - begin, capacity),
                      row_of[row])
    else:
        kept = (lengths > 0) & (~longer | (overlong == "truncate"))
        lengths = np.minimum(lengths, capacity)
    return Pieces(chunks[kept], starts[kept], lengths[kept], row_of[kept])


class Lists:
    """A column of lists of numbers or of vectors, as one array of values per
    chunk.  `packed` is the type of the packed column."""

    def __init__(self, name: str, column: pa.ChunkedArray):
        self.name, kind = name, storage_type(column.type)
        self.element = storage_type(kind.value_type)
        self.packed = pa.large_list(self.element) \
            if pa.types.is_large_list(kind) else pa.list_(self.element)
        count, value = None, self.element
        if is_list(value):
            count = value.list_size if pa.types.is_fixed_size_list(value) \
                else vector_length(column.chunks)
            if count == 0:
                raise ValueError("%s: vectors without values"
                                 % printable(name))
            value = value.value_type
        self.value, self.count = value, count or 1
        parts, row = [], 0
        for chunk in column.chunks:
            parts.append(list_parts(chunk, name, row, count))
            row += len(chunk)
        self.offsets = [offsets for offsets, _ in parts]
        self.values = [np.ascontiguousarray(values) for _, values in parts]
        self.dtype = numpy_type(value, name)
        self.element_bytes = self.count * self.dtype.itemsize
        self._arrays = ffi.new("unsigned char const *[]",
                               max(len(self.values), 1))
        self._kept = [ffi.from_buffer("unsigned char[]", values)
                      if values.size else ffi.NULL for values in self.values]
        for i, array in enumerate(self._kept):
            self._arrays[i] = array

    def gather(self, pieces: Pieces, offsets: np.ndarray,
               memory: Any) -> pa.Array:
        """Returns the pieces, concatenated, as lists delimited by `offsets`,
        with values in `memory`."""
        lib.psn_gather(
            ffi.from_buffer("unsigned char[]", memory, True), self._arrays,
            self.element_bytes,
            *(ffi.from_buffer("int64_t[]", a) for a in pieces[:3]),
            len(pieces.lengths))
        n = int(offsets[-1]) * self.count
        if self.dtype == np.bool_:      # numpy has bytes, Arrow has bits
            values = pa.array(np.frombuffer(memory, np.bool_, n))
        else:
            values = pa.Array.from_buffers(self.value, n, [None, memory])
        return lists_of(offsets, self._nested(values), self.packed)

    def _nested(self, values: pa.Array) -> pa.Array:
        """Returns the values as vectors, if the column has vectors."""
        kind, n = self.element, len(values) // self.count
        if not is_list(kind):
            return values
        buffers: List[Any] = [None]
        if not pa.types.is_fixed_size_list(kind):
            wide = pa.types.is_large_list(kind)
            if len(values) >= 1 << 31 and not wide:
                raise ValueError("%s: more than 2^31 values in a batch of "
                                 "packs" % printable(self.name))
            buffers.append(pa.py_buffer(np.arange(
                n + 1, dtype=np.int64 if wide else np.int32) * self.count))
        return pa.Array.from_buffers(kind, n, buffers, children=[values])


class OwnLists(Lists):
    """A column whose lists have lengths of their own.  A packed row has the
    lists of its sequences one after the other, and their lengths in another
    column."""

    def __init__(self, name: str, column: pa.ChunkedArray):
        super().__init__(name, column)
        none = np.zeros(0, np.int64)
        self.rows = Pieces(*(np.concatenate([none, *parts]) for parts in (
            [np.full(len(o) - 1, i) for i, o in enumerate(self.offsets)],
            [o[:-1] for o in self.offsets],
            [np.diff(o) for o in self.offsets], [])))

    def lengths(self, pieces: Pieces) -> np.ndarray:
        return self.rows.lengths[pieces.rows]

    def pack(self, pieces: Pieces, bounds: np.ndarray,
             memory: Memory) -> Dict[str, pa.Array]:
        """Returns the columns of packs, which end at these bounds."""
        lists = Pieces(*(np.ascontiguousarray(a[pieces.rows])
                         for a in self.rows[:3]), pieces.rows)
        edges = np.append(0, np.cumsum(lists.lengths))[bounds]
        return {
            self.name: self.gather(lists, edges, memory.take(
                self.name, int(edges[-1]) * self.element_bytes)),
            self.name + LENGTHS: lists_of(
                bounds, pa.array(lists.lengths.astype(np.int32)),
                pa.list_(pa.int32()))}


class Scalars:
    """A column with one value per row: a number, a string, or a vector, which
    is a list of a fixed size.  A packed row has a list of these values, one per
    sequence."""

    def __init__(self, name: str, column: pa.ChunkedArray):
        column.validate(full=True)
        self.name, self.type = name, column.type
        self.packed = pa.list_(column.type)
        self.values = column.combine_chunks()

    def gather(self, pieces: Pieces, offsets: np.ndarray) -> pa.Array:
        """Returns the values of these pieces, as lists delimited by
        `offsets`."""
        values = self.values.take(pa.array(pieces.rows))
        if values.null_count:       # allowed in rows that are not packed
            raise ValueError("row %d: %s: a value is missing" % (
                pieces.rows[first_null(values)], printable(self.name)))
        if is_list(self.type) and values.flatten().null_count:
            raise ValueError("row %d: %s: a value is missing" % (
                pieces.rows[first_null(values.flatten()) //
                            self.type.list_size], printable(self.name)))
        return lists_of(offsets, values, self.packed)


class Labels:
    """Labels of packed rows: the tokens, or -100 where a mask is 0.  Trainers
    may remove the masks."""

    def __init__(self, tokens: str, masks: List[str]):
        self.tokens, self.masks = tokens, masks

    def make(self, made: Dict[str, pa.Array], pieces: Pieces,
             offsets: np.ndarray) -> pa.Array:
        """Makes labels from the packed columns of these pieces, as lists
        delimited by `offsets`."""
        labels = made[self.tokens].values.to_numpy().astype(np.int64)
        for name in self.masks:
            mask = made[name].values.to_numpy(zero_copy_only=False)
            other = np.flatnonzero((mask != 0) & (mask != 1))
            if len(other):
                piece = np.searchsorted(np.cumsum(pieces.lengths), other[0],
                                        "right")
                raise ValueError("row %d: %s: %s is neither 0 nor 1" % (
                    pieces.rows[piece], name, mask[other[0]]))
            labels[mask == 0] = IGNORED
        return pa.LargeListArray.from_arrays(offsets, labels)


def lists_of(offsets: np.ndarray, values: pa.Array,
             kind: pa.DataType) -> pa.Array:
    if pa.types.is_large_list(kind):
        return pa.LargeListArray.from_arrays(offsets, values)
    return pa.ListArray.from_arrays(offsets.astype(np.int32), values)


def is_string(kind: pa.DataType) -> bool:
    return pa.types.is_string(kind) or pa.types.is_large_string(kind)


def group_rows(pieces: Pieces, values: np.ndarray, name: str, capacity: int,
               overlong: str, align: int) -> Tuple[Pieces, np.ndarray]:
    """Returns the pieces without empty rows and dropped groups, and the starts
    of groups, which are runs of rows with the same value."""
    if overlong not in ("error", "drop"):
        raise ValueError("overlong=%r cannot be used with group: use 'error' "
                         "or 'drop', or packstream --group" % overlong)
    pieces = Pieces(*(a[pieces.lengths > 0] for a in pieces))
    own = values[pieces.rows]
    starts = np.append(0, np.flatnonzero(own[1:] != own[:-1]) + 1)[:len(own)]
    lengths = np.add.reduceat(aligned(pieces.lengths, align), starts) \
        if len(own) else own
    longer = lengths > capacity
    if longer.any() and overlong == "error":
        i = int(longer.argmax())
        raise PackError(
            "row %d: the group %s=%s has %d tokens, which exceed seq_length "
            "%d; use overlong='drop'" % (
                pieces.rows[starts[i]], printable(name), own[starts[i]],
                lengths[i], capacity))
    counts = np.diff(np.append(starts, len(own)))
    kept = Pieces(*(a[np.repeat(~longer, counts)] for a in pieces))
    ends = np.cumsum(counts[~longer])
    return kept, ends - counts[~longer]


def budget_rows(pieces: Pieces, starts: Optional[np.ndarray],
                columns: Sequence[Any], budget: Mapping[str, int],
                overlong: str) -> Tuple[Pieces, Optional[np.ndarray],
                                        Dict[str, np.ndarray]]:
    """Returns the pieces that are within the budgets, the starts of groups,
    and what each piece, or group, uses of each budget."""
    uses: Dict[str, np.ndarray] = {}
    first = np.arange(len(pieces.rows)) if starts is None else starts
    longer = np.zeros(len(first), bool)
    for name, limit in budget.items():
        own = pieces.lengths ** 2 if name == ATTENTION else \
            budget_values(pieces, columns, name)
        over = (own < 0) | (own > limit)
        own = np.where(over, limit + 1, own).astype(np.int64)
        if len(own):
            own = np.add.reduceat(own, first)
        over = own > limit
        if over.any() and (overlong == "error" or
                           name != ATTENTION and overlong != "drop"):
            i = int(over.argmax())
            raise PackError(
                "row %d: %s exceeds the budget, %d; use overlong='drop'"
                % (pieces.rows[first[i]], printable(name), limit))
        longer |= over
        uses[name] = own
    if not longer.any():
        return pieces, starts, uses
    counts = np.diff(np.append(first, len(pieces.rows)))
    kept = Pieces(*(a[np.repeat(~longer, counts)] for a in pieces))
    if starts is not None:
        starts = np.cumsum(counts[~longer]) - counts[~longer]
    return kept, starts, {name: own[~longer] for name, own in uses.items()}


def budget_values(pieces: Pieces, columns: Sequence[Any],
                  name: str) -> np.ndarray:
    """Returns the integer of each piece in this column, or the length of its
    list."""
    column = next((c for c in columns if c.name == name), None)
    if isinstance(column, OwnLists):
        return column.lengths(pieces)
    if not isinstance(column, Scalars) or \
            not pa.types.is_integer(column.type):
        raise ValueError("budget: there is no column %s with an integer per "
                         "row, or with lists (named '%s[]' in columns=)"
                         % (printable(name), printable(name)))
    if column.values.null_count:
        raise ValueError("%s: a value is missing" % printable(name))
    return column.values.to_numpy(False)[pieces.rows]


def aligned(lengths: np.ndarray, align: int) -> np.ndarray:
    return -(-lengths // align) * align


def plan_packs(pieces: Pieces, starts: Optional[np.ndarray], capacity: int,
               uses: Mapping[str, np.ndarray],
               **options: Any) -> Iterator[Plan]:
    """Plans PLAN_ROWS pieces (or groups, which start at `starts`) at a time,
    in threads, before the plans are used."""
    n = len(pieces.lengths)
    bounds = np.append(np.arange(n) if starts is None else starts, n)
    lengths = pieces.lengths if starts is None else \
        aligned(pieces.lengths, options.get("align", 1))

    def plan(at: int) -> Plan:
        own = bounds[at:at + PLAN_ROWS + 1]
        order, ends = pack_lengths(
            np.add.reduceat(lengths[:own[-1]], own[:-1]), capacity,
            {name: a[at:at + PLAN_ROWS] for name, a in uses.items()},
            **options)
        counts = np.diff(own)[order]
        stops = np.cumsum(counts)
        rows = np.arange(stops[-1]) + np.repeat(own[order] - stops + counts,
                                                counts)
        return Plan(Pieces(*(np.ascontiguousarray(a[rows], np.int64)
                             for a in pieces)), stops[ends - 1])

    with ThreadPoolExecutor(os.cpu_count() or 1) as pool:
        yield from pool.map(plan, range(0, len(bounds) - 1, PLAN_ROWS))


class Memory:
    """Buffers for batches: new buffers, or two alternating sets if each batch
    is used before the second batch after it is made."""

    def __init__(self, reuse: bool):
        self._reuse, self._turn = reuse, 0
        self._buffers: Dict[tuple, pa.Buffer] = {}

    def next_batch(self) -> None:
        self._turn = 1 - self._turn

    def take(self, name: str, size: int) -> pa.Buffer:
        if not self._reuse:
            return pa.allocate_buffer(size)
        key = (name, self._turn)
        if key not in self._buffers or self._buffers[key].size < size:
            self._buffers[key] = pa.allocate_buffer(size)
        return self._buffers[key]


def values_per_token(columns: Sequence[Any], pieces: Pieces) -> int:
    """Returns the number of values of the largest column, per token."""
    tokens = max(int(pieces.lengths.sum()), 1)
    return max(column.count * (
        1 + int(column.lengths(pieces).sum()) // tokens
        if isinstance(column, OwnLists) else 1)
        for column in columns if isinstance(column, Lists))


def packed_batches(columns: Sequence[Union[Lists, Scalars]], plan: Plan,
                   schema: pa.Schema, memory: Memory,
                   labels: Optional[Labels]) -> Iterator[pa.RecordBatch]:
    """Yields the packs as rows, about BATCH_VALUES values of the largest column
    at a time."""
    pieces = plan.pieces
    tokens = np.append(0, np.cumsum(pieces.lengths))
    bounds = np.append(0, plan.ends)        # ends of packs, in pieces
    begins = tokens[bounds]                 # starts of packs, in tokens
    lengths = pieces.lengths.astype(np.int32)
    most = max(1, BATCH_VALUES // values_per_token(columns, pieces))
    first = 0
    while first < len(plan.ends):
        last = int(np.searchsorted(begins, begins[first] + most,
                                   "right")) - 1
        last = max(last, first + 1)
        own = slice(bounds[first], bounds[last])
        edges = begins[first:last + 1] - begins[first]
        begun = bounds[first:last + 1] - bounds[first]
        made: Dict[str, pa.Array] = {
            "seq_lengths": lists_of(begun, pa.array(lengths[own]),
                                    pa.list_(pa.int32()))}
        if "position_ids" in schema.names:
            values = memory.take("position_ids", 4 * int(edges[-1]))
            lib.psn_positions(
                ffi.from_buffer("int32_t[]", values, True),
                ffi.from_buffer("int64_t[]", pieces.lengths[own]),
                len(pieces.lengths[own]))
            made["position_ids"] = lists_of(edges, pa.Array.from_buffers(
                pa.int32(), int(edges[-1]), [None, values]),
                pa.list_(pa.int32()))
        here = Pieces(*(a[own] for a in pieces))
        for column in columns:
            if isinstance(column, OwnLists):
                made.update(column.pack(here, begun, memory))
                continue
            made[column.name] = column.gather(here, begun) \
                if isinstance(column, Scalars) else column.gather(
                    here, edges, memory.take(column.name, int(edges[-1]) *
                                             column.element_bytes))
        if labels:
            made["labels"] = labels.make(made, here, edges)
        yield pa.record_batch([made[name] for name in schema.names],
                              schema=schema)
        memory.next_batch()
        first = last


def pack_table(table: pa.Table, rows: Optional[np.ndarray], seq_length: int,
               memory: Memory, tokens: str, overlong: str, position_ids: bool,
               strings: bool, group: Optional[str] = None,
               own_lists: Sequence[str] = (), **options: Any) -> tuple:
    """Packs these rows, or all rows.  Returns the schema and the batches.
    `strings` allows columns of strings.  `own_lists` names columns whose lists
    have lengths of their own."""
    one_of(OVERLONG, overlong, "overlong")
    if options.get("by") is not None:
        raise ValueError("by: tables are packed by lengths alone; use a Packer")
    if own_lists:
        options["budget"] = {**dict.fromkeys(own_lists, seq_length),
                             **(options.get("budget") or {})}
    packer_options(seq_length, **options)       # validates them
    for name in table.column_names:
        if name in MADE or name in [own + LENGTHS for own in own_lists]:
            raise ValueError("there is a column %s already: are these packs?"
                             % printable(name))
        kind = table.schema.field(name).type
        if name in own_lists:
            check_is_list(kind, name)
            continue
        elements = elements_of(kind, table.schema.field(tokens).type)
        if elements.per == "sequence" and (name == tokens or not (
                is_number(elements.kind) or
                elements.count is None and strings and is_string(kind))):
            raise ValueError(
                "%s: a column of %s cannot be packed; list the columns to pack "
                "with columns=" % (printable(name), printable(kind)))
    # Make the chunks of all columns equal.
    table = pa.Table.from_batches(table.to_batches(), table.schema)
    mask = table[MASK].chunks if MASK in table.column_names else None
    if mask is not None:
        table = table.drop_columns(MASK)
    masks = [name for name in MASKS if name in table.column_names]
    labels = None if "labels" in table.column_names or not masks \
        else Labels(tokens, masks)
    kind_of_tokens = table.schema.field(tokens).type
    columns = [(OwnLists if name in own_lists else
                Lists if elements_of(column.type, kind_of_tokens).per == "token"
                else Scalars)(name, column)
               for name, column in zip(table.column_names, table.columns)]
    lists = [column for column in columns if isinstance(column, Lists) and
             not isinstance(column, OwnLists)]
    own = next(column for column in lists if column.name == tokens)
    spans, first = [(np.zeros(0, np.int64),) * 2], 0
    for i, offsets in enumerate(own.offsets):
        for column in lists:
            check_lengths(offsets, column.offsets[i], column.name, first)
        spans.append((offsets[:-1], np.diff(offsets)) if mask is None else
                     unpadded(offsets, mask[i], first)[:2])
        first += len(offsets) - 1
    pieces, starts = whole_rows(spans[1:] or spans, rows), None
    budget = options.get("budget") or {}
    longest = min(seq_length, math.isqrt(budget.get(ATTENTION,
                                                    seq_length ** 2)))
    if group is None:
        pieces = cut_rows(pieces, longest, overlong,
                          "seq_length" if longest == seq_length else
                          "what the budget for attention allows,")
    else:
        by = next((c for c in columns
                   if isinstance(c, Scalars) and c.name == group and
                   not is_list(c.type)), None)
        if by is None:
            raise ValueError("group: there is no column %s with a value per "
                             "row" % printable(group))
        if options.get("depth") is not None:
            raise ValueError("depth cannot be used with group, whose packs "
                             "may have more sequences")
        pieces, starts = group_rows(
            pieces, by.values.to_numpy(False), group, seq_length, overlong,
            options.get("align", 1))
    uses: Dict[str, np.ndarray] = {}
    if budget:
        pieces, starts, uses = budget_rows(pieces, starts, columns, budget,
                                           overlong)
    fields = [pa.field(column.name, column.packed) for column in columns]
    fields += [pa.field(name + LENGTHS, pa.list_(pa.int32()))
               for name in own_lists]
    if labels:
        fields.append(pa.field("labels", pa.large_list(pa.int64())))
    if position_ids:
        fields.append(pa.field("position_ids", pa.list_(pa.int32())))
    fields.append(pa.field("seq_lengths", pa.list_(pa.int32())))
    schema = pa.schema(fields)
    return schema, (batch for plan in plan_packs(pieces, starts, seq_length,
                                            uses, **options)
                    for batch in packed_batches(columns, plan, schema, memory,
                                                labels))


def pack_dataset(dataset: Any, seq_length: int, *,
                 columns: Optional[Sequence[str]] = None,
                 tokens: str = TOKENS, overlong: str = "error",
                 position_ids: bool = False,
                 cache_file_name: Optional[str] = None,
                 **options: Any) -> Any:
    """Packs a datasets.Dataset or IterableDataset, each split of a DatasetDict,
    a pyarrow.Table, or the result of from_text, which becomes a Dataset in
    memory.  A row of the result has the tokens of several rows, at most
    seq_length.

    A column has either lists as long as the tokens, such as labels or masks,
    or one number per row, such as a score.  A packed row has a list of these
    numbers, of the same type, one per sequence; all parts of a split row have
    the row's number.  A vector can replace a number: lists of lists have a
    vector per token, and lists of a fixed size are a vector per row, as for
    from_arrow.  `columns` names the columns to pack, by default all.
    Columns of strings, such as row ids, are packed like numbers if named.

    A column named with [] at the end, such as "encoder_ids[]", has lists whose
    lengths do not depend on the tokens.  A packed row has the lists of its
    sequences one after the other, at most budget["encoder_ids"] elements
    (default: seq_length), and their lengths in a column encoder_ids_lengths.

    If there is a column attention_mask, its zeros are padding, which is
    removed together with the column.

    Adds seq_lengths, the lengths of the packed sequences, as TRL does;
    hf.collate derives positions from it.  position_ids=True adds positions as
    a column.  Without labels, the columns loss_mask, assistant_masks and
    completion_mask become labels: the token where all are 1, otherwise -100.

    `overlong` selects how to treat longer rows: "error", "drop", "truncate" or
    "split".  Rows without tokens are skipped.  The options are those of
    Packer: depth, window, policy, order, seed, even_cost, align, group,
    budget.

    A dataset in files is packed into a file next to them, which is reused for
    the same rows and options.  cache_file_name names another file, which is
    replaced if it was made from other rows or options.  A dataset in memory is
    packed in memory.  An IterableDataset returns an IterableDataset:
    STREAM_ROWS rows are packed at a time."""
    need_library("pack_dataset")
    arguments: Dict[str, Any] = dict(tokens=tokens, overlong=overlong,
                                     position_ids=position_ids, **options)
    if isinstance(dataset, dict):
        if cache_file_name is not None:
            raise ValueError("cache_file_name is for one split")
        return type(dataset)({
            split: pack_dataset(part, seq_length, columns=columns, **arguments)
            for split, part in dataset.items()})
    arguments["strings"] = columns is not None
    if columns is not None:
        columns, arguments["own_lists"] = split_lists(columns)
        if tokens in arguments["own_lists"]:
            raise ValueError("%s are the tokens, not a list of their own"
                             % printable(tokens))
    if is_iterable(dataset):
        if cache_file_name is not None:
            raise ValueError("an IterableDataset is not packed into a file")
        if options.get("group") is not None:
            raise ValueError("group: an IterableDataset is packed in parts, "
                             "which would cut groups; use a Packer")
        return pack_stream(dataset, seq_length, columns, arguments)
    if isinstance(dataset, TextSequences):
        dataset = dataset.dataset()
    is_table = isinstance(dataset, pa.Table)
    if not is_table and not hasattr(dataset, "_fingerprint"):
        raise TypeError("%s: neither a datasets.Dataset nor a pyarrow.Table; "
                        "a Packer takes what is streamed"
                        % type(dataset).__name__)
    names = packed_names(dataset.column_names, columns, tokens)
    if is_table:
        schema, batches = pack_table(dataset.select(names), None, seq_length,
                                     Memory(reuse=False), **arguments)
        return pa.Table.from_batches(batches, schema)

    import datasets
    check_transform(dataset)
    dataset = dataset.select_columns(names)
    rows = getattr(dataset, "_indices", None)   # set by select and shuffle
    fingerprint = hashlib.sha256(repr((
        dataset._fingerprint, seq_length, sorted(arguments.items()),
        ffi.string(lib.ps_version()))).encode()).hexdigest()[:16]
    if cache_file_name is None and dataset.cache_files:
        # Next to the first file of the dataset.
        cache_file_name = os.path.join(
            os.path.dirname(dataset.cache_files[0]["filename"]),
            "packed-%s.arrow" % fingerprint)
    if cache_file_name is None or not is_made_of(cache_file_name, fingerprint):
        schema, batches = pack_table(
            dataset.data.table,
            None if rows is None else rows.column(0).to_numpy(), seq_length,
            Memory(reuse=cache_file_name is not None), **arguments)
        if cache_file_name is None:
            return datasets.Dataset(pa.Table.from_batches(batches, schema),
                                    fingerprint=fingerprint)
        write_file(cache_file_name, schema.with_metadata(
            {FINGERPRINT: fingerprint}), batches)
    return datasets.Dataset.from_file(cache_file_name)


def packed_names(there: Sequence[str], columns: Optional[Sequence[str]],
                 tokens: str) -> List[str]:
    """Returns the columns to read."""
    names = list(columns or there)
    if MASK in there and MASK not in names:
        names.append(MASK)
    check_columns(there, tokens, [name for name in names if name != tokens])
    if tokens not in names:
        raise ValueError("columns= must also name the tokens, %r" % tokens)
    return names


def is_iterable(dataset: Any) -> bool:
    """True for an IterableDataset of datasets."""
    return hasattr(dataset, "_ex_iterable")


def pack_stream(dataset: Any, seq_length: int,
                columns: Optional[Sequence[str]],
                arguments: Dict[str, Any]) -> Any:
    """Returns an IterableDataset of packed rows, with the shards and the
    resume support of the original."""
    import datasets
    check_transform(dataset)
    there = dataset.column_names or list(next(iter(dataset), {}))
    names = packed_names(there, columns, arguments["tokens"])
    dataset = dataset.select_columns(names)

    def pack(table: pa.Table, first: int = 0) -> pa.Table:
        try:
            schema, batches = pack_table(table, None, seq_length,
                                         Memory(reuse=False), **arguments)
            return pa.Table.from_batches(batches, schema)
        except ValueError as problem:
            raise type(problem)("after %d rows of the dataset: %s"
                                % (first, problem)) from None

    features = dataset.features and datasets.Features.from_arrow_schema(
        pack(dataset.features.arrow_schema.empty_table()).schema)
    packed = dataset.with_format("arrow").map(
        lambda table, numbers: pack(table, numbers[0]), batched=True,
        batch_size=STREAM_ROWS, with_indices=True, features=features)
    return packed.with_format(None)


def is_made_of(name: str, fingerprint: str) -> bool:
    """True if a complete file of these packs exists."""
    try:
        with pa.OSFile(name) as file:
            made_of = (pa.ipc.open_stream(file).schema.metadata or {}).get(
                FINGERPRINT)
            file.seek(file.size() - len(END_OF_STREAM))
            return (made_of == fingerprint.encode() and
                    file.read() == END_OF_STREAM)
    except (OSError, pa.ArrowInvalid):
        return False


def write_file(name: str, schema: pa.Schema,
               batches: Iterator[pa.RecordBatch]) -> None:
    """Writes an Arrow stream file atomically."""
    temporary = "%s.%s" % (name, uuid.uuid4().hex)
    try:
        with pa.OSFile(temporary, "wb") as file, \
                pa.ipc.new_stream(file, schema) as stream, \
                ThreadPoolExecutor(1) as pool:
            # A batch is made while the previous one is written.
            coming = pool.submit(next, batches, None)
            while (batch := coming.result()) is not None:
                coming = pool.submit(next, batches, None)
                stream.write_batch(batch)
        os.replace(temporary, name)
    except BaseException:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(temporary)
        raise
