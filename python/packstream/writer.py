"""writer.py - writes token records, for packstream to pack.

    with packstream.TokenWriter("corpus.tok", vocab_size=50257) as writer:
        for document in documents:
            writer.write(tokenizer(document))

SPDX-License-Identifier: MIT
"""

from __future__ import annotations

import os
from typing import Any, BinaryIO, Optional, Union

from packstream.library import check, ffi, lib, need_library, new_error
from packstream.schema import Channels, Columns, NativeColumns, Schema


class TokenWriter:
    """Writes sequences to a path, or to a file such as sys.stdout.buffer.

    The stream is framed: it says what it is made of, and close() writes its
    end, without which readers report that it is cut.  A `with` statement that
    ends with an exception leaves the end out.  The other parameters are those
    of Schema."""

    def __init__(self, file: Union[str, os.PathLike, BinaryIO], *,
                 dtype: Any = None, vocab_size: int = 0,
                 channels: Optional[Channels] = None, **schema: Any):
        need_library("TokenWriter")
        self.schema = Schema(dtype, channels, vocab_size, **schema)
        self._writer, self._written = None, 0
        if hasattr(file, "fileno"):
            file.flush()
            self._file = file       # it must not be closed before
            self._fd, self._owned = file.fileno(), False
        else:
            self._fd = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_TRUNC |
                               os.O_CLOEXEC, 0o666)
            self._owned = True
        handle, err = ffi.new("ps_token_writer **"), new_error()
        check(lib.ps_token_writer_open(handle, self._fd, self.schema.native,
                                       err), err)
        self._writer = ffi.gc(handle[0], lib.ps_token_writer_free)

    def write(self, sequence: Union[Any, Columns]) -> None:
        """Writes a sequence: an array of tokens; a mapping that has them and
        the channels by name; or many at once, as Columns."""
        if self._writer is None:
            raise ValueError("this writer is closed")
        if not isinstance(sequence, Columns):
            sequence = self.schema.columns([sequence])
        columns = self.schema.prepare(sequence, self._written)
        empty = (columns.offsets[1:] == columns.offsets[:-1])
        if empty.any():
            raise ValueError("sequence %d has no tokens"
                             % (self._written + empty.argmax()))
        native, err = NativeColumns(columns), new_error()
        check(lib.psn_write(self._writer, self.schema.native, native.native,
                            err), err)
        self._written += len(columns)

    def flush(self, pack: bool = False) -> None:
        """Writes what is buffered; with `pack`, asks packstream to pack all
        that was written so far."""
        if self._writer is None:
            raise ValueError("this writer is closed")
        call = lib.ps_token_writer_put_flush if pack \
            else lib.ps_token_writer_flush
        err = new_error()
        check(call(self._writer, err), err)

    def close(self) -> None:
        """Ends the stream."""
        if self._writer is None:
            return
        err = new_error()
        try:
            check(lib.ps_token_writer_finish(self._writer, err), err)
        finally:
            self._leave()

    def _leave(self) -> None:
        """Lets go of the file.  If the stream has no end yet, readers are to
        see that: what is buffered is written, so that it is not empty."""
        writer, self._writer = self._writer, None
        if writer is not None:
            lib.ps_token_writer_flush(writer, new_error())
            ffi.release(writer)
        if self._owned:
            self._owned = False
            os.close(self._fd)

    def __enter__(self) -> "TokenWriter":
        return self

    def __exit__(self, kind: Any, value: Any, trace: Any) -> None:
        if kind is None:
            self.close()
        else:
            self._leave()

    def __del__(self) -> None:
        if getattr(self, "_writer", None) is not None:
            self._leave()
