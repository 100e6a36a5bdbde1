"""python-recipes.py - the recipes of examples/python with the packages that
they use, and PackDataset across several processes.

tests/tree/recipes.bats calls the functions at the end of each part by name:
see forked.py.  A check succeeds, or fails with a traceback.  No model or data
set is downloaded: models are made from small configurations.

SPDX-License-Identifier: MIT
"""

import collections
import functools
import os
import subprocess
import sys
import tempfile

import numpy as np

import forked

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)),
                                "../../examples/python"))

# Models are small and processes many, and some are forked.
os.environ["OMP_NUM_THREADS"] = "1"

import packstream
from packstream import views

PACKS, CAPACITY, VOCAB = 48, 64, 200


def given():
    """Sequences that next-fit packs into PACKS packs, not all of them full."""
    rng = np.random.default_rng(4)
    made = []
    for _ in range(PACKS):
        left, longest = int(rng.integers(50, CAPACITY + 1)), 30
        length = int(rng.integers(15, longest))
        while left > 0:
            length = min(length, left)
            made.append(rng.integers(1, VOCAB, length).tolist())
            left -= length
            length = int(rng.integers(1, longest))
    return made


def labels_of(tokens):
    """A sequence's labels: none for its first third, which is a prompt."""
    prompt = len(tokens) // 3
    return [-100] * prompt + list(tokens[prompt:])


def labelled():
    """The sequences as a datasets.Dataset."""
    import datasets
    return datasets.Dataset.from_dict({
        "input_ids": given(), "labels": list(map(labels_of, given()))})


def count_targets(sequences):
    """Labels that the token before them predicts."""
    return sum(label != -100 for tokens in sequences
               for label in labels_of(tokens)[1:])


def write(path):
    """The sequences, as token records with labels."""
    labels = packstream.Channel("int32", fill=-100)
    with packstream.TokenWriter(path, vocab_size=VOCAB,
                                channels={"labels": labels}) as writer:
        for tokens in given():
            writer.write({"tokens": tokens, "labels": labels_of(tokens)})


def llama(attention="sdpa"):
    import torch
    from transformers import LlamaConfig, LlamaForCausalLM
    torch.manual_seed(2)
    return LlamaForCausalLM(LlamaConfig(
        vocab_size=VOCAB, hidden_size=32, intermediate_size=32,
        num_hidden_layers=2, num_attention_heads=2,
        attn_implementation=attention))


def rows(array):
    """The sequences of a batch, split by positions; padding has token 0."""
    found = []
    for tokens, positions in zip(array["input_ids"].tolist(),
                                 array["position_ids"].tolist()):
        begins = [i for i, place in enumerate(positions) if place == 0]
        for begin, end in zip(begins, [*begins[1:], len(tokens)]):
            if any(tokens[begin:end]):
                found.append(tokens[begin:end])
    return found


class Watch:
    """Records which sequences a model is given, and compares the number of its
    targets, and each loss, with those of the separate sequences."""

    def __init__(self, model):
        self.found, self.steps = [], []     # of all steps, and of each
        self.model, self.busy = model, False
        model.register_forward_hook(self.after, with_kwargs=True)

    def after(self, model, _, batch, output):
        import torch
        if self.busy or "labels" not in batch:     # of hf.check_attention
            return
        self.busy = True
        self.steps.append(rows(batch))
        self.found += self.steps[-1]
        targets = int((batch["labels"][:, 1:] != -100).sum())
        assert targets == count_targets(self.steps[-1]) > 0, targets
        with torch.no_grad():
            torch.testing.assert_close(
                output.loss.detach(), self.alone(
                    self.steps[-1], batch.get("num_items_in_batch")),
                rtol=1e-5, atol=0)
        self.busy = False

    def alone(self, sequences, count=None):
        """The mean over the targets of these sequences, computed separately;
        or their sum divided by this number."""
        import torch
        losses = [torch.nn.functional.cross_entropy(
            self.model(input_ids=torch.tensor([row])).logits[0, :-1],
            torch.tensor(labels_of(row)[1:]), reduction="sum")
            for row in sequences if len(row) > 1]
        return sum(losses) / (count or count_targets(sequences))


def once(found, wanted=None):
    """Each sequence came as often as it was given."""
    wanted = collections.Counter(map(tuple, wanted or given()))
    got = collections.Counter(map(tuple, found))
    assert got == wanted, (sum(got.values()), sum(wanted.values()))


def sequences_of(packed):
    """The sequences in rows of pack_dataset."""
    return [row for pack in packed for row in np.split(
        np.asarray(pack["input_ids"]), np.cumsum(pack["seq_lengths"])[:-1])]


def processes(work, *arguments, number=2):
    """The results of work(rank, *arguments) in gloo processes, by rank."""
    import pickle
    import torch.multiprocessing
    with tempfile.TemporaryDirectory() as folder:
        torch.multiprocessing.start_processes(
            in_process, (number, folder, work, arguments), number,
            start_method="fork")
        results = []
        for rank in range(number):
            with open(os.path.join(folder, str(rank)), "rb") as file:
                results.append(pickle.load(file))
        return results


def in_process(rank, number, folder, work, arguments):
    import pickle
    import torch
    torch.set_num_threads(1)
    os.environ.update(
        RANK=str(rank), LOCAL_RANK=str(rank), WORLD_SIZE=str(number),
        MASTER_ADDR="127.0.0.1", MASTER_PORT="0", GLOO_SOCKET_IFNAME="lo",
        ACCELERATE_USE_CPU="yes")
    if number > 1:
        torch.distributed.init_process_group(
            "gloo", "file://%s/meet" % folder, rank=rank, world_size=number)
        # A process that sends nothing must not exit before the others have
        # connected to it.
        torch.distributed.barrier()
    result = work(rank, *arguments)
    with open(os.path.join(folder, str(rank)), "wb") as file:
        pickle.dump(result, file)
    if number > 1:
        torch.distributed.destroy_process_group()


# ---------------------------------------------------------------------
# PackDataset

def numbers(loader):
    """The index of each pack that a loader returns, in order."""
    return [int(i) for batch in loader for i in batch["index"].flatten()]


def raises(why, call, *arguments):
    try:
        call(*arguments)
    except (RuntimeError, TypeError, ValueError) as error:
        assert why in str(error), error
        return
    raise AssertionError("%s(%r) does not fail" % (call, arguments))


def dataset(path, compressed):
    """Sources, orders, and invalid states."""
    from packstream import PackDataset
    from torch.utils.data import DataLoader
    both = list(range(PACKS)) * 2
    assert sorted(numbers(PackDataset([path, compressed], 5))) == sorted(both)
    data = PackDataset([compressed], 5, shuffle=3)
    orders = []
    for epoch in (0, 1, 0):
        data.set_epoch(epoch)
        orders.append(numbers(data))
    assert orders[0] == orders[2] != orders[1]
    assert sorted(orders[0]) == sorted(orders[1]) == both[:PACKS]
    data.set_epoch(1)
    batches = iter(data)
    before = numbers([next(batches) for _ in range(3)])
    other = PackDataset(compressed, 5, shuffle=3)
    other.load_state_dict(data.state_dict())
    raises("epoch 1", other.set_epoch, 0)
    assert before + numbers(other) == orders[1]
    data.set_epoch(2)
    assert data.state_dict() == {"start": 0, "epoch": 2}
    other_packs(path, compressed)
    other_ranks(path)
    raises("together", lambda: PackDataset(path, 5, rank=1))
    raises("is a seed", lambda: PackDataset(path, 5, shuffle=False))
    raises("either", lambda: PackDataset(path, 5, shuffle=1, order=[2]))
    states(path)
    lengths(path, compressed)
    launchers(path)


def lengths(path, compressed):
    """len() is the number of batches, with any number of workers; the batches
    are the same, and torch prints no warning."""
    import itertools
    import warnings
    from packstream import PackDataset
    from torch.utils.data import DataLoader
    for size, ranks, drop_last, shuffle, source in itertools.product(
            (1, 5), (1, 3), (False, True), (None, 3), ([path], [
                path, compressed])):
        found = []
        for rank in range(ranks):
            data = PackDataset(source, size, rank, ranks, shuffle=shuffle,
                               drop_last=drop_last)
            alone = [numbers([batch]) for batch in data]
            assert len(data) == len(alone), (size, ranks, drop_last)
            assert not drop_last or {len(b) for b in alone} <= {size}
            found.append(len(alone))
            for workers in (2, 3) if (size, rank) == (5, ranks - 1) else ():
                loader = DataLoader(data, batch_size=None,
                                    num_workers=workers)
                with warnings.catch_warnings():
                    warnings.filterwarnings("error", "Length of Iterable")
                    assert len(loader) == len(alone)
                    assert [numbers([b]) for b in loader] == alone
        assert len(set(found)) == 1 or not drop_last
    data = PackDataset(path, 5, order=np.arange(7))
    assert len(data) == 2 == len(list(data))
    batches = iter(data)
    next(batches)
    state = data.state_dict()
    assert len(data) == 2
    data.load_state_dict(state)
    assert len(data) == 1 == len(list(data)) and len(data) == 2
    os.mkfifo("pipe")
    for source in ("pipe", ["pipe"], open(path, "rb"), lambda: path):
        raises("no length", len, PackDataset(source, 5))
    raises("no length", len, DataLoader(PackDataset("pipe", 5)))


