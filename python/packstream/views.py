"""views.py - arrays derived from the sequence boundaries of packs.

`cu` of a batch of packs.py has the boundaries of each pack's sequences.  These
functions derive the arrays that trainers need from it, for all packs of a
batch at once; a batch can also be a plain dictionary of arrays.  [S, L] is an
array with a row per pack and a column per position; n is n_seq.  A channel of
vectors of N values has one dimension more, such as [S, L, N]; compact() and
per_sequence() keep it.

There are three views of the sequences of several packs as one row:

    "ragged"  sequences only, without padding between the packs: one entry per
              token, as in compact()
    "ghost"   the padding of each pack is a dummy sequence, the ghost, so all
              S * L positions are in a sequence; a ghost can be empty
    "static"  as ghost, with empty sequences up to D + 1 per pack, so there are
              always S * (D + 1) + 1 boundaries; D is the depth in the header,
              or the maximum that can fit if that is None

With packstream --align=N, each sequence is followed by padding up to the next
multiple of N.  In "ghost" and "static", this padding is part of the sequence,
and seqused() returns the number of tokens; in "ragged", it is removed.

With of="NAME", a function returns the arrays of a list channel instead of those
of the tokens.  The elements of a pack's lists are a row of B, the budget of the
list, and the unused elements at its end are the ghost.  In every view, list i
is that of sequence i, so merged_cu(batch, view) and merged_cu(batch, view,
of=NAME) are the boundaries of queries and keys in cross attention.

context_parallel() cuts each sequence for the ranks of context parallelism.

SPDX-License-Identifier: MIT
"""

from __future__ import annotations

from typing import Dict, List, Mapping, NamedTuple, Optional, Tuple

import numpy as np

IGNORED = -100                  # the label of a token without a target
CU = ".cu"                      # the boundaries of list NAME are NAME.cu
SHIFTED = 2                     # header.labels: labels are of the next token
# Per-token masks of chat trainers, 1 where the token is a target
MASKS = ("loss_mask", "assistant_masks", "completion_mask")
Batch = Mapping[str, np.ndarray]


def padding(batch: Batch, of: Optional[str] = None) -> np.ndarray:
    """bool [S, L], or [S, B]: positions without a token or an element."""
    if of is not None or _seq_tok(batch) is not None:
        return segments(batch, of) == 0
    places = np.arange(batch["tokens"].shape[1], dtype=np.uint32)
    return places >= batch["n_tok"][:, None]


def loss_mask(batch: Batch, name: Optional[str] = None,
              shifted: Optional[bool] = None) -> np.ndarray:
    """float32 [S, L]: 1 where targets() has a target, otherwise 0."""
    return (targets(batch, name, shifted) != IGNORED).astype(np.float32)


def compact(batch: Batch, name: str = "tokens") -> np.ndarray:
    """[T], or [T, N] of vectors: a per-token channel of all packs, or the lists
    of a list channel, without padding."""
    return batch[name][~padding(batch, name if name + CU in batch else None)]


def per_sequence(batch: Batch, name: str) -> np.ndarray:
    """[sum of n], or [sum of n, N] of vectors: a per-sequence channel without
    unused slots."""
    return batch[name][_in_use(batch, batch[name].shape[1])]


def merged_cu(batch: Batch, view: str = "ghost",
              of: Optional[str] = None) -> np.ndarray:
    """int32: the boundaries of all packs, joined into one row."""
    return _merged(batch, view, of).astype(np.int32)


def seqused(batch: Batch, view: str = "ghost") -> np.ndarray:
    """int32: the number of tokens in each sequence of merged_cu; all positions
    of a ghost count."""
    return _spans(batch, view, True)


def max_seqlen(batch: Batch, view: str = "ghost",
               of: Optional[str] = None) -> int:
    """The length of the longest sequence, or list, of the view; always L, or B,
    for "static"."""
    capacity = batch[of or "tokens"].shape[1]
    if view == "static":
        return capacity
    if of is not None:
        return int(_spans(batch, view, False, of).max(initial=0))
    if view == "ghost" and _seq_tok(batch) is not None:
        return int(_spans(batch, view, False).max())
    ghost = capacity - batch["n_tok"].min() if view == "ghost" else 0
    return int(max(batch["max_seqlen"].max(), ghost))


