#!/usr/bin/env python3
"""sft.py - compares supervised fine-tuning on chats with TRL's SFTTrainer.

usage: sft.py BUILD_DIR

Tokenizes random chats by packstream.tokenize, packs them, and trains a small
Llama for 50 steps by packtrain.  TRL's SFTTrainer gets the same chats in the
same order.  The losses of all steps have to agree to 1e-3.  Files are written
to the current folder.

SPDX-License-Identifier: MIT
"""

import json
import random
import subprocess
import sys

import torch
from datasets import Dataset
from tokenizers import Tokenizer, models, pre_tokenizers
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast
from trl import SFTConfig, SFTTrainer

STEPS, PER_STEP, RATE = 50, 6, 1e-3
WORDS = [f"w{i}" for i in range(150)]
SPECIAL = ["<pad>", "<start>", "<end>", "user", "assistant"]
TEMPLATE = (
    "{% for m in messages %}<start> {{ m['role'] }} "
    "{% if m['role'] == 'assistant' %}{% generation %}{{ m['content'] }} <end> "
    "{% endgeneration %}{% else %}{{ m['content'] }} <end> {% endif %}"
    "{% endfor %}")


def write_model(folder):
    torch.manual_seed(4)
    vocabulary = {word: i for i, word in enumerate(SPECIAL + WORDS)}
    backend = Tokenizer(models.WordLevel(vocabulary, unk_token="w0"))
    backend.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=backend, pad_token="<pad>", eos_token="<end>")
    tokenizer.chat_template = TEMPLATE
    tokenizer.save_pretrained(folder)
    LlamaForCausalLM(LlamaConfig(
        vocab_size=len(vocabulary), hidden_size=64, intermediate_size=128,
        num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2,
        max_position_embeddings=512, pad_token_id=0, eos_token_id=2,
        bos_token_id=None)).save_pretrained(folder)
    return tokenizer


def write_chats(name):
    draw = random.Random(7)

    def turn(role):
        words = draw.choices(WORDS[:40], k=draw.randint(2, 25))
        return {"role": role, "content": " ".join(words)}

    chats = [{"messages": [turn(role) for _ in range(draw.randint(1, 3))
                           for role in ("user", "assistant")]}
             for _ in range(STEPS * PER_STEP)]
    with open(name, "w", encoding="utf-8") as file:
        for chat in chats:
            print(json.dumps(chat), file=file)
    return chats


def by_packtrain(build):
    tokens = subprocess.run(
        [sys.executable, "-m", "packstream.tokenize", "--tokenizer=sft",
         "chats.jsonl"], check=True, stdout=subprocess.PIPE).stdout
    packs = subprocess.run(
        [f"{build}/packstream", "-q", "-L", "256",
         f"--flush-every={PER_STEP}"],
        input=tokens, check=True, stdout=subprocess.PIPE).stdout
    lines = subprocess.run(
        [f"{build}/packtrain", "--init=sft", f"--sequences={PER_STEP}",
         f"--rate={RATE}", "--decay=0", "--report=1", "--stats=json"],
        input=packs, check=True, stdout=subprocess.PIPE).stdout
    return [json.loads(line)["loss"] for line in lines.splitlines()]


class InOrder(SFTTrainer):
    def _get_train_sampler(self, *_args, **_more):
        return torch.utils.data.SequentialSampler(self.train_dataset)


def by_trl(chats, tokenizer):
    trainer = InOrder(
        model=LlamaForCausalLM.from_pretrained("sft", dtype=torch.float32),
        processing_class=tokenizer, train_dataset=Dataset.from_list(chats),
        args=SFTConfig(
            output_dir="trl", max_steps=STEPS, logging_steps=1,
            per_device_train_batch_size=PER_STEP, learning_rate=RATE,
            lr_scheduler_type="constant", weight_decay=0.0, max_grad_norm=1.0,
            assistant_only_loss=True, max_length=None, bf16=False,
            use_cpu=True, report_to="none", save_strategy="no",
            gradient_checkpointing=False, disable_tqdm=True))
    trainer.train()
    return [log["loss"] for log in trainer.state.log_history if "loss" in log]


def main():
    tokenizer = write_model("sft")
    chats = write_chats("chats.jsonl")
    got = by_packtrain(sys.argv[1])
    want = [float(loss) for loss in by_trl(chats, tokenizer)]
    assert len(got) == len(want) == STEPS, (len(got), len(want))
    worst = max(abs(a - b) for a, b in zip(got, want))
    print(f"{STEPS} steps, losses from {got[0]:.4f} to {got[-1]:.4f}, "
          f"largest difference {worst:.1e}")
    assert worst <= 1e-3, (got, want)


if __name__ == "__main__":
    main()
