# folders.py - model folders, compared with transformers and safetensors.
#
# usage: folders.py PROGRAM CHECK [LONG]
#
# PROGRAM is tests/gen/model_folder.  CHECK is the name of a function below; it
# works in the current folder, which is empty.
#
# SPDX-License-Identifier: MIT

import collections
import copy
import itertools
import json
import os
import random
import struct
import subprocess
import sys

os.environ["HF_HUB_OFFLINE"] = "1"
os.environ["TRANSFORMERS_VERBOSITY"] = "critical"
os.environ["HF_HUB_DISABLE_PROGRESS_BARS"] = "1"
os.environ["TQDM_DISABLE"] = "1"

PROGRAM = sys.argv[1]
LONG = len(sys.argv) > 3


def run(*arguments, data=b"", ok=True):
    """Output of the program, or its message if it should fail."""
    done = subprocess.run([PROGRAM, *arguments], input=data,
                          capture_output=True)
    assert done.returncode == (0 if ok else 1), (arguments, done.stderr)
    return done.stdout if ok else done.stderr.decode()


# ---- Files -------------------------------------------------------------------

# Reasons to refuse a file that the package reads.
STRICTER = (
    "duplicate object key",     # the last one wins
    "__metadata__ is not an object",  # null
    "byte 8: the header is not a JSON object",  # white space before it
    "NUL byte in object key",   # \u0000
    "too big integer",          # sizes from 2^63 on, of empty tensors
)

PIECES = [
    b"{", b"}", b"[", b"]", b",", b":", b'"', b"0", b"1", b"-1", b"1e0", b"1.0",
    b"null", b"true", b"\\u0000", b"\\ud800", b" ", b"\n", b"\t", b"\0",
    b"\xff", b"\xc3\xa9", b'"F32"', b'"F4"', b'"a.weight"', b'"b"',
    b'"shape"', b'"dtype"', b"18446744073709551615", b"9223372036854775808",
    b"9223372036854775807", b"99999999999999999999999", b"00",
    b'"__metadata__"', b'"x":1,', b'"BOOL"', b"[[[]]]", b'"q":[1],',
    b'"x":{"dtype":"U8","shape":[],"data_offsets":[0,1]},',
]
KEYS = ["x", "", "\u00e9", "b", "__metadata__", "x\0y", "\U0001f600"]
ENTRIES = [
    {"dtype": "U8", "shape": [0], "data_offsets": [0, 0]},
    {"dtype": "F4", "shape": [3, 0], "data_offsets": [0, 0]},
    {"dtype": "F32", "shape": [], "data_offsets": [0, 4]},
    {"a": "b"}, {}, [], None, 3,
]
MEMBERS = {
    "dtype": ["F32", "BF16", "F16", "I16", "U16", "BOOL", "U8", "F8_E4M3",
              "F8_E5M2", "F8_E8M0", "C64", "F64", "F4", "F6_E2M3", "F6_E3M2",
              "F8_E4M3FNUZ", "F8_E5M2FNUZ", "I32", "U32", "I64", "U64", "E8M0",
              "f32", "", "F8", "I4", "U4", "F2"],
    "shape": [[2, 3], [6], [3, 2], [], [1] * 20, [2**32, 2**32], [2**63, 2],
              [2**62, 4, 0], [0, 2**63], [-1], [2.0], ["2"], None, "x", {},
              [True], [2**64], [24]],
    "data_offsets": [[0, 24], [0, 23], [24, 0], [24, 24], [24, 32], [8, 24],
                     [32, 33], [0], [0, 1, 2], [], None, [0, 2**63],
                     [2**64, 2**64], [0, 24.0], {}],
    "extra": [1, None, [], {}, "x", [[]] * 3],
}
METADATA = [{}, {"a": "b"}, {"a": 1}, {"a": None}, None, "x", [], {"a": {}},
            {"a": "b", "c": "d"}]


def changed_bytes(rng, head):
    """The header with a few bytes changed."""
    h = bytearray(head)
    for _ in range(rng.choice([1, 1, 1, 2, 3])):
        i, kind = rng.randrange(len(h)), rng.randrange(6)
        if kind == 0:
            h[i] = rng.randrange(256)
        elif kind == 1:
            h[i:i] = rng.choice(PIECES)
        elif kind == 2:
            del h[i:i + rng.randrange(1, 4)]
        elif kind == 3:
            digits = [k for k, c in enumerate(h) if 48 <= c < 58] or [i]
            h[rng.choice(digits)] = 48 + rng.randrange(10)
        elif kind == 4:
            k = rng.randrange(len(h))
            h[i], h[k] = h[k], h[i]
        else:
            h[i:i + 1] = rng.choice(PIECES)
        h = h or bytearray(b"{")
    return bytes(h)


