"""rows.py - convert rows of pack_dataset to a batch of packs.

    batch = rows.batch_of_rows([packed[i] for i in range(8)])
    views.positions(batch)

All views and adapters accept a batch of rows like a batch of packs.py.  This
module needs only numpy.

SPDX-License-Identifier: MIT
"""

from __future__ import annotations

from typing import Any, Dict, List, Mapping, Sequence, Tuple

import numpy as np

from packstream.batch import CU, Batch
from packstream.header import Header
from packstream.views import MASKS

ALIGNED = 1             # header.labels: each token has its own label
NO_ID = 2**32 - 1
FILLS = {"labels": -100}
ADDED = ("seq_lengths", "position_ids")     # columns that pack_dataset adds
LENGTHS = "_lengths"            # NAME_lengths has the lengths of the lists NAME


def batch_of_rows(rows: Sequence[Mapping[str, Any]]) -> Batch:
    """Returns a batch.  "tokens" (from the column input_ids or tokens) and
    other columns with a value per token are arrays [S, L], where L is the
    length of the longest row.  Columns with a value per sequence are [S, D],
    where D is the maximum number of sequences in a row.  Columns of vectors of
    N values are [S, L, N] or [S, D, N].  A column NAME with lists whose lengths
    are in NAME_lengths is a list channel."""
    name = "input_ids" if "input_ids" in rows[0] else "tokens"
    if name not in rows[0] or "seq_lengths" not in rows[0]:
        raise ValueError(
            "expected packs, or rows of pack_dataset with input_ids and "
            "seq_lengths; got rows with %s. Pack other rows first; in Trainer, "
            "set remove_unused_columns=False"
            % (", ".join(rows[0]) or "no columns"))
    if any(set(row) != set(rows[0]) for row in rows):
        raise ValueError("rows with different columns")
    tokens = [np.asarray(row[name]) for row in rows]
    lengths = [np.asarray(row["seq_lengths"]) for row in rows]
    for i, (own, row) in enumerate(zip(lengths, tokens)):
        if own.sum() != len(row) or (own < 1).any():
            raise ValueError("row %d of the batch: seq_lengths must be at "
                             "least 1 each and add up to its %d tokens, not "
                             "to %d" % (i, len(row), own.sum()))
    n_tok, n_seq = list(map(len, tokens)), list(map(len, lengths))
    columns = {"tokens": _padded(tokens, max(n_tok), 0)}
    per_sequence: List[str] = []
    lists = {}
    for other in rows[0]:
        if other not in (name, *ADDED) and _is_list(other, rows, n_tok):
            lists[other] = _list_column(other, rows, n_seq)
    for other in rows[0]:
        if other != name and other not in ADDED and other not in lists and \
                other.removesuffix(LENGTHS) not in lists:
            column, sizes = _column(other, rows, n_tok, n_seq)
            columns.update(column)
            per_sequence += list(column) if sizes != n_tok else []
    cu = _boundaries(lengths, max(n_tok), max(n_seq))
    for other, (values, own) in lists.items():
        columns[other] = values
        columns[other + CU] = _boundaries(own, values.shape[1], max(n_seq))
    counts = {"n_seq": n_seq, "n_tok": n_tok,
              "max_seqlen": [max(own, default=0) for own in lengths]}
    return Batch(dict(
        columns, cu=cu, **{key: np.array(value, np.uint32)
                           for key, value in counts.items()}),
        Header(max(n_tok), 1, 0, ALIGNED, (NO_ID,) * 6,
               *_dtypes(columns, per_sequence), depth=max(n_seq)))


def _boundaries(lengths: List[np.ndarray], capacity: int,
                depth: int) -> np.ndarray:
    """Returns cu for sequences, or lists, of these lengths."""
    cu = np.full((len(lengths), depth + 2), capacity, np.int32)
    cu[:, 0] = 0
    for bounds, own in zip(cu, lengths):
        bounds[1:len(own) + 1] = np.cumsum(own)
    return cu


def _is_list(name: str, rows: Sequence[Mapping[str, Any]],
             n_tok: List[int]) -> bool:
    """True for a list channel.  A column with a value per token can have a
    NAME_lengths of another meaning."""
    return name + LENGTHS in rows[0] and (
        [len(row[name]) for row in rows] != n_tok or
        all(np.sum(row[name + LENGTHS]) == n
            for row, n in zip(rows, n_tok)))


def _list_column(name: str, rows: Sequence[Mapping[str, Any]],
                 n_seq: List[int]) -> Tuple[np.ndarray, List[np.ndarray]]:
    """Returns the lists of each row, padded to the longest row, and their
    lengths."""
    arrays = [np.asarray(row[name]) for row in rows]
    lengths = [np.asarray(row[name + LENGTHS], np.int64) for row in rows]
    for i, (values, own) in enumerate(zip(arrays, lengths)):
        if own.shape != (n_seq[i],) or own.sum() != len(values):
            raise ValueError(
                "row %d of the batch: %s: %d lengths add up to %d, but there "
                "are %d sequences and %d elements" % (
                    i, name + LENGTHS, own.size, own.sum(), n_seq[i],
                    len(values)))
    shape = max((array.shape[1:] for array in arrays), key=len)
    arrays = [array if len(array) else np.empty((0, *shape), np.uint8)
              for array in arrays]
    return _padded(arrays, max(1, *map(len, arrays)), 0), lengths


def _column(name: str, rows: Sequence[Mapping[str, Any]], n_tok: List[int],
            n_seq: List[int]) -> Tuple[Dict[str, np.ndarray], List[int]]:
    """Returns a padded numeric column, and the values of each row, or {} if it
    is not numeric, which is an error for a column of labels."""
    arrays = [np.asarray(row[name]) for row in rows]
    is_target = name == "labels" or name in MASKS
    if len({array.shape[1:] for array in arrays}) > 1 or any(
            array.ndim not in ((1,) if is_target else (1, 2)) or
            array.dtype.kind not in "biuf" for array in arrays):
        if is_target:
            raise ValueError("%s: not a list of numbers for each row" % name)
        return {}, []
    sizes = list(map(len, arrays))
    if sizes not in (n_tok, n_seq):
        i = next(i for i, n in enumerate(n_tok) if sizes[i] != n)
        raise ValueError("row %d of the batch: %s has %d values for %d tokens "
                         "in %d sequences"
                         % (i, name, sizes[i], n_tok[i], n_seq[i]))
    return {name: _padded(arrays, max(sizes), FILLS.get(name, 0))}, sizes


def _dtypes(columns: Dict[str, np.ndarray],
            per_sequence: List[str]) -> List[np.dtype]:
    """Returns the dtypes of a row and of a sequence row."""
    lists = [name[:-len(CU)] for name in columns if name.endswith(CU)]
    row, sequence = [np.dtype([
        (name, array.dtype, array.shape[1:] if per_token else ())
        for name, array in columns.items()
        if (name not in per_sequence) == per_token and not name.endswith(CU)])
        for per_token in (True, False)]
    return [row, np.dtype([*sequence.descr * bool(sequence.names),
                           *((name, "<u4", (2,)) for name in lists)])]


def _padded(arrays: List[np.ndarray], size: int, fill: int) -> np.ndarray:
    """Returns an array [len(arrays), size], or [len(arrays), size, N] of
    vectors: one array per row, padded with `fill`."""
    found = np.full((len(arrays), size, *arrays[0].shape[1:]), fill,
                    np.result_type(
                        np.min_scalar_type(fill),
                        *(array.dtype for array in arrays)))
    for row, array in zip(found, arrays):
        row[:len(array)] = array
    return found
