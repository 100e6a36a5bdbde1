"""peers.py - packstream compared with other packers, on the same tokens.

    peers.py [--case=bert|short|long] [--bytes=N] [--rounds=N]
        [--only=NAME,...] BUILD_DIR

peers.sh runs it with a Python that has as many of the peers as can be
installed, and prints which are missing.  All pack the same N (40000000) bytes
of u16 records, in turns, for ROUNDS (5); medians are printed.  The records are
like those BERT was trained on (rows of 512 tokens), short ones (20 tokens on
average, rows of 512; a quarter of N) or long ones (4000 tokens on average,
rows of 8192).  A peer gets the tokens in the form that suits it best; neither
the conversion nor its start is timed.  packstream is timed as a process with
its start, from a file of records to a file of packs.

Peers do different things, and each is compared with packstream doing the same:
with whole sequences in a row, any number or at most three of them; or cut
where a row ends.  Some only plan: they get lengths, or counts of them, and no
tokens are moved.  Those are compared with packplan, which does the same, by
the time to solve.

The published NNLSHP is slow, and runs only if --only names it.  PIP_FAILED, a
file of peers.sh, lists packages that could not be installed.

SPDX-License-Identifier: MIT
"""

import argparse
import functools
import importlib
import importlib.metadata
import json
import os
import subprocess
import sys
import time

import measure
from measure import Failed

BINS = 64           # that grain fills at a time
# Title, capacity, options of gen for lengths, and peers that take part; only
# BERT has a depth of 3.
CASES = {
    "bert": ("like those of Wikipedia", 512, ["--mean=256"], None),
    "short": ("of 20 tokens on average", 512, ["--mean=20"],
              ("trl", "datasets", "grain", "seqpacker")),
    "long": ("of 4000 tokens on average", 8192,
             ["--mean=4000", "--longest=8192", "--spread=60"],
             ("trl", "datasets", "grain", "seqpacker")),
}
PACKAGES = ("trl", "datasets", "grain", "seqpacker", "numpy", "scipy")


# How packstream does the same as a peer.
ALIKE = {"whole, 3": ("packstream -d3 -w4096", ["-d3", "-w4096"]),
         "whole": ("packstream", []),
         "cut": ("packstream -aconcat", ["-aconcat"])}


def module(name):
    try:
        return importlib.import_module(name)
    except ImportError:
        return None


numpy = module("numpy")


# ----------------------------------------------------------------- tokens

class Tokens:
    """The records, read: all tokens, and the start of each sequence."""

    def __init__(self, name, case):
        self.name = name
        self.case = case
        self.capacity = CASES[case][1]
        raw = numpy.fromfile(name, dtype="<u2")
        starts, at = [], 0
        while at < len(raw):
            starts.append(at)
            at += 2 + int(raw[at]) + (int(raw[at + 1]) << 16)
        counts = numpy.diff(numpy.array(starts + [len(raw)]))
        keep = numpy.ones(len(raw), dtype=bool)
        keep[starts] = False
        keep[numpy.array(starts) + 1] = False
        self.tokens = raw[keep].astype(numpy.int32)
        self.lengths = counts - 2
        self.offsets = numpy.concatenate(([0], numpy.cumsum(self.lengths)))

    def total(self):
        return len(self.tokens)

    def sequences(self):
        return numpy.split(self.tokens, self.offsets[1:-1])

    def histogram(self, folder):
        """The name of a file of lines of length and count."""
        name = os.path.join(folder, "histogram")
        lengths, counts = numpy.unique(self.lengths, return_counts=True)
        with open(name, "w") as file:
            for length, count in zip(lengths, counts):
                file.write("%d %d\n" % (length, count))
        return name


class Result:
    """The result of a run: rows, tokens in them, and seconds if reported."""

    def __init__(self, rows, tokens, seconds=None):
        self.rows = rows
        self.tokens = tokens
        self.seconds = seconds

    def full(self, capacity):
        return 100 * self.tokens / (self.rows * capacity)


