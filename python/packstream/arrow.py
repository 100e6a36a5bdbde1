"""arrow.py - sequences out of Arrow tables, parquet files and datasets.

    for columns in packstream.from_arrow("data.parquet"):
        writer.write(columns)

Values stay in Arrow's buffers: no list of Python's is made.

SPDX-License-Identifier: MIT
"""

from __future__ import annotations

import contextlib
import json
import os
from typing import Any, Callable, Dict, Iterator, List, Optional, Sequence

import numpy as np
import pyarrow as pa

from packstream.schema import Channel, Columns, sequence_of

TOKENS = "input_ids"
BATCH_ROWS = 1 << 14
# What the types become that the formats do not have.
WIDER = {"i1": "i4", "i2": "i4", "f2": "f4", "b1": "u1"}


def list_parts(column: pa.Array, name: str = TOKENS, row: int = 0) -> tuple:
    """Offsets, int64 from 0, and values of an array of lists, in the same
    memory.  Errors name the row; the first list is that of `row`."""
    column.validate(full=True)      # Arrow takes offsets as a file has them
    if column.null_count:
        raise ValueError("row %d: %s: the list is missing"
                         % (row + first_null(column), name))
    kind = column.type
    if pa.types.is_fixed_size_list(kind):
        size = kind.list_size
        offsets = (np.arange(len(column) + 1, dtype=np.int64) +
                   column.offset) * size
    elif pa.types.is_list(kind) or pa.types.is_large_list(kind):
        offsets = column.offsets.to_numpy().astype(np.int64)
    else:
        raise ValueError("%s: a column of %s, where lists of numbers are due"
                         % (name, kind))
    first, last = int(offsets[0]), int(offsets[-1])
    offsets -= first
    return offsets, numbers(column.values.slice(first, last - first), name,
                            lambda i: row + sequence_of(offsets, i))


def first_null(array: pa.Array) -> int:
    return int(array.is_null().to_numpy(False).argmax())


def numbers(values: pa.Array, name: str,
            row_of: Callable[[int], int] = int) -> np.ndarray:
    """An array of numbers as one of numpy, in the same memory but for bits.
    Value i is of row row_of(i)."""
    check_numeric(values.type, name)
    if values.null_count:
        raise ValueError("row %d: %s: a value is missing"
                         % (row_of(first_null(values)), name))
    return values.to_numpy(
        zero_copy_only=not pa.types.is_boolean(values.type))


def check_numeric(kind: pa.DataType, name: str) -> None:
    if pa.types.is_dictionary(kind):
        raise ValueError("%s: decode its dictionary first" % name)
    if not is_number(kind):
        raise ValueError("%s: values of %s, where numbers are due"
                         % (name, kind))


def is_number(kind: pa.DataType) -> bool:
    return (pa.types.is_integer(kind) or pa.types.is_floating(kind) or
            pa.types.is_boolean(kind))


def is_list(kind: pa.DataType) -> bool:
    return (pa.types.is_list(kind) or pa.types.is_large_list(kind) or
            pa.types.is_fixed_size_list(kind))


def numpy_type(kind: pa.DataType, name: str) -> np.dtype:
    """The type of such values in numpy; to_pandas_dtype needs pandas."""
    return numbers(pa.array([], kind), name).dtype


def dtype_of(kind: pa.DataType, name: str) -> np.dtype:
    """The type of a channel for values of this type."""
    dtype = numpy_type(kind, name)
    code = "%s%d" % (dtype.kind, dtype.itemsize)
    return np.dtype(WIDER.get(code, code))


# ---------------------------------------------------------------- sources

def saved_files(path: str) -> List[str]:
    """The files of a dataset that save_to_disk of datasets wrote."""
    try:
        with open(os.path.join(path, "state.json")) as state:
            names = [entry["filename"]
                     for entry in json.load(state)["_data_files"]]
    except FileNotFoundError:
        raise ValueError("%s: no state.json, as save_to_disk writes; name "
                         "the files in the folder, or the folder of one "
                         "split" % path) from None
    return [os.path.join(path, name) for name in names]


