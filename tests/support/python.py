"""python.py - the modules of python/packstream compared with naive loops.

tests/tree/python.bats calls the functions at the end by name:

    python3 python.py CHECK [ARGUMENT]...

A check prints nothing and exits with 0, or fails with a traceback.

SPDX-License-Identifier: MIT
"""

import ast
import io
import itertools
import os
import pickle
import re
import struct
import subprocess
import sys
import threading
import time

if os.environ.get("WITHOUT_XXHASH"):
    sys.modules["xxhash"] = None

if not os.environ.get("INSTALLED"):     # with the extension
    sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(
        __file__)), "../../python"))

import numpy as np

from packstream import packs, views as packviews
from python_naive import (IGNORED, Naive, equal, ids_of, labels_of,
                          read_naively)

VIEWS = ("ragged", "ghost", "static")


# ---------------------------------------------------------------------
# Comparisons

def same_batches(found, wanted):
    """True if two lists of batches are equal."""
    assert len(found) == len(wanted), (len(found), len(wanted))
    for one, other in zip(found, wanted):
        assert list(one) == list(other)
        for name in one:
            equal(one[name], other[name], other[name].dtype)


def compare_views(batch, naive):
    for view in VIEWS:
        lengths = naive.view(view)
        cu = packviews.merged_cu(batch, view)
        equal(cu, [0] + list(itertools.accumulate(lengths)), np.int32)
        equal(packviews.seqused(batch, view), naive.view(view, True), np.int32)
        longest = packviews.max_seqlen(batch, view)
        assert type(longest) is int
        assert longest == (naive.capacity if view == "static"
                           else max(lengths))
        wanted = [k for n in lengths for k in range(n)]
        for given in (None, cu):
            found = packviews.positions(batch, view, given)
            equal(found.reshape(-1), wanted, np.int32)
            assert found.ndim == (1 if view == "ragged" else 2)


def compare(batch, naive, pad_id):
    equal(batch["cu"], naive.cu(), np.int32)
    equal(batch["n_seq"], [len(pack) for pack in naive.batch], np.uint32)
    equal(batch["n_tok"], naive.fills)
    equal(batch["max_seqlen"], [max(row) for row in naive.lengths])
    equal(batch["tokens"], naive.per_token("input_ids", pad_id))
    equal(packviews.positions(batch), naive.positions())
    equal(packviews.segments(batch), naive.segments(), np.int32)
    for name, own in (("tokens", ids_of), (None, labels_of)):
        targets = np.array(naive.targets(own))
        equal(packviews.labels(batch, name), naive.labels(own), np.int64)
        equal(packviews.targets(batch, name), targets, np.int64)
        equal(packviews.loss_mask(batch, name), targets != IGNORED,
              np.float32)
    equal(packviews.compact(batch), [token for pack in naive.batch
                                     for row in pack
                                     for token in row["input_ids"]])
    compare_views(batch, naive)


# ---------------------------------------------------------------------
# Streams to read from

class Dribble(io.RawIOBase):
    """Returns a few bytes at a time, as many as `counts` says in turn."""

    def __init__(self, data, counts):
        super().__init__()
        self.data, self.counts = io.BytesIO(data), itertools.cycle(counts)

    def readable(self):
        return True

    def readinto(self, buffer):
        piece = self.data.read(min(next(self.counts), len(buffer)))
        buffer[:len(piece)] = piece
        return len(piece)


def contents(path):
    with open(path, "rb") as file:
        return file.read()


def everything(source, size=3):
    return list(source.batches(size))


def refused(source, why, **options):
    """The error message; fails if the stream can be read to its end."""
    try:
        everything(packs.open_packs(source, **options))
    except packs.PackError as error:
        assert why in str(error), error
        assert re.match(r"(pack \d+ in the block at |block at )?byte \d+: ",
                        str(error)), error
        return str(error)
    raise AssertionError("not refused: " + why)


def refused_both(data, why, at=None, **options):
    """The same error from a file and from a pipe, at byte `at`."""
    with open("bad.pks", "wb") as file:
        file.write(data)
    for source in ("bad.pks", io.BytesIO(data)):
        message = refused(source, why, **options)
        assert at is None or "byte %d: " % at in message, message


class Block:
    """The position of a block, and its contents."""

    def __init__(self, data, at):
        _, self.kind, self.n_packs, self.n_seqs, _, self.size = \
            struct.unpack_from("<4I2Q", data, at)
        self.row_bytes, = struct.unpack_from("<I", data, 20)
        self.at, self.end = at, at + self.size
        self.rows = at + 64
        self.heads = self.rows + self.n_packs * self.row_bytes
        self.seqs = self.heads + self.n_packs * 40


