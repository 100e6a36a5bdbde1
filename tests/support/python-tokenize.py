"""python-tokenize.py - packstream.tokenize compared with TRL, transformers and
tokenizers.

tests/tree/tokenize.bats calls the functions by name: see forked.py.  No
tokenizer is downloaded: a small one is trained on generated text, and the chat
templates are below.

SPDX-License-Identifier: MIT
"""

import gzip
import json
import multiprocessing
import os
import random
import re
import signal
import subprocess
import sys
import time
import traceback

import numpy as np

import forked
import packstream
from packstream import encoder, text_rows, tokenize

os.environ["TOKENIZERS_PARALLELISM"] = "false"
text_rows.TASK_BYTES = 1 << 12      # many tasks of few rows
SPECIAL = ["<pad>", "<end>", "<|im_start|>", "<|im_end|>", "<|turn|>",
           "<|head|>", "<|eot|>"]
WORDS = "the of to and a in is it you that he was for on are with as I".split()
ODD = ["naïve", "日本語", "👩‍🚀", "e\u0301", "\u2028", "\t", "x = {1: 2}",
       "<end"]

# With OPEN and CLOSE around the assistant's text.
CHATML = """{% for m in messages %}{{ '<|im_start|>' + m.role + '\n' }}\
{% if m.role == 'assistant' %}OPEN{{ m.content + '<|im_end|>\n' }}CLOSE\
{% else %}{{ m.content + '<|im_end|>\n' }}{% endif %}{% endfor %}\
{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}"""
LLAMA = """{{ '<|turn|>' }}\
{% if tools %}{{ 'tools: ' + tools | tojson + '<|eot|>' }}{% endif %}\
{% for m in messages %}{{ '<|head|>' + m.role + '<|head|>\n\n' }}\
{% if m.role == 'assistant' %}OPEN{{ m.content | trim }}\
{% for call in m.tool_calls or [] %}{{ call | tojson }}{% endfor %}\
{{ '<|eot|>' }}CLOSE{% else %}{{ m.content | trim + '<|eot|>' }}{% endif %}\
{% endfor %}\
{% if add_generation_prompt %}{{ '<|head|>assistant<|head|>\n\n' }}\
{% endif %}"""
# Omits the thoughts of all turns of the assistant except the last.
THINKING = """{% for m in messages %}{{ '<|head|>' + m.role + '<|head|>' }}\
{{ m.content if loop.last else m.content.split('&')[-1] }}{% endfor %}\
{% if add_generation_prompt %}{{ '<|head|>assistant<|head|>' }}{% endif %}"""
# Without a generation prompt.
USERS = """{% for m in messages %}{{ ('\nUser: ' if m.role == 'user' else \
'\nAssistant: ') ~ (m.content or '') ~ eos_token }}{% endfor %}"""
HEADS = "{% for m in messages %}{{ m.role + ': ' + m.content }}{% endfor %}"
BRACKETS = """{% for m in messages %}{% if m.role == 'user' %}\
{{ '[' + m.content + ']' }}{% else %}{{ m.content + '<end>' }}{% endif %}\
{% endfor %}"""


def _marked(template, is_marked=True):
    for name, mark in (("OPEN", "generation"), ("CLOSE", "endgeneration")):
        template = template.replace(name, "{%% %s %%}" % mark
                                    if is_marked else "")
    return template


def _say(rng, least=1, most=30):
    words = [rng.choice(ODD if rng.random() < 0.1 else WORDS)
             for _ in range(rng.randint(least, most))]
    return " ".join(words).strip() or "yes"


def _chat(rng):
    messages = [{"role": "system", "content": _say(rng)}] \
        if rng.random() < 0.3 else []
    for _ in range(rng.randint(1, 3)):
        messages += [{"role": "user", "content": _say(rng)},
                     {"role": "assistant", "content": _say(rng)}]
    return messages


def _chats(number=60, seed=1):
    rng = random.Random(seed)
    return [{"messages": _chat(rng)} for _ in range(number)]


def _texts(number=200, seed=2, most=60):
    rng = random.Random(seed)
    return [{"text": _say(rng, most=most)} for _ in range(number)]


def _backend():
    from tokenizers import Tokenizer, models, pre_tokenizers, trainers
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.train_from_iterator(
        [row["text"] for row in _texts(500)], trainers.BpeTrainer(
            vocab_size=600, special_tokens=SPECIAL, show_progress=False,
            initial_alphabet=pre_tokenizers.ByteLevel.alphabet()))
    return tokenizer


def _tokenizer(template=None, name="tokenizer", **tokens):
    """The folder of a tokenizer with this template."""
    from transformers import PreTrainedTokenizerFast
    made = PreTrainedTokenizerFast(tokenizer_object=_backend(), **{
        "eos_token": "<end>", "pad_token": "<pad>", **tokens})
    made.chat_template = template
    made.save_pretrained(name)
    return name


def _loaded(folder):
    from transformers import AutoTokenizer
    return AutoTokenizer.from_pretrained(folder)


def _write(rows, path="rows.jsonl", opened=open):
    with opened(path, "wt", encoding="utf-8") as file:
        for row in rows:
            file.write(json.dumps(row, ensure_ascii=False) + "\n")
    return path


def _sequences(source, tokenizer, **options):
    """[(tokens, labels or None, pair, chosen)]"""
    options.setdefault("workers", 1)
    found = []
    for columns in packstream.from_text(source, tokenizer, **options):
        cuts = columns.offsets[1:-1]
        values = columns.values
        split = [[part.tolist() for part in np.split(values[name], cuts)]
                 if name in values else [None] * len(columns)
                 for name in ("tokens", "labels")]
        alone = [values[name].tolist() if name in values
                 else [None] * len(columns) for name in ("pair", "chosen")]
        found += zip(*split, *alone)
    return found


