"""formats.py - reads and writes the formats as packstream(5) defines them.

This is the stranger for whom the page was written: it shares no code with
the library.  Offsets and types of headers come from the byte tables of the
page itself; the recipes of the page are extracted and imported as they
stand.  tests/programs/formats.bats calls the functions at the end by name:

    python3 formats.py PAGE CHECK [ARGUMENT]...

A check prints nothing and exits with 0, or fails with a traceback.

SPDX-License-Identifier: MIT
"""

import ast
import importlib.util
import itertools
import json
import random
import re
import struct
import sys

import numpy as np

from packformat import offer_xxhash

offer_xxhash()

TYPES = {1: "<u1", 2: "<u2", 3: "<u4", 4: "<u8", 5: "<i4", 6: "<i8",
         7: "<f4", 8: "<f8"}
SIZES = {"u8": 1, "u16": 2, "u32": 4, "u64": 8}
LETTERS = {"u8": "B", "u16": "H", "u32": "I", "u64": "Q"}
FRAMED, PACKS = b"\x89TOK\r\n\x1a\n", b"\x89PKS\r\n\x1a\n"
NONE = 0xffffffff
UNKNOWN = 0xffffffffffffffff


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
    """The code behind the comment "test: NAME"."""
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
    """What the byte table says that `data` holds: {name: value}."""
    values = {}
    for offset, kind, times, name in table(page, title):
        found = struct.unpack_from("<%d%s" % (times, LETTERS[kind]), data,
                                   offset)
        values[name] = found if times > 1 else found[0]
    return values


# ---------------------------------------------------------------------
# Token records

class Tokens:
    """A stream of token records: what its header says, and its rows."""

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

def streams(recipe, path):
    """Every stream of a file, as the recipe opens them."""
    at, size = 0, len(open(path, "rb").read())
    while at < size:
        begin = at
        fields, packs, end, at = recipe.open_stream(path, at)
        yield begin, fields, packs, end, at
    assert at == size


def same(a, b):
    """Equal bit for bit; a per-sequence value counts as one element."""
    a, b = np.atleast_1d(a), np.atleast_1d(b)
    return a.dtype == b.dtype and a.tobytes() == b.tobytes()


def compare(recipe, tokens, path):
    """The packs of a file hold the rows of `tokens`, each once."""
    base = 0
    for _, fields, packs, end, _ in streams(recipe, path):
        seen = set()
        for row in recipe.sequences(fields, packs):
            number = int(row.pop("seq_id"))
            wanted = tokens.rows[base + number]
            assert row.pop("seq_tok", len(wanted["tokens"])) == \
                len(wanted["tokens"])
            assert number not in seen
            seen.add(number)
            assert set(row) == set(wanted), (set(row), set(wanted))
            for name in row:
                assert same(row[name], wanted[name]), (number, name)
        base += max(seen, default=-1) + 1
    assert base == len(tokens.rows), (base, len(tokens.rows))


def fill_of(field):
    """The fill of a field of the table, as one element."""
    return field["fill"].tobytes()[:field["bytes"]]


def lengths_in(pack):
    """Tokens of the sequences of a pack, aligned or not."""
    n = int(pack["n_seq"])
    if "seq_tok" in pack.dtype.names:
        return [int(x) for x in pack["seq_tok"][:n]]
    return [int(pack["cu"][i + 1]) - int(pack["cu"][i]) for i in range(n)]


