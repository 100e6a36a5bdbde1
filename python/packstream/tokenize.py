"""tokenize.py - tokenize text and chats, and write token records:

    python -m packstream.tokenize chat.jsonl --tokenizer=DIR |
        packstream -L 4096 -o chat.pks

In Python, packstream.from_text returns the same sequences as Columns.
Processes render and tokenize chats; threads of the tokenizers package tokenize
text.  Output is in input order.

Exit status is as for packstream.tokens.  With --state, the state is saved
before SIGTERM or SIGINT ends the program.

SPDX-License-Identifier: MIT
"""

from __future__ import annotations

import argparse
import collections
import contextlib
import functools
import hashlib
import itertools
import json
import multiprocessing
import multiprocessing.connection
import os
import signal
import sys
import threading
import time
from concurrent.futures import (BrokenExecutor, ProcessPoolExecutor,
                                ThreadPoolExecutor)
from typing import (Any, BinaryIO, Dict, Iterable, Iterator, List, Optional,
                    Tuple)

from packstream import tokens
from packstream.encoder import (CHANNELS, KINDS, Encoded, Encoder, Refused,
                                columns_of, is_messages, kind_of)
from packstream.errors import printable
from packstream.program import (Parser, UsageError, die_by, is_written,
                                on_signals, run)
from packstream.schema import Columns
from packstream.text_rows import (STANDARD_INPUT, Task, parts_of, rows_of,
                                  tasks_of)
from packstream.writer import NewFile, TokenWriter, is_replaced, lock_file

PROGRAM = "packstream.tokenize"
MAX_UNKNOWN = 1 << 14           # maximum rows before the kind is known


# --------------------------------------------------------------- processes

def encode_task(encoder: Encoder, kind: str, column: Optional[str],
                task: Task) -> Encoded:
    """Encodes the rows of a task, with columns renamed as in the kind."""
    needed = (column,) if column else KINDS[kind][0]

    def renamed(row: Any) -> Any:
        if row is None or isinstance(row, Refused):
            return row
        missing = [name for name in needed if name not in row]
        if missing:
            return Refused("no key %s (keys: %s)" % (
                ", ".join(missing), ", ".join(row)))
        return {**row, kind: row[column]} if column else row

    rows = map(renamed, itertools.islice(rows_of(task), task.skip, None))
    return encoder.encode(kind, list(rows), task.number + task.skip)


class Workers:
    """Encodes tasks in parallel and yields the results in order.  With one
    worker, this process encodes them."""

    _encoder: Encoder           # the encoder in a worker

    def __init__(self, encoder: Encoder, number: int):
        self._encoder, self._number, self._pool = encoder, number, None
        if number > 1:
            # Fork all workers now, before Arrow opens files and starts
            # threads.
            self._pool = ProcessPoolExecutor(
                number, multiprocessing.get_context("fork"),
                Workers._begin, (encoder,))
            self._pool.submit(os.getpid).result()

    @staticmethod
    def _begin(encoder: Encoder) -> None:
        os.environ["TOKENIZERS_PARALLELISM"] = "false"
        Workers._encoder = encoder
        threading.Thread(target=Workers._end_with_parent, daemon=True).start()

    @staticmethod
    def _end_with_parent() -> None:
        parent = multiprocessing.parent_process()
        multiprocessing.connection.wait([parent.sentinel])
        os._exit(1)

    @staticmethod
    def _work(*arguments: Any) -> Encoded:
        return encode_task(Workers._encoder, *arguments)

    def map(self, kind: str, column: Optional[str], tasks: Iterable[Task]
            ) -> Iterator[Tuple[Task, Encoded]]:
        if self._pool is None:
            for task in tasks:
                yield task, encode_task(self._encoder, kind, column, task)
            return
        pending: collections.deque = collections.deque()
        work = Workers._work
        if kind == "text":
            # The threads of tokenizers share a word cache, which makes them
            # faster than processes.  While one task is tokenized, another is
            # decoded or written.
            self._pool.shutdown()
            os.environ.update(TOKENIZERS_PARALLELISM="true",
                              RAYON_NUM_THREADS=str(self._number))
            self._pool = ThreadPoolExecutor(2)
            work = functools.partial(encode_task, self._encoder)
        try:
            for task in tasks:
                pending.append((task, self._pool.submit(
                    work, kind, column, task)))
                if len(pending) > 2 * self._number:
                    first, future = pending.popleft()
                    yield first, future.result()
            while pending:
                first, future = pending.popleft()
                yield first, future.result()
        except BaseException:       # after a signal, do not wait for tasks
            self._pool.shutdown(wait=False, cancel_futures=True)
            raise
        self._pool.shutdown()