def blocks_of(data):
    """The blocks of a stream, ending with END."""
    found = [Block(data, 4096)]
    while found[-1].kind != 1:
        found.append(Block(data, found[-1].end))
    return found


# ---------------------------------------------------------------------
# The checks

def views(path, capacity, depth, pad_id="0", align="1"):
    """Every view of every batch, whatever the size of batches."""
    source = packs.open_packs(path)
    capacity, depth = int(capacity), int(depth)
    assert (source.header.capacity, source.header.depth) == (capacity, depth)
    assert source.header.align == int(align)
    assert source.header.pad_id == int(pad_id)
    packed = read_naively(path, len(source))
    for size in (1, 2, 5, len(packed) + 1):
        number = 0
        for batch in source.batches(size):
            rows = packed[number:number + size]
            compare(batch, Naive(rows, capacity, depth, int(align)),
                    int(pad_id))
            assert ("seq_tok" in batch) == (align != "1")
            equal(batch["index"], range(number, number + len(rows)))
            number += len(rows)
        assert number == len(packed)


def lazy(path):
    """Arrays that were not requested are available to code that copies or
    iterates over a batch, or takes one from it."""
    import copy
    for size in (1, 4):
        batch = next(packs.open_packs(path).batches(size))
        names = list(batch)
        wanted = {name: batch[name] for name in names}

        def fresh():
            return next(packs.open_packs(path).batches(size))

        def same(found, names=names):
            assert list(found) == names
            for name in names:
                equal(found[name], wanted[name], wanted[name].dtype)
        same(dict(fresh()))
        same(dict(**fresh()))
        same({**fresh()})
        same(fresh().copy())
        same(dict(fresh().items()))
        same(dict(zip(names, fresh().values())))
        same(fresh() | {})
        same(type(fresh())({name: array for name, array in fresh().items()}))
        same(fresh(), sorted(names, key=names.index))
        for again in (copy.copy(fresh()), copy.deepcopy(fresh()),
                      pickle.loads(pickle.dumps(fresh()))):
            same(again)
            assert type(again) is packs.Batch
            assert again.header == batch.header
            assert (again.sequences == batch.sequences).all()
        for take in (lambda b, name: b.get(name),
                     lambda b, name: b.pop(name),
                     lambda b, name: b.setdefault(name, 5)):
            for name in names:
                equal(take(fresh(), name), wanted[name])
        assert fresh().get("nothing") is None and "nothing" not in fresh()
        assert fresh().popitem()[0] == names[-1]
        assert "object object" not in repr(fresh())
        try:
            fresh()["nothing"]
        except KeyError:
            continue
        raise AssertionError("there is no such array")


def sequences(path):
    """The rows of all sequences of a batch are those of its packs."""
    source = packs.open_packs(path)
    for which in (None, list(range(len(source)))[::-2]):
        batch = next(source.batches(len(source))) if which is None else \
            source.take(which)
        n = batch["n_seq"].astype(int)
        rows = batch.sequences
        assert len(rows) == n.sum()
        ends = np.cumsum(n)
        for i, (begin, end) in enumerate(zip(ends - n, ends)):
            equal(batch["seq_id"][i, :n[i]], rows["seq_id"][begin:end])
            assert (batch["seq_id"][i, n[i]:] == 2**64 - 1).all()
            equal(batch["cu"][i, :n[i]], rows["seq_start"][begin:end])
            assert rows["seq_tok"][begin:end].sum() == batch["n_tok"][i]


def names(path):
    """Channels whose names resemble the format's own fields: id is the number
    of the sequence minus 7, start its tokens."""
    source = packs.open_packs(path)
    batch = source.take(range(len(source)))
    used = np.arange(batch["id"].shape[1]) < batch["n_seq"][:, None]
    equal(batch["id"][used].astype(int),
          batch["seq_id"][used].astype(int) - 7)
    equal(batch["id"][used], batch.sequences["id"])
    equal(batch["start"], batch["tokens"])


def depths(path, deeper):
    """A file gives the depth of its packs, if need be in END; in a pipe that
    does not, an array is as wide as the batch needs.  `deeper` has a depth of
    5 in its header, and packs of at most 4 sequences."""
    source = packs.open_packs(path)
    most = max(int(n) for batch in source.batches(1) for n in batch["n_seq"])
    assert source.header.depth == most > 1
    assert source.streams[0].head.depth is None
    pipe = packs.open_packs(io.BytesIO(contents(path)))
    assert pipe.header.depth is None
    static = set()
    for one, other in zip(source.batches(1), pipe.batches(1)):
        n = int(one["n_seq"][0])
        assert one["cu"].shape == (1, most + 2)
        assert other["cu"].shape == (1, n + 2)
        assert other["seq_id"].shape == (1, n)
        equal(other["cu"], one["cu"][:, :n + 2])
        equal(one["cu"][:, n + 1:], [[one.header.capacity] * (most + 1 - n)])
        for view in ("ragged", "ghost"):
            equal(packviews.merged_cu(one, view),
                  packviews.merged_cu(other, view))
        static.add(len(packviews.merged_cu(other, "static")))
    assert static == {pipe.header.capacity + 2}
    with open("joined.pks", "wb") as file:
        file.write(contents(path) + contents(deeper))
    joined = packs.open_packs("joined.pks")
    assert joined.header.depth == max(most, 5)
    pipe = packs.open_packs(io.BytesIO(contents(deeper) + contents(path)))
    assert pipe.header.depth == 5
    same_batches(list(pipe.batches(1))[-2:], list(joined.batches(1))[-2:])


