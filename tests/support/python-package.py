"""python-package.py - the Python package as installed: files in any order,
packers and writers, compared with the input.

tests/tree/wheel.bats calls the functions at the end by name:

    python3 python-package.py CHECK [ARGUMENT]...

A check prints nothing and exits with 0, or fails with a traceback.

SPDX-License-Identifier: MIT
"""

import gc
import io
import itertools
import json
import os
import pickle
import random
import shutil
import struct
import subprocess
import sys
import threading
import warnings

if os.environ.get("WITHOUT_XXHASH"):
    sys.modules["xxhash"] = None

import numpy as np

import packstream
from packstream import native, packs as pure, views
from packstream.header import read_header
from packstream.library import lib
from packformat import hash_of
from python_naive import raises

CHANNELS = {"labels": packstream.Channel("int32", -100),
            "source": packstream.Channel("uint32", 7, "sequence"),
            "weight": packstream.Channel("f4", 0.5)}


def sequences(n=500, longest=64, vocab=60000, seed=1):
    """Sequences with all channels, as dictionaries."""
    rng = np.random.default_rng(seed)
    return [{"tokens": (tokens := rng.integers(0, vocab, length)),
             "labels": tokens - 5, "weight": tokens / 8, "source": i * 3}
            for i, length in enumerate(rng.integers(1, longest + 1, n))]


def as_columns(given):
    """The same as columns."""
    offsets = np.cumsum([0] + [len(one["tokens"]) for one in given])
    return packstream.Columns(offsets, {
        name: np.array([one[name] for one in given]) if name == "source"
        else np.concatenate([one[name] for one in given])
        for name in ("tokens", *CHANNELS)})


def found_in(batches):
    """The sequences of packs by their numbers; each must occur once."""
    found = {}
    for batch in batches:
        for row in range(len(batch["tokens"])):
            n = batch["n_seq"][row]
            assert (batch["seq_id"][row][n:] == 2**64 - 1).all()
            for k in range(n):
                begin, end = batch["cu"][row][k:k + 2]
                number = int(batch["seq_id"][row][k])
                assert number not in found
                found[number] = {
                    name: batch[name][row][k] if name == "source"
                    else batch[name][row][begin:end].copy()
                    for name in ("tokens", *CHANNELS) if name in batch}
    return found


def check_found(batches, given):
    found = found_in(batches)
    assert sorted(found) == list(range(len(given))), sorted(found)[:9]
    for number, one in found.items():
        for name, values in one.items():
            assert (values == given[number][name]).all(), (number, name)


# ---------------------------------------------------------------------
# Packers

def packer():
    given = sequences()
    for size, way in itertools.product((1, 7), ("one", "columns", "mixed")):
        p = packstream.Packer(64, depth=6, window=100, channels=CHANNELS)
        source = {"one": given, "columns": [as_columns(given)],
                  "mixed": [*given[:3], as_columns(given[3:50]),
                            *given[50:]]}[way]
        batches = list(p.pack(source, size))
        assert all(len(b["tokens"]) == size for b in batches[:-1])
        check_found(batches, given)
        last = batches[-1]
        assert (last["labels"][-1][last["n_tok"][-1]:] == -100).all()
        assert (last["weight"][-1][last["n_tok"][-1]:] == 0.5).all()
        assert p.totals["packs"] == sum(len(b["tokens"]) for b in batches)
        assert p.totals["input_sequences"] == len(given)
        assert p.header.capacity == 64 and p.header.depth == 6


def packer_is_packstream(program):
    """A packer returns the bytes that the program writes."""
    given = [one["tokens"] for one in sequences(3000)]
    with packstream.TokenWriter("x.tok", vocab_size=60000) as writer:
        for tokens in given:
            writer.write(tokens)
    for options, asked in (
            ([], {}), (["-d5"], {"depth": 5}),
            (["-w50", "-abestfit"], {"window": 50, "policy": "bestfit"}),
            (["--align=8"], {"align": 8}),
            (["-aconcat"], {"policy": "concat"})):
        subprocess.run([program, "-q", "-L64", *options, "-o", "x.pks",
                        "x.tok"], check=True)
        wanted = packstream.open("x.pks")
        p = packstream.Packer(64, vocab_size=60000, **asked)
        batches = list(p.pack(given, 1 << 20))
        assert len(batches) == 1
        whole = wanted[:]
        for name in batches[0]:
            assert (batches[0][name] == whole[name]).all(), (options, name)
        os.unlink("x.pks")


def packer_steps():
    """put, packs, drain and finish; after that, only errors."""
    given = sequences(300)
    p = packstream.Packer(64, depth=4, window=40, channels=CHANNELS)
    assert p.packs() is None and p.header is None or p.header
    batches = []
    for i, one in enumerate(given):
        p.put(one)
        if i % 50 == 0:
            batches.append(p.packs())
        if i == 120:
            batches.append(p.drain())
            assert p.totals["sequences"] == 121
            assert p.drain() is None
    batches.append(p.finish())
    check_found([b for b in batches if b is not None], given)
    raises(ValueError, "finished", p.put, given[0])
    raises(ValueError, "ended", p.finish)


def packer_after_failure():
    """Sequences put before an iterable failed are not lost, nor are packs that
    an abandoned loop had not taken."""
    given = sequences(300)

    def some():
        yield from given
        raise KeyError("no more")

    for size in (1, 7, 50):
        p, batches = packstream.Packer(64, window=40, channels=CHANNELS), []
        try:
            for batch in p.pack(some(), size):
                batches.append(batch)
        except KeyError:
            batches.append(p.finish())
        n = p.totals["input_sequences"]
        assert n > len(given) - 32
        check_found(batches, given[:n])
        p = packstream.Packer(64, window=10, channels=CHANNELS)
        batches = [next(p.pack([as_columns(given)], size))]
        assert len(batches[0]["tokens"]) == size
        batches.append(p.finish())
        n = p.totals["input_sequences"]
        check_found(batches, given[:n])


def packer_at_once():
    """A pack is available as soon as it is decided, before the input ends."""
    taken = []

    def endless():
        for i in itertools.count():
            taken.append(i)
            yield np.full(10, i % 100)

    batches = packstream.Packer(100, window=20).pack(endless())
    for _ in range(5):
        assert (next(batches)["n_tok"] == 100).all()
    assert len(taken) < 100


def packer_resumes():
    given = [one["tokens"] for one in sequences(2000)]
    for asked in ({}, {"depth": 4, "order": "shuffle", "seed": 3}):
        def make():
            return packstream.Packer(64, window=100, vocab_size=60000,
                                     **asked)
        whole = next(make().pack(given, 1 << 20))["tokens"]
        p, parts, chance, i, due = make(), [], random.Random(5), 0, 0
        while i < len(given):
            p.put(given[i])
            i += 1
            if i > due and chance.random() < 0.01:
                batch = p.packs()
                parts += [] if batch is None else [batch["tokens"]]
                state, due = p.save(), i
                p = make()
                i = p.resume(state)
        batch = p.finish()
        parts.append(batch["tokens"])
        assert (np.concatenate(parts) == whole).all()
    raises(ValueError, "not 5", packstream.Packer(
        64, window=100, vocab_size=60000, depth=5).resume, state)
    raises(packstream.PackError, "state", make().resume, b"x" * 100)
    p = make()              # continues as if it had not been asked to
    p.put(given[0])
    other = packstream.Packer(32, window=1)
    for _ in range(9):
        other.put([1] * 20)
    raises(ValueError, "capacity 32, not 64", p.resume, other.save())
    p.put(given[1])
    assert p.finish()["n_tok"].sum() == len(given[0]) + len(given[1])


def packer_learns():
    """A histogram changes the packs and is kept with the packer, which
    reopens the stream to resume."""
    given = [one["tokens"] for one in sequences()]
    found = []
    for counts in (None, {64: 1000, 1: 1}):
        packer = packstream.Packer(64, window=50, learn_from=counts)
        gc.collect()
        assert packer.resume(packer.save()) == 0
        batch = next(packer.pack(given, 1 << 20))
        assert batch["n_tok"].sum() == sum(map(len, given))
        found.append(batch["tokens"].tobytes())
    assert found[0] != found[1]
    raises(ValueError, "is empty", packstream.Packer, 64, learn_from={})
    raises(ValueError, "length of 0", packstream.Packer, 64,
           learn_from={0: 1})


