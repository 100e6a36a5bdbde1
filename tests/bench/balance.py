"""balance.py - packs for the ranks of one step: packstream.balance, verl and
prime-rl's method.

    balance.py [--sequences=N] [--seed=N] [--verl=FILE]

Draws the lengths of roll-outs of five kinds, packs them for 8, 64 and 512 ranks
of a model of 7B parameters with at most 16,384 tokens to a pack, and prints for
each method

  packs        number of packs, equally many for each rank
  excess, %    cost of the costliest rank above the mean of all ranks
  over         packs with more tokens than the limit
  ms           processor time

packstream.balance is timed as the C function, at its fastest of five.  verl's
partitioner is used as its package has it (verl/utils/seqlen_balancing.py; other
modules of verl are not imported), once for the ranks and once for the packs of
each rank.  prime-rl's method is written from its description: first fit
decreasing, the costliest packs are split until the ranks divide them, then the
same partitioner and swaps of packs.  Needs numpy, the package of packstream
and, for the other two, verl.

SPDX-License-Identifier: MIT
"""

import argparse
import contextlib
import heapq
import importlib.util
import os
import sys
import time
import types

import measure

with contextlib.suppress(ImportError):
    import numpy as np
    import packstream
    from packstream.library import ffi, lib

CAPACITY, HIDDEN, RANKS = 16384, 4096, (8, 64, 512)


# ---------------------------------------------------------------- lengths

def kinds(rng, n):
    """Lengths of roll-outs, of which some reach the limit."""
    def within(values, least=1):
        return np.clip(values, least, CAPACITY).astype(np.int64)

    return {"lognormal": within(rng.lognormal(7.3, 0.8, n), 10),
            "uniform": rng.integers(100, CAPACITY, n),
            "two modes": np.where(
                rng.random(n) < 0.3, within(rng.normal(14000, 1500, n)),
                within(rng.normal(1200, 400, n), 10)),
            "cut at the limit": within(rng.lognormal(8.5, 1, n)),
            "short": rng.integers(50, 600, n)}


def costs_of(lengths):
    return 6 * HIDDEN * lengths + lengths ** 2


# ---------------------------------------------------------------- methods

# Each returns the packs of all ranks, and its time in seconds.

def ours(lengths, ranks):
    lengths = lengths.astype(np.uint32)
    options = ffi.new("ps_balance_options *", {
        "ranks": ranks, "capacity": CAPACITY, "align": 1,
        "cost": {"tokens": 6 * HIDDEN, "squares": 1}})
    order = ffi.new("uint32_t[]", len(lengths))
    ends = ffi.new("uint32_t[]", len(lengths) + ranks)
    n_packs, err = ffi.new("uint32_t *"), ffi.new("ps_error *")
    times = []
    for _ in range(5):
        start = time.process_time()
        if lib.ps_balance(ffi.from_buffer("uint32_t[]", lengths), len(lengths),
                          options, order, ends, n_packs, err):
            raise measure.Failed(ffi.string(err.text).decode())
        times.append(time.process_time() - start)
    packs = packstream.balance(lengths, ranks, CAPACITY, HIDDEN)
    return [list(pack) for rank in packs for pack in rank], min(times)


