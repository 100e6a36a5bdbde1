"""tokenizing.py - how fast packstream.tokenize is, compared with the package
tokenizers and datasets.map.

    tokenizing.py [OPTION]...

      --bytes=N           of text a case (20000000)
      --rounds=N          at least 3 (5)
      --workers=N         processes, and threads of tokenizers (processors)

Needs a python3 with the package, datasets and transformers.  A tokenizer is
trained on the text, which consists of the files of Python's own library.

Text: from_text reads JSON Lines, and a TokenWriter writes to /dev/null.  It is
compared with encode_batch_fast of tokenizers, 1,000 documents at a time, with
as many threads, which only encodes: the documents are in memory, and the ids
stay there.

Chats: from_text renders and tokenizes them and makes labels; it is compared
with datasets.map, with as many processes, which calls apply_chat_template with
return_assistant_tokens_mask, and makes labels from the mask.

Starts are not counted.  MB/s are of the wall clock; on a busy machine use the
ratio by processor time.  All take turns.  Exits with 1 if a contender fails,
not if one is slow.

SPDX-License-Identifier: MIT
"""

import argparse
import functools
import glob
import json
import os
import random
import subprocess
import sys
import sysconfig

import measure

TEMPLATE = """{% for m in messages %}{{ '<|start|>' + m.role + '\n' }}\
{% if m.role == 'assistant' %}{% generation %}{{ m.content + '<|end|>' }}\
{% endgeneration %}{% else %}{{ m.content + '<|end|>' }}{% endif %}\
{{ '\n' }}{% endfor %}"""
SPECIAL = ["<|start|>", "<|end|>", "<|pad|>"]
# The other processes.  They print the seconds of the work itself, wall clock
# and processor time.
CLOCK = """
import json, resource, sys, time
def used():
    return time.perf_counter(), sum(
        usage.ru_utime + usage.ru_stime for usage in map(resource.getrusage, (
            resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)))
def done():
    print(*(end - begin for begin, end in zip(begun, used())))
"""
OURS = CLOCK + """
import packstream
sequences = packstream.from_text(sys.argv[1], sys.argv[2],
                                 workers=int(sys.argv[3]))
begun = used()
with packstream.TokenWriter("/dev/null", **sequences.schema) as writer:
    for columns in sequences:
        writer.write(columns)
done()
"""
ENCODE = CLOCK + """
from tokenizers import Tokenizer
tokenizer = Tokenizer.from_file("tokenizer/tokenizer.json")
texts = [json.loads(line)["text"] for line in open(sys.argv[1])]
begun = used()
for i in range(0, len(texts), 1000):
    tokenizer.encode_batch_fast(texts[i:i + 1000])
done()
"""
MAP = CLOCK + """
import datasets
from transformers import AutoTokenizer
tokenizer = AutoTokenizer.from_pretrained("tokenizer")
datasets.disable_progress_bars()
rows = datasets.load_dataset("json", data_files=sys.argv[1], split="train",
                             cache_dir="cache")
def encode(row):
    made = tokenizer.apply_chat_template(
        row["messages"], return_dict=True, return_assistant_tokens_mask=True)
    return {"input_ids": made["input_ids"], "labels": [
        token if mask else -100 for token, mask in zip(
            made["input_ids"], made["assistant_masks"])]}
begun = used()
rows.map(encode, num_proc=int(sys.argv[2]), load_from_cache_file=False,
         remove_columns=rows.column_names)
done()
"""


def documents(size):
    """Pieces of the library's files, some 3 kB each."""
    texts, total = [], 0
    paths = sorted(glob.glob(sysconfig.get_path("stdlib") + "/*.py"))
    while total < size:
        for path in paths:
            with open(path, encoding="utf-8", errors="replace") as file:
                text = file.read()
            texts += [text[i:i + 3000] for i in range(0, len(text), 3000)]
            total += len(text)
            if total >= size:
                break
    return texts


