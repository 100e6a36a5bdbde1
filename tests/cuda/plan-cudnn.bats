#!/usr/bin/env bats
# plan-cudnn.bats - cuDNN plans and compiles the trainer's graphs of attention,
# which does not need a GPU.
#
# Needs the headers of cudnn-frontend, which pip installs with
# nvidia-cudnn-frontend: CUDNN_FRONTEND is the folder that has
# include/cudnn_frontend.h.
#
# SPDX-License-Identifier: MIT

load ../support/helpers

setup() {
    start
    local lib
    home=$(made CUDA_HOME)
    [ -n "$home" ] || skip "CUDA was not found"
    for lib in lib64 lib; do
        [ ! -e "$home/$lib/libcudnn.so" ] || libs=$home/$lib
    done
    if [ -z "${libs-}" ] || [ ! -e "$home/include/cudnn.h" ]; then
        skip "cuDNN was not found"
    fi
    [ -e "${CUDNN_FRONTEND-}/include/cudnn_frontend.h" ] ||
        skip "CUDNN_FRONTEND names no folder that has cudnn-frontend"
    [ -e "$libs/stubs/libcuda.so" ] || skip "CUDA has no libcuda.so to link"
    # The driver's name, under which cuDNN loads it.
    ln -s "$libs/stubs/libcuda.so" libcuda.so.1
}

# plan WORD...: the output of plan-cudnn.
plan() {
    LD_LIBRARY_PATH=$PWD:$libs ./plan-cudnn "$@"
}

@test "forward and backward of several buckets are planned and compiled" {
    local arch way bucket
    # Warnings are errors, except in cuDNN's headers.
    # shellcheck disable=SC2086 # CXX may have options
    ${CXX:-g++} -std=c++17 -Wall -Wextra -Werror -isystem "$home/include" \
        -isystem "$CUDNN_FRONTEND/include" \
        -I "${abs_top_srcdir:?}/trainer" \
        "$abs_top_srcdir/tests/cuda/plan-cudnn.cc" -L"$libs" \
        -L"$libs/stubs" -o plan-cudnn -lcudnn -lcudart -lnvrtc -lcuda
    # BERT-base and BERT-large: spans, longest, heads, width.
    for arch in 80 90 100; do
        for way in forward backward; do
            for bucket in '64 512 12 64' '32 2048 16 64' '256 384 2 8'; do
                # shellcheck disable=SC2086
                plan "$arch" "$way" $bucket 0.1 >told
                grep -qx "sm_$arch: \([1-9]\) of \1 plans compiled" told
            done
            plan "$arch" "$way" 64 512 12 64 0
        done
    done
    run -1 plan 50 backward 64 512 12 64 0
}
