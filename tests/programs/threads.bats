#!/usr/bin/env bats
#
# threads.bats - packstream's threads and its compressed output: any number of
# threads gives the same packs and the same errors.
#
# SPDX-License-Identifier: MIT

# Word splitting of options is intended.
# shellcheck disable=SC2086

load ../support/helpers

# sample OPTION...: some megabytes of records, so that there are several blocks;
# of a few lengths, so that they are packed quickly.
sample() {
    local lines=${LONG:+400000}
    seq "${lines:-150000}" | paste -d ' ' - - - - - - - - - - - |
        tokcat --from=bytes "$@"
}

@test "the same bytes on any number of threads" {
    sample >x
    packstream -T1 -L 512 x >wanted
    local n counts='2 16'
    [ -z "${LONG-}" ] || counts='0 2 3 16'
    for n in $counts; do
        packstream "-T$n" -L 512 x | cmp - wanted
        packstream "-T$n" -L 512 <x | cmp - wanted
        sample | packstream "--threads=$n" -L 512 | cmp - wanted
    done
}

@test "the same compressed bytes on any number of threads" {
    skip_if_quick
    skip_without zstd
    sample >x
    packstream -T1 -L 512 x >plain
    local level n
    for level in "" =1 =5; do
        packstream -T1 "--zstd$level" -L 512 x >wanted
        zstd -qdc wanted | cmp - plain
        for n in 2 3 5; do
            packstream "-T$n" "--zstd$level" -L 512 x | cmp - wanted
            # Frames end at the same bytes for reads of any size.
            dd if=x bs=9999 status=none |
                packstream "-T$n" "--zstd$level" -L 512 | cmp - wanted
        done
    done
}

@test "the header is a frame, and so is each group of packs" {
    skip_without zstd
    sample >x
    packstream -T1 -L 512 x >plain
    packstream --zstd=1 -L 512 x >y
    # Two more frames: the header's, and the table.
    local frames
    frames=$(zstd -lv y 2>/dev/null | sed -n 's/^# Zstandard Frames: //p')
    local tables
    tables=$(zstd -lv y 2>/dev/null |
        sed -n 's/^# Skippable Frames: //p')
    [ "$tables" = 1 ]
    local bytes
    bytes=$(($(wc -c <plain) - 4096))
    [ "$frames" -gt $((1 + bytes / 1048576)) ]
    [ "$frames" -le $((2 + bytes / 262144)) ]
}

@test "invalid values are usage errors" {
    : >x
    local option
    for option in -T-1 -Tx -T257 --threads= --zstd=0 --zstd=23 --zstd=x \
        --zstd=; do
        run -64 --separate-stderr packstream -L 8 "$option" x
        [ -z "$output" ]
    done
}

@test "a full device or a vanished reader ends it, whichever thread writes" {
    sample >x
    local options
    for options in -T1 -T2 "-T1 --zstd" "-T3 --zstd"; do
        run -1 --separate-stderr bash -c \
            "packstream $options -L 512 x >/dev/full"
        # shellcheck disable=SC2154 # `run` sets it
        [ "$stderr" = "packstream: stdout: cannot write: No space left on\
 device" ]
        timeout 600 bash -c "
            { packstream $options -L 512 x; echo \$? >status; } |
                head -c 100 >/dev/null"
        [ "$(cat status)" = 141 ]
    done
}

# The thread that reads must not prevent the end.
@test "invalid input ends it even if more may come" {
    mkfifo in
    local n
    for n in 1 2; do
        timeout 600 packstream "-T$n" -L 4 <in >out 2>told 3>&- &
        local pid=$!
        opens 7 '>' in $pid
        printf '\005\0\0\0' >&7
        exits 65 $pid
        exec 7>&-
        grep -q "record 0 at byte 0: 5 tokens" told
    done
}

@test "a block is written while the input pauses" {
    mkfifo in out
    local n
    for n in 1 2; do
        timeout 600 packstream "-T$n" -L 2 -w 1 --block-packs=1 <in >out 3>&- &
        local pid=$!
        opens 7 '>' in $pid
        opens 8 '<' out $pid
        printf '\002\0\0\0\001\0\002\0' >&7
        # The header, and a block of a pack.
        [ "$(timeout 600 head -c 4224 <&8 | wc -c)" = 4224 ]
        exec 7>&-
        cat <&8 >/dev/null
        exec 8<&-
        wait $pid
    done
}

# A thread still reading the first file would read from the next one.
@test "an empty file before others" {
    : >empty
    sample --raw >x
    packstream -T1 -L 512 --stats empty x x 2>wanted >/dev/null
    local i n rounds=${LONG:+40}
    for ((i = 0; i < ${rounds:=4}; i++)); do
        for n in 2 3; do
            packstream "-T$n" -L 512 --stats empty x empty x 2>told >/dev/null
            cmp told wanted
        done
    done
}

@test "packs finished before bad input are not lost" {
    seq 19999 | sed 's/$/ 1/' | tokcat --from=ids --raw >x
    printf '\0\0\0\0' >>x
    local options
    for options in -T1 -T3 "-T1 --zstd" "-T3 --zstd"; do
        run -65 --separate-stderr bash -c "packstream $options -L 64 x >y"
        run -65 --separate-stderr packcat --order=pack --to=ids y
        [ "${#lines[@]}" -gt 17000 ]
        [ "${wanted=$output}" = "$output" ]
    done
}
