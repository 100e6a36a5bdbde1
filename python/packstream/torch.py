"""torch.py - packs as a torch IterableDataset:

    data = PackDataset("corpus.pks", 32, drop_last=True)
    for batch in DataLoader(data, batch_size=None, num_workers=4):
        batch["tokens"]                  # int64 [32, L]

Every pack is read once.  The ranks of torch.distributed share the packs, and
the workers of a rank share its batches, so batches do not depend on the number
of workers.  Set drop_last=True if ranks synchronize in each step; otherwise one
rank may have one batch more.

Accelerate's prepare() and Trainer share packs themselves; pass them
packstream.open(...) instead.  A PackDataset passed to them either yields all
packs for them to share, or raises an error if that is impossible.  Accelerate
can distribute only tensors, which excludes the output of hf.rows.  Trainer's
own collators are an error, because they would collate whole batches as if they
were samples.

state_dict() returns the resume point; a state for another number of packs or
another order is an error.  With workers, only torchdata's StatefulDataLoader
can read it, and it must resume with the same numbers of ranks and workers.

SPDX-License-Identifier: MIT
"""

from __future__ import annotations

import functools
import itertools
import mmap
import multiprocessing
import os
import sys
import zlib
from multiprocessing.context import get_spawning_popen
from typing import (Any, Callable, Dict, Iterator, Mapping, Optional, Sequence,
                    Tuple)

import numpy as np
import torch
from torch import distributed
from torch.utils.data import IterableDataset, get_worker_info

from packstream.files import is_pipe, open as open_packs
from packstream.epoch import check_seed, first_own, shuffled


def to_tensor(array: np.ndarray) -> torch.Tensor:
    """Copies an array to a tensor; unsigned integers of more than a byte
    become int64."""
    if array.dtype.kind == "u" and array.itemsize > 1:
        return torch.from_numpy(array.astype(np.int64))
    return torch.from_numpy(array.copy())


def to_tensors(batch: Mapping[str, np.ndarray]) -> Dict[str, torch.Tensor]:
    return {name: to_tensor(array) for name, array in batch.items()}


