#!/usr/bin/env bash
# device.sh - the tests and benchmarks for a machine with a GPU.
#
#     tests/device.sh [--minutes=N] BUILD_DIR
#
# BUILD_DIR is a build that configure found CUDA for.  In this order:
#
#   tests of kernels
#   tests/bench/device.py: tokens per second, compared with a BERT of PyTorch if
#   PYTHON_TORCH or python3 has torch, the time of each kernel of a step, and
#   the gains of optimisations; tests/bench/llama.py, the same for a Llama
#   tests of kernels under compute-sanitizer: memcheck, racecheck, synccheck and
#   initcheck
#   the trainer's tests, every packtrain in them with --device=cuda, in float
#   the tests of cuda.bats and cudnn.bats with the tag "gpu"
#
# Each step prints a line when it ends, and the benchmark its tables, so a run
# can be stopped at any time; --minutes stops it after N.  BUILD_DIR/device has
# the whole output of each step; if one fails, the end of its output is printed.
# Exits with 0 if all passed, with 77 without a GPU, and otherwise with 1.
#
# SPDX-License-Identifier: MIT

set -u
export LC_ALL=C LONG=1 PYTHONDONTWRITEBYTECODE=1

usage() {
    echo "usage: device.sh [--minutes=N] BUILD_DIR" >&2
    exit 64
}
end=
if [[ ${1-} == --minutes=* ]]; then
    [[ $1 =~ ^--minutes=([1-9][0-9]{0,3})$ ]] || usage
    end=$((60 * BASH_REMATCH[1]))
    shift
fi
[ -e "${1-}/libtool" ] || usage
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
failed=0
exec {quiet}>/dev/null

# step NAME COMMAND...: runs the command, writes its output to a log and to the
# descriptor $shown, and prints the result.
step() {
    local name=$1 log=$logs/${1// /-}.log result=ok start=$SECONDS status
    local limit=()
    shift
    if [ -n "$end" ]; then
        [ "$SECONDS" -lt "$end" ] || {
            printf '%-44s %8s\n' "$name" 'no time'
            return 124
        }
        limit=(timeout -k 10 "$((end - SECONDS))")
    fi
    "${limit[@]}" "$@" 2>&1 | tee "$log" >&"${shown:-$quiet}"
    status=${PIPESTATUS[0]}
    case $status in
        0) ;;
        77) result=skipped ;;
        124 | 137) [ -n "$end" ] && result='time up' || result=FAILED ;;
        *) result=FAILED ;;
    esac
    printf '%-44s %8s %6d s\n' "$name" "$result" $((SECONDS - start))
    [ "$result" != FAILED ] || {
        failed=1
        [ -n "${shown-}" ] || tail -n 20 "$log"
    }
    return "$status"
}

nvidia-smi --query-gpu=name,driver_version --format=csv,noheader
step build make -C "$build" -j "$(nproc)" packtrain bert-sequences \
    packstream tokcat packcat packstat tests/bench/gen \
    cuda-tests || exit 1

programs=()
for program in "$build"/tests/trainer/cuda/*.gpu; do
    # device.py --ablate runs ablations-t.
    [[ $program == */ablations-t.gpu ]] || [ ! -e "$program" ] ||
        programs+=("$program")
done
for program in "${programs[@]}"; do
    step "$(basename "$program" .gpu)" "$program"
done

# benchmark NAME PROGRAM [OPTION]...: a program of tests/bench.
benchmark() {
    shown=1 step "$1" "${PYTHON_TORCH:-python3}" \
        "$top/tests/bench/$2.py" --rounds=3 "${@:3}" "$build"
}
benchmark benchmark device
benchmark kernels device --kernels
benchmark 'Llama 125M' llama --model=125m
benchmark 'Llama 1B' llama --model=1b --packs=8
benchmark ablations device --ablate

# Racecheck and synccheck report kernels of cuDNN itself.
skip_cudnn=(--kernel-name-exclude kernel_substring=cudnn)
sanitizer=$(command -v compute-sanitizer)
[ -n "$sanitizer" ] || programs=()
for program in "${programs[@]}"; do
    name=$(basename "$program" .gpu)
    for tool in memcheck initcheck; do
        step "$name $tool" "$sanitizer" --tool "$tool" --error-exitcode 1 \
            "$program"
    done
    for tool in racecheck synccheck; do
        step "$name $tool" "$sanitizer" --tool "$tool" --error-exitcode 1 \
            "${skip_cudnn[@]}" "$program"
    done
done

# command_at FILE PROGRAM [OPTION]...: makes FILE run the program with options.
command_at() {
    local file=$1
    shift
    printf "#!/bin/sh\nexec '%s' %s \"\$@\"\n" "$1" "${*:2}" >"$file"
    chmod +x "$file"
}

export abs_top_srcdir=$top abs_top_builddir=$build
export LD_LIBRARY_PATH=$build/.libs${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
PATH=$build/.libs:$build:$PATH
# Before the others on the PATH.
command_at "$logs/bin/packtrain" "$build/packtrain" --device=cuda \
    --precision=float --attention=varlen
step 'trainer with --device=cuda' env PATH="$logs/bin:$PATH" \
    OTHER_ATTENTION=varlen \
    bats "$top/tests/trainer/train.bats" "$top/tests/trainer/save.bats"

# cuda.bats and cudnn.bats use these programs instead of the emulator's.
command_at "$logs/gpu/packtrain-cuda" "$build/packtrain"
command_at "$logs/gpu/parity" "$build/tests/trainer/cuda/parity-gpu"
files=("$top/tests/trainer/cuda.bats")
[ ! -e "$build/tests/trainer/cuda/sdpa-t.gpu" ] ||
    files+=("$top/tests/trainer/cudnn.bats")
step 'trainer, GPU and CPU' env BERT_CUDA_PROGRAMS="$logs/gpu" \
    bats --filter-tags gpu "${files[@]}"

exit "$failed"
