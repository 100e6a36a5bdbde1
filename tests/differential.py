#!/usr/bin/env python3
"""differential.py - packstream against a second decoder, on random options.

    differential.py [--count=N] [--seed=S] [--plant] [BUILD]

draws N sets (30) of options, sequences and ways to supply them, packs each
with the packstream of a build folder, or of PATH, and decodes the output with
tests/support/packformat.py, which shares no code with the library and checks
every rule of packstream(5).  Then it compares with the input: all sequences
with all channels, in order if the page and packstream(1) guarantee one, the
header, END, rejects and the statistics.  packcat has to restore the input, and
packstat to find no errors.

With --plant a bit of the rows, heads or sequence rows is flipped, which has to
be noticed every time, although checksums are not compared.  S is the first
seed; the same seed makes the same set.

SPDX-License-Identifier: MIT
"""

import argparse
import collections
import json
import os
import random
import re
import shutil
import struct
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "support"))

import numpy as np  # noqa: E402

import packformat  # noqa: E402
from packdraw import draw_lengths, draw_schema  # noqa: E402
from packformat import (NO_ID, OF_PACKS, PER_SEQUENCE, PER_TOKEN,  # noqa: E402
                        UNKNOWN, element, hash_of, read_framed)
from packwrite import TokenStream  # noqa: E402

ALGORITHMS = "auto spfhp nnlshp bestfit nextfit none concat".split()
SORTED = "nextfit", "none", "concat"
OVERLONG = {"drop": 1, "truncate": 2}
OUT_OF_VOCAB = 3


# ---------------------------------------------------------------------
# Input

