"""measure.py - shared by the benchmarks: runs, input, medians, tables.

Times are wall clock times, from before the first process of a pipe is started
until the last one has ended.  Contenders take turns, each round beginning with
another one, so that a machine that is slow for a while slows all of them.

SPDX-License-Identifier: MIT
"""

import argparse
import contextlib
import fcntl
import json
import os
import platform
import random
import re
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time

F_SETPIPE_SZ = 1031
RESAMPLES = 2000
FIRST_TOKEN = 5  # of a BERT's, after the special ones


class Failed(Exception):
    """A contender failed."""


# ----------------------------------------------------------------- places

def fail_by_exit(number, frame):
    """Cleans up after an interrupted run as after a failed one."""
    del number, frame
    raise SystemExit("interrupted")


def heed_signals():
    for number in (signal.SIGHUP, signal.SIGINT, signal.SIGTERM):
        signal.signal(number, fail_by_exit)


@contextlib.contextmanager
def room(wanted):
    """A folder in memory if `wanted` bytes fit there, otherwise on disk."""
    base = tempfile.gettempdir()
    if os.path.isdir("/dev/shm") and os.access("/dev/shm", os.W_OK):
        if shutil.disk_usage("/dev/shm").free > wanted:
            base = "/dev/shm"
    if shutil.disk_usage(base).free < wanted:
        raise Failed("%s has no room for %d bytes" % (base, wanted))
    with tempfile.TemporaryDirectory(prefix="packstream-bench.",
                                     dir=base) as folder:
        yield folder


def find_programs(build, programs=("packstream", "tests/bench/gen")):
    """Puts the programs themselves on the PATH, not libtool's wrappers."""
    build = os.path.abspath(build)
    for needed in programs:
        if not os.access(os.path.join(build, needed), os.X_OK):
            raise Failed("%s has no %s: run `make bench` there"
                         % (build, needed))
    folders = [os.path.join(build, ".libs"), build,
               os.path.join(build, "tests/bench")]
    os.environ["PATH"] = os.pathsep.join(folders + [os.environ["PATH"]])
    others = os.environ.get("LD_LIBRARY_PATH")
    os.environ["LD_LIBRARY_PATH"] = os.pathsep.join(
        [folders[0]] + ([others] if others else []))
    os.environ["LC_ALL"] = "C"


def wikipedia():
    """The published histogram, which is not part of the sources, or None."""
    here = os.path.dirname(os.path.abspath(__file__))
    data = os.environ.get("SHARED_DATA",
                          os.path.join(here, "../../../shared/data"))
    name = os.path.join(data, "wikipedia-bert-512.hist")
    return name if os.access(name, os.R_OK) else None


def first_match(path, pattern, otherwise):
    with contextlib.suppress(OSError), open(path) as lines:
        found = re.search(pattern, lines.read(), re.MULTILINE)
        if found:
            return found[1].strip()
    return otherwise


def machine():
    """One line: the processor, cores, memory and system."""
    model = first_match("/proc/cpuinfo", r"^model name\s*:(.*)$",
                        platform.machine())
    kib = int(first_match("/proc/meminfo", r"^MemTotal:\s*(\d+)", "0"))
    return "%s, %d cores, %.0f GiB, %s %s" % (
        model, len(os.sched_getaffinity(0)), kib / 2**20, platform.system(),
        platform.release().split("-")[0])


# ------------------------------------------------------------------- runs

def new_pipe(size):
    reader, writer = os.pipe()
    if size:
        fcntl.fcntl(writer, F_SETPIPE_SZ, size)
    return reader, writer


class Pipe:
    """A pipeline of commands."""

    def __init__(self, commands, source=os.devnull, sink=os.devnull, size=0):
        self.commands = commands
        self.size = size
        self.children = []
        self.given = os.open(source, os.O_RDONLY)
        self.taken = os.open(sink, os.O_WRONLY | os.O_CREAT | os.O_TRUNC,
                             0o600)

    def start(self):
        given = self.given
        for i, command in enumerate(self.commands):
            following, output = None, self.taken
            if i + 1 < len(self.commands):
                following, output = new_pipe(self.size)
            self.children.append(subprocess.Popen(command, stdin=given,
                                                  stdout=output))
            os.close(given)
            os.close(output)
            given = following

    def wait(self):
        """The processor time of each; fails if any of them does."""
        times = []
        for child in self.children:
            _, status, used = os.wait4(child.pid, 0)
            child.returncode = os.waitstatus_to_exitcode(status)
            times.append(used.ru_utime + used.ru_stime)
        failed = [child for child in self.children if child.returncode != 0]
        # A process that only lost its reader did not cause the failure.
        failed.sort(key=lambda child: child.returncode == -signal.SIGPIPE)
        for child in failed:
            raise Failed("exit status %d: %s" % (child.returncode,
                                                 " ".join(child.args)))
        return times

    def end(self):
        for child in self.children:
            if child.returncode is None:
                child.kill()
                child.wait()


