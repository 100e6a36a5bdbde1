#!/usr/bin/env bats
# cuda-ranks.bats - several processes train one model on GPUs, with the CUDA
# back end built for the host: they learn what one learns, and when one fails,
# all end with its message.
#
# SPDX-License-Identifier: MIT

load ../support/helpers
load text
load ranks

setup() {
    start_ranks
    built="${abs_top_builddir:?}/tests/trainer/cuda"
    [ -x "$built/bert-train-cuda" ] ||
        skip "tests/trainer/cuda/bert-train-cuda is not built"
    skip_without_mpi
    export HOSTCUDA_THREADS=1
    gpu=("$built/bert-train-cuda" "${small[@]:1}" --device=cuda
        --precision=float --dropout=0 --packs=5)
}

# gpus [RANK FAIL] -- OPTION...: two ranks, in one of which calls fail.
# shellcheck disable=SC2016 # for sh
gpus() {
    local rank=none fail=
    if [ "$1" != -- ]; then
        rank=$1 fail=$2
        shift 2
    fi
    shift
    "$MPIRUN" -q -n 2 sh -c '
        [ "$OMPI_COMM_WORLD_RANK" != "$0" ] || export HOSTCUDA_FAIL="$1"
        shift
        exec "$@"' "$rank" "$fail" "${gpu[@]}" "$@"
}

# ends_with TEXT COMMAND...: status 1 and one message, which has the text.
ends_with() {
    stderr=
    run -1 --separate-stderr "${@:2}"
    printf '%s\n' "$stderr"
    [ "$(grep -c '^bert-train: ' <<<"$stderr")" -eq 1 ]
    [[ $stderr = *"$1"* ]]
}

@test "two ranks learn on GPUs what one learns, and each goes on from both" {
    "${gpu[@]}" --steps=4 --save=whole x.pks >one
    gpus -- --steps=2 --save=part x.pks >two
    gpus -- --steps=4 --save=part --resume x.pks >>two
    same_curve one two
    [ "$(number part 32 8)" -eq 4 ]
    train --dropout=0 --packs=5 --steps=5 --save=part --resume x.pks >next
    train --dropout=0 --packs=5 --steps=5 --save=whole --resume x.pks >same
    same_curve same next
}

@test "each rank of a machine has the next GPU of it" {
    HOSTCUDA_DEVICES=9.0,7.5 ends_with \
        "GPU: hostcuda has compute capability 7.5; 8.0 is needed" \
        gpus -- --steps=1 x.pks
    HOSTCUDA_DEVICES=9.0,9.0,7.5 gpus -- --steps=1 x.pks
}

@test "a GPU that fails ends all ranks, and the steps before it are kept" {
    ends_with "a kernel in front of: sums over ranks: unspecified launch" \
        gpus 1 kernel:300 -- --report=3 --steps=8 --save=part x.pks
    made=$(number part 32 8)
    [ "$made" -gt 0 ]
    gpus -- --steps="$made" --save=whole x.pks >out
    cmp whole part
}
