"""python-arrow.py - Arrow tables, parquet files and datasets, converted to
packs and token records and compared with the input.

tests/tree/arrow.bats calls the functions at the end by name: see forked.py.
A check succeeds, or fails with a traceback.

SPDX-License-Identifier: MIT
"""

import itertools
import json
import os
import runpy
import signal
import struct
import subprocess
import sys

import numpy as np
import pyarrow as pa
import pyarrow.parquet

import forked
import packstream
import packstream.loaders
import packstream.rows
import packstream.views
from python_naive import raises


def without_pandas():
    """Hides pandas, which is optional, here and from `python -m`."""
    with open("pandas.py", "w") as file:
        file.write("raise ImportError\n")
    sys.path.insert(0, "")


def documents(n=700, longest=50, seed=1, shortest=1):
    rng = np.random.default_rng(seed)
    return [rng.integers(0, 60000, k).tolist()
            for k in rng.integers(shortest, longest + 1, n)]


def table(rows, kind=pa.list_(pa.int64()), **more):
    """A table of several chunks, which are slices of larger arrays."""
    columns = {
        "input_ids": pa.array(rows, kind),
        "labels": pa.array([[-100, *row[1:]] if row else [] for row in rows],
                           pa.list_(pa.int32())),
        "mask": pa.array([[t % 2 == 0 for t in row] for row in rows],
                         pa.list_(pa.bool_())),
        "source": pa.array([i % 7 for i in range(len(rows))], pa.int16()),
        **more}
    whole = pa.table(columns)
    third = len(rows) // 3
    return pa.concat_tables([whole.slice(0, third), whole.slice(third, 1),
                             whole.slice(third + 1)])


def split(row, lengths):
    ends = np.cumsum([0, *lengths])
    return [row[a:b] for a, b in zip(ends, ends[1:])]


# ---------------------------------------------------------------------
# Sources

def check_sequences(source, rows, names=("labels", "mask", "source")):
    found = packstream.from_arrow(source, channels=names)
    at = 0
    for columns in found:
        offsets = columns.offsets
        assert offsets[0] == 0
        for i in range(len(columns)):
            part = slice(offsets[i], offsets[i + 1])
            row = rows[at]
            values = columns.values
            assert values["tokens"][part].tolist() == row
            if "labels" in names:
                assert values["labels"][part].tolist() == [-100, *row[1:]]
                assert values["mask"][part].tolist() == [
                    t % 2 == 0 for t in row]
                assert values["source"][i] == at % 7
            at += 1
    assert at == len(rows)


def sources():
    rows = documents()
    whole = table(rows)
    check_sequences(whole, rows)
    check_sequences(table(rows, pa.large_list(pa.int32())), rows)
    check_sequences(whole.slice(100, 301).select(["input_ids"]),
                    rows[100:401], ())
    check_sequences(whole.to_reader(), rows)
    check_sequences(whole.combine_chunks().to_batches()[0], rows)
    pa.parquet.write_table(whole, "x.parquet", row_group_size=90)
    check_sequences("x.parquet", rows)
    for name, new in (("s.arrow", pa.ipc.new_stream),
                      ("f.arrow", pa.ipc.new_file)):
        with pa.OSFile(name, "wb") as file, new(file, whole.schema) as out:
            out.write_table(whole)
        check_sequences(name, rows)
    check_sequences(["x.parquet", "f.arrow"], rows + rows, ())
    fixed = pa.array([[i, i + 1] for i in range(30)], pa.list_(pa.int32(), 2))
    check_sequences(pa.table({"input_ids": fixed.slice(10, 11)}),
                    [[i, i + 1] for i in range(10, 21)], ())


def datasets_source():
    import datasets
    rows = documents()
    whole = datasets.Dataset(table(rows))
    check_sequences(whole, rows)
    whole.save_to_disk("saved")
    check_sequences("saved", rows)
    check_sequences(datasets.load_from_disk("saved"), rows)
    some = whole.select([5, 3, 9])
    check_sequences(some, [rows[5], rows[3], rows[9]], ())
    raises(ValueError, "state.json", packstream.from_arrow, ".")


def source_refused():
    rows = [[1, 2], [3]]
    from_arrow = packstream.from_arrow

    def read(*arguments, **options):
        return list(from_arrow(*arguments, **options))
    raises(ValueError, "no column ids (columns: input_ids", from_arrow,
           table(rows), "ids")
    raises(ValueError, "no column x", from_arrow, table(rows),
           channels=["x"])
    raises(OSError, "nowhere", from_arrow, "nowhere.parquet")
    open("x.txt", "w").write("hello")
    raises(ValueError, "x.txt: neither parquet nor Arrow", from_arrow,
           "x.txt")
    raises(ValueError, "no file", from_arrow, [])
    raises(ValueError, "row 1: input_ids: the list is missing", read,
           pa.table({"input_ids": [[1], None]}))
    raises(ValueError, "row 2: input_ids: the list is missing", read, [
        pa.table({"input_ids": rows}),
        pa.table({"input_ids": pa.array([None], pa.list_(pa.int64()))})])
    raises(ValueError, "missing", read, pa.table({"input_ids": [[1, None]]}))
    for kind in (pa.string(), pa.struct([("a", pa.int8())]),
                 pa.timestamp("s")):
        raises(ValueError, "x: values of", from_arrow, pa.table({
            "input_ids": rows, "x": pa.array([None, None], kind)}),
            channels=["x"])
    raises(TypeError, "generator", from_arrow, (
        batch for batch in pa.table({"input_ids": rows}).to_batches()))
    pa.parquet.write_table(pa.table({"x": [1, 2], "input_ids": rows}),
                           "x.parquet")
    pa.parquet.write_table(pa.table({"input_ids": rows}), "y.parquet")
    raises(ValueError, "y.parquet: no column x", read,
           ["x.parquet", "y.parquet"], channels=["x"])
    os.truncate("y.parquet", os.path.getsize("y.parquet") - 20)
    raises(ValueError, "y.parquet: ", read, ["x.parquet", "y.parquet"])
    raises(ValueError, "of string, expected numbers", read,
           pa.table({"input_ids": [["a"]]}))
    raises(ValueError, "of string, expected lists", read,
           pa.table({"input_ids": ["a"]}))
    raises(ValueError, "row 1: labels: 2 values for 1 tokens", read,
           pa.table({"input_ids": rows, "labels": [[1, 2], [3, 4]]}),
           channels=["labels"])


def faults_placed():
    """Errors name the file, its row and the column."""
    good = {"input_ids": [[1, 2], [3], [4]], "labels": [[1, 2], [3], [4]],
            "source": [1, 2, 3]}

    def check(why, column, value, columns=("labels", "source"), **options):
        """Row 1 of the second file, and of the second table, is wrong."""
        bad = dict(good, **{column: [good[column][0], value,
                                     good[column][2]]})
        tables = [pa.table(good), pa.table(bad)]
        for i, one in enumerate(tables):
            pa.parquet.write_table(one, "%d.parquet" % i)

        def into(make, *sources):
            for source in sources:
                found = packstream.from_arrow(source, channels=columns)
                with make(found) as to:
                    for one in found:
                        to.write(one)

        def writer(found):
            return packstream.TokenWriter("x.tok", channels=found.channels,
                                          **options)
        raises(ValueError, "1.parquet: row 1: " + why, into, writer,
               ["0.parquet", "1.parquet"])
        raises(ValueError, "1.parquet: row 1: " + why, into, writer,
               "1.parquet")
        for source, row in ((tables, 4), (tables[1], 1)):
            try:
                into(writer, source)
            except ValueError as error:
                assert str(error).startswith("row %d: " % row + why), error
            else:
                raise AssertionError(why)
    check("input_ids: -5 does not fit uint32", "input_ids", [-5])
    check("input_ids: 9 is not in the vocabulary of 7", "input_ids", [9],
          vocab_size=7)
    check("input_ids: the list is missing", "input_ids", None)
    check("input_ids: a value is missing", "input_ids", [None])
    check("no tokens", "input_ids", [], columns=())
    check("labels: 2 values for 1 tokens", "labels", [1, 2])
    check("labels: a value is missing", "labels", [None])
    check("source: a value is missing", "source", None)

    # If a file's type differs from the first file's, all its rows are wrong.
    pa.parquet.write_table(pa.table(dict(good, labels=[[1, 2], [3], [1 << 31]],
                                         source=[1, 2, -1])), "1.parquet")
    narrow = pa.schema([("input_ids", pa.list_(pa.int32())),
                        ("labels", pa.list_(pa.int32())),
                        ("source", pa.uint16())])
    pa.parquet.write_table(pa.table(good, narrow), "0.parquet")
    pa.parquet.write_table(pa.table(dict(good, labels=["a", "b", "c"],
                                         source=[0.5, 1.5, 2.5])), "2.parquet")
    for name, file, why in (
            ("labels", "1.parquet", "row 2: labels: 2147483648 does not fit"),
            ("source", "1.parquet", "row 2: source: -1 does not fit uint16"),
            ("labels", "2.parquet", "labels: a column of string"),
            ("source", "2.parquet", "source: values of type float64")):
        found = packstream.from_arrow(["0.parquet", file], channels=[name])
        packer = packstream.Packer(64, channels=found.channels)
        raises(ValueError, "%s: %s" % (file, why), list, packer.pack(found))
    pa.parquet.write_table(pa.table({"input_ids": [[1] * 9, [1] * 65]}),
                           "1.parquet")
    raises(packstream.PackError, "1.parquet: row 1: 65 tokens", list,
           packstream.Packer(64).pack(packstream.from_arrow(
               ["1.parquet", "1.parquet"])))
    raises(ValueError, "2.parquet: no column x", packstream.from_arrow,
           ["2.parquet"], channels=["x"])
    raises(ValueError, "row 1: input_ids: a value is missing",
           packstream.pack_dataset,
           pa.table({"input_ids": [[1], [None]]}), 8)


