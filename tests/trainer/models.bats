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
    mkfifo pipe
    cat pipe >log &
    train --init=out --rate=0 --eval=x.pks --metrics=pipe >second
    wait $!
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

@test "the rate follows --schedule, over sequences" {
    for i in {5..34}; do
        seq "$i" $((i + 9)) | tr '\n' ' '
        echo
    done | "$built/tokcat" --from=ids --vocab=50 --pad-id=0 |
        "$built/packstream" -q -L 16 -o x.pks
    rates=(--config=m --packs=1 --rate=0.01 --warmup=6 --total=30)
    train "${rates[@]}" --schedule=cosine >cosine
    train "${rates[@]}" --schedule=wsd --cooldown=8 >wsd
    train "${rates[@]}" --schedule=power --power=2 >power
    python3 -c 'import json, math
def rates(name):
    return [(s["sequences"], s["rate"]) for s in map(json.loads, open(name))]
decays = {"cosine": lambda left: (1 + math.cos(math.pi * (1 - left))) / 2,
          "power": lambda left: left ** 2,
          "wsd": lambda left: min(1, left * 24 / 8)}
for name, decay in decays.items():
    found = rates(name)
    assert len(found) == 30, name
    for n, rate in found:
        wanted = 0.01 * (n / 6 if n < 6 else decay((30 - n) / 24))
        assert abs(rate - wanted) < 1e-12, (name, n, rate, wanted)'
    refused 64 "--schedule needs --total" train --config=m --schedule=cosine
    refused 64 "--schedule=wsd needs --cooldown" \
        train --config=m --schedule=wsd --total=9
    train --config=m --schedule=cosine --total=40 --save=s --steps=1 >out
    refused 64 "s: saved with schedule=cosine, not with schedule=power" \
        train --config=m --total=40 --save=s --resume
}

# deviation FOLDER TENSOR: the standard deviation of a tensor's numbers.
deviation() {
    python3 -c 'import array, json, struct, statistics, sys
data = open(sys.argv[1] + "/model.safetensors", "rb").read()
head = 8 + struct.unpack("<Q", data[:8])[0]
begin, end = json.loads(data[8:head])[sys.argv[2]]["data_offsets"]
print("%.2f" % statistics.pstdev(array.array("f", data[head:][begin:end])))' \
        "$@"
}

@test "a new model has the deviation that its config.json names" {
    mkdir wide modern
    for name in wide modern; do
        type=llama
        [ "$name" = wide ] || type=modernbert
        echo '{"model_type": "'$type'", "vocab_size": 50, "hidden_size": 64,
            "num_hidden_layers": 2, "num_attention_heads": 2,
            "intermediate_size": 64, "initializer_range": 0.5,
            "pad_token_id": 0, "cls_token_id": 1, "sep_token_id": 2,
            "bos_token_id": 1, "eos_token_id": 2}' >"$name/config.json"
    done
    train --config=wide --export=new --rate=1e-9 --steps=1 >out
    # A normal distribution that ends at two deviations is narrower: 0.88.
    [ "$(deviation new model.embed_tokens.weight)" = 0.44 ]
    [ "$(deviation new model.layers.0.mlp.down_proj.weight)" = 0.44 ]
    seq 5 40 | tr '\n' ' ' | "$built/tokcat" --from=ids --vocab=50 \
        --pad-id=0 --mask-id=4 | "$built/packstream" -q -L 64 -o x.pks
    train --config=modern --export=new2 --rate=1e-9 --steps=1 >out
    [ "$(deviation new2 model.layers.0.mlp.Wi.weight)" = 0.44 ]
    [ "$(deviation new2 model.layers.0.mlp.Wo.weight)" = 0.22 ]
}

@test "folders and files that cannot be written are found before training" {
    refused 1 "no/such: No such file or directory" \
        train --config=m --export=no/such
    [[ $output != *'"step"'* ]]
    ln -s gone link
    refused 1 "link: File exists" train --config=m --export=link
    refused 64 "--export must be the name of a folder" \
        train --config=m --export=
    refused 64 "x.pks: has other data than metrics; choose another name" \
        train --config=m --metrics=x.pks
    refused 64 "--save and --metrics must be different files" \
        train --config=m --save=a --metrics=a
    refused 64 "--save and --metrics must be different files" \
        train --config=m --save=a --metrics=./a
    train --config=m >again # x.pks is whole
    run -1 bash -c "ulimit -f 1; '$built/packtrain' --config=m --export=big \
        x.pks"
    [[ $output == *"big: model.safetensors: File too large" ]]
    [ ! -e big ]
    seq 5 6 | "$built/tokcat" --from=ids --vocab=50 --pad-id=0 |
        "$built/packstream" -q -L 64 -o one.pks
    refused 65 "one.pks: the packs have no targets" \
        train --config=m --eval=one.pks
}

@test "a model that changes during a run is exported as it was trained" {
    train --config=m --export=out --steps=1 >log
    cp -r out other
    sed -i 's/"num_attention_heads": 2/"num_attention_heads": 1/' \
        other/config.json
    mkfifo packs
    "$built/packtrain" --init=out --export=new packs >log &
    exec 7>packs
    sleep 1
    cp other/config.json out
    cat x.pks >&7
    exec 7>&-
    wait "$!"
    grep -q '"num_attention_heads": 2' new/config.json
    train --init=new --export=out2 --steps=1 >log
    # Numbers that are not finite are found when the model is read.
    printf '\0\0\300\177' | dd of=new/model.safetensors bs=1 conv=notrunc \
        seek=$(($(stat -c %s new/model.safetensors) - 4)) 2>err
    refused 65 "new: model.safetensors: tensor lm_head.weight: number 399 is \
not finite" train --init=new
}

@test "steps without targets do not lower the reported loss" {
    printf '%s\n' '5 6 7 8' '9' '10' | "$built/tokcat" --from=ids --vocab=50 \
        --pad-id=0 | "$built/packstream" -q -L 4 -d 1 --order=input -o x.pks
    train --config=m --packs=1 --rate=0 >each
    "$built/packtrain" --config=m --packs=1 --rate=0 --stats=json \
        --report=3 x.pks >all
    [ "$(grep -c '"loss": 0,' each)" -eq 2 ]
    [ "$(head -n 1 each | grep -o '"loss": [0-9.]*')" = \
        "$(grep -o '"loss": [0-9.]*' all)" ]
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
