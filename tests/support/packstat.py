"""packstat.py - the expected output of packstat, computed independently.

Decodes pack streams as packstream(5) defines them, see packformat.py.  Tests
call it as model, of helpers.bash:

    packstat.py agree FILE <JSON      fails unless JSON is right about FILE
    packstat.py lengths FILE          the length of every piece, one per line
    packstat.py pieces FILE           lines "id: tokens", in pack order
    packstat.py rows FILE             the tokens of every pack, padding too
    packstat.py poke FILE PLACE N ... writes a number to each place; updates
                                      checksums, digest and index
    packstat.py get FILE PLACE        the number there
    packstat.py at FILE PLACE         its offset in the file
    packstat.py places FILE           an offset in every field, one per line
    packstat.py window FILE           the smallest window its order allows
    packstat.py aligned FILE N        fails unless sequences start at multiples

A place is "header OFFSET", "block N FIELD", "PACK FIELD", "PACK row BYTE",
"PACK FIELD ELEMENT", "PACK sequences BYTE" or "end FIELD".  A pack is a number
or "all".  A field without an element is in the pack's head, otherwise in its
row or sequence rows.  Places are in the first stream of a file, which need not
be valid.

SPDX-License-Identifier: MIT
"""

import json
import math
import struct
import sys
from collections import Counter
from fractions import Fraction

from packformat import CODES, PER_TOKEN, TYPES, hash_of, streams, up
from packwrite import BLOCK, END, HEAD

CODE_OF = {number: CODES[name] for name, (number, _) in TYPES.items()}


def get(data, at, code):
    return struct.unpack_from("<" + code, data, at)[0]


class Places:
    """Where the numbers of a stream are, according to its heads."""

    def __init__(self, data):
        self.data = data
        self.row_bytes, self.seq_bytes = get(data, 20, "I"), get(data, 184,
                                                                 "I")
        self.fields = {}
        for at in range(256, 256 + 64 * get(data, 200, "I"), 64):
            name, number, kind, offset = struct.unpack_from("<24sBB2xI", data,
                                                            at)
            self.fields[name.rstrip(b"\0").decode()] = (
                offset, CODE_OF[number], kind == PER_TOKEN)
        # Per block: its offset, and its packs' head, row, sequences and count.
        self.blocks, at = [], 4096
        while get(data, at + 4, "I") == 0:
            self.blocks.append((at, list(self.packs_at(at))))
            at += get(data, at + 24, "Q")
        self.end = at
        assert get(data, at + 4, "I") == 1 and get(data, at + 184, "I") == 0
        self.stop = at + get(data, at + 24, "Q")
        self.packs = [pack for _, packs in self.blocks for pack in packs]

    def packs_at(self, at):
        n = get(self.data, at + 8, "I")
        heads = at + 64 + n * self.row_bytes
        for i in range(n):
            head = heads + 40 * i
            first, n_seq = struct.unpack_from("<II", self.data, head + 8)
            yield (head, at + 64 + i * self.row_bytes,
                   heads + 40 * n + first * self.seq_bytes, n_seq)

    def find(self, words):
        """Byte offsets and the type of the numbers in a field."""
        if words[0] == "header":
            return [int(words[1])], "I"
        if words[0] == "end":
            at, code = (END.get(words[1]) or BLOCK[words[1]])
            return [self.end + at], code
        if words[0] == "block":
            at, code = BLOCK[words[2]]
            return [self.blocks[int(words[1])][0] + at], code
        packs = self.packs if words[0] == "all" else [
            self.packs[int(words[0])]]
        if len(words) == 2:
            at, code = HEAD[words[1]]
            return [head + at for head, _, _, _ in packs], code
        if words[1] in ("row", "sequences"):
            which = 1 if words[1] == "row" else 2
            return [pack[which] + int(words[2]) for pack in packs], "B"
        offset, code, of_row = self.fields[words[1]]
        offset += int(words[2]) * (struct.calcsize("<" + code) if of_row
                                   else self.seq_bytes)
        return [(row if of_row else sequences) + offset
                for _, row, sequences, _ in packs], code

    def put(self, at, code, *numbers):
        struct.pack_into("<" + code, self.data, at, *numbers)

    def hash(self, at, size):
        return hash_of(self.data[at:at + size])

    def seal(self):
        """Recomputes the numbers that depend on others."""
        self.put(4088, "Q", self.hash(0, 4088))
        digest, index, entry = get(self.data, 4088, "Q"), 0, self.end + 192
        for at, packs in self.blocks:
            self.put(entry, "QQ", at, index)
            for head, row, sequences, n in packs:
                self.put(head, "Q", hash_of(
                    struct.pack("<QQQ", index, self.hash(row, self.row_bytes),
                                self.hash(sequences, n * self.seq_bytes)) +
                    self.data[head + 12:head + 40]))
                digest = hash_of(self.data[head:head + 8], digest)
                self.put(entry + 16, "Q", get(self.data, head + 32, "Q"))
                index += 1
            entry += 24
            self.put(at + 56, "Q", self.hash(at, 56))
        self.put(self.end + 88, "Q", digest)
        self.put(self.end + 48, "Q",
                 self.hash(self.end + 64, self.stop - self.end - 64))
        self.put(self.end + 56, "Q", self.hash(self.end, 56))


