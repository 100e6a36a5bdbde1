#!/usr/bin/env bats
# packcat-range.bats - packcat --range: exactly the packs in the range, from
# plain and compressed files and pipes.
#
# head, tail and dd cut the expected output from the whole, independently of
# our code: rows have one size, and od finds the number of sequences in the
# header of each pack.
#
# SPDX-License-Identifier: MIT

load ../support/helpers

# shellcheck disable=SC2034 # for refused
speaker="packcat: "

setup_file() {
    cd "$BATS_FILE_TMPDIR" || return 1
    some_packs
}

# x.raw has only the rows of x.pks.
setup() {
    start
    cp "$BATS_FILE_TMPDIR"/x.* .
    stride=$(number x.pks 20 4)
    packs=$(number x.pks $((4096 + 8)) 4)
    [ "$packs" -gt 300 ]
    heads=$((4160 + packs * stride))
    head -c "$heads" x.pks | tail -c +4161 >x.raw
}

# cut_out FIRST END: the rows from FIRST up to END, of x.raw.
cut_out() {
    if [ "$2" -gt "$1" ]; then
        head -c $(($2 * stride)) x.raw | tail -c +$(($1 * stride + 1))
    fi
}

# sequences FIRST END: the number of sequences in these packs.
sequences() {
    head -c $((heads + $2 * 40)) x.pks | tail -c +$((heads + $1 * 40 + 1)) |
        od -An -v -tu4 -w40 | awk '{ n += $4 } END { print n + 0 }'
}

# rows FILE...: the rows of an npy file, in packcat's format.
rows() {
    packcat -q --to=npy "$@" >out.npy
    tail -c +4097 out.npy
}

# gives RANGE FIRST END: the range has these packs, for every kind of input.
gives() {
    cut_out "$2" "$3" >wanted
    rows --range="$1" x.pks | cmp - wanted
    rows --range="$1" x.zst | cmp - wanted
}

@test "a range works like a Python slice" {
    local n=$packs
    gives : 0 "$n"
    gives 0: 0 "$n"
    gives :0 0 0
    gives 0:1 0 1
    gives 7:8 7 8
    gives 100:250 100 250
    gives 250:100 0 0
    gives 9:9 0 0
    gives -1: $((n - 1)) "$n"
    gives -5:-2 $((n - 5)) $((n - 2))
    gives :-1 0 $((n - 1))
    gives 10:-10 10 $((n - 10))
    gives -3:-9 0 0
    gives -0: 0 "$n"
}

@test "a range beyond the packs is clipped, as in Python" {
    gives $((packs - 1)):$((packs + 100)) $((packs - 1)) "$packs"
    gives "$packs": 0 0
    gives 1T:2T 0 0
    gives 0k:1k 0 $((packs < 1000 ? packs : 1000))
    gives -1T:3 0 3
    gives :18446744073709551615 0 "$packs"
    gives 5:18446744073709551614 5 "$packs"
}

@test "an invalid range is a usage error" {
    local bad
    for bad in 5 '' 1:2:3 a:b 1:x -:3 --1: 1-:3 0x1: ' 1:2' '1 :2' \
        18446744073709551616: 000000000000000000000000000000000001:2; do
        refused 64 "--range=$bad: must be A:B" packcat --range="$bad" x.pks
    done
    refused 64 '--range=5: must be A:B, A: or :B, for packs A to B - 1: 5:6 '\
'is only pack 5' packcat --range=5 x.pks
    refused 64 '--range: needs a value' packcat --range
    refused 64 'order of the packs' packcat --range=1: --order=input x.pks
}

@test "a pipe gives the same packs" {
    local range
    for range in 0:1 :250 100:250 300:301 100:1T :; do
        rows --range="$range" x.pks >wanted
        [ -s wanted ]
        packcat -q --to=rows --range="$range" x.pks >rows
        packcat -q --to=rows --range="$range" < <(piped x.pks) |
            cmp - rows
        packcat -q --to=rows --range="$range" < <(piped x.zst) |
            cmp - rows
    done
}

