#!/usr/bin/env python3
"""differential.py - packstream against a second decoder, on random options.

    differential.py [--count=N] [--seed=S] [--plant] [BUILD]

draws N sets (30) of options, sequences and ways to bring them, packs each
with the packstream of a build folder, or of PATH, and decodes what comes out
with the recipes of packstream(5) and tests/support/formats.py, which share no
code with the library.  Compared with what went in are all sequences with all
channels, where the page and packstream(1) promise one their order, the header,
END, rejects and the statistics; packcat has to give the input back, packstat
to find nothing.

With --plant a number of each decoded array is changed before it is compared,
which has to be noticed every time.  Set S is the first; the same number makes
the same set.

SPDX-License-Identifier: MIT
"""

import argparse
import collections
import json
import os
import random
import shutil
import struct
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
PAGE = os.path.join(HERE, "..", "man", "packstream.5")
sys.path.insert(0, os.path.join(HERE, "support"))

import numpy as np  # noqa: E402

import formats  # noqa: E402
from packdraw import draw_lengths, draw_schema  # noqa: E402
from packformat import (NO_ID, PER_SEQUENCE, PER_TOKEN, TYPES,  # noqa: E402
                        read_framed)
from packwrite import TokenStream  # noqa: E402

ALGORITHMS = "auto spfhp nnlshp bestfit nextfit none concat".split()
SORTED = "nextfit", "none", "concat"
OVERLONG = {"drop": 1, "truncate": 2}
OUT_OF_VOCAB = 3


# ---------------------------------------------------------------------
# What goes in

