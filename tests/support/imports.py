"""imports.py - the files of other programs, for tests of tokcat.

    python3 imports.py llmc NAME [TOKENS [WIDTH]]
    python3 imports.py raw NAME TYPE NUMBERS
    python3 imports.py npy NAME DTYPE ARRAY [OPTION...]
    python3 imports.py megatron STEM DTYPE DOCUMENTS [modes]
    python3 imports.py datatrove NAME WIDTH DOCUMENTS [LOSSES]
    python3 imports.py tfrecord NAME SAMPLES [OPTION...]
    python3 imports.py changed NAME SAMPLE
    python3 imports.py head NAME LENGTH
    python3 imports.py peer PACKAGE NAME
    python3 imports.py damage FILE FLIPS GOOD CMD...

Each writer is as simple as possible: numpy's own, or struct, used as in the
program that defines the form.  Lists are JSON.

`changed` makes NAME.0, NAME.1 and so on from the lines on stdin: SAMPLE,
followed by one with other features, or without those that are null; or by the
record that the line has in hexadecimal.

`peer` has the program that defines a form write the content that the tests
expect, and exits with 77 if it is not installed.

`damage` runs CMD, which reads FILE, on every prefix of the file and with every
byte changed in some ways.  CMD must exit with 0, or with 65 and exactly one
line of text.  A prefix must be refused unless its length is in GOOD (numbers
with commas, "all" or "none"), and a changed byte must be if FLIPS is
"refused".

SPDX-License-Identifier: MIT
"""

import json
import os
import struct
import subprocess
import sys

NUMPY = {"u8": "<u1", "i8": "<i1", "u16": "<u2", "i16": "<i2", "u32": "<u4",
         "i32": "<i4", "u64": "<u8", "i64": "<i8", "f32": "<f4",
         "f64": "<f8"}
LETTERS = {"u8": "B", "i8": "b", "u16": "H", "i16": "h", "u32": "I",
           "i32": "i", "u64": "Q", "i64": "q", "f32": "f", "f64": "d"}


def write(name, data):
    with open(name, "wb") as file:
        file.write(data)


def pack(kind, values):
    return struct.pack("<%d%s" % (len(values), LETTERS[kind]), *values)


# ------------------------------------------------------------ plain streams

def llmc(name, tokens="[]", width="2"):
    values = json.loads(tokens)
    magic = {"2": (20240520, 1), "4": (20240801, 7)}[width]
    header = [*magic, len(values)] + [0] * 253
    write(name, pack("i32", header) +
          pack({"2": "u16", "4": "u32"}[width], values))


def raw(name, kind, numbers):
    write(name, pack(kind, json.loads(numbers)))


# --------------------------------------------------------------------- numpy

def npy(name, dtype, array, *options):
    import numpy

    values = numpy.array(json.loads(array), dtype=dtype)
    if "fortran" in options:
        values = numpy.asfortranarray(values)
    with open(name, "wb") as file:
        for major in 1, 2, 3:
            if "version%d" % major in options:
                numpy.lib.format.write_array(file, values, (major, 0))
                return
        numpy.save(file, values)


def megatron(stem, kind, documents, modes=None):
    """As the writers of IndexedDataset do, array by array."""
    import numpy

    dtype = numpy.dtype(NUMPY[kind])
    code = {"u8": 1, "i8": 2, "i16": 3, "i32": 4, "i64": 5, "f64": 6,
            "f32": 7, "u16": 8}[kind]
    lengths, firsts, data = [], [0], b""
    for document in json.loads(documents):
        for sequence in document:
            data += numpy.array(sequence, dtype=dtype).tobytes()
            lengths.append(len(sequence))
        firsts.append(len(lengths))
    places = numpy.cumsum([0] + lengths)[:-1] * dtype.itemsize
    with open(stem + ".idx", "wb") as index:
        index.write(b"MMIDIDX\x00\x00")
        index.write(struct.pack("<Q", 1))
        index.write(struct.pack("<B", code))
        index.write(struct.pack("<Q", len(lengths)))
        index.write(struct.pack("<Q", len(firsts)))
        index.write(numpy.array(lengths, dtype="<i4").tobytes(order="C"))
        index.write(places.astype("<i8").tobytes(order="C"))
        index.write(numpy.array(firsts, dtype="<i8").tobytes(order="C"))
        if modes is not None:
            index.write(numpy.array(json.loads(modes), "<i1").tobytes())
    write(stem + ".bin", data)


# ----------------------------------------------------------------- datatrove

def datatrove(name, width, documents, losses=None):
    values = json.loads(documents)
    ends, total = [], 0
    for document in values:
        total += len(document)
        ends.append(total)
    letter = {"2": "H", "4": "I"}[width]
    write(name, b"".join(struct.pack("<%d%s" % (len(d), letter), *d)
                         for d in values))
    write(name + ".index", struct.pack("<%dQ" % len(ends), *ends))
    if losses is not None:
        write(name + ".loss",
              b"".join(struct.pack("<%d?" % len(d), *map(bool, d))
                       for d in json.loads(losses)))


# ------------------------------------------------------------------ TFRecord

def crc32c(data):
    """Bit by bit, from the polynomial."""
    crc = 0xffffffff
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x82f63b78 if crc & 1 else 0)
    return crc ^ 0xffffffff


def masked(data):
    crc = crc32c(data)
    return ((crc >> 15 | crc << 17) + 0xa282ead8) & 0xffffffff


def framed(data):
    length = struct.pack("<Q", len(data))
    return (length + struct.pack("<I", masked(length)) + data +
            struct.pack("<I", masked(data)))