def crafted(columns, *changes):
    """A one-batch Arrow stream with some of the 64-bit numbers of its metadata
    changed."""
    batch = pa.RecordBatch.from_pydict(columns)
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batch.schema) as out:
        out.write_batch(batch)
    data = sink.getvalue().to_pybytes()
    for old, new in changes:
        old, new = (struct.pack("<%dq" % len(n), *n) for n in (old, new))
        assert old in data
        data = data.replace(old, new)
    return data


def hostile_arrays():
    """Arrays whose metadata claim more data than they have."""
    n = 50001                   # found nowhere else in the metadata
    rows, bits = [[1, 2]] * n, (n + 7) // 8
    lists = pa.array(rows, pa.list_(pa.int32()))
    large = pa.array(rows, pa.large_list(pa.int32()))
    fixed = pa.array(rows, pa.list_(pa.int32(), 2))
    none = pa.array([[]] * n, pa.list_(pa.int32(), 0))
    numbers, truths = pa.array(range(n), pa.int32()), pa.array([True] * n)
    for why, column, more, *changes in (
            # Buffers that are too short for their arrays.
            ("too small", lists, numbers, ((4 * n,), (0,))),
            ("too small", lists, numbers, ((4 * n,), (4 * n - 4,))),
            ("too small", lists, truths, ((bits,), (0,))),
            ("too small", lists, truths, ((bits,), (bits - 1,))),
            ("too small", lists, numbers, ((4 * n + 4,), (0,))),
            ("too small", lists, truths, ((8 * n,), (8 * n - 4,))),
            ("ffset", large, truths, ((8 * n + 8,), (8 * n,))),
            ("too small", fixed, truths, ((8 * n,), (8,))),
            ("too small", lists, truths, ((2 * n, 0), (1 << 40, 0))),
            ("is less than", fixed, truths, ((2 * n, 0), (3, 0))),
            # Offsets, and lengths of all columns.
            ("ffset", large, truths, ((100, 102), (100, 1 << 50))),
            ("ffset", large, truths, ((0, 2, 4), (-1 << 40, 2, 4))),
            ("too small", lists, numbers, ((n,), (1 << 40,))),
            ("negative", lists, numbers, ((n,), (-1,))),
            ("negative", lists, numbers, ((2 * n, 0), (-1, 0))),
            ("fixed size of 0", none, none, ((n,), (1 << 40,))),
            ("fixed size of 0", none, none, ((n,), (2**63 - 1,)))):
        data = crafted({"input_ids": column, "more": more}, *changes)
        with open("x.arrow", "wb") as file:
            file.write(data)
        batch = pa.ipc.open_stream(pa.py_buffer(data)).read_next_batch()
        whole = pa.Table.from_batches([batch])
        for source in ("x.arrow", batch, whole, whole.to_reader()):
            raises(ValueError, why, lambda: list(packstream.from_arrow(
                source, channels=["more"])))
        if more is none or column.type != lists.type or more is truths and \
                changes[0][0] != (bits,):
            raises(ValueError, why, packstream.pack_dataset,
                   whole.select(["input_ids"]), 8)
    twice = pa.Table.from_arrays([lists, lists], ["input_ids"] * 2)
    pa.parquet.write_table(twice, "x.parquet")
    for source in (twice, "x.parquet"):
        raises(ValueError, "several columns", packstream.from_arrow, source)
    os.mkdir("saved")
    for text in ("", "[]", "{}", '{"_data_files":[1]}', "[" * 100000,
                 '{"_data_files":[{"filename":3}]}', "\xff"):
        with open("saved/state.json", "w", encoding="latin-1") as file:
            file.write(text)
        raises(ValueError, "saved: its state.json is not",
               packstream.from_arrow, "saved")


def files_cut():
    """A file truncated while it is read, without mmap."""
    whole = pa.table({"input_ids": documents(100000)})
    pa.parquet.write_table(whole, "x.parquet", row_group_size=20000)
    for name, new in (("s.arrow", pa.ipc.new_stream),
                      ("f.arrow", pa.ipc.new_file)):
        with pa.OSFile(name, "wb") as file, new(file, whole.schema) as out:
            out.write_table(whole, max_chunksize=20000)
    for name in ("x.parquet", "s.arrow", "f.arrow"):
        batches = iter(packstream.from_arrow(name))
        assert len(next(batches))
        os.truncate(name, 8192)
        raises(ValueError, name + ": ", list, batches)


