"""tokmix-stages.py - checks tokmix --stage against a model, for
tokmix-stages.bats.

    tokmix-stages.py mixes SEED COUNT
    tokmix-stages.py stopped MODULE SEED COUNT
    tokmix-stages.py damaged

`mixes` runs random mixes.  `stopped` runs jobs with a state that are killed or
get SIGTERM at entries of the log of their file operations (write-log.c is
MODULE), and whose stages change at some of the resumes.  Both compare the
output with a model of tokmix(1) that computes with fractions, and check the
shares at every sequence of every stage.  `damaged` resumes from changed states.

SPDX-License-Identifier: MIT
"""

import os
import random
import re
import struct
import subprocess
import sys
from fractions import Fraction

from packformat import hash_of, read_framed
from statejob import SECONDS, draw, limit, read, run, write
from tokmix import SCHEMA, draw_lengths, draw_weight

# One in EVERY bytes of a state is changed; all of them with LONG.
EVERY = 1 if os.environ.get("LONG") else 7

NOW, ENDLESS = "now", None
PLAIN = (1 << 64) - 1


class Stage:
    def __init__(self, length, weights):
        self.length = length  # in the unit of --by, NOW or ENDLESS
        self.weights = weights  # {source: text}

    def words(self):
        return ["%s=s%d" % (w, i) for i, w in self.weights.items()]

    def options(self):
        if self.length is ENDLESS:
            return self.words()
        return ["--stage=%s:%s" % (self.length, " ".join(self.words()))]

    def ended_at(self, length):
        return Stage(length, self.weights)

    def shares(self, count):
        """Of all sources, as integers in lowest terms."""
        all_of = [Fraction(self.weights.get(i, "0")) for i in range(count)]
        unit = min(w for w in all_of if w > 0)
        whole = [w / unit for w in all_of]
        scale = 1
        for w in whole:
            scale = scale * w.denominator // gcd(scale, w.denominator)
        return [int(w * scale) for w in whole]


def gcd(a, b):
    return a if b == 0 else gcd(b, a % b)


class Sources:
    """The sources of a trial, and the model's positions in them."""

    def __init__(self, rng, stop, by):
        n = rng.choice([1, 2, 3, 3, 5])
        longest = rng.choice([1, 6, 40])
        self.stop = stop
        self.by = by
        self.lengths = [draw_lengths(rng, longest, stop == "repeat")
                        for _ in range(n)]

    def write(self):
        for i, lengths in enumerate(self.lengths):
            write("s%d" % i, SCHEMA.stream(
                [[struct.pack("<I", i << 20 | k) * length]
                 for k, length in enumerate(lengths)]))

    def size(self, i, k):
        if self.by == "sequences":
            return 1
        return self.lengths[i][k % len(self.lengths[i])]