def changed_members(rng, head):
    """The header with a few members changed."""
    items = list(json.loads(head).items())
    for _ in range(rng.choice([0, 1, 1, 2])):
        kind, i = rng.randrange(6), rng.randrange(len(items))
        name, entry = items[i]
        if kind == 0:
            rng.shuffle(items)
        elif kind == 1:
            items.insert(i, (rng.choice(KEYS), rng.choice(ENTRIES)))
        elif kind == 2 and len(items) > 1:
            del items[i]
        elif kind == 3:
            items = [x for x in items if x[0] != "__metadata__"]
            items.insert(0, ("__metadata__", rng.choice(METADATA)))
        elif isinstance(entry, dict) and name != "__metadata__":
            entry = dict(entry)
            member = rng.choice(list(MEMBERS))
            entry[member] = rng.choice(MEMBERS[member])
            if kind == 5 and rng.random() < 0.2:
                del entry[member]
            items[i] = (name, entry)
    ascii_only = rng.random() < 0.5
    gaps = rng.choice([(",", ":"), (", ", ": ")])
    text = ",".join(json.dumps(k, ensure_ascii=ascii_only) + ":" +
                    json.dumps(v, separators=gaps) for k, v in items)
    before = rng.choice([b""] * 50 + [b" ", b"\n", b"\xef\xbb\xbf"])
    after = rng.choice([b"", b"", b" ", b"\n", b"  \t", b"\0", b"x"])
    return before + b"{" + text.encode() + b"}" + after


def mutant(rng, head, data):
    if rng.random() < 0.6:
        head = changed_members(rng, head)
    else:
        head = changed_bytes(rng, head)
    size = len(head)
    if rng.random() < 0.02:
        size += rng.choice([-1, 1, 8, 1 << 30, 1 << 63, -size])
    if rng.random() < 0.03:
        data = rng.choice([data + b"x", data[:-1], b""])
    whole = struct.pack("<Q", size % 2**64) + head + data
    return whole[:rng.randrange(len(whole))] if rng.random() < 0.01 else whole


def mutants():
    """The package and the reader accept the same files, but for STRICTER."""
    import numpy
    import safetensors.numpy

    rng = random.Random(42)
    base = safetensors.numpy.save(
        {"a.weight": numpy.arange(6, dtype=numpy.float32).reshape(2, 3),
         "b": numpy.zeros(4, numpy.float16),
         "c": numpy.zeros((0, 2), numpy.float64),
         "d": numpy.ones((), numpy.int8),
         "e": numpy.ones(3, numpy.int8)}, metadata={"format": "pt"})
    size = 8 + struct.unpack("<Q", base[:8])[0]
    theirs = []
    for i in range(100000 if LONG else 10000):
        whole = mutant(rng, base[8:size].rstrip(), base[size:])
        with open(f"m{i}", "wb") as f:
            f.write(whole)
        try:
            safetensors.deserialize(whole)
            theirs.append("ok")
        except safetensors.SafetensorError as error:
            theirs.append(str(error))
    names = "".join(f"m{i}\n" for i in range(len(theirs))).encode()
    ours = run("list", data=names).decode().splitlines()
    assert len(ours) == len(theirs)
    count = collections.Counter()
    for i, (a, b) in enumerate(zip(theirs, ours)):
        reason = next((x for x in STRICTER if x in b), None)
        count[a == "ok", b == "ok"] += 1
        if a == "ok" and b != "ok":
            assert reason, (i, b)
            count[reason] += 1
        assert a == "ok" or b != "ok", (i, a)
    assert count[True, True] > len(ours) // 10
    print(dict(count))


def numbers():
    """All types are converted as torch does, and written as float32."""
    import safetensors.torch
    import torch

    torch.manual_seed(1)
    bits = torch.arange(-2**15, 2**15, dtype=torch.int32).to(torch.int16)
    wide = torch.randint(-2**31, 2**31, (1000, 77), dtype=torch.int64)
    tensors = {
        "f16": bits.view(torch.float16).reshape(256, 256),
        "bf16": bits.clone().view(torch.bfloat16),
        "f32": wide.to(torch.int32).view(torch.float32),
        "f64": torch.randn(300001, dtype=torch.float64),
        "none": torch.zeros(0, 5),
        "\u00e9\"\\ \n": torch.ones(1, 1),
    }
    safetensors.torch.save_file(tensors, "in")
    run("rewrite", "in", "out")
    again = safetensors.torch.load_file("out")
    assert set(again) == set(tensors)
    for key, value in tensors.items():
        wanted = value.to(torch.float32)
        assert again[key].dtype == torch.float32
        assert wanted.shape == value.shape
        is_nan = wanted.isnan()
        assert torch.equal(is_nan, again[key].isnan()), key
        assert torch.equal(wanted[~is_nan].view(torch.int32),
                           again[key][~is_nan].view(torch.int32)), key
    with safetensors.safe_open("out", "pt") as f:
        assert f.metadata() == {"format": "pt"}
    with open("out", "rb") as f:
        assert struct.unpack("<Q", f.read(8))[0] % 8 == 0


