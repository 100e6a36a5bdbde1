"""grid.py - how near the engine comes to the bound, on many streams.

    grid.py [OPTION]... BUILD_DIR

Runs tests/bench/engine of BUILD_DIR on each stream with each depth D and each
window W, and prints a line for each cell: the bound (no plan for all lengths
drawn is better), and for each engine the efficiency, its distance from the
bound, the longest delay in windows and nanoseconds per sequence.  A line ends
in "<NAME" for each packer that is better than the last engine.  Then prints
for each engine

  - the share of cells of random streams (each sequence independent of the
    others) by gap to the bound, and the worst cells
  - where more depth, a longer window or a longer delay reduces efficiency, on
    long streams and on short ones
  - with --peers, where another packer is better

and, for all engines except the first, where they are worse than the first.

    --engine=FILE      an engine instead of BUILD_DIR's; again for more
    --streams=WORD,... only streams whose name has one of these words
    --depths=N,...     (3,4,5,8,16,64)
    --windows=N,...    (256,1024,4096)
    --delays=N,...     longest delays in windows (1,2,4,8); cells have 2
    --sequences=N      (300000)
    --short=N,...      of short streams (5000,20000,50000); may be empty
    --peers            our other policies (nnlshp, which is slow, on 50,000
                       sequences, against as many of ours); best fit
                       decreasing on blocks of W; TRL's bfd, a rival from D 64
                       on, and with at most D in a row; grain's best fit with
                       at most D: see rivals.c
    --seed=N           (1)
    --jobs=N           runs at a time (as many as there are cores)
    --list             prints the streams and nothing else

Histograms of SQuAD and Wikipedia are read from the folder SHARED_DATA, or
../shared/data beside the source tree.  Real text, one token for four bytes,
comes from the machine's manual pages, programs and headers.  Missing streams
are skipped.

SPDX-License-Identifier: MIT
"""

import argparse
import array
import concurrent.futures
import functools
import glob
import gzip
import itertools
import os
import re
import subprocess
import sys
import tempfile
import typing

from measure import Failed, run_main, table

DEEP = 64  # from this depth on, TRL without a limit is a rival, too
TOLERANCE = 0.02  # that more depth, window or delay may cost
POLICIES = ("bestfit", "spfhp", "nnlshp", "nextfit")
SLOW = {"nnlshp": 50000}  # compared on so many sequences, if there are more
RIVALS = ("blocks", "TRL", "TRL,D", "grain,D")
WORST = 15


class Stream(typing.NamedTuple):
    source: str
    capacity: int
    shape: str = "random"


# ---------------------------------------------------------------- streams

CHAT = "mix:0.7*lognormal:5,0.6+0.3*lognormal:7,0.5"
BIMODAL = "mix:normal:330,25+normal:130,25"
STREAMS = {
    "u1-512": Stream("uniform:1,512", 512),
    "u100-400": Stream("uniform:100,400", 512),
    "u100-400w": Stream("uniform:100,400", 1024),
    "n180": Stream("normal:180,40", 512),
    "n250": Stream("normal:250,30", 512),
    "n300": Stream("normal:300,60", 1024),
    "n284": Stream("normal:284,28", 1024),
    "ln5": Stream("lognormal:5,0.8", 1024),
    "ln5w": Stream("lognormal:5,1", 512),
    "ln6.5": Stream("lognormal:6.5,1.2", 4096),
    "ln7.5": Stream("lognormal:7.5,0.7", 8192),
    "ln8.5": Stream("lognormal:8.5,1.2", 131072),
    "chat": Stream(CHAT, 4096),
    "bimodal": Stream(BIMODAL, 512),
    "pareto": Stream("pareto:200,1.1", 16384),
    "short": Stream("lognormal:4.32,1", 4096),
    "poisson": Stream("poisson:90", 512),
    "geometric": Stream("geometric:90", 512),
    "few": Stream("=310+2*=205+3*=128+2*=97+=31", 512),
    "sorted": Stream("lognormal:5,1", 512, "ascending"),
    "sorted-down": Stream("lognormal:5,1", 512, "descending"),
    "alternating": Stream("uniform:1,512", 512, "alternating"),
    "drifting": Stream("normal:180,60", 512, "drifting"),
    "drifting-ln": Stream("lognormal:6.5,1.2", 4096, "drifting"),
    "bursty": Stream("lognormal:5,1", 512, "bursty"),
    "bursty-ln": Stream("lognormal:6.5,1.2", 4096, "bursty"),
    "turns": Stream("mix:normal:330,60+normal:90,40", 512, "turns"),
    "turns-chat": Stream(CHAT, 4096, "turns"),
    "fading": Stream(BIMODAL, 512, "fading"),
    "fading-chat": Stream(CHAT, 4096, "fading"),
}


