"""writer.py - write token records for packstream.

    with packstream.TokenWriter("corpus.tok", vocab_size=50257) as writer:
        for document in documents:
            writer.write(tokenizer(document))

SPDX-License-Identifier: MIT
"""

from __future__ import annotations

import base64
import contextlib
import errno
import fcntl
import os
import stat
import struct
from typing import Any, BinaryIO, Dict, Mapping, Optional, Union

from packstream.library import check, ffi, lib, need_library, new_error
from packstream.schema import Channels, Columns, NativeColumns, Schema

Path = Union[str, os.PathLike]
# struct flock for a write lock on a whole file
WHOLE_FILE = struct.pack("hhqqi", fcntl.F_WRLCK, os.SEEK_SET, 0, 0, 0)


MARK = ("id", "offset", "sequences", "tokens", "digest")


def native_mark(mark: Mapping[str, Any]) -> Any:
    return ffi.new("ps_token_mark *", {name: mark[name] for name in MARK})


def is_replaced(path: Path) -> bool:
    """True if an output is written as NAME.new and renamed: it must be a
    regular file or not exist, and must not be a system link to an open file
    such as /dev/stdout."""
    path = os.fsdecode(path)
    try:
        if not path or path.endswith("/"):
            return False
        if not stat.S_ISREG(os.stat(path).st_mode):
            return False
    except FileNotFoundError:
        return True
    while os.path.islink(path):
        if os.path.abspath(path).startswith(("/dev/", "/proc/")):
            return False
        path = os.path.join(os.path.dirname(path), os.readlink(path))
    return True


def new_name(path: Path) -> str:
    """Returns the name under which the replacement of a file is written."""
    return os.path.realpath(path) + ".new"


def lock_file(fd: int, name: str) -> None:
    """Locks the file against other jobs, if the file system supports locks."""
    try:
        fcntl.fcntl(fd, fcntl.F_OFD_SETLK, WHOLE_FILE)
    except OSError as problem:
        if problem.errno in (errno.EAGAIN, errno.EACCES):
            raise OSError(errno.EAGAIN, "another job is writing it",
                          name) from None


class NewFile:
    """A file that is written as NAME.new and renamed to NAME when it is
    complete, as by `packstream -o`: symbolic links to NAME are followed, the
    permissions of an existing file are kept, and the NAME.new of a killed job
    is replaced."""

    def __init__(self, path: Path):
        self.name, self.new_name = os.path.realpath(path), new_name(path)
        self._process = os.getpid()
        how = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
        try:
            self.fd = os.open(self.new_name, how, 0o666)
        except FileExistsError:
            self._remove_left_over()
            self.fd = os.open(self.new_name, how, 0o666)
        self._lock(self.fd)
        with contextlib.suppress(OSError):  # keep those of a new file
            os.fchmod(self.fd, os.stat(self.name).st_mode & 0o777)

    def _lock(self, fd: int) -> None:
        try:
            lock_file(fd, self.new_name)
        except OSError:
            os.close(fd)
            raise

    def _remove_left_over(self) -> None:
        fd = os.open(self.new_name, os.O_WRONLY | os.O_NOFOLLOW |
                     os.O_NONBLOCK | os.O_CLOEXEC)
        status = os.fstat(fd)
        if not stat.S_ISREG(status.st_mode) or status.st_nlink != 1:
            os.close(fd)
            raise FileExistsError(errno.EEXIST, "exists, and was not left by a "
                                  "killed job", self.new_name)
        self._lock(fd)
        os.unlink(self.new_name)
        os.close(fd)

    def _has_name(self) -> bool:
        """True if the open file is still NAME.new."""
        with contextlib.suppress(FileNotFoundError):
            return os.path.samestat(os.fstat(self.fd),
                                    os.lstat(self.new_name))
        return False

    def publish(self) -> None:
        """Closes the file and renames it."""
        is_ours = self._has_name()
        os.close(self.fd)
        if not is_ours:
            raise OSError(errno.EAGAIN, "another program changed or removed "
                          "it", self.new_name)
        try:
            os.rename(self.new_name, self.name)
        except OSError:
            os.unlink(self.new_name)
            raise

    def drop(self) -> None:
        """Closes and removes the file, except in a forked child."""
        if self._process == os.getpid() and self._has_name():
            os.unlink(self.new_name)
        os.close(self.fd)


