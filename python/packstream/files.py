"""files.py - read the packs of files in any order.

    packs = packstream.open("corpus.pks")           # or a list of paths
    len(packs), packs[17]["tokens"], packs[8:16]["tokens"].shape

SPDX-License-Identifier: MIT
"""

from __future__ import annotations

import io
import os
import stat
import threading
from concurrent.futures import ThreadPoolExecutor
from operator import index
from typing import (Any, BinaryIO, Callable, Dict, Iterator, List, Mapping,
                    NamedTuple, Optional, Sequence, Set, Tuple, Union)

import numpy as np

from packstream.batch import CHUNK_BYTES, HEAD, Batch, Run, empty, join
from packstream.epoch import first_own
from packstream.errors import PackError, printable
from packstream.header import difference
from packstream.library import (check, ffi, header_of, lib, need_library,
                                new_error)
from packstream.packs import PackFile, PackPipe, Packs, is_url

Path = Union[str, os.PathLike]
AHEAD = 8               # number of runs fetched in advance
REQUEST_BYTES = 1 << 18  # bytes transferred in the latency of a request
COSTS_AT_ONCE = 1 << 16  # packs whose costs are read at a time


class Location(NamedTuple):
    """Where a sequence, or a piece of a split sequence, is.  packs[pack] has
    it at `slot`, from position `start` on; `pack` counts over all files.
    `offset` is the number of tokens of the sequence before this piece, and
    `length` the length of the whole sequence.  Ids restart in each `stream` of
    a `file`."""

    id: int
    stream: int
    pack: int
    slot: int
    start: int
    tokens: int
    offset: int
    length: int
    file: str


