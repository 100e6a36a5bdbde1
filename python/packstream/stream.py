"""stream.py - check the blocks of one pack stream, its index and END.

SPDX-License-Identifier: MIT
"""

from __future__ import annotations

import io
import struct
from typing import Any, Callable, Dict, List, NamedTuple, Sequence

import numpy as np

from packstream import native
from packstream.batch import (HEAD, NUMBERS, Run, joined, rows_of_bytes,
                              shape_of, taken)
from packstream.errors import need
from packstream.header import HEADER_BYTES, MAX_SEQUENCES, MINOR, Header
from packstream.native import ffi, xxh3

BLOCK = struct.Struct("<4I6Q")  # head of a block
BLOCK_MAGIC = 0x42534b50
PACKS, END, INDEX = range(3)    # kinds of blocks
ENTRY = np.dtype([("offset", "<u8"), ("first", "<u8"), ("watermark", "<u8")])
INDEXED = 4096                  # number of blocks that an INDEX block lists
INDEX_BYTES = BLOCK.size + INDEXED * ENTRY.itemsize
END_BYTES = 192                 # size of END before its index
TRAILER = struct.Struct("<2Q8s")
TRAILER_MAGIC = b"\x89PKE\r\n\x1a\n"
MIN_END_BYTES = 256
MAX_END_BYTES = 256 + ENTRY.itemsize * (MAX_SEQUENCES + INDEXED)
# An entry of the index, with the offset and the first pack of the next entry
SPAN = np.dtype([("offset", "<i8"), ("first", "<i8"), ("end", "<i8"),
                 ("next", "<i8")])
# The head of a pack; in memory, the index replaces the checksum
STORED_HEAD = np.dtype([("checksum", "<u8"), *NUMBERS])
# The input of a checksum; `row` and `sequences` are hashes
HASHED_HEAD = np.dtype([("other", "V12"), ("head", "V28")])
SUMMED = np.dtype([("index", "<u8"), ("row", "<u8"), ("sequences", "<u8"),
                   ("head", "V28")])
DISORDER = "the index of the stream that begins here is out of order"
CUT = "truncated: no END before this byte"

n_true = np.count_nonzero


class Block(NamedTuple):
    """The head of a block."""
    kind: int
    n_packs: int
    n_seqs: int
    first: int                  # number of its first pack, or the next pack
    size: int                   # bytes, including the head
    body: int                   # hash of the bytes after the head


