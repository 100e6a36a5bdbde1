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

import collections
import importlib.util
import json
import os
import subprocess

import bert
import device
import measure
from measure import Failed

Model = collections.namedtuple(
    "Model", "layers hidden heads kv_heads intermediate vocab")
MODELS = {"125m": Model(12, 768, 12, 12, 2048, 32000),
          "1b": Model(16, 2048, 32, 8, 8192, 128256),
          "toy": Model(2, 64, 4, 2, 96, 2600)}
LENGTH = 2048
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
    flops = (model_flops(m, device.rows_of(stream, options.packs)),
             palm_flops(m))
    lines = device.compared(speeds, skipped, dict.fromkeys(CONTENDERS, flops),
                            most if options.device == "cuda" else None)
    return ["Llama %s, %d packs of %d a step; %s" % (
        options.model, options.packs, LENGTH, card),
        "%d rounds, %d steps of each are counted" % (
            options.rounds, options.steps - options.steps // 2),
        ""] + lines, skipped


def main():
    options = device.parse(device.parser_of(
        __doc__, MODELS, model="125m", packs=16, steps=12, rounds=5,
        train=train))
    measure.find_programs(options.build)
    os.environ["OMP_WAIT_POLICY"] = "passive"
    tokens = 2 * options.packs * options.steps * LENGTH
    vocab = MODELS[options.model].vocab
    with measure.room(20 * tokens) as folder:
        options.folder = folder
        records = os.path.join(folder, "records")
        stream = os.path.join(folder, "packs")
        measure.write_records(records, bert.drawn(
            ["gen", "--bytes=%d" % (2 * tokens), "--mean=600",
             "--longest=%d" % LENGTH], vocab), vocab)
        measure.pack(stream, records, LENGTH)
        write_config(folder, MODELS[options.model])
        lines, skipped = table(stream, options)
        measure.show(lines)
    if "packtrain" in skipped:
        raise Failed("packtrain: %s" % skipped["packtrain"])


if __name__ == "__main__":
    measure.run_main(main)
