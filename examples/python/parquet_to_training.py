"""parquet_to_training.py FILE: from documents, column "text", to training.
SPDX-License-Identifier: MIT"""
import itertools, os, sys, time, numpy as np, packstream.hf, torch
from pyarrow.parquet import ParquetFile
from tokenizers import ByteLevelBPETokenizer
from transformers import LlamaConfig, LlamaForCausalLM
if len(sys.argv) != 2: sys.exit(__doc__)
def stage(name, since=[time.time()]):
    print("%-10s %6.1f s" % (name, time.time() - since[-1]), flush=True)
    since.append(time.time())
texts = (batch["text"].to_pylist() for batch in
         ParquetFile(sys.argv[1]).iter_batches(10000, columns=["text"]))
first, tokenizer = next(texts), ByteLevelBPETokenizer()
tokenizer.train_from_iterator(first, 16000, special_tokens=["<end>"])
stage("tokenizer")      # from the first documents; or use your own
with packstream.TokenWriter("docs.tok", vocab_size=16000) as writer:
    for encoded in map(tokenizer.encode_batch, itertools.chain([first], texts)):
        ids = [[*document.ids, 0] for document in encoded]
        writer.write(packstream.Columns(np.cumsum([0, *map(len, ids)]),
                                        {"tokens": np.concatenate(ids)}))
stage("tokens")
os.system("packstream -L512 --overlong=split docs.tok >docs.pks") and exit(1)
stage("packs")
model = LlamaForCausalLM(LlamaConfig(
    vocab_size=16000, hidden_size=256, intermediate_size=512,
    num_hidden_layers=4, num_attention_heads=4))
model(**packstream.hf.rows(packstream.open("docs.pks")[:8])).loss.backward()
torch.optim.AdamW(model.parameters()).step()
stage("first step")
