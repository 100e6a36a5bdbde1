"""tokens.py - write token lists of parquet and Arrow files as token records:

    python -m packstream.tokens data.parquet | packstream -L 2048 -o data.pks

Other numeric columns become channels: lists as long as the tokens, such as
labels, or one number per row.  Lists of lists, and lists of a fixed size,
become channels of vectors; see packstream.from_arrow.  --channel='NAME[]' makes
a list channel of a column whose lists have lengths of their own.  If there is a
column attention_mask, padding is removed.  The packages mosaicml-streaming
(MDS), litdata and webdataset read their own folders and .tar files.

With -o FILE, FILE.new is written and renamed when complete; after an error or
a signal, an existing FILE is unchanged.

Exit status is as for tokcat: 0; 1 if input or output fails or memory runs out;
64 for an invalid command line; 65 for invalid data.

SPDX-License-Identifier: MIT
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from typing import Any, Dict, List, Optional, Tuple

from packstream.errors import printable
from packstream.program import (Parser, UsageError, check_not_input,
                                die_by, on_signals, run)
from packstream.writer import TokenWriter, is_replaced

PROGRAM = "packstream.tokens"


def parse(arguments: Optional[List[str]]) -> argparse.Namespace:
    parser = Parser(
        prog=PROGRAM, allow_abbrev=False,
        description="Write the token lists of parquet and Arrow files, or of "
        "folders made by save_to_disk of datasets, as token records; also "
        "those of MDS, litdata and WebDataset.")
    parser.add_argument("files", nargs="+", metavar="FILE")
    parser.add_argument("-o", "--output", metavar="FILE",
                        help="write to FILE instead of standard output")
    parser.add_argument("--column", default="input_ids", metavar="NAME",
                        help="the column of tokens (%(default)s)")
    parser.add_argument("--channel", action="append",
                        metavar="NAME[:FILL]", help="a column to pack with "
                        "the tokens, with FILL in padding; 'NAME[]' for "
                        "lists with lengths of their own; default: all "
                        "numeric columns")
    parser.add_argument("--ignore", action="append", default=[],
                        metavar="NAME", help="a column to skip")
    parser.add_argument("-t", "--type", choices=("u16", "u32"),
                        help="type of tokens; default: u16 if it fits the "
                        "vocabulary, otherwise u32")
    parser.add_argument("--vocab", type=int, default=0, metavar="N",
                        help="size of the vocabulary; tokens are below N")
    parser.add_argument("--labels", choices=("aligned", "shifted"),
                        help="whether a label is that of its own token or of "
                        "the next token")
    for name in ("pad", "bos", "eos"):
        parser.add_argument("--%s-id" % name, type=int, metavar="ID")
    parser.add_argument("-q", "--quiet", action="store_true",
                        help="print no progress and no warnings")
    return parser.parse_args(arguments)


def split_channels(given: List[str]) -> Tuple[List[str], Dict[str, float]]:
    names, fills = [], {}
    for text in given:
        name, colon, fill = text.partition(":")
        names.append(name)
        if colon:
            try:
                fills[name.removesuffix("[]")] = \
                    float(fill) if "." in fill else int(fill)
            except ValueError:
                raise UsageError("--channel=%s: %r is not a number"
                                 % (text, fill)) from None
    return names, fills


def open_writer(output: Optional[str], **options: Any) -> TokenWriter:
    """Opens the output.  A signal removes the new file, if any, and ends the
    program."""
    early: List[int] = []

    def die(number: int, frame: Any = None) -> None:
        writer.discard()
        die_by(number)

    replaced = output is not None and is_replaced(output)
    if replaced:        # until `writer` exists
        on_signals(lambda number, frame: early.append(number))
    try:
        writer = TokenWriter(sys.stdout.buffer if output is None else output,
                             **options)
    except ValueError as problem:
        raise UsageError(str(problem)) from None
    if replaced:
        on_signals(die)
    for number in early:
        die(number)
    return writer


class Progress:
    """A status line on the terminal, updated every half second."""

    def __init__(self, quiet: bool):
        self._shows = sys.stderr.isatty() and not quiet
        self._begun = self._shown = time.monotonic()
        self._rows = self._tokens = 0

    def show(self, rows: int, tokens: int) -> None:
        """Adds to the counts."""
        self._rows += rows
        self._tokens += tokens
        now = time.monotonic()
        if self._shows and now - self._shown > 0.5:
            self._shown = now
            sys.stderr.write("\r%d rows, %.0f million tokens, %.0f s " % (
                self._rows, self._tokens / 1e6, now - self._begun))
            sys.stderr.flush()

    def end(self) -> None:
        if self._shown != self._begun:
            sys.stderr.write("\r\033[K")


def write_all(asked: argparse.Namespace) -> None:
    from packstream.arrow import from_arrow

    names, fills = split_channels(asked.channel or [])
    sequences = from_arrow(asked.files, asked.column,
                           None if asked.channel is None else names, fills,
                           asked.ignore)
    if sequences.left_out and not asked.quiet:
        sys.stderr.write("%s: columns skipped because not numeric: %s\n" % (
            PROGRAM, printable(", ".join(sequences.left_out))))
    check_not_input(sequences.files, asked.output)
    special = {name: getattr(asked, name + "_id")
               for name in ("pad", "bos", "eos")
               if getattr(asked, name + "_id") is not None}
    dtype = {"u16": "u2", "u32": "u4", None: None}[asked.type]
    progress = Progress(asked.quiet)
    rows = empty = 0
    writer = open_writer(asked.output, dtype=dtype, vocab_size=asked.vocab,
                         channels=sequences.channels, labels=asked.labels,
                         special=special)
    with writer:
        for columns in sequences:
            columns = writer.schema.prepare(columns, rows)
            full = writer.schema.without_empty(columns)
            writer.write(full)
            empty += len(columns) - len(full)
            rows += len(columns)
            progress.show(len(columns), int(columns.offsets[-1]))
    progress.end()
    if empty and not asked.quiet:
        sys.stderr.write("%s: %d rows without tokens were skipped\n"
                         % (PROGRAM, empty))


def main(arguments: Optional[List[str]] = None) -> int:
    return run(PROGRAM, parse, write_all, arguments, "token records")


if __name__ == "__main__":
    sys.exit(main())
