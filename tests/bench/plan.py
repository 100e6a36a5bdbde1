"""plan.py - helpers of plan.sh and peers.py besides packplan.

    plan.py nnls L FILE         the published method; needs numpy and scipy
    plan.py spfhp L D FILE      the published shortest-pack-first heuristic
    plan.py lognormal L N       a histogram of N lognormal lengths
    plan.py peak COMMAND...     a line of its peak of resident memory in KiB
                                and the seconds it took, and its output

The published method is NNLSHP of "Packing: Towards 2x NLP BERT Acceleration"
(arXiv 2107.02027, section 3.1.2), reimplemented from its description: all
strategies of at most three lengths that fill a pack exactly are the columns
of a dense matrix; non-negative least squares with a weight of 0.09 for
lengths up to 8; rounding to the nearest integers; and the remainder of a
length gets packs of its own.  As in the paper, the time is that of solving,
rounding and repair; listing the strategies is not counted.

SPFHP (section 3.1.1) processes lengths from the longest to the shortest, and
puts sequences into the pack with the most space left whose depth allows it;
equal packs are counted, not listed.

SPDX-License-Identifier: MIT
"""

import os
import random
import subprocess
import sys
import time

SHORT_LENGTH = 8
SHORT_WEIGHT = 0.09


def read_histogram(path, capacity):
    """Counts by length, from 0 to the capacity."""
    counts = [0] * (capacity + 1)
    with open(path) as lines:
        for line in lines:
            if line.strip() and not line.startswith("#"):
                length, count = line.split()
                counts[int(length)] += int(count)
    return counts


def strategies(capacity):
    """All ways to fill a pack exactly with at most three lengths."""
    found = []
    for shortest in range(1, capacity // 2 + 1):
        rest = capacity - shortest
        for middle in range(shortest, rest // 2 + 1):
            found.append((shortest, middle, rest - middle))
        found.append((shortest, rest))
    found.append((capacity,))
    return found


def nnls(capacity, path):
    """Prints packs, seconds to solve and strategies to choose from."""
    import numpy
    from scipy import optimize

    columns = strategies(capacity)
    counts = numpy.array(read_histogram(path, capacity)[1:])
    matrix = numpy.zeros((capacity, len(columns)))
    for j, lengths in enumerate(columns):
        for length in lengths:
            matrix[length - 1, j] += 1
    weights = numpy.ones(capacity)
    weights[:SHORT_LENGTH] = SHORT_WEIGHT
    own = {lengths[0]: j for j, lengths in enumerate(columns)
           if len(lengths) == 1}
    for j, lengths in enumerate(columns):
        if len(lengths) == 2:
            own[lengths[0]] = own[lengths[1]] = j

    start = time.perf_counter()
    repeats, _ = optimize.nnls(weights[:, None] * matrix, weights * counts)
    repeats = numpy.rint(repeats).astype(numpy.int64)
    left = counts - (matrix @ repeats).astype(numpy.int64)
    for i in numpy.flatnonzero(left > 0):
        repeats[own[int(i) + 1]] += left[i]
    seconds = time.perf_counter() - start

    # Every sequence has a slot; slots without one are padding.
    if (matrix @ repeats < counts).any():
        sys.exit("plan.py: sequences without a pack")
    print(repeats.sum(), "%.6f" % seconds, len(columns))


def put(packs, open_packs, length, depth):
    """Adds a sequence to each of some packs of (space, sequences)."""
    (space, held), n = packs
    if held + 1 < depth and space > length:
        key = space - length, held + 1
        open_packs[key] = open_packs.get(key, 0) + n


def spfhp(capacity, depth, path):
    """Prints packs, and seconds to plan them."""
    counts = read_histogram(path, capacity)
    start = time.perf_counter()
    open_packs = {}
    packs = 0
    for length in range(capacity, 0, -1):
        left = counts[length]
        while left > 0:
            best = max(open_packs, default=(0, 0))
            if best[0] >= length:
                n = min(left, open_packs[best])
                open_packs[best] -= n
                if open_packs[best] == 0:
                    del open_packs[best]
            else:
                # Each of the rest gets a new pack.
                best = capacity, 0
                n = left
                packs += n
            put((best, n), open_packs, length, depth)
            left -= n
    print(packs, "%.6f" % (time.perf_counter() - start))


def lognormal(capacity, n):
    """Prints a histogram of n lengths, the same in every run.

    The median is an eighth of the capacity and the logarithm has a standard
    deviation of 1, about as in text; longer ones are cut.
    """
    draw = random.Random(1).lognormvariate
    counts = {}
    for _ in range(n):
        length = min(capacity, max(1, round(capacity / 8 * draw(0, 1))))
        counts[length] = counts.get(length, 0) + 1
    for length in sorted(counts):
        print(length, counts[length])


def high_water(pid):
    """State of a process and its peak of resident memory in KiB, or None."""
    state = peak = None
    try:
        with open("/proc/%d/status" % pid) as lines:
            for line in lines:
                if line.startswith("State:"):
                    state = line.split()[1]
                if line.startswith("VmHWM:"):
                    peak = int(line.split()[1])
    except FileNotFoundError:
        pass
    return state, peak


def full_pipe():
    """Both ends of a full pipe, and the data that fills it."""
    reader, writer = os.pipe()
    filled = 0
    os.set_blocking(writer, False)
    try:
        while True:
            filled += os.write(writer, b"\n" * 4096)
    except BlockingIOError:
        os.set_blocking(writer, True)
    return reader, writer, filled


def peak(command):
    """Measures a command that reads files, works, and prints at the end.
    Its output goes to a full pipe, so that it blocks there when its work is
    done.  Unlike with wait4, the memory of the process that it was forked from
    is not included.
    """
    reader, writer, filled = full_pipe()
    start = time.perf_counter()
    process = subprocess.Popen(command, stdout=writer)
    os.close(writer)
    state, kib = high_water(process.pid)
    while kib is not None and state != "S":
        time.sleep(0.0005)
        state, kib = high_water(process.pid)
    seconds = time.perf_counter() - start
    with open(reader, "rb") as output:
        text = output.read()[filled:].decode()
    if process.wait() != 0 or kib is None:
        sys.exit("plan.py: failed: " + " ".join(command))
    print(kib, "%.6f" % seconds)
    print(text, end="")


def main(arguments):
    if len(arguments) == 3 and arguments[0] == "nnls":
        nnls(int(arguments[1]), arguments[2])
    elif len(arguments) == 4 and arguments[0] == "spfhp":
        spfhp(int(arguments[1]), int(arguments[2]), arguments[3])
    elif len(arguments) == 3 and arguments[0] == "lognormal":
        lognormal(int(arguments[1]), int(arguments[2]))
    elif len(arguments) > 1 and arguments[0] == "peak":
        peak(arguments[1:])
    else:
        sys.exit(__doc__)


main(sys.argv[1:])
