#!/usr/bin/env python3
"""crash.py - cuts the power at random moments of a job that saves its state.

usage: crash.py [--points=N] [--seed=N] [--plant=WHAT] BUILD
       crash.py --signals=N BUILD

Runs jobs with --state in BUILD, and logs their operations on files
(tests/support/write-log.c).  For each of N points (500) it follows one of the
jobs up to a random entry of the log, and works out a disk as a power cut might
leave it:

  - data that was written with fsync or fdatasync is there;
  - of data written later, any sectors of 512 bytes are there, each as it was
    after some write, or zeros instead, or the file is shorter, or longer, up
    to any length that it has had since;
  - names are created, changed and removed in order, but any number of the
    last changes is missing, back to the last fsync of the folder.

Then the job is started again with --resume.  Its outputs must be identical to
those of an undisturbed job.  It may refuse only if no state has reached the
disk; then its outputs are removed, and it is started again.  One resumption in
four is itself cut off.

--plant=no-sync removes fsync and fdatasync from the logs, --plant=no-folder
those of folders, to test the test: data is lost then.  With --signals no power
is cut; instead a job gets SIGTERM, SIGINT or SIGKILL at every Nth entry of the
log.  It leaves only its outputs and its state, unless it was killed or had no
state yet, and --resume always continues it.

Exits with 1 if something was lost.

SPDX-License-Identifier: MIT
"""

import argparse
import collections
import os
import random
import signal
import struct
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor

SECTOR = 512
STATE = "s"
LEFT = {"s.new", "s.0", "s.1"}  # which a job removes before it ends
FOLDERS = ("", "o")  # of the state, and of the outputs

# Commands; X and Y are inputs.  The flag: is the output appended to an
# existing file?  Where packs do not matter, bestfit is used because it is
# fastest.
JOBS = (
    ("packstream -L 256 --block-packs=8 X", False),
    ("packstream -L 256 --block-packs=16 --zstd=1 X", False),
    ("packstream -L 150 --block-packs=4 -a bestfit --overlong=drop "
     "--rejects=o/r X", False),
    ("packstream -L 150 --block-packs=1 -a bestfit --overlong=split -T2 X",
     False),
    ("packstream -L 256 -a bestfit -w 64 --order=input X", True),
    ("tokmix --state-every=300 --stop=longest 5=X 1=Y", False),
    ("tokmix --state-every=300 --stop=repeat --stage=9k:1=Y 5=X 1=Y",
     False),
    ("tokmix --state-every=400 --stop=repeat --channel=from 1=X 1=Y", True),
    ("tokshuf --state-every=150 -M 1Mi X Y", False),
    ("tokshuf --state-every=400 -M 64Ki --head-count=1500 --by-length=90 "
     "Y X", True),
)

Entry = collections.namedtuple("Entry", "kind place inode data")


def read_log(name):
    entries = []
    with open(name, "rb") as log:
        while head := log.read(25):
            kind, place, inode, n = struct.unpack("=cQQQ", head)
            entries.append(Entry(kind.decode(), place, inode, log.read(n)))
    return entries


class File:
    """A file: its contents on the disk, and entries that may be missing."""

    def __init__(self, content=b""):
        self.content = content
        self.pending = []

    @staticmethod
    def done(content, entries):
        content = bytearray(content)
        for e in entries:
            end = e.place + len(e.data)
            content.extend(bytes(max(end - len(content), 0)))
            if e.kind == "W":
                content[e.place:end] = e.data
            else:
                del content[e.place:]
        return bytes(content)

    def sync(self):
        self.content = self.done(self.content, self.pending)
        self.pending = []

    def after_crash(self, rng):
        """A state in which the file may be found after a power cut."""
        kept = rng.choice((0, 1, 0.5, rng.random()))
        content = bytearray(self.content)
        cached = bytearray(self.content)    # as if there were no power cut
        lengths = [len(content)]
        for e in self.pending:
            end = e.place + len(e.data)
            cached.extend(bytes(max(end - len(cached), 0)))
            if e.kind == "T":
                del cached[e.place:]
                if rng.random() < kept:
                    del content[e.place:]
                    content.extend(bytes(e.place - len(content)))
                lengths.append(len(content))
                continue
            cached[e.place:end] = e.data
            content.extend(bytes(max(end - len(content), 0)))
            for at in range(e.place - e.place % SECTOR, end, SECTOR):
                if rng.random() < kept:
                    stop = min(at + SECTOR, len(cached), len(content))
                    content[at:stop] = cached[at:stop]
            lengths.append(len(content))
        if self.pending and rng.random() < 0.5:
            del content[rng.choice(lengths):]
        return bytes(content)