class TokenWriter:
    """Writes sequences to a path, or to a file such as sys.stdout.buffer.

    A path is written as PATH.new, which close() renames to PATH.  Until then
    an existing PATH is unchanged.  If a `with` block raises, or the writer is
    deleted unclosed, PATH.new is removed.

    Pipes, devices and open files are written directly.  The stream is framed,
    and close() writes its end; without an end, readers report that the stream
    was truncated.  With a `mark`, which mark() returned, writing continues at
    that position in the file.  The other parameters are those of Schema."""

    def __init__(self, file: Union[str, os.PathLike, BinaryIO], *,
                 dtype: Any = None, vocab_size: int = 0,
                 channels: Optional[Channels] = None,
                 mark: Optional[Mapping[str, Any]] = None, **schema: Any):
        need_library("TokenWriter")
        self.schema = Schema(dtype, channels, vocab_size, **schema)
        self._writer, self._written = None, 0
        self._process = os.getpid()
        self._new: Optional[NewFile] = None
        self._owned = not hasattr(file, "fileno")
        if not self._owned:
            file.flush()
            self._file = file       # keeps the file open
            self._fd = file.fileno()
        elif is_replaced(file):
            self._new = NewFile(file)
            self._fd = self._new.fd
        else:
            self._fd = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_TRUNC |
                               os.O_CLOEXEC, 0o666)
        handle, err = ffi.new("ps_token_writer **"), new_error()
        try:
            if mark is None:
                check(lib.ps_token_writer_open(
                    handle, self._fd, self.schema.native, err), err)
            else:
                check(lib.ps_token_writer_resume(
                    handle, self._fd, self.schema.native, native_mark(mark),
                    err), err)
        except BaseException:
            self._leave()
            raise
        self._writer = ffi.gc(handle[0], lib.ps_token_writer_free)
        if mark is not None:
            lengths = base64.b64decode(mark["lengths"])
            check(lib.ps_token_writer_set_lengths(
                self._writer, lengths, len(lengths), err), err)

    def write(self, sequence: Union[Any, Columns]) -> None:
        """Writes a sequence: an array of tokens, a mapping of names to tokens
        and channels, or many sequences as Columns.  In a mapping, a channel of
        vectors is an array [tokens, N], or [N] if it is per sequence."""
        if self._writer is None:
            raise ValueError("this writer is closed")
        if not isinstance(sequence, Columns):
            sequence = self.schema.columns([sequence], self._written)
        columns = self.schema.prepare(sequence, self._written)
        empty = (columns.offsets[1:] == columns.offsets[:-1])
        if empty.any():
            raise ValueError("%s: no tokens" % sequence.where(
                i=int(empty.argmax()), number=self._written))
        native, err = NativeColumns(columns), new_error()
        check(lib.psn_write(self._writer, self.schema.native, native.native,
                            err), err)
        self._written += len(columns)

    def flush(self, pack: bool = False) -> None:
        """Writes buffered records; with `pack`, asks packstream to pack
        everything written so far."""
        if self._writer is None:
            raise ValueError("this writer is closed")
        call = lib.ps_token_writer_put_flush if pack \
            else lib.ps_token_writer_flush
        err = new_error()
        check(call(self._writer, err), err)

    def mark(self) -> Dict[str, Any]:
        """Writes buffered records and returns the position after them as a
        value for JSON, for a writer that continues the file."""
        self.flush()
        place, err = lib.ps_token_writer_mark(self._writer), new_error()
        record, size = ffi.new("unsigned char const **"), ffi.new("size_t *")
        check(lib.ps_token_writer_lengths(self._writer, record, size, err),
              err)
        lengths = bytes(ffi.buffer(record[0], size[0])) if size[0] else b""
        return {**{name: getattr(place, name) for name in MARK},
                "lengths": base64.b64encode(lengths).decode()}

    def close(self) -> None:
        """Ends the stream, and renames PATH.new if a path was given."""
        if self._writer is None:
            return
        err, whole = new_error(), False
        try:
            check(lib.ps_token_writer_finish(self._writer, err), err)
            whole = True
        finally:
            self._leave(whole)

    def discard(self) -> None:
        """Closes the file without an end, and removes PATH.new."""
        self._leave()

    def _leave(self, whole: bool = False) -> None:
        """Closes the file.  Buffered bytes are written to a pipe, but no END,
        so that its reader detects the truncation."""
        writer, self._writer = self._writer, None
        if writer is not None:
            if self._process == os.getpid():    # not in a forked child
                lib.ps_token_writer_flush(writer, new_error())
            ffi.release(writer)
        if not self._owned:
            return
        self._owned = False
        if self._new is None:
            os.close(self._fd)
        elif whole:
            self._new.publish()
        else:
            self._new.drop()

    def __enter__(self) -> "TokenWriter":
        return self

    def __exit__(self, kind: Any, value: Any, trace: Any) -> None:
        if kind is None:
            self.close()
        else:
            self.discard()

    def __del__(self) -> None:
        if getattr(self, "_writer", None) is not None:
            self._leave()