def channels(path, capacity, depth, align="1"):
    """The channels kind (u8, fill 9), labels (i64, fill -100), both per
    token, and source (u32) per sequence; the dtype is that of the page."""
    source = packs.open_packs(path)
    packed = read_naively(path, len(source))
    for number, batch in zip(range(0, len(packed), 4), source.batches(4)):
        naive = Naive(packed[number:number + 4], int(capacity), int(depth),
                      int(align))
        equal(batch["kind"], naive.per_token("kind", 9), np.uint8)
        equal(batch["labels"], naive.per_token("labels", -100), np.int64)
        given = [row["source"] for pack in naive.batch for row in pack]
        equal(packviews.per_sequence(batch, "source"), given, np.uint32)
        assert batch.header is source.header
        equal(packviews.labels(batch, "kind")[:, 1:],
              np.where(naive.segments() == np.array(0), IGNORED, np.where(
                  naive.positions() == np.array(0), IGNORED,
                  naive.per_token("kind", 9)))[:, 1:])


def unchanged(path):
    """A batch of a file stays as it was checked, whatever happens to the file;
    a pickled reader continues, and a file is closed with its reader."""
    before = len(os.listdir("/proc/self/fd"))
    source = packs.open_packs(path)
    batches, taken = everything(source), source.take([1, 0])
    again = pickle.loads(pickle.dumps(source))
    data = contents(path)
    with open(path, "r+b") as file:
        file.write(data[:4096] + bytes(len(data) - 4096))
    assert not contents(path)[4096:].strip(b"\0")
    with open("x.copy", "wb") as file:
        file.write(data)
    same_batches(batches, everything(packs.open_packs("x.copy")))
    same_batches([taken], [packs.open_packs("x.copy").take([1, 0])])
    with open(path, "r+b") as file:
        file.write(data)
    same_batches(batches, everything(again))
    del source, again
    assert len(os.listdir("/proc/self/fd")) == before


def shrunk(path):
    """A file truncated while it is read is an error."""
    data = contents(path)
    last_block = blocks_of(data)[-2]
    for end in (0, 4096, 4096 + 64 + last_block.row_bytes // 2,
                last_block.heads, last_block.end - 64):
        with open(path, "wb") as file:
            file.write(data)
        source = packs.open_packs(path)
        last = len(source) - 1
        os.truncate(path, end)
        for read in (lambda: everything(source),
                     lambda: everything(source, 1000),
                     lambda: source.take([0, last]),
                     lambda: list(source.batches(2, last, last + 1))):
            try:
                read()
            except packs.PackError as error:
                assert int(str(error).split()[1][:-1]) >= end, error
                assert str(error).endswith(
                    ": the file ends at or before this byte, it had %d bytes "
                    "when opened" % len(data)), error
                continue
            raise AssertionError("not refused")


def pipes(path):
    """A pipe yields the same as the file, in whatever pieces it arrives."""
    data = contents(path)
    for size in (1, 3, 1000):
        wanted = everything(packs.open_packs(path), size)
        child = subprocess.Popen(["cat", path], stdout=subprocess.PIPE)
        for stream in (io.BytesIO(data), Dribble(data, [1]), child.stdout,
                       Dribble(data, [4096, 1, 255, 700, 3000]),
                       open(path, "rb", 0), open(path, "rb")):
            with stream:
                same_batches(everything(packs.open_packs(stream), size),
                             wanted)
        child.wait()


class NeverReady(io.RawIOBase):
    """A stream without data that cannot be waited for."""

    def readinto(self, buffer):
        return None


