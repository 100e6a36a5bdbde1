"""tokshuf-state.py - checks tokshuf --state, for tokshuf-state.bats.

    tokshuf-state.py CHECK [ARGUMENT]

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

# Framed or raw inputs, and a shuffle of them.
SHUFFLES = [
    (True, ["--seed=7", "-o", "out"]),
    (True, ["--min-length=2", "--max-length=39", "--head-count=20", "-o",
            "out"]),
    (True, ["--by-length=7", "-o", "out"]),
    (True, ["--split=3:out,1:out2"]),
    (False, ["-tu32", "--seed=1", "-o", "out"]),
    (False, ["-tu32", "--by-length=5", "--head-count=41",
             "--split=1:out,1:out2"]),
]

OUTPUTS = ("out", "out2")
RUNS = ("s.0", "s.1")
INPUTS = ["a", "b", "c"]

# Numbers in a state, in words: for the shuffle, and for an output.
NUMBERS, ITS_NUMBERS = 40, 8
STATE_BYTES = 8 * (1 + NUMBERS + ITS_NUMBERS + 1)
PHASE, FILE, RECORD, READ, GIVEN, MERGED, SIZE = 1, 13, 14, 22, 30, 33, 34
READING, SORTED, ENDED = range(3)


def there(*names):
    """The contents of these files, if they exist."""
    return {name: read(name) for name in names if os.path.exists(name)}


def everything():
    return there("s", *RUNS, *OUTPUTS)


def clean(*names):
    for name in names or ("s", "s.new", *RUNS, *OUTPUTS):
        if os.path.lexists(name):
            os.remove(name)


def put_back(files):
    clean()
    for name, data in files.items():
        write(name, data)


def number(at, state=None):
    """A number of the state."""
    return struct.unpack_from("<Q", state or read("s"), 8 + 8 * at)[0]


def tokshuf(*options, **how):
    return run("tokshuf", *options, **how)


def undisturbed(options):
    """The output of a job without a state."""
    clean()
    tokshuf(*options, *INPUTS)
    wanted = there(*OUTPUTS)
    clean()
    return wanted


def kept(options, *more, names=INPUTS):
    """The same with a state, and with few runs merged at once."""
    return ["-M", "64Ki", "--state=s", "--resume", *more, *options, *names]


def job(options, names):
    return ["tokshuf", "-q", *kept(options, names=names)]


def ends_whole(options, wanted, names=INPUTS):
    """A stopped job resumes and ends with the output of an uninterrupted one,
    and then has nothing left to do."""
    tokshuf(*kept(options, names=names))
    assert there(*OUTPUTS) == wanted
    before = everything()
    assert not there("s.new", *RUNS)
    tokshuf(*kept(options, names=names))
    assert everything() == before


def killed(module):
    """SIGKILL at entries of the log of its file operations, repeatedly, until
    the shuffle has ended; memory changes in between."""
    rng = random.Random(5)
    phases = set()
    for framed, options in SHUFFLES:
        inputs(framed)
        wanted = undisturbed(options)
        kills = 0
        while True:
            env = dict(os.environ, LD_PRELOAD=module, WRITE_LOG="log",
                       WRITE_SIGNAL="9",
                       WRITE_SIGNAL_AT=str(rng.randrange(100)))
            memory = rng.choice(["64Ki", "200Ki", "1Mi"])
            done = subprocess.run(
                ["tokshuf", "-q", *kept(options, "-M", memory,
                                        "--state-every=3")], env=env,
                stderr=subprocess.PIPE, timeout=SECONDS, check=False)
            assert done.returncode in (0, -9), done
            if done.returncode == 0:
                break
            kills += 1
            if os.path.exists("s"):
                phases.add((number(PHASE), number(GIVEN) > 0,
                            number(MERGED) > 0))
        assert kills >= 3, options
        assert there(*OUTPUTS) == wanted, options
        ends_whole(options, wanted)
    # While it read, merged, and wrote.
    assert {(0, False, False), (1, False, True), (1, False, False),
            (1, True, False)} <= phases, phases


def full():
    """There is room for a little more each time."""
    for framed, options in SHUFFLES:
        inputs(framed)
        wanted = undisturbed(options)
        size = len(wanted["out"])
        for room in range(STATE_BYTES + 100, 2 * size, size // 5):
            done = subprocess.run(
                ["tokshuf", "-q", *kept(options,
                                        "--state-every=%d" % (9 + room % 3))],
                preexec_fn=limit(room), capture_output=True, check=False,
                timeout=SECONDS)
            assert done.returncode in (0, 1), done
            if done.returncode != 0:
                assert b": File too large\n" in done.stderr or \
                    b": cannot write: File too large\n" in done.stderr, done
                assert done.stderr.count(b"\n") == 1
        ends_whole(options, wanted)
    # The state does not fit the disk either, and nothing of it remains.
    clean()
    tokshuf(*kept(SHUFFLES[-2][1]), status=1, told="s: File too large",
            preexec_fn=limit(STATE_BYTES - 1))
    assert everything() == {"out": b""}


def signals():
    """It gets a signal, or is killed, while it waits for a pipe; then it
    resumes with a pipe, and with a file.  After a signal that it can catch
    the state covers all input read."""
    inputs(True)
    whole = read("b")
    schema = Schema(4, True)
    records = [schema.record(one) for one in read_sequences("b")]
    at = 136 + sum(len(one) for one in records[:9])
    names = ["a", "in", "c"]
    for _, options in SHUFFLES[:4]:
        wanted = undisturbed(options)
        for one in (signal.SIGTERM, signal.SIGINT, signal.SIGKILL):
            clean()
            Waiting(job(options, names), whole[:at + 1]).end(one)
            caught = one != signal.SIGKILL
            if caught:
                assert not os.path.exists("s.new")
                assert number(READ) == 24 + 9
            # Once more, from a pipe.
            Waiting(job(options, names), whole[:at + len(records[9])]).end(one)
            os.remove("in")
            if caught:
                assert number(READ) == 24 + 10
                if number(RECORD):
                    bad = bytearray(whole)
                    bad[at + len(records[9]) - 1] ^= 1
                    write("in", bad)
                    refused(65, "in: changed since the state", options,
                            names=names)
            write("in", whole)
            ends_whole(options, wanted, names)
            os.remove("in")


MODULE = None


def logged(options, signal_at):
    env = dict(os.environ, LD_PRELOAD=MODULE, WRITE_LOG="log",
               WRITE_SIGNAL="9", WRITE_SIGNAL_AT=str(signal_at))
    clean("log")
    subprocess.run(["tokshuf", "-q", *kept(options, "--state-every=5")],
                   env=env, stderr=subprocess.PIPE, timeout=SECONDS,
                   check=True if signal_at < 0 else False)


def fits(state, phase, merges):
    """Whether it is a state of a job that has done some of a phase."""
    if number(PHASE, state) != phase:
        return False
    if phase == READING:
        return number(READ, state) > 30
    return number(MERGED, state) > 0 if merges else number(GIVEN, state) > 5


def stopped(options, framed, phase, merges=False):
    """Kills a job in a phase, just after it saved a state; returns the
    expected output."""
    inputs(framed)
    wanted = undisturbed(options)
    logged(options, -1)
    with open("log", "rb") as log:
        at, saved = 0, b""
        while head := log.read(25):
            kind, _, _, n = struct.unpack("=cQQQ", head)
            data = log.read(n)
            if data.startswith(b"\x89SHF"):
                saved = data
            if kind == b"R" and fits(saved, phase, merges):
                break
            at += 1
        else:
            raise AssertionError((options, phase, merges))
    clean()
    # The runs and the output extend beyond the state.
    logged(options, at + 6)
    assert fits(read("s"), phase, merges)
    return wanted


def refused(status, told, options, *more, names=INPUTS):
    """Options that do not match the state change no file."""
    before = everything()
    tokshuf(*kept(options, *more, names=names), status=status, told=told)
    assert everything() == before, (options, more)
    assert not os.path.exists("s.new")


def options(module):
    """Of another shuffle."""
    use(module)
    mine = SHUFFLES[3][1]
    for phase in READING, SORTED:
        wanted = stopped(mine, True, phase)
        refused(64, "--seed=0, not 5", mine, "--seed=5")
        refused(64, "no --head-count, not --head-count", mine,
                "--head-count=9")
        refused(64, "--min-length=1, not 2", mine, "--min-length=2")
        refused(64, "--max-length=4294967295, not 9", mine, "--max-length=9")
        refused(64, "--by-length=0, not 9", mine, "--by-length=9")
        refused(64, "an input count of 3, not 2", mine, names=["a", "b"])
        refused(64, "an output count of 2, not 1", ["-o", "out"])
        refused(64, "a share of 3/4 for out, not 2/3",
                ["--split=2:out,1:out2"])
        refused(64, "the records have u32 tokens, not u16" if phase else "u16",
                mine, "-tu16")
        tokshuf("--state=s", *mine, *INPUTS, status=64,
                told="s: exists already: use --resume to continue from it")
        # The same ratio is the same shuffle, and memory is free.
        same = ["--split=0.75:out,0.25:out2", "-M", "3Mi"]
        ends_whole(same, wanted)
    refused(64, "--seed=0, not 5", mine, "--seed=5")
    sample = SHUFFLES[1][1]
    stopped(sample, True, READING)
    refused(64, "--head-count=20, not 21",
            [*sample, "--head-count=21"])


def use(module):
    global MODULE
    MODULE = module


def changed(module):
    """Changed inputs."""
    use(module)
    for framed, mine in SHUFFLES:
        wanted = stopped(mine, framed, READING)
        at = number(FILE)
        name = INPUTS[at]
        good = read(name)
        write(name, draw(9, framed, 60))
        refused(65, name + ": ", mine)
        write(name, good[:len(good) // 9])
        refused(65, name + ": ", mine)
        # A file of another type.
        write(name, draw(1, not framed, 24))
        refused(64, "", mine)
        write(name, good)
        # A file that was read completely.
        first = read("a")
        if at > 0:
            write("a", first + first)
            refused(65, "s: the inputs read so far had %d bytes when the "
                        "state was saved, but now have %d" % (
                        sum(len(read(one)) for one in INPUTS[:at]) -
                        len(first), sum(len(read(one))
                                        for one in INPUTS[:at])), mine)
            write("a", first)
        # Files may be renamed.
        for one in INPUTS:
            os.rename(one, one + one)
        ends_whole(mine, wanted, [one + one for one in INPUTS])
        # After all was read, files may be missing, but not changed.
        wanted = stopped(mine, framed, SORTED, merges=True)
        write("c", good + good)
        refused(65, "s: the inputs read so far", mine)
        clean(*INPUTS)
        ends_whole(mine, wanted)
        write("a", b"")
        write("b", b"")
        write("c", b"")
        refused(65, "s: the inputs read so far", mine)


def runs(module):
    """Runs that are missing, cut or changed, or no runs at all."""
    use(module)
    mine = SHUFFLES[0][1]
    for phase, merges in (READING, False), (SORTED, True), (SORTED, False):
        wanted = stopped(mine, True, phase, merges)
        good = everything()
        for k, name in enumerate(RUNS):
            size = number(SIZE + 3 * k)
            for bad in (good[name][:size - 1], b"", bytes(len(good[name])),
                        b"x" * len(good[name]), good[name][:size - 1] +
                        bytes([good[name][size - 1] ^ 1])):
                write(name, bad)
                refused(1, name + ": not the temporary file that was written "
                                  "with this state", mine)
            clean(name)
            refused(1, name + ": No such file", mine)
            write("other", good[name])
            os.symlink("other", name)
            refused(1, name + ": not the temporary file", mine)
            clean(name)
            os.link("other", name)
            refused(1, name + ": not the temporary file", mine)
            # Bytes after the state are cut, whatever they are.
            clean(name)
            write(name, good[name][:size] + bytes(5000))
        ends_whole(mine, wanted)
        # Runs of a job that has ended are removed, but no other files.
        for name in RUNS:
            write(name, good[name])
        tokshuf(*kept(mine))
        assert not there(*RUNS)
        write("s.0", b"somebody else's")
        tokshuf(*kept(mine))
        assert read("s.0") == b"somebody else's"
    # Without a state they are overwritten, but no other file is.
    clean("s", *OUTPUTS)
    tokshuf(*kept(mine), status=1, told="s.0: needed as a temporary")
    assert there(*RUNS, "s") == {"s.0": b"somebody else's"}
    os.remove("s.0")
    os.mkdir("s.0")
    tokshuf(*kept(mine), status=1, told="s.0: needed as a temporary")
    os.rmdir("s.0")
    os.symlink("nothing", "s.1")
    tokshuf(*kept(mine), status=1, told="s.1: needed as a temporary")
    assert not os.path.exists("nothing")
    os.remove("s.1")
    write("s.0", good["s.0"])
    write("s.1", b"")
    clean("out")
    ends_whole(mine, wanted)


def damaged(module):
    """Bytes of a state, and lengths; and numbers that lie."""
    use(module)
    mine = SHUFFLES[3][1]
    refusals = lies = 0
    for phase, merges in (READING, False), (SORTED, True), (SORTED, False):
        wanted = stopped(mine, True, phase, merges)
        files = everything()
        good = files["s"]
        for at in range(phase, len(good), 37):
            bad = bytearray(good)
            bad[at] ^= 1 << at % 8
            write("s", bad)
            refused(65, "s: ", mine)
        for size in [*range(0, 20, 3), *range(20, len(good), 97),
                     len(good) - 1]:
            write("s", good[:size])
            refused(65, "s: ", mine)
        # With a valid checksum, nothing crashes or hangs.
        for at in range(16 if merges else 8, len(good) - 8, 16):
            value, = struct.unpack_from("<Q", good, at)
            lie = (0, value + 1, (1 << 64) - 1)[lies % 3] & (1 << 64) - 1
            bad = good[:at] + struct.pack("<Q", lie) + good[at + 8:-8]
            put_back(files)
            write("s", bad + struct.pack("<Q", hash_of(bad)))
            done = subprocess.run(["tokshuf", "-q", *kept(mine)],
                                  capture_output=True, timeout=SECONDS,
                                  check=False)
            assert done.returncode in (0, 1, 64, 65), (at, lie, done)
            assert (done.returncode != 0) == (done.stderr != b""), at
            refusals += done.returncode != 0
            lies += 1
        put_back(files)
        ends_whole(mine, wanted)
    assert refusals > lies // 2, (refusals, lies)


def outputs(module):
    """A changed output."""
    use(module)
    mine = SHUFFLES[3][1]
    for phase in READING, SORTED:
        wanted = stopped(mine, True, phase)
        good = read("out")
        at = number(NUMBERS + 1)
        for bad, told in ((good[:at - 1], "but the state was saved after"),
                          (b"", "bytes, but the state was saved after"),
                          (bytes(len(good)), "not the output that was written"),
                          (b"x" + good, "not the output that was written")):
            write("out", bad)
            refused(1, told, mine)
        os.remove("out")
        refused(1, "out: does not exist", mine)
        write("out", good + bytes(5000))
        ends_whole(mine, wanted)
    write("out2", wanted["out2"] + b"!")
    refused(1, "out2: has %d bytes, but %d were written" % (
        len(wanted["out2"]) + 1, len(wanted["out2"])), mine)
    write("out2", wanted["out2"])
    # Without a state it may be the output of another job.
    clean("s")
    refused(64, "out: exists already, but its state s does not: remove the "
                "output to start again", mine)


if __name__ == "__main__":
    globals()[sys.argv[1]](*sys.argv[2:])