class Case:
    """A set of options, and the sequences that are packed with them."""

    def __init__(self, seed):
        self.rng = rng = random.Random(seed)
        self.schema = draw_schema(rng)
        self.numbers = np.random.RandomState(seed)
        self.draw_packing()
        self.draw_handling()
        self.fills = [rng.getrandbits(8 * TYPES[name][1])
                      for _, name, _ in self.schema.channels]
        self.sequences = list(map(self.draw_sequence, self.draw_lengths()))
        self.copies = rng.choice([1] * 9 + [2])

    def draw_packing(self):
        rng = self.rng
        self.capacity = rng.choice([1, 2, 7, 16, 64, 336])
        self.algorithm = rng.choice(ALGORITHMS)
        self.depth = rng.choice([1, 2, 3, 8, 500, None])
        self.window = rng.choice([1, 2, 5, 40, 1000])
        self.align = rng.choice([n for n in (1, 1, 1, 1, 2, 4, 7, 8, 16)
                                 if self.capacity % n == 0])
        self.order = rng.choice(["window", "window", "input", "shuffle"])
        self.shuffle = rng.randrange(1, 2**32)
        self.delay = rng.choice([None, None, 1, 3, 50, 5000])
        self.even_cost = rng.random() < 0.2
        self.flush_every = rng.choice([None] * 4 + [1, 9])
        self.block_packs = rng.choice([None, 1, 2, 16])

    def draw_handling(self):
        rng, schema = self.rng, self.schema
        self.overlong = rng.choice(["error", "drop", "truncate", "split"])
        if self.algorithm == "concat":
            self.overlong = "error"
        self.vocab = 0                  # what the option says
        if not schema.vocab and rng.random() < 0.3:
            self.vocab = rng.choice([2, 999, 60000])
        self.outside = bool(self.vocab) and rng.random() < 0.7
        self.empty = not schema.framed and rng.random() < 0.2
        self.rejects = rng.random() < 0.7 and len(schema.channels) <= 21 and (
            self.overlong in OVERLONG or self.outside)
        self.flushes = not self.empty and rng.random() < 0.2
        self.memory = rng.random() < 0.15
        if self.memory:
            self.block_packs = 16
        self.pad = rng.choice([None, 0, 65535])
        self.zstd = rng.choice([0, 0, 1, 3, 7])
        self.threads = rng.choice([1, 1, 2, 4])
        self.files = rng.choice([1, 1, 2, 3])
        self.compressed = rng.random() < 0.15 and shutil.which("zstd")

    def draw_lengths(self):
        reach = 1 if self.overlong == "error" and \
            self.algorithm != "concat" else 3
        n = self.rng.choice([0, 1, 2, 30, 30, 200])
        for length in draw_lengths(self.rng, n, reach * self.capacity):
            yield 0 if self.empty and self.rng.random() < 0.1 else length

    def draw_sequence(self, length):
        """Its lanes, see packformat.py."""
        width = self.schema.width
        top = self.vocab or (65536 if width == 2 or self.schema.vocab
                             else 2**32)
        if self.outside and self.rng.random() < 0.1:
            top = 65536
        tokens = self.numbers.randint(0, top, length, np.uint32)
        lanes = [tokens.astype("<u%d" % width).tobytes()]
        for kind, size in self.schema.lanes()[1:]:
            lanes.append(self.numbers.bytes(
                size * (length if kind == PER_TOKEN else 1)))
        return lanes

    def options(self):
        words = ["-q", "-L", self.capacity, "-w", self.window, "-a", self.algorithm, "-T", self.threads,
                 "-t", "u%d" % (8 * self.schema.width), "--stats=json"]
        words += ["-d%s" % self.depth] * bool(self.depth)
        words += ["--block-packs=%s" % self.block_packs] * bool(
            self.block_packs)
        words += ["--overlong=" + self.overlong] * (self.overlong != "error")
        words += ["--align=%d" % self.align] * (self.align > 1)
        words += ["--order=input"] * (self.order == "input")
        words += ["--shuffle=%d" % self.shuffle] * (self.order == "shuffle")
        words += ["--max-delay=%s" % self.delay] * (self.delay is not None)
        words += ["--even-cost"] * self.even_cost
        words += ["--flush-every=%s" % self.flush_every] * bool(
            self.flush_every)
        words += ["--vocab=%d" % self.vocab] * bool(self.vocab)
        words += ["--out-of-vocab=drop"] * self.outside
        words += ["--empty=drop"] * self.empty
        words += ["--flush-records"] * (self.flushes and
                                        not self.schema.framed)
        words += ["--rejects=rejects"] * self.rejects
        words += ["-M64Mi" if self.zstd else "-M16Mi"] * self.memory
        words += ["--pad-id=%s" % self.pad] * (self.pad is not None)
        words += ["--zstd=%d" % self.zstd] * bool(self.zstd)
        return list(map(str, words))

    def write_inputs(self):
        """The sequences in files, each as one stream or as two joined."""
        names, parts = [], sorted(self.rng.randint(0, len(self.sequences))
                                  for _ in range(self.files - 1))
        for i, (first, behind) in enumerate(zip(
                [0] + parts, parts + [len(self.sequences)])):
            middle = self.rng.choice([first, (first + behind) // 2])
            data = b"".join(self.stream(part, self.flushes) for part in (
                self.sequences[first:middle], self.sequences[middle:behind]))
            if self.compressed:
                data = subprocess.run(["zstd", "-qc"], input=data, check=True,
                                      stdout=subprocess.PIPE).stdout
            names.append("in%d" % i)
            with open(names[-1], "wb") as file:
                file.write(data)
        return names

    def stream(self, sequences, flushes=False):
        """Token records of them, with flush records here and there."""
        framed = self.schema.framed
        stream = TokenStream(self.schema, sequences, self.fills)
        for i in range(len(sequences), 0, -1):
            if flushes and self.rng.random() < 0.1:
                stream.records.insert(i, struct.pack("<I", 0) +
                                      struct.pack("<I", 2) * framed)
        return stream.bytes() if framed else b"".join(stream.records)


class Wanted:
    """What has to become of the sequences of a case."""

    def __init__(self, case):
        self.kept, self.rejected = {}, []
        self.counts = counts = collections.Counter()
        length = case.schema.length
        for number, sequence in enumerate(case.sequences):
            n, reason = length(sequence), self.fate(case, sequence)
            counts["input_sequences"] += 1
            counts["input_tokens"] += n
            if reason and n:
                self.rejected.append((number, sequence, reason))
            if reason == OVERLONG["truncate"]:
                counts["truncated_sequences"] += 1
                counts["truncated_tokens"] += n - case.capacity
                sequence = case.schema.cut(sequence, 0, case.capacity)
            elif reason:
                counts["rejected_sequences"] += 1
                counts["rejected_tokens"] += n
                continue
            self.kept[number] = sequence

    def fate(self, case, sequence):
        """0 if it is packed whole, or the reason for its rejection."""
        n = case.schema.length(sequence)
        long = n > case.capacity and OVERLONG.get(case.overlong, 0)
        tokens = np.frombuffer(sequence[0], "<u%d" % case.schema.width)
        if n == 0:
            return OVERLONG["drop"]
        if long == OVERLONG["drop"]:
            return long
        if case.vocab and (tokens >= case.vocab).any():
            return OUT_OF_VOCAB
        return long


# ---------------------------------------------------------------------
# What comes out

def plant(stream, rng):
    """Changes one number; False if there is none."""
    blocks = [block for block in stream.blocks if len(block.heads)]
    if not blocks:
        return False
    values = getattr(rng.choice(blocks), rng.choice(["rows", "heads",
                                                     "seqs"]))
    name = rng.choice([name for name in values.dtype.names
                       if name not in ("checksum", "watermark")])
    place = tuple(map(rng.randrange, values[name].shape))
    value = values[name][place].reshape(1).copy()
    value.view("u1")[rng.randrange(value.nbytes)] ^= 1 << rng.randrange(8)
    values[name][place] = value[0]
    return True


def check_header(case, head, fields):
    schema = case.schema
    shuffled = case.order == "shuffle"
    most = case.capacity // case.align
    depth = 1 if case.algorithm == "none" else min(case.depth or 0, most)
    window = case.window
    if case.algorithm in ("nextfit", "concat"):  # a whole pack is open
        window = max(window, depth or most)
    delay = case.delay or window * (4 if shuffled else 2)
    pad = case.pad if case.pad is not None else schema.special[0]
    wanted = dict(
        endian=0x01020304, major=2, minor=0, header_bytes=4096,
        capacity=case.capacity, window=delay, labels=schema.labels,
        depth=depth,
        vocab_size=schema.vocab if schema.framed else case.vocab,
        incompat=case.align > 1, compat=schema.framed,
        special=tuple(schema.special), token_bytes=schema.width,
        seed=case.shuffle if shuffled else 0,
        pad_id=0 if pad == NO_ID else pad,
        align=case.align if case.align > 1 else 0, n_fields=len(fields),
        block_packs=case.block_packs or default_block(head["row_bytes"]))
    wanted.update((name, formats.UNKNOWN) for name in (
        "n_packs", "n_sequences", "n_tokens", "max_seqlen", "min_fill"))
    for name, value in wanted.items():
        assert head[name] == value, (name, head[name], value)
    for field, (name, its, kind), fill in zip(
            sorted((f for f in fields if f["source"]),
                   key=lambda f: f["source"]), schema.channels, case.fills):
        assert (formats.name_of(field), field["type"], field["kind"],
                field["fill"]) == (name, TYPES[its][0], kind, fill)
    formats.check_layout(head, fields)


def default_block(row_bytes):
    """Packs of a block whose rows and heads have 1 MiB or more."""
    packs = 1
    while packs * (row_bytes + 40) < 1 << 20 and packs < 65536:
        packs *= 2
    return packs


def check_blocks(case, stream):
    """Blocks are closed when they are full, at a flush and at the end."""
    blocks = [block for block in stream.blocks if block.kind == 0]
    size = stream.head["seq_bytes"]
    for block, after in zip(blocks, blocks[1:]):
        rows = block.seqs.nbytes + size * int(after.heads["n_seq"][0])
        assert (len(block.heads) == stream.head["block_packs"] or
                rows > 1 << 20 or case.flushes or case.flush_every)


def check_sequences(case, stream, wanted):
    """All are there, once, whole, with the values that they had; gives ids
    and offsets in the order of the packs, and the pack of each."""
    names = ["tokens"] + [name for name, _, _ in case.schema.channels]
    found, places = collections.defaultdict(dict), []
    packs = [i for i, pack in enumerate(stream.packs()) for _ in pack[2]]
    for i, row in zip(packs, stream.sequences()):
        number, n = int(row["seq_id"]), len(row["tokens"])
        offset = int(row.get("piece_off", 0))
        assert number in wanted.kept, number
        length = case.schema.length(wanted.kept[number])
        assert row.get("full_len", length) == length, number
        assert offset not in found[number], number
        found[number][offset] = row
        places.append((number, offset, i))
        if case.overlong == "split":
            assert n == min(case.capacity, length - offset)
    assert set(found) == set(wanted.kept)
    for number, pieces in found.items():
        rows, at = [pieces[offset] for offset in sorted(pieces)], 0
        for offset, row in zip(sorted(pieces), rows):
            assert offset == at, number
            at += len(row["tokens"])
        for name, (kind, _), lane in zip(names, case.schema.lanes(),
                                         wanted.kept[number]):
            parts = [np.atleast_1d(row[name]).tobytes() for row in rows]
            if kind == PER_SEQUENCE:
                assert set(parts) == {lane}, (number, name)
            else:
                assert b"".join(parts) == lane, (number, name)
    wanted.counts["split_sequences"] = sum(len(p) > 1 for p in found.values())
    wanted.counts["extra_pieces"] = len(places) - len(found)
    return places


def check_order(case, stream, places):
    """What the options promise, and the bound that the window is."""
    if not places:
        return
    ids, _, packs = map(np.array, zip(*places))
    if case.order == "input":
        firsts = [ids[packs == i].min() for i in range(packs[-1] + 1)]
        assert firsts == sorted(firsts)
    if case.algorithm in SORTED and case.order != "shuffle":
        assert places == sorted(places)
    overtaken = (ids[None, :] > ids[:, None]) & (packs[None, :] <
                                                 packs[:, None])
    assert overtaken.sum(1).max() <= stream.head["window"]


def check_counts(stream, wanted):
    """END and the packs agree with each other and with the input."""
    formats.check_books(PAGE, stream)
    end = stream.end
    for name in ("input_sequences", "input_tokens", "rejected_sequences",
                 "rejected_tokens", "truncated_sequences", "truncated_tokens",
                 "split_sequences", "extra_pieces"):
        assert end[name] == wanted.counts[name], (name, end[name],
                                                  wanted.counts[name])


def check_stats(case, stream, told):
    """What --stats=json printed is what the packs make."""
    stats, end = json.loads(told), stream.end
    n, tokens = end["packs"], end["tokens"]
    wanted = {name: end[name] for name in end
              if name not in ("digest", "n_parts", "n_blocks", "")}
    wanted.update(
        capacity=case.capacity, depth=stream.head["depth"] or None,
        rejected=end["rejected_sequences"],
        padding=n * case.capacity - tokens,
        lower_bound=-(-tokens // case.capacity))
    for name, value in wanted.items():
        assert stats[name] == value, (name, stats[name], value)
    for name, value in (("efficiency", n and tokens / (n * case.capacity)),
                        ("packing_factor", n and end["sequences"] / n)):
        assert abs((stats[name] or 0) - value) < 1e-8, name


def check_rejects(case, wanted):
    with open("rejects", "rb") as file:
        schema, found = read_framed(file.read(), False)
    assert schema.channels == case.schema.channels + [
        ("source_id", "u64", PER_SEQUENCE), ("reason", "u8", PER_SEQUENCE)]
    assert found == [
        sequence + [struct.pack("<Q", number), bytes([reason])]
        for number, sequence, reason in wanted.rejected]


# ---------------------------------------------------------------------
# One set

def run(*command, data=None):
    done = subprocess.run(list(map(str, command)), input=data,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          timeout=600)
    told = done.stderr.decode()
    assert done.returncode == 0, (command, done.returncode, told)
    return done.stdout, told


def check_packs(case, recipe, streams, wanted, told):
    assert len(streams) == case.copies
    for stream in streams:
        check_header(case, stream.head, stream.fields)
        recipe.check_sums(stream.data, stream.begin)
        formats.check_gaps(stream)
        for i, pack in enumerate(stream.packs()):
            formats.check_pack(stream, pack)
            if i < 2:
                formats.check_views(recipe, stream, pack[2])
        check_blocks(case, stream)
        places = check_sequences(case, stream, wanted)
        check_order(case, stream, places)
        check_counts(stream, wanted)
        check_stats(case, stream, told)


def check_programs(case, wanted, inputs, made):
    """packcat gives back what was kept, and packstat finds nothing."""
    again, _ = run("packcat", data=made)
    assert again == case.stream(list(wanted.kept.values()) * case.copies)
    run("packstat", "--verify", "-q", data=made)
    against = ["--against=" + name for name in inputs * case.copies]
    if case.rejects and case.copies == 1:
        against.append("--rejects=rejects")
    against += ["--vocab=%d" % case.vocab] * bool(case.vocab)
    against += ["--empty"] * case.empty
    run("packstat", "--verify", "-q", *against, data=made)


def try_set(seed, recipe, planting):
    """One set; True if it was done.  With `planting` it has to fail."""
    case = Case(seed)
    wanted = Wanted(case)
    inputs = case.write_inputs()
    made, told = run("packstream", *case.options(), *inputs)
    made *= case.copies
    plain = run("zstd", "-qdc", data=made)[0] if case.zstd else made
    with open("out.pks", "wb") as file:
        file.write(plain)
    streams = list(formats.streams(PAGE, recipe, "out.pks"))
    if not planting:
        check_packs(case, recipe, streams, wanted, told)
        if case.rejects:
            check_rejects(case, wanted)
        check_programs(case, wanted, inputs, made)
        return True
    if not plant(case.rng.choice(streams), case.rng):
        return False
    try:
        check_packs(case, recipe, streams, wanted, told)
    except (AssertionError, ValueError, IndexError, KeyError):
        return True
    raise AssertionError("a changed number is not noticed")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--count", type=int, default=30)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--plant", action="store_true")
    parser.add_argument("build", nargs="?")
    conf = parser.parse_args()
    if conf.build:
        build = os.path.abspath(conf.build)
        os.environ["PATH"] = os.pathsep.join(
            [os.path.join(build, ".libs"), build, os.environ["PATH"]])
        os.environ["LD_LIBRARY_PATH"] = os.path.join(build, ".libs")
    done = failed = 0
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        recipe = formats.module(PAGE, "numpy-recipe", "numpy-checksums")
        for seed in range(conf.seed, conf.seed + conf.count):
            try:
                done += try_set(seed, recipe, conf.plant)
            except Exception as error:
                failed += 1
                print("set %d: %s: %s\n    packstream %s" % (
                    seed, type(error).__name__, error,
                    " ".join(Case(seed).options())))
        os.chdir("/")
    print("%d sets, %d differ" % (done + failed, failed) if not conf.plant
          else "%d numbers changed, %d not noticed" % (done + failed, failed))
    return failed > 0


if __name__ == "__main__":
    sys.exit(main())
