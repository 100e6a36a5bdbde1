"""trl_sft.py - a packed dataset in TRL's SFTTrainer.

    python3 trl_sft.py DATASET MODEL

DATASET is a folder written by save_to_disk of datasets, with input_ids and
optionally labels or a mask of the tokens to train on; MODEL is an argument of
from_pretrained.

The rows are ready to train on: by default SFTTrainer would prepare them again
and truncate them to max_length.  hf.collator restarts positions with each
sequence, and checks that the model keeps the sequences of a row apart.  TRL
trains in bf16 by default, which fails on a device without it, such as a CPU.

SPDX-License-Identifier: MIT
"""

import sys

import packstream
from datasets import load_from_disk
from packstream import hf
from transformers import AutoModelForCausalLM, AutoTokenizer
from transformers.utils import is_torch_bf16_gpu_available
from trl import SFTConfig, SFTTrainer


def train(model, tokenizer, dataset, seq_length, **options):
    packed = packstream.pack_dataset(dataset, seq_length)
    arguments = SFTConfig("checkpoints", max_length=None,
                          remove_unused_columns=False,
                          dataset_kwargs={"skip_prepare_dataset": True},
                          bf16=is_torch_bf16_gpu_available(), **options)
    trainer = SFTTrainer(model, arguments, train_dataset=packed,
                         data_collator=hf.collator(model),
                         processing_class=tokenizer)
    return trainer.train()


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    train(AutoModelForCausalLM.from_pretrained(sys.argv[2]),
          AutoTokenizer.from_pretrained(sys.argv[2]),
          load_from_disk(sys.argv[1]), 2048)
