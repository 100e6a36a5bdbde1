"""packlive.py - packstream between programs that wait, vanish or watch.

    packlive.py CHECK [ARGUMENT]...

calls a function below; it prints nothing and exits with 0, or fails with a
traceback.

SPDX-License-Identifier: MIT
"""

import array
import fcntl
import os
import pty
import random
import re
import select
import signal
import struct
import subprocess
import sys
import termios
import threading
import time

from packdraw import draw_sequence, sample
from packformat import Packs, Schema, end

SECONDS = 600  # limit for each wait


def pack(*options, data):
    """The output of a run that is not interrupted."""
    return subprocess.run(["packstream", *options], input=data, check=True,
                          stdout=subprocess.PIPE, timeout=SECONDS).stdout


def read_until(pipe, size):
    """Waits for `size` bytes, and checks that no more arrive."""
    data = b""
    while len(data) < size:
        assert select.select([pipe], [], [], SECONDS)[0], len(data)
        data += os.read(pipe.fileno(), 1 << 16)
    assert not select.select([pipe], [], [], 0.2)[0]
    assert len(data) == size, len(data)
    return data


def decided(packs, window, n):
    """The number of packs finished after `n` sequences: with best fit, one
    whenever the window is full."""
    held = done = 0
    for _ in range(n):
        held += 1
        while held == window:
            held -= len(packs.packs[done])
            done += 1
    return done


def delay(window, block):
    """The producer pauses, once inside a record: complete blocks of finished
    packs arrive."""
    schema = Schema()
    rng = random.Random(5)
    sequences = [draw_sequence(rng, schema, 1 + i % 7) for i in range(40)]
    records = list(map(schema.record, sequences))
    options = ["-L", "8", "-w", window, "-a", "bestfit",
               "--block-packs=" + block]
    whole = pack(*options, data=b"".join(records))
    packs = Packs(whole, schema)
    p = subprocess.Popen(["packstream", *options], stdin=subprocess.PIPE,
                         stdout=subprocess.PIPE, bufsize=0)
    at = sent = 0
    for n, part in (11, 0), (25, 3), (39, 6):
        data = b"".join(records[:n]) + records[n][:part]
        p.stdin.write(data[sent:])
        sent = len(data)
        full = decided(packs, int(window), n) // int(block)
        size = packs.blocks[full].at
        assert read_until(p.stdout, size - at) == whole[at:size]
        at = size
    p.stdin.write(b"".join(records)[sent:])
    p.stdin.close()
    assert whole[at:] == p.stdout.read()
    assert p.wait(SECONDS) == 0


BLOCK = 192  # a head, a row of 8 tokens, its head, and up to 4 sequences


class Live:
    """A packstream whose input is written bit by bit; each pack is a block, at
    a capacity of 8."""

    def __init__(self, *options):
        self.data, self.got = b"", b""
        self.options = ["packstream", "-L", "8", *options]
        self.process = subprocess.Popen(
            self.options, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            bufsize=0)

    def write(self, data):
        self.data += data
        self.process.stdin.write(data)

    def expect(self, packs):
        """Waits until so many packs have arrived in all, and for no more."""
        size = 4096 + BLOCK * packs - len(self.got)
        self.got += read_until(self.process.stdout, size)

    def close(self, packs, tokens):
        """Ends the input, and recovers it from `packs` packs."""
        self.process.stdin.close()
        self.got += self.process.stdout.read()
        assert self.process.wait(SECONDS) == 0
        end = (192 + 24 * packs + 24 + 63) // 64 * 64
        assert len(self.got) == 4096 + BLOCK * packs + end
        found = subprocess.run(["packcat", "--to=ids"], input=self.got,
                               check=True, stdout=subprocess.PIPE)
        assert found.stdout.decode().split() == list(map(str, tokens))


def record(*tokens):
    return struct.pack("<I%dH" % len(tokens), len(tokens), *tokens)


def idle():
    """A pause of the producer flushes the window, also inside a record; the
    next pause does so again."""
    live = Live("--flush-idle=50")
    live.write(record(1, 2) + record(3))
    live.expect(1)
    live.write(record(4) + record(5)[:5])
    live.expect(2)
    live.write(record(5)[5:])
    live.expect(3)
    live.close(3, [1, 2, 3, 4, 5])


def signalled():
    """SIGUSR1 does the same at once, and the process continues."""
    live = Live()
    live.write(record(1, 2) + record(3)[:3])
    live.expect(0)
    live.process.send_signal(signal.SIGUSR1)
    live.expect(1)
    live.process.send_signal(signal.SIGUSR1)
    live.expect(1)
    live.write(record(3)[3:] + record(4))
    live.expect(1)
    live.process.send_signal(signal.SIGUSR1)
    live.expect(2)
    live.close(2, [1, 2, 3, 4])