def _main(*arguments):
    """The exit status and output of the program, run in a process of its
    own."""
    status = forked.run(_exit_main, *arguments)
    with open("told") as file:
        return status, file.read()


def _exit_main(*arguments):
    """With a pipe as standard input that has piped.in."""
    sys.stdout, sys.stderr = (os.fdopen(os.dup(fd), "w") for fd in (1, 2))
    if "-" in arguments:        # slow in the beginning
        sys.stdin = subprocess.Popen(
            "head -c 1 piped.in; sleep .2; tail -c +2 piped.in", shell=True,
            text=True, stdout=subprocess.PIPE).stdout
    status = 1
    try:
        status = tokenize.main(list(arguments))
    except Exception:       # without waiting for processes
        traceback.print_exc(file=sys.stderr)
    sys.stderr.flush()
    os._exit(status)


def _bytes(*arguments):
    status, told = _main(*arguments, "-o", "made.tok")
    assert status == 0, told
    with open("made.tok", "rb") as file:
        return file.read()


def _raises(why, call, *arguments, **options):
    try:
        call(*arguments, **options)
    except ValueError as problem:
        assert re.search(why, str(problem)), problem
        return
    raise AssertionError("no error: " + why)


def _label(ids, mask):
    return [token if target else -100 for token, target in zip(ids, mask)]


# ----------------------------------------------------------------- labels

def _of_transformers(folder, messages, **options):
    made = _loaded(folder).apply_chat_template(
        messages, return_dict=True, return_assistant_tokens_mask=True,
        **options)
    return made["input_ids"], _label(made["input_ids"],
                                     made["assistant_masks"])


def _by_hand(backend, parts):
    """Ids and labels of [(text, is_target)]: of the bytes of each token."""
    text = "".join(part for part, _ in parts)
    targets = np.repeat([target for _, target in parts],
                        [len(part.encode()) for part, _ in parts])
    ids, at, labels = backend.encode(text, add_special_tokens=False).ids, 0, []
    from tokenizers.pre_tokenizers import ByteLevel
    alphabet = set(ByteLevel.alphabet())
    for token in ids:
        word = backend.id_to_token(token)
        size = len(word) if set(word) <= alphabet else len(word.encode())
        assert len(set(targets[at:at + size])) == 1, word
        labels.append(token if targets[at] else -100)
        at += size
    assert at == len(text.encode())
    return ids, labels


def masks():
    """Labels equal those of transformers, those counted by hand, and those
    without marks."""
    rows = _chats()
    for name, template in (("chatml", CHATML), ("llama", LLAMA)):
        marked = _tokenizer(_marked(template), name + "-marked")
        plain = _tokenizer(_marked(template, False), name)
        wanted = [_of_transformers(marked, row["messages"]) for row in rows]
        for folder in (marked, plain, _loaded(plain)):
            found = _sequences(_write(rows), folder)
            assert [one[:2] for one in found] == wanted, folder
    backend = _backend()
    for row, found in zip(rows, _sequences(rows, "chatml")):
        parts = []
        for message in row["messages"]:
            parts += [("<|im_start|>%s\n" % message["role"], False),
                      (message["content"] + "<|im_end|>\n",
                       message["role"] == "assistant")]
        assert found[:2] == _by_hand(backend, parts)


def tools():
    """Tool calls, which tables fill up with None, and options."""
    calls = [{"name": "clock", "arguments": {"zone": "UTC"}},
             {"name": "sum", "arguments": {"terms": [1, 2]}}]
    rows = [{"messages": [
        {"role": "user", "content": "now?"},
        {"role": "assistant", "content": "", "tool_calls": [call]},
        {"role": "tool", "content": "12:00"},
        {"role": "assistant", "content": "noon"}],
        "tools": json.dumps([{"name": call["name"]}])} for call in calls]
    marked = _tokenizer(_marked(LLAMA), "marked")
    wanted = [_of_transformers(marked, row["messages"],
                               tools=json.loads(row["tools"])) for row in rows]
    import datasets
    table = datasets.Dataset.from_list(rows)
    mixed = datasets.Dataset.from_list(rows, on_mixed_types="use_json")
    mixed.save_to_disk("mixed")
    for source in (rows, _write(rows), table, mixed, "mixed"):
        for folder in (marked, _tokenizer(_marked(LLAMA, False), "plain")):
            found = _sequences(source, folder)
            assert [one[:2] for one in found] == wanted, source


def sharegpt():
    """ShareGPT rows equal those of messages; invalid ones are refused."""
    rng, rows, given = random.Random(5), _chats(), []
    names = {role: [name for name, known in encoder.ROLES.items()
                    if known == role]
             for role in encoder.ROLES.values()}
    for row in rows:
        row["messages"] += [{"role": "tool", "content": "7"},
                            {"role": "assistant", "content": _say(rng)}]
        turns = [{"from": rng.choice(names[message["role"]]),
                  "value": message["content"]} for message in row["messages"]]
        apart = turns[0]["from"] == "system" and rng.random() < 0.5
        given.append({"id": "a", "conversations": turns[apart:], "tools": "",
                      "system": turns[0]["value"] if apart else ""})
    assert sum(bool(row["system"]) for row in given) > 3
    import datasets
    for template in (_marked(CHATML), _marked(LLAMA, False)):
        folder = _tokenizer(template)
        wanted = _sequences(rows, folder)
        for source in (given, _write(given), datasets.Dataset.from_list(given),
                       [{"conversations": row["messages"]} for row in rows]):
            assert _sequences(source, folder) == wanted
        renamed = [{**row, "talk": row["conversations"]} for row in given]
        assert _sequences(renamed, folder, column="talk") == wanted
    bad = [({"from": "bing", "value": "a"}, "message 0 is from 'bing': known"),
           ({"from": ["gpt"], "value": "a"}, "message 0 is from \\['gpt'"),
           ({"value": "a"}, "message 0 is not an object with a role"),
           ({"from": "human", "value": "a"}, "the assistant says nothing")]
    for turn, why in bad:
        _raises("row 1: .*" + why, _sequences,
                [given[0], {"conversations": [turn]}], folder)
    _raises("row 0: system: the conversation begins with another", _sequences,
            [{"system": "a", "conversations": [
                {"from": "system", "value": "b"}]}], folder)


