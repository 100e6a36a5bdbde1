#!/usr/bin/env python3
"""coverage.py - lines and branches that the tests reach, by gcov.

usage: coverage.py [--jobs=N] [--report] BUILD [TEST]...

Makes a separate build in BUILD/coverage (gcc, -O0, without the sandbox, which
would prevent counting), and runs there the C tests and the bats files that run
programs, or only the TESTs (lib/io/fd-t, programs/tokcat.bats) again.
--report does not run tests; it reports the counts of the last run.

The table has a row for each file of src: its lines and branches, those that no
test reaches, and the rest in percent.  Then come the holes of src/lib: a line
with a branch that was never taken, with the lines after it that were never
run, or such lines alone.  Each hole has a reason in tests/coverage.reasons;
those without one are listed, and the exit status is 1.  A reason without a
hole is reported as well; that can be by chance, since some tests kill at
random.

Not counted: processes that end by a signal or with _exit, the Python package,
which is built differently, and the trainer.

SPDX-License-Identifier: MIT
"""

import argparse
import collections
import concurrent.futures
import functools
import hashlib
import json
import os
import shutil
import subprocess
import sys

TOP = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
REASONS = os.path.join(TOP, "tests", "coverage.reasons")
ENVIRONMENT = ("PYTHON_NUMPY", "CC", "CFLAGS", "NM", "MANDOC",
               "PACKAGE_VERSION")

# A hole of a source file: its first line, how many of that line's branches
# were never taken, out of how many, and the lines that were never run.
Hole = collections.namedtuple("Hole", "line missed branches unrun")


@functools.cache
def digest(name):
    with open(os.path.join(TOP, name), "rb") as file:
        return hashlib.sha256(file.read()).hexdigest()


class Counts:
    """For source files, by name: how often lines and branches were taken."""

    def __init__(self):
        self.lines = collections.defaultdict(dict)  # file: {line: [n, []]}
        self.starts = collections.defaultdict(set)  # file: first lines

    def add_line(self, name, number, count, branches):
        line = self.lines[name].setdefault(number, [0, []])
        line[0] += count
        line[1] += [0] * (len(branches) - len(line[1]))
        for i, taken in enumerate(branches):
            line[1][i] += taken

    def add_gcov(self, said):
        """Adds gcov's counts of one object."""
        folder = said["current_working_directory"]
        for file in said["files"]:
            name = os.path.normpath(os.path.join(folder, file["file"]))
            if not name.startswith(TOP + "/src/"):
                continue
            name = os.path.relpath(name, TOP)
            for function in file["functions"]:
                self.starts[name].add(function["start_line"])
            for line in file["lines"]:
                self.add_line(name, line["line_number"], line["count"],
                              [b["count"] for b in line["branches"]])

    def save(self, name):
        with open(name, "w") as file:
            json.dump([[name, digest(name), sorted(self.starts[name]),
                        [[n, *line] for n, line in lines.items()]]
                       for name, lines in self.lines.items()], file)

    def load(self, name):
        """Drops the counts of a file that has changed since."""
        with open(name) as file:
            for name, then, starts, lines in json.load(file):
                if then != digest(name):
                    continue
                self.starts[name].update(starts)
                for line in lines:
                    self.add_line(name, *line)

    def holes(self, name):
        found = []
        is_open = False
        for number, (count, branches) in sorted(self.lines[name].items()):
            missed = branches.count(0)
            if number in self.starts[name] or (count and not missed):
                is_open = False
            if count == 0 and is_open:
                found[-1].unrun.append(number)
            elif count == 0 or missed:
                is_open = True
                found.append(Hole(number, missed, len(branches),
                                  [] if count else [number]))
        return found


def configure_and_make(build):
    os.makedirs(build, exist_ok=True)
    if not os.path.exists(os.path.join(build, "Makefile")):
        subprocess.run(
            [TOP + "/configure", "-q", "--disable-static",
             "--disable-sandbox", "--disable-openmp", "CC=gcc",
             "CFLAGS=-g -O0 --coverage -fprofile-update=single"],
            cwd=build, check=True, stdout=subprocess.DEVNULL)
    subprocess.run(["make", "-s", f"-j{os.cpu_count()}", "test-programs"],
                   cwd=build, check=True, stdout=subprocess.DEVNULL)


def all_tests(build):
    """The longest come first, which is the order of tests.am."""
    with open(TOP + "/tests/tests.am") as file:
        words = file.read().split()
    named = [w.removeprefix("tests/") for w in dict.fromkeys(words)]
    return ([t for t in named if t.startswith("programs/")]
            + ["tree/fuzz.bats"]
            + [t for t in named if t.endswith("-t") and "trainer" not in t
               and os.path.exists(f"{build}/tests/{t}")])


