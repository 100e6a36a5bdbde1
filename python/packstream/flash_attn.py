"""flash_attn.py - arguments of flash-attention's varlen kernels for a batch.

    tokens, targets, positions, args = varlen(batch, "ghost", "cuda")
    q, k, v = ...                        # [S * L, heads, d] of the tokens
    flash_attn_varlen_func(q, k, v, **args, causal=True)
    cross_entropy(logits, targets)       # -100: no target

views.py defines the views.  "ragged" removes the padding, so nothing is
computed for it.  In "ghost", every row is in a sequence, so the kernel writes
its whole output; it would leave rows after the last boundary uninitialised.
"static" also has the same number of boundaries in every batch, as a captured
CUDA graph requires.

If sequences are aligned, the last two views contain gaps after sequences.  The
arguments then include seqused_k, for flash-attention 3, so that no token
attends to a gap.  Without seqused_k, only causal attention is correct.

In encoder-decoder models whose tokens are the decoder's and whose list channel
is the encoder's, the encoder and the cross attention have these arguments:

    encoder_ids, positions, args = varlen_list(batch, "encoder_ids", "ghost")
    args = cross(batch, "encoder_ids", "ghost")
    flash_attn_varlen_func(q, k, v, **args)     # q of the tokens, k of the list

In context parallelism, each rank has its chunks of every sequence, and gathers
the keys and values of all ranks, as rows [S * L, heads, d]:

    tokens, targets, positions, keys, args = context_parallel(
        batch, rank, size, "ghost", "cuda")
    k, v = (gathered(x)[keys] for x in (k, v))
    flash_attn_varlen_func(q, k, v, **args, causal=True)    # 2.1 or later

The vectors of a channel for these tokens are views.compact(batch, name) in
"ragged", and batch[name].reshape(-1, N) in the other views.

SPDX-License-Identifier: MIT
"""

import numpy as np
import torch

from packstream import views


def varlen(batch, view="ghost", device=None, labels=None):
    """Returns tokens, targets and positions, int64 [T], and the keyword
    arguments.  `labels` selects the targets; see views.targets."""
    arrays = [batch["tokens"], views.targets(batch, labels)]
    if view == "ragged":
        kept = ~views.padding(batch)
        arrays = [array[kept] for array in arrays]
    tokens, targets = (torch.from_numpy(array.astype(np.int64).reshape(-1))
                       for array in arrays)
    cu = views.merged_cu(batch, view)
    positions = views.positions(batch, view, cu).reshape(-1)
    cu = torch.from_numpy(cu).to(device)
    longest = views.max_seqlen(batch, view)
    args = {"cu_seqlens_q": cu, "cu_seqlens_k": cu,
            "max_seqlen_q": longest, "max_seqlen_k": longest}
    if "seq_tok" in batch and view != "ragged":
        used = torch.from_numpy(views.seqused(batch, view))
        args["seqused_k"] = used.to(device)
    positions = torch.from_numpy(positions.astype(np.int64))
    return (tokens.to(device), targets.to(device), positions.to(device),
            args)


def context_parallel(batch, rank, size, view="ghost", device=None,
                     labels=None):
    """Returns tokens, targets and positions of a rank, int64 [T / size], the
    index of the keys in the rows of all ranks, and the keyword arguments; see
    views.context_parallel.  No seqused_k is needed: no token attends to the
    padding after it."""
    part = views.context_parallel(batch, rank, size, view, labels)
    keys = views.context_keys(batch, rank, size, view)
    rows = [torch.from_numpy(array.reshape(-1).astype(np.int64)).to(device)
            for array in (part.tokens, part.targets, part.positions,
                          keys.index)]
    cu_q, cu_k = (torch.from_numpy(cu).to(device)
                  for cu in (keys.cu_seqlens_q, keys.cu_seqlens_k))
    return (*rows, {
        "cu_seqlens_q": cu_q, "cu_seqlens_k": cu_k,
        "max_seqlen_q": keys.max_seqlen_q, "max_seqlen_k": keys.max_seqlen_k})


def bounds(batch, view, device, of=None):
    """Returns the boundaries of the sequences or of a list, and the longest
    length."""
    cu = torch.from_numpy(views.merged_cu(batch, view, of))
    return cu.to(device), views.max_seqlen(batch, view, of)


def varlen_list(batch, of, view="ghost", device=None):
    """Returns the elements of a list channel, its positions, int64 [T], and the
    keyword arguments for attention within each list.  Integer elements become
    int64."""
    values = views.compact(batch, of) if view == "ragged" else \
        batch[of].reshape(-1, *batch[of].shape[2:])
    values = torch.from_numpy(values.astype(
        np.int64 if values.dtype.kind in "iu" else values.dtype))
    positions = torch.from_numpy(
        views.positions(batch, view, of=of).reshape(-1).astype(np.int64))
    cu, longest = bounds(batch, view, device, of)
    return (values.to(device), positions.to(device),
            {"cu_seqlens_q": cu, "cu_seqlens_k": cu,
             "max_seqlen_q": longest, "max_seqlen_k": longest})


def cross(batch, of, view="ghost", device=None):
    """Returns the keyword arguments for attention from the tokens of each
    sequence to its list."""
    queries, most_queries = bounds(batch, view, device)
    keys, most_keys = bounds(batch, view, device, of)
    return {"cu_seqlens_q": queries, "cu_seqlens_k": keys,
            "max_seqlen_q": most_queries, "max_seqlen_k": most_keys}