def timed(work):
    """Seconds of a run, and its result.  A run may return a function that
    counts the result, which is not timed."""
    start = time.perf_counter()
    result = work()
    taken = time.perf_counter() - start
    if callable(result):
        result = result()
    return (taken if result.seconds is None else result.seconds), result


# -------------------------------------------------------------- packstream

def run_packstream(options, tokens, folder):
    out = os.path.join(folder, "packs")
    done = subprocess.run(
        ["packstream", "-q", "-L%d" % tokens.capacity, *options,
         "--stats=json", "-o", out, tokens.name],
        stderr=subprocess.PIPE, check=False)
    if done.returncode != 0:
        raise Failed("packstream: " + done.stderr.decode())
    found = json.loads(done.stderr)
    return Result(found["packs"], found["tokens"])


def run_packplan(algorithm, depth, tokens, histogram):
    text = measure.output_of(["packplan", "-L%d" % tokens.capacity,
                              "-d%d" % depth, "-a", algorithm,
                              "--json", histogram])
    plan = json.loads(text)["rows"][0]
    return Result(plan["packs"], tokens.total(), plan["seconds"])


# ------------------------------------------------------------ Hugging Face

def saved_dataset(tokens, folder):
    """A dataset loaded from disk: mapped, not held in Python."""
    import datasets
    import pyarrow
    datasets.disable_caching()
    datasets.disable_progress_bars()
    lists = pyarrow.ListArray.from_arrays(
        pyarrow.array(tokens.offsets, type=pyarrow.int32()),
        pyarrow.array(tokens.tokens))
    name = os.path.join(folder, "dataset")
    datasets.Dataset(pyarrow.table({"input_ids": lists})).save_to_disk(name)
    return datasets.load_from_disk(name)


def rows_of(dataset):
    """Rows and tokens of a packed dataset, whose files are then removed."""
    import pyarrow.compute
    ids = dataset.with_format("arrow")[:]["input_ids"]
    total = pyarrow.compute.sum(pyarrow.compute.list_value_length(ids)).as_py()
    rows = len(dataset)
    for file in dataset.cache_files:
        os.unlink(file["filename"])
    return Result(rows, total)


def trl_peers(tokens, folder):
    from trl import pack_dataset
    dataset = saved_dataset(tokens, folder)
    cores = len(os.sched_getaffinity(0))

    def pack(strategy, **options):
        packed = pack_dataset(dataset, tokens.capacity, strategy, options)
        return functools.partial(rows_of, packed)

    yield "TRL bfd", "whole", functools.partial(pack, "bfd")
    yield ("TRL bfd, %d processes" % cores, "whole",
           functools.partial(pack, "bfd", num_proc=cores))
    yield "TRL wrapped", "cut", functools.partial(pack, "wrapped")


def group_texts(examples, capacity):
    """As the examples run_clm and run_mlm: join the sequences of a batch, cut
    them into rows, and drop the remainder."""
    joined = {}
    for name, lists in examples.items():
        joined[name] = [token for one in lists for token in one]
    rows = {}
    for name, values in joined.items():
        end = len(values) // capacity * capacity
        rows[name] = [values[i:i + capacity] for i in range(0, end, capacity)]
    rows["labels"] = list(rows["input_ids"])
    return rows


def datasets_peers(tokens, folder):
    dataset = saved_dataset(tokens, folder)
    cores = len(os.sched_getaffinity(0))

    def pack(**options):
        packed = dataset.map(group_texts, batched=True,
                             fn_kwargs={"capacity": tokens.capacity},
                             **options)
        return functools.partial(rows_of, packed)

    yield "group_texts", "cut", pack
    yield ("group_texts, %d processes" % cores, "cut",
           functools.partial(pack, num_proc=cores))


# ------------------------------------------------------------------- grain

def segments_of(rows):
    return Result(len(rows), sum(
        int(numpy.count_nonzero(row["tokens_segment_ids"])) for row in rows))