def run_test(build, data, test):
    """Runs a test and saves its share of the counts; returns its result."""
    made = os.path.join(data, test.replace("/", "-"))
    shutil.rmtree(made, ignore_errors=True)
    environment = dict(
        os.environ, LC_ALL="C", LONG="1", FAULTS="", abs_top_srcdir=TOP,
        abs_top_builddir=build, LD_LIBRARY_PATH=build + "/.libs",
        PATH=f"{build}/.libs:{build}:{os.environ['PATH']}",
        GCOV_PREFIX=made, PYTHONDONTWRITEBYTECODE="1")
    with open(build + "/Makefile") as file:
        for line in file:
            name, _, value = line.partition(" = ")
            if name in ENVIRONMENT:
                environment[name] = value.strip()
    command = (["bats", f"{TOP}/tests/{test}"] if test.endswith(".bats")
               else [f"{build}/tests/{test}"])
    with open(made + ".log", "w") as log:
        status = subprocess.run(command, env=environment, stdout=log,
                                cwd=build, stdin=subprocess.DEVNULL,
                                stderr=subprocess.STDOUT).returncode
    counts = Counts()
    for folder, _, names in os.walk(made):
        own = "/" + os.path.relpath(folder, made)
        names = [n for n in names if n.endswith(".gcda")]
        for name in names:
            note = name.removesuffix("gcda") + "gcno"
            os.symlink(f"{own}/{note}", f"{folder}/{note}")
        if names:
            said = subprocess.run(
                ["gcov", "--json-format", "--stdout", "-b", *names],
                cwd=folder, check=True, capture_output=True)
            for line in said.stdout.splitlines():
                counts.add_gcov(json.loads(line))
    counts.save(made + ".json")
    shutil.rmtree(made, ignore_errors=True)
    return status


def run_tests(build, data, tests, jobs):
    with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        running = {pool.submit(run_test, build, data, t): t for t in tests}
        for done in concurrent.futures.as_completed(running):
            if done.result() != 0:
                print(f"{running[done]}: failed, what it came to counts",
                      file=sys.stderr)


def percent(all_of_them, missed):
    return 100 * (1 - missed / all_of_them) if all_of_them else 100


def print_table(counts):
    """A row for each file, and sums by folder."""
    rows = collections.defaultdict(lambda: [0, 0, 0, 0])
    for name, lines in counts.lines.items():
        folders = name.split("/")
        sums = {name, "/".join(folders[:2]) + "/", "src/"}
        for count, branches in lines.values():
            for row in sums:
                rows[row][0] += 1
                rows[row][1] += count == 0
                rows[row][2] += len(branches)
                rows[row][3] += branches.count(0)
    print(f"{'':36}{'lines':>7}{'missed':>7}{'%':>7}"
          f"{'branches':>10}{'missed':>7}{'%':>7}")
    for name, (lines, unrun, branches, missed) in sorted(rows.items()):
        print(f"{name:36}{lines:7}{unrun:7}{percent(lines, unrun):7.1f}"
              f"{branches:10}{missed:7}{percent(branches, missed):7.1f}")


def read_reasons():
    """{(file, text of the line): reason}.  A reason is a line of its own,
    followed by indented lines that it applies to."""
    reasons = {}
    reason, is_new = [], True
    with open(REASONS) as file:
        for line in file:
            if line.startswith("#") or not line.strip():
                continue
            if line[0] == " ":
                name, _, text = line.strip().partition(": ")
                reasons["src/lib/" + name, text] = " ".join(reason)
                is_new = True
            else:
                reason = [] if is_new else reason
                reason.append(line.strip())
                is_new = False
    return reasons


def print_holes(counts):
    """Prints holes without a reason; returns how many."""
    reasons = read_reasons()
    unused = set(reasons)
    n_holes = n_open = 0
    for name in sorted(counts.lines):
        if not name.startswith("src/lib/"):
            continue
        with open(os.path.join(TOP, name)) as file:
            text = file.read().splitlines()
        for hole in counts.holes(name):
            key = name, text[hole.line - 1].strip()
            n_holes += 1
            unused.discard(key)
            if key in reasons:
                continue
            n_open += 1
            what = [f"{hole.missed} of {hole.branches} branches"
                    if hole.missed else "",
                    f"{len(hole.unrun)} lines" if hole.unrun else ""]
            print(f"{name}:{hole.line}: {key[1]}"
                  f"  [{', '.join(filter(None, what))}]")
    for name, text in sorted(unused):
        print(f"{name}: {text}: has a reason, and no hole")
    print(f"src/lib: {n_holes} holes, {n_open} without a test or a reason")
    return n_open


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--report", action="store_true")
    parser.add_argument("build")
    parser.add_argument("tests", nargs="*")
    a = parser.parse_args()
    build = os.path.join(os.path.abspath(a.build), "coverage")
    data = os.path.join(build, "counts")

    if not a.report:
        configure_and_make(build)
        if not a.tests:
            shutil.rmtree(data, ignore_errors=True)
        os.makedirs(data, exist_ok=True)
        run_tests(build, data, a.tests or all_tests(build), a.jobs)
    counts = Counts()
    for name in sorted(os.listdir(data)):
        if name.endswith(".json"):
            counts.load(os.path.join(data, name))
    print_table(counts)
    return 1 if print_holes(counts) else 0


if __name__ == "__main__":
    sys.exit(main())
