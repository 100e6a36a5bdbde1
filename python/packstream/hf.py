"""hf.py - convert packs to inputs of Hugging Face models.

    source = packstream.open("corpus.pks")     # or pack_dataset(...)
    Trainer(model, TrainingArguments(..., remove_unused_columns=False),
            train_dataset=source, data_collator=hf.collator(model))

    hf.check_attention(model)                  # in a loop of your own
    model(**hf.rows(batch))                    # a row for each pack
    model(**hf.flattened(batch))               # one row, no padding

Labels come from the channel "labels" if the packs have one; otherwise from
the tokens, without those that a "loss_mask", "assistant_masks" or
"completion_mask" channel excludes.  `labels` names another channel;
labels="tokens" makes every token a target.  See views.labels.

flattened() returns the same as DataCollatorWithFlattening of transformers with
return_flash_attn_kwargs=True, plus use_cache=False: positions restart at 0;
the first label of a sequence is -100; boundaries are int32 and the longest
lengths are plain integers.  Use it with flash-attention, which then computes
no padding.  With rows(), other implementations mask fewer pairs, and the shape
of the tokens is constant.

flash-attention gets the boundaries from cu_seq_lens_q; "sdpa", "eager" and
"flex_attention" derive them from position_ids, if there is neither an
attention_mask nor a cache.  Both functions return both, so all implementations
work, but not all models: Llama, Qwen, Mistral, Mixtral, Phi, Gemma, OLMo,
Granite, GPT-2, GPT-NeoX and similar models keep sequences apart.  Without
flash-attention, OPT, BLOOM, MPT, XGLM, BioGPT and older Falcons do not.
Models with a state instead of attention, such as Mamba and RWKV, and old
versions of transformers do not either.  check_attention() raises ValueError
for these.

Use one process per GPU (torchrun): torch's DataParallel, which Trainer uses in
a single process, would split the boundaries incorrectly.

Other channels, such as vectors, are not passed to the model, because models
name such inputs differently: add them to the result.

encoder_decoder() is for models such as T5, whose positions are relative:

    encoder, inputs = hf.encoder_decoder(batch, "encoder_ids")
    model(encoder_outputs=model.encoder(**encoder), **inputs)

The models shift labels themselves, so shifted labels, as marked in the header,
are shifted back; see views.labels.

SPDX-License-Identifier: MIT
"""

from __future__ import annotations

import functools
from typing import Any, Callable, Dict, Mapping, Optional, Sequence, Tuple

import numpy as np
import torch

from packstream import views
from packstream.batch import Batch, stack
from packstream.rows import batch_of_rows


def row(array: np.ndarray) -> torch.Tensor:
    """int64 [1, T]."""
    return torch.from_numpy(array.astype(np.int64))[None]


def boundaries(cu: np.ndarray, longest: int) -> Dict[str, Any]:
    """Returns arguments for flash-attention, and use_cache=False, because
    other implementations ignore position_ids if there is a cache."""
    bounds = torch.from_numpy(cu)
    return {"cu_seq_lens_q": bounds, "cu_seq_lens_k": bounds,
            "max_length_q": longest, "max_length_k": longest,
            "use_cache": False}


def flattened(batch: Batch, labels: Optional[str] = None) -> Dict[str, Any]:
    """Returns int64 [1, T] arrays and the boundaries."""
    cu = views.merged_cu(batch, "ragged")
    own = views.labels(batch, labels)
    return {
        "input_ids": row(views.compact(batch)),
        "labels": row(own[~views.padding(batch)]),
        "position_ids": row(views.positions(batch, "ragged", cu)),
        **boundaries(cu, views.max_seqlen(batch, "ragged")),
    }


def rows(batch: Batch, labels: Optional[str] = None) -> Dict[str, Any]:
    """Returns int64 [S, L] arrays and the boundaries; padding is a sequence
    without labels."""
    cu = views.merged_cu(batch)
    return {
        "input_ids": torch.from_numpy(batch["tokens"].astype(np.int64)),
        "labels": torch.from_numpy(views.labels(batch, labels)),
        "position_ids": torch.from_numpy(
            views.positions(batch, cu=cu).astype(np.int64)),
        **boundaries(cu, views.max_seqlen(batch)),
    }


def masked_rows(batch: Batch, labels: str = "labels",
                dtype: torch.dtype = torch.float32) -> Dict[str, Any]:
    """Returns inputs of bidirectional models such as BERT, which do not shift
    labels.  The packs need a channel of labels.  attention_mask [S, 1, L, L]
    is 0 within a sequence and the lowest number of `dtype` elsewhere; "sdpa"
    and "eager" add it to the scores.  `dtype` is the model's type."""
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


