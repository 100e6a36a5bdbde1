#!/usr/bin/env bats
# roofline.bats - the predicted time of a step on a GPU.
#
# SPDX-License-Identifier: MIT

load ../support/helpers

setup() {
    start
    skip_without python3
}

roofline() {
    python3 "${abs_top_srcdir:?}/tests/bench/roofline.py" "$@"
}

@test "operations, bytes, lengths and waiting are what they are by hand" {
    python3 "${abs_top_srcdir:?}/tests/support/roofline.py" \
        "$abs_top_srcdir/tests/bench"
}

@test "the tables say that they are predictions" {
    roofline --kernels >tables
    [ "$(grep -c '^A prediction, not a measurement: ' tables)" -eq 2 ]
    grep -qE '^unpadding +[0-9.]+ times +2.3 times$' tables
    grep -qE '^attention, d keys +24 +[0-9.]+ +[0-9.]+ +[0-9.]+ ' tables
    printf '512 1\n' >hist
    roofline --hist=hist --sequences=8 --model=base >tables
    grep -q '^8 sequences a step, mean 512 tokens' tables
}

@test "half of the peaks take twice the time" {
    roofline | awk '/^grouped, in streams/ && !n++ { print $6 }' >whole
    roofline --products=0.5 --memory=0.5 |
        awk '/^grouped, in streams/ && !n++ { print $6 }' >half
    paste whole half | awk '{ exit !($2 / $1 > 1.99 && $2 / $1 < 2.01) }'
}

@test "what cannot be is refused" {
    run -1 roofline --hist=none
    grep -q 'none: No such file' <<<"$output"
    run -2 roofline --products=2
    run -2 roofline --sequences=0
}
