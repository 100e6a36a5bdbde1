#!/usr/bin/env bats
# cuda.bats - the BERT with the CUDA back end, built for the host: it learns the
# same as on the CPU, whatever the order of threads, and reports failures.
# Tests with the tag "gpu" also run on a real GPU: tests/device.sh sets
# BERT_CUDA_PROGRAMS to a folder of programs for that.
#
# SPDX-License-Identifier: MIT

# Each test runs in its own process with its own variables; refused() reads
# `speaker`.
# shellcheck disable=SC2030,SC2031,SC2034

load ../support/helpers
load text

setup() {
    start_training
    built="${BERT_CUDA_PROGRAMS:-${abs_top_builddir:?}/tests/trainer/cuda}"
    [ -x "$built/packtrain-cuda" ] ||
        skip "tests/trainer/cuda/packtrain-cuda is not built"
    export HOSTCUDA_THREADS=1
    packs -d 4 -w 4 >x.pks # so small a window leaves padding
}

small=(--hidden=16 --packs=5 --epochs=100 --stats=json --report=1)
train() {
    packtrain "${small[@]}" "$@"
}

# gpu [OPTION]...: the same with the CUDA back end, in float.
gpu() {
    bf16 --precision=float "$@"
}

bf16() {
    "$built/packtrain-cuda" "${small[@]}" --device=cuda --attention=varlen "$@"
}

# steps FILE: the lines without times.
steps() {
    sed 's/, "seconds.*//' "$1"
}

same() {
    skip_without python3
    python3 "${abs_top_srcdir:?}/tests/trainer/bert.py" same "$@"
}

# ---- Same results as on the CPU ----

# bats test_tags=gpu
@test "losses, gradients and weights match the CPU's to 1e-4 for ten steps" {
    "$built/parity" x.pks padded 0.1 10 1e-4
    "$built/parity" x.pks unpadded 0 10 1e-4
    packs -d 1 -w 1 >x.pks # with more padding
    "$built/parity" x.pks stripped 0.1 10 1e-4
    # They are in fact closer, and a larger difference is detected.
    "$built/parity" x.pks unpadded 0.1 10 2e-5
    run -1 "$built/parity" x.pks unpadded 0.1 10 1e-9
}

# config NAME MEMBERS: the folder NAME, with the config.json of a small model.
config() {
    mkdir "$1"
    echo '{"vocab_size": 60, "hidden_size": 24, "num_hidden_layers": 3,
        "num_attention_heads": 4, "intermediate_size": 40,
        "max_position_embeddings": 64, "rope_theta": 1e4,' "$2}" \
        >"$1/config.json"
}

# bats test_tags=gpu
@test "Llama, Qwen3 and ModernBERT learn as on the CPU, also in parts" {
    config llama '"model_type": "llama", "num_key_value_heads": 2'
    config qwen3 '"model_type": "qwen3", "num_key_value_heads": 1,
        "head_dim": 8'
    config modernbert '"model_type": "modernbert", "local_attention": 8,
        "pad_token_id": 0, "bos_token_id": 2, "eos_token_id": 3,
        "cls_token_id": 2, "sep_token_id": 3'
    text | grep . | tokcat -q --from=ids --vocab=60 --pad-id=0 --mask-id=4 |
        packstream -q -L 32 -d 4 -w 4 -o ids.pks
    small=(--packs=5 --epochs=100 --stats=json --report=1 --steps=4)
    for model in llama qwen3 modernbert; do
        train --config="$model" ids.pks >cpu
        gpu --config="$model" ids.pks >all
        gpu --config="$model" --graphs=on --rows=padded ids.pks >graphs
        gpu --config="$model" --micro-batch=2 --recompute ids.pks >parts
        same 1e-4 cpu all graphs parts
        bf16 --config="$model" ids.pks >half
        same 2e-2 cpu half
        run -1 same 1e-5 cpu half
    done
    refused 64 "--attention=cudnn is for BERT" \
        bf16 --config=llama --attention=cudnn ids.pks
}

