#!/usr/bin/env bats
# mutants.bats - bugs planted into the CUDA back end are found; `make
# mutants-cuda` tries all of them.
#
# SPDX-License-Identifier: MIT

load ../support/helpers

setup() {
    start
    skip_without python3
}

mutants() {
    python3 "${abs_top_srcdir:?}/tests/trainer/cuda/mutants.py" "$@"
}

# plant FILE OLD NEW: a table with only this bug.
plant() {
    printf '== %s\n\na bug\n- %s\n+ %s\n' "$@" >table
}

@test "the text that each bug replaces occurs once in the sources" {
    run -0 mutants --texts
    [[ $output == *' bugs, the text of each is there once' ]]
    [ "${output%% *}" -ge 60 ]
}

@test "a text that is missing or occurs twice is refused" {
    plant cuda/gelu.cu 'no such text' x
    run -1 mutants --table=table --texts
    [[ $output == *'gelu.cu: a bug: its text is there 0 times'* ]]
    plant cuda/gelu.cu 'store_within<N>(' x
    run -1 mutants --table=table --texts
    [[ $output == *'its text is there 2 times'* ]]
}

# bats test_tags=night
@test "bugs are found, and harmless changes are not" {
    local build=${abs_top_builddir:?}
    [ -e "$build/tests/trainer/cuda/steps-t" ] ||
        skip "the CUDA back end is not built"
    run -0 mutants "$build" 'clip left out' 'kernels do not wait for the copy'
    [[ $output == *'clip left out'*'steps-t, order'* ]]
    [[ $output == *'2 of 2 bugs found'* ]]
    plant cuda/lamb.cu '#define ONE_BLOCK 1024' '#define ONE_BLOCK 512'
    run -1 mutants --table=table --only=steps-t "$build"
    [[ $output == *'NOT FOUND'*'0 of 1 bugs found'* ]]
}
