#!/usr/bin/env bats
# memory.bats - filters use as much memory as their options require, however
# long the input.
#
# Each test compares the peak for an input of 4 MB with that for 20 MB, some
# million sequences: a single byte kept per sequence would show.
#
# SPDX-License-Identifier: MIT

load ../support/helpers

# Inputs of several tests, made once: records in even20.raw and even4.raw, and
# their packs in even20.pks and even4.pks.
setup_file() {
    cd "$BATS_FILE_TMPDIR" || return 1
    seq -f '%g 1' 16 >even
    local megabytes
    for megabytes in 4 20; do
        records "$megabytes" >"even$megabytes.raw"
        packstream -L 64 "even$megabytes.raw" >"even$megabytes.pks"
    done
}

setup() {
    start
    skip_if_sanitized
    skip_without python3
    cp "$BATS_FILE_TMPDIR/even" .
    local status=0
    peak true </dev/null >/dev/null 2>&1 || status=$?
    [ "$status" != 77 ] || skip "this system does not tell a peak of memory"
}

# peak COMMAND...: its peak memory in KiB, with stdin as its input.
peak() {
    support memory.py "$@"
}

# records MEGABYTES [OPTION]...: raw records of 1 to 16 tokens.
records() {
    "${abs_top_builddir:?}/tests/bench/gen" "--bytes=${1}000000" \
        --hist=even "${@:2}"
}

# are_alike SMALL LARGE: the two peaks differ by a few percent at most.
are_alike() {
    echo "$1 KiB, then $2 KiB"
    # Linux counts a process's memory in batches of some pages.
    [ "$1" -gt 500 ] && [ "$2" -le $(($1 + $1 / 20 + 256)) ]
}

# is_flat PIPE: the peaks that PIPE prints for 4 MB and for 20 MB of records are
# alike.
is_flat() {
    local small large
    small=$(eval "$1" <"$BATS_FILE_TMPDIR/even4.raw")
    large=$(eval "$1" <"$BATS_FILE_TMPDIR/even20.raw")
    are_alike "$small" "$large"
}

# is_flat_for_packs COMMAND: its peaks for packs of these records are alike.
is_flat_for_packs() {
    local small large
    small=$(eval "$1" <"$BATS_FILE_TMPDIR/even4.pks")
    large=$(eval "$1" <"$BATS_FILE_TMPDIR/even20.pks")
    are_alike "$small" "$large"
}

# is_flat_for_records COMMAND: the same for records with a header.
is_flat_for_records() {
    local packs small large
    for packs in 15000 90000; do
        packcat --range=0:$packs --to=ids "$BATS_FILE_TMPDIR/even20.pks" |
            tokcat --from=ids >"$packs.tok"
    done
    small=$(eval "$1" <15000.tok)
    large=$(eval "$1" <90000.tok)
    are_alike "$small" "$large"
}

@test "the measurement detects growth" {
    # A program that holds its input must fail.
    run -1 is_flat "peak python3 -c 'import sys; sys.stdin.buffer.read()'"
    [[ $output = *" KiB, then "*" KiB" ]]
}

@test "packstream" {
    is_flat 'peak packstream -T1 -L 64'
    is_flat 'peak packstream -T1 -L 64 -d 8 --shuffle=3'
    is_flat 'peak packstream -T1 -L 10 --overlong=truncate --rejects=rejects'
}

# The blocks touched depend on timing, so more input is compared: a byte per
# sequence would be 4000 KiB.
@test "packstream on threads" {
    local options small large
    for options in -T2 "-T3 --zstd=1"; do
        small=$(records 40 | eval "peak packstream -L 64 -d 8 $options")
        large=$(records 120 | eval "peak packstream -L 64 -d 8 $options")
        echo "$small KiB, then $large KiB"
        [ "$large" -le $((small + 3072)) ]
    done
}

