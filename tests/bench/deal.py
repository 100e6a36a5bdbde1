"""deal.py - how evenly packdeal assigns packs, compared with other methods.

    deal.py [--steps=N] [--items=N] [--hist=FILE] BUILD

Prints the greatest cost of a rank, averaged over all steps, for items in input
order; sorted and assigned in serpentine order (Zeng et al., IV.B); by the
equal-size partition of verl, a reimplementation of Karmarkar and Karp's
differencing; and by ps_deal: over the mean of all ranks, over the greater of
the mean and the costliest item, and over ps_deal_bound, a lower bound for
assignments with equally many items for each rank.  For 2 ranks with 4 items
each all 35 assignments are tried, and the best replaces the bound.  Then
prints nanoseconds per item.

Packs of a distribution like Wikipedia's, 512 tokens, cost what BERT-large's
attention does; those of lengths up to 8,192 (lognormal) and 131,072 (Pareto)
what that of a model of 7B parameters does; unpadded sequences their tokens, and
packdeal --list itself assigns their token records.  If there are too few packs
for the steps, steps are drawn from them.

Last comes the time of a step of the model of 7B parameters at 512 and 4,096
ranks, which is that of its costliest rank: 32 layers of width 4,096, forward
and backward, at 400 * 10^12 operations a second, communication excluded.
Needs numpy.

SPDX-License-Identifier: MIT
"""

import argparse
import heapq
import itertools
import os
import subprocess
import sys
import tempfile

import numpy as np

PACKS, END = 0, 1  # kinds of blocks

RANKS = [2, 8, 64, 512]
PER_RANK = [4, 16]

# A layer multiplies 2 * WIDTH times for each unit of cost; a multiplication
# with its addition is two operations, and backward takes twice as many.
WIDTH = 4096
SECONDS = 32 * 2 * WIDTH * 2 * 3 / 400e12


def verl(costs, ranks):
    """The sums of ranks: the least even blocks are merged."""
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
    """For each step the sums of ranks and the bound; nanoseconds per item."""
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