class Folder:
    """The names in a folder, and changes that may not be on the disk."""

    def __init__(self, names):
        self.names = names
        self.pending = []  # entries, and the file that each creates

    @staticmethod
    def rename(names, e, file):
        """Applies an entry to the names."""
        words = e.data.decode().split("\0")
        if e.kind == "O":
            names[words[0]] = file
        elif e.kind == "R":
            names[words[1]] = names.pop(words[0])
        else:
            del names[words[0]]

    def sync(self):
        for entry, file in self.pending:
            self.rename(self.names, entry, file)
        self.pending = []

    def after_crash(self, rng):
        names = dict(self.names)
        for entry, file in self.pending[:rng.randint(0, len(self.pending))]:
            self.rename(names, entry, file)
        return {name: file.after_crash(rng) for name, file in names.items()}


def cut_off(files, inodes, log, rng):
    """The files after a power cut at some entry of the log.

    `files` are those before, the contents of each path; `inodes` the inode of
    each path, and of each folder.
    """
    opened = {inodes[path]: File(content) for path, content in files.items()}
    folders = {inodes[path]: Folder({
        os.path.basename(name): opened[inodes[name]]
        for name in files if os.path.dirname(name) == path})
               for path in FOLDERS}
    for e in log[:rng.randint(0, len(log))]:
        if e.kind == "O":
            opened[e.inode] = File()
        if e.kind in "ORU":
            folders[e.place].pending.append((e, opened.get(e.inode)))
        elif e.kind == "D":
            folders[e.inode].sync()
        elif e.kind == "S":
            opened[e.inode].sync()
        else:
            opened[e.inode].pending.append(e)
    return {os.path.join(path, name): content
            for path in FOLDERS
            for name, content in
            folders[inodes[path]].after_crash(rng).items()}


class Job:
    """A job, its outputs, and the log of a run."""

    def __init__(self, build, folder, command, appends, plant):
        self.build = build
        self.command = command
        self.program, *self.options = [
            word.replace("X", os.path.join(folder, "x")).replace(
                "Y", os.path.join(folder, "y")) for word in command.split()]
        self.outputs = ["o/out"]
        if "--rejects=o/r" in command:
            self.outputs.append("o/r")
        self.appends = appends
        self.start = {"o/out": b"before\n"} if appends else {}
        self.plant = plant
        with tempfile.TemporaryDirectory(dir=folder) as place:
            self.put(place, self.start)
            self.inodes = self.inodes_in(place)
            ended, self.log = self.run(place, logged=True)
            if ended.returncode != 0 or not self.log:
                sys.exit(f"crash.py: {command}: {ended.stderr.decode()}")
            self.wanted = self.get(place, self.outputs)

    @staticmethod
    def put(place, files):
        os.makedirs(os.path.join(place, "o"), exist_ok=True)
        for name, content in files.items():
            with open(os.path.join(place, name), "wb") as file:
                file.write(content)

    @staticmethod
    def get(place, names):
        files = {}
        for name in names:
            with open(os.path.join(place, name), "rb") as file:
                files[name] = file.read()
        return files

    @staticmethod
    def inodes_in(place):
        paths = {path: os.path.join(place, path) for path in FOLDERS}
        for path in FOLDERS:
            for name in os.listdir(os.path.join(place, path)):
                paths[os.path.join(path, name)] = os.path.join(
                    place, path, name)
        return {path: os.stat(whole).st_ino for path, whole in paths.items()}

    def run(self, place, logged, **variables):
        """Starts or resumes the job; returns the process, and its log."""
        env = dict(os.environ, **variables)
        log = place + ".log"
        if logged:
            env["WRITE_LOG"] = log
            env["LD_PRELOAD"] = os.path.join(
                self.build, "tests", "support", ".libs", "write-log.so")
        words = [self.program, "-q", f"--state={STATE}", "--state-every=40",
                 "--resume", *self.options]
        if self.appends:
            # A shell opens the file: a child forked by another thread must not
            # share it, or it would hold the lock of a killed job.
            words = ["sh", "-c", 'exec "$@" >>o/out', "sh", *words]
        else:
            words += ["-o", "o/out"]
        ended = subprocess.run(words, cwd=place, env=env, check=False,
                               stdin=subprocess.DEVNULL, capture_output=True)
        if not logged:
            return ended, []
        entries = read_log(log)
        os.remove(log)
        dropped = {"no-sync": "S", "no-folder": "D"}.get(self.plant)
        return ended, [e for e in entries if e.kind != dropped]


