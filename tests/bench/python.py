"""python.py - how fast python/packstream reads packs, compared with mmap.

    python.py [--bytes=N] [--rounds=N] BUILD_DIR

Makes packs of N (500000000) bytes of token records and reads the file in
ROUNDS (7, at least 3) rounds, all contenders in turns: cat; numpy that maps
the file and adds up its 8-byte words; and the ways of a trainer:

    batches     dictionaries of arrays, which are not read
    positions   also the merged boundaries and the positions of each batch
    int64       also the tokens as int64, the type that torch needs

each with and without checksums.  The bounds of all sequences are checked in
either case.  "from a pipe" is positions, reading from cat.  GB/s are bytes of
the file, from opening it to the last batch; CPU is processor time, including
cat's.

Needs a Python with numpy; `make bench` runs it with one.

SPDX-License-Identifier: MIT
"""

import argparse
import os
import statistics
import subprocess
import sys
import time

import measure
from measure import Failed

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)),
                                "../../python"))

import numpy as np

from packstream import native, packs, views as packviews

# Title, options of gen, options of packstream, packs of a batch.
CASES = (
    ("like BERT's, u16, L 512, D 3, batches of 64 packs",
     ["--mean=256", "--longest=512"], ["-L512", "-d3", "-w4096"], 64),
    ("long, u16, L 8192, D 64, batches of 16 packs",
     ["--mean=4000", "--longest=8192", "--spread=60"],
     ["-L8192", "-d64", "-w1024"], 16),
)


# -------------------------------------------------------------- contenders

def run_cat(name):
    subprocess.run(["cat", name], stdout=subprocess.DEVNULL, check=True)


def add_up(name):
    np.add.reduce(np.asarray(np.memmap(name, np.uint64, "r")))


def batches(batch):
    return batch["tokens"]


def positions(batch):
    cu = packviews.merged_cu(batch)
    return packviews.positions(batch, cu=cu)


def int64(batch):
    positions(batch)
    return batch["tokens"].astype(np.int64)


def read(source, size, step, verify):
    reader = packs.open_packs(source, verify)
    if reader.verifies != verify:
        raise Failed("python has no xxhash module")
    for batch in reader.batches(size):
        step(batch)


def read_pipe(name, size, verify):
    with subprocess.Popen(["cat", name], stdout=subprocess.PIPE) as child:
        read(child.stdout, size, positions, verify)


def timed(function, *arguments):
    """Runs it; returns its wall clock and processor seconds."""
    def run():
        used, start = sum(os.times()[:4]), time.perf_counter()
        function(*arguments)
        return time.perf_counter() - start, sum(os.times()[:4]) - used
    return run


def contenders(name, size):
    found = {"cat": timed(run_cat, name), "mapped, added up":
             timed(add_up, name)}
    for verify in ((True, False) if native.xxh3 else (False,)):
        tail = "" if verify else ", no checksums"
        for step in (batches, positions, int64):
            found[step.__name__ + tail] = timed(read, name, size, step,
                                                verify)
        found["from a pipe" + tail] = timed(read_pipe, name, size, verify)
    return found


# ------------------------------------------------------------------ tables

def make(folder, wanted, lengths, options):
    """The name of a file of packs."""
    name = os.path.join(folder, "x.pks")
    gen = ["gen", "--bytes=%d" % wanted, "--width=2"] + lengths
    with open(name, "wb") as file:
        with subprocess.Popen(gen, stdout=subprocess.PIPE) as child:
            done = subprocess.run(["packstream", "-q"] + options,
                                  stdin=child.stdout, stdout=file,
                                  check=False)
    if done.returncode or child.returncode:
        raise Failed("no packs could be made")
    return name


def row(name, times, plain, size):
    seconds = [taken for taken, _ in times]
    low, middle, high = measure.quartiles([size / s / 1e9 for s in seconds])
    return [name, "%.2f" % middle, "%.2f-%.2f" % (low, high),
            "%.2f" % (statistics.median(plain) / statistics.median(seconds)),
            "%.2f s" % statistics.median(used for _, used in times)]


def report(title, lengths, packing, batch, options):
    with measure.room(options.bytes * 1.5) as folder:
        name = make(folder, options.bytes, lengths, packing)
        size = os.path.getsize(name)
        times = measure.take_turns(contenders(name, batch), options.rounds)
        plain = [taken for taken, _ in times["mapped, added up"]]
        where = os.path.dirname(folder)
    return ["Packs " + title, "%.2f GB in %s; %d rounds" % (
        size / 1e9, where, options.rounds)] + \
        measure.table([["", "GB/s", "quartiles", "of mapped", "CPU"]] +
                      [row(what, seconds, plain, size)
                       for what, seconds in times.items()])


def main():
    parser = argparse.ArgumentParser(prog="python.py")
    parser.add_argument("--bytes", type=int, default=500000000)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("build")
    options = parser.parse_args()
    if options.rounds < 3 or options.bytes < 10**6:
        parser.error("3 rounds at least, and a million bytes")
    measure.find_programs(options.build)
    lines = [measure.machine(), "python %s, numpy %s" % (
        sys.version.split()[0], np.__version__)]
    for title, lengths, packing, batch in CASES:
        lines += [""] + report(title, lengths, packing, batch, options)
    measure.show(lines)


if __name__ == "__main__":
    measure.run_main(main)