def grain_peers(tokens, folder):
    del folder
    import grain
    from grain import experimental
    # All data is in memory: threads that read ahead would make it slower.
    reading = grain.ReadOptions(num_threads=0, prefetch_buffer_size=0)
    source = [{"tokens": one} for one in tokens.sequences()]

    def pack(kind, **options):
        parent = grain.MapDataset.source(source).to_iter_dataset(reading)
        rows = list(kind(parent, length_struct={"tokens": tokens.capacity},
                         **options))
        return functools.partial(segments_of, rows)

    best = functools.partial(pack, experimental.BestFitPackIterDataset,
                             num_packing_bins=BINS)
    yield "grain best fit", "whole", best
    if tokens.case == "bert":
        yield ("grain best fit, depth 3", "whole, 3",
               functools.partial(best, max_sequences_per_bin=3))
        yield ("grain first fit", "whole",
               functools.partial(pack, experimental.FirstFitPackIterDataset,
                                 num_packing_bins=BINS))
    yield ("grain concat then split", "cut",
           functools.partial(pack, experimental.ConcatThenSplitIterDataset))


# ---------------------------------------------------------------- planners

def seqpacker_peers(tokens, folder):
    import seqpacker
    lengths = numpy.ascontiguousarray(tokens.lengths, dtype=numpy.int64)

    def plan():
        result = seqpacker.pack_sequences(lengths, capacity=tokens.capacity)
        return Result(len(result.bins), tokens.total())

    yield ("seqpacker", ("packplan bfd", functools.partial(
        run_packplan, "bfd", 65536, tokens, tokens.histogram(folder))),
           plan)


def published(arguments, tokens):
    """plan.py prints how long it took to solve; the rest is not counted."""
    script = os.path.join(os.path.dirname(os.path.abspath(__file__)),
                          "plan.py")
    text = measure.output_of([sys.executable, script] + arguments)
    packs, seconds = text.split()[:2]
    return Result(int(packs), tokens.total(), float(seconds))


def spfhp_peers(tokens, folder):
    name = tokens.histogram(folder)
    yield ("published SPFHP, depth 3",
           ("packplan spfhp", functools.partial(run_packplan, "spfhp", 3,
                                                tokens, name)),
           functools.partial(published, ["spfhp", "512", "3", name],
                             tokens))


def nnlshp_peers(tokens, folder):
    name = tokens.histogram(folder)
    yield ("published NNLSHP, depth 3",
           ("packplan nnlshp", functools.partial(run_packplan, "nnlshp", 3,
                                                 tokens, name)),
           functools.partial(published, ["nnls", "512", name],
                             tokens))


# Name, packages it needs, and the function that lists its variants.
PEERS = {
    "trl": (("trl", "datasets"), trl_peers),
    "datasets": (("datasets",), datasets_peers),
    "grain": (("grain",), grain_peers),
    "seqpacker": (("seqpacker",), seqpacker_peers),
    "spfhp": ((), spfhp_peers),
    "nnlshp": (("scipy",), nnlshp_peers),
}
SLOW = ",nnlshp"  # a quarter of a minute, and plan.sh measures it, too


# --------------------------------------------------------------- measuring

def why_missing(package):
    """Messages of pip, if peers.sh has kept them."""
    try:
        with open(os.environ.get("PIP_FAILED", os.devnull)) as lines:
            for line in lines:
                name, _, reason = line.strip().partition(": ")
                if name == package:
                    return reason
    except OSError:
        pass
    return "not installed"


def collect(options, tokens, folder):
    """Variants of all installed peers, and lines about the others."""
    found, missing = {}, []
    for peer in CASES[options.case][3] or PEERS:
        if peer not in options.only:
            continue
        packages, variants = PEERS[peer]
        lacking = [name for name in packages if module(name) is None]
        if lacking:
            missing.append("%s: left out, no %s: %s" % (
                peer, lacking[0], why_missing(lacking[0])))
            continue
        place = os.path.join(folder, peer)
        os.mkdir(place)
        for name, kind, work in variants(tokens, place):
            found[name] = kind, work
    return found, missing


