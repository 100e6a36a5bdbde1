"""packformat.py - token records and pack streams for packstream-checks.py.

Written from packstream(5) with the standard library; only the hash comes
from the library that defines it.  A sequence is a list of bytes objects, a
`lane` each: its tokens, then a lane for every channel in table order.
Per-token lanes hold an element for each token, per-sequence lanes one.

SPDX-License-Identifier: MIT
"""

import ctypes
import struct
import sys
import types

FRAMED, PACKS = b"\x89TOK\r\n\x1a\n", b"\x89PKS\r\n\x1a\n"
TYPES = {"u8": (1, 1), "u16": (2, 2), "u32": (3, 4), "u64": (4, 8),
         "i32": (5, 4), "i64": (6, 8), "f32": (7, 4), "f64": (8, 8)}
PER_TOKEN, PER_SEQUENCE, PER_BOUNDARY = 1, 2, 3
NO_ID = 0xffffffff

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


class Schema:
    """What sequences are made of; `channels` are (name, type, kind)."""

    def __init__(self, width=2, framed=False, channels=(), vocab=0,
                 special=(NO_ID,) * 6, labels=0):
        self.width, self.framed, self.vocab = width, framed, vocab
        self.channels, self.special = list(channels), special
        self.labels = labels

    def lanes(self):
        """The (kind, bytes of an element) of each lane."""
        return [(PER_TOKEN, self.width)] + [
            (kind, TYPES[name][1]) for _, name, kind in self.channels]

    def order(self):
        """The lanes as they lie in a record: those of tokens first."""
        lanes = list(enumerate(self.lanes()))
        return ([i for i, lane in lanes if lane[0] == PER_TOKEN] +
                [i for i, lane in lanes if lane[0] == PER_SEQUENCE])

    def length(self, sequence):
        return len(sequence[0]) // self.width

    def cut(self, sequence, first, end):
        """The piece of a sequence between two of its tokens."""
        return [lane if kind == PER_SEQUENCE else lane[size * first:size * end]
                for lane, (kind, size) in zip(sequence, self.lanes())]

    def header(self):
        data = FRAMED + struct.pack(
            "<IHHIIQQBBHI", 0x01020304, 1, 0, 136 + 64 * len(self.channels),
            len(self.channels), 0, 0, self.width, self.labels, 0, self.vocab)
        data += struct.pack("<6I", *self.special) + bytes(32) + bytes(24)
        for name, type_name, kind in self.channels:
            number, size = TYPES[type_name]
            data += struct.pack("<24sBBB", name.encode(), number, kind, size)
            data += bytes(64 - 27)
        return seal(data + bytes(8))

    def record(self, sequence):
        lanes = b"".join(sequence[i] for i in self.order())
        return struct.pack("<I", self.length(sequence)) + lanes

    def stream(self, sequences):
        records = list(map(self.record, sequences))
        if not self.framed:
            return b"".join(records)
        tokens = sum(map(self.length, sequences))
        head = self.header()
        return (head + b"".join(records) + lengths(head, records) +
                end(len(sequences), tokens, records))


def lengths(header, records, entries=None):
    """LENGTHS of framed token records, flush records among them; or with
    other entries."""
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
        name, number, kind, _ = struct.unpack_from("<24sBBB", data, at)
        schema.channels.append((name.rstrip(b"\0").decode(), names[number],
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
    sequence = [b""] * len(schema.lanes())
    at += 4
    for i in schema.order():
        kind, size = schema.lanes()[i]
        size *= count if kind == PER_TOKEN else 1
        sequence[i] = data[at:at + size]
        at += size
    assert at <= len(data)
    return sequence, at


class Piece:
    """A sequence in a pack, or a piece of one."""

    def __init__(self, number, pack, offset, length, lanes):
        self.id, self.pack, self.lanes = number, pack, lanes
        self.offset, self.length = offset, length


class Packs:
    """A pack stream: the header's values, packs as lists of pieces, END."""

    HEADER = {"record_bytes": (20, "I"), "capacity": (48, "I"),
              "depth": (52, "I"), "window": (56, "I"), "vocab": (60, "I"),
              "pad_id": (176, "I"), "n_fields": (200, "I")}
    END = ["packs", "sequences", "tokens", "digest", "input_sequences",
           "input_tokens", "rejected_sequences", "rejected_tokens",
           "truncated_sequences", "truncated_tokens", "split_sequences",
           "extra_pieces", "max_displacement"]

    def __init__(self, data, schema):
        self.data, self.schema = data, schema
        assert data[:8] == PACKS
        for name, (at, code) in self.HEADER.items():
            setattr(self, name, struct.unpack_from("<" + code, data, at)[0])
        self.read_fields()
        self.packs = []
        self.digest, = struct.unpack_from("<Q", data, 4088)
        at = 4096
        while not struct.unpack_from("<I", data, at + 12)[0] & 1:
            self.packs.append(self.read_pack(at))
            at += self.record_bytes
        assert at + self.record_bytes == len(data)
        numbers = struct.unpack_from("<13Q3I", data, at + 64)
        self.end = dict(zip(self.END + ["max_seqlen", "max_depth",
                                        "min_fill"], numbers))
        assert self.digest == self.end["digest"]

    def read_fields(self):
        self.fields = {}
        for at in range(256, 256 + 64 * self.n_fields, 64):
            name = self.data[at:at + 24].rstrip(b"\0").decode()
            self.fields[name] = struct.unpack_from("<II", self.data, at + 28)

    def column(self, at, name, code):
        """The elements of a field of the record at `at`."""
        if name not in self.fields:
            return None
        offset, count = self.fields[name]
        return struct.unpack_from("<%d%s" % (count, code), self.data,
                                  at + offset)

    def read_pack(self, at):
        assert hash_of(self.data[at + 8:at + self.record_bytes]) == \
            struct.unpack_from("<Q", self.data, at)[0]
        self.digest = hash_of(self.data[at:at + 8], self.digest)
        n_seq, n_tok = struct.unpack_from("<II", self.data, at + 40)
        cu = self.column(at, "cu", "i")
        assert 1 <= n_seq <= self.depth and n_tok == cu[n_seq]
        assert n_tok <= self.capacity
        ids = self.column(at, "seq_id", "Q")
        offsets = self.column(at, "seq_off", "I")
        lengths = self.column(at, "seq_len", "I")
        pieces = []
        for i in range(n_seq):
            assert cu[i] < cu[i + 1]
            pieces.append(Piece(
                ids[i], len(self.packs), offsets[i] if offsets else 0,
                lengths[i] if lengths else cu[i + 1] - cu[i],
                self.piece_lanes(at, i, cu)))
        return pieces

    def piece_lanes(self, at, i, cu):
        lanes = []
        names = ["tokens"] + [name for name, _, _ in self.schema.channels]
        for name, (kind, size) in zip(names, self.schema.lanes()):
            first = at + self.fields[name][0]
            begin, end = (cu[i], cu[i + 1]) if kind == PER_TOKEN else (i,
                                                                       i + 1)
            lanes.append(self.data[first + size * begin:first + size * end])
        return lanes

    def is_whole(self, piece):
        return len(piece.lanes[0]) == piece.length * self.schema.width

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
        assert at == pieces[0].length
        joined = []
        for i, (kind, _) in enumerate(self.schema.lanes()):
            parts = [piece.lanes[i] for piece in pieces]
            if kind == PER_SEQUENCE:
                assert len(set(parts)) == 1
                parts = parts[:1]
            joined.append(b"".join(parts))
        return joined
