"""packs.py - pack streams as dictionaries of numpy arrays.

    from packstream import packs, views

    source = packs.open_packs("corpus.pks")    # or sys.stdin.buffer
    for batch in source.batches(32):
        batch["tokens"]                        # [32, L]
        views.positions(batch)                 # [32, L], computed

A batch maps names to the arrays of S packs: tokens and per-token channels [S,
L]; cu [S, D + 2], the boundaries of the sequences; seq_id and per-sequence
channels [S, D]; seq_tok [S, D] if sequences are aligned; and index, n_seq,
n_tok, max_seqlen and sum_len_sq of the packs [S].  A channel of vectors of N
values has one dimension more: [S, L, N] or [S, D, N].

A list channel such as "edges" has two arrays: "edges" [S, B] or [S, B, N], the
lists of each pack one after the other, where B is the budget of the list; and
"edges.cu" [S, D + 2], their boundaries.  batch.lists_of("edges") has the list
of each sequence.

D is the depth in `header`, or the maximum number of sequences in a pack of the
batch if the header has None, as in some pipes.  `sequences` has the rows of all
sequences, pack after pack, as in the stream.  views.py computes the other
arrays.  Both modules need only numpy.

A reader checks the header, the blocks, the index and END, and checks the
position, counts and sequences of each pack before it returns the pack.
Checksums are compared if the extension or the module xxhash is installed,
unless verify is False; otherwise they are NOT compared, and `source.verifies`
is False.  If all packs are read in order (from a pipe by every rank, from a
file by a single reader), the numbers of sequences and tokens are compared with
END, and so is the digest if checksums are compared.  Any error raises
PackError, which names the byte.

The format is defined in packstream(5).

SPDX-License-Identifier: MIT
"""

from __future__ import annotations

import copy
import itertools
import os
import re
import selectors
import stat
import weakref
from typing import (Any, BinaryIO, Iterator, List, Optional, Sequence, Tuple,
                    Union)

import numpy as np

from packstream.batch import (CHUNK_BYTES, HEAD, Batch, Run, as_batch, empty,
                              first_seqs, join, stack)
from packstream.epoch import first_own, shuffled
from packstream.errors import PackError, need
from packstream.header import (EMPTY, HEADER_BYTES, Header, difference,
                               read_header)
from packstream.native import xxh3
from packstream.stream import (BLOCK, CUT, END, ENTRY, INDEX, INDEX_BYTES,
                               MAX_END_BYTES, MIN_END_BYTES, PACKS, SPAN,
                               STORED_HEAD, TRAILER, TRAILER_MAGIC, Block,
                               Stream)

__all__ = ["Batch", "Header", "PackError", "PackFile", "PackPipe", "Packs",
           "open_packs", "shuffled", "stack"]


def is_url(path: Any) -> bool:
    return isinstance(path, str) and \
        re.match(r"[A-Za-z][A-Za-z0-9+.:-]*://", path) is not None