def check_columns(schema: pa.Schema, names: Sequence[str]) -> None:
    missing = [name for name in names if name not in schema.names]
    if missing:
        raise ValueError("no column %s; there is %s" % (
            ", ".join(missing), ", ".join(schema.names)))


def check_transform(dataset: Any) -> None:
    """Refuses a dataset whose rows are not what is stored."""
    if (getattr(dataset, "format", None) or {}).get("type") == "custom":
        raise ValueError("the dataset has a transform, which would not be "
                         "applied: use map, or reset_format()")


@contextlib.contextmanager
def open_file(path: str) -> Iterator[Any]:
    """A parquet file, or one of Arrow's two kinds.  Errors name it."""
    try:
        with open(path, "rb") as file:
            magic = file.read(6)
        if magic[:4] == b"PAR1":
            import pyarrow.parquet
            with pyarrow.parquet.ParquetFile(path, memory_map=True) as file:
                yield file
            return
        with pa.memory_map(path) as mapped:
            try:
                file = pa.ipc.open_file(mapped) if magic == b"ARROW1" \
                    else pa.ipc.open_stream(mapped)
            except pa.ArrowInvalid:
                raise ValueError("neither parquet nor Arrow") from None
            yield file
    except (ValueError, pa.ArrowException) as problem:
        raise ValueError("%s: %s" % (path, problem)) from problem


class Source:
    """The columns `names` of record batches, wherever they are."""

    def __init__(self, source: Any):
        self.parts: List[Any] = []
        paths = isinstance(source, (list, tuple))
        for part in source if paths else [source]:
            if isinstance(part, (str, os.PathLike)):
                part = os.fspath(part)
                self.parts += saved_files(part) if os.path.isdir(part) \
                    else [part]
            else:
                self.parts.append(part)
        if not self.parts:
            raise ValueError("no file to read")
        self.schema = self._schema(self.parts[0])

    @staticmethod
    def _is_dataset(part: Any) -> bool:
        return hasattr(part, "with_format") and hasattr(part, "iter")

    def _schema(self, part: Any) -> pa.Schema:
        if isinstance(part, str):
            with open_file(part) as file:
                return getattr(file, "schema_arrow", file.schema)
        if self._is_dataset(part):
            check_transform(part)
            if part.features is None:
                raise ValueError("the dataset does not know the types of its "
                                 "columns: give it features")
            return part.features.arrow_schema
        if not isinstance(getattr(part, "schema", None), pa.Schema):
            raise TypeError("%s: neither a table nor record batches"
                            % type(part).__name__)
        return part.schema

    def batches(self, part: Any, names: Sequence[str]
                ) -> Iterator[pa.RecordBatch]:
        if isinstance(part, str):
            with open_file(part) as file:
                yield from self._batches_of(file, names)
        elif self._is_dataset(part):
            for rows in part.select_columns(list(names)).with_format(
                    "arrow").iter(BATCH_ROWS):
                yield from rows.to_batches()
        else:
            yield from self._batches_of(part, names)

    @staticmethod
    def _batches_of(part: Any, names: Sequence[str]
                    ) -> Iterator[pa.RecordBatch]:
        check_columns(getattr(part, "schema_arrow", part.schema), names)
        if hasattr(part, "iter_batches"):
            yield from part.iter_batches(BATCH_ROWS, columns=list(names))
        elif isinstance(part, pa.Table):
            yield from part.select(names).to_batches(BATCH_ROWS)
        elif isinstance(part, pa.RecordBatch):
            yield part.select(names)
        elif hasattr(part, "num_record_batches"):
            for i in range(part.num_record_batches):
                yield part.get_batch(i).select(names)
        else:
            for batch in part:
                yield batch.select(names)


