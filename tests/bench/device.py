"""device.py - how fast a BERT trains on packs on a GPU, compared with PyTorch.

    device.py [--model=large|base|toy] [--packs=N] [--steps=N] [--rounds=N]
        [--device=cuda|cpu] [--ablate | --kernels]
        BUILD_DIR

Trains BERT on random tokens with the lengths of Wikipedia (see bert.py), N (56)
rows of 512 tokens a step, each sequence in its own row and packed: with
packtrain, also with cuDNN's attention, and with a BERT of PyTorch on the same
rows (bert_torch.py), also compiled.  "Padded" and "packed" compute all of each
row, "unpadded" skips the padding of rows of one sequence.  All products are in
bfloat16.  The table has tokens per second, without padding, of the second half
of the steps.  "Times" is the ratio of medians to the first contender's,
followed by its bootstrap interval over the rounds.  Contenders take turns for
ROUNDS (7) rounds after one to warm up, in which PyTorch compiles, and each
result is printed to stderr at once.  If a contender fails, its line has the
reason.  PyTorch's optimiser is AdamW, which does less work than LAMB.

MFU, model FLOPs utilization, is the operations of these tokens over the card's
peak.  Ours counts products of the model, its head only for masked tokens, and
pairs of tokens of one sequence.  PaLM's formula, also used by nanoGPT, counts
6 N + 12 L H Q T for each token: all N parameters, so the head for every token,
and all T (512) tokens of a row as keys.

--ablate instead compares pairs of runs of packtrain, with and without an
optimisation, and prints its gain next to the figures of Zeng et al. (2022).
For optimisations that packtrain always uses, it compares a step's milliseconds
in their operations (tests/trainer/cuda/ablations-t.cu, always of BERT-large),
and the gain is the difference over the time of a step.
--kernels lists the kernels of a step on packs, averaged over all STEPS.

tests/device.sh runs it on a machine with a GPU.  --device=cpu with --model=toy
tests it without one.

SPDX-License-Identifier: MIT
"""

import argparse
import collections
import functools
import importlib.util
import json
import os
import subprocess
import sys
import tempfile

import bert
import kernels
import measure
from measure import Failed

Model = collections.namedtuple(
    "Model", "layers hidden heads intermediate vocab")
MODELS = {"large": Model(24, 1024, 16, 4096, 30522),
          "base": Model(12, 768, 12, 3072, 30522),
          "toy": Model(2, 64, 2, 128, 2600)}
MASKED = 0.15           # of all tokens
# Peak of products in bfloat16, without sparsity, FLOP/s.
CARDS = {"A100": 312e12, "H100": 989.4e12, "H200": 989.4e12}


def parameters(m):
    norm = 2 * m.hidden
    linear = m.hidden * m.hidden + m.hidden
    layer = (4 * linear + 2 * m.hidden * m.intermediate + m.intermediate
             + m.hidden + 2 * norm)
    positions, types = 512, 2
    return ((m.vocab + positions + types) * m.hidden + norm
            + m.layers * layer
            + linear + norm + m.vocab             # masked tokens
            + linear + types * m.hidden + types)  # next sentence


def model_flops(m, rows):
    """Per token in these rows: 3 products forward and backward."""
    tokens = sum(sum(row["seq_lengths"]) for row in rows)
    pairs = sum(n * n for row in rows for n in row["seq_lengths"])
    layer = 4 * m.hidden**2 + 2 * m.hidden * m.intermediate
    head = MASKED * (m.hidden**2 + m.hidden * m.vocab)
    return 6 * (m.layers * layer + head) + (
        12 * m.layers * m.hidden * pairs / tokens)


def palm_flops(m):
    """Per token, by the formula of PaLM's appendix B."""
    return 6 * parameters(m) + 12 * m.layers * m.hidden * bert.LENGTH


@functools.cache
def rows_of(stream, count):
    lines = measure.output_of(["packcat", "-q", "--to=trl",
                               "--range=0:%d" % count, stream]).splitlines()
    if len(lines) != count:
        raise Failed("%d packs are too few" % len(lines))
    return [json.loads(line) for line in lines]


