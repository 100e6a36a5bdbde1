"""packformat.py - token records and pack streams for packstream-checks.py.

Written from packstream(5) with the standard library; only the hash comes
from the library that defines it.  A sequence is a list of bytes objects, the
`lanes`: its tokens, then one for every channel in table order.  Per-token
lanes hold an element for each token, per-sequence lanes one, lists any number.

SPDX-License-Identifier: MIT
"""

import collections
import ctypes
import functools
import struct
import sys
import types

FRAMED, PACKS = b"\x89TOK\r\n\x1a\n", b"\x89PKS\r\n\x1a\n"
TRAILER = b"\x89PKE\r\n\x1a\n"
TYPES = {"u8": (1, 1), "u16": (2, 2), "u32": (3, 4), "u64": (4, 8),
         "i32": (5, 4), "i64": (6, 8), "f32": (7, 4), "f64": (8, 8)}
CODES = {"u8": "B", "u16": "H", "u32": "I", "u64": "Q", "i32": "i",
         "i64": "q", "f32": "f", "f64": "d"}
NUMPY = {"u8": "|u1", "u16": "<u2", "u32": "<u4", "u64": "<u8", "i32": "<i4",
         "i64": "<i8", "f32": "<f4", "f64": "<f8"}
PER_TOKEN, PER_SEQUENCE, LIST = 1, 2, 3
NO_ID, UNKNOWN = 0xffffffff, 2**64 - 1

xxhash = ctypes.CDLL("libxxhash.so.0")
xxhash.XXH3_64bits_withSeed.restype = ctypes.c_uint64
xxhash.XXH3_64bits_withSeed.argtypes = [ctypes.c_char_p, ctypes.c_size_t,
                                        ctypes.c_uint64]


def hash_of(data, seed=0):
    data = bytes(data)
    return xxhash.XXH3_64bits_withSeed(data, len(data), seed)


def offer_xxhash():
    """`import xxhash` works, also where the module is not installed."""
    try:
        import xxhash as _
    except ImportError:
        module = types.ModuleType("xxhash")
        module.xxh3_64_intdigest = hash_of
        sys.modules["xxhash"] = module


def element(name):
    """The number, bytes and values of a type, such as u8 or f32[80]."""
    name, _, count = name.partition("[")
    number, size = TYPES[name]
    return number, size, int(count[:-1] or 0) if count else 0


def size_of(name):
    _, size, count = element(name)
    return size * (count or 1)


