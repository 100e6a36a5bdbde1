"""export.py - write packs in the columns that other trainers read:

    python -m packstream.export corpus.pks -o corpus.parquet --to=trl

FILE is one or more files of packs that packcat --merge could join; by default,
standard input is read.  OUT becomes a parquet file if its name ends in
.parquet, and an Arrow stream, as `datasets` uses, if its name ends in .arrow,
if it is not a regular file, or for standard output.  OUT.new is written, and
renamed when complete.  For MDS, OUT is a new folder.

    trl              input_ids, labels, seq_lengths, and all other channels,
                     of which vectors become lists of a fixed size, and a list
                     channel NAME has a column NAME_lengths, too; for
                     SFTTrainer with padding_free=True, packstream.hf and any
                     program that reads `datasets`
    megatron-bridge  input_ids, loss_mask, seq_start_id
    llama-factory    input_ids, attention_mask, labels, position_ids, as with
                     neat_packing; attention_mask numbers the sequences of a
                     row from 1
    mds              tokens, labels, seq_lengths, written by MDSWriter of
                     mosaicml-streaming

Labels are those of views.labels: the channel `labels` if there is one,
otherwise the tokens, except where a loss mask is 0.  No label crosses a
boundary.  Exit status is as for tokcat: 0, 1, 64 or 65.

SPDX-License-Identifier: MIT
"""

from __future__ import annotations

import argparse
import contextlib
import fcntl
import os
import signal
import sys
from typing import (Any, BinaryIO, Callable, Dict, Iterator, List, NamedTuple,
                    Optional)

import numpy as np

import packstream
from packstream import views
from packstream.packs import Batch, Packs
from packstream.program import (Parser, UsageError, check_not_input,
                                on_signals, run)
from packstream.rows import LENGTHS
from packstream.schema import cast
from packstream.writer import NewFile, is_replaced, new_name

PROGRAM = "packstream.export"
# Number of tokens converted at a time, and in a parquet row group
TOKENS = 1 << 20


class Lists(NamedTuple):
    """One list per pack: the lengths of the lists, and all values, or all
    vectors as rows."""
    lengths: np.ndarray
    values: np.ndarray


Columns = Dict[str, Lists]


# ---------------------------------------------------------------- the columns

def int32(values: np.ndarray, name: str) -> np.ndarray:
    return cast(values, np.dtype(np.int32), lambda at: name)


def rectangle(values: np.ndarray, name: str) -> Lists:
    """Converts an array to lists of equal length, one per row."""
    return Lists(np.full(len(values), values.shape[1]),
                 int32(values, name).reshape(-1))


def seq_lengths(batch: Batch) -> Lists:
    return Lists(batch["n_seq"], views.seqused(batch, "ragged"))


def trl(batch: Batch) -> Columns:
    kept = ~views.padding(batch)
    n_tok = kept.sum(1)
    columns = {
        "input_ids": Lists(n_tok, int32(batch["tokens"][kept], "input_ids")),
        "labels": Lists(n_tok, int32(views.labels(batch)[kept], "labels")),
        "seq_lengths": seq_lengths(batch)}
    header = batch.header
    for name in dict.fromkeys(header.row.names + header.sequence.names):
        if name in ("tokens", "labels", "seq_id", "seq_start", "seq_tok"):
            continue
        if name in columns:
            raise ValueError("the channel %s has the name of a column" % name)
        if name in header.lists:
            columns[name] = Lists(
                (~views.padding(batch, name)).sum(1),
                views.compact(batch, name))
            columns[name + LENGTHS] = Lists(batch["n_seq"], np.diff(
                views.merged_cu(batch, "ragged", name)))
            continue
        columns[name] = Lists(n_tok, batch[name][kept]) \
            if name in header.row.names else \
            Lists(batch["n_seq"], views.per_sequence(batch, name))
    return columns


