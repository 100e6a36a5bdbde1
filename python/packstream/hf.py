"""hf.py - packs as Hugging Face models take packed sequences.

    model(**hf.flattened(batch), use_cache=False)   # one row, no padding
    model(**hf.rows(batch))                         # a row for each pack

    source = packstream.open("corpus.pks")     # or pack_dataset(...)
    DataLoader(source, batch_size=8, collate_fn=hf.collate)
    Trainer(model, TrainingArguments(..., remove_unused_columns=False),
            train_dataset=source, data_collator=hf.collate)

Labels come from the channel "labels" if the packs have one; otherwise from
the tokens, without those that a "loss_mask", "assistant_masks" or
"completion_mask" channel excludes.  `labels` names another channel;
labels="tokens" makes every token a target.  See views.labels.

flattened() gives what DataCollatorWithFlattening of transformers makes of the
same sequences with return_flash_attn_kwargs=True: all in one row, without
padding; positions restart at 0; the first label of a sequence is -100;
boundaries are int32 and the longest lengths are plain integers.  It is for
attn_implementation="flash_attention_2", which takes the boundaries.  rows()
is for "sdpa", "eager" and "flex_attention", which find them in position_ids:
there is less to mask than in one long row, and shapes stay the same.

They find them only where there is no attention_mask and no cache; with a
cache, which there is unless use_cache is False, each sequence attends to
those before it.  Trainer asks for none, rows() says so in each batch, and
with flattened() a loop of one's own has to.

Llama, Qwen, Mistral, Mixtral, Phi, Gemma, OLMo, Granite, GPT-2, GPT-NeoX and
their like make masks of position_ids.  OPT, BLOOM, MPT, XGLM and BioGPT do not,
nor does Falcon before transformers 5.24, nor what has a state in place of
attention, such as Mamba and RWKV: there each sequence sees those before it,
without a word.  Of any other, compare the loss of a batch with the losses of
its sequences.

The models shift labels themselves, so those that are shifted already, as the
header says, are shifted back; see views.labels.

SPDX-License-Identifier: MIT
"""

from __future__ import annotations

from typing import Any, Callable, Dict, Mapping, Optional, Sequence

import numpy as np
import torch

from packstream import views
from packstream.packs import Batch, stack
from packstream.rows import batch_of_rows


def row(array: np.ndarray) -> torch.Tensor:
    """int64 [1, T]."""
    return torch.from_numpy(array.astype(np.int64))[None]


def flattened(batch: Batch, labels: Optional[str] = None) -> Dict[str, Any]:
    """int64 [1, T] each, and the boundaries."""
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


def rows(batch: Batch, labels: Optional[str] = None) -> Dict[str, Any]:
    """int64 [S, L] each; the padding is a sequence without labels."""
    return {
        "input_ids": torch.from_numpy(batch["tokens"].astype(np.int64)),
        "labels": torch.from_numpy(views.labels(batch, labels)),
        "position_ids": torch.from_numpy(
            views.positions(batch).astype(np.int64)),
        "use_cache": False,
    }


def masked_rows(batch: Batch, labels: str = "labels",
                dtype: torch.dtype = torch.float32) -> Dict[str, Any]:
    """For bidirectional models such as BERT, which do not shift.  Needs a
    channel of labels.  attention_mask [S, 1, L, L] is 0 within a sequence and
    the lowest number of `dtype` elsewhere; "sdpa" and "eager" add it to the
    scores.  `dtype` is the model's."""
    segments = torch.from_numpy(views.segments(batch))
    apart = segments[:, None, :, None] != segments[:, None, None, :]
    return {
        "input_ids": torch.from_numpy(batch["tokens"].astype(np.int64)),
        "labels": torch.from_numpy(views.own_labels(batch, labels)),
        "position_ids": torch.from_numpy(
            views.positions(batch).astype(np.int64)),
        "attention_mask": torch.zeros(apart.shape, dtype=dtype).masked_fill(
            apart, torch.finfo(dtype).min),
    }


def collate(packs: Sequence[Mapping[str, Any]],
            convert: Callable[..., Dict[str, Any]] = rows,
            **options: Any) -> Dict[str, Any]:
    """The arguments of a model for a list of packs of packstream.open, or of
    rows of pack_dataset.  `options`, such as labels=, are those of `convert`;
    functools.partial sets both."""
    if not packs or not all(
            isinstance(pack, Mapping) and np.ndim(pack.get("tokens", [])) == 1
            for pack in packs):
        raise TypeError(
            "hf.collate takes a list of single packs or rows, as a DataLoader "
            "of packstream.open(...) or pack_dataset(...) with batch_size=N "
            "gives; a PackDataset needs convert=hf.rows and batch_size=None")
    batch = stack(packs) if "cu" in packs[0] else batch_of_rows(packs)
    return convert(batch, **options)
