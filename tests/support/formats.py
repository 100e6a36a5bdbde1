"""formats.py - reads and writes the formats as packstream(5) defines them.

It was written from the page alone: it shares no code with the library.
Offsets and types of headers come from the byte tables of the page itself; the
recipes of the page are extracted and imported as they are.  Their results are
compared with those of packformat.py, which checks the rules.
tests/programs/formats.bats calls the functions at the end by name:

    python3 formats.py PAGE CHECK [ARGUMENT]...

A check prints nothing and exits with 0, or fails with a traceback.

SPDX-License-Identifier: MIT
"""

import functools
import importlib.util
import itertools
import json
import random
import re
import struct
import sys

import numpy as np

import packformat

packformat.offer_xxhash()

TYPES = {1: "<u1", 2: "<u2", 3: "<u4", 4: "<u8", 5: "<i4", 6: "<i8",
         7: "<f4", 8: "<f8"}
SIZES = {"u8": 1, "u16": 2, "u32": 4, "u64": 8}
LETTERS = {"u8": "B", "u16": "H", "u32": "I", "u64": "Q"}
FRAMED, PACKS = b"\x89TOK\r\n\x1a\n", b"\x89PKS\r\n\x1a\n"
NONE = 0xffffffff


# ---------------------------------------------------------------------
# The page

def plain(line):
    """A line of roff as the reader sees it."""
    for roff, text in (("\\-", "-"), ("\\(aq", "'"), ("\\(ga", "`"),
                       ("\\(ha", "^"), ("\\(ti", "~"), ("\\&", ""),
                       ("\\e", "\\")):
        line = line.replace(roff, text)
    return line


def block(page, name):
    """The code after the comment "test: NAME"."""
    lines = iter(open(page))
    for line in lines:
        if line.rstrip() == '.\\" test: ' + name:
            break
    assert next(lines).startswith(".Bd"), name + " is not in the page"
    code = []
    for line in lines:
        if line.startswith(".Ed"):
            return plain("".join(code))
        code.append(line)
    raise AssertionError(name + " does not end")


def module(page, *names):
    """Blocks of the page, imported as one module."""
    with open("recipe.py", "w") as file:
        file.write("\n".join(block(page, name) for name in names))
    spec = importlib.util.spec_from_file_location("recipe", "recipe.py")
    made = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(made)
    return made


@functools.lru_cache(None)
def table(page, title):
    """The byte table below a heading: [(offset, type, times, name)]."""
    rows = []
    inside = False
    for line in open(page):
        if re.match(r"\.S[sh] ", line):
            inside = line[4:].strip() == title
        row = re.match(r"\.It (\d+) Ta (u\d+)(?:\[(\d+)\])? Ta (\S+) Ta",
                       line)
        if inside and row:
            offset, kind, times, name = row.groups()
            rows.append((int(offset), kind, int(times or 1),
                         name.strip('"')))
    assert rows, title + " has no table"
    return rows


def decode(page, title, data):
    """The fields of `data` by the byte table: {name: value}."""
    values = {}
    for offset, kind, times, name in table(page, title):
        found = struct.unpack_from("<%d%s" % (times, LETTERS[kind]), data,
                                   offset)
        values[name] = found if times > 1 else found[0]
    return values


# ---------------------------------------------------------------------
# Token records