def megatron_bridge(batch: Batch) -> Columns:
    """Returns Megatron-Bridge's columns.  Its loss mask refers to predicting
    the next token, the only target that it supports."""
    targets = views.targets(batch)
    counted = targets != views.IGNORED
    if (targets != views.targets(batch, "tokens"))[counted].any():
        raise ValueError("Megatron-Bridge predicts the next token; labels "
                         "that are not tokens of their own sequence would be "
                         "lost")
    kept = ~views.padding(batch)
    n_tok = kept.sum(1)
    starts = views.merged_cu(batch, "ragged")[:-1] - np.repeat(
        np.cumsum(n_tok) - n_tok, batch["n_seq"])
    return {
        "input_ids": Lists(n_tok, int32(batch["tokens"][kept], "input_ids")),
        "loss_mask": Lists(n_tok, counted[kept].astype(np.int8)),
        "seq_start_id": Lists(batch["n_seq"], starts.astype(np.int32))}


def llama_factory(batch: Batch) -> Columns:
    """Returns LLaMA-Factory's columns.  Rows end with padding, because
    otherwise transformers would drop the mask, and their lengths are multiples
    of 8, because its collator would pad everything except the positions."""
    segments = views.segments(batch)
    more = 8 - segments.shape[1] % 8

    def padded(values: np.ndarray, name: str, fill: int = 0) -> Lists:
        return rectangle(np.pad(values, ((0, 0), (0, more)),
                                constant_values=fill), name)
    return {
        "input_ids": padded(batch["tokens"], "input_ids",
                            batch.header.pad_id),
        "attention_mask": padded(segments, "attention_mask"),
        "labels": padded(views.labels(batch), "labels", views.IGNORED),
        "position_ids": padded(np.where(segments, views.positions(batch), 0),
                               "position_ids")}


def mds(batch: Batch) -> Columns:
    return {"tokens": rectangle(batch["tokens"], "tokens"),
            "labels": rectangle(views.labels(batch), "labels"),
            "seq_lengths": seq_lengths(batch)}


FORMS: Dict[str, Callable[[Batch], Columns]] = {
    "trl": trl, "megatron-bridge": megatron_bridge,
    "llama-factory": llama_factory, "mds": mds}


