"""llama_torch.py - the Llama of PyTorch that llama.py measures: products and
activations in bfloat16, by autocast, the next token as target, and AdamW.

WAYS has the kinds of attention, which are causal and separate the sequences of
a row.  Compiled ways compile one layer, which all layers share, and all batches
have the same shapes, so nothing is compiled twice.

SPDX-License-Identifier: MIT
"""

import collections
import functools

import torch
from bert_torch import heads_first, spans_of, timed
from torch import nn
from torch.nn import functional


# -------------------------------------------------------------- attention
# q is (tokens, heads, width), k and v have fewer heads.  The last argument
# comes from the sequence number of each token, (packs, length), where 0 is
# padding.

def repeated(part, heads):
    return part.repeat_interleave(heads // part.shape[1], 1)


def dense(q, k, v, mask):
    q, k, v = heads_first((q, repeated(k, q.shape[1]),
                           repeated(v, q.shape[1])), mask.shape[0])
    a = functional.scaled_dot_product_attention(q, k, v, mask)
    return a.transpose(1, 2).flatten(0, 1)


def dense_mask(segment):
    same = segment[:, :, None] == segment[:, None, :]
    return same.tril()[:, None]


def flash(q, k, v, spans):
    ends, longest = spans
    return torch.ops.aten._flash_attention_forward(
        q, repeated(k, q.shape[1]), repeated(v, q.shape[1]), ends, ends,
        longest, longest, 0.0, True, False)[0]


def flex(q, k, v, blocks):
    from torch.nn.attention.flex_attention import flex_attention
    q, k, v = heads_first((q, k, v), blocks.shape[0])
    a = flex_attention(q.contiguous(), k.contiguous(), v.contiguous(),
                       block_mask=blocks, enable_gqa=True)
    return a.transpose(1, 2).flatten(0, 1)


def flex_mask(segment):
    from torch.nn.attention.flex_attention import create_block_mask

    def before(pack, head, query, key):
        del head
        return (segment[pack, query] == segment[pack, key]) & (query >= key)

    return create_block_mask(before, segment.shape[0], None, segment.shape[1],
                             segment.shape[1], segment.device)


Way = collections.namedtuple("Way", "attend prepare compiled")
WAYS = {"SDPA": Way(dense, dense_mask, False),
        "compiled SDPA": Way(dense, dense_mask, True),
        "compiled flash": Way(flash, spans_of, True),
        "compiled FlexAttention": Way(flex, flex_mask, True)}


# ------------------------------------------------------------------ model

def turned(x, angles):
    """Rotary positions, with pairs half a head apart."""
    a, b = x.chunk(2, -1)
    cos, sin = angles
    return torch.cat((a * cos - b * sin, b * cos + a * sin), -1)


class Layer(nn.Module):
    def __init__(self, m):
        super().__init__()
        self.heads, self.kv_heads = m.heads, m.kv_heads
        self.width = m.hidden // m.heads
        rows = (m.heads + 2 * m.kv_heads) * self.width
        self.norms = nn.ModuleList(nn.RMSNorm(m.hidden, 1e-5)
                                   for _ in range(2))
        self.qkv = nn.Linear(m.hidden, rows, bias=False)
        self.out = nn.Linear(m.hidden, m.hidden, bias=False)
        self.gate = nn.Linear(m.hidden, 2 * m.intermediate, bias=False)
        self.down = nn.Linear(m.intermediate, m.hidden, bias=False)

    def forward(self, x, attend, angles, where):
        q, k, v = self.qkv(self.norms[0](x)).unflatten(
            1, (-1, self.width)).split(
                (self.heads, self.kv_heads, self.kv_heads), 1)
        a = attend(turned(q, angles), turned(k, angles), v, where)
        x = x + self.out(a.flatten(1))
        gate, up = self.gate(self.norms[1](x)).chunk(2, -1)
        return x + self.down(functional.silu(gate) * up)


class Llama(nn.Module):
    def __init__(self, m):
        super().__init__()
        width = m.hidden // m.heads
        self.word = nn.Embedding(m.vocab, m.hidden)
        self.layers = nn.ModuleList(Layer(m) for _ in range(m.layers))
        self.norm = nn.RMSNorm(m.hidden, 1e-5)
        self.register_buffer("frequency", 1e4 ** (
            -torch.arange(0, width, 2) / width), persistent=False)

    def embed(self, tokens, positions):
        turns = positions[:, None, None] * self.frequency
        return (self.word(tokens).to(torch.bfloat16),
                (turns.cos().to(torch.bfloat16),
                 turns.sin().to(torch.bfloat16)))

    def loss(self, x, labels):
        return functional.cross_entropy(
            functional.linear(self.norm(x), self.word.weight), labels)


PARTS = (Llama.embed, Layer.forward, Llama.loss)
COMPILED = tuple(map(torch.compile, PARTS))


def loss_of(llama, batch, way):
    embed, forward, loss = COMPILED if way.compiled else PARTS
    x, angles = embed(llama, batch["tokens"], batch["positions"])
    for layer in llama.layers:
        x = forward(layer, x, way.attend, angles, batch["where"])
    return loss(llama, x, batch["labels"])


# ------------------------------------------------------------------ steps

def batch_of(rows, length, prepare, device):
    """Of rows with the tokens and lengths of their sequences."""
    tokens = torch.zeros(len(rows), length, dtype=torch.int64)
    segment, positions = torch.zeros_like(tokens), torch.zeros_like(tokens)
    labels = torch.full_like(tokens, -100)
    for i, row in enumerate(rows):
        tokens[i, :len(row["input_ids"])] = torch.tensor(row["input_ids"])
        at = 0
        for number, n in enumerate(row["seq_lengths"], 1):
            segment[i, at:at + n] = number
            positions[i, at:at + n] = torch.arange(n)
            labels[i, at:at + n - 1] = tokens[i, at + 1:at + n]
            at += n
    return {"tokens": tokens.flatten().to(device),
            "positions": positions.flatten().to(device),
            "labels": labels.flatten().to(device),
            "where": prepare(segment.to(device))}


def batches_of(steps, length, way, device):
    most = max(sum(len(row["seq_lengths"]) + 1 for row in step)
               for step in steps)
    prepare = way.prepare
    if prepare is spans_of:
        prepare = functools.partial(spans_of, count=most)
    return [batch_of(step, length, prepare, device) for step in steps]


@functools.cache
def model_of(model, device):
    """The same for all ways, and its optimiser."""
    torch.manual_seed(1)
    llama = Llama(model).to(device)
    nn.init.normal_(llama.word.weight, std=0.02)
    return llama, torch.optim.AdamW(llama.parameters(), 3e-4,
                                    fused=device == "cuda")


def tokens_per_second(model, rows, length, packs, warmup, device, way):
    way = WAYS[way]
    return timed(*model_of(model, device),
                 functools.partial(loss_of, way=way),
                 functools.partial(batches_of, length=length, way=way,
                                   device=device),
                 rows, packs, warmup, device)