class Tokens:
    """A stream of token records: the fields of its header, and its rows."""

    def __init__(self, page, data, width=2):
        self.rows = []
        self.head = {"token_bytes": width}
        self.channels = []
        if data.startswith(FRAMED):
            self.read_framed(page, data)
        else:
            at = 0
            while at < len(data):
                at = self.read_row(data, at)

    def read_framed(self, page, data):
        at = 0
        while at < len(data):
            self.head = decode(page, "Framed token records", data[at:])
            assert bytes(self.head["magic"]) == FRAMED
            size = self.head["header_bytes"]
            assert size == 136 + 64 * self.head["n_channels"]
            self.channels = [
                decode(page, "Channel table", data[at + 128 + 64 * i:])
                for i in range(self.head["n_channels"])]
            at = self.read_records(page, data, at + size)

    def read_records(self, page, data, at):
        before = len(self.rows)
        begin = at - self.head["header_bytes"]
        self.records = []
        while data[at:at + 4] != bytes(4):
            start, at = at, self.read_row(data, at)
            self.records.append(data[start:at])
        rows = self.rows[before:]
        at = self.read_lengths(page, data, begin, at, rows)
        end = decode(page, "Control records", data[at:])
        assert end["kind"] == 1
        assert end["sequences"] == len(rows)
        assert end["tokens"] == sum(len(r["tokens"]) for r in rows)
        self.end = end
        return at + 32

    def read_lengths(self, page, data, begin, at, rows):
        """LENGTHS, if it is there; where END begins."""
        if data[at + 4] != 3:
            return at
        head = decode(page, "Lengths", data[at:])
        size = 36 + 12 * head["n"]
        entries = np.frombuffer(data, [("length", "<u4"), ("count", "<u8")],
                                head["n"], at + 12)
        tail = struct.unpack_from("<QQQ", data, at + size - 24)
        assert tail[0] == at - begin
        assert tail[2] == size
        if "xxhash" in sys.modules:
            assert tail[1] == sys.modules["xxhash"].xxh3_64_intdigest(
                data[at:at + size - 16])
        values, counts = np.unique([len(r["tokens"]) for r in rows],
                                   return_counts=True)
        assert entries["length"].tolist() == values.tolist()
        assert entries["count"].tolist() == counts.tolist()
        return at + size

    def read_row(self, data, at):
        count = int.from_bytes(data[at:at + 4], "little")
        assert count >= 1
        at += 4
        row = {}

        def take(name, kind, times):
            nonlocal at
            row[name] = np.frombuffer(data, kind, times, at)
            at += row[name].nbytes

        take("tokens", "<u%d" % self.head["token_bytes"], count)
        for kind, times in ((1, count), (2, 1)):
            for channel in self.channels:
                if channel["kind"] == kind:
                    take(name_of(channel), TYPES[channel["type"]], times)
        self.rows.append(row)
        return at


def name_of(channel):
    return bytes(channel["name"]).rstrip(b"\0").decode()


def write_framed(page, channels, rows, head):
    """A framed stream; `channels` are (name, type, kind, fill)."""
    from xxhash import xxh3_64_intdigest as xxh3

    size = 136 + 64 * len(channels)
    data = bytearray(size)
    head = dict(head, magic=tuple(FRAMED), endian=0x01020304, major=1,
                header_bytes=size, n_channels=len(channels))
    encode(page, "Framed token records", head, data, 0)
    for i, (name, number, kind, fill) in enumerate(channels):
        encode(page, "Channel table",
               {"name": tuple(name.encode().ljust(24, b"\0")),
                "type": number, "kind": kind, "fill": fill,
                "elem_bytes": np.dtype(TYPES[number]).itemsize},
               data, 128 + 64 * i)
    data[-8:] = xxh3(bytes(data[:-8])).to_bytes(8, "little")
    body = [write_row(channels, row) for row in rows]
    tokens = sum(len(row["tokens"]) for row in rows)
    lengths = write_lengths(xxh3, rows, size + sum(map(len, body)))
    end = struct.pack("<IIQQQ", 0, 1, len(rows), tokens,
                      chain(xxh3, body))
    return bytes(data) + b"".join(body) + lengths + end


def write_lengths(xxh3, rows, before):
    counts = np.unique([len(row["tokens"]) for row in rows],
                       return_counts=True)
    data = struct.pack("<III", 0, 3, len(counts[0]))
    for entry in zip(*counts):
        data += struct.pack("<IQ", *map(int, entry))
    data += struct.pack("<Q", before)
    return data + struct.pack("<QQ", xxh3(data), len(data) + 16)


def chain(xxh3, records):
    """The digest of framed records."""
    digest = 0
    for record in records:
        rest = xxh3(record[4:]).to_bytes(8, "little")
        digest = xxh3(record[:4] + rest, seed=digest)
    return digest


def encode(page, title, values, data, at):
    for offset, kind, times, name in table(page, title):
        value = values.get(name, 0 if times == 1 else (0,) * times)
        struct.pack_into("<%d%s" % (times, LETTERS[kind]), data,
                         at + offset,
                         *(value if times > 1 else (value,)))


def write_row(channels, row):
    parts = [struct.pack("<I", len(row["tokens"])), row["tokens"].tobytes()]
    for kind in (1, 2):
        parts += [row[name].tobytes() for name, _, its, _ in channels
                  if its == kind]
    return b"".join(parts)


# ---------------------------------------------------------------------
# Packs by the page's recipe, against the token records

