"""report.py - the GPU resources that the kernels of .cu files use.

    report.py [--arch=80,90,100] [--launches=FILE] [--nvcc=COMMAND]
        [--cuobjdump=COMMAND] FILE...

Compiles each file for each architecture, with every warning of nvcc and ptxas
an error, and prints a row for each kernel: registers a thread, bytes of shared
memory, static and dynamic, and the theoretical occupancy, by occupancy.py.
If cuobjdump is found, it must agree with ptxas, and a second table lists the
innermost loops that use tensor cores: their instructions, their products of
16 x 8 x 16, and the instructions of the kernel outside the loop.

COMMAND may have options.  FILE of --launches lists how kernels are launched,
if their bounds do not determine it:

    PATTERN[@ARCH] THREADS DYNAMIC [WORDS]      forward<*>@80 256 66560 to 512

PATTERN is a shell pattern for the name without parameters and spaces.  A
kernel without a line is launched with the threads of its __launch_bounds__ and
no dynamic shared memory; if it uses some, or has no bounds, "?" is printed.

Exits with 1 if a kernel has spills or local memory, or does not fit; if a line
matches no kernel, or a file does not compile.

SPDX-License-Identifier: MIT
"""

import argparse
import collections
import fnmatch
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile

from occupancy import occupancy, share

ENTRY = re.compile(r"Compiling entry function '(\w+)' for 'sm_(\d+)'")
STACK = re.compile(r"(\d+) bytes stack frame, (\d+) bytes spill stores, "
                   r"(\d+) bytes spill loads")
USED = re.compile(r"Used (\d+) registers(?:.*?(\d+) bytes smem)?")
SASS = re.compile(r"^\s*/\*([0-9a-f]{4,})\*/\s+(.*?);", re.M)
BACK = re.compile(r"\bBRA\b.*0x([0-9a-f]+)")
DUMPED = re.compile(r"Function (\w+):\s+REG:(\d+) STACK:(\d+) .*?LOCAL:(\d+)")

Kernel = collections.namedtuple(
    "Kernel", "name arch registers static local spills threads dynamic loops")
Launch = collections.namedtuple("Launch",
                                "pattern arch threads dynamic words")


class Failed(Exception):
    pass


def read_launches(name):
    if not name:
        return []
    launches = []
    with open(name) as file:
        for number, line in enumerate(file, 1):
            words = line.partition("#")[0].split()
            if not words:
                continue
            pattern, _, arch = words[0].partition("@")
            try:
                launches.append(Launch(pattern, int(arch or 0), int(words[1]),
                                       int(words[2]), " ".join(words[3:])))
            except (IndexError, ValueError):
                raise Failed("%s: line %d is not PATTERN[@ARCH] THREADS "
                             "DYNAMIC [WORDS]" % (name, number)) from None
    return launches


def run(command):
    try:
        done = subprocess.run(command, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, text=True, check=False)
    except OSError as error:
        raise Failed("%s: %s" % (command[0], error.strerror)) from None
    if done.returncode != 0:
        raise Failed("%s\n%s" % (shlex.join(command), done.stdout.rstrip()))
    return done.stdout


def entries(ptx):
    """Each kernel's threads, if bounded, and if it has dynamic memory."""
    dynamic = re.findall(r"^\.extern \.shared .*?(\w+)\[\];", ptx, re.M)
    found = {}
    for part in re.split(r"^(?:\.visible |\.weak )?\.entry ", ptx,
                         flags=re.M)[1:]:
        body = part[:part.index("\n}")]
        bound = re.search(r"^\.(?:max|req)ntid (\d+)", body, re.M)
        found[re.match(r"\w+", part).group()] = (
            int(bound.group(1)) if bound else None,
            any(re.search(r"\b%s\b" % name, body) for name in dynamic))
    return found


def sections(told):
    """Ptxas's figures for each kernel, which it names before them."""
    names = list(ENTRY.finditer(told))
    ends = [name.start() for name in names[1:]] + [len(told)]
    for name, end in zip(names, ends):
        yield name.group(1), told[name.end():end]


def loops_of(sass):
    """Instructions and products of each innermost loop with products, and the
    instructions outside of it."""
    code = [(int(at, 16), text) for at, text in SASS.findall(sass)]
    spans = [(int(back.group(1), 16), at) for at, text in code
             for back in [BACK.search(text)] if back
             and int(back.group(1), 16) < at]
    found = []
    for first, last in spans:
        body = [text for at, text in code if first <= at <= last]
        products = sum("HMMA" in text for text in body)
        inner = any(first <= a and b <= last and (a, b) != (first, last)
                    for a, b in spans)
        if products and not inner:
            found.append((len(body), products, len(code) - len(body)))
    return found


def sass_of(cubin, options):
    parts = run(shlex.split(options.cuobjdump) + ["--dump-sass", cubin]
                ).split("Function : ")[1:]
    return {part.split(None, 1)[0]: part for part in parts}


