"""bert_torch.py - the BERT of PyTorch that device.py measures: products and
activations in bfloat16, by autocast, masked tokens and next sentences, and
AdamW.

WAYS has the kinds of attention.  All of them concatenate the rows of a batch;
without a mask, padding is a sequence.  Compiled ways compile one layer, which
all layers share, and all batches have the same shapes, so nothing is compiled
twice.  Neither varlen_attn nor FlexAttention can drop scores.

SPDX-License-Identifier: MIT
"""

import collections
import functools
import time

import torch
from torch import nn
from torch.nn import functional

MASKED = 0.15
DROPOUT = 0.1


# -------------------------------------------------------------- attention
# q, k and v are (tokens, heads, width).  The last argument comes from the
# sequence number of each token, (packs, length), where 0 is padding.

def heads_first(parts, packs):
    return (part.view(packs, -1, *part.shape[1:]).transpose(1, 2)
            for part in parts)


def dense(q, k, v, mask):
    q, k, v = heads_first((q, k, v), mask.shape[0])
    a = functional.scaled_dot_product_attention(q, k, v, mask, DROPOUT)
    return a.transpose(1, 2).flatten(0, 1)


def dense_mask(segment):
    if segment.max() == 1:
        return (segment > 0)[:, None, None, :]
    return (segment[:, :, None] == segment[:, None, :])[:, None]


def varlen(q, k, v, spans):
    from torch.nn.attention.varlen import varlen_attn
    ends, longest = spans
    return varlen_attn(q, k, v, ends, ends, longest, longest)


def flash(q, k, v, spans):
    """By the operation that nested tensors call, which drops scores."""
    ends, longest = spans
    return torch.ops.aten._flash_attention_forward(
        q, k, v, ends, ends, longest, longest, DROPOUT, False, False)[0]


def spans_of(segment, count):
    """Where sequences end, as int32, and the longest that may be; `count`
    sequences, of which the last ones are empty."""
    packs, length = segment.shape
    begins = torch.ones_like(segment, dtype=torch.bool)
    begins[:, 1:] = segment[:, 1:] != segment[:, :-1]
    ends = torch.full((count + 1,), packs * length, dtype=torch.int32,
                      device=segment.device)
    starts = begins.flatten().nonzero()[:, 0]
    ends[:len(starts)] = starts
    return ends, length


def flex(q, k, v, blocks):
    from torch.nn.attention.flex_attention import flex_attention
    q, k, v = heads_first((q, k, v), blocks.shape[0])
    a = flex_attention(q.contiguous(), k.contiguous(), v.contiguous(),
                       block_mask=blocks)
    return a.transpose(1, 2).flatten(0, 1)


def flex_mask(segment):
    from torch.nn.attention.flex_attention import create_block_mask

    def same(pack, head, query, key):
        del head
        return segment[pack, query] == segment[pack, key]

    return create_block_mask(same, segment.shape[0], None, segment.shape[1],
                             segment.shape[1], segment.device)


Way = collections.namedtuple("Way", "attend prepare compiled")
WAYS = {"SDPA": Way(dense, dense_mask, False),
        "compiled SDPA": Way(dense, dense_mask, True),
        "compiled flash": Way(flash, spans_of, True),
        "compiled varlen_attn": Way(varlen, spans_of, True),
        "compiled FlexAttention": Way(flex, flex_mask, True)}


# ------------------------------------------------------------------ model

class Norm(nn.LayerNorm):
    """In float by autocast; results are stored as in packtrain."""

    def forward(self, x):
        return super().forward(x).to(torch.bfloat16)


class Layer(nn.Module):
    def __init__(self, m):
        super().__init__()
        self.heads = m.heads
        self.qkv = nn.Linear(m.hidden, 3 * m.hidden)
        self.out = nn.Linear(m.hidden, m.hidden)
        self.up = nn.Linear(m.hidden, m.intermediate)
        self.down = nn.Linear(m.intermediate, m.hidden)
        self.norms = nn.ModuleList(Norm(m.hidden, 1e-12) for _ in range(2))

    def forward(self, x, attend, where):
        q, k, v = (part.unflatten(1, (self.heads, -1))
                   for part in self.qkv(x).chunk(3, -1))
        a = self.out(attend(q, k, v, where).flatten(1))
        x = self.norms[0](x + functional.dropout(a, DROPOUT))
        b = self.down(functional.gelu(self.up(x), approximate="tanh"))
        return self.norms[1](x + functional.dropout(b, DROPOUT))