class Stream:
    """A pack stream, decoded by the recipe and the byte tables of the page;
    `packs` are rows, heads and sequence rows."""

    def __init__(self, page, recipe, data, at):
        self.data = data
        self.recipe, self.made = recipe, recipe.open_stream(data, at)
        self.head = decode(page, "Header", data[at:])
        self.fields = [decode(page, "Channel table", data[at + 256 + 64 * i:])
                       for i in range(self.head["n_fields"])]
        self.blocks = list(recipe.blocks(data, self.made))
        self.end = decode(page, "END", data[self.blocks[-1].at:])
        self.align = self.made.align

    def packs(self):
        return [pack for block in self.blocks
                for pack in self.recipe.packs(block)]

    def sequences(self):
        for block in self.blocks:
            yield from self.recipe.sequences(block)


def read(path):
    return np.fromfile(path, "u1")


def streams(page, recipe, path):
    """Every stream of a file."""
    data, at = read(path), 0
    while at < len(data):
        stream = Stream(page, recipe, data, at)
        yield stream
        at = stream.blocks[-1].end
    assert at == len(data)


def both(page, recipe, path):
    """Every stream of a file, and as packformat.py reads it."""
    return itertools.zip_longest(streams(page, recipe, path),
                                 packformat.streams(read(path).tobytes()))


def same(a, b):
    """Equal bit for bit; a per-sequence value counts as one element."""
    a, b = np.atleast_1d(a), np.atleast_1d(b)
    return a.dtype == b.dtype and a.tobytes() == b.tobytes()


def compare(page, recipe, tokens, path):
    """The packs of a file hold the rows of `tokens`, each once."""
    base = 0
    for stream in streams(page, recipe, path):
        seen = set()
        for row in stream.sequences():
            number = int(row.pop("seq_id"))
            wanted = tokens.rows[base + number]
            assert row.pop("seq_tok") == len(wanted["tokens"])
            row.pop("seq_start")
            assert number not in seen
            seen.add(number)
            assert set(row) == set(wanted), (set(row), set(wanted))
            for name in row:
                assert same(row[name], wanted[name]), (number, name)
        base += max(seen, default=-1) + 1
    assert base == len(tokens.rows), (base, len(tokens.rows))


def check_stream(page, stream, packs):
    """The page's tables and its recipe give what packformat.py finds, which
    checks every rule."""
    data, head, last = stream.data, stream.head, stream.blocks[-1]
    assert bytes(head["magic"]) == PACKS
    for name in packformat.HEADER:
        wanted = getattr(packs, name)
        assert head[name] == (wanted if name != "align" or head["incompat"]
                              else 0), (name, head[name], wanted)
    assert head["special"] == packs.schema.special
    assert [(name_of(field), field["type"], field["kind"], field["source"],
             field["offset"], field["fill"]) for field in stream.fields] == [
        (field.name, packformat.TYPES[field.type][0], field.kind, field.source,
         field.offset, field.fill) for field in packs.fields.values()]
    for block, wanted in zip(stream.blocks, packs.blocks):
        found = decode(page, "Blocks", data[block.at:])
        assert found.pop("") == (0, 0)
        assert found == {name: getattr(wanted, name) for name in found}
        assert (block.at, block.end) == (wanted.at, wanted.at + wanted.bytes)
    for name, value in packs.end.items():
        assert stream.end[name] == value, (name, stream.end[name], value)
    index = packs.parts + packs.index
    assert stream.end["n_parts"] + stream.end["n_blocks"] == len(index)
    for i, wanted in enumerate(index):
        found = decode(page, "Index", data[last.at + 192 + 24 * i:])
        assert tuple(found.values()) == wanted
    heads = [head for _, head, _ in stream.packs()]
    assert len(heads) == len(packs.heads)
    for head, wanted in zip(heads, packs.heads):
        assert dict(zip(head.dtype.names, head.tolist())) == \
            decode(page, "Pack heads", head.tobytes()) == wanted._asdict()
    assert len(stream.blocks) == len(packs.blocks)


