# models.bats - models of transformers, trained by packtrain.
#
# SPDX-License-Identifier: MIT

load ../support/helpers

# Sets "python" to a python3 that has transformers, or skips the test.
python_with() {
    [ -x "${abs_top_builddir:?}/tests/gen/model_state" ] ||
        skip "the trainer is not built"
    for python in ${PYTHON_TORCH-} python3 /usr/bin/python3; do
        "$python" -c "import transformers, safetensors" >/dev/null 2>&1 &&
            return
    done
    skip "no python3 has transformers"
}

models() {
    "$python" "${abs_top_srcdir:?}/tests/trainer/models.py" \
        "$abs_top_builddir" "$@"
}

@test "logits and gradients equal those of transformers" {
    python_with
    models state
}

@test "20 steps of AdamW give the weights of torch.optim.AdamW" {
    python_with
    models learn
}

@test "exported folders load in transformers, with equal logits" {
    python_with
    models loads
}

@test "fine-tuning on chats has the losses of TRL's SFTTrainer" {
    python=${PEERS_PYTHON:-python3}
    "$python" -c "import trl, packstream" >/dev/null 2>&1 ||
        skip "no PEERS_PYTHON has TRL and packstream"
    "$python" "${abs_top_srcdir:?}/tests/trainer/sft.py" "$built" >log 2>&1 || {
        tail -n 5 log
        return 1
    }
}

# ---- Without Python ----

# model: the folder "m", with the config.json of a small Llama.
model() {
    mkdir -p m
    printf '%s' '{"model_type": "llama", "vocab_size": 50, "hidden_size": 8,
        "num_hidden_layers": 1, "num_attention_heads": 2,
        "intermediate_size": 16, "rope_theta": 10000.0}' >m/config.json
}

packs() {
    seq 5 40 | tr '\n' ' ' | "$built/tokcat" --from=ids --vocab=50 --pad-id=0 |
        "$built/packstream" -q -L 64 -o x.pks
}

setup() {
    start
    built=${abs_top_builddir:?}
    [ -x "$built/packtrain" ] || skip "the trainer is not built"
    model
    packs
}

train() {
    "$built/packtrain" --report=1 --stats=json "$@" x.pks
}

@test "a new Llama learns, and its export is a start with the same loss" {
    train --config=m --export=out --steps=1 >first
    [ -s out/config.json ]
    [ -s out/model.safetensors ]
    train --init=out --rate=0 --eval=x.pks --metrics=log >second
    grep -q '"eval_loss"' second
    diff second log
    train --config=m --epochs=2 >both
    [ "$(sed -n 's/.*"loss": \([0-9.]*\), "gr.*/\1/p' second | cut -c1-7)" = \
        "$(sed -n '2s/.*"loss": \([0-9.]*\), "gr.*/\1/p' both | cut -c1-7)" ]
}

@test "a resumed Llama is bit-identical to an uninterrupted one" {
    train --config=m --epochs=4 --save=whole
    train --config=m --epochs=4 --steps=2 --save=part
    train --config=m --epochs=4 --save=part --resume
    cmp whole part
}

@test "smaller memory: the same losses in micro-batches, recomputed bits" {
    for i in {5..20}; do
        seq "$i" $((2 * i + 5)) | tr '\n' ' '
        echo
    done | "$built/tokcat" --from=ids --vocab=50 --pad-id=0 |
        "$built/packstream" -q -L 32 -o x.pks
    train --config=m --packs=4 --epochs=3 --save=whole >one
    train --config=m --packs=4 --epochs=3 --save=again --recompute
    cmp whole again
    train --config=m --packs=4 --epochs=3 --save=parts --micro-batch=3 \
        --eval=x.pks >some
    python3 -c 'import json, sys
x, y = ([line["loss"] for line in map(json.loads, open(name))
         if "loss" in line] for name in sys.argv[1:])
assert len(x) == len(y) == 9, (x, y)
assert all(abs(a - b) < 2e-6 * a for a, b in zip(x, y)), (x, y)
assert x[-1] < x[2], x' one some
    refused 64 "parts: saved with micro_batch=3, which is missing" \
        train --config=m --packs=4 --epochs=3 --save=parts --resume
    refused 64 "--micro-batch excludes --graphs" train --micro-batch=2 \
        --graphs=on --device=cuda
}

@test "a folder that is not complete is refused, and nothing is written" {
    train --config=m --export=out --steps=1
    cp -r out bad
    head -c 100 out/model.safetensors >bad/model.safetensors
    refused 65 "bad: model.safetensors: byte 0: the header has" \
        train --init=bad --export=new
    [ ! -e new ]
    rm bad/model.safetensors
    refused 65 "bad: has neither model.safetensors nor " train --init=bad
    sed 's/"hidden_size": 8/"hidden_size": 12/' out/config.json \
        >bad/config.json
    cp out/model.safetensors bad
    refused 65 "tensor model.embed_tokens.weight: has the shape [50, 8], but \
the model needs [50, 12]" train --init=bad
    sed 's/"llama"/"gpt2"/' out/config.json >bad/config.json
    refused 65 "bad: config.json: model_type: \"gpt2\" is not supported" \
        train --init=bad
    sed 's/"llama"/"qwen3", "num_key_value_heads": 2, "head_dim": 4/' \
        out/config.json >bad/config.json
    refused 65 "bad: model.safetensors: tensor model.layers.0.self_attn.\
q_norm.weight is missing" train --init=bad
}

@test "--eval is checked before the first step, and reports each source" {
    refused 1 "none.pks: " train --config=m --eval=none.pks
    [[ $output != *'"step"'* ]]
    seq 10 28 | tr '\n' ' ' | "$built/tokcat" --from=ids --vocab=50 \
        --pad-id=0 >c.tok
    cp c.tok d.tok
    "$built/tokmix" -q --channel=source 1=c.tok 1=d.tok |
        "$built/packstream" -q -L 64 -o two.pks
    train --config=m --eval=two.pks >out
    tail -n 1 out | python3 -c 'import json, sys
line = json.loads(sys.stdin.read())
parts = line["sources"]
assert sorted(parts) == ["0", "1"], line
assert parts["0"]["eval_targets"] == 18 == line["eval_targets"] / 2, line
assert abs(parts["0"]["eval_loss"] - line["eval_loss"]) < 1e-6, line'
}

@test "options that a model sets are refused" {
    refused 64 "--hidden is set by the model's config.json" \
        train --config=m --hidden=8
    refused 64 "--init and --config exclude each other" \
        train --config=m --init=m
    refused 64 "--mask is for models that predict masked tokens" \
        train --config=m --mask=0.1
    refused 64 "--every needs --eval" train --every=1
    refused 64 "--eval must be the name of a file" train --eval=-
}
