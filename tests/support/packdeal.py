"""packdeal.py - checks shares, for packdeal.bats.

    packdeal.py shares R B WHOLE PATTERN    the shares have the packs of WHOLE
                                once, each in the step it has there
    packdeal.py tail N SHARE TAIL [SHARE TAIL]...    TAIL has the packs of
                                SHARE, without the first N
    packdeal.py shuffled R WHOLE PATTERN    stdin is the output of --list: each
                                share has these packs, as one stream
    packdeal.py window W MOST   stdin is the output of --list: no pack has moved
                                by W steps or more, in steps of MOST
    packdeal.py best R B H WHOLE    stdin is the output of --list: no other
                                assignment of a step is better
    packdeal.py objects R WHOLE LIST JSON    JSON of --cost=0:1 has the packs
                                that LIST has, and their costs

Written from packstream(5).

SPDX-License-Identifier: MIT
"""

import itertools
import json
import struct
import sys

import packformat


def read(path):
    with open(path, "rb") as file:
        streams = list(packformat.streams(file.read()))
    assert streams
    return streams


def meaning(stream):
    """The header members that a share copies: not the counts, the depth or the
    block size."""
    h = stream.header
    return (h[:24] + h[48:52] + h[56:64] + h[80:88] + h[96:188] +
            h[200:4088])


def depth_of(streams):
    """The most sequences of any pack, in the header of each share."""
    return max(s.depth or s.end["max_depth"] for s in streams)


def contents(stream, by=0, **changed):
    """Each pack without the fields that change in a share (checksum, index and
    position in the block), its ids raised."""
    return [(head._replace(checksum=0, first_seq=0, **changed),
             [(piece.id + by, piece.offset, piece.length, piece.lanes)
              for piece in pack])
            for head, pack in zip(stream.heads, stream.packs)]


def first_pieces(stream):
    """How many sequences begin in it, and the tokens that are in it."""
    return (stream.end["sequences"] - stream.end["extra_pieces"],
            stream.end["tokens"])


def check_stream(whole, parts, depth):
    """A stream, and each share's part of it."""
    begun = tokens = 0
    for part in parts:
        assert part.compat == whole.compat | 2
        assert meaning(part) == meaning(whole)
        assert (part.depth, part.block_packs) == (depth, whole.block_packs)
        assert set(part.header[24:48] + part.header[64:80]) == {255}
        for name in "input_sequences", "input_tokens", \
                "truncated_sequences", "truncated_tokens":
            assert part.end[name] == whole.end[name], name
        here, tokens_here = first_pieces(part)
        assert part.end["rejected_sequences"] + here == \
            whole.end["input_sequences"]
        assert part.end["rejected_tokens"] + tokens_here == \
            whole.end["input_tokens"] - whole.end["truncated_tokens"]
        begun, tokens = begun + here, tokens + tokens_here
    assert (begun, tokens) == first_pieces(whole)


