"""hf.py - a batch of packs as Hugging Face models take packed sequences.

    data = PackDataset("corpus.pks", 8, convert=hf.flattened)
    model(**batch, use_cache=False)

The dictionary is the one that DataCollatorWithFlattening of transformers
makes of the same sequences with return_flash_attn_kwargs=True: all in one
row, without padding; positions restart at 0; the first label of a sequence
is -100; boundaries are int32 and the longest lengths are plain integers.
There must be no attention_mask beside it.

attn_implementation="flash_attention_2" takes the boundaries; "sdpa" and
"eager" find them in position_ids, but with a cache, which there is unless
use_cache is False, each sequence attends to those before it.

The models shift labels themselves, so those that are shifted already, as the
header says, are shifted back; see views.labels.

SPDX-License-Identifier: MIT
"""

import numpy as np
import torch

from packstream import views


def row(array):
    """int64 [1, T]."""
    return torch.from_numpy(array.astype(np.int64))[None]


def flattened(batch, labels="tokens"):
    """`labels` names a per-token channel to take labels from."""
    cu = views.merged_cu(batch, "ragged")
    longest = views.max_seqlen(batch, "ragged")
    own = views.labels(batch, labels)
    bounds = torch.from_numpy(cu)
    return {
        "input_ids": row(views.compact(batch)),
        "labels": row(own[~views.padding(batch)]),
        "position_ids": row(views.positions(batch, "ragged", cu)),
        "cu_seq_lens_q": bounds,
        "cu_seq_lens_k": bounds,
        "max_length_q": longest,
        "max_length_k": longest,
    }
