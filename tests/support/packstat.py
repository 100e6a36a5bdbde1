"""packstat.py - what packstat should say, worked out by other means.

Decodes pack streams and token records as packstream(5) defines them, with
the standard library alone.  Tests call it as model, of helpers.bash:

    packstat.py agree FILE <JSON      fails unless JSON is right about FILE
    packstat.py lengths FILE          the length of every piece, one a line
    packstat.py pieces FILE           the lines "id: tokens", in their order
    packstat.py rows FILE             the tokens of every pack, padding too
    packstat.py poke FILE PLACE N ... writes a number to each place
    packstat.py get FILE PLACE        the number there
    packstat.py places FILE           a byte of every field, one a line
    packstat.py window FILE           the smallest window its order allows
    packstat.py aligned FILE N        fails unless all begins at multiples

A place is "header OFFSET", "RECORD FIELD [ELEMENT]" or "end FIELD [0]"; a
record is a number or "all", a field one of the head, of the table or of
END.

SPDX-License-Identifier: MIT
"""

import json
import math
import struct
import sys
from fractions import Fraction

HEADER = 4096
HEAD = {"checksum": (0, "Q"), "magic": (8, "I"), "flags": (12, "I"),
        "index": (16, "Q"), "watermark": (24, "Q"), "sum_len_sq": (32, "Q"),
        "n_seq": (40, "I"), "n_tok": (44, "I"), "max_seqlen": (48, "I"),
        "zero": (52, "I")}
END_U64 = ["packs", "sequences", "tokens", "digest", "input_sequences",
           "input_tokens", "rejected_sequences", "rejected_tokens",
           "truncated_sequences", "truncated_tokens", "split_sequences",
           "extra_pieces", "max_displacement"]
END_U32 = ["max_seqlen", "max_depth", "min_fill", "end_zero"]
END = {name: (64 + 8 * i, "Q") for i, name in enumerate(END_U64)}
END.update((name, (64 + 8 * len(END_U64) + 4 * i, "I"))
           for i, name in enumerate(END_U32))
CODES = {1: "B", 2: "H", 3: "I", 4: "Q", 5: "i", 6: "q", 7: "f", 8: "d"}


def get(data, at, code):
    return struct.unpack_from("<" + code, data, at)[0]


class Stream:
    """One pack stream, which starts at byte `start` of `data`."""

    def __init__(self, data, start):
        self.data, self.start = data, start
        assert data[start:start + 8] == b"\x89PKS\r\n\x1a\n"
        self.stride, self.capacity, self.depth = (
            get(data, start + at, "I") for at in (20, 48, 52))
        self.fields, self.kinds, sources = {}, {}, {}
        for i in range(get(data, start + 200, "I")):
            name, number, kind, _, source, offset, count = struct.unpack_from(
                "<24s4BII", data, start + 256 + 64 * i)
            name = name.rstrip(b"\0").decode()
            self.fields[name] = offset, CODES[number], count
            self.kinds[name], sources[name] = kind, source
        self.channels = sorted(filter(sources.get, sources), key=sources.get)
        self.n = 0
        while not get(data, self.record(self.n) + 12, "I") & 1:
            self.n += 1
        self.end = self.record(self.n)
        self.stop = self.end + self.stride

    def record(self, i):
        return self.start + HEADER + i * self.stride

    def array(self, i, name, n):
        at, code, _ = self.fields[name]
        return struct.unpack_from("<%d%s" % (n, code), self.data,
                                  self.record(i) + at)

    def packs(self):
        """For each pack its sequences: id, offset, tokens, of how many."""
        for i in range(self.n):
            n = get(self.data, self.record(i) + 40, "I")
            cu = self.array(i, "cu", n + 1)
            ids = self.array(i, "seq_id", n)
            lengths = [b - a for a, b in zip(cu, cu[1:])]
            if "seq_tok" in self.fields:
                lengths = self.array(i, "seq_tok", n)
            offs, wholes = (0,) * n, lengths
            if "seq_off" in self.fields:
                offs = self.array(i, "seq_off", n)
                wholes = self.array(i, "seq_len", n)
            yield list(zip(ids, offs, lengths, wholes))

    def place(self, words):
        """Byte offsets and the type of the numbers at a place."""
        record, name = words[0], words[1]
        element = int(words[2]) if len(words) > 2 else 0
        if record == "header":
            return [self.start + int(name)], "I"
        if record == "end":
            at, code = END.get(name) or HEAD[name]
            return [self.end + at], code
        records = range(self.n) if record == "all" else [int(record)]
        at, code = (HEAD[name] if name in HEAD else self.fields[name][:2])
        at += element * struct.calcsize("<" + code)
        return [self.record(i) + at for i in records], code


def streams(data):
    start = 0
    while start < len(data):
        stream = Stream(data, start)
        yield stream
        start = stream.stop


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