def recover(job, folder, rng):
    """One power cut and resumption; "resumed", "anew" or an error."""
    files = cut_off(job.start, job.inodes, job.log, rng)
    cuts = 1
    while True:
        with tempfile.TemporaryDirectory(dir=folder) as place:
            job.put(place, files)
            has_state = STATE in files
            again = cuts < 4 and rng.random() < 0.25
            inodes = job.inodes_in(place)
            ended, log = job.run(place, logged=again)
            if again and ended.returncode == 0:
                files = cut_off(files, inodes, log, rng)
                cuts += 1
                continue
            how = "resumed"
            if ended.returncode != 0:
                told = ended.stderr.decode().strip()
                if has_state:
                    return f"refused: {told}"
                if "not s to resume from" not in told:
                    return f"refused without a state: {told}"
                how = "begun anew"
                for name in job.inodes_in(place).keys() - set(FOLDERS):
                    os.remove(os.path.join(place, name))
                job.put(place, job.start)
                ended, _ = job.run(place, logged=False)
            left = job.inodes_in(place).keys() & LEFT
            if left:
                return f"{min(left)} stayed"
            made = job.get(place, job.outputs)
        for name in job.outputs:
            if made[name] != job.wanted[name]:
                return f"{name} is another one"
        return how


def interrupt(job, folder, number, at):
    """One signal and resumption; None or an error."""
    with tempfile.TemporaryDirectory(dir=folder) as place:
        job.put(place, job.start)
        ended, log = job.run(place, True, WRITE_SIGNAL=str(int(number)),
                             WRITE_SIGNAL_AT=str(at))
        if ended.returncode not in (0, -number):
            return f"ended with {ended.returncode}"
        names = job.inodes_in(place)
        # Before its first state a job ends like any other.
        begun = any(e.kind == "R" for e in log[:at + 1])
        if number != signal.SIGKILL and begun and STATE + ".new" in names:
            return "left its next state behind"
        if ended.returncode != 0:
            ended, _ = job.run(place, False)
        if ended.returncode != 0:
            return f"refused: {ended.stderr.decode().strip()}"
        left = job.inodes_in(place).keys() & LEFT
        if left:
            return f"{min(left)} stayed"
        made = job.get(place, job.outputs)
    return None if made == job.wanted else "the outputs are other ones"


def interrupt_all(jobs, folder, step):
    """Signals at every `step`th entry of the logs; returns the failures."""
    cases = [(job, number, at) for job in jobs
             for number in (signal.SIGTERM, signal.SIGINT, signal.SIGKILL)
             for at in range(len(job.log))][::step]
    wrong = 0
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        for case, how in zip(cases, pool.map(
                lambda case: interrupt(case[0], folder, *case[1:]), cases)):
            if how is not None:
                wrong += 1
                job, number, at = case
                print(f"{job.command}: {number.name} at entry {at}, "
                      f"{job.log[at].kind}: {how}", file=sys.stderr)
    print(f"{len(cases)} signals, {wrong} wrong")
    return wrong


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--points", type=int, default=500)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--plant", choices=("no-sync", "no-folder"))
    parser.add_argument("--signals", type=int)
    parser.add_argument("build")
    a = parser.parse_args()
    counts = collections.Counter()

    with tempfile.TemporaryDirectory() as folder:
        rng = random.Random(a.seed)
        for name, count in ("x", 2500), ("y", 400):
            with open(os.path.join(folder, name), "wb") as file:
                for _ in range(count):
                    n = rng.randint(1, 200)
                    file.write(struct.pack("<I", n) + rng.randbytes(2 * n))
        jobs = [Job(a.build, folder, *job, a.plant) for job in JOBS]
        if a.signals:
            return 1 if interrupt_all(jobs, folder, a.signals) else 0

        def one(point):
            own = random.Random(a.seed * 1000003 + point)
            job = jobs[point % len(jobs)]
            return job.command, recover(job, folder, own)

        with ThreadPoolExecutor(os.cpu_count()) as pool:
            for point, (job, how) in enumerate(
                    pool.map(one, range(a.points))):
                counts[how if how in ("resumed", "begun anew")
                       else "lost"] += 1
                if how not in ("resumed", "begun anew"):
                    print(f"point {point}, {job}: {how}", file=sys.stderr)
    print(f"{a.points} points, seed {a.seed}: "
          + ", ".join(f"{n} {how}" for how, n in sorted(counts.items())))
    return 1 if counts["lost"] else 0


if __name__ == "__main__":
    sys.exit(main())
