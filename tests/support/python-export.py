"""python-export.py - python -m packstream.export: its columns compared with
those of packcat --to=trl, and in the loaders of the trainers they are for.

tests/tree/export.bats calls the functions at the end by name: see forked.py.
A check succeeds, or fails with a traceback.

SPDX-License-Identifier: MIT
"""

import contextlib
import io
import json
import os
import signal
import subprocess
import sys

import numpy as np

import forked
import packstream
from packstream import export, views
from packstream.rows import batch_of_rows

COMMAND = [sys.executable, "-m", "packstream.export"]
IGNORED = -100


def exported(path, name, form):
    """Its rows, from a file."""
    assert export.main([path, "-o", name, "--to=" + form]) == 0
    assert not os.path.exists(name + ".new")
    return rows_of(name)


def rows_of(name):
    import pyarrow as pa
    import pyarrow.parquet
    if name.endswith(".parquet"):
        return pyarrow.parquet.read_table(name).to_pylist()
    with pa.OSFile(name) as file:
        return pa.ipc.open_stream(file).read_all().to_pylist()


def split(row, lengths):
    ends = np.cumsum([0, *lengths])
    return [row[a:b] for a, b in zip(ends, ends[1:])]


def packed(packcat, path):
    """Each pack as a list of sequences of (token, label, source): a label is
    IGNORED where a sequence begins."""
    lines = subprocess.run([packcat, "--to=trl", path], check=True,
                           capture_output=True).stdout.splitlines()
    for row in map(json.loads, lines):
        tokens = row["input_ids"]
        labels = row.get("labels") or [
            token if counts else IGNORED for token, counts in zip(
                tokens, row.get("loss_mask", [1] * len(tokens)))]
        pack = []
        for own in zip(*(split(column, row["seq_lengths"])
                         for column in (tokens, labels))):
            own[1][0] = IGNORED
            pack.append(own)
        yield pack, row


def flat(lists):
    return [value for one in lists for value in one]


def columns(packcat, capacity, *paths):
    """Every column of every form: labels, a mask, aligned sequences."""
    capacity = int(capacity)
    width = capacity // 8 * 8 + 8
    for path in paths:
        forms = [exported(path, "x.parquet", "trl"),
                 exported(path, "x.parquet", "megatron-bridge"),
                 exported(path, "x.arrow", "llama-factory")]
        packs = list(packed(packcat, path))
        assert len(packs) > 9 and all(len(rows) == len(packs)
                                      for rows in forms)
        for (pack, given), trl, bridge, factory in zip(packs, *forms):
            tokens = flat(own for own, _ in pack)
            labels = flat(own for _, own in pack)
            lengths = [len(own) for own, _ in pack]
            assert trl == dict(given, labels=labels)
            assert bridge == {
                "input_ids": tokens, "loss_mask": flat(
                    [int(label != IGNORED) for label in own[1:]] + [0]
                    for _, own in pack),
                "seq_start_id": np.cumsum([0, *lengths])[:-1].tolist()}
            assert {len(column) for column in factory.values()} == {width}
            assert widths(factory, "attention_mask") == flat(
                [i] * n for i, n in enumerate(lengths, 1))
            assert widths(factory, "labels", factory["attention_mask"]) == \
                labels
            assert widths(factory, "input_ids",
                          factory["attention_mask"]) == tokens
            assert widths(factory, "position_ids",
                          factory["attention_mask"]) == flat(map(range,
                                                                 lengths))
            padding = [set(column[i] for i in range(width)
                           if not factory["attention_mask"][i])
                       for column in factory.values()]
            assert padding == [{3}, {0}, {IGNORED}, {0}]


