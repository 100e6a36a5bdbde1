"""packwrite.py - writes pack streams, sound ones and ones with one rule broken.

Written from packstream(5), on top of packformat.py.  A stream is made whole,
then a test may put other numbers into it; bytes() works out the checksums and
the digest last, so that nothing but the rule itself betrays what was done.

SPDX-License-Identifier: MIT
"""

import struct

from packformat import (PER_BOUNDARY, PER_SEQUENCE, PER_TOKEN, TYPES, Schema,
                        end, hash_of, lengths, seal)

CODES = {"u8": "B", "u16": "H", "u32": "I", "u64": "Q", "i32": "i",
         "i64": "q", "f32": "f", "f64": "d"}
NUMPY = {"u8": "|u1", "u16": "<u2", "u32": "<u4", "u64": "<u8", "i32": "<i4",
         "i64": "<i8", "f32": "<f4", "f64": "<f8"}
UNKNOWN = 2**64 - 1

# Where a header has what, and with which type.
HEADER = {"endian": (8, "I"), "major": (12, "H"), "minor": (14, "H"),
          "header_bytes": (16, "I"), "record_bytes": (20, "I"),
          "n_records": (24, "Q"), "n_sequences": (32, "Q"),
          "n_tokens": (40, "Q"), "capacity": (48, "I"), "depth": (52, "I"),
          "window": (56, "I"), "vocab_size": (60, "I"),
          "max_seqlen": (64, "Q"), "min_fill": (72, "Q"),
          "incompat": (80, "Q"), "compat": (88, "Q"), "special": (96, "I"),
          "token_bytes": (120, "B"), "labels": (121, "B"),
          "zero_122": (122, "B"), "seed": (128, "Q"),
          "options_digest": (168, "Q"), "pad_id": (176, "I"),
          "align": (180, "I"), "zero_184": (184, "B"),
          "n_fields": (200, "I"), "zero_204": (204, "B"), "dtype": (2048, "B")}
TOKEN_HEADER = {"endian": (8, "I"), "major": (12, "H"), "minor": (14, "H"),
                "header_bytes": (16, "I"), "n_channels": (20, "I"),
                "incompat": (24, "Q"), "token_bytes": (40, "B"),
                "labels": (41, "B"), "zero_42": (42, "B"),
                "vocab_size": (44, "I"), "special": (48, "I"),
                "zero_104": (104, "B")}
ENTRY = {"name": (0, "B"), "type": (24, "B"), "kind": (25, "B"),
         "elem_bytes": (26, "B"), "source": (27, "B"), "offset": (28, "I"),
         "count": (32, "I"), "zero_36": (36, "B"), "fill": (40, "Q"),
         "zero_48": (48, "B")}
HEAD = {"checksum": (0, "Q"), "magic": (8, "I"), "flags": (12, "I"),
        "index": (16, "Q"), "watermark": (24, "Q"), "sum_len_sq": (32, "Q"),
        "n_seq": (40, "I"), "n_tok": (44, "I"), "max_seqlen": (48, "I"),
        "zero_52": (52, "B")}
END = {name: (64 + 8 * i, "Q") for i, name in enumerate(
    """packs sequences tokens digest input_sequences input_tokens
    rejected_sequences rejected_tokens truncated_sequences truncated_tokens
    split_sequences extra_pieces max_displacement""".split())}
END.update(max_seqlen=(168, "I"), max_depth=(172, "I"), min_fill=(176, "I"),
           zero_180=(180, "B"))


def put(data, places, name, value, element=0):
    """Writes a number to a named place, or the element of one."""
    at, code = places[name]
    struct.pack_into("<" + code, data, at + element * struct.calcsize(code),
                     value)


def get(data, places, name):
    """The number at a named place."""
    at, code = places[name]
    return struct.unpack_from("<" + code, data, at)[0]


class Field:
    """An array of a record."""

    def __init__(self, name, kind_of, kind, count, fill, source=0):
        self.name, self.type, self.kind = name, kind_of, kind
        self.count, self.fill, self.source = count, fill, source
        self.size = TYPES[kind_of][1]
        self.offset = 0

    def entry(self):
        number, size = TYPES[self.type]
        return struct.pack("<24s4B2IIQ16x", self.name.encode(), number,
                           self.kind, size, self.source, self.offset,
                           self.count, 0, self.fill)