def _prompts():
    """Text, whose last words are short, and chats."""
    rng = random.Random(3)
    texts = [{"prompt": _say(rng), "completion": " " + _say(rng)}
             for _ in range(30)]
    texts += [{"prompt": "of th", "completion": "e"},
              {"prompt": "the ", "completion": "end<end>"}]
    chats = []
    for row in _chats(30):
        end = len(row["messages"]) - 1
        chats.append({"prompt": row["messages"][:end],
                      "completion": row["messages"][end:]})
    return texts, chats


def _trl_rows(rows, folder, **options):
    """[(ids, labels)] as SFTTrainer prepares them."""
    import datasets
    from trl import SFTConfig, SFTTrainer
    trainer = SFTTrainer(_model(folder), SFTConfig(
        "checkpoints", report_to="none", use_cpu=True, bf16=False,
        max_length=None, **options),
        train_dataset=datasets.Dataset.from_list(rows),
        processing_class=_loaded(folder))
    return [(row["input_ids"], row["labels"])
            for row in trainer.train_dataset]


def _model(folder):
    import torch
    from transformers import LlamaConfig, LlamaForCausalLM
    torch.manual_seed(2)
    return LlamaForCausalLM(LlamaConfig(
        vocab_size=len(_loaded(folder)), hidden_size=32, intermediate_size=32,
        num_hidden_layers=2, num_attention_heads=2))


def completions():
    """Text, prompt and completion match TRL's."""
    folder = _tokenizer(_marked(CHATML, False))
    for rows in (*_prompts(), _texts(20)):
        wanted = _trl_rows(rows, folder)
        found = [one[:2] for one in _sequences(_write(rows), folder)]
        if "text" in rows[0]:
            assert found == [(ids, None) for ids, _ in wanted]
            assert wanted[0][0] == wanted[0][1]
        else:
            assert found == wanted
    status, told = _main(_write(_prompts()[0]), "--tokenizer", folder,
                         "-o", "made.tok")
    assert status == 0 and "1 sequence has a token with the end" in told, told
    # With a token after each text, prompt and completion are not joined.
    from tokenizers import processors
    backend = _backend()
    backend.post_processor = processors.TemplateProcessing(
        single="$A <end>", special_tokens=[("<end>", 1)])
    backend.save("ended.json")
    given = [{"prompt": "of the", "completion": " of"},
             {"prompt": "", "completion": ""}]
    status, told = _main(_write(given), "--tokenizer=ended.json",
                         "--eos=<end>", "-o", "made.tok")
    assert status == 0 and told == \
        "packstream.tokenize: 1 row without text was skipped\n", told


def pairs():
    """As prepared by DPOTrainer, with the number of the row."""
    from trl.data_utils import _tokenize, common_prefix_length, extract_prompt
    folder = _tokenizer(_marked(CHATML, False))
    tokenizer, rng = _loaded(folder), random.Random(4)
    chats = [{"chosen": [*messages[:-1], {"role": "assistant",
                                          "content": _say(rng)}],
              "rejected": messages}
             for messages in (row["messages"] for row in _chats(20))]
    texts = [{"prompt": _say(rng), "chosen": " " + _say(rng),
              "rejected": " no " + _say(rng)} for _ in range(20)]
    implicit = [{name: row["prompt"] + row[name]
                 for name in ("chosen", "rejected")} for row in texts]
    for rows in (chats, texts, implicit):
        wanted = []
        for i, row in enumerate(rows):
            row = row if "prompt" in row else extract_prompt(row)
            end, options = "<end>", {}
            if isinstance(row["prompt"], list):
                end, options = [], {"add_generation_prompt": True}
            begin = _tokenize(tokenizer, row["prompt"], **options)["input_ids"]
            for name in ("chosen", "rejected"):
                ids = _tokenize(tokenizer, row["prompt"] + row[name] +
                                end)["input_ids"]
                n = common_prefix_length(begin, ids)
                wanted.append((ids, [-100] * n + ids[n:], i,
                               int(name == "chosen")))
        assert _sequences(_write(rows), folder) == wanted
    _bytes(_write(chats), "--tokenizer", folder)
    packs, back = _packed("made.tok", 512)
    assert sorted(back, key=lambda one: one[2:]) == \
        sorted(_sequences(chats, folder), key=lambda one: one[2:])


def _packed(path, capacity):
    """Packs of token records, and their sequences."""
    subprocess.run(["packstream", "-q", "-L%d" % capacity, "-o", "made.pks",
                    path], check=True)
    packs, found = packstream.open("made.pks"), []
    for i in range(len(packs)):
        pack = packs[i]
        n, cu = int(pack["n_seq"]), pack["cu"].tolist()
        for k in range(n):
            part = slice(cu[k], cu[k + 1])
            found.append(tuple(
                pack[name][part].tolist() for name in ("tokens", "labels")) +
                tuple(int(pack[name][k]) if name in pack else None
                      for name in ("pair", "chosen")))
    return packs, found