def up(size: int) -> int:
    """Rounds up to a possible size of a block."""
    return -(-size // 64) * 64


class Stream:
    """One stream: checks and counts its header, blocks and END."""

    def __init__(self, head: Header, number: int, at: int, verify: bool):
        self.head, self.number, self.at, self.verify = head, number, at, verify
        self.missing = 0        # packs before the first present pack
        self.packs = 0          # number of packs, from the END of a file
        self.end = (0, 0, 0)    # sequences, tokens, digest
        self.deepest = 0        # maximum sequences in a pack, from END
        self.sequences = self.tokens = 0
        self.digest = head.checksum
        # The index of a file: its parts (the last part is in END) and, for
        # each part that has been read, its blocks.
        self.parts = np.empty(0, SPAN)
        self.tables: Dict[int, np.ndarray] = {}

    def sums(self, data: Any, wanted: int) -> bool:
        """True if the checksum of the data matches or is not verified."""
        return not self.verify or xxh3(data) == wanted

    def read_block(self, data: Any, at: int) -> Block:
        """Reads the head of the block at byte `at`."""
        need(len(data) == BLOCK.size, at + len(data), CUT)
        magic, *numbers, _, _, body, checksum = BLOCK.unpack(data)
        block, head = Block(*numbers, body), self.head
        if block.kind == PACKS:
            fits = 1 <= block.n_packs <= min(head.block_packs, block.n_seqs) \
                and block.size <= head.block_bytes and block.size == up(
                    BLOCK.size +
                    block.n_packs * (head.row.itemsize + HEAD.itemsize) +
                    block.n_seqs * head.sequence.itemsize)
        else:
            fits = block.n_packs == block.n_seqs == 0 and (
                block.size == INDEX_BYTES if block.kind == INDEX else
                block.kind == END and block.size == up(block.size) and
                MIN_END_BYTES <= block.size <= MAX_END_BYTES)
        need(magic == BLOCK_MAGIC and fits and self.sums(data[:56], checksum),
             at, "its head is damaged", "block at ")
        return block

    def read_packs(self, data: np.ndarray, blocks: Sequence[Block], at: int,
                   counted: bool) -> List[Run]:
        """Reads and checks the packs of some blocks, the first of which starts
        at byte `at`.  Counts them if `counted` is set."""
        rows, heads, tables, begins, n_seqs = [], [], [], [0], 0
        for block in blocks:
            begin, end = begins[-1], begins[-1] + block.size
            a = begin + BLOCK.size + block.n_packs * self.head.row.itemsize
            b = a + block.n_packs * HEAD.itemsize
            c = b + block.n_seqs * self.head.sequence.itemsize
            need(self.head.minor > MINOR or not any(data[c:end].tobytes()),
                 at + begin, "the bytes at its end are not zero", "block at ")
            rows.append(data[begin + BLOCK.size:a].view(self.head.row))
            heads.append(data[a:b].view(STORED_HEAD))
            tables.append(data[b:c].view(self.head.sequence))
            if n_seqs:
                heads[-1]["first_seq"] += np.uint32(n_seqs)
            n_seqs += block.n_seqs
            begins.append(end)
        head, table = joined(heads), joined(tables)
        self.check(rows, head, table, np.arange(
            blocks[0].first, blocks[0].first + len(head)), lambda i: at +
            np.repeat(begins[:-1], list(map(len, rows)))[i], counted)
        runs: List[Run] = []
        n, whole = 0, Run(rows[0], head.view(HEAD), table)  # has few rows
        for some in rows:
            runs.append(Run(some, whole.heads[n:n + len(some)], table, whole,
                            n))
            n += len(some)
        return runs

    def check(self, rows: Sequence[np.ndarray], heads: np.ndarray,
              table: np.ndarray, indices: np.ndarray,
              block_of: Callable[[int], int], counted: bool = False) -> None:
        """Raises PackError if a pack is invalid or has a different index;
        block_of(i) is the byte at which the block of pack i starts.  Stores
        the indices in the heads."""
        wrong = len(heads)
        if native.lib is not None:
            wrong = self.first_wrong_native(rows, heads, table, indices)
        elif not self.right(heads, table, 0):
            wrong = self.first_wrong(heads, table)
        elif self.verify:
            wrong = self.changed(rows, heads, table, indices)
        if wrong == len(heads) and self.head.lists:
            wrong = self.wrong_lists(heads, table)
        if wrong < len(heads):
            need(False, block_of(wrong), "damaged or out of place",
                 "pack %d in the block at " % indices[wrong])
        if counted:
            self.count(heads, len(table))
        heads["checksum"] = indices

    def first_wrong(self, heads: np.ndarray, table: np.ndarray) -> int:
        n = 0
        for i, head in enumerate(heads):
            end = n + int(head["n_seq"])
            if end <= n or not self.right(heads[i:i + 1], table[n:end], n):
                return i
            n = end
        return len(heads) - 1

    def right(self, heads: np.ndarray, table: np.ndarray,
              first_seq: int) -> bool:
        """True if the table has the sequences that the heads describe,
        starting with number first_seq, without gaps."""
        n_seq, lengths = heads["n_seq"], table["seq_tok"]
        starts = table["seq_start"]
        counts = np.add.accumulate(n_seq, dtype=np.int64)
        if counts[-1] != len(table) or n_true(n_seq) < len(heads):
            return False
        begins = counts - n_seq
        ends = starts + taken(lengths, self.head.align)
        n_tok = np.add.reduceat(lengths, begins) if self.head.align > 1 else \
            ends[counts - 1]
        # Only the first sequence of a pack does not start at the end of the
        # sequence before it, because no end is 0.
        return not (
            n_true(begins + first_seq != heads["first_seq"]) or
            n_true(n_seq > self.head.most) or n_true(lengths < 1) or
            n_true(ends.view(np.uint32) - 1 >= self.head.capacity) or
            n_true(starts[begins]) or
            n_true(starts[1:] != ends[:-1]) != len(heads) - 1 or
            n_true(n_tok != heads["n_tok"]) or
            n_true(np.maximum.reduceat(lengths, begins) != heads["max_seqlen"]))

    def wrong_lists(self, heads: np.ndarray, table: np.ndarray) -> int:
        """Returns the number of the first pack whose lists do not follow each
        other inside their array, or the number of packs."""
        ends_of = np.add.accumulate(heads["n_seq"], dtype=np.int64)
        wrong = np.zeros(len(table), bool)
        for name in self.head.lists:
            starts, lengths = table[name].T.astype(np.int64)
            ends = starts + lengths
            due = np.append(0, ends[:-1])
            due[ends_of - heads["n_seq"]] = 0
            wrong |= (starts != due) | (ends > self.head.row[name].shape[0])
        return int(ends_of.searchsorted(wrong.argmax(), "right")) \
            if wrong.any() else len(heads)

    def changed(self, rows: Sequence[np.ndarray], heads: np.ndarray,
                table: np.ndarray, indices: np.ndarray) -> int:
        """Returns the number of the first pack whose checksum differs, or the
        number of packs."""
        digest, n = xxh3, len(heads)
        summed = np.empty(n, SUMMED)
        summed["index"] = indices
        summed["row"] = [digest(row) for some in rows
                         for row in rows_of_bytes(some)]
        # Copying small tables is faster than slicing them.
        memory = io.BytesIO(table.view(np.uint8))
        sizes = heads["n_seq"].astype(np.int64) * table.itemsize
        summed["sequences"] = list(map(digest, map(
            memory.read, sizes.tolist())))
        summed["head"] = heads.view(HASHED_HEAD)["head"]
        sums = list(map(digest, summed.view("V52").tolist()))
        differ = heads["checksum"] != np.array(sums, np.uint64)
        return int(np.append(differ, True).argmax())

    def first_wrong_native(self, rows: Sequence[np.ndarray],
                           heads: np.ndarray, table: np.ndarray,
                           indices: np.ndarray) -> int:
        begin, after = 0, ffi.new("uint32_t *")
        for some in rows:
            n = len(some)
            found = native.lib.psn_check(
                shape_of(self.head, self.verify), n,
                ffi.from_buffer("int64_t[]", indices[begin:]),
                ffi.from_buffer("unsigned char[]", some),
                ffi.from_buffer("unsigned char[]", heads[begin:]),
                ffi.from_buffer("unsigned char[]", table), len(table), after)
            begin += found
            if found < n:
                return begin
        return begin - (after[0] != len(table))

    def count(self, heads: np.ndarray, n: int) -> None:
        self.sequences += n
        self.tokens += int(np.add.reduce(heads["n_tok"], dtype=np.int64))
        if self.verify and native.lib is not None:
            self.digest = native.lib.psn_digest(self.digest, ffi.from_buffer(
                "unsigned char[]", heads), len(heads))
        elif self.verify:
            digest = self.digest
            for checksum in heads["checksum"].copy().view("V8").tolist():
                digest = xxh3(checksum, digest)
            self.digest = digest

    def read_end(self, data: bytes, at: int) -> np.ndarray:
        """Reads END, which starts at byte `at`.  Returns its index entries."""
        block = self.read_block(data[:BLOCK.size], at)
        numbers = struct.unpack_from("<4Q", data, BLOCK.size)
        longest, self.deepest, least, _, n_parts, n_blocks = \
            struct.unpack_from("<6I", data, 168)
        size, stream_bytes, magic = TRAILER.unpack(data[-TRAILER.size:])
        need(block.kind == END and len(data) == block.size == size == up(
                END_BYTES + (n_parts + n_blocks) * ENTRY.itemsize +
                TRAILER.size) and n_blocks < INDEXED and
             magic == TRAILER_MAGIC and block.first == numbers[0] and
             numbers[0] * self.head.row.itemsize < stream_bytes and
             (self.missing or stream_bytes == at + size - self.at) and
             self.sums(data[BLOCK.size:], block.body), at, "END is damaged")
        need(all(said in (None, found) for said, found in
                 zip((self.head.n_packs, self.head.n_sequences,
                      self.head.n_tokens, *self.head.most_least),
                     (*numbers[:3], longest, least))), at,
             "END is not the header's")
        self.packs, self.end = numbers[0], numbers[1:]
        return np.frombuffer(data, ENTRY, n_parts + n_blocks, END_BYTES)

    def read_index(self, data: bytes, at: int) -> None:
        """Reads END of a file, including the last part of the index."""
        index = self.read_end(data, at)
        n, = struct.unpack_from("<I", data, 184)
        parts, blocks = index[:n], index[n:]
        if len(blocks):
            parts = np.append(parts, blocks[:1])
            parts["offset"][n] = at - self.at
        self.parts = self.spans(parts, at - self.at + 1, 0, self.packs)
        if len(blocks):
            self.read_part(n, blocks)

    def read_part(self, i: int, entries: np.ndarray) -> None:
        """Reads a part of the index, which lists the blocks between the
        previous part and itself."""
        offset, first, _, last = self.parts[i].tolist()
        begin = HEADER_BYTES
        if i:
            begin = int(self.parts["offset"][i - 1]) + INDEX_BYTES
        table = self.spans(entries, offset, first, last)
        need(table["offset"][0] == begin and
             (table["end"] - table["offset"] <= self.head.block_bytes
              ).all(), self.at, DISORDER)
        self.tables[i] = table

    def spans(self, entries: np.ndarray, end: int, first: int,
              last: int) -> np.ndarray:
        """Converts entries of the index to spans, from pack `first` to pack
        `last` and byte `end`."""
        table = np.empty(len(entries), SPAN)
        for name, until, high in (("offset", "end", end),
                                   ("first", "next", last)):
            table[name] = entries[name]
            table[until][:-1] = table[name][1:]
            table[until][-1:] = high
            need((table[name] < table[until]).all(), self.at, DISORDER)
        need(table["first"][0] == first and table["offset"][0] >= HEADER_BYTES
             if len(table) else first == last, self.at, DISORDER)
        return table

    def compare(self) -> None:
        """Raises PackError if END does not match the packs."""
        need((self.sequences, self.tokens) == self.end[:2] and
             (not self.verify or self.digest == self.end[2]),
             self.at + HEADER_BYTES,
             "the packs from here on are not those of END")