def vectors():
    """The trl form has vectors per token and per sequence; pack_dataset's rows
    are alike.  The other forms have no other channels."""
    rng = np.random.default_rng(1)
    given = [{"tokens": np.arange(n), "frames": rng.random((n, 3), np.float32),
              "vector": rng.integers(0, 9, 2)}
             for n in rng.integers(1, 20, 60)]
    with packstream.TokenWriter("v.tok", vocab_size=100, channels={
            "vector": packstream.Channel("int32[2]", per="sequence"),
            "frames": "float32[3]"}) as writer:
        for one in given:
            writer.write(one)
    subprocess.run(["packstream", "-q", "-L32", "-o", "v.pks", "v.tok"],
                   check=True)
    ids = iter(packstream.open("v.pks")[:].sequences["seq_id"].tolist())
    for name in "v.parquet", "v.arrow":
        rows = exported("v.pks", name, "trl")
    for row in rows:
        for frames, vector in zip(split(row["frames"], row["seq_lengths"]),
                                  row["vector"]):
            one = given[next(ids)]
            assert np.array_equal(frames, one["frames"])
            assert np.array_equal(vector, one["vector"])
    assert next(ids, None) is None
    batch = batch_of_rows(rows[:3])
    assert batch["frames"].shape == batch["tokens"].shape + (3,)
    for form in "megatron-bridge", "llama-factory":
        assert "frames" not in exported("v.pks", "x.arrow", form)[0]
    try:
        views.labels(packstream.open("v.pks")[:], "frames")
    except ValueError as problem:
        assert "has vectors" in str(problem)
    else:
        raise AssertionError("labels of vectors")


def lists():
    """The trl form has lists and their lengths, as rows of pack_dataset do."""
    rng = np.random.default_rng(2)
    given = [{"tokens": np.arange(n), "text": rng.integers(0, 9, n % 7),
              "edges": rng.integers(0, 9, (n % 5, 2))}
             for n in rng.integers(1, 20, 60)]
    with packstream.TokenWriter("l.tok", vocab_size=100, channels={
            "text": "uint8[]", "edges": "int32[2][]"}) as writer:
        for one in given:
            writer.write(one)
    subprocess.run(["packstream", "-q", "-L32", "--budget=text:20", "-o",
                    "l.pks", "l.tok"], check=True)
    packs = packstream.open("l.pks")[:]
    for name in "l.parquet", "l.arrow":
        rows = exported("l.pks", name, "trl")
        ids = iter(packs.sequences["seq_id"].tolist())
        for row in rows:
            for text, edges in zip(split(row["text"], row["text_lengths"]),
                                   split(row["edges"], row["edges_lengths"])):
                one = given[next(ids)]
                assert text == one["text"].tolist()
                assert edges == one["edges"].tolist()
        assert next(ids, None) is None
    batch = batch_of_rows(rows)
    for one, other in zip(batch.lists_of("edges"), packs.lists_of("edges")):
        assert np.array_equal(one, other)
    assert "text" not in exported("l.pks", "x.arrow", "llama-factory")[0]


def widths(row, name, mask=None):
    """The values of a column that are not padding."""
    return [value for value, used in zip(row[name], mask or row[name])
            if used]


def pipes(path):
    """From a pipe to a pipe, the same; a reader that exits is not an error."""
    wanted = exported(path, "x.arrow", "trl")
    with open(path, "rb") as file, open("y.arrow", "wb") as output:
        subprocess.run("cat | %s --to=trl | cat" % " ".join(COMMAND),
                       shell=True, check=True, stdin=file, stdout=output)
    assert rows_of("y.arrow") == wanted
    os.mkfifo("pipe")
    reader = subprocess.Popen(["sh", "-c", "cat <pipe >z.arrow"])
    assert export.main([path, path, "-o", "pipe", "--to=trl"]) == 0
    assert reader.wait() == 0 and rows_of("z.arrow") == wanted * 2
    found = subprocess.run(
        "%s --to=trl %s | head -c 9 >/dev/null; echo ${PIPESTATUS[0]}"
        % (" ".join(COMMAND), " ".join([path] * 200)), shell=True,
        executable="/bin/bash", capture_output=True)
    assert found.stdout == b"141\n" and not found.stderr


