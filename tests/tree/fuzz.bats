#!/usr/bin/env bats
#
# fuzz.bats - runs the fuzzing targets on their seeds and on variants of these,
# without a fuzzer; tests/fuzz/run.sh does more.
#
# SPDX-License-Identifier: MIT

load ../support/helpers

setup_file() {
    bats_require_minimum_version 1.5.0
    "${abs_top_srcdir:?}/tests/fuzz/seeds.sh" "$BATS_FILE_TMPDIR/seeds"
}

# replay TARGET N: all its seeds, and N variants of each.
replay() {
    local seeds=$BATS_FILE_TMPDIR/seeds/$1
    [ "$(find "$seeds" -type f | wc -l)" -ge 10 ]
    "${abs_top_builddir:?}/tests/fuzz/$1" "--changes=$2" "$seeds"/*
}

@test "raw token records" { replay raw 100; }
@test "framed token records" { replay framed 100; }
@test "zstd frames" { replay zstd 50; }
@test "packs" { replay plain 50; }
@test "compressed packs and their seek tables" { replay seekable 20; }
@test "the whole filter" { replay filter 20; }
@test "saved states" { replay state 20; }
@test "lines of ids" { replay ids 50; }
@test "JSON Lines" { replay jsonl 50; }
@test "arrays and streams of numbers" { replay arrays 50; }
@test "data sets of Megatron-LM" { replay megatron 50; }
@test "files of model folders" { replay model 100; }
@test "samples of BERT" { replay tfrecord 50; }