def kernels_of(source, arch, options, folder):
    """Compiles, and parses the output and the PTX."""
    stem = os.path.splitext(os.path.basename(source))[0]
    cubin = os.path.join(folder, stem + ".cubin")
    told = run(shlex.split(options.nvcc) + [
        "-Werror", "all-warnings", "-Xptxas", "-v,-Werror",
        "-arch=sm_%d" % arch, "-cubin", "--keep", "--keep-dir", folder,
        "-o", cubin, source])
    with open(os.path.join(folder, stem + ".ptx")) as file:
        bounds = entries(file.read())
    dumped, sass = {}, {}
    if bounds and options.cuobjdump:
        sass = sass_of(cubin, options)
        dumped = {name: tuple(map(int, numbers)) for name, *numbers in
                  DUMPED.findall(run(shlex.split(options.cuobjdump) +
                                     ["--dump-resource-usage", cubin]))}
    for name, text in sections(told):
        stack, used = STACK.search(text), USED.search(text)
        if name not in bounds or not stack or not used:
            raise Failed("%s: ptxas says of %s what is not understood"
                         % (source, name))
        local, spills = int(stack.group(1)), sum(map(int, stack.groups()[1:]))
        registers = int(used.group(1))
        if dumped and dumped.get(name) != (registers, local, 0):
            raise Failed("%s: cuobjdump says %s of %s, and ptxas %s"
                         % (source, dumped.get(name), name,
                            (registers, local, 0)))
        yield Kernel(name, arch, registers, int(used.group(2) or 0), local,
                     spills, *bounds[name], loops_of(sass.get(name, "")))


def plain_names(mangled):
    """As in the source, without parameters and spaces."""
    if not mangled or not shutil.which("c++filt"):
        return dict(zip(mangled, mangled))
    names = {}
    for name, full in zip(mangled,
                          run(["c++filt", *mangled]).splitlines()):
        full = full.replace("(anonymous namespace)::", "").replace(" ", "")
        full = re.sub(r"\([a-z_]+\)(?=\d)", "", full)  # casts of parameters
        names[name] = re.sub(r"^void(?=[a-z])", "", full.partition("(")[0])
    return names


def launches_of(name, kernel, launches):
    """How it is launched; an unknown number is None."""
    found = [launch for launch in launches
             if launch.arch in (0, kernel.arch)
             and fnmatch.fnmatchcase(name, launch.pattern)]
    return found or [Launch(name, 0, kernel.threads,
                            None if kernel.dynamic else 0, "")]


def row_of(name, kernel, launch):
    """A row of the table, and its errors."""
    known = launch.threads is not None and launch.dynamic is not None
    blocks, limit, warps = None, "", None
    if known:
        blocks, limit = occupancy(kernel.arch, launch.threads,
                                  kernel.registers,
                                  kernel.static + launch.dynamic)
        warps = "%.0f %%" % (100 * share(launch.threads, blocks))
    wrong = [what for bad, what in (
        (kernel.spills, "spills"), (kernel.local, "local memory"),
        (blocks == 0, "does not fit"),
        (known and kernel.threads and launch.threads > kernel.threads,
         "launched with more threads than its bounds")) if bad]
    row = [" ".join([name, launch.words]).rstrip(), kernel.arch,
           kernel.registers, kernel.static, launch.dynamic, launch.threads,
           kernel.spills, kernel.local, blocks, warps, limit]
    return ["?" if cell is None else str(cell) for cell in row], wrong


def table(rows):
    widths = [max(map(len, column)) for column in zip(*rows)]
    for row in rows:
        cells = [row[0].ljust(widths[0])]
        cells += [cell.rjust(width)
                  for cell, width in zip(row[1:-1], widths[1:-1])]
        yield "  ".join(cells + [row[-1]]).rstrip()


def report(kernels, launches):
    """Prints all rows; returns the errors."""
    names = plain_names(sorted({kernel.name for kernel in kernels}))
    rows = [["kernel", "sm", "reg", "static", "dynamic", "threads", "spill",
             "local", "blocks", "warps", "limit"]]
    wrong, stated = [], set()
    for kernel in sorted(kernels, key=lambda k: (names[k.name], k.arch)):
        name = names[kernel.name]
        found = launches_of(name, kernel, launches)
        stated.update(found)
        for launch in found:
            row, what = row_of(name, kernel, launch)
            rows.append(row)
            wrong += ["%s, sm_%d: %s" % (row[0], kernel.arch, one)
                      for one in what]
    archs = {0} | {kernel.arch for kernel in kernels}
    wrong += ["%s: a launch of no kernel" % launch.pattern
              for launch in launches
              if launch.arch in archs and launch not in stated]
    print("\n".join(table(rows)))
    loops = [[names[kernel.name], *map(str, (kernel.arch, *loop)), ""]
             for kernel in sorted(kernels, key=lambda k: (names[k.name], k.arch))
             for loop in kernel.loops]
    if loops:
        print("\n" + "\n".join(table([["loop of", "sm", "instructions",
                                      "products", "outside", ""], *loops])))
    return wrong


def parse():
    parser = argparse.ArgumentParser(usage=__doc__, add_help=False)
    parser.add_argument("--arch", default="80,90,100")
    parser.add_argument("--launches")
    parser.add_argument("--nvcc", default="nvcc -std=c++17 -O3")
    parser.add_argument("--cuobjdump", default=shutil.which("cuobjdump"))
    parser.add_argument("file", nargs="+")
    return parser.parse_args()


def main():
    options = parse()
    try:
        launches = read_launches(options.launches)
        kernels = []
        for arch in map(int, options.arch.replace(",", " ").split()):
            for source in options.file:
                with tempfile.TemporaryDirectory() as folder:
                    kernels += kernels_of(source, arch, options, folder)
        if not kernels:
            raise Failed("there is no kernel")
        wrong = report(kernels, launches)
    except Failed as failed:
        wrong = [str(failed)]
    for line in wrong:
        print("report.py: " + line, file=sys.stderr)
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