def refused(path, values, shifted):
    """Messages, exit status, and an output that stays unchanged."""
    with open(path, "rb") as whole, open("cut.pks", "wb") as cut:
        cut.write(whole.read()[:-20])
    with open("x.parquet", "w") as file:
        file.write("older")
    before = sorted(os.listdir())
    for status, wrong, why in (
            (65, ["cut.pks"], "cut"),
            (65, ["--to=megatron-bridge", values], "predicts the next token"),
            (65, ["--to=trl", shifted], "use views.targets()"),
            (64, [path, "--to=nemo"], "invalid choice: 'nemo'"),
            (64, [path, "--to=mds"], "name it with -o"),
            (64, [path, "-o", "x.json"], "must end in .parquet or .arrow"),
            (1, ["nowhere.pks"], "nowhere.pks"),
            (1, [path, "-o", path], "is both input and output"),
            (1, [path, "-o", "/dev/full"], "No space left")):
        more = [] if "--to" in " ".join(wrong) else ["--to=trl"]
        more += [] if "-o" in wrong or "--to=mds" in wrong else [
            "-o", "x.parquet"]
        told = io.StringIO()
        with contextlib.redirect_stderr(told):
            found = export.main(wrong + more)
        assert found == status and why in told.getvalue(), (
            wrong, found, told.getvalue())
        assert sorted(os.listdir()) == before
    with open("x.parquet") as file:
        assert file.read() == "older"


def stopped(path):
    """A signal ends it, and no new file is left."""
    with open("x.parquet", "w") as file:
        file.write("older")
    child = subprocess.Popen([*COMMAND, "--to=trl", "-o", "x.parquet",
                              *[path] * 3000], stderr=subprocess.PIPE,
                             preexec_fn=lambda: signal.signal(
                                 signal.SIGINT, signal.default_int_handler))
    while not os.path.exists("x.parquet.new"):
        assert child.poll() is None
    child.send_signal(signal.SIGINT)
    assert child.wait() == -signal.SIGINT and not child.stderr.read()
    assert not os.path.exists("x.parquet.new")
    with open("x.parquet") as file:
        assert file.read() == "older"


# ---------------------------------------------------------------------
# Loaders

def same(found, wanted, names):
    for name in names:
        assert np.array_equal(found[name], wanted[name]), name


def llama_factory(path):
    """Its own loader reads the saved rows; its collator and mask."""
    import torch
    from datasets import Dataset
    from llamafactory.data.collator import (MultiModalDataCollatorForSeq2Seq,
                                            SFTDataCollatorWith4DAttentionMask)
    from llamafactory.data.loader import get_dataset_module
    from datasets import load_from_disk
    exported(path, "x.arrow", "llama-factory")
    Dataset.from_file("x.arrow").save_to_disk("tokenized")
    data = get_dataset_module(load_from_disk("tokenized"))["train_dataset"]
    packs = packstream.open(path)
    assert len(data) == len(packs)

    from llamafactory.data.mm_plugin import get_mm_plugin
    from tokenizers import Tokenizer, models
    from transformers import PreTrainedTokenizerFast

    class Template:
        mm_plugin = get_mm_plugin("base")
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=Tokenizer(models.WordLevel({"<pad>": 0})),
        pad_token="<pad>")
    collate = SFTDataCollatorWith4DAttentionMask(
        tokenizer=tokenizer, template=Template, pad_to_multiple_of=8,
        block_diag_attn=True, attn_implementation="sdpa")
    assert issubclass(type(collate), MultiModalDataCollatorForSeq2Seq)
    found = collate([data[i] for i in range(4)])
    batch = packs[:4]
    segments = views.segments(batch)
    kept = segments > 0
    length = kept.shape[1]
    assert found["input_ids"].shape == found["position_ids"].shape
    for name, wanted in (("input_ids", batch["tokens"]),
                         ("labels", views.labels(batch)),
                         ("position_ids", views.positions(batch))):
        assert (found[name][:, :length].numpy()[kept] == wanted[kept]).all()
    sees = (found["attention_mask"] == 0)[:, 0, :length, :length].numpy()
    order = np.arange(length)
    assert (sees == ((segments[:, :, None] == segments[:, None, :]) &
                     kept[:, :, None] &
                     (order[:, None] >= order[None]))).all()
    assert isinstance(found["attention_mask"], torch.Tensor)


