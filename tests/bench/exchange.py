"""exchange.py - what ranks gain that exchange packs.

    exchange.py [--only=INPUT[,INPUT]] [--rounds=N] [--packs=N] [--page=FILE]
        BUILD_DIR

Two ranks of one thread each train the example's BERT (2 layers of width 256, 4
heads, vocabulary of 3392) on sequences of random tokens, in a row of their own
each; padding is not computed.  Three inputs:

    uneven   one shard has sequences of 256 to 512 tokens, the other of 32 to
             256
    alike    both have sequences of 32 to 512 tokens
    stream   the first rank reads those of 32 to 512 for both

and three ways, --exchange=balance, padded and none, which take turns for ROUNDS
(7) rounds.  The table has the medians of four numbers: the time of a step,
waiting for its packs included; that of its exchange, reading included; how much
of the exchange was hidden behind the step before; and the imbalance, the
greatest cost of a rank over their mean.  Below it stands how many times as long
as with `balance` a step takes without an exchange, beside what the imbalances
predict.

A run makes a step to warm up, and seven more.  Ends with 1 if a contender
fails, not if it is slow.  Not part of `make check`; `make bench-exchange` runs
it.

SPDX-License-Identifier: MIT
"""

import argparse
import functools
import os
import random
import shutil
import statistics

import measure
from measure import Failed

LENGTH = 512
VOCAB = 3392
STEPS = 8           # of which the first is not counted
RANKS = 2
HIDDEN_GOAL = 0.9
NEAR = 0.1          # of what is predicted
WAYS = ["balance", "padded", "none"]
# The shortest and longest sequences of each rank's shard; of all, in a stream.
INPUTS = {"uneven": [(256, 512), (32, 256)],
          "alike": [(32, 512), (32, 512)],
          "stream": [(32, 512)]}
MODEL = ["--hidden=256", "--layers=2", "--heads=4", "--vocab=%d" % VOCAB]
# More ranks than processors, by whoever runs this, on this machine alone.
MPI = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
       "OMPI_MCA_rmaps_base_oversubscribe": "1", "OMPI_MCA_btl": "self,vader",
       "OMPI_MCA_btl_vader_single_copy_mechanism": "none",
       "OMP_NUM_THREADS": "1", "OMP_WAIT_POLICY": "passive"}


def write_shard(name, bounds, count, seed):
    """Packs of one sequence each."""
    rng = random.Random(seed)
    records = name + ".tok"
    sequences = ([rng.randrange(measure.FIRST_TOKEN, VOCAB)
                  for _ in range(rng.randint(*bounds))]
                 for _ in range(count))
    measure.write_records(records, sequences, VOCAB)
    measure.output_of(["packstream", "-q", "-L%d" % LENGTH, "-w1", "-o", name,
                       records])


def write_inputs(folder, packs):
    for kind, shards in INPUTS.items():
        for i, bounds in enumerate(shards):
            write_shard(os.path.join(folder, "%s.%d" % (kind, i)), bounds,
                        packs * STEPS, i)


def run(folder, kind, way, packs):
    """Steps as bert-train tells them, the first one left out."""
    command = ["mpirun", "--bind-to", "none", "-n", str(RANKS), "bert-train",
               "--stats=json", "--report=1", "--packs=%d" % packs,
               "--steps=%d" % STEPS, "--exchange=" + way, *MODEL]
    if len(INPUTS[kind]) > 1:
        told = measure.reports_of(
            command + [os.path.join(folder, kind + ".%d")])
    else:
        with open(os.path.join(folder, kind + ".0")) as file:
            told = measure.reports_of(command + ["-"], stdin=file)
    steps = told[1:]
    if len(steps) != STEPS - 1:
        raise Failed("bert-train made %d steps" % (len(steps) + 1))
    exchange = sum(step["exchange"] for step in steps)
    return {"step": statistics.median(step["seconds"] + step["waited"]
                                      for step in steps),
            "exchange": exchange / len(steps),
            "hidden": 1 - sum(step["waited"] for step in steps) / exchange,
            "imbalance": statistics.mean(step["imbalance"]
                                         for step in steps)}


def median(runs, what):
    return statistics.median(run[what] for run in runs)


def summary(found):
    """What the goals are about, in a line or two."""
    times, low, high = measure.ratio([run["step"] for run in found["none"]],
                                     [run["step"] for run in
                                      found["balance"]])
    predicted = (median(found["none"], "imbalance") /
                 median(found["balance"], "imbalance"))
    hidden = median(found["balance"], "hidden")
    return ["none takes %.2f times as long as balance (95 %%: %.2f-%.2f), "
            "predicted %.2f%s" % (times, low, high, predicted,
                                  "" if abs(times / predicted - 1) <= NEAR
                                  else "  missed"),
            "hidden: %.1f %% (%.0f %% wanted)%s" % (
                100 * hidden, 100 * HIDDEN_GOAL,
                "" if hidden >= HIDDEN_GOAL else "  missed")]


def table(folder, kind, options):
    found = measure.take_turns(
        {way: functools.partial(run, folder, kind, way, options.packs)
         for way in WAYS}, options.rounds)
    rows = [["", "step ms", "quartiles", "exchange ms", "hidden %",
             "imbalance"]]
    for way in WAYS:
        low, middle, high = measure.quartiles(
            [1000 * run["step"] for run in found[way]])
        rows.append([way, "%.1f" % middle, "%.1f-%.1f" % (low, high),
                     "%.2f" % (1000 * median(found[way], "exchange")),
                     "%.1f" % (100 * median(found[way], "hidden")),
                     "%.4f" % median(found[way], "imbalance")])
    return [kind] + [""] + measure.table(rows) + [""] + summary(found)


def parse():
    parser = argparse.ArgumentParser(usage=__doc__, add_help=False)
    parser.add_argument("--only", default=",".join(INPUTS))
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--packs", type=int, default=16)
    parser.add_argument("--page")
    parser.add_argument("build")
    options = parser.parse_args()
    options.only = options.only.split(",")
    if (not set(options.only) <= set(INPUTS) or options.rounds < 3 or
            options.packs < RANKS):
        parser.error("unknown input, or too few rounds or packs")
    return options


def main():
    options = parse()
    measure.find_programs(options.build)
    if shutil.which("mpirun") is None:
        raise Failed("mpirun is not installed")
    os.environ.update(MPI)
    lines = [measure.machine(),
             "%d ranks of one thread, %d sequences a step, %d rounds"
             % (RANKS, options.packs, options.rounds)]
    with measure.room(200_000_000) as folder:
        write_inputs(folder, options.packs)
        for kind in options.only:
            lines += [""] + table(folder, kind, options)
    measure.tell("exchange", lines, options.page)


if __name__ == "__main__":
    measure.run_main(main)