def nonblocking(path):
    """Reading waits for a non-blocking pipe."""
    data = contents(path)

    def write(descriptor):
        for at in range(0, len(data), 1500):
            time.sleep(0.002)
            os.write(descriptor, data[at:at + 1500])
        os.close(descriptor)

    for buffering in (0, -1):
        reader, writer = os.pipe()
        os.set_blocking(reader, False)
        thread = threading.Thread(target=write, args=(writer,))
        thread.start()
        with open(reader, "rb", buffering) as stream:
            same_batches(everything(packs.open_packs(stream)),
                         everything(packs.open_packs(path)))
        thread.join()
    try:
        packs.open_packs(NeverReady())
    except BlockingIOError as error:
        assert "fileno" in str(error), error
        return
    raise AssertionError("not refused")


def stdin(path):
    """Standard input yields the same as the file."""
    same_batches(everything(packs.open_packs(sys.stdin.buffer)),
                 everything(packs.open_packs(path)))


def prompt(path):
    """A batch is available when its blocks are, before END; in a stream with
    blocks of two packs."""
    data = contents(path)
    reader, writer = os.pipe()
    with open(reader, "rb") as stream:
        ends = [block.end for block in blocks_of(data)]
        os.write(writer, data[:ends[0] + 5])
        batches = packs.open_packs(stream).batches(1)
        assert [next(batches)["index"][0] for _ in range(2)] == [0, 1]
        os.write(writer, data[ends[0] + 5:ends[1]])
        assert [next(batches)["index"][0] for _ in range(2)] == [2, 3]
        os.close(writer)


def tokens_of(batches):
    return [bytes(row) for batch in batches for row in batch["tokens"]]


def shares(path):
    """Ranks get each record once, and resume anywhere; file and pipe agree."""
    data, source = contents(path), packs.open_packs(path)
    whole = tokens_of(source.batches(1))
    assert len(whole) == len(source)
    for ranks, rank in ((r, i) for r in (1, 2, 3, 7, 50) for i in range(r)):
        for start in (0, 1, 4, len(whole) - 1, len(whole), 99):
            wanted = [row for i, row in enumerate(whole)
                      if i % ranks == rank and i >= start]
            pipe = packs.open_packs(io.BytesIO(data))
            for origin in (source, pipe):
                found = tokens_of(origin.batches(3, rank, ranks, start))
                assert found == wanted, (rank, ranks, start)
    pair = zip(source.batches(2), source.batches(2))
    assert all((one["index"] == other["index"]).all() for one, other in pair)


def equal_ranks(path):
    """With drop_last all ranks have equally many batches, all full: from
    files, also permuted, and from pipes in any pieces."""
    data, source = contents(path), packs.open_packs(path)
    order = np.random.default_rng(5).permutation(len(source))
    for size, ranks, start in itertools.product((1, 2, 3), (1, 2, 5),
                                                (0, 1, 4, 99)):
        wanted = max(0, len(source) - start) // (size * ranks)
        for rank in range(ranks):
            whole = list(source.batches(size, rank, ranks, start))
            for origin in (source, packs.open_packs(io.BytesIO(data)),
                           packs.open_packs(Dribble(data, [700, 1, 2999]))):
                found = list(origin.batches(size, rank, ranks, start,
                                            drop_last=True))
                assert len(found) == wanted, (size, rank, ranks, start)
                same_batches(found, whole[:wanted])
            found = list(source.batches(size, rank, ranks, start, order,
                                        True))
            assert [len(batch["index"]) for batch in found] == [size] * wanted


def orders(path):
    """Permutations, their ranks and resumption; single records."""
    source = packs.open_packs(path)
    whole = tokens_of(source.batches(1))
    # The numbers of epoch-t.c.
    assert packs.shuffled(10, 7, 1).tolist() == [3, 7, 8, 6, 0, 4, 1, 2, 9, 5]
    assert packs.shuffled(10, 7, 1, 4, 6).tolist() == [0, 4]
    assert packs.shuffled(10**6, 7, 1, 0, 1).tolist() == [439635]
    for n in (0, 1, 2, 63, 64, 65, 300):
        assert sorted(packs.shuffled(n, 2**64 - 1, n)) == list(range(n))
    order = packs.shuffled(len(source), 7, 0)
    for ranks in (1, 3):
        for rank in range(ranks):
            found = tokens_of(source.batches(2, rank, ranks, 2, order=order))
            assert found == [whole[i] for k, i in enumerate(order)
                             if k % ranks == rank and k >= 2]
    assert tokens_of([source.take([5, 0, 5])]) == [whole[i] for i in (5, 0, 5)]
    for wrong in ([-1], [len(source)]):
        try:
            source.take(wrong)
        except IndexError:
            continue
        raise AssertionError("there is no such record")


