"""packstream-checks.py - checks of packstream too complex for a shell.

    packstream-checks.py CHECK [ARGUMENT]...

calls a function below; it prints nothing and exits with 0, or fails with a
traceback.  Input and output are encoded and decoded by packformat.py, which
shares no code with the library.

SPDX-License-Identifier: MIT
"""

import collections
import json
import os
import random
import re
import struct
import subprocess
import sys

from packdraw import draw_sequence, draw_stream, sample
from packformat import (PER_SEQUENCE, PER_TOKEN, Packs, Schema, end,
                        read_framed, seal)

SECONDS = 600  # no run may take longer

# One in EVERY similar cases is tried; all of them with LONG.
EVERY = 1 if os.environ.get("LONG") else 7


def run(*command, data=b"", status=0, message=None):
    """The output of a program; fails unless status and message are these."""
    done = subprocess.run(list(map(str, command)), input=data,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          timeout=SECONDS)
    told = done.stderr.decode()
    assert done.returncode == status, (command, done.returncode, told)
    assert message is None or told == message, (command, told, message)
    assert message is not None or status or not told, (command, told)
    return done.stdout


def complain(text):
    return "packstream: stdin: %s\n" % text


# ---------------------------------------------------------------------
# Nothing is lost

def check_books(packs, sequences):
    """END counts the input and the content of the packs."""
    schema, counts = packs.schema, packs.end
    pieces = packs.pieces()
    tokens = sum(len(piece.lanes[0]) for piece in pieces) // schema.width
    assert counts["packs"] == len(packs.packs)
    assert counts["sequences"] == len(pieces)
    assert counts["tokens"] == tokens
    assert counts["input_sequences"] == len(sequences)
    assert counts["input_tokens"] == sum(map(schema.length, sequences))
    assert counts["input_sequences"] == (counts["sequences"] -
                                         counts["extra_pieces"] +
                                         counts["rejected_sequences"])
    assert counts["input_tokens"] == (counts["tokens"] +
                                      counts["rejected_tokens"] +
                                      counts["truncated_tokens"])


def round_trips(first, last):
    """packstream | packcat recovers the input, within every guarantee."""
    for seed in range(int(first), int(last)):
        schema, sequences, options = draw_stream(seed, 3)
        data = schema.stream(sequences)
        made = run("packstream", "--overlong=split", *options, data=data)
        packs = Packs(made, schema)
        found = packs.sequences()
        assert found == dict(enumerate(sequences)), seed
        check_books(packs, sequences)
        check_bound(packs)
        assert run("packcat", data=made) == data, seed
        run("packstat", "--verify", data=made)


def rejects(first, last, policy):
    """Packs and rejects together are the input."""
    for seed in range(int(first), int(last)):
        schema, sequences, options = draw_stream(seed, 2)
        if len(schema.channels) > 21:
            continue
        made = run("packstream", "--overlong=" + policy, "--rejects=out.rej",
                   *options, data=schema.stream(sequences))
        packs = Packs(made, schema)
        check_books(packs, sequences)
        check_rejects(packs, sequences, policy)
        run("packstat", "--verify", data=made)


def check_rejects(packs, sequences, policy):
    schema = packs.schema
    with open("out.rej", "rb") as file:
        found, rejected = read_framed(file.read(), False)
    assert found.channels == schema.channels + [
        ("source_id", "u64", PER_SEQUENCE), ("reason", "u8", PER_SEQUENCE)]
    assert (found.width, found.vocab, found.special, found.labels) == (
        schema.width, schema.vocab, schema.special, schema.labels)
    kept = dict(enumerate(sequences))
    overlong = [(number, sequence) for number, sequence in kept.items()
                if schema.length(sequence) > packs.capacity]
    reason = {"drop": b"\1", "truncate": b"\2"}[policy]
    assert rejected == [sequence + [struct.pack("<Q", number), reason]
                        for number, sequence in overlong]
    for number, sequence in overlong:
        if policy == "drop":
            del kept[number]
        else:
            kept[number] = schema.cut(sequence, 0, packs.capacity)
    assert packs.sequences() == kept
    check_counts(packs, overlong, policy)


