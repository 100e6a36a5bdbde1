#!/usr/bin/env bats
# cudnn.bats - packtrain --attention=cudnn as a whole, built for the host with
# the cuDNN emulation: it learns the same as with our kernels, resumes bit for
# bit, and reports failures and unsupported options.  Tests with the tag "gpu"
# also run on a real GPU: see cuda.bats.
#
# SPDX-License-Identifier: MIT

# refused() reads `speaker`.
# shellcheck disable=SC2034

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
# gpu [OPTION]...: with our kernels, in bfloat16.
gpu() {
    "$built/packtrain-cuda" "${small[@]}" --device=cuda --attention=varlen "$@"
}

cudnn() {
    gpu --attention=cudnn "$@"
}

# steps FILE: the lines without times.
steps() {
    sed 's/, "seconds.*//' "$1"
}

# chooses ATTENTION WHY [OPTION]...: auto chooses ATTENTION, says so on one
# line of stderr, and learns the same as --attention=ATTENTION.
chooses() {
    local lines
    rm -f part
    stderr=
    HOSTCUDA_FAIL=${fail-} run -0 --separate-stderr "$built/packtrain-cuda" \
        "${small[@]}" --device=cuda --steps=2 "${@:3}" x.pks
    [[ $stderr = "packtrain: attention: $1 ("*"$2"*")" ]]
    lines=$output
    rm -f part
    gpu --steps=2 "${@:3}" --attention="$1" x.pks >named
    diff <(steps - <<<"$lines") <(steps named)
}

same() {
    skip_without python3
    python3 "${abs_top_srcdir:?}/tests/trainer/bert.py" same "$@"
}

# bats test_tags=gpu
@test "it learns the same as our kernels, with any rows" {
    learn=(--steps=6 --dropout=0 --rate=0.02)
    packtrain "${small[@]}" "${learn[@]}" x.pks >float
    gpu "${learn[@]}" x.pks >ours
    cudnn "${learn[@]}" x.pks >theirs
    same 1e-2 float theirs
    same 5e-3 ours theirs
    for rows in stripped padded; do
        cudnn "${learn[@]}" --rows=$rows x.pks >other
        same 5e-3 theirs other
    done
    # Other dropout masks, and the same curve.
    learn+=(--dropout=0.1)
    gpu "${learn[@]}" x.pks >ours
    cudnn "${learn[@]}" x.pks >theirs
    same 1e-2 ours theirs
    run -1 same 1e-5 ours theirs
}

@test "auto chooses cuDNN on a GPU, unless it cannot or the run is saved" {
    gpu --steps=2 x.pks >ours
    cudnn --steps=2 x.pks >theirs
    run -1 diff <(steps ours) <(steps theirs)
    chooses cudnn "fastest"
    chooses cudnn "fastest" --attention=auto --rows=padded
    chooses varlen "runs with --save resume exactly" --save=part
    chooses varlen "--attention=cudnn needs --precision=bf16" \
        --precision=float --save=part
    chooses varlen "--attention=cudnn needs heads whose width" --heads=4
    chooses varlen "--attention=cudnn excludes --graphs=on" --graphs=on
    chooses varlen "--graphs=rounded reproduces" --graphs=rounded
    fail=cudnnCreate:1 chooses varlen "attention by cuDNN, a handle: "
    for n in 1 2; do # forward, and backward
        fail=check_support:$n chooses varlen "attention by cuDNN, support: "
    done
    # On the CPU nothing can be chosen.
    run -0 --separate-stderr "$built/packtrain-cuda" "${small[@]}" --steps=2 \
        x.pks
    [ -z "$stderr" ]
    packtrain "${small[@]}" --steps=2 --attention=varlen x.pks >named
    diff <(steps - <<<"$output") <(steps named)
}

@test "bits do not depend on the order of threads and streams" {
    cudnn --save=usual --steps=4 x.pks >usual.out
    for order in reverse 1 2; do
        rm -f other
        HOSTCUDA_ORDER=$order HOSTCUDA_STREAMS=$order \
            cudnn --save=other --steps=4 x.pks >out
        cmp usual other
        diff <(steps usual.out) <(steps out)
    done
}

