"""throughput.py - how fast packstream is, compared with cat, cp and zstd.

    throughput.py [OPTION]... BUILD_DIR

      --only=NAME[,NAME]  only these tables; default: all that --list names
      --bytes=N           of token records (1000000000)
      --rounds=N          at least 3 (7)
      --list              name the tables and exit

The tables of a pipe measure X in four positions:

    cat F | X | cat >/dev/null
    X <F | cat >/dev/null
    cat F | X >/dev/null
    X <F >OUT

F and OUT are in memory if they fit.  X is cat with default pipes, "wide cat"
between pipes of 256 KiB, cp for files, and packstream, which sizes its pipes
itself.  Each table has medians, their quartiles, the ratios to cat and to wide
cat of medians taken in turns, the 95 % interval of these ratios (bootstrap
over the rounds), and the processor time of X.  GB/s are of the input, and a GB
is 10^9 bytes; for zstd, see there.

`make bench` runs it.

SPDX-License-Identifier: MIT
"""

import argparse
import functools
import json
import os
import subprocess
import sys

import measure
from measure import Failed

WIDE = 256 * 1024
ROOM = 2.5  # times the size of F: F, its packs, and a reserve

BERT = {"longest": 512, "mean": 256, "hist": True}
LONG = {"longest": 8192, "mean": 4000, "spread": 60}
SHORT = {"longest": 512, "mean": 20}

# Title, lengths, width, (capacity, depth, window), share of the bytes.
CASES = {
    "bert-d3": ("BERT, u16, L 512, D 3, W 4096", BERT, 2,
                (512, 3, 4096), 1.0),
    "bert-d16": ("BERT, u16, L 512, D 16, W 4096", BERT, 2,
                 (512, 16, 4096), 0.5),
    "bert-u32": ("BERT, u32, L 512, D 3, W 4096", BERT, 4,
                 (512, 3, 4096), 0.5),
    "long-u32": ("Long, u32, L 8192, D 64, W 1024", LONG, 4,
                 (8192, 64, 1024), 0.5),
    "long-u16": ("Long, u16, L 8192, D 64, W 1024", LONG, 2,
                 (8192, 64, 1024), 0.5),
    "short-u16": ("Short, u16, L 512, D 64, W 1024", SHORT, 2,
                  (512, 64, 1024), 0.25),
    "short-u32": ("Short, u32, L 512, D 64, W 1024", SHORT, 4,
                  (512, 64, 1024), 0.25),
}
ZSTD_LEVEL = 1

PLACES = {
    "pipe": "cat F | X | cat >/dev/null",
    "out": "X <F | cat >/dev/null",
    "in": "cat F | X >/dev/null",
    "files": "X <F >OUT",
}


# ----------------------------------------------------------------- inputs

def generate(folder, lengths, width, size, tokens="flat"):
    """The name of a file of token records, and their description."""
    name = os.path.join(folder, "records")
    command = ["gen", "--bytes=%d" % size, "--width=%d" % width,
               "--tokens=" + tokens]
    what = "lognormal lengths"
    if lengths.get("hist") and measure.wikipedia():
        command.append("--hist=" + measure.wikipedia())
        what = "lengths of Wikipedia"
    else:
        command += ["--%s=%d" % (key, lengths[key])
                    for key in ("longest", "mean", "spread") if key in lengths]
    with open(name, "wb") as file:
        if subprocess.run(command, stdout=file, check=False).returncode != 0:
            raise Failed("gen failed")
    return name, what


def packstream(width, shape, *more):
    capacity, depth, window = shape
    return ["packstream", "-q", "-L%d" % capacity, "-d%d" % depth,
            "-w%d" % window, "-tu%d" % (8 * width), *more]


def variants(command):
    """packstream with threads, and with one thread."""
    return {"packstream": command, "packstream -T1": command + ["-T1"]}


def totals(command, name):
    """The counts of packstream; the first run loads it all into memory."""
    with open(name) as file:
        done = subprocess.run(command + ["--stats=json"], stdin=file,
                              stdout=subprocess.DEVNULL,
                              stderr=subprocess.PIPE, check=False)
    if done.returncode != 0:
        raise Failed("packstream: " + done.stderr.decode().strip())
    return json.loads(done.stderr)


def heading(title, folder, size, options, more):
    return [title, measure.machine(),
            "%.2f GB in %s, %s; %d rounds" % (
                size / 1e9, os.path.dirname(folder), more, options.rounds)]