# ---------------------------------------------------------------- sources

def forms():
    """Every form of the input yields the same sequences."""
    import datasets
    import pyarrow as pa
    import pyarrow.parquet
    folder = _tokenizer(_marked(CHATML))
    for rows in (_chats(100), _texts(300), _prompts()[0]):
        wanted = _sequences(_write(rows), folder)
        data, table = datasets.Dataset.from_list(rows), pa.Table.from_pylist(
            rows)
        pa.parquet.write_table(table, "rows.parquet", row_group_size=40)
        with pa.OSFile("rows.arrow", "w") as file, \
                pa.ipc.new_file(file, table.schema) as writer:
            writer.write_table(table)
        data.save_to_disk("saved", num_shards=3)
        _write(rows, "rows.gz", gzip.open)
        with open("rows.zst", "wb") as file:
            for part in (rows[:9], rows[9:]):       # two frames
                file.write(subprocess.run(
                    ["zstd", "-q", "-c", _write(part, "part")], check=True,
                    stdout=subprocess.PIPE).stdout)
        _write(rows[:20], "a.jsonl")
        _write(rows[20:], "b.jsonl")
        for source in (
                "rows.parquet", "rows.arrow", "saved", "rows.gz", "rows.zst",
                ["a.jsonl", "b.jsonl"], data, data.to_iterable_dataset(2),
                table, rows, iter(rows),
                datasets.IterableDataset.from_generator(
                    lambda rows=rows: iter(rows))):
            assert _sequences(source, folder) == wanted, source


def processes():
    """Any number of processes yields the same records, from files and from a
    pipe, by the program and by a TokenWriter; a dead process is an error."""
    folder, rows = _tokenizer(_marked(CHATML)), _chats(100)
    wanted = _bytes(_write(rows), "--tokenizer", folder, "--workers=1")
    assert _bytes("rows.jsonl", "--tokenizer", folder,
                  "--workers=3") == wanted
    with open("rows.jsonl", "rb") as file:
        given = file.read()
    for text in (b"\n" + given, gzip.compress(given)):
        with open("piped.in", "wb") as file:
            file.write(text)
        assert forked.run(_exit_main, "--tokenizer", folder, "--workers=2",
                          "-q", "-", told="piped") == 0
        with open("piped", "rb") as file:
            assert file.read() == wanted
    sequences = packstream.from_text(rows, folder, workers=2)
    with packstream.TokenWriter("from.tok", **sequences.schema) as writer:
        for columns in sequences:
            writer.write(columns)
    with open("from.tok", "rb") as file:
        assert file.read() == wanted
    work = tokenize.encode_task
    tokenize.encode_task = lambda *task: os._exit(9)
    status, told = _main("rows.jsonl", "--tokenizer", folder, "--workers=2",
                         "-o", "made.tok")
    tokenize.encode_task = work
    assert status == 1 and "was killed" in told, (status, told)


def lines():
    """Line endings, and characters that are not; empty files."""
    folder = _tokenizer()
    wanted = _sequences([{"text": "a\u2028b"}, {"text": "c\x85\x0b\x0cd"},
                         {"text": "e"}], folder)
    text = "a\u2028b\nc\x85\x0b\x0cd\n\ne"
    rows = "\n".join(json.dumps({"text": line}, ensure_ascii=False)
                     if line else "" for line in text.split("\n"))
    for given in (text, rows):
        for changed in (given, given + "\n", given.replace("\n", "\r\n"),
                        "\ufeff" + given):
            with open("lines", "w", encoding="utf-8", newline="") as file:
                file.write(changed)
            assert _sequences("lines", folder) == wanted, changed
    open("empty", "w").close()
    status, told = _main("empty", "--tokenizer", folder, "-o", "made.tok")
    assert status == 0 and "the input has no rows" in told, told
    assert _sequences(["empty", "lines"], folder) == wanted
    assert _sequences([{"text": ""}, {"text": "e"}], folder) == wanted[2:]
    # A row, task or file that does not show its kind decides nothing.
    with open("late", "w") as file:
        file.write('{"x": 1}\n{\n' + "\n" * 9999 + '{"text": "e"}\n')
    with open("blank", "w") as file:
        file.write(" \n\n")
    status, told = _main("blank", "late", "--tokenizer", folder, "-o",
                         "made.tok", "--rejects=/dev/stderr")
    assert status == 0 and '"late", "line": 1, "reason": "no key text' in \
        told and "2 rows were rejected" in told, told
    with open("made.tok", "rb") as file:
        assert file.read() == _bytes(_write([{"text": "e"}]), "--tokenizer",
                                     folder)
    status, told = _main("late", "--tokenizer", folder, "-o", "made.tok",
                         "--rejects=/dev/full")
    assert status == 1 and "/dev/full" in told, told
    with open("braces", "w") as file:
        file.write("{ not JSON }")
    _raises("line 1: not JSON: .*; --from=text", _sequences, "braces", folder)
    assert len(_sequences("braces", folder, form="text")) == 1
    once = packstream.from_text([{"text": "e"}], folder, workers=1)
    assert len(list(once)) == 1
    _raises("call from_text again", list, once)
    _raises("row 1: not a mapping", _sequences, [{"text": "e"}, "e"], folder)
    assert _sequences([{"text": "e"}], folder, eos="") == \
        [(wanted[2][0][:-1], None, None, None)]
    _write([{"text": "e " * 9999}, {"text": "e"}])      # longer than a task
    found = _sequences("rows.jsonl", folder)
    assert found[1:] == wanted[2:] and len(found[0][0]) > 9999
    text_rows.LINE_BYTES = 1 << 13
    _raises("rows.jsonl: line 1 has more than 8192 bytes", _sequences,
            "rows.jsonl", folder)
    with open("rows.csv", "w", encoding="utf-8") as file:
        file.write("id,body\n1,e\n")
    _raises("rows.csv: it is read as lines of text, which have no column body",
            _sequences, "rows.csv", folder, column="body")
    with open("packs", "wb") as file:
        file.write(b"\x89PKS\r\n\x1a\n\4\3\2\1\2\0")
    _raises("packs: it is binary", _sequences, "packs", folder)


