"""dataset.py - packstream.pack_dataset compared with TRL's bfd.

    dataset.py [--rows=N] [--rounds=N]

Makes a dataset of N (300000) rows with the lengths of Wikipedia for BERT or,
without the published histogram, similar ones; packs it to 512 tokens in ROUNDS
(7, at least 3) rounds, both in turns; and prints rows a second, the ratio, and
how full the packs are:

    memory      from a dataset in memory to one in memory
    files       from the files of save_to_disk to a file, in a folder in
                memory, so that no disk is measured
    labels      as files, with a column of labels beside the tokens

Tokens and labels are int32, as datasets stores the output of a tokenizer.
Both write the same columns.

Needs a python3 with the package, datasets and trl.

SPDX-License-Identifier: MIT
"""

import argparse
import os
import time

import measure
from measure import Failed

import numpy as np

CAPACITY = 512
CLOCKS = {"the clock": time.perf_counter,
          "processor": time.process_time}
COLUMNS = {"memory": ["input_ids"], "files": ["input_ids"],
           "labels": ["input_ids", "labels"]}


def draw_lengths(rows):
    rng = np.random.default_rng(1)
    name = measure.wikipedia()
    if name is None:
        return rng.triangular(1, CAPACITY, CAPACITY + 1, rows).astype(int)
    with open(name) as file:
        pairs = [list(map(int, line.split()[:2])) for line in file
                 if not line.startswith("#")]
    lengths, counts = np.array(pairs).T
    return rng.choice(lengths, rows, p=counts / counts.sum())


def make(lengths, names):
    import datasets
    import pyarrow as pa
    offsets = np.append(0, np.cumsum(lengths)).astype(np.int32)
    values = np.random.default_rng(2).integers(
        0, 30000, offsets[-1]).astype(np.int32)
    lists = pa.ListArray.from_arrays(offsets, values)
    return datasets.Dataset(pa.table({name: lists for name in names}))


def contenders(case, folder, rows, filled, clock):
    """Calls that return the time of each."""
    import datasets
    import packstream
    import trl

    def timed(key, pack):
        dataset = rows
        if case != "memory":
            dataset = datasets.load_from_disk(folder)
            for name in os.listdir(folder):
                if name.startswith(("cache-", "packed-")):
                    os.unlink(os.path.join(folder, name))
        begin = clock()
        packed = pack(dataset)
        used = clock() - begin
        filled[key] = len(packed)
        return used

    return {"packstream": lambda: timed("packstream", lambda dataset:
                                        packstream.pack_dataset(
                                            dataset, CAPACITY)),
            "TRL": lambda: timed("TRL", lambda dataset: trl.pack_dataset(
                dataset, CAPACITY, "bfd"))}


def table(options):
    try:
        import datasets
        import packstream       # noqa: F401
        import trl
    except ImportError as missing:
        raise Failed("python3 has no %s" % missing.name) from None
    datasets.disable_progress_bars()
    lengths = draw_lengths(options.rows)
    lines = ["pack_dataset beside the bfd of TRL %s" % trl.__version__,
             measure.machine(),
             "%d rows of %d tokens on average, %s; %d rounds"
             % (options.rows, lengths.mean(),
                "as Wikipedia" if measure.wikipedia() else "made up",
                options.rounds)]
    found = [["case", "by", "packstream rows/s", "TRL rows/s", "ratio",
              "95 %", "packstream full", "TRL full"]]
    for case, names in COLUMNS.items():
        rows, filled = make(lengths, names), {}
        for by, clock in CLOCKS.items():
            with measure.room(32 * int(lengths.sum())) as folder:
                if case != "memory":
                    rows.save_to_disk(folder)
                times = measure.take_turns(contenders(
                    case, folder, rows, filled, clock), options.rounds)
            speeds = [options.rows / measure.quartiles(times[key])[1]
                      for key in times]
            full = [lengths.sum() / filled[key] / CAPACITY for key in times]
            ratio, low, high = measure.ratio(times["TRL"],
                                             times["packstream"])
            found.append([case, by,
                          *("%.0f k" % (speed / 1e3) for speed in speeds),
                          "%.1f" % ratio, "%.1f-%.1f" % (low, high),
                          *("%.2f %%" % (100 * part) for part in full)])
    return lines + [""] + measure.table(found)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--rows", type=int, default=300000)
    parser.add_argument("--rounds", type=int, default=7)
    options = parser.parse_args()
    if options.rows < 1000 or options.rounds < 3:
        raise Failed("at least 1000 rows and 3 rounds")
    measure.show(table(options))


if __name__ == "__main__":
    measure.run_main(main)
