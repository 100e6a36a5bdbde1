"""packtrials.py - what random trials of packstream have in common.

A trial is a class with the method go(rng), and for `resumes` run(name, *more,
data=, status=), which packs `data` to the file `name` and its rejects to
NAME.rej.

SPDX-License-Identifier: MIT
"""

import os
import random
import subprocess
import sys

from packformat import read_framed

DROPPED, TRUNCATED = 1, 2       # reasons in a file of rejects


def draw_options(rng, trial, budgets):
    """Options of a trial with `capacity`, `overlong`, `align` and `grouped`;
    `budgets` are (name, limit), 0: none."""
    return [
        "-L%d" % trial.capacity, "--overlong=" + trial.overlong,
        *("--budget=%s:%d" % i for i in budgets if i[1]),
        *rng.choice([[], [], ["-w20"], ["-w300"], ["-M40Mi"]]),
        *rng.choice([[], [], ["--shuffle=3"], ["--order=input"]]),
        *rng.choice([[], [], ["--max-delay=90"], ["--zstd"]]),
        *rng.choice([[], ["--threads=1"], ["--block-packs=1"]]),
        "--align=%d" % trial.align,
        *rng.choice([[], [], ["--flush-every=70"]]),
        *(["--group=g"] if trial.grouped else rng.choice([[], [], ["-d3"]]))]


def pack(trial, name, *more, data=None, status=0):
    """Packs to the file `name`, with rejects unless everything is split."""
    done = subprocess.run(
        ["packstream", "-q", *trial.options, *more,
         *([] if trial.overlong == "split" else
           ["--rejects=" + name + ".rej"]), "-o", name],
        input=data, capture_output=True, timeout=600, check=False)
    assert done.returncode == status, (trial.options, done)
    return done.stderr


def clean():
    for name in "out", "out.rej", "cut", "cut.rej", "s":
        if os.path.exists(name):
            os.remove(name)


def verify(trial):
    """packstat compares the file out with the file in."""
    subprocess.run(["packstat", "--verify", "-q", "--against=in",
                    *([] if trial.overlong == "split" else
                      ["--rejects=out.rej"]), "out"], check=True)


def unpacked(name, zstd):
    """The bytes of a pack stream."""
    if zstd:
        subprocess.run(["zstd", "-qdf", name, "-o", "plain"], check=True)
    with open("plain" if zstd else name, "rb") as file:
        return file.read()


def complete(trial, found):
    """Compares the pieces in the packs of the file out, as (number, offset,
    length), and the rejects with trial.wanted().  Returns whether nothing was
    rejected."""
    pieces, rejected = trial.wanted()
    reports = []
    if trial.overlong != "split":
        with open("out.rej", "rb") as file:
            for sequence in read_framed(file.read(), False)[1]:
                number = int.from_bytes(sequence[-2], "little")
                assert sequence[:-2] == trial.sequences[number], number
                reports.append((number, sequence[-1][0]))
    if not trial.grouped:
        assert sorted(found) == sorted(pieces), trial.options
        assert reports == rejected, trial.options
    # Every sequence is in a pack, or was reported as dropped.
    assert sorted({k for k, _, _ in found} | {
        k for k, why in reports if why == DROPPED}) == list(
            range(len(trial.sequences))), trial.options
    return not reports


def resumes(trial, rng, data):
    """A job whose input is cut, and that resumes, writes the same bytes as the
    one that wrote the files out and out.rej."""
    state = ["--state=s", "--state-every=%d" % rng.randint(1, 9)]
    trial.run("cut", *state, status=65,
              data=data[:rng.randrange(len(data) // 2, len(data) - 40)])
    trial.run("cut", *state, "--resume", data=data)
    for ending in "", ".rej":
        if os.path.exists("out" + ending):
            with open("out" + ending, "rb") as x:
                with open("cut" + ending, "rb") as y:
                    assert x.read() == y.read(), (ending, trial.options)


def main(trial):
    """The command line: trials SEED COUNT."""
    seed, count = map(int, sys.argv[2:])
    for number in range(seed, seed + count):
        rng = random.Random(number)
        try:
            trial(rng).go(rng)
        except BaseException:
            print("trial", number, file=sys.stderr)
            raise