class TextSequences:
    """Tokenized rows, an iterable of Columns that can be read once.  Pass
    `schema` to the TokenWriter that writes them, or without `special` and
    `tokenizer` to a Packer.  pack_dataset also accepts them."""

    def __init__(self, source: Any, tokenizer: Any,
                 column: Optional[str] = None, eos: Optional[str] = None,
                 form: Optional[str] = None, workers: Optional[int] = None):
        self._encoder, self._column = Encoder(tokenizer, eos), column
        self._workers = Workers(self._encoder, workers or
                                len(os.sched_getaffinity(0)))
        parts = parts_of(source)
        self.files = [part for part in parts if isinstance(part, str)]
        tasks = tasks_of(parts, form, column)
        self.kind, first = self._kind_of(tasks)
        self._tasks: Optional[Iterable[Task]] = itertools.chain(first, tasks)
        self.schema = {
            "channels": CHANNELS[self.kind],
            "vocab_size": self._encoder.vocab_size,
            "labels": "aligned" if CHANNELS[self.kind] else None,
            "special": self._encoder.special,
            "tokenizer": self._encoder.digest}
        # These values must be equal in a resumed job.
        self.job = {"kind": self.kind, "column": column, "form": form,
                    "eos": self._encoder.eos,
                    "tokenizer": self._encoder.identity}

    def _kind_of(self, tasks: Iterable[Task]) -> Tuple[str, List[Task]]:
        """Returns the kind of the first row that determines it ("text" for
        empty input), and the tasks up to this row.  Rows before it are held in
        memory, so their number is limited."""
        read, rows, why = [], 0, None
        for task in tasks:
            read.append(task)
            for i, row in enumerate(rows_of(task)):
                if row is None:
                    continue
                kind, problem = self._kind_of_row(row)
                if kind is not None:
                    return kind, read
                if problem is not None and why is None:
                    why = fault(task.where(i), problem + (
                        "; --from=text takes lines of text"
                        if task.form == "jsonl" and isinstance(row, Refused)
                        else ""))
                rows += 1
            if rows > MAX_UNKNOWN:
                break
        if why is not None:
            raise why
        return "text", read

    def _kind_of_row(self, row: Any) -> Tuple[Optional[str], Optional[str]]:
        """Returns the kind of a row, or what is wrong with the row."""
        if isinstance(row, Refused):
            return None, str(row)
        try:
            columns = columns_of(list(row), self._column)
        except ValueError as problem:
            return None, str(problem)
        values = [row[name] for name in columns]
        if values[0] is None:
            return None, None
        self._encoder.check(is_messages(values[0]))
        return kind_of(columns) if self._column is None else \
            "messages" if is_messages(values[0]) else "text", None

    def batches(self, skip: int = 0) -> Iterator[Tuple[Task, Encoded]]:
        """Yields the sequences of some rows at a time, after the first `skip`
        rows."""
        tasks, self._tasks = self._tasks, None
        if tasks is None:
            raise ValueError("the rows were read already: call from_text "
                             "again")
        return self._workers.map(self.kind, self._column, skipped(tasks, skip))

    def __iter__(self) -> Iterator[Columns]:
        for task, encoded in self.batches():
            for i, why in encoded.refused:
                raise fault(task.where(i), why)
            if len(encoded.columns):
                yield encoded.columns

    def dataset(self) -> Any:
        """Returns a datasets.Dataset in memory, with input_ids and the
        channels."""
        import datasets
        import pyarrow as pa

        def batch_of(columns: Columns) -> Any:
            made = {}
            for name, values in columns.values.items():
                array = pa.array(values)
                if name == "tokens" or self.schema["channels"][name].per == \
                        "token":
                    array = pa.LargeListArray.from_arrays(columns.offsets,
                                                          array)
                made["input_ids" if name == "tokens" else name] = array
            return pa.record_batch(made)

        batches = [batch_of(columns) for columns in self]
        if not batches:
            raise ValueError("the input has no rows")
        return datasets.Dataset(pa.Table.from_batches(batches))


