#!/usr/bin/env bats
# bench.bats - the engine's benchmarks run, and draw the lengths requested.
#
# SPDX-License-Identifier: MIT

load ../support/helpers

engine() {
    "${abs_top_builddir:?}/tests/bench/engine" --capacity=512 --sequences=2000 "$@"
}

# script NAME OPTION...: runs it for a fraction of a second.
script() {
    local name=$1
    shift
    skip_without python3
    python3 "${abs_top_srcdir:?}/tests/bench/$name" "$@" "$abs_top_builddir"
}

@test "all sources of one constant length are equivalent" {
    local same source
    same=$(engine --source==128 --rivals=1 | cut -f 1-5,8-)
    [[ $same == 74.963* ]]
    printf '\200\0\0\0' >raw
    for source in uniform:128,128 normal:128,0.01 mix:=128+3*=128 raw:raw; do
        [ "$(engine --source="$source" --rivals=1 | cut -f 1-5,8-)" = "$same" ]
    done
}

@test "a source that cannot be read is refused" {
    local source
    for source in uniform: uniform:1 normal:1,2,3 mix: 0.5*=1+ 2+=3 =x; do
        run ! engine --source="$source"
    done
}

@test "the grid prints its cells and a summary" {
    script grid.py --streams=few --depths=1,2 --windows=64 --sequences=2000 \
        --short=500 --delays=2,4 --peers >grid
    grep -q '^few  *512  *1  *64 ' grid
    grep -q 'More D, 500 sequences: costs over 0.02 in 0 of 1' grid
}

@test "lines of JSON are read with orjson for comparison, or without" {
    script jsonl.py --bytes=100000 --rounds=3 >table
    grep -qE '^ids +[1-9][0-9]* ' table
    grep -qE '^ids, labels, masks +[1-9][0-9]* ' table
}

@test "the search prints how to repeat what it found" {
    script adversary.py --tries=16 --sequences=500 --windows=64 >found
    grep -q -- '--source=mix:' found
}

@test "the arithmetic of shards is that of BENCHMARKS.md" {
    local table=${abs_top_srcdir:?}/BENCHMARKS.md
    skip_without python3
    python3 "$abs_top_srcdir/tests/bench/sharding.py" >rows
    while read -r gpus _ how sent exchange exposed lamb step memory; do
        grep -qF "| $gpus | $how | $sent GB | $exchange ms | $exposed ms |\
 $lamb ms | $step ms | $memory GB |" "$table"
    done < <(tail -n +3 rows)
}
