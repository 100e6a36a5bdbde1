"""python_naive.py - batches of packs, built one place at a time.

What a pack holds comes from packcat, which prints its sequences as JSON.

SPDX-License-Identifier: MIT
"""

import itertools
import json
import subprocess

import numpy as np

IGNORED = -100


def output(*command):
    return subprocess.run(command, stdout=subprocess.PIPE, check=True).stdout


def read_naively(path, count):
    """The packs, each a list of sequences: {"input_ids": [...], ...}."""
    found = []
    for i in range(count):
        lines = output("packcat", "--to=jsonl", "--range=%d:%d" % (i, i + 1),
                       path).splitlines()
        found.append([json.loads(line) for line in lines])
        assert found[-1]
    assert not output("packcat", "--to=ids", "--range=%d:" % count, path)
    return found


class Naive:
    """A batch of packs, built one place at a time."""

    def __init__(self, batch, capacity, depth):
        self.batch, self.capacity, self.depth = batch, capacity, depth
        self.lengths = [[len(row["input_ids"]) for row in pack]
                        for pack in batch]
        self.fills = [sum(lengths) for lengths in self.lengths]

    def cu(self):
        rows = []
        for lengths in self.lengths:
            row = [0] + list(itertools.accumulate(lengths))
            rows.append(row + [self.capacity] * (self.depth + 2 - len(row)))
        return rows

    def view(self, name):
        """The lengths of all sequences, ghosts among them."""
        found = []
        for lengths, fill in zip(self.lengths, self.fills):
            found += lengths
            if name != "ragged":
                found.append(self.capacity - fill)
            if name == "static":
                found += [0] * (self.depth - len(lengths))
        return found

    def per_token(self, key, fill):
        """[S, L] of a channel, the padding `fill`."""
        rows = []
        for pack, used in zip(self.batch, self.fills):
            row = [value for sequence in pack for value in sequence[key]]
            rows.append(row + [fill] * (self.capacity - used))
        return rows

    def each_place(self, function, ghost):
        """[S, L] of function(number of the sequence, place in it, tokens);
        in the padding of ghost(place in it)."""
        rows = []
        for pack, used in zip(self.batch, self.fills):
            row = [function(i, k, sequence["input_ids"])
                   for i, sequence in enumerate(pack)
                   for k in range(len(sequence["input_ids"]))]
            rows.append(row + [ghost(k) for k in
                               range(self.capacity - used)])
        return rows

    def positions(self):
        return self.each_place(lambda i, k, ids: k, lambda k: k)

    def segments(self):
        return self.each_place(lambda i, k, ids: i + 1, lambda k: 0)

    def labels(self):
        return self.each_place(lambda i, k, ids: ids[k] if k else IGNORED,
                               lambda k: IGNORED)

    def targets(self):
        return self.each_place(
            lambda i, k, ids: ids[k + 1] if k + 1 < len(ids) else IGNORED,
            lambda k: IGNORED)


def equal(array, wanted, dtype=None):
    wanted = np.array(wanted)
    assert array.shape == wanted.shape, (array.shape, wanted.shape)
    assert (array == wanted).all(), (array, wanted)
    assert dtype is None or array.dtype == dtype, array.dtype
