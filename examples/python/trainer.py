"""trainer.py - packs in Trainer of transformers.

    python3 trainer.py corpus.pks

hf.collate makes a batch of packs, a row for each; with flash-attention,
functools.partial(hf.collate, convert=hf.flattened) makes one row of them all.
remove_unused_columns would remove what the collator needs.

Trainer shuffles, shares among the processes of torchrun and resumes from its
checkpoints as with any Dataset.

SPDX-License-Identifier: MIT
"""

import sys

import packstream
from packstream import hf
from transformers import (LlamaConfig, LlamaForCausalLM, Trainer,
                          TrainingArguments)


def train(model, path, collate=hf.collate, **options):
    arguments = TrainingArguments("checkpoints", remove_unused_columns=False,
                                  dataloader_drop_last=True, **options)
    trainer = Trainer(model, arguments, train_dataset=packstream.open(path),
                      data_collator=collate)
    return trainer.train()


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    train(LlamaForCausalLM(LlamaConfig(
        vocab_size=50000, hidden_size=64, intermediate_size=128,
        num_hidden_layers=2, num_attention_heads=4)), sys.argv[1],
        num_train_epochs=1, per_device_train_batch_size=8)