def best_of_two(costs):
    """The smallest maximal sum of two ranks with half of the items each."""
    n = len(costs)
    rest = np.array(list(itertools.combinations(range(1, n), n // 2 - 1)))
    sums = costs[0] + costs[rest].sum(axis=1)
    return np.maximum(sums, costs.sum() - sums).min()


def write_records(path, lengths):
    zeros = np.zeros(lengths.max(), "<u2")
    with open(path, "wb") as out:
        for length in lengths:
            out.write(int(length).to_bytes(4, "little"))
            out.write(zeros[:length].tobytes())


def write_lines(path, lengths):
    """A line of this many bytes for each, including the line feed."""
    line = b"a" * lengths.max()
    with open(path, "wb") as out:
        for length in lengths:
            out.write(line[:length - 1] + b"\n")


def listed(build, path, shape, ranks):
    """How packdeal assigns steps of token records."""
    steps, n = shape
    run = subprocess.run(
        [os.path.join(build, "packdeal"), "--list", "--cost=tokens", "-n",
         str(ranks), "-b", str(n // ranks), path],
        capture_output=True, check=True, text=True)
    dealt = np.zeros(steps * n, np.uint32)
    for line in run.stdout.splitlines():
        step, rank, *numbers = (int(word) for word in line.split())
        if step < steps:
            dealt[numbers] = rank
    return dealt.reshape(shape)


def pack_heads(stream):
    """The heads of all packs, from the blocks of a pack stream."""
    head = np.dtype({"names": ["n_tok", "sum_len_sq"],
                     "formats": ["<u4", "<u8"], "offsets": [16, 24],
                     "itemsize": 40})
    row = int(stream[20:24].view("<u4")[0])
    found, at, kind = [], 4096, PACKS
    while kind != END:
        kind, n = (int(value) for value in stream[at + 4:at + 12].view("<u4"))
        if kind == PACKS:
            found.append(stream[at + 64 + n * row:][:n * 40].view(head))
        at += int(stream[at + 24:at + 32].view("<u8")[0])
    return np.concatenate(found)


def packs(build, lengths, capacity, depth):
    """Tokens and squared lengths of the packs of packstream."""
    with tempfile.TemporaryDirectory() as folder:
        name = os.path.join(folder, "x")
        write_records(name + ".tok", lengths)
        subprocess.run([os.path.join(build, "packstream"), "-q", "-L",
                        str(capacity), "-d", str(depth), "-o", name + ".pks",
                        name + ".tok"], check=True)
        heads = pack_heads(np.fromfile(name + ".pks", np.uint8))
        return (heads["n_tok"].astype(np.int64),
                heads["sum_len_sq"].astype(np.int64))


def wikipedia(rng, path, n):
    """Lengths of the published histogram, or of a similar one."""
    if path is None:
        found = rng.lognormal(5.2, 0.9, n).astype(np.int64)
        return np.clip(found, 5, 512)
    table = np.loadtxt(path, dtype=np.int64)
    return rng.choice(table[:, 0], n, p=table[:, 1] / table[:, 1].sum())


def draw(args, rng, items):
    """Costs of at least this many items of each kind, concatenated."""
    n = 3 * items
    tokens, squares = packs(args.build, wikipedia(rng, args.hist, n), 512, 3)
    yield "Wikipedia, 512", 6 * 1024 * tokens + squares, True
    lengths = np.clip(rng.lognormal(6, 1.2, items * 16), 1, 8192)
    tokens, squares = packs(args.build, lengths.astype(np.int64), 8192, 64)
    yield "lognormal, 8192", 6 * WIDTH * tokens + squares, True
    lengths = np.clip(256 * (1 + rng.pareto(1.1, items * 16)), 1, 131072)
    tokens, squares = packs(args.build, lengths.astype(np.int64), 131072, 256)
    yield "Pareto, 131072", 6 * WIDTH * tokens + squares, True
    yield "Wikipedia, none", wikipedia(rng, args.hist, items * 3), False
    lengths = np.clip(rng.lognormal(6, 1.2, items * 3), 2, 8192)
    yield "lognormal, none", lengths.astype(np.int64), False


def steps_of(args, costs, are_packs, n):
    """The costs of steps of n items, drawn if there are too few packs."""
    steps = args.steps
    if are_packs and len(costs) < steps * n:
        rng = np.random.default_rng(args.seed)
        costs = rng.choice(costs, steps * n)
    steps = min(steps, len(costs) // n)
    return costs[:steps * n].reshape(steps, n)


def in_turn(row, ranks):
    return row.reshape(-1, ranks).sum(axis=0)


def greatest(args, items, ranks):
    """For each method and step the greatest sum; the bounds; nanoseconds."""
    ours, bounds, ns = deal(args.build, items, ranks, items.shape[1] // ranks)
    ways = [[way(row, ranks) for row in items]
            for way in (in_turn, snake, verl)] + [ours]
    return [np.max(sums, axis=1) for sums in ways], bounds, ns


def rows(args, name, costs, are_packs, path):
    for ranks, per_rank in itertools.product(RANKS, PER_RANK):
        items = steps_of(args, costs, are_packs, ranks * per_rank)
        if len(items) == 0:
            continue
        most, bounds, ns = greatest(args, items, ranks)
        if not are_packs:
            dealt = listed(args.build, path, items.shape, ranks)
            for row, whose, wanted in zip(items, dealt, most[3]):
                assert np.bincount(whose, row, ranks).max() == wanted
        if ranks == 2 and per_rank == 4:
            bounds = np.array([best_of_two(row) for row in items])
        mean = items.sum(axis=1) / ranks
        simple = np.maximum(mean, items.max(axis=1))
        figures = [np.mean(way / mean) for way in most]
        for least in (simple, bounds):
            figures += [np.mean(way / least) for way in most[1:]]
        print("%-15s%4d%3d%3d" % (name, ranks, per_rank, len(items)) +
              "".join("%6.3f" % figure for figure in figures) + "%4.0f" % ns,
              flush=True)


def simulated(args, name, costs):
    for ranks, per_rank in itertools.product([512, 4096], PER_RANK):
        items = steps_of(args, costs, True, ranks * per_rank)
        most, _, _ = greatest(args, items, ranks)
        times = [items.sum(axis=1) / ranks] + most
        print("%-16s%5d%3d%4d" % (name, ranks, per_rank, len(items)) +
              "".join("%9.2f" % (SECONDS * np.mean(t)) for t in times),
              flush=True)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--items", type=int, default=30000)
    parser.add_argument("--hist")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("build")
    args = parser.parse_args()
    print("%25s%24s%18s%18s" % ("", "over the mean", "max(mean, most)",
                                "the bound"))
    print("%-15s%4s%3s%3s" % ("items", "R", "B", "of") +
          "".join("%6s" % word for word in
                  ["come"] + 3 * ["snake", "verl", "deal"]) + "%4s" % "ns")
    rng = np.random.default_rng(args.seed)
    long_packs = []
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "x.tok")
        for name, costs, are_packs in draw(args, rng, args.items):
            if not are_packs:
                write_lines(path + ".lines", costs)
                subprocess.run([os.path.join(args.build, "tokcat"),
                                "--from=bytes", "-q", "-o", path,
                                path + ".lines"], check=True)
            rows(args, name, costs, are_packs, path)
            if are_packs and costs.max() > 6 * WIDTH * 512:
                long_packs.append((name, costs))
    print("\n%-16s%5s%3s%4s" % ("seconds", "R", "B", "of") +
          "".join("%9s" % word for word in
                  ["mean", "come", "snake", "verl", "deal"]))
    for name, costs in long_packs:
        simulated(args, name, costs)
    return 0


if __name__ == "__main__":
    sys.exit(main())
