"""megatron.py - a batch of packs in Megatron-LM's format of packed sequences.

    fields = megatron.fields(batch)
    params = PackedSeqParams(**fields.pop("packed_seq_params"))
    model(fields["tokens"], fields["position_ids"], None,
          labels=fields["labels"], loss_mask=fields["loss_mask"],
          packed_seq_params=params)

In the thd format, a micro-batch is one row: [1, S * L].  The padding of each
pack is a separate sequence, so that attention writes every row.  The loss mask
is 0 in the padding, for the last token of each sequence, whose target would be
a token of another sequence, and for tokens that `labels` or a mask excludes.
With static=True, every batch has the same number of boundaries, as CUDA graphs
require.  Megatron does not shift labels: fields() does, unless the header
states that they are shifted; see views.targets.

For aligned sequences, which context parallelism needs, cu_seqlens_q_padded has
the boundaries including padding, and cu_seqlens_q the boundaries of the
tokens.  With context_size=N, the result has the tokens, labels, loss mask and
positions of one rank of context parallelism, but the packed_seq_params of the
whole row, as Transformer Engine requires.  Leave context_size at 1 if Megatron
itself divides the fields, as get_thd_batch_on_this_cp_rank does.

SPDX-License-Identifier: MIT
"""

import numpy as np
import torch

from packstream import views


def row(array, dtype=np.int64):
    return torch.from_numpy(array.astype(dtype).reshape(1, -1))


def unpadded(batch, view):
    """Returns the boundaries without padding; a ghost counts as tokens."""
    cu = np.append(0, np.cumsum(views.seqused(batch, view)))
    return torch.from_numpy(cu.astype(np.int32))


def fields(batch, static=False, labels=None, context_rank=0, context_size=1):
    """Returns the arguments of a Megatron model.  `labels` selects the
    targets: by default the channel "labels", or the tokens that a loss mask
    selects; see views.labels.  With `context_size` ranks, rank `context_rank`
    has its chunks of each sequence; see views.context_parallel."""
    view = "static" if static else "ghost"
    padded = torch.from_numpy(views.merged_cu(batch, view))
    cu = unpadded(batch, view)
    longest = views.max_seqlen(batch, view)
    targets = views.targets(batch, labels)
    counted = targets != views.IGNORED
    rows = {
        "tokens": row(batch["tokens"]),
        "labels": row(np.where(counted, targets, 0)),
        "loss_mask": row(counted, np.float32),
        "position_ids": row(views.positions(batch, view)),
    }
    if (context_rank, context_size) != (0, 1):
        index = torch.from_numpy(views.context_index(
            batch, context_rank, context_size).reshape(-1))
        rows = {name: whole[:, index] for name, whole in rows.items()}
    return {**rows, "packed_seq_params": {
        "qkv_format": "thd",
        "cu_seqlens_q": cu, "cu_seqlens_kv": cu,
        "cu_seqlens_q_padded": padded, "cu_seqlens_kv_padded": padded,
        "max_seqlen_q": longest, "max_seqlen_kv": longest,
    }}
