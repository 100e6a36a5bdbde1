"""resources.py - packs with two arrays each, compared with grain's packing of
several features and with two-dimensional best fit decreasing on blocks.

    resources.py [--sequences=N] [--rounds=N] [--only=KIND,...] BUILD

A sequence has tokens and a second array of its own length: the tokens of a
decoder, the edges of a molecule, the tiles of images.  A pack has a limit for
each.  packstream packs the second array as a list channel.  All contenders
pack the same N (20000) sequences, grain and packstream in turns, ROUNDS (5)
times.  For each it prints

  packs        number of packs
  above, %     how far above the bound: the greater of sum / limit, rounded up
  full, %      used positions of the token array
  second, %    used positions of the second array
  us           median processor time per sequence; for packstream with its
               start, reading a file and writing a file; for grain in memory,
               without imports
  delay, most  mean and maximum delay of a sequence: the greatest number of a
               sequence in its pack and all earlier packs, minus its own
  cut          sequences that are in several packs
  lost         sequences that are incomplete or missing

Blocks have 1,000 sequences and are not timed.  grain's bins are not shuffled,
because shuffling would delay sequences further.  Needs numpy; without grain,
only the other rows are printed.

SPDX-License-Identifier: MIT
"""

import argparse
import functools
import importlib
import importlib.metadata
import os
import statistics
import subprocess
import sys
import time

import measure
from measure import Failed

sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)),
                             "../support"))
import packformat  # noqa: E402

BLOCK = 1000
BINS = 64, 1024


def module(name):
    try:
        return importlib.import_module(name)
    except ImportError:
        return None


np = module("numpy")


# -------------------------------------------------------------- sequences

def whole(values, least, most):
    return np.clip(np.rint(values), least, most).astype(int)


def alike(rng, n):
    """A translation is about as long as the text."""
    text = whole(rng.lognormal(4.2, 0.7, n), 1, 512)
    return text, whole(text * rng.lognormal(0.05, 0.25, n), 1, 512), (512, 512)


def opposed(rng, n):
    """Long texts with short answers, and short questions with long ones."""
    text = whole(rng.lognormal(4.2, 0.7, n), 1, 512)
    return text, whole(4450 / text * rng.lognormal(0, 0.25, n), 1,
                       512), (512, 512)


def molecules(rng, n):
    """Small organic molecules: atoms, and bonds in both directions."""
    atoms = whole(rng.normal(18, 3, n), 3, 29)
    return atoms, 2 * (atoms - 1 + rng.binomial(5, 0.35, n)), (256, 512)


def images(rng, n):
    """Documents, of which 30 % have images of 1 to 12 tiles in total."""
    return whole(rng.lognormal(5, 0.9, n), 1, 2048), np.where(
        rng.random(n) < 0.3, rng.integers(1, 13, n), 0), (2048, 16)


KINDS = {"alike": ("encoder and decoder, correlated", alike),
         "opposed": ("encoder and decoder, anti-correlated", opposed),
         "molecules": ("molecules: nodes and edges", molecules),
         "images": ("images: tokens and tiles", images)}


