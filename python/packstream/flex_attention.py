"""flex_attention.py - mask functions of torch's FlexAttention for a batch.

    sees = flex_attention.within(batch)         # decoder: causal
    mask = create_block_mask(sees, rows, None, capacity, capacity)

    within(batch, of="encoder_ids", causal=False)   # encoder
    across(batch, "encoder_ids")                # decoder to encoder
    context_parallel(batch, rank, size)         # a rank's tokens to all

All are functions of (row, head, query, key), for q, k and v of [S, heads,
length, size].  Rows are packs, and positions are those of the arrays [S, L] of
tokens and [S, B] of list channels.  views.attention_mask and views.cross_mask
are the same as dense masks.

SPDX-License-Identifier: MIT
"""

import torch

from packstream import views


def numbers(batch, device, of=None):
    return torch.from_numpy(views.segments(batch, of)).to(device)


def within(batch, of=None, causal=True, device=None):
    """Returns a function that is True within each sequence, or within each list
    of a list channel."""
    own = numbers(batch, device, of)

    def sees(row, head, query, key):
        same = own[row, query] == own[row, key]
        return same & (query >= key) if causal else same
    return sees


def across(batch, of, device=None):
    """Returns a function that is True if the element `key` of a list and the
    token `query` are of the same sequence."""
    queries, keys = numbers(batch, device), numbers(batch, device, of)

    def sees(row, head, query, key):
        return queries[row, query] == keys[row, key]
    return sees


def context_parallel(batch, rank, size, device=None):
    """Returns a causal function for q of the tokens of a rank, and k and v of
    the tokens of all ranks, joined with torch.cat(..., dim=2); see
    views.context_parallel."""
    own = numbers(batch, device)

    def columns(r):
        index = views.context_index(batch, r, size) % own.shape[1]
        return torch.from_numpy(index).to(device)
    queries, keys = columns(rank), torch.cat(list(map(columns, range(size))), 1)

    def sees(row, head, query, key):
        query, key = queries[row, query], keys[row, key]
        return (own[row, query] == own[row, key]) & (query >= key)
    return sees
