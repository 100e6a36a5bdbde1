#!/usr/bin/env python3
"""packplan.py - compares packplan's recommendation with all packings of few
sequences.

    packplan.py brute SEED...

draws some sequences for each seed, computes the fewest packs by trying all
packings, and compares.

SPDX-License-Identifier: MIT
"""

import functools
import json
import math
import random
import subprocess
import sys


def fewest_packs(lengths, capacity):
    """The fewest packs, by giving the longest sequence each set of partners."""

    @functools.cache
    def packs(rest):
        if not rest:
            return 0
        found = {rest[1:]}
        sets = [(rest[0], rest[1:], 0)]
        while sets:
            total, left, first = sets.pop()
            for i in range(first, len(left)):
                if total + left[i] <= capacity:
                    fewer = left[:i] + left[i + 1:]
                    found.add(fewer)
                    sets.append((total + left[i], fewer, i))
        return 1 + min(packs(left) for left in found)

    return packs(tuple(sorted(lengths, reverse=True)))


def recommended(lengths, capacities):
    histogram = "".join(f"{n} 1\n" for n in lengths)
    done = subprocess.run(
        ["packplan", "--json", "--recommend", "-L",
         ",".join(map(str, capacities))],
        input=histogram, capture_output=True, text=True, check=True)
    return json.loads(done.stdout)


def brute(seed):
    draw = random.Random(seed)
    capacities = [12, 20]
    lengths = [draw.randint(1, 12) for _ in range(draw.randint(1, 9))]
    found = recommended(lengths, capacities)
    for capacity, row in zip(capacities, found["rows"], strict=True):
        assert row["capacity"] == capacity

        best = sum(lengths) / (fewest_packs(lengths, capacity) * capacity)
        enough = row["bound_efficiency"] * (1 - found["within"])
        # The bound holds, and the prediction can be met.
        assert best < row["bound_efficiency"] + 1e-8, row
        assert math.isclose(row["efficiency"], best,
                            rel_tol=1e-8), (lengths, row, best)
        assert row["is_within"] == (row["efficiency"] >= enough), row


if __name__ == "__main__":
    assert sys.argv[1] == "brute"
    for number in sys.argv[2:]:
        brute(int(number))
