#!/usr/bin/env python3
"""mutants.py - plants bugs into the CUDA back end, and into the sources that
both back ends share, one at a time, and prints which check finds each.

usage: mutants.py [--table=FILE] [--only=PROGRAM] BUILD_DIR [BUG]...
       mutants.py [--table=FILE] --texts

The bugs are listed in mutants.txt, or in FILE.  Each is planted into a copy of
the sources; files that include the changed one are compiled, and linked before
the libraries of the build, with the commands that make would use.  Then the
programs of `make check-cuda` that use the source run in its orders of threads
and streams, fastest first, until one fails.

BUG is a number or a name; the default is all.  --only runs a single program.
--texts only checks that the text to be replaced exists.
Exits with 1 if a bug is not found.

SPDX-License-Identifier: MIT
"""

import argparse
import os
import re
import resource
import shlex
import subprocess
import sys
import tempfile
import threading
from pathlib import Path

HERE = Path(__file__).resolve().parent
SOURCES = HERE.parents[2] / "trainer"
LIMIT = 200  # seconds for a program

# Sources tested by attention-t.
ATTENTION = {"cuda/attention.cu", "cuda/attention_forward.cu",
             "cuda/attention_backward.cu", "cuda/attention_mma_forward.cu",
             "cuda/attention_mma_backward.cu", "cuda/groups.cc"}
# Tested by product-lt-t; other programs have product_blas.cc instead.
LT = "cuda/product_lt.cu"
# Tested by shards-t.
NCCL = "cuda/nccl.cc"
# Tested by sdpa-t.
SDPA = {"cuda/sdpa.cc", "cuda/spans.cc"}
# Sources outside the library, or linked into few tests or none.
APART = {LT, "cuda/sdpa.cc", "cuda/sdpa_none.cc", "cuda/ranks.cc",
         NCCL, "cuda/nccl_none.cc"}

# The programs for sources that both back ends share, and the libraries that
# contain these sources.
SHARED = {"gradient-t": "libbertdouble", "packed-double-t": "libbertdouble",
          "lamb-t": "libberttrain"}

KINDS = {".c", ".cc", ".cu", ".h"}

# Suffix of objects by the part of a program's name that identifies the build.
SUFFIX = {"": ".ho", "double": ".hdo", "asan": ".hao", "tsan": ".hto",
          "bytes": ".hto"}
SLOW = {"asan", "tsan", "bytes"}  # these run in one order


class Wrong(Exception):
    """An error in the table or the build, not a bug."""


# ---- The table


class Bug:
    def __init__(self, number, file, name, first):
        self.number, self.file, self.name = number, file, name
        self.shared = not file.startswith("cuda/")
        self.first = first  # the program to try first, or None
        self.old, self.new = [], []

    def planted(self):
        """The text of the file with the bug."""
        text = (SOURCES / self.file).read_text()
        words = " ".join(self.old).split()
        found = list(re.finditer(r"\s+".join(map(re.escape, words)), text))
        if not words or len(found) != 1:
            raise Wrong("%s: %s: its text is there %d times" %
                        (self.file, self.name, len(found)))
        return (text[:found[0].start()] + "\n".join(self.new)
                + text[found[0].end():])


def read_table(path):
    bugs, file = [], None
    for line in path.read_text().splitlines():
        if line.startswith("#") or not line.strip():
            continue
        if line.startswith("== "):
            file = line[3:].strip()
        elif line.startswith("- "):
            bugs[-1].old.append(line[2:])
        elif line.startswith("+ "):
            bugs[-1].new.append(line[2:])
        else:
            name, _, first = line.partition("  [")
            bugs.append(Bug(len(bugs) + 1, file, name.strip(),
                            first.rstrip("]") or None))
    names = [bug.name for bug in bugs]
    for name in names:
        if names.count(name) > 1:
            raise Wrong("%s: there are two bugs of that name" % name)
    return bugs


# ---- How the build compiles and links