def positions(batch: Batch, view: str = "ghost",
              cu: Optional[np.ndarray] = None,
              of: Optional[str] = None) -> np.ndarray:
    """int32 [S, L], or [T] if ragged: the position within the sequence, or
    within the list.  A ghost also starts at 0; padding after a sequence
    continues its positions.  This is faster if merged_cu of the view is
    passed."""
    if cu is None:
        cu = _merged(batch, view, of)
    lengths = cu[1:] - cu[:-1]
    used = lengths.nonzero()[0]
    found = np.ones(cu[-1], np.int32)
    found[:1] = 0
    found[cu[used[1:]]] = 1 - lengths[used[:-1]]
    np.add.accumulate(found, out=found)
    return found if view == "ragged" else found.reshape(len(batch["cu"]), -1)


def segments(batch: Batch, of: Optional[str] = None) -> np.ndarray:
    """int32 [S, L], or [S, B]: 1 for the first sequence of a pack, 2 for the
    second, 0 in the padding.  A list has the number of its sequence."""
    if of is not None:
        lengths = np.diff(_cu(batch, of), axis=1)
        numbers = np.arange(1, lengths.shape[1] + 1, dtype=np.int32) * \
            _in_use(batch, lengths.shape[1])
        return np.repeat(numbers.reshape(-1), lengths.reshape(-1)).reshape(
            len(lengths), -1)
    rows, capacity = batch["tokens"].shape
    found = np.zeros(rows * capacity + 1, np.int32)
    if _seq_tok(batch) is None:
        found[_edges(batch, capacity)] = 1
        found[np.arange(rows) * capacity + batch["n_tok"]] -= \
            batch["n_seq"].astype(np.int32)
    else:
        numbers = np.arange(1, batch["cu"].shape[1] - 1)
        number = np.tile(numbers, (rows, 1))[_in_use(batch, len(numbers))]
        found[_edges(batch, capacity)] = number
        found[_ends(batch, capacity)] -= number
    np.add.accumulate(found, out=found)
    return found[:-1].reshape(rows, capacity)