def skipped(tasks: Iterable[Task], skip: int) -> Iterator[Task]:
    end = 0
    for task in tasks:
        end = task.number + task.count
        if end > skip:
            yield task._replace(skip=max(skip - task.number, 0))
    if end < skip:
        raise ValueError("the input has %d rows, fewer than the %d that were "
                         "tokenized before" % (end, skip))


def fault(where: Dict[str, Any], why: str) -> ValueError:
    """Returns an error that names the row."""
    place = ["%s" % item if name == "file" else "%s %d" % (name, item)
             for name, item in where.items()]
    return ValueError(": ".join([*place, why]))


def from_text(source: Any, tokenizer: Any, column: Optional[str] = None,
              eos: Optional[str] = None, form: Optional[str] = None,
              workers: Optional[int] = None) -> TextSequences:
    """Tokenizes rows of text or chats.

    `source` is a file or a list of files: JSON Lines, lines of text (both
    optionally compressed by gzip or zstd), parquet or Arrow; a folder written
    by save_to_disk of datasets; a datasets.Dataset or IterableDataset; a table;
    or any iterable of mappings.  `tokenizer` is a tokenizer.json, the folder of
    a tokenizer, which chats need, or the tokenizer itself.

    Rows have the columns messages; prompt and completion; chosen and rejected;
    conversations, as in ShareGPT; or text.  The first of these that is present
    is used, unless `column` names a column of text or messages.  A text ends
    with `eos`, by default the tokenizer's; "" means none.  Labels of messages
    are the assistant's turns; labels of completions are everything after the
    prompt.  A row whose labels would not be exact is an error, and so is a row
    of another form.

    `form` is "jsonl" or "text", for files whose name or content does not show
    it.  `workers` is the number of processes, or of threads for texts; it
    defaults to the number of processors, and 1 means this process."""
    return TextSequences(source, tokenizer, column, eos, form, workers)


# --------------------------------------------------------------- the program

def parse(arguments: Optional[List[str]]) -> argparse.Namespace:
    parser = Parser(
        prog=PROGRAM, allow_abbrev=False,
        description="Tokenize text and chats, and write token records. "
        "Files are JSON Lines, lines of text (both may be compressed by gzip "
        "or zstd), parquet, Arrow, or folders made by save_to_disk of "
        "datasets; by default, standard input is read.  Rows have the columns "
        "messages, prompt and completion, chosen and rejected, conversations "
        "(as in ShareGPT), or text; the first of these that exists is used.",
        epilog="The channel 'labels' holds labels, or -100 for no label. In "
        "messages, the assistant's turns have labels; in other rows, the "
        "tokens after the prompt. A chosen and a rejected answer become two "
        "sequences, with the number of their row in the channel 'pair', and 1 "
        "or 0 in the channel 'chosen'. Exit status: 0; 1 if input or output "
        "fails or memory runs out; 64 for an invalid command line; 65 for "
        "rows that cannot be tokenized.")
    parser.add_argument("files", nargs="*", metavar="FILE",
                        default=[STANDARD_INPUT])
    parser.add_argument("--tokenizer", required=True, metavar="PATH",
                        help="a tokenizer.json; or the folder of a tokenizer, "
                        "which chats need for its chat template")
    parser.add_argument("-o", "--output", metavar="FILE",
                        help="write to FILE instead of standard output")
    parser.add_argument("--column", metavar="NAME",
                        help="the column with text or messages")
    parser.add_argument("--from", dest="form", choices=("jsonl", "text"),
                        help="form of files without a known name or content")
    parser.add_argument("--eos", metavar="TOKEN",
                        help="the token that ends a text; default: the "
                        "tokenizer's eos token; --eos= for none")
    parser.add_argument("--workers", type=positive, metavar="N",
                        help="number of processes, or of threads for text "
                        "(default: one per processor)")
    parser.add_argument("--rejects", metavar="FILE",
                        help="write rows that cannot be tokenized exactly to "
                        "FILE, with the reason, as JSON Lines, and continue")
    parser.add_argument("--state", metavar="FILE",
                        help="save in FILE what is needed to resume, on "
                        "SIGTERM and SIGINT, too; needs -o")
    parser.add_argument("--state-every", type=positive, metavar="N",
                        default=1 << 16, help="rows between two states "
                        "(%(default)s)")
    parser.add_argument("--resume", action="store_true",
                        help="continue from the state, if it exists")
    parser.add_argument("-q", "--quiet", action="store_true",
                        help="print no progress and no warnings")
    asked = parser.parse_args(arguments)
    if asked.resume and not asked.state:
        raise UsageError("--resume needs --state")
    if asked.state and not (asked.output and is_replaced(asked.output)):
        raise UsageError("--state needs -o FILE, a regular file")
    return asked


