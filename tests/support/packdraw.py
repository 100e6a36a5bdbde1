"""packdraw.py - random sequences and streams, determined by a seed.

SPDX-License-Identifier: MIT
"""

import random
import struct

from packformat import NO_ID, PER_SEQUENCE, PER_TOKEN, TYPES, Schema


def draw_channels(rng):
    kinds = {PER_TOKEN: "t", PER_SEQUENCE: "s"}
    channels = [(letter + "_" + name, name + rng.choice(["", "", "[3]"]), kind)
                for name in TYPES for kind, letter in kinds.items()]
    rng.shuffle(channels)
    return channels[:rng.choice([0, 1, 2, 5, 16])]


def draw_schema(rng):
    if rng.random() < 0.4:
        return Schema(rng.choice([2, 4]))
    special = tuple(rng.choice([NO_ID, rng.randrange(60000)])
                    for _ in range(6))
    return Schema(rng.choice([2, 4]), True, draw_channels(rng),
                  rng.choice([0, 65536]), special, rng.randrange(3))


def draw_bytes(rng, n):
    return rng.getrandbits(8 * n).to_bytes(n, "little") if n else b""


def draw_sequence(rng, schema, length):
    top = 4294967296 if schema.width == 4 and not schema.vocab else 65536
    tokens = [rng.randrange(top) for _ in range(length)]
    code = {2: "H", 4: "I"}[schema.width]
    lanes = [struct.pack("<%d%s" % (length, code), *tokens)]
    for kind, size in schema.lanes()[1:]:
        lanes.append(draw_bytes(rng, size * (length if kind == PER_TOKEN
                                             else 1)))
    return lanes


def draw_lengths(rng, n, longest):
    """Few lengths, many, mostly short or all near the end of the range."""
    shape = rng.randrange(4)
    few = [1 + rng.randrange(longest) for _ in range(3)]
    for _ in range(n):
        if shape == 0:
            yield rng.choice(few)
        elif shape == 1:
            yield 1 + rng.randrange(longest)
        elif shape == 2:
            yield min(longest, 1 + int(rng.expovariate(8 / longest)))
        else:
            yield max(1, longest - rng.randrange(4))


def draw_stream(seed, reach):
    """A schema, sequences of at most `reach` x L tokens, and options."""
    rng = random.Random(seed)
    schema = draw_schema(rng)
    capacity = rng.choice([1, 2, 7, 16, 64, 333])
    n = rng.choice([0, 1, 2, 30, 200])
    options = ["-L", capacity, "-d", rng.choice([1, 2, 3, 8, 500]),
               "-w", rng.choice([1, 2, 5, 40, 1000]),
               "-t", "u%d" % (8 * schema.width), "-q"]
    if rng.random() < 0.5:
        options.append("--pad-id=%d" % rng.randrange(65536))
    lengths = draw_lengths(rng, n, reach * capacity)
    sequences = [draw_sequence(rng, schema, length) for length in lengths]
    return schema, sequences, options


def sample(seed):
    """Raw u16 records for more packs than any pipe holds, at L=64."""
    rng = random.Random(seed)
    schema = Schema()
    sequences = [draw_sequence(rng, schema, 1 + rng.randrange(64))
                 for _ in range(10000)]
    return schema.stream(sequences)
