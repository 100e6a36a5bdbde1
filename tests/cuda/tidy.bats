#!/usr/bin/env bats
# tidy.bats - clang-tidy checks CUDA sources.
#
# SPDX-License-Identifier: MIT

load ../support/helpers

tidy() {
    "${abs_top_srcdir:?}/tests/cuda/tidy.sh" "$@"
}

@test "without clang-tidy nothing is checked, and the message says so" {
    CLANG_TIDY=/nowhere/tidy run -77 tidy x.cu
    grep -q 'nothing is done' <<<"$output"
    run -64 tidy
}

@test "a finding in one of the files is an error" {
    printf '%s\n' '#!/bin/sh' 'case "$*" in *bad.cu*) exit 1 ;; esac' >tidy
    chmod +x tidy
    CLANG_TIDY=./tidy tidy a.cu b.cu
    CLANG_TIDY=./tidy run -1 tidy bad.cu b.cu
}

@test "an uninitialised number in a kernel is found" {
    skip_without clang-tidy
    [ -e "$abs_top_srcdir/tests/hostcuda/cuda_runtime.h" ] ||
        skip "there is no tests/hostcuda"
    cat >good.cu <<'END'
#include <cuda_runtime.h>
static __global__ void kernel(int *x)
{
    int y = 0;
    if (threadIdx.x > 3)
        y = 1;
    x[0] = y;
}
void go(int *x);
void go(int *x)
{
    cudaLaunchConfig_t config = {};
    cudaLaunchKernelEx(&config, kernel, x);
}
END
    sed 's/int y = 0/int y/' good.cu >bad.cu
    tidy good.cu
    run -1 tidy bad.cu
    grep -q 'garbage or undefined' <<<"$output"
}
