#!/usr/bin/env bats
#
# tokcat-compressed.bats - text compressed by gzip and zstd is read as text.
#
# SPDX-License-Identifier: MIT

load ../support/helpers

# shellcheck disable=SC2034
program=tokcat operands=(x)

# compress FORM FILE: makes FILE.FORM, if the program exists.
compress() {
    case $1 in
        gz)
            skip_without gzip
            gzip -nkf "$2"
            ;;
        zst)
            skip_without zstd
            zstd -qf "$2" -o "$2.zst"
            ;;
    esac
}

# many_lines TEXT: x has lines of a number and this text.
many_lines() {
    seq 3000 | sed "s/\$/ $1/" >x
}

# same_as_plain FORM OPTION...: x.FORM gives the records of x, however it is
# read.
same_as_plain() {
    local packed=x.$1
    shift
    tokcat -q "$@" x >wanted
    tokcat -q "$@" "$packed" | cmp - wanted
    tokcat -q "$@" <"$packed" | cmp - wanted
    dd bs=1 if="$packed" status=none | tokcat -q "$@" | cmp - wanted
}

@test "every form of text, from files and from slow pipes" {
    local form
    for form in gz zst; do
        many_lines '1 2 3'
        compress "$form" x
        same_as_plain "$form" --from=ids
        same_as_plain "$form" --from=bytes
        seq 3000 | sed 's/.*/{"input_ids": [&, 2], "n": [1, &]}/' >x
        compress "$form" x
        same_as_plain "$form" --from=jsonl
        printf '1 2' >x
        compress "$form" x
        same_as_plain "$form" --from=ids
        : >x
        compress "$form" x
        same_as_plain "$form" --from=ids
    done
}

@test "several files, each decompressed if needed" {
    local form
    for form in gz zst; do
        many_lines 7
        compress "$form" x
        cat x x x >y
        tokcat -q --from=ids x "x.$form" x |
            cmp - <(tokcat -q --from=ids y)
        tokcat -q --from=ids "x.$form" x "x.$form" |
            cmp - <(tokcat -q --from=ids y)
    done
}

@test "several members and frames, and zeros after those of gzip" {
    local form
    for form in gz zst; do
        many_lines 7
        : >empty
        compress "$form" x
        compress "$form" empty
        cat x x >y
        cat "x.$form" "empty.$form" "x.$form" "empty.$form" |
            tokcat -q --from=ids | cmp - <(tokcat -q --from=ids y)
    done
    compress gz x
    { cat x.gz; head -c 5000 /dev/zero; cat x.gz; head -c 99 /dev/zero; } |
        tokcat -q --from=ids | cmp - <(tokcat -q --from=ids y)
    # With skippable frames before and after.
    compress zst x
    { u32 0x184d2a53 3 && printf abc; } >skipped
    cat skipped x.zst skipped x.zst skipped | tokcat -q --from=ids |
        cmp - <(tokcat -q --from=ids y)
}

@test "truncated input is reported, after the records before the cut" {
    local form name=gzip n
    many_lines '1 2 3'
    tokcat -q --from=ids --raw x >wanted
    for form in gz zst; do
        compress "$form" x
        for n in 4 5 11 20 500 $(($(size "x.$form") - 1)); do
            head -c "$n" "x.$form" >part
            run -65 into got tokcat -q --from=ids --raw part
            [[ $output == "tokcat: part: byte "*": the $name data is truncated" ]]
            cmp -n "$(size got)" got wanted
        done
        name=zstd
    done
}

@test "damaged input is reported" {
    local form at
    seq 20 >x
    tokcat -q --from=ids x >wanted
    for form in gz zst; do
        compress "$form" x
        for ((at = 4; at < $(size "x.$form"); at++)); do
            cp "x.$form" bad
            flip bad "$at" 3
            run tokcat -q --from=ids -o got bad
            echo "$form $at: $status: $output"
            # Some bytes of gzip's header do not affect the text.
            [ "$status" -eq 65 ] || cmp got wanted
        done
        { cat "x.$form"; echo more; } >bad
        run -65 tokcat -q --from=ids bad
    done
}

# libzstd refuses it only if it sees all of it at once.
@test "a frame shorter than its header says is damaged, from any input" {
    skip_if_sanitized
    local faults=${abs_top_builddir:?}/tests/support/.libs/faults.so
    [ -e "$faults" ] || skip 'no shared libraries were built'
    printf '(\265/\375@\0\0\0\5\0\0' >x # 256 bytes; an empty block
    is 65 "tokcat: x: byte 0: zstd: Data corruption detected" \
        tokcat -q --from=ids --raw x
    is 65 "tokcat: x: byte 0: zstd: Data corruption detected" \
        env LD_PRELOAD="$faults" FAULT_SHORT=1 tokcat -q --from=ids --raw x
}

@test "a beginning that only resembles compressed data is text" {
    printf '\037' >x
    is 65 "tokcat: x: line 1, column 1: '?' is not a number" \
        tokcat --from=ids x
    printf '(\265/' >x
    tokcat -q --from=bytes --raw x | cmp - <(record16 40 181 47)
    printf '(\265/\n' >x
    tokcat -q --from=bytes --raw x | cmp - <(record16 40 181 47 10)
}

# Only the beginning of the file matters, however small the reads are.
@test "compressed data after the beginning is text" {
    printf '@\n\037\213\010\000' >x
    tokcat -q --from=bytes x >wanted
    dd bs=1 if=x status=none | tokcat -q --from=bytes | cmp - wanted
    { printf '@\n'; sleep 0.2; tail -c +3 x; } | tokcat -q --from=bytes |
        cmp - wanted
}

@test "--no-decompress reads bytes unchanged" {
    printf 'abc' >x
    compress gz x
    tokcat -q --from=bytes --raw --no-decompress x.gz |
        packstat --histogram >got
    tokcat -q --from=bytes --raw --no-decompress x.gz |
        packstream -q -L 64 -a none | packcat --to=bytes | cmp - x.gz
    bad_option "--no-decompress cannot be used with --from=npy" --from=npy \
        --no-decompress
}

@test "text of any size is decompressed in little memory" {
    skip_if_sanitized
    skip_without python3
    local form peak
    for form in gz zst; do
        { yes '1 2 3 4 5 6 7 8 9' || true; } | head -c 60000000 >x
        compress "$form" x
        peak=$(support memory.py tokcat -q --from=ids <"x.$form")
        echo "$form: $peak KiB"
        [ "$peak" -le 12000 ]
    done
}
