"""deal.py - give all ranks equal work in each step: assign packs to ranks, or
pack the sequences of one step for them.

    deal = packstream.Deal(packs, 8, rank, ranks, hidden=1024)
    DataLoader(packs, batch_sampler=deal)

    mine = packstream.balance(lengths, ranks, 16384)[rank]
    for pack in mine:                   # equally many on every rank
        train(rollouts[i] for i in pack)

SPDX-License-Identifier: MIT
"""

from __future__ import annotations

import sys
from operator import index
from typing import Any, Iterator, List, Optional, Tuple

import numpy as np

from packstream.files import PackFiles
from packstream.library import check, ffi, lib, need_library, new_error
from packstream.epoch import check_seed, shuffled
from packstream.schema import as_lengths


HIDDEN = 4096       # the width of a model of some 7 billion parameters


def cost_of(hidden: Optional[int],
            cost: Optional[Tuple[int, int]]) -> Tuple[int, int]:
    """Returns the cost of a token and of a unit of the squared lengths."""
    if (hidden is None) == (cost is None):
        raise ValueError("set either hidden or cost")
    tokens, squares = map(index, (6 * hidden, 1) if cost is None else cost)
    if not 0 <= min(tokens, squares) <= max(tokens, squares) < 2**64 or \
            tokens == squares == 0:
        raise ValueError("the cost is (%d, %d), not two numbers from 0 to "
                         "2^64 - 1 that are not both 0" % (tokens, squares))
    return tokens, squares


