#!/usr/bin/env bats
# seekable.bats - compressed pack streams follow packstream(5): a reader
# written from the page alone finds each block in its frame.
#
# SPDX-License-Identifier: MIT

load ../support/helpers

setup() {
    start
    skip_without zstd python3
}

# frames FILE: reads the seek table by the rules of the page, and checks each
# frame with the zstd program.  Prints the decompressed size of each frame.
frames() {
    python3 - "$@" <<'END'
import struct, subprocess, sys

data = open(sys.argv[1], "rb").read()
plain = open(sys.argv[2], "rb").read()
n, descriptor, magic = struct.unpack("<IBI", data[-9:])
assert magic == 0x8F92EAB1 and descriptor == 0
table = len(data) - 17 - 8 * n
assert struct.unpack_from("<II", data, table) == (0x184D2A5E, 9 + 8 * n)
at = plain_at = 0
for i in range(n):
    size, plain_size = struct.unpack_from("<II", data, table + 8 + 8 * i)
    frame = data[at:at + size]
    assert frame[:4] == b"\x28\xb5\x2f\xfd"
    assert frame[4] & 4  # a checksum
    out = subprocess.run(["zstd", "-dc"], input=frame, check=True,
                         stdout=subprocess.PIPE).stdout
    assert out == plain[plain_at:plain_at + plain_size]
    at += size
    plain_at += plain_size
    print(plain_size)
assert at == table and plain_at == len(plain)
END
}

# laid_out: x.sizes has the sizes of the header of x.pks and of its blocks.
laid_out() {
    local at=4096 bytes
    {
        echo 4096
        while [ "$at" -lt "$(size x.pks)" ]; do
            bytes=$(number x.pks $((at + 24)) 8)
            echo "$bytes"
            at=$((at + bytes))
        done
    } | cmp - x.sizes
}

# check OPTION...: compares both forms of one stream.
check() {
    packstream -q "$@" x.tok >x.pks
    packstream -q --zstd=1 "$@" x.tok >x.zst
    zstd -dcq x.zst | cmp - x.pks
    frames x.zst x.pks >x.sizes
    laid_out
}

@test "packs of many sizes, one frame and many" {
    seq 20000 | factor | tokcat -q --from=bytes >x.tok
    check -L 64
    [ "$(wc -l <x.sizes)" -eq 3 ]
    check -L 64 --block-packs=64
    check -L 64 -a none
    [ "$(wc -l <x.sizes)" -gt 4 ]
    seq 2000 | tokcat -q --from=bytes >x.tok # large packs, but few
    check -L 2000
    check -L 300000 --block-packs=2
    check -L 2000000
    [ "$(sed -n 2p x.sizes)" -gt 4000000 ]
    : >x.tok # without packs
    check -L 64
    [ "$(wc -l <x.sizes)" -eq 2 ]
}

@test "all levels give the same packs" {
    local level
    some_packs
    for level in 1 3 10 19; do
        packstream -q --zstd=$level -L 64 x.tok >x.zst
        zstd -dcq x.zst | cmp - x.pks
        packcat -q --to=rows --range=-7:-3 x.zst >rows
        packcat -q --to=rows --range=-7:-3 x.pks | cmp - rows
    done
}

@test "joined files are one, for zstd and for us" {
    some_packs
    cat x.pks x.pks x.pks >three.pks
    cat x.zst x.zst x.zst >three.zst
    zstd -dcq three.zst | cmp - three.pks
    packcat -q --to=ids three.zst >ids
    packcat -q --to=ids three.pks | cmp - ids
    packstat --verify three.zst
}

# refused PATTERN FILE: programs that read it from the start report PATTERN.
refused() {
    local command
    for command in "packcat --to=ids" packstat "packstat --verify"; do
        # shellcheck disable=SC2086 # words
        run -65 --separate-stderr $command <"$2"
        # shellcheck disable=SC2053,SC2154 # a pattern
        [[ $stderr == ${command%% *}": stdin: "$1 ]] ||
            { echo "$stderr"; return 1; }
    done
}

@test "a table that is missing, cut, damaged or of another stream" {
    some_packs
    packstream -q -L 32 --zstd x.tok >y.zst
    local table all
    all=$(size x.zst)
    table=$((all - 17 - 8 * $(od -An -tu4 -j $((all - 9)) -N 4 x.zst)))
    head -c "$table" x.zst >z.zst
    refused "the compressed input ends at byte $table, without the seek \
table of its *" z.zst
    # zstd itself accepts this.
    zstd -tq z.zst
    head -c $((table + 20)) x.zst >z.zst
    refused "the zstd frame is truncated *" z.zst
    cp x.zst z.zst
    flip z.zst $((table + 13)) 8
    zstd -tq z.zst
    refused "the seek table at byte $table of the compressed input does not\
 match the frames before it" z.zst
    cat z.zst x.zst >two.zst
    refused "the seek table at byte $table *" two.zst
    { head -c "$table" x.zst; cat x.zst; } >two.zst
    refused "the seek table at byte $((2 * table)) *" two.zst
    { head -c "$table" x.zst; tail -c $((all - table)) y.zst; } >z.zst
    refused "the seek table at byte $table *" z.zst
    packcat <x.zst | cmp - x.tok
}

@test "streams that are not seekable need no table" {
    some_packs
    zstd -q <x.pks | packcat | cmp - x.tok
    packstream -q -L 64 --zstd x.tok | zstd -dcq | packcat | cmp - x.tok
    packstream -q -L 64 --zstd x.tok | zstd -dcq | zstd -q -B1 |
        packstat --verify -q
    { zstd -q <x.pks; packstream -q -L 64 --zstd x.tok; } | packstat -q
}

# Written by another program, with checksums in the table and frames cut without
# regard to records.
@test "files made seekable by another program" {
    some_packs
    python3 - <<'END'
import struct, subprocess
plain = open("x.pks", "rb").read()
out, entries = b"", b""
for at in range(0, len(plain), 33333):
    part = plain[at:at + 33333]
    frame = subprocess.run(["zstd", "-qc"], input=part, check=True,
                           stdout=subprocess.PIPE).stdout
    out += frame
    entries += struct.pack("<III", len(frame), len(part), 0x5eed)
n = len(entries) // 12
table = entries + struct.pack("<IBI", n, 0x80, 0x8F92EAB1)
open("y.zst", "wb").write(
    out + struct.pack("<II", 0x184D2A5E, len(table)) + table)
END
    packcat -q --to=npy --range=: -o a.npy x.pks
    packcat -q --to=npy --range=: -o b.npy y.zst
    cmp a.npy b.npy
    packcat -q --to=rows --range=-3: y.zst >rows
    packcat -q --to=rows --range=-3: x.pks | cmp - rows
}