# bats test_tags=gpu
@test "a checkpoint moves from one device to the other and back" {
    train --steps=15 x.pks >all
    gpu --save=part --steps=5 x.pks >first
    train --save=part --resume --steps=10 x.pks >second
    gpu --save=part --resume --steps=15 --rows=padded x.pks >third
    cat first second third >parts
    [ "$(wc -l <parts)" -eq 15 ]
    same 1e-4 all parts
}

# bats test_tags=gpu, night
@test "bf16 follows the same curve, within 0.3 % of a loss over 3.5" {
    learn=(--steps=60 --packs=8 --rate=0.02)
    train "${learn[@]}" x.pks >float
    bf16 "${learn[@]}" x.pks >half
    same 1e-2 float half
    run -1 same 1e-5 float half
    python3 "$abs_top_srcdir/tests/trainer/bert.py" falls half 0.1
}

# ---- Bits ----

@test "bits do not depend on the order of threads, streams and blocks" {
    gpu --save=usual --steps=4 x.pks >usual.out
    bf16 --save=usual16 --steps=4 --rows=padded x.pks >usual16.out
    threads=0
    for order in reverse 2 ${LONG:+forward 1 3}; do
        export HOSTCUDA_ORDER=$order HOSTCUDA_STREAMS=$order
        export HOSTCUDA_THREADS=$((++threads))
        rm -f other
        gpu --save=other --steps=4 x.pks >out
        cmp usual other
        diff <(steps usual.out) <(steps out)
        rm -f other
        bf16 --save=other --steps=4 --rows=padded x.pks >out
        cmp usual16 other
        diff <(steps usual16.out) <(steps out)
    done
}

# bats test_tags=gpu
@test "a run resumes bit for bit, and with fewer waits for the device" {
    for device in gpu bf16; do
        rm -f whole part seldom
        $device --save=whole --steps=9 x.pks >all
        $device --save=part --steps=4 x.pks >first
        $device --save=part --resume --steps=9 x.pks >rest
        diff <(steps all) <(steps first; steps rest)
        cmp whole part
        $device --save=seldom --save-every=4 --report=1000 --steps=9 x.pks \
            >once
        cmp whole seldom
        [ "$(wc -l <once)" -eq 1 ]
    done
}

# ---- Graphs ----

# bats test_tags=gpu
@test "steps as graphs and as single launches have the same bits" {
    gpu --graphs=rounded --save=single --steps=6 x.pks >single.out
    gpu --graphs=on --save=graphs --steps=6 x.pks >graphs.out
    diff <(steps single.out) <(steps graphs.out)
    cmp single graphs
    [[ $(tail -n 1 single.out) = *'"graphs": 0, "launches": 1'??'}' ]]
    [ "$(grep -c '"graphs": 1, "launches": 1}' graphs.out)" -eq 4 ]
    gpu --graphs=on --save=part --steps=3 x.pks >first
    gpu --graphs=on --save=part --resume --steps=6 x.pks >rest
    diff <(steps graphs.out) <(steps first; steps rest)
    cmp graphs part
    gpu --steps=6 x.pks >exact
    same 1e-6 exact graphs.out
}

@test "bits of graphs do not depend on the order of threads and streams" {
    bf16 --graphs=on --save=usual --steps=4 x.pks >usual.out
    for order in reverse ${LONG:+1 2}; do
        export HOSTCUDA_ORDER=$order HOSTCUDA_STREAMS=$order
        rm -f other
        bf16 --graphs=on --save=other --report=1000 --steps=4 x.pks >out
        cmp usual other
    done
}

@test "repeated shapes are counted" {
    run -0 "$built/repeats" x.pks 5 padded 20
    [[ $output = "20 steps of 5 packs, padded: 18 are graphs, 90.0 %; rows "* ]]
    run -0 "$built/repeats" x.pks 5 unpadded 20
    [[ $output = *", unpadded: 18 are graphs"*"rows +"*"masked tokens +"* ]]
    run -1 "$built/repeats" x.pks 5 other 20
}