def check_counts(packs, overlong, policy):
    lengths = [packs.schema.length(sequence) for _, sequence in overlong]
    dropped, cut = (len(lengths), 0), (sum(lengths), 0)
    if policy == "truncate":
        beyond = sum(length - packs.capacity for length in lengths)
        dropped, cut = (0, len(lengths)), (0, beyond)
    counts = packs.end
    assert (counts["rejected_sequences"],
            counts["truncated_sequences"]) == dropped
    assert (counts["rejected_tokens"], counts["truncated_tokens"]) == cut
    assert counts["split_sequences"] == counts["extra_pieces"] == 0


# ---------------------------------------------------------------------
# Order

def check_bound(packs):
    """No more pieces than the window may overtake a sequence, or a piece of
    it.  Returns the highest number that did."""
    last, came, done, oldest, worst = {}, {}, 0, 0, 0
    for piece in packs.pieces():
        last[piece.id] = piece.pack
    ids = sorted(last)
    for index, pack in enumerate(packs.packs):
        for piece in pack:
            came[piece.id] = came.get(piece.id, 0) + 1
        while oldest < len(ids) and last[ids[oldest]] <= index:
            done += came[ids[oldest]]
            oldest += 1
        own = came.get(ids[oldest], 0) if oldest < len(ids) else 0
        worst = max(worst, sum(came.values()) - done - own)
    assert worst <= packs.window, (worst, packs.window)
    return worst


def bound():
    """Long sequences first, and short ones that fit nowhere: the bounds hold,
    and sequences do wait."""
    rng = random.Random(3)
    schema = Schema()
    lengths = [rng.choice([2, 3, 59, 60, 61]) for _ in range(1500)]
    sequences = [draw_sequence(rng, schema, length) for length in lengths]
    data = schema.stream(sequences)
    for window in 1, 2, 5, 40, 400:
        for options in [], ["-a", "bestfit"], ["--max-delay=30"]:
            made = run("packstream", "-q", "-L", 64, "-d", 3, "-w", window,
                       *options, data=data)
            packs = Packs(made, schema)
            delay = 30 if "--max-delay=30" in options else 2 * window
            assert packs.window == delay
            assert packs.end["max_displacement"] < delay
            worst = check_bound(packs)
            assert delay < 80 or worst > window / 10, (window, worst)


def algorithms():
    """Every algorithm in every order, with every limit on the wait: each
    guarantee holds, and the input is recovered."""
    orders = [], ["--order=window"], ["--order=input"], ["--shuffle=7"]
    limits = [], ["--max-delay=7"], ["-M", "least"], ["--flush-every=9"], [
        "--even-cost"]
    seed = 100
    for name in ("auto", "spfhp", "nnlshp", "bestfit", "nextfit", "none",
                 "concat"):
        for options in [[*o, *l] for o in orders for l in limits]:
            seed += 1
            if seed % EVERY == 0:
                check_algorithm(name, options, seed)


def least_memory(*options, data):
    """The least -M that packstream accepts with options and input."""
    made = subprocess.run(["packstream", *map(str, options), "-M", "1"],
                          input=data, stdout=subprocess.DEVNULL,
                          stderr=subprocess.PIPE, check=False)
    return int(re.search(rb"at least ([0-9]+) bytes", made.stderr)[1])


def check_algorithm(name, options, seed):
    schema, sequences, drawn = draw_stream(seed, 3)
    at = drawn.index("-L") + 1
    drawn[at] = min(drawn[at], 16)  # so that there are many packs
    if name != "concat":
        options = options + ["--overlong=split"]
    data = schema.stream(sequences)
    if "least" in options:
        others = [o for o in options if o not in ("-M", "least")]
        least = least_memory("-a", name, *drawn, *others, data=data)
        # Some more, because some sequences are longer than a pack.
        options = [least + (6 << 20) if o == "least" else o for o in options]
    made = run("packstream", "-a", name, *drawn, *options, data=data)
    packs = Packs(made, schema)
    assert packs.sequences() == dict(enumerate(sequences)), (name, options)
    check_books(packs, sequences)
    check_bound(packs)
    assert run("packcat", data=made) == data, (name, options)
    run("packstat", "--verify", data=made)


def rises(path):
    """Packs are in the order of their oldest sequences."""
    with open(path, "rb") as file:
        packs = Packs(file.read(), Schema())
    first = [min(piece.id for piece in pack) for pack in packs.packs]
    assert first == sorted(first)