def bare(*names):
    """Packages of megatron without their imports, such as Transformer
    Engine, which is built for a GPU."""
    import importlib.util
    import types
    root = importlib.util.find_spec("megatron").submodule_search_locations[0]
    for name in names:
        module = sys.modules["megatron." + name] = types.ModuleType(name)
        module.__path__ = [os.path.join(root, *name.split("."))]


def megatron_bridge(path):
    """The batch of its packed dataset has the tokens and targets of the packs,
    except the last token of each sequence, which predicts nothing."""
    bare("bridge", "bridge.data", "bridge.data.datasets",
         "bridge.data.packing", "bridge.training", "bridge.training.utils",
         "bridge.utils")
    try:
        from megatron.bridge.data.packing.parquet import (
            GPTSFTPackedParquetDataset as Dataset)
    except ImportError:     # 0.3 and earlier: other files, but the same rows
        from megatron.bridge.data.datasets.sft import (
            GPTSFTPackedDataset as Dataset)
    rows = exported(path, "x.idx.parquet", "megatron-bridge")
    packs = packstream.open(path)

    class Here(Dataset):
        def __init__(self):
            self.indexed_dataset, self.samples_mapping = rows, None
            self.answer_only_loss, self.pad_to_max_length = True, True
            self.max_seq_length, self.pad_seq_length_to_mult = \
                packs.header.capacity, 16
            self._pad_seq_to_mult, self.pad_cu_seqlens = 1, False
            self.return_cu_seqlen = True
            self.tokenizer = type("Tokenizer", (), {"eos_id": 1})
    data = Here()
    for i in range(len(packs)):
        found = data.collate_fn([data[i]])
        batch = packs[i:i + 1]
        targets = views.targets(batch)[0]
        ends = np.cumsum(views.seqused(batch, "ragged"))
        n_tok = ends[-1]
        kept = np.setdiff1d(np.arange(n_tok), ends - 1)
        n = len(kept)
        assert (found["tokens"][0, :n].numpy() ==
                batch["tokens"][0][kept]).all()
        assert (found["position_ids"][0, :n].numpy() ==
                views.positions(batch)[0][kept]).all()
        counted = found["loss_mask"][0].numpy() == 1
        assert (np.flatnonzero(counted) ==
                np.flatnonzero(targets[kept] != IGNORED)).all()
        assert (found["labels"][0].numpy()[counted] ==
                targets[targets != IGNORED]).all()


def mds(path):
    """StreamingDataset reads the rows; an existing output is refused."""
    from streaming import StreamingDataset
    assert export.main([path, "-o", "x.mds", "--to=mds"]) == 0
    assert export.main([path, "-o", "x.mds", "--to=mds"]) == 1
    os.mkdir("y.mds.new")
    with open("y.mds.new/mine", "w"):
        assert export.main([path, "-o", "y.mds", "--to=mds"]) == 1
    assert os.listdir("y.mds.new") == ["mine"]
    os.rename("y.mds.new/mine", "y.mds.new/index.json")
    assert export.main([path, "-o", "y.mds", "--to=mds"]) == 0
    assert not os.path.exists("y.mds.new")
    packs = packstream.open(path)
    rows = StreamingDataset(local="x.mds", shuffle=False, batch_size=1)
    assert len(rows) == len(packs)
    for i, row in enumerate(rows):
        batch = packs[i:i + 1]
        same(row, {"tokens": batch["tokens"][0],
                   "labels": views.labels(batch)[0],
                   "seq_lengths": views.seqused(batch, "ragged")},
             ("tokens", "labels", "seq_lengths"))


if __name__ == "__main__":
    forked.main(globals())