def chats(texts):
    """Chats of two to six messages, of some hundred characters each."""
    draw = random.Random(1)
    for text in texts:
        parts = ["x" + text[i:i + 500] for i in range(0, len(text), 500)]
        n = 2 * draw.randint(1, 3)
        for i in range(0, len(parts) - n + 1, n):
            yield [{"role": "user" if k % 2 == 0 else "assistant",
                    "content": part}
                   for k, part in enumerate(parts[i:i + n])]


def prepare(size):
    """Makes the tokenizer and the rows; returns the bytes of each case."""
    from tokenizers import Tokenizer, models, pre_tokenizers, trainers
    from transformers import PreTrainedTokenizerFast
    texts = documents(size)
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.train_from_iterator(texts[:2000], trainers.BpeTrainer(
        vocab_size=32000, special_tokens=SPECIAL, show_progress=False,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet()))
    made = PreTrainedTokenizerFast(tokenizer_object=tokenizer,
                                   eos_token=SPECIAL[1], pad_token=SPECIAL[2])
    made.chat_template = TEMPLATE
    made.save_pretrained("tokenizer")
    for name, rows in (("text", ({"text": text} for text in texts)),
                       ("chat", ({"messages": chat}
                                 for chat in chats(texts)))):
        with open(name, "w") as file:
            for row in rows:
                file.write(json.dumps(row) + "\n")
    return {"text": sum(len(text.encode()) for text in texts),
            "chat": sum(len(message["content"].encode())
                        for chat in chats(texts) for message in chat)}


def run_script(script, *arguments, **environment):
    return tuple(map(float, measure.output_of(
        [sys.executable, "-c", script, *arguments], stderr=subprocess.DEVNULL,
        env=dict(os.environ, **environment)).split()))


def compare(case, size, contenders, rounds):
    """A row for each; ratios are those of ours, the first, to the other."""
    times = measure.take_turns(contenders, rounds)
    (ours, own), (other, theirs) = times.items()
    ratios = [measure.ratio([one[i] for one in theirs],
                            [one[i] for one in own]) for i in (0, 1)]
    for name, found in ((ours, ratios), (other, [])):
        middle = [measure.quartiles([one[i] for one in times[name]])[1]
                  for i in (0, 1)]
        yield [case, name, *("%.2f" % (size / used / 1e6) for used in middle),
               *("%.2f (%.2f-%.2f)" % one for one in found or ()),
               *([] if found else ["", ""])]


def main():
    parser = argparse.ArgumentParser(usage=__doc__, add_help=False)
    parser.add_argument("--bytes", type=int, default=20 * 10**6)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--workers", type=int,
                        default=len(os.sched_getaffinity(0)))
    options = parser.parse_args()
    number, rows = str(options.workers), [
        ["case", "contender", "MB/s", "per processor", "ratio",
         "by processor time", ""]]
    with measure.room(20 * options.bytes) as folder:
        here = os.getcwd()
        os.chdir(folder)
        sizes = prepare(options.bytes)
        rows += compare("text", sizes["text"], {
            "from_text": functools.partial(
                run_script, OURS, "text", "tokenizer/tokenizer.json", number),
            "encode_batch_fast": functools.partial(
                run_script, ENCODE, "text", RAYON_NUM_THREADS=number,
                TOKENIZERS_PARALLELISM="true")}, options.rounds)
        rows += compare("chat", sizes["chat"], {
            "from_text": functools.partial(
                run_script, OURS, "chat", "tokenizer", number),
            "datasets.map": functools.partial(run_script, MAP, "chat", number)
        }, options.rounds)
        os.chdir(here)
    measure.show([
        "Tokenizing, %d processes" % options.workers, measure.machine(), "%d MB of text; %d rounds" % (
            options.bytes // 10**6, options.rounds),
        "", *measure.table(rows)])


if __name__ == "__main__":
    measure.run_main(main)