def launchers(path):
    """One of several processes does not read all packs, whatever launched
    them; a single process does."""
    from packstream import PackDataset
    ours = ("WORLD_SIZE", "OMPI_", "PMI_", "SLURM_")
    outer = {name: value for name, value in os.environ.items()
             if not name.startswith(ours)}
    batch = {"SLURM_JOB_ID": "7", "SLURM_NTASKS": "2", "SLURM_PROCID": "0"}
    step = dict(batch, SLURM_STEP_ID="0", SLURM_STEP_NUM_TASKS="2")
    for variables, named in (
            ({"WORLD_SIZE": "2"}, "WORLD_SIZE=2"),
            ({"OMPI_COMM_WORLD_SIZE": "3"}, "OMPI_COMM_WORLD_SIZE=3"),
            ({"PMI_SIZE": "2"}, "PMI_SIZE=2"),
            (step, "SLURM_STEP_NUM_TASKS=2"),
            (dict(batch, SLURM_PROCID="1"), "SLURM_NTASKS=2"),
            (dict(batch, SLURM_STEP_ID="0"), "SLURM_NTASKS=2"),
            ({"WORLD_SIZE": "1"}, None), ({"PMI_SIZE": "1"}, None),
            ({"WORLD_SIZE": ""}, None),
            (batch, None),                              # sbatch
            ({"SLURM_JOB_ID": "7", "SLURM_NTASKS": "2"}, None),     # salloc
            (dict(step, SLURM_STEP_NUM_TASKS="1"), None),   # srun -n 1
            # torchrun --nproc-per-node=1 in each task
            (dict(step, WORLD_SIZE="1"), None)):
        os.environ.clear()
        os.environ.update(outer, **variables)
        if named:
            for call in ("init_process_group", "give rank", named):
                raises(call, numbers, PackDataset(path, 5))
            numbers(PackDataset(path, 5, 0, 2))
        else:
            assert numbers(PackDataset(path, 5)) == list(range(PACKS))


def other_packs(path, compressed):
    """A state of other packs, or of another order, is refused."""
    from packstream import PackDataset
    data = PackDataset(path, 5, shuffle=3)
    next(iter(data))
    for source, options, why in (
            ([path, compressed], {"shuffle": 3}, "packs is 96, not 48"),
            (path, {"shuffle": 4}, "order_crc32 is"),
            (path, {"order": np.arange(PACKS)[::-1]}, "order_crc32 is"),
            (path, {}, "order_crc32 is None, not")):
        other = PackDataset(source, 5, **options)
        other.load_state_dict(data.state_dict())
        raises(why, numbers, other)


def other_ranks(path):
    """Two ranks stop after the same number of batches, and three go on."""
    from packstream import PackDataset
    found = []
    for rank in range(2):
        data = PackDataset(path, 3, rank, 2, shuffle=3)
        batches = iter(data)
        found += numbers([next(batches) for _ in range(4)])
    for rank in range(3):
        other = PackDataset(path, 5, rank, 3, shuffle=3)
        other.load_state_dict(data.state_dict())
        found += numbers(other)
    assert sorted(found) == list(range(PACKS))


def states(path):
    """States that exist in workers, but not in the main process."""
    from packstream import PackDataset
    from torch.utils.data import DataLoader
    for context in ("fork", "spawn"):
        data = PackDataset(path, 5)
        loader = DataLoader(data, batch_size=None, num_workers=1,
                            multiprocessing_context=context)
        batches = iter(loader)
        first = next(batches)
        raises("StatefulDataLoader", data.state_dict)
        assert numbers([first]) + numbers(batches) == list(range(PACKS))
    assert numbers(data) == list(range(PACKS))
    assert data.state_dict() == {"start": 0, "epoch": 0}
    data.load_state_dict({"start": 5, "epoch": 0})
    raises("num_workers=0", numbers, DataLoader(data, batch_size=None,
                                                num_workers=1))
    assert numbers(DataLoader(data, batch_size=None)) == list(range(5, PACKS))
    for context in ("fork", "spawn"):
        persistent(path, context)
    with open(path, "rb") as file:
        raises("only one worker", numbers, DataLoader(
            PackDataset(file, 5), batch_size=None, num_workers=2))


def persistent(path, context):
    """Persistent workers learn of a new epoch."""
    from packstream import PackDataset
    from torch.utils.data import DataLoader
    data = PackDataset(path, 5, shuffle=3)
    loader = DataLoader(data, batch_size=None, num_workers=1,
                        persistent_workers=True,
                        multiprocessing_context=context)
    for epoch in (0, 1, 0):
        data.set_epoch(epoch)
        alone = PackDataset(path, 5, shuffle=3)
        alone.set_epoch(epoch)
        assert numbers(loader) == numbers(alone), epoch


