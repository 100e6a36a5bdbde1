"""device.py - how fast a BERT learns from packs on a GPU, beside PyTorch's.

    device.py [--model=large|base|toy] [--packs=N] [--steps=N]
        [--device=cuda|cpu] [--page=FILE] BUILD_DIR

Trains BERT on random tokens with the lengths of Wikipedia (see bert.py), N (56)
rows of 512 tokens a step, each sequence in a row of its own and packed: by
bert-train, and by a BERT of PyTorch on the same rows (bert_torch.py), if this
python has torch.  "Padded" and "packed" compute all of each row, "unpadded"
leaves out the padding of rows of one sequence.  What is counted is tokens per
second, without padding, of the steps behind the first half; model FLOP use is
the operations that these tokens need, in products of the model and between
tokens of one sequence, over those that the card could do.  PyTorch's optimiser
is AdamW, which has less to do than LAMB.

tests/device.sh runs it where there is a GPU.  --device=cpu with --model=toy
shows that it works where there is none.

SPDX-License-Identifier: MIT
"""

import argparse
import importlib.util
import json
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


# Streams, and which rows of them bert-train computes; None: PyTorch.
CONTENDERS = {"bert-train, padded": ("single", "padded"),
              "bert-train, packed": ("packed", "padded"),
              "bert-train, unpadded": ("single", "unpadded"),
              "PyTorch, SDPA, padded": ("single", None),
              "PyTorch, SDPA, packed": ("packed", None)}


def by_bert_train(stream, rows, options):
    """By two reports, of which the second counts."""
    m = MODELS[options.model]
    lines = measure.output_of([
        "bert-train", "--device=" + options.device, "--stats=json",
        "--report=%d" % (options.steps // 2), "--steps=%d" % options.steps,
        "--packs=%d" % options.packs, "--hidden=%d" % m.hidden,
        "--layers=%d" % m.layers, "--heads=%d" % m.heads,
        "--intermediate=%d" % m.intermediate, "--vocab=%d" % m.vocab,
        "--rows=" + rows, stream]).splitlines()
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


def table(streams, options):
    name, product = peak()
    has_torch = importlib.util.find_spec("torch")
    rows = [["", "tokens/s", "times", "model FLOP use"]]
    first = None
    for who, (kind, ways) in CONTENDERS.items():
        stream = streams[kind]
        if ways:
            speed = by_bert_train(stream, ways, options)
        elif has_torch:
            speed = by_torch(stream, options)
        else:
            continue
        first = first or speed
        flops = model_flops(MODELS[options.model],
                            rows_of(stream, options.packs))
        rows.append([who, "%.0f" % speed, "%.2f" % (speed / first),
                     "%.1f %%" % (100 * speed * flops / product)
                     if product and options.device == "cuda" else "?"])
    return ["BERT-%s, %d rows of %d a step; %s" % (
        options.model, options.packs, bert.LENGTH, name), ""
            ] + measure.table(rows)


def parse():
    parser = argparse.ArgumentParser(usage=__doc__, add_help=False)
    parser.add_argument("--model", choices=MODELS, default="large")
    parser.add_argument("--packs", type=int, default=56)
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--device", choices=("cuda", "cpu"), default="cuda")
    parser.add_argument("--page")
    parser.add_argument("build")
    options = parser.parse_args()
    if options.packs < 1 or options.steps < 2 or options.steps % 2:
        parser.error("at least one pack, and steps that can be halved")
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