class PackStream:
    """Packs of (id, sequence, offset, length): whole sequences have offset 0,
    and pieces say how long their sequence is.  `fills` are those of the
    channels."""

    def __init__(self, schema, packs, capacity, depth, window, fills=(),
                 split=False, align=1, pad_id=0):
        self.schema, self.capacity, self.depth = schema, capacity, depth
        self.split, self.align, self.pad_id = split, align, pad_id
        self.window, self.fills, self.packs = window, fills, packs
        self.fields = self.lay_out()
        self.header = self.make_header()
        self.records = []
        self.totals = dict.fromkeys(END, 0)
        for pack in packs:
            self.records.append(self.make_record(pack, packs))
        self.end = self.make_end(packs)

    # -- The header

    def lay_out(self):
        capacity, depth = self.capacity, self.depth
        fields = [Field("cu", "i32", PER_BOUNDARY, depth + 2, capacity),
                  Field("seq_id", "u64", PER_SEQUENCE, depth, UNKNOWN)]
        if self.split:
            fields += [Field("seq_off", "u32", PER_SEQUENCE, depth, 0),
                       Field("seq_len", "u32", PER_SEQUENCE, depth, 0)]
        if self.align > 1:
            fields.append(Field("seq_tok", "i32", PER_SEQUENCE, depth, 0))
        own = [Field(name, kind_of, kind,
                     capacity if kind == PER_TOKEN else depth, fill, i + 1)
               for i, ((name, kind_of, kind), fill) in
               enumerate(zip(self.schema.channels, self.fills))]
        fields += [field for field in own if field.kind == PER_SEQUENCE]
        fields.append(Field("tokens", {2: "u16", 4: "u32"}[self.schema.width],
                            PER_TOKEN, capacity, self.pad_id))
        fields += [field for field in own if field.kind == PER_TOKEN]
        at = 64
        for field in fields:
            unit = 64 if field.name == "tokens" else 16
            field.offset = -(-at // unit) * unit
            at = field.offset + field.count * field.size
        self.record_bytes = max(256, -(-at // 64) * 64)
        return {field.name: field for field in fields}

    def dtype(self):
        members = [("checksum", "<u8", 0), ("magic", "<u4", 8),
                   ("flags", "<u4", 12), ("index", "<u8", 16),
                   ("watermark", "<u8", 24), ("sum_len_sq", "<u8", 32),
                   ("n_seq", "<u4", 40), ("n_tok", "<u4", 44),
                   ("max_seqlen", "<u4", 48)]
        names = [name for name, _, _ in members] + list(self.fields)
        formats = ["'%s'" % code for _, code, _ in members] + [
            "('%s',(%d,))" % (NUMPY[field.type], field.count)
            for field in self.fields.values()]
        offsets = [at for _, _, at in members] + [
            field.offset for field in self.fields.values()]
        return "{'names':[%s],'formats':[%s],'offsets':[%s],'itemsize':%d}" % (
            "".join("'%s'," % name for name in names),
            "".join("%s," % text for text in formats),
            "".join("%d," % at for at in offsets), self.record_bytes)

    def make_header(self):
        data = bytearray(4096)
        data[:8] = b"\x89PKS\r\n\x1a\n"
        numbers = dict(
            endian=0x01020304, major=1, header_bytes=4096,
            record_bytes=self.record_bytes, n_records=UNKNOWN,
            n_sequences=UNKNOWN, n_tokens=UNKNOWN, capacity=self.capacity,
            depth=self.depth, window=self.window,
            vocab_size=self.schema.vocab, max_seqlen=UNKNOWN,
            min_fill=UNKNOWN, incompat=self.align > 1,
            compat=self.schema.framed, token_bytes=self.schema.width,
            labels=self.schema.labels, pad_id=self.pad_id,
            align=self.align if self.align > 1 else 0,
            n_fields=len(self.fields))
        for name, value in numbers.items():
            put(data, HEADER, name, value)
        struct.pack_into("<6I", data, 96, *self.schema.special)
        table = b"".join(map(Field.entry, self.fields.values()))
        data[256:256 + len(table)] = table
        text = self.dtype().encode()
        data[2048:2048 + len(text)] = text
        return data

    # -- Records

    def array(self, record, name, values, first=0):
        """Writes numbers to a field."""
        field = self.fields[name]
        struct.pack_into("<%d%s" % (len(values), CODES[field.type]), record,
                         field.offset + first * field.size, *values)

    def make_record(self, pack, packs):
        record = bytearray(self.record_bytes)
        lanes = ["tokens"] + [name for name, _, _ in self.schema.channels]
        lengths = [self.schema.length(sequence) for _, sequence, _, _ in pack]
        edges = [0]
        for n in lengths:
            edges.append(edges[-1] + -(-n // self.align) * self.align)
        for field in self.fields.values():
            fill = struct.pack("<Q", field.fill)[:field.size] * field.count
            record[field.offset:field.offset + len(fill)] = fill
        self.array(record, "cu", edges)
        for i, (number, sequence, offset, length) in enumerate(pack):
            self.array(record, "seq_id", [number], i)
            if self.split:
                self.array(record, "seq_off", [offset], i)
                self.array(record, "seq_len", [length], i)
            if self.align > 1:
                self.array(record, "seq_tok", [lengths[i]], i)
            for name, lane in zip(lanes, sequence):
                field = self.fields[name]
                first = edges[i] if field.kind == PER_TOKEN else i
                at = field.offset + first * field.size
                record[at:at + len(lane)] = lane
        numbers = dict(magic=0x52534b50, index=len(self.records),
                       watermark=self.watermark(pack, packs),
                       sum_len_sq=sum(n * n for n in lengths),
                       n_seq=len(pack), n_tok=sum(lengths),
                       max_seqlen=max(lengths))
        for name, value in numbers.items():
            put(record, HEAD, name, value)
        return record

    def watermark(self, pack, packs):
        """The lowest id that is still to come, or their number."""
        later = packs[packs.index(pack) + 1:]
        ids = [piece[0] for other in later for piece in other]
        return min(ids, default=self.n_sequences(packs))

    def n_sequences(self, packs):
        return len({piece[0] for pack in packs for piece in pack})

    def make_end(self, packs):
        pieces = [piece for pack in packs for piece in pack]
        lengths = [[self.schema.length(piece[1]) for piece in pack]
                   for pack in packs]
        tokens = sum(map(sum, lengths))
        newest = worst = 0
        for pack in packs:
            newest = max([newest] + [piece[0] for piece in pack])
            worst = max([worst] + [newest - piece[0] for piece in pack])
        numbers = dict(
            packs=len(packs), sequences=len(pieces), tokens=tokens,
            input_sequences=self.n_sequences(packs), input_tokens=tokens,
            split_sequences=sum(
                piece[2] == 0 and self.schema.length(piece[1]) < piece[3]
                for piece in pieces),
            extra_pieces=sum(piece[2] > 0 for piece in pieces),
            max_displacement=worst,
            max_seqlen=max(map(max, lengths), default=0),
            max_depth=max(map(len, lengths), default=0),
            min_fill=min(map(sum, lengths), default=0))
        data = bytearray(self.record_bytes)
        put(data, HEAD, "magic", 0x52534b50)
        put(data, HEAD, "flags", 1)
        put(data, HEAD, "index", len(packs))
        put(data, HEAD, "watermark", self.n_sequences(packs))
        for name, value in numbers.items():
            put(data, END, name, value)
        return data

    def make_share(self, kept):
        """Leaves the packs with these numbers, as a share."""
        whole = self.end
        self.records = [self.records[i] for i in kept]
        for i, record in enumerate(self.records):
            put(record, HEAD, "index", i)
        put(self.header, HEADER, "compat", self.schema.framed + 2)
        self.end = self.make_end([self.packs[i] for i in kept])
        for what in "sequences", "tokens":
            total = get(whole, END, "input_" + what)
            less = get(self.end, END, what)
            if what == "sequences":
                less -= get(self.end, END, "extra_pieces")
                put(self.end, HEAD, "watermark", total)
            put(self.end, END, "input_" + what, total)
            put(self.end, END, "rejected_" + what, total - less)
        return self

    # -- Changes

    def entry(self, field, place, value, element=0):
        """Changes the entry of a field in the table."""
        at = 256 + 64 * list(self.fields).index(field)
        entry = self.header[at:at + 64]
        put(entry, ENTRY, place, value, element)
        self.header[at:at + 64] = entry

    def rewrite_dtype(self):
        text = self.dtype().encode()
        self.header[2048:4088] = text.ljust(2040, b"\0")

    # -- Bytes

    def bytes(self, digest=None):
        """The stream with checksums, and the digest that they make."""
        self.header[4088:] = struct.pack("<Q", hash_of(self.header[:4088]))
        link = bytes(self.header[4088:])
        for record in self.records:
            record[:8] = struct.pack("<Q", hash_of(record[8:]))
            link = struct.pack("<Q", hash_of(record[:8],
                                             *struct.unpack("<Q", link)))
        self.end[88:96] = link if digest is None else digest
        self.end[:8] = struct.pack("<Q", hash_of(self.end[8:]))
        return bytes(self.header) + b"".join(map(bytes, self.records)) + bytes(
            self.end)


class TokenStream:
    """Framed token records."""

    def __init__(self, schema, sequences, fills=()):
        self.schema = schema
        self.header = bytearray(schema.header())
        for i, fill in enumerate(fills):
            struct.pack_into("<Q", self.header, 128 + 64 * i + 40, fill)
        self.records = list(map(schema.record, sequences))
        self.sequences = len(sequences)
        self.tokens = sum(map(schema.length, sequences))

    def entry(self, channel, place, value, element=0):
        at = 128 + 64 * channel
        entry = self.header[at:at + 64]
        put(entry, ENTRY, place, value, element)
        self.header[at:at + 64] = entry

    def bytes(self):
        return self.body() + self.lengths() + self.end()

    def lengths(self, entries=None):
        return lengths(self.header, self.records, entries)

    def end(self):
        return end(self.sequences, self.tokens, self.records)

    def body(self):
        """All but LENGTHS and END."""
        return seal(self.header) + b"".join(self.records)


__all__ = ["END", "HEAD", "HEADER", "TOKEN_HEADER", "UNKNOWN", "PackStream",
           "Schema", "TokenStream", "put"]
