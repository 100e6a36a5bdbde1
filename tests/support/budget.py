"""budget.py - packstream --budget, checked on random inputs with packformat.py.

    budget.py trials SEED COUNT

Each trial packs a stream with budgets: whole, and again from a state saved
where the input was cut.  packformat.py checks the sums of each pack.

SPDX-License-Identifier: MIT
"""

import itertools
import math

from packformat import Packs, Schema
from packtrials import (DROPPED, TRUNCATED, clean, complete, draw_options, main,
                        pack, resumes, unpacked, verify)

SCHEMA = Schema(2, True, [("tiles", "i64", 2), ("nodes", "u8", 2),
                          ("g", "u32", 2)])


class Trial:
    def __init__(self, rng):
        self.capacity = rng.choice([16, 64, 240])
        self.overlong = rng.choice(["drop", "truncate", "split"])
        self.limits = {
            "tiles": rng.choice([0, 0, 20, 64, 1000]),
            "nodes": rng.choice([0, 0, 40, 300]),
            "attention": rng.choice([0, 0, self.capacity ** 2 // 3])}
        if not any(self.limits.values()):
            self.limits["tiles"] = 30
        self.longest = min(self.capacity, math.isqrt(
            self.limits["attention"] or self.capacity ** 2))
        self.align = rng.choice([1, 1, 4])
        self.piece = self.longest // self.align * self.align
        self.grouped = rng.random() < 0.25
        self.draw(rng)
        self.options = draw_options(rng, self, self.limits.items())

    def draw(self, rng):
        """Sequences of tokens, tiles, nodes and a group's number each."""
        longest = self.capacity * rng.choice([1, 1, 3]) // rng.choice(
            [1, 4, 12])
        # Only --overlong=drop allows a value above its budget.
        over = rng.random() < 0.5 and self.overlong == "drop"
        self.sequences = []
        for number in range(500):
            n = rng.randint(1, max(longest, 1))
            tiles = rng.choice([0, rng.randint(0, 20)])
            if over and rng.random() < 0.1:
                tiles = rng.choice([-1, self.limits["tiles"] + 1, 1 << 62])
            nodes = rng.randint(0, min(40, 1 + n // 4))
            self.sequences.append([
                b"".join((number * 7 + i).to_bytes(2, "little")
                         for i in range(n)),
                tiles.to_bytes(8, "little", signed=True), bytes([nodes]),
                (number // 3).to_bytes(4, "little")])

    def wanted(self):
        """The pieces of each sequence as (number, offset, length), and the
        rejected sequences as (number, reason)."""
        pieces, rejected = [], []
        for k, (tokens, tiles, _, _) in enumerate(self.sequences):
            n = len(tokens) // 2
            tiles = int.from_bytes(tiles, "little", signed=True)
            fits = not self.limits["tiles"] or \
                0 <= tiles <= self.limits["tiles"]
            if not fits or n > self.longest and self.overlong == "drop":
                rejected.append((k, DROPPED))
            elif self.overlong == "split":
                at = 0
                while n - at > self.longest:
                    pieces.append((k, at, self.piece))
                    at += self.piece
                pieces.append((k, at, n - at))
            elif n > self.longest:
                pieces.append((k, 0, self.piece))
                rejected.append((k, TRUNCATED))
            else:
                pieces.append((k, 0, n))
        return pieces, rejected

    # -- Runs

    run = pack

    def check(self, packs):
        found = []
        for p in itertools.chain.from_iterable(packs.packs):
            tokens, *values = self.sequences[p.id]
            n = len(p.lanes[0])
            found.append((p.id, p.offset, n // 2))
            assert p.lanes == [tokens[2 * p.offset:2 * p.offset + n], *values]
        complete(self, found)

    def go(self, rng):
        data = SCHEMA.stream(self.sequences)
        clean()
        self.run("out", data=data)
        with open("in", "wb") as file:
            file.write(data)
        verify(self)
        packs = Packs(unpacked("out", "--zstd" in self.options), SCHEMA)
        assert len(packs.budgets) == sum(map(bool, self.limits.values()))
        self.check(packs)
        resumes(self, rng, data)


main(Trial)
