"""packcat-forms.py - checks packcat's output for trainers.

    python3 packcat-forms.py FORM OUTPUT PACKS [KEY=VALUE]...

Reads the pack stream PACKS as packstream(5) defines it, converts its sequences
to the FORM, and compares them with the OUTPUT: a difference is an
AssertionError.  Shares no code with the programs, and needs
only the standard library.

Keys: order=input for sequences in input order instead of packs; room=N for the
number of predictions in an example.

SPDX-License-Identifier: MIT
"""

import json
import struct
import sys

from imports import masked
from packformat import CODES, PER_TOKEN, streams
from packstat import row_of


class Packs:
    """The streams of a file: `packs` of sequences, each a dict of columns."""

    def __init__(self, name):
        self.packs, self.rows = [], []
        for stream in streams(read(name)):
            self.capacity, self.pad_id = stream.capacity, stream.pad_id
            self.width = stream.schema.width
            self.channels = {name: kind for name, _, kind in
                             stream.schema.channels}
            for pack in stream.packs:
                self.rows.append(row_of(stream, pack))
                self.packs.append([self.columns(stream.schema, piece)
                                   for piece in pack])

    def columns(self, schema, piece):
        columns = {"id": piece.id}
        own = [("tokens", {2: "u16", 4: "u32"}[schema.width], PER_TOKEN)]
        for (name, kind_of, kind), lane in zip(own + schema.channels,
                                               piece.lanes):
            values = [value for value, in struct.iter_unpack(
                "<" + CODES[kind_of], lane)]
            columns[name] = values if kind == PER_TOKEN else values[0]
        return columns

    def sequences(self, order):
        """All of them, in the order of the packs or of the input."""
        them = [sequence for pack in self.packs for sequence in pack]
        if order == "input":
            them.sort(key=lambda sequence: sequence["id"])
        return them

    def tokens(self, sequence):
        return struct.pack("<%d%s" % (len(sequence["tokens"]),
                                      "H" if self.width == 2 else "I"),
                           *sequence["tokens"])


def read(name):
    with open(name, "rb") as file:
        return file.read()


def llmc(name, packs, _):
    data = read(name)
    header = struct.unpack_from("<256i", data)
    assert header[:2] == ((20240520, 1) if packs.width == 2
                          else (20240801, 7)), header[:2]
    assert header[2] == len(packs.rows) * packs.capacity, header[2]
    assert not any(header[3:])
    assert data[1024:] == b"".join(packs.tokens({"tokens": row})
                                   for row in packs.rows)


def megatron(name, packs, options):
    order = options.get("order")
    groups = packs.packs
    if order == "input":
        groups = [[sequence] for sequence in packs.sequences(order)]
    data, index = read(name + ".bin"), read(name + ".idx")
    magic, version, code, n, n_doc = struct.unpack_from("<9sQBQQ", index)
    assert (magic, version) == (b"MMIDIDX\0\0", 1)
    assert code == (8 if packs.width == 2 else 4)
    assert n == sum(map(len, groups)) and n_doc == len(groups) + 1
    assert len(index) == 34 + 12 * n + 8 * n_doc
    lengths = struct.unpack_from("<%di" % n, index, 34)
    offsets = struct.unpack_from("<%dq" % n, index, 34 + 4 * n)
    documents = struct.unpack_from("<%dq" % n_doc, index, 34 + 12 * n)
    assert documents[0] == 0 and documents[-1] == n
    for i, group in enumerate(groups):
        assert documents[i + 1] - documents[i] == len(group)
        for s, sequence in enumerate(group, documents[i]):
            wanted = packs.tokens(sequence)
            assert lengths[s] * packs.width == len(wanted)
            assert data[offsets[s]:offsets[s] + len(wanted)] == wanted
    assert len(data) == sum(lengths) * packs.width


def datatrove(name, packs, options):
    data, index = read(name), read(name + ".index")
    sequences = packs.sequences(options.get("order"))
    assert len(index) == 8 * len(sequences)
    ends = struct.unpack("<%dQ" % len(sequences), index)
    begin = 0
    for sequence, end in zip(sequences, ends):
        assert (data[begin * packs.width:end * packs.width] ==
                packs.tokens(sequence))
        begin = end
    assert len(data) == begin * packs.width
    if "loss_mask" in packs.channels:
        assert read(name + ".loss") == b"".join(
            bytes(sequence["loss_mask"]) for sequence in sequences)


