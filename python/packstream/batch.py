"""batch.py - packs as dictionaries of arrays, each computed on first use.

SPDX-License-Identifier: MIT
"""

from __future__ import annotations

import functools
from typing import (Any, Dict, Iterable, Iterator, List, Mapping, Optional,
                    Sequence, Tuple, Union)

import numpy as np

from packstream import native
from packstream.header import OF_PACKS, OWN, UNKNOWN, Header
from packstream.native import ffi

CHUNK_BYTES = 1 << 20           # size of packs read and checked at a time
# The head of a pack, as stored after its checksum
NUMBERS = [("first_seq", "<u4"), ("n_seq", "<u4"), ("n_tok", "<u4"),
           ("max_seqlen", "<u4"), ("sum_len_sq", "<u8"), ("watermark", "<u8")]
HEAD = np.dtype([("index", "<u8"), *NUMBERS])   # as in memory
CU = ".cu"                      # suffix of the boundaries of a list
COMPUTED = ("cu", "seq_id", "seq_tok")  # arrays computed from sequence rows


@functools.lru_cache(16)
def shape_of(header: Header, verify: bool = False) -> Any:
    """The properties of packs that the extension needs."""
    return ffi.new("psn_shape *", {
        "capacity": header.capacity, "align": header.align,
        "depth": header.depth or 0, "row_bytes": header.row.itemsize,
        "seq_bytes": header.sequence.itemsize, "verify": verify})


def empty(n: int) -> np.ndarray:
    """Allocates n bytes.  Sizes are rounded up, because malloc reuses large
    blocks of equal size, but maps new pages for a larger block."""
    if n > 1 << 17:
        return np.empty(-(-n >> 16) << 16, np.uint8)[:n]
    return np.empty(n, np.uint8)


def joined(arrays: Sequence[np.ndarray]) -> np.ndarray:
    """Concatenates arrays as bytes: numpy would compare all dtypes and copy
    each field."""
    return arrays[0] if len(arrays) == 1 else np.concatenate(
        [array.view(np.uint8) for array in arrays]).view(arrays[0].dtype)


def rows_of_bytes(array: np.ndarray) -> np.ndarray:
    return array.view(np.uint8).reshape(len(array), -1)


class Run:
    """Consecutive packs: their rows, their heads, and a table of sequence
    rows, to which first_seq of the heads refers.  A run may be a part of
    `whole`, the run that was read, from its pack `begin` on."""

    def __init__(self, rows: np.ndarray, heads: np.ndarray,
                 table: np.ndarray, whole: Optional[Run] = None,
                 begin: int = 0):
        self.rows, self.heads, self.table = rows, heads, table
        self.whole, self.begin = whole, begin
        self.made: Dict[str, np.ndarray] = {}

    def __len__(self) -> int:
        return len(self.heads)

    def __getitem__(self, which: slice) -> Run:
        """Returns some of the packs as views; `which` has no step and no
        negative numbers."""
        return Run(self.rows[which], self.heads[which], self.table,
                   self.whole or self, self.begin + (which.start or 0))

    @property
    def sequences(self) -> np.ndarray:
        """The rows of the packs' sequences."""
        first_seq, n_seq = self.heads["first_seq"], self.heads["n_seq"]
        return self.table[first_seq[0]:first_seq[-1] + n_seq[-1]] \
            if len(self) else self.table[:0]

    def padded(self, name: str, header: Header) -> np.ndarray:
        """Returns cu, cu of a list, or a column of the sequence rows, with one
        row per pack.  A small array is computed only once for all batches of
        `whole`."""
        whole, depth = self.whole, header.depth
        size = header.sequence[name].itemsize \
            if name in header.sequence.names else 4
        if whole is None or not depth or \
                depth * len(whole) * size > CHUNK_BYTES:
            return self.pad(name, header)
        if name not in whole.made:
            whole.made[name] = whole.pad(name, header)
        return whole.made[name][self.begin:self.begin + len(self)]

    def pad(self, name: str, header: Header) -> np.ndarray:
        n_seq, sequences = self.heads["n_seq"], self.sequences
        depth = max(header.depth or 0, int(n_seq.max(initial=0)))
        if name == "cu":
            return self.boundaries(header, depth + 2)
        if name.endswith(CU):
            name = name[:-len(CU)]
            starts, lengths = self.sequences[name].T
            return self.spread(starts, starts + lengths, depth + 2,
                               header.row[name].shape[0])
        used = np.arange(depth) < n_seq[:, None]
        fill = UNKNOWN if name == "seq_id" else header.fills[
            header.sequence.names.index(name)]
        found = np.empty(used.shape + sequences[name].shape[1:],
                         sequences[name].dtype)
        found[:] = np.frombuffer(fill.to_bytes(8, "little"), found.dtype, 1)
        found[used] = sequences[name]
        return found

    def boundaries(self, header: Header, width: int) -> np.ndarray:
        if native.lib is not None:
            cu = np.empty((len(self), width), np.int32)
            native.lib.psn_cu(shape_of(header), len(self),
                              ffi.from_buffer("unsigned char[]", self.heads),
                              ffi.from_buffer("unsigned char[]", self.table),
                              width, ffi.from_buffer("int32_t[]", cu))
            return cu
        starts, lengths = (self.sequences[name] for name in
                           ("seq_start", "seq_tok"))
        return self.spread(starts, starts + taken(lengths, header.align),
                           width, header.capacity)

    def spread(self, starts: np.ndarray, ends: np.ndarray, width: int,
               capacity: int) -> np.ndarray:
        """Returns cu for sequences with these boundaries."""
        n_seq, n = self.heads["n_seq"], len(self)
        last = np.add.accumulate(n_seq, dtype=np.int64) - 1
        cu = np.full((n, width), capacity, np.int32)
        cu[np.arange(width) < n_seq[:, None]] = starts
        cu[np.arange(n), n_seq] = ends[last]
        return cu

    def take(self, which: np.ndarray) -> Run:
        """Copies the packs with these numbers, in this order."""
        heads = self.heads[which]
        begins, n = first_seqs(heads)
        places = np.arange(n) + np.repeat(heads["first_seq"] - begins,
                                          heads["n_seq"])
        heads["first_seq"] = begins
        return Run(self.rows[which], heads, self.table[places])


