#!/usr/bin/env bats
# cuda-ranks.bats - several processes train one model on GPUs, with the CUDA
# back end built for the host: they learn the same as one process, and when one
# fails, all end with its message.  `make check-cuda` sets CUDA_ORDERS.
#
# SPDX-License-Identifier: MIT

load ../support/helpers
load text
load ranks

setup() {
    start_ranks
    built="${abs_top_builddir:?}/tests/trainer/cuda"
    [ -x "$built/packtrain-cuda" ] ||
        skip "tests/trainer/cuda/packtrain-cuda is not built"
    skip_without_mpi
    export HOSTCUDA_THREADS=1
    gpu=("$built/packtrain-cuda" "${small[@]:1}" --device=cuda
        --precision=float --attention=varlen --packs=5)
}

# gpus [RANK FAIL] -- OPTION...: $count (2) ranks, in one of which calls fail.
# shellcheck disable=SC2016 # for sh
gpus() {
    local rank=none fail=
    if [ "$1" != -- ]; then
        rank=$1 fail=$2
        shift 2
    fi
    shift
    "$MPIRUN" -q -n "${count-2}" sh -c '
        [ "$OMPI_COMM_WORLD_RANK" != "$0" ] || export HOSTCUDA_FAIL="$1"
        shift
        exec "$@"' "$rank" "$fail" "${gpu[@]}" "$@"
}

# ends_with TEXT COMMAND...: status 1 and one message, which has the text.
ends_with() {
    stderr=
    run -1 --separate-stderr "${@:2}"
    printf '%s\n' "$stderr"
    [ "$(grep -c '^packtrain: ' <<<"$stderr")" -eq 1 ]
    [[ $stderr = *"$1"* ]]
}

# Each rank has its own GPU: NCCL computes the sums, and each rank updates a
# shard of the weights.
apart() {
    HOSTCUDA_DEVICES=9.0,9.0,9.0,9.0 gpus "$@"
}

# The ranks share a GPU: NCCL would fail, so the host computes the sums.
shared() {
    shift
    gpus 0 ncclGetUniqueId:1 -- "$@"
}

@test "two ranks learn the same as one, whether NCCL or the host sums" {
    "${gpu[@]}" --steps=3 --save=whole x.pks >one
    for order in ${CUDA_ORDERS-1}; do
        export HOSTCUDA_ORDER=$order HOSTCUDA_STREAMS=$order
        rm -f part
        apart -- --steps=2 --save=part x.pks >two
        shared -- --steps=3 --save=part --resume x.pks >>two
        same_curve one two
        cp part other
        [ -e first ] || mv part first
        cmp first other
    done
    for save in whole other; do
        train --packs=5 --steps=4 --save=$save --resume x.pks \
            >"next.$save"
    done
    same_curve next.whole next.other
}

@test "two, three and four ranks with shards learn the same as one" {
    "${gpu[@]}" --steps=4 x.pks >one
    shared -- --steps=4 x.pks >host
    for count in 2 3 4; do
        apart -- --steps=4 x.pks >some
        same_curve one some
        same_curve host some
    done
}

@test "a run with shards resumes bit by bit, and with other numbers of ranks" {
    for options in --precision=float '--precision=bf16 --save-every=1'; do
        # shellcheck disable=SC2086 # a list of options
        set -- $options
        rm -f whole part
        count=3
        apart -- "$@" --steps=4 --save=whole x.pks >all
        apart -- "$@" --steps=2 --save=part x.pks >out
        cp part two
        apart -- "$@" --steps=4 --save=part --resume x.pks >>out
        same_curve all out
        cmp whole part
        # In bfloat16, the order of sums changes losses by more than 1e-5.
        [ "$1" = --precision=float ] || continue
        mv two first
    done
    mv first two
    "${gpu[@]}" --steps=4 x.pks | tail -n 2 >rest
    for count in 1 2 4; do
        cp two part
        apart -- --steps=4 --save=part --resume x.pks >some
        same_curve rest some
    done
}

