"""remote.py - read a file in object storage or on a web server by ranges.

packstream.open creates a RemoteFile for each URL.  fsspec implements the
protocols: s3fs for s3://, gcsfs for gs://, aiohttp for https://.  It is
imported when the first URL is opened.

Opening a file takes two requests, for its header and for its last 256 KiB,
which contain the trailer and the index.  expect() then announces the ranges
that are read next, usually one block each, and some of them are fetched before
fill() needs them.  Fetched ranges are cached; the least recently used are
evicted.

Every response is checked: it must have the requested range, and the ETag (or
generation, or time of modification) that the file had when it was opened.
Requests that fail for other reasons are repeated after a delay that doubles.

SPDX-License-Identifier: MIT
"""

from __future__ import annotations

import asyncio
import collections
import errno
import fcntl
import hashlib
import os
import random
import re
import tempfile
import threading
from bisect import bisect_right
from concurrent.futures import Future
from typing import (Any, Awaitable, Callable, Dict, List, Mapping, NamedTuple,
                    Optional, Sequence, Tuple, Union)

from packstream.errors import PackError, printable
from packstream.header import HEADER_BYTES
from packstream.native import ffi, lib

TAIL_BYTES = 256 << 10          # end of a file, read when it is opened
MEMORY_BYTES = 128 << 20        # default limit of a cache in memory
FOLDER_BYTES = 16 << 30         # default limit of a cache in a folder
IN_FLIGHT = 10                  # maximum concurrent requests per file
ATTEMPTS = 6                    # maximum attempts per request
DELAY = 0.25                    # delay before the second attempt, in seconds
TIMEOUT = 30                    # of an attempt, in seconds, plus 1 per MiB
# Errors that another attempt would not fix
FINAL = (ValueError, TypeError, ImportError, NotImplementedError,
         FileNotFoundError, PermissionError)
# File systems' names for attributes that change with the content
VERSIONS = ("generation", "ETag", "etag", "Last-Modified", "LastModified",
            "last_modified", "mtime", "created")
GENERATION = "generation="      # a version of gs:// that can be requested

Range = Tuple[int, int]         # offset and size in bytes


class MemoryCache:
    """A cache of ranges in memory, which files and threads may share."""

    def __init__(self, limit: Optional[int] = None):
        self.limit = MEMORY_BYTES if limit is None else limit
        self._clear()

    def _clear(self) -> None:
        self._pid, self._lock = os.getpid(), threading.Lock()
        self._size = 0
        self._data: collections.OrderedDict[Tuple[str, Range], bytes] = \
            collections.OrderedDict()

    def __reduce__(self) -> Any:
        return type(self), (self.limit,)

    def has(self, file: str, key: Range) -> bool:
        if self._pid != os.getpid():    # forked, perhaps during a change
            self._clear()
        return (file, key) in self._data

    def read(self, file: str, key: Range, at: int, to: memoryview) -> bool:
        """Fills `to` with the range's bytes from `at` on.  Returns False if
        the range is not cached."""
        if not self.has(file, key):
            return False
        with self._lock:
            data = self._data.get((file, key))
            if data is None:
                return False
            self._data.move_to_end((file, key))
        to[:] = data[at:at + len(to)]
        return True

    def put(self, file: str, key: Range, data: bytes) -> None:
        with self._lock:
            self._size += len(data) - len(self._data.pop((file, key), b""))
            self._data[file, key] = data
            while self._size > self.limit:
                _, old = self._data.popitem(last=False)
                self._size -= len(old)

    def drop(self, file: str, key: Range) -> None:
        with self._lock:
            self._size -= len(self._data.pop((file, key), b""))