class Model:
    """Runs the stages; `taken` has the sources and records of each."""

    def __init__(self, sources, stages):
        self.sources = sources
        self.next = [0] * len(sources.lengths)
        self.ended = set()
        self.taken = []
        for stage in stages:
            self.taken.append([])
            if not self.run(stage):
                break
        self.taken += [[] for _ in stages[len(self.taken):]]

    def run(self, stage):
        """False if the mix ends here."""
        self.weights = {i: Fraction(w) for i, w in stage.weights.items()}
        self.begin()
        self.restarted = {}
        amount = 0
        while stage.length is ENDLESS or amount < stage.length:
            event = self.look(stage)
            if event == "over":
                return False
            if event == "no sources":
                return stage.length is not ENDLESS
            if event is None:
                amount += self.take()
        return True

    def begin(self):
        self.amounts = dict.fromkeys(self.weights, 0)
        self.longest = 0

    def due(self):
        total, weight = sum(self.amounts.values()), sum(self.weights.values())
        return [i for i in sorted(self.weights)
                if self.amounts[i] * weight <= self.weights[i] * total]

    def at_end(self, i):
        if self.sources.stop != "repeat":
            return self.next[i] == len(self.sources.lengths[i])
        return (self.next[i] > 0 and
                self.next[i] % len(self.sources.lengths[i]) == 0 and
                self.restarted.get(i) != self.next[i])

    def look(self, stage):
        for i in self.due():
            if not self.at_end(i):
                continue
            self.ended.add(i)
            if self.sources.stop == "first":
                return "over"
            if self.sources.stop == "longest":
                del self.weights[i]
                self.begin()
                return "changed" if self.weights else "no sources"
            if stage.length is ENDLESS and self.ended >= set(self.weights):
                return "over"
            self.restarted[i] = self.next[i]
            return "changed"
        return None

    def take(self):
        def finish(i):
            return (self.amounts[i] + self.sources.size(i, self.next[i])
                    ) / self.weights[i], i
        _, i = min(map(finish, self.due()))
        size = self.sources.size(i, self.next[i])
        self.taken[-1].append((i, self.next[i] % len(self.sources.lengths[i])))
        self.next[i] += 1
        self.amounts[i] += size
        self.longest = max(self.longest, size)
        self.check_shares()
        return size

    def check_shares(self):
        """All are exact to within the longest sequence taken or next."""
        total, weight = sum(self.amounts.values()), sum(self.weights.values())
        longest = max([self.longest] + [
            self.sources.size(i, self.next[i]) for i in self.weights
            if self.sources.stop == "repeat" or
            self.next[i] < len(self.sources.lengths[i])])
        for i, w in self.weights.items():
            assert abs(self.amounts[i] - w * total / weight) < longest

    def amount(self, k):
        return sum(self.sources.size(i, r) for i, r in self.taken[k])

    def records(self):
        return [one for stage in self.taken for one in stage]


def draw_stage(rng, sources, length):
    n = len(sources.lengths)
    names = rng.sample(range(n), rng.randint(1, n))
    return Stage(length, {i: draw_weight(rng) for i in names})


def draw_stages(rng, sources, count):
    stages = [draw_stage(rng, sources,
                         rng.choice([1, 5, 20, rng.randint(1, 400)]))
              for _ in range(count)]
    if rng.random() < 0.4:
        stages[-1].length = ENDLESS
    return stages


def records_of(data):
    mixed = []
    for (tokens,) in read_framed(data)[1]:
        first, = struct.unpack_from("<I", tokens)
        mixed.append((first >> 20, first & 0xfffff))
    return mixed


def numbered(stages):
    """The source with each number, in the order of the command line."""
    order = []
    for stage in stages:
        order += [i for i in stage.weights if i not in order]
    return order


def renumber(sources, stages):
    """The same with sources in the order of the command line, which decides
    ties.  Sources that no stage has are dropped."""
    order = numbered(stages)
    sources.lengths = [sources.lengths[i] for i in order]
    return [Stage(s.length, {order.index(i): w for i, w in s.weights.items()})
            for s in stages]


def options_of(sources, stages):
    return ["--by=" + sources.by, "--stop=" + sources.stop] + [
        word for stage in stages for word in stage.options()]


def check_report(text, model, stages):
    """The numbers that -v prints."""
    lines = iter([line for line in text.splitlines() if ": stage " in line])
    before = [0, 0]
    if stages == [one for one in stages if one.length is ENDLESS]:
        return
    lengths = model.sources.lengths
    for k, stage in enumerate(stages):
        got = [int(n) for n in re.findall(r"\d+", next(lines))]
        sizes = [lengths[i][r] for i, r in model.taken[k]]
        wanted = [k + 1, len(sizes), sum(sizes)] + before
        assert got == wanted, (got, wanted)
        before = [before[0] + len(sizes), before[1] + sum(sizes)]
        for i in sorted(stage.weights):
            own = [lengths[i][r] for j, r in model.taken[k] if i == j]
            assert "stage %d: s%d: %d sequences, %d tokens, share " % (
                k + 1, i, len(own), sum(own)) in next(lines)
    assert next(lines, None) is None