@test "in bfloat16, losses are close to those of one rank" {
    "${gpu[@]}" --precision=bf16 --steps=4 x.pks >one
    count=4
    apart -- --precision=bf16 --steps=4 x.pks >some
    paste <(curve one) <(curve some) | awk '
        { d = $2 - $(2 + NF / 2); if (d * d > 1e-4) exit bad = 1 }
        END { exit bad || NR != 4 }'
}

@test "more ranks than packs in a step, and than GPUs" {
    "${gpu[@]}" --packs=2 --steps=1 x.pks >one
    HOSTCUDA_DEVICES=9.0,9.0 "$MPIRUN" -n 3 "${gpu[@]}" --packs=2 --steps=1 \
        x.pks >three
    same_curve one three
}

@test "ranks of a machine use its GPUs in turn" {
    HOSTCUDA_DEVICES=9.0,7.5 ends_with \
        "GPU: hostcuda has compute capability 7.5; 8.0 is needed" \
        gpus -- --steps=1 x.pks
}

# shellcheck disable=SC2034 # refused() reads it
@test "graphs need a single process" {
    speaker="packtrain: "
    refused 64 "--graphs=on requires a single process" gpus -- --graphs=on x.pks
}

@test "without NCCL, the steps before a GPU failure are saved" {
    ends_with "a kernel before sums over ranks: unspecified launch" \
        gpus 1 kernel:300 -- --report=3 --steps=8 --save=part x.pks
    made=$(number part 32 8)
    [ "$made" -gt 0 ]
    gpus -- --steps="$made" --save=whole x.pks >out
    cmp whole part
}

# Ranks whose GPUs wait for the failed GPU's sums can only be killed.
@test "with NCCL, a GPU that fails ends all ranks; the checkpoint stays" {
    ends_with "a kernel before sums over ranks: unspecified launch" \
        apart 1 kernel:400 -- --steps=8 --save=part --save-every=1 x.pks
    made=$(number part 32 8)
    [ "$made" -gt 0 ]
    gpus -- --steps="$made" --save=whole x.pks >out
    cmp whole part
}

@test "a failure reported by NCCL ends all ranks" {
    for call in ncclAllReduce:3 ncclReduceScatter:3 ncclAllGather:6 \
        ncclCommGetAsyncError:3; do
        ends_with "sums over ranks: NCCL: " apart 0 "$call" -- --steps=2 x.pks
    done
    [[ $stderr = *"NCCL: remote process exited"* ]]
}

# training OPTION...: starts three ranks; mpirun's process is "$pid".
training() {
    rm -f part out
    HOSTCUDA_DEVICES=9.0,9.0,9.0 OMPI_MCA_odls_base_sigkill_timeout=3 \
        "$MPIRUN" -q -n 3 "${gpu[@]}" --epochs=100000 --save=part "$@" x.pks \
        >out 2>err 3>&- &
    pid=$!
    eventually has_lines 2 out
}

# ended: mpirun has failed, and all printed steps are saved.
ended() {
    status=0
    wait "$pid" || status=$?
    [ "$status" -ne 0 ]
    [ "$(number part 32 8)" -ge "$(wc -l <out)" ]
}

# mpirun reads no output while it waits, so the first rank may wait to print.
@test "a signal ends ranks with shards after they have saved the last step" {
    training
    kill -TERM "$pid"
    ended
    training
    kill -TERM "$(pgrep -P "$pid" -f packtrain | head -n 1)"
    ended
    [ "$(grep -c '^packtrain' err)" -eq 0 ]
}

@test "when a rank with shards is killed, all end; the checkpoint stays" {
    training --save-every=1
    kill -9 "$(pgrep -P "$pid" -f packtrain | tail -n 1)"
    status=0
    wait "$pid" || status=$?
    [ "$status" -ne 0 ]
    made=$(number part 32 8)
    [ "$made" -gt 0 ]
    gpus -- --steps="$made" --save=whole x.pks >out
    train --packs=5 --steps=$((made + 1)) --save=part --resume x.pks >some
    train --packs=5 --steps=$((made + 1)) --save=whole --resume x.pks >one
    same_curve one some
}
