"""packs.py - pack streams as dictionaries of numpy arrays.

    from packstream import packs, views

    source = packs.open_packs("corpus.pks")    # or sys.stdin.buffer
    for batch in source.batches(32):
        batch["tokens"]                        # [32, L], a view of records
        views.positions(batch)                 # [32, L], computed

A batch holds the fields of S records under their own names, as views: tokens
and per-token channels [S, L], cu [S, D + 2], per-sequence channels [S, D],
seq_tok [S, D] if sequences are aligned; and index, n_seq, n_tok, max_seqlen
and sum_len_sq of the records [S].  Its attribute `header` is what the stream
says of itself.  views.py computes what follows from all that.  Both need
numpy alone.

Checked are the header; each record before it is given out: its magic, index,
counts and boundaries; END, and what follows it.  Checksums are compared if
the module xxhash is there, unless verify is False; where it is missing they
are NOT compared, and `source.verifies` says so.  Sequences and tokens are
compared with END, and with xxhash the digest, where all records are read in
order: from a pipe by every rank, from a file by a reader of all of it.
Whatever is wrong raises PackError, which names the byte.

The format is defined in packstream(5).

SPDX-License-Identifier: MIT
"""

from __future__ import annotations

import copy
import os
import re
import selectors
import stat
import struct
import weakref
from typing import (Any, BinaryIO, Dict, Iterable, Iterator, List, Mapping,
                    NamedTuple, Optional, Sequence, Tuple, Union)

import numpy as np

try:
    from xxhash import xxh3_64_intdigest
except ImportError:
    xxh3_64_intdigest = None

HEADER_BYTES = 4096
BLOCK_BYTES = 1 << 19           # read, or checked, at a time
MINOR = 0                       # version in which the dtype text is known
MAX_FIELDS = 28
UNKNOWN = 2**64 - 1
RECORD_MAGIC = 0x52534b50
# The head of a record, and the types of fields by their number in the table.
HEAD = {"checksum": ("<u8", 0), "magic": ("<u4", 8), "flags": ("<u4", 12),
        "index": ("<u8", 16), "watermark": ("<u8", 24),
        "sum_len_sq": ("<u8", 32), "n_seq": ("<u4", 40), "n_tok": ("<u4", 44),
        "max_seqlen": ("<u4", 48)}
TYPES = ("", "|u1", "<u2", "<u4", "<u8", "<i4", "<i8", "<f4", "<f8")
PER_TOKEN, PER_SEQUENCE, PER_BOUNDARY = 1, 2, 3
FIELD_NAME = re.compile(rb"([A-Za-z][A-Za-z0-9_]*)\0+")
SPECIALS = ("pad", "bos", "eos", "cls", "sep", "mask")
HIDDEN = ("checksum", "magic", "flags", "watermark")
EMPTY = "the input is empty; even a pack stream without packs has a header"


class PackError(ValueError):
    """A stream that is cut, damaged, or of a kind not read here."""


def need(right: Any, at: int, why: str) -> None:
    if not right:
        raise PackError("byte %d: %s" % (at, why))


def printable(text: Any, most: int = 1023) -> str:
    """A path, a name from a file or a message, safe to print: any character
    but printable ASCII becomes "?", and a long text keeps its last `most`."""
    text = os.fsdecode(text) if isinstance(text, bytes) else str(text)
    if len(text) > most:
        text = "..." + text[3 - most:]
    return re.sub("[^ -~]", "?", text)


class Header(NamedTuple):
    """What a stream says of itself; counts are None if it did not know."""
    capacity: int               # L, tokens of a pack
    depth: int                  # D, sequences of a pack at most
    align: int                  # sequences begin at multiples of it
    pad_id: int
    labels: int                 # convention: 0 not stated, 1 own, 2 shifted
    special: tuple              # pad, bos, eos, cls, sep, mask; 2^32-1: none
    dtype: np.dtype             # of a record
    n_records: Optional[int]
    n_sequences: Optional[int]
    n_tokens: Optional[int]
    checksum: int