def packed():
    """pack_dataset accepts the output of from_text, with equal sequences."""
    folder = _tokenizer(_marked(CHATML, False))
    pair = {"prompt": "a", "chosen": " b c", "rejected": " d"}
    for rows in (_chats(), _texts(), [pair] * 3):
        made = packstream.pack_dataset(
            packstream.from_text(rows, folder, workers=1), 512)
        found = []
        for row in made:
            cuts = np.cumsum(row["seq_lengths"])[:-1]
            n = len(row["seq_lengths"])
            found += zip(*([part.tolist() for part in np.split(row[name], cuts)]
                           if name in row else [None] * n
                           for name in ("input_ids", "labels")),
                         *(row.get(name, [None] * n)
                           for name in ("pair", "chosen")))
        assert len(made) < len(found)
        assert sorted(found, key=str) == sorted(_sequences(rows, folder),
                                                key=str)
    _raises("has no rows", packstream.pack_dataset,
            packstream.from_text([], folder), 512)


# ---------------------------------------------------------------- refused

GOOD = {"messages": [{"role": "user", "content": "a"},
                     {"role": "assistant", "content": "b"}]}
BAD = [("{", "not JSON"), ("[1]", "not a JSON object"), ("{} {}", "not JSON"),
       ("\xff", "not UTF-8 at byte 0"), ("{}", "no key messages"),
       ('{"messages": NaN}', "NaN is not JSON"),
       ('{"messages": ' + "[" * 99999, "not JSON"),
       ('{"messages": "x"}', "not a list of messages"),
       ('{"messages": null}', "no value"), ('{"messages": []}', "not a list"),
       ('{"messages": [1]}', "message 0 is not an object with a role"),
       ('{"messages": [{"role": 1}]}', "message 0 is not an object"),
       ('{"messages": [{"role": "user", "content": "x"}]}', "says nothing"),
       ('{"messages": [{"role": "assistant", "content": 7}]}', "fails"),
       ('{"messages": [{"role": "assistant", "content": "\\ud800"}]}',
        "half of a surrogate pair"),
       ('{"tools": "{", "messages": [{"role": "user", "content": "x"}]}',
        "tools, chat_template_kwargs"),
       ('{"chat_template_kwargs": [1], "messages": [{"role": "user", '
        '"content": "x"}]}', "chat_template_kwargs is not an object")]


def rejects():
    """Each bad row is listed with its line and the reason, and the others are
    unaffected; without --rejects it is an error."""
    folder = _tokenizer(_marked(CHATML, False))
    good = json.dumps(GOOD)
    with open("bad.jsonl", "wb") as file:
        for line, _ in BAD:
            file.write(b"%s\n%s\n" % (good.encode(), line.encode("latin-1")))
    wanted = _bytes(_write([GOOD] * len(BAD)), "--tokenizer", folder)
    for workers in (1, 2):
        status, told = _main("bad.jsonl", "--tokenizer", folder, "-o",
                             "made.tok", "--rejects=bad", "--workers=%d"
                             % workers)
        assert status == 0 and "%d rows were rejected: see bad" % len(BAD) \
            in told, told
        with open("made.tok", "rb") as file:
            assert file.read() == wanted
        with open("bad") as file:
            listed = [json.loads(line) for line in file]
        assert len(listed) == len(BAD)
        for i, (row, (_, why)) in enumerate(zip(listed, BAD)):
            assert row["file"] == "bad.jsonl" and row["line"] == 2 * i + 2
            assert why in row["reason"], row
    status, told = _main("bad.jsonl", "--tokenizer", folder, "-o", "made.tok")
    assert status == 65 and "bad.jsonl: line 2: not JSON" in told, told
    with open("made.tok", "rb") as file:    # unchanged
        assert file.read() == wanted
    from transformers.utils import chat_template_utils
    chat_template_utils.is_jinja_available = lambda: False
    _write([GOOD])
    status, told = _main("rows.jsonl", "--tokenizer", folder, "-o",
                         "made.tok", "--rejects=bad")
    assert status == 1 and "jinja2" in told, told


