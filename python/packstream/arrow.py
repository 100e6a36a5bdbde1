"""arrow.py - read sequences from Arrow tables, parquet files and datasets.

    for columns in packstream.from_arrow("data.parquet"):
        writer.write(columns)

Values stay in Arrow's buffers and are not converted to Python lists.

SPDX-License-Identifier: MIT
"""

from __future__ import annotations

import contextlib
import json
import os
import re
from typing import (Any, Callable, Dict, Iterable, Iterator, List, NamedTuple,
                    Optional, Sequence, Tuple)

import numpy as np
import pyarrow as pa

from packstream.errors import printable
from packstream.schema import Channel, Columns, sequence_of

TOKENS = "input_ids"
MASK = "attention_mask"         # column that marks padding
BATCH_ROWS = 1 << 14
# Types that the formats do not have, and their replacements
CHANNEL = re.compile("[A-Za-z][A-Za-z0-9_]{0,22}")
WIDER = {"i1": "i4", "i2": "i4", "f2": "f4", "b1": "u1"}


class Elements(NamedTuple):
    """The values that a column has for each token or for each sequence."""
    kind: pa.DataType           # of a value
    per: str                    # "token", "sequence" or "list"
    count: Optional[int] = None     # values of a vector; None: single values
    is_known: bool = True       # False if only the data have the count


def storage_type(kind: pa.DataType) -> pa.DataType:
    """Returns the type in which an extension type, such as Array2D of
    datasets, is stored."""
    return kind.storage_type if isinstance(kind, pa.BaseExtensionType) else kind


def storage(column: Any) -> Any:
    return column.storage if isinstance(column.type, pa.BaseExtensionType) \
        else column


def elements_of(kind: pa.DataType, tokens: pa.DataType) -> Elements:
    """Returns the elements of a column of this type; `tokens` is the type of
    the column of tokens.  Lists of a fixed size are vectors per sequence,
    unless the lists of tokens have the same fixed size."""
    kind, tokens = storage_type(kind), storage_type(tokens)
    if not is_list(kind):
        return Elements(kind, "sequence")
    inner = storage_type(kind.value_type)
    if is_list(inner):
        return elements_of_lists(kind, "token")
    if not pa.types.is_fixed_size_list(kind) or (
            pa.types.is_fixed_size_list(tokens) and
            tokens.list_size == kind.list_size):
        return Elements(inner, "token")
    return Elements(inner, "sequence", kind.list_size)


def elements_of_lists(kind: pa.DataType, per: str = "list") -> Elements:
    """Returns the elements of a column of lists, which are numbers or
    vectors."""
    inner = storage_type(storage_type(kind).value_type)
    if not is_list(inner):
        return Elements(inner, per)
    fixed = pa.types.is_fixed_size_list(inner)
    return Elements(inner.value_type, per,
                    inner.list_size if fixed else None, fixed)


def split_lists(names: Sequence[str]) -> Tuple[List[str], List[str]]:
    """Returns the names of columns without a [] at the end, and those that had
    one: columns with a list of its own length in each row."""
    lists = [name[:-2] for name in names if name.endswith("[]")]
    return [name[:-2] if name.endswith("[]") else name
            for name in names], lists


def check_is_list(kind: pa.DataType, name: str) -> None:
    if not is_list(storage_type(kind)):
        raise ValueError("%s[]: a column of %s, expected lists"
                         % (printable(name), printable(kind)))


def vector_length(columns: Iterable[pa.Array]) -> int:
    """Returns the length of the first vector in columns of lists of vectors, or
    1 if they are empty."""
    for column in columns:
        column.validate(full=True)      # Arrow does not check a file's offsets
        lengths = storage(storage(column).flatten()).value_lengths()
        for length in lengths.drop_null()[:1].to_pylist():
            return length
    return 1