def time_pipe(commands, measured, **where):
    """Seconds of the whole pipe, and processor time of commands[measured]."""
    pipe = Pipe(commands, **where)
    start = time.perf_counter()
    try:
        pipe.start()
        used = pipe.wait()
    finally:
        pipe.end()
    return time.perf_counter() - start, used[measured]


def take_turns(contenders, rounds):
    """Results of named callables, after one run to warm up."""
    names = list(contenders)
    results = {name: [] for name in names}
    for name in names:
        contenders[name]()
    for turn in range(rounds):
        at = turn % len(names)
        for name in names[at:] + names[:at]:
            results[name].append(contenders[name]())
    return results


def output_of(command, **options):
    """The output of a command, which must succeed."""
    done = subprocess.run(command, stdout=subprocess.PIPE, check=False,
                          **options)
    if done.returncode != 0:
        raise Failed("exit status %d: %s" % (done.returncode,
                                             " ".join(command)))
    return done.stdout.decode()


def reports_of(command, **options):
    """The JSON lines that a command prints, which must succeed."""
    return [json.loads(line)
            for line in output_of(command, **options).splitlines()]


# ------------------------------------------------------------ BERT's input

def write_records(records, sequences, vocab):
    """Token records with a next-sentence label each; returns their number."""
    lines = records + ".lines"
    count = 0
    with open(lines, "w") as file:
        for tokens in sequences:
            file.write(json.dumps({"input_ids": tokens,
                                   "next_sentence_label": count % 2}) + "\n")
            count += 1
    output_of(["tokcat", "-q", "--from=jsonl", "--vocab=%d" % vocab,
               "--pad-id=0", "--cls-id=2", "--sep-id=3", "--mask-id=4",
               "--channel=next_sentence_label:i32:-1", "-o", records, lines])
    os.unlink(lines)
    return count


def pack(name, records, capacity, *options):
    """Makes the stream `name`; returns its number of packs."""
    output_of(["packstream", "-q", "-L%d" % capacity, *options, "-o", name,
               records])
    return json.loads(output_of(["packstat", "--json", name]))["packs"]


# ---------------------------------------------------------------- numbers

def quartiles(values):
    low, middle, high = statistics.quantiles(values, n=4, method="inclusive")
    return low, middle, high


def ratio(upper, lower):
    """The ratio of two medians, and its 95 % bootstrap interval over the
    rounds; the random draws are the same in every run."""
    rng = random.Random(1)
    rounds = range(len(upper))
    found = []
    for _ in range(RESAMPLES):
        drawn = rng.choices(rounds, k=len(rounds))
        found.append(statistics.median(upper[i] for i in drawn) /
                     statistics.median(lower[i] for i in drawn))
    found.sort()
    return (statistics.median(upper) / statistics.median(lower),
            found[RESAMPLES * 25 // 1000], found[RESAMPLES * 975 // 1000])


# ----------------------------------------------------------------- tables

def table(rows):
    """Lines of columns: the first aligned left, the others right.
    A row of one cell is printed as a line."""
    cells = [row for row in rows if len(row) > 1]
    widths = [max(map(len, column)) for column in zip(*cells)]
    lines = []
    for row in rows:
        line = row[0] if len(row) == 1 else "  ".join(
            cell.rjust(width) if i else cell.ljust(width)
            for i, (cell, width) in enumerate(zip(row, widths)))
        lines.append(line.rstrip())
    return lines


def show(lines):
    print("\n".join(lines) + "\n", flush=True)


def parse(usage, size, least):
    """--bytes, which defaults to `size` and is at least `least`, --rounds, and
    the folder of the build."""
    parser = argparse.ArgumentParser(usage=usage, add_help=False)
    parser.add_argument("--bytes", type=int, default=size)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("build")
    options = parser.parse_args()
    if options.rounds < 3 or options.bytes < least:
        parser.error("at least 3 rounds of %d bytes" % least)
    return options


def run_main(main):
    """Runs main(); prints a failure on stderr and exits with 1."""
    heed_signals()
    try:
        main()
    except (Failed, OSError) as problem:
        sys.exit("%s: %s" % (os.path.basename(sys.argv[0]), problem))
