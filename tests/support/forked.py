"""forked.py - runs each check in a process forked from one that has imported
large modules: torch, for example, takes seconds.

A script of checks, which are functions, ends with

    forked.main(globals())

and can be called in two ways:

    python3 SCRIPT CHECK [ARGUMENT]...   one check, in this process
    python3 SCRIPT each FOLDER           the checks named by lines of stdin

A line is "CHECK [ARGUMENT]...", or "import MODULE" for all that follow.  The
check runs in FOLDER/CHECK, where the file `told` gets its output, and `status`
its exit status.

SPDX-License-Identifier: MIT
"""

import importlib
import multiprocessing
import os
import sys


def main(checks):
    if sys.argv[1] != "each":
        checks[sys.argv[1]](*sys.argv[2:])
        return
    for line in sys.stdin:
        name, *arguments = line.split()
        if name == "import":
            importlib.import_module(*arguments)
            continue
        folder = os.path.join(sys.argv[2], name)
        os.mkdir(folder)
        status = run(checks[name], *arguments, folder=folder)
        with open(os.path.join(folder, "status"), "w") as file:
            print(status, file=file)


def run(call, *arguments, folder=".", told="told"):
    """Runs call(*arguments) in a new process in that folder, with output to the
    file `told`; returns its exit status."""
    child = multiprocessing.get_context("fork").Process(
        target=there, args=(folder, told, call, arguments))
    child.start()
    child.join()
    return child.exitcode


def there(folder, told, call, arguments):
    os.chdir(folder)
    file = os.open(told, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o666)
    os.dup2(file, 1)
    os.dup2(file, 2)
    os.close(file)
    call(*arguments)