def check_views(recipe, stream, seqs):
    """Positions and segments, worked out the slow way."""
    capacity = stream.head["capacity"]
    starts, lengths = seqs["seq_start"].tolist(), seqs["seq_tok"].tolist()
    edges = starts + [packformat.up(starts[-1] + lengths[-1], stream.align),
                      capacity]
    ends = [start + n for start, n in zip(starts, lengths)] + [0]
    positions, segments = [], []
    for i in range(len(starts) + 1):
        for t in range(edges[i], edges[i + 1]):
            positions.append(t - edges[i])
            segments.append(i + 1 if t < ends[i] else 0)
    found = recipe.positions_and_segments(stream.made, seqs, capacity)
    assert found[0].tolist() == positions
    assert found[1].tolist() == segments


# ---------------------------------------------------------------------
# What tests/programs/formats.bats calls

def check_tables(page):
    """Byte tables have no gap and no overlap, and end where they say."""
    for title, end in (("Framed token records", 128),
                       ("Channel table", 64), ("Control records", 32),
                       ("Lengths", 12), ("Header", 4096), ("Blocks", 64),
                       ("Pack heads", 40), ("Index", 24), ("END", 192)):
        rows = table(page, title)
        at = 64 if title == "END" else 0
        for offset, kind, times, name in rows:
            assert offset == at, (title, name, offset, at)
            at += SIZES[kind] * times
        assert at == end, (title, at, end)


def check_limits(page, header):
    """The table of limits is that of packstream/base.h."""
    found = {}
    for line in open(page):
        row = re.match(r"\.It (PS_MAX_\w+|PS_NAME_BYTES) Ta (\d+) Ta", line)
        if row:
            found[row[1]] = int(row[2])
    wanted = {}
    for line in open(header):
        row = re.match(r"#define (PS_MAX_\w+|PS_NAME_BYTES) (.*?) *(/\*|$)",
                       line)
        if row:
            wanted[row[1]] = eval(row[2].replace("UINT32_C", ""))
    assert found == wanted, (found, wanted)


def make_jsonl(_, seed, n, longest, vocab):
    """Prints sequences with channels of several types as JSON Lines."""
    draw = random.Random(int(seed))
    for i in range(int(n)):
        length = min(int(longest), 1 + int(draw.expovariate(0.2)))
        ids = [draw.randrange(int(vocab)) for _ in range(length)]
        print(json.dumps({
            "input_ids": ids,
            "kind": [t % 2 for t in ids],
            "labels": [t - 100 for t in ids],
            "weight": [t / 8 for t in ids],
            "source": i * 3,
            "score": -i / 4}))


def check_jsonl(page, jsonl, path, width):
    """tokcat's token records agree with the JSON."""
    tokens = Tokens(page, open(path, "rb").read())
    rows = [json.loads(line) for line in open(jsonl)]
    assert tokens.head["token_bytes"] == int(width)
    assert len(rows) == len(tokens.rows) > 0
    for wanted, row in zip(rows, tokens.rows):
        wanted["tokens"] = wanted.pop("input_ids")
        assert set(wanted) == set(row)
        for name in row:
            assert row[name].tolist() == np.atleast_1d(
                wanted[name]).tolist(), name


def check_packs(page, token_path, pack_path, width=2):
    """The recipe recovers the token records; no rule is broken."""
    recipe = module(page, "numpy-recipe")
    tokens = Tokens(page, open(token_path, "rb").read(), int(width))
    compare(page, recipe, tokens, pack_path)
    for stream, packs in both(page, recipe, pack_path):
        assert packs.token_bytes == tokens.head["token_bytes"]
        assert packs.compat & 1 == ("magic" in tokens.head)
        check_stream(page, stream, packs)
        for _, _, seqs in stream.packs():
            check_views(recipe, stream, seqs)


def make_listed(page):
    """Lines of JSON with lists, which may be empty, and vectors."""
    draw = random.Random(4)
    for _ in range(200):
        n = draw.randint(1, 20)
        print(json.dumps({
            "input_ids": [draw.randrange(60000) for _ in range(n)],
            "mel": [[draw.random() for _ in range(3)] for _ in range(n)],
            "source": [draw.randrange(99) for _ in range(draw.randrange(30))],
            "edges": [[draw.randrange(n), draw.randrange(n)]
                      for _ in range(draw.randrange(9))]}))


def check_lists(page, token_path, pack_path):
    """The recipe recovers the lists and vectors that another decoder reads."""
    recipe = module(page, "numpy-recipe")
    with open(token_path, "rb") as file:
        schema, sequences = packformat.read_framed(file.read())
    names = ["tokens"] + [name for name, _, _ in schema.channels]
    seen = []
    for stream in streams(page, recipe, pack_path):
        for row in stream.sequences():
            seen.append(int(row["seq_id"]))
            for name, lane in zip(names, sequences[seen[-1]]):
                assert np.asarray(row[name]).tobytes() == lane, name
    assert sorted(seen) == list(range(len(sequences)))