class FolderCache:
    """A cache of ranges in a folder, FOLDER/FILE/OFFSET-SIZE, which processes
    of a machine share, including later runs.  FOLDER/size holds the total size
    in bytes; a process locks it to change the cache."""

    def __init__(self, folder: Union[str, os.PathLike],
                 limit: Optional[int] = None):
        self.folder = os.path.abspath(folder)
        self.limit = FOLDER_BYTES if limit is None else limit
        os.makedirs(self.folder, exist_ok=True)

    def _path(self, file: str, key: Range) -> str:
        return os.path.join(self.folder, file, "%d-%d" % key)

    def has(self, file: str, key: Range) -> bool:
        return os.path.exists(self._path(file, key))

    def read(self, file: str, key: Range, at: int, to: memoryview) -> bool:
        path = self._path(file, key)
        try:
            fd = os.open(path, os.O_RDONLY)
        except OSError:
            return False
        try:
            if os.fstat(fd).st_size != key[1]:      # after a power failure
                return False
            try:
                os.utime(fd)
            except PermissionError:     # another user's file
                pass
            return os.preadv(fd, [to], at) == len(to)
        finally:
            os.close(fd)

    def put(self, file: str, key: Range, data: bytes) -> None:
        """Stores a range, unless the folder is full or not writable."""
        path = self._path(file, key)
        try:
            os.makedirs(os.path.dirname(path), exist_ok=True)
            with open(os.path.join(self.folder, "size"), "a+b") as lock:
                fcntl.flock(lock, fcntl.LOCK_EX)
                if os.path.exists(path):
                    return
                lock.seek(0)
                size = int(lock.read() or b"0") + len(data)
                if size > self.limit:
                    size = self._evict(len(data)) + len(data)
                if size <= self.limit:
                    self._write(path, data)
                    lock.truncate(0)
                    lock.write(b"%d" % size)
        except (OSError, ValueError):
            pass

    def _write(self, path: str, data: bytes) -> None:
        fd, name = tempfile.mkstemp(dir=os.path.dirname(path))
        try:
            with open(fd, "wb") as file:
                file.write(data)
            os.rename(name, path)
        except BaseException:
            os.unlink(name)
            raise

    def _evict(self, more: int) -> int:
        """Removes the least recently used ranges, and frees an eighth of the
        limit more than needed.  Returns the remaining bytes."""
        found = []
        for folder, _, names in os.walk(self.folder):
            if folder != self.folder:
                for name in names:
                    path = os.path.join(folder, name)
                    stat = os.stat(path)
                    found.append((stat.st_mtime_ns, stat.st_size, path))
        size = sum(size for _, size, _ in found)
        for _, n, path in sorted(found):
            if size + more <= self.limit - self.limit // 8:
                break
            os.unlink(path)
            size -= n
        return size

    def drop(self, file: str, key: Range) -> None:
        try:
            os.unlink(self._path(file, key))
        except OSError:         # another process has removed it
            pass


Cache = Union[MemoryCache, FolderCache]


class Answer(NamedTuple):
    """The metadata of a response to a range request."""
    version: str
    begin: int
    end: int
    size: int                   # size of the file


def readable(text: str) -> str:
    """Makes a URL, or a text with URLs, safe for messages: removes parts that
    can be secret, such as signatures."""
    text = re.sub(r"://[^/@\s]*@", "://", text)
    return printable(re.sub(r"(://[^?\s]*)\?[^\s'\"]*", r"\1", text))