class Input:
    """The sequences.  Every value in both arrays is the number of the
    sequence, so that the contents of any pack can be checked."""

    def __init__(self, kind, options, folder):
        draw = KINDS[kind][1]
        first, second, self.limits = draw(np.random.default_rng(5),
                                          options.sequences)
        self.lengths = np.stack([first, second])
        self.arrays = [[np.full(n, i, np.int32) for i, n in enumerate(row)]
                       for row in self.lengths]
        self.name = os.path.join(folder, "records")
        schema = packformat.Schema(4, True,
                                   [("second", "u32", packformat.LIST)])
        with open(self.name, "wb") as file:
            file.write(schema.stream(
                [[a.tobytes(), b.tobytes()] for a, b in zip(*self.arrays)]))

    def bound(self):
        return max(-(-int(total) // limit) for total, limit in
                   zip(self.lengths.sum(1), self.limits))


# ------------------------------------------------------------- contenders

# Each returns its processor time in seconds, and a function that returns the
# packs: the used part of both arrays.  Reading packs back is not timed.

def packstream(data, folder, *options):
    out = os.path.join(folder, "packs")
    child = subprocess.Popen(
        ["packstream", "-q", "-L%d" % data.limits[0],
         "--budget=second:%d" % data.limits[1], *options, "-o", out,
         data.name])
    _, status, used = os.wait4(child.pid, 0)
    child.returncode = os.waitstatus_to_exitcode(status)
    if child.returncode != 0:
        raise Failed("packstream: exit status %d" % child.returncode)

    def packs():
        with open(out, "rb") as file:
            found = packformat.Packs(file.read()).packs
        return [[np.frombuffer(b"".join(piece.lanes[i] for piece in pack),
                               "<u4").astype(int) for i in (0, 1)]
                for pack in found]
    return used.ru_utime + used.ru_stime, packs


def grain_packs(grain, kind, data, **options):
    # All data is in memory: threads that read ahead would make it slower.
    reading = grain.ReadOptions(num_threads=0, prefetch_buffer_size=0)
    source = [{"first": a, "second": b} for a, b in zip(*data.arrays)]
    start = time.process_time()
    parent = grain.MapDataset.source(source).to_iter_dataset(reading)
    rows = list(kind(parent, length_struct=dict(zip(
        ("first", "second"), data.limits)), **options))
    return time.process_time() - start, lambda: [
        [row[name][row[name + "_segment_ids"] > 0]
         for name in ("first", "second")] for row in rows]


def best_fit_decreasing(data):
    packs = []
    for at in range(0, data.lengths.shape[1], BLOCK):
        sizes = (data.lengths[:, at:at + BLOCK].T /
                 np.array(data.limits))
        left, members = np.ones(sizes.shape), []
        for i in np.argsort(-sizes.max(1), kind="stable"):
            rest = left[:len(members)] - sizes[i]
            fits = np.flatnonzero((rest >= -1e-9).all(1))
            if len(fits):
                into = fits[rest[fits].sum(1).argmin()]
            else:
                into = len(members)
                members.append([])
            left[into] -= sizes[i]
            members[into].append(at + i)
        packs += [[np.repeat(pack, row[pack]) for row in data.lengths]
                  for pack in members]
    return packs


def contenders(data, folder, grain):
    ours = functools.partial(packstream, data, folder)
    found = {"packstream": ours,
             "packstream -w 1024": functools.partial(ours, "-w1024"),
             "packstream -w 256": functools.partial(ours, "-w256")}
    if grain is None:
        return found
    from grain import experimental
    theirs = functools.partial(grain_packs, grain)
    for title, kind in (
            ("first fit", experimental.FirstFitPackIterDataset),
            ("best fit", experimental.BestFitPackIterDataset)):
        for bins in BINS:
            found["grain %s, %d bins" % (title, bins)] = functools.partial(
                theirs, kind, data, num_packing_bins=bins,
                shuffle_bins=False)
    found["grain concat then split"] = functools.partial(
        theirs, experimental.ConcatThenSplitIterDataset, data)
    return found


# ----------------------------------------------------------------- tables

def cells_of(data, packs, times):
    """A row of the table; `times` is empty if nothing was timed."""
    n = data.lengths.shape[1]
    newest, delays = 0, []
    found, parts = np.zeros((2, n), int), np.zeros(n, int)
    for pack in packs:
        ids = np.unique(np.concatenate(pack))
        newest = max(newest, ids[-1])
        delays.append(newest - ids)
        parts[ids] += 1
        for row, values, limit in zip(found, pack, data.limits):
            if len(values) > limit:
                raise Failed("a pack exceeds its limit")
            row += np.bincount(values, minlength=n)
    delays = np.concatenate(delays)
    lost = (found != data.lengths).any(0)
    full = 100 * found.sum(1) / (len(packs) * np.array(data.limits))
    return ["%d" % len(packs),
            "%.2f" % (100 * (len(packs) / data.bound() - 1)),
            "%.2f" % full[0], "%.2f" % full[1],
            "%.2f" % (1e6 * statistics.median(times) / n) if times else "",
            "%.0f" % delays.mean(), "%d" % delays.max(),
            "%d" % (parts > 1).sum(), "%d" % lost.sum()]


def compare(kind, options, folder, grain):
    data = Input(kind, options, folder)
    works = contenders(data, folder, grain)
    packs = {}

    def timed(name):
        taken, found = works[name]()
        if name not in packs:
            packs[name] = found()
        return taken

    results = measure.take_turns(
        {name: functools.partial(timed, name) for name in works},
        options.rounds)
    rows = [[name, *cells_of(data, packs[name], results[name])]
            for name in works]
    rows.append(["best fit decreasing, blocks",
                 *cells_of(data, best_fit_decreasing(data), [])])
    return ["%s; limits %d and %d; bound %d" % (
        KINDS[kind][0], *data.limits, data.bound())] + measure.table(
            [["", "packs", "above, %", "full, %", "second, %", "us",
              "delay", "most", "cut", "lost"]] + rows)


def parse():
    parser = argparse.ArgumentParser(
        usage=__doc__.replace("%", "%%"), add_help=False)
    parser.add_argument("--sequences", type=int, default=20000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--only", default=",".join(KINDS))
    parser.add_argument("build")
    options = parser.parse_args()
    options.only = options.only.split(",")
    if not set(options.only) <= set(KINDS) or options.rounds < 3 or \
            options.sequences < 1:
        parser.error("unknown kind, or too few sequences or rounds")
    return options


def main():
    options = parse()
    if np is None:
        raise Failed("numpy is not installed")
    measure.find_programs(options.build, ["packstream"])
    grain = module("grain")
    measure.show(
        [measure.machine(), "%d sequences; %d rounds; Python %d.%d, %s" % (
            options.sequences, options.rounds, *sys.version_info[:2],
            "grain is not installed: pip install grain" if grain is None else
            "grain " + importlib.metadata.version("grain"))])
    with measure.room(10**9) as folder:
        for kind in options.only:
            measure.show(compare(kind, options, folder, grain))


if __name__ == "__main__":
    measure.run_main(main)