def varint(value):
    value &= 2 ** 64 - 1
    data = b""
    while value > 127:
        data += bytes([value & 127 | 128])
        value >>= 7
    return data + bytes([value])


def field(number, data):
    return varint(number << 3 | 2) + varint(len(data)) + data


def feature(values, options):
    """A list of floats if one is a float, otherwise of integers or bytes."""
    if isinstance(values, str):
        return field(1, field(1, values.encode()))
    floats = any(isinstance(v, float) for v in values)
    ones = [struct.pack("<f", v) if floats else varint(v) for v in values]
    key = varint(1 << 3 | (5 if floats else 0))
    if "single" in options:
        data = b"".join(key + one for one in ones)
    elif "mixed" in options:
        data = b"".join(key + one for one in ones[:2])
        data += field(1, b"".join(ones[2:])) + field(9, b"?")
    else:
        data = field(1, b"".join(ones))
    return field(2 if floats else 3, data)


def example(sample, options):
    entries = b""
    for name, values in sample.items():
        entry = [field(1, name.encode()), field(2, feature(values, options))]
        if "reversed" in options:
            entry.reverse()
        entries += field(1, b"".join(entry))
        if name in options:
            entries += field(1, b"".join(entry))
    data = field(1, entries)
    if "unknown" in options:
        data = (varint(7 << 3) + varint(300) + data + field(15, b"what") +
                varint(6 << 3 | 1) + bytes(8) + varint(5 << 3 | 5) + bytes(4))
    return data


def tfrecord(name, samples, *options):
    data = b""
    for sample in json.loads(samples):
        # A string is a record's bytes in hexadecimal.
        data += framed(bytes.fromhex(sample) if isinstance(sample, str)
                       else example(sample, options))
    write(name, data)


def changed(name, sample):
    for i, line in enumerate(sys.stdin.read().splitlines()):
        first = json.loads(sample)
        second = line
        if line.startswith('"'):
            second = {**first, **json.loads("{" + line + "}")}
            second = {k: v for k, v in second.items() if v is not None}
        tfrecord("%s.%d" % (name, i), json.dumps([first, second]))


def head(name, length):
    """The bytes before a record of that length."""
    data = struct.pack("<Q", int(length))
    write(name, data + struct.pack("<I", masked(data)))


# --------------------------------------------------------------------- peers

def peer_tfrecord(name):
    from tfrecord.writer import TFRecordWriter

    writer = TFRecordWriter(name)
    writer.write({"input_ids": ([101, 5, 103, 102, 0], "int"),
                  "input_mask": ([1, 1, 1, 1, 0], "int"),
                  "segment_ids": ([0, 0, 1, 1, 0], "int"),
                  "masked_lm_positions": ([2, 0], "int"),
                  "masked_lm_ids": ([7, 0], "int"),
                  "masked_lm_weights": ([1.0, 0.0], "float"),
                  "next_sentence_labels": ([1], "int")})
    writer.close()


def peer_megatron(stem):
    import numpy
    import torch
    from megatron.core.datasets.indexed_dataset import IndexedDatasetBuilder

    builder = IndexedDatasetBuilder(stem + ".bin", dtype=numpy.int32)
    builder.add_document(torch.tensor([1, 2, 70000]), [2, 1])
    builder.add_document(torch.tensor([4, 5, 6]), [3])
    builder.finalize(stem + ".idx")


def peer_datatrove(name):
    import numpy
    from datatrove.io import get_datafolder
    from datatrove.pipeline.tokens.tokenizer import TokenizedFile

    file = TokenizedFile(get_datafolder("."), name, save_loss_metadata=True)
    file.write([1, 2], numpy.array([False, True]))
    file.write([3], numpy.array([True]))
    file.close()


def peer(package, name):
    try:
        globals()["peer_" + package](name)
    except ImportError as error:
        print(error)
        sys.exit(77)


# -------------------------------------------------------------------- damage

def must(what, command, status, error):
    if not what:
        sys.exit("%r ended with %d and said: %r" % (command, status, error))


def run(command, refused, what):
    done = subprocess.run(command, stdin=subprocess.DEVNULL,
                          stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    said = done.stderr.decode("ascii")
    allowed = (65,) if refused else (0, 65)
    must(done.returncode in allowed, (what, command), done.returncode, said)
    if done.returncode == 65:
        must(said.startswith("tokcat: ") and said.count("\n") == 1 and
             said[:-1].isprintable(), (what, command), 65, said)


def damage(name, flips, good, *command):
    with open(name, "rb") as file:
        data = file.read()
    sizes = [] if good in ("all", "none") else map(int, good.split(","))
    sizes = range(len(data)) if good == "all" else set(sizes)
    # One byte in seven is tried in the middle of a large header, which is
    # padding, and one in three elsewhere; or all with LONG.
    every = 1 if os.environ.get("LONG") else 3
    places = [i for i in range(len(data)) if i in sizes or i % (
        7 if 256 <= i < len(data) - 256 else every) == 0]
    for n in places:
        write(name, data[:n])
        run(command, n not in sizes, "cut to %d" % n)
    for i in places:
        change = (1, 0x80, 0xff)[i // every % 3]
        write(name, data[:i] + bytes([data[i] ^ change]) + data[i + 1:])
        run(command, flips == "refused", "changed at %d" % i)
    write(name, data)
    must(os.path.getsize(name) == len(data), name, 0, "")


if __name__ == "__main__":
    globals()[sys.argv[1]](*sys.argv[2:])
