#!/usr/bin/env bats
# memory.bats - filters hold as much memory as their options say, and no
# more of it for more input.
#
# Each test compares the peak for an input of 4 MB with that for 40 MB, which
# is some two million sequences: a byte kept for each would be noticed.
#
# SPDX-License-Identifier: MIT

load helpers

setup() {
    start
    set -o pipefail
    skip_if_sanitized
    skip_without python3
    PYTHONDONTWRITEBYTECODE=1
    export PYTHONDONTWRITEBYTECODE
    seq -f '%g 1' 16 >even
    local status=0
    peak true </dev/null >/dev/null 2>&1 || status=$?
    [ "$status" != 77 ] || skip "this system does not tell a peak of memory"
}

# peak COMMAND...: its peak of memory in KiB, with stdin as its input.
peak() {
    python3 "${abs_top_srcdir:?}/tests/memory.py" "$@"
}

# records MEGABYTES [OPTION]...: raw records of 1 to 16 tokens.
records() {
    "${abs_top_builddir:?}/tests/bench/gen" "--bytes=${1}000000" \
        --hist=even "${@:2}"
}

# is_flat PIPE [OPTION...]: the peaks that `records 4 | PIPE` and `records 40
# | PIPE` print differ by a few percent at most.
is_flat() {
    local small large
    small=$(records 4 "${@:2}" | eval "$1")
    large=$(records 40 "${@:2}" | eval "$1")
    echo "$small KiB, then $large KiB"
    # Linux counts the memory of a process in batches of some pages.
    [ "$small" -gt 500 ] &&
        [ "$large" -le $((small + small / 20 + 256)) ]
}

@test "what is measured is measured" {
    # What keeps its input is no filter.
    run is_flat "peak python3 -c 'import sys; sys.stdin.buffer.read()'"
    [ "$status" -eq 1 ]
    [[ $output = *" KiB, then "*" KiB" ]]
}

@test "packstream" {
    is_flat 'peak packstream -T1 -L 64 -d 8'
}

# Which blocks are touched depends on the time, so there is more to compare.
@test "packstream on threads" {
    local options small large
    for options in -T2 "-T3 --zstd=1"; do
        small=$(records 40 | eval "peak packstream -L 64 -d 8 $options")
        large=$(records 200 | eval "peak packstream -L 64 -d 8 $options")
        echo "$small KiB, then $large KiB"
        [ "$large" -le $((small + 3072)) ]
    done
}

@test "packstream, u32 tokens, split into pieces" {
    is_flat 'peak packstream -T1 -t u32 -L 10 --overlong=split' --width=4
}

@test "packstream with rejects" {
    is_flat 'peak packstream -T1 -L 10 --overlong=truncate --rejects=rejects'
}

@test "packstream, compressed input" {
    skip_without zstd
    is_flat 'zstd -q -1 | peak packstream -T1 -L 64'
}

@test "packcat, in the order of the input" {
    is_flat 'packstream -L 64 | peak packcat'
}

@test "packcat, joining pieces" {
    is_flat 'packstream -L 10 --overlong=split | peak packcat'
}

@test "packcat, in the order of the packs" {
    is_flat 'packstream -L 64 | peak packcat --order=pack'
}

@test "packcat --to=jsonl" {
    is_flat 'packstream -L 64 | peak packcat --to=jsonl'
}

@test "packstat" {
    is_flat 'packstream -L 64 | peak packstat'
}

@test "packstat --verify" {
    is_flat 'packstream -L 64 | peak packstat --verify'
}

@test "packstat --verify, pieces" {
    is_flat 'packstream -L 10 --overlong=split | peak packstat --verify'
}

@test "packstat --histogram, token records" {
    is_flat 'peak packstat --histogram'
}

@test "packstream by each algorithm" {
    local name
    for name in spfhp nnlshp bestfit nextfit concat; do
        is_flat "peak packstream -T1 -L 64 -d 8 -w 256 -a $name"
    done
}

@test "packstream in other orders" {
    is_flat 'peak packstream -T1 -L 64 -d 8 --shuffle=3'
    is_flat 'peak packstream -T1 -L 64 -d 8 --order=input'
}

@test "packstream, the depth chosen by itself" {
    is_flat 'peak packstream -T1 -L 64 -d auto'
}

@test "packcat, after a long delay" {
    is_flat 'packstream -L 64 --shuffle=3 --max-delay=20000 | peak packcat'
}

# worst [OPTION]...: the memory that a window takes in KiB when every
# sequence is as long as a pack, $capacity tokens, and $window are held.
worst() {
    local least most
    printf '%d 1\n' "$capacity" >hist
    least=$(records 1 --hist=hist |
        peak packstream -T1 -L "$capacity" -a bestfit -w 1)
    most=$(records 40 --hist=hist |
        peak packstream -T1 -L "$capacity" -a bestfit -w "$window" "$@")
    echo $((most - least))
}

@test "packstream takes no more than its page says, at worst" {
    local window=4096 capacity=2048 took
    took=$(worst)
    echo "$took KiB"
    # The formula of packstream(1), and the same margin as above.
    [ "$took" -le $(((3 * window * capacity * 2 / 2 +
        90 * window) / 1024 + 256)) ]
    # The window was full indeed.
    [ "$took" -ge $((window * capacity * 2 / 1024)) ]
}

@test "packstream -M takes no more payload than that" {
    local window=4096 capacity=2048 took
    took=$(worst -M 2Mi)
    echo "$took KiB"
    [ "$took" -le $((3 * 2048 / 2 + 90 * window / 1024 + 256)) ]
    [ "$took" -ge 2048 ]
}