class RemoteFile:
    """The bytes of a file that must not change.  Each process that uses it
    opens it separately, at the same version.  Threads may share it."""

    def __init__(self, url: str, cache: Cache,
                 storage_options: Optional[Mapping[str, Any]] = None):
        self.url, self.cache = url, cache
        self.options = dict(storage_options or {})
        self.name = readable(url)
        self.version = ""
        self.failure: Optional[BaseException] = None    # error of psn_fetch
        self._open()

    def __reduce__(self) -> Any:
        return _again, (self.url, self.cache, self.options, self.size,
                        self.version)

    # ---- Opening ----

    def _open(self) -> None:
        try:
            import fsspec
        except ImportError:
            raise ImportError("%s: URLs need fsspec: pip install fsspec, and "
                              "s3fs, gcsfs or aiohttp" % self.name) from None
        fs, self._path = fsspec.core.url_to_fs(self.url, **self.options)
        if not fs.async_impl:
            from fsspec.implementations.asyn_wrapper import \
                AsyncFileSystemWrapper
            fs = AsyncFileSystemWrapper(fs)
        self._fs = fs
        protocols = [fs.protocol] if isinstance(fs.protocol, str) \
            else fs.protocol
        self._get: Callable[..., Awaitable[Tuple[Answer, bytes]]] = \
            self._get_http if "https" in protocols else \
            self._get_s3 if "s3" in protocols else self._get_other
        self._lock = threading.Lock()
        self._known: List[Range] = []       # passed to expect(), sorted
        self._todo: Dict[Range, None] = {}  # expected, not requested yet
        self._flying: Dict[Range, Future] = {}  # requested, not read yet
        self._last: Tuple[Range, bytes] = ((0, 0), b"")
        self._pinned: List[Tuple[Range, bytes]] = []
        answer, tail = self._submit(self._fetch(None, TAIL_BYTES)).result()
        if not answer.version:
            raise PackError(
                "%s: the server sends neither an ETag nor a time of "
                "modification, so replacing the file could not be "
                "detected" % self.name)
        if self.version not in ("", answer.version):
            raise self._replaced()
        self.size, self.version = answer.size, answer.version
        self._pinned.append(((self.size - len(tail), len(tail)), tail))
        self._file = hashlib.sha256(repr((
            self.url.split("?")[0], self.size, self.version)).encode()
            ).hexdigest()[:32]
        head = 0, min(HEADER_BYTES, self.size)
        if not self._stored(head):
            _, data = self._submit(self._fetch(*head)).result()
            self._pinned.append((head, data))
        self._pid = os.getpid()

    def _here(self) -> None:
        """Opens the file again in a forked process."""
        if self._pid != os.getpid():
            self._open()

    # ---- Reading ----

    def fill(self, buffer: Any, at: int) -> None:
        """Fills the buffer with the bytes from `at` on, all of which must
        exist."""
        self._here()
        to = memoryview(buffer).cast("B")
        while len(to):
            key, data = self._find(at, len(to))
            piece = to[:key[0] + key[1] - at]
            if data is not None:
                piece[:] = data[at - key[0]:at - key[0] + len(piece)]
            else:
                self._read(key, at - key[0], piece)
            to, at = to[len(piece):], at + len(piece)

    def _find(self, at: int, n: int) -> Tuple[Range, Optional[bytes]]:
        """Returns a range that contains byte `at`, and its bytes if they are
        in memory.  The range is an expected range, or else up to n bytes from
        `at` on."""
        for key, data in (self._last, *self._pinned):
            if key[0] <= at < key[0] + key[1]:
                return key, data
        with self._lock:
            i = bisect_right(self._known, (at, self.size))
            if i and at < sum(self._known[i - 1]):
                return self._known[i - 1], None
            if i < len(self._known):
                n = min(n, self._known[i][0] - at)
        return (at, n), None

    def _read(self, key: Range, at: int, to: memoryview) -> None:
        """Reads bytes of a range, from its byte `at` on."""
        with self._lock:
            self._todo.pop(key, None)
            future = self._flying.pop(key, None)
        if future is None and self.cache.read(self._file, key, at, to):
            return
        data = (future or self._submit(self._load(key))).result()
        self._last = key, data
        self._advance()
        to[:] = data[at:at + len(to)]

    def has(self, key: Range) -> bool:
        """True if reading the range needs no request except those of
        expect()."""
        return key in self._todo or key in self._flying or self._stored(key)

    def _stored(self, key: Range) -> bool:
        return self.cache.has(self._file, key) or any(
            at <= key[0] and sum(key) <= at + n for (at, n), _ in self._pinned)

    def expect(self, keys: Sequence[Range]) -> None:
        """Announces the ranges that are read next, in this order.  They must
        not overlap."""
        self._here()
        with self._lock:
            if set(self._known).issuperset(keys) and all(map(self.has, keys)):
                return
            self._known = sorted(keys)
            self._todo = dict.fromkeys(keys)
            for key in [key for key, future in self._flying.items()
                        if key not in self._todo and future.done()]:
                del self._flying[key]
        self._advance()

    def _advance(self) -> None:
        """Starts requests for expected ranges, up to the limits."""
        with self._lock:
            room = self.cache.limit // 2 - sum(n for _, n in self._flying)
            while self._todo and len(self._flying) < IN_FLIGHT:
                key = next(iter(self._todo))
                if key[1] > room and self._flying:
                    return
                del self._todo[key]
                if key not in self._flying and not self._stored(key):
                    self._flying[key] = self._submit(self._load(key))
                    room -= key[1]

    def forget(self, keys: Sequence[Range]) -> None:
        """Removes these ranges, so that they are fetched again."""
        with self._lock:
            for key in keys:
                self.cache.drop(self._file, key)
                self._flying.pop(key, None)
            self._last = (0, 0), b""

    async def _load(self, key: Range) -> bytes:
        try:
            _, data = await self._fetch(*key)
        except BaseException:       # the next reader tries again
            with self._lock:
                self._flying.pop(key, None)
            raise
        await asyncio.get_running_loop().run_in_executor(
            None, self.cache.put, self._file, key, data)
        return data

    def _submit(self, work: Any) -> Future:
        return asyncio.run_coroutine_threadsafe(work, self._fs.loop)

    # ---- Requests ----

    def _replaced(self) -> PackError:
        return PackError("%s: the file was replaced or removed after it was "
                         "opened" % self.name)

    async def _fetch(self, at: Optional[int], n: int) -> Tuple[Answer, bytes]:
        """Fetches n bytes from `at` on, or the last n bytes, in up to ATTEMPTS
        attempts."""
        for attempt in range(ATTEMPTS):
            if attempt:
                await asyncio.sleep(DELAY * 2 ** attempt *
                                    random.uniform(0.25, 0.5))
            try:
                return await asyncio.wait_for(self._get(at, n),
                                              TIMEOUT + (n >> 20))
            except FINAL as error:
                if self.version and isinstance(error, FileNotFoundError):
                    raise self._replaced() from error
                raise
            except Exception as error:
                failure = readable(str(error)) or type(error).__name__
                status = getattr(error, "status", getattr(error, "code", 0))
                if getattr(error, "errno", 0) == errno.EOPNOTSUPP or (
                        status in range(400, 500) and
                        status not in (408, 425, 429)):
                    break
        raise OSError(errno.EIO, "%s: cannot read %s: %s" % (
            self.name, "the last %d bytes" % n if at is None else
            "%d bytes at byte %d" % (n, at), failure))

    def _parse(self, content_range: Optional[str], length: Optional[int],
               version: str) -> Answer:
        """Returns the metadata of a response whose body has this length."""
        match = re.fullmatch(r"bytes (\d{1,19})-(\d{1,19})/(\d{1,19})",
                             content_range or "")
        if not match and length == 0:
            raise self._no_such_range()
        if not match:
            raise OSError(errno.EOPNOTSUPP,
                          "the server does not answer requests for ranges")
        begin, last, size = map(int, match.groups())
        return Answer(version, begin, last + 1, size)

    def _check(self, answer: Answer, at: Optional[int], n: int) -> int:
        """Checks the metadata of a response.  Returns the expected size of the
        body."""
        if self.version and (answer.version, answer.size) != (self.version,
                                                             self.size):
            raise self._replaced()
        begin = max(0, answer.size - n) if at is None else at
        if (answer.begin, answer.end) != (begin, min(begin + n, answer.size)):
            raise OSError(errno.EIO, "asked for %d bytes at byte %d, the "
                          "server gave bytes %d to %d of %d" % (
                              n, begin, *answer[1:]))
        return answer.end - answer.begin

    async def _get_http(self, at: Optional[int], n: int
                        ) -> Tuple[Answer, bytes]:
        session = await self._fs.set_session()
        options = dict(self._fs.kwargs)
        headers = {**options.pop("headers", {}), "Range": range_of(at, n),
                   "Accept-Encoding": "identity"}
        async with session.get(self._fs.encode_url(self._path),
                               headers=headers, **options) as r:
            if r.status in (404, 410):
                raise FileNotFoundError(errno.ENOENT, "no such file",
                                        self.name)
            if r.status == 416:
                raise self._no_such_range()
            r.raise_for_status()
            answer = self._parse(
                r.headers.get("Content-Range"), r.content_length,
                r.headers.get("ETag", r.headers.get("Last-Modified", "")))
            data = await self._body(r.content.read, self._check(answer, at, n))
        return answer, data

    async def _get_s3(self, at: Optional[int], n: int) -> Tuple[Answer, bytes]:
        bucket, key, version = self._fs.split_path(self._path)
        try:
            found = await self._fs._call_s3(
                "get_object", Bucket=bucket, Key=key, Range=range_of(at, n),
                **({"VersionId": version} if version else {}))
        except OSError as error:
            if "InvalidRange" in repr(error.__cause__) or \
                    "not satisfiable" in str(error):
                raise self._no_such_range() from error
            raise
        try:
            answer = self._parse(found.get("ContentRange"),
                                 found.get("ContentLength"),
                                 found.get("ETag", ""))
            data = await self._body(found["Body"].read,
                                    self._check(answer, at, n))
        finally:
            found["Body"].close()
        return answer, data

    def _no_such_range(self) -> PackError:
        return self._replaced() if self.version else \
            PackError("%s: the file is empty" % self.name)

    async def _body(self, read: Callable[[int], Awaitable[bytes]],
                    n: int) -> bytes:
        """Reads a body of exactly n bytes."""
        parts, left = [], n
        while left >= 0:
            part = await read(left + 1)
            if not part:
                break
            parts.append(part)
            left -= len(part)
        if left:
            raise OSError(errno.EIO, "asked for %d bytes, the server sent %s" %
                          (n, "more" if left < 0 else n - left))
        return parts[0] if len(parts) == 1 else b"".join(parts)

    async def _get_other(self, at: Optional[int], n: int
                         ) -> Tuple[Answer, bytes]:
        """Reads from a file system that does not return response headers: its
        version is queried separately, and also after the read unless a
        specific version can be requested."""
        pinned = self.version.startswith(GENERATION)
        before = Answer(self.version, 0, 0, self.size) if pinned \
            else await self._about()
        begin = max(0, before.size - n) if at is None else at
        end = min(begin + n, before.size)
        data = await self._fs._cat_file(
            self._path, start=begin, end=end,
            **({"generation": before.version[len(GENERATION):]}
               if before.version.startswith(GENERATION) else {}))
        self._check(before._replace(begin=begin, end=end), at, n)
        if not pinned and await self._about() != before:
            raise self._replaced()
        if len(data) != end - begin:
            raise OSError(errno.EIO, "asked for %d bytes, the server sent %d"
                          % (end - begin, len(data)))
        return before._replace(begin=begin, end=end), data

    async def _about(self) -> Answer:
        self._fs.invalidate_cache(self._fs._parent(self._path))
        info = await self._fs._info(self._path)
        if info.get("size") is None:
            raise OSError(errno.EOPNOTSUPP,
                          "the server does not give the size of the file")
        name = next((name for name in VERSIONS if info.get(name)), "")
        return Answer(name and "%s=%s" % (name, info[name]), 0, 0,
                      info["size"])