def sequence_ids(batch: Batch, view: str = "ragged",
                 of: Optional[str] = None) -> np.ndarray:
    """int64 [T]: for each token, or element of a list, the number of its
    sequence in the batch, from 0; the number of sequences in the padding of
    other views.  If sequences are graphs, this is the vector `batch` of PyTorch
    Geometric."""
    found = segments(batch, of).astype(np.int64).reshape(-1)
    n_seq = batch["n_seq"].astype(np.int64)
    before = np.repeat(np.cumsum(n_seq) - n_seq, len(found) // len(n_seq))
    if view == "ragged":
        return (found + before - 1)[found > 0]
    return np.where(found > 0, found + before - 1, n_seq.sum())


def attention_mask(batch: Batch, of: Optional[str] = None,
                   causal: bool = False) -> np.ndarray:
    """bool [S, L, L], or [S, B, B], as [pack, query, key]: True within a
    sequence, or within a list.  Padding attends to itself, as a sequence.  Use
    it for short rows: it has L * L values per pack."""
    own = segments(batch, of)
    same = own[:, :, None] == own[:, None, :]
    return np.tril(same) if causal else same


def cross_mask(batch: Batch, of: str) -> np.ndarray:
    """bool [S, L, B], as [pack, query, key]: True if the element and the token
    are of the same sequence, as in the cross attention of a decoder.  Padding attends
    to unused elements.  The row of a token has no True if its list is empty, or
    if the token is padding and no element is unused: its output is 0 in
    flex_attention and scaled_dot_product_attention of torch, but NaN in an
    ordinary softmax."""
    return segments(batch)[:, :, None] == segments(batch, of)[:, None, :]


def edge_index(batch: Batch, name: str = "edges",
               view: str = "ragged") -> np.ndarray:
    """int64 [2, E]: the edges of all graphs, for sequences whose tokens are the
    nodes of a graph and whose list `name` has a pair of nodes for each edge,
    counted from 0 in each graph.  In the result, nodes are counted in
    compact(batch) if `view` is "ragged", otherwise in
    batch["tokens"].reshape(-1).  Raises ValueError if a graph does not have
    such a node."""
    pairs = compact(batch, name)
    if name + CU not in batch or pairs.ndim != 2 or pairs.shape[1] != 2 or \
            pairs.dtype.kind not in "iu":
        raise ValueError("%r is not a list of pairs of nodes, such as "
                         "\"uint32[2][]\"" % name)
    lengths = np.diff(merged_cu(batch, "ragged", name))
    sizes = _spans(batch, "ragged", True)
    outside = ((pairs < 0) | (pairs >= np.repeat(sizes, lengths)[:, None])
               ).any(1)
    if outside.any():
        edge = int(outside.argmax())
        number = int(sequence_ids(batch, of=name)[edge])
        raise ValueError("%s: edge %s in sequence %d of the batch, which has "
                         "%d nodes" % (name, tuple(pairs[edge].tolist()),
                                       number, sizes[number]))
    starts = _merged(batch, "ragged")[:-1] if view == "ragged" else \
        _edges(batch, batch["tokens"].shape[1])
    return np.ascontiguousarray(
        (pairs.astype(np.int64) + np.repeat(starts, lengths)[:, None]).T)


def prefixes(batch: Batch) -> np.ndarray:
    """int32 [S, D]: for each sequence, the number (from 1) of the first
    sequence of its group, which is the prefix that it continues.  0 in unused
    slots.

    The packs must be made by packstream --group, and groups must be complete:
    a flush, --overlong=split or a dropped prefix leaves a group without its
    prefix.  Raises ValueError if sequences with the same value are neighbours
    in a pack but not in the input, because they can belong to two groups."""
    header = getattr(batch, "header", None)
    if header is None or header.group is None:
        raise ValueError("these packs have no groups: use packstream --group")
    used = _in_use(batch, batch["cu"].shape[1] - 2)
    values, ids = batch[header.group], batch["seq_id"]
    same = (values[:, 1:] == values[:, :-1]) & used[:, 1:]
    apart = same & (ids[:, 1:] != ids[:, :-1] + 1)
    if apart.any():
        row, k = np.argwhere(apart)[0]
        raise ValueError(
            "sequences %d and %d have the same %s, but are not neighbours in "
            "the input: number groups without repeats, and drop no sequence"
            % (ids[row, k], ids[row, k + 1], header.group))
    starts = np.ones(used.shape, bool)
    starts[:, 1:] = ~same
    numbers = np.arange(1, used.shape[1] + 1, dtype=np.int32)
    return np.maximum.accumulate(starts * numbers, axis=1) * used


def prefix_segments(batch: Batch) -> np.ndarray:
    """int32 [S, L]: like segments(), but a sequence that continues a prefix
    has the number of the prefix.  A token attends to positions up to its own
    whose segments() is its own segment or this number:

        (segments[query] == segments[key]) |
        (prefix_segments[query] == segments[key])"""
    found = np.pad(prefixes(batch), ((0, 0), (1, 0)))
    return np.take_along_axis(found, segments(batch), axis=1)


def prefix_positions(batch: Batch) -> np.ndarray:
    """int32 [S, L]: like positions(), but they continue from the end of the
    prefix."""
    prefix = np.pad(prefixes(batch), ((0, 0), (1, 0)))
    before = np.pad(_lengths(batch), ((0, 0), (1, 0)))
    before = np.take_along_axis(before, prefix, axis=1) * (
        prefix != np.arange(prefix.shape[1]))
    return positions(batch) + np.take_along_axis(
        before, segments(batch), axis=1).astype(np.int32)


def prefix_mask(batch: Batch) -> np.ndarray:
    """bool [S, L, L]: the causal mask for these segments, [pack, query, key].
    Padding attends to itself, as a sequence.  Use it for short rows: it has L
    * L values per pack."""
    own, prefix = segments(batch), prefix_segments(batch)
    keys = own[:, None, :]
    return np.tril((own[:, :, None] == keys) | (prefix[:, :, None] == keys))


def prefix_saved(batch: Batch) -> int:
    """The number of tokens saved by storing each prefix only once: its length
    for every sequence that continues it."""
    own = prefixes(batch)
    continues = (own != np.arange(1, own.shape[1] + 1)) & (own > 0)
    return int(np.take_along_axis(_lengths(batch), np.maximum(own - 1, 0),
                                  axis=1)[continues].sum())


def _lengths(batch: Batch) -> np.ndarray:
    """[S, D]: the number of tokens in each sequence."""
    seq_tok, cu = _seq_tok(batch), batch["cu"]
    return cu[:, 1:-1] - cu[:, :-2] if seq_tok is None else seq_tok


def labels(batch: Batch, name: Optional[str] = None,
           shifted: Optional[bool] = None) -> np.ndarray:
    """int64 [S, L]: the label of each token, for models that shift labels
    themselves, like Hugging Face models.  IGNORED in the padding and for the
    first token of each sequence, which no other token predicts.

    `name` selects the source:

        None       the channel "labels" if the batch has one; otherwise the
                   tokens, except where a channel of MASKS is 0 (several masks
                   intersect)
        "tokens"   all tokens, whatever channels exist
        a mask     the tokens, except where this channel of MASKS is 0
        a channel  its values, as labels

    A mask applies to the token with which it is stored: 0 means that no loss
    is computed for predicting that token.

    The header of a batch of packs.py states whether labels are aligned, each
    stored with its own token, or shifted, stored with the token before it; the
    default is aligned.  Other dictionaries need `shifted`.  Shifted labels are
    shifted back.  Raises ValueError if the last token of a sequence has a
    shifted label, which would be lost."""
    found = own_labels(batch, name, shifted)
    found.reshape(-1)[_edges(batch, found.shape[1])] = IGNORED
    return found


def own_labels(batch: Batch, name: Optional[str] = None,
               shifted: Optional[bool] = None) -> np.ndarray:
    """int64 [S, L]: like labels(), but the first token of a sequence keeps its
    label, for bidirectional models such as BERT."""
    found, is_shifted = _stored_labels(batch, name, shifted)
    if is_shifted:
        row = found.reshape(-1)
        lost = row[_ends(batch, found.shape[1]) - 1] != IGNORED
        if lost.any():
            raise ValueError("labels are stored shifted, and the last token "
                             "of sequence %d of the batch has one, which a "
                             "shifting loss cannot use; use views.targets()"
                             % lost.argmax())
        row[1:] = row[:-1].copy()
        row[_edges(batch, found.shape[1])] = IGNORED
    return found


def targets(batch: Batch, name: Optional[str] = None,
            shifted: Optional[bool] = None) -> np.ndarray:
    """int64 [S, L]: the label of the next token, for a loss that does not
    shift; IGNORED in the padding and for the last token of a sequence.  `name`
    and `shifted` are as for labels().  Labels that are stored shifted are
    returned as stored, including the labels of last tokens."""
    found, is_shifted = _stored_labels(batch, name, shifted)
    if not is_shifted:
        found.reshape(-1)[_edges(batch, found.shape[1])] = IGNORED
        found[:, :-1] = found[:, 1:]
        found[:, -1] = IGNORED
    return found


def _stored_labels(batch: Batch, name: Optional[str],
                   shifted: Optional[bool]) -> Tuple[np.ndarray, bool]:
    """Returns a copy, int64 [S, L], with IGNORED in the padding, and True if
    each token has the label of the next token."""
    channels = _per_token(batch)
    masks = [name] if name in MASKS else []
    if name is None and "labels" in batch:
        name = "labels"
    elif name is None:
        masks = [mask for mask in MASKS if mask in batch]
    source = "tokens" if masks or name is None else name
    for wanted in (source, *masks):
        if wanted not in channels:
            raise ValueError(_not_per_token(batch, wanted, channels))
    found = batch[source].astype(np.int64)
    ignored = padding(batch)
    for mask in masks:
        ignored = ignored | ~_as_bool(batch[mask], mask, ignored)
    found[ignored] = IGNORED
    return found, source != "tokens" and _are_shifted(batch, source, shifted)


def _per_token(batch: Batch) -> List[str]:
    """Returns the per-token arrays of single values."""
    return [name for name in _of_tokens(batch) if batch[name].ndim == 2]


def _not_per_token(batch: Batch, name: str, channels: List[str]) -> str:
    """Returns the reason why this name cannot be a source of labels."""
    others = ", ".join(c for c in channels if c != "tokens") or "none"
    if name in batch and batch[name].ndim > 2:
        return ("%r has vectors, which are not labels (per-token channels of "
                "single values: %s)" % (name, others))
    if name in batch:
        return ("%r is not a per-token channel (per-token channels: %s); "
                "labels=\"tokens\" makes every token a target"
                % (name, others))
    return "no channel %r (per-token channels: %s)" % (name, others)


def _as_bool(mask: np.ndarray, name: str, ignored: np.ndarray) -> np.ndarray:
    """Converts a mask of 0 and 1 to bool.  Raises ValueError for other values,
    except where `ignored`."""
    found = mask != 0
    other = found & (mask != 1) & ~ignored
    if other.any():
        raise ValueError("%s: %s is neither 0 nor 1" % (
            name, mask[other][0]))
    return found


def _are_shifted(batch: Batch, name: str, shifted: Optional[bool]) -> bool:
    """True if each token has the label of the next token."""
    if shifted is not None:
        return bool(shifted)
    header = getattr(batch, "header", None)
    if header is None:
        raise ValueError("%s: no header says whether these labels are shifted "
                         "already: give shifted=" % name)
    return header.labels == SHIFTED


class ContextPart(NamedTuple):
    """The result of context_parallel().  Arrays of all ranks have equal shapes;
    positions of the batch are those of batch["tokens"].reshape(-1)."""
    tokens: np.ndarray          # [S, L / size]
    targets: np.ndarray         # int64 [S, L / size], as in targets()
    positions: np.ndarray       # int32 [S, L / size], in the whole sequence
    segments: np.ndarray        # int32 [S, L / size], as in segments()
    sequence_ids: np.ndarray    # int64 [S, L / size], as in sequence_ids()
    channels: Dict[str, np.ndarray]  # [S, L / size, ...], as they are stored
    index: np.ndarray           # int64 [S, L / size], position of the batch
    order: np.ndarray           # int64 [S * L], inverse of all ranks' indices
    cu_seqlens: np.ndarray      # int32, boundaries in this rank's row
    max_seqlen: int             # the longest sequence in this rank's row
    whole_cu_seqlens: np.ndarray    # int32, boundaries without padding
    whole_cu_seqlens_padded: np.ndarray     # int32, merged_cu() of the view
    whole_max_seqlen: int       # max_seqlen() of the view


def context_parallel(batch: Batch, rank: int, size: int, view: str = "ghost",
                     labels: Optional[str] = None,
                     shifted: Optional[bool] = None) -> ContextPart:
    """The tokens of one of the `size` ranks of context parallelism, which
    divide each sequence among them.  The packs must be made by packstream
    --align=N, where N is a multiple of 2 * size; otherwise raises ValueError.

    Each sequence, with its padding, is cut into 2 * size equal chunks.  Rank r
    has chunk r and chunk 2 * size - 1 - r, in this order, of every sequence,
    including ghosts.  All ranks therefore have equally many pairs of query and
    key in causal attention.  Megatron-LM and Transformer Engine divide packed
    sequences in the same way.  With one rank, nothing is cut.

    The next token can be on another rank, so a loss that shifts labels would be
    wrong: use `targets`, which `labels` and `shifted` select as in targets().
    `channels` has the other per-token channels, without the channel "labels".

    np.concatenate([part.tokens.reshape(-1) for all ranks])[order] is
    batch["tokens"].reshape(-1), and likewise for keys and values that are
    gathered from all ranks.  Ring attention needs cu_seqlens and max_seqlen;
    Transformer Engine, which divides by `size` itself, needs those of the whole
    batch.  context_keys() is for kernels that gather keys."""
    cu = _context_cu(batch, size, view)
    index = context_index(batch, rank, size)

    def own(array: np.ndarray) -> np.ndarray:
        return array if size == 1 else \
            array.reshape(-1, *array.shape[2:])[index]
    longest = max_seqlen(batch, view)
    return ContextPart(
        own(batch["tokens"]), own(targets(batch, labels, shifted)),
        own(positions(batch, view, cu)), own(segments(batch)),
        own(sequence_ids(batch, view).reshape(batch["tokens"].shape)),
        {name: own(batch[name]) for name in _of_tokens(batch)
         if name not in ("tokens", "labels")},
        index, _context_order(cu, size),
        (cu // size).astype(np.int32), longest // size,
        _boundaries(seqused(batch, view)), cu.astype(np.int32), longest)


def context_index(batch: Batch, rank: int, size: int) -> np.ndarray:
    """int64 [S, L / size]: the index of context_parallel(), which also divides
    other arrays [S, L, ...]: array.reshape(-1, ...)[index]."""
    cu = _context_cu(batch, size, "ghost")
    return _chunks_index(cu, rank, size).reshape(len(batch["cu"]), -1)


class ContextKeys(NamedTuple):
    """The result of context_keys()."""
    index: np.ndarray           # int64, of the rows of all ranks, joined
    cu_seqlens_q: np.ndarray    # int32, boundaries of chunks of queries
    cu_seqlens_k: np.ndarray    # int32, boundaries of their keys
    max_seqlen_q: int
    max_seqlen_k: int


def context_keys(batch: Batch, rank: int, size: int, view: str = "ghost"
                 ) -> ContextKeys:
    """Keys for a rank of context_parallel(), for a kernel in which the last
    query of a span sees all keys of the span, as in flash-attention 2.1 and
    later if causal=True.

    Each chunk is a span of queries, and its keys are those from the start of
    its sequence to the end of the chunk: in total S * L * (2 * size + 1) /
    (2 * size) for each rank.  Padding comes after the tokens, so no token
    attends to it."""
    cu = _context_cu(batch, size, view)
    chunks, cuts = _own_chunks(rank, size)
    lengths = np.diff(cu)[:, None] // cuts
    spans = (lengths * (chunks + 1)).reshape(-1)
    keys = _ranges(np.repeat(cu[:-1], len(chunks)), spans)
    longest = max_seqlen(batch, view) // cuts
    return ContextKeys(
        _context_order(cu, size)[keys],
        _boundaries(np.repeat(lengths, len(chunks))), _boundaries(spans),
        longest, longest * (cuts - rank))


def _own_chunks(rank: int, size: int) -> Tuple[np.ndarray, int]:
    """Returns the rank's chunks of a sequence, and the number of all chunks."""
    if not 0 <= rank < size:
        raise ValueError("no rank %d of %d: ranks are 0 to size - 1"
                         % (rank, size))
    if size == 1:
        return np.zeros(1, np.int64), 1
    return np.array([rank, 2 * size - 1 - rank]), 2 * size


def _context_cu(batch: Batch, size: int, view: str) -> np.ndarray:
    """Returns merged_cu as int64.  Raises ValueError if `size` ranks cannot
    divide the sequences."""
    if view == "ragged":
        raise ValueError("view 'ragged' removes the padding that makes chunks "
                         "equal: use 'ghost' or 'static'")
    header = getattr(batch, "header", None)
    align = header.align if header else int(np.gcd(
        np.gcd.reduce(batch["cu"], None), batch["tokens"].shape[1]))
    if size > 1 and align % (2 * size):
        raise ValueError(
            "sequences are aligned to %d, but %d ranks need a multiple of %d: "
            "pack with packstream --align=%d"
            % (align, size, 2 * size, 2 * size))
    return _merged(batch, view)


def _chunks_index(cu: np.ndarray, rank: int, size: int) -> np.ndarray:
    """Returns the positions of the rank's chunks, in order."""
    chunks, cuts = _own_chunks(rank, size)
    if size == 1:
        return np.arange(cu[-1])
    lengths = np.diff(cu)[:, None] // cuts
    return _ranges((cu[:-1, None] + lengths * chunks).reshape(-1),
                   np.repeat(lengths, len(chunks)))


def _context_order(cu: np.ndarray, size: int) -> np.ndarray:
    """Returns, for each position of the batch, where the rows of all ranks have
    it, one rank after another."""
    if size == 1:
        return np.arange(cu[-1])
    found = np.empty(cu[-1], np.int64)
    found[np.concatenate([_chunks_index(cu, rank, size)
                          for rank in range(size)])] = np.arange(cu[-1])
    return found


def _boundaries(lengths: np.ndarray) -> np.ndarray:
    return np.append(0, np.cumsum(lengths)).astype(np.int32)


def _ranges(starts: np.ndarray, lengths: np.ndarray) -> np.ndarray:
    """Returns starts[i], ..., starts[i] + lengths[i] - 1 for all i, joined."""
    ends = np.cumsum(lengths)
    return np.repeat(starts - ends + lengths, lengths) + np.arange(
        ends[-1] if len(ends) else 0)


def _of_tokens(batch: Batch) -> List[str]:
    """Returns the per-token arrays, including vectors.  Shapes alone cannot
    identify them, because per-sequence channels have the same shape if the
    depth is L."""
    header = getattr(batch, "header", None)
    names = [name for name in batch if name in header.row.names] if header \
        else batch
    return [name for name in names if name + CU not in batch and
            batch[name].shape[:2] == batch["tokens"].shape]


def _in_use(batch: Batch, columns: int, more: int = 0) -> np.ndarray:
    """bool [S, columns]: the first n of each row, plus `more`."""
    return np.arange(-more, columns - more) < batch["n_seq"][:, None]


def _seq_tok(batch: Batch) -> Optional[np.ndarray]:
    """[S, D]: tokens of aligned sequences; None if not aligned."""
    return batch["seq_tok"] if "seq_tok" in batch else None


def _cu(batch: Batch, of: Optional[str]) -> np.ndarray:
    """[S, D + 2]: the boundaries of the sequences, or of the lists."""
    if of is not None and of + CU not in batch:
        raise ValueError("%r is not a list channel (list channels: %s)" % (
            of, ", ".join(name[:-len(CU)] for name in batch
                          if name.endswith(CU)) or "none"))
    return batch["cu" if of is None else of + CU]


def _spans(batch: Batch, view: str, tokens: bool,
           of: Optional[str] = None) -> np.ndarray:
    """int32: lengths of all sequences, or lists, in one row, excluding gaps if
    `tokens` is set."""
    cu, seq_tok = _cu(batch, of), None if of else _seq_tok(batch)
    lengths = cu[:, 1:] - cu[:, :-1]
    if tokens and seq_tok is not None:
        used = _in_use(batch, seq_tok.shape[1])
        lengths[:, :-1][used] = seq_tok[used]
    if view == "static":
        header = getattr(batch, "header", None)
        if header and header.depth is None:     # the maximum possible
            more = max(header.most + 1 - lengths.shape[1], 0)
            lengths = np.pad(lengths, ((0, 0), (0, more)))
        return lengths.reshape(-1)
    more = {"ragged": 0, "ghost": 1}[view]
    return lengths[_in_use(batch, lengths.shape[1], more)]


def _merged(batch: Batch, view: str, of: Optional[str] = None) -> np.ndarray:
    """int64: boundaries of all packs in one row; checked to fit int32."""
    lengths = _spans(batch, view, view == "ragged", of)
    merged = np.zeros(lengths.size + 1, np.int64)
    np.cumsum(lengths, out=merged[1:])
    if merged[-1] >= 1 << 31:
        raise OverflowError("a batch of 2^31 positions or more")
    return merged


def _edges(batch: Batch, capacity: int) -> np.ndarray:
    """The starts of sequences, in one row of all S * L positions."""
    cu = batch["cu"]
    edges = cu + np.arange(len(cu))[:, None] * capacity
    return edges[_in_use(batch, cu.shape[1])]


def _ends(batch: Batch, capacity: int) -> np.ndarray:
    """The ends of the sequences' tokens, in the same row."""
    return _edges(batch, capacity) + _spans(batch, "ragged", True)