# ---- config.json -------------------------------------------------------------

ACTIVATIONS = {"gelu_new": 0, "gelu_pytorch_tanh": 0, "gelu": 1, "silu": 2,
               "swish": 2}


def write(path, name, value):
    os.makedirs(path, exist_ok=True)
    with open(os.path.join(path, name), "w", encoding="utf-8") as f:
        json.dump(value, f)


def rope_of(p):
    old = p["rope_type"] == "llama3"
    return {"theta": p["rope_theta"], "factor":
            1 if p["rope_type"] == "default" else p["factor"],
            "low": p["low_freq_factor"] if old else 0,
            "high": p["high_freq_factor"] if old else 0,
            "old": p["original_max_position_embeddings"] if old else 0}


def windows_of(c):
    """The window of transformers' mask, and the layers that have it."""
    from transformers import masking_utils as masks

    types, window = getattr(c, "layer_types", None), 0
    if c.model_type == "mistral":
        types = ["sliding_attention" if c.sliding_window else ""] * \
            c.num_hidden_layers
    windowed = [t == "sliding_attention" for t in types or
                [""] * c.num_hidden_layers]
    if any(windowed):
        make = (masks.sliding_window_bidirectional_overlay
                if c.model_type == "modernbert"
                else masks.sliding_window_overlay)
        sees = make(c.sliding_window)
        window = next(i for i in itertools.count()
                      if not sees(0, 0, 10**7, 10**7 - i))
    return window, windowed


def expected(c):
    """The fields that model_folder prints, from a config of transformers."""
    is_bert, modern = c.model_type == "bert", c.model_type == "modernbert"
    act = c.hidden_activation if modern else c.hidden_act
    window, windowed = windows_of(c)
    head = getattr(c, "head_dim", None) or \
        c.hidden_size // c.num_attention_heads
    rope = local = {"theta": 10000, "factor": 1, "low": 0, "high": 0, "old": 0}
    if not is_bert:
        p = c.rope_parameters
        nested = "full_attention" in p
        rope = rope_of(p["full_attention"] if nested else p)
        local = rope_of(p["sliding_attention"] if nested else p)
    return {
        "family": 0 if is_bert else 1 if modern else 2,
        "vocab_size": c.vocab_size, "hidden": c.hidden_size,
        "layers": c.num_hidden_layers, "heads": c.num_attention_heads,
        "intermediate": c.intermediate_size,
        "positions": c.max_position_embeddings, "activation": ACTIVATIONS[act],
        "epsilon": c.layer_norm_eps if is_bert else
        c.norm_eps if modern else c.rms_norm_eps,
        "dropout": c.hidden_dropout_prob if is_bert else 0,
        "types": c.type_vocab_size if is_bert else 1,
        "kv_heads": getattr(c, "num_key_value_heads", c.num_attention_heads),
        "head_width": head, "tied": c.tie_word_embeddings,
        "qkv_bias": c.model_type == "qwen2", "qk_norm": c.model_type == "qwen3",
        "rope": rope, "local_rope": local, "window": window,
        "windowed": windowed,
    }


def random_rope(rng, nested):
    kind = rng.choice(["default", "linear", "llama3"])
    p = {"rope_type": kind, "rope_theta": rng.choice([1e4, 5e5, 1000000])}
    if kind != "default":
        p["factor"] = rng.choice([2, 8.0, 1.5])
    if kind == "llama3":
        p.update(low_freq_factor=rng.choice([1, 1.0, 0.5]),
                 high_freq_factor=rng.choice([4.0, 8]))
        if nested or rng.random() < 0.7:
            p["original_max_position_embeddings"] = rng.choice([512, 8192])
    return p


