#!/usr/bin/env bats
# packstat-parts.bats - packstat --range and --quick: a range of the whole
# stream gives the same figures as packstat without it, and any other those that
# od and awk find in the heads of the packs.
#
# SPDX-License-Identifier: MIT

load ../support/helpers

# shellcheck disable=SC2034 # for refused
speaker="packstat: "

setup_file() {
    cd "$BATS_FILE_TMPDIR" || return 1
    some_packs
}

setup() {
    start
    cp "$BATS_FILE_TMPDIR"/x.* .
    stride=$(number x.pks 20 4)
    packs=$(number x.pks $((4096 + 8)) 4)
    [ "$packs" -gt 300 ]
}

# heads FIRST END: n_seq, n_tok and max_seqlen of these packs.
heads() {
    local heads=$((4160 + packs * stride))
    head -c $((heads + $2 * 40)) x.pks | tail -c +$((heads + $1 * 40 + 1)) |
        od -An -v -tu4 -w40 | awk '{ print $4, $5, $6 }'
}

# keys FILE [OPTION...]: "key value" lines of packstat --json, except arrays.
keys() {
    packstat -q --json "${@:2}" "$1" |
        sed -E 's/"(lengths|depths|fills|parts)": (null|\[[^"]*), //g' |
        tr -d '{}" ' | tr ',:' '\n '
}

# not_told STATUS TEXT ARGUMENT...: packstat exits so and prints only TEXT.
not_told() {
    refused "$1" "$2" packstat "${@:3}"
    [ -z "$output" ]
}

@test "the figures of a range are those of its packs" {
    local range file
    for range in 0:1 7:90 100:300; do
        heads "${range%:*}" "${range#*:}" | awk '
            { seq += $1; tok += $2 }
            NR == 1 || $1 > depth { depth = $1 }
            NR == 1 || $2 < least { least = $2 }
            NR == 1 || $3 > most { most = $3 }
            END {
                print "sequences", seq
                print "tokens", tok
                print "packs", NR
                print "max_depth", depth
                print "padding", 64 * NR - tok
                print "max_seqlen", most
                print "min_fill", least
            }' >wanted
        for file in x.pks x.zst; do
            keys $file --range="$range" |
                grep -E -e '^(sequences|tokens|packs|padding) ' \
                    -e '^(max_depth|max_seqlen|min_fill) ' |
                diff -u wanted -
        done
    done
}

@test "the histogram of a range is that of its sequences" {
    local range
    for range in 0:1 5:9 100:300; do
        packcat -q --to=ids --range=$range x.pks | awk '
            { n[NF]++ } END { for (l in n) print l, n[l] }' | sort -n >wanted
        packstat -q --histogram --range=$range x.zst | diff -u wanted -
        packstat -q --histogram --range=$range < <(piped x.zst) |
            diff -u wanted -
    done
}

@test "the summary has the range of packs, and nothing from END" {
    local key
    packstat -q --range=5:9 x.zst |
        grep -x "  range          5:9 of $packs packs"
    packstat -q --range=-2:1T x.zst |
        grep -x "  range          $((packs - 2)):$packs of $packs packs"
    piped x.zst | packstat -q --range=300:1T |
        grep -x "  range          300:$packs"
    packstat -q --range=9:5 x.pks >found
    grep -qx '  packs          0' found
    keys x.pks --range=3:9 >found
    for key in max_displacement rejected input_sequences input_tokens \
        rejected_sequences truncated_tokens split_sequences extra_pieces; do
        grep -qx "$key null" found
    done
    packstat -q --range=3:9 x.pks >found
    run -1 grep -E 'displacement|rejected|truncated|split' found
    # The range applies to each file separately.
    packstat -q --json --range=-1: x.pks x.zst | grep -c '"packs": 1,' >n
    [ "$(cat n)" -eq 2 ]
    cat x.zst x.zst >two.zst
    keys two.zst --range=$((packs - 1)):$((packs + 3)) | grep -x 'packs 4'
}

@test "--quick prints the totals of END" {
    local file
    cat x.pks x.pks >two.pks
    cat x.zst x.zst >two.zst
    for file in x two; do
        keys $file.pks | grep -v -e correlation -e ^targets -e ^file >wanted
        keys $file.pks --quick | grep -v -e correlation -e ^targets -e ^file |
            diff -u wanted -
        keys $file.zst --quick | grep -v -e correlation -e ^targets -e ^file |
            diff -u wanted -
        keys $file.zst --quick | grep -c 'correlation null' >n
        [ "$(cat n)" -eq 2 ]
        piped $file.zst | packstat -q --quick >wanted
        packstat -q --quick <$file.zst | diff -u wanted -
    done
    packstat --quick two.zst |
        grep -x '  streams        2 joined'
}

@test "--quick does not read the packs" {
    flip x.pks $((4160 + 50 * stride + 99))
    packstat -q --quick x.pks >found
    not_told 65 'pack 50 in the block at byte 4096' x.pks
    packstat -q --range=51: x.pks >found
    packstat -q --range=:50 x.pks >found
    not_told 65 'pack 50 in the block at byte 4096' --range=49:51 x.pks
}

@test "--quick and --range detect a truncated file" {
    head -c -"$stride" x.pks >cut.pks
    not_told 65 'no complete END' --quick cut.pks
    not_told 65 'no complete END' --range=0:1 cut.pks
    head -c -1 x.zst >cut.zst
    not_told 65 'cut' --quick cut.zst
}

@test "impossible requests are refused" {
    not_told 64 '--range=3: must be A:B' --range=3 x.pks
    not_told 64 '--verify reads the whole file' --range=3:4 --verify x.pks
    not_told 64 '--verify reads the whole file' --quick --verify x.pks
    not_told 64 '--quick reads no packs' --quick --histogram x.pks
    not_told 64 '--quick reads no packs' --quick --range=3:4 x.pks
    not_told 65 'token records' --range=3:4 x.tok
    packstat -q x.tok >wanted
    packstat -q --quick x.tok | diff -u wanted -
}
