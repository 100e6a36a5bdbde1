"""packwrite.py - writes pack streams, valid or with one rule broken.

Written from packstream(5), on top of packformat.py.  A test builds a stream,
and can then change numbers in it; bytes() computes the checksums, the
digest and the index last, so that only the rule itself reveals the change.

SPDX-License-Identifier: MIT
"""

import collections
import struct

import packformat
from packformat import (BLOCK, CODES, HEAD, INDEXED, LIST, MAGIC, TOTALS,
                        TRAILER, UNKNOWN, Field, Layout, Schema, end, hash_of,
                        lengths, seal, up)

HEADER = {**packformat.HEADER, "special": (96, "I"), "zero_123": (123, "B"),
          "zero_204": (204, "B"), "zero_240": (240, "B"),
          "budget_by": (124, "B"), "budget": (208, "Q"),
          "dtype": (2048, "B")}
END = {**TOTALS, "zero_180": (180, "I"), "n_parts": (184, "I"),
       "n_blocks": (188, "I")}
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


def put(data, places, name, value, element=0):
    """Writes a number to a named field, or to an element of one."""
    at, code = places[name]
    struct.pack_into("<" + code, data, at + element * struct.calcsize(code),
                     value)


def get(data, places, name):
    """The number in a named field."""
    at, code = places[name]
    return struct.unpack_from("<" + code, data, at)[0]