@test "a pipe has no end to count from" {
    cat x.pks >copy
    refused 64 'negative numbers need a seekable file' \
        sh -c 'cat x.pks 2>/dev/null | packcat --range=-1:'
    refused 64 'negative numbers need a seekable file' \
        sh -c 'cat x.pks 2>/dev/null | packcat --range=:-1 copy -'
}

@test "stdin that is a file is read as a file, from its start" {
    rows --range=-3: x.pks >wanted
    packcat -q --to=npy --range=-3: <x.pks | tail -c +4097 | cmp - wanted
    packcat -q --to=npy --range=-3: <x.zst | tail -c +4097 | cmp - wanted
    (
        head -c 5 >/dev/null
        refused 64 'negative numbers need' packcat --range=-3:
    ) <x.pks
    { cat x.tok; cat x.pks; } >both
    packcat -q --to=rows --range=9:20 x.pks >wanted
    (
        dd bs="$(size x.tok)" count=1 of=first status=none
        packcat -q --to=rows --range=9:20
    ) <both | cmp - wanted
}

@test "zstd frames without a seek table are read in full" {
    zstd -q x.pks -o plain.zst || skip "zstd is not installed"
    packcat -q --to=rows --range=250:260 x.pks >wanted
    packcat -q --to=rows --range=250:260 plain.zst | cmp - wanted
    refused 64 'no seek table' packcat --range=-1: plain.zst
}

@test "every form has the same packs, and no others" {
    local form range
    for form in jsonl ids bytes rows; do
        packcat -q --to="$form" --order=pack x.pks >whole
        for range in 1 77 300; do
            {
                packcat -q --to="$form" --range=:$range x.zst
                packcat -q --to="$form" --range=$range: x.zst
            } | cmp - whole
        done
    done
    for range in 0:1 5:9 100:300; do
        packcat -q --to=ids --range=$range x.pks | wc -l >lines
        [ "$(cat lines)" -eq "$(sequences ${range%:*} ${range#*:})" ]
        packcat -q --to=jsonl --range=$range x.pks | wc -l | cmp - lines
    done
}

@test "records of a range are a complete stream of token records" {
    local range
    for range in : 0:1 100:300 5:5; do
        packcat -q --range=$range x.zst >y.tok
        packstat -q --verify y.tok
        packcat -q --to=ids --range=$range x.pks >wanted
        packstream -q -L 64 -a nextfit -d 1 y.tok |
            packcat -q --to=ids | cmp - wanted
    done
}

@test "split sequences are written in pieces" {
    packstream -q -L 8 --overlong=split x.tok >s.pks
    packcat -q --to=ids --order=pack s.pks >whole
    packcat -q --to=ids --range=: s.pks | cmp - whole
    packcat -q --to=ids --range=3:4 s.pks >piece
    [ -s piece ]
    grep -qxFf piece whole
}

@test "packs are numbered across joined streams and several files" {
    local range
    cat x.pks x.pks >two.pks
    cat x.zst x.zst x.zst >three.zst
    cat x.raw x.raw x.raw >all
    mv all x.raw
    for range in "$((packs - 2)):$((packs + 3))" "0:$((2 * packs))" \
        "$((packs + 7)):$((packs + 8))"; do
        cut_out "${range%:*}" "${range#*:}" >wanted
        rows --range="$range" two.pks | cmp - wanted
        rows --range="$range" x.pks x.zst | cmp - wanted
        rows --range="$range" three.zst | cmp - wanted
        packcat -q --to=rows --range="$range" two.pks >rows
        piped x.zst | packcat -q --to=rows --range="$range" - x.pks |
            cmp - rows
    done
    rows --range=-3: three.zst >wanted
    rows --range=-3: x.zst x.pks | cmp - wanted
    rows --range=-$((packs + 3)):-"$packs" x.pks two.pks | cmp - wanted
}