def range_of(at: Optional[int], n: int) -> str:
    return "bytes=-%d" % n if at is None else "bytes=%d-%d" % (at, at + n - 1)


def _again(url: str, cache: Cache, options: Mapping[str, Any], size: int,
           version: str) -> RemoteFile:
    """Recreates a file in another process, where it is opened on first use."""
    file = RemoteFile.__new__(RemoteFile)
    file.url, file.cache, file.options = url, cache, dict(options)
    file.name, file.size, file.version = readable(url), size, version
    file.failure, file._pid = None, 0
    return file


def cache_of(folder: Union[str, os.PathLike, None],
             limit: Optional[int]) -> Cache:
    if limit is not None and limit < 0:
        raise ValueError("cache_bytes is %d" % limit)
    return MemoryCache(limit) if folder is None else FolderCache(folder, limit)


if lib is not None:
    @ffi.def_extern(error=lib.PS_ERR_IO)
    def psn_fetch(context: Any, to: Any, n: int, offset: int,
                  err: Any) -> int:
        """The hook of psn_open: reads bytes of a RemoteFile."""
        file = ffi.from_handle(context)
        try:
            file.fill(ffi.buffer(to, n), offset)
            return lib.PS_OK
        except BaseException as error:
            file.failure = error        # the caller of the library raises it
        if err:
            err.code = lib.PS_ERR_IO
            err.sys_errno = errno.EIO
            err.text = b"cannot read"
        return lib.PS_ERR_IO
