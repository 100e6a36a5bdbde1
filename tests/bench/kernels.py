"""kernels.py - the time of each kernel of a program on a GPU: for device.py.

CUPTI records them: its headers and library come with CUDA, or with PyTorch
from pip.  Kernels that run concurrently still do.

SPDX-License-Identifier: MIT
"""

import collections
import glob
import importlib.util
import os
import re
import subprocess
import sys

from measure import Failed

SOURCE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "kernels.c")
PLACES = ("/usr/local/cuda/extras/CUPTI", "/usr/local/cuda",
          "/usr/local/cuda/targets/*")
SHOWN = 72  # characters of a name


def places():
    """Folders of include and lib: those of pip's packages, then CUDA's."""
    spec = importlib.util.find_spec("nvidia")
    return [os.path.join(folder, "*") for folder in (
        spec.submodule_search_locations if spec else ())] + list(PLACES)


def first(*pattern):
    """The first file of this kind in one of these folders; without CUPTI the
    run is skipped."""
    for place in places():
        for name in sorted(glob.glob(os.path.join(place, *pattern))):
            return name
    print("kernels are not listed: no CUPTI: %s is in none of %s" % (
        os.path.join(*pattern), ", ".join(places())), file=sys.stderr)
    sys.exit(77)


def build(folder):
    """The library for the driver to load."""
    header = first("include", "cupti_activity.h")
    library = first("lib*", "libcupti.so*")
    with open(header) as file:
        newest = max(map(int, re.findall(r"CUpti_ActivityKernel(\d+);",
                                         file.read())))
    made = os.path.join(folder, "kernels.so")
    done = subprocess.run(
        [os.environ.get("CC", "cc"), "-std=c11", "-O2", "-fPIC", "-shared",
         "-DKERNEL=CUpti_ActivityKernel%d" % newest,
         "-I" + os.path.dirname(header),
         "-I" + os.path.dirname(first("include", "cuda.h")),
         "-I" + os.path.dirname(os.path.dirname(
             first("include", "crt", "host_defines.h"))), SOURCE, library,
         "-Wl,-rpath," + os.path.dirname(library), "-o", made],
        stderr=subprocess.PIPE, text=True, check=False)
    if done.returncode != 0:
        raise Failed("kernels.c: " + done.stderr)
    return made


def record(folder, call):
    """Begin, end and name of each kernel of the program that call() runs."""
    name = os.path.join(folder, "kernels")
    put = {"CUDA_INJECTION64_PATH": build(folder), "KERNELS_FILE": name}
    os.environ.update(put)
    try:
        call()
        with open(name) as file:
            lines = [line.rstrip("\n").split("\t") for line in file]
    except FileNotFoundError:  # no CUDA was called
        return []
    finally:
        for variable in put:
            del os.environ[variable]
    names = subprocess.run(["c++filt", "-p"], text=True, check=True,
                           input="".join(line[2] + "\n" for line in lines),
                           stdout=subprocess.PIPE).stdout.splitlines()
    return [(int(begin), int(end), name)
            for (begin, end, _), name in zip(lines, names)]


def busy(kernels):
    """How long at least one kernel ran."""
    total = until = 0
    for begin, end, _ in sorted(kernels):
        total += max(0, end - max(begin, until))
        until = max(until, end)
    return total


def summary(kernels, steps):
    """Rows of a table: milliseconds of a step, the longest first."""
    if not kernels:
        raise Failed("CUPTI recorded no kernel")
    times, counts = collections.Counter(), collections.Counter()
    for begin, end, name in kernels:
        times[name] += end - begin
        counts[name] += 1
    whole = sum(times.values())
    rows = [["", "a step", "ms", "share"]]
    rows += [[name[:SHOWN], "%.1f" % (counts[name] / steps),
              "%.3f" % (time / steps / 1e6), "%.1f %%" % (100 * time / whole)]
             for name, time in times.most_common()]
    return rows + [
        ["all of them", "%.1f" % (len(kernels) / steps),
         "%.3f" % (whole / steps / 1e6), ""],
        ["any of them, as some run side by side", "",
         "%.3f" % (busy(kernels) / steps / 1e6), ""]]
