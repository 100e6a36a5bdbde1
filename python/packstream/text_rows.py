"""text_rows.py - rows of texts and chats, from files, tables and iterables.

Rows are read in tasks, which can be sent to another process and are decoded
there.

SPDX-License-Identifier: MIT
"""

from __future__ import annotations

import gzip
import io
import itertools
import json
import os
import sys
import zlib
from typing import (Any, BinaryIO, Callable, Dict, Iterable, Iterator, List,
                    Mapping, NamedTuple, Optional, Tuple)

from packstream.encoder import Refused, columns_of
from packstream.errors import printable

TASK_BYTES = 1 << 20            # size of text encoded at a time
TASK_ROWS = 1 << 10
LINE_BYTES = 1 << 24            # maximum line; a row takes much more memory
STANDARD_INPUT = "-"
GZIP, ZSTD = b"\x1f\x8b", b"\x28\xb5\x2f\xfd"
TABLES = (b"PAR1", b"ARROW1", b"\xff\xff\xff\xff")
BOM = b"\xef\xbb\xbf"


class Task(NamedTuple):
    """Consecutive rows: bytes of lines, an Arrow stream, or a list of
    mappings.  The first row has index `number` in the input and `row` in its
    file; the first `skip` rows have already been written."""
    form: str
    data: Any
    count: int
    file: Optional[str]
    number: int = 0
    row: int = 0
    skip: int = 0

    def where(self, i: int) -> Dict[str, Any]:
        """Names row i; lines are numbered from 1, rows of tables from 0."""
        place = {"file": self.file} if self.file is not None else {}
        if self.form in ("text", "jsonl"):
            return {**place, "line": self.row + i + 1}
        return {**place, "row": self.row + i}


# ---------------------------------------------------------------- decoding

def rows_of(task: Task) -> Iterator[Any]:
    """Returns a mapping for each row, a Refused, or None for a blank line."""
    if task.form == "rows":
        yield from (row if isinstance(row, Mapping) else
                    Refused("not a mapping") for row in task.data)
    elif task.form == "arrow":
        import pyarrow as pa
        for batch in pa.ipc.open_stream(task.data):
            yield from plain_rows(batch)
    else:
        data = without_bom(task.data) if task.row == 0 else task.data
        lines = data.split(b"\n")
        if data.endswith(b"\n"):
            lines.pop()
        yield from map(text_row if task.form == "text" else json_row, lines)


def plain_rows(batch: Any) -> Iterator[Dict[str, Any]]:
    """Removes the fields that a table added to rows without them."""
    columns = [[plain(value, column.type) for value in column.to_pylist()]
               for column in batch.columns]
    for values in zip(*columns):
        yield dict(zip(batch.schema.names, values))


def plain(value: Any, kind: Any) -> Any:
    if value is None or isinstance(value, (bool, int, float)):
        return value
    if isinstance(value, str):
        is_json = getattr(kind, "extension_name", "") == "arrow.json"
        return json.loads(value) if is_json else value
    if isinstance(value, dict):
        return {name: plain(item, kind.field(name).type)
                for name, item in value.items() if item is not None}
    if isinstance(value, list) and hasattr(kind, "value_type"):
        return [plain(item, kind.value_type) for item in value]
    return value


def text_row(line: bytes) -> Any:
    if line.endswith(b"\r"):
        line = line[:-1]
    try:
        return {"text": line.decode()} if line else None
    except UnicodeDecodeError as problem:
        return Refused("not UTF-8 at byte %d of the line" % problem.start)


def json_row(line: bytes) -> Any:
    if not line.strip():
        return None
    try:
        row = json.loads(line.decode(), parse_constant=no_number)
    except UnicodeDecodeError as problem:
        return Refused("not UTF-8 at byte %d of the line" % problem.start)
    except (ValueError, RecursionError) as problem:
        return Refused("not JSON: %s" % problem)
    return row if isinstance(row, dict) else Refused("not a JSON object")


def no_number(text: str) -> None:
    raise ValueError("%s is not JSON" % text)


# ---------------------------------------------------------------- reading

def open_input(path: str) -> BinaryIO:
    """Opens a file or standard input."""
    if path == STANDARD_INPUT:
        if sys.stdin is None:
            raise OSError("it is closed")
        return sys.stdin.buffer
    return open(path, "rb")


class Rewound(io.RawIOBase):
    """A file whose first bytes have already been read."""

    def __init__(self, start: bytes, file: Any):
        self._start, self._file = io.BytesIO(start), file

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        return self._start.readinto(buffer) or self._file.readinto1(buffer)


def peeked(file: Any, is_enough: Callable[[bytes], bool]
           ) -> Tuple[bytes, Any]:
    """Returns the first bytes of a file, up to is_enough or its end, and the
    file from its start.  A pipe can deliver bytes one by one."""
    start, more = b"", True
    while more and not is_enough(start):
        more = file.read1(io.DEFAULT_BUFFER_SIZE)
        start += more
        if len(start) > LINE_BYTES:
            raise ValueError("it begins with more than %d blanks: name what "
                             "it is with --from" % LINE_BYTES)
    return start, io.BufferedReader(Rewound(start, file))