class Packs:
    """Base class of PackFile and PackPipe; use open_packs."""

    def __init__(self, verify: bool):
        self.verifies = verify and xxh3 is not None
        self.header: Header

    def batches(self, size: int, rank: int = 0, ranks: int = 1,
                start: int = 0, order: Optional[np.ndarray] = None,
                drop_last: bool = False) -> Iterator[Batch]:
        """Yields batches of `size` packs; the last batch may have fewer.

        Packs are numbered consecutively, from 0, across joined streams.
        Rank r of R gets the packs whose number is r modulo R, so a rank may
        get one pack, and one batch, more than another.  With drop_last,
        all batches are full and all ranks get equally many; the remaining
        packs are dropped.  Packs with numbers below `start` are skipped.
        `order`, an array of numbers such as shuffled(len(source), seed,
        epoch), selects the order of a file's packs; `rank` and `start` then
        refer to positions in it.
        """
        if size < 1 or start < 0:
            raise ValueError("size is %d and start is %d: size must be at "
                             "least 1, start at least 0" % (size, start))
        if not 0 <= rank < ranks:
            raise ValueError("rank is %d, not from 0 to %d" % (rank,
                                                               ranks - 1))
        rest: List[Run] = []
        whole: List[Run] = []
        given = have = 0
        for run, known in self.runs(size, rank, ranks, start, order):
            end = 0
            while end < len(run):
                begin, end = end, end + size - have
                rest.append(run[begin:end])
                have += len(rest[-1])
                if have == size:
                    whole.append(join(rest))
                    rest, have = [], 0
            ready = len(whole)
            if drop_last:       # wait until every rank has equally many
                ready = min(ready, max(0, known // (size * ranks) - given))
            yield from map(self.batch, whole[:ready])
            del whole[:ready]
            given += ready
        if rest and not drop_last:
            yield self.batch(join(rest))

    def batch(self, run: Run) -> Batch:
        return as_batch(run, self.header)

    def runs(self, size: int, rank: int, ranks: int, start: int,
             order: Optional[np.ndarray]) -> Iterator[Tuple[Run, int]]:
        """Yields the rank's packs, checked, and the number of packs of all
        ranks that are known to exist."""
        raise NotImplementedError

    def header_of(self, data: bytes, at: int) -> Header:
        head = read_header(data, at, self.verifies)
        other = difference(head, self.header) if at else ""
        need(not other, at, "a stream of another geometry than the first: " +
             other)
        return head


class PackFile(Packs):
    """A regular file, or a RemoteFile.  Packs are read on demand, into memory
    owned by the batch.  The file is not mapped: if another program truncates
    it, reading raises PackError instead of SIGBUS."""

    def __init__(self, path: Union[str, os.PathLike], verify: bool = True,
                 remote: Any = None):
        super().__init__(verify)
        self.path, self.remote = path, remote
        if remote is not None:
            self.size = remote.size
        else:
            self.fd = os.open(path, os.O_RDONLY)
            weakref.finalize(self, os.close, self.fd)
            self.size = os.fstat(self.fd).st_size
        need(self.size, 0, EMPTY)
        self.header = self.header_of(
            self.read(0, min(HEADER_BYTES, self.size)), 0)
        self.streams = list(self.from_the_end())[::-1]
        for before, stream in zip(self.streams, self.streams[1:]):
            stream.number = before.number + before.packs
        self.header = self.header._replace(depth=max(
            stream.head.depth or stream.deepest
            for stream in self.streams) or None)

    def __reduce__(self) -> Any:
        return type(self), (self.path, self.verifies, self.remote)

    def fill(self, buffer: np.ndarray, at: int) -> None:
        """Fills the buffer with the bytes from `at` on."""
        if self.remote is not None:
            need(at + len(buffer) <= self.size, at, CUT)
            return self.remote.fill(buffer, at)
        while len(buffer):
            got = os.preadv(self.fd, [buffer], at)
            if not got:
                need(False, at, "the file ends at or before this byte, it had "
                     "%d bytes when opened" % self.size)
            buffer, at = buffer[got:], at + got

    def array(self, at: int, n: int) -> np.ndarray:
        buffer = empty(n)
        self.fill(buffer, at)
        return buffer

    def read(self, at: int, n: int) -> bytes:
        return self.array(at, n).tobytes()

    def from_the_end(self) -> Iterator[Stream]:
        """Yields the streams, the last one first: the size in a stream's
        trailer gives the position of its header."""
        end = self.size
        while end:
            begin = max(end - TRAILER.size, 0)
            size, stream_bytes, magic = TRAILER.unpack(
                self.read(begin, end - begin).ljust(TRAILER.size, b"\0"))
            at = end - stream_bytes
            need(magic == TRAILER_MAGIC and at >= 0 and
                 MIN_END_BYTES <= size <= min(MAX_END_BYTES,
                                              stream_bytes - HEADER_BYTES),
                 end, CUT)
            stream = Stream(self.header_of(self.read(at, HEADER_BYTES), at),
                            0, at, self.verifies)
            stream.read_index(self.read(end - size, size), end - size)
            yield stream
            end = at

    def __len__(self) -> int:
        return self.streams[-1].number + self.streams[-1].packs

    def runs(self, size: int, rank: int, ranks: int, start: int,
             order: Optional[np.ndarray]) -> Iterator[Tuple[Run, int]]:
        step = CHUNK_BYTES // self.header.row.itemsize // size * size or size
        known = (len(self) if order is None else len(order)) - start
        if order is not None:
            own = np.asarray(order)[first_own(0, rank, ranks, start)::ranks]
            for at in range(0, len(own), step):
                yield self.run(own[at:at + step]), known
            return
        for stream in map(copy.copy, self.streams):
            skip = first_own(stream.number, rank, ranks, start)
            own = range(skip, stream.packs, ranks)
            if ranks == 1:
                yield from zip(self.blocks(stream, skip),
                               itertools.repeat(known))
                continue
            for at in range(0, len(own), step):
                part = own[at:at + step]
                yield self.load(stream, np.arange(
                    part.start, part.stop, ranks)), known

    def table(self, stream: Stream, i: int) -> np.ndarray:
        """Returns the blocks of part i of the index."""
        if i not in stream.tables:
            offset, _, _, last = stream.parts[i].tolist()
            at = stream.at + offset
            data = self.array(at, INDEX_BYTES)
            block = stream.read_block(data[:BLOCK.size], at)
            need(block.kind == INDEX and block.first == last and
                 stream.sums(data[BLOCK.size:], block.body), at,
                 "it is no index", "block at ")
            stream.read_part(i, data[BLOCK.size:].view(ENTRY))
        return stream.tables[i]

    def find(self, stream: Stream, indices: np.ndarray) -> np.ndarray:
        """Returns the block of each of these packs."""
        parts = stream.parts["next"].searchsorted(indices, "right")
        found = np.empty(len(indices), SPAN)
        for part in set(parts.tolist()):
            table, here = self.table(stream, part), parts == part
            found[here] = table[table["next"].searchsorted(indices[here],
                                                           "right")]
        return found

    def blocks(self, stream: Stream, index: int) -> Iterator[Run]:
        """Yields the packs of a stream from `index` on.  Several blocks are
        read at a time."""
        whole = index == 0
        parts = stream.parts["next"].searchsorted(index, "right")
        for part in range(parts, len(stream.parts)):
            table = self.table(stream, part)
            begin = int(table["next"].searchsorted(index, "right"))
            self.expect(stream, table[begin:])
            while begin < len(table):
                at = int(table["offset"][begin])
                end = max(begin + 1, int(table["end"].searchsorted(
                    at + CHUNK_BYTES, "right")))
                spans = table[begin:end].tolist()
                data = self.array(stream.at + at, spans[-1][2] - at)
                blocks = [self.head_of(stream, span, data[span[0] - at:])
                          for span in spans]
                first = spans[0][1]
                for run in stream.read_packs(data, blocks, stream.at + at,
                                             whole):
                    yield run[max(0, index - first):]
                    first += len(run)
                begin = end
        if whole:
            stream.compare()

    def expect(self, stream: Stream, spans: np.ndarray) -> None:
        """Announces the blocks that are read next."""
        if self.remote is not None:
            at = stream.at + spans["offset"]
            self.remote.expect(list(dict.fromkeys(zip(at.tolist(), (
                spans["end"] - spans["offset"]).tolist()))))

    def head_of(self, stream: Stream, span: Sequence[int], data: np.ndarray
                ) -> Block:
        """Reads the head of a block, which must match the index."""
        offset, first, end, after = span
        at = stream.at + offset
        block = stream.read_block(data[:BLOCK.size], at)
        need(block.kind == PACKS and block.first == first and
             block.n_packs == after - first and
             block.size == end - offset, at,
             "it is not that of the index", "block at ")
        return block

    def load(self, stream: Stream, indices: np.ndarray) -> Run:
        """Reads and checks the packs with these indices in a stream."""
        head, n = stream.head, len(indices)
        rows, heads = empty(n * head.row.itemsize), empty(n * HEAD.itemsize)
        if n == 0:
            return Run(rows.view(head.row), heads.view(HEAD),
                       rows.view(head.sequence))
        spans = self.find(stream, indices)
        blocks, low = stream.at + spans["offset"], indices - spans["first"]
        self.expect(stream, spans)
        at, packs = blocks + BLOCK.size, spans["next"] - spans["first"]
        for array, dtype, gap in ((rows, head.row, 0), (heads, HEAD, 1 << 12)):
            self.gather(at + low * dtype.itemsize, dtype.itemsize, gap, array)
            at += packs * dtype.itemsize
        heads = heads.view(STORED_HEAD)
        at += heads["first_seq"].astype(np.int64) * head.sequence.itemsize
        sizes = heads["n_seq"].astype(np.int64) * head.sequence.itemsize
        wrong = (heads["n_seq"] - 1 >= head.most) | (
            at + sizes > stream.at + spans["end"])
        if np.count_nonzero(wrong):
            i = wrong.argmax()
            need(False, blocks[i], "damaged or out of place",
                 "pack %d in the block at " % indices[i])
        heads["first_seq"], n_seqs = first_seqs(heads)
        table = self.gather(at, sizes, 1 << 12, empty(
            n_seqs * head.sequence.itemsize)).view(head.sequence)
        rows = rows.view(head.row)
        stream.check([rows], heads, table, indices, blocks.__getitem__)
        return Run(rows, heads.view(HEAD), table)

    def gather(self, at: np.ndarray, sizes: Any, gap: int, to: np.ndarray
               ) -> np.ndarray:
        """Reads pieces of the file, whose sizes are multiples of 8 bytes, and
        joins them.  Pieces with gaps of at most `gap` bytes are read at
        once."""
        ends = at + sizes
        apart = at[1:] - ends[:-1]
        if not np.count_nonzero(apart):
            self.fill(to, int(at[0]))
            return to
        sizes = ends - at
        done = np.cumsum(sizes)
        last = [*np.flatnonzero((apart < 0) | (apart > gap)).tolist(),
                len(at) - 1]
        first = [0, *(i + 1 for i in last[:-1])]
        for i, j, begin, end, a, b in zip(first, last, *(
                array.tolist() for array in (
                    at[first], ends[last], (done - sizes)[first],
                    done[last]))):
            if end - begin == b - a:
                self.fill(to[a:b], begin)
                continue
            words = sizes[i:j + 1] >> 3
            places = (at[i:j + 1] - begin >> 3) - np.cumsum(words) + words
            places = np.repeat(places, words) + np.arange(b - a >> 3)
            to[a:b].view(np.uint64)[:] = self.array(
                begin, end - begin).view(np.uint64)[places]
        return to

    def run(self, numbers: np.ndarray) -> Run:
        """Reads and checks the packs with these numbers."""
        numbers = np.asarray(numbers, np.int64)
        if ((numbers < 0) | (numbers >= len(self))).any():
            raise IndexError("no pack has such a number")
        runs, places = [], []
        for stream in self.streams:
            indices = numbers - stream.number
            here = np.flatnonzero((indices >= 0) & (indices < stream.packs))
            if len(here) or stream is self.streams[-1] and not runs:
                runs.append(self.load(stream, indices[here]))
                places.append(here)
        return join(runs, places)

    def take(self, numbers: np.ndarray) -> Batch:
        """Returns a batch of the packs with these numbers, in this order."""
        return self.batch(self.run(numbers))


class PackPipe(Packs):
    """Any stream with readinto, which is read once.  A batch is returned as
    soon as its blocks have arrived.  For the output of packstream
    --resume-from=N, set start to N."""

    def __init__(self, stream: BinaryIO, verify: bool = True):
        super().__init__(verify)
        self.stream = stream
        self.readinto = getattr(stream, "readinto1", stream.readinto)
        self.at = 0
        self.header = self.header_of(self.some(HEADER_BYTES).tobytes(), 0)

    def read_some(self, buffer: memoryview) -> int:
        """Reads the available bytes, at least one.  Returns 0 at the end."""
        got = self.readinto(buffer)
        while got is None:      # a non-blocking stream has no data yet
            self.wait()
            got = self.readinto(buffer)
        return got

    def wait(self) -> None:
        try:
            descriptor = self.stream.fileno()
        except (AttributeError, OSError):
            raise BlockingIOError(
                "the stream is non-blocking and has no fileno() to wait for; "
                "make it blocking") from None
        with selectors.DefaultSelector() as selector:
            selector.register(descriptor, selectors.EVENT_READ)
            selector.select()

    def some(self, n: int, begun: bytes = b"") -> np.ndarray:
        """Returns the bytes in `begun` and the next bytes, n in total, or
        fewer if the input ends."""
        buffer, have = empty(n), len(begun)
        memory = memoryview(buffer)
        memory[:have] = begun
        self.at -= have
        while have < n:
            got = self.read_some(memory[have:])
            if not got:
                break
            have += got
        self.at += have
        return buffer[:have]

    def runs(self, size: int, rank: int, ranks: int, start: int,
             order: Optional[np.ndarray]) -> Iterator[Tuple[Run, int]]:
        if order is not None or self.at != HEADER_BYTES:
            raise ValueError("a pipe has one order, and is read once")
        head, number = self.header, 0
        while True:
            stream = Stream(head, number, self.at - HEADER_BYTES,
                            self.verifies)
            for index, run in self.blocks(stream, start):
                number = stream.number + index
                own = first_own(number, rank, ranks, start)
                number += len(run)
                yield run.take(np.arange(own, len(run), ranks)) \
                    if own or ranks > 1 else run, number - start
            data = self.some(HEADER_BYTES).tobytes()
            if not data:
                return
            head = self.header_of(data, self.at - len(data))

    def blocks(self, stream: Stream, start: int) -> Iterator[Tuple[int, Run]]:
        """Yields the index of each block's first pack, and its packs.
        Compares the index of the stream with the blocks."""
        index = -1
        parts: List[Tuple[int, ...]] = []
        seen: List[Tuple[int, ...]] = []
        while True:
            at = self.at
            first = self.some(BLOCK.size).tobytes()
            block = stream.read_block(first, at)
            if index < 0:
                index = stream.missing = block.first
                need(index <= max(0, start - stream.number), at,
                     "it starts with pack %d" % index)
            need(block.first == index, at, "it is of pack %d, not %d" % (
                block.first, index), "block at ")
            data = self.some(block.size, first)
            need(len(data) == block.size, self.at, CUT)
            if block.kind == PACKS:
                run, = stream.read_packs(data, [block], at, True)
                yield index, run
                index += len(run)
                seen.append((at - stream.at, block.first,
                             int(run.heads["watermark"][-1])))
                continue
            if block.kind == END:
                entries = stream.read_end(data.tobytes(), at)
                parts, seen = [], parts + seen
            else:
                entries = data[BLOCK.size:].view(ENTRY)
                need(stream.sums(data[BLOCK.size:], block.body), at,
                     "its checksum does not match", "block at ")
            need(stream.missing or entries.tolist() == seen, at,
                 "its index is not that of the blocks", "block at ")
            if block.kind == END:
                if not stream.missing:
                    stream.compare()
                return
            if seen:
                parts.append((at - stream.at, seen[0][1], seen[-1][2]))
            seen = []


def open_packs(source: Union[str, os.PathLike, BinaryIO],
               verify: bool = True) -> Packs:
    """Opens the packs of a path, a URL, or a stream of bytes such as
    sys.stdin.buffer.  A path that is not a regular file is read as a
    stream."""
    if hasattr(source, "readinto"):
        return PackPipe(source, verify)
    if is_url(source):
        from packstream.remote import MemoryCache, RemoteFile
        return PackFile(source, verify, RemoteFile(source, MemoryCache()))
    if stat.S_ISREG(os.stat(source).st_mode):
        return PackFile(source, verify)
    return PackPipe(open(source, "rb", buffering=0), verify)