def check_pack(fields, pack, capacity, depth, align=1):
    """The rules for one pack, and what stands in its unused places."""
    n, n_tok, cu = int(pack["n_seq"]), int(pack["n_tok"]), pack["cu"]
    lengths = lengths_in(pack)
    assert pack["magic"].tobytes() == b"PKSR" and pack["flags"] == 0
    assert 1 <= n <= depth and 1 <= n_tok <= capacity
    assert len(cu) == depth + 2 and cu[0] == 0
    assert min(lengths) > 0 and (cu[n + 1:] == capacity).all()
    assert sum(lengths) == n_tok and cu[n] <= capacity
    assert pack["max_seqlen"] == max(lengths)
    assert int(pack["sum_len_sq"]) == sum(x ** 2 for x in lengths)
    used = np.zeros(capacity, bool)
    for begin, behind, length in zip(cu, cu[1:], lengths):
        assert begin % align == 0
        assert behind - begin == -(-length // align) * align
        used[begin:begin + length] = True
    for field in fields:
        values = pack[field["name"].decode()]
        assert len(values) == field["count"]
        unused = {1: ~used, 2: slice(n, None),
                  3: slice(n + 1, None)}[int(field["kind"])]
        rest = values[unused]
        assert rest.tobytes() == fill_of(field) * len(rest), field


def check_gaps(path, begin, fields, behind):
    """Bytes of the records that no field has are zero."""
    raw = np.memmap(path, "u1", "r", begin, (behind - begin,))
    size = int(raw[20:24].view("<u4")[0])
    used = np.zeros(size, bool)
    used[:52] = True
    for field in fields:
        first = int(field["offset"])
        assert not used[first:first + field["count"] * field["bytes"]].any()
        used[first:first + field["count"] * field["bytes"]] = True
    packs = raw[4096:].reshape(-1, size)[:-1]
    assert not packs[:, ~used].any()


def check_layout(head, fields):
    """Offsets follow from counts and sizes, as the page has it."""
    at = 64
    for field in fields:
        unit = 64 if field["name"] == b"tokens" else 16
        at = -(-at // unit) * unit
        assert field["offset"] == at, field
        at += int(field["count"]) * int(field["bytes"])
    assert head["record_bytes"] == max(256, -(-at // 64) * 64)


def total(packs, name):
    return sum(packs[name].tolist())


def check_books(page, path, packs, end, behind):
    """END agrees with the packs."""
    with open(path, "rb") as file:
        file.seek(behind - packs.dtype.itemsize)
        raw = file.read(packs.dtype.itemsize)
    found = decode(page, "END record", raw)
    assert not any(raw[180:])
    longest = [max(lengths_in(p)) for p in packs]
    assert end["flags"] == 1 and end["index"] == len(packs)
    assert end["n_seq"] == end["n_tok"] == 0
    assert int(end["watermark"]) == found["input_sequences"]
    assert (packs["index"] == np.arange(len(packs))).all()
    assert found["packs"] == len(packs)
    assert found["sequences"] == total(packs, "n_seq")
    assert found["tokens"] == total(packs, "n_tok")
    assert found["max_depth"] == max(packs["n_seq"], default=0)
    assert found["min_fill"] == min(packs["n_tok"], default=0)
    assert found["max_seqlen"] == max(longest, default=0)
    assert (found["input_sequences"] + found["extra_pieces"] ==
            found["sequences"] + found["rejected_sequences"])
    assert (found["input_tokens"] == found["tokens"] +
            found["rejected_tokens"] + found["truncated_tokens"])
    check_delay(packs, found["max_displacement"])


def check_delay(packs, max_displacement):
    """Watermarks tell the truth; the displacement is as defined."""
    greatest, worst, mark = -1, 0, 0
    later = [int(p["seq_id"][:p["n_seq"]].min()) for p in packs] + [UNKNOWN]
    later = list(itertools.accumulate(later[::-1], min))[::-1]
    for i, pack in enumerate(packs):
        ids = pack["seq_id"][:pack["n_seq"]].astype(int)
        greatest = max(greatest, ids.max())
        worst = max(worst, greatest - ids.min())
        assert int(pack["watermark"]) >= mark
        mark = int(pack["watermark"])
        assert later[i + 1] >= mark
    assert worst == max_displacement, (worst, max_displacement)


def check_views(recipe, pack):
    """Positions and segments, worked out the slow way."""
    capacity, n = int(pack["cu"][-1]), int(pack["n_seq"])
    edges = [int(x) for x in pack["cu"][:n + 1]] + [capacity]
    ends = [edges[i] + x for i, x in enumerate(lengths_in(pack))] + [0]
    positions, segments = [], []
    for i in range(n + 1):
        for t in range(edges[i], edges[i + 1]):
            positions.append(t - edges[i])
            segments.append(i + 1 if t < ends[i] else 0)
    found = recipe.positions_and_segments(pack)
    assert found[0].tolist() == positions
    assert found[1].tolist() == segments


# ---------------------------------------------------------------------
# What tests/programs/formats.bats calls

def check_tables(page):
    """Byte tables have no gap and no overlap, and end where they say."""
    for title, end in (("Framed token records", 128),
                       ("Channel table", 64), ("Control records", 32), ("Lengths", 12),
                       ("Header", 4096), ("Record head", 64),
                       ("END record", 180)):
        rows = table(page, title)
        at = 64 if title == "END record" else 0
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
    """The token records that tokcat made say what the JSON says."""
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
    """The recipe gives the token records back; every rule is kept."""
    recipe = module(page, "numpy-recipe")
    tokens = Tokens(page, open(token_path, "rb").read(), int(width))
    compare(recipe, tokens, pack_path)
    data = open(pack_path, "rb").read()
    for begin, fields, packs, end, behind in streams(recipe, pack_path):
        head = decode(page, "Header", data[begin:])
        assert bytes(head["magic"]) == PACKS
        assert head["endian"] == 0x01020304 and head["major"] == 1
        assert head["n_fields"] == len(fields)
        assert head["token_bytes"] == tokens.head["token_bytes"]
        assert head["compat"] & 1 == ("magic" in tokens.head)
        assert head["incompat"] == (head["align"] > 1)
        for name, count in (("n_records", len(packs)),
                            ("n_sequences", total(packs, "n_seq")),
                            ("n_tokens", total(packs, "n_tok"))):
            assert head[name] in (UNKNOWN, count)
        check_layout(head, fields)
        check_gaps(pack_path, begin, fields, behind)
        check_books(page, pack_path, packs, end, behind)
        for pack in packs:
            check_pack(fields, pack, head["capacity"], head["depth"],
                       head["align"] or 1)
            check_views(recipe, pack)


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
    fields, packs, end, behind = recipe.open_stream(pack_path)
    pieces = {}
    for row in recipe.sequences(fields, packs):
        number = int(row["seq_id"])
        assert row["seq_len"] == len(tokens.rows[number]["tokens"])
        pieces.setdefault(number, {})[int(row["seq_off"])] = row["tokens"]
    assert len(pieces) == len(tokens.rows)
    assert any(len(parts) > 2 for parts in pieces.values())
    for number, parts in pieces.items():
        joined = np.concatenate([parts[at] for at in sorted(parts)])
        assert joined.tolist() == tokens.rows[number]["tokens"].tolist()
        at = 0
        for begin in sorted(parts):
            assert begin == at
            at += len(parts[begin])
    check_books(page, pack_path, packs, end, behind)
    for pack in packs:
        check_pack(fields, pack, int(pack["cu"][-1]), len(pack["cu"]) - 2)


def check_sums(page, token_path, pack_path):
    """Every checksum and digest of both formats, by the page's words."""
    made = module(page, "numpy-recipe", "numpy-checksums")
    for begin, _, _, _, behind in streams(made, pack_path):
        made.check_sums(pack_path, begin, behind)
    data = open(token_path, "rb").read()
    tokens = Tokens(page, data)
    size = tokens.head["header_bytes"]
    stored = int.from_bytes(data[size - 8:size], "little")
    assert stored == made.xxh3(data[:size - 8])
    assert tokens.end["digest"] == chain(made.xxh3, tokens.records)


def find_flips(page, pack_path):
    """The recipe for checksums sees a flipped bit in any byte."""
    made = module(page, "numpy-recipe", "numpy-checksums")
    data = open(pack_path, "rb").read()
    for at in range(len(data)):
        with open("flipped.pks", "wb") as file:
            file.write(data[:at])
            file.write(bytes([data[at] ^ 1 << at % 8]))
            file.write(data[at + 1:])
        try:
            made.check_sums("flipped.pks", 0, len(data))
        except ValueError:
            continue
        raise AssertionError("byte %d" % at)


def make_framed(page, path, *order):
    """A framed stream with a channel of every type, made by the page."""
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
    """The three lines for a file with the name x.pks."""
    made = module(page, "numpy-short")
    assert isinstance(ast.literal_eval(made.text.decode()), dict)
    assert made.records["flags"][-1] == 1
    assert made.records["tokens"].shape[0] == len(made.records)
    print(len(made.records) - 1)


def refuse(page, pack_path, why):
    """The recipe refuses the file, and says so."""
    recipe = module(page, "numpy-recipe")
    try:
        for stream in streams(recipe, pack_path):
            pass
    except ValueError as error:
        assert why in str(error), error
    else:
        raise AssertionError("not refused")


def print_block(page, name):
    sys.stdout.write(block(page, name))


if __name__ == "__main__":
    globals()[sys.argv[2]](sys.argv[1], *sys.argv[3:])
