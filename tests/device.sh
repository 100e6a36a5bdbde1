#!/usr/bin/env bash
# device.sh - what is run where there is a GPU.
#
#     tests/device.sh BUILD_DIR
#
# BUILD_DIR is a build that configure found CUDA for.  In this order:
#
#   tests of kernels, as they are and under compute-sanitizer: memcheck,
#   racecheck, synccheck and initcheck
#   the trainer's tests, every bert-train in them with --device=cuda, in float
#   the tests of cuda.bats and cudnn.bats with the tag "gpu"
#   tests/bench/device.py: tokens per second, padded and packed, beside a BERT
#   of PyTorch, where PYTHON_TORCH or python3 has torch
#
# What each of them printed lies in BUILD_DIR/device.  The last thing printed is
# a table with a line for each, and then the benchmark's.  Exits with 0 if none
# of them failed, 77 where there is no GPU, else 1.
#
# SPDX-License-Identifier: MIT

set -u
export LC_ALL=C LONG=1 PYTHONDONTWRITEBYTECODE=1

[ -e "${1-}/libtool" ] || {
    echo "usage: device.sh BUILD_DIR" >&2
    exit 64
}
top=$(cd "$(dirname "$0")/.." && pwd -P)
build=$(cd "$1" && pwd -P)

skip() {
    echo "device.sh: nothing is done: $1" >&2
    exit 77
}
nvidia-smi -L 2>/dev/null | grep -q '^GPU' || skip "there is no GPU"
grep -q '^BERT_NVCC_LIBS' "$build/Makefile" ||
    skip "$build was configured without CUDA"

logs=$build/device
rm -rf "$logs"
mkdir -p "$logs/bin" "$logs/gpu" || exit 1
table=
failed=0

# step NAME COMMAND...: runs it, keeps what it prints, and notes how it ended.
step() {
    local name=$1 log=$logs/${1// /-}.log result=ok start=$SECONDS status
    shift
    "$@" >"$log" 2>&1
    status=$?
    case $status in
        0) ;;
        77) result=skipped ;;
        *) result=FAILED failed=1 ;;
    esac
    table+=$(printf '%-44s %8s %6d s' "$name" "$result" $((SECONDS - start)))
    table+=$'\n'
    printf '%s: %s\n' "$name" "$result"
    return "$status"
}

step build make -C "$build" -j "$(nproc)" bert-train bert-sequences \
    packstream tokcat packcat packstat tests/bench/gen tests/bench/hash \
    cuda-tests || {
    tail -n 20 "$logs/build.log"
    exit 1
}

# Racecheck and synccheck find fault with kernels of cuDNN itself.
skip_cudnn=(--kernel-name-exclude kernel_substring=cudnn)
sanitizer=$(command -v compute-sanitizer)
for program in "$build"/tests/trainer/cuda/*.gpu; do
    [ -e "$program" ] || continue
    name=$(basename "$program" .gpu)
    step "$name" "$program"
    [ -n "$sanitizer" ] || continue
    for tool in memcheck initcheck; do
        step "$name $tool" "$sanitizer" --tool "$tool" --error-exitcode 1 \
            "$program"
    done
    for tool in racecheck synccheck; do
        step "$name $tool" "$sanitizer" --tool "$tool" --error-exitcode 1 \
            "${skip_cudnn[@]}" "$program"
    done
done

# command_at FILE PROGRAM [OPTION]...: FILE is the program with these options.
command_at() {
    local file=$1
    shift
    printf "#!/bin/sh\nexec '%s' %s \"\$@\"\n" "$1" "${*:2}" >"$file"
    chmod +x "$file"
}

export abs_top_srcdir=$top abs_top_builddir=$build
export LD_LIBRARY_PATH=$build/.libs${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
PATH=$build/.libs:$build:$PATH
# In front of the others on the PATH.
command_at "$logs/bin/bert-train" "$build/bert-train" --device=cuda \
    --precision=float
step 'trainer with --device=cuda' env PATH="$logs/bin:$PATH" \
    OTHER_ATTENTION=varlen \
    bats "$top/tests/trainer/train.bats" "$top/tests/trainer/save.bats"

# cuda.bats and cudnn.bats take programs from here, instead of the emulator's.
command_at "$logs/gpu/bert-train-cuda" "$build/bert-train"
command_at "$logs/gpu/parity" "$build/tests/trainer/cuda/parity-gpu"
files=("$top/tests/trainer/cuda.bats")
[ ! -e "$build/tests/trainer/cuda/sdpa-t.gpu" ] ||
    files+=("$top/tests/trainer/cudnn.bats")
step 'trainer, GPU and CPU' env BERT_CUDA_PROGRAMS="$logs/gpu" \
    bats --filter-tags gpu "${files[@]}"

python=${PYTHON_TORCH:-python3}
step benchmark "$python" "$top/tests/bench/device.py" "$build"

echo
nvidia-smi --query-gpu=name,driver_version --format=csv,noheader
printf '%s\n' "$table"
cat "$logs/benchmark.log"
exit "$failed"
