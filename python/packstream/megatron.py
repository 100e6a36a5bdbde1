"""megatron.py - a batch of packs as Megatron-LM trains on packed
sequences.

    fields = megatron.fields(batch)
    params = PackedSeqParams(**fields.pop("packed_seq_params"))
    model(fields["tokens"], fields["position_ids"], None,
          labels=fields["labels"], loss_mask=fields["loss_mask"],
          packed_seq_params=params)

In the thd format a micro-batch is one row: [1, S * L].  The padding of each
pack is a sequence of its own, so that attention writes every row, and its
loss mask is 0; so is that of the last token of each sequence, the target of
which would be a token of another one.  It is also 0 for each token that
`labels` or a mask excludes.  With static=True the boundaries have
the same number in each batch, as CUDA graphs need.  Megatron does not shift
its labels: fields() does, unless the header says that they are shifted; see
views.targets.

For aligned sequences, as context parallelism needs them, cu_seqlens_q_padded
has the boundaries with padding, and cu_seqlens_q those of the tokens.

SPDX-License-Identifier: MIT
"""

import numpy as np
import torch

from packstream import views


def row(array, dtype=np.int64):
    return torch.from_numpy(array.astype(dtype).reshape(1, -1))


def unpadded(batch, view):
    """Boundaries of the tokens alone, a ghost's places among them."""
    cu = np.append(0, np.cumsum(views.seqused(batch, view)))
    return torch.from_numpy(cu.astype(np.int32))


def fields(batch, static=False, labels=None):
    """`labels` selects the targets, by default the channel "labels", or the
    tokens that a loss mask selects; see views.labels."""
    view = "static" if static else "ghost"
    padded = torch.from_numpy(views.merged_cu(batch, view))
    cu = unpadded(batch, view)
    longest = views.max_seqlen(batch, view)
    targets = views.targets(batch, labels)
    counted = targets != views.IGNORED
    return {
        "tokens": row(batch["tokens"]),
        "labels": row(np.where(counted, targets, 0)),
        "loss_mask": row(counted, np.float32),
        "position_ids": row(views.positions(batch, view)),
        "packed_seq_params": {
            "qkv_format": "thd",
            "cu_seqlens_q": cu, "cu_seqlens_kv": cu,
            "cu_seqlens_q_padded": padded, "cu_seqlens_kv_padded": padded,
            "max_seqlen_q": longest, "max_seqlen_kv": longest,
        },
    }