def arguments(path):
    """Invalid arguments, and a pipe that was already read."""
    source = packs.open_packs(path)
    pipe = packs.open_packs(io.BytesIO(contents(path)))
    everything(pipe)
    fresh = packs.open_packs(io.BytesIO(contents(path)))
    for origin, options in ((source, {"size": 0}), (pipe, {"size": 1}),
                            (source, {"size": 1, "rank": 2, "ranks": 2}),
                            (source, {"size": 1, "rank": -1}),
                            (source, {"size": 1, "start": -1}),
                            (fresh, {"size": 1, "order": np.arange(2)})):
        try:
            list(origin.batches(**options))
        except ValueError as error:
            assert not isinstance(error, packs.PackError), options
            continue
        raise AssertionError(options)


def too_large():
    """Boundaries that int32 cannot hold."""
    batch = {"cu": np.array([[0, 2**30, 2**30]] * 2, np.int32),
             "n_seq": np.ones(2, np.uint32)}
    try:
        packviews.merged_cu(batch)
    except OverflowError:
        return
    raise AssertionError("not refused")


def cuts(path, whole=""):
    """Truncated at any byte, the stream is refused, except where streams were
    joined, at one of the bytes `whole`; cuts before the first of these are
    those of the first stream alone."""
    data, ends = contents(path), [int(n) for n in whole.split()]
    for end in range(min(ends, default=0), len(data)):
        if end not in ends:
            refused_both(data[:end], "truncated" if end else "empty", None)
    assert refused(io.BytesIO(data[:-1]), "no END").startswith(
        "byte %d: " % (len(data) - 1))
    refused_both(data + b"x", "", None)


def flips(path):
    """Any flipped bit is found, with checksums."""
    data = contents(path)
    assert packs.open_packs(path).verifies is True
    assert packs.open_packs(path, verify=False).verifies is False
    for at in range(len(data)):
        bad = bytearray(data)
        bad[at] ^= 1 << at % 8
        refused_both(bytes(bad), "")


def poked(data, at, code, *values):
    bad = bytearray(data)
    struct.pack_into("<" + code, bad, at, *values)
    return bytes(bad)


def rules(path):
    """Damage that can be detected without checksums is; in packs of 8 tokens
    and 3 sequences, two in a block."""
    data = contents(path)
    first, second, *_, end = blocks_of(data)
    assert first.n_packs == 2 and second.kind == 0
    capacity, depth = struct.unpack_from("<2I", data, 48)
    assert (capacity, depth) == (8, 3)
    head = first.heads + 40
    n = struct.unpack_from("<I", data, head + 12)[0]
    seq = first.seqs + 16 * struct.unpack_from("<I", data, head + 8)[0]
    assert n == 3

    def bad(*changes):
        made = bytearray(data)
        for at, code, *values in changes:
            struct.pack_into("<" + code, made, at, *values)
        return bytes(made)

    for change in (
            (head + 8, "I", 0), (head + 8, "I", 2**32 - 1),
            (head + 12, "I", 0), (head + 12, "I", depth + 1),
            (head + 12, "I", 2), (head + 12, "I", 2**31),
            (head + 12, "I", 2**32 - 1), (head + 16, "I", 0),
            (head + 20, "I", 1), (seq + 8, "i", 1), (seq + 8, "i", -1),
            (seq + 24, "i", 0), (seq + 24, "i", capacity + 1),
            (seq + 24, "i", -2**31), (seq + 12, "i", 0), (seq + 12, "i", -1),
            (seq + 12, "i", 2**31 - 1), (seq + 44, "i", 2**31 - 1)):
        refused_both(bad(change), "pack 1 in the block at byte 4096: damaged",
                     verify=False)
    # A sequence of 0 or -1 tokens; one beyond the capacity; a start that
    # is the next pack's.  All sums agree.
    for n_tok, longest, *rows in (
            (3, 3, 0, 3, 3, 0, 3, 0), (3, 4, 0, 4, 4, -1, 3, 0),
            (9, 4, 0, 4, 4, 4, 8, 1), (2**31 - 1, 2**31 - 1, 0, 2**31 - 1,
                                       2**31 - 1, 1, -2**31, 2**31 - 1),
            (0, 5, 0, 5, -3, 3, 0, 0), (0, 5, 0, 5, 5, 1, -6, 6)):
        refused_both(bad((head + 16, "2I", n_tok, longest), *(
            (seq + 16 * i + 8, "2i", *rows[2 * i:2 * i + 2])
            for i in range(3))), "pack 1 in the block at byte 4096: damaged",
            verify=False)
    for at, code, value in (
            (0, "I", 1), (4, "I", 1), (4, "I", 3), (8, "I", 0), (8, "I", 1),
            (8, "I", 3), (12, "I", 0), (12, "I", 2**32 - 1), (16, "Q", 1),
            (24, "Q", 0), (24, "Q", 64), (24, "Q", 2**64 - 64),
            (24, "Q", first.size + 64)):
        refused_both(bad((first.at + at, code, value)), "", verify=False)
    for at, code, value in (
            (8, "I", 2), (16, "Q", 0), (16, "Q", 2**63), (16, "Q", 2**64 - 1)):
        refused_both(bad((second.at + at, code, value)), "", second.at,
                     verify=False)
    refused_both(bad((first.end - 1, "B", 1)), "not zero", 4096, verify=False)
    ends(data, end, bad)