@test "packs before and after INDEX blocks are found" {
    local range
    seq 9000 | tokcat -q --from=ids |
        packstream -q -L 1 -a none --block-packs=1 >many.pks
    packcat -q --to=ids many.pks | cmp - <(seq 9000)
    cat many.pks many.pks >two.pks
    for range in 0:3 4094:4099 8190:8195 8998:9000; do
        packcat -q --to=ids --range=$range many.pks |
            cmp - <(seq $((${range%:*} + 1)) "${range#*:}")
        packcat -q --to=ids --range=$((${range%:*} + 9000)):$((${range#*:} + \
            9000)) two.pks | cmp - <(seq $((${range%:*} + 1)) "${range#*:}")
    done
}

@test "a range of files that do not fit together" {
    packstream -q -L 32 --overlong=drop x.tok >other.pks
    packcat -q --to=rows --range=0:5 x.pks other.pks >rows
    refused 65 'cannot be joined to' packcat -q --to=rows --range=1: x.pks \
        other.pks
}

@test "npy of a range can be loaded, also from a file to a pipe" {
    skip_without_numpy
    packcat -q --to=npy --range=3:10 x.zst | cat >a.npy
    packcat -q --to=npy --range=3:10 -o b.npy x.pks
    cmp a.npy b.npy
    "$PYTHON_NUMPY" -c '
import numpy
assert numpy.array_equal(numpy.load("a.npy")["tokens"],
                         numpy.fromfile("x.raw", "<u2").reshape(-1, 64)[3:10])'
    packcat -q --to=npy --range=5:3 -o none.npy x.pks
    "$PYTHON_NUMPY" -c '
import numpy
assert numpy.load("none.npy").shape == (0,)'
}

# A file is read only in the range; a pipe up to its end.
@test "damage is detected where it is read" {
    cp x.pks bad.pks
    flip bad.pks $((4160 + 50 * stride + 99))
    packcat -q --to=rows --range=51: bad.pks >rows
    packcat -q --to=rows --range=51: x.pks | cmp - rows
    packcat -q --to=rows --range=:50 bad.pks >rows
    refused 65 'pack 50 in the block at byte 4096' \
        packcat -q --to=rows --range=45:55 bad.pks
    refused 65 'pack 50 in the block at byte 4096' \
        sh -c 'cat bad.pks | packcat -q --to=rows --range=51:'
    packcat -q --to=rows --range=:50 <bad.pks >/dev/null
    # Earlier packs have been written.
    packcat -q --to=rows --range=45:50 x.pks >wanted
    packcat -q --to=rows --range=45:55 bad.pks 2>message >rows || true
    cmp rows wanted
}

@test "a truncated file is refused before anything is written" {
    local n
    for n in 1 99 "$stride" $((stride + 1)) $((100 * stride)); do
        head -c -"$n" x.pks >cut.pks
        refused 65 'no complete END' packcat -q --to=rows --range=0:1 cut.pks
        [ -z "$output" ]
    done
    head -c -9 x.zst >cut.zst
    refused 65 'cut' packcat -q --to=rows --range=0:1T cut.zst
}

@test "a pipe is read no further than the range" {
    packstream -q -L 64 --block-packs=2 x.tok >two.pks
    packcat -q --to=rows --range=5:10 >rows < <(
        head -c "$(block_at two.pks 5)" two.pks
        cat x.tok
    )
    packcat -q --to=rows --range=5:10 x.pks | cmp - rows
}

@test "packs before a range of a file are not read" {
    skip_without strace
    skip_if_sanitized # their search for leaks is not to be traced
    strace -f -e trace=read,pread64 -o trace \
        packcat -q --to=rows --range=300:301 x.pks >rows
    [ "$(size rows)" -eq 128 ]
    # The header twice, END and the pack.
    awk -F '= ' '/pread64/ { n += $NF } END { exit n > 20000 }' trace
}
