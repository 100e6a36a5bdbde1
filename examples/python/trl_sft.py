"""trl_sft.py - a packed dataset in SFTTrainer of TRL.

    python3 trl_sft.py DATASET MODEL

DATASET is a folder that save_to_disk of datasets wrote, with input_ids and
perhaps labels; MODEL is what from_pretrained takes.

The dataset is packed already, so max_length=None: nothing is cut.  Only with
padding_free=True positions are made of seq_lengths; without it the sequences
of a pack would see each other.  packing=True would pack the packs.

SPDX-License-Identifier: MIT
"""

import sys

import packstream
from datasets import load_from_disk
from transformers import AutoModelForCausalLM, AutoTokenizer
from trl import SFTConfig, SFTTrainer


def train(model, tokenizer, dataset, seq_length, **options):
    packed = packstream.pack_dataset(dataset, seq_length)
    arguments = SFTConfig("checkpoints", max_length=None, packing=False,
                          padding_free=True, **options)
    trainer = SFTTrainer(model, arguments, train_dataset=packed,
                         processing_class=tokenizer)
    return trainer.train()


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    train(AutoModelForCausalLM.from_pretrained(sys.argv[2]),
          AutoTokenizer.from_pretrained(sys.argv[2]),
          load_from_disk(sys.argv[1]), 2048)
