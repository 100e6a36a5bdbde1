"""jsonl.py - how fast tokcat reads JSON Lines, compared with orjson.

    jsonl.py [OPTION]... BUILD_DIR

      --bytes=N           of JSON Lines a case (200000000)
      --rounds=N          at least 3 (7)

tokcat reads a file and writes framed records to /dev/null; all of its
processor time counts.  orjson, a JSON parser for Python, only parses: its time
is that of `orjson.loads` of each line, with the lines already in memory and
Python already started.  Both take turns.  MB/s are of the text; a MB is 10^6
bytes.

Ids follow a vocabulary of 50,257, with many small ones.  Lines have 1 to 2,000
of them; labels are the ids, with -100 for the first third, masks are ones, and
weights have three decimals.  Texts, metadata and messages, of about four bytes
a token, are ignored.  The texts are in a Latin and in an escaped script, with
quotation marks and newlines.

Without orjson only tokcat is measured.

SPDX-License-Identifier: MIT
"""

import functools
import json
import os
import random
import sys

import measure
from measure import Failed

# Columns and separators.
SPACED = (", ", ": ")
CASES = {"ids": (("input_ids",), SPACED),
         "ids, no blanks": (("input_ids",), (",", ":")),
         "ids, labels, masks": (("input_ids", "labels", "attention_mask"),
                                SPACED),
         "ids, weights": (("input_ids", "weights"), SPACED),
         "ids, text with escapes": (("input_ids", "text"), SPACED),
         "ids, nested metadata": (("input_ids", "metadata"), SPACED),
         "ids, messages": (("messages", "input_ids", "labels"), SPACED)}
IGNORED = ("text", "metadata", "messages")

# The other process, which prints its processor time.
PARSE = """
import orjson, sys, time
lines = open(sys.argv[1], "rb").read().splitlines()
begin = time.process_time()
for line in lines:
    orjson.loads(line)
print(time.process_time() - begin)
"""


def draw_text(draw, n):
    """About `n` characters, of which json.dumps escapes some."""
    words = ("the", "of", "packing", "sequences", "a", '"quoted"', "naïve",
             "Zürich", "\n", "данные", "token", "C:\\data", "in", "to")
    return " ".join(draw.choice(words) for _ in range(n // 6 + 1))


def draw_metadata(draw, n):
    """Objects in lists in objects, of about `n` characters."""
    return {"source": {"url": "https://example.org/%d" % n, "lang": ["en"]},
            "spans": [{"from": draw.randint(0, n), "score": draw.random(),
                       "kind": {"name": "quote", "sure": draw.random() < .5},
                       "next": None} for _ in range(n // 100 + 1)]}


def draw_messages(draw, n):
    return [{"role": role, "content": draw_text(draw, n // 4)}
            for role in ("user", "assistant") * 2]


def draw_line(draw, columns):
    n = draw.randint(1, 2000)
    ids = [int(50257 * draw.random() ** 3) for _ in range(n)]
    make = {"input_ids": lambda: ids,
            "attention_mask": lambda: [1] * n,
            "labels": lambda: [-100] * (n // 3) + ids[n // 3:],
            "weights": lambda: [round(draw.random(), 3) for _ in range(n)],
            "text": lambda: draw_text(draw, 4 * n),
            "metadata": lambda: draw_metadata(draw, 4 * n),
            "messages": lambda: draw_messages(draw, 4 * n)}
    return {key: make[key]() for key in columns}


def write_case(name, columns, separators, size):
    """Some lines, repeated."""
    draw = random.Random(1)
    text = "".join(json.dumps(draw_line(draw, columns),
                              separators=separators) + "\n"
                   for _ in range(1000))
    with open(name, "w") as file:
        for _ in range(size // len(text) + 1):
            file.write(text)
    return os.path.getsize(name)


def run_tokcat(name):
    command = ["tokcat", "-q", "--from=jsonl", name]
    command += ["--ignore=" + key for key in IGNORED]
    return measure.time_pipe([command], 0)[1]


def run_orjson(name):
    return float(measure.output_of([sys.executable, "-c", PARSE, name]))


def table(options):
    lines = ["JSON Lines, by processor time", measure.machine(),
             "%d MB a case; %d rounds" % (options.bytes // 10**6,
                                          options.rounds)]
    contenders = {"tokcat": run_tokcat}
    try:
        measure.output_of([sys.executable, "-c", "import orjson"])
        contenders["orjson"] = run_orjson
    except Failed:
        lines.append("orjson is not installed")
    rows = [["case", *("%s MB/s" % key for key in contenders), "ratio",
             "95 %"]]
    for case, (columns, separators) in CASES.items():
        with measure.room(2 * options.bytes) as folder:
            name = os.path.join(folder, "lines")
            size = write_case(name, columns, separators, options.bytes)
            times = measure.take_turns(
                {key: functools.partial(run, name)
                 for key, run in contenders.items()}, options.rounds)
        speeds = {key: size / measure.quartiles(used)[1] / 1e6
                  for key, used in times.items()}
        found, low, high = (0, 0, 0) if len(times) == 1 else measure.ratio(
            times["orjson"], times["tokcat"])
        rows.append([case, *("%.0f" % speed for speed in speeds.values()),
                     "%.1f" % found, "%.1f-%.1f" % (low, high)])
    return lines + [""] + measure.table(rows)


def main():
    options = measure.parse(__doc__, 200 * 10**6, 10**5)
    measure.find_programs(options.build)
    measure.show(table(options))


if __name__ == "__main__":
    measure.run_main(main)
