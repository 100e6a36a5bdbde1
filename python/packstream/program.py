"""program.py - the command line of `python -m packstream.NAME`: messages,
signals and exit status, as in the C programs.

SPDX-License-Identifier: MIT
"""

from __future__ import annotations

import argparse
import os
import signal
import sys
from typing import Any, Callable, Iterable, List, NoReturn, Optional

from packstream.errors import printable
from packstream.writer import is_replaced, new_name

FAILURE, USAGE, DATA = 1, 64, 65
SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
# pip's names of modules that only some commands need
PACKAGES = {"pyarrow": "pyarrow", "streaming": "mosaicml-streaming",
            "litdata": "litdata", "webdataset": "webdataset",
            "matplotlib": "matplotlib", "tokenizers": "tokenizers",
            "transformers": "transformers"}


class UsageError(Exception):
    """Raised for an invalid command line."""


class Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise UsageError(message)


def on_signals(action: Any, signals: Iterable[int] = SIGNALS) -> None:
    """Sets the handler of signals that end the program, unless ignored."""
    for number in signals:
        if signal.getsignal(number) != signal.SIG_IGN:
            signal.signal(number, action)


def die_by(number: int) -> None:
    """Ends the process by this signal, as if there were no handler."""
    signal.signal(number, signal.SIG_DFL)
    os.kill(os.getpid(), number)


def is_written(file: str, output: str) -> bool:
    """True if writing the output would overwrite or remove the file."""
    names = [output, *([new_name(output)] if is_replaced(output) else [])]
    return any(os.path.exists(name) and os.path.samefile(file, name)
               for name in names)


def check_not_input(files: Iterable[str], output: Optional[str]) -> None:
    """Raises OSError if writing the output would overwrite or remove one of
    the files."""
    for file in files:
        if output is not None and is_written(file, output):
            raise OSError("%s is both input and output" % file)


def run(program: str, parse: Callable[..., argparse.Namespace],
        work: Callable[[argparse.Namespace], None],
        arguments: Optional[List[str]],
        binary: Optional[str] = None) -> int:
    """Parses the command line and does the work. Returns the exit status.
    `binary` describes output that must not be written to a terminal."""
    if sys.stderr is None:          # stderr is closed
        sys.stderr = open(os.devnull, "w")
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    on_signals(signal.SIG_DFL)
    status, why = FAILURE, ""
    try:
        asked = parse(arguments)
        if asked.output is None and sys.stdout is None:
            raise OSError("standard output is closed")
        if binary and asked.output is None and sys.stdout.isatty():
            raise OSError("cannot write %s to a terminal" % binary)
        work(asked)
    except UsageError as problem:
        why, status = str(problem), USAGE
    except ImportError as problem:
        why = str(problem)
        if problem.name in PACKAGES:
            why += "; pip install " + PACKAGES[problem.name]
    except (OSError, MemoryError) as problem:
        why = str(problem) or "no memory"
    except ValueError as problem:
        why, status = str(problem), DATA
    else:
        return 0
    sys.stderr.write("%s: %s\n" % (program, printable(why, 4096)))
    if status == USAGE:
        sys.stderr.write("%s: try '%s --help'\n" % (program, program))
    return status
