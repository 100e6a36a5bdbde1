"""group.py - packstream --group, checked on random inputs with packformat.py.

    group.py trials SEED COUNT

Each trial packs a stream of groups: whole, and again from a state saved where
the input was cut.

SPDX-License-Identifier: MIT
"""

import itertools
import json
import os
import subprocess

from packformat import Packs, Schema, read_framed
from packtrials import main, resumes, unpacked

SCHEMA = Schema(2, True, [("g", "i64", 2), ("weight", "f32", 1)])
POLICIES = ["auto", "auto", "auto", "bestfit", "nextfit", "none", "spfhp",
            "nnlshp"]


class Trial:
    def __init__(self, rng):
        self.capacity = rng.choice([16, 64, 240])
        self.align = rng.choice([1, 1, 1, 4, 16])
        self.overlong = rng.choice(["drop", "truncate", "split"])
        self.sequences, self.groups = [], []
        self.draw(rng)
        self.options = [
            "-L%d" % self.capacity, "--group=g", "--align=%d" % self.align,
            "--overlong=" + self.overlong, "-a", rng.choice(POLICIES),
            *rng.choice([[], ["-w20"], ["-w300"], ["-M40Mi"]]),
            *rng.choice([[], [], ["--shuffle=3"], ["--order=input"]]),
            *rng.choice([[], [], ["--max-delay=90"], ["--zstd"]]),
            *rng.choice([[], [], ["--flush-every=70"]])]
        self.flushes = 70 if "--flush-every=70" in self.options else 0
        # Some sequences have a token outside the vocabulary.
        self.outside = set()
        if rng.random() < 0.3:
            self.outside = {k for k in range(len(self.sequences))
                            if rng.random() < 0.1}
            for k in self.outside:
                self.sequences[k][0] = b"\xff\xff" + self.sequences[k][0][2:]
            self.options += ["--vocab=65535", "--out-of-vocab=drop"]
            self.groups = [list(group) for _, group in itertools.groupby(
                (k for k in range(len(self.sequences))
                 if k not in self.outside), self.value)]

    def draw(self, rng):
        """Sequences, and groups as lists of their numbers."""
        longest = self.capacity * rng.choice([1, 1, 1, 3]) // rng.choice(
            [1, 4, 12])
        most = rng.choice([1, 4, 30])
        value = -3
        while len(self.sequences) < 400:
            value += rng.choice([1, 2, -1])
            if self.groups and value == self.value(self.groups[-1][0]):
                continue
            self.groups.append([])
            for _ in range(rng.randint(1, most)):
                n = rng.randint(1, max(longest, 1))
                number = len(self.sequences)
                self.groups[-1].append(number)
                self.sequences.append([
                    b"".join((number * 7 + i).to_bytes(2, "little")
                             for i in range(n)),
                    value.to_bytes(8, "little", signed=True),
                    bytes(range(4)) * n])

    def value(self, number):
        return int.from_bytes(self.sequences[number][1], "little", signed=True)

    def length(self, number):
        return len(self.sequences[number][0]) // 2

    # -- What must come of each group

    def units(self, n):
        return -(-n // self.align)

    def parts(self):
        """The groups as they are packed, lists of (number, offset, length)
        that share a pack, and the rejected sequences, (number, reason)."""
        parts, self.overlongs = [], 0
        rejected = [(k, 3) for k in self.outside]
        for group in self.cut_by_flushes():
            whole = [(k, 0, self.length(k)) for k in group]
            most = self.capacity // self.align
            if sum(self.units(n) for _, _, n in whole) <= most:
                parts.append(whole)
                continue
            self.overlongs += 1
            if self.overlong == "drop":
                rejected += [(k, 1) for k in group]
            elif self.overlong == "truncate":
                kept, lost = self.truncated(whole)
                parts.append(kept)
                rejected += lost
            else:
                parts += self.split(whole)
        return parts, rejected

    def cut_by_flushes(self):
        """The window is emptied, also in the middle of a group."""
        for group in self.groups:
            if not self.flushes:
                yield group
                continue
            for _, part in itertools.groupby(
                    group, lambda k: k // self.flushes):
                yield list(part)

    def truncated(self, whole):
        left, kept, lost = self.capacity, [], []
        for k, _, n in whole:
            if n > left or lost:
                lost.append((k, 2 if left and not lost else 1))
                if lost[-1][1] == 2:
                    kept.append((k, 0, left))
            else:
                kept.append((k, 0, n))
                left -= self.units(n) * self.align
        return kept, lost

    def split(self, whole):
        left, parts = self.capacity, [[]]
        for k, _, n in whole:
            offset = 0
            if n > left and parts[-1]:
                parts.append([])
            while n - offset > self.capacity:
                parts[-1].append((k, offset, self.capacity))
                parts.append([])
                offset += self.capacity
            if not parts[-1]:
                left = self.capacity
            parts[-1].append((k, offset, n - offset))
            left -= self.units(n - offset) * self.align
        return parts

    # -- Runs

    def run(self, name, *more, data=None, status=0):
        done = subprocess.run(
            ["packstream", "-q", *self.options, *more,
             *(["--rejects=" + name + ".rej"] if self.has_rejects() else []),
             "-o", name],
            input=data, capture_output=True, timeout=600, check=False)
        assert done.returncode == status, (self.options, done)
        return done.stderr

    def has_rejects(self):
        return self.overlong == "truncate" or (
            self.overlong == "drop") != bool(self.outside)

    def check(self, packs):
        wanted, rejected = self.parts()
        found = []
        for pack in packs.packs:
            pieces = list(pack)
            while pieces:
                part = next(part for part in wanted
                            if part[0][:2] == (pieces[0].id,
                                               pieces[0].offset))
                assert len(part) <= len(pieces), (self.options, part)
                for (k, offset, n), piece in zip(part, pieces):
                    assert (piece.id, piece.offset) == (k, offset)
                    tokens, value, weight = self.sequences[k]
                    assert piece.lanes == [
                        tokens[2 * offset:2 * (offset + n)], value,
                        weight[4 * offset:4 * (offset + n)]]
                found.append(part)
                pieces = pieces[len(part):]
        assert sorted(found) == sorted(wanted), self.options
        return rejected

    def check_rejects(self, rejected):
        if not self.has_rejects():
            return
        with open("out.rej", "rb") as file:
            sequences = read_framed(file.read(), False)[1]
        found = [(int.from_bytes(s[-2], "little"), s[-1][0])
                 for s in sequences]
        assert sorted(found) == sorted(rejected), self.options
        for s, (k, _) in zip(sequences, found):
            assert s[:-2] == self.sequences[k]

    def go(self, rng):
        data = SCHEMA.stream(self.sequences)
        for name in "out", "out.rej", "cut", "cut.rej", "s":
            if os.path.exists(name):
                os.remove(name)
        totals = json.loads(self.run("out", "--stats=json", data=data))
        with open("in", "wb") as file:
            file.write(data)
        subprocess.run(
            ["packstat", "--verify", "-q", "--against=in",
             *(["--vocab=65535"] if self.outside else []),
             *(["--rejects=out.rej"] if self.has_rejects() else []), "out"],
            check=True)
        packs = Packs(unpacked("out", "--zstd" in self.options), SCHEMA)
        self.check_rejects(self.check(packs))
        assert totals["groups"] == len(list(self.cut_by_flushes()))
        assert totals["overlong_groups"] == self.overlongs
        assert totals["rejected"] + totals["sequences"] == len(
            self.sequences) + totals["extra_pieces"]
        resumes(self, rng, data)


main(Trial)
