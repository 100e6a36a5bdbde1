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


def unpacked(name, zstd):
    """The bytes of a pack stream."""
    if zstd:
        subprocess.run(["zstd", "-qdf", name, "-o", "plain"], check=True)
    with open("plain" if zstd else name, "rb") as file:
        return file.read()


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
