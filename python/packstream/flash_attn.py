"""flash_attn.py - a batch of packs as flash-attention's varlen kernels
take it.

    tokens, targets, positions, args = varlen(batch, "ghost", "cuda")
    q, k, v = ...                        # [S * L, heads, d] of the tokens
    flash_attn_varlen_func(q, k, v, **args, causal=True)
    cross_entropy(logits, targets)       # -100: no target

The views are those of views.py.  With "ragged" the tokens are compacted
first and nothing is computed for padding; with "ghost" all S * L rows belong
to a sequence, so that the kernel writes each row of its output, which it
would leave unwritten behind the last boundary; with "static" the boundaries
have the same number in each batch, too, as a captured CUDA graph needs.

Of aligned sequences these two have places behind each that are no tokens.
Then there is seqused_k as well, which flash-attention 3 takes, so that no
token attends to them; without it, causal attention is right, and no other.

SPDX-License-Identifier: MIT
"""

import numpy as np
import torch

from packstream import views


def varlen(batch, view="ghost", device=None, labels=None):
    """Tokens, the target of each, and positions, int64 [T]; and the keyword
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