# ----------------------------------------------------------- at pipe speed

def contender(place, command, name, size):
    """Runs the command in its position once; seconds, and its own CPU time."""
    if place == "files":
        out = name + ".out"
        try:
            return measure.time_pipe([command], 0, source=name, sink=out)
        finally:
            os.unlink(out)
    commands = {"pipe": [["cat", name], command, ["cat"]],
                "out": [command, ["cat"]],
                "in": [["cat", name], command]}[place]
    source = name if place == "out" else os.devnull
    return measure.time_pipe(commands, place != "out", source=source,
                             size=size)


def contenders(place, command, name):
    """All commands that can be X in a position, as callables by name."""
    found = {"cat": (["cat"], 0)}
    if place == "files":
        found["cp"] = (["cp", name, name + ".out"], 0)
    else:
        found["wide cat"] = (["cat"], WIDE)
    found.update((key, (value, 0)) for key, value in variants(command).items())
    return {key: functools.partial(contender, place, value, name, size)
            for key, (value, size) in found.items()}


def ratio_cells(times, other, key):
    """How many times as fast as the other, and the interval."""
    if key == other:
        return ["1.00", ""]
    middle, low, high = measure.ratio([t[0] for t in times[other]],
                                      [t[0] for t in times[key]])
    return ["%.2f" % middle, "%.2f-%.2f" % (low, high)]


def place_rows(place, times, size):
    others = ["cat", "cp" if place == "files" else "wide cat"]
    # For files, cp is the reference.
    if place == "files":
        others.reverse()
    rows = [[""], [PLACES[place]],
            ["X", "GB/s", "quartiles", others[0], "95 %", others[1], "95 %",
             "CPU"]]
    for key, results in times.items():
        speeds = [size / wall / 1e9 for wall, _ in results]
        low, middle, high = measure.quartiles(speeds)
        cells = [cell for other in others
                 for cell in ratio_cells(times, other, key)]
        cpu = measure.quartiles([used for _, used in results])[1]
        rows.append([key, "%.2f" % middle, "%.2f-%.2f" % (low, high), *cells,
                     "%.2f s" % cpu])
    return rows


def sequences_line(times, place, sequences):
    """Sequences per second, which limit the speed of short ones."""
    walls = [wall for wall, _ in times["packstream"]]
    speed = sequences / measure.quartiles(walls)[1] / 1e6
    return "%s: %.1f million sequences per second" % (PLACES[place], speed)


def pipe_table(case, options):
    title, lengths, width, shape, share = CASES[case]
    size = int(options.bytes * share)
    command = packstream(width, shape)
    with measure.room(ROOM * size) as folder:
        name, what = generate(folder, lengths, width, size)
        size = os.path.getsize(name)
        count = totals(command, name)
        lines = heading(title, folder, size, options, what)
        lines.append("%d sequences, mean %.0f tokens; packs %.2f %% full" % (
            count["sequences"], count["tokens"] / count["sequences"],
            100 * count["tokens"] / (count["packs"] * shape[0])))
        rows, ends = [], [""]
        for place in PLACES:
            times = measure.take_turns(contenders(place, command, name),
                                       options.rounds)
            rows += place_rows(place, times, size)
            if lengths is SHORT:
                ends.append(sequences_line(times, place, count["sequences"]))
    return lines + measure.table(rows) + (ends if len(ends) > 1 else [])


# ------------------------------------------------------------- compressed

def compress(commands, source, sizes, key, to_file):
    """Runs a pipe that compresses, and records the size of its output."""
    out = source + ".out" if to_file else os.devnull
    result = measure.time_pipe(commands, 0, source=source, sink=out)
    if to_file:
        sizes[key] = os.path.getsize(out)
        os.unlink(out)
    return result


def compressors(name, packs, command):
    """Commands and their input: packs, or records to make them from."""
    zstd = ["zstd", "-q", "-c", "-%d" % ZSTD_LEVEL, "-T0"]
    found = {"zstd -%d -T0 <PACKS" % ZSTD_LEVEL: ([zstd], packs),
             "packstream | zstd": ([command, zstd], name)}
    for key, variant in variants(command).items():
        found[key + " --zstd"] = ([variant + ["--zstd=%d" % ZSTD_LEVEL]], name)
    return found