def draw_mix(rng, most):
    """Sources, whose files are written, and up to `most` stages."""
    sources = Sources(rng, rng.choice(["first", "longest", "repeat"]),
                      rng.choice(["tokens", "sequences"]))
    stages = draw_stages(rng, sources, rng.randint(1, most))
    stages = renumber(sources, stages)
    sources.write()
    return sources, stages


def mixes(seed, count):
    for number in range(int(seed), int(seed) + int(count)):
        rng = random.Random(number)
        sources, stages = draw_mix(rng, 5)
        done = subprocess.run(["tokmix", "-v", *options_of(sources, stages)],
                              check=True, capture_output=True)
        model = Model(sources, stages)
        assert records_of(done.stdout) == model.records(), number
        check_report(done.stderr.decode(), model, stages)


class State:
    """A state with stages, read as state.c describes it."""

    def __init__(self, data):
        head = struct.unpack_from("<13Q", data, 8)
        n = head[1]
        at = 8 * (1 + 13 + 11 * n)
        self.ended = head[7] == 1
        if head[0] == 2:
            parts = [struct.unpack_from("<11Q", data, 8 * (14 + 11 * i))
                     for i in range(n)]
            self.stages = [(PLAIN, [(p[0], p[2], p[3]) for p in parts])]
            self.current = 0
            return
        assert head[0] == 3
        count, self.current = struct.unpack_from("<2Q", data, at)
        at += 16
        self.stages = []
        for _ in range(count):
            numbers = struct.unpack_from("<%dQ" % (1 + 3 * n), data, at)
            at += 8 * len(numbers)
            self.stages.append((numbers[0], [
                numbers[1 + 3 * i:4 + 3 * i] for i in range(n)]))
        assert at + head[12] + 8 == len(data)

    def amount(self, by):
        column = 1 if by == "sequences" else 2
        return sum(one[column] for one in self.stages[self.current][1])

    def has(self, stages):
        """True if it was saved with these stages."""
        count = len(numbered(stages))
        return len(self.stages) == len(stages) and all(
            then[0] == (PLAIN if s.length is ENDLESS else s.length) and
            [one[0] for one in then[1]] == s.shares(count)
            for then, s in zip(self.stages, stages))


class Job:
    """A job that is stopped and changed until it has ended."""

    def __init__(self, rng, sources, module):
        self.rng = rng
        self.sources = sources
        self.module = module
        self.changes = 0

    def run(self, stages, number):
        """Its exit status."""
        env = dict(os.environ, LD_PRELOAD=self.module, WRITE_LOG="write.log",
                   WRITE_SIGNAL=str(number),
                   WRITE_SIGNAL_AT=str(self.rng.randrange(60)))
        done = subprocess.run(
            ["tokmix", "-q", "--state=s", "--resume", "-o", "out",
             "--state-every=%d" % self.rng.choice([1, 2, 5]),
             *options_of(self.sources, stages)],
            env=env, capture_output=True, timeout=SECONDS, check=False)
        assert done.returncode in (0, -number), done
        return done.returncode

    def change(self, stages, truth):
        """The stages to resume with, what they amount to, and whether the
        present stages no longer fit once this is saved; or None."""
        state = State(read("s"))
        k = state.current
        if state.ended or k == len(truth):
            return None
        amount = state.amount(self.sources.by)
        cuts = self.rng.random() < 0.7
        given, then = stages[:k + 1], truth[:k + 1]
        if cuts and k == 0 and amount == 0:
            self.refuse([stages[0].ended_at(NOW)] + stages[1:])
            return None
        if cuts:
            then[k] = truth[k].ended_at(amount)
            given[k] = stages[k].ended_at(
                self.rng.choice([NOW, amount]) if amount > 0 else NOW)
        elif then[k].length is ENDLESS:
            return None
        new = draw_stages(self.rng, self.sources, self.rng.randint(1, 3))
        order = numbered(then + new)
        if order != list(range(len(order))):
            return None
        self.changes += 1
        return given + new, then + new, cuts and amount > 0

    def refuse(self, stages):
        before = read("s"), read("out")
        done = subprocess.run(
            ["tokmix", "-q", "--state=s", "--resume", "-o", "out",
             *options_of(self.sources, stages)], capture_output=True,
            timeout=SECONDS, check=False)
        assert done.returncode == 64, done
        assert done.stderr.startswith(b"tokmix: "), done
        assert (read("s"), read("out")) == before

    def finish(self, stages):
        """Runs it to the end; returns the stages as they were."""
        truth = stages
        old = None
        while self.run(stages, self.rng.choice([9, 9, 15])) != 0:
            if not os.path.exists("s"):
                continue
            if old is not None and State(read("s")).has(truth):
                self.refuse(old)
                old = None
            if old is None and self.changes < 4 and self.rng.random() < 0.3:
                changed = self.change(stages, truth)
                if changed is not None:
                    old = stages if changed[2] else None
                    stages, truth = changed[:2]
        return stages, truth