def no_cap():
    """Without -d nothing is lost, and the packs are those of a depth of L."""
    for seed in range(200, 220):
        schema, sequences, options = draw_stream(seed, 3)
        data = schema.stream(sequences)
        at = options.index("-d")
        capped = options[:at] + options[at + 2:]
        made = run("packstream", "--overlong=split", *capped, data=data)
        packs = Packs(made, schema)
        assert packs.depth == 0
        assert packs.sequences() == dict(enumerate(sequences)), seed
        assert run("packcat", data=made) == data, seed
        run("packstat", "--verify", data=made)
        again = run("packstream", "--overlong=split", "-d", packs.capacity,
                    *capped, data=data)
        end = packs.blocks[-1].at
        assert again[4096:end] == made[4096:end]


# ---------------------------------------------------------------------
# Damage

SMALL = [[struct.pack("<3H", 1, 2, 3)], [struct.pack("<H", 7)]]


def cut_message(at, begins):
    """The message for a record that is cut at byte `at`; `begins` has the
    offset of each record and, last, of the input's end."""
    number = max(i for i, begin in enumerate(begins) if begin < at)
    begin, got = begins[number], at - begins[number]
    size = begins[number + 1] - begin if got >= 4 else 4
    return complain("record %d at byte %d: truncated: the input ends after %d "
                    "of its %d bytes" % (number, begin, got, size))


def cuts_of_raw():
    """Every way to cut a raw stream, between two records or in one."""
    data = Schema().stream(SMALL)
    for at in range(len(data) + 1):
        whole = at in (0, 10, 16)
        made = run("packstream", "-qL", 4, "-d", 4, "-w", 1, data=data[:at],
                   status=0 if whole else 65,
                   message="" if whole else cut_message(at, [0, 10, 16]))
        check_cut(made, sum(at >= begin for begin in (10, 16)), whole)


def cuts_of_framed():
    """A framed stream without its END is incomplete."""
    schema = Schema(framed=True)
    data = schema.stream(SMALL)
    begins = [136, 146, 152, 212, 244]  # the last three: LENGTHS, END
    assert len(data) == begins[-1]
    for at in sorted({*range(1, len(data), EVERY), *begins[:-1]}):
        if at < begins[0]:
            wanted = complain("the input ends inside the header")
        elif at in begins[:3]:
            wanted = complain(
                "truncated: the input ends at byte %d without END, after %d "
                "records" % (at, begins.index(at)))
        elif at < begins[2]:
            wanted = cut_message(at, begins)
        else:
            wanted = complain("record 2 at byte %d: truncated: the input ends "
                              "after %d of its %d bytes" % cut_control(at, *begins[2:]))
        made = run("packstream", "-L", 4, "-d", 4, "-w", 1, data=data[:at],
                   status=65, message=wanted)
        if at < begins[0]:
            assert not made
        else:
            check_cut(made, sum(at >= end for end in begins[1:3]), False)
    whole = run("packstream", "-L", 4, "-d", 4, "-w", 1, data=data)
    check_cut(whole, 2, True)


def cut_control(at, lengths, end, _):
    """The start of the control record that is cut at byte `at`, the bytes of
    it that exist, and the size that the reader expects."""
    if at >= end:
        return end, at - end, 32
    got = at - lengths
    # Without the kind or the number of lengths, END is assumed.
    return lengths, got, 4 if got < 4 else 32 if got < 8 else \
        12 if got < 12 else end - lengths


def check_cut(made, n_packs, whole):
    """The packs before the fault are there, END only without one."""
    # A row of 4 tokens, a head and a sequence row have 64 bytes.
    assert len(made) == 4096 + 64 * (n_packs > 0) + 64 * n_packs + 256 * whole
    run("packstat", "--verify", data=made, status=0 if whole else 65)


def flips():
    """A flipped bit in any byte of a framed stream is noticed."""
    schema = Schema(framed=True, channels=[("a", "u8", PER_TOKEN),
                                           ("b", "u16", PER_SEQUENCE)])
    data = schema.stream([s + [bytes(schema.length(s)), b"xy"]
                          for s in SMALL])
    run("packstream", "-L", 4, data=data)
    for at in range(0, len(data), EVERY):
        broken = bytearray(data)
        broken[at] ^= 1 << at % 8
        run("packstream", "-L", 4, data=broken, status=65)