def positive(text: str) -> int:
    if not text.isascii() or not text.isdigit() or not 0 < int(text) < 1 << 63:
        raise argparse.ArgumentTypeError("%r is not a positive number" % text)
    return int(text)


class Stopped(BaseException):
    """Raised when a signal stops the job."""


class Job:
    """A run of the program: its outputs, state and counts.  `saved` is the
    state that it resumes from; `stopped` is the signal that ends it."""

    def __init__(self, asked: argparse.Namespace, sequences: TextSequences,
                 saved: Dict[str, Any]):
        self.asked, self.sequences, self.saved = asked, sequences, saved
        self.stopped, self._waits = 0, False
        self.rows = saved.get("rows", 0)
        self.counts = saved.get("counts", {"empty": 0, "refused": 0,
                                           "merged": 0})
        self.rejects = open_at(asked.rejects, saved.get("rejects", 0)) \
            if asked.rejects else None
        self.writer = None
        if not asked.state:
            self.writer = tokens.open_writer(asked.output, **sequences.schema)
            return
        mark = saved.get("mark")
        self._output = open_at(asked.output, mark["offset"] if mark else 0)
        if not saved:
            # Save a state before the first byte of output, so that the output
            # of a killed job is not overwritten.
            self.save()
        self.writer = TokenWriter(self._output, mark=mark, **sequences.schema)

    def run(self) -> None:
        progress = tokens.Progress(self.asked.quiet)
        if self.asked.state:
            # Catch signals only after starting the processes, which must end
            # by signals.
            on_signals(self._stop, (signal.SIGINT, signal.SIGTERM))
            # Interrupt the read: a signal just before it would otherwise wait
            # for input.
            signal.signal(signal.SIGALRM, lambda number, frame: None)
            signal.setitimer(signal.ITIMER_REAL, 1, 1)
        with self.writer:
            saved = self.rows
            with contextlib.closing(self.sequences.batches(self.rows)) as done:
                while (batch := self._next(done)) is not None:
                    self._write(*batch)
                    progress.show(batch[0].count - batch[0].skip,
                                  int(batch[1].columns.offsets[-1]))
                    if self.rows - saved >= self.asked.state_every:
                        saved = self.rows
                        self.save()
            progress.end()
            if self.stopped:
                self.save()
                raise Stopped
        if self.rejects:
            with naming(self.asked.rejects):
                self.rejects.close()
            self.rejects = None
        self.save(ended=True)

    def _stop(self, number: int, frame: Any) -> None:
        """Interrupts only waits for rows.  A second signal ends the process at
        once."""
        if self.stopped:
            die_by(number)
        self.stopped = number
        if self._waits:
            raise Stopped

    def _next(self, batches: Iterator[Tuple[Task, Encoded]]
              ) -> Optional[Tuple[Task, Encoded]]:
        """Returns the next rows, or None at the end or after a signal, which
        may also have ended the processes."""
        try:
            self._waits = True
            try:
                return None if self.stopped else next(batches, None)
            finally:
                self._waits = False
        except BaseException as problem:
            if isinstance(problem, BrokenExecutor):
                time.sleep(0.1)     # until the signal also arrives here
            if not self.stopped:
                raise
            return None

    def _write(self, task: Task, encoded: Encoded) -> None:
        self._refuse(task, encoded)
        if len(encoded.columns):
            self.writer.write(encoded.columns)
        self.rows = task.number + task.count
        self.counts["empty"] += encoded.empty
        self.counts["merged"] += encoded.merged

    def _refuse(self, task: Task, encoded: Encoded) -> None:
        for i, why in encoded.refused:
            where = task.where(task.skip + i)
            if self.rejects is None:
                raise ValueError("%s (--rejects=FILE lists such rows and "
                                 "continues)" % fault(where, why))
            with naming(self.asked.rejects):
                self.rejects.write(json.dumps(
                    {**where, "reason": why}).encode() + b"\n")
        self.counts["refused"] += len(encoded.refused)

    def save(self, ended: bool = False) -> None:
        """Writes the state, after syncing everything that it refers to."""
        if not self.asked.state:
            return
        state = dict(description(self.asked, self.sequences), rows=self.rows,
                     counts=self.counts, ended=ended)
        if ended:
            state["size"] = os.path.getsize(self.asked.output)
        elif self.writer is not None:
            state["mark"] = self.writer.mark()
        files = {self.asked.output: self._output}
        if self.rejects is not None:
            files[self.asked.rejects] = self.rejects
        for name, file in files.items():
            with naming(name):
                file.flush()
                if is_replaced(name):
                    os.fsync(file.fileno())
        if self.rejects is not None and is_replaced(self.asked.rejects):
            state["rejects"] = self.rejects.tell()
        write_state(self.asked.state, state)

    def report(self) -> None:
        listed = "rejected: see " + printable(self.asked.rejects or "")
        merged = "a token with the end of the prompt and the start of the " \
            "completion: it has a label"
        texts = {"empty": ("row without text was skipped",
                           "rows without text were skipped"),
                 "refused": ("row was " + listed, "rows were " + listed),
                 "merged": ("sequence has " + merged,
                            "sequences have " + merged)}
        for name, text in texts.items():
            if self.counts[name] and not self.asked.quiet:
                sys.stderr.write("%s: %d %s\n" % (
                    PROGRAM, self.counts[name], text[self.counts[name] > 1]))
        if not self.rows and not self.asked.quiet:
            sys.stderr.write("%s: the input has no rows\n" % PROGRAM)


