"""python_naive.py - batches of packs, built one slot at a time, and functions
shared by the checks of the Python package.

The contents of packs come from packcat, which prints sequences as JSON.

SPDX-License-Identifier: MIT
"""

import itertools
import json
import subprocess

import numpy as np

IGNORED = -100


def output(*command):
    return subprocess.run(command, stdout=subprocess.PIPE, check=True).stdout


def raises(kind, why, call, *arguments, **options):
    """Fails unless the call raises an error with this reason."""
    try:
        call(*arguments, **options)
    except kind as error:
        assert why in str(error), error
        return
    raise AssertionError("%s(%r, %r) does not fail" % (call, arguments,
                                                       options))


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


def ids_of(row):
    return row["input_ids"]


def labels_of(row):
    """The default label of each token of a sequence."""
    if "labels" in row:
        return row["labels"]
    masks = [row[name] for name in ("loss_mask", "assistant_masks",
                                    "completion_mask") if name in row]
    return [token if all(mask) else IGNORED
            for token, *mask in zip(row["input_ids"], *masks)]


class Naive:
    """A batch of packs, built one slot at a time."""

    def __init__(self, batch, capacity, depth, align=1):
        self.batch, self.capacity, self.depth = batch, capacity, depth
        self.align = align
        self.lengths = [[len(row["input_ids"]) for row in pack]
                        for pack in batch]
        self.fills = [sum(lengths) for lengths in self.lengths]
        self.places = [[n + self.gap(n) for n in lengths]
                       for lengths in self.lengths]
        self.used = [sum(places) for places in self.places]

    def gap(self, length):
        """Slots of padding after a sequence."""
        return -length % self.align

    def cu(self):
        rows = []
        for places in self.places:
            row = [0] + list(itertools.accumulate(places))
            rows.append(row + [self.capacity] * (self.depth + 2 - len(row)))
        return rows

    def view(self, name, tokens=False):
        """The length of all sequences, or of their tokens, with dummies."""
        found = []
        for lengths, places, used in zip(self.lengths, self.places,
                                         self.used):
            found += lengths if tokens or name == "ragged" else places
            if name != "ragged":
                found.append(self.capacity - used)
            if name == "static":
                found += [0] * (self.depth - len(lengths))
        return found

    def per_token(self, key, fill):
        """[S, L] of a channel, with `fill` as padding."""
        rows = []
        for pack, used in zip(self.batch, self.used):
            row = [value for sequence in pack for value in
                   sequence[key] + [fill] * self.gap(len(sequence[key]))]
            rows.append(row + [fill] * (self.capacity - used))
        return rows

    def each_place(self, function, ghost, values=ids_of):
        """[S, L] of function(number of the sequence, offset in it, its
        values); in padding, of ghost(offset in it, or in the sequence
        before it)."""
        rows = []
        for pack, places, used in zip(self.batch, self.places, self.used):
            row = [function(i, k, values(sequence))
                   if k < len(sequence["input_ids"]) else ghost(k)
                   for i, sequence in enumerate(pack)
                   for k in range(places[i])]
            rows.append(row + [ghost(k) for k in
                               range(self.capacity - used)])
        return rows

    def positions(self):
        return self.each_place(lambda i, k, ids: k, lambda k: k)

    def segments(self):
        return self.each_place(lambda i, k, ids: i + 1, lambda k: 0)

    def labels(self, own=ids_of):
        return self.each_place(lambda i, k, own: own[k] if k else IGNORED,
                               lambda k: IGNORED, own)

    def targets(self, own=ids_of):
        return self.each_place(
            lambda i, k, own: own[k + 1] if k + 1 < len(own) else IGNORED,
            lambda k: IGNORED, own)


def equal(array, wanted, dtype=None):
    wanted = np.array(wanted)
    assert array.shape == wanted.shape, (array.shape, wanted.shape)
    assert (array == wanted).all(), (array, wanted)
    assert dtype is None or array.dtype == dtype, array.dtype