def compressed_rows(title, times, size, sizes):
    base = next(iter(times))
    rows = [[""], [title], ["", "GB/s", "quartiles", "zstd", "95 %",
                            "smaller"]]
    for key, results in times.items():
        low, middle, high = measure.quartiles([size / wall / 1e9
                                               for wall, _ in results])
        cells = ratio_cells(times, base, key)
        rows.append([key, "%.3f" % middle, "%.3f-%.3f" % (low, high), *cells,
                     "%.2f times" % (size / sizes[key])])
    return rows


def compressed(options):
    """Packs made and compressed, compared with zstd on existing packs."""
    title, lengths, width, shape, _ = CASES["bert-d3"]
    size = int(options.bytes * 0.5)
    command = packstream(width, shape)
    with measure.room(2 * ROOM * size) as folder:
        name, what = generate(folder, lengths, width, size, "text")
        packs = os.path.join(folder, "packs")
        with open(packs, "wb") as file:
            subprocess.run(command + [name], stdout=file, check=True)
        written = os.path.getsize(packs)
        lines = heading("Compressed: " + title, folder, size, options,
                        what + ", tokens like text")
        lines.append("GB/s are of the %.2f GB of packs" % (written / 1e9))
        rows, sizes = [], {}
        for to_file in (True, False):
            times = measure.take_turns({
                key: functools.partial(compress, commands, source, sizes, key,
                                       to_file)
                for key, (commands, source)
                in compressors(name, packs, command).items()}, options.rounds)
            rows += compressed_rows("to a file" if to_file else
                                    "to /dev/null", times, written, sizes)
    return lines + measure.table(rows)


# ----------------------------------------------------------------- growth

def peak(command, name, times):
    """MiB that packstream allocates, with all of the input used."""
    script = os.path.join(os.path.dirname(os.path.abspath(__file__)),
                          "../support/memory.py")
    feeder = subprocess.Popen(["cat"] + [name] * times,
                              stdout=subprocess.PIPE)
    try:
        text = measure.output_of([sys.executable, script] + command,
                                 stdin=feeder.stdout)
    finally:
        feeder.stdout.close()
        feeder.kill()
        feeder.wait()
    return int(text) / 1024


def growth(options):
    """Time and memory for the input, and for ten times as much."""
    title, lengths, width, shape, share = CASES["bert-d3"]
    size = int(options.bytes * share)
    command = packstream(width, shape)
    with measure.room(ROOM * size) as folder:
        name, what = generate(folder, lengths, width, size)
        size = os.path.getsize(name)
        times = measure.take_turns({
            count: functools.partial(
                measure.time_pipe, [["cat"] + [name] * count, command], 1)
            for count in (1, 10)}, options.rounds)
        peaks = {count: peak(command, name, count) for count in (1, 10)}
        lines = heading("Growth: " + title, folder, size, options, what)
    rows = [["cat F... | packstream >/dev/null", "seconds", "quartiles",
             "CPU", "resident memory"]]
    for count, results in times.items():
        low, middle, high = measure.quartiles([wall for wall, _ in results])
        cpu = measure.quartiles([used for _, used in results])[1]
        rows.append(["%.1f GB" % (size * count / 1e9), "%.3f" % middle,
                     "%.3f-%.3f" % (low, high), "%.2f s" % cpu,
                     "%.1f MiB" % peaks[count]])
    found = measure.ratio([t[0] for t in times[10]], [t[0] for t in times[1]])
    return lines + [""] + measure.table(rows) + [
        "", "Ten times the input takes %.2f times as long (95 %%: %.2f-%.2f)."
        % found]


# ------------------------------------------------------- the command line

TABLES = {case: functools.partial(pipe_table, case) for case in CASES}
TABLES.update(compressed=compressed, growth=growth)


def parse():
    parser = argparse.ArgumentParser(usage=__doc__.replace("%", "%%"),
                                     add_help=False)
    parser.add_argument("--only", default=",".join(TABLES))
    parser.add_argument("--bytes", type=int, default=10**9)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--list", action="store_true")
    parser.add_argument("build", nargs="?")
    options = parser.parse_args()
    options.only = options.only.split(",")
    unknown = [name for name in options.only if name not in TABLES]
    if unknown or options.rounds < 3 or options.bytes < 10**6:
        parser.error("unknown table" if unknown else "too few")
    if not options.list and options.build is None:
        parser.error("BUILD_DIR is missing")
    return options


def main():
    options = parse()
    if options.list:
        print("\n".join(TABLES))
        return
    measure.find_programs(options.build)
    for name in options.only:
        measure.show(TABLES[name](options))


if __name__ == "__main__":
    measure.run_main(main)