def check_header(page, pack_path, *wanted):
    """The header has the values NAME=NUMBER."""
    head = decode(page, "Header", open(pack_path, "rb").read())
    for text in wanted:
        name, value = text.split("=")
        assert head[name] == int(value), (name, head[name])


def check_split(page, token_path, pack_path):
    """Pieces join to the sequences that they were cut from."""
    recipe = module(page, "numpy-recipe")
    tokens = Tokens(page, open(token_path, "rb").read())
    (stream, packs), = both(page, recipe, pack_path)
    pieces = {}
    for row in stream.sequences():
        number = int(row["seq_id"])
        assert row["full_len"] == len(tokens.rows[number]["tokens"])
        pieces.setdefault(number, {})[int(row["piece_off"])] = row["tokens"]
    assert len(pieces) == len(tokens.rows)
    assert any(len(parts) > 2 for parts in pieces.values())
    for number, parts in pieces.items():
        joined = np.concatenate([parts[at] for at in sorted(parts)])
        assert joined.tolist() == tokens.rows[number]["tokens"].tolist()
        at = 0
        for begin in sorted(parts):
            assert begin == at
            at += len(parts[begin])
    check_stream(page, stream, packs)


def check_sums(page, token_path, pack_path):
    """Every checksum and digest of both formats, by the page's words."""
    made = module(page, "numpy-recipe", "numpy-checksums")
    packs, at = read(pack_path), 0
    while at < len(packs):
        at = made.check_sums(packs, at)
    data = open(token_path, "rb").read()
    tokens = Tokens(page, data)
    size = tokens.head["header_bytes"]
    stored = int.from_bytes(data[size - 8:size], "little")
    assert stored == made.xxh3(data[:size - 8])
    assert tokens.end["digest"] == chain(made.xxh3, tokens.records)


def find_flips(page, pack_path):
    """The recipe for checksums sees a flipped bit in any byte."""
    made = module(page, "numpy-recipe", "numpy-checksums")
    data = read(pack_path)
    for at in range(len(data)):
        data[at] ^= 1 << at % 8
        try:
            made.check_sums(data)
        except ValueError:
            data[at] ^= 1 << at % 8
            continue
        raise AssertionError("byte %d" % at)


def make_framed(page, path, *order):
    """A framed stream with a channel of every type, made from the page."""
    draw = np.random.RandomState(7)
    kinds = {"token": 1, "sequence": 2}
    channels = [("c%d%s" % (number, kind[0]), number, kinds[kind],
                 (1 << 8 * np.dtype(TYPES[number]).itemsize) - number)
                for kind in order for number in TYPES]
    rows = []
    for _ in range(200):
        n = 1 + draw.randint(20)
        row = {"tokens": draw.randint(0, 60000, n).astype("<u2")}
        for name, number, kind, _ in channels:
            kind = np.dtype(TYPES[number]).itemsize * (n if kind == 1 else 1)
            row[name] = np.frombuffer(draw.bytes(kind), TYPES[number])
        rows.append(row)
    head = {"token_bytes": 2, "labels": 2, "vocab_size": 60000,
            "special": (60001, 1, 2, NONE, 4, 5),
            "tokenizer": tuple(range(32))}
    with open(path, "wb") as file:
        file.write(write_framed(page, channels, rows, head))


def check_short(page):
    """The lines for the first block of a file with the name x.pks."""
    made = module(page, "numpy-short")
    assert made.rows["tokens"].shape == (made.n, made.row["tokens"].shape[0])
    assert made.heads["n_seq"].sum() == made.n_seqs == len(made.seqs)
    assert made.heads["n_tok"].sum() == made.seqs["seq_tok"].sum()
    print(made.n)


def refuse(page, pack_path, why):
    """The recipe refuses the file with a message."""
    recipe = module(page, "numpy-recipe")
    try:
        for stream in streams(page, recipe, pack_path):
            pass
    except ValueError as error:
        assert why in str(error), error
    else:
        raise AssertionError("not refused")


def print_block(page, name):
    sys.stdout.write(block(page, name))


if __name__ == "__main__":
    globals()[sys.argv[2]](sys.argv[1], *sys.argv[3:])