class File:
    """One file, plain or compressed, or a RemoteFile.  Each process that reads
    it opens it separately.  Threads may share it."""

    def __init__(self, path: Path, remote: Any = None):
        self.path = os.fspath(path) if remote is None else remote.name
        self.remote = remote
        self._opened = self._open()
        _, handle, _ = self._opened
        self.packs = lib.ps_pack_file_packs(handle)
        self.header = header_of(lib.ps_pack_file_info(handle))

    def _open(self) -> Tuple[int, Any, Any]:
        """Opens the file.  Returns the process id, a handle, and the lock of
        the handle."""
        new, err = ffi.new("ps_pack_file **"), new_error()
        if self.remote is not None:
            hook = ffi.new_handle(self.remote)
            self._check(lib.psn_open(new, self.remote.size, lib.psn_fetch,
                                     hook, err), err, self.path)
            return os.getpid(), ffi.gc(new[0], lambda file, hook=hook: (
                lib.ps_pack_file_free(file))), threading.Lock()
        fd = os.open(self.path, os.O_RDONLY | os.O_CLOEXEC)
        try:
            check(lib.ps_pack_file_open(new, fd, err), err, self.path)
        except BaseException:
            os.close(fd)
            raise
        handle = ffi.gc(new[0], lambda file: (
            lib.ps_pack_file_free(file), os.close(fd)))
        return os.getpid(), handle, threading.Lock()

    def _open_again(self) -> Tuple[int, Any, Any]:
        """Opens the file in a child process, which must not share a handle
        that its parent may be using."""
        opened = self._open()
        _, handle, _ = opened
        if (lib.ps_pack_file_packs(handle) != self.packs or
                header_of(lib.ps_pack_file_info(handle)) != self.header):
            raise PackError("%s: not the file that was opened before"
                            % printable(self.path))
        return opened

    def _check(self, result: int, err: Any, where: str) -> None:
        failure = self.remote and self.remote.failure
        if result != lib.PS_OK and failure:
            self.remote.failure = None
            raise failure
        check(result, err, where)

    def expect(self, numbers: np.ndarray, heads: bool = False
               ) -> List[Tuple[int, int]]:
        """Makes a remote file fetch these packs, or only their heads, before
        they are read.  A whole block is fetched, unless separate requests for
        its tables and the needed rows take less time.  Returns the ranges to
        fetch."""
        if self.remote is None or not len(numbers):
            return []
        extents = np.empty((len(numbers), 4), np.uint64)
        self._for_each(numbers, lambda handle, *which: lib.psn_extents(
            handle, which[0], which[1],
            ffi.from_buffer("uint64_t[]", extents), *which[2:]))
        blocks: Dict[Tuple[int, int, int], Set[int]] = {}
        for at, n, row, tables in extents.tolist():
            blocks.setdefault((at, n, tables), set()).add(row)
        row_bytes = self.header.row.itemsize
        keys: List[Tuple[int, int]] = []
        for (at, n, tables), rows in blocks.items():
            parts = [(row, row_bytes) for row in sorted(rows) if not heads]
            parts.append((tables, at + n - tables))
            whole = n + REQUEST_BYTES
            if not tables or self.remote.has((at, n)) or whole < sum(
                    size + REQUEST_BYTES for _, size in parts):
                parts = [(at, n)]
            keys += parts
        self.remote.expect(keys)
        return keys

    def read(self, numbers: np.ndarray) -> Run:
        """Reads packs by their numbers, uint64.  Damaged blocks in the cache
        of a remote file are fetched again."""
        if self.remote is None:
            return self._read(numbers)
        keys = self.expect(numbers)
        try:
            return self._read(numbers)
        except PackError:
            self.remote.forget(keys)
            self._opened = self._open_again()
            return self._read(numbers)

    def _read(self, numbers: np.ndarray) -> Run:
        rows = empty(len(numbers) * self.header.row.itemsize)
        heads = np.empty(len(numbers), HEAD)
        sink = ffi.gc(ffi.new("psn_sink *"), lib.psn_sink_free)
        self._for_each(numbers, lambda handle, *which: lib.psn_read(
            handle, which[0], which[1],
            ffi.from_buffer("unsigned char[]", rows),
            ffi.from_buffer("unsigned char[]", heads), sink, *which[2:]))
        table = np.empty(sink.size // self.header.sequence.itemsize,
                         self.header.sequence)
        if sink.size:
            ffi.memmove(ffi.from_buffer(table), sink.bytes, sink.size)
        return Run(rows.view(self.header.row), heads, table)

    def costs(self, numbers: np.ndarray, cost: Tuple[int, int]) -> np.ndarray:
        """Returns the costs of packs with these numbers, both uint64."""
        step = len(numbers) if self.remote is None else COSTS_AT_ONCE
        return np.concatenate([np.empty(0, np.uint64)] + [
            self._costs(numbers[at:at + step], cost)
            for at in range(0, len(numbers), step or 1)])

    def _costs(self, numbers: np.ndarray, cost: Tuple[int, int]
               ) -> np.ndarray:
        self.expect(numbers, heads=True)
        costs = np.empty(len(numbers), np.uint64)
        of = ffi.new("ps_cost *", cost)
        self._for_each(numbers, lambda handle, *which: lib.psn_costs(
            handle, of, which[0], which[1],
            ffi.from_buffer("uint64_t[]", costs), *which[2:]))
        return costs

    def find(self, sequence: int) -> List[Location]:
        """Finds a sequence in each stream, by its id."""
        handle, lock = self._handle()
        err, found, n = new_error(), ffi.new("ps_location **"), \
            ffi.new("uint32_t *")
        locations = []
        for stream in range(lib.ps_pack_file_streams(handle)):
            with lock:
                if self.remote is not None:
                    self.remote.failure = None
                result = lib.ps_pack_file_locate(handle, stream, sequence,
                                                 found, n, err)
            self._check(result, err, self.path)
            for at in ffi.unpack(found[0], n[0]) if n[0] else ():
                piece = at.piece
                locations.append(Location(
                    piece.id, stream, at.pack, at.slot, piece.begin,
                    piece.n_tok, piece.seq_off, piece.seq_len, self.path))
            lib.psn_free(found[0])
        return locations

    def _handle(self) -> Tuple[Any, Any]:
        """Returns the handle of this process, and its lock."""
        opened = self._opened       # read once: other threads may set it
        if opened[0] != os.getpid():
            opened = self._opened = self._open_again()
        return opened[1:]

    def _for_each(self, numbers: np.ndarray,
                  call: Callable[..., int]) -> None:
        """Calls a function of native.h for packs with these numbers."""
        handle, lock = self._handle()
        done, err = ffi.new("uint64_t *"), new_error()
        with lock:
            if self.remote is not None:
                self.remote.failure = None
            result = call(handle, ffi.from_buffer("uint64_t[]", numbers),
                          len(numbers), done, err)
        where = self.path
        if result != lib.PS_OK:
            where = "%s: pack %d" % (self.path, numbers[done[0]])
        self._check(result, err, where)

    def __getstate__(self) -> Dict[str, Any]:
        return {"path": self.path, "packs": self.packs, "header": self.header,
                "remote": self.remote, "_opened": (0, None, None)}


