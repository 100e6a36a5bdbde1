"""torchtitan_loader.py - packs as a torchtitan dataloader.

    trainer_config.dataloader = PackLoader.Config(path="corpus.pks")

torchtitan finds sequence boundaries where positions are 0.  Choose "flex" or
"varlen" attention, because "sdpa" ignores boundaries.
States resume exactly, with the same number of ranks.

SPDX-License-Identifier: MIT
"""

import sys
from dataclasses import dataclass

if __name__ == "__main__":
    sys.exit(__doc__)

import torch
from packstream import PackDataset, views
from torchtitan.components.dataloader import ParallelAwareDataloader


def titan(batch):
    inputs = {"input": batch["tokens"], "positions": views.positions(batch)}
    return ({name: torch.from_numpy(array.astype("i8"))
             for name, array in inputs.items()},
            torch.from_numpy(views.targets(batch)))


class PackLoader(ParallelAwareDataloader):
    @dataclass(kw_only=True, slots=True)
    class Config(ParallelAwareDataloader.Config):
        path: str = "corpus.pks"
        shuffle: int = 1

    def __init__(self, config, *, dp_world_size, dp_rank, local_batch_size,
                 **others):
        data = PackDataset(config.path, local_batch_size, dp_rank,
                           dp_world_size, titan, shuffle=config.shuffle,
                           drop_last=True)
        super().__init__(data, dp_rank, dp_world_size, batch_size=None,
                         num_workers=config.num_workers,
                         persistent_workers=config.persistent_workers,
                         prefetch_factor=config.prefetch_factor)
