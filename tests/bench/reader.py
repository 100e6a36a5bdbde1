"""reader.py - how fast a minimal trainer reads, compared with cat.

    reader.py [OPTION]... BUILD_DIR

      --bytes=N           of token records to make packs of (1000000000)
      --rounds=N          at least 3 (7)

The trainer is examples/c/read-packs.  It takes the place of a cat that
discards its input:

    X <F            cat is `cat <F >/dev/null`
    cat F | X       cat is `cat F | cat >/dev/null`

"next" is ps_pack_reader_next, pack by pack; "batches of 64" is ps_loader_next.
Between pipes there is also a "wide cat", with pipes of 256 KiB, which the
reader sets up itself.  F, the packs, is in memory if it fits.  GB/s are of F,
and a GB is 10^9 bytes.  CPU is the processor time of X, of all its threads.
All take turns.

`make bench` runs it.

SPDX-License-Identifier: MIT
"""

import functools
import os
import subprocess

import measure
import throughput
from measure import Failed

CASES = (("bert-d3", 1.0, (64, 512)), ("long-u32", 0.5, (4, 32)))
PLACES = {"file": "X <F", "pipe": "cat F | X >/dev/null"}


def contender(place, command, name, size):
    """Runs the command in its position once; seconds, and its own CPU time."""
    if place == "file":
        return measure.time_pipe([command], 0, source=name)
    return measure.time_pipe([["cat", name], command], 1, size=size)


def contenders(place, reader, batches, name):
    found = {"cat": (["cat"], 0)}
    if place == "pipe":
        found["wide cat"] = (["cat"], throughput.WIDE)
    found["next"] = ([reader], 0)
    for packs in batches:
        found["batches of %d" % packs] = ([reader, "-s", str(packs)], 0)
    return {key: functools.partial(contender, place, command, name, size)
            for key, (command, size) in found.items()}


def rows_of(place, times, size):
    rows = [[""], [PLACES[place]],
            ["X", "GB/s", "quartiles", "cat", "95 %", "CPU"]]
    for key, results in times.items():
        speeds = [size / wall / 1e9 for wall, _ in results]
        low, middle, high = measure.quartiles(speeds)
        cells = throughput.ratio_cells(times, "cat", key)
        cpu = measure.quartiles([used for _, used in results])[1]
        rows.append([key, "%.2f" % middle, "%.2f-%.2f" % (low, high), *cells,
                     "%.3f s" % cpu])
    return rows


def table(case, batches, share, reader, options):
    title, lengths, width, shape, _ = throughput.CASES[case]
    size = int(options.bytes * share)
    with measure.room(throughput.ROOM * size) as folder:
        name, what = throughput.generate(folder, lengths, width, size)
        packs = os.path.join(folder, "packs")
        with open(packs, "wb") as file:
            subprocess.run(throughput.packstream(width, shape) + [name],
                           stdout=file, check=True)
        os.unlink(name)
        size = os.path.getsize(packs)
        lines = throughput.heading("Reading: " + title, folder, size,
                                   options, what)
        rows = []
        for place in PLACES:
            times = measure.take_turns(
                contenders(place, reader, batches, packs), options.rounds)
            rows += rows_of(place, times, size)
    return lines + measure.table(rows)


def find_reader(build):
    """The program itself, not libtool's wrapper."""
    folder = os.path.join(os.path.abspath(build), "examples/c")
    for name in (".libs/read-packs", "read-packs"):
        reader = os.path.join(folder, name)
        if os.access(reader, os.X_OK):
            return reader
    raise Failed("%s holds no read-packs; `make bench` there makes it"
                 % folder)


def main():
    options = measure.parse(__doc__, 10**9, 10**6)
    measure.find_programs(options.build)
    reader = find_reader(options.build)
    for case, share, batches in CASES:
        measure.show(table(case, batches, share, reader, options))


if __name__ == "__main__":
    measure.run_main(main)