class PackDataset(IterableDataset):
    """Packs as batches.  `source` is any argument of packstream.open, or a
    function that returns one, called in each worker.  `convert` turns a batch
    of `size` packs, a dictionary of arrays, into a model's input: hf.rows,
    hf.flattened, megatron.fields.  The default returns the stored fields as
    tensors.  `labels` is passed on to `convert`.  `order`, an array of pack
    numbers, and drop_last are those of Packs.batches.

    `shuffle` is a seed, with which the packs of files get a new random order
    in each epoch; call set_epoch(), as with DistributedSampler.

    rank and ranks default to those of torch.distributed when the iteration
    starts; a file that packdeal wrote for a rank is read completely.  If
    torch.distributed is not initialized, every pack is read, which is an error
    if torchrun, mpirun or srun has started several processes.  Pass both if
    several processes need the same packs, as in tensor parallelism."""

    def __init__(self, source: Any, size: int, rank: Optional[int] = None,
                 ranks: Optional[int] = None,
                 convert: Callable[[Any], Any] = to_tensors,
                 shuffle: Optional[int] = None,
                 order: Optional[np.ndarray] = None, drop_last: bool = False,
                 labels: Optional[str] = None):
        if (rank is None) != (ranks is None):
            raise ValueError("rank and ranks go together")
        check_seed(shuffle)
        if shuffle is not None and order is not None:
            raise ValueError("either order or shuffle")
        if labels is not None:
            if convert is to_tensors:
                raise ValueError("labels= is for a convert that makes labels, "
                                 "such as hf.rows")
            convert = functools.partial(convert, labels=labels)
        self.source, self.size, self.convert = source, size, convert
        self.rank, self.ranks = rank, ranks
        self.shuffle, self.order, self.drop_last = shuffle, order, drop_last
        self.epoch = self.start = self.resume = 0
        self._of: Dict[str, Any] = {}   # the packs that `start` refers to
        self._loaded = False    # a state was loaded, outside a worker
        self._begun = False     # this worker has begun an epoch
        self._shared = _shared_memory()
        # From the process that spawned this one: its rank and ranks; its id
        # and its _shared.
        self._told: Optional[Tuple[int, int]] = None
        self._parent: Optional[Tuple[int, torch.Tensor]] = None

    def __iter__(self) -> Iterator[Any]:
        """Starts an iteration, which state_dict() describes from now on, even
        before the first batch."""
        if self._begun:         # a persistent worker
            self.epoch = int(self._main_memory()[EPOCH])
        self._begun = get_worker_info() is not None
        self.start = self.resume
        return self._batches()

    def _batches(self) -> Iterator[Any]:
        info = get_worker_info()
        if info and self._loaded:
            raise RuntimeError(
                "a state was loaded into a PackDataset, of which each worker "
                "of a DataLoader has a copy that would begin there in every "
                "epoch: load it into a StatefulDataLoader of torchdata, or "
                "use num_workers=0")
        worker, workers = (info.id, info.num_workers) if info else (0, 1)
        if workers > 1 and is_pipe(self.source):
            raise ValueError("only one worker can read a pipe: use "
                             "num_workers=1, or give a function that opens "
                             "one for each")
        self._shared[IN_WORKERS] = info is not None
        rank, ranks = self._share()
        packs = open_packs(self.source() if callable(self.source)
                           else self.source)
        if self.ranks is None and packs.header.share:
            rank, ranks = 0, 1
        count = len(packs) if hasattr(packs, "__len__") else None
        order = self.order
        if self.shuffle is not None:
            order = shuffled(count or 0, self.shuffle, self.epoch)
        of = {"packs": count, "order_crc32": None if order is None else
              zlib.crc32(np.ascontiguousarray(order, np.int64))}
        if info:        # workers progress at different speeds
            of["shards"] = ranks * workers
        self.start = start = self.resume
        if start:
            _check_state(self._of, of)
        self._of = of
        self.resume, self._loaded = 0, False    # the next iteration restarts
        if workers > 1 and count is not None:
            own = self._own(np.arange(count) if order is None else order,
                            start, rank, ranks)
            own = own[np.arange(len(own)) // self.size % workers == worker]
            batches = packs.batches(self.size, order=own)
        else:
            batches = itertools.islice(
                packs.batches(self.size, rank, ranks, start, order,
                              self.drop_last), worker, None, workers)
        for batch in batches:
            self.start = start = start + self.size * ranks * workers
            yield self.convert(batch)
        self.start = 0

    def _own(self, order: Sequence[int], start: int, rank: int,
             ranks: int) -> Sequence[int]:
        """Yields the packs of a rank from `start` on, in order, without the
        packs that drop_last drops."""
        own = order[first_own(0, rank, ranks, start)::ranks]
        if not self.drop_last:
            return own
        steps = max(0, len(order) - start) // (self.size * ranks)
        return own[:steps * self.size]

    def __len__(self) -> int:
        """The number of batches that the next iteration yields in this
        process, with any number of workers.  Raises TypeError for a pipe or a
        function, and where Accelerate may share the packs."""
        sources = self.source if isinstance(self.source, (list, tuple)) \
            else [self.source]
        if any(callable(one) or is_pipe(one) for one in sources):
            raise TypeError("a PackDataset of a pipe or a function has no "
                            "length: only files say how many packs they have")
        if self.ranks is None and _accelerate_processes() > 1:
            raise TypeError("a PackDataset without rank and ranks has no "
                            "length under Accelerate, which may share its "
                            "packs")
        order = range(len(open_packs(self.source))) if self.order is None \
            else self.order
        return -(-len(self._own(order, self.resume, *self._share())) //
                 self.size)

    def set_epoch(self, epoch: int) -> None:
        """Selects the order of `shuffle` for the next iteration."""
        if epoch != self.epoch:
            if self.shuffle is not None and self.resume:
                raise ValueError("the state that was loaded is of epoch %d, "
                                 "not %d" % (self.epoch, epoch))
            self.start = self.resume
        self.epoch = self._shared[EPOCH] = epoch
        if accelerate_loader() is not None:     # it calls this everywhere
            self._share()

    def state_dict(self) -> Dict[str, Any]:
        """Returns the state to resume from after the last batch."""
        if not get_worker_info():
            if self._shared[IN_WORKERS]:
                raise RuntimeError(
                    "workers of a DataLoader read these packs, and only they "
                    "know where they are: use StatefulDataLoader of torchdata "
                    "and its state_dict(), or num_workers=0")
            loader = accelerate_loader()
            if loader is not None and _is_of(loader, self) and \
                    not loader.use_stateful_dataloader:
                raise RuntimeError(
                    "Accelerate has taken a batch in advance: use "
                    "use_stateful_dataloader=True and the state_dict() of "
                    "the DataLoader that it prepared")
        state = {"start": self.start, "epoch": self.epoch}
        return dict(state, of=self._of) if self.start else state

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        self.start = self.resume = state["start"]
        self.epoch = state["epoch"]
        self._of = state.get("of", {})
        self._loaded = get_worker_info() is None
        self._begun = False     # continue in the epoch of the state

    def _share(self) -> Tuple[int, int]:
        """Returns the rank of this process and the number of ranks.  If an
        Accelerate DataLoader distributes the packs, all packs must be read,
        because a share would be divided a second time."""
        loader = accelerate_loader()
        if loader is not None and _is_of(loader, self) and _collates(loader):
            raise RuntimeError(
                "PackDataset yields whole batches, which Trainer would "
                "collate again: use packstream.open(...) with "
                "data_collator=hf.collate; or, in a single process, "
                "per_device_train_batch_size=1 and "
                "data_collator=lambda batches: batches[0]")
        if loader is not None and _deals(loader):
            if _is_of(loader, self):
                if (self.ranks or 1) > 1:
                    raise RuntimeError(
                        "Accelerate deals out the packs that this PackDataset "
                        "reads for one of %d ranks already: do not prepare() "
                        "its DataLoader, or leave out rank and ranks"
                        % self.ranks)
                if getattr(loader.dataset, "batch_size", 1) is None:
                    raise RuntimeError(
                        "with dispatch_batches=False Accelerate cannot deal "
                        "out batches that a dataset made: do not prepare() "
                        "the DataLoader of a PackDataset, which shares by "
                        "itself")
                return 0, 1
            if self.ranks is None:
                raise RuntimeError(
                    "a DataLoader that Accelerate prepared is in use, perhaps "
                    "around this PackDataset: give rank and ranks; 0 and 1 "
                    "if Accelerate deals out its packs")
        if self.ranks is not None:
            return self.rank or 0, self.ranks
        if distributed.is_available():
            if distributed.is_initialized():
                return distributed.get_rank(), distributed.get_world_size()
            if self._told and get_worker_info():
                return self._told
        variable = launched()
        if variable and int(os.environ[variable]) > 1:
            raise RuntimeError(
                "%s=%s: a launcher started several processes, and all would "
                "read the same packs: call init_process_group() first, or "
                "give rank and ranks" % (variable, os.environ[variable]))
        return 0, 1

    def _main_memory(self) -> torch.Tensor:
        """Returns _shared of the process that started this worker."""
        parent = multiprocessing.parent_process()
        if self._parent and parent and self._parent[0] == parent.pid:
            return self._parent[1]
        return self._shared             # it was forked

    def __getstate__(self) -> Dict[str, Any]:
        state = dict(self.__dict__, _shared=None)
        if get_spawning_popen():    # maybe a worker, which has no ranks
            self._shared[IN_WORKERS] = True
            state["_told"] = self._share()
            state["_parent"] = os.getpid(), self._shared.share_memory_()
        return state

    def __setstate__(self, state: Dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._shared = _shared_memory()
        self._shared[EPOCH] = self.epoch


# Variables with the number of processes, set by torchrun, Open MPI, MPICH and
# Slurm
LAUNCHERS = ("WORLD_SIZE", "OMPI_COMM_WORLD_SIZE", "PMI_SIZE",
             "SLURM_STEP_NUM_TASKS")


def launched() -> Optional[str]:
    """Returns the variable with the number of processes of this launch, or
    None.

    SLURM_NTASKS alone is not enough: it is also set in sbatch scripts and
    salloc shells, which are single processes.  Only tasks of srun have
    SLURM_STEP_ID or a nonzero SLURM_PROCID."""
    for name in LAUNCHERS:
        if os.environ.get(name, "").isdigit():
            return name
    is_task = os.environ.get("SLURM_STEP_ID") or \
        os.environ.get("SLURM_PROCID", "0") != "0"
    return "SLURM_NTASKS" if is_task and os.environ.get("SLURM_NTASKS") \
        else None


IN_WORKERS, EPOCH = range(2)


def _shared_memory() -> torch.Tensor:
    """Returns shared memory with IN_WORKERS, true if workers read the packs,
    and EPOCH, from which persistent workers learn the epoch."""
    return torch.frombuffer(mmap.mmap(-1, 16), dtype=torch.int64)


def _check_state(of: Mapping[str, Any], now: Mapping[str, Any]) -> None:
    """Raises ValueError if a state refers to other packs than the current
    packs."""
    for name, value in of.items():
        if value != now.get(name):
            raise ValueError("the state that was loaded does not fit: %s is "
                             "%s, not %s" % (name, now.get(name), value))


def accelerate_loader() -> Any:
    """Returns the Accelerate DataLoader that is being iterated over, or
    None."""
    module = sys.modules.get("accelerate.state")
    if module is None or not module.GradientState._shared_state:
        return None
    return module.GradientState().active_dataloader


def _accelerate_processes() -> int:
    module = sys.modules.get("accelerate.state")
    return 1 if module is None else \
        module.PartialState._shared_state.get("num_processes", 1)


def _deals(loader: Any) -> bool:
    """True if the loader distributes the output of an IterableDataset."""
    module = sys.modules["accelerate.data_loader"]
    return isinstance(loader, module.DataLoaderDispatcher) or \
        isinstance(loader.dataset, module.IterableDatasetShard)


def _collates(loader: Any) -> bool:
    """True if the loader's collator is from a trainer's package, and so
    expects samples instead of batches."""
    collate = loader.collate_fn
    collate = getattr(collate, "data_collator", collate)    # of Trainer's own
    collate = getattr(collate, "func", collate)             # of a partial
    package = getattr(collate, "__module__", None) or ""
    return loader.batch_size is not None and \
        package.split(".")[0] in ("transformers", "trl", "packstream")


def shards_again(batch_sampler: Any) -> bool:
    """True if Accelerate gives each process only a part of its batches."""
    loader = accelerate_loader()
    if loader is None:
        return False
    module = sys.modules["accelerate.data_loader"]
    again = isinstance(loader, module.DataLoaderDispatcher)
    inner = loader.batch_sampler
    while inner is not None and inner is not batch_sampler:
        again = again or isinstance(inner, module.BatchSamplerShard)
        inner = getattr(inner, "batch_sampler", None)
    return again and inner is batch_sampler


def _is_of(loader: Any, dataset: Any) -> bool:
    """True if the loader reads this dataset."""
    inner = loader.dataset
    return inner is dataset or getattr(inner, "dataset", None) is dataset
