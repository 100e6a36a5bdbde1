"""bars.py - runs a program that draws bars on a terminal.

    bars.py COLUMNS CODESET PROGRAM [ARGUMENT]...

Fails unless the longest bars end at the last column, and are drawn with the
characters of the codeset, ASCII or UTF-8.

SPDX-License-Identifier: MIT
"""

import fcntl
import os
import pty
import re
import struct
import subprocess
import sys
import termios


def main(columns, codeset, *command):
    master, slave = pty.openpty()
    fcntl.ioctl(slave, termios.TIOCSWINSZ,
                struct.pack("4H", 24, int(columns), 0, 0))
    locale = "C.UTF-8" if codeset == "UTF-8" else "C"
    p = subprocess.Popen(command, stdout=slave,
                         env=dict(os.environ, LC_ALL=locale))
    os.close(slave)
    shown = b""
    try:
        while part := os.read(master, 1 << 16):
            shown += part
    except OSError:  # the other end is closed
        pass
    assert p.wait() == 0
    shown = shown.decode().replace("\r", "").splitlines()
    bars = [line.partition("|")[2] for line in shown if "|" in line]
    counts = [int(line.split()[1].replace(",", ""))
              for line in shown if "|" in line]
    full, part = ("\u2588", "\u258f\u258e\u258d\u258c\u258b\u258a\u2589") \
        if codeset == "UTF-8" else ("#", "")
    assert bars and all(re.fullmatch("%s*[%s]?" % (full, part or full), bar)
                        for bar in bars), bars
    assert max(len(line) for line in shown if "|" in line) == int(columns), \
        shown
    # The last histogram has its own scale: its longest bar is its maximum.
    longest = max(map(len, bars))
    for top in [counts[bars.index(bar)] for bar in bars
                if len(bar) == longest][:1]:
        for count, bar in zip(counts, bars):
            if count == top:
                assert len(bar) == longest


if __name__ == "__main__":
    main(*sys.argv[1:])
