"""epoch.py - the order of packs in an epoch, and each rank's share of them.

SPDX-License-Identifier: MIT
"""

from __future__ import annotations

from typing import Optional

import numpy as np


def first_own(number: int, rank: int, ranks: int, start: int) -> int:
    """Returns the number of records to skip, from `number` on, to the first
    record of the rank."""
    lowest = max(number, start)
    return lowest + (rank - lowest) % ranks - number


def check_seed(shuffle: Optional[int]) -> None:
    """Raises TypeError or ValueError unless it is a seed or None."""
    if isinstance(shuffle, bool) or not (shuffle is None or
                                         hasattr(shuffle, "__index__")):
        raise TypeError("shuffle is a seed, or None, not %r" % shuffle)
    if shuffle is not None and not 0 <= shuffle < 2**64:
        raise ValueError("the seed is %d, not from 0 to 2^64 - 1" % shuffle)


def mix(state: np.ndarray) -> np.ndarray:
    """Returns the next output of SplitMix64 for each state."""
    z = state + np.uint64(0x9e3779b97f4a7c15)
    z = (z ^ z >> np.uint64(30)) * np.uint64(0xbf58476d1ce4e5b9)
    z = (z ^ z >> np.uint64(27)) * np.uint64(0x94d049bb133111eb)
    return z ^ z >> np.uint64(31)


def shuffled(count: int, seed: int, epoch: int, first: int = 0,
             end: Optional[int] = None) -> np.ndarray:
    """Returns the numbers below `count` in the order of an epoch, or only the
    positions `first` to `end` of it.  The order is that of ps_shuffled in
    packstream(3): a Feistel network, applied until a number is below `count`.
    """
    half = max(3, (max(count - 1, 0).bit_length() + 1) // 2)
    key = mix(np.array([seed], np.uint64)) ^ np.uint64(epoch)
    keys = mix(key + np.uint64(0x9e3779b97f4a7c15) *
               np.arange(12, dtype=np.uint64))
    bits, rest = np.uint64(half), np.uint64(64 - half)
    numbers = np.arange(first, count if end is None else end, dtype=np.uint64)
    left = np.arange(len(numbers))      # positions of unfinished numbers
    while len(left):
        now = numbers[left]
        a, b = now >> bits, now & np.uint64(2**half - 1)
        for k in keys:
            a, b = b, a ^ mix(k ^ b) >> rest
        numbers[left] = now = a << bits | b
        left = left[now >= count]
    return numbers.astype(np.int64)