def inexact():
    """Labels that would be inexact are refused."""
    turns = GOOD["messages"]
    thought = [*turns[:1], {"role": "assistant", "content": "hm & b"}, *turns]
    thinking = _tokenizer(THINKING, "thinking")
    _raises("row 0: the chat template changes message 1 when others follow",
            _sequences, [{"messages": thought}], thinking)
    assert len(_sequences([GOOD], thinking)) == 1
    _raises("the chat template changes the prompt", _sequences,
            [{"prompt": thought[:2], "completion": thought[2:]}], thinking)
    _raises("has no generation prompt", _sequences, [GOOD],
            _tokenizer(HEADS, "heads"))
    # A header may begin like the content, which may be empty.
    users = _tokenizer(USERS, "users")
    blank = _tokenizer(USERS + "{% if add_generation_prompt %}{{ '\n' }}"
                       "{% endif %}", "blank")
    ended = _tokenizer(USERS + "{% if not add_generation_prompt %}"
                       "{{ eos_token }}{% endif %}", "ended")
    for answer in ("A", "Assistant:", "", " ", None,
                   [{"type": "text", "text": "A"}]):
        for template in (users, blank, ended):
            _raises("has no generation prompt", _sequences, [{"messages": [
                turns[0], {"role": "assistant", "content": answer,
                           "tool_calls": [{"name": "f"}]}]}], template)
    found, = _sequences([GOOD], _tokenizer(BRACKETS, "brackets"))
    assert found[:2] == _by_hand(_backend(), [("[a]", False),
                                              ("b<end>", True)])
    _raises("does not begin with the generation prompt", _sequences, [GOOD],
            _tokenizer(_marked(CHATML, False).replace(
                "assistant\n", "assistant\n<think>"), "think"))
    # "the" is one token, in the head and in the turn.
    joined = _tokenizer("{% for m in messages %}{{ m.content }}{% endfor %}"
                        "{% if add_generation_prompt %}th{% endif %}", "join")
    _raises("is partly in the assistant's turn", _sequences, [{"messages": [
        {"role": "user", "content": "x "},
        {"role": "assistant", "content": "the"}]}], joined)
    one = dict(GOOD, prompt="x", chosen="a", rejected="a")
    _raises("chosen and rejected are equal", _sequences,
            [{name: one[name] for name in ("chosen", "rejected")}], joined)
    _raises("one of prompt and completion is text", _sequences,
            [{"prompt": "x", "completion": turns}], joined)


def usage():
    """Jobs that cannot start, and why."""
    folder, bare = _tokenizer(_marked(CHATML)), _tokenizer(None, "bare")
    chats, texts = _write([GOOD]), _write(_texts(3), "texts")
    _backend().save("only.json")
    os.mkdir("empty")
    for status, why, *arguments in (
            (65, "name the folder", chats, "--tokenizer=bare/tokenizer.json"),
            (65, "chat_template is not set", chats, "--tokenizer", bare),
            (65, "--eos=TOKEN", texts, "--tokenizer=only.json"),
            (65, "no such token", texts, "--tokenizer=only.json", "--eos=qz"),
            (65, "not a tokenizer.json", texts, "--tokenizer", texts),
            (1, "none: no such tokenizer: name a tokenizer.json or the folder",
             texts, "--tokenizer=none"),
            (65, "empty: not the folder of a tokenizer", texts,
             "--tokenizer=empty"),
            (1, "none: No such file", "none", "--tokenizer", bare),
            (65, "(columns: text)", texts, "--tokenizer", bare, "--column=x"),
            (64, "--tokenizer", texts),
            (64, "--workers", texts, "--tokenizer=bare", "--workers=0"),
            (64, "needs -o", texts, "--tokenizer=bare", "--state=s"),
            (64, "needs --state", texts, "--tokenizer=bare", "--resume")):
        if "needs -o" not in why:
            arguments += ["-o", "made.tok"]
        found, told = _main(*arguments)
        assert found == status and why in told, (found, told, arguments)
    packed = gzip.compress(b"".join(b"%d " % i for i in range(9999)))
    for name, text, why in (("array", b"[{}]", "JSON array"),
                            ("other", b'{"x": 1}', "other: line 1: .*: x"),
                            ("bad.gz", b"%s\xff%s" % (packed[:12],
                                                      packed[13:]),
                             "bad.gz: .*"),
                            ("cut.gz", gzip.compress(b"a\n" * 99)[:-9],
                             "cut.gz: Compressed file ended")):
        with open(name, "wb") as file:
            file.write(text)
        _raises(why, _sequences, name, folder)
    status, told = _main(texts, "--tokenizer", bare, "-o", texts)
    assert status == 1 and "is used twice" in told, told
    assert forked.run(_advised, texts, "--tokenizer", bare, "-o",
                      "made.tok") == 0
    with open("told") as file:
        assert not file.read()
    # A tokenizer.json with the tokens of tokenizer_config.json, one that would
    # truncate and pad, and the digest of tokcat.
    backend = _backend()
    backend.enable_truncation(5)
    backend.enable_padding(length=99)
    backend.save("bare/tokenizer.json")
    assert _sequences(texts, "bare/tokenizer.json") == _sequences(
        texts, folder)
    heads = [subprocess.run(command, shell=True, check=True, text=True,
                            stdout=subprocess.PIPE).stdout for command in (
        "packstat made.tok | grep '^ *tokenizer'",
        "echo 1 | tokcat -q --from=ids --tokenizer=bare/tokenizer.json |"
        " packstat - | grep '^ *tokenizer'")
        if _bytes(texts, "--tokenizer=bare/tokenizer.json")]
    assert heads[0] == heads[1] != "", heads


def _advised(*arguments):
    """The program prints the message of transformers if PyTorch is missing."""
    from transformers.utils import logging
    tokenize.main(list(arguments))
    logging.get_logger("transformers").warning_advice("no PyTorch")


# ----------------------------------------------------------------- resuming