class Batch(Dict[str, np.ndarray]):
    """A dictionary of arrays that knows the header of their stream.  Others,
    such as Accelerate, make one like it of new arrays, without a header."""

    def __init__(self, arrays: Union[Mapping[str, np.ndarray], Iterable],
                 header: Optional[Header] = None):
        super().__init__(arrays)
        self.header = header


def as_batch(rows: np.ndarray, header: Header) -> Batch:
    """Records, as rows of bytes, as a batch of their fields."""
    records = rows.view(header.dtype)
    return Batch({name: records[name] for name in header.dtype.names
                  if name not in HIDDEN}, header)


def stack(packs: Sequence[Batch]) -> Batch:
    """A batch of single packs, such as packstream.open(...)[i] gives."""
    return Batch({name: np.stack([pack[name] for pack in packs])
                  for name in packs[0]}, getattr(packs[0], "header", None))


class Field(NamedTuple):
    """An entry of the field table: an array in every record."""
    name: str
    type: int                   # an index of TYPES
    kind: int                   # PER_TOKEN, PER_SEQUENCE or PER_BOUNDARY
    offset: int                 # in the record, in bytes
    count: int                  # of elements


def record_layout(fields: Sequence[Field], size: int) -> Dict[str, Any]:
    """The argument of numpy.dtype for a record."""
    return {"names": [*HEAD, *(field.name for field in fields)],
            "formats": [*(kind for kind, _ in HEAD.values()),
                        *((TYPES[field.type], (field.count,))
                          for field in fields)],
            "offsets": [*(offset for _, offset in HEAD.values()),
                        *(field.offset for field in fields)],
            "itemsize": size}


def layout_text(layout: Dict[str, Any]) -> bytes:
    """A layout as the header has it, byte for byte."""
    return repr(layout).replace(" ", "").replace("]", ",]").encode()


def read_fields(data: bytes, at: int, capacity: int,
                depth: int) -> List[Field]:
    """The field table of a header.  Fields do not overlap, lie inside the
    record, and have the number of elements that follows from their kind."""
    size, = struct.unpack_from("<I", data, 20)
    n, = struct.unpack_from("<I", data, 200)
    need(n <= MAX_FIELDS, at, "its field table has %d entries, the limit is "
         "%d" % (n, MAX_FIELDS))
    counts = {PER_TOKEN: capacity, PER_SEQUENCE: depth,
              PER_BOUNDARY: depth + 2}
    fields: List[Field] = []
    names, end = set(HEAD), 64
    for i in range(n):
        name, number, kind, offset, count = struct.unpack_from(
            "<24s2B2x2I", data, 256 + 64 * i)
        match = FIELD_NAME.fullmatch(name)
        need(match and 1 <= number < len(TYPES), at,
             "entry %d of its field table has a bad name or type" % i)
        field = Field(match[1].decode(), number, kind, offset, count)
        width = np.dtype(TYPES[number]).itemsize
        need(field.name not in names, at,
             "its field table has '%s' twice" % field.name)
        need(count == counts.get(kind) and offset % width == 0 and
             end <= offset <= size - count * width, at,
             "its field table has '%s' in the wrong place" % field.name)
        names.add(field.name)
        end = offset + count * width
        fields.append(field)
    return fields