class PackFiles(Packs):
    """The packs of files, numbered consecutively from 0.

    packs[i] is one pack, packs[i:j] and packs[[i, j]] are batches of several;
    with a `transform`, packs[i] is transform(pack).  A PackFiles can be used
    with torch's DataLoader and samplers and with grain: it has a length, can
    be pickled, and each process opens the files separately."""

    def __init__(self, paths: Sequence[Path],
                 transform: Optional[Callable[[Batch], Any]] = None,
                 cache_dir: Optional[Path] = None,
                 cache_bytes: Optional[int] = None,
                 storage_options: Optional[Mapping[str, Any]] = None):
        super().__init__(True)
        self.verifies = True        # the library always verifies
        self.files = open_files(paths, cache_dir, cache_bytes,
                                storage_options)
        if not self.files:
            raise ValueError("no file to open")
        self._remote = any(file.remote is not None for file in self.files)
        self.header = self.files[0].header
        self.transform = transform
        self.ends: List[int] = []
        for file in self.files:
            other = difference(file.header, self.header)
            if other:
                raise PackError("%s: a stream of another geometry than %s: %s"
                                % (printable(file.path),
                                   printable(self.files[0].path), other))
            self.ends.append(len(self) + file.packs)
        self.header = self.header._replace(depth=max(
            file.header.depth or 0 for file in self.files) or None)

    def __len__(self) -> int:
        return self.ends[-1] if self.ends else 0

    def __getitem__(self, which: Any) -> Any:
        if isinstance(which, slice):
            return self.take(range(*which.indices(len(self))))
        if np.ndim(which):
            return self.take(np.asarray(which))
        return self.__getitems__([which])[0]

    def __getitems__(self, numbers: Sequence[int]) -> List[Any]:
        """Returns several packs, each as packs[i] does.  torch calls this."""
        run = self.run(numbers)
        batch = self.batch(run)
        packs = [Batch({name: batch[name][i] for name in batch}, self.header,
                       run[i:i + 1].sequences) for i in range(len(numbers))]
        return [self.transform(pack) for pack in packs] if self.transform \
            else packs

    def __iter__(self) -> Iterator[Any]:
        return (self[i] for i in range(len(self)))

    def take(self, numbers: Any) -> Batch:
        """Returns a batch of the packs with these numbers, in this order;
        numbers below 0 count from the end."""
        return self.batch(self.run(numbers))

    def run(self, numbers: Any) -> Run:
        self._expect(numbers)
        return join(*self._by_file(self.numbers(numbers), File.read))

    def _expect(self, numbers: Any) -> None:
        """Makes remote files fetch these packs, all files at once."""
        if self._remote:
            self._by_file(self.numbers(numbers), File.expect)

    def costs(self, numbers: Any, tokens: int, squares: int) -> np.ndarray:
        """Returns the costs of packs, uint64: `tokens` for each token, plus
        `squares` for each unit of the sequences' squared lengths.  Only the
        heads of packs are read, and nothing is verified."""
        parts, places = self._by_file(
            self.numbers(numbers),
            lambda file, which: file.costs(which, (tokens, squares)))
        return np.concatenate(parts)[np.argsort(np.concatenate(places))]

    def find(self, sequence: int) -> List[Location]:
        """Returns where the sequence with this id is: one Location, or one for
        each piece of a split sequence, in each stream of each file.  The index
        of the file limits the search to a few blocks.  An id that is in no
        pack gives an empty list, after reading the sequence rows of all packs
        before its place in the file."""
        if not 0 <= index(sequence) < 2**64:
            raise ValueError("the id is %d, not from 0 to 2^64 - 1" % sequence)
        return [at._replace(pack=at.pack + end - file.packs)
                for file, end in zip(self.files, self.ends)
                for at in file.find(index(sequence))]

    def numbers(self, numbers: Any) -> np.ndarray:
        """Checks numbers of packs, and converts negative numbers."""
        numbers = np.asarray(numbers)
        if numbers.ndim != 1 or (numbers.dtype.kind not in "iu" and
                                 numbers.size):
            raise TypeError("packs have whole numbers, slices or lists of "
                            "them")
        if numbers.size and not (-len(self) <= numbers.min() and
                                 numbers.max() < len(self)):
            raise IndexError("no pack has such a number: there are %d"
                             % len(self))
        numbers = numbers.astype(np.int64)
        numbers[numbers < 0] += len(self)
        return numbers

    def _by_file(self, numbers: np.ndarray,
                 read: Callable[[File, np.ndarray], Any]
                 ) -> Tuple[List[Any], List[np.ndarray]]:
        """Calls `read` for the packs of each file.  Returns the results, and
        the positions of the packs in `numbers`."""
        found, places, begin = [], [], 0
        for file, end in zip(self.files, self.ends):
            here = np.flatnonzero((numbers >= begin) & (numbers < end))
            if len(here) or end == len(self) and not found:
                found.append(read(file, (numbers[here] - begin).astype(
                    np.uint64)))
                places.append(here)
            begin = end
        return found, places

    def runs(self, size: int, rank: int, ranks: int, start: int,
             order: Optional[np.ndarray]) -> Iterator[Tuple[Run, int]]:
        step = CHUNK_BYTES // self.header.row.itemsize // size * size or size
        places: Any = range(len(self)) if order is None else np.asarray(order)
        own = places[first_own(0, rank, ranks, start)::ranks]
        for at in range(0, len(own), step):
            if at // step % (AHEAD // 2) == 0:
                self._expect(own[at:at + AHEAD * step])
            yield self.run(own[at:at + step]), len(places) - start