def product(a, b):
    """The products of two lists about their means, added up exactly."""
    return sum(x * y for x, y in zip(a, b)) - Fraction(sum(a) * sum(b),
                                                       len(a))


def by_place(packs):
    """Pearson's correlation of length and number of the pack."""
    places = [i for i, pack in enumerate(packs) for _ in pack]
    lengths = [length for pack in packs for length in pack]
    if len(packs) < 2 or len(set(lengths)) < 2:
        return None
    squared = product(places, places) * product(lengths, lengths)
    return float(product(places, lengths)) / math.sqrt(squared)


def by_neighbour(packs):
    """Autocorrelation of the packs' mean lengths at a lag of one."""
    means = [Fraction(sum(pack), len(pack)) for pack in packs]
    if len(set(means)) < 2:
        return None
    away = [mean - sum(means) / len(means) for mean in means]
    lagged = sum(a * b for a, b in zip(away, away[1:]))
    return float(lagged / sum(a * a for a in away))


def length_of(stream, piece):
    return len(piece.lanes[0]) // stream.schema.width


def expect(data):
    """Everything that follows from the packs; the rest is as END says."""
    sums = dict.fromkeys("""sequences tokens packs max_displacement max_depth
        max_seqlen split_sequences extra_pieces""".split(), 0)
    said = dict.fromkeys("""rejected_sequences rejected_tokens
        truncated_sequences truncated_tokens input_sequences
        input_tokens""".split(), 0)
    fills = []
    lengths = []

    def histogram(values):
        return [list(pair) for pair in sorted(Counter(values).items())]
    for stream in streams(data):
        greatest = 0
        for pack in stream.packs:
            greatest = max([greatest] + [piece.id for piece in pack])
            lengths.append([length_of(stream, piece) for piece in pack])
            fills.append(sum(lengths[-1]))
            sums["packs"] += 1
            sums["sequences"] += len(pack)
            sums["tokens"] += fills[-1]
            sums["max_depth"] = max(sums["max_depth"], len(pack))
            for piece, length in zip(pack, lengths[-1]):
                sums["max_displacement"] = max(sums["max_displacement"],
                                               greatest - piece.id)
                sums["max_seqlen"] = max(sums["max_seqlen"], length)
                sums["extra_pieces"] += piece.offset > 0
                sums["split_sequences"] += (piece.offset == 0 and
                                            length < piece.length)
        for name in said:
            said[name] += stream.end[name]
    first = next(streams(data))
    room = sums["packs"] * first.capacity
    step = 1
    while len(fills) > 256 * step:
        step *= 2
    parts = [fills[i:i + step] for i in range(0, len(fills), step)]
    return dict(sums, **said, min_fill=min(fills, default=0),
                capacity=first.capacity, depth=first.depth or None,
                padding=room - sums["tokens"],
                rejected=said["rejected_sequences"],
                lower_bound=-(-sums["tokens"] // first.capacity),
                efficiency=sums["tokens"] / room if room else None,
                packing_factor=sums["sequences"] / sums["packs"]
                if room else None,
                place_correlation=by_place(lengths),
                neighbour_correlation=by_neighbour(lengths),
                lengths=histogram(sum(lengths, [])),
                depths=histogram(map(len, lengths)), fills=histogram(fills),
                parts=[[len(part), sum(part)] for part in parts])


def agree(data):
    found = json.load(sys.stdin)
    for key, value in expect(data).items():
        same = found[key] == value
        if isinstance(value, float) and found[key] is not None:
            same = abs(found[key] - value) <= 1e-8 * max(1, abs(value))
        assert same, "%s is %s, not %s" % (key, found[key], value)


def lengths(data):
    for stream in streams(data):
        for piece in stream.pieces():
            print(length_of(stream, piece))


def tokens_of(stream, piece):
    return struct.unpack("<%d%s" % (length_of(stream, piece),
                                    {2: "H", 4: "I"}[stream.schema.width]),
                         piece.lanes[0])


def pieces(data):
    for stream in streams(data):
        for piece in stream.pieces():
            print("%d:" % piece.id, *tokens_of(stream, piece))


def spans(stream, pack):
    """The pieces of a pack, each with the position of its first token."""
    begin = 0
    for piece in pack:
        yield begin, piece
        begin = up(begin + length_of(stream, piece), stream.align)


def row_of(stream, pack):
    row = [stream.pad_id] * stream.capacity
    for begin, piece in spans(stream, pack):
        tokens = tokens_of(stream, piece)
        row[begin:begin + len(tokens)] = tokens
    return row


def rows(data):
    for stream in streams(data):
        for pack in stream.packs:
            print(*row_of(stream, pack))


def places(data):
    """A byte of everything that a small stream is made of."""
    stream = Places(data)
    yield from (0, 3, 8, 12, 14, 16, 20, 24, 32, 40, 48, 52, 56, 60, 64, 72,
                80, 88, 96, 116, 120, 121, 122, 128, 136, 168, 176, 184, 188,
                192, 200, 204, 256, 280, 281, 282, 284, 288, 296, 2048, 4087,
                4088, 4095)
    for at in [at for at, _ in stream.blocks] + [stream.end]:
        for offset, _ in BLOCK.values():
            yield at + offset
    head, row, sequences, n = stream.packs[1]
    for offset, _ in HEAD.values():
        yield head + offset
    ends = {True: 0, False: 0}
    for offset, code, of_row in stream.fields.values():
        size = struct.calcsize("<" + code)
        for start in [row] if of_row else [
                sequences + i * stream.seq_bytes for i in range(n)]:
            yield start + offset
            if of_row:
                size *= get(data, 48, "I")
            yield start + offset + size - 1
            ends[of_row] = offset + size
    if ends[True] < stream.row_bytes:
        yield row + ends[True]
    if ends[False] < stream.seq_bytes:
        yield sequences + ends[False]
    yield row + stream.row_bytes - 1
    yield stream.end - 1
    for offset, _ in END.values():
        yield stream.end + offset
    for i in range(3 * len(stream.blocks)):
        yield stream.end + 192 + 8 * i
    yield from range(stream.stop - 32, stream.stop, 4)


def window(data):
    """The most pieces in earlier packs that have higher ids than a piece."""
    before, most = [], 0
    for pack in next(streams(data)).packs:
        most = max([most] + [sum(other > piece.id for other in before)
                             for piece in pack])
        before += [piece.id for piece in pack]
    return most


def aligned(data, align):
    """Decoding checks that sequences begin at the nearest multiples, with
    padding between them."""
    for stream in streams(data):
        assert stream.align == align


def main():
    command, path, rest = sys.argv[1], sys.argv[2], sys.argv[3:]
    data = bytearray(open(path, "rb").read())
    if command in ("agree", "lengths", "pieces", "rows"):
        globals()[command](data)
    elif command == "places":
        print(*sorted(set(places(data))), sep="\n")
    elif command in ("get", "at"):
        (at, *_), code = Places(data).find(rest[0].split())
        print(get(data, at, code) if command == "get" else at)
    elif command == "aligned":
        aligned(data, int(rest[0]))
    elif command == "window":
        print(window(data))
    elif command == "poke":
        stream = Places(data)
        for place, value in zip(rest[::2], rest[1::2]):
            at, code = stream.find(place.split())
            for offset in at:
                stream.put(offset, code, int(value))
        stream.seal()
        open(path, "wb").write(data)
    else:
        sys.exit("packstat.py: unknown command")


if __name__ == "__main__":
    main()