# bats test_tags=gpu
@test "SIGTERM ends a run after a whole step, with a checkpoint" {
    for graphs in on ${LONG:+off}; do
        long=(--epochs=1000000 "--graphs=$graphs" x.pks)
        rm -f part whole
        : >told
        "$built/packtrain-cuda" "${small[@]}" --device=cuda --save=part \
            "${long[@]}" >told &
        pid=$!
        while kill -0 "$pid" && [ "$(wc -l <told)" -lt 2 ]; do
            sleep 0.1
        done
        kill -TERM "$pid"
        exits 143 "$pid"
        made=$(wc -l <told)
        [ "$(number part 32 8)" -eq "$made" ]
        bf16 --save=whole --steps="$made" "${long[@]}" >all
        cmp whole part
    done
}

# ---- Refused options ----

# bats test_tags=gpu
@test "options that the back end does not support are refused" {
    speaker="packtrain: "
    refused 64 "--device=cuda does not support --attention=dense" \
        gpu --attention=dense x.pks
    refused 64 "--device=cuda supports --hidden up to 8192" \
        gpu --hidden=8200 --heads=100 x.pks
    refused 64 "--device=cuda supports heads of a width up to 128" \
        gpu --hidden=258 --heads=2 x.pks
    refused 64 "--graphs needs --device=cuda" \
        train --graphs=on x.pks
    refused 64 "--graphs=maybe: must be off, rounded or on" \
        gpu --graphs=maybe x.pks
    refused 64 "--device=cpu supports --precision=float only" \
        train --precision=bf16 x.pks
    refused 64 "--precision=half: must be float, tf32 or bf16" \
        gpu --precision=half x.pks
    run -0 gpu --hidden=256 --heads=2 --steps=1 x.pks
    run -0 bf16 --precision=tf32 --steps=1 x.pks
}

# bats test_tags=gpu
@test "a run can only be resumed with the same precision" {
    speaker="packtrain: "
    gpu --save=s --steps=1 x.pks >out
    refused 64 "s: saved with precision=float, not with precision=bf16" \
        bf16 --save=s --resume --steps=2 x.pks
    rm s
    bf16 --save=s --steps=1 x.pks >out
    refused 64 "s: saved with precision=bf16, not with precision=float" \
        train --save=s --resume --steps=2 x.pks
}

# ---- Failures ----

@test "a missing or unsuitable GPU is reported before anything else" {
    speaker="packtrain: "
    HOSTCUDA_FAIL=cudaGetDeviceCount:1=100 \
        refused 1 "no CUDA-capable device" gpu --save=part /nonexistent
    HOSTCUDA_FAIL=cudaGetDeviceCount:1=35 \
        refused 1 "driver version is insufficient" gpu /nonexistent
    HOSTCUDA_FAIL=cudaGetDeviceProperties:1 \
        refused 1 "GPU: " gpu /nonexistent
    [ ! -e part ]
}

# fails CALL FIRST STEP [+]: makes the FIRST such call fail, then every STEP-th
# call (or all from there), until a run succeeds.  Each failure is one message
# and leaves a whole checkpoint.
fails() {
    local n
    for ((n = $2; ; n += $3)); do
        cp kept part
        stderr=
        HOSTCUDA_FAIL=$1:$n${4-} run --separate-stderr \
            gpu --save=part --resume --steps=4 --report=1000 x.pks
        [ "$status" -ne 0 ] || break
        printf '%s %s\n' "$1" "$stderr"
        [ "$status" -eq 1 ]
        [ "$(grep -c '^packtrain: ' <<<"$stderr")" -eq 1 ]
        [ "$(wc -l <<<"$stderr")" -eq 1 ]
        [ ! -e part.new ]
        # The steps before the failure are saved or not, but never in part.
        cmp -s part kept || cmp -s part kept3 || cmp part kept4
    done
    cmp part kept4
    [ "$n" -gt "$2" ]
}