def stopped(module, seed, count):
    changes = 0
    for number in range(int(seed), int(seed) + int(count)):
        rng = random.Random(number)
        sources, stages = draw_mix(rng, 4)
        for name in "s", "s.new", "out":
            if os.path.exists(name):
                os.remove(name)
        job = Job(rng, sources, module)
        stages, truth = job.finish(stages)
        changes += job.changes
        model = Model(sources, truth)
        assert records_of(read("out")) == model.records(), number
        # Nothing is left to do, and the lengths reproduce the mix.
        before = read("s"), read("out")
        done = subprocess.run(
            ["tokmix", "-v", "--state=s", "--resume", "-o", "out",
             *options_of(sources, stages)], check=True, capture_output=True)
        assert (read("s"), read("out")) == before
        check_report(done.stderr.decode(), model, truth)
        again = [one for one in truth if one.length != 0]
        if numbered(again) == numbered(truth):
            assert subprocess.run(
                ["tokmix", "-q", *options_of(sources, again)], check=True,
                stdout=-1).stdout == before[1]
    assert changes > int(count) // 10, changes


def damaged():
    """Every byte of a state with stages, and numbers that lie."""
    for name, seed, count in ("a", 1, 24), ("b", 2, 19), ("c", 3, 15):
        write(name, draw(seed, True, count))
    options = ["--stop=repeat", "--stage=150:2=a 1=b", "--stage=250:1=b 1=c",
               "--stage=100:1=a 2=c"]
    wanted = run("tokmix", *options).stdout
    job = ["--state=s", "--resume", "-o", "out", *options]
    run("tokmix", "--state-every=1", *job, status=1, told="cannot write",
        preexec_fn=limit(len(wanted) * 6 // 10))
    good, out = read("s"), read("out")
    assert State(good).current == 1
    for at in range(0, len(good), EVERY):
        bad = bytearray(good)
        bad[at] ^= 1 << at % 8
        write("s", bad)
        run("tokmix", *job, status=65, told="s: ")
        assert (read("s"), read("out")) == (bad, out)
    for size in [*range(0, len(good), 37), len(good) - 1]:
        write("s", good[:size])
        run("tokmix", *job, status=65, told="s: ")
    refusals = 0
    for at in range(8, len(good) - 8, 8):
        value, = struct.unpack_from("<Q", good, at)
        for lie in {0, value + 1, value - 1, 1 << 63, (1 << 64) - 1, 1 << 61}:
            bad = good[:at] + struct.pack(
                "<Q", lie & (1 << 64) - 1) + good[at + 8:-8]
            write("s", bad + struct.pack("<Q", hash_of(bad)))
            write("out", out)
            done = subprocess.run(["tokmix", "-q", *job], capture_output=True,
                                  timeout=SECONDS, check=False)
            assert done.returncode in (0, 1, 64, 65), (at, lie, done)
            assert (done.returncode != 0) == (done.stderr != b""), (at, lie)
            refusals += done.returncode != 0
    assert refusals > len(good) // 8 * 3, refusals
    write("s", good)
    write("out", out)
    run("tokmix", *job)
    assert read("out") == wanted


if __name__ == "__main__":
    globals()[sys.argv[1]](*sys.argv[2:])