def list_parts(column: pa.Array, name: str = TOKENS, row: int = 0,
               count: Optional[int] = None) -> tuple:
    """Returns the offsets (int64, from 0) and the values of an array of lists,
    without a copy of the values.  The elements of the lists are numbers, or
    vectors of `count` values.  Errors name the row; `row` is the number of the
    first list."""
    column = storage(column)
    kind = column.type
    if not is_list(kind):
        raise ValueError("%s: a column of %s, expected lists of numbers"
                         % (printable(name), printable(kind)))
    if count is None:
        check_numeric(kind.value_type, name)
    column.validate(full=True)      # Arrow does not check a file's offsets
    if column.null_count:
        raise ValueError("row %d: %s: the list is missing"
                         % (row + first_null(column), printable(name)))
    if pa.types.is_fixed_size_list(kind):
        size = kind.list_size
        if size == 0:           # a file of 1 kB can have 2^40 such lists
            raise ValueError("%s: lists of a fixed size of 0"
                             % printable(name))
        offsets = (np.arange(len(column) + 1, dtype=np.int64) +
                   column.offset) * size
    else:
        offsets = column.offsets.to_numpy().astype(np.int64)
    first, last = int(offsets[0]), int(offsets[-1])
    offsets -= first

    def row_of(i: int) -> int:
        return row + sequence_of(offsets, i)
    values = column.values.slice(first, last - first)
    return offsets, numbers(values, name, row_of) if count is None else \
        vectors(values, name, count, row_of)


