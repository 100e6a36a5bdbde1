"""packs.py - pack streams as dictionaries of numpy arrays.

    from packstream import packs, views

    source = packs.open_packs("corpus.pks")    # or sys.stdin.buffer
    for batch in source.batches(32):
        batch["tokens"]                        # [32, L]
        views.positions(batch)                 # [32, L], computed

A batch maps names to the arrays of S packs: tokens and per-token channels [S,
L]; cu [S, D + 2], the boundaries of the sequences; seq_id and per-sequence
channels [S, D]; seq_tok [S, D] if sequences are aligned; and index, n_seq,
n_tok, max_seqlen and sum_len_sq of the packs [S].  A channel of vectors of N
values has one dimension more: [S, L, N] or [S, D, N].

A list channel such as "edges" has two arrays: "edges" [S, B] or [S, B, N], the
lists of each pack one after the other, where B is the budget of the list; and
"edges.cu" [S, D + 2], their boundaries.  batch.lists_of("edges") has the list
of each sequence.

D is the depth in
`header`, or the maximum number of sequences in a pack of the batch if the
header has None, as in some pipes.  `sequences` has the rows of all sequences,
pack after pack, as in the stream.  views.py computes the other arrays.  Both
modules need only numpy.

A reader checks the header, the blocks, the index and END, and checks the
position, counts and sequences of each pack before it returns the pack.
Checksums are compared if the extension or the module xxhash is installed,
unless verify is False; otherwise they are NOT compared, and `source.verifies`
is False.  If all packs are read in order (from a pipe by every rank, from a
file by a single reader), the numbers of sequences and tokens are compared with
END, and so is the digest if checksums are compared.  Any error raises
PackError, which names the byte.

The format is defined in packstream(5).

SPDX-License-Identifier: MIT
"""

from __future__ import annotations

import copy
import functools
import io
import itertools
import os
import re
import selectors
import stat
import struct
import weakref
from typing import (Any, BinaryIO, Callable, Dict, Iterable, Iterator, List,
                    Mapping, NamedTuple, Optional, Sequence, Tuple, Union)

import numpy as np

try:
    from ._native import ffi, lib
except ImportError:             # not built, or packs.py is used alone
    ffi = lib = None

try:
    from xxhash import xxh3_64_intdigest
except ImportError:
    xxh3_64_intdigest = lib and (lambda data, seed=0: lib.psn_hash(
        ffi.from_buffer(data), len(data), seed))

HEADER_BYTES = 4096
CHUNK_BYTES = 1 << 20           # size of packs read and checked at a time
MINOR = 0                       # version whose dtype text is known
MAX_FIELDS = 28
ATTENTION = "attention"         # name of the budget of squared lengths
MAX_SEQUENCES = 1 << 20         # maximum in a pack
MAX_ROW_BYTES = 1 << 28         # maximum size of a pack's row
MAX_VECTOR = 16384              # maximum number of values of a vector
UNKNOWN = 2**64 - 1
BLOCK = struct.Struct("<4I6Q")  # head of a block
BLOCK_MAGIC = 0x42534b50
PACKS, END, INDEX = range(3)    # kinds of blocks
ENTRY = np.dtype([("offset", "<u8"), ("first", "<u8"), ("watermark", "<u8")])
INDEXED = 4096                  # number of blocks that an INDEX block lists
INDEX_BYTES = BLOCK.size + INDEXED * ENTRY.itemsize
END_BYTES = 192                 # size of END before its index
TRAILER = struct.Struct("<2Q8s")
TRAILER_MAGIC = b"\x89PKE\r\n\x1a\n"
MIN_END_BYTES = 256
MAX_END_BYTES = 256 + ENTRY.itemsize * (MAX_SEQUENCES + INDEXED)
# An entry of the index, with the offset and the first pack of the next entry
SPAN = np.dtype([("offset", "<i8"), ("first", "<i8"), ("end", "<i8"),
                 ("next", "<i8")])
# The head of a pack; in memory, the index replaces the checksum
NUMBERS = [("first_seq", "<u4"), ("n_seq", "<u4"), ("n_tok", "<u4"),
           ("max_seqlen", "<u4"), ("sum_len_sq", "<u8"), ("watermark", "<u8")]
STORED_HEAD = np.dtype([("checksum", "<u8"), *NUMBERS])
HEAD = np.dtype([("index", "<u8"), *NUMBERS])
# The input of a checksum; `row` and `sequences` are hashes
HASHED_HEAD = np.dtype([("other", "V12"), ("head", "V28")])
SUMMED = np.dtype([("index", "<u8"), ("row", "<u8"), ("sequences", "<u8"),
                   ("head", "V28")])
# Types of fields, by their number in the table
TYPES = ("", "|u1", "<u2", "<u4", "<u8", "<i4", "<i8", "<f4", "<f8")
PER_TOKEN, PER_SEQUENCE, LIST = 1, 2, 3
CU = ".cu"                      # suffix of the boundaries of a list
# Type and offset of the format's own fields of sequences
OWN = {"seq_id": (4, 0), "seq_start": (5, 8), "seq_tok": (5, 12),
       "piece_off": (3, 16), "full_len": (3, 20)}
FIELD_NAME = re.compile(rb"([A-Za-z][A-Za-z0-9_]*)\0+")
SPECIALS = ("pad", "bos", "eos", "cls", "sep", "mask")
SCHEMA = ("vocab_size", "tokenizer", "framed", "share")
# Arrays of a batch: with one element per pack; computed from sequence rows
OF_PACKS = ("index", "n_seq", "n_tok", "max_seqlen", "sum_len_sq")
COMPUTED = ("cu", "seq_id", "seq_tok")
RESERVED = (*OF_PACKS, "cu")    # names that fields cannot have
DISORDER = "the index of the stream that begins here is out of order"
CUT = "truncated: no END before this byte"
EMPTY = "the input is empty: even a pack stream without packs has a header"


n_true = np.count_nonzero


class PackError(ValueError):
    """Raised for a truncated, damaged or unsupported stream."""


def need(right: Any, at: int, why: str, what: str = "") -> None:
    if not right:
        raise PackError("%sbyte %d: %s" % (what, at, why))


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


def printable(text: Any, most: int = 1023) -> str:
    """Makes a path, a name from a file or a message safe to print: any
    character except printable ASCII becomes "?", and a long text keeps its
    last `most` characters."""
    text = os.fsdecode(text) if isinstance(text, bytes) else str(text)
    if len(text) > most:
        text = "..." + text[3 - most:]
    return re.sub("[^ -~]", "?", text)