def kills(times):
    """Killed at random moments, the job ends with the same bytes."""
    _tokenizer()
    rows = _texts(6000)
    rows[100::500] = [{"x": 1}] * len(rows[100::500])
    rng, arguments = random.Random(), [
        _write(rows), "--tokenizer=tokenizer/tokenizer.json", "--workers=2",
        "--rejects=bad"]
    begun = time.monotonic()
    wanted = _bytes(*arguments)
    lasts = time.monotonic() - begun
    with open("bad", "rb") as file:
        listed = file.read()
    arguments += ["--state=job.state", "--resume", "--state-every=1",
                  "-o", "job.tok"]
    context, killed = multiprocessing.get_context("fork"), 0
    while killed < int(times):
        child = context.Process(target=_exit_main, args=arguments)
        child.start()
        child.join(rng.random() * lasts)
        if child.exitcode is None:
            number = rng.choice([signal.SIGKILL, signal.SIGTERM])
            os.kill(child.pid, number)
            child.join()
            assert child.exitcode in (-number, 0), child.exitcode
            killed += 1
        else:
            assert child.exitcode == 0
        if child.exitcode == 0 or killed == int(times):
            if child.exitcode != 0:
                assert _main(*arguments)[0] == 0
            for name, due in (("job.tok", wanted), ("bad", listed)):
                with open(name, "rb") as file:
                    assert file.read() == due, name
            if killed < int(times):
                for name in ("job.tok", "job.state", "bad"):
                    os.unlink(name)
    status, told = _main(*arguments)        # to resume again does nothing
    assert status == 0, told
    with open("job.tok", "rb") as file:
        assert file.read() == wanted


def stops():
    """SIGTERM, and SIGINT as a terminal sends it, while the job waits for
    input: the state is saved, and the job continues from there."""
    _tokenizer(_marked(CHATML))
    for rows, workers, number in (
            (_texts(1500), 1, signal.SIGTERM),
            (_texts(1500), 2, signal.SIGINT),
            (_chats(500), 2, signal.SIGINT)):
        arguments = ["--tokenizer=tokenizer", "--workers=%d" % workers]
        wanted = _bytes(_write(rows, "piped.in"), *arguments)
        arguments += ["--state=s", "--resume", "-o", "made.tok", "-"]
        os.unlink("made.tok")
        reader, writer = os.pipe()
        child = multiprocessing.get_context("fork").Process(
            target=_in_group, args=(reader, writer, arguments))
        child.start()
        os.close(reader)
        with open("piped.in", "rb") as file, os.fdopen(writer, "wb", 0) as pipe:
            half = file.read(1 << 17)
            assert file.read(1)
            pipe.write(half)        # most of it was read then
            os.killpg(child.pid, number)
            child.join()
        assert child.exitcode == -number, child.exitcode
        with open("s") as file:
            assert 0 < json.load(file)["rows"] < len(rows)
        status, told = _main(*arguments)
        assert status == 0, told
        with open("made.tok", "rb") as file:
            assert file.read() == wanted
        os.unlink("s")


def _in_group(reader, writer, arguments):
    """The program in its own process group, fed by a pipe."""
    os.setpgrp()
    os.close(writer)
    sys.stdin = os.fdopen(reader)
    os._exit(tokenize.main(arguments))


def states():
    """A state of another job is refused, with the reason."""
    folder = _tokenizer()
    _write(_texts(1000), "a")
    given = ["a", "--tokenizer", folder, "--state=s", "-o", "made.tok",
             "--workers=1", "--state-every=1"]
    assert forked.run(_interrupted, *given) == 3
    with open("s") as file:
        saved = file.read()
    assert 0 < json.loads(saved)["rows"] < 1000
    for status, why, *more in (
            (64, "use --resume to continue"),
            (65, "--column, --eos", "--resume", "--eos="),
            (65, "--rejects differs", "--resume", "--rejects=r")):
        found, told = _main(*given, *more)
        assert found == status and why in told, (found, told)
    for change, why in ((saved[:-9], "damaged"),
                        (saved.replace('"rows": ', '"rows": 1'), "damaged")):
        with open("s", "w") as file:
            file.write(change)
        found, told = _main(*given, "--resume")
        assert found == 65 and why in told, told
    with open("s", "w") as file:
        file.write(saved)
    os.utime("a", (1, 1))
    found, told = _main(*given, "--resume")
    assert found == 65 and "size or time of an input" in told, told
    os.unlink("s")
    found, told = _main(*given, "--resume")
    assert found == 64 and "is not empty" in told, told
    for name, before in (("before", True), ("after", False)):
        os.unlink("made.tok")
        assert forked.run(_killed_at_first, before, *given) == 3
        found, told = _main(*given, "--resume")
        assert found == 0, (name, told)
        os.unlink("s")


def _killed_at_first(before, *arguments):
    """Exits with 3 before or after the first state is saved."""
    write = tokenize.write_state

    def watched(path, state):
        if not before:
            write(path, state)
        os._exit(3)
    tokenize.write_state = watched
    tokenize.main(list(arguments))


def _interrupted(*arguments):
    """Exits with 3 when a state has been saved twice."""
    saved, write = [], tokenize.write_state

    def watched(path, state):
        write(path, state)
        saved.append(state)
        if len(saved) == 2:
            os._exit(3)
    tokenize.write_state = watched
    tokenize.main(list(arguments))


def memory():
    """No more memory for ten times the input."""
    _tokenizer()
    row, peaks = " ".join(one["text"] for one in _texts(40)), []
    for number in (1000, 8000):
        _write([{"text": row}] * number)
        done = subprocess.run(
            [sys.executable, "-c", "import resource, sys\n"
             "from packstream import tokenize\n"
             "assert tokenize.main(sys.argv[1:]) == 0\n"
             "print(*(resource.getrusage(who).ru_maxrss for who in "
             "(resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)))",
             "rows.jsonl", "--tokenizer=tokenizer/tokenizer.json",
             "--workers=2", "-o", "made.tok"], check=True,
            stdout=subprocess.PIPE, text=True)
        peaks.append(list(map(int, done.stdout.split())))
    for few, many in zip(*peaks):
        assert many < few + 30000, peaks