def converted(packs: Packs, form: str) -> Iterator[Columns]:
    """Yields the columns of several packs at a time."""
    first = 0
    for batch in packs.batches(max(1, TOKENS // packs.header.capacity)):
        end = first + len(batch["n_seq"])
        try:
            columns = FORMS[form](batch)
        except ValueError as problem:
            raise ValueError("packs %d to %d: %s"
                             % (first, end - 1, problem)) from None
        yield columns
        first = end
    if not first:
        raise ValueError("there are no packs to write")


# ------------------------------------------------------------------ the files

class Stopped(BaseException):
    """Raised by a signal."""


def stop(number: int, frame: Any) -> None:
    raise Stopped(number)


@contextlib.contextmanager
def whole_or_removed(kind: Callable[[str], Any], name: str) -> Iterator[Any]:
    """Creates a new output, and publishes it at the end or drops it after an
    error or a signal.  Blocking signals would not help, because any other
    thread can receive them."""
    early: List[int] = []

    def wait(number: int, frame: Any) -> None:
        early.append(number)

    on_signals(wait)
    new = kind(name)
    try:
        on_signals(stop)
        if early:
            raise Stopped(early[0])
        yield new
        on_signals(wait)
    except BaseException:
        on_signals(wait)
        new.drop()
        raise
    new.publish()


@contextlib.contextmanager
def opened(output: Optional[str]) -> Iterator[BinaryIO]:
    """Opens the output file."""
    if output is None:
        yield sys.stdout.buffer
        sys.stdout.buffer.flush()
    elif not is_replaced(output):
        with open(output, "wb") as file:
            yield file
    else:
        with whole_or_removed(NewFile, output) as new, \
                os.fdopen(new.fd, "wb", closefd=False) as file:
            yield file


def is_parquet(output: Optional[str]) -> bool:
    if output is None or output.endswith(".arrow") or \
            not output.endswith(".parquet") and not is_replaced(output):
        return False
    if not output.endswith(".parquet"):
        raise UsageError("%s: the name of the output must end in .parquet or "
                         ".arrow" % output)
    return True


def write_arrow(columns: Iterator[Columns], output: Optional[str]) -> None:
    import pyarrow as pa
    import pyarrow.parquet

    def elements(values: np.ndarray) -> pa.Array:
        found = pa.array(values.reshape(-1))
        return found if values.ndim == 1 else \
            pa.FixedSizeListArray.from_arrays(found, values.shape[1])

    def record_batch(these: Columns) -> pa.RecordBatch:
        return pa.record_batch({
            name: pa.ListArray.from_arrays(
                np.append(0, np.cumsum(lengths)).astype(np.int32),
                elements(values))
            for name, (lengths, values) in these.items()})

    parquet = is_parquet(output)
    first = record_batch(next(columns))
    with opened(output) as file:
        sink = pa.PythonFile(file, "w")
        writer = pyarrow.parquet.ParquetWriter(
            sink, first.schema, compression="zstd") if parquet \
            else pa.ipc.new_stream(sink, first.schema)
        with writer:
            writer.write_batch(first)
            for these in columns:
                writer.write_batch(record_batch(these))


class NewFolder:
    """A folder that is created as NAME.new and renamed to NAME, which must be
    empty or not exist.  The remains of a killed MDS export are replaced."""

    def __init__(self, path: str):
        self.name, self.new_name = os.path.realpath(path), new_name(path)
        if os.path.lexists(self.name) and (not os.path.isdir(self.name) or
                                           os.listdir(self.name)):
            raise OSError("%s: exists already; name a new folder" % path)
        os.makedirs(self.new_name, exist_ok=True)
        self._fd = os.open(self.new_name, os.O_RDONLY | os.O_CLOEXEC)
        try:
            self._take_over()
        except BaseException:
            os.close(self._fd)
            raise

    def _take_over(self) -> None:
        try:
            fcntl.flock(self._fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise OSError("%s: another job is writing it"
                          % self.new_name) from None
        if not all(name == "index.json" or name.startswith("shard.")
                   for name in os.listdir(self.new_name)):
            raise OSError("%s: has files that are not from a killed job"
                          % self.new_name)
        self._empty()

    def _empty(self) -> None:
        for name in os.listdir(self.new_name):
            os.unlink(os.path.join(self.new_name, name))

    def publish(self) -> None:
        os.rename(self.new_name, self.name)
        os.close(self._fd)

    def drop(self) -> None:
        self._empty()
        os.rmdir(self.new_name)
        os.close(self._fd)


def write_mds(columns: Iterator[Columns], output: str) -> None:
    from streaming import MDSWriter

    first = next(columns)
    with whole_or_removed(NewFolder, output) as new, MDSWriter(
            out=new.new_name, columns={name: "ndarray:int32"
                                       for name in first}) as writer:
        for these in (columns for part in ((first,), columns)
                      for columns in part):
            rows = {name: np.split(values, np.cumsum(lengths)[:-1])
                    for name, (lengths, values) in these.items()}
            for row in zip(*rows.values()):
                writer.write(dict(zip(rows, row)))


# ---------------------------------------------------------- the command line

def parse(arguments: Optional[List[str]]) -> argparse.Namespace:
    parser = Parser(
        prog=PROGRAM, allow_abbrev=False,
        description="Write packs in the columns that other trainers read.")
    parser.add_argument("files", nargs="*", metavar="FILE",
                        help="files of packs; default: standard input")
    parser.add_argument("--to", required=True, choices=FORMS, metavar="FORM",
                        help="the trainer: " + ", ".join(FORMS))
    parser.add_argument("-o", "--output", metavar="OUT",
                        help="NAME.parquet, NAME.arrow or, for mds, a new "
                        "folder; default: an Arrow stream to standard output")
    return parser.parse_args(arguments)


def work(asked: argparse.Namespace) -> None:
    if asked.to == "mds" and asked.output is None:
        raise UsageError("--to=mds writes a folder: name it with -o")
    if asked.output is None and sys.stdout.isatty():
        raise OSError("cannot write an Arrow stream to a terminal: name a "
                      "file with -o")
    files = [] if asked.files == ["-"] else asked.files
    check_not_input(files, asked.output)
    packs = packstream.open(files or sys.stdin.buffer)
    columns = converted(packs, asked.to)
    try:
        if asked.to == "mds":
            write_mds(columns, asked.output)
        else:
            write_arrow(columns, asked.output)
    except Stopped as signalled:
        number, = signalled.args
        signal.signal(number, signal.SIG_DFL)
        os.kill(os.getpid(), number)


def main(arguments: Optional[List[str]] = None) -> int:
    return run(PROGRAM, parse, work, arguments)


if __name__ == "__main__":
    sys.exit(main())