def wait_for_handler(pid):
    """Until then SIGUSR1 would kill it, as it does any other program."""
    usr1 = 1 << (signal.SIGUSR1 - 1)
    caught = 0
    while not caught & usr1:
        time.sleep(0.001)
        try:
            with open("/proc/%d/status" % pid) as lines:
                caught = [int(line.split()[1], 16) for line in lines
                          if line.startswith("SigCgt:")][0]
        except FileNotFoundError:
            return time.sleep(0.5)


def signalled_often():
    """Signals while it reads and writes, however many, lose nothing."""
    data = sample(8)
    p = subprocess.Popen(["packstream", "-L", "64"], stdin=subprocess.PIPE,
                         stdout=subprocess.PIPE)
    back = subprocess.Popen(["packcat"], stdin=p.stdout,
                            stdout=subprocess.PIPE)
    p.stdout.close()
    writer = threading.Thread(target=feed, args=(p, data), daemon=True)
    reader = Reader(back.stdout)
    writer.start()
    reader.start()
    wait_for_handler(p.pid)
    while writer.is_alive():
        p.send_signal(signal.SIGUSR1)
        time.sleep(0.0005)
    reader.join()
    assert p.wait(SECONDS) == 0 and back.wait(SECONDS) == 0
    assert reader.data == data


class Reader(threading.Thread):
    def __init__(self, pipe):
        super().__init__(daemon=True)
        self.pipe, self.data = pipe, None

    def run(self):
        self.data = self.pipe.read()


def feed(process, data):
    for at in range(0, len(data), 1999):
        process.stdin.write(data[at:at + 1999])
        process.stdin.flush()
    process.stdin.close()


def asked():
    """Flush records, raw and framed, flush the window."""
    zero = struct.pack("<I", 0)
    live = Live("--flush-records")
    live.write(zero + record(1, 2) + zero[:3])
    live.expect(0)
    live.write(zero[3:])
    live.expect(1)
    live.write(record(3) + zero + zero)
    live.expect(2)
    live.close(2, [1, 2, 3])
    live = Live()
    schema = Schema(framed=True)
    first = [record(1, 2), struct.pack("<II", 0, 2)]
    live.write(schema.header() + b"".join(first))
    live.expect(1)
    live.write(record(3) + end(2, 3, first + [record(3)]))
    live.close(2, [1, 2, 3])


def unblocked():
    """Both ends non-blocking, the input in bits, the output read late."""
    data = sample(4) + sample(5)
    wanted = pack("-L", "64", data=data)
    assert len(wanted) > 1 << 20
    inward, outward = os.pipe(), os.pipe()
    for end_of_pipe in inward + outward:
        os.set_blocking(end_of_pipe, False)
    p = subprocess.Popen(["packstream", "-L", "64"], stdin=inward[0],
                         stdout=outward[1])
    os.close(inward[0])
    os.close(outward[1])
    got = shovel(inward[1], outward[0], data)
    assert p.wait(SECONDS) == 0
    assert got == wanted


def shovel(to, back, data):
    """Writes `data` in bits, and reads only when nothing can be written."""
    got, at = b"", 0
    while at < len(data):
        if select.select([], [to], [], 0.1)[1]:
            at += os.write(to, data[at:at + 50000])
            time.sleep(0.001)
        elif select.select([back], [], [], SECONDS)[0]:
            got += os.read(back, 1 << 16)
    os.close(to)
    while select.select([back], [], [], SECONDS)[0]:
        part = os.read(back, 1 << 16)
        got += part
        if not part:
            return got


def vanished_reader():
    """Ends by SIGPIPE, silently, even if a parent ignored it."""
    data = sample(6)
    for ignored in False, True:
        p = subprocess.Popen(
            ["packstream", "-L", "64", "-w", "1"], stdin=subprocess.PIPE,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, bufsize=0,
            restore_signals=not ignored)
        p.stdin.write(data[:1000])
        p.stdout.read(1)
        p.stdout.close()
        try:
            p.stdin.write(data[1000:])
            p.stdin.close()
        except BrokenPipeError:
            pass
        assert p.stderr.read() == b""
        assert p.wait(SECONDS) == -signal.SIGPIPE


def usage(pid):
    """Resident memory in KiB, and seconds of processor time."""
    with open("/proc/%d/statm" % pid) as file:
        pages = int(file.read().split()[1])
    with open("/proc/%d/stat" % pid) as file:
        ticks = sum(map(int, file.read().rpartition(")")[2].split()[11:13]))
    return pages * os.sysconf("SC_PAGESIZE") // 1024, \
        ticks / os.sysconf("SC_CLK_TCK")


