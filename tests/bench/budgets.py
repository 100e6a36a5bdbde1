"""budgets.py - packs with a budget, compared with the bound of the linear
program, with that of packplan, and with two-dimensional best fit decreasing on
blocks.

    python3 tests/bench/budgets.py BUILD [NAME]...

BUILD is a folder with the programs.  Needs numpy and highspy (HiGHS).  The
bound is found by column generation: a column is a combination of sequences that
fits a pack, and an exact two-dimensional knapsack finds the best new one.  If
it is stopped early, the bound is the one of Farley (1990), which is lower.

SPDX-License-Identifier: MIT
"""

import json
import subprocess
import sys
import time

import highspy
import numpy as np

SEQUENCES = 12000
WINDOW = 1024
UNITS = 128                     # lengths are multiples of L / UNITS
LIMIT = 120                     # seconds for a bound


def units(values, most):
    return np.clip(np.rint(values), 1, most).astype(int)


def correlated(rng):
    n = units(UNITS * rng.lognormal(-2.2, 0.9, SEQUENCES), UNITS)
    return n, np.minimum(np.rint(n / 2 * rng.lognormal(
        0, 0.35, SEQUENCES)), 64).astype(int), 64


def anti_correlated(rng):
    n = units(UNITS * rng.lognormal(-2.2, 0.9, SEQUENCES), UNITS)
    return n, np.rint(30 * np.exp(-n / 19) * rng.uniform(
        0.5, 1.5, SEQUENCES)).astype(int), 64


def images(rng):
    n = units(UNITS * rng.lognormal(-2.5, 0.9, SEQUENCES), UNITS)
    return n, np.where(rng.random(SEQUENCES) < 0.3,
                       rng.integers(1, 13, SEQUENCES), 0), 16


def encoder_decoder(rng):
    n = units(UNITS * rng.lognormal(-1.8, 0.6, SEQUENCES), UNITS)
    return n, units(n / 4 * rng.uniform(0.2, 2, SEQUENCES), 32), 32


def attention(rng):
    n = units(UNITS * rng.lognormal(-2.4, 0.8, SEQUENCES), 45)
    return n, n * n, 2048


def molecules(rng):
    """Nodes and edges, as of small molecules."""
    n = units(rng.normal(18, 3, SEQUENCES), 29)
    return n, units(n * 1.03 + rng.normal(0, 1.5, SEQUENCES), 32), 128


def pairs(rng):
    """Two or three to a pack, limited by both: the hardest kind."""
    return (rng.integers(8, 121, SEQUENCES), rng.integers(1, 16, SEQUENCES),
            16)


KINDS = [correlated, anti_correlated, images, encoder_decoder, attention,
         molecules, pairs]


def knapsack(n, b, prices, budget):
    """The most valuable combination that fits, as counts, and its value."""
    value = np.zeros((UNITS + 1, budget + 1))
    chosen = np.full(value.shape, -1)
    places = np.arange(budget + 1)[None] - b[:, None]
    for i in range(1, UNITS + 1):
        value[i] = value[i - 1]
        fits = np.flatnonzero(n <= i)
        if len(fits) == 0:
            continue
        gains = np.take_along_axis(value[i - n[fits]],
                                   np.maximum(places[fits], 0), 1)
        gains = np.where(places[fits] >= 0, gains + prices[fits, None], -1)
        best = gains.argmax(0)
        better = gains[best, np.arange(budget + 1)] > value[i] + 1e-12
        value[i][better] = gains[best, np.arange(budget + 1)][better]
        chosen[i][better] = fits[best][better]
        value[i] = np.maximum.accumulate(value[i])
    counts, i, j = np.zeros(len(n)), UNITS, budget
    while i > 0:
        t = chosen[i, j]
        if t < 0 and j > 0 and value[i, j - 1] == value[i, j]:
            j -= 1
        elif t < 0:
            i -= 1
        else:
            counts[t] += 1
            i, j = i - n[t], j - b[t]
    return counts, value[UNITS, budget]


def bound(n, b, budget):
    kinds, demand = np.unique(np.stack([n, b], 1), axis=0, return_counts=True)
    n, b = kinds.T
    solver = highspy.Highs()
    solver.setOptionValue("output_flag", False)
    for count in demand:
        solver.addRow(float(count), highspy.kHighsInf, 0, [], [])

    def add(counts):
        rows = np.flatnonzero(counts).astype(np.int32)
        solver.addCol(1.0, 0.0, highspy.kHighsInf, len(rows), rows,
                      counts[rows].astype(float))

    for i, (x, y) in enumerate(kinds):
        one = np.zeros(len(n))
        one[i] = min(UNITS // x, budget // y if y else UNITS)
        add(one)
    best = max(demand @ n / UNITS, demand @ b / budget)
    started = time.monotonic()
    while True:
        solver.run()
        prices = np.array(solver.getSolution().row_dual)
        optimum = solver.getInfo().objective_function_value
        counts, value = knapsack(n, b, prices, budget)
        best = max(best, optimum / max(value, 1))
        if value <= 1 + 1e-6 or optimum - best < 1e-4 * optimum or \
                time.monotonic() - started > LIMIT:
            return best, optimum
        add(counts)


def best_fit_decreasing(n, b, budget):
    packs = 0
    for at in range(0, SEQUENCES, WINDOW):
        sizes = np.stack([n[at:at + WINDOW] / UNITS,
                          b[at:at + WINDOW] / budget], 1)
        left = np.ones((len(sizes), 2))
        used = 0
        for size in sizes[np.argsort(-sizes.max(1), kind="stable")]:
            rest = left[:used] - size
            fits = np.flatnonzero((rest >= -1e-12).all(1))
            if len(fits):
                i = fits[rest[fits].sum(1).argmin()]
            else:
                i, used = used, used + 1
            left[i] -= size
        packs += used
    return packs


def pack(build, n, b, budget):
    rows = "".join('{"input_ids":[%s],"b":%d}\n' % (",".join("7" * x), y)
                   for x, y in zip(n, b))
    records = subprocess.run([build + "/tokcat", "-q", "--from=jsonl"],
                             input=rows.encode(), check=True,
                             capture_output=True).stdout
    stats = subprocess.run(
        [build + "/packstream", "-q", "-L%d" % UNITS, "--budget=b:%d" % budget,
         "-w%d" % WINDOW, "--stats=json", "-o", "/dev/null"], input=records,
        check=True, capture_output=True).stderr
    plan = subprocess.run(
        [build + "/packplan", "-q", "-L%d" % UNITS, "--budget=b:%d" % budget,
         "--json"], input=records, check=True, capture_output=True).stdout
    return json.loads(stats)["packs"], json.loads(plan)["lower_bound"]


def main(build, *names):
    print("| sequences | packs | linear program | packplan | above | best fit "
          "decreasing |\n|---|---:|---:|---:|---:|---:|")
    for kind in KINDS:
        if names and kind.__name__ not in names:
            continue
        n, b, budget = kind(np.random.default_rng(5))
        packs, planned = pack(build, n, b, budget)
        least, _ = bound(n, b, budget)
        print("| %s | %d | %.0f | %d | %.2f %% | %d |" % (
            kind.__name__.replace("_", "-"), packs, np.ceil(least), planned,
            100 * (packs / max(np.ceil(least), planned) - 1),
            best_fit_decreasing(n, b, budget)), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
