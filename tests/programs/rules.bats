#!/usr/bin/env bats
# rules.bats - every rule of packstream(5) is checked, by the readers that the
# page names.
#
# tests/support/packrows.py has the rules, streams that break each of them, and
# the messages.
#
# SPDX-License-Identifier: MIT

load ../support/helpers

page=$BATS_TEST_DIRNAME/../../man/packstream.5

rules() {
    skip_without python3
    support packrules.py "$@"
}

@test "every rule that the page marks has a stream that breaks it" {
    rules names "$page"
    sed '/rule: sum-len-sq /d' "$page" >less
    refused 1 "'sum-len-sq', 'page', None" rules names less
    sed 's/rule: start reader/rule: begin verify/' "$page" >other
    refused 1 "('begin', 'page', {'verify'}, 'table', None" rules names other
}

@test "the streams are valid before they are changed to break a rule" {
    rules sound
}

@test "token records that break a rule are refused" {
    rules broken tokens
}

@test "packs that break a rule are refused by the readers on the page" {
    rules broken packs
}

@test "compressed packs that break a rule are refused" {
    rules broken compressed
}

@test "reading at any pack of a file: broken rules are refused" {
    rules places
}

@test "packs.py refuses the streams listed on the page" {
    skip_without_numpy
    python=$PYTHON_NUMPY rules python
}

@test "the dtype in the page matches such packs" {
    skip_without python3
    packstream -q -L 8 -o x.pks </dev/null
    head -c 4088 x.pks | tail -c 2040 | tr -d '\0\n' >dtype
    sed -n '/test: dtype/,/^\.Ed/p' "$page" | sed "/^\./d; s/\\\\(aq/'/g" |
        tr -d '\n' | cmp - dtype
}

# digest OPTION...: the digest of the options in packs of x.tok.
digest() {
    packstream -q -L 16 "$@" x.tok 2>/dev/null >x.pks
    number x.pks 168 8
}

@test "the digest of the options covers the options on the page" {
    draw 50 16 90 | tokcat --from=ids --vocab=100 >x.tok
    first=$(digest)
    for option in -L32 -d4 -w9 -abestfit --order=input --shuffle=3 \
        --max-delay=9 -M"$(least_memory -L 16)" --even-cost --align=4 \
        --overlong=drop --pad-id=5 --budget=attention:200 \
        --budget=attention:256; do
        echo "$option"
        [ "$(digest "$option")" != "$first" ]
    done
    for option in --vocab=99 --out-of-vocab=drop --empty=drop --flush-every=7 \
        --flush-idle=9 -T3 --overlong=error --max-delay=2048 \
        -M1Gi; do
        echo "$option"
        [ "$(digest "$option")" = "$first" ]
    done
    packstream -q -L 16 --zstd x.tok | zstd -qdc >x.pks
    [ "$(number x.pks 168 8)" = "$first" ]
}

@test "displacement: below the depth in input order, or not" {
    skip_without python3
    draw 300 16 90 | tokcat --from=ids >x.tok
    below() {
        packstream -q -L 16 -d 3 "$@" x.tok | packstat --json >x.json
        [ "$(sed 's/.*"max_displacement": \([0-9]*\),.*/\1/' x.json)" -lt 3 ]
    }
    for algorithm in nextfit none concat; do
        below -a "$algorithm"
    done
    run ! below --order=input
}
