"""ddp.py - packs in DistributedDataParallel.

    torchrun --nproc_per_node=2 ddp.py corpus.pks

PackDataset takes rank and ranks from torch.distributed, and its workers share
what is a rank's.  With drop_last all ranks make as many steps; with shuffle,
set_epoch draws what is left out anew.

DDP takes the mean of the ranks' gradients, but packs of one rank may have
more targets than those of another: each loss is weighted by them, so that the
step is that of the mean over all targets.

SPDX-License-Identifier: MIT
"""

import sys

import torch
from packstream import PackDataset, hf
from torch import distributed
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader
from transformers import LlamaConfig, LlamaForCausalLM


def train(model, path, size=8, epochs=1, lr=1e-3, workers=2):
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
    distributed.init_process_group("gloo")
    train(LlamaForCausalLM(LlamaConfig(
        vocab_size=50000, hidden_size=64, intermediate_size=128,
        num_hidden_layers=2, num_attention_heads=4)), sys.argv[1])
    distributed.destroy_process_group()
