#!/usr/bin/env bats
# plan-cudnn.bats - cuDNN takes attention on unpadded rows, as far as can be
# said without a GPU: it plans and compiles.
#
# The backward operation needs the headers of cudnn-frontend, as pip installs
# them with nvidia-cudnn-frontend: CUDNN_FRONTEND is the folder that has
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
    [ -e "$libs/stubs/libcuda.so" ] || skip "CUDA has no libcuda.so to link"
    # cuDNN asks for it by the driver's name.
    ln -s "$libs/stubs/libcuda.so" libcuda.so.1
}

# build OUTPUT COMPILER...: warnings are errors, but not in their headers.
build() {
    local output=$1
    shift
    "$@" -Wall -Wextra -Werror -isystem "$home/include" -L"$libs" \
        -L"$libs/stubs" -o "$output" -lcudnn -lcudart -lnvrtc -lcuda
}

# plan PROGRAM ARGUMENT...
plan() {
    LD_LIBRARY_PATH=$PWD:$libs "$@"
}

@test "forward is planned and compiled as one operation" {
    local arch
    # shellcheck disable=SC2086 # CC may have options
    build plan ${CC:-cc} -std=c11 "${abs_top_srcdir:?}/tests/cuda/plan-cudnn.c"
    for arch in 80 90 100; do
        plan ./plan "$arch" >told
        grep -qx "forward, sm_$arch: \([1-9]\) of \1 plans compiled" told
    done
    run -1 plan ./plan 50
}

@test "forward and backward are, with dropout, through cudnn-frontend" {
    local arch way
    [ -e "${CUDNN_FRONTEND-}/include/cudnn_frontend.h" ] ||
        skip "CUDNN_FRONTEND names no folder that has cudnn-frontend"
    # shellcheck disable=SC2086 # CXX may have options
    build plan ${CXX:-g++} -std=c++17 -isystem "$CUDNN_FRONTEND/include" \
        "$abs_top_srcdir/tests/cuda/plan-cudnn.cc"
    for arch in 80 90 100; do
        for way in forward backward; do
            plan ./plan $way $arch 0.1 >told
            grep -qx "$way, sm_$arch, .*: \([1-9]\) of \1 plans compiled" told
            plan ./plan $way $arch 0
        done
    done
    run -1 plan ./plan backward 50 0
}
