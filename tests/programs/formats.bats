#!/usr/bin/env bats
# formats.bats - packstream(5) is complete: a decoder written from the page
# alone reads the programs' output, and they read the output of its encoder.
#
# The decoder is tests/support/formats.py.  It takes the byte tables and the
# numpy recipes from the page itself, so an error in the page fails here.
#
# SPDX-License-Identifier: MIT

load ../support/helpers

# spec CHECK [ARGUMENT]...: calls a check of formats.py, if there is numpy.
spec() {
    skip_without_numpy
    python=$PYTHON_NUMPY support formats.py \
        "${abs_top_srcdir:?}/man/packstream.5" "$@"
}

# columns WIDTH SEED [LONGEST [N]]: x.jsonl and x.tok, sequences of at most
# LONGEST tokens with channels of several types.
columns() {
    local vocab=60000
    [ "$1" = u16 ] || vocab=4000000000
    spec make_jsonl "$2" "${4-300}" "${3-32}" "$vocab" >x.jsonl
    tokcat --from=jsonl -t "$1" --channel=kind:u8:9 \
        --channel=labels:i64:-100 --channel=weight:f64 \
        --channel=source:u32 --channel=score:f32 -o x.tok x.jsonl
}

# plain_ids WIDTH [OPTION]...: x.tok, a framed stream of tokens alone.
plain_ids() {
    skip_without_numpy
    spec make_jsonl 5 200 32 60000 |
        tokcat --from=jsonl -t "$1" --ignore=kind --ignore=labels \
            --ignore=weight --ignore=source --ignore=score "${@:2}" >x.tok
}

@test "the byte tables of the page have neither gaps nor overlaps" {
    spec check_tables
}

@test "the limits of the page are those of the header" {
    spec check_limits "$abs_top_srcdir/src/include/packstream/base.h"
}

# gives_back [OPTION...]: the recipe finds the records of x.tok in their packs.
gives_back() {
    packstream "$@" x.tok >x.pks
    spec check_packs x.tok x.pks
}

@test "u16 with channels: the page's recipe recovers the records" {
    columns u16 1
    spec check_jsonl x.jsonl x.tok 2
    gives_back -L 64 -d 6 -w 50
}

@test "u32 with channels: the page's recipe recovers the records" {
    columns u32 2
    spec check_jsonl x.jsonl x.tok 4
    gives_back -L 40 -d 3 -w 7
}

@test "lists and vectors: the page's recipe recovers them" {
    spec make_listed >x.jsonl
    tokcat --from=jsonl --channel=source:u16[] --channel=edges:u8[2][]:7 \
        -o x.tok x.jsonl
    for budget in 29 30 100; do
        packstream -L 64 --budget=source:"$budget" --budget=edges:33 x.tok \
            >x.pks
        spec check_lists x.tok x.pks
    done
    packstream -L 32 --align=8 x.tok >x.pks
    spec check_lists x.tok x.pks
}

@test "aligned sequences: the recipe recovers them, with channels" {
    columns u16 9
    for n in 2 7; do
        gives_back -L 112 -d 6 -w 30 --align="$n"
        spec check_header x.pks align="$n" incompat=1 capacity=112
    done
    gives_back -L 128 --align=64
    packstream -L 128 --align=1 x.tok >x.pks
    packstream -L 128 x.tok | cmp - x.pks
    spec check_header x.pks align=0 incompat=0
}

@test "a stream without packs" {
    packstream -L 8 </dev/null >x.pks
    : >x.raw
    spec check_packs x.raw x.pks
    [ "$(size x.pks)" -eq $((4096 + 256)) ]
}

@test "the header has the values of the options and the token records" {
    plain_ids u16 --vocab=60001 --pad-id=60007 --labels=shifted
    packstream -L 128 -d 6 -w 50 --max-delay=77 x.tok >x.pks
    spec check_header x.pks capacity=128 depth=6 window=77 \
        vocab_size=60001 token_bytes=2 labels=2 pad_id=60007 compat=1 \
        incompat=0 seed=0 n_fields=4 block_packs=4096
    spec check_packs x.tok x.pks
    record32 3 1 4 >x.raw
    packstream -L 9 -t u32 --vocab=5 --pad-id=7 x.raw >x.pks
    spec check_header x.pks capacity=9 depth=0 vocab_size=5 token_bytes=4 \
        labels=0 pad_id=7 compat=0 row_bytes=40 seq_bytes=16
    spec check_packs x.raw x.pks 4
}

