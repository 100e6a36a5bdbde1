"""count.py - a minimal reader: reads packs and counts.

    count.py FILE [BATCH]
    packstream -L 512 corpus.tok | count.py - [BATCH]

It computes for each batch the input of a training step, and at the end prints
how many batches there were and how fast they arrived.

SPDX-License-Identifier: MIT
"""

import sys
import time

import packstream
from packstream import views


def main():
    if len(sys.argv) not in (2, 3):
        sys.exit(__doc__)
    name = sys.argv[1]
    size = int(sys.argv[2]) if len(sys.argv) > 2 else 32
    source = packstream.open(sys.stdin.buffer if name == "-" else name)
    begin, steps, sequences, tokens = time.perf_counter(), 0, 0, 0
    for batch in source.batches(size):
        cu = views.merged_cu(batch)
        views.positions(batch, cu=cu)
        steps += 1
        sequences += int(batch["n_seq"].sum())
        tokens += int(batch["n_tok"].sum())
    seconds = time.perf_counter() - begin
    print("%d steps, %d sequences, %d tokens, %.0f tokens per second"
          % (steps, sequences, tokens, tokens / seconds))


if __name__ == "__main__":
    try:
        main()
    except (packstream.PackError, OSError) as problem:
        sys.exit("count.py: %s" % problem)