def published():
    here = os.path.dirname(os.path.abspath(__file__))
    data = os.environ.get("SHARED_DATA",
                          os.path.join(here, "../../../shared/data"))
    for name, file, capacity in (
            ("squad", "squad-1.1-384.hist", 384),
            ("wikipedia", "wikipedia-bert-512.hist", 512)):
        path = os.path.join(os.path.realpath(data), file)
        if os.access(path, os.R_OK):
            yield name, Stream(path, capacity)
            yield name + "-sorted", Stream(path, capacity, "ascending")


def sample(pattern, limit):
    """As many matching files, evenly from all places, in order."""
    found = sorted(filter(os.path.isfile, glob.iglob(pattern,
                                                     recursive=True)))
    return found[::len(found) // limit + 1]


@functools.cache
def manual_pages():
    """Bytes of paragraphs and of whole pages."""
    gap = re.compile(rb"\n(?:\.(?:PP|P|LP|TP|IP|SH|SS|RS|Pp|Sh)\b[^\n]*"
                     rb"|\.?[ \t]*)\n")
    paragraphs, pages = [], []
    for name in sample("/usr/share/man/man*/*.gz", 4000):
        try:
            with gzip.open(name) as file:
                text = file.read()
        except (OSError, EOFError):
            continue
        pages.append(len(text))
        paragraphs += [len(one) for one in gap.split(text) if one]
    return paragraphs, pages


def programs():
    names = sample("/usr/lib/python3*/**/*.py", 20000)
    names += sample("/usr/include/**/*.h*", 20000)
    names += sample("/usr/share/perl/**/*.p[lm]", 20000)
    return [os.path.getsize(name) for name in names]


REAL = {
    "paragraphs": (lambda: manual_pages()[0], 512),
    "manpages": (lambda: manual_pages()[1], 4096),
    "programs": (programs, 8192),
}


def real(name, folder):
    """Writes the texts of this machine: to draw from, and in order."""
    sizes, capacity = REAL[name][0](), REAL[name][1]
    lengths = array.array("I", [size // 4 + 1 for size in sizes])
    if sys.byteorder == "big":
        lengths.byteswap()
    path = os.path.join(folder, name)
    with open(path, "wb") as file:
        lengths.tofile(file)
    if len(sizes) >= 1000:
        yield name, Stream("raw:" + path, capacity)
        yield name + "-stored", Stream("raw:" + path, capacity, "stored")


def all_streams(folder, words):
    streams = dict(published())
    streams.update(STREAMS)
    for name in REAL:
        if any(word in name + "-stored" for word in words):
            streams.update(real(name, folder))
    return {name: stream for name, stream in streams.items()
            if any(word in name for word in words)}


# ------------------------------------------------------------------- runs

class Engine:
    """Runs engines, a few at a time, and each run once."""

    def __init__(self, options):
        self.seed = options.seed
        self.pool = concurrent.futures.ThreadPoolExecutor(options.jobs)
        self.runs = {}

    def start(self, binary, stream, n, **settings):
        command = [binary, "--source=" + stream.source,
                   "--capacity=%d" % stream.capacity,
                   "--shape=" + stream.shape, "--sequences=%d" % n,
                   "--seed=%d" % self.seed]
        command += ["--%s=%s" % (name.replace("_", "-"), value)
                    for name, value in settings.items()]
        key = tuple(command)
        if key not in self.runs:
            self.runs[key] = self.pool.submit(run, command)
        return self.runs[key]


def run(command):
    """The numbers that an engine prints, from the first; None for "-"."""
    done = subprocess.run(command, stdout=subprocess.PIPE, check=False)
    if done.returncode != 0:
        raise Failed("exit status %d: %s" % (done.returncode,
                                             " ".join(command)))
    return [None if word == "-" else float(word)
            for word in done.stdout.split(b"\t")[:-1]
            for word in [word.decode()]]


class Cell:
    """The measurements of a stream, a depth and a window."""

    def __init__(self, name, depth, window):
        self.name = name
        self.depth = depth
        self.window = window
        self.bound = None     # runs
        self.reached = {}     # by engine, number of sequences, delay
        self.rivals = None
        self.policies = {}

    def __str__(self):
        return "%-17s D %-2d W %-4d" % (self.name, self.depth, self.window)

    def efficiency(self, engine, n, delay=2):
        return self.reached[engine, n, delay].result()[0]

    def pack(self, engine, n, delay=2):
        """The points that one pack more would cost."""
        row = self.reached[engine, n, delay].result()
        return row[0] / (row[7] + 1)

    def limit(self, n):
        return self.bound[n].result()[1]

    def gap(self, engine, n):
        return self.limit(n) - self.efficiency(engine, n)

    def others(self):
        """Efficiency of each rival by name."""
        found = {name: one.result()[0] for name, one in self.policies.items()}
        if self.rivals:
            row = self.rivals.result()
            found.update(zip(RIVALS, [row[2]] + row[9:12]))
        return found

    def loss(self, rival, engine, n):
        """How far the engine is below a rival that has no deeper packs."""
        n = min(n, SLOW.get(rival, n))
        if rival == "TRL" and self.depth < DEEP:
            return 0
        return self.others()[rival] - self.efficiency(engine, n)


def start_cell(engine, options, stream, cell):
    """Starts a cell's runs; windows share those that do not depend on them."""
    counts = [options.sequences] + options.short
    if options.peers:
        counts += [min(options.sequences, n) for n in SLOW.values()]
    first = options.engine[0]
    cell.bound = {n: engine.start(first, stream, n, depth=cell.depth,
                                  engine=0) for n in counts}
    for binary, n, delay in itertools.product(options.engine, counts,
                                              [2] + options.delays):
        cell.reached[binary, n, delay] = engine.start(
            binary, stream, n, depth=cell.depth, window=cell.window,
            max_delay=delay * cell.window, bound=0)
    if not options.peers:
        return
    n = options.sequences
    cell.rivals = engine.start(
        first, stream, n, depth=cell.depth, window=cell.window, engine=0,
        bound=0, bfd=1, rivals=1)
    for policy in POLICIES:
        cell.policies[policy] = engine.start(
            first, stream, min(n, SLOW.get(policy, n)), depth=cell.depth,
            window=cell.window, bound=0, policy=policy)


# ------------------------------------------------------------------ lines

def titles(options):
    row = ["stream", "L", "D", "W", "bound"]
    row += ["reached", "gap", "delay", "ns"] * len(options.engine)
    if options.peers:
        row += list(POLICIES) + list(RIVALS)
    return row


def line(options, stream, cell):
    n = options.sequences
    row = [cell.name, "%d" % stream.capacity, "%d" % cell.depth,
           "%d" % cell.window, "%.3f" % cell.limit(n)]
    for binary in options.engine:
        figures = cell.reached[binary, n, 2].result()
        row += ["%.3f" % figures[0], "%.3f" % cell.gap(binary, n),
                "%.2f" % figures[4], "%.0f" % (1000 / figures[5])]
    row += ["%.3f" % value for value in cell.others().values()]
    return row + [marks(options, cell, binary)]


def marks(options, cell, binary):
    """The packers that are better."""
    return " ".join("<" + rival for rival in cell.others()
                    if cell.loss(rival, binary, options.sequences) > 5e-4)


def print_row(row):
    widths = [17, 6, 2, 4] + [7] * (len(row) - 4)
    print("  ".join(cell.rjust(width) if i else cell.ljust(width)
                    for i, (cell, width) in enumerate(zip(row, widths)))
          .rstrip(), flush=True)


# ---------------------------------------------------------------- summary

def worst(found):
    """Lines of the greatest of (amount, text), and how many there are."""
    found.sort(reverse=True)
    for amount, text in found[:WORST]:
        print("    %8.3f  %s" % (amount, text))
    if len(found) > WORST:
        print("    and %d more" % (len(found) - WORST))


def print_gaps(options, cells, binary, streams):
    n = options.sequences
    alike = [cell for cell in cells
             if streams[cell.name].shape == "random"]
    rows = [["W", "cells", "median gap", "mean", "worst"]]
    for window in options.windows:
        gaps = sorted(cell.gap(binary, n) for cell in alike
                      if cell.window == window)
        if not gaps:
            continue
        rows.append(["%d" % window, "%d" % len(gaps),
                     "%.3f" % gaps[len(gaps) // 2],
                     "%.3f" % (sum(gaps) / len(gaps)), "%.3f" % gaps[-1]])
    print("\n".join("  " + one for one in table(rows)))
    for what, chosen in (("random streams", alike), ("other streams",
                         [cell for cell in cells if cell not in alike])):
        print("  Worst gaps, %s:" % what)
        worst([(cell.gap(binary, n), str(cell)) for cell in chosen])


def losses(options, cells, binary, n):
    """For each cell: how much more of an option costs, against less."""
    at = {(cell.name, cell.depth, cell.window): cell for cell in cells}

    def loss(what, cell, delay, fewer):
        reached = cell.efficiency(binary, n, delay)
        amount, less = max((before - reached, less) for less, before in fewer)
        text = "%s max-delay %d W, against %s %d%s" % (
            cell, delay, what, less, " W" if what == "max-delay" else "")
        return what, amount, amount / cell.pack(binary, n, delay), text

    for (name, depth, window), cell in at.items():
        fewer = [(less, at[name, less, window].efficiency(binary, n))
                 for less in options.depths if less < depth]
        if fewer:
            yield loss("D", cell, 2, fewer)
        fewer = [(less, at[name, depth, less].efficiency(binary, n))
                 for less in options.windows if less < window]
        if fewer:
            yield loss("W", cell, 2, fewer)
        delays = set(options.delays) | {2}
        for delay in delays - {min(delays)}:
            yield loss("max-delay", cell, delay,
                       [(less, cell.efficiency(binary, n, less))
                        for less in delays if less < delay])


def print_monotony(options, cells, binary):
    for n in [options.sequences] + options.short:
        found = list(losses(options, cells, binary, n))
        for what in ("D", "W", "max-delay"):
            losses_of = [one for one in found if one[0] == what]
            bad = [one for one in losses_of if one[1] > TOLERANCE]
            print("  More %s, %d sequences: costs over %.2f in %d of %d, "
                  "more than a pack in %d" % (
                      what, n, TOLERANCE, len(bad), len(losses_of),
                      sum(packs > 1.5 for _, _, packs, _ in bad)))
            worst([(amount, text) for _, amount, _, text in bad])


def print_short(options, cells, binary):
    rows = [["sequences", "W", "median gap", "mean", "worst"]]
    for n, window in itertools.product(options.short, options.windows):
        gaps = sorted(cell.gap(binary, n) for cell in cells
                      if cell.window == window)
        rows.append(["%d" % n, "%d" % window, "%.3f" % gaps[len(gaps) // 2],
                     "%.3f" % (sum(gaps) / len(gaps)), "%.3f" % gaps[-1]])
    if len(rows) > 1:
        print("  Short streams, all shapes:")
        print("\n".join("    " + one for one in table(rows)))


def print_losses(options, cells, binary):
    n = options.sequences
    for rival in POLICIES + RIVALS:
        found = [(cell.loss(rival, binary, n), str(cell)) for cell in cells]
        found = [one for one in found if one[0] > 5e-4]
        print("  Below %s: %d cells of %d, %d by over %.2f" % (
            rival, len(found), len(cells),
            sum(loss > TOLERANCE for loss, _ in found), TOLERANCE))
        worst(found)


def print_changes(options, cells, binary):
    first, n = options.engine[0], options.sequences
    changes = [(cell.efficiency(first, n) - cell.efficiency(binary, n),
                str(cell)) for cell in cells]
    print("  Against %s: %.3f points better in the mean, %d cells better and"
          " %d worse by over %.2f" % (
              first, -sum(loss for loss, _ in changes) / len(changes),
              sum(loss < -TOLERANCE for loss, _ in changes),
              sum(loss > TOLERANCE for loss, _ in changes), TOLERANCE))
    worst([change for change in changes if change[0] > TOLERANCE])


def print_summary(options, cells, streams):
    for binary in options.engine:
        print("\n%s: %d cells, %d sequences" % (binary, len(cells),
                                                options.sequences))
        print_gaps(options, cells, binary, streams)
        print_short(options, cells, binary)
        print_monotony(options, cells, binary)
        if options.peers:
            print_losses(options, cells, binary)
        if binary != options.engine[0]:
            print_changes(options, cells, binary)


# ------------------------------------------------------------------- main

def numbers(text):
    return [int(word) for word in text.split(",") if word]


def parse():
    parser = argparse.ArgumentParser(usage=__doc__, add_help=False)
    parser.add_argument("--engine", action="append")
    parser.add_argument("--streams", default="")
    parser.add_argument("--depths", type=numbers, default="3,4,5,8,16,64")
    parser.add_argument("--windows", type=numbers, default="256,1024,4096")
    parser.add_argument("--delays", type=numbers, default="1,2,4,8")
    parser.add_argument("--sequences", type=int, default=300000)
    parser.add_argument("--short", type=numbers, default="5000,20000,50000")
    parser.add_argument("--peers", action="store_true")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--jobs", type=int,
                        default=len(os.sched_getaffinity(0)))
    parser.add_argument("--list", action="store_true")
    parser.add_argument("build")
    options = parser.parse_args()
    options.engine = options.engine or [
        os.path.join(options.build, "tests/bench/engine")]
    return options


def main():
    options = parse()
    os.nice(10)
    with tempfile.TemporaryDirectory(prefix="packstream-grid.") as folder:
        streams = all_streams(folder, options.streams.split(","))
        if options.list:
            for name, stream in streams.items():
                print("%-17s L %-6d %-11s %s" % (
                    name, stream.capacity, stream.shape, stream.source))
            return
        engine = Engine(options)
        cells = [Cell(*key) for key in itertools.product(
            streams, options.depths, options.windows)]
        try:
            for cell in cells:
                start_cell(engine, options, streams[cell.name], cell)
            print_row(titles(options))
            for cell in cells:
                print_row(line(options, streams[cell.name], cell))
            print_summary(options, cells, streams)
        finally:
            engine.pool.shutdown(cancel_futures=True)


if __name__ == "__main__":
    run_main(main)
