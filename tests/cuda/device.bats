#!/usr/bin/env bats
# device.bats - the steps of tests/device.sh, without a GPU.
#
# SPDX-License-Identifier: MIT

load ../support/helpers

# command_of NAME LINE...: a command of this name that runs LINE.
command_of() {
    local name=$1
    shift
    printf '%s\n' '#!/bin/sh' "$@" >"$name"
    chmod +x "$name"
}

# A folder of programs and a build, all of which succeed.
setup() {
    start
    local name
    mkdir -p bin build/tests/trainer/cuda
    for name in make bats python; do
        command_of "bin/$name" "echo $name \"\$@\""
    done
    command_of bin/nvidia-smi 'echo GPU 0: one'
    command_of bin/compute-sanitizer 'echo "$@"'
    command_of build/tests/trainer/cuda/ablations-t.gpu 'exit 1'
    : >build/libtool
    echo 'BERT_NVCC_LIBS = libbertcuda.a' >build/Makefile
    command_of build/tests/trainer/cuda/rows-t.gpu 'exit 0'
}

device() {
    PATH=$PWD/bin:$PATH PYTHON_TORCH=$PWD/bin/python \
        "${abs_top_srcdir:?}/tests/device.sh" "$@"
}

@test "each step has a line in the table" {
    local what='build|rows-t|rows-t (mem|race|sync|init)check'
    device build >told
    what+='|trainer with --device=cuda|trainer, GPU and CPU'
    what+='|benchmark|kernels|Llama (125M|1B)|ablations'
    [ "$(grep -cE "^($what) +ok +[0-9]+ s$" told)" -eq 13 ]
    grep -qx 'python .*/tests/bench/device.py .*/build' told
    grep -q 'memcheck --error-exitcode 1' build/device/rows-t-memcheck.log
    grep -q 'kernel_substring=cudnn' build/device/rows-t-racecheck.log
    grep -q 'train.bats' 'build/device/trainer-with---device=cuda.log'
    grep -qx "exec '$PWD/build/packtrain' --device=cuda \
--precision=float --attention=varlen \"\$@\"" build/device/bin/packtrain
    log='build/device/trainer,-GPU-and-CPU.log'
    grep -q 'gpu .*/cuda.bats$' "$log"
    command_of build/tests/trainer/cuda/sdpa-t.gpu 'exit 0'
    device build >told
    grep -q 'gpu .*/cuda.bats .*/cudnn.bats$' "$log"
}

@test "a step that fails is reported, the others are run" {
    # shellcheck disable=SC2016 # for the command
    command_of bin/compute-sanitizer '[ "$2" != racecheck ]'
    run -1 device build
    grep -qE '^rows-t racecheck +FAILED ' <<<"$output"
    grep -qE '^rows-t initcheck +ok ' <<<"$output"
    command_of bin/make 'echo no compiler; exit 2'
    run -1 device build
    grep -q 'no compiler' <<<"$output"
    [[ $output != *racecheck* ]]
}

@test "--minutes ends a run and keeps the output so far" {
    command_of bin/python 'echo a figure; exit 124'
    run -0 device --minutes=1 build
    grep -qE '^benchmark +time up +[0-9]+ s$' <<<"$output"
    grep -qx 'a figure' <<<"$output"
    run -1 device build
    grep -qE '^benchmark +FAILED' <<<"$output"
    run -64 device --minutes=0 build
}

@test "without a GPU or CUDA nothing is run, and the message says so" {
    : >build/Makefile
    run -77 device build
    grep -q 'configured without CUDA' <<<"$output"
    command_of bin/nvidia-smi 'echo no devices were found; exit 6'
    run -77 device build
    grep -q 'there is no GPU' <<<"$output"
    run -64 device
    run -64 device bin
}