class PackStream:
    """Packs of (id, sequence, offset, length): whole sequences have offset 0,
    and pieces have the length of their sequence.  `fills` are those of the
    channels.  `sizes` are the packs of the first blocks; the others are
    closed when they are full.

    Pack i is rows[i], heads[i] and sequences[i], END without its index `last`;
    bytes() makes first_seq, the block heads and the index, which alter() can
    change there."""

    def __init__(self, schema, packs, capacity, depth=0, window=8, fills=(),
                 split=False, align=1, pad_id=0, block_packs=None, sizes=(),
                 limits=()):
        self.schema, self.capacity, self.depth = schema, capacity, depth
        self.split, self.align, self.pad_id = split, align, pad_id
        self.window, self.fills, self.packs = window, fills, packs
        self.sizes, self.alterations, self.indexed = sizes, [], INDEXED
        self.numbers = {}       # pack indexes for checksums, if different
        self.layout = Layout(schema, fills, capacity, pad_id, split, limits)
        self.limits = list(limits)
        self.fields = self.layout.fields
        self.size_blocks(block_packs)
        self.header = self.make_header()
        self.rows, self.sequences, self.heads = [], [], []
        for i in range(len(packs)):
            self.add_pack(i)
        self.end = self.make_end(packs)

    row_bytes = property(lambda self: self.layout.row_bytes)
    seq_bytes = property(lambda self: self.layout.seq_bytes)

    # -- The header

    def size_blocks(self, block_packs):
        n = block_packs or 1
        while not block_packs and n * (self.row_bytes + 40) < 1 << 20 and \
                n < 65536:
            n *= 2
        self.block_packs = n
        self.block_bytes = self.layout.block_bytes(n, min(
            self.depth or self.capacity // self.align, 1 << 20))

    def make_header(self):
        data = bytearray(4096)
        data[:8] = b"\x89PKS\r\n\x1a\n"
        numbers = dict(
            endian=0x01020304, major=2, header_bytes=4096,
            row_bytes=self.row_bytes, n_packs=UNKNOWN,
            n_sequences=UNKNOWN, n_tokens=UNKNOWN, capacity=self.capacity,
            depth=self.depth, window=self.window,
            vocab_size=self.schema.vocab, max_seqlen=UNKNOWN,
            min_fill=UNKNOWN, incompat=self.align > 1,
            compat=self.schema.framed, token_bytes=self.schema.width,
            labels=self.schema.labels, pad_id=self.pad_id,
            align=self.align if self.align > 1 else 0,
            seq_bytes=self.seq_bytes, block_packs=self.block_packs,
            block_bytes=self.block_bytes, n_fields=len(self.fields))
        for name, value in numbers.items():
            put(data, HEADER, name, value)
        struct.pack_into("<6I", data, 96, *self.schema.special)
        for i, (by, limit) in enumerate(self.limits):
            put(data, HEADER, "budget_by", by, i)
            put(data, HEADER, "budget", limit, i)
        table = b"".join(map(Field.entry, self.fields.values()))
        data[256:256 + len(table)] = table
        text = self.layout.dtype()
        data[2048:2048 + len(text)] = text
        return data

    # -- Packs

    def set(self, i, name, value, element):
        """Writes a number of pack i: at an offset in its row, or in one of its
        sequence rows."""
        field = self.fields[name]
        step = field.size if field.in_row else self.seq_bytes
        struct.pack_into(
            "<" + CODES[field.type.partition("[")[0]],
            self.rows[i] if field.in_row else self.sequences[i],
            field.offset + element * step, value)

    def add_pack(self, number):
        pack = self.packs[number]
        row = bytearray(self.row_bytes)
        for field in self.fields.values():
            if field.in_row:
                row[field.offset:field.offset + field.size * field.places] = \
                    field.unused(field.places)
        self.rows.append(row)
        self.sequences.append(bytearray(self.seq_bytes * len(pack)))
        self.used = collections.Counter()
        start, lengths = 0, []
        for i, piece in enumerate(pack):
            self.add_piece(number, i, start, *piece)
            lengths.append(self.schema.length(piece[1]))
            start += up(lengths[-1], self.align)
        self.heads.append(bytearray(40))
        numbers = dict(n_seq=len(pack), n_tok=sum(lengths),
                       max_seqlen=max(lengths, default=0),
                       sum_len_sq=sum(n * n for n in lengths),
                       watermark=self.watermark(number))
        for name, value in numbers.items():
            put(self.heads[-1], HEAD, name, value)

    def add_piece(self, number, i, start, piece_id, sequence, offset, length):
        own = dict(seq_id=piece_id, seq_start=start,
                   seq_tok=self.schema.length(sequence))
        if self.split:
            own.update(piece_off=offset, full_len=length)
        for name, value in own.items():
            self.set(number, name, value, i)
        lanes = ["tokens"] + [name for name, _, _ in self.schema.channels]
        for name, lane in zip(lanes, sequence):
            field = self.fields[name]
            first = start
            if field.kind == LIST:
                first, n = self.used[name], len(lane) // field.size
                self.used[name] += n
                struct.pack_into("<II", self.sequences[number],
                                 i * self.seq_bytes +
                                 self.fields[name + "[]"].offset, first, n)
            to, at = (self.rows, first * field.size) \
                if field.in_row else (self.sequences, i * self.seq_bytes)
            at += field.offset
            to[number][at:at + len(lane)] = lane

    def watermark(self, number):
        """The lowest id that is still to come, or their number."""
        if not hasattr(self, "lowest"):
            self.lowest = [self.n_sequences(self.packs)]
            for pack in reversed(self.packs[1:]):
                self.lowest.append(min([self.lowest[-1]] +
                                       [piece[0] for piece in pack]))
            self.lowest.reverse()
        return self.lowest[number]

    def n_sequences(self, packs):
        return len({piece[0] for pack in packs for piece in pack})

    # -- END

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
            max_seqlen=max((max(n, default=0) for n in lengths), default=0),
            max_depth=max(map(len, lengths), default=0),
            min_fill=min(map(sum, lengths), default=0))
        data = bytearray(192)
        for name, value in numbers.items():
            put(data, END, name, value)
        return data

    def make_share(self, kept):
        """Leaves the packs with these numbers, as a share."""
        whole = self.end
        for parts in self.rows, self.sequences, self.heads:
            parts[:] = [parts[i] for i in kept]
        put(self.header, HEADER, "compat", self.schema.framed + 2)
        self.end = self.make_end([self.packs[i] for i in kept])
        for what in "sequences", "tokens":
            total = get(whole, END, "input_" + what)
            less = get(self.end, END, what)
            if what == "sequences":
                less -= get(self.end, END, "extra_pieces")
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
        text = self.layout.dtype()
        self.header[2048:4088] = text.ljust(2040, b"\0")

    def alter(self, block, change, sealed=True):
        """Makes bytes() call change(data) with block number `block` as a
        bytearray, -1 for END, before or after its checksums are computed."""
        self.alterations.append((block, change, sealed))

    # -- Bytes

    def cut_blocks(self):
        """The numbers of the packs of each block."""
        sizes, block, rows = list(self.sizes), [], 0
        for i, part in enumerate(self.sequences):
            size = sizes[0] if sizes else self.block_packs
            if block and (len(block) == size or rows + len(part) > 1 << 20):
                yield block
                block, rows = [], 0
                del sizes[:1]
            block.append(i)
            rows += len(part)
        if block:
            yield block

    def make_block(self, block):
        first_seq, heads = 0, b""
        for i in block:
            head, sequences = self.heads[i], self.sequences[i]
            put(head, HEAD, "first_seq", first_seq)
            put(head, HEAD, "checksum", hash_of(struct.pack(
                "<3Q", self.numbers.get(i, i), hash_of(self.rows[i]), hash_of(sequences)) +
                head[12:]))
            heads += head
            first_seq += len(sequences) // self.seq_bytes
        return self.finish_block(
            0, block[0], b"".join(self.rows[i] for i in block) + heads +
            b"".join(self.sequences[i] for i in block), len(block), first_seq)

    def finish_block(self, kind, first, body, n_packs=0, n_seqs=0):
        data = bytearray(64) + body
        data += bytes(-len(data) % 64)
        for name, value in dict(magic=MAGIC, kind=kind, n_packs=n_packs,
                                n_seqs=n_seqs, first=first,
                                bytes=len(data)).items():
            put(data, BLOCK, name, value)
        return data

    def seal(self, data, number):
        """Makes the changes to a block, and its checksums."""
        for sealed in True, False:
            for block, change, before in self.alterations:
                if block == number and before == sealed:
                    change(data)
            if sealed:
                if get(data, BLOCK, "kind"):
                    put(data, BLOCK, "body", hash_of(data[64:]))
                put(data, BLOCK, "checksum", hash_of(data[:56]))
        return data

    def make_last(self, at, parts, index, digest):
        """END, which begins at byte `at` of the stream."""
        put(self.end, END, "n_parts", len(parts))
        put(self.end, END, "n_blocks", len(index))
        if digest is not None:
            put(self.end, END, "digest", digest)
        entries = b"".join(struct.pack("<3Q", *e) for e in parts + index)
        size = up(192 + len(entries) + 24, 64)
        body = self.end[64:] + entries.ljust(size - 216, b"\0")
        body += struct.pack("<QQ", size, at + size) + TRAILER
        return self.finish_block(1, len(self.rows), body)

    def blocks(self, digest=None):
        """The header, each block and END, with checksums, digest and index."""
        put(self.header, {"checksum": (4088, "Q")}, "checksum",
            hash_of(self.header[:4088]))
        parts, index, pieces = [], [], [bytes(self.header)]
        link, at = get(self.header, {"checksum": (4088, "Q")}, "checksum"), \
            4096

        def add(data, number):
            nonlocal at
            pieces.append(bytes(self.seal(data, number)))
            at += len(data)

        for block in self.cut_blocks():
            data = self.make_block(block)
            index.append((at, block[0],
                          get(self.heads[block[-1]], HEAD, "watermark")))
            for i in block:
                link = hash_of(self.heads[i][:8], link)
            add(data, len(pieces) - 1)
            if len(index) == self.indexed:
                parts.append((at, index[0][1], index[-1][2]))
                add(self.finish_block(2, block[-1] + 1, b"".join(
                    struct.pack("<3Q", *e) for e in index)), len(pieces) - 1)
                index = []
        add(self.make_last(at, parts, index, link if digest is None else
                           digest), -1)
        return pieces

    def bytes(self, digest=None):
        return b"".join(self.blocks(digest))


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


__all__ = ["BLOCK", "END", "HEAD", "HEADER", "TOKEN_HEADER", "UNKNOWN",
           "PackStream", "Schema", "TokenStream", "put"]