def vectors(column: pa.Array, name: str, count: int,
            row_of: Callable[[int], int] = int) -> np.ndarray:
    """Converts an array of lists of `count` numbers to [n, count], or to [n] if
    count is 1.  `row_of(i)` is the row of list i, for errors."""
    column = storage(column)
    kind = column.type
    if not is_list(kind):
        raise ValueError("%s: values of %s, expected lists of %d"
                         % (printable(name), printable(kind), count))
    check_numeric(kind.value_type, name)
    column.validate(full=True)
    if column.null_count:
        raise ValueError("row %d: %s: a vector is missing" % (
            row_of(first_null(column)), printable(name)))
    if pa.types.is_fixed_size_list(kind):
        lengths = np.full(min(len(column), 1), kind.list_size)
        first = column.offset * kind.list_size
    else:
        offsets = column.offsets.to_numpy().astype(np.int64)
        lengths, first = np.diff(offsets), int(offsets[0])
    wrong = lengths != count
    if wrong.any():
        i = int(wrong.argmax())
        raise ValueError("row %d: %s: a vector of %d values, expected %d" % (
            row_of(i), printable(name), lengths[i], count))
    values = numbers(column.values.slice(first, len(column) * count), name,
                     lambda i: row_of(i // count))
    return values.reshape(-1, count) if count > 1 else values


def first_null(array: pa.Array) -> int:
    return int(array.is_null().to_numpy(False).argmax())


def numbers(values: pa.Array, name: str,
            row_of: Callable[[int], int] = int) -> np.ndarray:
    """Converts a numeric array to numpy, without a copy except for booleans.
    `row_of(i)` is the row of value i, for errors."""
    check_numeric(values.type, name)
    values.validate(full=True)      # buffers can be too short
    if values.null_count:
        raise ValueError("row %d: %s: a value is missing"
                         % (row_of(first_null(values)), printable(name)))
    return values.to_numpy(
        zero_copy_only=not pa.types.is_boolean(values.type))


def check_numeric(kind: pa.DataType, name: str) -> None:
    if pa.types.is_dictionary(kind):
        raise ValueError("%s: decode its dictionary first" % printable(name))
    if not is_number(kind):
        raise ValueError("%s: values of %s, expected numbers"
                         % (printable(name), printable(kind)))


def is_number(kind: pa.DataType) -> bool:
    return (pa.types.is_integer(kind) or pa.types.is_floating(kind) or
            pa.types.is_boolean(kind))


def is_list(kind: pa.DataType) -> bool:
    return (pa.types.is_list(kind) or pa.types.is_large_list(kind) or
            pa.types.is_fixed_size_list(kind))


def numpy_type(kind: pa.DataType, name: str) -> np.dtype:
    """Returns numpy's type for these values, because to_pandas_dtype needs
    pandas."""
    return numbers(pa.array([], kind), name).dtype


def dtype_of(kind: pa.DataType, name: str,
             count: Optional[int] = None) -> np.dtype:
    """Returns the type of a channel for values of this type, or for vectors of
    `count` such values."""
    dtype = numpy_type(kind, name)
    code = "%s%d" % (dtype.kind, dtype.itemsize)
    dtype = np.dtype(WIDER.get(code, code))
    if count in (None, 1):
        return dtype
    if count == 0:
        raise ValueError("%s: vectors without values" % printable(name))
    return np.dtype((dtype, (count,)))


def unpadded(offsets: np.ndarray, mask: pa.Array, row: int) -> tuple:
    """Returns the start and the number of each row's tokens, and which values
    are tokens, according to an attention mask: 1 for a token, 0 for padding
    before or after the tokens.  Errors name the row; `row` is the number of
    the first."""
    other, values = list_parts(mask, MASK, row)
    check_lengths(offsets, other, MASK, row)
    ones = values != 0
    wrong = ones & (values != 1)
    if wrong.any():
        at = int(wrong.argmax())
        raise ValueError("row %d: %s: %s is neither 0 nor 1" % (
            row + sequence_of(offsets, at), MASK, values[at]))
    counts = np.diff(np.append(0, np.cumsum(ones))[offsets])
    first = ones.copy()             # first value of each run of ones
    first[1:] &= ~ones[:-1]
    edges = offsets[:-1][counts > 0]
    first[edges] = ones[edges]
    begins = np.flatnonzero(first)
    runs = np.diff(np.searchsorted(begins, offsets))
    if (runs > 1).any():
        raise ValueError("row %d: %s: zeros between ones; only padding before "
                         "or after the tokens can be removed"
                         % (row + int((runs > 1).argmax()), MASK))
    starts = offsets[:-1].copy()
    starts[runs > 0] = begins
    return starts, counts, ones


# ---------------------------------------------------------------- sources

def saved_files(path: str) -> List[str]:
    """Returns the files of a dataset written by datasets' save_to_disk."""
    try:
        with open(os.path.join(path, "state.json")) as state:
            return [os.path.join(path, entry["filename"])
                    for entry in json.load(state)["_data_files"]]
    except FileNotFoundError:
        raise ValueError("%s: no state.json, as save_to_disk writes; name "
                         "the files in the folder, or the folder of one "
                         "split" % printable(path)) from None
    except (ValueError, TypeError, KeyError, RecursionError):
        raise ValueError("%s: its state.json is not what save_to_disk writes"
                         % printable(path)) from None


def parts_of(path: str) -> List[Any]:
    """Returns the files of this name, or the rows of another package's
    format."""
    from packstream.loaders import loaded
    rows = loaded(path)
    if rows is not None:
        return [rows]
    return saved_files(path) if os.path.isdir(path) else [path]


def file_of(part: Any) -> Optional[str]:
    """Returns the name of a part that is a file or a folder."""
    return part if isinstance(part, str) else getattr(part, "path", None)


def check_columns(there: Sequence[str], tokens: str,
                  others: Sequence[str] = ()) -> None:
    """Raises ValueError unless each of these columns exists exactly once."""
    names = [tokens, *others]
    missing = [name for name in names if name not in there]
    if missing:
        raise ValueError("no column %s (columns: %s)%s" % (
            printable(", ".join(missing)), printable(", ".join(there)),
            ": tokenize the text first, or name the column of token ids"
            if tokens in missing else ""))
    twice = [name for name in names if there.count(name) > 1]
    if twice:
        raise ValueError("several columns are named %s"
                         % printable(", ".join(twice)))


def check_transform(dataset: Any) -> None:
    """Raises ValueError if a dataset's rows differ from the stored rows."""
    if (getattr(dataset, "format", None) or {}).get("type") == "custom":
        raise ValueError("the dataset has a transform, which would not be "
                         "applied: use map, or reset_format()")


@contextlib.contextmanager
def open_file(path: str) -> Iterator[Any]:
    """Opens a parquet file, or one of Arrow's two file formats.  Errors name
    the file.  The file is not mapped, because truncation by another program
    would raise SIGBUS."""
    try:
        with contextlib.ExitStack() as stack:
            file = stack.enter_context(open(path, "rb"))
            size, magic = os.fstat(file.fileno()).st_size, file.read(6)
            if magic[:4] == b"PAR1":
                import pyarrow.parquet
                reader = stack.enter_context(pyarrow.parquet.ParquetFile(path))
            else:
                opened = stack.enter_context(pa.OSFile(path))
                try:
                    reader = pa.ipc.open_file(opened) if magic == b"ARROW1" \
                        else pa.ipc.open_stream(opened)
                except pa.ArrowInvalid:
                    raise ValueError(
                        "neither parquet nor Arrow: use packstream.tokenize "
                        "for text and chats, tokcat for token ids") from None
            yield reader
            # Arrow treats the end of the file as the end of a stream.
            if os.fstat(file.fileno()).st_size < size:
                raise ValueError("it was truncated while it was read: it had "
                                 "%d bytes when opened" % size)
    except (ValueError, OSError, pa.ArrowException) as problem:
        if isinstance(problem, OSError) and problem.errno is not None:
            if problem.filename is not None:
                raise
            raise OSError(problem.errno, problem.strerror, path) from problem
        raise ValueError("%s: %s" % (printable(path), printable(problem, 4096))
                         ) from problem


class Source:
    """Selects the columns `names` of record batches, in any order."""

    def __init__(self, source: Any):
        self.parts: List[Any] = []
        paths = isinstance(source, (list, tuple))
        for part in source if paths else [source]:
            if isinstance(part, (str, os.PathLike)):
                self.parts += parts_of(os.fspath(part))
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
        check_columns(getattr(part, "schema_arrow", part.schema).names,
                      names[0], names[1:])
        if hasattr(part, "iter_batches"):
            yield from part.iter_batches(BATCH_ROWS, columns=list(names))
        elif isinstance(part, pa.Table):
            part = part.select(names)
            part.validate()         # slicing invalid data aborts the process
            yield from part.to_reader(BATCH_ROWS)
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
    """Prefixes errors with the file name."""
    try:
        yield
    except (ValueError, pa.ArrowException) as problem:
        if file is None:
            raise
        raise ValueError("%s: %s" % (printable(file), problem)) from problem


class Rows(Columns):
    """Consecutive rows of a file, or of a table if `file` is None, from `row`
    on."""
    file: Optional[str]
    row: int
    tokens: str

    def where(self, name: str = "", i: Optional[int] = None,
              number: int = 0) -> str:
        row = "" if i is None else "row %d" % (self.row + i)
        name = self.tokens if name == "tokens" else name
        return ": ".join(printable(part) for part in (self.file, row, name)
                         if part)


class ArrowSequences:
    """Sequences of an Arrow source, an iterable of Columns.  Pass `channels`
    to the TokenWriter or Packer that receives them."""

    def __init__(self, source: Any, tokens: str = TOKENS,
                 channels: Optional[Sequence[str]] = (),
                 fills: Optional[Dict[str, float]] = None,
                 ignore: Sequence[str] = ()):
        self._source, self.tokens = Source(source), tokens
        self.left_out: List[str] = []   # columns that are not numeric
        self.files = [file for file in map(file_of, self._source.parts)
                      if file is not None]
        self.channels: Dict[str, Channel] = {}
        self._counts: Dict[str, Optional[int]] = {}     # as in Elements
        with naming(next(iter(self.files), None)):
            schema = self._source.schema
            check_columns(schema.names, tokens, ignore)
            self._set_channels(schema, self._numeric(schema, ignore)
                               if channels is None else channels, fills or {})

    def _numeric(self, schema: pa.Schema, ignore: Sequence[str]) -> List[str]:
        """Returns the columns that can be channels, except those in
        `ignore`."""
        found = []
        tokens = schema.field(self.tokens).type
        for field in schema:
            kind = elements_of(field.type, tokens).kind
            if field.name in (self.tokens, TOKENS, MASK, *ignore):
                continue
            usable = is_number(kind) and CHANNEL.fullmatch(field.name)
            (found if usable else self.left_out).append(field.name)
        return found

    def _set_channels(self, schema: pa.Schema, channels: Sequence[str],
                      fills: Dict[str, float]) -> None:
        channels, lists = split_lists(channels)
        check_columns(schema.names, self.tokens, channels)
        self._masked = MASK in schema.names and self.tokens != MASK
        for name in channels:
            kind = schema.field(name).type
            if name in lists:
                check_is_list(kind, name)
                elements = elements_of_lists(kind)
            else:
                elements = elements_of(kind, schema.field(self.tokens).type)
            count = elements.count if elements.is_known \
                else self._length_in_data(name)
            fill = fills.get(name, -100 if name == "labels" else 0)
            self.channels[name] = Channel(
                dtype_of(elements.kind, name, count), fill, elements.per)
            self._counts[name] = count

    def _length_in_data(self, name: str) -> int:
        """Returns the length of the first vector of a column."""
        for part in self._source.parts:
            if isinstance(part, pa.RecordBatchReader):
                raise ValueError("%s: only the data have the length of its "
                                 "vectors, and they can be read once: cast its "
                                 "inner lists to a fixed size"
                                 % printable(name))
        return vector_length(
            batch.column(0) for part in self._source.parts
            for batch in self._source.batches(part, [name]))

    def __iter__(self) -> Iterator[Columns]:
        names, total = [self.tokens, *self.channels], 0
        if self._masked and MASK not in names:
            names.append(MASK)
        for part in self._source.parts:
            file = file_of(part)
            row = total if file is None else 0      # rows of files restart
            for batch in self._source.batches(part, names):
                with naming(file):
                    batch.validate()    # lengths can be negative, or differ
                    columns = self._columns(batch, row) if len(batch) else None
                if columns is not None:
                    columns.file, columns.row = file, row
                    columns.tokens = self.tokens
                    yield columns
                row += len(batch)
                total += len(batch)

    def _columns(self, batch: pa.RecordBatch, row: int) -> Rows:
        offsets, values = list_parts(batch.column(0), self.tokens, row)
        found, lists = {"tokens": values}, {}
        for i, (name, channel) in enumerate(self.channels.items(), 1):
            count = self._counts[name]
            if channel.per == "sequence":
                found[name] = numbers(
                    batch.column(i), name, lambda i: row + i) \
                    if count is None else vectors(
                        batch.column(i), name, count, lambda i: row + i)
                continue
            other, found[name] = list_parts(batch.column(i), name, row, count)
            if channel.per == "list":
                lists[name] = other
            else:
                check_lengths(offsets, other, name, row)
        return self._unpadded(Rows(offsets, found, lists), batch, row)

    def _unpadded(self, rows: Rows, batch: pa.RecordBatch, row: int) -> Rows:
        """Removes padding according to the attention mask."""
        if not self._masked:
            return rows
        _, counts, ones = unpadded(rows.offsets, batch.column(MASK), row)
        if ones.all():
            return rows
        return Rows(np.append(0, np.cumsum(counts)), {
            name: values if name in self.channels and
            self.channels[name].per != "token" else values[ones]
            for name, values in rows.values.items()}, rows.lists)


def check_lengths(offsets: np.ndarray, other: np.ndarray, name: str,
                  row: int) -> None:
    """Raises ValueError unless lists are as long as the lists of tokens."""
    differs = np.diff(other) != np.diff(offsets)
    if differs.any():
        i = int(differs.argmax())
        raise ValueError("row %d: %s: %d values for %d tokens%s" % (
            row + i, printable(name), other[i + 1] - other[i],
            offsets[i + 1] - offsets[i], "" if name == MASK else
            "; if its lists have lengths of their own, name the column '%s[]'"
            % printable(name)))


def from_arrow(source: Any, tokens: str = TOKENS,
               channels: Optional[Sequence[str]] = (),
               fills: Optional[Dict[str, float]] = None,
               ignore: Sequence[str] = ()) -> ArrowSequences:
    """Reads sequences from a table, from record batches, from a
    datasets.Dataset, from files (parquet, Arrow, or a folder written by
    save_to_disk), or from a list of these.  The packages mosaicml-streaming
    (MDS), litdata and webdataset read their own folders and .tar files.

    `tokens` names the column with lists of tokens.  `channels` names the other
    columns to read, which are lists as long as the tokens or one number per
    row; None means all numeric columns that are not in `ignore`.  A column
    named with [] at the end, such as "encoder_ids[]", has lists whose lengths
    do not depend on the tokens, and becomes a list channel.  `fills` maps
    columns to their values in padding, by default -100 for labels and 0 for
    others.

    In lists of lists, such as Array2D of datasets, the inner lists are vectors,
    one per token, and all have the same length.  Lists of a fixed size are
    vectors too, one per row, unless the lists of tokens have the same fixed
    size.

    Zeros in a column attention_mask mark padding, which is removed; zeros
    between ones raise ValueError."""
    return ArrowSequences(source, tokens, channels, fills, ignore)
