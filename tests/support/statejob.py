"""statejob.py - jobs of tokmix and tokshuf with a state: functions shared by
tokmix-state.py and tokshuf-state.py.

SPDX-License-Identifier: MIT
"""

import array
import fcntl
import os
import random
import resource
import signal
import struct
import subprocess
import termios
import time

from packformat import Schema, read_framed

SECONDS = 600  # limit for each wait


def write(name, data):
    with open(name, "wb") as file:
        file.write(data)


def read(name):
    with open(name, "rb") as file:
        return file.read()


def read_sequences(name):
    return read_framed(read(name))[1]


def draw(seed, framed, count, width=4, channels=()):
    """An input in which every token is unique."""
    rng = random.Random(seed)
    tokens = [[struct.pack("<I", seed << 24 | k << 8 | i)[:width]
               for i in range(rng.choice([1, 2, 3, 40]))]
              for k in range(count)]
    return Schema(width, framed, channels).stream(
        [[b"".join(one)] + [bytes(len(one)) for _ in channels]
         for one in tokens])


def inputs(framed):
    """Files a, b and c."""
    for name, seed, count in (("a", 1, 24), ("b", 2, 19), ("c", 3, 15)):
        write(name, draw(seed, framed, count))


def run(program, *options, status=0, told=None, **how):
    """Runs it; returns its message."""
    done = subprocess.run([program, "-q", *options], stdin=subprocess.DEVNULL,
                          capture_output=True, timeout=SECONDS, check=False,
                          **how)
    text = done.stderr.decode()
    assert done.returncode == status, (options, done.returncode, text)
    if status == 0:
        assert text == "", (options, text)
    elif status > 0:
        assert text.startswith(program + ": ") and (told or "") in text, text
        assert text.count("\n") == 1 or status == 64, text
    return done


def limit(size):
    return lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))


class Waiting:
    """A job whose input is a pipe that stays open, and from which it has read
    everything written so far."""

    def __init__(self, command, data):
        if not os.path.exists("in"):
            os.mkfifo("in")
        # A shell's background processes ignore SIGINT.
        self.process = subprocess.Popen(
            command, stderr=subprocess.PIPE,
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL))
        self.pipe = os.open("in", os.O_WRONLY)
        os.write(self.pipe, data)
        left = array.array("i", [1])
        end = time.monotonic() + SECONDS
        while left[0] != 0 or self.state() != "S":
            assert time.monotonic() < end and self.process.poll() is None
            fcntl.ioctl(self.pipe, termios.FIONREAD, left)

    def state(self):
        """Whether it sleeps, though perhaps not for want of input."""
        with open("/proc/%d/stat" % self.process.pid, "rb") as stat:
            return stat.read().rsplit(b")", 1)[1].split()[0].decode()

    def end(self, number):
        self.process.send_signal(number)
        status = self.process.wait(SECONDS)
        text = self.process.stderr.read()
        self.process.stderr.close()
        os.close(self.pipe)
        assert (status, text) == (-number, b""), (status, text)