def decompressed(magic: bytes, file: Any) -> Any:
    """Returns the file, decompressed if it is compressed with gzip or zstd."""
    if magic[:2] == GZIP:
        return io.BufferedReader(gzip.GzipFile(fileobj=file))
    if magic.startswith(ZSTD):
        import pyarrow as pa
        return io.BufferedReader(pa.CompressedInputStream(file, "zstd"))
    return file


def blocks_of(file: Any) -> Iterator[bytes]:
    """Yields whole lines, at least TASK_BYTES at a time."""
    parts: List[bytes] = []
    size, line = 0, 1       # size and number of the current line
    while True:
        block = file.read(TASK_BYTES)
        end = block.find(b"\n")
        if size + (len(block) if end < 0 else end) > LINE_BYTES:
            raise ValueError("line %d has more than %d bytes"
                             % (line, LINE_BYTES))
        end = block.rfind(b"\n") + 1
        if end or not block:
            whole = b"".join([*parts, block[:end]])
            if whole:
                yield whole
            line += whole.count(b"\n")
            parts, size = [], 0
        if not block:
            return
        parts.append(block[end:])
        size += len(parts[-1])


def without_bom(start: bytes) -> bytes:
    return start[len(BOM):] if start.startswith(BOM) else start


def shows_form(start: bytes) -> bool:
    return len(start) >= len(BOM) and bool(without_bom(start).strip())


def form_of(start: bytes) -> str:
    """Returns the form of a file.  A file of blanks is JSON Lines without
    rows."""
    if b"\0" in start:
        raise ValueError("it is binary, not text or JSON Lines")
    start = without_bom(start).lstrip()
    if start[:1] == b"[":
        raise ValueError("it starts like a JSON array: write an object on "
                         "each line, as jq -c '.[]' does; or --from=text")
    return "jsonl" if start[:1] in (b"{", b"") else "text"


def file_tasks(path: str, form: Optional[str], column: Optional[str]
               ) -> Iterator[Task]:
    """Yields the tasks of one file.  Errors name the file."""
    name = "standard input" if path == STANDARD_INPUT else path
    try:
        with open_input(path) as opened:
            magic, file = peeked(opened, lambda start: len(start) >= 6)
            if magic.startswith(TABLES) and form is None:
                if path == STANDARD_INPUT:
                    raise ValueError("parquet and Arrow files are not read "
                                     "from a pipe: name the file")
                yield from table_tasks(path, column, path)
                return
            file = decompressed(magic, file)
            if form is None:
                start, file = peeked(file, shows_form)
                form = form_of(start)
            if form == "text" and column not in (None, "text"):
                raise ValueError("it is read as lines of text, which have no "
                                 "column %s" % column)
            for block in blocks_of(file):
                yield Task(form, block, block.count(b"\n") +
                           (not block.endswith(b"\n")), name)
    except (OSError, EOFError, ValueError, zlib.error) as problem:
        text = getattr(problem, "strerror", None) or str(problem)
        raise (OSError if isinstance(problem, OSError) and problem.errno
               else ValueError)("%s: %s" % (printable(name), printable(
                   text.removeprefix(path + ": "), 4096))) from problem


def table_tasks(source: Any, column: Optional[str], file: Optional[str] = None
                ) -> Iterator[Task]:
    """Yields the tasks of a table, a parquet or Arrow file, or a dataset with
    features."""
    import pyarrow as pa
    from packstream.arrow import Source
    part = Source(source)
    names = columns_of(part.schema.names, column)
    for batch in part.batches(source, names):
        step = max(1, min(TASK_ROWS, batch.num_rows * TASK_BYTES //
                          max(batch.nbytes, 1)))
        for at in range(0, batch.num_rows, step):
            rows = batch.slice(at, step)
            sink = pa.BufferOutputStream()
            with pa.ipc.new_stream(sink, rows.schema) as stream:
                stream.write_batch(rows)
            yield Task("arrow", sink.getvalue().to_pybytes(), len(rows), file)


def row_tasks(rows: Iterable[Any]) -> Iterator[Task]:
    """Yields the tasks of any iterable of mappings."""
    rows = iter(rows)
    while True:
        some = list(itertools.islice(rows, TASK_ROWS))
        if not some:
            return
        yield Task("rows", some, len(some), None)


def parts_of(source: Any) -> List[Any]:
    """Yields files, including those in folders written by save_to_disk, and
    objects."""
    parts: List[Any] = []
    is_list = isinstance(source, (list, tuple)) and \
        all(isinstance(part, (str, os.PathLike)) for part in source)
    for part in source if is_list else [source]:
        if not isinstance(part, (str, os.PathLike)):
            parts.append(part)
        elif os.path.isdir(part):
            from packstream.arrow import saved_files
            parts += saved_files(os.fspath(part))
        else:
            parts.append(os.fspath(part))
    return parts


def tasks_of(parts: List[Any], form: Optional[str], column: Optional[str]
             ) -> Iterator[Task]:
    number = 0
    for part in parts:
        row = 0
        if isinstance(part, str):
            found = file_tasks(part, form, column)
        elif hasattr(part, "schema") or getattr(part, "features", None):
            found = table_tasks(part, column)
        else:
            found = row_tasks(part)
        for task in found:
            yield task._replace(number=number, row=row)
            number += task.count
            row += task.count