def expect(data):
    """Everything that follows from the records; the rest is END's word."""
    sums = dict.fromkeys("""sequences tokens packs max_displacement max_depth
        max_seqlen split_sequences extra_pieces""".split(), 0)
    said = dict.fromkeys("""rejected_sequences rejected_tokens
        truncated_sequences truncated_tokens input_sequences
        input_tokens""".split(), 0)
    fills = []
    lengths = []
    for stream in streams(data):
        greatest = 0
        for pack in stream.packs():
            greatest = max([greatest] + [piece[0] for piece in pack])
            lengths.append([piece[2] for piece in pack])
            fills.append(sum(lengths[-1]))
            sums["packs"] += 1
            sums["sequences"] += len(pack)
            sums["tokens"] += fills[-1]
            sums["max_depth"] = max(sums["max_depth"], len(pack))
            for number, offset, length, whole in pack:
                sums["max_displacement"] = max(sums["max_displacement"],
                                               greatest - number)
                sums["max_seqlen"] = max(sums["max_seqlen"], length)
                sums["extra_pieces"] += offset > 0
                sums["split_sequences"] += offset == 0 and length < whole
        for name in said:
            at, code = END[name]
            said[name] += get(data, stream.end + at, code)
    first = Stream(data, 0)
    room = sums["packs"] * first.capacity
    return dict(sums, **said, min_fill=min(fills, default=0),
                capacity=first.capacity, depth=first.depth,
                padding=room - sums["tokens"],
                rejected=said["rejected_sequences"],
                lower_bound=-(-sums["tokens"] // first.capacity),
                efficiency=sums["tokens"] / room if room else None,
                packing_factor=sums["sequences"] / sums["packs"]
                if room else None,
                place_correlation=by_place(lengths),
                neighbour_correlation=by_neighbour(lengths))


def agree(data):
    found = json.load(sys.stdin)
    for key, value in expect(data).items():
        same = found[key] == value
        if isinstance(value, float) and found[key] is not None:
            same = abs(found[key] - value) <= 1e-8 * max(1, abs(value))
        assert same, "%s is %s, not %s" % (key, found[key], value)


def lengths(data):
    for stream in streams(data):
        for pack in stream.packs():
            for piece in pack:
                print(piece[2])


def pieces(data):
    for stream in streams(data):
        for i, pack in enumerate(stream.packs()):
            tokens = stream.array(i, "tokens", stream.capacity)
            cu = stream.array(i, "cu", len(pack))
            for begin, (number, _, length, _) in zip(cu, pack):
                print("%d:" % number, *tokens[begin:begin + length])


def rows(data):
    for stream in streams(data):
        for i in range(stream.n):
            print(*stream.array(i, "tokens", stream.capacity))


def places(data):
    """A byte of everything that a small stream is made of."""
    stream = Stream(data, 0)
    yield from (0, 3, 8, 12, 14, 16, 20, 24, 32, 40, 48, 52, 56, 60, 64, 72,
                80, 88, 96, 116, 120, 121, 122, 128, 136, 168, 176, 200, 204,
                256, 280, 281, 282, 284, 288, 296, 2048, 4087, 4088, 4095)
    for name in HEAD:
        yield stream.record(1) + HEAD[name][0]
    for offset, code, count in stream.fields.values():
        end = offset + count * struct.calcsize("<" + code)
        yield stream.record(1) + offset
        yield stream.record(1) + end - 1
        if end % 16:
            yield stream.record(1) + end
    yield stream.record(2) - 1
    for name in END:
        yield stream.end + END[name][0]
    for name in HEAD:
        yield stream.end + HEAD[name][0]
    yield stream.stop - 1


def window(data):
    """The most pieces in packs before one with a lower id than theirs."""
    before, most = [], 0
    for pack in Stream(data, 0).packs():
        most = max([most] + [sum(other > piece[0] for other in before)
                             for piece in pack])
        before += [piece[0] for piece in pack]
    return most


def aligned(data, align):
    """Sequences begin at multiples, no further apart than need be, and
    what is between them is padding."""
    for stream in streams(data):
        assert get(data, stream.start + 80, "Q") == (align > 1)
        assert get(data, stream.start + 180, "I") == (align if align > 1
                                                      else 0)
        pad_id = get(data, stream.start + 176, "I")
        for i, pack in enumerate(stream.packs()):
            cu = stream.array(i, "cu", stream.depth + 2)
            tokens = stream.array(i, "tokens", stream.capacity)
            at = 0
            for begin, (_, _, length, _) in zip(cu, pack):
                assert begin == at
                end = at + length
                at += -(-length // align) * align
                assert set(tokens[end:at]) <= {pad_id}
            assert set(cu[len(pack) + 1:]) == {stream.capacity}
            assert cu[len(pack)] == at and set(tokens[at:]) <= {pad_id}


def main():
    command, path, rest = sys.argv[1], sys.argv[2], sys.argv[3:]
    data = bytearray(open(path, "rb").read())
    if command in ("agree", "lengths", "pieces", "rows"):
        globals()[command](data)
    elif command == "places":
        print(*sorted(set(places(data))), sep="\n")
    elif command == "get":
        at, code = Stream(data, 0).place(rest[0].split())
        print(get(data, at[0], code))
    elif command == "aligned":
        aligned(data, int(rest[0]))
    elif command == "window":
        print(window(data))
    elif command == "poke":
        for place, value in zip(rest[::2], rest[1::2]):
            at, code = Stream(data, 0).place(place.split())
            for offset in at:
                struct.pack_into("<" + code, data, offset, int(value))
        open(path, "wb").write(data)
    else:
        sys.exit("packstat.py: unknown command")


if __name__ == "__main__":
    main()