def ranks(path):
    """The ranks of torch.distributed share packs, with and without workers."""
    from packstream import PackDataset
    sent = spawned(PackDataset(path, 5))
    for workers in (0, 2):
        found = processes(ranks_rank, sent, workers)
        assert sorted(found[0] + found[1]) == list(range(PACKS)), workers
        assert all(found)
    # The file of a rank is read whole.
    subprocess.run(["packdeal", "-n2", "-b4", "-oshare.%d.pks", path],
                   check=True)
    assert processes(share_rank, "share.%d.pks") == [PACKS // 2] * 2


def share_rank(rank, name):
    from packstream import PackDataset
    return sum(len(batch["index"]) for batch in PackDataset(name % rank, 5))


def ranks_rank(rank, sent, workers):
    """In a spawned process that received the dataset and is not a worker.
    Spawned workers know the rank."""
    import pickle
    from torch.utils.data import DataLoader
    data = pickle.loads(sent)
    assert pickle.loads(spawned(data))._told == (rank, 2)
    return numbers(DataLoader(data, batch_size=None, num_workers=workers))


def spawned(data):
    """The pickled dataset that a spawned process receives."""
    import pickle
    from multiprocessing.context import set_spawning_popen
    set_spawning_popen(True)
    sent = pickle.dumps(data)
    set_spawning_popen(None)
    return sent


# ---------------------------------------------------------------------
# DistributedDataParallel

def distributed(path):
    import ddp      # before the processes are forked, as below
    llama()
    found = processes(ddp_rank, path)
    assert len(found[0]) == len(found[1]) == PACKS // 2 // 4
    once(sum(found[0] + found[1], []))


def ddp_rank(rank, path):
    """The last gradient is that of the mean over the targets of both."""
    import torch
    from ddp import train
    model = llama()
    watch = Watch(model)
    train(model, path, size=4, lr=0)
    last = [None, None]
    torch.distributed.all_gather_object(last, watch.steps[-1])
    gradients = [p.grad.clone() for p in model.parameters()]
    watch.busy = True
    model.zero_grad()
    watch.alone(last[0] + last[1]).backward()
    for parameter, gradient in zip(model.parameters(), gradients):
        torch.testing.assert_close(gradient, parameter.grad)
    return watch.steps


def launched(path):
    """ddp.py in two processes with Slurm's variables."""
    import multiprocessing
    import socket
    import ddp
    llama()
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    context = multiprocessing.get_context("fork")
    started = [context.Process(target=launched_rank, args=(path, ".", {
        "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port),
        "SLURM_PROCID": str(rank), "SLURM_NTASKS": "2"}))
        for rank in range(2)]
    for process in started:
        process.start()
    for process in started:
        process.join()
        assert process.exitcode == 0
    launched_together(".")


def launched_rank(path, folder, variables=()):
    """A launcher's process; it prints the sequences that it trains on."""
    import json
    from torch import distributed
    import ddp
    os.environ.update(variables)
    ddp.join()
    model = llama()
    watch = Watch(model)
    ddp.train(model, path, size=4, workers=0)
    with open("%s/rank%d" % (folder, distributed.get_rank()), "w") as file:
        json.dump(watch.found, file)
    distributed.destroy_process_group()


def launched_together(folder):
    """Each of two processes has made half of the steps."""
    import json
    found = []
    for rank in range(2):
        with open("%s/rank%d" % (folder, rank)) as file:
            found.append(json.load(file))
    assert all(found)
    once(sum(found, []))


# ---------------------------------------------------------------------
# Accelerate

def accelerated(path):
    import with_accelerate
    llama()
    for number in (1, 2):
        once(sum(processes(accelerate_rank, path, number=number), []))
        for way in ("prepared", "own", "shard", "workers"):
            found = processes(prepared_rank, path, way, number=number)
            assert sorted(sum(found, [])) == list(range(PACKS)), (way, number)
    found = processes(uneven_rank, path)
    assert set(sum(found, [])) == set(range(PACKS))
    assert list(map(len, found)) == [25, 25]
    for way, why in (("shared", "deals out the packs"),
                     ("batches", "cannot deal"), ("around", "give rank")):
        raises_there(why, prepared_rank, path, way)
    assert len(set(sum(processes(deal_rank, path, "own"), []))) == PACKS
    assert len(set(sum(processes(deal_rank, path, "one"), []))) == PACKS
    for way in ("shard", "dispatch", "skip"):
        raises_there("one of 2 ranks already", deal_rank, path, way)
    accelerate_state(path)


def accelerate_rank(rank, path):
    from with_accelerate import train
    model = llama()
    watch = Watch(model)
    train(model, path, size=4, workers=0)
    return watch.found


def prepared_rank(rank, path, way):
    """Packs of a PackDataset, prepared or not."""
    from accelerate import Accelerator, DataLoaderConfiguration
    from packstream import PackDataset
    from torch.utils.data import ChainDataset, DataLoader
    accelerator = Accelerator(dataloader_config=DataLoaderConfiguration(
        dispatch_batches=False if way in ("shard", "batches") else None))
    data = PackDataset(path, 1 if way == "shard" else 4)
    if way == "shared":
        data = PackDataset(path, 4, rank, 2)
    elif way == "around":
        data = ChainDataset([data])
    loader = DataLoader(data, batch_size=4 if way == "shard" else None,
                        num_workers=2 if way == "workers" else 0)
    if way == "prepared" and accelerator.num_processes > 1:
        raises("no length under Accelerate", len, data)
    return numbers(loader if way == "own" else accelerator.prepare(loader))


def deal_rank(rank, path, way):
    """Packs of a Deal, in a DataLoader that was prepared, unless "own"."""
    import torch
    from accelerate import (Accelerator, DataLoaderConfiguration,
                            skip_first_batches)
    from torch.utils.data import DataLoader
    accelerator = Accelerator(dataloader_config=DataLoaderConfiguration(
        dispatch_batches=way == "dispatch"))
    source = packstream.open(path)
    deal = packstream.Deal(source, 4, *((0, 1) if way == "one" else (rank, 2)),
                           hidden=8)
    loader = DataLoader(source, batch_sampler=deal, collate_fn=lambda packs: {
        "index": torch.tensor([int(pack["index"]) for pack in packs])})
    if way != "own":
        loader = accelerator.prepare(loader)
    return numbers(skip_first_batches(loader, 1) if way == "skip" else loader)


def raises_there(why, work, *arguments):
    try:
        processes(work, *arguments)
    except Exception as error:
        assert why in str(error), error
        return
    raise AssertionError("%s(%r) does not fail" % (work, arguments))


def uneven_rank(rank, path):
    """Files whose packs do not make batches for all: no pack is lost."""
    from accelerate import Accelerator
    from torch.utils.data import DataLoader
    return numbers([{"index": np.array([pack["index"] for pack in packs])}
                    for packs in Accelerator().prepare(DataLoader(
                        packstream.open(path), 5, collate_fn=list))])


def accelerate_state(path):
    """Accelerate reads one batch ahead: its own state is right, and a
    dataset's is refused."""
    from accelerate import Accelerator, DataLoaderConfiguration
    from packstream import PackDataset
    from torch.utils.data import DataLoader
    for stateful in (False, True):
        accelerator = Accelerator(
            cpu=True, dataloader_config=DataLoaderConfiguration(
                use_stateful_dataloader=stateful))
        data = PackDataset(path, 4)
        loader = accelerator.prepare(DataLoader(data, batch_size=None))
        batches = iter(loader)
        before = numbers([next(batches) for _ in range(3)])
        if not stateful:
            raises("in advance", data.state_dict)
            continue
        again = accelerator.prepare(DataLoader(PackDataset(path, 4),
                                               batch_size=None))
        again.load_state_dict(loader.state_dict())
        assert before + numbers(again) == list(range(PACKS))


# ---------------------------------------------------------------------
# Trainers

def hf_trainer(path):
    """With sdpa on rows, with a single row as for flash-attention, and in two
    processes."""
    from packstream import hf
    import trainer
    llama()
    for number, convert in ((1, hf.rows), (1, hf.flattened), (2, hf.rows)):
        once(sum(processes(trainer_rank, path, convert, number=number), []))
    for packs in ({}, {"labels": [1]}, {"input_ids": [1]}):
        raises("remove_unused_columns=False", hf.collate, [packs])


def trainer_rank(rank, path, convert):
    from trainer import train
    model = llama()
    watch = Watch(model)
    train(model, packstream.open(path), convert, ddp_backend="gloo", **OPTIONS)
    return watch.found


def trainer_refuses(path):
    """A PackDataset in Trainer: its own collators expect samples, but one that
    passes the batch through can be used."""
    import functools
    import transformers
    from packstream import PackDataset, hf

    def train(size=1, steps=-1, workers=0, convert=hf.rows, collate=None,
              **given):
        trainer = transformers.Trainer(
            llama(), transformers.TrainingArguments(
                "checkpoints", per_device_train_batch_size=size,
                max_steps=steps, num_train_epochs=1, report_to="none",
                save_strategy="no", disable_tqdm=True, use_cpu=True,
                dataloader_num_workers=workers),
            train_dataset=PackDataset(path, 4, convert=convert),
            data_collator=collate, **given)
        watch = Watch(trainer.model)
        trainer.train()
        return watch.found
    tokenizer = word_tokenizer()
    for given in (
            {}, {"size": 4}, {"steps": 2}, {"workers": 1},
            {"convert": dict}, {"collate": hf.collate},
            {"collate": functools.partial(hf.collate, convert=hf.flattened)},
            {"processing_class": tokenizer},
            {"collate": transformers.DataCollatorForLanguageModeling(
                tokenizer, mlm=False)}):
        raises("use packstream.open", functools.partial(train, **given))
    once(train(collate=lambda batches: batches[0]))


def models(path):
    """Models that find the boundaries in position_ids, as hf.py lists them.
    Which do depends on the version of transformers, so a model that has begun
    to is only reported."""
    import torch
    import transformers
    from packstream import hf
    own = dict(vocab_size=VOCAB, hidden_size=32, num_hidden_layers=2,
               num_attention_heads=2)
    feed = dict(own, intermediate_size=32, pad_token_id=0)
    heads = dict(feed, num_key_value_heads=2)
    gpt = dict(vocab_size=VOCAB, n_embd=32, n_layer=2, n_head=2)
    for name, sizes, right in (
            ("Qwen3", heads, True), ("Mistral", heads, True),
            ("Mixtral", heads, True), ("Phi3", heads, True),
            ("Gemma2", dict(heads, head_dim=16), True),
            ("Olmo2", heads, True), ("Granite", heads, True),
            ("GPTNeoX", feed, True), ("GPT2", gpt, True),
            ("OPT", dict(own, ffn_dim=32, word_embed_proj_dim=32), False),
            ("Bloom", dict(own, n_head=2), False), ("Falcon", own, False),
            ("Mpt", dict(vocab_size=VOCAB, d_model=32, n_layers=2, n_heads=2),
             False),
            ("XGLM", dict(vocab_size=VOCAB, d_model=32, ffn_dim=32,
                          num_layers=2, attention_heads=2), False),
            ("BioGpt", feed, False), ("Mamba", own, False),
            ("Rwkv", own, False)):
        torch.manual_seed(2)
        config = getattr(transformers, name + "Config")(
            attn_implementation="eager", **sizes)
        model = transformers.AutoModelForCausalLM.from_config(config).eval()
        watch = Watch(model)
        watch.busy = True
        with torch.no_grad():
            for weights in model.parameters():
                if weights.ndim == 2:
                    weights *= 8    # otherwise attention hardly matters
            batch = hf.rows(packstream.open(path)[:8])
            found = model(**batch).loss / watch.alone(rows(batch))
        finds = abs(found - 1) < 1e-5
        if finds:
            hf.check_attention(model)
        else:
            raises("attend to each other", hf.check_attention, model)
        assert finds or not right, (name, found)
        if finds and not right:
            print("%s finds them, with transformers %s"
                  % (name, transformers.__version__))


def attention(path):
    """Losses equal those of separate sequences with each implementation, also
    flash-attention, whose kernels are replaced by the same computation; a
    model that does not separate sequences is refused."""
    import functools
    import torch
    import transformers
    from packstream import hf

    def attend(q, k, v, **options):
        return torch.nn.functional.scaled_dot_product_attention(
            *(x.transpose(-2, -3) for x in (q, k, v)),
            is_causal=True).transpose(-2, -3)

    def attend_varlen(q, k, v, cu_seqlens_q, **options):
        lengths = cu_seqlens_q.diff().tolist()
        return torch.cat([attend(*part) for part in zip(
            *(x.split(lengths) for x in (q, k, v)))])
    flash = transformers.modeling_flash_attention_utils
    flash.lazy_import_flash_attention = lambda *arguments, **options: (
        (attend, attend_varlen, None, None, None),
        (lambda **options: {}, None))
    torch.compiler.set_stance("force_eager")    # flex_attention
    for name in ("sdpa", "eager", "flex_attention", "flash_attention_2"):
        model = llama("sdpa")
        model.config._attn_implementation = name
        watch = Watch(model)
        for convert in (hf.rows, hf.flattened):
            watch.found = []
            model.lm_head.eval()
            hf.collator(model, convert, labels="tokens")
            assert model.training and not model.lm_head.training
            with torch.no_grad():
                for packs in packstream.open(path).batches(8):
                    model(**convert(packs))
            once(watch.found)
    opt = transformers.OPTForCausalLM(transformers.OPTConfig(
        vocab_size=VOCAB, hidden_size=32, num_hidden_layers=2,
        num_attention_heads=2, ffn_dim=32, word_embed_proj_dim=32))
    for convert in (hf.rows, hf.flattened):
        raises("attend to each other", hf.collator, opt, convert)
    opt.config._attn_implementation = "flash_attention_2"
    hf.check_attention(opt)
    raises("not sharded", hf.check_attention, opt.to("meta"))


def bert(path):
    """Masked-LM: the loss of packs equals that of separate sequences."""
    import torch
    from packstream import hf
    from transformers import BertConfig, BertForMaskedLM
    source = packstream.open(path)
    for attention in ("sdpa", "eager"):
        torch.manual_seed(2)
        model = BertForMaskedLM(BertConfig(
            vocab_size=VOCAB, hidden_size=32, intermediate_size=32,
            num_hidden_layers=2, num_attention_heads=2,
            max_position_embeddings=CAPACITY,
            attn_implementation=attention)).eval()
        hf.collator(model, hf.masked_rows, dtype=torch.float32)
        with torch.no_grad():
            for at in range(0, PACKS, 8):
                packs = source[at:at + 8]
                found = model(**hf.collate([source[at + i] for i in range(8)],
                                           hf.masked_rows)).loss
                losses, count = 0, 0
                for tokens, labels, cu, n in zip(
                        packs["tokens"], packs["labels"], packs["cu"],
                        packs["n_seq"]):
                    for begin, end in zip(cu[:n], cu[1:n + 1]):
                        own = torch.tensor(labels[begin:end]).long()
                        losses += torch.nn.functional.cross_entropy(
                            model(input_ids=torch.tensor(
                                [tokens[begin:end].tolist()])).logits[0],
                            own, reduction="sum")
                        count += int((own != -100).sum())
                torch.testing.assert_close(found, losses / count)


OPTIONS = dict(per_device_train_batch_size=4, num_train_epochs=1,
               report_to="none", save_strategy="no", disable_tqdm=True,
               use_cpu=True)


def word_tokenizer():
    from tokenizers import Tokenizer, models
    from transformers import PreTrainedTokenizerFast
    words = {"<pad>": 0, "<end>": 1, **{str(i): i for i in range(2, VOCAB)}}
    return PreTrainedTokenizerFast(
        tokenizer_object=Tokenizer(models.WordLevel(words, "<end>")),
        pad_token="<pad>", eos_token="<end>")


def trl_sft_trainer():
    """On a machine without a GPU."""
    from trl_sft import train
    os.environ["CUDA_VISIBLE_DEVICES"] = ""
    model = llama()
    watch = Watch(model)
    train(model, word_tokenizer(), labelled(), CAPACITY,
          **dict(OPTIONS, use_cpu=False))
    once(watch.found)


def exported_to_trl(path):
    """For rows loaded by `datasets` from either file, TRL's collator returns
    what packstream.hf returns for the packs."""
    import datasets
    from packstream import export, hf
    from trl.trainer.sft_trainer import DataCollatorForLanguageModeling
    for name in ("x.parquet", "x.arrow"):
        assert export.main([path, "-o", name, "--to=trl"]) == 0
    packs = packstream.open(path)
    collate = DataCollatorForLanguageModeling(pad_token_id=0,
                                              padding_free=True)
    for data in (datasets.Dataset.from_parquet("x.parquet", cache_dir="."),
                 datasets.Dataset.from_file("x.arrow")):
        assert len(data) == len(packs)
        for at in range(0, len(packs), 3):
            rows, batch = data.select(range(at, at + 3)), packs[at:at + 3]
            wanted, found = hf.flattened(batch), collate(list(rows))
            for name in ("input_ids", "labels", "position_ids"):
                assert np.array_equal(found[name], wanted[name]), name
            for name, value in hf.collate(list(rows), hf.flattened).items():
                assert np.array_equal(value, wanted[name]), name


def packed_rows():
    """Rows of pack_dataset in each trainer, with hf.collate."""
    import functools
    from packstream import hf
    packed = packstream.pack_dataset(labelled(), CAPACITY)
    masks = packed.remove_columns("labels").add_column(
        "loss_mask", [[int(label != -100) for label in row]
                      for row in packed["labels"]])
    flat = functools.partial(hf.collate, convert=hf.flattened)
    llama()             # before the processes are forked
    full = packed.select(range(len(packed) // 8 * 8))
    for way in ("accelerate", "ddp"):
        once(sum(processes(rows_rank, full, way), []), sequences_of(full))
    for collate in (hf.collate, flat):
        for way in ("trainer", "sft"):
            for given_rows in (packed, masks):
                once(rows_in_trainer(given_rows, collate, way))
    batches = [hf.collate([rows[i] for i in range(len(rows))])
               for rows in (packed, masks, packed.with_format("torch"))]
    for batch in batches[1:]:
        for name, values in batches[0].items():
            assert np.array_equal(batch[name], values), name
    wrong = dict(packed[0], labels=[1, 2])
    raises("labels has 2 values for", hf.collate, [wrong])
    raises_on_wrong_rows(packed)
    raises("not to 1", hf.collate, [dict(packed[0], seq_lengths=[1])])


def raises_on_wrong_rows(packed):
    """Input that cannot be collated, or would train on the wrong tokens."""
    from packstream import PackDataset, hf
    for wrong in ([], [packed[0], None], [packed.with_format("arrow")[:1]]):
        raises("list of single packs", hf.collate, wrong)
    row = {"input_ids": [4, 5, 6], "seq_lengths": [2, 1], "labels": [4, 5, 6]}
    for name, values in (("labels", [1, None, 2]), ("labels", [[1, 2, 3]]),
                         ("loss_mask", [None, 1, 1])):
        raises(name + ": not a list of numbers", hf.collate,
               [dict(row, **{name: values})])
    raises("different columns", hf.collate, [row, {
        "input_ids": [1], "seq_lengths": [1]}])
    narrow = hf.collate([dict(row, labels=np.array([4, 5, 6], np.uint16)),
                         dict(row, input_ids=[7], seq_lengths=[1],
                              labels=np.array([7], np.uint16))])
    assert narrow["labels"].tolist() == [[-100, 5, -100], [-100] * 3]
    # As many sequences as tokens.
    raises("not a per-token channel", hf.collate, [
        dict(row, labels=[1, 2]), {"input_ids": [1, 2, 3], "labels": [1, 2, 3],
                                   "seq_lengths": [1, 1, 1]}])


def rows_in_trainer(packed, collate, way):
    """What Trainer or SFTTrainer passes to a model."""
    from transformers import Trainer, TrainingArguments
    from trl import SFTConfig, SFTTrainer
    model = llama()
    watch = Watch(model)
    if way == "sft":
        trainer = SFTTrainer(model, SFTConfig(
            "checkpoints", max_length=None, remove_unused_columns=False,
            dataset_kwargs={"skip_prepare_dataset": True}, **OPTIONS),
            train_dataset=packed, data_collator=collate,
            processing_class=word_tokenizer())
    else:
        trainer = Trainer(model, TrainingArguments(
            "checkpoints", remove_unused_columns=False, **OPTIONS),
            train_dataset=packed, data_collator=collate)
    trainer.train()
    return watch.found


def rows_rank(rank, packed, way):
    """One of two processes, with its own loop."""
    import torch
    from accelerate import Accelerator
    from packstream import hf
    from torch.nn.parallel import DistributedDataParallel
    from torch.utils.data import DataLoader, DistributedSampler
    model = llama()
    watch = Watch(model)
    if way == "accelerate":
        model, loader = Accelerator().prepare(model, DataLoader(
            packed, 4, collate_fn=hf.collate))
    else:
        model = DistributedDataParallel(model)
        loader = DataLoader(packed, 4, collate_fn=hf.collate,
                            sampler=DistributedSampler(packed))
    for batch in loader:
        model(**batch).loss.backward()
    return watch.found


# ---------------------------------------------------------------------
# Others

def flex(path):
    """Only the losses: FlexAttention has no gradients on a CPU.  Compiling it
    would take most of a minute."""
    import torch
    from flex_attention import losses
    torch.compiler.set_stance("force_eager")
    model = llama("flex_attention")
    watch = Watch(model)
    assert len(list(losses(model, path, "cpu"))) == PACKS // 8
    once(watch.found)


def shared_prefixes():
    """Logits of responses that share a prompt are those of each prompt and
    response alone: with the dense mask and with FlexAttention."""
    import torch
    from flex_attention import block_mask
    torch.compiler.set_stance("force_eager")
    rng = np.random.default_rng(3)
    sequences, alone = [], []
    for group in range(30):
        prompt = rng.integers(1, VOCAB, rng.integers(2, 25)).tolist()
        sequences.append({"tokens": prompt[:-1], "prompt": group})
        alone.append((prompt[:-1], len(prompt) - 1))
        for _ in range(rng.integers(1, 4)):
            response = rng.integers(1, VOCAB, rng.integers(1, 15)).tolist()
            sequences.append({"tokens": prompt[-1:] + response,
                              "prompt": group})
            alone.append((prompt + response, len(response) + 1))
    for align in 1, 4:
        packer = packstream.Packer(
            96, vocab_size=VOCAB, group="prompt", align=align, channels={
                "prompt": packstream.Channel("int64", per="sequence")})
        batch = next(packer.pack(sequences, 1000))
        assert views.prefix_saved(batch) == \
            sum(len(tokens) for tokens, _ in alone) - batch["n_tok"].sum()
        dense = torch.from_numpy(views.prefix_mask(batch))[:, None]
        flex = block_mask(batch, "cpu", prefixes=True)
        own = torch.from_numpy(views.segments(batch))
        unshared = (own[:, :, None] == own[:, None]).tril()[:, None]
        for kind, mask, wanted in (("sdpa", dense, True),
                                   ("flex_attention", flex, True),
                                   ("sdpa", unshared, False)):
            model = llama(kind)
            assert same_logits(model, batch, mask, alone) == wanted


    # Two groups with one number, and packs without groups.
    channels = {"prompt": packstream.Channel("int64", per="sequence")}
    given = [{"tokens": [1] * n, "prompt": g} for n, g in (
        (4, 7), (3, 7), (8, 8), (8, 8), (5, 7), (4, 7))]
    for options, why in (({"group": "prompt"}, "have the same prompt"),
                         ({}, "have no groups")):
        batch = next(packstream.Packer(16, channels=channels, **options)
                     .pack(given, 9))
        raises(why, views.prefix_mask, batch)


def same_logits(model, batch, mask, alone):
    """True if the logits of each sequence of the batch are the last ones of
    its tokens alone; alone[id] has these tokens and how many are its own."""
    import torch
    worst = 0
    with torch.no_grad():
        found = model(
            torch.from_numpy(batch["tokens"].astype(np.int64)),
            attention_mask=mask, position_ids=torch.from_numpy(
                views.prefix_positions(batch)).long()).logits
        for row, cu, ids, n in zip(found, batch["cu"], batch["seq_id"],
                                   batch["n_seq"]):
            for at, i in zip(cu[:n], ids[:n]):
                tokens, own = alone[i]
                wanted = model(torch.tensor([tokens])).logits[0, -own:]
                worst = max(worst, float((row[at:at + own] - wanted).abs()
                                         .max() / wanted.abs().max()))
    return worst < 1e-4


FRAME, SPEAKER = 80, 16


def speech():
    """The outputs of a small speech model, whose inputs are vectors, are those
    of each sequence alone: in rows and without padding, with a vector per
    sequence."""
    import torch
    rng = np.random.default_rng(5)
    lengths = rng.integers(1, 40, 60)
    alone = [{"tokens": rng.integers(0, VOCAB, n),
              "mel": rng.standard_normal((n, FRAME), np.float32),
              "speaker": rng.standard_normal(SPEAKER, np.float32)}
             for n in lengths]
    with packstream.TokenWriter("speech.tok", vocab_size=VOCAB, channels={
            "speaker": packstream.Channel("float32[%d]" % SPEAKER,
                                          per="sequence"),
            "mel": "float32[%d]" % FRAME}) as writer:
        for sequence in alone:
            writer.write(sequence)
    model = speech_model()
    wanted = [speech_alone(model, sequence) for sequence in alone]
    for options in ("-d8",), ("-d8", "--align=4"), ():
        subprocess.run(["packstream", "-q", "-L64", *options, "-o",
                        "speech.pks", "speech.tok"], check=True)
        for convert in speech_rows, speech_ragged:
            found = 0
            for ids, inputs in packstream.PackDataset("speech.pks", 4,
                                                      convert=convert):
                with torch.no_grad():
                    output = model(**inputs)
                for number, i in enumerate(ids, 1):
                    torch.testing.assert_close(
                        output[inputs["numbers"] == number], wanted[i],
                        rtol=1e-5, atol=1e-5)
                found += len(ids)
            assert found == len(alone)
        tensors = next(iter(packstream.PackDataset("speech.pks", 4)))
        assert tensors["mel"].shape == (4, 64, FRAME)
        assert tensors["speaker"].shape == tensors["seq_id"].shape + (SPEAKER,)
        assert tensors["mel"].dtype == torch.float32


def speech_model():
    """Two layers of attention within a segment; inputs are projections of the
    frames, of their positions and of the speaker."""
    import torch
    from torch import nn
    torch.manual_seed(3)

    class Layer(nn.Module):
        def __init__(self, width):
            super().__init__()
            self.qkv = nn.Linear(width, 3 * width)
            self.out = nn.Linear(width, width)
            self.norms = nn.ModuleList(nn.LayerNorm(width) for _ in range(2))
            self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(),
                                     nn.Linear(4 * width, width))

        def forward(self, x, mask):
            q, k, v = (part.unflatten(-1, (4, -1)).transpose(1, 2) for part in
                       self.qkv(self.norms[0](x)).chunk(3, -1))
            x = x + self.out(nn.functional.scaled_dot_product_attention(
                q, k, v, mask[:, None]).transpose(1, 2).flatten(2))
            return x + self.mlp(self.norms[1](x))

    class Model(nn.Module):
        def __init__(self, width=32):
            super().__init__()
            self.frames = nn.Linear(FRAME, width)
            self.speakers = nn.Linear(SPEAKER, width)
            self.positions = nn.Embedding(64, width)
            self.layers = nn.ModuleList(Layer(width) for _ in range(2))

        def forward(self, mel, speaker, positions, numbers):
            """`numbers` has a different number for each sequence of a row."""
            x = self.frames(mel) + self.speakers(speaker) + \
                self.positions(positions)
            mask = numbers[:, :, None] == numbers[:, None]
            for layer in self.layers:
                x = layer(x, mask)
            return x

    return Model()


def speech_alone(model, sequence):
    import torch
    n = len(sequence["tokens"])
    with torch.no_grad():
        return model(torch.from_numpy(sequence["mel"])[None],
                     torch.from_numpy(sequence["speaker"])[None, None],
                     torch.arange(n)[None], torch.ones(1, n))[0]


def speech_rows(batch):
    """The ids of the sequences, and inputs [S, L, ...]; `numbers` counts the
    sequences of the batch from 1 and is 0 in the padding."""
    import torch
    segments = views.segments(batch)
    before = np.cumsum(batch["n_seq"]) - batch["n_seq"]
    speaker = np.take_along_axis(
        batch["speaker"], np.maximum(segments - 1, 0)[..., None], axis=1)
    return batch.sequences["seq_id"].tolist(), dict(
        mel=torch.from_numpy(batch["mel"].copy()),
        speaker=torch.from_numpy(speaker),
        positions=torch.from_numpy(views.positions(batch)),
        numbers=torch.from_numpy(np.where(
            segments, segments + before[:, None], 0)))


def speech_ragged(batch):
    """The same in one row, without padding."""
    import torch
    lengths = np.diff(views.merged_cu(batch, "ragged"))
    speaker = np.repeat(views.per_sequence(batch, "speaker"), lengths, axis=0)
    numbers = np.repeat(np.arange(1, len(lengths) + 1), lengths)
    return batch.sequences["seq_id"].tolist(), {
        name: torch.from_numpy(array)[None] for name, array in (
            ("mel", views.compact(batch, "mel")), ("speaker", speaker),
            ("positions", views.positions(batch, "ragged")),
            ("numbers", numbers))}


def pairs():
    """Sources and targets of a translation, whose lengths differ."""
    rng = np.random.default_rng(8)
    return [{"tokens": [0, *rng.integers(1, VOCAB, n)],
             "encoder_ids": rng.integers(1, VOCAB, m)}
            for n, m in rng.integers(1, 40, (60, 2))]


def packed_pairs(*options):
    """Packs of pairs() with 64 tokens and 96 elements of a list."""
    with packstream.TokenWriter("pairs.tok", vocab_size=VOCAB, channels={
            "encoder_ids": "uint16[]"}) as writer:
        for pair in pairs():
            writer.write(pair)
    subprocess.run(["packstream", "-q", "-L64", "--budget=encoder_ids:96",
                    *options, "-o", "pairs.pks", "pairs.tok"], check=True)
    return packstream.open("pairs.pks")


def encoder_decoder():
    """The logits and the loss of T5 are those of each pair alone; if the lists
    are moved by one element, they are not."""
    import torch
    from transformers import T5Config, T5ForConditionalGeneration
    for kind in "sdpa", "eager":
        torch.manual_seed(1)
        model = T5ForConditionalGeneration(T5Config(
            vocab_size=VOCAB, d_model=32, d_kv=8, d_ff=64, num_layers=2,
            num_heads=4, attn_implementation=kind)).eval()
        wanted = [pair_alone(model, pair) for pair in pairs()]
        for options in (), ("--align=4",):
            found = 0
            for batch in packed_pairs(*options).batches(4):
                assert pairs_are(model, batch, wanted)
                moved = dict(batch, **{"encoder_ids.cu": np.where(
                    np.arange(batch["cu"].shape[1]) == 1,
                    batch["encoder_ids.cu"] - 1, batch["encoder_ids.cu"])})
                moved = packstream.Batch(moved, batch.header, batch.sequences)
                assert not pairs_are(model, moved, wanted)
                found += len(batch.sequences)
            assert found == len(wanted)
        rows_of_pairs(model, wanted)
        trained_pairs(model)


def rows_of_pairs(model, wanted):
    """Rows of pack_dataset have the same logits as packs."""
    import pyarrow as pa
    from packstream import hf
    from packstream.rows import batch_of_rows
    table = pa.Table.from_pylist([{
        "input_ids": [int(token) for token in pair["tokens"]],
        "encoder_ids": pair["encoder_ids"].tolist(), "seq_id": i}
        for i, pair in enumerate(pairs())])
    packed = packstream.pack_dataset(
        table, 64, columns=["input_ids", "encoder_ids[]", "seq_id"],
        budget={"encoder_ids": 96}).to_pylist()
    assert pairs_are(model, batch_of_rows(packed[:5]), wanted)
    encoder, _ = hf.collate(packed[:5], hf.encoder_decoder, of="encoder_ids")
    assert len(encoder["input_ids"]) == 5


def trained_pairs(model):
    """A step of training in which no gradient is lost or undefined."""
    import torch
    from packstream import hf
    encoder, inputs = hf.encoder_decoder(packed_pairs()[:4], "encoder_ids")
    loss = model(encoder_outputs=model.encoder(**encoder), **inputs).loss
    loss.backward()
    assert all(torch.isfinite(p.grad).all() for p in model.parameters())
    model.zero_grad()


def pair_alone(model, pair):
    """The logits of the decoder."""
    import torch
    with torch.no_grad():
        return model(
            input_ids=torch.tensor(pair["encoder_ids"])[None],
            decoder_input_ids=torch.tensor([pair["tokens"]]).long(),
            use_cache=False).logits[0]


def pairs_are(model, batch, wanted):
    """True if the logits of a batch are those of the pairs, and its loss the
    mean over their tokens."""
    import torch
    from packstream import hf
    encoder, inputs = hf.encoder_decoder(batch, "encoder_ids")
    with torch.no_grad():
        output = model(encoder_outputs=model.encoder(**encoder), **inputs)
    segments, close, losses, count = views.segments(batch), True, 0, 0
    for row, n in enumerate(batch["n_seq"]):
        for k in range(n):
            i = batch["seq_id"][row][k]
            found = output.logits[row][torch.from_numpy(segments[row] == k + 1)]
            close &= bool((found - wanted[i]).abs().max() < 1e-5)
            targets = torch.tensor(pairs()[i]["tokens"][1:])
            losses += torch.nn.functional.cross_entropy(
                wanted[i][:-1], targets, reduction="sum")
            count += len(targets)
    return close and abs(float(output.loss - losses / count)) < 1e-5


def lists_flex():
    """The mask functions of FlexAttention are the dense masks, and the
    boundaries for flash-attention are those of each pair."""
    import torch
    from packstream import flash_attn, flex_attention
    from torch.nn.attention.flex_attention import create_mask
    for options in (), ("--align=4",):
        batch = packed_pairs(*options)[:5]
        for sees, dense in (
                (flex_attention.within(batch),
                 views.attention_mask(batch, causal=True)),
                (flex_attention.within(batch, "encoder_ids", causal=False),
                 views.attention_mask(batch, "encoder_ids")),
                (flex_attention.across(batch, "encoder_ids"),
                 views.cross_mask(batch, "encoder_ids"))):
            mask = create_mask(sees, len(dense), None, *dense.shape[1:], "cpu")
            assert (mask[:, 0].numpy() == dense).all()
        given = [pairs()[i] for i in batch.sequences["seq_id"]]
        ids, positions, args = flash_attn.varlen_list(batch, "encoder_ids",
                                                      "ragged")
        cross = flash_attn.cross(batch, "encoder_ids", "ragged")
        assert ids.tolist() == [t for one in given for t in one["encoder_ids"]]
        assert positions.tolist() == [
            t for one in given for t in range(len(one["encoder_ids"]))]
        for name, side in ("tokens", "q"), ("encoder_ids", "k"):
            lengths = [len(one[name]) for one in given]
            assert torch.diff(cross["cu_seqlens_" + side]).tolist() == lengths
            assert cross["max_seqlen_" + side] == max(lengths)
        assert torch.equal(args["cu_seqlens_q"], cross["cu_seqlens_k"])
        for view in "ghost", "static":
            ids, positions, args = flash_attn.varlen_list(
                batch, "encoder_ids", view)
            cross = flash_attn.cross(batch, "encoder_ids", view)
            assert len(ids) == len(positions) == args["cu_seqlens_k"][-1]
            assert len(cross["cu_seqlens_k"]) == len(cross["cu_seqlens_q"])
            assert cross["cu_seqlens_k"].dtype == torch.int32


def graphs():
    """Messages along the edges of packed graphs, and the sums over each graph,
    are those of each graph alone."""
    import torch
    rng = np.random.default_rng(9)
    alone = []
    for n in rng.integers(1, 30, 80):
        edges = rng.integers(0, n, (rng.integers(0, 3 * n), 2))
        alone.append({"tokens": rng.integers(0, 20, n), "edges": edges,
                      "bonds": rng.integers(0, 4, len(edges))})
    packer = packstream.Packer(
        64, vocab_size=20, budget={"edges": 150, "bonds": 150},
        channels={"edges": "uint32[2][]", "bonds": "uint8[]"})
    model = graph_model()

    def tensor(array):
        return torch.from_numpy(array.astype(np.int64))
    wanted = [model(tensor(one["tokens"]), tensor(one["edges"].T),
                    tensor(one["bonds"]),
                    torch.zeros(len(one["tokens"])).long(), 1)
              for one in alone]
    ids = []
    for batch in packer.pack(alone, 3):
        ids += (own := batch.sequences["seq_id"].tolist())
        for view in "ragged", "ghost":
            tokens = views.compact(batch) if view == "ragged" else \
                batch["tokens"].reshape(-1)
            edges = tensor(views.edge_index(batch, view=view))
            numbers = tensor(views.sequence_ids(batch, view))
            for change, same in (0, True), (1, False):
                nodes, sums = model(
                    tensor(tokens), (edges + change) % len(tokens),
                    tensor(views.compact(batch, "bonds")), numbers,
                    len(own) + 1)
                parts = [nodes[numbers == k] for k in range(len(own))]
                assert same == all(
                    torch.allclose(part, wanted[i][0], 1e-5, 1e-5) and
                    torch.allclose(total, wanted[i][1][0], 1e-5, 1e-5)
                    for i, part, total in zip(own, parts, sums))
    assert sorted(ids) == list(range(len(alone)))


def graph_model():
    """Two rounds of messages, which are summed at the second node of an
    edge."""
    import torch
    torch.manual_seed(4)
    atoms, bonds = torch.randn(20, 8), torch.randn(4, 8)
    weights = torch.randn(2, 8, 8) / 4

    def model(tokens, edges, kinds, numbers, n):
        x = atoms[tokens]
        for weight in weights:
            x = torch.tanh(x.index_add(0, edges[1], (
                x[edges[0]] + bonds[kinds]) @ weight))
        return x, torch.zeros(n, 8).index_add(0, numbers, x)
    return model


# ---------------------------------------------------------------------
# Context parallelism

LONGEST = 128       # capacity of these packs


def context_packs(align, longest=100, number=60):
    """Batches of aligned packs with labels and vectors.  The loss omits some
    tokens."""
    rng = np.random.default_rng(11)
    packer = packstream.Packer(
        LONGEST, depth=8, vocab_size=VOCAB, align=align, channels={
            "labels": packstream.Channel("int32", fill=-100),
            "frame": packstream.Channel("float32[3]")})
    return list(packer.pack([
        {"tokens": (tokens := rng.integers(1, VOCAB, n)),
         "labels": labels_of(tokens), "frame": rng.standard_normal((n, 3))}
        for n in rng.integers(1, longest, number)], 4))


def context_chunks(batch, rank, size):
    """The positions of a rank, from the definition, for each row."""
    found = []
    for row, n in zip(batch["cu"].tolist(), batch["n_seq"]):
        for begin, end in zip([*row[:n], row[n]], [*row[1:n + 1], LONGEST]):
            chunks = np.split(np.arange(begin, end), 2 * size)
            found += [*chunks[rank], *chunks[2 * size - 1 - rank]]
    return np.array(found).reshape(len(batch["cu"]), -1)


def context_views():
    """Each array of a rank has its chunks, whose shape is constant; packs that
    are not aligned are refused."""
    for size in 1, 2, 4:
        for batch in context_packs(8):
            for view in "ghost", "static":
                parts = [views.context_parallel(batch, rank, size, view)
                         for rank in range(size)]
                for rank, part in enumerate(parts):
                    part_is_right(batch, part, rank, size, view)
                for name in "tokens", "targets", "index":
                    joined = np.concatenate([getattr(part, name).reshape(-1)
                                             for part in parts])
                    wanted = {"tokens": batch["tokens"],
                              "targets": views.targets(batch),
                              "index": np.arange(batch["tokens"].size)}[name]
                    assert (joined[parts[0].order] == wanted.reshape(-1)).all()
        plain = dict(batch)         # without a header
        assert (views.context_parallel(plain, 0, size, labels="tokens").tokens
                == parts[0].tokens).all()
    raises("aligned to 8, but 8 ranks need a multiple of 16: pack with "
           "packstream --align=16", views.context_parallel, batch, 0, 8)
    raises("aligned to 8, ", views.context_parallel, batch, 0, 3)
    raises("--align=32", views.context_keys, plain, 0, 16)
    raises("no rank 2 of 2", views.context_parallel, batch, 2, 2)
    raises("no rank -1 of 2", views.context_index, batch, -1, 2)
    raises("no rank 0 of 0", views.context_parallel, batch, 0, 0)
    raises("use 'ghost'", views.context_parallel, batch, 0, 2, "ragged")
    for batch in context_packs(1)[:1]:
        raises("aligned to 1, but 2 ranks need a multiple of 4: pack with "
               "packstream --align=4", views.context_parallel, batch, 0, 2)
        raises("--align=4", views.context_index, dict(batch), 0, 2)
        assert (views.context_parallel(batch, 0, 1).tokens ==
                batch["tokens"]).all()
    context_megatron()


def part_is_right(batch, part, rank, size, view):
    index = context_chunks(batch, rank, size) if size > 1 else \
        np.arange(batch["tokens"].size).reshape(batch["tokens"].shape) % LONGEST
    rows = np.arange(len(index))[:, None]
    assert part.tokens.shape == (len(index), LONGEST // size)
    assert (part.index == rows * LONGEST + index).all()
    for found, whole in (
            (part.tokens, batch["tokens"]),
            (part.targets, views.targets(batch)),
            (part.positions, views.positions(batch, view)),
            (part.segments, views.segments(batch)),
            (part.sequence_ids, views.sequence_ids(batch, view).reshape(
                batch["tokens"].shape)),
            (part.channels["frame"], batch["frame"])):
        assert found.dtype == whole.dtype
        assert (found == whole[rows, index]).all()
    assert sorted(part.channels) == ["frame"]
    whole = views.merged_cu(batch, view)
    assert (part.cu_seqlens * size == whole).all()
    assert (part.whole_cu_seqlens_padded == whole).all()
    assert (np.diff(part.whole_cu_seqlens) == views.seqused(batch, view)).all()
    assert part.whole_max_seqlen == views.max_seqlen(batch, view)
    assert part.max_seqlen * size == part.whole_max_seqlen


def context_megatron():
    """The fields of all ranks are those of one; the parameters are the same."""
    import torch
    from packstream import megatron
    for batch in context_packs(8):
        raises("no rank 1 of 1", megatron.fields, batch, False, None, 1)
        for static in False, True:
            whole = megatron.fields(batch, static)
            for rank in range(4):
                found = megatron.fields(batch, static, None, rank, 4)
                index = views.context_index(batch, rank, 4).reshape(-1)
                for name, value in found.pop("packed_seq_params").items():
                    same = whole["packed_seq_params"][name]
                    assert torch.equal(value, same) \
                        if torch.is_tensor(value) else value == same
                for name, value in found.items():
                    assert torch.equal(value, whole[name][:, index]), name


def context_attention():
    """Causal attention of all ranks, put in order, is that of each sequence
    alone, and all ranks have equal work."""
    import torch
    for size in 1, 2, 4:
        work = np.zeros((4, size))
        for batch in context_packs(2 * size):
            for view in "ghost", "static":
                for kind, most in (torch.float64, 1e-13), (torch.float32, 1e-6):
                    attends(batch, size, view, kind, most)
            work += context_work(batch, size)
        ours, tokens, contiguous, pairs = work
        assert len(set(ours)) == 1
        assert tokens.max() < 1.25 * tokens.mean(), tokens
        if size > 1:
            assert contiguous[-1] > 1.4 * contiguous.mean()
        print(size, "ranks, pairs of each: padded", ours, "tokens", tokens,
              "contiguous", contiguous)


def attends(batch, size, view, kind, most):
    """With the arguments for flash-attention, and as FlexAttention does."""
    import torch
    from packstream import flash_attn, flex_attention
    from torch.nn.attention.flex_attention import create_mask
    torch.manual_seed(1)
    q, k, v = torch.randn(3, batch["tokens"].size, 2, 8, dtype=kind)
    parts = [views.context_parallel(batch, rank, size, view)
             for rank in range(size)]
    indices = [torch.from_numpy(part.index.reshape(-1)) for part in parts]
    gathered = [torch.cat([x[index] for index in indices]) for x in (k, v)]
    joined = [torch.cat([in_rows(x[index], batch) for index in indices], 2)
              for x in (k, v)]
    flash, flex = [], []
    for rank, index in enumerate(indices):
        *arrays, keys, args = flash_attn.context_parallel(
            batch, rank, size, view)
        for found, name in zip(arrays, ("tokens", "targets", "positions")):
            assert (found.numpy() == getattr(parts[rank], name).reshape(-1)
                    ).all() and found.dtype == torch.int64
        flash.append(last_sees_all(q[index], *(x[keys] for x in gathered),
                                   **args))
        queries = in_rows(q[index], batch)
        sees = flex_attention.context_parallel(batch, rank, size)
        mask = create_mask(sees, len(queries), None, queries.shape[2], LONGEST,
                           "cpu")
        flex.append(torch.nn.functional.scaled_dot_product_attention(
            queries, *joined, mask).transpose(1, 2).flatten(0, 1))
    wanted = context_alone(batch, q, k, v)
    real = torch.from_numpy(~views.padding(batch)).reshape(-1)
    for found in flash, flex:
        found = torch.cat(found)[torch.from_numpy(parts[0].order)]
        assert torch.isfinite(found).all()
        assert (found[real] - wanted).abs().max() < most


def in_rows(x, batch):
    """[S * l, heads, size] as [S, heads, l, size]."""
    return x.unflatten(0, (len(batch["cu"]), -1)).transpose(1, 2)


def last_sees_all(q, k, v, cu_seqlens_q, cu_seqlens_k, max_seqlen_q,
                  max_seqlen_k):
    """Attention as in flash_attn_varlen_func with causal=True."""
    import torch
    assert torch.diff(cu_seqlens_q).max() <= max_seqlen_q
    assert torch.diff(cu_seqlens_k).max() <= max_seqlen_k
    assert cu_seqlens_q[-1] == len(q) and cu_seqlens_k[-1] == len(k)
    out = torch.full_like(q, np.nan)
    for begin, end, first, last in zip(
            cu_seqlens_q.tolist(), cu_seqlens_q[1:].tolist(),
            cu_seqlens_k.tolist(), cu_seqlens_k[1:].tolist()):
        queries, keys = end - begin, last - first
        mask = torch.ones(queries, keys).tril(keys - queries).bool()
        out[begin:end] = torch.nn.functional.scaled_dot_product_attention(
            *(x.transpose(0, 1) for x in (
                q[begin:end], k[first:last], v[first:last])),
            mask).transpose(0, 1)
    return out


def context_alone(batch, *qkv):
    """Causal attention of each sequence, without padding."""
    import torch
    found = []
    for row, n in enumerate(batch["n_seq"]):
        for k in range(n):
            begin = row * LONGEST + int(batch["cu"][row, k])
            end = begin + int(batch["seq_tok"][row, k]
                              if "seq_tok" in batch else
                              batch["cu"][row, k + 1] - batch["cu"][row, k])
            found.append(torch.nn.functional.scaled_dot_product_attention(
                *(x[begin:end].transpose(0, 1) for x in qkv),
                is_causal=True).transpose(0, 1))
    return torch.cat(found)


def context_work(batch, size):
    """Pairs of query and key of each rank: those that a kernel computes, those
    whose query is a token, and both if ranks had contiguous parts of each
    sequence."""
    found = np.zeros((4, size))
    real = ~views.padding(batch).reshape(-1)
    # Of position p of a sequence: keys 0 to p.
    pairs = views.positions(batch).reshape(-1).astype(int) + 1
    for rank in range(size):
        index = views.context_index(batch, rank, size).reshape(-1)
        found[0, rank] = pairs[index].sum()
        found[1, rank] = pairs[index][real[index]].sum()
    cu = views.merged_cu(batch)
    lengths = np.repeat(np.diff(cu), np.diff(cu))
    part = views.positions(batch).reshape(-1) * size // lengths
    found[2] = np.bincount(part, pairs, size)
    found[3] = found[0].sum()
    return found


def context_llama():
    """The logits, the loss and the gradients of a Llama in 2 and 4 processes
    are those of one process."""
    import torch
    from packstream import hf
    for size in 2, 4:
        batch = context_packs(2 * size, 60, 20)[0]
        model = llama().double()
        wanted = model(**hf.rows(batch)).logits.flatten(0, 1)
        mean = torch.nn.functional.cross_entropy(
            wanted, torch.from_numpy(views.targets(batch)).flatten())
        mean.backward()
        parts = processes(context_llama_rank, dict(batch), size, number=size)
        order = torch.from_numpy(views.context_parallel(
            batch, 0, size).order)
        logits = torch.cat([part[0].flatten(0, 1) for part in parts])[order]
        real = torch.from_numpy(~views.padding(batch)).reshape(-1)
        same = functools.partial(torch.testing.assert_close, rtol=0, atol=1e-12)
        same(logits[real], wanted.detach()[real])
        for _, loss, gradients in parts:
            same(loss, mean.detach())
            for found, parameter in zip(gradients, model.parameters()):
                same(found, parameter.grad)


def context_llama_rank(rank, batch, size):
    """The logits of a rank; the loss and the gradients of all ranks."""
    import torch
    import torch.distributed as dist
    from packstream import flex_attention
    from torch.nn.attention.flex_attention import create_mask
    from transformers import AttentionInterface
    part = views.context_parallel(batch, rank, size, shifted=False)
    mask = create_mask(flex_attention.context_parallel(batch, rank, size),
                       len(part.tokens), None, part.tokens.shape[1], LONGEST,
                       "cpu")

    class Gather(torch.autograd.Function):
        """The keys or values of all ranks, and the sum of their gradients."""
        @staticmethod
        def forward(ctx, x):
            found = [torch.empty_like(x).contiguous() for _ in range(size)]
            dist.all_gather(found, x.contiguous())
            return torch.cat(found, 2)

        @staticmethod
        def backward(ctx, gradient):
            gradient = gradient.contiguous()
            dist.all_reduce(gradient)
            return gradient.chunk(size, 2)[rank]

    def attention(module, q, k, v, *_, **__):
        k, v = Gather.apply(k), Gather.apply(v)
        return torch.nn.functional.scaled_dot_product_attention(
            q, k, v, mask).transpose(1, 2), None
    AttentionInterface.register("context", attention)
    model = llama("context").double()
    logits = model(
        input_ids=torch.from_numpy(part.tokens.astype(np.int64)),
        position_ids=torch.from_numpy(part.positions).long(),
        use_cache=False).logits
    targets = torch.from_numpy(part.targets)
    count = (targets != -100).sum()
    dist.all_reduce(count)
    loss = torch.nn.functional.cross_entropy(
        logits.flatten(0, 1), targets.flatten(), reduction="sum") / count
    loss.backward()
    loss = loss.detach()
    gradients = [p.grad for p in model.parameters()]
    for tensor in loss, *gradients:
        dist.all_reduce(tensor)
    return logits.detach(), loss, gradients


# ---------------------------------------------------------------------
# Other trainers

def jax_model(path):
    """The losses of a batch are those of its separate sequences; a step lowers
    them."""
    import jax
    import jax_training
    from packstream import maxtext
    params = jax_training.init(VOCAB, CAPACITY)
    loss = jax.jit(jax_training.loss)

    def alone(row):
        batch = {name: np.zeros((1, CAPACITY), np.int32) for name in (
            "inputs", "inputs_position", "inputs_segmentation", "targets",
            "targets_segmentation")}
        n, labels = len(row), labels_of(row)[1:]
        batch["inputs"][0, :n] = row
        batch["inputs_position"][0, :n] = range(n)
        batch["inputs_segmentation"][0, :n] = 1
        batch["targets"][0, :n - 1] = np.maximum(labels, 0)
        batch["targets_segmentation"][0, :n - 1] = np.array(labels) != -100
        return loss(params, batch)
    found, wanted = (np.sum([loss(params, maxtext.features(batch))
                             for batch in packstream.open(path).batches(8)],
                            0), np.sum(list(map(alone, given())), 0))
    np.testing.assert_allclose(found, wanted, rtol=1e-5)
    batch = maxtext.features(packstream.open(path)[:8])
    params, first = jax_training.step(params, batch)
    assert jax_training.step(params, batch)[1] < first


def xformers(path):
    """Its mask is that of the segments; attention is that of sequences."""
    import torch
    from xformers_mask import unpadded
    for batch in packstream.open(path).batches(5):
        tokens, targets, positions, mask = unpadded(batch)
        numbers = np.repeat(np.arange(batch["n_seq"].sum()),
                            views.seqused(batch, "ragged"))
        order = np.arange(len(tokens))
        sees = (numbers[:, None] == numbers) & (order[:, None] >= order)
        assert ((mask.materialize(sees.shape) == 0).numpy() == sees).all()
        assert (tokens.numpy() == views.compact(batch)).all()
        assert len(targets) == len(positions) == len(tokens)
        assert torch.equal(positions == 0, torch.from_numpy(
            np.diff(numbers, prepend=-1) > 0))


def torchtitan(path):
    """Its loader returns each sequence once, its mask is that of the segments,
    and it resumes from a state."""
    import torch
    from torchtitan.models.common.attention import get_document_mask_mod
    from torchtitan_loader import PackLoader

    def loader(rank, ranks=2):
        return PackLoader(PackLoader.Config(path=path, num_workers=0),
                          dp_world_size=ranks, dp_rank=rank, seq_len=CAPACITY,
                          local_batch_size=4, tokenizer=None)
    found = []
    for rank in range(2):
        batches = list(loader(rank))
        assert len(batches) == PACKS // 8
        for inputs, targets in batches:
            assert targets.shape == inputs["input"].shape == (4, CAPACITY)
            found += rows({"input_ids": inputs["input"],
                           "position_ids": inputs["positions"]})
    once(found)
    # In file order, so that packs can be compared.
    inputs, targets = loader(0, 1).dataset.convert(packstream.open(path)[:4])
    segments = views.segments(packstream.open(path)[:4])
    index = torch.arange(CAPACITY)
    same = torch.stack([get_document_mask_mod(inputs["positions"])(
        row, 0, index[:, None], index[None]) for row in range(4)]).numpy()
    # Padding is a document of its own.
    assert (same == (segments[:, :, None] == segments[:, None])).all()
    assert torch.equal(targets, torch.from_numpy(
        views.targets(packstream.open(path)[:4])))
    begun = loader(0)
    part = iter(begun)
    next(part)
    state = begun.state_dict()
    rest = [inputs["input"] for inputs, _ in part]
    other = loader(0)
    other.load_state_dict(state)
    again = [inputs["input"] for inputs, _ in other]
    assert len(again) == len(rest) > 2 and all(map(torch.equal, rest, again))


def ray_data():
    """Both ways return each sequence once."""
    import pyarrow as pa
    import pyarrow.parquet
    import ray
    import ray_packs
    ray_packs.LENGTH = CAPACITY
    table = pa.table({"input_ids": given()})
    pyarrow.parquet.write_table(table, "x.parquet")
    ray.init(num_cpus=4, include_dashboard=False, runtime_env={"env_vars": {
        "PYTHONPATH": os.pathsep.join(sys.path)}})
    data = ray.data.read_parquet("x.parquet").repartition(5)
    once(sequences_of(ray_packs.stateless(data).take_all()))
    files = ray_packs.shares(data, os.getcwd())
    assert len(files) == 2
    found = []
    for file in files:
        for batch in packstream.open(file).batches(4):
            found += [row.tolist() for tokens, bounds, n in zip(
                batch["tokens"], batch["cu"], batch["n_seq"])
                for row in np.split(tokens, bounds[1:n + 1])[:n]]
    once(found)


def grain_workers(path):
    """Both of two processes, with workers."""
    import torch
    from grain_pipeline import pipeline
    model, found = llama(), []
    watch = Watch(model)
    watch.busy = True
    for process in range(2):
        for batch in pipeline(path, 4, process, 2):
            batch = {name: torch.tensor(array, dtype=torch.int64)
                     for name, array in batch.items()}
            inputs = {"input_ids": batch["inputs"],
                      "position_ids": batch["inputs_position"]}
            here = rows(inputs)
            found += here
            with torch.no_grad():
                logits = model(**inputs, use_cache=False).logits
                counted = batch["targets_segmentation"] > 0
                loss = torch.nn.functional.cross_entropy(
                    logits[counted], batch["targets"][counted])
                torch.testing.assert_close(loss, watch.alone(here), rtol=1e-5,
                                           atol=0)
    once(found)


def grain_program(path):
    """The example as a program, with jax if it is installed, and without."""
    import grain_pipeline
    os.mkdir("without")
    with open("without/jax.py", "w") as file:
        file.write("raise ImportError('no jax')")
    found = os.environ.get("PYTHONPATH", "")
    for where in (found, os.path.abspath("without") + os.pathsep + found):
        run = subprocess.run(
            [sys.executable, grain_pipeline.__file__, path],
            env=dict(os.environ, PYTHONPATH=where), capture_output=True,
            text=True)
        assert run.returncode == 0 and "Error" not in run.stderr, run.stderr
        assert run.stdout.count("'inputs': (8, %d)" % CAPACITY) == PACKS // 8


def parquet(path):
    import pyarrow
    import pyarrow.parquet
    rng = np.random.default_rng(6)
    words = ["".join(map(chr, rng.integers(97, 123, 5))) for _ in range(99)]
    pyarrow.parquet.write_table(pyarrow.table({"text": [
        " ".join(rng.choice(words, n)) for n in rng.integers(0, 9, 11000)]}),
        path)


def usage(examples):
    """Without arguments an example prints its usage."""
    import glob
    import runpy
    paths = glob.glob(os.path.join(examples, "*.py"))
    assert len(paths) > 5
    for path in paths:
        sys.argv = [path]
        try:
            runpy.run_path(path, {}, "__main__")
        except SystemExit as end:
            assert os.path.basename(path) in str(end.code), path
        else:
            raise AssertionError(path)


def readme(path, packs):
    """The code blocks in README.md that need a trainer's packages, each run
    after the one before it.  The machine may have no GPU."""
    import shutil
    shutil.copy(packs, "corpus.pks")
    with open(path) as file:
        blocks = file.read().split("```python\n")[1:]
    names = {"packstream": packstream, "dataset": labelled(), "model": llama(),
             "tokenizer": word_tokenizer(), "rank": 1, "ranks": 2}
    watch = Watch(names["model"])
    for block in blocks:
        lines = block.split("```")[0].replace('"checkpoints"', CHECKPOINTS)
        lines = lines.replace("deal.step(1200", "deal.step(1")
        exec(compile(lines, path, "exec"), names)
        train_as_shown(names)
    assert len(blocks) > 5
    once(sequences_of(names["packed"]))
    assert len(watch.steps) > 5


CHECKPOINTS = ('"checkpoints", use_cpu=True, max_steps=2, report_to="none", '
               'save_strategy="no"')


def train_as_shown(names):
    """Trains with the result of a block of README.md."""
    if "trainer" in names:
        names.pop("trainer").train()
    for batch in names.pop("loader", []):
        names["model"](**batch)
    if "batches" in names:
        counted = [batch["targets_segmentation"] > 0
                   for batch in names.pop("batches")]
        assert sum(map(np.sum, counted)) == count_targets(given())


if __name__ == "__main__":
    forked.main(globals())
