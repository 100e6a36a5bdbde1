"""llama.py - how fast a Llama trains on packs on a GPU, compared with PyTorch.

    llama.py [--model=125m|1b|toy] [--packs=N] [--steps=N] [--rounds=N]
        [--device=cuda|cpu] BUILD_DIR

Trains a Llama on random tokens with lognormal lengths of mean 600, in steps of
PACKS (16) packs of 2048 tokens: with packtrain, also as CUDA graphs, and with a
Llama of PyTorch on the same packs (llama_torch.py), also compiled.  All predict
the next token of each sequence, with products in bfloat16 and AdamW.  The table
has tokens per second, without padding, of the second half of the steps;
device.py explains the other columns.

MFU, model FLOPs utilization, is the operations per second of these tokens over
the card's peak.  Ours counts products, and pairs of a token and itself or an
earlier token of its sequence.  PaLM's formula, also used by nanoGPT and llm.c,
counts 6 N + 12 L H Q T for each token: N weights, L layers, H heads of Q
numbers, and all T (2048) tokens of a row as keys.

--device=cpu with --model=toy tests it without a GPU.

SPDX-License-Identifier: MIT
"""

import argparse
import array
import collections
import importlib.util
import json
import os
import subprocess

import device
import measure
from measure import Failed

Model = collections.namedtuple(
    "Model", "layers hidden heads kv_heads intermediate vocab")
MODELS = {"125m": Model(12, 768, 12, 12, 2048, 32000),
          "1b": Model(16, 2048, 32, 8, 8192, 128256),
          "toy": Model(2, 64, 4, 2, 96, 2600)}
LENGTH = 2048
LONGEST = "--longest=%d" % LENGTH
# Options of packtrain, or one of llama_torch.WAYS.
CONTENDERS = {
    "packtrain": [],
    "packtrain, graphs": ["--graphs=on"],
    "packtrain, recompute": ["--recompute"],
    "PyTorch, SDPA": "SDPA",
    "PyTorch, compiled SDPA": "compiled SDPA",
    "PyTorch, compiled flash": "compiled flash",
    "PyTorch, compiled FlexAttention": "compiled FlexAttention"}


def weights(m):
    """Of products, with the head, whose weight is the word embedding."""
    width = m.hidden // m.heads
    layer = (m.hidden * (2 * m.heads + 2 * m.kv_heads) * width
             + 3 * m.hidden * m.intermediate)
    return m.layers * layer + m.vocab * m.hidden


def model_flops(m, rows):
    """Per token in these rows: 3 products forward and backward."""
    tokens = sum(sum(row["seq_lengths"]) for row in rows)
    pairs = sum(n * (n + 1) / 2 for row in rows for n in row["seq_lengths"])
    return 6 * weights(m) + 12 * m.layers * m.hidden * pairs / tokens


def palm_flops(m):
    """Per token, by the formula of PaLM's appendix B."""
    return 6 * weights(m) + 12 * m.layers * m.hidden * LENGTH


def sequences(tokens, vocab):
    made = subprocess.run(
        ["gen", "--bytes=%d" % (2 * tokens), "--mean=600", LONGEST],
        stdout=subprocess.PIPE, check=False)
    if made.returncode != 0:
        raise Failed("gen failed")
    first, at = measure.FIRST_TOKEN, 0
    while at < len(made.stdout):
        count = int.from_bytes(made.stdout[at:at + 4], "little")
        drawn = array.array("H", made.stdout[at + 4:at + 4 + 2 * count])
        yield [first + token % (vocab - first) for token in drawn]
        at += 4 + 2 * count


def write_config(folder, m):
    with open(os.path.join(folder, "config.json"), "w") as file:
        json.dump({"model_type": "llama", "vocab_size": m.vocab,
                   "hidden_size": m.hidden, "num_hidden_layers": m.layers,
                   "num_attention_heads": m.heads,
                   "num_key_value_heads": m.kv_heads,
                   "intermediate_size": m.intermediate, "rope_theta": 1e4,
                   "rms_norm_eps": 1e-5, "tie_word_embeddings": True,
                   "max_position_embeddings": LENGTH}, file)


