"""flex_attention.py - packs with FlexAttention: a block mask from segments.

    python3 flex_attention.py corpus.pks

Mask blocks without two tokens of one sequence are not computed.  The mask is
passed to flex_attention, or as attention_mask to a model of transformers,
which would otherwise make one from position_ids.  On a CPU FlexAttention has
no gradients: there the program only prints the losses.

SPDX-License-Identifier: MIT
"""

import sys

import packstream
import torch
from packstream import hf, views
from torch.nn.attention.flex_attention import create_block_mask
from transformers import LlamaConfig, LlamaForCausalLM


def block_mask(batch, device, causal=True, prefixes=False):
    """The mask of a batch, for q, k and v of [S, heads, L, size].

    With `prefixes`, the first sequence of each group of packstream --group is a
    prefix that the others see, too."""
    segments = torch.from_numpy(views.segments(batch)).to(device)
    shared = segments if not prefixes else torch.from_numpy(
        views.prefix_segments(batch)).to(device)

    def sees(row, head, query, key):
        same = ((segments[row, query] == segments[row, key]) |
                (shared[row, query] == segments[row, key]))
        return same & (query >= key) if causal else same

    rows, capacity = segments.shape
    return create_block_mask(sees, rows, None, capacity, capacity, device)


def batches(path, device, size=8):
    for batch in packstream.open(path).batches(size):
        mask = block_mask(batch, device)
        tensors = {name: value.to(device) if torch.is_tensor(value) else value
                   for name, value in hf.rows(batch).items()}
        yield dict(tensors, attention_mask=mask)


def losses(model, path, device):
    """Losses of all batches, without training."""
    model.to(device)
    with torch.no_grad():
        for batch in batches(path, device):
            yield float(model(**batch).loss)


def train(model, path, device, lr=1e-3):
    model.to(device)
    optimizer = torch.optim.AdamW(model.parameters(), lr)
    for batch in batches(path, device):
        optimizer.zero_grad()
        loss = model(**batch).loss
        loss.backward()
        optimizer.step()
        yield float(loss)


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    model = LlamaForCausalLM(LlamaConfig(
        vocab_size=50000, hidden_size=64, intermediate_size=128,
        num_hidden_layers=2, num_attention_heads=4,
        attn_implementation="flex_attention"))
    print(*(train(model, sys.argv[1], "cuda") if torch.cuda.is_available()
            else losses(model, sys.argv[1], "cpu")))