def edit(path, *values):
    """Puts numbers, as OFFSET CODE NUMBER, into the header of a framed
    stream and updates the checksum."""
    with open(path, "rb") as file:
        data = bytearray(file.read())
    size, = struct.unpack_from("<I", data, 16)
    for at, code, number in zip(values[::3], values[1::3], values[2::3]):
        struct.pack_into("<" + code, data, int(at), int(number, 0))
    data[:size] = seal(data[:size])
    with open(path, "wb") as file:
        file.write(data)


def make_framed(*texts):
    """Prints a framed stream of the sequences, with commas between tokens, and
    flush records for `flush`; `end=SEQUENCES:TOKENS` makes an END with these
    counts."""
    schema = Schema(framed=True)
    records, said, sequences = [], None, []
    for text in texts:
        if text[:4] == "end=":
            said = map(int, text[4:].split(":"))
        elif text == "flush":
            records.append(struct.pack("<II", 0, 2))
        else:
            tokens = list(map(int, text.split(",")))
            sequences.append([struct.pack("<%dH" % len(tokens), *tokens)])
            records.append(schema.record(sequences[-1]))
    said = said or (len(sequences), sum(map(schema.length, sequences)))
    sys.stdout.buffer.write(schema.header() + b"".join(records) +
                            end(*said, records))


# ---------------------------------------------------------------------
# Figures

def stats(token_path, pack_path, *json_paths):
    """The keys of --stats=json agree with the packs."""
    with open(token_path, "rb") as file:
        schema, _ = read_framed(file.read())
    with open(pack_path, "rb") as file:
        packs = Packs(file.read(), schema)
    wanted = expected_stats(packs)
    for path in json_paths:
        with open(path) as file:
            found = json.load(file)
        for key in ("file", "place_correlation", "neighbour_correlation",
                    "targets"):
            found.pop(key, None)
        # Only the packing run has the exact number; the packs bound it.
        delay = found.pop("max_delay", packs.window)
        assert packs.end["max_displacement"] <= delay <= packs.window
        check_reasons(found, packs.end)
        check_histograms(found, packs)
        for key, value in wanted.items():
            if isinstance(value, float):
                assert abs(found[key] - value) < 1e-8, key
            else:
                assert found[key] == value, (key, found[key], value)
        assert set(found) == set(wanted), set(found) ^ set(wanted)


def check_histograms(found, packs):
    """packstat counts lengths, depths and filled slots; packstream does not."""
    if "lengths" not in found:
        return
    width = packs.schema.width
    lengths = [[len(piece.lanes[0]) // width for piece in pack]
               for pack in packs.packs]
    for key, values in (("lengths", [n for pack in lengths for n in pack]),
                        ("depths", map(len, lengths)),
                        ("fills", map(sum, lengths))):
        assert found.pop(key) == sorted(
            map(list, collections.Counter(values).items())), key
    del found["parts"]


def check_reasons(found, end):
    """All that is rejected here is too long, if there are reasons."""
    for reason in "overlong", "empty", "out_of_vocab":
        for unit in "sequences", "tokens":
            total = end["rejected_" + unit] if reason == "overlong" else 0
            assert found.pop("rejected_%s_%s" % (reason, unit),
                             total) == total


def expected_stats(packs):
    counts, n = dict(packs.end), len(packs.packs)
    tokens = sum(len(piece.lanes[0]) for piece in packs.pieces())
    tokens //= packs.schema.width
    del counts["digest"]
    counts.update(
        sequences=len(packs.pieces()), tokens=tokens, packs=n,
        capacity=packs.capacity, depth=packs.depth,
        max_depth=max(map(len, packs.packs)),
        efficiency=tokens / (n * packs.capacity),
        packing_factor=len(packs.pieces()) / n,
        lower_bound=-(-tokens // packs.capacity),
        padding=n * packs.capacity - tokens,
        max_displacement=displacement(packs),
        rejected=counts["rejected_sequences"])
    return counts


def displacement(packs):
    newest = worst = 0
    for pack in packs.packs:
        newest = max([newest] + [piece.id for piece in pack])
        worst = max([worst] + [newest - piece.id for piece in pack])
    return worst


def make_sample(seed):
    sys.stdout.buffer.write(sample(int(seed)))


if __name__ == "__main__":
    globals()[sys.argv[1]](*sys.argv[2:])