def trl(name, packs, _):
    with open(name, encoding="ascii") as file:
        rows = [json.loads(line) for line in file]
    assert len(rows) == len(packs.packs)
    for row, pack in zip(rows, packs.packs):
        assert list(row) == ["input_ids", "seq_lengths", *packs.channels]
        assert row.pop("input_ids") == [
            token for sequence in pack for token in sequence["tokens"]]
        assert row.pop("seq_lengths") == [len(sequence["tokens"])
                                          for sequence in pack]
        for key, values in row.items():
            wanted = [sequence[key] for sequence in pack]
            if packs.channels[key] == PER_TOKEN:
                wanted = [value for part in wanted for value in part]
            assert values == wanted, key


# ------------------------------------------------------------- TFRecord

def records(data):
    at = 0
    while at < len(data):
        n, crc = struct.unpack_from("<QI", data, at)
        assert crc == masked(data[at:at + 8])
        record = data[at + 12:at + 12 + n]
        assert struct.unpack_from("<I", data, at + 12 + n)[0] == \
            masked(record)
        yield record
        at += n + 16
    assert at == len(data)


def varints(data):
    value = shift = 0
    for byte in data:
        value |= (byte & 127) << shift
        shift += 7
        if byte < 128:
            yield value
            value = shift = 0
    assert shift == 0


def fields(data):
    """The fields of a message, all of bytes: (number, bytes)."""
    at = 0
    while at < len(data):
        key = data[at]
        assert key & 7 == 2, key
        length = shift = 0
        while True:
            at += 1
            length |= (data[at] & 127) << shift
            shift += 7
            if data[at] < 128:
                break
        at += 1
        yield key >> 3, data[at:at + length]
        at += length
    assert at == len(data)


def only(data, *numbers):
    """The bytes of a message's only fields, which have these numbers."""
    found = list(fields(data))
    assert [number for number, _ in found] == list(numbers), found
    return [value for _, value in found]


def features(record):
    """An example as a dict of lists."""
    result = {}
    for number, entry in fields(only(record, 1)[0]):
        assert number == 1
        key, value = only(entry, 1, 2)
        (kind, values), = fields(value)
        numbers, = only(values, 1)
        assert key not in result
        result[key.decode()] = (
            ("f", list(struct.unpack("<%df" % (len(numbers) // 4), numbers)))
            if kind == 2 else ("i", list(varints(numbers))))
        assert kind in (2, 3)
    return result


def wanted_features(packs, sequence, room):
    def filled(values, size, value=0):
        assert len(values) <= size
        return list(values) + [value] * (size - len(values))

    tokens, size = sequence["tokens"], packs.capacity
    picks = [(i, label) for i, label in enumerate(sequence.get("labels", []))
             if label != -100]
    return {
        "input_ids": ("i", filled(tokens, size, packs.pad_id)),
        "input_mask": ("i", filled([1] * len(tokens), size)),
        "segment_ids": ("i", filled(sequence.get("token_type_ids", []),
                                    size)),
        "masked_lm_positions": ("i", filled([i for i, _ in picks], room)),
        "masked_lm_ids": ("i", filled([label for _, label in picks], room)),
        "masked_lm_weights": ("f", filled([1.0] * len(picks), room, 0.0)),
        "next_sentence_labels": ("i", [sequence.get("next_sentence_label",
                                                    0)])}


def tfrecord(name, packs, options):
    sequences = packs.sequences(options.get("order"))
    found = list(map(features, records(read(name))))
    assert len(found) == len(sequences)
    for example, sequence in zip(found, sequences):
        assert example == wanted_features(packs, sequence,
                                          int(options.get("room", 20)))


FORMS = {form.__name__: form
         for form in (llmc, megatron, datatrove, trl, tfrecord)}

if __name__ == "__main__":
    FORMS[sys.argv[1]](sys.argv[2], Packs(sys.argv[3]),
                       dict(pair.split("=") for pair in sys.argv[4:]))