def names_printed():
    """A file name cannot inject terminal escapes."""
    evil, shown = "e\x1b[2J\n\u00e4", "e?[2J??"
    with open(evil, "w") as file:
        file.write("something else")
    pa.parquet.write_table(pa.table({evil: [1]}), "x.parquet")
    pa.parquet.write_table(pa.table({"input_ids": [[{evil: 1}]]}), "y.parquet")
    usage = "packstream.tokens: try 'packstream.tokens --help'"
    for status, name, why, *more in (
            (65, evil, shown + ": neither parquet nor Arrow: use "
             "packstream.tokenize for text and chats, tokcat for token ids"),
            (65, "x.parquet", "x.parquet: no column input_ids (columns: %s): "
             "tokenize the text first, or name the column of token ids"
             % shown),
            (65, "y.parquet", "y.parquet: input_ids: values of struct<%s: int64>, "
             "expected numbers" % shown),
            (64, "--" + evil, "unrecognized arguments: --" + shown, usage)):
        if status == 65:
            raises(ValueError, why,
                   lambda: list(packstream.from_arrow(name)))
        found = subprocess.run(
            [sys.executable, "-m", "packstream.tokens", name, "z.parquet"],
            stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        assert found.returncode == status and found.stderr.splitlines() == [
            "packstream.tokens: " + why, *more], found.stderr


def into_packer():
    rows = documents()
    source = packstream.from_arrow(table(rows), channels=["labels", "source"])
    packer = packstream.Packer(64, depth=5, channels=source.channels)
    found = {}
    for batch in packer.pack(source, 3):
        for r in range(len(batch["tokens"])):
            for k in range(batch["n_seq"][r]):
                part = slice(*batch["cu"][r][k:k + 2])
                number = int(batch["seq_id"][r][k])
                found[number] = batch["tokens"][r][part].tolist()
                assert batch["labels"][r][part].tolist() == [
                    -100, *rows[number][1:]]
                assert batch["source"][r][k] == number % 7
    assert [found[i] for i in range(len(rows))] == rows
    source = packstream.from_arrow(pa.table({"input_ids": [[1] * 65]}))
    raises(packstream.PackError, "row 0: 65 tokens", list,
           packstream.Packer(64).pack(source))


# ---------------------------------------------------------------------
# Datasets

def check_packed(packed, rows, capacity, more=()):
    """Each row once, whole; `packed` is a table."""
    assert packed.column_names == ["input_ids", *more, "seq_lengths"]
    found = []
    columns = packed.to_pydict()
    for i, lengths in enumerate(columns["seq_lengths"]):
        assert lengths and sum(lengths) <= capacity
        for name in ("input_ids", *more):
            assert len(columns[name][i]) == sum(lengths)
        parts = split(columns["input_ids"][i], lengths)
        found += parts
        if "labels" in more:
            assert split(columns["labels"][i], lengths) == [
                [-100, *part[1:]] for part in parts]
        if "mask" in more:
            assert columns["mask"][i] == [t % 2 == 0 for part in parts
                                          for t in part]
        if "position_ids" in more:
            assert columns["position_ids"][i] == [
                k for n in lengths for k in range(n)]
    assert sorted(found) == sorted(row for row in rows if row)


def padded_rows():
    """Padding before or after the tokens is removed, by from_arrow and by
    pack_dataset; padding between tokens is an error that names the row."""
    without_pandas()
    rng, rows = np.random.default_rng(6), documents(shortest=0)
    padded, masks = [], []
    for i, row in enumerate(rows):
        before, after = ([0, 0], [0, 2], [3, 0], [1, 1])[i % 4]
        padded.append(rng.integers(0, 9, before).tolist() + row +
                      rng.integers(0, 9, after).tolist())
        masks.append([0] * before + [1] * len(row) + [0] * after)
    for kind in (pa.int64(), pa.bool_(), pa.uint8()):
        whole = table(padded, number=pa.array(range(len(rows))),
                      attention_mask=pa.array(masks).cast(pa.list_(kind)))
        at = 0
        for columns in packstream.from_arrow(whole, channels=["mask",
                                                              "number"]):
            for i in range(len(columns)):
                part = slice(*columns.offsets[i:i + 2])
                assert columns.values["tokens"][part].tolist() == rows[at]
                assert columns.values["mask"][part].tolist() == [
                    token % 2 == 0 for token in rows[at]]
                assert columns.values["number"][i] == at
                at += 1
        assert at == len(rows)
        for names in (None, ["input_ids", "mask", "number"]):
            packed = packstream.pack_dataset(whole, 64, columns=names)
            assert "attention_mask" not in packed.column_names
            found = {i: part for row in packed.to_pylist() for i, part in zip(
                row["number"], zip(split(row["input_ids"], row["seq_lengths"]),
                                   split(row["mask"], row["seq_lengths"])))}
            assert found == {i: (row, [token % 2 == 0 for token in row])
                             for i, row in enumerate(rows) if row}
    for mask, why in (([1, 0, 1], "zeros between ones"),
                      ([0, 1, 2], "2 is neither 0 nor 1"),
                      ([1, 1], "2 values for 3 tokens")):
        wrong = pa.table({"input_ids": [[1], [1, 2, 3]],
                          "attention_mask": [[1], mask]})
        for call in (lambda: list(packstream.from_arrow(wrong)),
                     lambda: packstream.pack_dataset(wrong, 8)):
            raises(ValueError, "row 1: attention_mask: " + why, call)


def named_rows():
    """Strings that name rows are packed on request."""
    without_pandas()
    rows = documents(99)
    for kind in (pa.string(), pa.large_string()):
        whole = table(rows, id=pa.array(["row %d" % i for i in
                                         range(len(rows))], kind))
        raises(ValueError, "id: a column of", packstream.pack_dataset, whole,
               64)
        packed = packstream.pack_dataset(whole, 64,
                                         columns=["input_ids", "id"])
        found = {name: part for row in packed.to_pylist() for name, part in
                 zip(row["id"], split(row["input_ids"], row["seq_lengths"]))}
        assert found == {"row %d" % i: row for i, row in enumerate(rows)}


def streamed():
    """An IterableDataset stays one, yields each row once, and resumes from a
    state; errors say where."""
    import datasets
    from packstream import dataset
    dataset.STREAM_ROWS = 100
    rows = documents(350)
    whole = datasets.Dataset(table(rows).select(["input_ids", "source"]))

    def generated():
        yield from whole
    for stream in (whole.to_iterable_dataset(num_shards=2),
                   datasets.IterableDataset.from_generator(generated)):
        packed = packstream.pack_dataset(stream, 64)
        assert isinstance(packed, datasets.IterableDataset)
        found = list(packed)
        assert sorted(
            part for row in found for part in zip(
                split(row["input_ids"], row["seq_lengths"]), row["source"])
        ) == sorted(zip(rows, whole["source"]))
        assert len(found) < 1.1 * sum(map(len, rows)) / 64
    begun = iter(packed)
    first = [next(begun) for _ in range(9)]
    state = packed.state_dict()
    packed.load_state_dict(state)
    assert first + list(packed) == found
    with_features = packstream.pack_dataset(whole.to_iterable_dataset(), 64)
    assert with_features.features["source"] == datasets.List(
        datasets.Value("int16"))
    raises(ValueError, "after 100 rows of the dataset: row 7: ",
           lambda: list(packstream.pack_dataset(
               datasets.Dataset.from_dict({"input_ids": [
                   [1] * (9 if i == 107 else 1) for i in range(300)]}
               ).to_iterable_dataset(), 8)))
    raises(ValueError, "not packed into a file", packstream.pack_dataset,
           stream, 64, cache_file_name="x")
    raises(ValueError, "no column x", packstream.pack_dataset, stream, 64,
           columns=["x"])


def document(i):
    return {"input_ids": np.arange(i % 50 + 1) * 7, "source": i % 7}


def other_packages():
    """Data written by mosaicml-streaming, litdata and webdataset."""
    import json
    import litdata
    import webdataset
    from streaming import MDSWriter
    rows = [document(i) for i in range(1500)]
    with MDSWriter(out="x.mds", columns={"input_ids": "ndarray:int64",
                                         "source": "int"}) as writer:
        for row in rows:
            writer.write(row)
    litdata.optimize(fn=document, inputs=list(range(1500)), num_workers=1,
                     output_dir="x.lit", chunk_bytes="64KB")
    with webdataset.TarWriter("x.tar") as writer:
        for i, row in enumerate(rows):
            writer.write({"__key__": "%06d" % i, "json": {
                "source": row["source"]}, "input_ids.npy": row["input_ids"]})
    for name in ("x.mds", "x.lit", "x.tar"):
        source = packstream.from_arrow(name, channels=["source"])
        found = [(columns.values["tokens"][slice(*columns.offsets[i:i + 2])]
                  .tolist(), columns.values["source"][i])
                 for columns in source for i in range(len(columns))]
        assert found == [(row["input_ids"].tolist(), row["source"])
                         for row in rows]
    with webdataset.TarWriter("bad.tar") as writer:
        writer.write({"__key__": "0", "npy": np.arange(3)})
        writer.write({"__key__": "1", "json": {"input_ids": [1]}})
        writer.write({"__key__": "2", "json": [1]})
    raises(ValueError, "bad.tar: 2: json is not an object",
           lambda: list(packstream.from_arrow("bad.tar")))
    os.mkdir("bad")
    with open("bad/index.json", "w") as file:
        json.dump({"x": 1}, file)
    raises(ValueError, "bad: its index.json is neither", packstream.from_arrow,
           "bad")
    with open("x.lit/index.json") as file:
        index = json.load(file)
    index["config"]["data_format"] = ["pickle"]
    with open("x.lit/index.json", "w") as file:
        json.dump(index, file)
    raises(ValueError, "x.lit: pickled rows", packstream.from_arrow, "x.lit")


def packed_tables():
    without_pandas()
    rows = documents(shortest=0)
    for kind in (pa.list_(pa.int64()), pa.list_(pa.int32()),
                 pa.large_list(pa.uint16())):
        whole = table(rows, kind)
        for some in (["input_ids"], ["input_ids", "labels"]):
            packed = packstream.pack_dataset(whole, 64, columns=some)
            check_packed(packed, rows, 64, some[1:])
            assert packed.schema.field("input_ids").type == kind
        check_packed(packstream.pack_dataset(whole.slice(10, 500), 64,
                                             columns=["input_ids"]),
                     rows[10:510], 64)
    check_packed(packstream.pack_dataset(
        whole, 64, columns=["input_ids", "labels", "mask"],
        position_ids=True, order="shuffle", seed=5), rows, 64,
        ["labels", "mask", "position_ids"])
    packed = packstream.pack_dataset(whole, 50, columns=["input_ids"], depth=2)
    assert max(len(n) for n in packed["seq_lengths"].to_pylist()) == 2
    check_packed(packstream.pack_dataset(whole.slice(0, 0), 8,
                                         columns=["input_ids"]), [], 8)
    check_packed(packstream.pack_dataset(pa.table({"input_ids": pa.array(
        [[], []], pa.list_(pa.int32()))}), 8), [], 8)


def packed_labels():
    """Masks become labels if there are none; several are combined."""
    rng = np.random.default_rng(8)
    rows = documents(shortest=1, longest=30)
    masks = {name: [rng.integers(0, 2, len(row)).tolist() for row in rows]
             for name in ("loss_mask", "completion_mask")}
    masks["loss_mask"] = pa.array([[bool(bit) for bit in row]
                                   for row in masks["loss_mask"]])
    whole = pa.table(dict(masks, input_ids=rows))
    for part in (whole, whole.slice(91, 400), whole.select(
            ["input_ids", "completion_mask"])):
        packed = packstream.pack_dataset(part, 30)
        assert packed.schema.field("labels").type == pa.large_list(pa.int64())
        for row in packed.to_pylist():
            kept = np.ones(len(row["input_ids"]), bool)
            for name in set(masks) & set(row):
                kept &= np.array(row[name], bool)
            assert row["labels"] == np.where(kept, row["input_ids"],
                                             -100).tolist()
    given = whole.append_column("labels", pa.array(rows))
    packed = packstream.pack_dataset(given, 30)
    assert packed["labels"].to_pylist() == packed["input_ids"].to_pylist()
    wrong = pa.table({"input_ids": [[1, 2]], "loss_mask": [[1, 2]]})
    raises(ValueError, "row 0: loss_mask: 2 is neither 0 nor 1",
           packstream.pack_dataset, wrong, 8)


def packed_numbers():
    """A number per row becomes a list per pack, of the same type; each part of
    a row that was split has the row's number."""
    without_pandas()
    rows = documents(shortest=0, longest=100)
    kinds = {"score": pa.float64(), "half": pa.float16(), "bit": pa.bool_(),
             "byte": pa.int8(), "big": pa.uint64()}
    whole = table(rows).append_column("number", pa.array(range(len(rows))))
    values = {name: [i % 2 for i in range(len(rows))] for name in kinds}
    values["big"] = [2**64 - 1 - i for i in range(len(rows))]
    values["score"] = [i / 8 for i in range(len(rows))]
    for name, kind in kinds.items():
        column = pa.array(np.array(values[name]).astype(
            kind.to_pandas_dtype()), kind)
        whole = whole.append_column(name, column)
    # Slices, whose chunks do not begin with the first row.
    for how, begin, count in (("split", 0, len(rows)), ("split", 91, 400),
                              ("drop", 3, 9), ("truncate", 0, len(rows)),
                              ("split", 0, 0)):
        packed = packstream.pack_dataset(whole.slice(begin, count), 30,
                                         overlong=how)
        assert packed.schema.field("number").type == pa.list_(pa.int64())
        assert packed.schema.field("source").type == pa.list_(pa.int16())
        found = {}
        for row in packed.to_pylist():
            assert len(row["number"]) == len(row["seq_lengths"])
            for name, kind in kinds.items():
                assert packed.schema.field(name).type == pa.list_(kind)
                assert row[name] == [values[name][i] for i in row["number"]]
            for i, part in zip(row["number"], split(row["input_ids"],
                                                    row["seq_lengths"])):
                found.setdefault(i, []).append(part)
        for i in range(begin, begin + count):
            parts = [rows[i][k:k + 30] for k in range(0, len(rows[i]), 30)]
            if how != "split" and len(parts) > 1:
                parts = parts[:1] if how == "truncate" else []
            assert sorted(found.pop(i, [])) == sorted(parts), i
        assert not found


def vectors_of(rows, more=0):
    """A vector of 3 per token, and one of 2 per row."""
    return ([[[t, t / 2, i + more] for t in row]
             for i, row in enumerate(rows)],
            [[i, -i] for i in range(len(rows))])


FRAMES = (pa.list_(pa.list_(pa.float32(), 3)), pa.list_(pa.list_(pa.float64())),
          pa.large_list(pa.large_list(pa.float32())))


def vectors_read():
    """Lists of lists, and lists of a fixed size, become vectors."""
    rows = documents()
    frames, vector = vectors_of(rows)
    for kind in FRAMES:
        whole = table(rows, frames=pa.array(frames, kind),
                      vector=pa.array(vector, pa.list_(pa.int32(), 2)))
        pa.parquet.write_table(whole, "v.parquet", row_group_size=90)
        for source, begin in ((whole, 0), (whole.slice(91, 401), 91),
                              ("v.parquet", 0), (["v.parquet"], 0)):
            found = packstream.from_arrow(source, channels=None)
            assert found.channels["vector"].per == "sequence"
            packer = packstream.Packer(64, channels=found.channels)
            n = 0
            for batch in packer.pack(found):
                assert batch["frames"].shape == (1, 64, 3)
                for k in range(batch["n_seq"][0]):
                    i = begin + int(batch["seq_id"][0, k])
                    own = slice(*batch["cu"][0, k:k + 2])
                    assert np.array_equal(batch["frames"][0, own], np.array(
                        frames[i], batch["frames"].dtype))
                    assert batch["vector"][0, k].tolist() == vector[i]
                    n += 1
            assert n == (len(rows) if begin == 0 else 401)
    written = subprocess.run(
        [sys.executable, "-m", "packstream.tokens", "-q", "v.parquet"],
        check=True, capture_output=True).stdout
    found = packstream.from_arrow("v.parquet", channels=None)
    with packstream.TokenWriter("x.tok", channels=found.channels) as writer:
        for columns in found:
            writer.write(columns)
    with open("x.tok", "rb") as file:
        assert file.read() == written
    # Single values in lists of one; padding is removed with its vectors.
    padded = pa.table({"input_ids": [[1, 2, 0], [3, 0, 0]],
                       "attention_mask": [[1, 1, 0], [1, 0, 0]],
                       "v": [[[1, 2]] * 3, [[3, 4]] * 3],
                       "one": pa.array([[[1]] * 3] * 2, pa.list_(pa.list_(
                           pa.int32(), 1)))})
    found = packstream.from_arrow(padded, channels=["v", "one"])
    columns, = found
    assert columns.values["v"].tolist() == [[1, 2], [1, 2], [3, 4]]
    assert columns.values["one"].tolist() == [1, 1, 1]
    loaded = packstream.loaders.Loaded("rows", lambda path: (
        {"input_ids": np.arange(n), "v": np.full((n, 2), n / 2)}
        for n in (3, 1)))
    columns, = packstream.from_arrow([loaded], channels=None)
    assert columns.values["v"].tolist() == [[1.5, 1.5]] * 3 + [[0.5, 0.5]]
    vectors_not_read()


def vectors_not_read():
    rows = [[1, 2], [3]]

    def check(why, column, kind=None):
        whole = pa.table({"input_ids": rows, "x": pa.array(column, kind)})
        raises(ValueError, why, lambda: list(packstream.from_arrow(
            whole, channels=["x"])))
        raises(ValueError, why, packstream.pack_dataset, whole, 8)
    check("row 1: x: a vector of 3 values, expected 2",
          [[[1, 2], [3, 4]], [[5, 6, 7]]])
    check("row 1: x: 2 values for 1 tokens", [[[1, 2]] * 2, [[1, 2]] * 2])
    check("row 1: x: a vector is missing", [[[1, 2]] * 2, [None]])
    check("row 1: x: a value is missing", [[[1, 2]] * 2, [[None, 2]]])
    check("row 1: x: the list is missing", [[[1, 2]] * 2, None])
    check("x: vectors without values", [[[], []], [[]]],
          pa.list_(pa.list_(pa.int32())))
    check("x: ", [[[[1]]] * 2, [[[1]]]])
    check("row 1: x: a v", [[1, 2], None], pa.list_(pa.int32(), 2))
    check("row 1: x: a value is missing", [[1, 2], [3, None]],
          pa.list_(pa.int32(), 2))
    check("row 1: x: 3 values for 1 tokens", [[1, 2], [3, 4, 5]])
    raises(ValueError, "cast its inner lists", packstream.from_arrow, pa.table(
        {"input_ids": rows, "x": [[[1, 2]] * 2, [[5, 6]]]}).to_reader(),
        channels=["x"])


def vectors_packed():
    """pack_dataset keeps vectors, of the same types, and batch_of_rows makes
    arrays of them."""
    rows = documents(longest=90)
    frames, vector = vectors_of(rows)
    for kind in FRAMES:
        whole = table(rows, frames=pa.array(frames, kind),
                      vector=pa.array(vector, pa.list_(pa.int32(), 2)))
        packed = packstream.pack_dataset(whole, 64, overlong="split")
        assert packed.schema.field("frames").type == kind
        given = packed.to_pylist()
        for row in given:
            assert [v[:2] for v in row["frames"]] == [
                [t, t / 2] for t in row["input_ids"]]
            for n, part in zip(row["vector"], split(
                    row["frames"], row["seq_lengths"])):
                assert {v[2] for v in part} == {n[0]} == {-n[1]}
        batch = packstream.rows.batch_of_rows(given[:5])
        assert batch["frames"].shape == batch["tokens"].shape + (3,)
        assert batch["vector"].shape == (5, batch["cu"].shape[1] - 2, 2)
        assert not batch["frames"][packstream.views.padding(batch)].any()
    raises(ValueError, "group", packstream.pack_dataset, whole, 64,
           group="vector")


def vectors_of_datasets():
    """Array2D and Sequence(Sequence) of datasets."""
    import datasets
    from datasets import Sequence, Value
    rows = documents(50)
    frames, vector = vectors_of(rows)
    columns = {"input_ids": rows, "frames": frames, "vector": vector}
    for kind in (datasets.Array2D((None, 3), "float32"),
                 Sequence(Sequence(Value("float32"))),
                 Sequence(Sequence(Value("float32"), length=3))):
        whole = datasets.Dataset.from_dict(columns, datasets.Features({
            "input_ids": Sequence(Value("int32")), "frames": kind,
            "vector": Sequence(Value("int32"), length=2)}))
        whole.save_to_disk("vectors")
        for source in (whole, "vectors"):
            found = packstream.from_arrow(source, channels=None)
            columns_ = next(iter(found))
            assert columns_.values["frames"].tolist() == [
                v for row in frames for v in row]
            assert columns_.values["vector"].tolist() == vector
        for source in (whole, datasets.load_from_disk("vectors"),
                       whole.to_iterable_dataset()):
            packed = packstream.pack_dataset(source, 64)
            batch = packstream.rows.batch_of_rows(list(packed))
            assert batch["frames"].shape == batch["tokens"].shape + (3,)
            assert (batch["frames"][..., 0] == batch["tokens"]).all()


def lists_of(rows):
    """Lists of up to 30 numbers and 20 pairs per row; some are empty."""
    rng = np.random.default_rng(6)
    return ([rng.integers(0, 999, n).tolist()
             for n in rng.integers(0, 31, len(rows))],
            [rng.integers(0, 99, (n, 2)).tolist()
             for n in rng.integers(0, 21, len(rows))])


LISTS = ((pa.list_(pa.uint16()), pa.list_(pa.list_(pa.int32(), 2))),
         (pa.large_list(pa.int64()), pa.list_(pa.list_(pa.int64()))))
NAMES = ["labels", "text[]", "edges[]", "source"]


def lists_read():
    """Columns named with [] become list channels."""
    rows = documents()
    text, edges = lists_of(rows)
    for kinds in LISTS:
        whole = table(rows, text=pa.array(text, kinds[0]),
                      edges=pa.array(edges, kinds[1]))
        pa.parquet.write_table(whole, "l.parquet", row_group_size=90)
        for source, begin in ((whole, 0), (whole.slice(91, 401), 91),
                              ("l.parquet", 0)):
            found = packstream.from_arrow(source, channels=NAMES,
                                          fills={"text": 7})
            packer = packstream.Packer(64, channels=found.channels)
            n = 0
            for batch in packer.pack(found, 4):
                ids = batch.sequences["seq_id"].tolist()
                for i, one, pairs in zip(ids, batch.lists_of("text"),
                                         batch.lists_of("edges")):
                    assert one.tolist() == text[begin + i]
                    assert pairs.tolist() == edges[begin + i]
                assert (batch["text"][packstream.views.padding(
                    batch, "text")] == 7).all()
                n += len(ids)
            assert n == (len(rows) if begin == 0 else 401)
    written = subprocess.run(
        [sys.executable, "-m", "packstream.tokens", "-q", "--channel=labels",
         "--channel=text[]:7", "--channel=edges[]", "--channel=source",
         "l.parquet"], check=True, capture_output=True).stdout
    with packstream.TokenWriter("x.tok", channels=found.channels) as writer:
        for columns in found:
            writer.write(columns)
    with open("x.tok", "rb") as file:
        assert file.read() == written
    # Rows without tokens are skipped with their lists, and padding removed.
    padded = pa.table({"input_ids": [[1, 2, 0], [0, 0, 0], [3, 0, 0]],
                       "attention_mask": [[1, 1, 0], [0, 0, 0], [1, 0, 0]],
                       "x": [[7], [8, 9], [4, 5]]})
    pa.parquet.write_table(padded, "p.parquet")
    subprocess.run([sys.executable, "-m", "packstream.tokens", "-q",
                    "--channel=x[]", "-o", "p.tok", "p.parquet"], check=True)
    for source in padded, "p.tok":
        if source is padded:
            found = packstream.from_arrow(padded, channels=["x[]"])
            batch = next(packstream.Packer(8, channels=found.channels)
                         .pack(found, 9))
        else:
            subprocess.run(["packstream", "-q", "-L8", "-o", "p.pks", source],
                           check=True)
            batch = packstream.open("p.pks")[:]
        assert sorted(one.tolist() for one in batch.lists_of("x")) == [
            [4, 5], [7]]
    lists_not_read()


def lists_not_read():
    rows = [[1, 2], [3]]

    def check(why, column, kind=None, name="x[]", **options):
        whole = pa.table({"input_ids": rows, "x": pa.array(column, kind)})
        raises(ValueError, why, lambda: [
            columns for found in [packstream.from_arrow(
                whole, channels=[name])]
            for columns in packstream.Packer(8, channels=found.channels,
                                             **options).pack(found)])
        raises(ValueError, why, packstream.pack_dataset, whole, 8,
               columns=["input_ids", name], **options)
    check("row 1: x: 2 values for 1 tokens; if its lists have lengths of their "
          "own, name the column 'x[]'", [[1, 2], [1, 2]], name="x")
    check("x[]: a column of int64, expected lists", [1, 2])
    check("row 1: x: the list is missing", [[1], None])
    check("row 1: x: a value is missing", [[1], [None]])
    check("row 1: x: a vector of 3 values, expected 2", [[[1, 2]], [[1, 2, 3]]])
    check("row 1: x", [[1, 2], [1, 2, 3]], budget={"x": 2})
    check("row 0: x", [[1] * 9, [1, 2, 3]])
    check("x: values of string", [["a"], ["b"]])
    raises(ValueError, "are the tokens", packstream.pack_dataset, pa.table(
        {"input_ids": rows}), 8, columns=["input_ids[]"])
    raises(ValueError, "x_lengths already", packstream.pack_dataset, pa.table(
        {"input_ids": rows, "x": rows, "x_lengths": [1, 2]}), 8,
        columns=["input_ids", "x[]", "x_lengths"])
    raises(ValueError, "budget: there is no column x with", packstream
           .pack_dataset, pa.table({"input_ids": rows, "x": rows}), 8,
           budget={"x": 9})


def lists_packed():
    """pack_dataset keeps lists and adds their lengths, and batch_of_rows makes
    the arrays of list channels."""
    rows = documents(longest=40)
    text, edges = lists_of(rows)
    wanted = {tuple(row): i for i, row in enumerate(rows)}
    assert len(wanted) > 600
    for kinds, options in zip(LISTS, ({}, {"group": "row"})):
        whole = table(rows, text=pa.array(text, kinds[0]),
                      edges=pa.array(edges, kinds[1]),
                      row=pa.array(range(len(rows))))
        packed = packstream.pack_dataset(
            whole, 64, columns=["input_ids", "row", "text[]", "edges[]"],
            budget={"text": 50}, **options)
        assert packed.schema.field("edges").type == kinds[1]
        given = packed.to_pylist()
        seen = []
        for pack in given:
            assert len(pack["text"]) <= 50 and len(pack["edges"]) <= 64
            for i, one, pairs in zip(
                    pack["row"], split(pack["text"], pack["text_lengths"]),
                    split(pack["edges"], pack["edges_lengths"])):
                assert one == text[i] and pairs == edges[i]
                seen.append(i)
        assert sorted(seen) == list(range(len(rows)))
        for some in given[:5], given[:1], given[5:]:
            batch = packstream.rows.batch_of_rows(some)
            ids = packstream.views.per_sequence(batch, "row").tolist()
            assert batch.header.lists == ("text", "edges")
            for i, one, pairs in zip(ids, batch.lists_of("text"),
                                     batch.lists_of("edges")):
                assert one.tolist() == text[i]
                assert pairs.tolist() == edges[i]
            assert packstream.views.cross_mask(batch, "text").shape == (
                *batch["tokens"].shape, batch["text"].shape[1])
    # Parts of a split row have its lists; lists can be dropped, or all empty.
    packed = packstream.pack_dataset(
        whole, 16, columns=["input_ids", "row", "text[]"], overlong="split",
        budget={"text": 30}).to_pylist()
    assert all(one == text[i] for pack in packed for i, one in zip(
        pack["row"], split(pack["text"], pack["text_lengths"])))
    packed = packstream.pack_dataset(
        whole, 64, columns=["input_ids", "row", "text[]"], overlong="drop",
        budget={"text": 9}).to_pylist()
    assert sorted(i for pack in packed for i in pack["row"]) == [
        i for i, one in enumerate(text) if len(one) < 10]
    none = pa.table({"input_ids": rows[:9], "x": pa.array(
        [[]] * 9, pa.list_(pa.int32()))})
    packed = packstream.pack_dataset(
        none, 64, columns=["input_ids", "x[]"]).to_pylist()
    batch = packstream.rows.batch_of_rows(packed)
    assert not packstream.views.segments(batch, "x").any()
    # Another column that happens to have such a name.
    other = packstream.rows.batch_of_rows([{
        "input_ids": [1, 2, 3], "x": [4, 5, 6], "seq_lengths": [1, 2],
        "x_lengths": [0.5, 0.25]}])
    assert other["x"].tolist() == [[4, 5, 6]] and not other.header.lists
    raises(ValueError, "2 lengths add up to 4, but there are 2 sequences and 5",
           packstream.rows.batch_of_rows, [{
               "input_ids": [1, 2, 3], "x": [4, 5, 6, 7, 8],
               "seq_lengths": [1, 2], "x_lengths": [1, 3]}])


def lists_of_datasets():
    """Datasets in memory, in files and streamed."""
    import datasets
    rows = documents(300)
    text, edges = lists_of(rows)
    whole = datasets.Dataset.from_dict({
        "input_ids": rows, "text": text, "edges": edges})
    whole.save_to_disk("lists")
    names = ["input_ids", "text[]", "edges[]"]
    saved = datasets.load_from_disk("lists")
    for source in (whole, saved, saved, saved.shuffle(seed=1),
                   whole.to_iterable_dataset()):
        packed = list(packstream.pack_dataset(source, 64, columns=names,
                                              budget={"text": 50}))
        found = [one for pack in packed for one in zip(*(map(repr, split(
            pack[name], pack[lengths])) for name, lengths in (
                ("input_ids", "seq_lengths"), ("text", "text_lengths"),
                ("edges", "edges_lengths"))))]
        assert sorted(found) == sorted(zip(*(
            map(repr, column) for column in (rows, text, edges))))


def overlong():
    rows = documents(longest=100)
    whole = table(rows).select(["input_ids"])

    def pack(how):
        return packstream.pack_dataset(whole, 30, overlong=how)
    longer = next(i for i, row in enumerate(rows) if len(row) > 30)
    raises(packstream.PackError, "row %d: %d tokens" % (
        longer, len(rows[longer])), pack, "error")
    raises(ValueError, "overlong", pack, "cut")
    check_packed(pack("drop"), [r for r in rows if len(r) <= 30], 30)
    check_packed(pack("truncate"), [r[:30] for r in rows], 30)
    check_packed(pack("split"), [r[i:i + 30] for r in rows
                                 for i in range(0, len(r), 30)], 30)


def packed_datasets():
    import datasets
    rows = documents()
    whole = datasets.Dataset(table(rows).select(["input_ids", "labels"]))
    packed = packstream.pack_dataset(whole, 64)
    assert isinstance(packed, datasets.Dataset) and not packed.cache_files
    check_packed(packed.data.table, rows, 64, ["labels"])
    assert packed.features["input_ids"] == whole.features["input_ids"]
    parts = packstream.pack_dataset(datasets.DatasetDict(
        a=whole.select(range(100)), b=whole.select([7, 3])), 64)
    check_packed(parts["a"].data.table, rows[:100], 64, ["labels"])
    check_packed(parts["b"].data.table, [rows[7], rows[3]], 64, ["labels"])
    shuffled = whole.shuffle(seed=3)
    check_packed(packstream.pack_dataset(shuffled, 64).data.table, rows, 64,
                 ["labels"])

    # From file to file; a cached result is used for the same question only.
    whole.save_to_disk("saved")
    first = packstream.pack_dataset(datasets.load_from_disk("saved"), 64)
    check_packed(first.data.table, rows, 64, ["labels"])
    name = first.cache_files[0]["filename"]
    assert os.path.dirname(name).endswith("saved")
    made = os.stat(name)
    again = packstream.pack_dataset(datasets.load_from_disk("saved"), 64)
    other = packstream.pack_dataset(datasets.load_from_disk("saved"), 60)
    assert again.cache_files == first.cache_files != other.cache_files
    assert os.stat(name).st_mtime_ns == made.st_mtime_ns
    mask = os.umask(0)
    os.umask(mask)
    assert made.st_mode & 0o777 == 0o666 & ~mask
    check_packed(other.data.table, rows, 60, ["labels"])
    named = packstream.pack_dataset(whole, 64, cache_file_name="mine.arrow")
    assert os.path.samefile(named.cache_files[0]["filename"], "mine.arrow")
    check_packed(named.data.table, rows, 64, ["labels"])
    for damage in (lambda: None, lambda: os.truncate("mine.arrow", 20),
                   lambda: os.truncate("mine.arrow",
                                       os.path.getsize("mine.arrow") - 8)):
        damage()
        named = packstream.pack_dataset(whole, 60,
                                        cache_file_name="mine.arrow")
        check_packed(named.data.table, rows, 60, ["labels"])
        made = os.stat("mine.arrow").st_ino
    packstream.pack_dataset(whole, 60, cache_file_name="mine.arrow")
    assert os.stat("mine.arrow").st_ino == made


def packed_numbers_of_datasets():
    """Packs of selected rows, in memory and in a file."""
    import datasets
    rows = documents()
    whole = datasets.Dataset(table(rows).select(["input_ids", "source"]))
    whole = whole.add_column("first", [row[0] for row in rows])
    whole.save_to_disk("scored")
    for one in (whole, datasets.load_from_disk("scored")):
        for some in (one, one.shuffle(seed=2).select(range(99))):
            packed = packstream.pack_dataset(some, 64)
            assert bool(packed.cache_files) == bool(one.cache_files)
            assert packed.features["first"] == \
                datasets.List(datasets.Value("int64"))
            found = [part for row in packed for part in zip(
                split(row["input_ids"], row["seq_lengths"]), row["first"],
                row["source"])]
            assert all(part[0] == first for part, first, _ in found)
            assert sorted(found) == sorted(
                (row["input_ids"], row["first"], row["source"])
                for row in some)


def packed_budgets():
    """No pack of a table exceeds a budget, and every row is in one."""
    rng = np.random.default_rng(4)
    lengths = rng.integers(1, 200, 3000)
    tiles = np.where(rng.random(3000) < 0.3, rng.integers(1, 20, 3000), 0)
    table = pa.table({
        "input_ids": [list(range(n)) for n in lengths], "tiles": tiles,
        "g": np.arange(3000) // 3, "score": lengths / 2})
    budget = {"tiles": 40, "attention": 60000}
    for options in {}, {"group": "g"}, {"align": 8}:
        packed = packstream.pack_dataset(
            table, 512, budget=budget, overlong="drop", **options)
        found = []
        for row in packed.to_pylist():
            assert sum(row["tiles"]) <= 40
            assert sum(n * n for n in row["seq_lengths"]) <= 60000
            found += zip(row["seq_lengths"], row["tiles"], row["g"])
        groups = np.arange(3000) // 3
        kept = np.ones(1000, bool)
        if options.get("group"):
            kept = (np.bincount(groups, tiles) <= 40) & (
                np.bincount(groups, lengths) <= 512) & (
                np.bincount(groups, lengths ** 2) <= 60000)
        assert sorted(found) == sorted(
            row for row in zip(lengths.tolist(), tiles.tolist(),
                               groups.tolist()) if kept[row[2]])
    order, ends = packstream.pack_lengths(lengths, 512, {"tiles": tiles},
                                          budget=budget)
    assert sorted(order) == list(range(3000))
    assert max(tiles[pack].sum() for pack in np.split(order, ends[:-1])) <= 40
    short = packstream.pack_dataset(table, 512, budget={"attention": 10000},
                                    overlong="truncate")
    assert max(map(max, short["seq_lengths"].to_pylist())) == 100
    for budget, why in (({"x": 3}, "no column x"), ({"score": 3}, "no column"),
                        ({"tiles": 5}, "tiles exceeds the budget, 5; use")):
        raises((ValueError, packstream.PackError), why,
               packstream.pack_dataset, table, 512, budget=budget)
    raises(packstream.PackError, "tokens exceed what the budget for attention "
           "allows, 100", packstream.pack_dataset, table, 512,
           budget={"attention": 10000})
    raises(ValueError, "by: tables are packed by lengths alone",
           packstream.pack_dataset, table, 512, by="g")
    missing = pa.table({"input_ids": [[1], [2]], "tiles": [1, None]})
    raises(ValueError, "tiles: a value is missing", packstream.pack_dataset,
           missing, 8, budget={"tiles": 4})
    long = {"a column with a name of more than 23 bytes": 4}
    order, _ = packstream.pack_lengths([3, 2], 8, dict.fromkeys(long, [1, 2]),
                                       budget=long)
    assert sorted(order) == [0, 1]
    raises(ValueError, "needs what each", packstream.pack_lengths, lengths,
           512, budget={"tiles": 3})
    raises(ValueError, "x has no budget", packstream.pack_lengths, lengths,
           512, {"x": tiles})


def packed_groups_of_datasets():
    """Rows of a group are neighbours in one pack, also of a shuffled view."""
    import datasets
    rows = [row[:20] for row in documents()]
    whole = datasets.Dataset.from_dict({
        "input_ids": rows, "pair": [i // 3 for i in range(len(rows))],
        "topic": ["abc"[i // 10 % 3] for i in range(len(rows))]})
    packed = packstream.pack_dataset(whole, 64, group="pair",
                                     columns=["input_ids", "pair"])
    found = [pair for row in packed for pair in
             itertools.groupby(row["pair"])]
    assert sorted(k for k, _ in found) == list(range(len(found)))
    check_packed(packed.select_columns(["input_ids", "seq_lengths"])
                 .data.table, rows, 64)
    packstream.pack_dataset(whole, 1 << 10, group="topic",
                            columns=["input_ids", "topic"])
    raises(packstream.PackError, "the group pair=0 has", packstream.
           pack_dataset, whole, 20, group="pair",
           columns=["input_ids", "pair"])
    part = pa.table({"input_ids": [[1, 2, 3], [4, 5, 6], [7], [], [8, 9]],
                     "g": [1, 1, 2, 2, 2]})
    assert packstream.pack_dataset(part, 4, group="g", overlong="drop")[
        "input_ids"].to_pylist() == [[7, 8, 9]]
    raises(packstream.PackError, "has 8 tokens", packstream.pack_dataset,
           part, 6, group="g", align=4)
    raises(ValueError, "'split' cannot", packstream.pack_dataset, part, 4,
           group="g", overlong="split")
    raises(ValueError, "depth cannot", packstream.pack_dataset, part, 8,
           group="g", depth=1)
    raises(ValueError, "no column row", packstream.pack_dataset, whole, 64,
           group="row", columns=["input_ids"])
    raises(ValueError, "would cut groups", packstream.pack_dataset,
           whole.to_iterable_dataset(), 64, group="pair")


def rows_left_out():
    """Rows removed by a filter may be invalid."""
    import datasets
    whole = datasets.Dataset.from_dict({
        "input_ids": [[1, 2], [3], [4, 5]], "loss_mask": [[1, 1], [2], [0, 1]],
        "score": [1, None, 3]})
    kept = whole.filter(lambda row: row["score"] is not None)
    row, = packstream.pack_dataset(kept, 8)
    assert (row["labels"], row["score"]) in (
        ([1, 2, -100, 5], [1, 3]), ([-100, 5, 1, 2], [3, 1])), row
    for column, why in (("loss_mask", "2 is neither"), ("score", "a value is")):
        raises(ValueError, "row 1: %s: %s" % (column, why),
               packstream.pack_dataset,
               whole.select_columns(["input_ids", column]), 8)


def file_is_whole_or_not_there():
    """If the disk is full, no file is left."""
    whole = pa.table({"input_ids": documents(20000)})
    import datasets
    import resource
    datasets.Dataset(whole).save_to_disk("full")
    before = set(os.listdir("full"))
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100000, 100000))
    raises(OSError, "too large", packstream.pack_dataset,
           datasets.load_from_disk("full"), 64)
    assert set(os.listdir("full")) == before


def as_full_as_trl():
    """Never more rows than TRL makes, with the same sequences."""
    import datasets
    import trl
    for capacity, longest in ((64, 64), (100, 70), (57, 20)):
        rows = documents(5000, longest, capacity)
        whole = datasets.Dataset(table(rows).select(["input_ids"]))
        ours = packstream.pack_dataset(whole, capacity)
        theirs = trl.pack_dataset(whole, capacity, "bfd")
        assert ours.features == theirs.features, (ours.features,
                                                  theirs.features)
        check_packed(theirs.data.table, rows, capacity)
        assert len(ours) <= len(theirs), (len(ours), len(theirs))


def datasets_refused():
    rows = documents(20)
    pack = packstream.pack_dataset
    raises(ValueError, "text: a column of string cannot be packed", pack,
           table(rows, text=pa.array(["a"] * 20)), 64)
    raises(ValueError, "input_ids: a column of int64 cannot be packed", pack,
           pa.table({"input_ids": [1, 2]}), 64)
    raises(ValueError, "row 5: score: a value is missing", pack, pa.table({
        "input_ids": rows[:6], "score": pa.chunked_array(
            [[1, 2, 3, 4], [5, None]])}), 64)
    raises(ValueError, "no column input_ids", pack,
           table(rows).select(["labels"]), 64)
    raises(ValueError, "row 2: x: 1 values for", pack, pa.table(
        {"input_ids": rows[:3], "x": [rows[0], rows[1], [1]]}), 64)
    raises(ValueError, "seq_lengths already", pack,
           pack(table(rows), 64, columns=["input_ids"]), 64)
    raises(ValueError, "capacity", pack, table(rows), 0,
           columns=["input_ids"])
    raises(TypeError, "", pack, table(rows), 64, columns=["input_ids"],
           dept=3)
    raises(ValueError, "row 7: x: the list is missing", pack, pa.table({
        "input_ids": rows[:8], "x": pa.chunked_array([
            pa.array(rows[:7]), pa.array([None], pa.list_(pa.int64()))])}), 64)

    for offsets in ([0, 900, 4], [0, 3, 2, 4]):
        lies = pa.ListArray.from_buffers(
            pa.list_(pa.int64()), len(offsets) - 1,
            [None, pa.py_buffer(np.array(offsets, np.int32))],
            children=[pa.array([1, 2, 3, 4])])
        raises(ValueError, "ffset", pack, pa.table({"input_ids": lies}),
               1000)

    import datasets
    whole = datasets.Dataset(pa.table({"input_ids": rows}))
    raises(ValueError, "a transform", pack,
           whole.with_transform(lambda batch: batch), 64)
    raises(ValueError, "a transform", packstream.from_arrow,
           whole.with_transform(lambda batch: batch))
    raises(TypeError, "list", pack, [], 64)
    raises(ValueError, "features", packstream.from_arrow,
           whole.to_iterable_dataset().map(lambda row: row))
    raises(ValueError, "one split", pack, datasets.DatasetDict(a=whole),
           64, cache_file_name="x.arrow")


# ---------------------------------------------------------------------
# The program

def program(packcat):
    without_pandas()
    rows = documents(shortest=0)
    pa.parquet.write_table(table(rows), "x.parquet", row_group_size=100)
    with open("no.parquet", "w") as file:
        file.write("something else")
    run = [sys.executable, "-m", "packstream.tokens", "x.parquet"]
    found = subprocess.run([*run, "--channel=labels", "--channel=source:7",
                            "--vocab=60000", "--labels=aligned"],
                           capture_output=True, check=True)
    assert b"%d rows without tokens" % rows.count([]) in found.stderr
    with open("x.tok", "wb") as file:
        file.write(found.stdout)
    lines = subprocess.run([packcat, "--to=ids", "x.tok"], check=True,
                           capture_output=True, text=True).stdout
    assert [list(map(int, line.split())) for line in lines.splitlines()] == [
        row for row in rows if row]
    assert not subprocess.run([*run, "-q", "-o", "y.tok"], check=True,
                              capture_output=True).stderr
    packed_by_default(packcat)
    for status, wrong, why in (
            (65, ["--vocab=100"], "x.parquet: row %d: input_ids: %d is" % next(
                (i, t) for i, row in enumerate(rows) for t in row
                if t >= 100)),
            (65, ["--column=text"], "x.parquet: no column text"),
            (65, ["--type=u16", "--column=labels"],
             "x.parquet: row %d: labels: -100 does not fit" % next(
                 i for i, row in enumerate(rows) if row)),
            (65, ["no.parquet"], "no.parquet: neither parquet nor Arrow: use "
             "packstream.tokenize"),
            (64, ["--channel=labels:x"], "not a number"),
            (64, ["--vocab=-1"], "vocab_size: -1"),
            (64, ["--vocab=x"], "argument --vocab: invalid int value: 'x'"),
            (64, ["--pad-id=-1"], "pad=-1"),
            (64, ["--nonsense"], "unrecognized arguments: --nonsense"),
            (1, ["nowhere.parquet"], "nowhere.parquet"),
            (1, ["-o", ""], "No such file"),
            (1, ["-o", "x.parquet"], "x.parquet is both input and output"),
            (1, ["-o", "/dev/full"], "No space left")):
        found = forked.run(program_here, ["x.parquet", *wrong], told="wrong")
        with open("wrong") as file:
            lines = file.read().splitlines()
        assert found == status and why in lines[0], (wrong, found, lines)
        assert lines[0].startswith("packstream.tokens: ")
        assert lines[1:] == (["packstream.tokens: try 'packstream.tokens "
                              "--help'"] if status == 64 else [])
    closed = subprocess.run(["sh", "-c", 'exec "$0" "$@" >&-', *run],
                            stderr=subprocess.PIPE, text=True)
    assert closed.returncode == 1 and "standard output is closed" in \
        closed.stderr, closed.stderr
    subprocess.run(["sh", "-c", 'exec "$0" "$@" -o x.tok 2>&-', *run],
                   check=True)
    output_stays(run)


def packed_by_default(packcat):
    """Columns of numbers are packed, and others named."""
    pa.parquet.write_table(pa.table({
        "input_ids": [[1, 2], [3]], "labels": [[-100, 2], [3]],
        "attention_mask": [[1, 1], [1]], "quality": [0.5, 1.5],
        "name": ["a", "b"], "other": [9, 9]}), "d.parquet")
    found = subprocess.run(
        [sys.executable, "-m", "packstream.tokens", "d.parquet", "-o", "d.tok",
         "--ignore=other"], check=True, capture_output=True, text=True)
    assert found.stderr == "packstream.tokens: columns skipped because " \
        "not numeric: name\n", found.stderr
    rows = subprocess.run([packcat, "--to=jsonl", "d.tok"], check=True,
                          capture_output=True, text=True).stdout
    assert [json.loads(row) for row in rows.splitlines()] == [
        {"input_ids": [1, 2], "labels": [-100, 2], "quality": 0.5},
        {"input_ids": [3], "labels": [3], "quality": 1.5}], rows


def output_stays(run):
    """-o replaces a file only with a complete one."""
    def content(name):
        with open(name, "rb") as file:
            return file.read()
    subprocess.run([*run, "-q", "-o", "old.tok"], check=True)
    older = content("old.tok")
    before = sorted(os.listdir())
    for wrong in (["--vocab=100"], ["no.parquet"], ["nowhere.parquet"],
                  ["--labels=x"]):
        assert forked.run(program_here, [
            "x.parquet", "-o", "old.tok", *wrong], told="wrong")
        assert content("old.tok") == older
    subprocess.run([*run, "-q", "--channel=labels", "-o", "old.tok"],
                   check=True)
    assert content("old.tok") != older
    os.rename("x.parquet", "old.tok.new")
    assert forked.run(program_here, ["old.tok.new", "-o", "old.tok"],
                      told="wrong") == 1
    assert b"old.tok.new is both input and output" in content("wrong")
    os.rename("old.tok.new", "x.parquet")
    assert sorted(os.listdir()) == before


def program_here(arguments):
    """Run as with `python -m`, output discarded."""
    with open(os.devnull, "w") as lost:
        os.dup2(lost.fileno(), 1)
    sys.argv = ["packstream.tokens", *arguments]
    runpy.run_module("packstream.tokens", run_name="__main__", alter_sys=True)


def program_interrupted():
    """The signal ends it, and the stream has no end marker."""
    pa.parquet.write_table(pa.table({"input_ids": [[1] * 1000] * 5000}),
                           "x.parquet")
    os.mkfifo("x.pipe")
    child = subprocess.Popen([sys.executable, "-m", "packstream.tokens",
                              "x.parquet", "-o", "x.pipe"],
                             stderr=subprocess.PIPE,
                             preexec_fn=lambda: signal.signal(
                                 signal.SIGINT, signal.default_int_handler))
    with open("x.pipe", "rb") as pipe:
        pipe.read(1000)
        child.send_signal(signal.SIGINT)
        pipe.read()
    assert child.wait() == -signal.SIGINT and not child.stderr.read()
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        for size in (0, 1):
            file_interrupted(number, size)


def file_interrupted(number, size):
    """The signal ends it before or during writing; the older file stays, and
    no other."""
    with open("x.tok", "w") as file:
        file.write("older")
    child = subprocess.Popen(
        [sys.executable, "-m", "packstream.tokens", "-o", "x.tok",
         *["x.parquet"] * 200], stderr=subprocess.PIPE,
        preexec_fn=lambda: signal.signal(number, signal.SIG_DFL))
    while not os.path.exists("x.tok.new") or \
            os.path.getsize("x.tok.new") < size:
        assert child.poll() is None
    child.send_signal(number)
    assert child.wait() == -number and not child.stderr.read()
    with open("x.tok") as file:
        assert file.read() == "older"
    assert not os.path.exists("x.tok.new")


if __name__ == "__main__":
    forked.main(globals())