def is_url(path: Any) -> bool:
    return isinstance(path, str) and \
        re.match(r"[A-Za-z][A-Za-z0-9+.:-]*://", path) is not None


class Header(NamedTuple):
    """The header of a stream; unknown counts are None."""
    capacity: int               # L, tokens in a pack
    align: int                  # sequences start at multiples of this
    pad_id: int
    labels: int                 # 0 not stated, 1 aligned, 2 shifted
    special: tuple              # pad, bos, eos, cls, sep, mask; 2^32-1: none
    row: np.dtype               # row of a pack: tokens, per-token channels
    sequence: np.dtype          # row of a sequence
    fills: tuple = ()           # fills of its fields, as bit patterns
    depth: Optional[int] = None     # D, maximum sequences in a pack
    block_packs: int = 1        # maximum packs in a block
    block_bytes: int = 0        # maximum size of a block
    n_packs: Optional[int] = None
    n_sequences: Optional[int] = None
    n_tokens: Optional[int] = None
    checksum: int = 0
    minor: int = 0
    most_least: tuple = ()      # max_seqlen and min_fill, or None
    schema: tuple = ()          # values named by SCHEMA, if read by packs.py
    group: Optional[str] = None     # channel of packstream --group
    share: bool = False         # True for packdeal's packs of one rank
    budgets: tuple = ()         # (channel or "attention", limit), --budget

    @property
    def most(self) -> int:
        """The maximum number of sequences that any pack can have."""
        return min(self.depth or self.capacity // self.align, MAX_SEQUENCES)

    @property
    def lists(self) -> Tuple[str, ...]:
        """The names of the list channels.  Their elements are in the rows, and
        [start, length] of each list in the sequence rows."""
        return tuple(name for name in self.row.names
                     if name in self.sequence.names)

    @property
    def vocab_size(self) -> int:
        """The number of tokens in the vocabulary, or 0 if it is unknown."""
        return self.schema[0] if self.schema else 0


class Field(NamedTuple):
    """An entry of the field table: a column of pack rows or sequence rows."""
    name: str
    type: int                   # index into TYPES
    kind: int                   # PER_TOKEN, PER_SEQUENCE or LIST
    offset: int                 # offset in the row, in bytes
    fill: int                   # each value of unused elements
    count: int                  # values of a vector; 1: a single value
    source: int                 # 1 + index of the channel; 0: built-in
    places: int                 # elements in the row, or 1


def places_of(kind: int, source: int, capacity: int,
              budgets: Mapping[int, int]) -> int:
    """Returns the number of elements of a field.  `budgets` maps sources to
    limits; 0 is returned for a list without a budget."""
    if kind == LIST:
        return budgets.get(source, 0)
    return capacity if kind == PER_TOKEN else 1


def format_of(field: Field) -> Any:
    """Returns the type of a field and, unless it is a single value, its
    shape."""
    shape = (field.places,) * (field.kind != PER_SEQUENCE) + \
        (field.count,) * (field.count > 1)
    return (TYPES[field.type], shape) if shape else TYPES[field.type]


def layouts(fields: Sequence[Field],
            sizes: Sequence[int]) -> List[Dict[str, Any]]:
    """Returns the arguments of numpy.dtype for a pack's row and for a sequence
    row."""
    found = []
    for in_row, size in zip((True, False), sizes):
        own = [field for field in fields
               if (field.kind != PER_SEQUENCE) == in_row]
        found.append({
            "names": [field.name for field in own],
            "formats": [format_of(field) for field in own],
            "offsets": [field.offset for field in own], "itemsize": size})
    return found


def layout_text(layout: Dict[str, Any]) -> bytes:
    """Returns the text of a layout as in the header, byte for byte."""
    return repr(layout).replace(" ", "").replace("]", ",]").encode() + b"\n"


def read_fields(data: bytes, at: int, capacity: int,
                sizes: Sequence[int]) -> List[Field]:
    """Reads the field table of a header, whose fields must not overlap and
    must be inside the row."""
    n, = struct.unpack_from("<I", data, 200)
    need(n <= MAX_FIELDS, at, "its field table has %d entries, but the "
         "limit is %d" % (n, MAX_FIELDS))
    limits = struct.unpack_from("<4Q", data, 208)
    budgets = dict(zip(data[127:123:-1], limits[::-1]))
    fields: List[Field] = []
    names = set(RESERVED)
    lists: Dict[str, int] = {}      # sources of lists without start and length
    ends = [0, 0]
    for i in range(n):
        name, number, kind, source, offset, count, fill = struct.unpack_from(
            "<24s2BxB2I4xQ", data, 256 + 64 * i)
        match = FIELD_NAME.fullmatch(name)
        need(match and 1 <= number < len(TYPES), at,
             "entry %d of its field table has a bad name or type" % i)
        field = Field(match[1].decode(), number, kind, offset, fill, count,
                      source, places_of(kind, source, capacity, budgets))
        width = np.dtype(TYPES[number]).itemsize
        size = width * count * field.places
        need(1 <= count <= MAX_VECTOR, at, "its field table has '%s' with "
             "vectors of %d values" % (field.name, count))
        need(field.name not in names or lists.pop(field.name, 0) == source and
             field[1:3] + field[4:6] == (3, PER_SEQUENCE, 0, 2), at,
             "its field table has '%s' twice" % field.name)
        need(field.places, at, "its field table has the list '%s' without a "
             "budget" % field.name)
        place = int(kind == PER_SEQUENCE)
        need(kind in (PER_TOKEN, PER_SEQUENCE, LIST) and offset % width == 0
             and ends[place] <= offset <= sizes[place] - size, at,
             "its field table has '%s' in the wrong place" % field.name)
        names.add(field.name)
        if kind == LIST:
            lists[field.name] = source
        ends[place] = offset + size
        fields.append(field)
    need(not lists, at, "its field table has the list '%s' without start and "
         "length" % "".join(list(lists)[:1]))
    return fields


def read_dtypes(data: bytes, at: int, capacity: int,
                sizes: Sequence[int]) -> Tuple[np.dtype, np.dtype, tuple]:
    """Returns the dtypes of a row and of a sequence row, built from the field
    table, and the fills of a sequence row.  The text in the header must agree
    with the table, but is never evaluated."""
    fields = read_fields(data, at, capacity, sizes)
    found = {field.name: (*field[1:4], field.count) for field in fields}
    wanted = {"tokens": (2 if data[120] == 2 else 3, PER_TOKEN, 0, 1)}
    wanted.update((name, (number, PER_SEQUENCE, offset, 1))
                  for name, (number, offset) in OWN.items()
                  if name in found or offset < 16)
    for name, what in wanted.items():
        need(found.get(name) == what, at,
             "its field table has no '%s' of the right type" % name)
    both = layouts(fields, sizes)
    minor, = struct.unpack_from("<H", data, 14)
    need(minor > MINOR or data[2048:4088] == b"".join(
        map(layout_text, both)).ljust(2040, b"\0"), at,
         "its dtype does not fit its field table")
    row, sequence = map(np.dtype, both)
    return row, sequence, tuple(field.fill for field in fields
                                if field.kind == PER_SEQUENCE)


def known(count: int) -> Optional[int]:
    return None if count == UNKNOWN else count


def read_header(data: bytes, at: int, verify: bool) -> Header:
    """Reads the header at byte `at` from `data`, which can be too short."""
    need(data, at, EMPTY)
    need(data[:4] != b"\x28\xb5\x2f\xfd", at,
         "compressed: pipe it in, zstd -dc FILE |")
    need(data[:8] == b"\x89PKS\r\n\x1a\n"[:len(data)], at,
         "not a pack stream")
    need(len(data) == HEADER_BYTES, at + len(data), "truncated in a header")
    endian, major, minor, size, row_bytes, *counts, capacity, depth, _, \
        vocab, longest, least, incompat, compat = struct.unpack_from(
            "<I2H2I3Q4I4Q", data, 8)
    pad_id, align, seq_bytes, block_packs, block_bytes = struct.unpack_from(
        "<4IQ", data, 176)
    checksum, = struct.unpack_from("<Q", data, 4088)
    need(major != 1, at, "pack stream format 1 is no longer supported: "
         "pack the token records again")
    need(major == 2, at, "version %d of the format is not known" % major)
    need(endian == 0x01020304 and size == HEADER_BYTES and
         (not verify or xxh3_64_intdigest(data[:4088]) == checksum), at,
         "a damaged header")
    need(incompat <= 1, at, "it needs features that are not known")
    need(not incompat or align > 1, at, "sizes out of range")
    align = align if incompat else 1
    need(1 <= capacity <= 1 << 24 and capacity % align == 0 and
         depth <= min(capacity // align, MAX_SEQUENCES) and
         0 < row_bytes <= MAX_ROW_BYTES and row_bytes % 8 == 0 and
         16 <= seq_bytes <= 8 * MAX_FIELDS * MAX_VECTOR and
         seq_bytes % 8 == 0 and min(depth or capacity // align,
                                    MAX_SEQUENCES) *
         seq_bytes <= MAX_ROW_BYTES and
         block_packs in (1 << i for i in range(17)) and
         block_bytes <= 3 * MAX_ROW_BYTES and data[120] in (2, 4), at,
         "sizes out of range")
    row, sequence, fills = read_dtypes(data, at, capacity,
                                       (row_bytes, seq_bytes))
    return Header(capacity, align, pad_id, data[121],
                  struct.unpack_from("<6I", data, 96), row, sequence, fills,
                  depth or None, block_packs, block_bytes,
                  *map(known, counts), checksum, minor,
                  (known(longest), known(least)),
                  (vocab, data[136:168].hex(), compat & 1, compat >> 1 & 1),
                  group_name(data, sequence, at), bool(compat >> 1 & 1),
                  budgets_of(data, row, sequence, at))


def group_name(data: bytes, sequence: np.dtype, at: int) -> Optional[str]:
    """Returns the name of the channel of byte 122, or None for 0."""
    if data[122] == 0:
        return None
    name = source_name(data, data[122])
    need(name in sequence.names and not sequence[name].shape, at,
         "it groups by a channel that is not there, or has vectors")
    return name


def source_name(data: bytes, source: int) -> Optional[str]:
    """Returns the name of a channel by the number of its source."""
    for i in range(256, 256 + 64 * data[200], 64):
        if data[i + 27] == source:
            return data[i:i + 24].rstrip(b"\0").decode()
    return None


def budgets_of(data: bytes, row: np.dtype, sequence: np.dtype,
               at: int) -> tuple:
    """Returns the budgets, as in Header."""
    limits = struct.unpack_from("<4Q", data, 208)
    n = next((i for i in range(4) if data[124 + i] == 0), 4)
    need(not any(data[124 + n:128]) and not any(limits[n:]) and
         all(0 < limit <= 1 << 43 for limit in limits[:n]), at,
         "a budget is out of range")
    names = [ATTENTION if i == 255 else source_name(data, i)
             for i in data[124:124 + n]]
    need(all(name == ATTENTION or name in sequence.names and
             (name in row.names or sequence[name].kind in "iu")
             for name in names), at,
         "a budget of a channel that is not there")
    return tuple(zip(names, limits))


def difference(head: Header, first: Header) -> str:
    """Describes the first difference between the packs of two headers."""
    for name in (*head._fields[:8], "group", "budgets", "schema"):
        here, there = getattr(head, name), getattr(first, name)
        if here == there:
            continue
        if name in ("special", "schema"):
            names = SCHEMA if name == "schema" else [
                special + " id" for special in SPECIALS]
            name, here, there = next(i for i in zip(names, here, there)
                                     if i[1] != i[2])
        elif isinstance(here, np.dtype):
            fields = [["%s %s at byte %d" % (field, *where[:2])
                       for field, where in dtype.fields.items()] +
                      ["end at byte %d" % dtype.itemsize]
                      for dtype in (here, there)]
            here, there = next((p for p in zip(*fields) if p[0] != p[1]),
                               (here, there))
            name = "field"
        return "%s %s, not %s" % (name, here, there)
    return ""


@functools.lru_cache(16)
def shape_of(header: Header, verify: bool = False) -> Any:
    """The properties of packs that the extension needs."""
    return ffi.new("psn_shape *", {
        "capacity": header.capacity, "align": header.align,
        "depth": header.depth or 0, "row_bytes": header.row.itemsize,
        "seq_bytes": header.sequence.itemsize, "verify": verify})


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
        if lib is not None:
            cu = np.empty((len(self), width), np.int32)
            lib.psn_cu(shape_of(header), len(self),
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


class Block(NamedTuple):
    """The head of a block."""
    kind: int
    n_packs: int
    n_seqs: int
    first: int                  # number of its first pack, or the next pack
    size: int                   # bytes, including the head
    body: int                   # hash of the bytes after the head


def up(size: int) -> int:
    """Rounds up to a possible size of a block."""
    return -(-size // 64) * 64


class Stream:
    """One stream: checks and counts its header, blocks and END."""

    def __init__(self, head: Header, number: int, at: int, verify: bool):
        self.head, self.number, self.at, self.verify = head, number, at, verify
        self.missing = 0        # packs before the first present pack
        self.packs = 0          # number of packs, from the END of a file
        self.end = (0, 0, 0)    # sequences, tokens, digest
        self.deepest = 0        # maximum sequences in a pack, from END
        self.sequences = self.tokens = 0
        self.digest = head.checksum
        # The index of a file: its parts (the last part is in END) and, for
        # each part that has been read, its blocks.
        self.parts = np.empty(0, SPAN)
        self.tables: Dict[int, np.ndarray] = {}

    def sums(self, data: Any, wanted: int) -> bool:
        """True if the checksum of the data matches or is not verified."""
        return not self.verify or xxh3_64_intdigest(data) == wanted

    def read_block(self, data: Any, at: int) -> Block:
        """Reads the head of the block at byte `at`."""
        need(len(data) == BLOCK.size, at + len(data), CUT)
        magic, *numbers, _, _, body, checksum = BLOCK.unpack(data)
        block, head = Block(*numbers, body), self.head
        if block.kind == PACKS:
            fits = 1 <= block.n_packs <= min(head.block_packs, block.n_seqs) \
                and block.size <= head.block_bytes and block.size == up(
                    BLOCK.size +
                    block.n_packs * (head.row.itemsize + HEAD.itemsize) +
                    block.n_seqs * head.sequence.itemsize)
        else:
            fits = block.n_packs == block.n_seqs == 0 and (
                block.size == INDEX_BYTES if block.kind == INDEX else
                block.kind == END and block.size == up(block.size) and
                MIN_END_BYTES <= block.size <= MAX_END_BYTES)
        need(magic == BLOCK_MAGIC and fits and self.sums(data[:56], checksum),
             at, "its head is damaged", "block at ")
        return block

    def read_packs(self, data: np.ndarray, blocks: Sequence[Block], at: int,
                   counted: bool) -> List[Run]:
        """Reads and checks the packs of some blocks, the first of which starts
        at byte `at`.  Counts them if `counted` is set."""
        rows, heads, tables, begins, n_seqs = [], [], [], [0], 0
        for block in blocks:
            begin, end = begins[-1], begins[-1] + block.size
            a = begin + BLOCK.size + block.n_packs * self.head.row.itemsize
            b = a + block.n_packs * HEAD.itemsize
            c = b + block.n_seqs * self.head.sequence.itemsize
            need(self.head.minor > MINOR or not any(data[c:end].tobytes()),
                 at + begin, "the bytes at its end are not zero", "block at ")
            rows.append(data[begin + BLOCK.size:a].view(self.head.row))
            heads.append(data[a:b].view(STORED_HEAD))
            tables.append(data[b:c].view(self.head.sequence))
            if n_seqs:
                heads[-1]["first_seq"] += np.uint32(n_seqs)
            n_seqs += block.n_seqs
            begins.append(end)
        head, table = joined(heads), joined(tables)
        self.check(rows, head, table, np.arange(
            blocks[0].first, blocks[0].first + len(head)), lambda i: at +
            np.repeat(begins[:-1], list(map(len, rows)))[i], counted)
        runs: List[Run] = []
        n, whole = 0, Run(rows[0], head.view(HEAD), table)  # has few rows
        for some in rows:
            runs.append(Run(some, whole.heads[n:n + len(some)], table, whole,
                            n))
            n += len(some)
        return runs

    def check(self, rows: Sequence[np.ndarray], heads: np.ndarray,
              table: np.ndarray, indices: np.ndarray,
              block_of: Callable[[int], int], counted: bool = False) -> None:
        """Raises PackError if a pack is invalid or has a different index;
        block_of(i) is the byte at which the block of pack i starts.  Stores
        the indices in the heads."""
        wrong = len(heads)
        if lib is not None:
            wrong = self.first_wrong_native(rows, heads, table, indices)
        elif not self.right(heads, table, 0):
            wrong = self.first_wrong(heads, table)
        elif self.verify:
            wrong = self.changed(rows, heads, table, indices)
        if wrong == len(heads) and self.head.lists:
            wrong = self.wrong_lists(heads, table)
        if wrong < len(heads):
            need(False, block_of(wrong), "damaged or out of place",
                 "pack %d in the block at " % indices[wrong])
        if counted:
            self.count(heads, len(table))
        heads["checksum"] = indices

    def first_wrong(self, heads: np.ndarray, table: np.ndarray) -> int:
        n = 0
        for i, head in enumerate(heads):
            end = n + int(head["n_seq"])
            if end <= n or not self.right(heads[i:i + 1], table[n:end], n):
                return i
            n = end
        return len(heads) - 1

    def right(self, heads: np.ndarray, table: np.ndarray,
              first_seq: int) -> bool:
        """True if the table has the sequences that the heads describe,
        starting with number first_seq, without gaps."""
        n_seq, lengths = heads["n_seq"], table["seq_tok"]
        starts = table["seq_start"]
        counts = np.add.accumulate(n_seq, dtype=np.int64)
        if counts[-1] != len(table) or n_true(n_seq) < len(heads):
            return False
        begins = counts - n_seq
        ends = starts + taken(lengths, self.head.align)
        n_tok = np.add.reduceat(lengths, begins) if self.head.align > 1 else \
            ends[counts - 1]
        # Only the first sequence of a pack does not start at the end of the
        # sequence before it, because no end is 0.
        return not (
            n_true(begins + first_seq != heads["first_seq"]) or
            n_true(n_seq > self.head.most) or n_true(lengths < 1) or
            n_true(ends.view(np.uint32) - 1 >= self.head.capacity) or
            n_true(starts[begins]) or
            n_true(starts[1:] != ends[:-1]) != len(heads) - 1 or
            n_true(n_tok != heads["n_tok"]) or
            n_true(np.maximum.reduceat(lengths, begins) != heads["max_seqlen"]))

    def wrong_lists(self, heads: np.ndarray, table: np.ndarray) -> int:
        """Returns the number of the first pack whose lists do not follow each
        other inside their array, or the number of packs."""
        ends_of = np.add.accumulate(heads["n_seq"], dtype=np.int64)
        wrong = np.zeros(len(table), bool)
        for name in self.head.lists:
            starts, lengths = table[name].T.astype(np.int64)
            ends = starts + lengths
            due = np.append(0, ends[:-1])
            due[ends_of - heads["n_seq"]] = 0
            wrong |= (starts != due) | (ends > self.head.row[name].shape[0])
        return int(ends_of.searchsorted(wrong.argmax(), "right")) \
            if wrong.any() else len(heads)

    def changed(self, rows: Sequence[np.ndarray], heads: np.ndarray,
                table: np.ndarray, indices: np.ndarray) -> int:
        """Returns the number of the first pack whose checksum differs, or the
        number of packs."""
        digest, n = xxh3_64_intdigest, len(heads)
        summed = np.empty(n, SUMMED)
        summed["index"] = indices
        summed["row"] = [digest(row) for some in rows
                         for row in rows_of_bytes(some)]
        # Copying small tables is faster than slicing them.
        memory = io.BytesIO(table.view(np.uint8))
        sizes = heads["n_seq"].astype(np.int64) * table.itemsize
        summed["sequences"] = list(map(digest, map(
            memory.read, sizes.tolist())))
        summed["head"] = heads.view(HASHED_HEAD)["head"]
        sums = list(map(digest, summed.view("V52").tolist()))
        differ = heads["checksum"] != np.array(sums, np.uint64)
        return int(np.append(differ, True).argmax())

    def first_wrong_native(self, rows: Sequence[np.ndarray],
                           heads: np.ndarray, table: np.ndarray,
                           indices: np.ndarray) -> int:
        begin, after = 0, ffi.new("uint32_t *")
        for some in rows:
            n = len(some)
            found = lib.psn_check(
                shape_of(self.head, self.verify), n,
                ffi.from_buffer("int64_t[]", indices[begin:]),
                ffi.from_buffer("unsigned char[]", some),
                ffi.from_buffer("unsigned char[]", heads[begin:]),
                ffi.from_buffer("unsigned char[]", table), len(table), after)
            begin += found
            if found < n:
                return begin
        return begin - (after[0] != len(table))

    def count(self, heads: np.ndarray, n: int) -> None:
        self.sequences += n
        self.tokens += int(np.add.reduce(heads["n_tok"], dtype=np.int64))
        if self.verify and lib is not None:
            self.digest = lib.psn_digest(self.digest, ffi.from_buffer(
                "unsigned char[]", heads), len(heads))
        elif self.verify:
            digest = self.digest
            for checksum in heads["checksum"].copy().view("V8").tolist():
                digest = xxh3_64_intdigest(checksum, digest)
            self.digest = digest

    def read_end(self, data: bytes, at: int) -> np.ndarray:
        """Reads END, which starts at byte `at`.  Returns its index entries."""
        block = self.read_block(data[:BLOCK.size], at)
        numbers = struct.unpack_from("<4Q", data, BLOCK.size)
        longest, self.deepest, least, _, n_parts, n_blocks = \
            struct.unpack_from("<6I", data, 168)
        size, stream_bytes, magic = TRAILER.unpack(data[-TRAILER.size:])
        need(block.kind == END and len(data) == block.size == size == up(
                END_BYTES + (n_parts + n_blocks) * ENTRY.itemsize +
                TRAILER.size) and n_blocks < INDEXED and
             magic == TRAILER_MAGIC and block.first == numbers[0] and
             numbers[0] * self.head.row.itemsize < stream_bytes and
             (self.missing or stream_bytes == at + size - self.at) and
             self.sums(data[BLOCK.size:], block.body), at, "END is damaged")
        need(all(said in (None, found) for said, found in
                 zip((self.head.n_packs, self.head.n_sequences,
                      self.head.n_tokens, *self.head.most_least),
                     (*numbers[:3], longest, least))), at,
             "END is not the header's")
        self.packs, self.end = numbers[0], numbers[1:]
        return np.frombuffer(data, ENTRY, n_parts + n_blocks, END_BYTES)

    def read_index(self, data: bytes, at: int) -> None:
        """Reads END of a file, including the last part of the index."""
        index = self.read_end(data, at)
        n, = struct.unpack_from("<I", data, 184)
        parts, blocks = index[:n], index[n:]
        if len(blocks):
            parts = np.append(parts, blocks[:1])
            parts["offset"][n] = at - self.at
        self.parts = self.spans(parts, at - self.at + 1, 0, self.packs)
        if len(blocks):
            self.read_part(n, blocks)

    def read_part(self, i: int, entries: np.ndarray) -> None:
        """Reads a part of the index, which lists the blocks between the
        previous part and itself."""
        offset, first, _, last = self.parts[i].tolist()
        begin = HEADER_BYTES
        if i:
            begin = int(self.parts["offset"][i - 1]) + INDEX_BYTES
        table = self.spans(entries, offset, first, last)
        need(table["offset"][0] == begin and
             (table["end"] - table["offset"] <= self.head.block_bytes
              ).all(), self.at, DISORDER)
        self.tables[i] = table

    def spans(self, entries: np.ndarray, end: int, first: int,
              last: int) -> np.ndarray:
        """Converts entries of the index to spans, from pack `first` to pack
        `last` and byte `end`."""
        table = np.empty(len(entries), SPAN)
        for name, until, high in (("offset", "end", end),
                                   ("first", "next", last)):
            table[name] = entries[name]
            table[until][:-1] = table[name][1:]
            table[until][-1:] = high
            need((table[name] < table[until]).all(), self.at, DISORDER)
        need(table["first"][0] == first and table["offset"][0] >= HEADER_BYTES
             if len(table) else first == last, self.at, DISORDER)
        return table

    def compare(self) -> None:
        """Raises PackError if END does not match the packs."""
        need((self.sequences, self.tokens) == self.end[:2] and
             (not self.verify or self.digest == self.end[2]),
             self.at + HEADER_BYTES,
             "the packs from here on are not those of END")


LATER = object()        # stands for an array that is not computed yet


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


def first_own(number: int, rank: int, ranks: int, start: int) -> int:
    """Returns the number of records to skip, from `number` on, to the first
    record of the rank."""
    lowest = max(number, start)
    return lowest + (rank - lowest) % ranks - number


def check_seed(shuffle: Optional[int]) -> None:
    """Raises TypeError or ValueError unless it is a seed or None."""
    if isinstance(shuffle, bool) or not (shuffle is None or
                                         hasattr(shuffle, "__index__")):
        raise TypeError("shuffle is a seed, or None, not %r" % shuffle)
    if shuffle is not None and not 0 <= shuffle < 2**64:
        raise ValueError("the seed is %d, not from 0 to 2^64 - 1" % shuffle)


def mix(state: np.ndarray) -> np.ndarray:
    """Returns the next output of SplitMix64 for each state."""
    z = state + np.uint64(0x9e3779b97f4a7c15)
    z = (z ^ z >> np.uint64(30)) * np.uint64(0xbf58476d1ce4e5b9)
    z = (z ^ z >> np.uint64(27)) * np.uint64(0x94d049bb133111eb)
    return z ^ z >> np.uint64(31)


def shuffled(count: int, seed: int, epoch: int, first: int = 0,
             end: Optional[int] = None) -> np.ndarray:
    """Returns the numbers below `count` in the order of an epoch, or only the
    positions `first` to `end` of it.  The order is that of ps_shuffled in
    packstream(3): a Feistel network, applied until a number is below `count`.
    """
    half = max(3, (max(count - 1, 0).bit_length() + 1) // 2)
    key = mix(np.array([seed], np.uint64)) ^ np.uint64(epoch)
    keys = mix(key + np.uint64(0x9e3779b97f4a7c15) *
               np.arange(12, dtype=np.uint64))
    bits, rest = np.uint64(half), np.uint64(64 - half)
    numbers = np.arange(first, count if end is None else end, dtype=np.uint64)
    left = np.arange(len(numbers))      # positions of unfinished numbers
    while len(left):
        now = numbers[left]
        a, b = now >> bits, now & np.uint64(2**half - 1)
        for k in keys:
            a, b = b, a ^ mix(k ^ b) >> rest
        numbers[left] = now = a << bits | b
        left = left[now >= count]
    return numbers.astype(np.int64)


class Packs:
    """Base class of PackFile and PackPipe; use open_packs."""

    def __init__(self, verify: bool):
        self.verifies = verify and xxh3_64_intdigest is not None
        self.header: Header

    def batches(self, size: int, rank: int = 0, ranks: int = 1,
                start: int = 0, order: Optional[np.ndarray] = None,
                drop_last: bool = False) -> Iterator[Batch]:
        """Yields batches of `size` packs; the last batch may have fewer.

        Packs are numbered consecutively, from 0, across joined streams.
        Rank r of R gets the packs whose number is r modulo R, so a rank may
        get one pack, and one batch, more than another.  With drop_last,
        all batches are full and all ranks get equally many; the remaining
        packs are dropped.  Packs with numbers below `start` are skipped.
        `order`, an array of numbers such as shuffled(len(source), seed,
        epoch), selects the order of a file's packs; `rank` and `start` then
        refer to positions in it.
        """
        if size < 1 or not 0 <= rank < ranks or start < 0:
            raise ValueError("size, rank, ranks or start is out of range")
        rest: List[Run] = []
        whole: List[Run] = []
        given = have = 0
        for run, known in self.runs(size, rank, ranks, start, order):
            end = 0
            while end < len(run):
                begin, end = end, end + size - have
                rest.append(run[begin:end])
                have += len(rest[-1])
                if have == size:
                    whole.append(join(rest))
                    rest, have = [], 0
            ready = len(whole)
            if drop_last:       # wait until every rank has equally many
                ready = min(ready, max(0, known // (size * ranks) - given))
            yield from map(self.batch, whole[:ready])
            del whole[:ready]
            given += ready
        if rest and not drop_last:
            yield self.batch(join(rest))

    def batch(self, run: Run) -> Batch:
        return as_batch(run, self.header)

    def runs(self, size: int, rank: int, ranks: int, start: int,
             order: Optional[np.ndarray]) -> Iterator[Tuple[Run, int]]:
        """Yields the rank's packs, checked, and the number of packs of all
        ranks that are known to exist."""
        raise NotImplementedError

    def header_of(self, data: bytes, at: int) -> Header:
        head = read_header(data, at, self.verifies)
        other = difference(head, self.header) if at else ""
        need(not other, at, "a stream of another geometry than the first: " +
             other)
        return head


class PackFile(Packs):
    """A regular file, or a RemoteFile.  Packs are read on demand, into memory
    owned by the batch.  The file is not mapped: if another program truncates
    it, reading raises PackError instead of SIGBUS."""

    def __init__(self, path: Union[str, os.PathLike], verify: bool = True,
                 remote: Any = None):
        super().__init__(verify)
        self.path, self.remote = path, remote
        if remote is not None:
            self.size = remote.size
        else:
            self.fd = os.open(path, os.O_RDONLY)
            weakref.finalize(self, os.close, self.fd)
            self.size = os.fstat(self.fd).st_size
        need(self.size, 0, EMPTY)
        self.header = self.header_of(
            self.read(0, min(HEADER_BYTES, self.size)), 0)
        self.streams = list(self.from_the_end())[::-1]
        for before, stream in zip(self.streams, self.streams[1:]):
            stream.number = before.number + before.packs
        self.header = self.header._replace(depth=max(
            stream.head.depth or stream.deepest
            for stream in self.streams) or None)

    def __reduce__(self) -> Any:
        return type(self), (self.path, self.verifies, self.remote)

    def fill(self, buffer: np.ndarray, at: int) -> None:
        """Fills the buffer with the bytes from `at` on."""
        if self.remote is not None:
            need(at + len(buffer) <= self.size, at, CUT)
            return self.remote.fill(buffer, at)
        while len(buffer):
            got = os.preadv(self.fd, [buffer], at)
            if not got:
                need(False, at, "the file ends at or before this byte, it had "
                     "%d bytes when opened" % self.size)
            buffer, at = buffer[got:], at + got

    def array(self, at: int, n: int) -> np.ndarray:
        buffer = empty(n)
        self.fill(buffer, at)
        return buffer

    def read(self, at: int, n: int) -> bytes:
        return self.array(at, n).tobytes()

    def from_the_end(self) -> Iterator[Stream]:
        """Yields the streams, the last one first: the size in a stream's
        trailer gives the position of its header."""
        end = self.size
        while end:
            begin = max(end - TRAILER.size, 0)
            size, stream_bytes, magic = TRAILER.unpack(
                self.read(begin, end - begin).ljust(TRAILER.size, b"\0"))
            at = end - stream_bytes
            need(magic == TRAILER_MAGIC and at >= 0 and
                 MIN_END_BYTES <= size <= min(MAX_END_BYTES,
                                              stream_bytes - HEADER_BYTES),
                 end, CUT)
            stream = Stream(self.header_of(self.read(at, HEADER_BYTES), at),
                            0, at, self.verifies)
            stream.read_index(self.read(end - size, size), end - size)
            yield stream
            end = at

    def __len__(self) -> int:
        return self.streams[-1].number + self.streams[-1].packs

    def runs(self, size: int, rank: int, ranks: int, start: int,
             order: Optional[np.ndarray]) -> Iterator[Tuple[Run, int]]:
        step = CHUNK_BYTES // self.header.row.itemsize // size * size or size
        known = (len(self) if order is None else len(order)) - start
        if order is not None:
            own = np.asarray(order)[first_own(0, rank, ranks, start)::ranks]
            for at in range(0, len(own), step):
                yield self.run(own[at:at + step]), known
            return
        for stream in map(copy.copy, self.streams):
            skip = first_own(stream.number, rank, ranks, start)
            own = range(skip, stream.packs, ranks)
            if ranks == 1:
                yield from zip(self.blocks(stream, skip),
                               itertools.repeat(known))
                continue
            for at in range(0, len(own), step):
                part = own[at:at + step]
                yield self.load(stream, np.arange(
                    part.start, part.stop, ranks)), known

    def table(self, stream: Stream, i: int) -> np.ndarray:
        """Returns the blocks of part i of the index."""
        if i not in stream.tables:
            offset, _, _, last = stream.parts[i].tolist()
            at = stream.at + offset
            data = self.array(at, INDEX_BYTES)
            block = stream.read_block(data[:BLOCK.size], at)
            need(block.kind == INDEX and block.first == last and
                 stream.sums(data[BLOCK.size:], block.body), at,
                 "it is no index", "block at ")
            stream.read_part(i, data[BLOCK.size:].view(ENTRY))
        return stream.tables[i]

    def find(self, stream: Stream, indices: np.ndarray) -> np.ndarray:
        """Returns the block of each of these packs."""
        parts = stream.parts["next"].searchsorted(indices, "right")
        found = np.empty(len(indices), SPAN)
        for part in set(parts.tolist()):
            table, here = self.table(stream, part), parts == part
            found[here] = table[table["next"].searchsorted(indices[here],
                                                           "right")]
        return found

    def blocks(self, stream: Stream, index: int) -> Iterator[Run]:
        """Yields the packs of a stream from `index` on.  Several blocks are
        read at a time."""
        whole = index == 0
        parts = stream.parts["next"].searchsorted(index, "right")
        for part in range(parts, len(stream.parts)):
            table = self.table(stream, part)
            begin = int(table["next"].searchsorted(index, "right"))
            self.expect(stream, table[begin:])
            while begin < len(table):
                at = int(table["offset"][begin])
                end = max(begin + 1, int(table["end"].searchsorted(
                    at + CHUNK_BYTES, "right")))
                spans = table[begin:end].tolist()
                data = self.array(stream.at + at, spans[-1][2] - at)
                blocks = [self.head_of(stream, span, data[span[0] - at:])
                          for span in spans]
                first = spans[0][1]
                for run in stream.read_packs(data, blocks, stream.at + at,
                                             whole):
                    yield run[max(0, index - first):]
                    first += len(run)
                begin = end
        if whole:
            stream.compare()

    def expect(self, stream: Stream, spans: np.ndarray) -> None:
        """Announces the blocks that are read next."""
        if self.remote is not None:
            at = stream.at + spans["offset"]
            self.remote.expect(list(dict.fromkeys(zip(at.tolist(), (
                spans["end"] - spans["offset"]).tolist()))))

    def head_of(self, stream: Stream, span: Sequence[int], data: np.ndarray
                ) -> Block:
        """Reads the head of a block, which must match the index."""
        offset, first, end, after = span
        at = stream.at + offset
        block = stream.read_block(data[:BLOCK.size], at)
        need(block.kind == PACKS and block.first == first and
             block.n_packs == after - first and
             block.size == end - offset, at,
             "it is not that of the index", "block at ")
        return block

    def load(self, stream: Stream, indices: np.ndarray) -> Run:
        """Reads and checks the packs with these indices in a stream."""
        head, n = stream.head, len(indices)
        rows, heads = empty(n * head.row.itemsize), empty(n * HEAD.itemsize)
        if n == 0:
            return Run(rows.view(head.row), heads.view(HEAD),
                       rows.view(head.sequence))
        spans = self.find(stream, indices)
        blocks, low = stream.at + spans["offset"], indices - spans["first"]
        self.expect(stream, spans)
        at, packs = blocks + BLOCK.size, spans["next"] - spans["first"]
        for array, dtype, gap in ((rows, head.row, 0), (heads, HEAD, 1 << 12)):
            self.gather(at + low * dtype.itemsize, dtype.itemsize, gap, array)
            at += packs * dtype.itemsize
        heads = heads.view(STORED_HEAD)
        at += heads["first_seq"].astype(np.int64) * head.sequence.itemsize
        sizes = heads["n_seq"].astype(np.int64) * head.sequence.itemsize
        wrong = (heads["n_seq"] - 1 >= head.most) | (
            at + sizes > stream.at + spans["end"])
        if n_true(wrong):
            i = wrong.argmax()
            need(False, blocks[i], "damaged or out of place",
                 "pack %d in the block at " % indices[i])
        heads["first_seq"], n_seqs = first_seqs(heads)
        table = self.gather(at, sizes, 1 << 12, empty(
            n_seqs * head.sequence.itemsize)).view(head.sequence)
        rows = rows.view(head.row)
        stream.check([rows], heads, table, indices, blocks.__getitem__)
        return Run(rows, heads.view(HEAD), table)

    def gather(self, at: np.ndarray, sizes: Any, gap: int, to: np.ndarray
               ) -> np.ndarray:
        """Reads pieces of the file, whose sizes are multiples of 8 bytes, and
        joins them.  Pieces with gaps of at most `gap` bytes are read at
        once."""
        ends = at + sizes
        apart = at[1:] - ends[:-1]
        if not n_true(apart):
            self.fill(to, int(at[0]))
            return to
        sizes = ends - at
        done = np.cumsum(sizes)
        last = [*np.flatnonzero((apart < 0) | (apart > gap)).tolist(),
                len(at) - 1]
        first = [0, *(i + 1 for i in last[:-1])]
        for i, j, begin, end, a, b in zip(first, last, *(
                array.tolist() for array in (
                    at[first], ends[last], (done - sizes)[first],
                    done[last]))):
            if end - begin == b - a:
                self.fill(to[a:b], begin)
                continue
            words = sizes[i:j + 1] >> 3
            places = (at[i:j + 1] - begin >> 3) - np.cumsum(words) + words
            places = np.repeat(places, words) + np.arange(b - a >> 3)
            to[a:b].view(np.uint64)[:] = self.array(
                begin, end - begin).view(np.uint64)[places]
        return to

    def run(self, numbers: np.ndarray) -> Run:
        """Reads and checks the packs with these numbers."""
        numbers = np.asarray(numbers, np.int64)
        if ((numbers < 0) | (numbers >= len(self))).any():
            raise IndexError("no pack has such a number")
        runs, places = [], []
        for stream in self.streams:
            indices = numbers - stream.number
            here = np.flatnonzero((indices >= 0) & (indices < stream.packs))
            if len(here) or stream is self.streams[-1] and not runs:
                runs.append(self.load(stream, indices[here]))
                places.append(here)
        return join(runs, places)

    def take(self, numbers: np.ndarray) -> Batch:
        """Returns a batch of the packs with these numbers, in this order."""
        return self.batch(self.run(numbers))


class PackPipe(Packs):
    """Any stream with readinto, which is read once.  A batch is returned as
    soon as its blocks have arrived.  For the output of packstream
    --resume-from=N, set start to N."""

    def __init__(self, stream: BinaryIO, verify: bool = True):
        super().__init__(verify)
        self.stream = stream
        self.readinto = getattr(stream, "readinto1", stream.readinto)
        self.at = 0
        self.header = self.header_of(self.some(HEADER_BYTES).tobytes(), 0)

    def read_some(self, buffer: memoryview) -> int:
        """Reads the available bytes, at least one.  Returns 0 at the end."""
        got = self.readinto(buffer)
        while got is None:      # a non-blocking stream has no data yet
            self.wait()
            got = self.readinto(buffer)
        return got

    def wait(self) -> None:
        try:
            descriptor = self.stream.fileno()
        except (AttributeError, OSError):
            raise BlockingIOError(
                "the stream is non-blocking and has no fileno() to wait for; "
                "make it blocking") from None
        with selectors.DefaultSelector() as selector:
            selector.register(descriptor, selectors.EVENT_READ)
            selector.select()

    def some(self, n: int, begun: bytes = b"") -> np.ndarray:
        """Returns the bytes in `begun` and the next bytes, n in total, or
        fewer if the input ends."""
        buffer, have = empty(n), len(begun)
        memory = memoryview(buffer)
        memory[:have] = begun
        self.at -= have
        while have < n:
            got = self.read_some(memory[have:])
            if not got:
                break
            have += got
        self.at += have
        return buffer[:have]

    def runs(self, size: int, rank: int, ranks: int, start: int,
             order: Optional[np.ndarray]) -> Iterator[Tuple[Run, int]]:
        if order is not None or self.at != HEADER_BYTES:
            raise ValueError("a pipe has one order, and is read once")
        head, number = self.header, 0
        while True:
            stream = Stream(head, number, self.at - HEADER_BYTES,
                            self.verifies)
            for index, run in self.blocks(stream, start):
                number = stream.number + index
                own = first_own(number, rank, ranks, start)
                number += len(run)
                yield run.take(np.arange(own, len(run), ranks)) \
                    if own or ranks > 1 else run, number - start
            data = self.some(HEADER_BYTES).tobytes()
            if not data:
                return
            head = self.header_of(data, self.at - len(data))

    def blocks(self, stream: Stream, start: int) -> Iterator[Tuple[int, Run]]:
        """Yields the index of each block's first pack, and its packs.
        Compares the index of the stream with the blocks."""
        index = -1
        parts: List[Tuple[int, ...]] = []
        seen: List[Tuple[int, ...]] = []
        while True:
            at = self.at
            first = self.some(BLOCK.size).tobytes()
            block = stream.read_block(first, at)
            if index < 0:
                index = stream.missing = block.first
                need(index <= max(0, start - stream.number), at,
                     "it starts with pack %d" % index)
            need(block.first == index, at, "it is of pack %d, not %d" % (
                block.first, index), "block at ")
            data = self.some(block.size, first)
            need(len(data) == block.size, self.at, CUT)
            if block.kind == PACKS:
                run, = stream.read_packs(data, [block], at, True)
                yield index, run
                index += len(run)
                seen.append((at - stream.at, block.first,
                             int(run.heads["watermark"][-1])))
                continue
            if block.kind == END:
                entries = stream.read_end(data.tobytes(), at)
                parts, seen = [], parts + seen
            else:
                entries = data[BLOCK.size:].view(ENTRY)
                need(stream.sums(data[BLOCK.size:], block.body), at,
                     "its checksum does not match", "block at ")
            need(stream.missing or entries.tolist() == seen, at,
                 "its index is not that of the blocks", "block at ")
            if block.kind == END:
                if not stream.missing:
                    stream.compare()
                return
            if seen:
                parts.append((at - stream.at, seen[0][1], seen[-1][2]))
            seen = []


def open_packs(source: Union[str, os.PathLike, BinaryIO],
               verify: bool = True) -> Packs:
    """Opens the packs of a path, a URL, or a stream of bytes such as
    sys.stdin.buffer.  A path that is not a regular file is read as a
    stream."""
    if hasattr(source, "readinto"):
        return PackPipe(source, verify)
    if is_url(source):
        from packstream.remote import MemoryCache, RemoteFile
        return PackFile(source, verify, RemoteFile(source, MemoryCache()))
    if stat.S_ISREG(os.stat(source).st_mode):
        return PackFile(source, verify)
    return PackPipe(open(source, "rb", buffering=0), verify)