def first_seqs(heads: np.ndarray) -> Tuple[np.ndarray, int]:
    """Returns the index of each pack's first sequence in a table of only these
    packs, and the length of this table."""
    ends = np.add.accumulate(heads["n_seq"], dtype=np.int64)
    return ends - heads["n_seq"], int(ends[-1]) if len(ends) else 0


def taken(lengths: np.ndarray, align: int) -> np.ndarray:
    """Rounds lengths up to the alignment."""
    return lengths if align == 1 else (lengths + (align - 1)) // align * align


def join(runs: Sequence[Run],
         places: Optional[Sequence[np.ndarray]] = None) -> Run:
    """Joins all packs into one run, in which places[i] are the positions of
    the packs of runs[i]."""
    if len(runs) == 1:
        return runs[0]
    rows, heads, table = (joined([getattr(run, name) for run in runs])
                          for name in ("rows", "heads", "sequences"))
    heads["first_seq"], _ = first_seqs(heads)
    run = Run(rows, heads, table)
    return run if places is None else run.take(
        np.argsort(np.concatenate(places)))


LATER = object()        # in place of an array that is not yet computed


def of_all(method: Any) -> Any:
    """Wraps a method of dict that returns arrays: computes them first."""
    @functools.wraps(method)
    def call(self: Batch, *arguments: Any) -> Any:
        for name in self:
            self[name]
        return method(self, *arguments)
    return call


class Batch(Dict[str, np.ndarray]):
    """A dictionary of arrays, with the header of their stream and the rows of
    their sequences.  Accelerate and others create one from new arrays, without
    header and rows.  Arrays are computed on first use."""

    _run: Optional[Run] = None

    def __init__(self, arrays: Union[Mapping[str, np.ndarray], Iterable],
                 header: Optional[Header] = None,
                 sequences: Optional[np.ndarray] = None):
        super().__init__(arrays)
        self.header, self._sequences = header, sequences

    @property
    def sequences(self) -> Optional[np.ndarray]:
        """The rows of all sequences, pack after pack."""
        if self._sequences is None and self._run is not None:
            self._sequences = self._run.sequences
        return self._sequences

    def __getitem__(self, name: str) -> np.ndarray:
        found = super().__getitem__(name)
        if found is LATER:
            found = self[name] = self._make(name)
        return found

    def lists_of(self, name: str) -> List[np.ndarray]:
        """Returns the list of each sequence, pack after pack, in the order of
        `sequences`."""
        if name + CU not in self:
            raise KeyError("%r is not a list channel" % name)
        values, cu = self[name], self[name + CU]
        if cu.ndim == 1:        # a single pack
            values, cu = values[None], cu[None]
            n_seq = [int(self["n_seq"])]
        else:
            n_seq = self["n_seq"].tolist()
        return [row[begin:end] for row, bounds, n in
                zip(values, cu.tolist(), n_seq)
                for begin, end in zip(bounds[:n], bounds[1:n + 1])]

    def _make(self, name: str) -> np.ndarray:
        run, header = self._run, self.header
        if name in header.row.fields:
            return run.rows[name]
        if name in OF_PACKS:
            return run.heads[name]
        return run.padded(name, header)

    def __iter__(self) -> Iterator[str]:
        """Does the same as dict's.  Without this method, dict(batch) and
        **batch would copy LATER."""
        return super().__iter__()

    def get(self, name: str, default: Any = None) -> Any:
        return self[name] if name in self else default

    items, values, pop, popitem, setdefault, __repr__ = map(of_all, (
        dict.items, dict.values, dict.pop, dict.popitem, dict.setdefault,
        dict.__repr__))

    def __reduce__(self) -> Any:
        return Batch, (dict(self), self.header, self.sequences)


@functools.lru_cache(16)
def no_arrays(header: Header) -> Dict[str, Any]:
    """Returns the contents of a batch before any array is computed."""
    names = (*OF_PACKS, *COMPUTED[:2 + (header.align > 1)],
             *(name for name in header.sequence.names if name not in OWN),
             *header.row.names, *(name + CU for name in header.lists))
    return dict.fromkeys(names, LATER)


def as_batch(run: Run, header: Header) -> Batch:
    batch = Batch(no_arrays(header), header)
    batch._run = run
    return batch


def stack(packs: Sequence[Batch]) -> Batch:
    """Combines single packs, as returned by packstream.open(...)[i]."""
    return Batch({name: np.stack([pack[name] for pack in packs])
                  for name in packs[0]}, getattr(packs[0], "header", None))