# ------------------------------------------------------------------ a recipe

def recipe():
    """From chats to training: sequences, targets and losses equal those of TRL
    with packing=True and assistant_only_loss=True."""
    import datasets
    import torch
    from packstream import hf
    from transformers import Trainer, TrainingArguments
    from trl import SFTConfig, SFTTrainer
    os.environ["CUDA_VISIBLE_DEVICES"] = ""
    rows, folder = _chats(), _tokenizer(_marked(CHATML))
    _bytes(_write(rows), "--tokenizer", folder)
    packs, _ = _packed("made.tok", 512)
    options = dict(report_to="none", use_cpu=True, bf16=False,
                   per_device_train_batch_size=2)
    model = _model(folder).eval()
    theirs = SFTTrainer(model, SFTConfig(
        "theirs", packing=True, assistant_only_loss=True, max_length=512,
        **options), train_dataset=datasets.Dataset.from_list(rows),
        processing_class=_loaded(folder))
    ours = Trainer(
        model, TrainingArguments("ours", remove_unused_columns=False,
                                 **options),
        train_dataset=packs, data_collator=hf.collate)
    found = []
    for trainer in (theirs, ours):
        loss, targets, sequences = 0.0, 0, []
        for batch in trainer.get_train_dataloader():
            with torch.no_grad():
                n = int(_targets(batch).sum())
                loss += float(model(**batch).loss) * n
            targets += n
            sequences += _split(batch)
        found.append((loss / targets, targets, sorted(sequences)))
    assert found[0][1:] == found[1][1:] and found[0][1] > 1000
    assert abs(found[0][0] - found[1][0]) < 1e-5, (found[0][0], found[1][0])
    model.train()
    ours.args.max_steps = 2
    assert ours.train().training_loss > 0


def _targets(batch):
    """The tokens that the token before them predicts."""
    return batch["labels"][:, 1:] != -100


def _split(batch):
    """The sequences of a batch, split by positions, with their labels; padding
    has none."""
    found = []
    for ids, labels, places in zip(*(batch[name].tolist() for name in (
            "input_ids", "labels", "position_ids"))):
        begins = [i for i, place in enumerate(places) if place == 0]
        for begin, end in zip(begins, [*begins[1:], len(ids)]):
            own = labels[begin + 1:end]
            if any(label != -100 for label in own):
                found.append((ids[begin:end], own))
    return found


def page(path):
    """The Python of docs/text-and-chat.md runs as printed, with files made by
    the lines above it."""
    os.environ["CUDA_VISIBLE_DEVICES"] = ""
    folder, rows = _tokenizer(_marked(CHATML, False)), _chats(3)
    _bytes(_write(rows, "chat.jsonl"), "--tokenizer", folder)
    subprocess.run("packstream -q -L256 -o chat.pks made.tok", shell=True,
                   check=True)
    with open(path) as file:
        blocks = [block.split("```")[0]
                  for block in file.read().split("```python\n")[1:]]
    names = {}
    for block in blocks:
        exec(compile(block, path, "exec"), names)
    assert len(blocks) > 2 and names["trainer"].state.global_step > 2
    with open("some.tok", "rb") as file:
        assert file.read() == _bytes(_write(rows[:2]), "--tokenizer", folder)
    assert sum(map(sum, names["packed"]["seq_lengths"])) == sum(
        len(ids) for ids, *_ in _sequences(rows[:2], folder))


def starts():
    """From each kind of data that README.md names to a first step: the loss
    equals that of separate sequences, and none is missing."""
    import datasets
    import torch
    from packstream import hf
    folder = _tokenizer(_marked(CHATML))
    model = _model(folder)
    table = datasets.Dataset.from_list(_texts(40))
    table.to_parquet("text.parquet")
    table.save_to_disk("text")
    text = [ids for ids, *_ in _sequences("text.parquet", folder)]
    with open("ids.txt", "w") as file:
        file.writelines("%s\n" % " ".join(map(str, ids)) for ids in text)
    made = "tokcat -q --from=ids ids.txt | packstream -q -L 512 | packcat " \
        "--to=megatron --order=input -o corpus"
    subprocess.run(made, shell=True, check=True)
    tokens = "%s -m packstream.tokenize %%s --tokenizer=%s" % (
        sys.executable, folder)
    for command in (tokens % _write(_chats(40), "chat.jsonl"),
                    tokens % "text.parquet", tokens % "text",
                    "tokcat --from=megatron corpus.bin",
                    "tokcat --from=ids ids.txt"):
        subprocess.run(command + " | packstream -q -L 512 -o data.pks",
                       shell=True, check=True, stderr=subprocess.DEVNULL)
        packs = packstream.open("data.pks")
        batch = hf.collate([packs[i] for i in range(len(packs))])
        loss, found = model(**batch).loss, _split(batch)
        if "chat" not in command:
            assert sorted(ids for ids, _ in found) == sorted(text), command
        alone = [torch.nn.functional.cross_entropy(
            model(input_ids=torch.tensor([ids])).logits[0, :-1],
            torch.tensor(own), reduction="sum") for ids, own in found]
        count = int(_targets(batch).sum())
        assert count == sum(label != -100 for _, own in found
                            for label in own) > 100
        torch.testing.assert_close(loss, sum(alone) / count)
        loss.backward()


if __name__ == "__main__":
    forked.main(globals())
