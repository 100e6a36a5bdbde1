#!/usr/bin/env python3
"""models.py - compares the trainer's models with those of transformers.

usage: models.py BUILD_DIR state|learn|loads [FAMILY ...]

    state   logits and gradients, for packs and for single sequences, equal
            those of each sequence alone in transformers
    learn   20 steps of AdamW give the same weights as torch.optim.AdamW
    loads   an exported folder loads in transformers, with equal logits

Models have random weights.  Files are written to the current folder.

SPDX-License-Identifier: MIT
"""

import json
import subprocess
import sys

import numpy as np
import torch
import transformers as tf
from safetensors.torch import load_file

VOCAB = 211
NEAR = 1e-5  # of the largest value of a tensor


def llama(cls="Llama", **more):
    sizes = {"vocab_size": VOCAB, "hidden_size": 64, "intermediate_size": 112,
             "num_hidden_layers": 2, "num_attention_heads": 8,
             "num_key_value_heads": 2, "max_position_embeddings": 256}
    return (getattr(tf, cls + "ForCausalLM"),
            getattr(tf, cls + "Config")(**{**sizes, **more}))


def bert(cls, act):
    return cls, tf.BertConfig(
        vocab_size=VOCAB, hidden_size=64, intermediate_size=96,
        num_hidden_layers=2, num_attention_heads=4, hidden_act=act,
        max_position_embeddings=128, hidden_dropout_prob=0.0,
        attention_probs_dropout_prob=0.0)


def modernbert(**more):
    return tf.ModernBertForMaskedLM, tf.ModernBertConfig(**{
        "vocab_size": VOCAB, "hidden_size": 64, "intermediate_size": 96,
        "num_hidden_layers": 4, "num_attention_heads": 4,
        "local_attention": 16, "max_position_embeddings": 256,
        "pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2,
        "cls_token_id": 1, "sep_token_id": 2, **more})


LLAMA3 = {"rope_type": "llama3", "rope_theta": 10000.0, "factor": 4.0,
          "low_freq_factor": 1.0, "high_freq_factor": 4.0,
          "original_max_position_embeddings": 64}

FAMILIES = {
    "llama": lambda: llama(rope_parameters=LLAMA3),
    "linear": lambda: llama(rope_parameters={
        "rope_type": "linear", "rope_theta": 500.0, "factor": 2.5}),
    "tied": lambda: llama(tie_word_embeddings=True, num_key_value_heads=8),
    "qwen2": lambda: llama("Qwen2", use_sliding_window=True, sliding_window=9,
                           max_window_layers=1, num_hidden_layers=3),
    "qwen3": lambda: llama("Qwen3", head_dim=20, rms_norm_eps=1e-2,
                           tie_word_embeddings=True),
    "mistral": lambda: llama("Mistral", head_dim=32, num_key_value_heads=1,
                             sliding_window=7),
    "bert": lambda: bert(tf.BertForPreTraining, "gelu"),
    "tanh": lambda: bert(tf.BertForMaskedLM, "gelu_new"),
    "modernbert": modernbert,
    "swish": lambda: modernbert(hidden_activation="silu",
                                classifier_activation="silu"),
    "global": lambda: modernbert(layer_types=[
        "sliding_attention", "full_attention", "full_attention",
        "sliding_attention"], tie_word_embeddings=False),
}


def create(name):
    """Writes a model with random weights to the folder `name`."""
    torch.manual_seed(sum(name.encode()))
    cls, config = FAMILIES[name]()
    model = cls(config)
    with torch.no_grad():
        for key, p in model.named_parameters():
            gain = p.dim() == 1 and key.endswith("weight")
            p.normal_(1 if gain else 0, 0.1)
    model.eval().save_pretrained(name, max_shard_size="60KB")
    return model


def run(*words, **more):
    return subprocess.run([str(w) for w in words], check=True,
                          stdout=subprocess.PIPE, **more).stdout


def pack(build, name, depth, capacity=128, records=24):
    """Packs random sequences, the same for each depth."""
    draw = np.random.default_rng(5)
    lines = [" ".join(map(str, draw.integers(5, VOCAB, n)))
             for n in draw.integers(2, 70, records)]
    tokens = run(f"{build}/tokcat", "--from=ids", f"--vocab={VOCAB}",
                 "--pad-id=0", "--mask-id=4",
                 input="\n".join(lines).encode())
    run(f"{build}/packstream", "-q", "-L", capacity, "-o", name,
        *(["-d", 1] if depth == 1 else []), input=tokens)


class State:
    """The output of model_state."""

    def __init__(self, build, folder, packs, rows):
        text = run(f"{build}/tests/gen/model_state", folder, packs, rows,
                   "state.safetensors").decode()
        for line in text.splitlines():
            name, *numbers = line.split(" ")
            setattr(self, name, np.array(numbers, np.int64))
        self.tensors = load_file("state.safetensors")

    def sequences(self):
        """Tokens of each sequence, and its targets: position, label, index."""
        for begin, end in zip(self.cu[:-1], self.cu[1:]):
            if begin == end or self.segment[begin] == 0:
                continue
            inside = ((self.target_row >= begin) & (self.target_row < end))
            where = np.flatnonzero(inside)
            yield (self.token[begin:end], self.target_row[where] - begin,
                   self.target_label[where], where)


def compare(what, got, want, near=NEAR):
    """Returns the difference, as a share of the largest value."""
    largest = want.abs().max().item()
    share = (got - want).abs().max().item() / (largest or 1)
    if share > near:
        sys.exit(f"{what}: differs by {share:.3g} of {largest:.3g}")
    return share


def logits_of(model, output):
    return getattr(output, "prediction_logits", None) \
        if isinstance(model, tf.BertForPreTraining) else output.logits


