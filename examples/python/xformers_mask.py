"""xformers_mask.py - a batch of packs for memory_efficient_attention.

    tokens, targets, positions, mask = unpadded(batch)
    q, k, v = ...                        # [1, T, heads, size] of the tokens
    memory_efficient_attention(q, k, v, attn_bias=mask)

All sequences are in one row, without padding between the packs.  The operators
of xformers need a GPU.

SPDX-License-Identifier: MIT
"""

import sys

if __name__ == "__main__":
    sys.exit(__doc__)

from packstream import flash_attn, views
from xformers.ops.fmha.attn_bias import BlockDiagonalCausalMask


def unpadded(batch, device=None):
    tokens, targets, positions, _ = flash_attn.varlen(batch, "ragged", device)
    lengths = views.seqused(batch, "ragged").tolist()
    return tokens, targets, positions, BlockDiagonalCausalMask.from_seqlens(
        lengths, device=device)