@contextlib.contextmanager
def naming(path: str) -> Iterator[None]:
    """Adds the file name to errors."""
    try:
        yield
    except OSError as problem:
        if problem.filename is None:
            problem.filename = path
        raise


def open_at(path: str, offset: int) -> BinaryIO:
    """Opens a file for writing at `offset`; the rest is truncated.  Pipes,
    devices and open files such as /dev/stderr are not truncated."""
    if not is_replaced(path):
        for fd in (2, 1):       # reopening a file would start at 0
            with contextlib.suppress(OSError):
                if os.path.samestat(os.stat(path), os.fstat(fd)):
                    return os.fdopen(os.dup(fd), "wb")
        fd = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CLOEXEC)
        return os.fdopen(fd, "wb")
    fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
    file = os.fdopen(fd, "r+b")
    lock_file(fd, path)
    if os.path.getsize(path) < offset:
        raise ValueError("%s: it has fewer than the %d bytes that the state "
                         "counts" % (printable(path), offset))
    file.truncate(offset)
    file.seek(offset)
    return file


def description(asked: argparse.Namespace, sequences: TextSequences
                ) -> Dict[str, Any]:
    """Returns the properties that must match a state."""
    inputs = [[os.path.getsize(name), os.stat(name).st_mtime_ns]
              if os.path.isfile(name) else [] for name in sequences.files]
    return {"program": PROGRAM, "version": 1, "job": sequences.job,
            "inputs": inputs, "rejected": bool(asked.rejects)}


