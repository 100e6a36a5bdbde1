"""shapes.py - what padding costs a BERT, and each way of leaving it out.

    shapes.py [--rounds=N] [--sequences=N] [--batch=N] [--page=FILE] BUILD_DIR

Trains the example's BERT (2 layers of width 256, 4 heads, vocabulary of 1696)
on sequences of random tokens, whose lengths are drawn like those of SQuAD 1.1
in 384 tokens and of Wikipedia in 512:

    padded              each in a row of its own, all of which is computed
    stripped            rows are as long as the longest of their step
    bucketed, stripped  the same, after tokshuf --by-length
    packed              full rows, in which a mask keeps sequences apart
    packed, varlen      each sequence of a pack by itself, and no padding
    varlen              the same of rows that hold one sequence

The first four have the dense attention of other trainers, L x L under a mask.
A step has BATCH (16) sequences or, of packs, as many as hold about that number.
A run makes one epoch of SEQUENCES (128), which are one bucket of tokshuf.

What is counted is sequences per second of processor time, on one thread: all
steps, with forward, backward and the optimiser.  Contenders take turns for
ROUNDS (7) rounds.  "Theirs" are the ratios of BERT-large on OpenWebText that
Marshall tells of in "Variable Tensor Shape" (2022); there each row is stripped
by itself, and waits for longer ones before it in a pipeline.

Ends with 1 if a contender fails, or if those that learn from the same sequences
in the same order have other losses; not if one is slow.  Not part of `make
check`; `make bench-shapes` runs it.

SPDX-License-Identifier: MIT
"""

import argparse
import functools
import itertools
import math
import os
import random

import measure
from measure import Failed

VOCAB = 1696
MODEL = ["--hidden=256", "--layers=2", "--heads=4", "--vocab=%d" % VOCAB]
# How long a sequence is: median and spread of a lognormal distribution, cut at
# the ends.  Their means and quartiles are near those of the data sets.
SETS = {
    "shapes-squad": ("SQuAD 1.1", 160, 0.4, 36, 384),
    "shapes-wikipedia": ("Wikipedia", 215, 1.1, 5, 512),
}
# Stream, attention and rows; their ratio, if they have one.
CONTENDERS = {
    "padded": ("single", "dense", "padded", "1"),
    "stripped": ("single", "dense", "stripped", "1.2"),
    "bucketed, stripped": ("bucketed", "dense", "stripped", "1.4"),
    "packed": ("packed", "dense", "padded", ""),
    "packed, varlen": ("packed", "varlen", "unpadded", ""),
    "varlen": ("single", "varlen", "unpadded", ""),
}
SAME = 1e-4  # of a loss, after many steps of rounding


def draw(name, count):
    """Sequences of tokens, the same in every run."""
    _, median, spread, least, most = SETS[name]
    rng = random.Random(1)
    for _ in range(count):
        drawn = rng.lognormvariate(math.log(median), spread)
        length = min(max(int(drawn), least), most)
        yield [rng.randrange(measure.FIRST_TOKEN, VOCAB) for _ in range(length)]


def write_streams(folder, name, options):
    """By kind, a stream and how many packs it has; and the lengths of
    sequences."""
    records, ordered = (os.path.join(folder, file)
                        for file in ("records", "ordered"))
    sequences = list(draw(name, options.sequences))
    measure.write_records(records, sequences, VOCAB)
    measure.output_of(["tokshuf", "--by-length=%d" % options.sequences, "-o",
                       ordered, records])
    single = ["-d1", "-w1"]
    streams = {}
    for kind, source, ways in (("single", records, single),
                               ("bucketed", ordered, single),
                               ("packed", records, [])):
        stream = os.path.join(folder, kind)
        streams[kind] = stream, measure.pack(stream, source, SETS[name][4],
                                             *ways)
    return streams, [len(tokens) for tokens in sequences]


def train(stream, attention, rows, options):
    """Sequences per second, and the losses of steps."""
    name, packs = stream
    packs = round(options.batch * packs / options.sequences)
    command = ["bert-train", "--stats=json", "--report=1", "--dropout=0.1",
               "--packs=%d" % packs, "--attention=" + attention,
               "--rows=" + rows, *MODEL, name]
    steps = measure.reports_of(command)
    if sum(step["learnt"] for step in steps) != options.sequences:
        raise Failed("bert-train left out sequences")
    return (options.sequences / sum(step["processor"] for step in steps),
            [step["loss"] for step in steps])


def check_losses(found):
    """Those of one stream are the same, step by step, in all ways."""
    for (one, first), (other, second) in itertools.combinations(
            found.items(), 2):
        if CONTENDERS[one][0] != CONTENDERS[other][0]:
            continue
        for a, b in zip(first[0][1], second[0][1]):
            if abs(a - b) > SAME * abs(b):
                raise Failed("%s and %s have losses of %.9g and %.9g" %
                             (one, other, a, b))


def rows_of(kind, rows, streams, lengths, capacity, batch):
    """How many rows are computed for them."""
    if rows == "unpadded":
        return sum(lengths)
    if rows == "padded":
        return streams[kind][1] * capacity
    if kind == "bucketed":
        lengths = sorted(lengths)
    steps = [lengths[i:i + batch] for i in range(0, len(lengths), batch)]
    return sum(max(step) * len(step) for step in steps)


def table(name, folder, options):
    words, *_, capacity = SETS[name]
    streams, lengths = write_streams(folder, name, options)
    found = measure.take_turns(
        {who: functools.partial(train, streams[kind], attention, rows,
                                options)
         for who, (kind, attention, rows, _) in CONTENDERS.items()},
        options.rounds)
    check_losses(found)
    speeds = {who: [speed for speed, _ in runs] for who, runs in found.items()}
    rows = [["", "padding", "sequences/s", "quartiles", "times", "95 %",
             "theirs"]]
    for who, (kind, _, which, theirs) in CONTENDERS.items():
        computed = rows_of(kind, which, streams, lengths, capacity,
                           options.batch)
        lower, middle, upper = measure.quartiles(speeds[who])
        times, low, high = measure.ratio(speeds[who], speeds["padded"])
        rows.append([who, "%.1f %%" % (100 - 100 * sum(lengths) / computed),
                     "%.2f" % middle, "%.2f-%.2f" % (lower, upper),
                     "%.2f" % times, "%.2f-%.2f" % (low, high), theirs])
    return ["Lengths like %s, in rows of %d; on average %.0f" % (
                words, capacity, sum(lengths) / len(lengths)),
            measure.machine(),
            "%d sequences, about %d a step; processor time of one thread; %d "
            "rounds" % (options.sequences, options.batch, options.rounds),
            ""] + measure.table(rows)


def parse():
    parser = argparse.ArgumentParser(usage=__doc__, add_help=False)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--sequences", type=int, default=128)
    parser.add_argument("--batch", type=int, default=16)
    parser.add_argument("--page")
    parser.add_argument("build")
    options = parser.parse_args()
    if options.rounds < 3 or not 0 < options.batch <= options.sequences:
        parser.error("at least 3 rounds, and a step of sequences")
    return options


def main():
    options = parse()
    measure.find_programs(options.build)
    os.environ["OMP_NUM_THREADS"] = "1"
    for name in SETS:
        with measure.room(10000 * options.sequences) as folder:
            measure.tell(name, table(name, folder, options), options.page)


if __name__ == "__main__":
    measure.run_main(main)
