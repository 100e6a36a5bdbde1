"""trainer.py - packs in the Trainer of transformers.

    python3 trainer.py corpus.pks

hf.collator makes a batch of packs, one row each, and first checks that the
model keeps the sequences of a pack apart; with flash-attention,
hf.collator(model, hf.flattened) makes one row without padding.
remove_unused_columns would remove columns that the collator needs.

The vocabulary is that of the packs.  As with any Dataset, Trainer shuffles the
packs, distributes them over the processes of torchrun and resumes from its
checkpoints.

SPDX-License-Identifier: MIT
"""

import sys

import packstream
from packstream import hf
from transformers import (LlamaConfig, LlamaForCausalLM, Trainer,
                          TrainingArguments)


def train(model, packs, convert=hf.rows, **options):
    arguments = TrainingArguments("checkpoints", remove_unused_columns=False,
                                  dataloader_drop_last=True, **options)
    trainer = Trainer(model, arguments, train_dataset=packs,
                      data_collator=hf.collator(model, convert))
    return trainer.train()


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    packs = packstream.open(sys.argv[1])
    train(LlamaForCausalLM(LlamaConfig(
        vocab_size=packs.header.vocab_size or sys.exit(
            "%s: no vocabulary size: pack what tokcat --vocab=N writes"
            % sys.argv[1]),
        hidden_size=64, intermediate_size=128, num_hidden_layers=2,
        num_attention_heads=4)),
        packs, max_steps=100, per_device_train_batch_size=8)
