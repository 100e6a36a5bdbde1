"""torch.py - packs as a torch IterableDataset:

    data = PackDataset("corpus.pks", 32, rank=rank, ranks=world_size)
    for batch in DataLoader(data, batch_size=None, num_workers=4):
        batch["tokens"]                  # int64 [32, L]

Each pack comes once: those of a rank are dealt out to its workers in turn.
Ranks that wait for each other in every step need drop_last=True, without
which one may have a batch more than another.
StatefulDataLoader of torchdata resumes it, with as many workers as before.

SPDX-License-Identifier: MIT
"""

import numpy as np
import torch
from torch.utils.data import IterableDataset, get_worker_info

from packstream import packs


def to_tensor(array):
    """A copy; unsigned integers of more than a byte become int64."""
    if array.dtype.kind == "u" and array.itemsize > 1:
        return torch.from_numpy(array.astype(np.int64))
    return torch.from_numpy(array.copy())


def to_tensors(batch):
    return {name: to_tensor(array) for name, array in batch.items()}


class PackDataset(IterableDataset):
    """`source` is a path, or a function that opens a stream: each worker
    calls it.  `convert` makes of a batch, a dictionary of arrays, what is
    wanted; `options` are more of packs.Packs.batches."""

    def __init__(self, source, size, rank=0, ranks=1, convert=to_tensors,
                 **options):
        self.source, self.size, self.convert = source, size, convert
        self.rank, self.ranks, self.options = rank, ranks, options
        self.start = self.resume = 0

    def __iter__(self):
        info = get_worker_info()
        worker, workers = (info.id, info.num_workers) if info else (0, 1)
        source = self.source() if callable(self.source) else self.source
        shard, shards = self.rank + self.ranks * worker, self.ranks * workers
        self.start = start = self.resume
        self.resume = 0     # for once: another iteration begins anew
        for batch in packs.open_packs(source).batches(
                self.size, shard, shards, start, **self.options):
            self.start = start = start + shards * len(batch["tokens"])
            yield self.convert(batch)
        self.start = 0

    def state_dict(self):
        return {"start": self.start}

    def load_state_dict(self, state):
        self.start = self.resume = state["start"]