class Case:
    """A set of options, and the sequences to pack with them."""

    def __init__(self, seed):
        self.rng = rng = random.Random(seed)
        self.schema = draw_schema(rng)
        self.numbers = np.random.RandomState(seed)
        self.draw_packing()
        self.draw_handling()
        self.fills = [rng.getrandbits(8 * element(name)[1])
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
        self.vocab = 0                  # --vocab, if given
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
        self.compressed = rng.random() < 0.15 and not self.memory and \
            shutil.which("zstd")

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
        words = ["-q", "-L", self.capacity, "-w", self.window,
                 "-a", self.algorithm, "-T", self.threads,
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
        words += ["--pad-id=%s" % self.pad] * (self.pad is not None)
        words += ["--zstd=%d" % self.zstd] * bool(self.zstd)
        return list(map(str, words))

    def write_inputs(self):
        """The sequences in files, each one stream or two joined."""
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
        """Token records of the sequences, with some flush records."""
        framed = self.schema.framed
        stream = TokenStream(self.schema, sequences, self.fills)
        for i in range(len(sequences), 0, -1):
            if flushes and self.rng.random() < 0.1:
                stream.records.insert(i, struct.pack("<I", 0) +
                                      struct.pack("<I", 2) * framed)
        return stream.bytes() if framed else b"".join(stream.records)


class Wanted:
    """The expected fate of each sequence of a case."""

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
# Output

class Agrees(int):
    """A checksum that equals any other."""

    def __eq__(self, _):
        return True


def plant(data, stream, rng):
    """Changes one bit; False if there is no pack."""
    blocks = [block for block in stream.blocks if block.kind == OF_PACKS]
    if not blocks:
        return False
    block = rng.choice(blocks)
    rows, heads = block.n_packs * stream.row_bytes, block.n_packs * 40
    at = block.at + 64
    what = rng.choice(["rows", "heads", "sequence rows"])
    if what == "rows":
        at += rng.randrange(rows)
    elif what == "heads":       # from first_seq to sum_len_sq
        at += rows + 40 * rng.randrange(block.n_packs) + rng.randrange(8, 32)
    else:
        at += rows + heads + rng.randrange(block.n_seqs * stream.seq_bytes)
    data[at] ^= 1 << rng.randrange(8)
    return True


def check_header(case, stream):
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
        minor=0, capacity=case.capacity, window=delay, labels=schema.labels,
        depth=depth, vocab_size=schema.vocab if schema.framed else case.vocab,
        compat=schema.framed, token_bytes=schema.width,
        seed=case.shuffle if shuffled else 0,
        pad_id=0 if pad == NO_ID else pad, align=case.align,
        block_packs=case.block_packs or default_block(stream.row_bytes))
    wanted.update((name, UNKNOWN) for name in (
        "n_packs", "n_sequences", "n_tokens", "max_seqlen", "min_fill"))
    for name, value in wanted.items():
        assert getattr(stream, name) == value, (
            name, getattr(stream, name), value)
    assert stream.schema.special == tuple(schema.special)
    assert stream.schema.channels == schema.channels
    assert [stream.fields[name].fill for name, _, _ in schema.channels] == \
        case.fills


def default_block(row_bytes):
    """Packs of a block whose rows and heads have 1 MiB or more."""
    packs = 1
    while packs * (row_bytes + 40) < 1 << 20 and packs < 65536:
        packs *= 2
    return packs


def check_blocks(case, stream):
    """Blocks are closed when full, at a flush and at the end."""
    blocks = [block for block in stream.blocks if block.kind == OF_PACKS]
    for block, after in zip(blocks, blocks[1:]):
        rows = block.n_seqs + stream.heads[after.first].n_seq
        assert (block.n_packs == stream.block_packs or
                rows * stream.seq_bytes > 1 << 20 or case.flushes or
                case.flush_every)


def check_sequences(case, stream, wanted):
    """Each sequence is there once, whole, with its values; returns ids and
    offsets in the order of the packs, and the pack of each."""
    length, pieces = case.schema.length, stream.pieces()
    for piece in pieces:
        if case.overlong == "split":
            assert length(piece.lanes) == min(case.capacity,
                                              piece.length - piece.offset)
    found = stream.sequences()
    assert found == wanted.kept
    split = collections.Counter(piece.id for piece in pieces)
    wanted.counts["split_sequences"] = sum(n > 1 for n in split.values())
    wanted.counts["extra_pieces"] = len(pieces) - len(found)
    return [(piece.id, piece.offset, piece.pack) for piece in pieces]


def check_order(case, stream, places):
    """What the options guarantee, and the bound set by the window."""
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
    assert overtaken.sum(1).max() <= stream.window


def check_counts(stream, wanted):
    """END agrees with the input."""
    end = stream.end
    for name in ("input_sequences", "input_tokens", "rejected_sequences",
                 "rejected_tokens", "truncated_sequences", "truncated_tokens",
                 "split_sequences", "extra_pieces"):
        assert end[name] == wanted.counts[name], (name, end[name],
                                                  wanted.counts[name])


def check_stats(case, stream, told):
    """The numbers of --stats=json match the packs."""
    stats, end = json.loads(told), stream.end
    n, tokens = end["packs"], end["tokens"]
    wanted = {name: end[name] for name in end if name != "digest"}
    wanted.update(
        capacity=case.capacity, depth=stream.depth or None,
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

def least_memory(*command):
    """The smallest -M that a job accepts, from the message that refuses 1."""
    done = subprocess.run([*command, "-M1"], stderr=subprocess.PIPE)
    assert done.returncode == 64, (command, done)
    return re.search(rb"need at least (\d+) bytes", done.stderr)[1].decode()


def run(*command, data=None):
    done = subprocess.run(list(map(str, command)), input=data,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          timeout=600)
    told = done.stderr.decode()
    assert done.returncode == 0, (command, done.returncode, told)
    return done.stdout, told


def check_packs(case, data, wanted, told):
    streams = list(packformat.streams(data))
    assert len(streams) == case.copies
    for stream in streams:
        check_header(case, stream)
        check_blocks(case, stream)
        places = check_sequences(case, stream, wanted)
        check_order(case, stream, places)
        check_counts(stream, wanted)
        check_stats(case, stream, told)


def check_programs(case, wanted, inputs, made):
    """packcat restores the packed sequences; packstat finds no errors."""
    again, _ = run("packcat", data=made)
    assert again == case.stream(list(wanted.kept.values()) * case.copies)
    run("packstat", "--verify", "-q", data=made)
    against = ["--against=" + name for name in inputs * case.copies]
    if case.rejects and case.copies == 1:
        against.append("--rejects=rejects")
    against += ["--vocab=%d" % case.vocab] * bool(case.vocab)
    against += ["--empty"] * case.empty
    run("packstat", "--verify", "-q", *against, data=made)


def try_set(seed, planting):
    """One set; True if it was packed.  With `planting` it has to fail."""
    case = Case(seed)
    wanted = Wanted(case)
    inputs = case.write_inputs()
    job = ["packstream", *case.options(), *inputs]
    if case.memory:
        job.append("-M" + least_memory(*job))
    made, told = run(*job)
    made *= case.copies
    plain = run("zstd", "-qdc", data=made)[0] if case.zstd else made
    if not planting:
        check_packs(case, plain, wanted, told)
        if case.rejects:
            check_rejects(case, wanted)
        check_programs(case, wanted, inputs, made)
        return True
    changed = bytearray(plain)
    streams = list(packformat.streams(plain))
    if not plant(changed, case.rng.choice(streams), case.rng):
        return False
    packformat.hash_of = lambda *_: Agrees()
    try:
        check_packs(case, plain, wanted, told)
        try:
            check_packs(case, bytes(changed), wanted, told)
        except (AssertionError, struct.error):
            return True
    finally:
        packformat.hash_of = hash_of
    raise AssertionError("a changed bit is not noticed")


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
        for seed in range(conf.seed, conf.seed + conf.count):
            try:
                done += try_set(seed, conf.plant)
            except Exception as error:
                failed += 1
                print("set %d: %s: %s\n    packstream %s" % (
                    seed, type(error).__name__, error,
                    " ".join(Case(seed).options())))
        os.chdir("/")
    print("%d sets, %d differ" % (done + failed, failed) if not conf.plant
          else "%d bits changed, %d not noticed" % (done + failed, failed))
    return failed > 0


if __name__ == "__main__":
    sys.exit(main())
