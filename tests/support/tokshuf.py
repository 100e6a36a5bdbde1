"""tokshuf.py - the expected output of tokshuf, for tokshuf.bats.

    tokshuf.py trials SEED COUNT    COUNT random inputs and options: the outputs
                                are those computed here, to the byte
    tokshuf.py uniform          the numbers by which sequences are sorted are as
                                good as random: orders of few sequences,
                                positions of many, and their neighbours

The order is computed independently: by a number made from the seed and the
sequence's position in the input.
SPDX-License-Identifier: MIT
"""

import itertools
import math
import os
import random
import subprocess
import sys

from packformat import PER_SEQUENCE, PER_TOKEN, Schema

MASK = (1 << 64) - 1
GAMMA = 0x9e3779b97f4a7c15
CHANNELS = [("s", "u64", PER_SEQUENCE), ("a", "u8", PER_TOKEN)]
SCHEMAS = [Schema(2, False), Schema(4, True), Schema(2, True, CHANNELS)]


def scramble(z):
    z &= MASK
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9 & MASK
    z = (z ^ z >> 27) * 0x94d049bb133111eb & MASK
    return z ^ z >> 31


def key(seed, number):
    return scramble(scramble(number + GAMMA) ^ scramble(seed + 2 * GAMMA))


# ---- Trials ----

class Trial:
    def __init__(self, rng):
        self.schema = rng.choice(SCHEMAS)
        self.sequences = self.draw(rng)
        self.options = ["-M", rng.choice(["64Ki", "64Ki", "100000", "1Gi"])]
        self.seed = None
        if rng.random() < 0.2:
            self.options.append("--no-shuffle")
        else:
            self.seed = rng.choice([0, 1, rng.randrange(1 << 64)])
            self.options.append("--seed=%d" % self.seed)
        self.count = self.choose(rng, "--head-count=",
                                 [0, 1, 7, 400, 1500, 9999])
        self.window = self.choose(rng, "--by-length=", [1, 2, 50, 700, 99999])
        self.shortest = self.choose(rng, "--min-length=", [1, 3, 9]) or 1
        self.longest = self.choose(rng, "--max-length=", [1, 12, 20]) or 1 << 32
        if self.shortest > self.longest:
            self.longest = 1 << 32
            self.options = [o for o in self.options if "max-l" not in o]
        self.shares = None
        if self.seed is not None and rng.random() < 0.4:
            self.shares = rng.choice([[99, 1], [1, 1, 1], [1], [5, 2000000],
                                      [1, 10 ** 17, 1, 7]])
            self.options.append("--split=" + ",".join(
                "%s:out%d" % (self.share(rng, s), i)
                for i, s in enumerate(self.shares)))

    def choose(self, rng, option, values):
        if rng.random() < 0.6:
            return None
        value = rng.choice(values)
        self.options.append("%s%d" % (option, value))
        return value

    def share(self, rng, value):
        """The same ratio whichever is taken, if all are."""
        return "%d.0" % value if rng.random() < 0.5 else str(value)

    def draw(self, rng):
        n = rng.choice([0, 1, 2, 100, 2500])
        lengths = [rng.randint(1, rng.choice([1, 5, 30])) for _ in range(n)]
        if n > 2 and rng.random() < 0.5:
            lengths[n // 2] = 70000
            lengths[-1] = 20000
        return [[rng.randbytes(size * (length if kind == PER_TOKEN else 1))
                 for kind, size in self.schema.lanes()] for length in lengths]

    def expected(self):
        """The sequences of each output."""
        order = range(len(self.sequences))
        if self.seed is not None:
            order = sorted(order, key=lambda i: key(self.seed, i))
        chosen = [self.sequences[i] for i in order]
        length = self.schema.length
        chosen = [s for s in chosen
                  if self.shortest <= length(s) <= self.longest]
        chosen = chosen[:self.count]
        shares, ends = self.shares or [1], [0]
        for i in range(len(shares)):
            ends.append(len(chosen) * sum(shares[:i + 1]) // sum(shares))
        parts = [chosen[a:b] for a, b in zip(ends, ends[1:])]
        if self.window:
            parts = [[s for at in range(0, len(part), self.window)
                      for s in sorted(part[at:at + self.window], key=length)]
                     for part in parts]
        return parts

    def run(self):
        cut = len(self.sequences) // 3
        for name, part in ("x", self.sequences[:cut]), \
                ("y", self.sequences[cut:]):
            with open(name, "wb") as file:
                file.write(self.schema.stream(part))
        command = ["tokshuf", "-t", "u%d" % (8 * self.schema.width)]
        data = subprocess.run(command + self.options + ["x", "y"], check=True,
                              stdout=-1).stdout
        if self.shares is None:
            return [data]
        assert data == b""
        outputs = []
        for i in range(len(self.shares)):
            with open("out%d" % i, "rb") as file:
                outputs.append(file.read())
            os.unlink("out%d" % i)
        return outputs


def trials(seed, count):
    for number in range(int(seed), int(seed) + int(count)):
        trial = Trial(random.Random(number))
        wanted = [trial.schema.stream(part) for part in trial.expected()]
        if trial.run() != wanted:
            sys.exit("seed %d: %s, %d sequences" % (
                number, trial.options, len(trial.sequences)))


# ---- Uniform ----

def is_near(value, mean, deviation):
    """Within five standard deviations; the seeds are fixed."""
    print("%.1f, expected %.1f, give or take %.1f" % (value, mean, deviation))
    assert abs(value - mean) < 5 * deviation


def chi_square(counts, expected, freedom):
    value = sum((n - expected) ** 2 / expected for n in counts)
    is_near(value, freedom, math.sqrt(2 * freedom))


def shuffled(seed, n):
    return sorted(range(n), key=lambda i: key(seed, i))


def uniform():
    for n, seeds in (2, range(1000)), (5, range(12000)), \
            (5, range(0, GAMMA * 12000, GAMMA)):
        found = dict.fromkeys(itertools.permutations(range(n)), 0)
        for seed in seeds:
            found[tuple(shuffled(seed & MASK, n))] += 1
        chi_square(found.values(), len(seeds) / len(found), len(found) - 1)
    places, next_to = [0] * 100, 0
    for seed in range(100):
        order = shuffled(seed, 1000)
        for place, number in enumerate(order):
            places[place // 100 * 10 + number // 100] += 1
        next_to += sum(b == a + 1 for a, b in zip(order, order[1:]))
    chi_square(places, 1000, 81)
    is_near(next_to, 99.9, 10)


if __name__ == "__main__":
    globals()[sys.argv[1]](*sys.argv[2:])
