"""packrules.py - tries the streams of packrows.py, each of which breaks a rule.

    packrules.py names PAGE     the rules of the page are those of the table
    packrules.py sound          the streams are valid before they are changed
    packrules.py broken KIND    the reader in WHO refuses a stream that breaks a
                                rule: "tokens", "packs" or "compressed"
    packrules.py places         so does a reader of single packs of a file, if
                                it can detect it
    packrules.py decoder PATH   the same of examples/c/decode-packs
    packrules.py python         the same of python/packstream/packs.py

SPDX-License-Identifier: MIT
"""

import os
import re
import subprocess
import sys

from packformat import offer_xxhash
from packrows import (AGAINST, JOINER, READER, RESERVED, ROWS, VERIFY,
                      aligned_packs, compressed, frame, indexed_packs,
                      listed_packs, odd_packs, reversed_input, reversed_packs,
                      seek_table, split_packs, tokens)

# Not checked by readers that start at any pack of a file.
PLACES_LACK = """end-digest end-displacement end-greatest index-watermark
    block-magic block-kind block-n-packs block-n-seqs block-first block-bytes
    block-zero block-checksum block-padding""".split()

# Not checked by examples/c/decode-packs.c, which reads the ids alone.
DECODER_LACKS = """pack-raw pack-group pack-budget pack-counts pack-window pack-zero
    special-vocab special-width pack-labels pack-pad pack-n-fields pack-dtype
    field-behind field-zero field-source field-kind field-count field-order
    field-fill field-place field-end end-displacement end-greatest joined
    field-list list-budget list-start list-end""".split()


def run(data, *command):
    done = subprocess.run(command, input=data, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, timeout=600)
    return done.returncode, done.stderr.decode()


def refused(data, says, *command):
    status, told = run(data, *command)
    assert status == 65 and says in told, (command, says, status, told)


def passes(data, *command):
    status, told = run(data, *command)
    assert status == 0, (command, status, told)


def rows_of(kind):
    rows = [row for row in ROWS if row.kind() == kind]
    assert rows
    return rows


def broken(kind):
    for row in rows_of(kind):
        try:
            check(row, row.bytes())
        except AssertionError as error:
            sys.exit("%s: %s" % (row.rule, error))


def check(row, data):
    verify = ["packstat", "--verify"]
    others = [["packstat"], ["packcat", "--order=pack"]]
    if row.rule == "limits":    # a reader that counts holds no record
        others = [["packstream", "-L", "64", "--overlong=split"]]
    elif row.kind() == "tokens":
        others = [["packstat"], ["packstream", "-L", "64"]]
    if row.who == AGAINST:
        passes(data, *verify)
        with open("input.tok", "wb") as file:
            file.write(reversed_input())
        verify.append("--against=input.tok")
    refused(data, row.says, *verify)
    for command in others:
        if row.who == READER:
            refused(data, row.says, *command)
        else:
            passes(data, *command)
    if row.who == JOINER:
        refused(data, row.packcat, "packcat")
    elif row.who == VERIFY:
        passes(data, "packcat")


def places():
    """Packs of a file are found from its end, and not read in between."""
    for row in rows_of("packs") + rows_of("compressed"):
        with open("x.pks", "wb") as file:
            file.write(row.bytes())
        status, told = run(b"", "packcat", "--range=0:", "x.pks")
        shown = row.who == READER and row.rule not in PLACES_LACK
        assert status == (65 if shown else 0), (row.rule, status, told)


def sound():
    for make in (split_packs, aligned_packs, reversed_packs, odd_packs,
                 indexed_packs, listed_packs):
        passes(make().bytes(), "packstat", "--verify")
        passes(make().bytes(), "packcat")
    for kept in [], [0], [1, 2], [0, 2], [2, 3], [0, 1, 2, 3]:
        data = split_packs().make_share(kept).bytes()
        passes(data, "packstat", "--verify")
        passes(data, "packcat", "--order=pack")
        refused(data, "the share of one rank, whose", "packcat")
        data = aligned_packs().make_share([i for i in kept if i < 2]).bytes()
        passes(data, "packstat", "--verify")
        passes(data, "packcat")
    frames, sizes = compressed()
    data = b"".join(frames) + seek_table(frames, sizes)
    passes(data, "packstat", "--verify")
    passes(data + data, "packstat", "--verify")
    passes(split_packs().bytes() + split_packs().bytes(), "packstat",
           "--verify")
    passes(tokens().bytes(), "packstat", "--verify")
    passes(tokens().bytes() * 2, "packstat", "--verify")
    passes(frame(tokens().bytes(), 27), "packstat", "--verify")


def names(page):
    """Every rule that the page marks has a row, and every row a rule; it has
    the reserved names."""
    found = {}
    with open(page) as file:
        for line in file:
            mark = re.match(r'\.\\" rule: (\S+) (\w+)$', line)
            if mark:
                found.setdefault(mark[1], set()).add(mark[2])
        file.seek(0)
        assert ", ".join(RESERVED) + "." in " ".join(file.read().split())
    wanted = {}
    for row in ROWS:
        wanted.setdefault(row.rule, set()).add(row.who)
    for name in sorted(set(found) | set(wanted)):
        assert found.get(name) == wanted.get(name), (
            name, "page", found.get(name), "table", wanted.get(name))


def decoder(path):
    """The example refuses whatever could mislead it, and any flipped bit."""
    for make in split_packs, aligned_packs, odd_packs, indexed_packs:
        passes(make().bytes() * 2, path)
    for row in rows_of("packs"):
        shown = row.who == READER and row.rule not in DECODER_LACKS
        status, told = run(row.bytes(), path)
        assert status == (65 if shown else 0), (row.rule, status, told)
    data = bytearray(split_packs().bytes())
    for at in range(0, len(data), 1 if os.environ.get("LONG") else 7):
        data[at] ^= 1 << at % 8
        refused(data, "decode-packs: byte ", path)
        data[at] ^= 1 << at % 8


def python():
    """packs.py refuses the streams that the table says it does."""
    here = os.path.dirname(os.path.abspath(__file__))
    sys.path.insert(0, os.path.join(here, "..", "..", "python"))
    offer_xxhash()
    from packstream import packs

    def read(data):
        with open("x.pks", "wb") as file:
            file.write(data)
        for _ in packs.open_packs("x.pks").batches(2):
            pass

    read(split_packs().bytes())
    for row in rows_of("packs"):
        try:
            read(row.bytes())
        except packs.PackError:
            assert row.python, (row.rule, row.says, "is refused")
        else:
            assert not row.python, (row.rule, row.says, "passes")


if __name__ == "__main__":
    globals()[sys.argv[1]](*sys.argv[2:])