def random_common(rng, kind):
    heads = rng.choice([1, 2, 4, 32])
    width = rng.choice([2, 8, 64])
    c = {"vocab_size": rng.randrange(1, 200000), "hidden_size": heads * width,
         "num_hidden_layers": rng.choice([1, 2, 7, 32]),
         "num_attention_heads": heads,
         "intermediate_size": rng.randrange(1, 999),
         "max_position_embeddings": rng.choice([1, 512, 131072]),
         "tie_word_embeddings": kind == "bert" or rng.random() < 0.5,
         "initializer_range": 0.02, "torch_dtype": "bfloat16"}
    act = rng.choice(list(ACTIVATIONS))
    epsilon = rng.choice([1e-12, 1e-5, 1e-6])
    if kind == "bert":
        rate = rng.choice([0, 0.0, 0.1, 0.25])
        c.update(hidden_act=act, layer_norm_eps=epsilon,
                 hidden_dropout_prob=rate, attention_probs_dropout_prob=rate,
                 type_vocab_size=rng.randrange(1, 5), pad_token_id=0,
                 position_embedding_type="absolute", is_decoder=False)
    elif kind == "modernbert":
        c.update(hidden_activation=act, classifier_activation=act,
                 norm_eps=epsilon, layer_norm_eps=0.5, mlp_bias=False,
                 local_attention=rng.choice([1, 2, 7, 128]),
                 embedding_dropout=0.0, decoder_bias=True)
    else:
        c.update(hidden_act=act, rms_norm_eps=epsilon, attention_dropout=0.0)
    return c


def random_modernbert(rng, c):
    if rng.random() < 0.5:  # as transformers 4 writes it
        c.update(global_rope_theta=rng.choice([160000.0, 12345]),
                 local_rope_theta=10000.0,
                 global_attn_every_n_layers=rng.choice([1, 2, 3, 40]))
    else:
        c["rope_parameters"] = {k: random_rope(rng, True) for k in
                                ("full_attention", "sliding_attention")}
        c["layer_types"] = [rng.choice(["full_attention", "sliding_attention"])
                            for _ in range(c["num_hidden_layers"])]


def random_causal(rng, kind, c):
    heads = c["num_attention_heads"]
    c["num_key_value_heads"] = rng.choice(
        [k for k in (1, 2, heads) if heads % k == 0] +
        [None] * (kind != "mistral"))
    if kind in ("llama", "mistral"):
        c["head_dim"] = rng.choice([None, 2, 16, 128])
    elif rng.random() < 0.8:
        c["head_dim"] = rng.choice([2, 16, 128])
    rope = random_rope(rng, False)
    if rng.random() < 0.5:
        c["rope_parameters"] = rope
    else:
        c["rope_theta"] = rope.pop("rope_theta")
        if rng.random() < 0.5:
            rope["type"] = rope["rope_type"]
            if rope["rope_type"] != "llama3":
                del rope["rope_type"]
        c["rope_scaling"] = rng.choice([rope, None])
    if kind != "llama":
        c["sliding_window"] = rng.choice([1, 64, 4096, None])
    if kind.startswith("qwen"):
        used = c["sliding_window"] is not None and rng.random() < 0.6
        c.update(use_sliding_window=used,
                 max_window_layers=rng.choice([0, 1, 5, 28, 100]))
        if rng.random() < 0.4:
            names = ["full_attention"] + ["sliding_attention"] * used
            c["layer_types"] = [rng.choice(names) for _ in
                                range(c["num_hidden_layers"])]


# Keys that only have a default together with another one.
BOTH = [{"hidden_size", "num_attention_heads"}, {"num_attention_heads",
        "num_key_value_heads"}, {"num_hidden_layers", "layer_types"},
        {"hidden_dropout_prob", "attention_probs_dropout_prob"},
        {"hidden_activation", "classifier_activation"},
        {"use_sliding_window", "layer_types"},
        {"sliding_window", "use_sliding_window"}]


def random_config(rng, kind):
    c = random_common(rng, kind)
    if kind == "modernbert":
        random_modernbert(rng, c)
    elif kind != "bert":
        random_causal(rng, kind, c)
    for key in list(c):
        if rng.random() < 0.15:
            gone = {key}
            for _ in BOTH:
                for both in BOTH:
                    gone |= both if gone & both else set()
            for name in gone:
                c.pop(name, None)
    return dict(c, model_type=kind)


KINDS = ["bert", "modernbert", "llama", "qwen2", "qwen3", "mistral"]


def parsed(paths):
    return [json.loads(line) for line in
            run("config", *paths).decode().splitlines()]


def accepted(c):
    """False for sizes that transformers accepts but no model can have."""
    heads = c.num_attention_heads
    head = getattr(c, "head_dim", None) or c.hidden_size // heads
    if c.model_type in ("bert", "modernbert"):
        return c.hidden_size % heads == 0 and \
            (c.model_type == "bert" or head % 2 == 0)
    return heads % c.num_key_value_heads == 0 and head % 2 == 0


def configs():
    """Random configs, in both forms, are read as by transformers."""
    import transformers

    rng = random.Random(7)
    paths, wanted = [], []
    for i in range(20000 if LONG else 1500):
        path = f"c{i}"
        write(path, "config.json", random_config(rng, KINDS[i % len(KINDS)]))
        config = transformers.AutoConfig.from_pretrained(path)
        if not accepted(config):
            continue
        if rng.random() < 0.5:  # also as this version writes it
            config.save_pretrained(path)
        paths.append(path)
        wanted.append(expected(config))
    for path, ours, theirs in zip(paths, parsed(paths), wanted):
        for key, value in theirs.items():
            assert ours.get(key) == value, (path, key, ours, value)
        assert set(ours) == set(theirs)
    print(len(paths))