def packer_budgets():
    """The sums of each pack are within the budgets, which its header has."""
    tiles = {"tiles": packstream.Channel("int64", per="sequence")}
    given = [{"tokens": [7] * (1 + i * 7 % 40), "tiles": i * i % 9}
             for i in range(600)]
    packer = packstream.Packer(64, channels=tiles,
                               budget={"tiles": 12, "attention": 1600})
    batch = next(packer.pack(given, 1 << 20))
    assert dict(packer.header.budgets) == {"tiles": 12, "attention": 1600}
    assert int(batch["n_seq"].sum()) == 600
    for pack, n in enumerate(batch["n_seq"]):
        ids = batch["seq_id"][pack, :n].tolist()
        assert sum(given[i]["tiles"] for i in ids) <= 12
        assert sum(len(given[i]["tokens"]) ** 2 for i in ids) <= 1600
    raises(packstream.PackError, "tiles is 7, but a pack can hold 0 to 6",
           lambda: list(packstream.Packer(64, channels=tiles, budget={
               "tiles": 6}).pack(given, 1)))


def packer_groups():
    """Sequences of a group are neighbours in one pack, also after a resume."""
    pair = {"pair": packstream.Channel("int64", per="sequence")}
    given = [{"tokens": [i + 1] * (1 + i * 7 % 20), "pair": i // 3}
             for i in range(300)]

    def make():
        return packstream.Packer(64, window=20, group="pair", channels=pair)
    whole = make()
    batch = next(whole.pack(given, 1 << 20))
    packs = {}
    for pack, (ids, n) in enumerate(zip(batch["seq_id"], batch["n_seq"])):
        for place, i in enumerate(ids[:n].tolist()):
            packs.setdefault(i // 3, []).append((pack, place, i))
    assert len(packs) == 100
    for found in packs.values():
        assert found == [(found[0][0], found[0][1] + k, found[0][2] + k)
                         for k in range(3)]
    first, second = make(), make()
    parts = []
    for one in given[:151]:
        first.put(one)
    parts = [first.packs()]
    start = second.resume(first.save())
    for one in given[start:]:
        second.put(one)
    parts.append(second.finish())
    assert (np.concatenate([part["tokens"] for part in parts]) ==
            batch["tokens"]).all()
    raises(ValueError, "no channel 'row'", packstream.Packer, 64, group="row",
           channels=pair)
    raises(packstream.PackError, "its group, which starts at record 0",
           lambda: list(packstream.Packer(
               64, group="pair", channels=pair).pack(
                   [{"tokens": [1] * 40, "pair": 1}] * 2)))
    packer = packstream.Packer(64, group="pair", channels=pair)
    packer.put({"tokens": [1] * 40, "pair": 1})
    raises(packstream.PackError, "use overlong=", packer.put,
           {"tokens": [1] * 40, "pair": 1})
    assert packer.finish()["n_tok"].tolist() == [40]


def packer_refuses():
    Packer = packstream.Packer
    raises(ValueError, "capacity", Packer, 0)
    raises(ValueError, "capacity", Packer, 1 << 40)
    raises(ValueError, "window", Packer, 8, window=1 << 25)
    raises(ValueError, "policy", Packer, 8, policy="best")
    raises(ValueError, "overlong", Packer, 8, overlong="cut")
    raises(ValueError, "uint16 or uint32", Packer, 8, dtype="int64")
    raises(ValueError, "elements are", Packer, 8, channels={"x": "int8"})
    raises(ValueError, "name", Packer, 8, channels={"": "uint8"})
    raises(ValueError, "name", Packer, 8, channels={"x" * 24: "uint8"})
    raises(ValueError, "does not fit", Packer, 8, channels={
        "x": packstream.Channel("uint8", 256)})
    raises(ValueError, "", Packer, 8, channels={"tokens": "uint8"})
    raises(TypeError, "", Packer, 8, depht=3)
    p = Packer(8, vocab_size=100, channels={"labels": "int32"})
    raises(ValueError, "labels", p.put, [1, 2])
    raises(ValueError, "vocabulary", p.put, {"tokens": [100], "labels": [1]})
    raises(ValueError, "fit", p.put, {"tokens": [-1], "labels": [1]})
    raises(ValueError, "fit", p.put, {"tokens": [1], "labels": [1 << 31]})
    raises(ValueError, "become", p.put, {"tokens": [1.5], "labels": [1]})
    raises(ValueError, "shape", p.put, {"tokens": [[1]], "labels": [1]})
    raises(ValueError, "1 values for 2 tokens", p.put,
           {"tokens": [1, 2], "labels": [1]})
    raises(packstream.PackError, "sequence 0: 9 tokens", p.put,
           {"tokens": range(9), "labels": range(9)})
    raises(ValueError, "ascend", p.put, packstream.Columns(
        np.array([0, 2, 1]), {"tokens": np.ones(2, int),
                              "labels": np.ones(2, int)}))
    raises(ValueError, "offsets", p.put, packstream.Columns(
        np.array([0, 1.5]), {"tokens": np.ones(2, int),
                             "labels": np.ones(2, int)}))
    raises(ValueError, "name", Packer, 8, channels={"x\0y": "uint8"})
    raises(ValueError, "vocab_size", Packer, 8, vocab_size=-1)
    raises(ValueError, "special", packstream.TokenWriter, "x.tok",
           special={"end": 1})
    raises(ValueError, "special", packstream.TokenWriter, "x.tok",
           special={"pad": -1})
    good = {"labels": [2], "tokens": [1]}
    for wrong in ({"tokens": [100], "labels": [1]}, {"tokens": [1]}, [1], None,
                  {"tokens": [[1]], "labels": [[1]]},
                  {"tokens": 1, "labels": 1},
                  {"tokens": [1, 2], "labels": [1]}):
        some = Packer(8, vocab_size=100, channels={"labels": "int32"})
        raises(ValueError, "", list, some.pack([good, good, wrong, good]))
        assert some.totals["input_sequences"] == 2, (wrong, some.totals)
    p.put(good)
    p.put({"tokens": [], "labels": []})
    assert p.totals["rejected_sequences"] == 1
    batch = p.finish()
    assert batch["tokens"][0].tolist() == [1] + [0] * 7
    p = Packer(8, overlong="split")
    p.put(np.arange(20))
    assert sorted(p.finish()["n_tok"]) == [4, 8, 8]


def packer_lost():
    """Deleting a packer with sequences inside prints how many; after finish,
    drain or save it prints nothing.  30 sequences make 4 packs of 6; the
    others are in the window."""
    def filled(n, *calls, **options):
        p = packstream.Packer(64, window=10, **options)
        for _ in range(n):
            p.put([1] * 10)
        for call in calls:
            getattr(p, call)()
        return p

    def put(p, sequence):
        p.put(sequence)
        return p

    def packing(take):
        p = packstream.Packer(64, window=10)
        given = packstream.Columns(np.arange(0, 301, 10),
                                   {"tokens": np.ones(300, int)})
        for batch in itertools.islice(p.pack([given]), take):
            assert batch["n_seq"] == 6
        return p

    def resumed(n, more):
        """From a state saved after n sequences."""
        p = filled(n, "packs")
        state = p.save()
        p = packstream.Packer(64, window=10)
        for _ in range(p.resume(state), n):
            p.put([1] * 10)
        p.packs()
        return filled_more(p, more)

    def filled_more(p, more):
        for _ in range(more):
            p.put([1] * 10)
        return p

    for make, sequences, tokens in (
            (lambda: filled(0), 0, 0),
            (lambda: filled(7), 7, 70),
            (lambda: filled(30), 30, 300),
            (lambda: filled(30, "packs"), 6, 60),
            (lambda: filled(30, "drain"), 0, 0),
            (lambda: filled(30, "finish"), 0, 0),
            (lambda: put(filled(0), []), 0, 0),
            (lambda: put(filled(1, overlong="split"), [1] * 100), 3, 110),
            (lambda: packing(1), 24, 240),
            (lambda: packing(9), 0, 0),
            (lambda: filled(7, "save"), 0, 0),
            (lambda: filled(30, "packs", "save"), 0, 0),
            (lambda: filled(30, "save"), 24, 240),      # its packs
            (lambda: filled_more(filled(30, "packs", "save"), 1), 7, 70),
            (lambda: resumed(7, 0), 7, 70),     # the state was blank
            (lambda: resumed(30, 0), 0, 0),
            (lambda: resumed(30, 1), 7, 70)):
        with warnings.catch_warnings(record=True) as found:
            warnings.simplefilter("always")
            make()
            gc.collect()
        wanted = ["Packer deleted with %d sequences (%d tokens) that were not "
                  "returned" % (sequences, tokens)] if tokens else []
        assert [str(w.message).split(";")[0] for w in found] == wanted, (
            wanted, [str(w.message) for w in found])
        assert all(w.category is ResourceWarning for w in found)

    told = subprocess.run(
        [sys.executable, "-Wdefault", "-c", "import packstream\n"
         "p = packstream.Packer(8)\np.put([1])\n"
         "try:\n    packstream.Packer(0)\nexcept ValueError:\n    pass"],
        check=True, capture_output=True, text=True).stderr
    assert "1 sequences (1 tokens)" in told and "ignored" not in told, told


def masked_refused():
    """The mask of a numpy.ma array would be lost."""
    def masked(*values, hidden=1):
        return np.ma.array(values, mask=np.arange(len(values)) == hidden)
    channels = {"labels": "int32",
                "source": packstream.Channel("uint8", per="sequence")}
    good = {"tokens": [1, 2], "labels": [3, 4], "source": 5}
    for name, wrong in (("tokens", masked(1, 2)), ("labels", masked(3, 4)),
                        ("labels", masked(3, 4, hidden=9)),
                        ("source", masked(5, hidden=0)[0])):
        one = dict(good, **{name: wrong})
        packer = packstream.Packer(8, channels=channels)
        raises(ValueError, name + ": masked arrays", packer.put, one)
        raises(ValueError, name + ": masked arrays", list,
               packer.pack([good, one]))
        assert packer.totals["input_sequences"] == 1
        with open(os.devnull, "wb") as lost:
            writer = packstream.TokenWriter(lost, channels=channels)
            raises(ValueError, name + ": masked arrays", writer.write, one)
            columns = {key: np.atleast_1d(np.ma.array(value))
                       for key, value in one.items()}
            for key in set(columns) - {name}:
                columns[key] = columns[key].filled()
            raises(ValueError, name + ": masked arrays", writer.write,
                   packstream.Columns(np.array([0, 2]), columns))
    raises(ValueError, "lengths: masked arrays", packstream.pack_lengths,
           masked(3, 4), 8)
    raises(ValueError, "sequence 1: labels: 2147483648 does not fit int32",
           list, packstream.Packer(8, channels=channels).pack(
               [good, dict(good, labels=[1, 1 << 31])]))


def packer_threads():
    """Packers in several threads do not disturb each other."""
    given = [one["tokens"] for one in sequences(3000)]
    wanted = [b["tokens"].tobytes() for b in packstream.Packer(64).pack(given)]
    found = [None] * 4

    def work(i):
        found[i] = [b["tokens"].tobytes()
                    for b in packstream.Packer(64).pack(given)]
    threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert all(one == wanted for one in found)


def lengths():
    pack_lengths = packstream.pack_lengths
    given = [len(one["tokens"]) for one in sequences(2000)]
    order, ends = pack_lengths(given, 64, depth=5, window=100)
    assert sorted(order) == list(range(2000))
    begin = 0
    for end in ends:
        assert 1 <= end - begin <= 5
        assert sum(given[i] for i in order[begin:end]) <= 64
        begin = end
    assert begin == 2000
    order, ends = pack_lengths([], 64)
    assert len(order) == len(ends) == 0
    raises(ValueError, "no tokens", pack_lengths, [3, 0], 64)
    raises(ValueError, "-1 does not fit", pack_lengths, [3, -1], 64)
    raises(ValueError, "float64", pack_lengths, [3.5], 64)
    raises(ValueError, "2 dimensions", pack_lengths, np.ones((3, 4), int), 64)
    big = np.array([3, 9, 5], ">i8")
    assert pack_lengths(big[::-2], 8)[1].tolist() == [2]
    raises(packstream.PackError, "65", pack_lengths, [65], 64)


# ---------------------------------------------------------------------
# Deals

def cost_of(pack, tokens, squares):
    """From the lengths of its sequences."""
    n = int(pack["n_seq"])
    lengths = np.diff(pack["cu"][:n + 1].astype(np.int64))
    return tokens * int(lengths.sum()) + squares * int((lengths ** 2).sum())


def deals_of(packs, size, ranks, **given):
    """The steps of all ranks: [step][rank] is a list of numbers."""
    all_of = [packstream.Deal(packs, size, rank, ranks, **given)
              for rank in range(ranks)]
    steps = [list(deal) for deal in all_of]
    assert [len(deal) for deal in all_of] == [len(step) for step in steps]
    return list(itertools.zip_longest(*steps, fillvalue=[]))


def deals(plain, compressed):
    """Every global batch is that of Packs.batches, all ranks together; each
    has `size` packs of it, and costs are as even as possible."""
    packs = packstream.open([plain, compressed, plain])
    for size, ranks, given in (
            (4, 3, {"hidden": 8}), (1, 5, {"cost": (1, 0)}),
            (8, 2, {"cost": (0, 1), "shuffle": 7}), (3, 1, {"hidden": 0})):
        steps = deals_of(packs, size, ranks, **given)
        order = np.arange(len(packs)) if "shuffle" not in given else \
            pure.shuffled(len(packs), 7, 0)
        tokens, squares = given.get("cost", (6 * given.get("hidden", 0), 1))
        costs = [cost_of(packs[i], tokens, squares)
                 for i in range(len(packs))]
        assert packs.costs(range(len(packs)), tokens, squares).tolist() == \
            costs
        most = size * ranks
        for i, step in enumerate(steps):
            wanted = order[i * most:(i + 1) * most].tolist()
            place = {number: at for at, number in enumerate(wanted)}
            assert sorted(sum(step, [])) == sorted(wanted)
            for own in step:
                assert own == sorted(own, key=place.get)
                assert len(own) == size or len(wanted) < most
            sums = [sum(costs[n] for n in own) for own in step]
            dealt_round = [sum(costs[n] for n in wanted[r::ranks])
                           for r in range(ranks)]
            assert max(sums) <= max(dealt_round)
        told = subprocess.run(
            ["packdeal", "--list", "-n%d" % ranks, "-b%d" % size,
             "--cost=%d:%d" % (tokens, squares), plain, compressed, plain] +
            ["--seed=%d" % seed for seed in [given.get("shuffle")] if seed],
            check=True, stdout=subprocess.PIPE)
        assert [list(map(int, line.split()))
                for line in told.stdout.decode().splitlines()] == [
            [i, rank, *own] for i, step in enumerate(steps)
            for rank, own in enumerate(step)]
        dropped = deals_of(packs, size, ranks, drop_last=True, **given)
        assert dropped == steps[:len(packs) // most]
        assert 2 * most < len(packs) and len(packs) % most

    deal = packstream.Deal(packs, 2, 1, 3, hidden=8, shuffle=1)
    whole = list(deal)
    assert list(deal) == whole      # until set_epoch() says otherwise
    again = pickle.loads(pickle.dumps(deal))
    again.set_epoch(0, 5)
    iter(again)                     # without effect, as those of torch
    assert len(again) == len(whole) - 5 and list(again) == whole[5:]
    assert list(again) == whole and again.step(3) == whole[3]
    again.set_epoch(1)
    assert list(again) != whole and len(again) == len(whole)
    again.set_epoch(1, len(whole) + 1)
    assert len(again) == 0 and not list(again)


def balance():
    """Each sequence is in one pack within the limit, every rank has equally
    many packs, and the ranks have nearly the same cost."""
    rng = np.random.default_rng(5)
    for n, ranks, most, given in (
            (3000, 8, 4096, {}), (900, 64, 4096, {"hidden": 768}),
            (500, 3, 4096, {"cost": (0, 1)}), (64, 64, 4096, {}),
            (700, 4, 4096, {"cost": (1, 0), "align": 16}), (5, 5, 1 << 24, {}),
            (9, 1, 4096, {})):
        lengths = rng.lognormal(6, 1, n).astype(np.int32).clip(1, 4096)
        of_ranks = packstream.balance(lengths, ranks, most, **given)
        assert len(of_ranks) == ranks
        assert len({len(packs) for packs in of_ranks}) == 1
        packs = [pack for packs in of_ranks for pack in packs]
        assert sorted(np.concatenate(packs)) == list(range(n))
        align = given.get("align", 1)
        for pack in packs:
            assert (-(-lengths[pack] // align) * align).sum() <= most
            assert (np.diff(pack) > 0).all()
            assert len(pack) or n < len(packs)
        again = packstream.balance(lengths.tolist(), ranks, most, **given)
        assert all(map(np.array_equal, packs, sum(again, [])))
        if n > 50 * ranks:
            tokens, squares = given.get("cost", (6 * 4096, 1))
            costs = tokens * lengths.astype(int) + \
                squares * lengths.astype(int) ** 2
            sums = [costs[np.concatenate(packs)].sum() for packs in of_ranks]
            assert max(sums) < 1.0001 * np.mean(sums)


def balance_refused():
    for error, text, given in (
            (ValueError, "2 sequences for 3 ranks", ([5, 6], 3, 9)),
            (ValueError, "0 sequences for 1 ranks", ([], 1, 9)),
            (packstream.PackError, "sequence 1 has 10 tokens, which exceeds",
             ([5, 10], 1, 9)),
            (packstream.PackError, "sequence 0 has no tokens", ([0], 1, 9)),
            (ValueError, "set either hidden or cost", ([5], 1, 9, 8, (1, 1))),
            (ValueError, "the cost is (0, 0)", ([5], 1, 9, None, (0, 0))),
            (ValueError, "the alignment, 2, does not divide", (
                [5], 1, 9, 8, None, 2)),
            (ValueError, "an array of 2 dimensions", ([[5]], 1, 9)),
            (ValueError, "the capacity must be between", ([5], 1, 0))):
        try:
            packstream.balance(*given)
        except error as e:
            assert text in str(e), e
        else:
            raise AssertionError(given)


def lookups(plain, compressed):
    """A run records the ids of each step of each rank, with the Deal and with
    the shares of packdeal; packdeal --find, Deal.step and both lookups by id
    return the same."""
    packs = packstream.open([plain, compressed])
    first_ids = [0, packstat_of(plain)["input_sequences"]]
    for epoch, seed, last in itertools.product(
            (0, 2), (None, 5), ("short", "drop", "pad")):
        if epoch and seed is None:
            continue
        options = ["-n3", "-b4", "--hidden=8", "--last=" + last] + (
            [] if seed is None else ["--seed=%d" % seed, "--epoch=%d" % epoch])
        deals = [packstream.Deal(packs, 4, rank, 3, hidden=8, shuffle=seed,
                                 drop_last=last == "drop")
                 for rank in range(3)]
        run = []                # (step, rank, pack, slot, id) in order
        for deal in deals:
            deal.set_epoch(epoch)
        for step, all_ranks in enumerate(
                itertools.zip_longest(*deals, fillvalue=[])):
            for rank, numbers in enumerate(all_ranks):
                assert numbers == deals[0].step(step, rank)
                for number in numbers:
                    assert deals[1].find(number) == (step, rank)
                    raised = first_ids[number >= packs.ends[0]]
                    run += [(step, rank, number, slot, int(row["seq_id"]) +
                             raised) for slot, row in
                            enumerate(packs[number].sequences)]
        check_finds(run, options, [plain, compressed], packs, deals[0])
        check_shares(run, options, [plain, compressed],
                     0 if seed is not None else first_ids[1])


def packstat_of(path):
    told = subprocess.run(["packstat", "--json", "--quick", path], check=True,
                          stdout=subprocess.PIPE)
    return json.loads(told.stdout)


def found_by(options, paths):
    """The output of packdeal, as tuples like those of a run."""
    told = subprocess.run(["packdeal", *options, "--json", *paths],
                          check=True, stdout=subprocess.PIPE)
    found = [json.loads(line) for line in told.stdout.splitlines()]
    return [tuple(one[key] for key in ("step", "rank", "pack", "slot", "id"))
            for one in found]


def check_finds(run, options, paths, packs, deal):
    for step in range(run[-1][0] + 1):
        assert found_by(options + ["--find=%d" % step], paths) == \
            [one for one in run if one[0] == step]
    ids = sorted({one[4] for one in run})[::97] + [run[0][4], run[-1][4]]
    wanted = [one for one in run if one[4] in ids]
    assert sorted(found_by(options + ["--find-id=%s" %
                                      ",".join(map(str, ids))], paths)) == \
        sorted(wanted)
    # packs.find, with the ids of the streams
    for step, rank, pack, slot, _ in wanted:
        number = int(packs[pack].sequences["seq_id"][slot])
        at, = [at for at in packs.find(number)
               if (at.pack, at.slot) == (pack, slot)]
        assert at.id == number and deal.find(at.pack) == (step, rank)
        row = packs[pack].sequences[slot]
        assert (at.start, at.tokens) == (row["seq_start"], row["seq_tok"])


def check_shares(run, options, paths, restart):
    """The shares of a deal have these ids, in this order.  Unless they are
    shuffled, ids restart at `restart`, where the second file begins."""
    for rank in range(3):
        if "--last=pad" in options and len({one[1] for one in run
                                            if one[0] == run[-1][0]}) < 3:
            return
        subprocess.run(["packdeal", *options, "--rank=%d" % rank, "-oshare",
                        *paths], check=True)
        share = packstream.open("share")
        ids = [int(row["seq_id"]) for i in range(len(share))
               for row in share[i].sequences]
        raised = [one[4] for one in run if one[1] == rank]
        assert ids == [one - restart * (restart > 0 and one >= restart)
                       for one in raised]


def deals_of_all_sizes(plain):
    """Up to as many ranks as packs, and beyond: each pack is used once, and
    all ranks make equally many steps, except ranks beyond the packs left."""
    packs = packstream.open(plain)
    for ranks in range(1, len(packs) + 3):
        for size in (1, 2, 5):
            steps = deals_of(packs, size, ranks, hidden=8)
            left = len(packs) % (size * ranks)
            for i, step in enumerate(steps):
                most = left if i == len(packs) // (size * ranks) else ranks
                assert [bool(own) for own in step] == \
                    [rank < most for rank in range(ranks)]
            assert sorted(sum(sum(steps, ()), [])) == list(range(len(packs)))


def deals_of_few(plain):
    """Fewer packs than ranks: each rank gets one or none."""
    packs = packstream.open(plain)
    ranks = 2 * len(packs)
    steps = deals_of(packs, 3, ranks, hidden=8)
    assert len(steps) == 1
    assert sorted(map(len, steps[0])) == [0] * (ranks - len(packs)) + \
        [1] * len(packs)


def deals_refused(plain):
    packs = packstream.open(plain)
    for error, words, given in (
            (TypeError, "packs of files", (pure.open_packs(plain), 1, 0, 1)),
            (ValueError, "either", (packs, 1, 0, 1)),
            (ValueError, "either", (packs, 1, 0, 1, 8, (1, 1))),
            (ValueError, "rank 1 of 1", (packs, 1, 1, 1, 8)),
            (ValueError, "rank -1", (packs, 1, -1, 1, 8)),
            (TypeError, "integer", (packs, 1, 0.5, 1, 8)),
            (ValueError, "ranks of", (packs, 0, 0, 1, 8)),
            (ValueError, "ranks of", (packs, 2**20, 0, 2**20, 8)),
            (OverflowError, "", (packs, -1, 0, 1, 8)),
            (OverflowError, "", (packs, 1, 0, 2**32, 8)),
            (ValueError, "cost is", (packs, 1, 0, 1, -1)),
            (TypeError, "integer", (packs, 1, 0, 1, 1.5)),
            (ValueError, "cost is", (packs, 1, 0, 1, None, (0, 0))),
            (ValueError, "cost is", (packs, 1, 0, 1, None, (-1, 9))),
            (ValueError, "cost is", (packs, 1, 0, 1, None, (2**64, 0))),
            (ValueError, "unpack", (packs, 1, 0, 1, None, (1, 2, 3))),
            (TypeError, "seed", (packs, 1, 0, 1, 8, None, True)),
            (TypeError, "seed", (packs, 1, 0, 1, 8, None, 1.5)),
            (ValueError, "seed is -1", (packs, 1, 0, 1, 8, None, -1)),
            (ValueError, "seed is", (packs, 1, 0, 1, 8, None, 2**64))):
        raises(error, words, packstream.Deal, *given)
    deal = packstream.Deal(packs, 1, 0, 1, 8)
    raises(ValueError, "start is -1", deal.set_epoch, 0, -1)
    raises(ValueError, "epoch is -1", deal.set_epoch, -1)
    raises(TypeError, "integer", deal.set_epoch, 0, 1.5)
    raises(IndexError, "no step -1", deal.step, -1)
    raises(IndexError, "no step %d, only 0" % 2**60, deal.step, 2**60)
    raises(IndexError, "no rank 1", deal.step, 0, 1)
    raises(IndexError, "no pack", deal.find, len(packs))
    raises(ValueError, "the id is -1", packs.find, -1)
    raises(ValueError, "the id is", packs.find, 2**64)
    assert packs.find(2**64 - 1) == []
    raises(packstream.PackError, "64 bits",
           packstream.Deal(packs, 1, 0, 1, cost=(2**63, 2**63)).step, 0)


# ---------------------------------------------------------------------
# Files

def files(plain, other, compressed, joined):
    """`compressed` has the packs of `plain`; `joined` those of plain and
    other."""
    whole = list(pure.open_packs(plain).batches(1))
    more = list(pure.open_packs(other).batches(1))
    for source, wanted in (
            (plain, whole), (compressed, whole), ([plain], whole),
            (joined, whole + more), ([plain, other], whole + more),
            ([compressed, joined, other], whole + whole + more + more)):
        packs = packstream.open(source)
        assert len(packs) == len(wanted)
        for i in range(-len(packs), len(packs)):
            pack = packs[i]
            for name in pack:
                assert (pack[name] == wanted[i][name][0]).all(), name
        for which in (slice(None), slice(2, None, 3), slice(5, 1, -1),
                      slice(3, 3)):
            batch = packs[which]
            assert len(batch["tokens"]) == len(wanted[which])
            for row, one in zip(batch["tokens"], wanted[which]):
                assert (row == one["tokens"][0]).all()
        numbers = [len(packs) - 1, 0, 0, 3]
        for row, i in zip(packs[numbers]["tokens"], numbers):
            assert (row == wanted[i]["tokens"][0]).all()
        raises(IndexError, "no pack", packs.__getitem__, len(packs))
        raises(IndexError, "no pack", packs.__getitem__, -len(packs) - 1)
        raises(IndexError, "no pack", packs.__getitem__, 2**64 - 1)
        raises(TypeError, "whole numbers", packs.__getitem__, "tokens")
        raises(TypeError, "whole numbers", packs.__getitem__, 1.5)
        again = pickle.loads(pickle.dumps(packs))
        assert (again[1]["tokens"] == packs[1]["tokens"]).all()
        ranks = [[int(i) for batch in packs.batches(2, rank, 3, start=4)
                  for i in batch["tokens"][:, 0]] for rank in range(3)]
        for rank, found in enumerate(ranks):
            first = 4 + (rank - 4) % 3
            assert found == [int(one["tokens"][0, 0])
                             for one in wanted[first::3]]
    doubled = packstream.open(plain, transform=len)
    assert doubled[0] == len(whole[0]) == doubled.__getitems__([0, 1])[1]


def depths(plain, deeper):
    """Files with up to 4 and 9 sequences a pack: arrays have 9 columns."""
    assert packstream.open(plain).header.depth == 4
    packs = packstream.open([plain, deeper])
    assert packs.header.depth == 9
    for batch in (packs[:3], packs[-3:], packs[[0, -1]]):
        assert batch["cu"].shape[1] == 11
        assert batch["seq_id"].shape[1] == 9
    both = pure.stack([packs[0], packs[-1]])
    assert (both["cu"] == packs[[0, -1]]["cu"]).all()
    for pack in (packs[0], packs[-1]):
        assert len(pack.sequences) == pack["n_seq"]
        assert (pack.sequences["seq_id"] ==
                pack["seq_id"][:pack["n_seq"]]).all()


def verified(plain, other):
    """The extension compares checksums, with or without the module xxhash;
    `other` differs from `plain` in tokens only."""
    with open(plain, "rb") as file:
        data = file.read()
    with open(other, "rb") as file:
        swapped = file.read()
    end = 4096 + struct.unpack_from("<Q", data, 4096 + 24)[0]
    assert lib is not None and len(data) == len(swapped)

    def refused(bad):
        with open("bad.pks", "wb") as file:
            file.write(bad)
        for source in ("bad.pks", io.BytesIO(bad)):
            raises(pure.PackError, "byte ", lambda source=source: list(
                pure.open_packs(source).batches(3)))

    source = pure.open_packs(plain)
    assert source.verifies
    whole, = pure.open_packs(io.BytesIO(data)).batches(1 << 20)
    for which in ([0], [1, 2], [2, 0, 1]):
        assert (source.take(which)["tokens"] == whole["tokens"][which]).all()
    for at in range(len(data)):
        if at < 5000 or at % 3 == 0:
            refused(data[:at] + bytes([data[at] ^ 1 << at % 8]) +
                    data[at + 1:])
    bad = data[:4096] + swapped[4096:end] + data[end:]
    if bad != data:
        refused(bad)
    with open("bad.pks", "wb") as file:
        file.write(data[:4096 + 70] + b"x" + data[4096 + 71:])
    raises(pure.PackError, "pack 0 in the block at byte 4096: ",
           pure.open_packs("bad.pks").take, [1, 0])


def files_refused(plain, other, damaged):
    raises(packstream.PackError, other, packstream.open, [plain, other])
    raises(OSError, "No such file", packstream.open, "nowhere.pks")
    raises(OSError, "nowhere", packstream.open, [plain, "nowhere.pks"])
    raises(ValueError, "no file", packstream.open, [])
    size = packstream.open(plain).header.row.itemsize
    with open(damaged, "r+b") as file:
        file.seek(4096 + 64 + size + size - 1)
        file.write(b"\xff")
    packs = packstream.open(damaged)
    raises(packstream.PackError, "%s: pack 1: " % damaged, packs.__getitem__,
           slice(None))
    assert len(packs[0]["tokens"])


def files_hostile(plain):
    """The dtype in a header of a later version is not evaluated, and a path
    cannot inject terminal escapes."""
    with open(plain, "rb") as file:
        data = bytearray(file.read())

    def write(path):
        data[4088:4096] = struct.pack("<Q", hash_of(data[:4088]))
        with open(path, "wb") as file:
            file.write(data)
    data[14] = 1                                    # the minor version
    data[2048:4088] = b"'M8[1s/0]'".ljust(2040, b"\0")
    write("later.pks")
    assert packstream.open("later.pks").header == \
        packstream.open(plain).header
    data[256 + 64:256 + 88] = b"index".ljust(24, b"\0")
    write("e\x1b[2J\n.pks")
    raises(packstream.PackError, "e?[2J?.pks: ", packstream.open,
           "e\x1b[2J\n.pks")


def files_replaced(plain, other):
    """A copy, or a child, notices that a file was replaced: `other` has
    larger records."""
    shutil.copy(plain, "x.pks")
    kept = pickle.dumps(packstream.open("x.pks"))
    os.replace(shutil.copy(other, "y.pks"), "x.pks")
    raises(packstream.PackError, "x.pks: not the file", pickle.loads(
        kept).__getitem__, slice(0, 2))
    shutil.copy(plain, "x.pks")
    packs = packstream.open("x.pks")
    os.truncate("x.pks", 5000)
    raises(packstream.PackError, "bytes when opened", packs.__getitem__, -1)


def descriptors(plain):
    """No file stays open after an error, and none is closed too early."""
    def count():
        return len(os.listdir("/proc/self/fd"))
    before = count()
    for name in (plain, "/", "nowhere", __file__, "/dev/null"):
        try:
            packstream.open(name)[0]
        except (OSError, ValueError):
            pass
    assert count() == before
    writer = packstream.TokenWriter(open("x.tok", "wb"))
    writer.write([1])
    writer.close()
    assert os.path.getsize("x.tok") > 0
    del writer
    assert count() == before


def streams_refused(plain):
    raises(ValueError, "transform", packstream.open, open(plain, "rb"), len)
    raises(ValueError, "transform", packstream.open, "/dev/null", len)


def forked(plain):
    """Children read files that their parent opened, even while it reads."""
    packs = packstream.open(plain)
    wanted = packs[:]["tokens"].copy()
    stop = threading.Event()

    def read():
        while not stop.is_set():
            packs[:]
    thread = threading.Thread(target=read)
    thread.start()
    children = []
    for _ in range(8):
        child = os.fork()
        if child == 0:
            right = all((packs[i]["tokens"] == wanted[i]).all()
                        for i in range(len(packs)))
            os._exit(0 if right else 1)
        children.append(child)
    statuses = [os.waitpid(child, 0)[1] for child in children]
    stop.set()
    thread.join()
    assert statuses == [0] * 8


# ---------------------------------------------------------------------
# Channels of vectors

VECTORS = {"frames": packstream.Channel("float32[5]", -1),
           "boxes": np.dtype(("u2", 4)), "one": "uint8",
           "vector": packstream.Channel("f8[3]", 2, "sequence")}


def vectors_of(n=300, longest=24):
    rng = np.random.default_rng(2)
    return [{"tokens": rng.integers(0, 999, length),
             "frames": rng.random((length, 5), np.float32),
             "boxes": rng.integers(0, 9, (length, 4)).tolist(),
             "one": np.full(length, i % 7), "vector": rng.random(3)}
            for i, length in enumerate(rng.integers(1, longest + 1, n))]


def check_vectors(batches, given):
    """Each sequence has its vectors, and the rest of a row its fill."""
    found = 0
    for batch in batches:
        rows, capacity = batch["tokens"].shape
        assert batch["frames"].shape == (rows, capacity, 5)
        assert batch["boxes"].shape == (rows, capacity, 4)
        assert batch["vector"].shape == batch["seq_id"].shape + (3,)
        for row in range(rows):
            n = batch["n_seq"][row]
            for k in range(n):
                own = slice(*batch["cu"][row][k:k + 2])
                one = given[batch["seq_id"][row][k]]
                for name in ("tokens", "frames", "boxes", "one"):
                    assert np.array_equal(batch[name][row][own], one[name])
                assert np.array_equal(batch["vector"][row][k], one["vector"])
                found += 1
            assert (batch["vector"][row][n:] == 2).all()
            assert (batch["frames"][row][own.stop:] == -1).all()
            assert (batch["boxes"][row][own.stop:] == 0).all()
        assert views.compact(batch, "frames").shape == (
            batch["n_tok"].sum(), 5)
        assert np.array_equal(views.per_sequence(batch, "vector"),
                              batch.sequences["vector"])
    assert found == len(given)


def vectors(program):
    """A writer and the program, and a packer: the same packs, for readers with
    the extension and without."""
    given = vectors_of()
    offsets = np.cumsum([0] + [len(one["tokens"]) for one in given])
    columns = packstream.Columns(offsets, {
        name: np.array([one[name] for one in given]) if name == "vector"
        else np.concatenate([one[name] for one in given])
        for name in given[0]})
    for way in ("one", "columns"):
        with packstream.TokenWriter("v.tok", dtype="u4",
                                    channels=VECTORS) as out:
            for one in given if way == "one" else [columns]:
                out.write(one)
        subprocess.run([program, "-q", "-L24", "-d5", "-o", "v.pks",
                        "v.tok"], check=True)
        wanted = packstream.open("v.pks")
        check_vectors([wanted[:]], given)
        p = packstream.Packer(24, depth=5, channels=VECTORS)
        batches = list(p.pack(given if way == "one" else [columns], 3))
        check_vectors(batches, given)
        check_vectors_alone("v.pks", given)
        pack = packstream.open("v.pks")[1]
        assert pack["frames"].shape == (24, 5)
        assert np.array_equal(pure.stack([pack])["vector"],
                              wanted[1:2]["vector"])
        assert p.header.row == wanted.header.row
        os.unlink("v.pks")
    p = packstream.Packer(24, channels=VECTORS)
    p.put({**given[0], "tokens": [], "frames": [], "boxes": [], "one": []})
    check_vectors(p.pack(given[:1]), {1: given[0]})
    vectors_refused(given[0])


def check_vectors_alone(path, given):
    """Reads with packs.py, with the extension and without."""
    extension = native.lib
    for native.lib in extension, None:
        check_vectors(pure.PackFile(path).batches(7), given)
        with open(path, "rb", buffering=0) as file:
            check_vectors(pure.PackPipe(file).batches(7), given)
    native.lib = extension
    with open(path, "rb") as file:
        header = bytearray(file.read(4096))
    assert read_header(bytes(header), 0, True).row["frames"].shape == (
        24, 5)
    header[122] = 1 + list(VECTORS).index("vector")
    raises(pure.PackError, "has vectors", read_header, bytes(header), 0,
           False)


def vectors_refused(one):
    for channel, why in (("f4[1]", "vectors of 1 values"),
                         ("f4[0]", "vectors of 0 values"),
                         ("f4[16385]", "vectors of 16385 values"),
                         ("f2[3]", "elements are"),
                         (np.dtype(("f4", (2, 3))), "one dimension")):
        raises(ValueError, why, packstream.Packer, 8, channels={"x": channel})
    with packstream.TokenWriter("r.tok", dtype="u4", channels=VECTORS) as out:
        out.write(one)
        size, n = os.path.getsize("r.tok.new"), len(one["tokens"])
        for name, value, why in (
                ("frames", np.ones((n, 4)),
                 "frames: shape (%d, 4), expected (tokens, 5)" % n),
                ("frames", np.ones(n), "expected (tokens, 5)"),
                ("frames", np.ones((n + 1, 5)),
                 "frames: %d vectors for %d tokens" % (n + 1, n)),
                ("frames", [[1.0] * 4] + [[1.0] * 5] * (n - 1),
                 "vectors of different lengths, expected 5"),
                ("boxes", [[70000, 1, 2, 3]] * n, "70000 does not fit uint16"),
                ("one", np.ones((n, 2)), "%d values for" % (2 * n)),
                ("vector", [1, 2], "vector: shape (2,), expected (3,)"),
                ("vector", np.ones((1, 3)), "expected (3,)"),
                ("vector", 1.5, "expected (3,)")):
            raises(ValueError, why, out.write, {**one, name: value})
            raises(ValueError, "sequence 1: " + name, out.write,
                   {**one, name: value})
        out.flush()
        flushed = os.path.getsize("r.tok.new")
        out.flush()
        assert size <= flushed == os.path.getsize("r.tok.new")
        out.write(one)
    p = packstream.Packer(24, channels=VECTORS)
    raises(ValueError, "sequence 1: frames: shape", list, p.pack(
        [one, {**one, "frames": np.ones((3, 2))}]))
    assert len(p.finish()["tokens"]) == 1
    for option in ({"group": "vector"}, {"by": "vector"},
                   {"budget": {"boxes": 3}}):
        raises(ValueError, "", packstream.Packer, 24, channels=VECTORS,
               **option)


# ---------------------------------------------------------------------
# Channels of lists

LISTS = {"text": "uint16[]", "frames": "float32[5]",
         "edges": packstream.Channel("uint32[2][]", 7),
         "score": packstream.Channel("f8", per="sequence")}


def lists_of(n=300, longest=24):
    """Sequences with lists of up to 40 and 24 elements; some are empty."""
    rng = np.random.default_rng(7)
    return [{"tokens": rng.integers(0, 999, length),
             "text": rng.integers(0, 999, rng.integers(0, 41) * (i % 7 > 0)
                                  ).tolist(),
             "frames": rng.random((length, 5), np.float32),
             "edges": rng.integers(0, length, (rng.integers(0, longest), 2)),
             "score": i / 2}
            for i, length in enumerate(rng.integers(1, longest + 1, n))]


def same_list(found, wanted, shape=()):
    return found.shape == (len(wanted), *shape) and (
        not len(wanted) or np.array_equal(found, wanted))


def check_lists(batches, given, budget=48):
    """Each sequence has its lists, and the rest of their arrays the fill."""
    found = 0
    for batch in batches:
        rows, capacity = batch["tokens"].shape
        assert batch["text"].shape == (rows, budget)
        assert batch["edges"].shape == (rows, capacity, 2)
        ids = views.per_sequence(batch, "seq_id").tolist()
        tokens = views.compact(batch)
        assert tokens.tolist() == [t for i in ids for t in given[i]["tokens"]]
        for name, fill, shape in ("text", 0, ()), ("edges", 7, (2,)):
            cu, own = batch[name + ".cu"], batch.lists_of(name)
            assert cu.dtype == np.int32 and cu.shape == batch["cu"].shape
            assert len(own) == len(ids) and all(
                same_list(one, given[i][name], shape)
                for i, one in zip(ids, own))
            for row, bounds, n in zip(batch[name], cu, batch["n_seq"]):
                assert (row[bounds[n]:] == fill).all()
                assert (bounds[n + 1:] == len(row)).all()
            assert same_list(views.compact(batch, name), [
                v for i in ids for v in given[i][name]], shape)
        found += len(ids)
    assert found == len(given)


def lists(program):
    """A writer and the program, and a packer: the same packs, for readers with
    the extension and without."""
    given = lists_of()
    offsets, columns = {}, {}
    for name in given[0]:
        shape = {"edges": (2,), "frames": (5,)}.get(name, ())
        arrays = [np.array(one[name], int if name == "text" else None)
                  .reshape(-1, *shape) for one in given]
        columns[name] = np.concatenate(arrays)
        offsets[name] = np.cumsum([0] + list(map(len, arrays)))
    whole = packstream.Columns(offsets["tokens"], columns, {
        name: offsets[name] for name in ("text", "edges")})
    for sequences in given, [whole]:
        with packstream.TokenWriter("l.tok", dtype="u4",
                                    channels=LISTS) as out:
            for one in sequences:
                out.write(one)
        subprocess.run([program, "-q", "-L24", "-d5", "--budget=text:48",
                        "-o", "l.pks", "l.tok"], check=True)
        wanted = packstream.open("l.pks")
        assert wanted.header.lists == ("text", "edges")
        assert wanted.header.budgets == (("text", 48), ("edges", 24))
        check_lists([wanted[:]], given)
        p = packstream.Packer(24, depth=5, channels=LISTS,
                              budget={"text": 48})
        batches = list(p.pack(sequences, 3))
        check_lists(batches, given)
        assert p.header.row == wanted.header.row
        extension = native.lib
        for native.lib in extension, None:
            check_lists(pure.PackFile("l.pks").batches(7), given)
            with open("l.pks", "rb", buffering=0) as file:
                check_lists(pure.PackPipe(file).batches(7), given)
        native.lib = extension
    single = wanted[1]
    ids = single.sequences["seq_id"].tolist()
    assert single["text"].shape == (48,) and all(
        same_list(one, given[i]["text"])
        for i, one in zip(ids, single.lists_of("text")))
    raises(KeyError, "not a list", single.lists_of, "tokens")
    check_lists([pure.stack([one for one in wanted])], given)
    copy = pickle.loads(pickle.dumps(wanted[:]))
    check_lists([copy], given)
    lists_viewed(wanted[:])
    lists_kept(given)
    lists_refused(given[0])


def lists_viewed(batch):
    """The views of lists are those that loops compute."""
    spans = {"tokens": (batch["cu"], 24), "text": (batch["text.cu"], 48),
             "edges": (batch["edges.cu"], 24)}
    rows = len(batch["n_seq"])
    owners = {name: np.zeros((rows, size), int)
              for name, (_, size) in spans.items()}
    for name, (cu, size) in spans.items():
        of = None if name == "tokens" else name
        places = np.zeros((rows, size), int)
        lengths = {view: [] for view in ("ragged", "ghost", "static")}
        for row, n in enumerate(batch["n_seq"]):
            bounds = [*cu[row, :n + 1].tolist(), size]
            for k, (begin, end) in enumerate(zip(bounds, bounds[1:])):
                owners[name][row, begin:end] = (k + 1) % (n + 1)
                places[row, begin:end] = range(end - begin)
            own = np.diff(bounds).tolist()
            lengths["ragged"] += own[:-1]
            lengths["ghost"] += own
            lengths["static"] += own + [0] * (5 - n)
        used = owners[name] > 0
        assert np.array_equal(views.segments(batch, of), owners[name])
        assert np.array_equal(views.padding(batch, of), ~used)
        assert np.array_equal(views.compact(batch, name), batch[name][used])
        for view, own in lengths.items():
            merged = np.cumsum([0] + own)
            assert np.array_equal(views.merged_cu(batch, view, of), merged)
            assert views.max_seqlen(batch, view, of) == (
                size if view == "static" else max(own)), view
            assert np.array_equal(
                views.positions(batch, view, of=of),
                places[used] if view == "ragged" else places)
        ids = np.repeat(np.arange(batch["n_seq"].sum()), lengths["ragged"])
        assert np.array_equal(views.sequence_ids(batch, of=of), ids)
        ghost = np.full((rows, size), batch["n_seq"].sum())
        ghost[used] = ids
        assert np.array_equal(views.sequence_ids(batch, "ghost", of),
                              ghost.reshape(-1))
        mask = owners[name][:, :, None] == owners[name][:, None]
        assert np.array_equal(views.attention_mask(batch, of), mask)
        assert np.array_equal(views.attention_mask(batch, of, True),
                              np.tril(mask))
    assert np.array_equal(
        views.cross_mask(batch, "text"),
        owners["tokens"][:, :, None] == owners["text"][:, None])
    tokens = views.compact(batch)
    pairs = [tokens[edge] for edge in views.edge_index(batch)]
    ghost = [batch["tokens"].reshape(-1)[edge]
             for edge in views.edge_index(batch, view="ghost")]
    starts = views.merged_cu(batch, "ragged")
    wanted = [tokens[starts[i] + edge] for i, one in
              enumerate(batch.lists_of("edges")) for edge in one.tolist()]
    assert np.array_equal(np.transpose(pairs), wanted)
    assert np.array_equal(pairs, ghost)
    broken = dict(batch, edges=batch["edges"].copy())
    broken["edges"][0, 0] = 0, 24
    raises(ValueError, "edge (0, 24) in sequence ", views.edge_index, broken)
    for call, arguments, why in (
            (views.edge_index, ("text",), "not a list of pairs"),
            (views.segments, ("tokens",), "list channels: text, edges"),
            (views.cross_mask, ("score",), "not a list channel"),
            (views.labels, ("text",), "not a per-token channel")):
        raises(ValueError, why, call, batch, *arguments)
    none = dict(batch, **{"text.cu": batch["text.cu"] * 0})
    none["text.cu"][np.arange(7) > batch["n_seq"][:, None]] = 48
    assert not len(views.positions(none, "ragged", of="text"))
    assert views.max_seqlen(none, "ragged", "text") == 0


def lists_kept(given):
    """Empty sequences, a state, and overlong sequences."""
    p = packstream.Packer(24, channels=LISTS, budget={"text": 48})
    p.put({**given[0], "tokens": [], "frames": np.empty((0, 5))})
    but_first = {i: one for i, one in enumerate(given) if i}
    check_lists(p.pack(given[1:]), but_first)
    options = dict(channels=LISTS, budget={"text": 48}, depth=3, window=50)
    p, other = (packstream.Packer(24, **options) for _ in range(2))
    first = [batch for batch in (p.put(one) or p.packs()
                                 for one in given[:200]) if batch]
    for one in given[other.resume(p.save()):]:
        other.put(one)
    p.finish()
    check_lists([*first, other.finish()], given)
    p = packstream.Packer(24, channels=LISTS, budget={"text": 48},
                          overlong="drop")
    for one in [{**given[0], "text": range(49)}, *given[1:]]:
        p.put(one)
    check_lists([p.finish()], but_first)
    assert p.totals["rejected_sequences"] == 1
    p = packstream.Packer(9, channels=LISTS, budget={"text": 48, "edges": 99},
                          overlong="split")
    batch = next(p.pack(given, 10**6))
    for i, one in zip(batch.sequences["seq_id"], batch.lists_of("edges")):
        assert same_list(one, given[i]["edges"], (2,))


def lists_refused(one):
    for channel, why in (("f4[1][]", "vectors of 1 values"),
                         ("f2[]", "elements are"),
                         ("f4[][]", "has the type f4[]"),
                         ("f4[][3]", "has the type f4[3][]")):
        raises(ValueError, why, packstream.Packer, 8, channels={"x": channel})
    raises(ValueError, "5 list channels", packstream.Packer, 8, channels={
        name: "u4[]" for name in "abcde"})
    for option in {"group": "text"}, {"by": "text"}, {"policy": "ffd"}:
        raises(ValueError, "", packstream.Packer, 24, channels=LISTS, **option)
    wrong = (
        ("text", [[1, 2]], "shape (1, 2), expected a list of numbers"),
        ("text", [[1, 2], [1]], "expected a list of numbers"),
        ("text", 5, "shape (), expected a list of numbers"),
        ("text", [1, 70000], "70000 does not fit uint16"),
        ("text", [0.5], "values of type float64"),
        ("edges", [1, 2], "shape (2,), expected (elements, 2)"),
        ("edges", [[1, 2, 3]], "shape (1, 3), expected (elements, 2)"),
        ("edges", [[1, 2], [1]], "vectors of different lengths"))
    with packstream.TokenWriter("r.tok", dtype="u4", channels=LISTS) as out:
        out.write(one)
        out.flush()
        size = os.path.getsize("r.tok.new")
        for name, value, why in wrong:
            raises(ValueError, why, out.write, {**one, name: value})
            raises(ValueError, "sequence 1: " + name, out.write,
                   {**one, name: value})
        raises(ValueError, "sequence 1: lists of 268435464 bytes", out.write,
               {**one, "text": [], "edges": np.broadcast_to(
                   np.uint32(1), ((1 << 25) + 1, 2))})
        columns = out.schema.columns([one, one])
        for change, why in (
                ({"edges": []}, "edges: offsets must ascend"),
                ({"edges": [0, 1, 0]}, "edges: offsets must ascend"),
                ({"score": [0, 1, 2]}, "score is not a list"),
                ({"text": [0, 1]}, "text: offsets of 1 lists for 2 sequences"),
                ({"text": [0, 1, 9**9]}, "text: shape")):
            raises(ValueError, why, out.write, packstream.Columns(
                columns.offsets, columns.values, {**columns.lists, **change}))
        out.flush()
        assert size == os.path.getsize("r.tok.new")
        out.write(one)
    for overlong in "error", "split", "truncate":
        p = packstream.Packer(24, channels=LISTS, budget={"text": 48},
                              overlong=overlong)
        p.put(one)
        for name, value, why in (*wrong, (
                "text", range(49), "49 elements exceed the budget of 48")):
            raises(ValueError, "sequence 1: %s: " % name, p.put,
                   {**one, name: value})
            raises(ValueError, why, p.put, {**one, name: value})
        assert len(p.finish()["tokens"]) == 1


# ---------------------------------------------------------------------
# Token records

def writer(program):
    """packcat restores what a writer writes."""
    given = sequences(200)
    for way in ("one", "columns"):
        with packstream.TokenWriter("x.tok", vocab_size=60000,
                                    channels=CHANNELS, labels="aligned",
                                    special={"pad": 3}) as out:
            if way == "one":
                for one in given:
                    out.write(one)
            else:
                out.write(as_columns(given))
        found = subprocess.run([program, "--to=ids", "x.tok"], check=True,
                               capture_output=True, text=True).stdout
        assert [list(map(int, line.split())) for line in
                found.splitlines()] == [one["tokens"].tolist()
                                        for one in given]


def writer_ends(program):
    """A stream has an end marker only if it was closed."""
    def status():
        return subprocess.run([program, "-q", "-L64", "-o", "/dev/null",
                               "x.tok"], capture_output=True).returncode
    with packstream.TokenWriter("x.tok") as out:
        out.write([1, 2])
    assert status() == 0
    with open("x.tok", "wb") as file:
        try:
            with packstream.TokenWriter(file) as out:
                out.write([1, 2])
                raise KeyError
        except KeyError:
            pass
    assert status() != 0
    out = packstream.TokenWriter("x.tok")
    out.write([1, 2])
    if os.fork() == 0:      # a child does not touch its parent's file
        del out
        os._exit(0)
    os.wait()
    out.write([3])
    out.close()
    out.close()
    assert status() == 0
    raises(OSError, "", packstream.TokenWriter, "nowhere/")
    raises(ValueError, "closed", out.write, [1])
    raises(ValueError, "no tokens", packstream.TokenWriter("y.tok").write, [])
    raises(OSError, "", packstream.TokenWriter, "no/such/folder")
    full = packstream.TokenWriter("/dev/full")
    full.write([1])
    raises(OSError, "space", full.close)


def writer_replaces():
    """A file is unchanged until the new one is complete."""
    def has(names, *text):
        assert sorted(os.listdir()) == sorted(names), os.listdir()
        for name, wanted in zip(names, text):
            with open(name) as file:
                assert file.read() == wanted
    with open("x.tok", "w") as file:
        file.write("older")
    os.chmod("x.tok", 0o640)
    os.symlink("x.tok", "link")
    for name in ("x.tok", "link"):
        try:
            with packstream.TokenWriter(name) as out:
                out.write([1])
                has(["x.tok", "link", "x.tok.new"], "older")
                raise KeyError
        except KeyError:
            has(["x.tok", "link"], "older")
    out = packstream.TokenWriter("x.tok")
    raises(OSError, "another job is writing it: '%s.new'"
           % os.path.abspath("x.tok"), packstream.TokenWriter, "link")
    out.write([1])
    child = os.fork()
    if child == 0:              # its copy is not the writing one
        del out
        gc.collect()
        os._exit(0)
    os.waitpid(child, 0)
    has(["x.tok", "link", "x.tok.new"], "older")
    del out                     # it was never closed
    has(["x.tok", "link"], "older")
    out = packstream.TokenWriter("x.tok")
    os.replace("x.tok.new", "moved")
    raises(OSError, "another program changed or removed it", out.close)
    has(["x.tok", "link", "moved"], "older")
    os.rename("moved", "x.tok.new")     # left by a job that was killed
    with packstream.TokenWriter("link") as out:
        out.write([1])
    has(["x.tok", "link"])
    assert os.path.islink("link") and os.path.getsize("x.tok") > 5
    assert os.stat("x.tok").st_mode & 0o777 == 0o640
    os.link("x.tok", "x.tok.new")
    raises(OSError, "not left by a killed job", packstream.TokenWriter, "x.tok")
    has(["x.tok", "link", "x.tok.new"])


def writer_to_stdout(path):
    """/dev/stdout is written; the file it refers to is not replaced."""
    made = os.stat(path).st_ino
    with packstream.TokenWriter("/dev/stdout") as out:
        out.write([1])
    assert os.stat(path).st_ino == made and os.path.getsize(path)


def version(wanted):
    from importlib.metadata import version as installed
    from packstream.library import ffi
    assert ffi.string(lib.ps_version()).decode() == wanted
    assert installed("packstream") == packstream.__version__ == wanted


if __name__ == "__main__":
    globals()[sys.argv[1]](*sys.argv[2:])