def read_dtype(data: bytes, at: int, capacity: int, depth: int,
               align: int) -> np.dtype:
    """The dtype of a record, built from the field table.  The text in the
    header must agree with the table; it is never evaluated."""
    fields = read_fields(data, at, capacity, depth)
    found = {field.name: field[1:3] for field in fields}
    wanted = {"cu": (5, PER_BOUNDARY), "seq_id": (4, PER_SEQUENCE),
              "tokens": (2 if data[120] == 2 else 3, PER_TOKEN)}
    if align > 1:
        wanted["seq_tok"] = (5, PER_SEQUENCE)
    for name, what in wanted.items():
        need(found.get(name) == what, at,
             "its field table has no '%s' of the right type" % name)
    size, = struct.unpack_from("<I", data, 20)
    layout = record_layout(fields, size)
    minor, = struct.unpack_from("<H", data, 14)
    need(minor > MINOR or
         data[2048:4088] == layout_text(layout).ljust(2040, b"\0"), at,
         "its dtype does not fit its field table")
    return np.dtype(layout)


def read_header(data: bytes, at: int, verify: bool) -> Header:
    """The header that stands at byte `at`, of which `data` is there."""
    need(data, at, EMPTY)
    need(data[:4] != b"\x28\xb5\x2f\xfd", at,
         "compressed: pipe it in, zstd -dc FILE |")
    need(data[:8] == b"\x89PKS\r\n\x1a\n"[:len(data)], at,
         "not a pack stream")
    need(len(data) == HEADER_BYTES, at + len(data), "cut in a header")
    endian, major, _, size, record_bytes, *counts, capacity, depth = \
        struct.unpack_from("<I2H2I3Q2I", data, 8)
    checksum, = struct.unpack_from("<Q", data, 4088)
    need(major == 1, at, "version %d of the format is not known" % major)
    need(endian == 0x01020304 and size == HEADER_BYTES and
         (not verify or xxh3_64_intdigest(data[:4088]) == checksum), at,
         "a damaged header")
    incompat, = struct.unpack_from("<Q", data, 80)
    need(incompat <= 1, at, "it needs features that are not known")
    align, = struct.unpack_from("<I", data, 180) if incompat else (1,)
    need(1 <= capacity <= 1 << 24 and 1 <= depth <= min(capacity, 1 << 16) and
         256 <= record_bytes <= 1 << 28 and record_bytes % 64 == 0 and
         data[120] in (2, 4) and (not incompat or align > 1) and
         capacity % align == 0, at, "sizes out of range")
    pad_id, = struct.unpack_from("<I", data, 176)
    return Header(capacity, depth, align, pad_id, data[121],
                  struct.unpack_from("<6I", data, 96),
                  read_dtype(data, at, capacity, depth, align),
                  *(None if n == UNKNOWN else n for n in counts), checksum)