def composed():
    """A composed config is read by transformers, and again, as the same."""
    import transformers

    rng = random.Random(8)
    for i in range(300 if LONG else 60):
        path = f"c{i}"
        write(path, "config.json", random_config(rng, KINDS[i % len(KINDS)]))
        first = parsed([path])[0]
        if "error" in first:
            continue
        text = run("compose", path)
        with open(os.path.join(path, "config.json"), "wb") as f:
            f.write(text)
        assert parsed([path])[0] == first, (path, first, text)
        config = transformers.AutoConfig.from_pretrained(path)
        again = expected(config)
        if not any(first["windowed"]):
            first["window"] = again["window"] = 0
        assert again == first, (path, again, first)
        assert hasattr(transformers, config.architectures[0])


SMALL = {"vocab_size": 50, "hidden_size": 16, "num_hidden_layers": 2,
         "num_attention_heads": 2, "intermediate_size": 32,
         "max_position_embeddings": 20}
YARN = {"rope_type": "yarn", "factor": 2.0}

# A setting, the code word of the message, for each type.
REFUSED = [
    ("bert", {"hidden_dropout_prob": 0.2}, "must be equal"),
    ("bert", {"position_embedding_type": "relative_key"},
     'position_embedding_type: "relative_key"'),
    ("bert", {"is_decoder": True}, "is_decoder: true"),
    ("bert", {"add_cross_attention": True}, "add_cross_attention: true"),
    ("bert", {"tie_word_embeddings": False}, "tie_word_embeddings: false"),
    ("bert", {"hidden_act": "relu"}, 'hidden_act: "relu"'),
    ("bert", {"hidden_size": 15}, "hidden_size: is not a multiple"),
    ("bert", {"num_hidden_layers": 1025}, "num_hidden_layers: 1025"),
    ("bert", {"num_hidden_layers": 0}, "num_hidden_layers: 0"),
    ("bert", {"vocab_size": 2**31}, "vocab_size: 2147483648"),
    ("bert", {"vocab_size": -1}, "vocab_size: -1"),
    ("bert", {"vocab_size": "50"}, 'vocab_size: "50"'),
    ("bert", {"vocab_size": 50.0}, "vocab_size: 50.0"),
    ("bert", {"hidden_dropout_prob": 1, "attention_probs_dropout_prob": 1},
     "hidden_dropout_prob"),
    ("bert", {"layer_norm_eps": 0}, "layer_norm_eps: 0"),
    ("bert", {"pruned_heads": {"1": [0]}}, "pruned_heads"),
    ("bert", {"quantization_config": {"bits": 4}}, "quantization_config"),
    ("modernbert", {"norm_bias": True}, "norm_bias: true"),
    ("modernbert", {"attention_bias": True}, "attention_bias: true"),
    ("modernbert", {"mlp_bias": True}, "mlp_bias: true"),
    ("modernbert", {"mlp_dropout": 0.1}, "mlp_dropout: 0.1"),
    ("modernbert", {"embedding_dropout": 0.1}, "embedding_dropout: 0.1"),
    ("modernbert", {"attention_dropout": 0.1}, "attention_dropout: 0.1"),
    ("modernbert", {"decoder_bias": False}, "decoder_bias: false"),
    ("modernbert", {"classifier_bias": True}, "classifier_bias: true"),
    ("modernbert", {"hidden_activation": "silu"}, "classifier_activation"),
    ("modernbert", {"rope_parameters": {"rope_theta": 5}}, "rope_parameters"),
    ("modernbert", {"rope_scaling": YARN}, "rope_scaling"),
    ("modernbert", {"rope_parameters": {"full_attention": YARN}}, '"yarn"'),
    ("modernbert", {"layer_types": ["full_attention"]}, "layer_types"),
    ("llama", {"rope_scaling": YARN}, 'rope_type: "yarn"'),
    ("llama", {"rope_scaling": {"type": "dynamic", "factor": 2}}, '"dynamic"'),
    ("llama", {"rope_parameters": {"rope_type": "longrope"}}, '"longrope"'),
    ("llama", {"rope_scaling": {"type": "linear"}}, "factor: missing"),
    ("llama", {"rope_scaling": {"type": "llama3", "factor": 2}},
     "low_freq_factor"),
    ("llama", {"rope_theta": -1}, "rope_theta: -1"),
    ("llama", {"attention_bias": True}, "attention_bias: true"),
    ("llama", {"mlp_bias": True}, "mlp_bias: true"),
    ("llama", {"attention_dropout": 0.1}, "attention_dropout: 0.1"),
    ("llama", {"partial_rotary_factor": 0.5}, "partial_rotary_factor: 0.5"),
    ("llama", {"rope_parameters": {"partial_rotary_factor": 0.5}},
     "partial_rotary_factor: 0.5"),
    ("llama", {"logit_scale": 0.5}, "logit_scale: 0.5"),
    ("llama", {"final_logit_softcapping": 30.0}, "final_logit_softcapping"),
    ("llama", {"is_causal": False}, "is_causal: false"),
    ("llama", {"num_key_value_heads": 3}, "num_key_value_heads"),
    ("llama", {"head_dim": 7}, "head_dim: is odd"),
    ("llama", {"head_dim": 2**30}, "head_dim: times num_attention_heads"),
    ("llama", {"intermediate_size": 2**31 - 1}, "intermediate_size"),
    ("llama", {"hidden_size": 2**31 - 2, "intermediate_size": 2**30 - 1,
               "num_hidden_layers": 1024, "head_dim": 2**29,
               "vocab_size": 2**31 - 1}, "hidden_size: the model does not fit"),
    ("llama", {"layer_types": ["sliding_attention"] * 2}, "layer_types"),
    ("llama", {"layer_types": ["chunked_attention"] * 2}, "chunked_attention"),
    ("qwen2", {"num_key_value_heads": 1, "layer_types":
               ["sliding_attention"] * 2}, "use_sliding_window"),
    ("qwen3", {"num_key_value_heads": 1, "attention_bias": True},
     "attention_bias: true"),
    ("qwen3", {}, "num_key_value_heads"),
    ("mistral", {"num_key_value_heads": 1, "sliding_window": 0},
     "sliding_window: 0"),
    ("mistral", {"num_key_value_heads": 1, "layer_types":
                 ["full_attention"] * 2}, "layer_types"),
    ("gpt2", {}, 'model_type: "gpt2" is not supported (bert, modernbert, '
     'llama, qwen2, qwen3 and mistral are)'),
    (None, {}, "model_type: missing"),
    (3, {}, "model_type: 3"),
]


