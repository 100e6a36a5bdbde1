"""planbudgets.py - packplan --budget, compared with all packings of few
sequences, and with the linear program of many.

    planbudgets.py brute SEED COUNT
    planbudgets.py highs SEED COUNT

`highs` needs highspy.  Budgets are for tiles, for a list, and for attention;
the list always has one.  Both compare the bounds of a trial:

    of one limit alone: the linear program of this limit
    of all: between these and the optimum

SPDX-License-Identifier: MIT
"""

import json
import math
import random
import subprocess
import sys

from packformat import LIST, PER_SEQUENCE, Schema

SCHEMA = Schema(2, True, [("tiles", "i32", PER_SEQUENCE),
                          ("frames", "u8", LIST)])
MOST = 9            # sequences and pieces, of which all packings are tried
EPSILON = 1e-3      # packplan prints three digits


class Trial:
    def __init__(self, rng, most):
        self.capacity = rng.choice([12, 16, 24])
        self.align = rng.choice([1, 1, 1, 4])
        self.depth = rng.choice([None, None, None, 2, 3])
        self.overlong = rng.choice(["drop", "split", "truncate"])
        self.limits = {"tiles": rng.choice([5, 8, 15])}
        if rng.random() < 0.5:
            self.limits["frames"] = rng.choice([6, 20])
        if rng.random() < 0.5:
            self.limits["attention"] = self.capacity ** 2 // rng.choice(
                [1, 2, 4])
        over = self.overlong == "drop"
        longest = rng.choice([self.capacity // 2, self.capacity * 3 // 2])
        self.rows = [(rng.randint(1, longest),
                      rng.randint(-1, self.limits["tiles"] + 1) if over else
                      max(rng.randint(-3, self.limits["tiles"]), 0),
                      rng.randint(0, self.limits.get("frames", 9)))
                     for _ in range(rng.randint(1, most))]

    def uses(self):
        """What each sequence or piece uses of each limit, and the number of
        sequences above one."""
        n_max = min(self.capacity,
                    math.isqrt(self.limits.get("attention", 1 << 40)))
        piece = n_max // self.align * self.align
        limits = [self.capacity, *self.limits.values()]
        if "frames" not in self.limits:
            limits.append(self.capacity)
        found, above = [], 0
        for n, tiles, frames in self.rows:
            pieces = [n]
            if n > n_max or not 0 <= tiles <= self.limits["tiles"]:
                above += 1
                pieces = {"drop": [], "truncate": [piece],
                          "split": self.split(n, n_max, piece)}[self.overlong]
            for m in pieces:
                use = {"tiles": tiles, "frames": frames, "attention": m * m}
                found.append((-(-m // self.align) * self.align, *(
                    use[name] for name in self.limits), *(
                    [] if "frames" in self.limits else [frames])))
        return found, above, limits

    @staticmethod
    def split(n, n_max, piece):
        pieces = []
        while n > n_max:
            pieces.append(piece)
            n -= piece
        return [*pieces, n]

    def planned(self):
        records = SCHEMA.stream([
            [bytes(2 * n), tiles.to_bytes(4, "little", signed=True),
             bytes(frames)] for n, tiles, frames in self.rows])
        depth = [] if self.depth is None else ["-d%d" % self.depth]
        done = subprocess.run(
            ["packplan", "-q", "-L%d" % self.capacity, "--json", *depth,
             "--align=%d" % self.align, "--overlong=" + self.overlong,
             *("--budget=%s:%d" % i for i in self.limits.items())],
            input=records, capture_output=True, check=True)
        return json.loads(done.stdout)


def fewest_packs(uses, limits, depth):
    """The fewest packs, from those of all smaller sets."""
    sums = [(0,) * len(limits)]
    fewest = [0]
    for chosen in range(1, 1 << len(uses)):
        last = chosen.bit_length() - 1
        rest = sums[chosen ^ (1 << last)]
        sums.append(tuple(map(sum, zip(rest, uses[last], strict=True))))
        best, pack = len(uses), chosen
        while pack:
            if pack >> last & 1 and fewest[chosen ^ pack] + 1 < best and \
                    pack.bit_count() <= depth and all(
                    x <= y for x, y in zip(sums[pack], limits, strict=True)):
                best = fewest[chosen ^ pack] + 1
            pack = (pack - 1) & chosen
        fewest.append(best)
    return fewest[-1]


def relaxed_packs(uses, limits, depth):
    """The optimum of the linear program, with all columns listed."""
    import highspy

    kinds = sorted(set(uses), reverse=True)
    solver = highspy.Highs()
    solver.setOptionValue("output_flag", False)
    for kind in kinds:
        solver.addRow(float(uses.count(kind)), highspy.kHighsInf, 0, [], [])

    def add(first, left, counts):
        """Adds all columns with more of the kinds from `first` on."""
        whole = len(counts) > 0
        for i in range(first, len(kinds)):
            rest = [x - y for x, y in zip(left, kinds[i], strict=True)]
            if min(rest) >= 0 and sum(counts.values()) < depth:
                add(i, rest, {**counts, i: counts.get(i, 0) + 1})
                whole = False
        if whole:
            solver.addCol(1.0, 0.0, highspy.kHighsInf, len(counts),
                          list(counts), [float(x) for x in counts.values()])

    add(0, limits, {})
    solver.run()
    return solver.getInfo().objective_function_value


def check(trial, optimum):
    uses, above, limits = trial.uses()
    depth = len(uses) if trial.depth is None else trial.depth
    found = trial.planned()
    assert found["sequences"] == len(uses)
    assert found["overlong_sequences"] == above
    bounds = [row["bound"] for row in found["resources"]]
    assert [row["limit"] for row in found["resources"]] == limits
    assert [row["total"] for row in found["resources"]] == [
        sum(use[k] for use in uses) for k in range(len(limits))]
    assert max(bounds) <= found["bound"] + EPSILON
    assert found["lower_bound"] == math.ceil(found["bound"] - EPSILON)
    if uses:
        best = optimum(uses, limits, max(depth, 1))
        assert found["bound"] <= best + EPSILON, (found, best)
    return uses, limits, bounds


def brute(rng):
    trial = Trial(rng, 6)
    if len(trial.uses()[0]) <= MOST:
        check(trial, fewest_packs)


def highs(rng):
    trial = Trial(rng, 14)
    uses, limits, bounds = check(trial, relaxed_packs)
    for k, bound in enumerate(bounds):
        some = [(use[k],) for use in uses if use[k] > 0]
        wanted = relaxed_packs(some, [limits[k]], trial.depth or 99) \
            if some else 0
        assert abs(bound - wanted) < EPSILON, (k, bound, wanted)


if __name__ == "__main__":
    seed, count = map(int, sys.argv[2:])
    for number in range(seed, seed + count):
        try:
            {"brute": brute, "highs": highs}[sys.argv[1]](
                random.Random(number))
        except BaseException:
            print("trial", number, file=sys.stderr)
            raise
