"""tokcat.py - token records as packstream(5) defines them, from a JSON object.

    python3 tokcat.py DESCRIPTION >STREAM

An independent version of tokcat's output, which shares only the library that
defines the hash.  Keys of the description, all optional except the records:

    raw        true: records alone
    width      bytes of a token
    vocab      the size of the vocabulary
    special    {"pad": id, "bos": ..., "eos", "cls", "sep", "mask"}
    labels     the label convention, a number
    tokenizer  a file that made the tokens
    channels   [[name, type, "token" or "sequence", fill], ...]; the type of
               vectors is "f32[3]"
    records    [[tokens, channel, ...], ...]; a channel of a sequence is a
               number or a vector, one of tokens a list of these

SPDX-License-Identifier: MIT
"""

import ctypes
import json
import math
import struct
import sys

SPECIAL = ["pad", "bos", "eos", "cls", "sep", "mask"]
# The number of each type on disk, and the letter struct has for it.
TYPES = {"u8": (1, "B"), "u16": (2, "H"), "u32": (3, "I"), "u64": (4, "Q"),
         "i32": (5, "i"), "i64": (6, "q"), "f32": (7, "f"), "f64": (8, "d")}

xxhash = ctypes.CDLL("libxxhash.so.0")
xxhash.XXH3_64bits.restype = ctypes.c_uint64
xxhash.XXH3_64bits.argtypes = [ctypes.c_char_p, ctypes.c_size_t]
xxhash.XXH3_64bits_withSeed.restype = ctypes.c_uint64
xxhash.XXH3_64bits_withSeed.argtypes = [ctypes.c_char_p, ctypes.c_size_t,
                                        ctypes.c_uint64]


class Hash128(ctypes.Structure):
    _fields_ = [("low", ctypes.c_uint64), ("high", ctypes.c_uint64)]


xxhash.XXH3_128bits.restype = Hash128
xxhash.XXH3_128bits.argtypes = [ctypes.c_char_p, ctypes.c_size_t]


def digest(data):
    return struct.pack("<Q", xxhash.XXH3_64bits(data, len(data)))


def chain(records):
    """The digest of END."""
    value = 0
    for one in records:
        link = one[:4] + digest(one[4:])
        value = xxhash.XXH3_64bits_withSeed(link, len(link), value)
    return struct.pack("<Q", value)


def file_digest(name):
    with open(name, "rb") as file:
        data = file.read()
    value = xxhash.XXH3_128bits(data, len(data))
    return struct.pack(">QQ", value.high, value.low)


def element(type_name, value):
    """A value as it lies on disk; null is the plain quiet NaN."""
    if value is None:
        value = math.nan
    return struct.pack("<" + TYPES[type_name][1], value)


def channel_entry(name, type_name, kind, fill):
    type_name, _, count = type_name.rstrip("]").partition("[")
    fill = element(type_name, fill)
    return (struct.pack("<24sBBB5xI4x", name.encode(), TYPES[type_name][0],
                        {"token": 1, "sequence": 2}[kind], len(fill),
                        int(count or 0)) + fill.ljust(8, b"\0") + bytes(16))


def header(d, channels):
    special = d.get("special", {})
    tokenizer = file_digest(d["tokenizer"]) if "tokenizer" in d else b""
    data = b"\x89TOK\r\n\x1a\n"
    data += struct.pack("<IHH", 0x01020304, 1, 0)
    data += struct.pack("<II", 136 + 64 * len(channels), len(channels))
    data += struct.pack("<QQ", 0, 0)
    data += struct.pack("<BBHI", d.get("width", 2), d.get("labels", 0), 0,
                        d.get("vocab", 0))
    for name in SPECIAL:
        data += struct.pack("<I", special.get(name, 0xffffffff))
    data += tokenizer.ljust(32, b"\0") + bytes(24)
    for channel in channels:
        data += channel_entry(*channel)
    return data + digest(data)


def flat(value):
    """The values of a number, a list of values, or a list of vectors."""
    if not isinstance(value, list):
        return [value]
    return [one for item in value for one in flat(item)]


def record(letter, channels, tokens, *values):
    data = struct.pack("<I%d%s" % (len(tokens), letter), len(tokens),
                       *tokens)
    for kind in "token", "sequence":
        for channel, value in zip(channels, values):
            if channel[2] == kind:
                for one in flat(value):
                    data += element(channel[1].split("[")[0], one)
    return data


def lengths(data, counts):
    """LENGTHS after the bytes of a stream."""
    entries = sorted((n, counts.count(n)) for n in set(counts))
    record = struct.pack("<III", 0, 3, len(entries))
    for entry in entries:
        record += struct.pack("<IQ", *entry)
    record += struct.pack("<Q", len(data))
    return record + digest(record) + struct.pack("<Q", len(record) + 16)


def main():
    d = json.loads(sys.argv[1])
    channels = d.get("channels", [])
    letter = {2: "H", 4: "I"}[d.get("width", 2)]
    records = d["records"]
    data = b"".join(record(letter, channels, *r) for r in records)
    if not d.get("raw"):
        end = struct.pack("<IIQQ", 0, 1, len(records),
                          sum(len(r[0]) for r in records))
        data = header(d, channels) + data
        data += lengths(data, [len(r[0]) for r in records]) + end + chain(
            record(letter, channels, *r) for r in records)
    sys.stdout.buffer.write(data)


main()
