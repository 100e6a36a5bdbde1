"""python-labels.py - sources of labels, and labels that are already shifted,
in python/packstream.

tests/tree/python.bats calls the functions by name:

    python3 python-labels.py CHECK [FILE]...

A check prints nothing and exits with 0, or fails with a traceback.

SPDX-License-Identifier: MIT
"""

import json
import os
import random
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)),
                                "../../python"))

import numpy as np

from packstream import maxtext, packs, views as packviews
from python_naive import (IGNORED, Naive, equal, labels_of, raises,
                          read_naively)


def rows(*channels):
    """JSON lines of 60 sequences with these channels to stdout: labels, and
    masks that are 0 for a prompt and for some other tokens."""
    rng = random.Random(21)
    for number in range(60):
        ids = rng.choices(range(1, 60000), k=rng.randint(1, 32))
        row = {"input_ids": ids}
        for name in channels:
            prompt = rng.randint(0, len(ids))
            mask = [int(k >= prompt and rng.random() < 0.8)
                    for k in range(len(ids))]
            row[name] = mask if name != "labels" else [
                token if kept else IGNORED for token, kept in zip(ids, mask)]
        print(json.dumps(dict(row, source=number)))


def batches(path):
    """The batches of a file, each with its expected contents."""
    source = packs.open_packs(path)
    packed, head = read_naively(path, len(source)), source.header
    for number, batch in zip(range(0, len(packed), 3), source.batches(3)):
        yield batch, Naive(packed[number:number + 3], head.capacity,
                           head.depth, head.align)


def by_default(*paths):
    """The channel of labels; otherwise the tokens that all masks keep."""
    for path in paths:
        count = wanted_count = 0
        for batch, naive in batches(path):
            targets = np.array(naive.targets(labels_of))
            equal(packviews.labels(batch), naive.labels(labels_of), np.int64)
            equal(packviews.targets(batch), targets, np.int64)
            equal(packviews.loss_mask(batch), targets != IGNORED, np.float32)
            found = maxtext.features(batch)
            equal(found["targets_segmentation"] > 0, targets != IGNORED)
            equal(found["targets"], np.where(targets < 0, 0, targets))
            count += int((packviews.targets(batch) != IGNORED).sum())
            wanted_count += sum(label != IGNORED for pack in naive.batch
                                for row in pack for label in labels_of(row)[1:])
        assert count == wanted_count > 0, path


def by_name(both, masks):
    """What `name` selects and refuses; `both` has labels and a loss mask,
    `masks` three masks."""
    def mask_only(row, name):
        return labels_of({"input_ids": row["input_ids"], name: row[name]})

    for batch, naive in batches(both):
        for name in ("loss_mask", "labels"):
            wanted = naive.labels(lambda row: mask_only(row, name) if
                                  name == "loss_mask" else row["labels"])
            equal(packviews.labels(batch, name), wanted)
        equal(packviews.labels(batch, "tokens"), naive.labels())
    for batch, naive in batches(masks):
        equal(packviews.labels(batch, "completion_mask"), naive.labels(
            lambda row: mask_only(row, "completion_mask")))
        arrays = dict(batch)        # without a header
        equal(packviews.labels(arrays), packviews.labels(batch))
        for name in ("label", "labels"):
            raises(ValueError, "no channel '%s' (per-token channels: "
                   "loss_mask, assistant_masks, completion_mask)" % name,
                   packviews.targets, batch, name)
        raises(ValueError, "'source' is not a per-token channel",
               packviews.labels, batch, "source")
        wrong = dict(batch, loss_mask=batch["loss_mask"] * 3)
        raises(ValueError, "loss_mask: 3 is neither 0 nor 1",
               packviews.labels, wrong)


def per_sequence(path):
    """Labels per sequence are not token labels, even if a pack has as many
    sequences as tokens."""
    for batch in packs.open_packs(path).batches(3):
        assert batch["labels"].shape == batch["tokens"].shape
        raises(ValueError, "'labels' is not a per-token channel",
               packviews.labels, batch)
        packviews.labels(batch, "tokens")


def shift():
    """Converts JSON lines with labels on stdin to shifted ones on stdout."""
    for line in sys.stdin:
        row = json.loads(line)
        row["labels"] = row["labels"][1:] + [IGNORED]
        print(json.dumps(row))


def shifted(aligned, path):
    """Labels that are already shifted give the same as aligned ones, also as
    an array without a header."""
    pair = [packs.open_packs(name) for name in (aligned, path)]
    assert [source.header.labels for source in pair] == [1, 2]
    for one, other in zip(*(source.batches(3) for source in pair)):
        assert (one["labels"] != other["labels"]).any()
        for function in (packviews.labels, packviews.targets):
            for name in ("tokens", "labels", None):
                wanted = function(one, name)
                equal(function(other, name), wanted, np.int64)
                equal(function(dict(one), name, False), wanted, np.int64)
                equal(function(dict(other), name, True), wanted, np.int64)
            raises(ValueError, "give shifted=", function, dict(other))
        wanted = maxtext.features(one)
        targets = packviews.targets(one, "labels")
        equal(wanted["targets"], np.where(targets < 0, 0, targets))
        for name, array in maxtext.features(other).items():
            equal(array, wanted[name], np.int32)


def beyond(path):
    """The label of a sequence's last token is a target, but not a label."""
    for batch in packs.open_packs(path).batches(3):
        behind = packviews.padding(batch)
        equal(packviews.targets(batch, "labels"),
              np.where(behind, IGNORED, batch["labels"]), np.int64)
        lacks = batch["labels"].copy()
        lengths = (batch["seq_tok"] if "seq_tok" in batch
                   else np.diff(batch["cu"])[:, :-1])
        ends = batch["cu"][:, :-2] + lengths
        for row, end, n in zip(lacks, ends, batch["n_seq"]):
            row[end[:n] - 1] = IGNORED
        changed = packs.Batch(dict(batch, labels=lacks), batch.header)
        assert (packviews.labels(changed, "labels") >= IGNORED).all()
        row, n = len(lacks) - 1, batch["n_seq"][-1]
        lacks[row, ends[row, n - 1] - 1] = 5
        raises(ValueError,
               "last token of sequence %d of" % (batch["n_seq"].sum() - 1),
               packviews.labels, changed, "labels")


if __name__ == "__main__":
    globals()[sys.argv[1]](*sys.argv[2:])
