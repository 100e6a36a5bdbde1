#!/usr/bin/env python3
"""families.py - processor time and memory of a step, packtrain and PyTorch.

usage: families.py BUILD_DIR [STEPS]

Trains a Llama and a ModernBERT of 4 layers on the same packs, by packtrain and
by transformers in two forms: the packs with SDPA and a mask that separates
sequences, and sequence by sequence with SDPA.  Prints the median of the
processor time of a step (all threads), and the peak memory of the process.

SPDX-License-Identifier: MIT
"""

import json
import os
import resource
import statistics
import subprocess
import sys
import time

import numpy as np
import torch
import transformers as tf

VOCAB, CAPACITY, PACKS = 8192, 512, 4


def config(family, width):
    heads = width // 64
    if family == "llama":
        return tf.LlamaForCausalLM, tf.LlamaConfig(
            vocab_size=VOCAB, hidden_size=width, intermediate_size=4 * width,
            num_hidden_layers=4, num_attention_heads=heads,
            num_key_value_heads=heads // 2, max_position_embeddings=CAPACITY)
    return tf.ModernBertForMaskedLM, tf.ModernBertConfig(
        vocab_size=VOCAB, hidden_size=width, intermediate_size=2 * width,
        num_hidden_layers=4, num_attention_heads=heads, pad_token_id=0,
        bos_token_id=1, eos_token_id=2, cls_token_id=1, sep_token_id=2,
        max_position_embeddings=CAPACITY)


def records(count):
    draw = np.random.default_rng(9)
    lengths = np.clip(draw.lognormal(4.8, 0.8, count), 8, CAPACITY)
    return [draw.integers(5, VOCAB, int(n)) for n in lengths]


def run(*words, **more):
    return subprocess.run([str(w) for w in words], check=True,
                          stdout=subprocess.PIPE, **more).stdout


def pack(build, sequences, causal):
    """Returns the packs as lists of sequences, in the order of the file."""
    lines = [json.dumps({"input_ids": s.tolist(), "labels": label(s, causal)})
             for s in sequences]
    tokens = run(f"{build}/tokcat", "--from=jsonl", f"--vocab={VOCAB}",
                 "--pad-id=0", "--mask-id=4", "--labels=aligned",
                 "--channel=labels:i32:-100", input="\n".join(lines).encode())
    run(f"{build}/packstream", "-q", "-L", CAPACITY, "-o", "bench.pks",
        input=tokens)
    rows = run(f"{build}/packcat", "--to=trl", "bench.pks").decode()
    packs = []
    for line in rows.splitlines():
        row = json.loads(line)
        ends = np.cumsum(row["seq_lengths"])
        packs.append([np.array(part) for part in
                      np.split(np.array(row["input_ids"]), ends)[:len(ends)]])
    return packs


def label(tokens, causal):
    """All tokens, or other ones at every seventh."""
    keep = np.arange(len(tokens)) % 7 == 3
    return np.where(keep | causal, tokens if causal else VOCAB - 1 - tokens,
                    -100).tolist()


# ---- PyTorch ----

def packed_loss(model, packs, causal):
    """One pass over all packs, with a mask for each pair of rows."""
    rows = np.zeros((len(packs), CAPACITY), np.int64)
    labels = np.full((len(packs), CAPACITY), -100)
    segment = np.zeros((len(packs), CAPACITY), np.int64)
    position = np.zeros((len(packs), CAPACITY), np.int64)
    for i, pack_ in enumerate(packs):
        at = 0
        for k, tokens in enumerate(pack_):
            part = slice(at, at + len(tokens))
            rows[i, part] = tokens
            goal = np.array(label(tokens, causal))
            labels[i, part] = np.append(goal[1:], -100) if causal else goal
            segment[i, part] = k + 1
            position[i, part] = np.arange(len(tokens))
            at += len(tokens)
    s = torch.tensor(segment)
    mask = (s[:, :, None] == s[:, None, :])[:, None]
    if causal:
        mask = mask & torch.ones(CAPACITY, CAPACITY, dtype=torch.bool).tril()
    else:
        p = torch.tensor(position)
        near = ((p[:, :, None] - p[:, None, :]).abs() <= 64)[:, None]
        mask = {"full_attention": mask, "sliding_attention": mask & near}
    out = model(torch.tensor(rows), attention_mask=mask,
                position_ids=torch.tensor(position)).logits
    return torch.nn.functional.cross_entropy(
        out.view(-1, VOCAB), torch.tensor(labels).view(-1))


def single_loss(model, packs, causal):
    """One pass for each sequence; gradients add up."""
    sequences = [s for pack_ in packs for s in pack_]
    goals = [np.array(label(s, causal)) for s in sequences]
    if causal:
        goals = [np.append(goal[1:], -100) for goal in goals]
    count = sum(int((goal != -100).sum()) for goal in goals)
    for tokens, goal in zip(sequences, goals):
        out = model(torch.tensor(tokens)[None]).logits[0]
        (torch.nn.functional.cross_entropy(
            out, torch.tensor(goal), reduction="sum") / count).backward()


def torch_steps(form, model, packs, causal, steps):
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
    times = []
    for i in range(steps):
        batch = packs[i * PACKS:(i + 1) * PACKS]
        begin = time.process_time()
        optimizer.zero_grad()
        if form == "packed":
            packed_loss(model, batch, causal).backward()
        else:
            single_loss(model, batch, causal)
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        times.append(time.process_time() - begin)
    return times


def by_torch(form, family, width, packs, steps):
    """In a process of its own, for the peak memory."""
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        torch.set_num_threads(os.cpu_count())
        cls, made = config(family, width)
        model = cls._from_config(made, attn_implementation="sdpa").train()
        times = torch_steps(form, model, packs, family == "llama", steps)
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        os.write(write, json.dumps([statistics.median(times), peak]).encode())
        os._exit(0)
    os.close(write)
    with os.fdopen(read) as file:
        result = file.read()
    os.waitpid(child, 0)
    return json.loads(result)


def by_packtrain(build, family, width, steps):
    config(family, width)[1].save_pretrained("bench-model")
    lines = run("/usr/bin/time", "-f", "%M", "-o", "bench-peak",
                f"{build}/packtrain", "--config=bench-model",
                f"--packs={PACKS}", f"--steps={steps}", "--rate=1e-4",
                "--report=1", "--stats=json", "bench.pks").splitlines()
    with open("bench-peak", encoding="ascii") as file:
        peak = int(file.read()) / 1024
    return [statistics.median(json.loads(x)["processor"] for x in lines), peak]


def main():
    build, steps = sys.argv[1], int((sys.argv + ["5"])[2])
    print("| model | width | program | processor time | memory |")
    print("|---|---|---|---|---|")
    for family in ("llama", "modernbert"):
        packs = pack(build, records(steps * PACKS * 4), family == "llama")
        for width in (256, 512):
            results = {"packtrain": by_packtrain(build, family, width, steps)}
            for form in ("packed", "single"):
                results[f"PyTorch, {form}"] = by_torch(form, family, width,
                                                       packs, steps)
            for name, (seconds, peak) in results.items():
                print(f"| {family} | {width} | {name} | {seconds:.2f} s "
                      f"| {peak:.0f} MiB |", flush=True)


if __name__ == "__main__":
    main()