@test "joined pack streams are read in order" {
    columns u16 3
    packstream -L 64 -d 6 x.tok >1.pks
    mv x.tok 1.tok
    columns u16 4
    packstream -L 64 -d 6 x.tok >2.pks
    cat 1.tok x.tok >both.tok
    cat 1.pks 2.pks >both.pks
    spec check_packs both.tok both.pks
}

@test "joined pack streams can differ in windows, depths and blocks" {
    { many 100 60; many 100 40; } >x.raw
    packstream -L 100 -d 4 -w 1 x.raw >1.pks
    packstream -L 100 -w 200 --block-packs=2 x.raw >2.pks
    cat x.raw x.raw >both.raw
    cat 1.pks 2.pks | packcat | cmp - both.raw
}

@test "joined pack streams cannot differ in pad ids" {
    record16 3 1 4 >x.raw
    packstream -L 8 --pad-id=1 x.raw >1.pks
    packstream -L 8 --pad-id=2 x.raw >2.pks
    cat 1.pks 1.pks | packstat --verify
    cat 1.pks 2.pks >x.pks
    refused 65 'cannot be joined to the first: pad_id is 2, not 1' \
        packstat --verify x.pks
}

@test "blocks of any number of packs, and blocks closed by a flush" {
    columns u16 7
    gives_back -L 64 -w 50 --block-packs=1
    gives_back -L 64 -w 50 --block-packs=8 --flush-every=30
    spec check_header x.pks block_packs=8
}

@test "more blocks than one part of the index lists" {
    seq 9000 | tokcat --from=ids --type=u16 >x.tok
    gives_back -L 2 -a none --block-packs=1
    spec check_sums x.tok x.pks
}

@test "pieces of split sequences join again" {
    for n in 5 17 1 40 8 9; do
        record16 $(seq "$n")
    done >x.raw
    packstream -L 8 -d 4 --overlong=split x.raw >x.pks
    spec check_split x.raw x.pks
}

@test "every checksum and digest follows the page" {
    columns u16 6
    packstream -L 64 -d 6 -w 50 x.tok >1.pks
    cat 1.pks 1.pks >x.pks
    spec check_sums x.tok x.pks
}

@test "the page's recipe for checksums detects any flipped bit" {
    { record16 3 1 4; record16 1 5; record16 9 2 6 5; } >x.raw
    packstream -L 8 -d 3 x.raw >x.pks
    spec find_flips x.pks
}

@test "a stream written from the page alone is read, its records recovered" {
    for order in 'sequence token' 'token sequence'; do
        # shellcheck disable=SC2086 # two words
        spec make_framed x.tok $order
        gives_back -L 64 -d 8
        packcat x.pks | cmp - x.tok
    done
}

@test "the first lines in numpy map the packs" {
    plain_ids u16
    packstream -L 64 x.tok >x.pks
    packs=$(packstat --json x.pks | sed 's/.*"packs": \([0-9]*\),.*/\1/')
    [ "$(spec check_short)" = "$packs" ]
}

@test "run as a program the recipe prints every sequence" {
    plain_ids u32
    packstream -L 64 -d 4 x.tok >x.pks
    packcat --to=ids x.pks | awk '{ print NR - 1, $0 }' >wanted
    spec print_block numpy-recipe >recipe.py
    "$PYTHON_NUMPY" recipe.py x.pks | sort -n | cmp - wanted
}

@test "the recipe refuses incomplete pack streams and other files" {
    plain_ids u16
    packstream -L 64 x.tok >x.pks
    spec refuse x.tok 'not a pack stream'
    head -c -1 x.pks >cut.pks
    spec refuse cut.pks 'the stream is cut'
    cp x.pks newer.pks
    flip newer.pks 12 1
    spec refuse newer.pks 'another version'
    cp x.pks other.pks
    flip other.pks 87 128
    spec refuse other.pks 'another version'
}
