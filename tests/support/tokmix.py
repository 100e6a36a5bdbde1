"""tokmix.py - checks tokmix with random sources, for tokmix.bats.

    tokmix.py SEED COUNT    COUNT mixes, in the working directory

Each has sources of random lengths with random weights.  Tokens identify source
and record, so the output shows the origin of each record.  Checks in integers,
at every record, that each source has its share of the output so far, to within
less than the longest sequence that was taken or is next; and that every
source's records are complete and in order, as often as --stop requires.

SPDX-License-Identifier: MIT
"""

import random
import struct
import subprocess
import sys
from decimal import Decimal

from packformat import Schema, read_framed

SCHEMA = Schema(4, True)


class Trial:
    def __init__(self, rng):
        n = rng.choice([1, 2, 2, 3, 5, 12, 30])
        self.by = rng.choice(["tokens", "sequences"])
        self.stop = rng.choice(["first", "longest", "repeat"])
        self.weights = [draw_weight(rng) for _ in range(n)]
        if rng.random() < 0.3:
            self.weights = ["90"] + ["1.0"] * (n - 1)
        if rng.random() < 0.2 and n < 6:
            self.weights = [str(rng.randrange(10 ** 17, 10 ** 18))
                            for _ in range(n)]
        longest = rng.choice([1, 6, 60])
        self.lengths = [draw_lengths(rng, longest, self.stop == "repeat")
                        for _ in range(n)]

    def write(self):
        for i, lengths in enumerate(self.lengths):
            with open("s%d" % i, "wb") as file:
                file.write(SCHEMA.stream(
                    [[struct.pack("<I", i << 20 | k) * length]
                     for k, length in enumerate(lengths)]))

    def run(self):
        """The (source, record) of each record of the mix."""
        command = ["tokmix", "-q", "--by=" + self.by, "--stop=" + self.stop]
        command += ["%s=s%d" % pair for pair in
                    zip(self.weights, range(len(self.weights)))]
        data = subprocess.run(command, check=True, stdout=-1).stdout
        mixed = []
        for (tokens,) in read_framed(data)[1]:
            first, = struct.unpack_from("<I", tokens)
            mixed.append((first >> 20, first & 0xfffff))
            assert tokens == tokens[:4] * self.lengths[mixed[-1][0]][
                mixed[-1][1]]
        return mixed

    def size(self, i, k):
        """What record k of a source counts, and of those read again."""
        if self.by == "sequences":
            return 1
        return self.lengths[i][k % len(self.lengths[i])]


def draw_weight(rng):
    return rng.choice(["1", "2", "0.7", ".3", "13", "2.50", "10.",
                       "%d.%03d" % (rng.randrange(9), rng.randrange(1, 999))])


def draw_lengths(rng, longest, not_empty):
    n = rng.choice([0, 1, 7, 50])
    kind = rng.choice([lambda: 1, lambda: longest,
                       lambda: rng.randint(1, longest),
                       lambda: rng.choice([1, 1, 1, longest])])
    return [kind() for _ in range(max(n, int(not_empty)))]


class Shares:
    """What was taken of the sources that are in the mix."""

    def __init__(self, trial):
        self.trial = trial
        self.weights = {i: int(1000 * Decimal(w))
                        for i, w in enumerate(trial.weights)}
        self.next = dict.fromkeys(self.weights, 0)
        self.begin()

    def begin(self):
        self.taken = dict.fromkeys(self.weights, 0)
        self.longest = self.total = 0
        self.weight = sum(self.weights.values())

    def ahead(self, i):
        """How far a source exceeds its share, times the sum of weights."""
        return self.taken[i] * self.weight - self.weights[i] * self.total

    def has_ended(self, i):
        return self.next[i] >= len(self.trial.lengths[i])

    def over(self):
        """Sources that are due and have no more."""
        return [i for i in self.weights
                if self.has_ended(i) and self.ahead(i) <= 0]

    def leave(self):
        """With --stop=longest, ended sources drop out when due."""
        while self.weights and self.over():
            del self.weights[self.over()[0]]
            self.begin()

    def take(self, i, k):
        lengths = self.trial.lengths[i]
        assert k == self.next[i] % len(lengths)
        self.taken[i] += self.trial.size(i, k)
        self.total += self.trial.size(i, k)
        self.longest = max(self.longest, self.trial.size(i, k))
        self.next[i] += 1

    def are_kept(self):
        longest = max([self.longest] + [
            self.trial.size(j, self.next[j]) for j in self.weights
            if self.trial.stop == "repeat" or not self.has_ended(j)])
        return all(abs(self.ahead(j)) < longest * self.weight
                   for j in self.weights)


def check(trial):
    shares = Shares(trial)
    for i, k in trial.run():
        if trial.stop == "longest":
            shares.leave()
        elif trial.stop == "first":
            assert not shares.over()
        shares.take(i, k)
        assert shares.are_kept()
    if trial.stop == "longest":
        shares.leave()
        assert not shares.weights
    else:
        assert shares.over()
    if trial.stop == "repeat":
        assert all(map(shares.has_ended, shares.weights))


def main(seed, count):
    for number in range(int(seed), int(seed) + int(count)):
        trial = Trial(random.Random(number))
        trial.write()
        try:
            check(trial)
        except AssertionError:
            print("seed %d: --by=%s --stop=%s, weights %s, lengths %s" % (
                number, trial.by, trial.stop, trial.weights, trial.lengths))
            raise


if __name__ == "__main__":
    main(*sys.argv[1:])
