"""bert.py - how fast a BERT learns from packs, beside padded rows.

    bert.py [--only=NAME[,NAME]] [--rounds=N] [--packs=N]
        BUILD_DIR

Trains the example's BERT on sequences of random tokens with the lengths of
Wikipedia as BERT was trained on it (drawn by gen from the published
histogram, or without that from a lognormal distribution of the same mean),
each in a row of 512 of its own, and packed, at most 3 in a row.  Both ways
have the same model and as many rows in a step (PACKS, 8); and both are tried
with the paper's dense mask and with attention that goes sequence by sequence.
Padding is computed in all of them.

What is counted is sequences per second of training steps: forward, backward
and the optimiser; ratios are told of processor time as well, on which other
work of the machine has less influence.  It is rows per second, times the
sequences in a row over the whole stream.  A run makes a step to
warm up and seven more, of which the median counts: a larger batch than all
before has memory made for it.  Contenders take turns for ROUNDS (7) rounds.

Ends with 1 if a contender fails, not if it is slow.  Not part of `make
check`; `make bench-bert` runs it.

SPDX-License-Identifier: MIT
"""

import argparse
import array
import functools
import os
import statistics
import subprocess

import measure
from measure import Failed

LENGTH = 512
TOKENS = 4_000_000
VOCAB = 2544        # of the tokens that are drawn
STEPS = 8           # of which the first is not counted
# Their vocabularies are to width times layers what 30522 is in BERT-base: so
# the head, which has twice the work where there are twice the masked tokens,
# has the share of the work that it has there.
MODELS = {
    "small": ("4 layers of width 256, 4 heads, vocabulary of 3392",
              ["--hidden=256", "--layers=4", "--heads=4", "--vocab=3392"]),
    "base": ("A twelfth of BERT-base: 1 layer of width 768, 12 heads, "
             "vocabulary of 2544",
             ["--hidden=768", "--layers=1", "--heads=12", "--vocab=2544"]),
}
# The first is what the others are compared with.
CONTENDERS = {
    "padded, dense mask": ("padded", "dense"),
    "packed, dense mask": ("packed", "dense"),
    "padded, varlen": ("padded", "varlen"),
    "packed, varlen": ("packed", "varlen"),
}


def sequences():
    """Sequences as gen draws them, their tokens brought below VOCAB."""
    command = ["gen", "--bytes=%d" % (2 * TOKENS), "--longest=%d" % LENGTH]
    if measure.wikipedia():
        command.append("--hist=" + measure.wikipedia())
    else:
        command.append("--mean=256")
    done = subprocess.run(command, stdout=subprocess.PIPE, check=False)
    if done.returncode != 0:
        raise Failed("gen failed")
    first = measure.FIRST_TOKEN
    at = 0
    while at < len(done.stdout):
        count = int.from_bytes(done.stdout[at:at + 4], "little")
        tokens = array.array("H", done.stdout[at + 4:at + 4 + 2 * count])
        yield [first + token % (VOCAB - first) for token in tokens]
        at += 4 + 2 * count


def write_records(folder):
    """Token records of these sequences, and how many there are."""
    records = os.path.join(folder, "records")
    return records, measure.write_records(records, sequences(), VOCAB)


def pack(folder, records, kind, options):
    """A stream, and how many packs it has."""
    name = os.path.join(folder, kind)
    return name, measure.pack(name, records, LENGTH, *options)


def rows_per_second(name, attention, model, packs):
    """By the clock on the wall, and by processor time."""
    command = ["bert-train", "--stats=json", "--report=1", "--dropout=0.1",
               "--packs=%d" % packs, "--steps=%d" % STEPS,
               "--attention=" + attention, "--rows=padded", *model, name]
    steps = measure.reports_of(command)[1:]
    if len(steps) != STEPS - 1:
        raise Failed("bert-train made %d steps" % (len(steps) + 1))
    return [statistics.median(step["packs"] / step[clock] for step in steps)
            for clock in ("seconds", "processor")]


def run(model, streams, options):
    contenders = {
        name: functools.partial(rows_per_second, streams[kind][0], attention,
                                model, options.packs)
        for name, (kind, attention) in CONTENDERS.items()}
    return measure.take_turns(contenders, options.rounds)


def table(name, streams, count, options):
    words, model = MODELS[name]
    found = run(model, streams, options)
    rows = [["", "sequences/s", "quartiles", "in a row", "times", "95 %",
             "by CPU", "95 %"]]
    base = list(zip(*found[next(iter(CONTENDERS))]))
    for who, (kind, _) in CONTENDERS.items():
        factor = count / streams[kind][1]
        wall, used = ([factor * speed for speed in speeds]
                      for speeds in zip(*found[who]))
        times, low, high = measure.ratio(wall, base[0])
        by_cpu, *bounds = measure.ratio(used, base[1])
        lower, middle, upper = measure.quartiles(wall)
        rows.append([who, "%.1f" % middle, "%.1f-%.1f" % (lower, upper),
                     "%.3f" % factor, "%.2f" % times,
                     "%.2f-%.2f" % (low, high), "%.2f" % by_cpu,
                     "%.2f-%.2f" % tuple(bounds)])
    return [words[0].upper() + words[1:], measure.machine(),
            "%d sequences, lengths %s; %d rows of %d a step; %d threads; %d "
            "rounds" % (count, "of Wikipedia" if measure.wikipedia()
                        else "lognormal", options.packs, LENGTH,
                        threads(), options.rounds),
            ""] + measure.table(rows)


def threads():
    return int(os.environ.get("OMP_NUM_THREADS",
                              len(os.sched_getaffinity(0))))


def parse():
    parser = argparse.ArgumentParser(usage=__doc__, add_help=False)
    parser.add_argument("--only", default=",".join(MODELS))
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--packs", type=int, default=8)
    parser.add_argument("build")
    options = parser.parse_args()
    options.only = options.only.split(",")
    if not set(options.only) <= set(MODELS) or options.rounds < 3:
        parser.error("unknown model, or too few rounds")
    return options


def main():
    options = parse()
    measure.find_programs(options.build)
    # Threads that wait by working would be counted.
    os.environ["OMP_WAIT_POLICY"] = "passive"
    with measure.room(20 * TOKENS) as folder:
        records, count = write_records(folder)
        # Else the rows with which a stream begins would not be like others:
        # sequences that fill a pack alone do not wait.
        streams = {"padded": pack(folder, records, "padded", ["-w1"]),
                   "packed": pack(folder, records, "packed",
                                  ["-d3", "-w4096", "--order=input"])}
        for name in options.only:
            measure.show(table(name, streams, count, options))


if __name__ == "__main__":
    measure.run_main(main)
