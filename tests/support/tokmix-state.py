"""tokmix-state.py - checks tokmix --state, for tokmix-state.bats.

    tokmix-state.py CHECK [ARGUMENT]

calls a function below in the working directory; it prints nothing and exits
with 0, or fails with a traceback.

SPDX-License-Identifier: MIT
"""

import os
import random
import signal
import struct
import subprocess
import sys

from packformat import Schema, hash_of
from statejob import (SECONDS, Waiting, draw, inputs, limit, read,
                      read_sequences, run, write)

# One in EVERY similar cases is tried; all of them with LONG.
EVERY = 1 if os.environ.get("LONG") else 7

# Framed or raw sources, and a mix of them.
MIXES = [
    (True, ["--stop=first", "3=a", "1=b", ".5=c"]),
    (True, ["--stop=longest", "3=a", "1=b", ".5=c"]),
    (True, ["--stop=repeat", "1=a", "4=b", "2=c"]),
    (True, ["--stop=repeat", "--by=sequences", "--channel=s", "9=a", "1=b",
            "2=c"]),
    (False, ["--stop=longest", "-tu32", "1=a", "1=b", "5=c"]),
    (False, ["--stop=repeat", "-tu32", "--channel=s:u16", "2=a", "7=b", "1=c"]),
]


# For three sources.
STATE_BYTES = 8 * (1 + 13 + 3 * 11 + 1)
# The LENGTHS that a state has once something was written: see draw.
LENGTHS_BYTES = 36 + 12 * 4


def tokmix(*options, **how):
    return run("tokmix", *options, **how)


def clean(*names):
    for name in names or ("s", "s.new", "out"):
        if os.path.exists(name):
            os.remove(name)


def kept(options, *more):
    """The same with a state."""
    return [*more, "--state=s", "--resume", "-o", "out", *options]


def job(options):
    return ["tokmix", "-q", *kept(options)]


def ends_whole(options, wanted):
    """A stopped job resumes and ends with the output of an uninterrupted one,
    and then has nothing left to do."""
    tokmix(*kept(options))
    assert read("out") == wanted
    before = read("s")
    tokmix(*kept(options))
    assert (read("s"), read("out")) == (before, wanted)
    assert not os.path.exists("s.new")


def killed(module):
    """SIGKILL at entries of the log of its file operations, repeatedly, until
    the mix has ended."""
    rng = random.Random(5)
    for framed, options in MIXES:
        inputs(framed)
        wanted = tokmix(*options).stdout
        clean()
        kills = 0
        while True:
            env = dict(os.environ, LD_PRELOAD=module, WRITE_LOG="log",
                       WRITE_SIGNAL="9",
                       WRITE_SIGNAL_AT=str(rng.randrange(60)))
            done = subprocess.run(
                ["tokmix", "-q", *kept(options, "--state-every=1")], env=env,
                stderr=subprocess.PIPE, timeout=SECONDS, check=False)
            assert done.returncode in (0, -9), done
            if done.returncode == 0:
                break
            kills += 1
        assert kills >= 3, options
        assert read("out") == wanted, options
        ends_whole(options, wanted)


def full():
    """There is room for a little more each time."""
    for framed, options in MIXES:
        inputs(framed)
        wanted = tokmix(*options).stdout
        clean()
        for room in range(STATE_BYTES + LENGTHS_BYTES, len(wanted),
                          len(wanted) // 7):
            tokmix(*kept(options, "--state-every=%d" % (1 + room % 3)),
                   status=1, told="cannot write", preexec_fn=limit(room))
        ends_whole(options, wanted)
    # The state does not fit the disk either.
    clean()
    tokmix(*kept(options), status=1, told="s: File too large",
           preexec_fn=limit(STATE_BYTES - 1))
    assert not os.path.exists("s") and not os.path.exists("s.new")
    assert read("out") == b""


def signals():
    """It gets a signal, or is killed, while it waits for a pipe; then it
    resumes with a pipe, and with a file.  After a signal that it can catch
    the state covers all output, and the record before the wait."""
    inputs(True)
    whole = read("a")
    at = 136 + sum(len(Schema(4, True).record(one))
                   for one in read_sequences("a")[:9])
    for stop in "first", "longest":
        options = ["--stop=" + stop, "--by=sequences", "1=in", "2=b", "1=c"]
        wanted = tokmix("--stop=" + stop, "--by=sequences", "1=a", "2=b",
                        "1=c").stdout
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGKILL):
            clean()
            Waiting(job(options), whole[:at]).end(number)
            some = read("out")
            assert wanted.startswith(some) and len(some) > at
            if number != signal.SIGKILL:
                assert not os.path.exists("s.new")
                assert offset() == len(some)
            # Once more, from a pipe.
            Waiting(job(options), whole[:at + 1]).end(number)
            assert len(read("out")) >= len(some)
            os.remove("in")
            if number != signal.SIGKILL:
                write("in", whole[:at - 1] + b"!" + whole[at:])
                refused(65, "in: changed since the state", *options)
            write("in", whole)
            ends_whole(options, wanted)
            os.remove("in")


def offset():
    """Of the output, in the state."""
    return struct.unpack_from("<Q", read("s"), 8 + 8 * 8)[0]