def read_state(asked: argparse.Namespace) -> Dict[str, Any]:
    """Returns the existing state, or {}."""
    try:
        with open(asked.state, "rb") as file:
            text = file.read(1 << 24)
    except FileNotFoundError:
        if asked.resume and os.path.exists(asked.output) and \
                os.path.getsize(asked.output):
            raise UsageError(
                "%s: the state does not exist, but %s is not empty: remove it "
                "to start again" % (printable(asked.state),
                                   printable(asked.output))) from None
        return {}
    if not asked.resume:
        raise UsageError("%s: exists already: use --resume to continue from "
                         "it, or remove it" % printable(asked.state))
    try:
        state = json.loads(text)
        digest = state.pop("digest")
    except (ValueError, KeyError, AttributeError, TypeError, RecursionError):
        digest = state = None
    if state is None or digest != digest_of(state):
        raise ValueError("%s: damaged, or not a state"
                         % printable(asked.state))
    return state


def digest_of(state: Dict[str, Any]) -> str:
    text = json.dumps(state, sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()


def write_state(path: str, state: Dict[str, Any]) -> None:
    new = NewFile(path)
    try:
        text = json.dumps(dict(state, digest=digest_of(state)))
        with os.fdopen(os.dup(new.fd), "w") as file:
            file.write(text + "\n")
        os.fsync(new.fd)
    except BaseException:
        new.drop()
        raise
    new.publish()


def check_names(asked: argparse.Namespace, files: List[str]) -> None:
    """Raises OSError if a file is used twice."""
    written = {name: getattr(asked, name)
               for name in ("output", "rejects", "state")
               if getattr(asked, name)}
    for name, path in written.items():
        for other in [*files, *(written[one] for one in written
                                if one != name)]:
            if os.path.realpath(other) == os.path.realpath(path) or \
                    os.path.exists(other) and is_written(other, path):
                raise OSError("%s is used twice, once for --%s"
                              % (printable(path), name))


def write_all(asked: argparse.Namespace) -> None:
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
    # Do not warn that PyTorch is missing, because it is not needed.
    os.environ.setdefault("TRANSFORMERS_NO_ADVISORY_WARNINGS", "1")
    saved = read_state(asked) if asked.state else {}
    sequences = from_text(asked.files, asked.tokenizer, asked.column,
                          asked.eos, asked.form, asked.workers)
    check_names(asked, sequences.files)
    if saved:
        check_state(asked, saved, description(asked, sequences))
        if saved["ended"]:
            return
    # Pipes to the processes also break when one of them is killed.
    signal.signal(signal.SIGPIPE, signal.SIG_IGN)
    try:
        job = Job(asked, sequences, saved)
        job.run()
    except BrokenPipeError:         # silently, like any filter
        die_by(signal.SIGPIPE)
    except Stopped:
        die_by(job.stopped)
    except BrokenExecutor:
        raise OSError("a process that tokenizes was killed: memory may have "
                      "run out; try fewer --workers") from None
    job.report()


def check_state(asked: argparse.Namespace, saved: Dict[str, Any],
                due: Dict[str, Any]) -> None:
    """Raises an error that names the difference from the state's job."""
    for name, what in (("program", "program"), ("version", "version"),
                       ("inputs", "size or time of an input"),
                       ("job", "tokenizer, --column, --eos or --from"),
                       ("rejected", "--rejects")):
        if saved.get(name) != due[name]:
            raise ValueError("%s: this state is of another job: %s differs"
                             % (printable(asked.state), what))
    if saved["ended"] and (not os.path.exists(asked.output) or
                           os.path.getsize(asked.output) != saved["size"]):
        raise ValueError("%s: not the output of the job in the state: "
                         "remove %s to start again" % (
                             printable(asked.output), printable(asked.state)))


def main(arguments: Optional[List[str]] = None) -> int:
    return run(PROGRAM, parse, write_all, arguments, "token records")


if __name__ == "__main__":
    sys.exit(main())
