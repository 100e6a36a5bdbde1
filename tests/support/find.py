"""find.py - checks lookups and --skip, for find.bats.

    find.py steps LIST FOUND FILE...  LIST is the output of packdeal --list of
                                these files, FOUND that of --find of each step:
                                they have the same packs
    find.py ids FILE FOUND      FOUND is the output of packstat --find of each
                                id of the file
    find.py skipped IDS PATTERN R OTHER   the R shares OTHER are those of
                                PATTERN, without these ids

Written from packstream(5).

SPDX-License-Identifier: MIT
"""

import subprocess
import sys

import packformat


def read(path):
    with open(path, "rb") as file:
        data = file.read()
    if data[:4] == b"\x28\xb5\x2f\xfd":
        data = subprocess.run(["zstd", "-qdc", path], check=True,
                              stdout=subprocess.PIPE).stdout
    return list(packformat.streams(data))


def sequences(stream, pack):
    """The place of each sequence of a pack: its number, start, length, offset
    in the whole sequence."""
    start = 0
    for slot, piece in enumerate(pack):
        n = stream.schema.length(piece.lanes)
        yield piece.id, slot, start, n, piece.offset
        start += packformat.up(n, stream.align)


def places(paths):
    """For each pack of all files, the lines of its sequences, with ids that
    are counted over all streams."""
    raised, lines = 0, []
    for path in paths:
        for number, stream in enumerate(read(path)):
            for pack in stream.packs:
                lines.append(["%d %d %d %d %d %d %d %s" % (
                    raised + which, number, len(lines), slot, start, n,
                    offset, path) for which, slot, start, n, offset in
                    sequences(stream, pack)])
            raised += stream.end["input_sequences"]
    return lines


def steps(listed, found, *paths):
    lines, wanted = places(paths), []
    for line in open(listed):
        step, rank, *numbers = line.split()
        wanted += ["%s %s %s\n" % (step, rank, place) for number in numbers
                   if number != "-" for place in lines[int(number)]]
    assert len(wanted) > 10
    assert list(open(found)) == wanted


def ids(path, found):
    wanted, first = [], 0
    for number, stream in enumerate(read(path)):
        for i, pack in enumerate(stream.packs, first):
            wanted += [(which, number, i, slot, start, n, offset)
                       for which, slot, start, n, offset in
                       sequences(stream, pack)]
        first += len(stream.packs)
    assert len(wanted) > 10
    assert [line.split() for line in open(found)] == [
        [*map(str, one), path] for one in sorted(wanted)]


def check_pack(stream, skip, pack, head, other, other_head):
    """Returns how many sequences the other pack lacks."""
    def contents(piece):
        return piece.id, piece.offset, piece.length, piece.lanes

    left = [contents(piece) for piece in pack if piece.id not in skip]
    got = [contents(piece) for piece in other]
    if left or not pack:
        assert got == left
    else:                       # the first token, with fill values
        (number, offset, length, lanes), (one,) = contents(pack[0]), other
        assert (one.id, one.offset) == (number, offset)
        assert stream.schema.length(one.lanes) == 1
        assert one.lanes[0] == lanes[0][:stream.schema.width]
        for (name, _, kind), lane, before in zip(
                stream.schema.channels, one.lanes[1:], lanes[1:]):
            if kind == packformat.PER_SEQUENCE:
                assert lane == before
            elif kind == packformat.LIST:
                assert not lane
            else:
                assert lane == stream.fields[name].unused(1)
    if len(left) == len(pack):
        assert head._replace(first_seq=0) == other_head._replace(first_seq=0)
    assert head.watermark == other_head.watermark
    return len(pack) - len(left)


def skipped(skip, pattern, ranks, others):
    with open(skip) as file:
        skip = set(map(int, file.read().split()))
    lacking = 0
    for rank in range(int(ranks)):
        whole, fewer = read(pattern % rank), read(others % rank)
        assert len(whole) == len(fewer)
        for before, after in zip(whole, fewer):
            assert len(before.packs) == len(after.packs)
            lacking += sum(
                check_pack(before, skip, *packs) for packs in
                zip(before.packs, before.heads, after.packs, after.heads))
    print(lacking)


if __name__ == "__main__":
    globals()[sys.argv[1]](*sys.argv[2:])
