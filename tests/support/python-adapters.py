"""python-adapters.py - the adapters of python/packstream with the packages
that they are made for.

tests/tree/python.bats calls the functions at the end by name:

    python3 python-adapters.py CHECK FILE...

A check prints nothing and exits with 0, or fails with a traceback.

SPDX-License-Identifier: MIT
"""

import collections
import functools
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)),
                                "../../python"))

# Arrays are so small that threads would only wait for each other.
os.environ["OMP_NUM_THREADS"] = "1"

import numpy as np
import torch
from torch.utils.data import DataLoader

from packstream import packs, views as packviews
from python_naive import IGNORED, Naive, labels_of, raises, read_naively


def sequences(batch):
    """The sequences of a batch, one after the other, as lists."""
    return [row["tokens"][begin:begin + length].tolist()
            for row in rows_of(batch)
            for begin, length in zip(row["cu"], lengths_of(row))]


def lengths_of(row):
    """Tokens of each sequence of a pack."""
    n = int(row["n_seq"])
    return row["seq_tok"][:n] if "seq_tok" in row else np.diff(
        row["cu"][:n + 1])


def rows_of(batch):
    return [{name: array[i] for name, array in batch.items()}
            for i in range(len(batch["cu"]))]


def same(tensor, wanted, dtype):
    assert tensor.dtype == dtype, tensor.dtype
    assert tensor.is_contiguous()
    assert tensor.shape == torch.tensor(wanted).shape
    assert torch.equal(tensor, torch.tensor(wanted, dtype=dtype))


# ---------------------------------------------------------------------
# torch

def numbers(loader):
    """The index of each pack that a loader gives, in order."""
    return [int(index) for batch in loader for index in batch["index"]]


def dataset(path):
    from packstream.torch import PackDataset
    source = packs.open_packs(path)
    first = next(iter(PackDataset(path, 4)))
    wanted = next(source.batches(4))
    assert list(first) == list(wanted)
    for name, array in wanted.items():
        dtype = torch.from_numpy(array.copy().astype(
            np.int64 if array.dtype.kind == "u" and array.itemsize > 1
            else array.dtype)).dtype
        same(first[name], array.astype(np.int64).tolist(), dtype)
    dealt_out(path, len(source))
    stream(path, len(source))
    halves(path)


def dealt_out(path, count):
    """Each pack once, over ranks and workers, in whole batches."""
    from packstream.torch import PackDataset
    for ranks, workers in ((1, 0), (1, 1), (1, 3), (2, 2), (3, 0)):
        found = []
        for rank in range(ranks):
            loader = DataLoader(PackDataset(path, 3, rank, ranks),
                                batch_size=None, num_workers=workers)
            mine = numbers(loader)
            assert all(i % ranks == rank for i in mine)
            assert numbers(loader) == mine      # the next epoch
            found += mine
        assert sorted(found) == list(range(count)), (ranks, workers)
    order = np.random.default_rng(3).permutation(count)
    shuffled = PackDataset(path, 3, order=order)
    assert numbers(shuffled) == order.tolist()
    loader = DataLoader(shuffled, batch_size=None, num_workers=2)
    assert sorted(numbers(loader)) == list(range(count))


def stream(path, count):
    """A function that opens a stream is called by each worker."""
    from packstream.torch import PackDataset
    data = PackDataset(functools.partial(open, path, "rb"), 3)
    for workers in (0, 2):
        loader = DataLoader(data, batch_size=None, num_workers=workers)
        assert sorted(numbers(loader)) == list(range(count))


