"""with_accelerate.py - packs in a training loop with Accelerate.

    accelerate launch --num_processes 2 with_accelerate.py corpus.pks

packstream.open returns a Dataset like any other, which prepare() shares among
the processes.  Without drop_last=True the first packs would be repeated, to
fill up the last batches.

For a PackDataset, which supports pipes and exact resume and shares packs among
ranks itself, do not pass the DataLoader to prepare(), and use drop_last=True.

SPDX-License-Identifier: MIT
"""

import sys

import packstream
import torch
from accelerate import Accelerator
from packstream import hf
from torch.utils.data import DataLoader
from transformers import LlamaConfig, LlamaForCausalLM


def train(model, path, size=8, epochs=1, lr=1e-3, workers=2):
    accelerator = Accelerator()
    optimizer = torch.optim.AdamW(model.parameters(), lr)
    loader = DataLoader(packstream.open(path), size, shuffle=True,
                        drop_last=True, num_workers=workers,
                        collate_fn=hf.collator(model))
    model, optimizer, loader = accelerator.prepare(model, optimizer, loader)
    for _ in range(epochs):
        for batch in loader:
            loss = model(**batch).loss
            accelerator.backward(loss)
            optimizer.step()
            optimizer.zero_grad()


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    train(LlamaForCausalLM(LlamaConfig(
        vocab_size=50000, hidden_size=64, intermediate_size=128,
        num_hidden_layers=2, num_attention_heads=4)), sys.argv[1])
