"""lists.py - list channels of packstream, checked on random inputs with
packformat.py.

    lists.py trials SEED COUNT

Each trial packs a stream with lists and vectors: whole, and again from a state
saved where the input was cut.

SPDX-License-Identifier: MIT
"""

import itertools
import subprocess

from packformat import LIST, PER_SEQUENCE, PER_TOKEN, Packs, Schema, read_framed
from packtrials import (DROPPED, TRUNCATED, clean, complete, draw_options, main,
                        pack, resumes, unpacked, verify)

CHANNELS = [("encoder_ids", "u16", LIST), ("mel", "f32[3]", PER_TOKEN),
            ("edges", "u32[2]", LIST), ("g", "u32", PER_SEQUENCE),
            ("where", "f64[2]", PER_SEQUENCE), ("bytes", "u8", LIST)]


class Trial:
    def __init__(self, rng):
        self.schema = Schema(rng.choice([2, 4]), True, CHANNELS)
        self.capacity = rng.choice([16, 64, 240])
        self.overlong = rng.choice(["drop", "truncate", "split"])
        # Without a budget, a list has as many elements as the row has tokens.
        given = {name: rng.choice([0, 0, 20, 100, 1000])
                 for name, _, kind in CHANNELS if kind == LIST}
        self.limits = {name: limit or self.capacity
                       for name, limit in given.items()}
        self.align = rng.choice([1, 1, 4])
        self.grouped = rng.random() < 0.3
        self.sequences = list(self.draw(rng))
        self.options = draw_options(rng, self, given.items())

    def draw(self, rng):
        longest = self.capacity * rng.choice([1, 1, 3]) // rng.choice(
            [1, 4, 12])
        # Only --overlong=drop allows a list above its budget.
        over = rng.random() < 0.5 and self.overlong == "drop"
        for number in range(400):
            n = rng.randint(1, longest)
            sequence = []
            for kind, size in self.schema.lanes():
                name = CHANNELS[len(sequence) - 1][0] if sequence else ""
                most = self.limits.get(name, 0)
                of = {PER_TOKEN: n, PER_SEQUENCE: 1, LIST: rng.choice(
                    [0, rng.randint(0, most), rng.randint(0, most // 8)])}
                if over and kind == LIST and rng.random() < 0.05:
                    of[LIST] = most + rng.choice([1, 2, 100, 70000])
                sequence.append((number // 3).to_bytes(4, "little")
                                if name == "g" else
                                rng.randbytes(size * of[kind]))
            yield sequence

    def elements(self, sequence):
        """The lengths of the lists of a sequence."""
        return {name: len(lane) // size for (name, _, kind), lane, (_, size) in
                zip(CHANNELS, sequence[1:], self.schema.lanes()[1:])
                if kind == LIST}

    def wanted(self):
        """The pieces of each sequence as (number, offset, length), and the
        rejected sequences as (number, reason)."""
        pieces, rejected = [], []
        for k, sequence in enumerate(self.sequences):
            n = self.schema.length(sequence)
            fits = all(m <= self.limits[name]
                       for name, m in self.elements(sequence).items())
            if not fits or n > self.capacity and self.overlong == "drop":
                rejected.append((k, DROPPED))
            elif self.overlong == "split":
                pieces += [(k, at, min(self.capacity, n - at))
                           for at in range(0, n, self.capacity)]
            else:
                pieces.append((k, 0, min(n, self.capacity)))
                if n > self.capacity:
                    rejected.append((k, TRUNCATED))
        return pieces, rejected

    # -- Runs

    run = pack

    def check(self, packs):
        found = []
        for p in itertools.chain.from_iterable(packs.packs):
            n = self.schema.length(p.lanes)
            found.append((p.id, p.offset, n))
            assert p.lanes == self.schema.cut(self.sequences[p.id], p.offset,
                                              p.offset + n), p.id
        return complete(self, found)

    def go(self, rng):
        data = self.schema.stream(self.sequences)
        clean()
        self.run("out", data=data)
        with open("in", "wb") as file:
            file.write(data)
        packs = Packs(unpacked("out", "--zstd" in self.options), self.schema)
        # A group that does not fit a pack can have been dropped as a whole.
        if self.check(packs) and "--flush-every=70" not in self.options:
            back = subprocess.run(["packcat", "out"], capture_output=True,
                                  check=True).stdout
            assert back == data, self.options
        verify(self)
        resumes(self, rng, data)
        self.through_others()

    def through_others(self):
        """Programs that move records and packs keep their lists."""
        def output(*command):
            return subprocess.run(command, check=True,
                                  capture_output=True).stdout

        shuffled = output("tokshuf", "-q", "-M1Mi", "in")
        found = read_framed(shuffled)[1]
        assert sorted(found) == sorted(self.sequences)
        assert found != self.sequences
        mixed = output("tokmix", "-q", "--channel=source", "--stop=longest",
                       "1=in", "1=in")
        assert sorted(read_framed(mixed)[1]) == sorted(
            s + [bytes([source])] for s in self.sequences for source in (0, 1))
        output("packdeal", "-q", "--ranks=2", "-b1", "--last=short", "-o",
               "share%d", "out")
        output("packstat", "--verify", "-q", "share0", "share1")


main(Trial)