def wait_for_full_pipe(process):
    """Waits until it sleeps, with at most a page free in its output pipe."""
    pipe = process.stdout.fileno()
    most = fcntl.fcntl(pipe, fcntl.F_GETPIPE_SZ)
    unread = array.array("i", [0])
    state = ""
    while unread[0] < most - 4096 or state != "S":
        time.sleep(0.001)
        fcntl.ioctl(pipe, termios.FIONREAD, unread)
        with open("/proc/%d/stat" % process.pid) as file:
            state = file.read().rpartition(")")[2].split()[0]


def stalled_reader(seconds):
    """A reader that stops costs neither memory nor time, and gets all."""
    data = sample(8) * 40
    wanted = pack("-L", "64", data=data)
    p = subprocess.Popen(["packstream", "-L", "64"], stdin=subprocess.PIPE,
                         stdout=subprocess.PIPE, bufsize=0)
    writer = threading.Thread(target=lambda: (p.stdin.write(data),
                                              p.stdin.close()), daemon=True)
    writer.start()
    wait_for_full_pipe(p)
    memory, spent = usage(p.pid)
    time.sleep(float(seconds))
    later, more = usage(p.pid)
    assert later <= memory + 64, (memory, later)
    assert more - spent <= 0.05 + 0.01 * float(seconds), (spent, more)
    assert p.stdout.read() == wanted
    writer.join()
    assert p.wait(SECONDS) == 0


def slow_writer(seconds, pause):
    """A byte, a pause, a byte: complete sequences are written soon."""
    live = Live("--flush-idle=20")
    end_time = time.time() + float(seconds)
    count = 0
    while count == 0 or time.time() < end_time:
        for byte in record(count % 60000):
            live.write(bytes([byte]))
            time.sleep(float(pause))
        # Complete packs have been written within the pause after them.
        live.got += os.read(live.process.stdout.fileno(), 1 << 16)
        count += 1
        assert len(live.got) == 4096 + BLOCK * count, (count, len(live.got))
    live.close(count, [i % 60000 for i in range(count)])


def terminal():
    """Packs are refused on a terminal; none is written there."""
    master, slave = pty.openpty()
    for option in [], ["-o", "-"], ["-o", os.ttyname(slave)]:
        done = subprocess.run(["packstream", "-L", "4"] + option,
                              stdin=subprocess.DEVNULL, stdout=slave,
                              stderr=subprocess.PIPE, timeout=SECONDS)
        name = "stdout" if option[1:] in ([], ["-"]) else option[1]
        assert done.returncode == 1
        assert done.stderr.decode() == (
            "packstream: %s: refusing to write binary output to a terminal: "
            "redirect it or use -o FILE\n" % name)
    assert not select.select([master], [], [], 0.1)[0]


def progress():
    """A line of progress on a terminal, erased at the end; none with -q."""
    data = sample(7)
    assert len(data) > 1 << 17  # more than a pipe holds: it has begun
    for quiet in [], ["-q"]:
        master, slave = pty.openpty()
        p = subprocess.Popen(["packstream", "-L", "64"] + quiet,
                             stdin=subprocess.PIPE, stderr=slave,
                             stdout=subprocess.DEVNULL)
        os.close(slave)
        p.stdin.write(data)
        p.stdin.flush()
        time.sleep(0.3)
        p.stdin.write(data)
        p.stdin.close()
        assert p.wait(SECONDS) == 0
        shown = drain(master)
        assert (b"sequences" in shown) == (not quiet), shown
        assert quiet or shown.endswith(b" \r"), shown
        assert quiet == [] or shown == b"", shown


def progress_of_files():
    """How much of the inputs has been read, if all are regular files."""
    data = sample(7)
    for i in "ab":
        with open(i, "wb") as f:
            f.write(data * (1 + (1 << 20) // len(data)))
    for names in (["a", "b"], ["a", "-"]):
        master, slave = pty.openpty()
        p = subprocess.Popen(
            ["packstream", "-L", "64", "-T1"] + names, stderr=slave,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        os.close(slave)
        wait_for_full_pipe(p)
        time.sleep(0.3)  # before its output fits the pipe
        p.stdin.close()
        p.stdout.read()
        assert p.wait(SECONDS) == 0
        shown = drain(master)
        shares = [int(n) for n in re.findall(rb"(\d+)%(?! full)", shown)]
        if names[1] == "b":
            assert shares and shares == sorted(shares), shown
            assert shares[0] > 0 and shares[-1] <= 100, shown
        else:
            assert shares == [], shown


def drain(master):
    data = b""
    try:
        while True:
            part = os.read(master, 1 << 16)
            if not part:
                return data
            data += part
    except OSError:  # the other end is closed
        return data


if __name__ == "__main__":
    globals()[sys.argv[1]](*sys.argv[2:])
