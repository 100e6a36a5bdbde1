"""memory.py - the peak memory of a filter.

    memory.py [--whole] COMMAND [ARGUMENT]... <INPUT

runs the command, feeds it the input, and prints its peak resident memory in
KiB, read from /proc when the command has read all input and waits for more.
(The figure that a parent gets after its child has ended is useless: it is at
least the parent's own memory.)  Exits with 77 if /proc does not have it.

With --whole it is the peak up to the end.  Figures below this program's own
ten megabytes or so are then not visible.

SPDX-License-Identifier: MIT
"""

import array
import fcntl
import os
import re
import subprocess
import sys
import termios
import time


def proc(pid, name):
    try:
        with open("/proc/%s/%s" % (pid, name)) as file:
            return file.read()
    except OSError:
        return ""


def peak(pid):
    found = re.search(r"VmHWM:\s*(\d+) kB", proc(pid, "status"))
    return int(found[1]) if found else None


def is_waiting(child):
    """Nothing is left in the pipe, and the child sleeps."""
    left = array.array("i", [0])
    fcntl.ioctl(child.stdin.fileno(), termios.FIONREAD, left)
    state = proc(child.pid, "stat").rpartition(") ")[2][:1]
    return left[0] == 0 and state == "S"


def wait_until_idle(child):
    """True when it was seen to wait several times in a row."""
    in_a_row = 0
    for _ in range(60000):
        in_a_row = in_a_row + 1 if is_waiting(child) else 0
        if in_a_row == 5:
            return
        assert child.poll() is None
        time.sleep(0.01)
    raise AssertionError("it does not come to rest")


def whole(command):
    """The same peak, reported by the system for a child that has ended."""
    child = os.fork()
    if child == 0:
        null = os.open(os.devnull, os.O_WRONLY)
        os.dup2(null, 1)
        os.execvp(command[0], command)
    _, status, usage = os.wait4(child, 0)
    print(usage.ru_maxrss)
    sys.exit(os.waitstatus_to_exitcode(status))


def main():
    if not peak("self"):
        sys.exit(77)
    if sys.argv[1] == "--whole":
        whole(sys.argv[2:])
    child = subprocess.Popen(sys.argv[1:], stdin=subprocess.PIPE,
                             stdout=subprocess.DEVNULL)
    while True:
        data = sys.stdin.buffer.read(1 << 16)
        if not data:
            break
        child.stdin.write(data)
    child.stdin.flush()
    wait_until_idle(child)
    print(peak(child.pid))
    child.stdin.close()
    sys.exit(child.wait())


main()