def total_loss(model, state):
    """The loss of transformers, each sequence alone, and target logits."""
    logits = torch.zeros(len(state.target_row), VOCAB)
    loss = 0
    for tokens, at, label, where in state.sequences():
        out = logits_of(model, model(torch.tensor(tokens)[None]))[0][at]
        logits[where] = out.detach()
        loss = loss + torch.nn.functional.cross_entropy(
            out, torch.tensor(label), reduction="sum") if len(at) else loss
    return loss / len(state.target_row), logits


def decoder_of(model):
    head = model.get_output_embeddings()
    return head.weight.detach(), (0 if head.bias is None
                                  else head.bias.detach())


def check_state(build, name, model, packs, rows):
    state = State(build, name, packs, rows)
    model.zero_grad()
    loss, logits = total_loss(model, state)
    loss.backward()
    weight, bias = decoder_of(model)
    worst = compare(f"{name} {packs} {rows}: logits",
                    state.tensors["decoder"] @ weight.T + bias, logits)
    for key, p in model.named_parameters():
        if p.grad is None or key not in state.tensors:
            continue
        if key.endswith("key.bias") or key.endswith("k_proj.bias"):
            continue  # rounding noise: softmax is invariant to key biases
        worst = max(worst, compare(f"{name} {packs} {rows}: {key}",
                                   state.tensors[key], p.grad))
    print(f"{name} {packs} {rows}: {worst:.1e}")


def state(build, names):
    pack(build, "packed.pks", None)
    pack(build, "alone.pks", 1)
    for name in names:
        model = create(name)
        for packs in ("packed.pks", "alone.pks"):
            for rows in ("padded", "stripped", "unpadded"):
                check_state(build, name, model, packs, rows)


# ---- Learning ----

STEPS, PER_STEP, RATE = 20, 6, 1e-4


def labelled_records(model):
    """Records for 4 steps: tokens, and labels at the tokens themselves."""
    draw = np.random.default_rng(6)
    causal = "CausalLM" in type(model).__name__
    for n in draw.integers(2, 70, 4 * PER_STEP):
        tokens = draw.integers(5, VOCAB, n)
        hidden = draw.random(n) < (0.7 if causal else 0.3)
        hidden[n // 2] = True
        labels = np.where(hidden, tokens, -100)
        yield np.where(hidden, 4, tokens) if not causal else tokens, labels


def pack_labelled(build, name, records):
    lines = [json.dumps({"input_ids": t.tolist(), "labels": y.tolist()})
             for t, y in records]
    tokens = run(f"{build}/tokcat", "--from=jsonl", f"--vocab={VOCAB}",
                 "--pad-id=0", "--mask-id=4", "--labels=aligned",
                 "--channel=labels:i32:-100",
                 input="\n".join(lines).encode())
    run(f"{build}/packstream", "-q", "-L", 128, f"--flush-every={PER_STEP}",
        "-o", name, input=tokens)


def torch_step(model, optimizer, records):
    causal = "CausalLM" in type(model).__name__
    loss, targets = 0, 0
    for tokens, labels in records:
        logits = logits_of(model, model(torch.tensor(tokens)[None]))[0]
        label = torch.tensor(labels)
        if causal:
            logits, label = logits[:-1], label[1:]
        loss = loss + torch.nn.functional.cross_entropy(
            logits, label, ignore_index=-100, reduction="sum")
        targets += (label != -100).sum().item()
    optimizer.zero_grad()
    (loss / targets).backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    return (loss / targets).item()


def torch_learn(model, records):
    decayed = [p for p in model.parameters() if p.dim() > 1]
    others = [p for p in model.parameters() if p.dim() == 1]
    optimizer = torch.optim.AdamW(
        [{"params": decayed, "weight_decay": 0.01},
         {"params": others, "weight_decay": 0.0}], lr=RATE)
    return [torch_step(model, optimizer,
                       records[i % 4 * PER_STEP:(i % 4 + 1) * PER_STEP])
            for i in range(STEPS)]


def learn(build, names):
    for name in names:
        model = create(name)
        records = list(labelled_records(model))
        pack_labelled(build, "labelled.pks", records)
        lines = run(f"{build}/packtrain", f"--init={name}", "--export=learnt",
                    f"--rate={RATE}", "--loss=token", f"--sequences={PER_STEP}",
                    "--epochs=5", "--report=1", "--stats=json",
                    "labelled.pks").decode().splitlines()
        got = [json.loads(line)["loss"] for line in lines]
        want = torch_learn(model, records)
        worst = compare(f"{name}: losses", torch.tensor(got),
                        torch.tensor(want), 1e-4)
        tensors = load_file("learnt/model.safetensors")
        for key, p in model.named_parameters():
            if key not in tensors or key.endswith(("key.bias", "k_proj.bias")):
                continue
            worst = max(worst, compare(f"{name}: {key}", tensors[key],
                                       p.detach(), 1e-4))
        print(f"{name}: {len(got)} steps, {worst:.1e}")


def loads(build, names):
    """The folder that learn() exports, as transformers reads it."""
    pack(build, "packed.pks", None)
    for name in names:
        create(name)
        run(f"{build}/packtrain", f"--init={name}", f"--export={name}-out",
            "--rate=1e-3", "packed.pks")
        model = FAMILIES[name]()[0].from_pretrained(f"{name}-out")
        check_state(build, f"{name}-out", model.eval(), "packed.pks",
                    "unpadded")


def main():
    build, what, *names = sys.argv[1:]
    torch.set_num_threads(2)
    globals()[what](build, names or list(FAMILIES))


if __name__ == "__main__":
    main()