class Deal:
    """Yields the numbers of this rank's packs: a list of `size` numbers per
    step.

    A global batch is size * ranks packs.  Each rank gets `size` of them, such
    that the highest cost of a rank is low.  A global batch has the same packs
    as with Packs.batches.  Ranks do not communicate: each rank computes the
    same assignment from the heads of the packs (ps_deal in packstream(3)), so
    all ranks must read the same files.

    The cost of a pack is the work of a model of width `hidden`, with attention
    within sequences: 6 * hidden per token, and 1 per unit of the squared
    lengths.  cost=(A, B) replaces these two factors.

    With `shuffle`, a seed, each epoch has a new order, the same as with
    PackDataset and packdeal --seed; the heads of all packs are read once,
    before the first step.  If the last global batch is not full, some ranks
    get fewer packs, or none; with drop_last, this batch is omitted."""

    def __init__(self, packs: PackFiles, size: int, rank: int, ranks: int,
                 hidden: Optional[int] = None,
                 cost: Optional[Tuple[int, int]] = None,
                 shuffle: Optional[int] = None, drop_last: bool = False):
        need_library("a deal")
        if not isinstance(packs, PackFiles):
            raise TypeError("a Deal needs packs of files, as returned by "
                            "packstream.open")
        self.cost = cost_of(hidden, cost)
        self.packs, self.size = packs, index(size)
        self.rank, self.ranks = index(rank), index(ranks)
        if not 0 <= self.rank < self.ranks:
            raise ValueError("rank %d of %d" % (rank, ranks))
        check_seed(shuffle)
        self.shuffle, self.drop_last = shuffle, drop_last
        self.epoch = self.start = 0
        self._costs: Optional[np.ndarray] = None    # costs of all packs
        self._dealer(self.size)     # checks that size and ranks are valid

    def set_epoch(self, epoch: int, start: int = 0) -> None:
        """Selects the order of `shuffle` for the next iteration, and its first
        step: the number of steps that a stopped run had completed."""
        for name, value in (("epoch", epoch), ("start", start)):
            if not 0 <= index(value) < 2**64:
                raise ValueError("%s is %d" % (name, value))
        self.epoch, self.start = epoch, start

    def __len__(self) -> int:
        """The number of remaining steps.  The packs of an incomplete last step
        go to the first ranks."""
        steps, left = divmod(len(self.packs), self.size * self.ranks)
        if self.rank < left and not self.drop_last:
            steps += 1
        return max(steps - self.start, 0)

    def __iter__(self) -> Iterator[List[int]]:
        """Starts when the first step is requested, because a DataLoader
        creates two iterators but uses only one."""
        if self.ranks > 1 and "accelerate.state" in sys.modules:
            from packstream.torch import shards_again
            if shards_again(self):
                raise RuntimeError(
                    "Accelerate deals out the steps of this Deal, which are "
                    "those of one of %d ranks already: do not prepare() its "
                    "DataLoader" % self.ranks)
        steps, start = len(self) + self.start, self.start
        self.start = 0          # the next epoch is complete
        epoch = self.epoch
        for i in range(start, steps):
            yield self._step(i, epoch)

    def step(self, i: int, rank: Optional[int] = None) -> List[int]:
        """Returns the numbers of step i (from 0) of the epoch, for this rank
        or for another rank."""
        steps, left = divmod(len(self.packs), self.size * self.ranks)
        if left > 0 and not self.drop_last:
            steps += 1
        if not 0 <= index(i) < steps:
            raise IndexError("there is no step %d, only 0 to %d" % (
                i, steps - 1))
        if rank is not None and not 0 <= index(rank) < self.ranks:
            raise IndexError("there is no rank %d" % rank)
        numbers, whose = self._assign(i, self.epoch, True)
        return numbers[whose == (self.rank if rank is None else
                                 rank)].tolist()

    def find(self, pack: int) -> Optional[Tuple[int, int]]:
        """Returns the step and the rank that get a pack in this epoch, or None
        if drop_last omits it.  With packs.find, this gives the step that
        trains on a sequence:

            [deal.find(at.pack) for at in packs.find(id)]"""
        count, most = len(self.packs), self.size * self.ranks
        pack, = self.packs.numbers([pack]).tolist()
        place = pack if self.shuffle is None else lib.ps_shuffled_place(
            count, self.shuffle, self.epoch, pack)
        step = place // most
        if self.drop_last and step == count // most:
            return None
        numbers, whose = self._assign(step, self.epoch, True)
        return step, int(whose[numbers == pack][0])

    def _step(self, i: int, epoch: int) -> List[int]:
        numbers, whose = self._assign(i, epoch, False)
        return numbers[whose == self.rank].tolist()

    def _assign(self, i: int, epoch: int, single: bool
                ) -> Tuple[np.ndarray, np.ndarray]:
        """Returns the numbers of a global batch, and the rank of each.  If
        `single` is set, other steps are not needed."""
        most, count = self.size * self.ranks, len(self.packs)
        first, end = min(i * most, count), min((i + 1) * most, count)
        numbers = np.arange(first, end) if self.shuffle is None \
            else shuffled(count, self.shuffle, epoch, first, end)
        size = -(-len(numbers) // self.ranks)
        if size == 0:
            return numbers, numbers
        # Missing packs have cost 0.
        costs = np.zeros(size * self.ranks, np.uint64)
        costs[:len(numbers)] = self._costs_of(numbers, single)
        whose = np.empty(len(costs), np.uint32)
        err = new_error()
        check(lib.ps_deal_make(self._dealer(size),
                               ffi.from_buffer("uint64_t[]", costs),
                               ffi.from_buffer("uint32_t[]", whose), err), err)
        return numbers, whose[:len(numbers)]

    def _costs_of(self, numbers: np.ndarray, single: bool) -> np.ndarray:
        """Returns costs.  Reading heads in file order is fast, but each
        shuffled pack would need a file access, or a frame of a compressed
        file; for a single step, this is faster than reading all heads."""
        if self.shuffle is None or (single and self._costs is None):
            return self.packs.costs(numbers, *self.cost)
        if self._costs is None:
            self._costs = self.packs.costs(np.arange(len(self.packs)),
                                           *self.cost)
        return self._costs[numbers]

    def _dealer(self, size: int) -> object:
        new, err = ffi.new("ps_deal **"), new_error()
        check(lib.ps_deal_open(new, self.ranks, size, err), err)
        return ffi.gc(new[0], lib.ps_deal_free)


def balance(lengths: Any, ranks: int, max_tokens: int,
            hidden: Optional[int] = None,
            cost: Optional[Tuple[int, int]] = None,
            align: int = 1) -> List[List[np.ndarray]]:
    """Packs the sequences of one step, such as the roll-outs of a step of
    reinforcement learning, for ranks that work together.

    Returns the packs of each rank: arrays of numbers of sequences.  No pack
    has more than `max_tokens` tokens, every rank has the same number of packs,
    the costliest first, and all ranks have nearly the same cost.  The result
    depends on the arguments alone, so each rank can compute it for itself.

    The cost of a sequence of n tokens is 6 * hidden * n + n * n, the work of a
    model of width `hidden`, 4096 by default; cost=(A, B) replaces these two
    factors.  With `align`, each sequence takes a multiple of so many tokens of
    its pack, such as twice the number of ranks of context parallelism.

    A pack is empty only if there are fewer sequences than packs."""
    need_library("balance")
    lengths = as_lengths(lengths)
    if hidden is None and cost is None:
        hidden = HIDDEN
    options = ffi.new("ps_balance_options *", {
        "ranks": index(ranks), "capacity": index(max_tokens),
        "align": index(align)})
    options.cost.tokens, options.cost.squares = cost_of(hidden, cost)
    order = np.empty(len(lengths), np.uint32)
    ends = np.empty(len(lengths) + index(ranks), np.uint32)
    n_packs, err = ffi.new("uint32_t *"), new_error()
    check(lib.ps_balance(ffi.from_buffer("uint32_t[]", lengths), len(lengths),
                         options, ffi.from_buffer("uint32_t[]", order),
                         ffi.from_buffer("uint32_t[]", ends), n_packs, err),
          err)
    numbers, ends = order.astype(np.int64), [0, *ends[:n_packs[0]].tolist()]
    packs = [numbers[begin:end] for begin, end in zip(ends, ends[1:])]
    per_rank = n_packs[0] // index(ranks)
    return [packs[i:i + per_rank] for i in range(0, len(packs), per_rank)]