def refused():
    """Unsupported settings and wrong numbers are named in the message."""
    paths = []
    for i, (kind, more, _) in enumerate(REFUSED):
        write(f"c{i}", "config.json", dict(SMALL, model_type=kind, **{}) | more)
        paths.append(f"c{i}")
    for ours, (kind, more, message) in zip(parsed(paths), REFUSED):
        assert message in ours.get("error", ""), (kind, more, ours)
    for text, message in (("", "byte 0: not JSON"), ("[]", "not a JSON object"),
                          ('{"a":1,"a":2}', "duplicate object key"),
                          ("[" * 5000, "not JSON"), ("{}" + " " * 2**20,
                                                     "the limit is 1048576")):
        os.makedirs("bad", exist_ok=True)
        with open("bad/config.json", "w", encoding="utf-8") as f:
            f.write(text)
        assert message in parsed(["bad"])[0]["error"], (text[:9], message)


# ---- Folders -----------------------------------------------------------------

def model(kind, tied=None, cls=None):
    """A small model with random weights."""
    import torch
    import transformers as t

    torch.manual_seed(3)
    small = dict(SMALL, pad_token_id=0, bos_token_id=None, eos_token_id=None)
    if kind not in ("bert", "modernbert"):
        small["num_key_value_heads"] = 1
    if kind == "modernbert":
        small.update(cls_token_id=0, sep_token_id=0)
    if tied is not None:
        small["tie_word_embeddings"] = tied
    config = t.AutoConfig.for_model(kind, **small)
    name = cls or {"bert": "BertForPreTraining",
                   "modernbert": "ModernBertForMaskedLM"}.get(
                       kind, f"{kind.capitalize()}ForCausalLM")
    made = getattr(t, name)(config)
    with torch.no_grad():  # biases and norms are constants at first
        for p in made.parameters():
            p.add_(torch.randn_like(p) * 0.1)
    return made


def table(made, name="table", optional=()):
    """Writes the table of a model's tensors; returns the tensors."""
    tensors = dict(made.named_parameters())
    with open(name, "w", encoding="utf-8") as f:
        for key, value in tensors.items():
            flags = ("v" if value.ndim == 1 else "") + \
                ("o" if key.startswith(tuple(optional)) and optional else "")
            rows = 1 if value.ndim == 1 else value.shape[0]
            f.write(f"{key} {rows} {value.shape[-1]} {flags or '-'}\n")
    return tensors