@test "packstream, u32 tokens, split into pieces" {
    local command='peak packstream -T1 -t u32 -L 10 --overlong=split'
    are_alike "$(records 4 --width=4 | $command)" \
        "$(records 20 --width=4 | $command)"
}

@test "packstream, compressed input" {
    skip_without zstd
    is_flat 'zstd -q -1 | peak packstream -T1 -L 64'
}

@test "packcat, in input order" {
    is_flat_for_packs 'peak packcat'
}

@test "packcat, joining pieces" {
    is_flat 'packstream -L 10 --overlong=split | peak packcat'
}

@test "packcat, in pack order" {
    is_flat_for_packs 'peak packcat --order=pack'
}

@test "packcat in the trainers' forms" {
    local form
    for form in jsonl rows trl 'megatron --order=input -o m' \
        ${LONG:+tfrecord}; do
        echo "$form"
        is_flat_for_packs "peak packcat --to=$form"
    done
}

@test "packdeal, a file or a pipe, one share or all" {
    is_flat_for_packs 'peak packdeal -n 4 -b 8 --rank=1'
    is_flat_for_packs 'cat | peak packdeal -n 4 -b 8 --rank=1'
    # Each share has a block, which must fill before memory stops growing.
    local packs=$BATS_FILE_TMPDIR/even20.pks
    are_alike "$(peak packdeal -q -n 4 -b 8 -o r%d < <(cat "$packs"))" \
        "$(cat "$packs" "$packs" "$packs" | peak packdeal -q -n 4 -b 8 -o r%d)"
    is_flat_for_records 'peak packdeal -q -n 4 -b 8 -o r%d'
    is_flat_for_records 'peak packdeal --list -n 4 -b 8 --window=9'
}

@test "tokmix, a file and a pipe" {
    is_flat "peak tokmix --stop=longest 3=- 1=$BATS_FILE_TMPDIR/even4.raw"
}

@test "tokshuf" {
    is_flat 'peak tokshuf -M 1Mi'
    is_flat 'peak tokshuf -M 1Mi --head-count=100000 --by-length=50000'
    is_flat 'peak tokshuf --no-shuffle --by-length=1000'
}

@test "packstat" { is_flat_for_packs 'peak packstat'; }

@test "packstat --verify" {
    is_flat_for_packs 'peak packstat --verify'
}

@test "packstat --histogram, token records" {
    is_flat 'peak packstat --histogram'
}

@test "packstream by each algorithm" {
    local name
    for name in spfhp nnlshp bestfit concat; do
        is_flat "peak packstream -T1 -L 64 -d 8 -w 256 -a $name"
    done
}

# The number of blocks in use also depends on timing: 3568 to 4224 KiB for
# inputs of any size.  A byte per sequence would add 2900 KiB.
@test "packcat, after a long delay" {
    local small large
    delayed() {
        records "$1" | packstream -L 64 --shuffle=3 --max-delay=20000 |
            peak packcat
    }
    small=$(delayed 20)
    large=$(delayed 50)
    echo "$small KiB, then $large KiB"
    [ "$large" -le $((small + 1024)) ]
}

# worst: memory of a window in KiB if $window sequences of $capacity tokens are
# held, each as long as a pack.
worst() {
    local least most
    printf '%d 1\n' "$capacity" >hist
    least=$(records 1 --hist=hist |
        peak packstream -T1 -L "$capacity" -d 16 -a bestfit -w 1)
    most=$(records 40 --hist=hist |
        peak packstream -T1 -L "$capacity" -d 16 -a bestfit \
            -w "$window")
    echo $((most - least))
}

@test "packstream never uses more memory than its page states" {
    skip_if_quick
    local window=4096 capacity=2048 took
    took=$(worst)
    echo "$took KiB"
    # Blocks hold a full window and a quarter more; a slot takes 90 bytes.
    [ "$took" -le $(((3 * window * capacity * 2 / 2 +
        90 * window) / 1024 + 256)) ]
    # The window really was full.
    [ "$took" -ge $((window * capacity * 2 / 1024)) ]
}