def ours(peers, tokens, folder):
    """What the peers are compared with, by name."""
    found = {}
    for kind, _ in peers.values():
        if isinstance(kind, tuple):
            found[kind[0]] = kind[1]
        else:
            name, options = ALIKE[kind]
            found[name] = functools.partial(run_packstream, options, tokens,
                                            folder)
    return found


def cells_of(name, kind, results, base, tokens):
    """Speed and row occupancy of a peer and of packstream."""
    if isinstance(kind, tuple):
        same, kind = kind[0], "plan"
    else:
        same = ALIKE[kind][0]
    speeds = [tokens.total() / seconds / 1e6 for seconds, _ in results]
    low, middle, high = measure.quartiles(speeds)
    times = measure.ratio([seconds for seconds, _ in results],
                          [seconds for seconds, _ in base[same]])
    our_speed = measure.quartiles([tokens.total() / seconds / 1e6
                                   for seconds, _ in base[same]])[1]
    return times[0], [
        name, kind, "%.1f" % middle, "%.1f-%.1f" % (low, high),
        "%.2f" % results[0][1].full(tokens.capacity), same,
        "%.0f" % our_speed, "%.2f" % base[same][0][1].full(tokens.capacity),
        "%.1f" % times[0], "%.1f-%.1f" % times[1:]]


def generate(options, folder):
    name = os.path.join(folder, "records")
    # Peers take as long for a short sequence as for a longer one.
    size = options.bytes // 4 if options.case == "short" else options.bytes
    command = ["gen", "--bytes=%d" % size, "--tokens=text"]
    if options.case == "bert" and measure.wikipedia():
        command.append("--hist=" + measure.wikipedia())
    else:
        command += CASES[options.case][2]
    with open(name, "wb") as file:
        subprocess.run(command, stdout=file, check=True)
    return Tokens(name, options.case)


def compare(options, folder):
    tokens = generate(options, folder)
    peers, missing = collect(options, tokens, folder)
    if not peers:
        raise Failed("no peer is there")
    base = ours(peers, tokens, folder)
    works = {key: work for key, (_, work) in peers.items()}
    works.update(base)
    results = measure.take_turns(
        {key: functools.partial(timed, work) for key, work in works.items()},
        options.rounds)
    rows = [cells_of(key, kind, results[key], results, tokens)
            for key, (kind, _) in peers.items()]
    titles = ["peer", "rows", "M/s", "quartiles", "full, %", "against",
              "M/s", "full, %", "times", "95 %"]
    versions = ["%s %s" % (package, importlib.metadata.version(package))
                for package in PACKAGES if module(package)]
    return (["Sequences " + CASES[options.case][0],
             measure.machine(),
             "%d sequences, %d tokens, L %d; %d rounds; M/s are millions of"
             " tokens per second" % (len(tokens.lengths), tokens.total(),
                                     tokens.capacity, options.rounds),
             "Python %d.%d, %s" % (*sys.version_info[:2],
                                   ", ".join(versions)), ""] +
            measure.table([titles] + [cells for _, cells in rows]) + missing)


def parse():
    parser = argparse.ArgumentParser(usage=__doc__, add_help=False)
    parser.add_argument("--case", default="bert", choices=CASES)
    parser.add_argument("--bytes", type=int, default=40 * 10**6)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--only", default=",".join(PEERS).replace(SLOW, ""))
    parser.add_argument("build")
    options = parser.parse_args()
    options.only = options.only.split(",")
    if not set(options.only) <= set(PEERS) or options.rounds < 3:
        parser.error("unknown peer, or too few rounds")
    return options


def main():
    options = parse()
    if numpy is None:
        raise Failed("numpy is not there; peers.sh installs it")
    measure.find_programs(options.build)
    with measure.room(50 * options.bytes) as folder:
        # Files that peers create meanwhile are removed as well.
        os.environ["TMPDIR"] = folder
        os.environ["HF_HOME"] = folder
        os.environ["HF_HUB_OFFLINE"] = "1"
        measure.show(compare(options, folder))


if __name__ == "__main__":
    measure.run_main(main)