def load(path, tensors):
    """The number of missing tensors, and what was read."""
    import torch

    out = run("load", path, "table")
    line, rest = out.split(b"\n", 1)
    flat = torch.frombuffer(bytearray(rest), dtype=torch.float32)
    parts = flat.split([v.numel() for v in tensors.values()])
    return int(line), {k: p.reshape(v.shape)
                       for (k, v), p in zip(tensors.items(), parts)}


def same(read, tensors):
    import torch

    return all(torch.equal(read[k], v.detach().to(torch.float32))
               for k, v in tensors.items())


def loaded():
    """All classes are read, from one file and from shards."""
    import torch

    for kind in KINDS:
        made = model(kind)
        tensors = table(made)
        made.save_pretrained(f"{kind}.one")
        made.save_pretrained(f"{kind}.many", max_shard_size="4KB")
        assert len(os.listdir(f"{kind}.many")) > 4, os.listdir(f"{kind}.many")
        for path in f"{kind}.one", f"{kind}.many":
            missing, read = load(path, tensors)
            assert missing == 0 and same(read, tensors), path
        made.to(torch.bfloat16).save_pretrained(f"{kind}.half")
        missing, read = load(f"{kind}.half", tensors)
        assert same(read, dict(made.named_parameters())), kind
    made = model("llama", tied=True)
    tensors = table(made)
    assert "lm_head.weight" not in tensors
    made.save_pretrained("tied")
    assert same(load("tied", tensors)[1], tensors)


def names():
    """Other classes' and old names are found; others are refused by name."""
    import safetensors.torch
    import torch

    made = model("bert")
    heads = "cls.seq_relationship", "bert.pooler", "cls."
    tensors = table(made, optional=heads)
    state = {k: v.detach().clone() for k, v in tensors.items()}
    os.makedirs("x", exist_ok=True)

    def put(s):
        safetensors.torch.save_file(s, "x/model.safetensors")

    # BertModel, without a prefix and heads; BertForMaskedLM
    put({k[5:]: v for k, v in state.items() if k.startswith("bert.")})
    missing, read = load("x", tensors)
    assert missing == 7
    assert same(read, {k: v for k, v in state.items() if k[:5] == "bert."})
    assert all((read[k] == -1).all() for k in state if k[:5] != "bert.")
    model("bert", cls="BertForMaskedLM").save_pretrained("mlm")
    assert load("mlm", tensors)[0] == 4

    old = {k.replace("LayerNorm.weight", "LayerNorm.gamma")
            .replace("LayerNorm.bias", "LayerNorm.beta"): v
           for k, v in state.items()}
    assert old.keys() != state.keys()
    word = state["bert.embeddings.word_embeddings.weight"]
    extra = {"cls.predictions.decoder.weight": word.clone(),
             "cls.predictions.decoder.bias":
             state["cls.predictions.bias"].clone(),
             "bert.embeddings.position_ids": torch.arange(20)[None]}
    put(old | extra)
    missing, read = load("x", tensors)
    assert missing == 0 and same(read, state)
    moved = dict(state)
    moved["cls.predictions.decoder.bias"] = moved.pop("cls.predictions.bias")
    put(moved)
    assert same(load("x", tensors)[1], state)

    one = "bert.encoder.layer.0.output.dense.weight"
    for s, message in (
            (state | {"classifier.weight": torch.zeros(2, 16)},
             "model.safetensors: unexpected tensor classifier.weight"),
            (state | {"bert.encoder.layer.2.output.dense.bias": torch.ones(16)},
             "unexpected tensor bert.encoder.layer.2.output.dense.bias"),
            (state | {"cls.predictions.decoder.weight": word + 1},
             "tensor cls.predictions.decoder.weight: is tied to "
             "bert.embeddings.word_embeddings.weight"),
            (state | {one: torch.zeros(32, 16)}, f"model.safetensors: tensor "
             f"{one}: has the shape [32, 16], but the model needs [16, 32]"),
            (state | {one: torch.zeros(512)}, "has the shape [512]"),
            (state | {one: torch.zeros(16, 32, 1)}, "[16, 32, 1]"),
            (state | {one: torch.zeros(16, 32, dtype=torch.int32)},
             f"tensor {one}: has the type I32"),
            ({k: v for k, v in state.items() if k != one},
             f"model.safetensors: tensor {one} is missing")):
        put(s)
        message_is = run("load", "x", "table", ok=False)
        assert message in message_is and message_is.count("\n") == 1, message_is


def bases():
    """Folders of base classes are read; heads keep their initial values."""
    heads = "cls.", "head.", "decoder.", "lm_head."
    for kind in KINDS:
        tensors = table(model(kind), optional=heads)
        base = {"bert": "BertModel", "modernbert": "ModernBertModel"}.get(
            kind, f"{kind.capitalize()}Model")
        made = model(kind, cls=base)
        made.save_pretrained(kind)
        missing, read = load(kind, tensors)
        absent = [k for k in tensors if k.startswith(heads)]
        assert absent and missing == len(absent), (kind, missing)
        assert all((read[k] == -1).all() for k in absent)
        inner = {k.split(".", 1)[1]: v for k, v in read.items()
                 if k not in absent}
        assert same(inner, dict(made.named_parameters())), kind


