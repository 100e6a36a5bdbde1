"""bert.py - checks the output of the example that trains a BERT.

    bert.py sequences TEXT MASKED PLAIN    pairs are in the text, masks valid
    bert.py falls LOSSES LEAST             the loss falls by LEAST, or more
    bert.py same MOST LOSSES LOSSES...     no step's losses differ by more
    bert.py lamb STATE LOSSES FACTOR       a checkpoint after these steps, the
                                           first ones, has LAMB's numbers

SPDX-License-Identifier: MIT
"""

import array
import json
import math
import struct
import sys

CLS, SEP, MASK = 2, 3, 4


def lines(name):
    with open(name) as file:
        return [json.loads(line) for line in file]


def documents(name):
    with open(name) as file:
        found = [part.replace("\n", " ") for part in file.read().split("\n\n")]
    return [" %s " % " ".join(part.split()) for part in found if part.split()]


def places(part, found):
    words = " %s " % " ".join(map(str, part))
    return {i for i, text in enumerate(found) if words in text}


def check_pair(one, found, counts):
    """A plain sequence: its two texts are in documents, as it claims."""
    ids, types = one["input_ids"], one["token_type_ids"]
    assert ids[0] == CLS and ids[-1] == SEP and len(ids) <= 32
    second = types.index(1)
    assert types == [0] * second + [1] * (len(ids) - second)
    assert ids[second - 1] == SEP and ids.count(SEP) == 2
    first, other = ids[1:second - 1], ids[second:-1]
    assert first and other
    assert places(first, found) and places(other, found)
    label = one["next_sentence_label"]
    counts[label] += 1
    if label == 0:
        assert places(first, found) & places(other, found)


def check_masks(masked, plain, counts):
    """Labels are the original tokens; all other tokens are unchanged."""
    labels = masked["labels"]
    assert len(labels) == len(plain["input_ids"])
    for is_id, was, label in zip(masked["input_ids"], plain["input_ids"],
                                 labels):
        assert label in (-100, was) and (label == was or is_id == was)
        counts["tokens"] += was not in (CLS, SEP)
        if label != -100:
            assert was not in (CLS, SEP)
            counts["chosen"] += 1
            counts["hidden"] += is_id == MASK
            counts["kept"] += is_id == was


def sequences(text, masked, plain):
    found, all_plain, all_masked = documents(text), lines(plain), lines(masked)
    labels = {0: 0, 1: 0}
    counts = {"tokens": 0, "chosen": 0, "hidden": 0, "kept": 0}
    assert len(all_plain) == len(all_masked) > 300
    for one, other in zip(all_plain, all_masked):
        check_pair(one, found, labels)
        check_masks(other, one, counts)
    assert 0.4 < labels[1] / len(all_plain) < 0.75, labels
    assert 0.13 < counts["chosen"] / counts["tokens"] < 0.19, counts
    assert 0.75 < counts["hidden"] / counts["chosen"] < 0.85, counts
    assert 0.07 < counts["kept"] / counts["chosen"] < 0.15, counts


def falls(name, least):
    losses = [line["mlm"] for line in lines(name)]
    tenth = max(len(losses) // 10, 1)
    first, last = (sum(part) / tenth
                   for part in (losses[:tenth], losses[-tenth:]))
    assert first - last >= float(least), (first, last)


def same(most, *names):
    runs = [lines(name) for name in names]
    assert all(len(run) == len(runs[0]) > 0 for run in runs)
    for steps in zip(*runs):
        assert len({step["sequences"] for step in steps}) == 1
        for what in {"loss", "mlm", "nsp"} & set(steps[0]):
            values = [step[what] for step in steps]
            assert max(values) - min(values) <= float(most), (what, values)


def near(value, wanted, most):
    assert abs(value - wanted) <= most * wanted, (value, wanted)


def lamb(name, losses, factor):
    """Betas are 0.9 and 0.999 to the power of FACTOR or, if FACTOR is 0, of the
    sequences per pack; gradients longer than 1 are clipped."""
    with open(name, "rb") as file:
        state = file.read()
    size, = struct.unpack_from("<I", state, 16)
    bytes_of = size * struct.unpack_from("<Q", state, 24)[0]
    steps = lines(losses)
    powers = [float(factor) or step["learnt"] / step["packs"]
              for step in steps]
    assert float(factor) or max(powers) > 1
    for i, beta in enumerate((0.9, 0.999)):
        product, = struct.unpack_from("<d", state, 56 + 8 * i)
        near(product, math.prod(beta ** power for power in powers), 1e-12)
        if len(steps) > 1:
            continue
        # The moments are 1 - beta^p of the first gradient, and its squares.
        begin = len(state) - 8 - (2 - i) * bytes_of  # the last 8: a digest
        moments = array.array("f" if size == 4 else "d",
                              state[begin:begin + bytes_of])
        squares = min(steps[0]["gradient"], 1) ** 2
        rest = 1 - beta ** powers[0]
        if i == 0:
            near(sum(x * x for x in moments), rest ** 2 * squares, 1e-5)
        else:
            near(sum(moments), rest * squares, 1e-5)


if __name__ == "__main__":
    {"sequences": sequences, "falls": falls, "same": same, "lamb": lamb}[
        sys.argv[1]](*sys.argv[2:])