class Schema:
    """What sequences are made of; `channels` are (name, type, kind), where a
    vector has a type such as f32[80]."""

    def __init__(self, width=2, framed=False, channels=(), vocab=0,
                 special=(NO_ID,) * 6, labels=0):
        self.width, self.framed, self.vocab = width, framed, vocab
        self.channels, self.special = list(channels), special
        self.labels = labels

    def lanes(self):
        """The (kind, bytes of an element) of each lane."""
        return [(PER_TOKEN, self.width)] + [
            (kind, size_of(name)) for _, name, kind in self.channels]

    def order(self):
        """The lanes as they lie in a record: those of tokens first, lists
        last."""
        lanes = list(enumerate(self.lanes()))
        return [i for wanted in (PER_TOKEN, PER_SEQUENCE, LIST)
                for i, lane in lanes if lane[0] == wanted]

    def length(self, sequence):
        return len(sequence[0]) // self.width

    def cut(self, sequence, first, end):
        """The piece of a sequence between two of its tokens."""
        return [lane[size * first:size * end] if kind == PER_TOKEN else lane
                for lane, (kind, size) in zip(sequence, self.lanes())]

    def header(self):
        data = FRAMED + struct.pack(
            "<IHHIIQQBBHI", 0x01020304, 1, 0, 136 + 64 * len(self.channels),
            len(self.channels), 0, 0, self.width, self.labels, 0, self.vocab)
        data += struct.pack("<6I", *self.special) + bytes(32) + bytes(24)
        for name, type_name, kind in self.channels:
            number, size, count = element(type_name)
            data += struct.pack("<24s3B5xI28x", name.encode(), number, kind,
                                size, count)
        return seal(data + bytes(8))

    def record(self, sequence):
        lanes, rest = b"", b""
        for kind in PER_TOKEN, PER_SEQUENCE:
            for lane, (its, size) in zip(sequence, self.lanes()):
                if kind == PER_SEQUENCE and its == LIST:
                    lanes += struct.pack("<I", len(lane) // size)
                    rest += lane
                elif its == kind:
                    lanes += lane
        return struct.pack("<I", self.length(sequence)) + lanes + rest

    def stream(self, sequences):
        records = list(map(self.record, sequences))
        if not self.framed:
            return b"".join(records)
        tokens = sum(map(self.length, sequences))
        head = self.header()
        return (head + b"".join(records) + lengths(head, records) +
                end(len(sequences), tokens, records))


def lengths(header, records, entries=None):
    """LENGTHS of framed token records, including flush records; or with other
    entries."""
    counts = {}
    for record in records:
        count, = struct.unpack_from("<I", record)
        counts[count] = counts.get(count, 0) + 1
    counts.pop(0, None)
    if entries is None:
        entries = sorted(counts.items())
    data = struct.pack("<III", 0, 3, len(entries))
    for entry in entries:
        data += struct.pack("<IQ", *entry)
    data += struct.pack("<Q", len(header) + sum(map(len, records)))
    return data + struct.pack("<QQ", hash_of(data), len(data) + 16)


def end(sequences, tokens, records):
    """END of framed token records, flush records among them."""
    digest = 0
    for record in records:
        link = record[:4] + struct.pack("<Q", hash_of(record[4:]))
        digest = hash_of(link, digest)
    return struct.pack("<IIQQQ", 0, 1, sequences, tokens, digest)


def seal(header):
    """A header of framed token records with the checksum that it needs."""
    return bytes(header[:-8]) + struct.pack("<Q", hash_of(header[:-8]))


def read_framed(data, has_lengths=True):
    """Decodes and checks framed token records: a schema, the sequences."""
    assert data[:8] == FRAMED
    size, n_channels = struct.unpack_from("<II", data, 16)
    assert seal(data[:size]) == data[:size]
    width, labels, _, vocab, *special = struct.unpack_from("<BBHI6I", data,
                                                           40)
    names = {number: name for name, (number, _) in TYPES.items()}
    schema = Schema(width, True, (), vocab, tuple(special), labels)
    for at in range(128, 128 + 64 * n_channels, 64):
        name, number, kind, _, count = struct.unpack_from("<24s3B5xI", data,
                                                          at)
        schema.channels.append((name.rstrip(b"\0").decode(),
                                names[number] + "[%d]" % count * (count > 0),
                                kind))
    sequences, records, at = [], [], size
    while data[at:at + 4] != bytes(4):
        start = at
        sequence, at = read_record(schema, data, at)
        sequences.append(sequence)
        records.append(data[start:at])
    tokens = sum(map(schema.length, sequences))
    last = lengths(data[:size], records) if has_lengths else b""
    assert data[at:] == last + end(len(sequences), tokens, records)
    return schema, sequences


def read_record(schema, data, at):
    count, = struct.unpack_from("<I", data, at)
    lanes = schema.lanes()
    sequence = [b""] * len(lanes)
    counts = [count if kind == PER_TOKEN else 1 for kind, _ in lanes]
    at += 4
    for wanted in PER_TOKEN, PER_SEQUENCE, LIST:
        for i, (kind, size) in enumerate(lanes):
            if wanted == PER_SEQUENCE and kind == LIST:
                counts[i], = struct.unpack_from("<I", data, at)
                at += 4
            elif kind == wanted:
                sequence[i] = data[at:at + size * counts[i]]
                at += size * counts[i]
    assert at <= len(data)
    return sequence, at


class Piece:
    """A sequence in a pack, or a piece of one."""

    def __init__(self, number, pack, offset, length, lanes):
        self.id, self.pack, self.lanes = number, pack, lanes
        self.offset, self.length = offset, length


# The fields of each part of a stream: offset and type (see struct).
HEADER = {"endian": (8, "I"), "major": (12, "H"), "minor": (14, "H"),
          "header_bytes": (16, "I"), "row_bytes": (20, "I"),
          "n_packs": (24, "Q"), "n_sequences": (32, "Q"),
          "n_tokens": (40, "Q"), "capacity": (48, "I"), "depth": (52, "I"),
          "window": (56, "I"), "vocab_size": (60, "I"),
          "max_seqlen": (64, "Q"), "min_fill": (72, "Q"),
          "incompat": (80, "Q"), "compat": (88, "Q"),
          "token_bytes": (120, "B"), "labels": (121, "B"),
          "group": (122, "B"), "seed": (128, "Q"),
          "options_digest": (168, "Q"), "pad_id": (176, "I"),
          "align": (180, "I"), "seq_bytes": (184, "I"),
          "block_packs": (188, "I"), "block_bytes": (192, "Q"),
          "n_fields": (200, "I")}
BLOCK = {"magic": (0, "I"), "kind": (4, "I"), "n_packs": (8, "I"),
         "n_seqs": (12, "I"), "first": (16, "Q"), "bytes": (24, "Q"),
         "zero_32": (32, "Q"), "zero_40": (40, "Q"), "body": (48, "Q"),
         "checksum": (56, "Q")}
HEAD = {"checksum": (0, "Q"), "first_seq": (8, "I"), "n_seq": (12, "I"),
        "n_tok": (16, "I"), "max_seqlen": (20, "I"), "sum_len_sq": (24, "Q"),
        "watermark": (32, "Q")}
TOTALS = {name: (64 + 8 * i, "Q") for i, name in enumerate(
    """packs sequences tokens digest input_sequences input_tokens
    rejected_sequences rejected_tokens truncated_sequences truncated_tokens
    split_sequences extra_pieces max_displacement""".split())}
TOTALS.update(max_seqlen=(168, "I"), max_depth=(172, "I"), min_fill=(176, "I"))
Block = collections.namedtuple("Block", [*BLOCK, "at"])
Head = collections.namedtuple("Head", HEAD)
OF_PACKS, END, INDEX = range(3)
MAGIC, INDEXED = 0x42534b50, 4096


def up(n, unit):
    """The next multiple."""
    return -(-n // unit) * unit


class Field:
    """A column of the rows, or of the sequence rows: `places` elements.  The
    key of a list's start and length is its name and "[]"."""

    def __init__(self, name, kind_of, kind, fill=0, source=0, places=1):
        self.name, self.type, self.kind = name.rstrip("[]"), kind_of, kind
        self.fill, self.source, self.key = fill, source, name
        self.number, self.width, self.count = element(kind_of)
        self.size = self.width * (self.count or 1)
        self.places, self.offset = places, 0

    in_row = property(lambda self: self.kind != PER_SEQUENCE)

    def entry(self):
        return struct.pack("<24s4B2IIQ16x", self.name.encode(), self.number,
                           self.kind, self.width, self.source, self.offset,
                           self.count or 1, 0, self.fill)

    def unused(self, n):
        """So many unused elements."""
        return struct.pack("<Q", self.fill)[:self.width] * (
            n * (self.count or 1))

    def format(self):
        name = NUMPY[self.type.partition("[")[0]]
        shape = [self.places] * self.in_row + [self.count] * (self.count > 0)
        return "('%s',(%s%s))," % (
            name, ",".join(map(str, shape)), "," * (len(shape) == 1)
            ) if shape else "'%s'," % name


class Layout:
    """The fields of the rows of a stream, their description for numpy, and the
    resulting sizes."""

    def __init__(self, schema, fills, capacity, pad_id, split, limits=()):
        self.capacity = capacity
        places = {LIST: dict(limits), PER_TOKEN: collections.defaultdict(
            lambda: capacity), PER_SEQUENCE: collections.defaultdict(
                lambda: 1)}
        own = [("seq_id", "u64"), ("seq_start", "i32"), ("seq_tok", "i32")]
        own += [("piece_off", "u32"), ("full_len", "u32")] * split
        channels = [Field(*channel, fill, i, places[channel[2]][i])
                    for i, (channel, fill) in
                    enumerate(zip(schema.channels, fills), 1)]
        fields = [Field("tokens", {2: "u16", 4: "u32"}[schema.width],
                        PER_TOKEN, pad_id, 0, capacity)]
        fields += [f for f in channels if f.kind == PER_TOKEN]
        fields += [f for f in channels if f.kind == LIST]
        fields += [Field(name, kind_of, PER_SEQUENCE) for name, kind_of in own]
        fields += [f if f.kind == PER_SEQUENCE else
                   Field(f.name + "[]", "u32[2]", PER_SEQUENCE, 0, f.source)
                   for f in channels if f.kind != PER_TOKEN]
        ends = {True: 0, False: 0}
        for field in fields:
            field.offset = up(ends[field.in_row], field.width)
            ends[field.in_row] = field.offset + field.size * field.places
        self.row_bytes, self.seq_bytes = up(ends[True], 8), up(ends[False], 8)
        self.fields = {field.key: field for field in fields}

    def dtype(self):
        text = ""
        for in_row, size in (True, self.row_bytes), (False, self.seq_bytes):
            fields = [f for f in self.fields.values() if f.in_row == in_row]
            text += "{'names':[%s],'formats':[%s],'offsets':[%s]," \
                "'itemsize':%d}\n" % (
                    "".join("'%s'," % f.name for f in fields),
                    "".join(f.format() for f in fields),
                    "".join("%d," % f.offset for f in fields), size)
        return text.encode()

    def block_bytes(self, packs, most):
        """Of a block of so many packs of at most so many sequences."""
        sequences = min(packs * most * self.seq_bytes,
                        max(1 << 20, most * self.seq_bytes))
        return up(64 + packs * (self.row_bytes + 40) + sequences, 64)


class Packs:
    """The pack stream at byte `at`, with every rule checked: the header's
    values, packs as lists of pieces, END, and the end's offset.  The schema
    defaults to the header's."""

    ZEROS = (123, 124), (204, 208), (240, 256)

    def __init__(self, data, schema=None, at=0):
        self.data, self.begin = data, at
        self.header = data[at:at + 4096]
        assert self.header[:8] == PACKS and len(self.header) == 4096
        for name, (place, code) in HEADER.items():
            setattr(self, name, struct.unpack_from("<" + code, self.header,
                                                   place)[0])
        self.digest, = struct.unpack_from("<Q", self.header, 4088)
        assert self.digest == hash_of(self.header[:4088])
        self.share = self.compat >> 1 & 1
        self.schema = self.read_fields()
        assert schema is None or schema.lanes() == self.schema.lanes()
        self.schema = schema or self.schema
        self.check_header()
        self.packs, self.heads, self.blocks = [], [], []
        self.index, self.parts = [], []
        at = self.read_blocks(at + 4096)
        self.end = self.read_end(at)
        self.stop = at + self.blocks[-1].bytes

    # -- The header

    def read_fields(self):
        """Reads the channels; all fields follow from them."""
        assert self.token_bytes in (2, 4) and 4 <= self.n_fields <= 28
        types = {number: name for name, (number, _) in TYPES.items()}
        found, names = {}, []
        for at in range(256, 256 + 64 * self.n_fields, 64):
            name, number, kind, _, source, count, fill = struct.unpack_from(
                "<24s4B4xI4xQ", self.header, at)
            names.append(name.rstrip(b"\0").decode())
            if source and found.get(source, [(0, 0, 0)])[0][2] != LIST:
                found[source] = (names[-1], types[number] + "[%d]" % count * (
                    count > 1), kind), fill
        limits = zip(self.header[124:128],
                     struct.unpack_from("<4Q", self.header, 208))
        assert sorted(found) == list(range(1, len(found) + 1))
        found = [found[i] for i in sorted(found)]
        self.split = "piece_off" in names
        schema = Schema(self.token_bytes, bool(self.compat & 1),
                        [channel for channel, _ in found], self.vocab_size,
                        struct.unpack_from("<6I", self.header, 96),
                        self.labels)
        self.layout = Layout(schema, [fill for _, fill in found],
                             self.capacity, self.pad_id, self.split, limits)
        self.fields = self.layout.fields
        table = b"".join(map(Field.entry, self.fields.values()))
        assert self.header[256:2048] == table.ljust(1792, b"\0")
        assert self.header[2048:4088] == self.layout.dtype().ljust(2040, b"\0")
        assert (self.row_bytes, self.seq_bytes) == (
            self.layout.row_bytes, self.layout.seq_bytes)
        return schema

    def check_header(self):
        assert (self.endian, self.major, self.header_bytes) == (
            0x01020304, 2, 4096)
        assert self.incompat == (self.align > 1)
        self.align = self.align or 1
        assert 1 <= self.capacity <= 1 << 24 and 1 <= self.window <= 1 << 24
        assert self.capacity % self.align == 0 and self.labels <= 2
        assert self.group == 0 or self.schema.channels[
            self.group - 1][2] == PER_SEQUENCE
        self.budgets = [
            (by, limit) for by, limit in zip(
                self.header[124:128],
                struct.unpack_from("<4Q", self.header, 208)) if by or limit]
        assert all(by and 0 < limit <= 1 << 43 for by, limit in self.budgets)
        for i, special in enumerate(self.schema.special):
            assert special == NO_ID or special < 256 ** self.token_bytes and (
                i == 0 or not self.vocab_size or special < self.vocab_size)
        for first, stop in self.ZEROS:
            assert not any(self.header[first:stop])
        most = self.capacity // self.align
        assert self.depth <= min(most, 1 << 20)
        self.most = min(self.depth or most, 1 << 20)
        n = self.block_packs
        assert n in [1 << i for i in range(17)]
        assert self.row_bytes * n <= 1 << 28
        assert self.block_bytes == self.layout.block_bytes(n, self.most)

    # -- Blocks

    def read_blocks(self, at):
        """All blocks up to END; returns its offset."""
        while True:
            block = self.read_block(at)
            self.blocks.append(block)
            if block.kind == END:
                return at
            if block.kind == INDEX:
                self.read_index(block)
            else:
                assert len(self.index) < INDEXED, "an INDEX block is missing"
                self.read_packs(block)
            at += block.bytes

    def read_block(self, at):
        raw = self.data[at:at + 64]
        assert len(raw) == 64, "the stream is cut"
        block = Block(*struct.unpack("<4I6Q", raw), at)
        assert block.checksum == hash_of(raw[:56]), at
        assert block.magic == MAGIC and block.kind <= INDEX
        assert block.zero_32 == block.zero_40 == 0
        assert block.first == len(self.packs)
        assert block.bytes % 64 == 0 and at + block.bytes <= len(self.data)
        if block.kind == OF_PACKS:
            assert block.body == 0 and block.bytes <= self.block_bytes
        else:
            assert block.n_packs == block.n_seqs == 0
            assert block.body == hash_of(self.data[at + 64:at + block.bytes])
        return block

    def read_packs(self, block):
        assert 1 <= block.n_packs <= self.block_packs
        assert block.n_packs == 1 or \
            block.n_seqs * self.seq_bytes <= 1 << 20
        rows = block.at + 64
        heads = rows + block.n_packs * self.row_bytes
        sequences = heads + block.n_packs * 40
        stop = sequences + block.n_seqs * self.seq_bytes
        assert block.bytes == up(stop - block.at, 64)
        assert not any(self.data[stop:block.at + block.bytes])
        done = 0
        for i in range(block.n_packs):
            head = self.data[heads + 40 * i:heads + 40 * (i + 1)]
            self.heads.append(Head(*struct.unpack("<QIIIIQQ", head)))
            n = self.heads[-1].n_seq
            assert self.heads[-1].first_seq == done
            assert 1 <= n <= self.most and done + n <= block.n_seqs
            self.packs.append(self.read_pack(
                head, self.data[rows + i * self.row_bytes:
                                rows + (i + 1) * self.row_bytes],
                self.data[sequences + done * self.seq_bytes:
                          sequences + (done + n) * self.seq_bytes]))
            done += n
        assert done == block.n_seqs
        self.index.append((block.at - self.begin, block.first,
                           self.heads[-1].watermark))

    def read_pack(self, raw, row, sequences):
        head, index = self.heads[-1], len(self.packs)
        assert head.checksum == hash_of(struct.pack(
            "<3Q", index, hash_of(row), hash_of(sequences)) + raw[12:]), index
        self.digest = hash_of(raw[:8], self.digest)
        pieces, starts, at = [], [], 0
        for i in range(head.n_seq):
            get = functools.partial(self.value, sequences[i * self.seq_bytes:
                                                          ][:self.seq_bytes])
            begin, n = get("seq_start"), get("seq_tok")
            assert begin == at and n >= 1, (index, i)
            starts.append((begin, n))
            at = up(begin + n, self.align)
            assert at <= self.capacity, (index, i)
            offset, length = (get("piece_off"), get("full_len")) \
                if self.split else (0, n)
            assert offset + n <= length, (index, i)
            pieces.append(Piece(get("seq_id"), index, offset, length,
                                self.lanes(row, sequences, i, begin, n)))
        for name in self.lists():
            at = 0
            for i in range(head.n_seq):
                start, n = self.list(sequences, i, name)
                assert start == at, (index, i, name)
                at += n
            assert at <= self.fields[name].places, (index, name)
        lengths = [n for _, n in starts]
        assert (head.n_tok, head.max_seqlen, head.sum_len_sq) == (
            sum(lengths), max(lengths), sum(n * n for n in lengths)), index
        size = self.seq_bytes
        for by, limit in self.budgets:
            name = "" if by == 255 else self.schema.channels[by - 1][0]
            assert limit >= (head.sum_len_sq if by == 255 else sum(
                self.list(sequences, i, name)[1] if name in self.lists() else
                self.value(sequences[i * size:(i + 1) * size], name)
                for i in range(head.n_seq))), index
        self.check_unused(row, sequences, starts)
        return pieces

    def value(self, sequence, name):
        """A number of a sequence row."""
        field = self.fields[name]
        return struct.unpack_from("<" + CODES[field.type], sequence,
                                  field.offset)[0]

    def lists(self):
        return [name for name, _, kind in self.schema.channels if kind == LIST]

    def list(self, sequences, i, name):
        """Start and length of a list of sequence `i`."""
        return struct.unpack_from("<II", sequences, i * self.seq_bytes +
                                  self.fields[name + "[]"].offset)

    def lanes(self, row, sequences, i, begin, n):
        lanes = []
        for name in ["tokens"] + [name for name, _, _ in
                                  self.schema.channels]:
            field = self.fields[name]
            if field.in_row:
                first, many = (begin, n) if field.kind == PER_TOKEN else \
                    self.list(sequences, i, name)
                at = field.offset + field.size * first
                lanes.append(row[at:at + field.size * many])
            else:
                at = i * self.seq_bytes + field.offset
                lanes.append(sequences[at:at + field.size])
        return lanes

    def check_unused(self, row, sequences, starts):
        """Gaps and the tail have the fill, bytes of no field are zero."""
        gaps, at = [], 0
        for begin, n in starts + [(self.capacity, 0)]:
            gaps.append((at, begin))
            at = begin + n
        rest, extra = bytearray(row), bytearray(sequences)
        for field in self.fields.values():
            at, size = field.offset, field.size
            if field.in_row:
                spaces = gaps if field.kind == PER_TOKEN else [
                    (sum(self.list(sequences, len(starts) - 1, field.name)),
                     field.places)]
                for first, stop in spaces:
                    assert row[at + first * size:at + stop * size] == \
                        field.unused(stop - first), field.name
                rest[at:at + size * field.places] = bytes(
                    size * field.places)
            else:
                for i in range(0, len(extra), self.seq_bytes):
                    extra[i + at:i + at + size] = bytes(size)
        assert not any(rest) and not any(extra)

    # -- The index and END

    def read_index(self, block):
        assert len(self.index) == INDEXED and block.bytes == 64 + 24 * INDEXED
        assert self.data[block.at + 64:block.at + block.bytes] == \
            self.entries(self.index)
        self.parts.append((block.at - self.begin, self.index[0][1],
                           self.index[-1][2]))
        self.index = []

    def entries(self, index):
        return b"".join(struct.pack("<3Q", *entry) for entry in index)

    def read_end(self, at):
        block = self.blocks[-1]
        raw = self.data[at:at + block.bytes]
        end = {name: struct.unpack_from("<" + code, raw, place)[0]
               for name, (place, code) in TOTALS.items()}
        index = self.entries(self.parts + self.index)
        assert struct.unpack_from("<3I", raw, 180) == (
            0, len(self.parts), len(self.index))
        assert len(self.index) < INDEXED
        size = up(192 + len(index) + 24, 64)
        assert raw[192:] == index.ljust(size - 216, b"\0") + struct.pack(
            "<QQ8s", size, at + size - self.begin, TRAILER)
        assert end["digest"] == self.digest
        self.check_end(end)
        return end

    def check_end(self, end):
        heads, pieces = self.heads, self.pieces()
        newest = worst = mark = 0
        for head, pack in zip(heads, self.packs):
            ids = [piece.id for piece in pack]
            assert head.watermark >= mark <= min(ids)
            mark = head.watermark
            newest = max(newest, *ids)
            worst = max(worst, newest - min(ids))
        assert not heads or mark <= end["input_sequences"] > newest
        wanted = dict(
            packs=len(heads), sequences=len(pieces),
            tokens=sum(head.n_tok for head in heads),
            max_displacement=worst,
            max_seqlen=max((head.max_seqlen for head in heads), default=0),
            max_depth=max((head.n_seq for head in heads), default=0),
            min_fill=min((head.n_tok for head in heads), default=0))
        for name, value in wanted.items():
            assert end[name] == value, (name, end[name], value)
        assert not self.depth or self.depth >= end["max_depth"]
        assert end["input_sequences"] + end["extra_pieces"] == \
            end["sequences"] + end["rejected_sequences"]
        assert end["input_tokens"] == end["tokens"] + \
            end["rejected_tokens"] + end["truncated_tokens"]
        for name, value in ("n_packs", end["packs"]), (
                "n_sequences", end["sequences"]), (
                "n_tokens", end["tokens"]), (
                "max_seqlen", end["max_seqlen"]), (
                "min_fill", end["min_fill"]):
            assert getattr(self, name) in (UNKNOWN, value), name

    # -- Sequences

    def pieces(self):
        return [piece for pack in self.packs for piece in pack]

    def sequences(self):
        """{id: sequence}, pieces joined."""
        found = {}
        for piece in self.pieces():
            found.setdefault(piece.id, []).append(piece)
        return {number: self.join(pieces) for number, pieces in found.items()}

    def join(self, pieces):
        pieces.sort(key=lambda piece: piece.offset)
        at = 0
        for piece in pieces:
            assert piece.offset == at
            at += len(piece.lanes[0]) // self.schema.width
        assert {piece.length for piece in pieces} == {at}
        joined = []
        for i, (kind, _) in enumerate(self.schema.lanes()):
            parts = [piece.lanes[i] for piece in pieces]
            if kind != PER_TOKEN:
                assert len(set(parts)) == 1
                parts = parts[:1]
            joined.append(b"".join(parts))
        return joined


def streams(data, schema=None):
    """The pack streams of a file, one after the other."""
    at = 0
    while at < len(data):
        packs = Packs(data, schema, at)
        at = packs.stop
        yield packs