class Build:
    def __init__(self, folder):
        self.folder = folder
        self.known = {}

    def make(self, *arguments):
        environment = {name: value for name, value in os.environ.items()
                       if name not in ("MAKEFLAGS", "MFLAGS", "MAKELEVEL")}
        done = subprocess.run(
            ["make", "--no-print-directory", "V=1", *arguments],
            cwd=self.folder, env=environment, stdout=subprocess.PIPE,
            stderr=subprocess.PIPE, universal_newlines=True)
        if done.returncode:
            raise Wrong("make %s: %s" % (" ".join(arguments), done.stderr))
        return done.stdout

    def command(self, target, *news):
        """The commands make would run for a target if these files changed."""
        if target not in self.known:
            lines = self.make("-n", target, *["-W" + new for new in news])
            fit = [line for line in lines.splitlines()
                   if "-o %s" % target in line]
            if len(fit) != 1:
                raise Wrong("make says nothing of %s" % target)
            self.known[target] = fit[0].split("&& ")[-1]
        return self.known[target]

    def run_compiler(self, words, copies):
        """Compiles with the headers of the copies; False: it failed."""
        first = next(i for i, word in enumerate(words) if word[:2] == "-I")
        words = words[:first] + ["-I" + str(copies)] + words[first:]
        return subprocess.run(words + ["-O1", "-g0"], cwd=self.folder,
                              stdout=subprocess.DEVNULL,
                              stderr=subprocess.DEVNULL).returncode == 0

    def compile(self, source, copies, to, suffix):
        """Compiles source's copy to an object in `to`; False: it failed."""
        target = "trainer/" + str(Path(source).with_suffix(suffix))
        made = self.made_path(source)
        command = self.command(target, made)
        words = [str(copies / source) if word == made
                 else str(to / Path(target).name) if word == target
                 else word for word in shlex.split(command)]
        if str(copies / source) not in words:
            raise Wrong("%s: make does not name %s" % (command, made))
        return self.run_compiler(words, copies)

    def compile_shared(self, source, copies, to, library):
        """The same for a source of a library that libtool compiles."""
        path = Path(source)
        target = "trainer/%s/%s_la-%s.lo" % (path.parent, library, path.stem)
        # The last word, the source, is a shell expression.
        command = self.command(target, self.made_path(source))
        words = [str(to / (path.stem + ".lo")) if word == target else word
                 for word in shlex.split(command.split(" `")[0])]
        if "-MT" in words:  # the build's dependencies stay as they are
            del words[words.index("-MT"):words.index("-c")]
        return self.run_compiler(words + [str(copies / source)], copies)

    def made_path(self, source):
        """The source's name in the Makefile."""
        text = (self.folder / "Makefile").read_text()
        srcdir = re.search(r"^srcdir = (.*)$", text, re.M).group(1)
        return os.path.normpath("%s/trainer/%s" % (srcdir, source))

    def link(self, program, objects, to, library="libbertcuda"):
        target = target_of(program)
        libraries = ["tests/hostcuda/libhostcuda%s.a" % way
                     for way in ("", "-asan", "-tsan", "-counters")]
        words = []
        for word in shlex.split(self.command(target, *libraries)):
            if word == "trainer/cuda/" + Path(word).name and (
                    Path(word).name in objects):
                continue
            if word.startswith(library):
                words += [str(to / each) for each in objects]
            words.append(str(to / Path(program).name) if word == target
                         else word)
        done = subprocess.run(words, cwd=self.folder,
                              stdout=subprocess.DEVNULL,
                              stderr=subprocess.PIPE,
                              universal_newlines=True)
        if done.returncode:
            raise Wrong("%s: %s" % (program, done.stderr))


# ---- Checks


def target_of(program):
    return os.path.normpath("tests/trainer/cuda/" + program)


def orders_of(program):
    """Orders, and whether each is a quick run, as in check.sh."""
    way = way_of(program)
    if way in SLOW:
        return [("1", way != "asan" or program == "attention-asan-t")]
    quick = program.split("-")[0] in ("attention", "graphs", "rows")
    return [("forward", False)] + [(order, quick)
                                   for order in ("reverse", "1", "2", "3")]


def run_once(program, order, quick, folder):
    """The failure, or None; and the line of bits, if there is one."""
    command = ["./" + Path(program).name]
    environment = dict(os.environ, HOSTCUDA_ORDER=order,
                       HOSTCUDA_STREAMS=order, LONG="" if quick else "1",
                       TSAN_OPTIONS="halt_on_error=1")
    process = subprocess.Popen(command, cwd=folder, env=environment,
                               stdout=subprocess.PIPE,
                               stderr=subprocess.DEVNULL,
                               universal_newlines=True, errors="replace")
    clock = threading.Timer(LIMIT, process.kill)
    clock.start()
    bits = None
    for line in process.stdout:
        if line.startswith("# bits"):
            bits = line
        if line.startswith("not ok"):
            process.kill()  # the first is enough
            process.stdout.read()
            break
    code = process.wait()
    clock.cancel()
    return ("%s, order %s" % (program, order) if code else None), bits


def run_check(program, folder):
    """The order in which a program fails; None: it passes in all."""
    seen = set()
    for order, quick in orders_of(program):
        wrong, bits = run_once(program, order, quick, folder)
        if wrong:
            return wrong
        seen.add((quick, bits))
    if len(seen) > len({quick for quick, _ in seen}):
        return "%s, bits of orders" % program
    return None