# Streams, and options of packtrain or one of bert_torch.WAYS.
CONTENDERS = {
    "packtrain, padded": ("single", ["--rows=padded"]),
    "packtrain, packed": ("packed", ["--rows=padded"]),
    "packtrain, unpadded": ("single", ["--rows=unpadded"]),
    "packtrain, cuDNN, packed": ("packed", ["--rows=padded",
                                             "--attention=cudnn"]),
    "PyTorch, SDPA, padded": ("single", "SDPA"),
    "PyTorch, SDPA, packed": ("packed", "SDPA"),
    "PyTorch, compiled SDPA, packed": ("packed", "compiled SDPA"),
    "PyTorch, compiled flash, packed": ("packed", "compiled flash"),
    "PyTorch, compiled varlen_attn, packed *": ("packed",
                                                "compiled varlen_attn"),
    "PyTorch, compiled FlexAttention, packed *": ("packed",
                                                  "compiled FlexAttention")}
NOTES = ["* has no dropout of scores, which the others have",
         "MFU counts a head for masked tokens, and pairs of tokens of a",
         "sequence; PaLM's 6 N + 12 L H Q T a head for each token, with all",
         "parameters, and %d keys" % bert.LENGTH]

# An optimisation, the runs with and without it, and its gain over the previous
# ones in Zeng et al. (2022), figure 14.
CUDNN = ["--attention=cudnn"]
ABLATIONS = (
    ("unpadding", ("single", []), ("single", ["--rows=padded"]), "130 %"),
    ("packing", ("packed", []), ("single", ["--rows=padded"]), ""),
    ("unpadding of packs", ("packed", []), ("packed", ["--rows=padded"]), ""),
    ("packing, cuDNN", ("packed", CUDNN),
     ("single", [*CUDNN, "--rows=padded"]), ""),
    ("cuDNN's attention", ("packed", CUDNN), ("packed", []), ""),
    ("CUDA graphs", ("packed", ["--graphs=on"]), ("packed", []), ""),
    ("bfloat16, not tf32", ("packed", []), ("packed", ["--precision=tf32"]),
     ""))
# Names in ablations-t.
PARTS = {"grouping": ("grouping of spans", "3.6 %, with streams"),
         "streams": ("streams of groups", ""),
         "gelu": ("GELU in products", "8.9 %, with norms"),
         "norm": ("dropout, sum in norms", ""),
         "lamb": ("LAMB in few kernels", "11.3 %, with embedding"),
         "embedding": ("embedding by segments", "")}


