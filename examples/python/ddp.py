"""ddp.py - training on packs with DistributedDataParallel.

    torchrun --nproc_per_node=2 ddp.py corpus.pks
    srun python3 ddp.py corpus.pks          # or mpirun; set MASTER_ADDR and
                                            # MASTER_PORT as for torchrun

PackDataset takes rank and ranks from torch.distributed, and its workers share
the batches of their rank.  With drop_last all ranks make equally many steps;
with shuffle, set_epoch selects a new order, and so other packs to drop.

DDP averages the gradients of ranks, but ranks can have different numbers of
targets.  Weighting each loss by its number of targets makes the step that of
the mean over all targets.

SPDX-License-Identifier: MIT
"""

import os
import sys

import packstream
import torch
from packstream import PackDataset, hf
from torch import distributed
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader
from transformers import LlamaConfig, LlamaForCausalLM


# The variables of rank and ranks: torchrun's, Open MPI's, MPICH's and Slurm's.
LAUNCHERS = (("RANK", "WORLD_SIZE"),
             ("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"),
             ("PMI_RANK", "PMI_SIZE"), ("SLURM_PROCID", "SLURM_NTASKS"))


def join():
    """Joins the processes started by the launcher."""
    for names in LAUNCHERS:
        if all(name in os.environ for name in names):
            rank, ranks = (int(os.environ[name]) for name in names)
            return distributed.init_process_group("gloo", rank=rank,
                                                  world_size=ranks)
    sys.exit("ddp.py: start it with torchrun, srun or mpirun")


def train(model, path, size=8, epochs=1, lr=1e-3, workers=2):
    hf.check_attention(model)
    model = DistributedDataParallel(model)
    optimizer = torch.optim.AdamW(model.parameters(), lr)
    data = PackDataset(path, size, convert=hf.rows, shuffle=1, drop_last=True)
    loader = DataLoader(data, batch_size=None, num_workers=workers)
    for epoch in range(epochs):
        data.set_epoch(epoch)
        for batch in loader:
            targets = (batch["labels"] != -100).sum()
            total = targets.clone()
            distributed.all_reduce(total)
            weight = targets * distributed.get_world_size() / total
            loss = model(**batch).loss * weight
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    return model


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    join()
    train(LlamaForCausalLM(LlamaConfig(
        vocab_size=packstream.open(sys.argv[1]).header.vocab_size or sys.exit(
            "%s: no vocabulary size: pack what tokcat --vocab=N writes"
            % sys.argv[1]),
        hidden_size=64, intermediate_size=128, num_hidden_layers=2,
        num_attention_heads=4)), sys.argv[1])
    distributed.destroy_process_group()