def programs_for(bug, users):
    """Programs that use the changed sources, fastest first."""
    if bug.shared:
        return (["lamb-t"] if users == {"optim/lamb.c"}
                else ["gradient-t", "packed-double-t"])
    if users == {LT}:
        return ["product-lt-t", "product-lt-asan-t"]
    if users == {NCCL}:
        return ["shards-t"]
    if users <= SDPA:
        return ["sdpa-t", "sdpa-asan-t"]
    stems = []
    if not users <= ATTENTION:
        stems += ["steps", "rows"]
    if users & ATTENTION:
        stems.append("attention")
    names = ["%s-t" % stem for stem in stems]
    if "rows" in stems:
        names.append("bytes-t")
    if "cuda/product_blas.cc" not in users:  # it has product_lt.cu
        names.append("graphs-t")
    if "cuda/lamb.cu" in users:
        names += ["lamb-t", "shards-t"]
    if "cuda/linear.cu" in users:
        names.append("product-lt-t")
    names += ["%s-double-t" % stem for stem in stems]
    if "attention" in stems:
        names.append("attention-bytes-t")
    return names + ["%s-%s-t" % (stem, way) for way in ("asan", "tsan")
                    for stem in stems]


def way_of(program):
    parts = program.split("-")
    return next((part for part in parts if part and part in SUFFIX), "")


def sources_in():
    """Text of each source by its path below trainer/."""
    return {str(path.relative_to(SOURCES)): path.read_text()
            for path in SOURCES.rglob("*.*") if path.suffix in KINDS}


def users_of(bug):
    """Sources of the bug's back end, or of both, that are or include its
    file."""
    users = {bug.file}
    texts = {name: text for name, text in sources_in().items()
             if name.startswith("cuda/") != bug.shared}
    while True:
        more = {name for name, text in texts.items()
                if any('#include "%s"' % user in text for user in users)}
        if more <= users:
            break
        users |= more
    sources = {user for user in users if not user.endswith(".h")}
    return sources if sources <= APART else sources - APART


class Hunt:
    """Finds bugs; caches work that they share."""

    def __init__(self, build, only):
        self.build = build
        self.only = only  # the only program to run, or None
        self.sound = set()  # programs that pass without a bug

    def trust(self, program):
        if program in self.sound:
            return
        self.build.make(target_of(program))
        said = run_once(program, *orders_of(program)[0],
                        (self.build.folder / target_of(program)).parent)[0]
        if said:
            raise Wrong("without a bug, too: %s" % said)
        self.sound.add(program)

    def find(self, bug, folder):
        """The check that finds a bug, or None."""
        copies, compiled = folder / "copies", {}
        users = users_of(bug)
        programs = programs_for(bug, users)
        for name, text in sources_in().items():
            (copies / name).parent.mkdir(parents=True, exist_ok=True)
            (copies / name).write_text(text)
        (copies / bug.file).write_text(bug.planted())
        if bug.first:
            programs.remove(bug.first)
            programs.insert(0, bug.first)
        if self.only:
            programs = [self.only]
        for program in programs:
            library = SHARED[program] if bug.shared else "libbertcuda"
            suffix = ".o" if bug.shared else SUFFIX[way_of(program)]
            self.trust(program)
            for source in sorted(users):
                name = Path(source).stem + suffix
                if name not in compiled and bug.shared:
                    compiled[name] = self.build.compile_shared(
                        source, copies, folder, library)
                elif name not in compiled:
                    compiled[name] = self.build.compile(source, copies,
                                                        folder, suffix)
                if not compiled[name]:
                    return "compiler"
            self.build.link(program, [Path(source).stem + suffix
                                      for source in sorted(users)], folder,
                            library)
            said = run_check(program, folder)
            if said:
                return said
        return None


def chosen(bugs, wanted):
    if not wanted:
        return bugs
    some = [bug for bug in bugs
            if bug.name in wanted or str(bug.number) in wanted]
    if len(some) < len(wanted):
        raise Wrong("no such bug: %s" % ", ".join(
            want for want in wanted
            if want not in [bug.name for bug in some]
            and want not in [str(bug.number) for bug in some]))
    return some


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--table", type=Path, default=HERE / "mutants.txt")
    parser.add_argument("--only", metavar="PROGRAM")
    parser.add_argument("--texts", action="store_true")
    parser.add_argument("build", type=Path, nargs="?")
    parser.add_argument("bugs", nargs="*")
    given = parser.parse_args()
    bugs = read_table(given.table)
    for bug in bugs:
        bug.planted()
    if given.texts:
        print("%d bugs, the text of each is there once" % len(bugs))
        return 0
    if given.build is None or not (given.build / "Makefile").is_file():
        raise Wrong("give a build folder")
    hunt, unfound = Hunt(Build(given.build.resolve()), given.only), 0
    bugs = chosen(bugs, given.bugs)
    for bug in bugs:
        with tempfile.TemporaryDirectory() as folder:
            found = hunt.find(bug, Path(folder))
        unfound += found is None
        print("%3d  %-20s  %-44s  %s" % (bug.number, bug.file, bug.name,
                                         found or "NOT FOUND"), flush=True)
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    print("%d of %d bugs found, %d s of processor time" %
          (len(bugs) - unfound, len(bugs), used.ru_utime + used.ru_stime))
    return 1 if unfound else 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except Wrong as wrong:
        sys.exit("mutants.py: %s" % wrong)