def is_pipe(source: Any) -> bool:
    """True if the source can be read only once, in order."""
    return hasattr(source, "readinto") or (
        isinstance(source, (str, os.PathLike)) and not is_url(source) and
        not stat.S_ISREG(os.stat(source).st_mode))


def open_files(paths: Sequence[Path], cache_dir: Optional[Path],
               cache_bytes: Optional[int],
               storage_options: Optional[Mapping[str, Any]]) -> List[File]:
    """Opens files and URLs.  URLs are opened concurrently, because each needs
    requests."""
    if not any(map(is_url, paths)):
        return [File(path) for path in paths]
    from packstream.remote import RemoteFile, cache_of
    cache = cache_of(cache_dir, cache_bytes)
    with ThreadPoolExecutor(AHEAD) as pool:
        return list(pool.map(lambda path: File(path, RemoteFile(
            path, cache, storage_options) if is_url(path) else None), paths))


def open(source: Union[Path, BinaryIO, Sequence[Path], Packs],
         transform: Optional[Callable[[Batch], Any]] = None,
         cache_dir: Optional[Path] = None, cache_bytes: Optional[int] = None,
         storage_options: Optional[Mapping[str, Any]] = None) -> Packs:
    """Opens the packs of a path or URL, of a list of them, or of a stream of
    bytes such as sys.stdin.buffer.

    Regular files, plain or compressed by packstream --zstd, become a
    PackFiles, whose packs can be read in any order.  Any other source can be
    read only once, in order, by batches(); it must not be compressed and does
    not support a transform.

    URLs (s3://, gs://, https:// and other protocols of fsspec) are read like
    files.  Fetched blocks are cached in memory, up to 128 MiB, or in the
    folder cache_dir, up to 16 GiB, which processes and later runs share;
    cache_bytes sets another limit.  storage_options are passed to fsspec.

    A PackFiles is returned unchanged."""
    if isinstance(source, PackFiles):
        return source
    is_stream = hasattr(source, "readinto")
    paths = [source] if is_stream or isinstance(source, (str, os.PathLike)) \
        else list(source)
    if len(paths) == 1 and is_pipe(paths[0]):
        if transform:
            raise ValueError("a transform is for files, not for a stream")
        return PackPipe(source if is_stream else io.FileIO(paths[0]))
    if lib is None:
        if len(paths) != 1 or transform:
            need_library("opening several files, or with a transform,")
        remote = None
        if is_url(paths[0]):
            from packstream.remote import RemoteFile, cache_of
            remote = RemoteFile(paths[0], cache_of(cache_dir, cache_bytes),
                                storage_options)
        return PackFile(paths[0], remote=remote)
    return PackFiles(paths, transform, cache_dir, cache_bytes,
                     storage_options)