# keeps: writes the checkpoints of a run after 2, 3 and 4 steps.
keeps() {
    gpu --save=kept --steps=2 x.pks >out
    cp kept kept3
    gpu --save=kept3 --resume --steps=3 x.pks >out
    cp kept3 kept4
    gpu --save=kept4 --resume --steps=4 x.pks >out
}

@test "out of memory is reported once, and the checkpoint stays whole" {
    keeps
    fails cudaMalloc 1 1 +
    fails cudaMallocHost 1 1 +
}

# bats test_tags=night
@test "steps before a batch that runs out of memory are saved" {
    large=(--packs=60 --report=1000 --epochs=1)
    for ((n = 1; n < 40; n++)); do
        rm -f part
        stderr=
        HOSTCUDA_FAIL=cudaMalloc:$n+ run --separate-stderr \
            gpu "${large[@]}" --save=part x.pks
        [ "$status" -eq 1 ] || break
        [ ! -e part ] || last=$stderr
        [ ! -e part ] || mv part last
    done
    [ "$last" = "packtrain: no memory for a batch in the model; \
--micro-batch=1 and --recompute need less" ]
    gpu "${large[@]}" --save=whole --steps="$(number last 32 8)" x.pks >all
    cmp whole last
}

@test "a kernel that fails is reported once, and the checkpoint stays whole" {
    keeps
    fails kernel 1 29
}

@test "a call that fails is reported once, and the checkpoint stays whole" {
    keeps
    fails cudaMemcpyAsync 1 2
    # To the trainer, a kernel failure looks the same.
    [ -z "${LONG-}" ] || fails cudaLaunchKernelEx 1 41
    fails cudaStreamSynchronize 1 4
    fails cudaEventRecord 1 5
    fails cudaFuncSetAttribute 1 1
}

@test "a graph that fails is reported once, and the checkpoint stays whole" {
    gpu --graphs=on --save=kept --steps=2 x.pks >out
    for call in cudaStreamBeginCapture cudaStreamEndCapture \
        cudaGraphInstantiate cudaGraphDestroy cudaGraphLaunch; do
        rm -f part
        stderr=
        HOSTCUDA_FAIL=$call:1 run -1 --separate-stderr gpu --graphs=on \
            --save=part --save-every=2 --report=1000 --steps=5 x.pks
        [ "$stderr" = "packtrain: CUDA graph of a step: out of memory" ]
        cmp part kept
    done
}

# bats test_tags=gpu
@test "steps before a NaN loss are saved" {
    speaker="packtrain: "
    for graphs in on ${LONG:+off}; do
        wild=(--rate=1000 --clip=0 "--graphs=$graphs")
        rm -f part whole
        refused 1 ": the loss is not finite" \
            gpu --save=part --report=20 "${wild[@]}" x.pks
        made=$(number part 32 8)
        [ "$made" -gt 0 ]
        gpu --save=whole --steps="$made" "${wild[@]}" x.pks >all
        cmp whole part
    done
}

@test "a GPU with too little memory is reported once" {
    speaker="packtrain: "
    HOSTCUDA_MEMORY=100000 refused 1 "memory" gpu --steps=1 x.pks
    HOSTCUDA_MEMORY=400000 refused 1 "memory" gpu --steps=1 --packs=50 x.pks
    HOSTCUDA_MEMORY=400000 refused 1 "memory" \
        gpu --graphs=on --steps=1 --packs=50 x.pks
    # A batch that fits only because its padding is removed.
    packs -d 1 -w 1 >x.pks
    export HOSTCUDA_MEMORY=3000000
    run -0 gpu --steps=1 --packs=40 x.pks
    refused 1 "memory" gpu --steps=1 --packs=40 --rows=padded x.pks
}
