"""bert.py - how fast a BERT trains on packs, compared with padded rows.

    bert.py [--only=NAME[,NAME]] [--rounds=N] [--packs=N]
        BUILD_DIR

Trains the example's BERT on sequences of random tokens with the lengths of
Wikipedia as BERT was trained on it (drawn by gen from the published
histogram, or without that from a lognormal distribution of the same mean),
each in its own row of 512, and packed, at most 3 in a row.  Both have the same
model and the same number of rows in a step (PACKS, 8); and both are tried with
the paper's dense mask and with attention computed for each sequence.  Padding
is computed in all of them.

Measures sequences per second of training steps: forward, backward and the
optimiser.  Ratios are given in processor time as well, on which the machine's
other work has less influence.  The figure is rows per second, times the mean
number of sequences in a row of the whole stream.  A run makes one step to warm
up and seven more, of which the median counts, because a batch larger than all
before allocates memory.  Contenders take turns for ROUNDS (7) rounds.

Exits with 1 if a contender fails, not if it is slow.  Not part of `make
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
VOCAB = 2544        # of the random tokens
STEPS = 8           # of which the first is not counted
# Vocabularies are scaled from 30522 in BERT-base by width times layers, so
# that the head, which has twice the work for twice the masked tokens, has the
# same share of the work as in BERT-base.
MODELS = {
    "small": ("4 layers of width 256, 4 heads, vocabulary of 3392",
              ["--hidden=256", "--layers=4", "--heads=4", "--vocab=3392"]),
    "base": ("A twelfth of BERT-base: 1 layer of width 768, 12 heads, "
             "vocabulary of 2544",
             ["--hidden=768", "--layers=1", "--heads=12", "--vocab=2544"]),
}
# The others are compared with the first.
CONTENDERS = {
    "padded, dense mask": ("padded", "dense"),
    "packed, dense mask": ("packed", "dense"),
    "padded, varlen": ("padded", "varlen"),
    "packed, varlen": ("packed", "varlen"),
}


def drawn(command, vocab):
    """Sequences drawn by gen, with tokens reduced to below `vocab`."""
    done = subprocess.run(command, stdout=subprocess.PIPE, check=False)
    if done.returncode != 0:
        raise Failed("gen failed")
    first = measure.FIRST_TOKEN
    at = 0
    while at < len(done.stdout):
        count = int.from_bytes(done.stdout[at:at + 4], "little")
        tokens = array.array("H", done.stdout[at + 4:at + 4 + 2 * count])
        yield [first + token % (vocab - first) for token in tokens]
        at += 4 + 2 * count


def sequences():
    command = ["gen", "--bytes=%d" % (2 * TOKENS), "--longest=%d" % LENGTH]
    if measure.wikipedia():
        command.append("--hist=" + measure.wikipedia())
    else:
        command.append("--mean=256")
    return drawn(command, VOCAB)


def write_records(folder):
    """Token records of these sequences, and their number."""
    records = os.path.join(folder, "records")
    return records, measure.write_records(records, sequences(), VOCAB)


def pack(folder, records, kind, options):
    """A stream, and its number of packs."""
    name = os.path.join(folder, kind)
    return name, measure.pack(name, records, LENGTH, *options)


def rows_per_second(name, attention, model, packs):
    """By wall clock, and by processor time."""
    command = ["packtrain", "--stats=json", "--report=1", "--dropout=0.1",
               "--packs=%d" % packs, "--steps=%d" % STEPS,
               "--attention=" + attention, "--rows=padded", *model, name]
    steps = measure.reports_of(command)[1:]
    if len(steps) != STEPS - 1:
        raise Failed("packtrain made %d steps" % (len(steps) + 1))
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
    # Threads that wait actively would be counted.
    os.environ["OMP_WAIT_POLICY"] = "passive"
    with measure.room(20 * TOKENS) as folder:
        records, count = write_records(folder)
        # Otherwise the first rows of a stream would differ from later ones:
        # sequences that fill a pack alone do not wait.
        streams = {"padded": pack(folder, records, "padded", ["-w1"]),
                   "packed": pack(folder, records, "packed",
                                  ["-d3", "-w4096", "--order=input"])}
        for name in options.only:
            measure.show(table(name, streams, count, options))


if __name__ == "__main__":
    measure.run_main(main)