def halves(path):
    """After a stop at any batch, a second object resumes."""
    from packstream.torch import PackDataset
    for rank, ranks in ((0, 1), (1, 2)):
        whole = numbers(PackDataset(path, 2, rank, ranks))
        for taken in range(len(whole) // 2 + 1):
            data = PackDataset(path, 2, rank, ranks)
            batches = iter(data)
            before = numbers([next(batches) for _ in range(taken)])
            other = PackDataset(path, 2, rank, ranks)
            other.load_state_dict(data.state_dict())
            assert before + numbers(other) == whole
            assert numbers(other) == whole      # the next epoch
            assert numbers(data) == whole       # one that was abandoned
    data = PackDataset(path, 2)
    pairs = list(zip(data, data))               # two at a time
    assert numbers(a for a, _ in pairs) == numbers(b for _, b in pairs)


def stateful(path):
    from packstream.torch import PackDataset
    from torchdata.stateful_dataloader import StatefulDataLoader

    def loader(workers):
        data = PackDataset(path, 2, shuffle=workers or None)
        return StatefulDataLoader(data, batch_size=None, num_workers=workers)

    for workers in (0, 2):
        whole = numbers(loader(workers))
        for taken in (0, 1, 3, 4):
            first = loader(workers)
            batches = iter(first)
            before = numbers([next(batches) for _ in range(taken)])
            state = first.state_dict()
            del batches, first
            second = loader(workers)
            second.load_state_dict(state)
            assert before + numbers(second) == whole, (workers, taken)
        assert numbers(second) == whole         # the next epoch
    persistent(path)
    half = StatefulDataLoader(PackDataset(path, 2, 0, 2, shuffle=2),
                              batch_size=None, num_workers=2)
    next(iter(half))
    second.load_state_dict(half.state_dict())
    try:
        numbers(second)
        raise AssertionError("a state of one of two ranks")
    except ValueError as error:
        assert "shards is 2, not 4" in str(error), error


def persistent(path):
    """The state after a batch of the second epoch, when a persistent worker
    has not returned one yet; the first epoch was abandoned."""
    from packstream.torch import PackDataset
    from torchdata.stateful_dataloader import StatefulDataLoader

    def loader():
        data = PackDataset(path, 2, shuffle=1)
        return data, StatefulDataLoader(data, batch_size=None, num_workers=2,
                                        persistent_workers=True)

    data, first = loader()
    batches = iter(first)
    for _ in range(4):
        next(batches)
    data.set_epoch(1)
    batches = iter(first)
    before = numbers([next(batches)])
    state = first.state_dict()
    whole = before + numbers(batches)
    data, second = loader()
    data.set_epoch(1)
    second.load_state_dict(state)
    assert before + numbers(second) == whole


# ---------------------------------------------------------------------
# transformers

def flattening(path):
    from packstream import hf
    from transformers import DataCollatorWithFlattening
    collate = DataCollatorWithFlattening(return_flash_attn_kwargs=True)
    for size in (1, 3, 100):
        for batch in packs.open_packs(path).batches(size):
            compare_flat(hf.flattened(batch, "tokens"), collate(
                [{"input_ids": row} for row in sequences(batch)],
                return_tensors="pt"))
            kinds = packviews.compact(batch, "kind").tolist()
            with_labels = []
            for row in sequences(batch):
                with_labels.append({"input_ids": row,
                                    "labels": kinds[:len(row)]})
                del kinds[:len(row)]
            compare_flat(hf.flattened(batch, "kind"),
                         collate(with_labels, return_tensors="pt"))


def model_loss(path):
    """No sequence sees another, however boundaries are found."""
    from packstream import hf
    from transformers import LlamaConfig, LlamaForCausalLM
    torch.manual_seed(2)
    for name in ("sdpa", "eager"):
        model = LlamaForCausalLM(LlamaConfig(
            vocab_size=100, hidden_size=32, intermediate_size=32,
            num_hidden_layers=2, num_attention_heads=2,
            attn_implementation=name))
        for batch in packs.open_packs(path).batches(3):
            found = model(**hf.flattened(batch, "tokens")).loss
            losses = [(torch.nn.functional.cross_entropy(
                model(input_ids=torch.tensor([row])).logits[0, :-1],
                torch.tensor(row[1:]), reduction="sum"), len(row) - 1)
                for row in sequences(batch) if len(row) > 1]
            total, count = map(sum, zip(*losses))
            torch.testing.assert_close(found, total / count)


def pairs(aligned, path):
    """Batches of two files that differ in the convention of labels."""
    return zip(*(packs.open_packs(name).batches(3)
                 for name in (aligned, path)))


def shifted_flat(aligned, path):
    """Models shift labels themselves, so they get unshifted ones."""
    from packstream import hf
    for one, other in pairs(aligned, path):
        found = hf.flattened(other, "labels")
        compare_flat(found, hf.flattened(one))
        own = packviews.compact(one, "labels")
        own[found["cu_seq_lens_q"][:-1].numpy()] = IGNORED
        same(found["labels"], [own.tolist()], torch.int64)


def compare_flat(found, wanted):
    wanted = dict(wanted, use_cache=False)
    assert set(found) == set(wanted), (list(found), list(wanted))
    for name, value in wanted.items():
        assert type(found[name]) is type(value), name
        if isinstance(value, torch.Tensor):
            assert found[name].dtype == value.dtype, name
            assert found[name].is_contiguous()
            assert torch.equal(found[name], value), name
        else:
            assert found[name] == value, name


# ---------------------------------------------------------------------
# Labels

def by_default(*paths):
    """Each adapter has the targets of the input rows: the channel of labels,
    or the tokens that all masks keep."""
    from packstream import PackDataset, flash_attn, hf, megatron
    for path in paths:
        source, counts = packs.open_packs(path), collections.Counter()
        packed, head = read_naively(path, len(source)), source.header
        loader = DataLoader(PackDataset(path, 3, convert=hf.rows),
                            batch_size=None)
        for number, batch, loaded in zip(range(0, len(packed), 3),
                                         source.batches(3), loader):
            naive = Naive(packed[number:number + 3], head.capacity,
                          head.depth, head.align)
            labels = torch.tensor(naive.labels(labels_of))
            targets = torch.tensor(naive.targets(labels_of)).reshape(1, -1)
            real = torch.from_numpy(~packviews.padding(batch))
            single = [packs.Batch(row, batch.header) for row in rows_of(batch)]
            fields = megatron.fields(batch)
            found = {
                "rows": (hf.rows(batch)["labels"], labels),
                "collate": (hf.collate(single)["labels"], labels),
                "PackDataset": (loaded["labels"], labels),
                "flattened": (hf.flattened(batch)["labels"],
                              labels[real][None]),
                "varlen": (flash_attn.varlen(batch)[1][None], targets),
                "ragged": (flash_attn.varlen(batch, "ragged")[1],
                           targets[real.reshape(1, -1)]),
                "megatron": (fields["labels"].where(
                    fields["loss_mask"] > 0, IGNORED), targets)}
            for name, (array, wanted) in found.items():
                assert torch.equal(array, wanted), (path, name)
                counts[name] += int((array != IGNORED).sum())
            every = hf.collate(single, labels="tokens")["labels"]
            assert torch.equal(every, torch.tensor(naive.labels()))
        given = sum(label != IGNORED for pack in packed for row in pack
                    for label in labels_of(row)[1:])
        assert set(counts.values()) == {given}, (counts, given)
    raises(ValueError, "no channel 'label'", next, iter(
        PackDataset(path, 3, convert=hf.rows, labels="label")))
    raises(ValueError, "convert", PackDataset, path, 3, labels="labels")


def masked(labelled, mask):
    """Bidirectional models get each token's own label, the first one's too,
    and no tokens instead of labels."""
    from packstream import hf
    for batch in packs.open_packs(labelled).batches(3):
        own = np.where(packviews.padding(batch), IGNORED, batch["labels"])
        assert torch.equal(hf.masked_rows(batch)["labels"],
                           torch.from_numpy(own))
    raises(ValueError, "no channel 'labels'", hf.masked_rows,
           next(packs.open_packs(mask).batches(3)))


# ---------------------------------------------------------------------
# Attention

def attend(q, k, v, mask):
    """Attention of rows [T, heads, d] to the rows that the mask names."""
    scores = torch.einsum("ihd,jhd->hij", q, k) / q.shape[-1] ** 0.5
    scores = scores.masked_fill(~mask, float("-inf")).softmax(-1)
    return torch.einsum("hij,jhd->ihd", scores, v)


def block_attention(q, k, v, cu, causal, used=None):
    """Attention over all rows with a mask that `cu` defines.  Rows after the
    last boundary are NaN: a kernel does not write them.  All rows of each
    sequence are seen, or the first `used`."""
    total = len(q)
    member = torch.bucketize(torch.arange(total), cu[1:].long(), right=True)
    mask = member[:, None] == member[None, :]
    if used is not None:
        mask &= torch.arange(total) < (cu[:-1] + used)[member]
    if causal:
        mask &= torch.ones(total, total, dtype=torch.bool).tril()
    out = attend(q, k, v, mask)
    out[int(cu[-1]):] = float("nan")
    return out


def each_alone(q, k, v, lengths, causal):
    found = []
    for part in zip(*(x.split(lengths) for x in (q, k, v))):
        mask = torch.ones(len(part[0]), len(part[0]), dtype=torch.bool)
        found.append(attend(*part, mask.tril() if causal else mask))
    return torch.cat(found)


def batches_of(paths):
    for path in paths:
        yield from packs.open_packs(path).batches(3)


def varlen(*paths):
    from packstream.flash_attn import varlen as varlen_args
    torch.manual_seed(1)
    for view in ("ragged", "ghost", "static"):
        for batch in batches_of(paths):
            tokens, targets, positions, args = varlen_args(batch, view,
                                                           labels="tokens")
            next_tokens(batch, tokens, targets)
            check_args(batch, view, tokens, positions, args)
            attention(batch, view, tokens, positions, args)


def next_tokens(batch, tokens, targets):
    """The target of each token is the next one, except at the end of a
    sequence."""
    assert targets.dtype == torch.int64
    has = (targets != IGNORED).nonzero()[:, 0]
    assert torch.equal(targets[has], tokens[has + 1])
    assert len(has) == sum(len(row) - 1 for row in sequences(batch))


def check_args(batch, view, tokens, positions, args):
    """Types, devices and layout that the kernels require."""
    aligned = "seq_tok" in batch and view != "ragged"
    assert sorted(args) == ["cu_seqlens_k", "cu_seqlens_q", "max_seqlen_k",
                            "max_seqlen_q"] + ["seqused_k"] * aligned
    cu = args["cu_seqlens_q"]
    assert torch.equal(cu, args["cu_seqlens_k"])
    assert cu.dtype == torch.int32 and cu.is_contiguous() and cu.ndim == 1
    lengths = cu.diff()
    assert cu[0] == 0 and (lengths >= 0).all()
    for name in ("max_seqlen_q", "max_seqlen_k"):
        assert type(args[name]) is int
        assert args[name] >= lengths.max()
    assert tokens.dtype == positions.dtype == torch.int64
    assert len(tokens) == len(positions) == cu[-1]
    rows, depth = batch["seq_id"].shape
    if view == "static":
        assert len(cu) == rows * (depth + 1) + 1
        assert args["max_seqlen_q"] == batch["tokens"].shape[1]
    if view == "ragged":
        assert cu[-1] == batch["n_tok"].sum()


def attention(batch, view, tokens, positions, args):
    """With the boundaries, each sequence sees only itself."""
    wanted = sequences(batch)
    table = torch.randn(3, 65536, 2, 8)
    places = torch.randn(3, 64, 2, 8)
    q, k, v = (table[i][tokens] + places[i][positions] for i in range(3))
    lengths = [len(row) for row in wanted]
    ids = torch.tensor([token for row in wanted for token in row])
    restart = torch.cat([torch.arange(n) for n in lengths])
    alone = [table[i][ids] + places[i][restart] for i in range(3)]
    real = torch.from_numpy(~packviews.padding(batch)).reshape(-1)
    for causal in (False, True):
        # Without it a token sees only earlier ones, and no gap.
        for used in (args.get("seqused_k"), None)[:1 + causal]:
            out = block_attention(q, k, v, args["cu_seqlens_q"], causal, used)
            assert not out.isnan().any()
            out = out if view == "ragged" else out[real]
            torch.testing.assert_close(out,
                                       each_alone(*alone, lengths, causal))


# ---------------------------------------------------------------------
# Megatron

def megatron(*paths):
    from packstream.megatron import fields
    for static in (False, True):
        for batch in batches_of(paths):
            found = fields(batch, static, "tokens")
            params = found["packed_seq_params"]
            tokens, labels, mask, position = [], [], [], []
            for row in rows_of(batch):
                fill_row(row, tokens, labels, mask, position)
            same(found["tokens"], [tokens], torch.int64)
            same(found["labels"], [labels], torch.int64)
            same(found["loss_mask"], [mask], torch.float32)
            same(found["position_ids"], [position], torch.int64)
            view = "static" if static else "ghost"
            cu = packviews.merged_cu(batch, view)
            used = np.append(0, np.cumsum(packviews.seqused(batch, view)))
            for name in ("cu_seqlens_q", "cu_seqlens_kv"):
                same(params[name + "_padded"], cu.tolist(), torch.int32)
                same(params[name], used.tolist(), torch.int32)
            assert cu[-1] == len(tokens)
            for name in ("max_seqlen_q", "max_seqlen_kv"):
                assert params[name] >= np.diff(cu).max()


def fill_row(row, tokens, labels, mask, position):
    """What a pack adds to the single row of a micro-batch."""
    capacity, n = len(row["tokens"]), int(row["n_seq"])
    tokens += row["tokens"].tolist()
    for begin, end, length in zip(row["cu"], row["cu"][1:], lengths_of(row)):
        ids = row["tokens"][begin:begin + length].tolist()
        gap = int(end - begin - length)
        labels += ids[1:] + [0] * (gap + 1)
        mask += [1.0] * (len(ids) - 1) + [0.0] * (gap + 1)
        position += range(len(ids) + gap)
    rest = capacity - int(row["cu"][n])
    labels += [0] * rest
    mask += [0.0] * rest
    position += range(rest)


def shifted_megatron(aligned, path):
    """Megatron shifts nothing: labels are shifted once."""
    from packstream.megatron import fields
    for one, other in pairs(aligned, path):
        found = fields(other, labels="labels")
        wanted = fields(one)
        counted = other["labels"] != IGNORED
        given = np.where(counted, other["labels"], 0).reshape(1, -1)
        same(found["labels"], given.tolist(), torch.int64)
        same(found["loss_mask"], counted.reshape(1, -1).astype(int).tolist(),
             torch.float32)
        for name in ("labels", "loss_mask", "tokens"):
            assert torch.equal(found[name], wanted[name]), name


def megatron_params(path):
    from megatron.core.packed_seq_params import PackedSeqParams
    from packstream.megatron import fields
    for batch in packs.open_packs(path).batches(3):
        given = fields(batch)["packed_seq_params"]
        params = PackedSeqParams(**given)
        assert params.qkv_format == "thd"
        for name, value in given.items():
            assert getattr(params, name) is value


if __name__ == "__main__":
    globals()[sys.argv[1]](*sys.argv[2:])