def shares(ranks, per_rank, whole, pattern):
    ranks, per_rank = int(ranks), int(per_rank)
    streams = read(whole)
    depth, streams = depth_of(streams), [s for s in streams if s.packs]
    parts = [read(pattern % rank) for rank in range(ranks)]
    assert all(len(part) == len(streams) for part in parts)
    for i, stream in enumerate(streams):
        check_stream(stream, [part[i] for part in parts], depth)
    packs = [p for s in streams for p in contents(s)]
    rest = [[p for s in part for p in contents(s)] for part in parts]
    for at in range(0, len(packs), ranks * per_rank):
        step = packs[at:at + ranks * per_rank]
        most = -(-len(step) // ranks)
        dealt = [set() for _ in rest]
        for number, pack in enumerate(step):
            owner, = [r for r in range(ranks)
                      if rest[r] and rest[r][0] == pack]
            rest[owner].pop(0)
            dealt[owner].add(number)
        assert all(len(d) <= most for d in dealt)
        if len(step) == ranks * per_rank:
            assert all(len(d) == per_rank for d in dealt)
    assert not any(rest)


def packs_of(path):
    """The packs, each with the meaning of its stream's header, and the totals
    of streams that have packs."""
    streams = [s for s in read(path) if s.packs]
    return ([(meaning(s), p) for s in streams for p in contents(s)],
            [[s.end[name] for name in ("input_sequences", "input_tokens")]
             for s in streams])


def tail(n, *paths):
    for share, rest in zip(paths[::2], paths[1::2]):
        (packs, totals), (left, totals_left) = map(packs_of, (share, rest))
        assert left == packs[int(n):] and left
        assert totals_left == totals[-len(totals_left):]


def shuffled(ranks, whole, pattern):
    packs, totals = [], {"input_sequences": 0, "input_tokens": 0}
    streams = read(whole)
    for stream in streams:
        packs += contents(stream, totals["input_sequences"], watermark=0)
        for name in totals:
            totals[name] += stream.end[name]
    wanted = [[] for _ in range(int(ranks))]
    for line in sys.stdin:
        _, rank, *numbers = map(int, line.split())
        wanted[rank] += numbers
    assert sorted(sum(wanted, [])) == list(range(len(packs)))
    for rank, numbers in enumerate(wanted):
        share, = read(pattern % rank)
        assert contents(share) == [packs[i] for i in numbers]
        first, header = meaning(streams[0]), meaning(share)
        assert header[:28] + header[32:] == first[:28] + first[32:]
        assert header[28:32] == struct.pack("<I", 1 << 24)
        assert share.depth == depth_of(streams)
        for name, total in totals.items():
            assert share.end[name] == total


def window(width, most):
    width, most = int(width), int(most)
    steps, moved = {}, 0
    for line in sys.stdin:
        step, _, *numbers = map(int, line.split())
        steps[step] = steps.get(step, 0) + len(numbers)
        for number in numbers:
            away = abs(number // most - step)
            assert away < width
            moved = max(moved, away)
    assert moved == width - 1
    *whole, last = (steps[i] for i in range(len(steps)))
    assert all(n == most for n in whole) and last <= most


def costs_of(whole, hidden):
    return [6 * int(hidden) * head.n_tok + head.sum_len_sq
            for stream in read(whole) for head in stream.heads]


def sums(costs, lines, ranks):
    made = [0] * ranks
    for rank, numbers in lines:
        made[rank] += sum(costs[n] for n in numbers)
    return made


def partitions(items, ranks, size):
    """The ways to give `size` of the items to each rank."""
    if ranks == 1:
        yield [items]
        return
    for own in itertools.combinations(items[1:], size - 1):
        own = (items[0],) + own
        left = [i for i in items if i not in own]
        for others in partitions(left, ranks - 1, size):
            yield [own] + others


def best(ranks, per_rank, hidden, whole):
    ranks, per_rank = int(ranks), int(per_rank)
    costs, steps = costs_of(whole, hidden), {}
    for line in sys.stdin:
        step, rank, *numbers = map(int, line.split())
        steps.setdefault(step, []).append((rank, numbers))
    assert len(steps) > 3
    for step, lines in steps.items():
        first = step * ranks * per_rank
        items = list(range(first, first + ranks * per_rank))
        assert sorted(sum((n for _, n in lines), [])) == items
        assert all(len(numbers) == per_rank for _, numbers in lines)
        least = min(max(sum(costs[i] for i in part) for part in way)
                    for way in partitions(items, ranks, per_rank))
        assert max(sums(costs, lines, ranks)) <= least * 1.001, step


def objects(ranks, whole, listed, found):
    costs = [head.sum_len_sq for stream in read(whole)
             for head in stream.heads]
    steps = {}
    for line in open(listed):
        step, _, *numbers = map(int, line.split())
        steps.setdefault(step, []).append(numbers)
    wanted = []
    for step, packs in steps.items():
        in_order = sorted(sum(packs, []))
        turns = [in_order[rank::int(ranks)] for rank in range(int(ranks))]
        sums_of = [[sum(costs[n] for n in mine) for mine in deal]
                   for deal in (packs, turns)]
        wanted.append({"step": step, "packs": packs, "costs": sums_of[0],
                       "undealt": sums_of[1]})
    assert len(wanted) > 3
    assert [json.loads(line) for line in open(found)] == wanted


if __name__ == "__main__":
    globals()[sys.argv[1]](*sys.argv[2:])