class Bert(nn.Module):
    def __init__(self, m, length):
        super().__init__()
        self.word = nn.Embedding(m.vocab, m.hidden)
        self.position = nn.Embedding(length, m.hidden)
        self.norm = Norm(m.hidden, 1e-12)
        self.layers = nn.ModuleList(Layer(m) for _ in range(m.layers))
        self.dense = nn.Linear(m.hidden, m.hidden)
        self.head = Norm(m.hidden, 1e-12)
        self.bias = nn.Parameter(torch.zeros(m.vocab))
        self.pooler = nn.Linear(m.hidden, m.hidden)
        self.next = nn.Linear(m.hidden, 2)

    def embed(self, tokens, positions):
        x = self.norm(self.word(tokens) + self.position(positions))
        return functional.dropout(x, DROPOUT)

    def loss(self, x, picked, labels, first, follows):
        picked = self.head(functional.gelu(self.dense(x[picked]),
                                           approximate="tanh"))
        logits = functional.linear(picked, self.word.weight, self.bias)
        pooled = self.next(torch.tanh(self.pooler(x[first])))
        return (functional.cross_entropy(logits, labels)
                + functional.cross_entropy(pooled, follows))


PARTS = (Bert.embed, Layer.forward, Bert.loss)
COMPILED = tuple(map(torch.compile, PARTS))


def loss_of(bert, batch, way):
    embed, forward, loss = COMPILED if way.compiled else PARTS
    x = embed(bert, batch["tokens"], batch["positions"])
    for layer in bert.layers:
        x = forward(layer, x, way.attend, batch["where"])
    return loss(bert, x, batch["picked"], batch["labels"], batch["first"],
                batch["follows"])


# ---------------------------------------------------------------- batches

def batch_of(rows, length):
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
    real = (segment > 0).flatten()
    picked = (real & (torch.rand(real.shape) < MASKED)).nonzero()[:, 0]
    first = (real & (positions.flatten() == 0)).nonzero()[:, 0]
    return {"tokens": tokens.flatten(), "positions": positions.flatten(),
            "segment": segment, "picked": picked, "first": first,
            "labels": tokens.flatten()[picked],
            "follows": torch.randint(0, 2, first.shape)}


def batches_of(steps, length, way, device):
    """On the device, all with the same shapes: picked tokens without a label
    are added."""
    batches = [batch_of(step, length) for step in steps]
    for name, value in (("picked", 0), ("first", 0), ("labels", -100),
                        ("follows", -100)):
        longest = max(len(batch[name]) for batch in batches)
        for batch in batches:
            batch[name] = functional.pad(
                batch[name], (0, longest - len(batch[name])), value=value)
    prepare = way.prepare
    if prepare is spans_of:  # a row may have padding, too
        prepare = functools.partial(
            spans_of, count=len(batches[0]["first"]) + len(steps[0]))
    for batch in batches:
        for name, tensor in batch.items():
            batch[name] = tensor.to(device)
        batch["where"] = prepare(batch.pop("segment"))
    return batches


# ------------------------------------------------------------------ steps

@functools.cache
def model_of(model, length, device):
    """The same for all ways, and its optimiser."""
    bert = Bert(model, length).to(device)
    return bert, torch.optim.AdamW(bert.parameters(), 1e-4,
                                   fused=device == "cuda")


def train(model, optimiser, loss_of, batches, device):
    for batch in batches:
        with torch.autocast(device, torch.bfloat16):
            loss = loss_of(model, batch)
        optimiser.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimiser.step()
    if not torch.isfinite(loss):  # waits for the device, too
        raise ArithmeticError("the loss is %f" % loss)
    if any(part.grad is None for part in model.parameters()):
        raise ArithmeticError("not all gradients are computed")


def timed(model, optimiser, loss_of, batches_of, rows, packs, warmup, device):
    """Tokens per second of the steps after `warmup`.  batches_of(steps) returns
    batches that are on the device."""
    steps = [rows[i:i + packs] for i in range(0, len(rows), packs)]
    try:
        batches = batches_of(steps)
        train(model, optimiser, loss_of, batches[:warmup], device)
        start = time.perf_counter()
        train(model, optimiser, loss_of, batches[warmup:], device)
        seconds = time.perf_counter() - start
    finally:
        optimiser.zero_grad()
        batches = None
        if device == "cuda":  # the next run needs its memory
            torch.cuda.empty_cache()
    return sum(sum(row["seq_lengths"])
               for step in steps[warmup:] for row in step) / seconds


def tokens_per_second(model, rows, length, packs, warmup, device, way):
    torch.manual_seed(1)
    way = WAYS[way]
    return timed(*model_of(model, length, device),
                 functools.partial(loss_of, way=way),
                 functools.partial(batches_of, length=length, way=way,
                                   device=device),
                 rows, packs, warmup, device)
