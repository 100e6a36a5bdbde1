"""python-labels.py - labels that are shifted already, by python/packstream.

tests/tree/python.bats calls the functions by name:

    python3 python-labels.py CHECK [FILE]...

A check prints nothing and exits with 0, or fails with a traceback.

SPDX-License-Identifier: MIT
"""

import json
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)),
                                "../../python"))

import numpy as np

from packstream import maxtext, packs, views as packviews
from python_naive import IGNORED, equal, raises


def shift():
    """JSON lines with labels from stdin, with shifted ones to stdout."""
    for line in sys.stdin:
        row = json.loads(line)
        row["labels"] = row["labels"][1:] + [IGNORED]
        print(json.dumps(row))


def shifted(aligned, path):
    """Labels that are shifted already give what aligned ones give, also as
    an array without a header."""
    pair = [packs.open_packs(name) for name in (aligned, path)]
    assert [source.header.labels for source in pair] == [1, 2]
    for one, other in zip(*(source.batches(3) for source in pair)):
        assert (one["labels"] != other["labels"]).any()
        for function in (packviews.labels, packviews.targets):
            for name in ("tokens", "labels"):
                wanted = function(one, name)
                equal(function(other, name), wanted, np.int64)
                equal(function(dict(one), name, False), wanted, np.int64)
                equal(function(dict(other), name, True), wanted, np.int64)
            equal(function(dict(other)), function(one), np.int64)
            raises(ValueError, "give shifted=", function, dict(other), "labels")
        wanted = maxtext.features(one, "labels")
        targets = packviews.targets(one, "labels")
        equal(wanted["targets"], np.where(targets < 0, 0, targets))
        for name, array in maxtext.features(other, "labels").items():
            equal(array, wanted[name], np.int32)


def beyond(path):
    """The label of a sequence's last token is a target, but no label."""
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
