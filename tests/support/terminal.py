"""terminal.py - a program that fails while its progress line is shown.

    terminal.py FIRST LAST PROG [OPTION]...

gives PROG the file FIRST repeatedly until a terminal shows a line of progress,
and then LAST.  The program must fail with one message, and erase the line
first.  Prints nothing, or fails with a traceback.

SPDX-License-Identifier: MIT
"""

import os
import pty
import re
import select
import subprocess
import sys
import time

SECONDS = 600  # limit for each wait


def come(master, seconds):
    """The terminal's output within that time."""
    if not select.select([master], [], [], seconds)[0]:
        return b""
    try:
        return os.read(master, 1 << 16)
    except OSError:  # the other end is closed
        return b""


def watch(first, last, command):
    """The exit status, and the terminal's whole output."""
    master, slave = pty.openpty()
    p = subprocess.Popen(command, stdin=subprocess.PIPE, stderr=slave,
                         stdout=subprocess.DEVNULL, bufsize=0)
    os.close(slave)
    shown = b""
    end = time.monotonic() + SECONDS
    while b"sequences" not in shown:
        assert time.monotonic() < end, shown
        p.stdin.write(first)
        shown += come(master, 0.05)
    p.stdin.write(last)
    p.stdin.close()
    status = p.wait(SECONDS)
    while part := come(master, 0):
        shown += part
    return status, shown


def main(first, last, *command):
    first, last = (open(name, "rb").read() for name in (first, last))
    status, shown = watch(first, last, command)
    message = rb"\r {79}\r" + command[0].encode() + rb": stdin: [^\r]*\r\n$"
    assert status == 65, status
    assert re.search(message, shown), shown
    assert shown.count(b"\n") == 1, shown


if __name__ == "__main__":
    main(*sys.argv[1:])