# bats test_tags=gpu
@test "a run resumes with the same masks, bit for bit" {
    cudnn --save=whole --steps=6 x.pks >all
    cudnn --save=part --steps=3 x.pks >first
    cudnn --save=part --resume --steps=6 x.pks >rest
    if [ -n "${BERT_CUDA_PROGRAMS-}" ]; then # bits are not guaranteed there
        cat first rest >parts
        same 1e-3 all parts
    else
        diff <(steps all) <(steps first; steps rest)
        cmp whole part
    fi
    speaker="packtrain: "
    refused 64 "part: saved with attention=2, not with attention=0" \
        gpu --save=part --resume --steps=7 x.pks
    gpu --save=ours --steps=1 x.pks >out
    refused 64 "ours: saved with attention=0, not with attention=2" \
        cudnn --save=ours --resume --steps=2 x.pks
}

@test "several ranks learn the same as one, except for dropout" {
    [ "${MPIRUN:-no}" != no ] || skip "packtrain is built without MPI"
    allow_mpirun
    cudnn --steps=3 --dropout=0 x.pks >one
    for devices in 9.0 9.0,9.0; do
        HOSTCUDA_DEVICES=$devices "$MPIRUN" -q -n 2 \
            "$built/packtrain-cuda" "${small[@]}" --device=cuda \
            --attention=auto --steps=3 --dropout=0 x.pks >two 2>told
        # In bfloat16, NCCL rounds sums of gradients.
        same 1e-4 one two
        [ "$(grep -c '^packtrain: attention: cudnn (' told)" -eq 1 ]
    done
}

# bats test_tags=gpu
@test "options that it does not support are refused" {
    speaker="packtrain: "
    refused 64 "--attention=cudnn needs --device=cuda" \
        packtrain --attention=cudnn x.pks
    refused 64 "--attention=cudnn excludes --graphs=on" \
        packtrain --device=cuda --attention=cudnn --graphs=on x.pks
    for precision in float tf32; do
        refused 64 "--attention=cudnn needs --precision=bf16" \
            cudnn --precision=$precision x.pks
    done
    refused 64 "--attention=cudnn needs heads whose width is a multiple of 8" \
        cudnn --heads=4 x.pks
    run -0 cudnn --hidden=128 --heads=1 --steps=1 x.pks
}

@test "a build without cuDNN reports so before anything else" {
    speaker="packtrain: "
    [[ $(made CUDNN_LIBS) != *cudnn* ]] || skip "this build has cuDNN"
    refused 1 "this build has no cuDNN" \
        packtrain --device=cuda --attention=cudnn --save=part /nonexistent
    [ ! -e part ]
}

@test "a call that fails is reported once, and the checkpoint stays whole" {
    cudnn --save=kept --steps=2 x.pks >out
    for call in cudnnCreate:1 cudnnSetStream:1 validate:4 \
        create_execution_plans:3 build_plans:4 execute:1 execute:5+ \
        "attention by cuDNN:3"; do
        cp kept part
        stderr=
        HOSTCUDA_FAIL=$call run -1 --separate-stderr \
            cudnn --save=part --resume --steps=4 --report=1000 x.pks
        printf '%s %s\n' "$call" "$stderr"
        [ "$(grep -c '^packtrain: attention by cuDNN' <<<"$stderr")" -eq 1 ]
        [ "$(wc -l <<<"$stderr")" -eq 1 ]
        cmp part kept
    done
}

@test "out of memory is reported once" {
    for ((n = 1; ; n++)); do
        stderr=
        HOSTCUDA_FAIL=cudaMalloc:$n+ run --separate-stderr \
            cudnn --steps=2 --report=1000 x.pks
        [ "$status" -ne 0 ] || break
        [ "$status" -eq 1 ]
        [ "$(wc -l <<<"$stderr")" -eq 1 ]
    done
    [ "$n" -gt 5 ]
}