class Stream:
    """A header, the records behind it, and END; checks and counts them."""

    def __init__(self, head: Header, number: int, at: int, verify: bool):
        self.head, self.number, self.verify = head, number, verify
        self.first = at + HEADER_BYTES
        self.row = np.dtype("V%d" % head.dtype.itemsize)
        self.packs = 0          # known in a file, from its END
        self.end = (0, 0, 0)    # sequences, tokens, digest
        self.sequences = self.tokens = 0
        self.digest = head.checksum

    def check(self, rows: np.ndarray, indices: np.ndarray) -> None:
        """Raises PackError if one of the rows, which ought to have these
        indices, is not what a record has to be."""
        records, head = rows.view(self.head.dtype), self.head
        cu, n_seq = records["cu"].T.copy(), records["n_seq"].astype(np.int64)
        real = np.arange(head.depth + 1)[:, None] < n_seq
        lengths = np.where(real, cu[1:] - cu[:-1], 0)
        ends = cu[np.minimum(n_seq, head.depth), np.arange(len(n_seq))]
        n_tok, fit = ends, True
        if head.align > 1:
            places, lengths = lengths[:-1], np.where(
                real[:-1], records["seq_tok"].T, 0)
            n_tok = lengths.sum(0)
            fit = (places == -(-lengths // head.align) * head.align).all(0)
        right = ((records["magic"] == RECORD_MAGIC) &
                 (records["flags"] == 0) & (records["index"] == indices) &
                 (n_seq >= 1) & (n_seq <= head.depth) & (cu[0] == 0) &
                 (n_tok == records["n_tok"]) & (ends <= head.capacity) & fit &
                 (lengths.max(0) == records["max_seqlen"]) &
                 np.where(real, cu[1:] > cu[:-1],
                          cu[1:] == head.capacity).all(0))
        size = head.dtype.itemsize
        if self.verify:
            rest = rows.view([("a", "u8"), ("b", "V%d" % (size - 8))])["b"]
            right &= records["checksum"] == np.fromiter(
                map(xxh3_64_intdigest, rest.tolist()), np.uint64, len(rows))
        index = int(indices[right.argmin()]) if len(rows) else 0
        need(right.all(), self.first + index * size,
             "pack %d is damaged or out of place" % index)

    def count(self, rows: np.ndarray) -> None:
        records = rows.view(self.head.dtype)
        self.sequences += int(records["n_seq"].sum())
        self.tokens += int(records["n_tok"].sum())
        sums = records["checksum"].tobytes() if self.verify else b""
        digest = self.digest
        for checksum, in struct.iter_unpack("8s", sums):
            digest = xxh3_64_intdigest(checksum, digest)
        self.digest = digest

    def read_end(self, row: bytes, packs: int) -> None:
        at = self.first + packs * len(row)
        sums, magic, flags, index = struct.unpack_from("<Q2IQ", row)
        numbers = struct.unpack_from("<4Q", row, 64)
        whole = not self.verify or xxh3_64_intdigest(row[8:]) == sums
        need(whole and magic == RECORD_MAGIC and flags == 1 and
             packs == index == numbers[0], at, "END is damaged")
        need(all(said in (None, found) for said, found in
                 zip(self.head[7:10], numbers)), at, "END is not the header's")
        self.end = numbers[1:]

    def compare(self) -> None:
        """Raises PackError if END was written for other records."""
        need((self.sequences, self.tokens) == self.end[:2] and
             (not self.verify or self.digest == self.end[2]), self.first,
             "the packs from here on are not those of END")


def first_own(number: int, rank: int, ranks: int, start: int) -> int:
    """How many records from `number` on pass until one is the rank's."""
    lowest = max(number, start)
    return lowest + (rank - lowest) % ranks - number


def check_seed(shuffle: Optional[int]) -> None:
    """Raises what fits if it is neither a seed nor None."""
    if isinstance(shuffle, bool) or not (shuffle is None or
                                         hasattr(shuffle, "__index__")):
        raise TypeError("shuffle is a seed, or None, not %r" % shuffle)
    if shuffle is not None and not 0 <= shuffle < 2**64:
        raise ValueError("the seed is %d, not from 0 to 2^64 - 1" % shuffle)


def mix(state: np.ndarray) -> np.ndarray:
    """What SplitMix64 gives next, of each state."""
    z = state + np.uint64(0x9e3779b97f4a7c15)
    z = (z ^ z >> np.uint64(30)) * np.uint64(0xbf58476d1ce4e5b9)
    z = (z ^ z >> np.uint64(27)) * np.uint64(0x94d049bb133111eb)
    return z ^ z >> np.uint64(31)


def shuffled(count: int, seed: int, epoch: int, first: int = 0,
             end: Optional[int] = None) -> np.ndarray:
    """The numbers below `count` in the order of an epoch, or those at the
    places from `first` to `end`.  It is the order of ps_shuffled in
    packstream(3): a Feistel network, applied until a number is below `count`.
    """
    half = max(3, (max(count - 1, 0).bit_length() + 1) // 2)
    key = mix(np.array([seed], np.uint64)) ^ np.uint64(epoch)
    keys = mix(key + np.uint64(0x9e3779b97f4a7c15) *
               np.arange(12, dtype=np.uint64))
    bits, rest = np.uint64(half), np.uint64(64 - half)
    numbers = np.arange(first, count if end is None else end, dtype=np.uint64)
    left = np.arange(len(numbers))      # places of those still to be permuted
    while len(left):
        now = numbers[left]
        a, b = now >> bits, now & np.uint64(2**half - 1)
        for k in keys:
            a, b = b, a ^ mix(k ^ b) >> rest
        numbers[left] = now = a << bits | b
        left = left[now >= count]
    return numbers.astype(np.int64)


def difference(head: Header, first: Header) -> str:
    """What records of one header have that those of the other have not."""
    for name, here, there in zip(head._fields[:7], head, first):
        if here == there:
            continue
        if name == "special":
            ids = zip(SPECIALS, here, there)
            name, here, there = next(i for i in ids if i[1] != i[2])
            name += " id"
        elif name == "dtype":
            fields = [["%s %s at byte %d" % (field, *where[:2])
                       for field, where in dtype.fields.items()] +
                      ["end at byte %d" % dtype.itemsize]
                      for dtype in (here, there)]
            here, there = next((p for p in zip(*fields) if p[0] != p[1]),
                               (here, there))
            name = "field"
        return "%s %s, not %s" % (name, here, there)
    return ""


class Packs:
    """What a file and a pipe have in common; open_packs makes one."""

    def __init__(self, verify: bool):
        self.verifies = verify and xxh3_64_intdigest is not None
        self.header: Header

    def batches(self, size: int, rank: int = 0, ranks: int = 1,
                start: int = 0, order: Optional[np.ndarray] = None,
                drop_last: bool = False) -> Iterator[Batch]:
        """Batches of `size` records, the last perhaps of fewer.

        Records are numbered from 0 through all streams that are joined.
        Rank r of R gets those whose number is r modulo R, so one may get a
        record more than another, and a batch more.  With drop_last all
        batches are full and all ranks have equally many; records that do
        not fill one for each rank are not given.  Numbers below `start` are
        passed over.  With `order`, an array of numbers, the records of a
        file come as it says, and rank and start count its places:
        shuffled(len(source), seed, epoch) is one.
        """
        if size < 1 or not 0 <= rank < ranks or start < 0:
            raise ValueError("size, rank, ranks or start is out of range")
        rest = np.empty(0, "V%d" % self.header.dtype.itemsize)
        whole: List[np.ndarray] = []
        given = 0
        for rows, known in self.blocks(size, rank, ranks, start, order):
            if len(rest):
                lack = size - len(rest)
                whole.append(np.concatenate([rest, rows[:lack]]))
                rows = rows[lack:]
            whole += [rows[i:i + size] for i in range(0, len(rows), size)]
            rest = rows[:0]
            if whole and len(whole[-1]) < size:
                rest = whole.pop()
            ready = len(whole)
            if drop_last:       # not before every rank has as many
                ready = min(ready, max(0, known // (size * ranks) - given))
            yield from map(self.batch, whole[:ready])
            del whole[:ready]
            given += ready
        if len(rest) and not drop_last:
            yield self.batch(rest)

    def batch(self, rows: np.ndarray) -> Batch:
        return as_batch(rows, self.header)

    def blocks(self, size: int, rank: int, ranks: int, start: int,
               order: Optional[np.ndarray]
               ) -> Iterator[Tuple[np.ndarray, int]]:
        """The rank's records, checked, as rows of bytes; and how many of
        all ranks are known to come, up to there at least."""
        raise NotImplementedError

    def header_of(self, data: bytes, at: int) -> Header:
        head = read_header(data, at, self.verifies)
        other = difference(head, self.header) if at else ""
        need(not other, at, "a stream of another geometry than the first: " +
             other)
        return head


class PackFile(Packs):
    """A regular file.  Records are read when they are asked for, into memory
    that belongs to the batch.  The file is not mapped: if another program
    truncates it, reading raises PackError instead of SIGBUS."""

    def __init__(self, path: Union[str, os.PathLike], verify: bool = True):
        super().__init__(verify)
        self.path = path
        self.fd = os.open(path, os.O_RDONLY)
        weakref.finalize(self, os.close, self.fd)
        self.size = os.fstat(self.fd).st_size
        need(self.size, 0, EMPTY)
        self.header = self.header_of(
            self.read(0, min(HEADER_BYTES, self.size)), 0)
        self.streams = list(self.from_the_end())[::-1]
        for before, stream in zip(self.streams, self.streams[1:]):
            stream.number = before.number + before.packs

    def __reduce__(self) -> Any:
        return type(self), (self.path, self.verifies)

    def fill(self, buffer: np.ndarray, at: int) -> None:
        """Reads the bytes from `at` on."""
        while len(buffer):
            got = os.preadv(self.fd, [buffer], at)
            need(got, at, "the file ends at or before this byte, it had %d "
                 "bytes when opened" % self.size)
            buffer, at = buffer[got:], at + got

    def read(self, at: int, n: int) -> bytes:
        buffer = np.empty(n, np.uint8)
        self.fill(buffer, at)
        return buffer.tobytes()

    def from_the_end(self) -> Iterator[Stream]:
        """The streams, last first: END says how many packs are before it,
        and so where its header is."""
        size, behind = self.header.dtype.itemsize, self.size
        while behind:
            begin = max(behind - size, 0)
            row = self.read(begin, behind - begin)
            _, magic, flags, packs = struct.unpack_from("<Q2IQ",
                                                        row.ljust(24, b"\0"))
            at = behind - (packs + 1) * size - HEADER_BYTES
            need(magic == RECORD_MAGIC and flags == 1 and at >= 0, behind,
                 "cut, for no END is before this byte, or joined of streams "
                 "with records of other sizes")
            stream = Stream(self.header_of(self.read(at, HEADER_BYTES), at),
                            0, at, self.verifies)
            stream.read_end(row, packs)
            stream.packs = packs
            yield stream
            behind = at

    def __len__(self) -> int:
        return self.streams[-1].number + self.streams[-1].packs

    def blocks(self, size: int, rank: int, ranks: int, start: int,
               order: Optional[np.ndarray]
               ) -> Iterator[Tuple[np.ndarray, int]]:
        step = BLOCK_BYTES // self.header.dtype.itemsize // size * size or size
        known = (len(self) if order is None else len(order)) - start
        if order is not None:
            own = np.asarray(order)[first_own(0, rank, ranks, start)::ranks]
            for at in range(0, len(own), step):
                yield self.rows(own[at:at + step]), known
            return
        for stream in map(copy.copy, self.streams):
            skip = first_own(stream.number, rank, ranks, start)
            own = np.arange(skip, stream.packs, ranks)
            for at in range(0, len(own), step):
                rows = self.load(stream, own[at:at + step])
                if len(own) == stream.packs:
                    stream.count(rows)
                yield rows, known
            if len(own) == stream.packs:
                stream.compare()

    def load(self, stream: Stream, indices: np.ndarray) -> np.ndarray:
        """The records with these indices in a stream, checked.  Adjacent ones
        are read by one call."""
        size = stream.row.itemsize
        data = np.empty(len(indices) * size, np.uint8)
        ends = np.flatnonzero(np.diff(indices, prepend=-2, append=-2) != 1)
        for begin, end in zip(ends.tolist(), ends[1:].tolist()):
            self.fill(data[begin * size:end * size],
                      stream.first + int(indices[begin]) * size)
        rows = data.view(stream.row)
        stream.check(rows, indices)
        return rows

    def rows(self, numbers: np.ndarray) -> np.ndarray:
        """The records of these numbers, checked."""
        numbers = np.asarray(numbers, np.int64)
        if ((numbers < 0) | (numbers >= len(self))).any():
            raise IndexError("no record has such a number")
        rows = np.empty(len(numbers), "V%d" % self.header.dtype.itemsize)
        for stream in self.streams:
            indices = numbers - stream.number
            here = (indices >= 0) & (indices < stream.packs)
            if here.all():
                return self.load(stream, indices)
            if here.any():
                rows[here] = self.load(stream, indices[here])
        return rows

    def take(self, numbers: np.ndarray) -> Batch:
        """A batch of the records of these numbers, in this order."""
        return self.batch(self.rows(numbers))


class PackPipe(Packs):
    """Anything with readinto, read once; a batch is given out as soon as it
    is there.  What packstream --resume-from=N wrote needs a start of N."""

    def __init__(self, stream: BinaryIO, verify: bool = True):
        super().__init__(verify)
        self.stream = stream
        self.readinto = getattr(stream, "readinto1", stream.readinto)
        self.at, self.kept = 0, np.empty(0, np.uint8)
        self.header = self.header_of(self.some(HEADER_BYTES, 1).tobytes(), 0)

    def read_some(self, buffer: memoryview) -> int:
        """Reads what is available, one byte at least; 0 at the end."""
        got = self.readinto(buffer)
        while got is None:      # non-blocking, and nothing to read yet
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

    def some(self, unit: int, most: int) -> np.ndarray:
        """One to `most` units of bytes, whatever is there once one is; less
        than one where the input ends."""
        have = len(self.kept)
        buffer = np.empty(max(unit * most, have), np.uint8)
        buffer[:have] = self.kept
        while have < unit:
            got = self.read_some(memoryview(buffer)[have:])
            if not got:
                break
            have += got
        whole = min(have // unit, most) * unit or have
        self.kept = buffer[whole:have]
        self.at += whole
        return buffer[:whole]

    def blocks(self, size: int, rank: int, ranks: int, start: int,
               order: Optional[np.ndarray]
               ) -> Iterator[Tuple[np.ndarray, int]]:
        if order is not None or self.at != HEADER_BYTES:
            raise ValueError("a pipe has one order, and is read once")
        head, number = self.header, 0
        while True:
            stream = Stream(head, number, self.at - HEADER_BYTES,
                            self.verifies)
            for index, rows in self.records(stream, start):
                number = stream.number + index
                own = first_own(number, rank, ranks, start)
                number += len(rows)
                yield rows[own::ranks], number - start
            data = self.some(HEADER_BYTES, 1).tobytes()
            if not data:
                return
            head = self.header_of(data, self.at - len(data))

    def records(self, stream: Stream, start: int
                ) -> Iterator[Tuple[int, np.ndarray]]:
        """The rows of a stream, checked, with the index of the first."""
        size, index = self.header.dtype.itemsize, -1
        while True:
            data = self.some(size, max(1, BLOCK_BYTES // size))
            need(len(data) and len(data) % size == 0, self.at,
                 "cut, for no END is before this byte")
            rows = data.view(stream.row)
            records = rows.view(self.header.dtype)
            if index < 0:
                index = missing = int(records["index"][0])
                need(index <= max(0, start - stream.number), stream.first,
                     "it begins with pack %d" % index)
                stream.first -= index * size
            n = int(np.append(records["flags"] & 1, 1).argmax())
            stream.check(rows[:n], np.arange(index, index + n))
            stream.count(rows[:n])
            yield index, rows[:n]
            index += n
            if n < len(rows):
                self.kept = np.append(data[(n + 1) * size:], self.kept)
                self.at -= len(data) - (n + 1) * size
                stream.read_end(rows[n].tobytes(), index)
                if not missing:
                    stream.compare()
                return


def open_packs(source: Union[str, os.PathLike, BinaryIO],
               verify: bool = True) -> Packs:
    """Of a path, or of a stream of bytes such as sys.stdin.buffer; a path
    that is no regular file is read as a stream."""
    if hasattr(source, "readinto"):
        return PackPipe(source, verify)
    if stat.S_ISREG(os.stat(source).st_mode):
        return PackFile(source, verify)
    return PackPipe(open(source, "rb", buffering=0), verify)
