"""bert_torch.py - a BERT of PyTorch with scaled_dot_product_attention, as
device.py measures it: bfloat16 by autocast, a mask for padding or packs,
masked tokens and next sentences, and AdamW.

SPDX-License-Identifier: MIT
"""

import time

import torch
from torch import nn
from torch.nn import functional

MASKED = 0.15
DROPOUT = 0.1


class Layer(nn.Module):
    def __init__(self, m):
        super().__init__()
        self.heads = m.heads
        self.qkv = nn.Linear(m.hidden, 3 * m.hidden)
        self.out = nn.Linear(m.hidden, m.hidden)
        self.up = nn.Linear(m.hidden, m.intermediate)
        self.down = nn.Linear(m.intermediate, m.hidden)
        self.norms = nn.ModuleList(nn.LayerNorm(m.hidden, 1e-12)
                                   for _ in range(2))

    def forward(self, x, mask):
        packs, rows, hidden = x.shape
        q, k, v = (part.view(packs, rows, self.heads, -1).transpose(1, 2)
                   for part in self.qkv(x).chunk(3, -1))
        a = functional.scaled_dot_product_attention(q, k, v, mask, DROPOUT)
        a = self.out(a.transpose(1, 2).reshape(packs, rows, hidden))
        x = self.norms[0](x + functional.dropout(a, DROPOUT))
        b = self.down(functional.gelu(self.up(x), approximate="tanh"))
        return self.norms[1](x + functional.dropout(b, DROPOUT))


class Bert(nn.Module):
    def __init__(self, m, length):
        super().__init__()
        self.word = nn.Embedding(m.vocab, m.hidden)
        self.position = nn.Embedding(length, m.hidden)
        self.norm = nn.LayerNorm(m.hidden, 1e-12)
        self.layers = nn.ModuleList(Layer(m) for _ in range(m.layers))
        self.dense = nn.Linear(m.hidden, m.hidden)
        self.head = nn.LayerNorm(m.hidden, 1e-12)
        self.bias = nn.Parameter(torch.zeros(m.vocab))
        self.pooler = nn.Linear(m.hidden, m.hidden)
        self.next = nn.Linear(m.hidden, 2)

    def forward(self, batch):
        x = self.norm(self.word(batch["tokens"])
                      + self.position(batch["positions"]))
        x = functional.dropout(x, DROPOUT)
        for layer in self.layers:
            x = layer(x, batch["mask"])
        x = x.flatten(0, 1)
        picked = self.head(functional.gelu(self.dense(x[batch["picked"]]),
                                           approximate="tanh"))
        logits = functional.linear(picked, self.word.weight, self.bias)
        pooled = self.next(torch.tanh(self.pooler(x[batch["first"]])))
        return (functional.cross_entropy(logits, batch["labels"])
                + functional.cross_entropy(pooled, batch["follows"]))


def batch_of(rows, length, device):
    """Of rows with the tokens and lengths of their sequences."""
    tokens = torch.zeros(len(rows), length, dtype=torch.int64)
    segment, positions = torch.zeros_like(tokens), torch.zeros_like(tokens)
    for i, row in enumerate(rows):
        tokens[i, :len(row["input_ids"])] = torch.tensor(row["input_ids"])
        at = 0
        for number, n in enumerate(row["seq_lengths"], 1):
            segment[i, at:at + n] = number
            positions[i, at:at + n] = torch.arange(n)
            at += n
    if max(len(row["seq_lengths"]) for row in rows) == 1:
        mask = (segment > 0)[:, None, None, :]
    else:
        mask = (segment[:, :, None] == segment[:, None, :])[:, None]
    real = (segment > 0).flatten()
    picked = (real & (torch.rand(real.shape) < MASKED)).nonzero()[:, 0]
    first = (real & (positions.flatten() == 0)).nonzero()[:, 0]
    batch = {"tokens": tokens, "positions": positions, "mask": mask,
             "picked": picked, "first": first,
             "labels": tokens.flatten()[picked],
             "follows": torch.randint(0, 2, first.shape)}
    return {name: tensor.to(device) for name, tensor in batch.items()}


def tokens_per_second(model, rows, length, packs, warmup, device):
    """Of the steps after `warmup`; batches are on the device beforehand."""
    torch.manual_seed(1)
    bert = Bert(model, length).to(device)
    optimiser = torch.optim.AdamW(bert.parameters(), 1e-4,
                                  fused=device == "cuda")
    steps = [rows[i:i + packs] for i in range(0, len(rows), packs)]
    batches = [batch_of(step, length, device) for step in steps]

    def wait():
        if device == "cuda":
            torch.cuda.synchronize()

    for number, batch in enumerate(batches):
        if number == warmup:
            wait()
            start = time.perf_counter()
        with torch.autocast(device, torch.bfloat16):
            loss = bert(batch)
        optimiser.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(bert.parameters(), 1.0)
        optimiser.step()
    wait()
    seconds = time.perf_counter() - start
    if device == "cuda":  # others want its memory
        del bert, optimiser, batches, batch, loss
        torch.cuda.empty_cache()
    return sum(sum(row["seq_lengths"])
               for step in steps[warmup:] for row in step) / seconds