def stopped(options, framed=True):
    """A job stopped half way: s, out, and the expected output."""
    inputs(framed)
    wanted = tokmix(*options).stdout
    clean()
    tokmix(*kept(options, "--state-every=1"), status=1, told="cannot write",
           preexec_fn=limit(len(wanted) * 6 // 10))
    assert len(wanted) // 3 < offset() < len(wanted)
    return wanted


def refused(status, told, *options):
    """Options that do not match the state change no file."""
    before = read("s"), read("out")
    tokmix(*kept(options), status=status, told=told)
    assert (read("s"), read("out")) == before, options
    assert not os.path.exists("s.new")


def options():
    """Of another mix."""
    mix = ["--stop=longest", "3=a", "1=b", ".5=c"]
    wanted = stopped(mix)
    long = "--stop=longest"
    refused(64, "--stop=longest, not first", *mix[1:])
    refused(64, "--stop=longest, not repeat", "--stop=repeat", *mix[1:])
    refused(64, "--by=tokens, not sequences", "--by=sequences", *mix)
    refused(64, "no --channel, not --channel", "--channel=s", *mix)
    refused(64, "a source count of 3, not 2", *mix[:3])
    refused(64, "a weight of 2/9 for b, not 3/10", long, "6=a", "3=b",
            "1=c")
    tokmix("--state=s", "-o", "out", *mix, status=64,
           told="s: exists already: use --resume to continue from it")
    # The same ratio is the same mix.
    tokmix(*kept([long, "0.60=a", "0.2=b", "0.1=c"]))
    assert read("out") == wanted
    # A job that has ended cannot be resumed as another one either.
    refused(64, "--by=tokens, not sequences", "--by=sequences", *mix)
    refused(64, "a weight of 6/9 for a, not 7/10", long, "7=a", "2=b", "1=c")


def changed():
    """Changed sources."""
    for framed, options in MIXES:
        wanted = stopped(options, framed)
        names = [one[-1] for one in options if one[0] != "-"]
        for name in names:
            good = read(name)
            other = draw(9, framed, 60)
            write(name, other)
            refused(65, name + ": ", *options)
            write(name, good[:len(good) // 9])
            refused(65, name + ": ", *options)
            write(name, good)
        # With names exchanged.
        swapped = [one.replace("=a", "=x").replace("=b", "=a").replace(
            "=x", "=b") for one in options]
        refused(65, "", *swapped)
        # A file of another type.
        for name in names:
            os.rename(name, name + ".good")
            write(name, draw(1, framed, 24, 4, [] if not framed else [
                ("m", "u8", 1)]) if framed else draw(1, True, 24))
        refused(64, "different token records" if framed else "raw, not framed",
                *options)
        for name in names:
            os.rename(name + ".good", name)
        # Files may be renamed.
        for name in names:
            os.rename(name, name + name)
        ends_whole([one if one[0] == "-" else one + one[-1]
                    for one in options], wanted)


def ended():
    """A file that was read to its end has its size."""
    options = ["--stop=longest", "3=a", "1=b", ".5=c"]
    stopped(options)
    tokmix(*kept(options))
    good = read("b")
    write("b", good + good)
    refused(65, "b: changed since the state was saved: it had %d bytes when it "
                "was read, but now has %d" % (
        len(good), 2 * len(good)), *options)
    write("b", good)
    tokmix(*kept(options))


def damaged():
    """Every byte of a state, and every length; and numbers that lie."""
    options = ["--stop=repeat", "1=a", "4=b"]
    wanted = stopped(options)
    good, out = read("s"), read("out")
    for at in range(0, len(good), EVERY):
        bad = bytearray(good)
        bad[at] ^= 1 << at % 8
        write("s", bad)
        refused(65, "s: ", *options)
    for size in [*range(20), *range(20, len(good), 37), len(good) - 1]:
        write("s", good[:size])
        refused(65, "s: ", *options)
    write("s", good + good)
    refused(65, "s: ", *options)
    # With a valid checksum, nothing crashes or hangs.
    refusals = 0
    for at in range(8, len(good) - 8, 8 * EVERY):
        value, = struct.unpack_from("<Q", good, at)
        for lie in {0, value + 1, 1 << 63, (1 << 64) - 1}:
            bad = good[:at] + struct.pack(
                "<Q", lie & (1 << 64) - 1) + good[at + 8:-8]
            write("s", bad + struct.pack("<Q", hash_of(bad)))
            write("out", out)
            done = subprocess.run(["tokmix", "-q", *kept(options)],
                                  capture_output=True, timeout=SECONDS,
                                  check=False)
            assert done.returncode in (0, 1, 64, 65), (at, lie, done)
            assert (done.returncode != 0) == (done.stderr != b""), (at, lie)
            refusals += done.returncode != 0
    assert refusals > len(good) // (8 * EVERY) * 2, refusals
    write("s", good)
    write("out", out)
    ends_whole(options, wanted)


def outputs():
    """A changed output."""
    options = ["--stop=repeat", "1=a", "4=b", "2=c"]
    wanted = stopped(options)
    good = read("out")
    for bad, told in ((good[:offset() - 1], "but the state was saved after"),
                      (b"", "bytes, but the state was saved after"),
                      (bytes(len(good)), "not the output that was written"),
                      (b"x" + good, "not the output that was written")):
        write("out", bad)
        refused(1, told, *options)
    os.remove("out")
    tokmix(*kept(options), status=1, told="out: does not exist")
    assert not os.path.exists("out")
    # Bytes after the state are cut, whatever they are.
    write("out", good + bytes(5000))
    ends_whole(options, wanted)
    write("out", wanted + b"!")
    refused(1, "out: has %d bytes, but %d were written" % (
        len(wanted) + 1, len(wanted)), *options)
    write("out", wanted[:-1])
    refused(1, "bytes, but the state was saved after", *options)
    # Without a state the output may be another job's.
    write("out", wanted)
    clean("s")
    tokmix(*kept(options), status=64,
           told="out: exists already, but its state s does not: remove the "
                "output to start again")
    assert read("out") == wanted


if __name__ == "__main__":
    globals()[sys.argv[1]](*sys.argv[2:])