def by_packtrain(stream, how, options):
    """From two reports, of which the second counts."""
    done = subprocess.run([
        "packtrain", "--device=" + options.device, "--stats=json",
        "--config=" + options.folder, "--report=%d" % (options.steps // 2),
        "--steps=%d" % options.steps, "--packs=%d" % options.packs, *how,
        stream], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise Failed(done.stderr or "exit status %d" % done.returncode)
    told = json.loads(done.stdout.splitlines()[1])
    return told["tokens"] / told["seconds"]


def train(stream, how, options):
    if not isinstance(how, str):
        return by_packtrain(stream, how, options)
    if importlib.util.find_spec("torch") is None:
        raise Failed("this python has no torch")
    import llama_torch
    return llama_torch.tokens_per_second(
        MODELS[options.model],
        device.rows_of(stream, options.packs * options.steps), LENGTH,
        options.packs, options.steps // 2, options.device, how)


def table(stream, options):
    m = MODELS[options.model]
    card, most = device.peak()
    speeds, skipped = device.measured(
        {who: ("packed", how) for who, how in CONTENDERS.items()},
        {"packed": stream}, options)
    first = next(iter(speeds.values()), None)
    flops = (model_flops(m, device.rows_of(stream, options.packs)),
             palm_flops(m))
    rows = [["", "tokens/s", "quartiles", "times", "95 %", "MFU", "PaLM's"]]
    for who in CONTENDERS:
        if who in skipped:
            rows.append(["%s: skipped: %s" % (who, skipped[who])])
            continue
        low, middle, high = measure.quartiles(speeds[who])
        times, *ends = measure.ratio(speeds[who], first)
        rows.append([who, "%.0f" % middle, "%.0f-%.0f" % (low, high),
                     "%.2f" % times, "%.2f-%.2f" % tuple(ends),
                     *("%.1f %%" % (100 * middle * each / most)
                       if most and options.device == "cuda" else "?"
                       for each in flops)])
    return ["Llama %s, %d packs of %d a step; %s" % (
        options.model, options.packs, LENGTH, card),
        "%d rounds, %d steps of each are counted" % (
            options.rounds, options.steps - options.steps // 2),
        ""] + measure.table(rows), skipped


def parse():
    parser = argparse.ArgumentParser(usage=__doc__, add_help=False)
    parser.add_argument("--model", choices=MODELS, default="125m")
    parser.add_argument("--packs", type=int, default=16)
    parser.add_argument("--steps", type=int, default=12)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--device", choices=("cuda", "cpu"), default="cuda")
    parser.add_argument("build")
    options = parser.parse_args(namespace=argparse.Namespace(train=train))
    if options.packs < 1 or options.steps < 2 or options.steps % 2:
        parser.error("at least one pack, and steps that can be halved")
    if options.rounds < 2:
        parser.error("at least two rounds")
    return options


def main():
    options = parse()
    measure.find_programs(options.build)
    os.environ["OMP_WAIT_POLICY"] = "passive"
    tokens = 2 * options.packs * options.steps * LENGTH
    vocab = MODELS[options.model].vocab
    with measure.room(20 * tokens) as folder:
        options.folder = folder
        records = os.path.join(folder, "records")
        stream = os.path.join(folder, "packs")
        measure.write_records(records, sequences(tokens, vocab), vocab)
        measure.pack(stream, records, LENGTH)
        write_config(folder, MODELS[options.model])
        lines, skipped = table(stream, options)
        measure.show(lines)
    if "packtrain" in skipped:
        raise Failed("packtrain: %s" % skipped["packtrain"])


if __name__ == "__main__":
    measure.run_main(main)
