"""rows.py - rows of pack_dataset as a batch of packs.

    batch = rows.batch_of_rows([packed[i] for i in range(8)])
    views.positions(batch)

A batch of rows is what a batch of packs.py is: the views and the adapters
take either.  It needs numpy alone.

SPDX-License-Identifier: MIT
"""

from __future__ import annotations

from typing import Any, Dict, List, Mapping, Sequence

import numpy as np

from packstream.packs import Batch, Header

OWN = 1                 # in a header: each token has its own label
NO_ID = 2**32 - 1
FILLS = {"labels": -100}
MADE = ("seq_lengths", "position_ids")      # by pack_dataset


def batch_of_rows(rows: Sequence[Mapping[str, Any]]) -> Batch:
    """Arrays [S, L], where L is the longest row: "tokens", the column
    input_ids, and the other columns with a value for each token; [S, D],
    where D is the most sequences of a row, for columns with a value for each
    sequence."""
    name = "input_ids" if "input_ids" in rows[0] else "tokens"
    if name not in rows[0] or "seq_lengths" not in rows[0]:
        raise ValueError(
            "neither packs nor rows of pack_dataset, which have input_ids and "
            "seq_lengths, but rows of %s; Trainer removes columns unless "
            "TrainingArguments(remove_unused_columns=False)"
            % (", ".join(rows[0]) or "nothing"))
    tokens = [np.asarray(row[name]) for row in rows]
    lengths = [np.asarray(row["seq_lengths"]) for row in rows]
    for own, row in zip(lengths, tokens):
        if own.sum() != len(row) or (own < 1).any():
            raise ValueError("seq_lengths add up to %d, but the row has %d "
                             "tokens" % (own.sum(), len(row)))
    n_tok, n_seq = list(map(len, tokens)), list(map(len, lengths))
    columns = {"tokens": _padded(tokens, max(n_tok), 0)}
    for other in rows[0]:
        if other != name and other not in MADE:
            columns.update(_column(other, rows, n_tok, n_seq))
    cu = np.full((len(rows), max(n_seq) + 2), max(n_tok), np.int32)
    cu[:, 0] = 0
    for bounds, own in zip(cu, lengths):
        bounds[1:len(own) + 1] = np.cumsum(own)
    counts = {"n_seq": n_seq, "n_tok": n_tok,
              "max_seqlen": [max(own, default=0) for own in lengths]}
    return Batch(dict(
        columns, cu=cu, **{key: np.array(value, np.uint32)
                           for key, value in counts.items()}),
        Header(max(n_tok), max(n_seq), 1, 0, OWN, (NO_ID,) * 6, np.dtype([]),
               None, None, None, 0))


def _column(name: str, rows: Sequence[Mapping[str, Any]], n_tok: List[int],
            n_seq: List[int]) -> Dict[str, np.ndarray]:
    """A column of numbers; nothing if it holds something else."""
    arrays = [np.asarray(row[name]) for row in rows]
    if any(array.ndim != 1 or array.dtype.kind not in "biuf"
           for array in arrays):
        return {}
    sizes = list(map(len, arrays))
    if sizes not in (n_tok, n_seq):
        raise ValueError("%s: %s values in rows of %s tokens"
                         % (name, sizes, n_tok))
    return {name: _padded(arrays, max(sizes), FILLS.get(name, 0))}


def _padded(arrays: List[np.ndarray], size: int, fill: int) -> np.ndarray:
    """[len(arrays), size]: one array a row, then `fill`."""
    found = np.full((len(arrays), size), fill, np.result_type(*arrays))
    for row, array in zip(found, arrays):
        row[:len(array)] = array
    return found