def unowned(path):
    """A sequence row of no pack, after that of the only pack."""
    data = contents(path)
    block = blocks_of(data)[0]
    n_tok, = struct.unpack_from("<I", data, block.seqs + 12)
    refused_both(poked(data, block.heads + 12, "3I", 1, n_tok, n_tok),
                 "pack 0 in the block at byte 4096: damaged", verify=False)


def ends(data, end, bad):
    """END with other numbers, or another index."""
    packs_in, = struct.unpack_from("<Q", data, end.at + 64)
    for at, code, value in (
            (4, "I", 0), (4, "I", 2), (8, "I", 1), (16, "Q", packs_in - 1),
            (24, "Q", end.size + 64), (64, "Q", 1), (72, "Q", 1),
            (80, "Q", 1), (184, "I", 1), (184, "I", 2**32 - 1),
            (188, "I", 1), (188, "I", 2**32 - 1), (192, "Q", 0),
            (192, "Q", 4096 + 64), (200, "Q", 1), (216, "Q", 4096),
            (216, "Q", end.at), (216, "Q", 2**64 - 64), (224, "Q", 0),
            (224, "Q", 1), (224, "Q", packs_in), (224, "Q", 2**64 - 1),
            (end.size - 24, "Q", 0), (end.size - 24, "Q", 2**64 - 64),
            (end.size - 16, "Q", 64), (end.size - 16, "Q", 2**64 - 64),
            (end.size - 8, "Q", 0)):
        refused_both(bad((end.at + at, code, value)), "", verify=False)
    known = bad((24, "Q", packs_in))
    everything(packs.open_packs(io.BytesIO(known), verify=False))
    refused_both(bad((24, "Q", packs_in + 1)), "the header's", end.at,
                 verify=False)


def indexed(path):
    """A stream with more blocks than fit in one part of the index, INDEX
    blocks included: in any order, and in pieces of the stream alone."""
    data, source = contents(path), packs.open_packs(path)
    kinds = [block.kind for block in blocks_of(data)]
    assert kinds.count(2) == 2 and kinds[4096] == 2, kinds.count(0)
    assert not set(source.streams[0].tables) - {2}
    whole = next(source.batches(len(source)))
    pipe = next(packs.open_packs(io.BytesIO(data)).batches(len(source)))
    same_batches([pipe], [whole])
    order = np.random.default_rng(1).permutation(len(source))[:200]
    fresh = packs.open_packs(path)
    equal(fresh.take([4100])["tokens"], whole["tokens"][4100:4101])
    assert set(fresh.streams[0].tables) == {1, 2}
    found = fresh.take(order)
    equal(found["index"], order)
    for name in found:
        equal(found[name], whole[name][order])
    found = list(fresh.batches(40, 1, 30, 4000))
    equal(np.concatenate([batch["index"] for batch in found]),
          np.arange(len(source))[4021::30])
    block = [block for block in blocks_of(data) if block.kind == 2][0]
    for at, code, value in ((4, "I", 0), (16, "Q", 4095), (24, "Q", 64),
                            (64, "Q", 0), (64 + 24, "Q", 4096),
                            (64 + 32, "Q", 9), (64 + 32, "Q", 2**64 - 1),
                            (64 + 24 * 4095, "Q", 2**64 - 64)):
        refused_both(poked(data, block.at + at, code, value), "",
                     verify=False)
    if source.verifies:
        for at in range(0, 98368, 997 if os.environ.get("LONG") else 9973):
            refused_both(poked(data, block.at + at, "B", data[
                block.at + at] ^ 1), "")


