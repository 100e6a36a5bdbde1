"""header.py - the header of a pack stream, with its field table.

SPDX-License-Identifier: MIT
"""

from __future__ import annotations

import re
import struct
from typing import (Any, Dict, List, Mapping, NamedTuple, Optional, Sequence,
                    Tuple)

import numpy as np

from packstream.errors import need
from packstream.native import xxh3

HEADER_BYTES = 4096
MINOR = 0                       # version whose dtype text is known
MAX_FIELDS = 28
MAX_SEQUENCES = 1 << 20         # maximum in a pack
MAX_ROW_BYTES = 1 << 28         # maximum size of a pack's row
MAX_VECTOR = 16384              # maximum number of values of a vector
UNKNOWN = 2**64 - 1
ATTENTION = "attention"         # name of the budget of squared lengths
# Types of fields, by their number in the table
TYPES = ("", "|u1", "<u2", "<u4", "<u8", "<i4", "<i8", "<f4", "<f8")
PER_TOKEN, PER_SEQUENCE, LIST = 1, 2, 3
# Type and offset of the format's own fields of sequences
OWN = {"seq_id": (4, 0), "seq_start": (5, 8), "seq_tok": (5, 12),
       "piece_off": (3, 16), "full_len": (3, 20)}
FIELD_NAME = re.compile(rb"([A-Za-z][A-Za-z0-9_]*)\0+")
SPECIALS = ("pad", "bos", "eos", "cls", "sep", "mask")
SCHEMA = ("vocab_size", "tokenizer", "framed", "share")
# Arrays of a batch with one element per pack
OF_PACKS = ("index", "n_seq", "n_tok", "max_seqlen", "sum_len_sq")
RESERVED = (*OF_PACKS, "cu")    # names that fields cannot have
EMPTY = "the input is empty: even a pack stream without packs has a header"


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
    schema: tuple = ()          # values named by SCHEMA, if read here
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
         (not verify or xxh3(data[:4088]) == checksum), at,
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