@test "the benchmark also runs on the CPU" {
    start_training
    skip_without python3
    numbers='[1-9][0-9]* +[0-9-]+ +[0-9.]+ +[0-9.-]+'
    [ -x "${abs_top_builddir:?}/tests/bench/gen" ] || skip "gen is not built"
    cat >bench.py <<'END'
import sys
sys.path.insert(0, sys.argv[1])
import bert
import device
bert.TOKENS = 20000
sys.argv = ["device.py", "--model=toy", "--device=cpu", "--packs=2",
            "--steps=2", "--rounds=2", *sys.argv[2:]]
device.main()
END
    bench=("$abs_top_srcdir/tests/bench" "$abs_top_builddir")
    python3 bench.py "${bench[@]}" >table
    for way in padded packed unpadded; do
        grep -qE "^packtrain, $way +$numbers +[?] +[?]$" table
    done
    grep -q '^packtrain, cuDNN, packed: skipped: .*needs --device' table
    python3 bench.py "${bench[@]}" --ablate >table
    grep -qE '^packing +[1-9][0-9]* +[1-9][0-9]* +-?[0-9.]+ % ' table
    grep -q '^CUDA graphs: skipped: .* needs --device=cuda$' table
    grep -q '^exchange overlapped: skipped: needs several GPUs' table
    part=$abs_top_builddir/tests/trainer/cuda/ablations-t
    [ -x "$part" ] || skip "without hostcuda, parts of a step are not compared"
    ms='[0-9]+[.][0-9]{2} ms'
    grep -qE "^LAMB in few kernels +$ms +$ms +-?[0-9.]+ % +11[.]3 %" table
    [ "$(grep -cE " $ms +$ms +-?[0-9.]+ %" table)" -eq 6 ]
}

@test "so does the benchmark of a Llama" {
    start_training
    skip_without python3
    [ -x "${abs_top_builddir:?}/tests/bench/gen" ] || skip "gen is not built"
    PYTHONPATH=$abs_top_srcdir/tests/bench python3 \
        "$abs_top_srcdir/tests/bench/llama.py" --model=toy --device=cpu \
        --packs=1 --steps=2 --rounds=2 "$abs_top_builddir" >table
    grep -qE '^packtrain +[1-9][0-9]* +[0-9-]+ +1.00 +1.00-1.00 +[?] +[?]$' \
        table
    grep -q '^packtrain, graphs: skipped: .*needs --device=cuda' table
}

@test "operations of a model, counted by hand" {
    skip_without python3
    python3 - "$abs_top_srcdir/tests/bench" <<'END'
import sys
sys.path.insert(0, sys.argv[1])
import device
m = device.Model(2, 8, 2, 32, 100)
rows = [{"seq_lengths": [2, 4]}, {"seq_lengths": [4]}]
# 768 weights a layer, 864 in the head for 15 %; (4 + 16 + 16) / 10 pairs.
wanted = 6 * (2 * 768 + 0.15 * 864) + 12 * 2 * 8 * 3.6
assert abs(device.model_flops(m, rows) - wanted) < 1e-6
runs = [(0, 10000, "a"), (5000, 20000, "b"), (30000, 40000, "a")]
assert device.kernels.busy(runs) == 30000
assert device.kernels.summary(runs, 2)[1] == ["a", "1.0", "0.010", "57.1 %"]
assert device.palm_flops(m) == 6 * device.parameters(m) + 12 * 2 * 8 * 512
# BERT-large, with its heads.
assert device.parameters(device.MODELS["large"]) == 336226108
import llama
# Queries, keys, values and outputs; the network; the head.
m = llama.Model(2, 8, 2, 1, 32, 100)
weights = 2 * (8 * (4 + 2) * 4 + 3 * 8 * 32) + 800
assert llama.weights(m) == weights
wanted = 6 * weights + 12 * 2 * 8 * (3 + 10 + 10) / 10
assert abs(llama.model_flops(m, rows) - wanted) < 1e-6
# Llama 3.2 1B has 1,235,814,400 parameters, 33 vectors of 2048 among them.
assert llama.weights(llama.MODELS["1b"]) == 1235814400 - 33 * 2048
END
}
