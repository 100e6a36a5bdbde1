"""device.py - how fast a BERT learns from packs on a GPU, beside PyTorch's.

    device.py [--model=large|base|toy] [--packs=N] [--steps=N] [--rounds=N]
        [--device=cuda|cpu] [--page=FILE] BUILD_DIR

Trains BERT on random tokens with the lengths of Wikipedia (see bert.py), N (56)
rows of 512 tokens a step, each sequence in a row of its own and packed: by
bert-train, also with cuDNN's attention if that is built in, and by a BERT of
PyTorch on the same rows (bert_torch.py), if this python has torch.  "Padded"
and "packed" compute all of each row, "unpadded" leaves out the padding of rows
of one sequence.  All products are in bfloat16.  What is counted is tokens per
second, without padding, of the steps behind the first half.  "Times" is the
ratio of medians to the first contender's, and "95 %" where ratios lie that come
of rounds drawn again.  MFU, model FLOPs utilization, is the operations that
these tokens need, in products of the model and between tokens of one sequence,
over those that the card could do.  Contenders take turns for ROUNDS (7) rounds,
of which the median counts.  PyTorch's optimiser is AdamW, which has less to do
than LAMB.

tests/device.sh runs it where there is a GPU.  --device=cpu with --model=toy
shows that it works where there is none.

SPDX-License-Identifier: MIT
"""

import argparse
import functools
import importlib.util
import json
import os
import subprocess

import bert
import measure
import roofline
from measure import Failed

MODELS = {**roofline.MODELS, "toy": roofline.Model(2, 64, 2, 128, 2600)}


def model_flops(m, rows):
    """Of a token in these rows: 3 products forward and backward."""
    tokens = sum(sum(row["seq_lengths"]) for row in rows)
    pairs = sum(n * n for row in rows for n in row["seq_lengths"])
    layer = 4 * m.hidden**2 + 2 * m.hidden * m.intermediate
    head = roofline.MASKED * (m.hidden**2 + m.hidden * m.vocab)
    return 6 * (m.layers * layer + head) + (
        12 * m.layers * m.hidden * pairs / tokens)


def rows_of(stream, count):
    lines = measure.output_of(["packcat", "-q", "--to=trl",
                               "--range=0:%d" % count, stream]).splitlines()
    if len(lines) != count:
        raise Failed("%d packs are too few" % len(lines))
    return [json.loads(line) for line in lines]


# Streams, and options of bert-train; None: PyTorch.
CONTENDERS = {
    "bert-train, padded": ("single", ["--rows=padded"]),
    "bert-train, packed": ("packed", ["--rows=padded"]),
    "bert-train, unpadded": ("single", ["--rows=unpadded"]),
    "bert-train, cuDNN, packed": ("packed", ["--rows=padded",
                                             "--attention=cudnn"]),
    "PyTorch, SDPA, padded": ("single", None),
    "PyTorch, SDPA, packed": ("packed", None)}


def has_cudnn():
    done = subprocess.run(["bert-train", "--device=cuda", "--attention=cudnn",
                           os.devnull], stderr=subprocess.PIPE, text=True,
                          check=False)
    if done.returncode > 125:
        raise Failed("bert-train: " + done.stderr)
    return "no cuDNN" not in done.stderr


def by_bert_train(stream, how, options):
    """By two reports, of which the second counts."""
    m = MODELS[options.model]
    lines = measure.output_of([
        "bert-train", "--device=" + options.device, "--stats=json",
        "--report=%d" % (options.steps // 2), "--steps=%d" % options.steps,
        "--packs=%d" % options.packs, "--hidden=%d" % m.hidden,
        "--layers=%d" % m.layers, "--heads=%d" % m.heads,
        "--intermediate=%d" % m.intermediate, "--vocab=%d" % m.vocab,
        *how, stream]).splitlines()
    told = json.loads(lines[1])
    return told["tokens"] / told["seconds"]


def by_torch(stream, options):
    import bert_torch
    rows = rows_of(stream, options.packs * options.steps)
    return bert_torch.tokens_per_second(
        MODELS[options.model], rows, bert.LENGTH, options.packs,
        options.steps // 2, options.device)


def peak():
    """The card's name, and what it could do; None where that is not known."""
    try:
        name = subprocess.run(
            ["nvidia-smi", "--query-gpu=name", "--format=csv,noheader"],
            stdout=subprocess.PIPE, text=True,
            check=True).stdout.partition("\n")[0]
    except (OSError, subprocess.CalledProcessError):
        return "no GPU", None
    cards = {card.split()[0]: numbers.product
             for card, numbers in roofline.CARDS.items()}
    cards["H200"] = cards["H100"]
    return name, next((product for card, product in cards.items()
                       if card in name), None)


def speed(stream, how, options):
    return (by_torch(stream, options) if how is None
            else by_bert_train(stream, how, options))


def is_here(how, options):
    if how is None:
        return importlib.util.find_spec("torch") is not None
    return "--attention=cudnn" not in how or (
        options.device == "cuda" and has_cudnn())


def contenders(streams, options):
    return {who: functools.partial(speed, streams[kind], how, options)
            for who, (kind, how) in CONTENDERS.items()
            if is_here(how, options)}


def table(streams, options):
    name, product = peak()
    speeds = measure.take_turns(contenders(streams, options), options.rounds)
    first = next(iter(speeds.values()))
    rows = [["", "tokens/s", "quartiles", "times", "95 %", "MFU"]]
    for who, found in speeds.items():
        low, middle, high = measure.quartiles(found)
        flops = model_flops(MODELS[options.model], rows_of(
            streams[CONTENDERS[who][0]], options.packs))
        times, *ends = measure.ratio(found, first)
        rows.append([who, "%.0f" % middle, "%.0f-%.0f" % (low, high),
                     "%.2f" % times, "%.2f-%.2f" % tuple(ends),
                     "%.1f %%" % (100 * middle * flops / product)
                     if product and options.device == "cuda" else "?"])
    return ["BERT-%s, %d rows of %d a step; %s" % (
        options.model, options.packs, bert.LENGTH, name),
        "lengths %s; %d rounds, %d steps of each are counted" % (
            "of Wikipedia" if measure.wikipedia() else "lognormal",
            options.rounds, options.steps - options.steps // 2), ""
            ] + measure.table(rows)


def parse():
    parser = argparse.ArgumentParser(usage=__doc__, add_help=False)
    parser.add_argument("--model", choices=MODELS, default="large")
    parser.add_argument("--packs", type=int, default=56)
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--device", choices=("cuda", "cpu"), default="cuda")
    parser.add_argument("--page")
    parser.add_argument("build")
    options = parser.parse_args()
    if options.packs < 1 or options.steps < 2 or options.steps % 2:
        parser.error("at least one pack, and steps that can be halved")
    if options.rounds < 2:
        parser.error("at least two rounds")
    return options


def main():
    options = parse()
    measure.find_programs(options.build)
    with measure.room(20 * bert.TOKENS) as folder:
        records, _ = bert.write_records(folder)
        streams = {"single": bert.pack(folder, records, "single", ["-w1"])[0],
                   "packed": bert.pack(folder, records, "packed",
                                       ["-d3", "-w4096",
                                        "--order=input"])[0]}
        measure.tell("device", table(streams, options), options.page)


if __name__ == "__main__":
    measure.run_main(main)