def indexes():
    """Damaged indexes and shards are refused by name."""
    made = model("llama")
    tensors = table(made)
    made.save_pretrained("x", max_shard_size="4KB")
    with open("x/model.safetensors.index.json", encoding="utf-8") as f:
        index = json.load(f)
    places = index["weight_map"]
    files = list(places.values())
    first, second = [f for f in sorted(set(files)) if files.count(f) > 1][:2]
    name = next(k for k, v in places.items() if v == first)
    for change, message in (
            ({name: "../x/" + first}, "is not a name in this folder"),
            ({name: ".."}, "is not a name in this folder"),
            ({name: ""}, "is not a name in this folder"),
            ({name: 3}, "is not a name in this folder"),
            ({name: "gone.safetensors"}, "gone.safetensors: No such file"),
            ({name: "config.json"}, "config.json: byte 0"),
            ({name: second}, f"{first}: tensor {name}: the index has it in "
             f"{second}"),
            ({"more.weight": first}, f"tensor more.weight: is not in {first}")):
        write("x", "model.safetensors.index.json",
              {"weight_map": places | change})
        assert message in run("load", "x", "table", ok=False), change
    del places[name]
    for weight_map, message in (
            (places, f"tensor {name}: the index has it in no file"),
            ({}, "no object"), ([], "no object"), (None, "no object")):
        write("x", "model.safetensors.index.json", {"weight_map": weight_map})
        assert message in run("load", "x", "table", ok=False), message
    os.remove("x/model.safetensors.index.json")
    assert "has neither" in run("load", "x", "table", ok=False)
    assert tensors


def flat(tensors):
    import torch

    return torch.cat([v.detach().reshape(-1) for v in
                      tensors.values()]).numpy().tobytes()


def saved():
    """transformers loads exported folders, without missing tensors."""
    import torch
    import transformers

    for kind in KINDS:
        made = model(kind)
        tensors = table(made)
        made.config.save_pretrained("out.config")
        copy.deepcopy(made).to(torch.bfloat16).save_pretrained(
            f"{kind}.source")
        for source in "-", f"{kind}.source":
            path = f"{kind}.{len(source)}"
            config = "out.config"
            os.rename(config, f"{path}.config")
            run("save", path, "table", source, data=flat(tensors))
            os.rename(f"{path}.config", config)
            again, info = type(made).from_pretrained(
                path, output_loading_info=True, torch_dtype="auto")
            assert not any(info[k] for k in ("missing_keys", "unexpected_keys",
                                             "mismatched_keys")), (path, info)
            for key, value in again.named_parameters():
                assert value.dtype == torch.float32, (path, key, value.dtype)
                assert torch.equal(value, tensors[key].detach()), key
            transformers.AutoModel.from_pretrained(path)
            assert same(load(path, tensors)[1], dict(again.named_parameters()))
            assert not [x for x in os.listdir(path) if x.endswith(".new")]


def tokenizers():
    """The files of the tokenizer are copied, through links too."""
    import transformers

    made = model("bert")
    tensors = table(made)
    made.save_pretrained("source")
    words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "hello", "world"]
    with open("vocab.txt", "w", encoding="utf-8") as f:
        f.write("\n".join(words))
    transformers.BertTokenizerFast("vocab.txt").save_pretrained("source")
    os.rename("source/tokenizer.json", "blob")
    os.symlink("../blob", "source/tokenizer.json")
    run("save", "out", "table", "source", data=flat(tensors))
    tokens = transformers.AutoTokenizer.from_pretrained("out")
    theirs = transformers.AutoTokenizer.from_pretrained("source")
    text = "hello world, again"
    assert tokens(text)["input_ids"] == theirs(text)["input_ids"]
    assert not os.path.islink("out/tokenizer.json")
    run("save", "source", "table", "source", data=flat(tensors))
    assert os.path.islink("source/tokenizer.json")
    before = sorted(os.listdir("source"))
    made.save_pretrained("shards", max_shard_size="4KB")
    for path in "shards", "shards2":
        listed = sorted(os.listdir("shards"))
        message = run("save", "shards", "table", "source",
                      data=flat(tensors), ok=False)
        assert "has a model in shards" in message
        assert sorted(os.listdir("shards")) == listed
        if path == "shards":
            os.remove("shards/model.safetensors.index.json")
    assert sorted(os.listdir("source")) == before


if __name__ == "__main__":
    globals()[sys.argv[2]]()