def verl(partition, lengths, ranks):
    start = time.process_time()
    costs = costs_of(lengths).tolist()
    of_ranks = partition(costs, ranks, equal_size=False)
    n = max(-(-int(lengths[rank].sum()) // CAPACITY) for rank in of_ranks)
    packs = []
    for rank in of_ranks:
        parts = partition([costs[i] for i in rank], min(n, len(rank)),
                          equal_size=False)
        packs += [[rank[i] for i in part] for part in parts]
        packs += [[]] * (n - len(parts))
    return packs, time.process_time() - start


def first_fit(lengths):
    """First fit decreasing, with a tournament tree of the free space."""
    leaves = 1 << (len(lengths) - 1).bit_length()
    free, packs = [CAPACITY] * (2 * leaves), {}
    for i in np.argsort(-lengths, kind="stable").tolist():
        at = 1
        while at < leaves:
            at *= 2
            at += free[at] < lengths[i]
        packs.setdefault(at, []).append(i)
        free[at] -= int(lengths[i])
        while at > 1:
            at //= 2
            free[at] = max(free[2 * at], free[2 * at + 1])
    return list(packs.values())


def divide(packs, costs, ranks):
    """Splits the costliest packs until the ranks divide their number."""
    heap = [(-sum(costs[i] for i in pack), n) for n, pack in enumerate(packs)
            if len(pack) > 1]
    heapq.heapify(heap)
    while len(packs) % ranks:
        if not heap:
            packs.append([])
            continue
        _, n = heapq.heappop(heap)
        halves, sums = ([], []), [0, 0]
        for i in sorted(packs[n], key=lambda i: -costs[i]):
            less = sums.index(min(sums))
            halves[less].append(i)
            sums[less] += costs[i]
        packs[n] = halves[0]
        packs.append(halves[1])
        for pack, total, at in zip(halves, sums, (n, len(packs) - 1)):
            if len(pack) > 1:
                heapq.heappush(heap, (-total, at))


def swap_packs(of_ranks, costs):
    """Swaps packs of the costliest rank while that helps."""
    sums = [sum(costs[i] for i in rank) for rank in of_ranks]
    for _ in range(200):
        most = max(range(len(sums)), key=sums.__getitem__)
        best = None
        for less in np.argsort(sums)[:64].tolist():
            for i in of_ranks[most]:
                for k in of_ranks[less]:
                    gain = costs[i] - costs[k]
                    worst = max(sums[most] - gain, sums[less] + gain)
                    if worst < (best or (sums[most],))[0]:
                        best = worst, less, i, k, gain
        if best is None:
            return
        _, less, i, k, gain = best
        of_ranks[most][of_ranks[most].index(i)] = k
        of_ranks[less][of_ranks[less].index(k)] = i
        sums[most] -= gain
        sums[less] += gain


def prime(partition, lengths, ranks):
    start = time.process_time()
    costs = costs_of(lengths).tolist()
    packs = first_fit(lengths)
    divide(packs, costs, ranks)
    sums = [sum(costs[i] for i in pack) for pack in packs]
    of_ranks = partition(sums, ranks, equal_size=True)
    swap_packs(of_ranks, sums)
    return [packs[i] for rank in of_ranks for i in rank], \
        time.process_time() - start


def partitioner(name):
    """verl's function, from its file alone, or None."""
    if name is None:
        spec = importlib.util.find_spec("verl")
        if spec is None:
            return None
        name = os.path.join(spec.submodule_search_locations[0],
                            "utils/seqlen_balancing.py")
    for needed in ("verl", "verl.protocol", "verl.utils", "verl.utils.device",
                   "verl.utils.tensordict_utils"):
        sys.modules[needed] = types.ModuleType(needed)
    sys.modules["verl.protocol"].DataProto = object
    sys.modules["verl.utils"].tensordict_utils = None
    sys.modules["verl.utils.device"].get_device_name = None
    spec = importlib.util.spec_from_file_location("seqlen_balancing", name)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.get_seqlen_balanced_partitions


# ----------------------------------------------------------------- tables

def cells(lengths, packs, ranks, seconds):
    costs, per_rank = costs_of(lengths), len(packs) // ranks
    assert per_rank * ranks == len(packs)
    assert sorted(sum(packs, [])) == list(range(len(lengths)))
    sums = [sum(int(costs[i]) for pack in packs[r:r + per_rank] for i in pack)
            for r in range(0, len(packs), per_rank)]
    over = sum(int(lengths[pack].sum()) > CAPACITY for pack in packs if pack)
    return ["%d" % len(packs),
            "%.5f" % (100 * (max(sums) * ranks / sum(sums) - 1)),
            "%d" % over, "%.1f" % (1000 * seconds)]


def parse():
    parser = argparse.ArgumentParser(
        usage=__doc__.replace("%", "%%"), add_help=False)
    parser.add_argument("--sequences", type=int, default=10000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--verl")
    options = parser.parse_args()
    if options.sequences < max(RANKS):
        parser.error("too few sequences")
    return options


def main():
    options = parse()
    if "packstream" not in globals() or lib is None:
        raise measure.Failed("numpy or the package of packstream is not "
                             "installed")
    partition = partitioner(options.verl)
    measure.show([measure.machine(), "%d sequences%s" % (
        options.sequences,
        "; verl is not installed" if partition is None else "")])
    drawn = kinds(np.random.default_rng(options.seed), options.sequences)
    for kind, lengths in drawn.items():
        rows = [["", "packs", "excess, %", "over", "ms"]]
        for ranks in RANKS:
            found = {"packstream": ours(lengths, ranks)}
            if partition is not None:
                found["verl"] = verl(partition, lengths, ranks)
                found["prime-rl"] = prime(partition, lengths, ranks)
            rows += [["%s, %d ranks" % (name, ranks),
                      *cells(lengths, packs, ranks, seconds)]
                     for name, (packs, seconds) in found.items()]
        measure.show([kind] + measure.table(rows))


if __name__ == "__main__":
    measure.run_main(main)