# The program's own code and its libraries, in KiB, as stated on the page.
program=4096

# The worst lengths of hostile.py, and the greatest peak measured with any.
kinds="full mixed${LONG:+ one half sorted}"
megabytes=8

# hostile KIND L MEGABYTES [WIDTH]: records with lengths of this kind.
hostile() {
    support hostile.py "$@"
}

# peaks L WIDTH MIB [OPTION]...: packs all kinds of lengths with a bound of MIB;
# prints the peaks in KiB, from start to end.
peaks() {
    local capacity=$1 width=$2 most=$3 kind
    for kind in $kinds; do
        hostile "$kind" "$capacity" "$megabytes" "$width" |
            peak --whole packstream -L "$capacity" -M "${most}Mi" "${@:4}"
    done
}

# is_bounded L WIDTH MIB [OPTION]...: no peak exceeds that bound.
is_bounded() {
    skip_if_quick
    local all peak
    all=$(peaks "$@") || return 1
    echo "$* takes" "${all//$'\n'/ }" KiB
    for peak in $all; do
        [ "$peak" -le $(($3 * 1024 + program)) ] || return 1
    done
}

@test "-M bounds all memory: windows, widths and depths" {
    is_bounded 512 2 16 -d 3 -T3
    is_bounded 512 2 48 -d 8 -w 16384 -T1
    is_bounded 2048 4 32 -t u32 -d 64 -w 4096 -T3
    is_bounded 65536 2 48 -d 4 -T1
}

@test "-M bounds all memory: algorithms and orders" {
    is_bounded 512 2 48 -a spfhp -d 16 -w 32768 -T1
    is_bounded 512 2 48 -a nnlshp -w 4096 -d 8 -T1
    is_bounded 512 2 48 -a bestfit -d 16 -w 65536 -T1
    is_bounded 512 2 48 --shuffle=7 -d 16 -w 16384 -T3
    is_bounded 512 2 32 -a concat -T1
}

@test "-M bounds all memory: windows that are full by tokens" {
    is_bounded 16384 2 48 -T1
    is_bounded 131072 2 96 -T3
    is_bounded 32768 2 48 -a bestfit -T1
    is_bounded 16384 2 48 --shuffle=3 -T1
    kinds=one
    is_bounded 16384 2 64 -q -T1 --state=state -o out
}

# The default has slots for some hundred thousand sequences.
@test "unused slots of the window take no memory" {
    local few all
    many 4000 5 >x
    few=$(peak packstream -T1 -L 131072 -w 4000 <x)
    all=$(peak packstream -T1 -L 131072 <x)
    are_alike "$few" "$all"
    all=$(peak packstream -T1 -L 131072 --shuffle=3 <x)
    are_alike "$few" "$all"
}

@test "-M bounds all memory: compressed output, states and pieces" {
    is_bounded 512 2 32 --zstd=1 -d 16 -w 8192 -T3
    is_bounded 512 2 32 --zstd=3 -T1
    is_bounded 64 2 16 --overlong=truncate --rejects=rejects -T1
    kinds=mixed
    # It is slow, and more input does not raise the peak.
    megabytes=3 is_bounded 512 2 64 --zstd=19 -T3
    is_bounded 512 2 64 --zstd -w 4096 --state=state -o out
}

@test "-M bounds all memory: compressed input" {
    skip_if_quick
    skip_without zstd
    local level peak
    hostile mixed 512 20 >x
    for level in -1 -3 -19; do
        peak=$(zstd -q -c $level x | peak packstream -L 512 -M 64Mi)
        echo "$level: $peak KiB"
        [ "$peak" -le $((65536 + program)) ]
    done
}

@test "an input whose window exceeds the bound is refused" {
    skip_without zstd
    hostile mixed 512 20 | zstd -q -19 >x.zst
    packstream -L 512 -M 64Mi x.zst >wanted
    run -65 packstream -L 512 -M 16Mi x.zst -o out
    [ "$output" = "packstream: x.zst: zstd, after byte 0 of the decompressed\
 input: the frame needs a window of more than 2097152 bytes: raise the\
 limit on memory (packstream -M), or compress it again with a lower level" ]
}