@contextlib.contextmanager
def naming(file: Optional[str]) -> Iterator[None]:
    """Errors name the file."""
    try:
        yield
    except (ValueError, pa.ArrowException) as problem:
        if file is None:
            raise
        raise ValueError("%s: %s" % (file, problem)) from problem


class Rows(Columns):
    """Columns of rows from `row` on of a file, if it has a name, or table."""
    file: Optional[str]
    row: int
    tokens: str

    def where(self, name: str = "", i: Optional[int] = None,
              number: int = 0) -> str:
        row = "" if i is None else "row %d" % (self.row + i)
        name = self.tokens if name == "tokens" else name
        return ": ".join(filter(None, (self.file, row, name)))


class ArrowSequences:
    """Sequences of an Arrow source, an iterable of Columns; `channels` are
    what a TokenWriter or a Packer of them is to be made with."""

    def __init__(self, source: Any, tokens: str = TOKENS,
                 channels: Sequence[str] = (),
                 fills: Optional[Dict[str, float]] = None):
        self._source, self.tokens = Source(source), tokens
        self.files = [part for part in self._source.parts
                      if isinstance(part, str)]
        self.channels: Dict[str, Channel] = {}
        with naming(next(iter(self.files), None)):
            self._set_channels(self._source.schema, channels, fills or {})

    def _set_channels(self, schema: pa.Schema, channels: Sequence[str],
                      fills: Dict[str, float]) -> None:
        check_columns(schema, [self.tokens, *channels])
        for name in channels:
            kind = schema.field(name).type
            per = "token" if is_list(kind) else "sequence"
            fill = fills.get(name, -100 if name == "labels" else 0)
            self.channels[name] = Channel(
                dtype_of(kind.value_type if is_list(kind) else kind, name),
                fill, per)

    def __iter__(self) -> Iterator[Columns]:
        names, total = [self.tokens, *self.channels], 0
        for part in self._source.parts:
            file = part if isinstance(part, str) else None
            row = total if file is None else 0      # files have their own
            for batch in self._source.batches(part, names):
                if len(batch):
                    with naming(file):
                        columns = self._columns(batch, row)
                    columns.file, columns.row = file, row
                    columns.tokens = self.tokens
                    yield columns
                row += len(batch)
                total += len(batch)

    def _columns(self, batch: pa.RecordBatch, row: int) -> Rows:
        offsets, values = list_parts(batch.column(0), self.tokens, row)
        found = {"tokens": values}
        for i, (name, channel) in enumerate(self.channels.items(), 1):
            if channel.per == "sequence":
                found[name] = numbers(batch.column(i), name,
                                      lambda i: row + i)
                continue
            other, found[name] = list_parts(batch.column(i), name, row)
            check_lengths(offsets, other, name, row)
        return Rows(offsets, found)


def check_lengths(offsets: np.ndarray, other: np.ndarray, name: str,
                  row: int) -> None:
    """Raises ValueError unless lists are as long as those of the tokens."""
    differs = np.diff(other) != np.diff(offsets)
    if differs.any():
        i = int(differs.argmax())
        raise ValueError("row %d: %s: %d values for %d tokens" % (
            row + i, name, other[i + 1] - other[i],
            offsets[i + 1] - offsets[i]))


def from_arrow(source: Any, tokens: str = TOKENS,
               channels: Sequence[str] = (),
               fills: Optional[Dict[str, float]] = None) -> ArrowSequences:
    """The sequences of a table, of record batches, of a datasets.Dataset, or
    of files: parquet, Arrow, or the folder that save_to_disk writes; or of a
    list of these.

    `tokens` names the column of lists of tokens.  `channels` names columns
    that ride along, of lists as long or of one number a row; `fills` says what
    stands for them in padding, by default -100 for labels and 0 for others."""
    return ArrowSequences(source, tokens, channels, fills)