def by_packtrain(stream, how, options):
    """From two reports, of which the second counts."""
    m = MODELS[options.model]
    done = subprocess.run([
        "packtrain", "--device=" + options.device, "--stats=json",
        "--report=%d" % (options.steps // 2), "--steps=%d" % options.steps,
        "--packs=%d" % options.packs, "--hidden=%d" % m.hidden,
        "--layers=%d" % m.layers, "--heads=%d" % m.heads,
        "--intermediate=%d" % m.intermediate, "--vocab=%d" % m.vocab,
        "--attention=varlen", *how, stream], capture_output=True, text=True,
        check=False)
    if done.returncode != 0:
        raise Failed(done.stderr or "exit status %d" % done.returncode)
    told = json.loads(done.stdout.splitlines()[1])
    return told["tokens"] / told["seconds"]


def by_torch(stream, way, options):
    if importlib.util.find_spec("torch") is None:
        raise Failed("this python has no torch")
    import bert_torch
    return bert_torch.tokens_per_second(
        MODELS[options.model],
        rows_of(stream, options.packs * options.steps), bert.LENGTH,
        options.packs, options.steps // 2, options.device, way)


def train(stream, how, options):
    return (by_torch if isinstance(how, str) else by_packtrain)(
        stream, how, options)


def peak():
    """The card's name and peak; None if that is not known."""
    try:
        name = subprocess.run(
            ["nvidia-smi", "--query-gpu=name", "--format=csv,noheader"],
            stdout=subprocess.PIPE, text=True,
            check=True).stdout.partition("\n")[0]
    except (OSError, subprocess.CalledProcessError):
        return "no GPU", None
    return name, next((product for card, product in CARDS.items()
                       if card in name), None)


def speed(who, stream, how, options, skipped):
    """Tokens per second, by options.train(), or 0 and the reason in `skipped`,
    for good."""
    if who in skipped:
        return 0
    try:
        found = options.train(stream, how, options)
    except Exception as problem:  # anything PyTorch raises
        kind = ("" if isinstance(problem, Failed)
                else type(problem).__name__ + ": ")
        skipped[who] = (kind + str(problem)).partition("\n")[0][:150]
        print("%s: skipped: %s" % (who, skipped[who]), file=sys.stderr,
              flush=True)
        return 0
    print("%s: %.0f tokens/s" % (who, found), file=sys.stderr, flush=True)
    return found


def measured(runs, streams, options):
    """Speeds of these runs by name, and the reasons for missing ones."""
    skipped = {}
    speeds = measure.take_turns(
        {who: functools.partial(speed, who, streams[kind], how, options,
                                skipped)
         for who, (kind, how) in runs.items()}, options.rounds)
    return {who: found for who, found in speeds.items()
            if who not in skipped}, skipped


def head(options):
    return ["BERT-%s, %d rows of %d a step; %s" % (
        options.model, options.packs, bert.LENGTH, peak()[0]),
        "lengths %s; %d rounds, %d steps of each are counted" % (
            "of Wikipedia" if measure.wikipedia() else "lognormal",
            options.rounds, options.steps - options.steps // 2), ""]


def compared(speeds, skipped, flops, product):
    """Lines for contenders, with the operations of a token by two formulas; the
    card's peak is `product` or None."""
    first = next(iter(speeds.values()), None)
    rows = [["", "tokens/s", "quartiles", "times", "95 %", "MFU", "PaLM's"]]
    for who, each_token in flops.items():
        if who in skipped:
            rows.append(["%s: skipped: %s" % (who, skipped[who])])
            continue
        low, middle, high = measure.quartiles(speeds[who])
        times, *ends = measure.ratio(speeds[who], first)
        rows.append([who, "%.0f" % middle, "%.0f-%.0f" % (low, high),
                     "%.2f" % times, "%.2f-%.2f" % tuple(ends),
                     *("%.1f %%" % (100 * middle * each / product)
                       if product else "?" for each in each_token)])
    return measure.table(rows)


def table(streams, options):
    model = MODELS[options.model]
    product = peak()[1] if options.device == "cuda" else None
    speeds, skipped = measured(CONTENDERS, streams, options)
    flops = {who: (model_flops(model, rows_of(streams[kind], options.packs)),
                   palm_flops(model))
             for who, (kind, _) in CONTENDERS.items()}
    return (head(options) + compared(speeds, skipped, flops, product) + NOTES,
            skipped)


def parts(speeds, packs, options):
    """Rows for optimisations that ablations-t measures, in a step on packs."""
    program = os.path.join(options.build, "tests/trainer/cuda/ablations-t"
                           + (".gpu" if options.device == "cuda" else ""))
    why = ("no time of a step" if not speeds
           else program + " is not built" if not os.access(program, os.X_OK)
           else "only BERT-large's are measured" if options.model == "base"
           else None)
    if why:
        return [["parts of a step: skipped: " + why]]
    lengths = [str(n) for pack in packs for n in pack["seq_lengths"]]
    with tempfile.NamedTemporaryFile("w", suffix=".lengths") as file:
        file.write("\n".join(lengths))
        file.flush()
        told = measure.output_of([program, file.name]).splitlines()
    step = 1000 * sum(map(int, lengths)) / measure.quartiles(speeds)[1]
    rows = []
    for line in map(json.loads, (line for line in told if line[:1] == "{")):
        what, paper = PARTS[line["ablation"]]
        times = line["with_ms"], line["without_ms"]
        rows.append([what, *("%.2f ms" % ms for ms in times), "%.1f %%" % (
            100 * (times[1] - times[0]) / step), "", paper])
    return rows


def ablations(streams, options):
    runs = {" ".join((kind, *how)): (kind, how)
            for _, *pair, _ in ABLATIONS for kind, how in pair}
    speeds, skipped = measured(runs, streams, options)
    rows = [["", "with", "without", "gain", "95 %", "the paper's"]]
    for what, *pair, paper in ABLATIONS:
        names = [" ".join((kind, *how)) for kind, how in pair]
        missing = [name for name in names if name in skipped]
        if missing:
            rows.append(["%s: skipped: %s" % (what, skipped[missing[0]])])
            continue
        found = [speeds[name] for name in names]
        gain, *ends = (100 * (each - 1) for each in measure.ratio(*found))
        rows.append([what, *("%.0f" % measure.quartiles(each)[1]
                             for each in found), "%.1f %%" % gain,
                     "%.1f-%.1f" % tuple(ends), paper])
    rows += parts(speeds.get("packed"), rows_of(streams["packed"],
                                                options.packs), options)
    rows.append(["exchange overlapped: skipped: needs several GPUs; 2.8 % in "
                 "the paper"])
    return head(options) + measure.table(rows), skipped


def kernels_of(streams, options, folder):
    lines, skipped = head(options), {}
    for how in ([], CUDNN):
        who = " ".join(("packed", *how))
        found = kernels.record(folder, functools.partial(
            speed, who, streams["packed"], how, options, skipped))
        if who in skipped:
            lines.append("%s: skipped: %s" % (who, skipped[who]))
        else:
            lines += [who, *measure.table(kernels.summary(found,
                                                          options.steps)), ""]
    return lines, skipped


def parser_of(usage, models, **defaults):
    parser = argparse.ArgumentParser(usage=usage, add_help=False)
    parser.add_argument("--model", choices=models)
    parser.add_argument("--packs", type=int)
    parser.add_argument("--steps", type=int)
    parser.add_argument("--rounds", type=int)
    parser.add_argument("--device", choices=("cuda", "cpu"), default="cuda")
    parser.add_argument("build")
    parser.set_defaults(**defaults)
    return parser


def parse(parser):
    options = parser.parse_args()
    if options.packs < 1 or options.steps < 2 or options.steps % 2:
        parser.error("at least one pack, and steps that can be halved")
    if options.rounds < 2:
        parser.error("at least two rounds")
    return options


def main():
    parser = parser_of(__doc__, MODELS, model="large", packs=56, steps=20,
                       rounds=7, train=train)
    other = parser.add_mutually_exclusive_group()
    other.add_argument("--ablate", action="store_true")
    other.add_argument("--kernels", action="store_true")
    options = parse(parser)
    measure.find_programs(options.build)
    os.environ["OMP_WAIT_POLICY"] = "passive"
    with measure.room(20 * bert.TOKENS) as folder:
        records, _ = bert.write_records(folder)
        streams = {"single": bert.pack(folder, records, "single", ["-w1"])[0],
                   "packed": bert.pack(folder, records, "packed",
                                       ["-d3", "-w4096",
                                        "--order=input"])[0]}
        needed = ["packed"]
        if options.ablate:
            name, (lines, skipped) = "ablations", ablations(streams, options)
        elif options.kernels:
            name, (lines, skipped) = "kernels", kernels_of(streams, options,
                                                           folder)
        else:
            name, (lines, skipped) = "device", table(streams, options)
            needed = [who for who, (_, how) in CONTENDERS.items()
                      if not isinstance(how, str) and "--attention=cudnn"
                      not in how]
        measure.show(lines)
    for who in needed:
        if who in skipped:
            raise Failed("%s: %s" % (who, skipped[who]))


if __name__ == "__main__":
    measure.run_main(main)