def encoder_decoder(batch: Batch, of: str, labels: Optional[str] = None,
                    dtype: torch.dtype = torch.float32) -> Tuple[
                        Dict[str, Any], Dict[str, Any]]:
    """Returns the arguments of an encoder, for the list channel `of`, and the
    arguments of its model besides encoder_outputs, for the tokens, which are
    the inputs of the decoder.  Masks are as for masked_rows: the encoder's are
    [S, 1, B, B], those of the decoder [S, 1, L, L], and those of its cross
    attention [S, 1, L, B].  The label of a token is the next token, as in
    views.targets, because these models do not shift.  Use a model with
    relative positions and "sdpa" or "eager": T5 and its relatives, but not
    BART."""
    def added(mask: np.ndarray) -> torch.Tensor:
        allowed = torch.from_numpy(mask)[:, None]
        return torch.zeros(allowed.shape, dtype=dtype).masked_fill(
            ~allowed, torch.finfo(dtype).min)
    return {
        "attention_mask": added(views.attention_mask(batch, of)),
        "input_ids": torch.from_numpy(batch[of].astype(np.int64)),
    }, {
        "attention_mask": added(views.cross_mask(batch, of)),
        "decoder_input_ids": torch.from_numpy(
            batch["tokens"].astype(np.int64)),
        "decoder_attention_mask": added(
            views.attention_mask(batch, causal=True)),
        "labels": torch.from_numpy(views.targets(batch, labels)),
        "use_cache": False,
    }


def collate(packs: Sequence[Mapping[str, Any]],
            convert: Callable[..., Dict[str, Any]] = rows,
            **options: Any) -> Dict[str, Any]:
    """Returns a model's arguments for a list of packs of packstream.open, or
    of rows of pack_dataset.  `options`, such as labels=, are passed to
    `convert`; set both with functools.partial."""
    if not packs or not all(
            isinstance(pack, Mapping) and np.ndim(pack.get("tokens", [])) == 1
            for pack in packs):
        raise TypeError(
            "hf.collate takes a list of single packs or rows, as a DataLoader "
            "of packstream.open(...) or pack_dataset(...) with batch_size=N "
            "gives; a PackDataset needs convert=hf.rows and batch_size=None")
    batch = stack(packs) if "cu" in packs[0] else batch_of_rows(packs)
    return convert(batch, **options)


def collator(model: Any, convert: Callable[..., Dict[str, Any]] = rows,
             **options: Any) -> Callable[[Sequence[Any]], Dict[str, Any]]:
    """Calls check_attention(model), then returns collate with these options.
    The result does not refer to the model."""
    check_attention(model, functools.partial(convert, **{
        name: value for name, value in options.items() if name != "labels"}))
    return functools.partial(collate, convert=convert, **options)


def check_attention(model: Any,
                    convert: Callable[..., Dict[str, Any]] = rows) -> None:
    """Raises ValueError if the sequences of a pack attend to each other.

    Runs the model on two batches that differ only in the first sequence of
    each row; the logits of the second sequence must be equal.  The model must
    be on its device and not sharded yet."""
    implementation = getattr(model.config, "_attn_implementation", None)
    tokens = np.full((2, 2, 8), 7)
    tokens[1, :, :4] = [11, 3, 13, 5]
    modes = [(module, module.training) for module in model.modules()]
    model.eval()
    try:
        dtype = model.dtype
        if "flash" in str(implementation) and dtype == torch.float32:
            dtype = torch.bfloat16      # its kernels do not support float32
        with torch.no_grad(), torch.autocast(
                model.device.type, dtype, enabled=dtype != model.dtype):
            logits = [_logits(model, batch, convert) for batch in tokens]
    except Exception as problem:
        raise RuntimeError(
            "hf.check_attention: %s: %s: the model has to be on its device, "
            "as by model.to(training_arguments.device), not sharded yet, and "
            "to take position_ids" % (type(model).__name__, problem)
            ) from problem
    finally:
        for module, training in modes:
            module.training = training
    change = (logits[1] - logits[0]).abs().reshape(-1, 8, logits[0].shape[-1])
    rounding = max(1e-3, 2 * torch.finfo(dtype).eps)
    if not change[:, 4:].max() <= rounding * change[:, :4].max():
        raise ValueError(
            "%s with attn_implementation=%r lets the sequences of a pack "
            "attend to each other: give it a mask, with "
            "functools.partial(hf.collate, convert=hf.masked_rows), or use "
            "flash-attention, a newer transformers, or a model that finds "
            "sequences in position_ids"
            % (type(model).__name__, implementation))


def _logits(model: Any, tokens: np.ndarray,
            convert: Callable[..., Dict[str, Any]]) -> torch.Tensor:
    """Returns logits for rows of two sequences of 4 tokens."""
    inputs = collate([{"input_ids": ids, "labels": ids, "seq_lengths": [4, 4]}
                      for ids in tokens], convert)
    del inputs["labels"]
    return model(**{
        name: value.to(model.device) if torch.is_tensor(value) else value
        for name, value in inputs.items()}).logits.float()
