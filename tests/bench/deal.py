"""deal.py - how even deals are, beside those of others.

    deal.py [--steps=N] [--hist=FILE] BUILD

Prints the greatest cost of a rank over the mean, on average of all steps:
as the packs come; dealt round after sorting, there and back (Zeng et al.,
IV.B); by the equal-size partition of verl, Karmarkar and Karp's differencing
stated once more; and by ps_deal.  Then what that makes over the greater of
mean and costliest item, and over ps_deal_bound, which knows that ranks have
equally many items; and the nanoseconds that it took for an item.

Packs of a distribution like Wikipedia's, 512 tokens, cost what BERT-large's
attention does; those of lengths up to 8,192 (lognormal) and 131,072 (Pareto)
what that of a model of 7B parameters does; unpadded sequences their tokens.
Needs numpy.

SPDX-License-Identifier: MIT
"""

import argparse
import heapq
import os
import subprocess
import sys
import tempfile

import numpy as np

RANKS = [2, 8, 64, 512]
PER_RANK = [4, 16]


def verl(costs, ranks):
    """The sums of ranks: blocks that are least even become one."""
    order = np.sort(costs).reshape(-1, ranks)
    heap = [(row[0] - row[-1], i, row) for i, row in enumerate(order)]
    heapq.heapify(heap)
    n = len(heap)
    while len(heap) > 1:
        _, _, a = heapq.heappop(heap)
        _, _, b = heapq.heappop(heap)
        row = np.sort(a + b[::-1])
        heapq.heappush(heap, (row[0] - row[-1], n, row))
        n += 1
    return heap[0][2]


def snake(costs, ranks):
    rows = np.sort(costs)[::-1].reshape(-1, ranks).copy()
    rows[1::2] = rows[1::2, ::-1]
    return rows.sum(axis=0)


def deal(build, costs, ranks, per_rank):
    """For each step the sums of ranks and the bound; nanoseconds an item."""
    run = subprocess.run([os.path.join(build, "tests/bench/deal"),
                          str(ranks), str(per_rank)],
                         input=costs.astype(np.uint64).tobytes(),
                         capture_output=True, check=True)
    dealt = np.frombuffer(run.stdout, np.uint32).reshape(costs.shape)
    sums = np.zeros((len(costs), ranks))
    for step, (row, whose) in enumerate(zip(costs, dealt)):
        sums[step] = np.bincount(whose, weights=row, minlength=ranks)
    took, bounds = np.array([line.split() for line in
                             run.stderr.splitlines()], float).T
    return sums, bounds, 1e9 * np.median(took) / costs.shape[1]


def packs(build, lengths, capacity, depth):
    """Tokens and squared lengths of the packs that packstream makes."""
    zeros = np.zeros(capacity, "<u2")
    with tempfile.TemporaryDirectory() as folder:
        name = os.path.join(folder, "x")
        with open(name + ".tok", "wb") as out:
            for length in lengths:
                out.write(int(length).to_bytes(4, "little"))
                out.write(zeros[:length].tobytes())
        subprocess.run([os.path.join(build, "packstream"), "-q", "-L",
                        str(capacity), "-d", str(depth), "-o", name + ".pks",
                        name + ".tok"], check=True)
        record = int(np.fromfile(name + ".pks", "<u4", 1, offset=20)[0])
        heads = np.memmap(name + ".pks", np.dtype(
            {"names": ["sum_len_sq", "n_tok"], "formats": ["<u8", "<u4"],
             "offsets": [32, 44], "itemsize": record}), offset=4096)
        return (heads["n_tok"][:-1].astype(np.int64),
                heads["sum_len_sq"][:-1].astype(np.int64))


def wikipedia(rng, path, n):
    """Lengths of the published histogram, or of something like it."""
    if path is None:
        found = rng.lognormal(5.2, 0.9, n).astype(np.int64)
        return np.clip(found, 5, 512)
    table = np.loadtxt(path, dtype=np.int64)
    return rng.choice(table[:, 0], n, p=table[:, 1] / table[:, 1].sum())


def draw(args, rng, items):
    """Costs of at least so many items of each kind, one after another."""
    n = 3 * items
    tokens, squares = packs(args.build, wikipedia(rng, args.hist, n), 512, 3)
    yield "Wikipedia, L 512, width 1024", 6 * 1024 * tokens + squares
    lengths = np.clip(rng.lognormal(6, 1.2, items * 16), 1, 8192)
    tokens, squares = packs(args.build, lengths.astype(np.int64), 8192, 64)
    yield "lognormal, L 8192, width 4096", 6 * 4096 * tokens + squares
    lengths = np.clip(256 * (1 + rng.pareto(1.1, items * 16)), 1, 131072)
    tokens, squares = packs(args.build, lengths.astype(np.int64), 131072, 256)
    yield "Pareto, L 131072, width 4096", 6 * 4096 * tokens + squares
    yield "Wikipedia, unpadded", wikipedia(rng, args.hist, items)
    lengths = np.clip(rng.lognormal(6, 1.2, items), 1, 8192)
    yield "lognormal, unpadded", lengths.astype(np.int64)


def rows(args, name, costs):
    for ranks in RANKS:
        for per_rank in PER_RANK:
            steps = min(args.steps, len(costs) // (ranks * per_rank))
            if steps == 0:
                continue
            items = costs[:steps * ranks * per_rank].reshape(steps, -1)
            mean = items.sum(axis=1) / ranks
            ours, bounds, ns = deal(args.build, items, ranks, per_rank)
            even = [items.reshape(steps, per_rank, ranks).sum(axis=1),
                    [snake(row, ranks) for row in items],
                    [verl(row, ranks) for row in items], ours]
            ratios = ["%9.5f" % np.mean(np.max(sums, axis=1) / mean)
                      for sums in even]
            simple = np.maximum(mean, items.max(axis=1))
            over = [np.mean(np.max(ours, axis=1) / b) for b in (simple, bounds)]
            print("%-30s%5d%4d%6d %s %9.5f%9.5f%6.0f" % (
                name, ranks, per_rank, steps, " ".join(ratios),
                *over, ns), flush=True)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=100)
    parser.add_argument("--items", type=int, default=30000)
    parser.add_argument("--hist")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("build")
    args = parser.parse_args()
    print("%-30s%5s%4s%6s %9s %9s %9s %9s %9s%9s%6s" % (
        "items", "R", "B", "steps", "as come", "snake", "verl", "ps_deal",
        "/simple", "/bound", "ns"))
    rng = np.random.default_rng(args.seed)
    for name, costs in draw(args, rng, args.items):
        rows(args, name, costs)
    return 0


if __name__ == "__main__":
    sys.exit(main())