def lengths(path):
    """Lengths that do not fit their slots are noticed without checksums; in
    packs of 12 tokens and 3 sequences that are aligned to 4.  The first pack
    has sequences of 3 and 5 tokens."""
    data = contents(path)
    head = packs.open_packs(path).header
    assert (head.capacity, head.depth, head.align) == (12, 9 // 3, 4)
    block = blocks_of(data)[0]
    seq = block.seqs
    assert struct.unpack_from("<8x2i8x2i", data, seq) == (0, 3, 4, 5)
    for n_tok, longest, *rows in (
            (8, 8, 0, 0, 4, 8), (8, 4, 0, 4, 4, 4), (7, 5, 0, 3, 4, 5),
            (8, 5, 0, 3, 3, 5), (10, 5, 0, 5, 4, 5), (8, 9, 0, -1, 0, 9),
            (13, 9, 0, 4, 4, 9), (8, 5, 0, 3, 4, 5 - 2**31),
            (8, 5, 4, 3, 8, 5), (8, 2**31 - 1, 0, 2**31 - 1, 4, 5)):
        bad = poked(data, block.heads + 16, "2I", n_tok, longest)
        bad = poked(bad, seq + 8, "2i8x2i", *rows)
        if bad != data and rows != [0, 4, 4, 4]:
            refused_both(bad, "pack 0 in the block at byte 4096: damaged",
                         verify=False)
    for at, code, value, why in (
            (180, "I", 0, "range"), (180, "I", 1, "range"),
            (180, "I", 5, "range"), (180, "I", 24, "range"),
            (80, "Q", 3, "features"), (80, "Q", 2, "features")):
        refused_both(poked(data, at, code, value), why, 0, verify=False)


def headers(path):
    """Headers that are refused on reading."""
    data = contents(path)
    dtype = data[2048:4088].rstrip(b"\n\0")

    row, sequence = dtype.splitlines()
    objects = ast.literal_eval(sequence.decode())
    objects["formats"][objects["names"].index("seq_id")] = "O"

    def with_dtype(text):
        return data[:2048] + text.ljust(2040, b"\0") + data[4088:]

    refused_both(b"", "the input is empty", 0)
    refused("/dev/null", "the input is empty")
    refused_both(b"\x28\xb5\x2f\xfd" + data, "zstd -dc", 0)
    refused_both(b"token records", "not a pack stream", 0)
    for at, code, value, why in (
            (8, "I", 0x04030201, "damaged"), (12, "H", 3, "version 3"),
            (12, "H", 0, "version 0"),
            (12, "H", 1, "pack stream format 1 is no longer supported: pack "
                 "the token records again"),
            (16, "I", 8192, "damaged"), (80, "Q", 4, "features"),
            (20, "I", 0, "range"), (20, "I", 2**31, "range"),
            (20, "I", 20, "range"), (20, "I", 24, "dtype"),
            (48, "I", 0, "range"), (48, "I", 9, "'tokens'"),
            (48, "I", 7, "dtype"), (48, "I", 2**32 - 1, "range"),
            (52, "I", 9, "range"), (52, "I", 2**32 - 1, "range"),
            (120, "B", 4, "no 'tokens'"), (120, "B", 3, "range"),
            (184, "I", 0, "range"), (184, "I", 8, "range"),
            (184, "I", 24, "dtype"), (184, "I", 2**32 - 8, "range"),
            (188, "I", 0, "range"), (188, "I", 3, "range"),
            (188, "I", 1 << 17, "range"), (192, "Q", 2**63, "range")):
        refused_both(poked(data, at, code, value), why, 0, verify=False)
    for text in (b"", b"(" * 2040, b"-" * 2000 + b"1", b"'u1'", b"\xff",
                 b"__import__('os')", row + b"\n" + repr(objects).encode(),
                 dtype.replace(b"'<u2'", b"'O'"), row, row + b"\n",
                 b"'M8[1s/0]'", b"{'names':['a'],'formats':['M8[1s/0]']}",
                 b"{'names':['a'],'formats':['u4'],'itemsize':%d}" % 2**99,
                 dtype + b"\n ", dtype.replace(b"tokens", b"tikens"),
                 dtype.replace(b"'seq_id'", b"'id'"), dtype[:-1],
                 dtype.replace(b"<i4", b"<u4"), sequence + b"\n" + row,
                 dtype.replace(b"'seq_start'", b"'seq_tok'")):
        refused_both(with_dtype(text), "dtype", 0, verify=False)


def tables(path):
    """Invalid field tables; the text of the dtype is unchanged."""
    data = contents(path)
    names = [data[at:at + 24].rstrip(b"\0") for at in range(256, 512, 64)]
    assert names == [b"tokens", b"seq_id", b"seq_start", b"seq_tok"]

    def entry(number, place, code, value):
        return poked(data, 256 + 64 * number + place, code, value)

    for bad in (
            poked(data, 200, "I", 3), poked(data, 200, "I", 5),
            poked(data, 200, "I", 29), poked(data, 200, "I", 2**32 - 1),
            entry(1, 0, "24s", b"seq_start"), entry(1, 0, "24s", b"index"),
            entry(1, 0, "24s", b"cu"), entry(1, 0, "24s", b"n_tok"),
            entry(1, 0, "24s", b"seq_ie"), entry(1, 0, "24s", b"1"),
            entry(1, 0, "24s", b""), entry(1, 0, "24s", b"seq_id\0x"),
            entry(1, 0, "24s", b"x" * 24), entry(1, 0, "24s", b"i'd"),
            entry(1, 0, "24s", b"\xc3\xa4"),
            entry(1, 24, "B", 0), entry(1, 24, "B", 9), entry(1, 24, "B", 7),
            entry(1, 25, "B", 0), entry(1, 25, "B", 1), entry(1, 25, "B", 3),
            entry(0, 28, "I", 2), entry(0, 28, "I", 2**32 - 2),
            entry(1, 28, "I", 8), entry(1, 28, "I", 1),
            entry(2, 28, "I", 0), entry(2, 28, "I", 10),
            entry(2, 28, "I", 12), entry(3, 28, "I", 8),
            entry(3, 28, "I", 16), entry(3, 28, "I", 2**32 - 4),
            entry(0, 32, "I", 0), entry(1, 32, "I", 0), entry(0, 32, "I", 2),
            entry(1, 32, "I", 2), entry(3, 32, "I", 2),
            entry(3, 32, "I", 16385), entry(1, 32, "I", 2**32 - 1)):
        refused_both(bad, "table", 0, verify=False)
    # A later version may write anything there; it is not needed.
    later = poked(data[:2048] + b"'M8[1s/0]'".ljust(2040, b"\0") +
                  data[4088:], 14, "H", 1)
    with open("later.pks", "wb") as file:
        file.write(later)
    for source in ("later.pks", io.BytesIO(later)):
        same_batches(everything(packs.open_packs(source, verify=False)),
                     everything(packs.open_packs(path)))


def joined(path, other, difference):
    """Joined streams must agree in geometry; the error names the
    difference."""
    first, second = contents(path), contents(other)
    refused_both(first + second, "geometry", len(first), verify=False)
    message = refused(io.BytesIO(first + second), "geometry")
    assert message.endswith("than the first: " + difference), message


def swapped(one, other):
    """Packs of another stream are noticed by the digest: the two agree in
    everything that can be counted."""
    first, second = contents(one), contents(other)
    end = blocks_of(first)[0].end
    mixed = first[:4096] + second[4096:end] + first[end:]
    refused_both(mixed, "not those of END", 4096)


def resumed(path, whole, start):
    """A stream that begins with the block of pack `start` is read from there
    on; its blocks have two packs."""
    data, start = contents(path), int(start)
    rest = packs.open_packs(io.BytesIO(data)).batches(2, start=start)
    same_batches(list(rest), list(packs.open_packs(whole).batches(
        2, start=start)))
    refused(io.BytesIO(data), "it starts with pack %d" % (start // 2 * 2))
    refused(path, "index")
    blocks = blocks_of(data)
    head = io.BytesIO(poked(data, blocks[1].heads + 12, "I", 0))
    block = io.BytesIO(poked(data, blocks[1].at + 16, "Q", 0))
    for bad, wanted in ((head, "pack %d in the block at byte %d: damaged" % (
            start // 2 * 2 + 2, blocks[1].at)),
                        (block, "block at byte %d: " % blocks[1].at)):
        try:
            list(packs.open_packs(bad, verify=False).batches(1, start=start))
        except packs.PackError as error:
            assert str(error).startswith(wanted), error
            continue
        raise AssertionError("not refused")


def unverified(path):
    """Without xxhash no checksum is compared, and the reader shows it."""
    assert packs.open_packs(path).verifies is False
    data = contents(path)
    assert len(everything(packs.open_packs(io.BytesIO(data)))) > 0
    refused_both(data[:-1], "truncated")
    head = blocks_of(data)[0].heads
    everything(packs.open_packs(io.BytesIO(poked(data, head, "Q", 1))))


def maxtext(path, capacity, depth, align="1"):
    """The features for JAX trainers compared with loops."""
    from packstream import maxtext
    source = packs.open_packs(path)
    packed = read_naively(path, len(source))
    for number, batch in zip(range(0, len(packed), 3), source.batches(3)):
        naive = Naive(packed[number:number + 3], int(capacity), int(depth),
                      int(align))
        wanted = {
            "inputs": naive.per_token("input_ids", 0),
            "inputs_position": naive.each_place(lambda i, k, ids: k,
                                                lambda k: 0),
            "inputs_segmentation": naive.segments(),
            "targets": naive.each_place(
                lambda i, k, ids: (ids + [0])[k + 1], lambda k: 0),
            "targets_segmentation": naive.each_place(
                lambda i, k, ids: i + 1 if k + 1 < len(ids) else 0,
                lambda k: 0)}
        wanted["targets_position"] = wanted["inputs_position"]
        found = maxtext.features(batch, "tokens")
        assert sorted(found) == sorted(wanted)
        for name, rows in wanted.items():
            equal(found[name], rows, np.int32)


if __name__ == "__main__":
    globals()[sys.argv[1]](*sys.argv[2:])
