"""loaders.py - read rows of MDS, litdata and WebDataset, with the packages
that write them, as Arrow record batches.

from_arrow and `python -m packstream.tokens` use this for folders of
mosaicml-streaming or litdata, and for files whose name ends in .tar.  Nothing
is unpickled.

SPDX-License-Identifier: MIT
"""

from __future__ import annotations

import io
import itertools
import json
import os
from typing import Any, Callable, Dict, Iterator, Mapping, Optional

import numpy as np
import pyarrow as pa

from packstream.errors import printable

SOME_ROWS = 1 << 10


def arrow_value(value: Any) -> Any:
    """Returns an array of two dimensions as a list of arrays, which pyarrow can
    convert."""
    return list(value) if isinstance(value, np.ndarray) and value.ndim == 2 \
        else value


class Loaded:
    """Yields rows, which are mappings of arrays and numbers, as record
    batches.  The first row determines the columns."""

    def __init__(self, path: str,
                 rows: Callable[[str], Iterator[Mapping[str, Any]]]):
        self.path, self._rows = path, rows
        first = next(iter(self), None)
        if first is None:
            raise ValueError("%s: no rows" % printable(path))
        self.schema = first.schema

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        rows = enumerate(self._checked())
        schema = getattr(self, "schema", None)
        while some := list(itertools.islice(rows, SOME_ROWS)):
            names = schema.names if schema else list(some[0][1])
            columns: Dict[str, list] = {name: [] for name in names}
            for number, row in some:
                for name, column in columns.items():
                    if name not in row:
                        raise ValueError("row %d: no %s"
                                         % (number, printable(name)))
                    column.append(arrow_value(row[name]))
            yield pa.record_batch({
                name: pa.array(column, schema and schema.field(name).type)
                for name, column in columns.items()})
            if schema is None:
                return          # only the schema is needed


    def _checked(self) -> Iterator[Mapping[str, Any]]:
        """Yields the rows.  Errors of the packages become ValueError."""
        try:
            yield from self._rows(self.path)
        except (ImportError, MemoryError, OSError):
            raise
        except Exception as problem:
            raise ValueError("%s: %s" % (printable(self.path),
                                         printable(problem))) from problem


def mds(path: str) -> Iterator[Mapping[str, Any]]:
    from streaming import StreamingDataset
    rows = StreamingDataset(local=path, batch_size=1)
    return (rows[i] for i in range(len(rows)))


def litdata(path: str) -> Iterator[Mapping[str, Any]]:
    """Yields rows; a row that is not a mapping is a list of tokens."""
    from litdata import StreamingDataset
    with open(os.path.join(path, "index.json")) as file:
        formats = json.load(file)["config"].get("data_format") or []
    if any("pickle" in str(kind) for kind in formats):
        raise ValueError("pickled rows can run code: write arrays or tensors")
    rows = StreamingDataset(path)
    for i in range(len(rows)):
        row = rows[i]
        row = row if isinstance(row, Mapping) else {"input_ids": row}
        yield {name: np.asarray(value) if np.ndim(value) else value
               for name, value in row.items()}


def webdataset(path: str) -> Iterator[Mapping[str, Any]]:
    """Yields rows: NAME.npy is column NAME, .npy is input_ids, and .json is an
    object with columns."""
    from webdataset import WebDataset
    for files in WebDataset([os.path.abspath(path)], shardshuffle=False):
        row: Dict[str, Any] = {}
        for name, data in files.items():
            stem, _, kind = ("." + name).rpartition(".")
            if kind == "npy":
                row[stem[1:] or "input_ids"] = np.load(io.BytesIO(data),
                                                       allow_pickle=False)
            elif kind == "json":
                found = json.loads(data)
                if not isinstance(found, dict):
                    raise ValueError("%s: %s is not an object" % (
                        files["__key__"], name))
                row.update(found)
        yield row


def loaded(path: str) -> Optional[Loaded]:
    """Returns the rows of a folder or file of these kinds, or None."""
    if os.path.isfile(path):
        return Loaded(path, webdataset) if path.endswith(".tar") else None
    try:
        with open(os.path.join(path, "index.json")) as file:
            index = json.load(file)
    except FileNotFoundError:
        return None
    except (ValueError, RecursionError):
        index = None
    for key, rows in (("shards", mds), ("chunks", litdata)):
        if isinstance(index, dict) and key in index:
            return Loaded(path, rows)
    raise ValueError("%s: its index.json is neither that of MDS nor of litdata"
                     % printable(path))