@test "a bound that is too small is refused at once" {
    run -64 packstream -L 512 -M 1000000 -o out </dev/null
    [[ ${lines[0]} =~ ^"packstream: -M 1000000 is too small: these options\
 need at least "[0-9]+" bytes"$ ]]
    [ ! -e out ]
    local least
    least=$(least_memory -L 512)
    hostile mixed 512 1 >x
    packstream -L 512 -M "$least" x >out
    packcat out | cmp - x
    run -64 packstream -L 512 -M $((least - 1)) x
}

@test "a sequence that exceeds the bound is refused by its number" {
    # Without a pipe: hostile.py fails if head ends first.
    hostile one 100000 1 >ones
    hostile full 2000000 1 >fulls
    { head -c 600 ones; head -c 4000004 fulls; } >x
    packstream -L 512 -d 16 -M 24Mi --overlong=drop x >out
    run -65 packstream -L 512 -d 16 -M 24Mi --overlong=split x
    [[ $output = *"packstream: x: record 100 at byte 600: 2000000 tokens take\
 4000000 bytes, but the limit is 1245184"* ]]
    packstream -L 512 -M 128Mi --overlong=split x | packcat | cmp - x
}

@test "the least bound holds sequences longer than a pack" {
    local option least
    u32 30000 >one
    head -c 60000 /dev/zero >>one
    cat one one one >x
    for option in --overlong=split --overlong=truncate "-a concat"; do
        # shellcheck disable=SC2086 # two words
        least=$(least_memory -L 16 -w 2 $option)
        # shellcheck disable=SC2086
        packstream -L 16 -w 2 -M "$least" $option x >out
    done
    packcat out | cmp - x
    least=$(least_memory -L 16 -w 2 --overlong=drop)
    packstream -L 16 -w 2 -M "$least" --overlong=drop --rejects=out x >none
}

@test "packs depend on the bound, not on threads, states or compression" {
    hostile mixed 512 8 >x
    local least
    least=$(least_memory -L 512 -w 4096)
    packstream -L 512 -w 4096 -M "$least" x >wanted
    packstream -L 512 -w 4096 x >other
    run -1 cmp -s other wanted
    packstream -L 512 -w 4096 -M "$least" -T1 x | cmp - wanted
    packstream -L 512 -w 4096 -M "$least" -T9 x | cmp - wanted
    packstream -L 512 -w 4096 -M "$least" --state=state -o out x
    cmp out wanted
    packstream -L 512 -w 4096 -M 64Mi x >wanted
    zstd -q -1 x
    packstream -L 512 -w 4096 -M 64Mi x.zst | cmp - wanted
}

@test "-v reports the bound" {
    hostile mixed 512 1 >x
    packstream -L 512 -v -M 64Mi x 2>told >/dev/null
    local said
    said=$(sed -n 's/^packstream: uses at most \([0-9]*\) MiB of memory$/\1/p' told)
    [ "$said" -le 64 ]
    [ "$said" -ge 4 ]
    # Without -M it is the sum that the options require.
    packstream -L 512 -v -w 99999 x 2>told >/dev/null
    said=$(sed -n 's/^packstream: uses at most \([0-9]*\) MiB of memory$/\1/p' told)
    [ "$said" -ge 100 ]
}

# The address space also includes mapped libraries and stacks.
@test "-M holds when the system has no more memory" {
    hostile mixed 512 8 >x
    packstream -L 512 -d 16 -w 16384 -M 32Mi x >wanted
    local before
    before=$( (ulimit -v $((32768 + 16384)) &&
        packstream -L 512 -d 16 -w 16384 -M 32Mi -T2 x) | cksum)
    [ "$before" = "$(cksum <wanted)" ]
}
