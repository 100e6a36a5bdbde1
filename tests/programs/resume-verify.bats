#!/usr/bin/env bats
# resume-verify.bats - packstream --resume --verify reads all earlier output
# before it continues.
#
# SPDX-License-Identifier: MIT

# Word splitting of options is intended.
# shellcheck disable=SC2086

load ../support/helpers
load ../support/resumed

# Flips a bit of byte $2 of file $1.
flip() {
    python3 - "$1" "$2" <<'EOF'
import sys
with open(sys.argv[1], "r+b") as file:
    file.seek(int(sys.argv[2]))
    byte = file.read(1)[0] ^ 16
    file.seek(-1, 1)
    file.write(bytes([byte]))
EOF
}

@test "--verify needs a state to resume from, and a file" {
    run -64 packstream -L 256 --state=s --verify x
    [[ $output == *"--verify needs --resume"* ]]
    run -64 packstream -L 256 --resume-from=9 --verify x
    [[ $output == *"--verify needs --resume and --state=FILE"* ]]
    # A new job has nothing to verify.
    packstream -q -L 256 --state=s --resume --verify -o out x
    rm s out
    packstream -q -L 256 --state=s x | cat >out
    cp s s.before
    run -64 packstream --state=s --resume -L 256 --verify --resume-from=9 x
    [[ $output == *"stdout is not a file written with this state"* ]]
    cmp s s.before
}

@test "--verify finds damage that samples miss" {
    local options at
    for options in "-L 256" "-L 256 --zstd"; do
        echo "$options"
        rm -f s out
        packstream -q $options x >wanted
        half_done x $options
        cp s half.s
        cp out half
        # All is intact: jobs resume with and without --verify.
        packstream -q $options --state=s --resume --verify -o out x
        cmp wanted out

        for at in 6000 $(($(size half) / 4)) $(($(size half) / 2)); do
            cp half.s s
            cp half out
            flip out "$at"
            refused 65 "out: " out $options --verify -o out x
        done
        packstream -q $options --state=s --resume -o out x
        run cmp -s wanted out
        [ "$status" -eq 1 ]
    done
}

@test "--verify reads a finished job up to its END" {
    local options
    for options in "-L 256" "-L 256 --zstd"; do
        rm -f s
        packstream -q $options --state=s -o out x
        packstream -q $options --state=s --resume --verify -o out x
        flip out $(($(size out) / 2))
        packstream -q $options --state=s --resume -o out x
        refused 65 "out: " out $options --verify -o out x
    done
}

@test "--verify finds similar packs of another job" {
    packstream -q -L 256 --state=s -o out x
    packstream -q -L 256 -o other y
    # Header, last blocks, END and size match the job's.
    python3 - <<'EOF'
import os
size = os.path.getsize("out")
with open("out", "rb") as ours, open("other", "rb") as theirs:
    ours, theirs = ours.read(), theirs.read()
half = 4096 + (size - 4096) // 2
with open("mixed", "wb") as mixed:
    mixed.write(ours[:8192] + theirs[8192:half] + ours[half:])
EOF
    packstream -q -L 256 --state=s --resume -o mixed x
    refused 65 "mixed: " mixed -L 256 --verify -o mixed x
}

@test "--verify reads the rejects" {
    local options="-L 150 --overlong=drop --rejects=r" at
    packstream -q $options -o wanted x
    cp r wanted.r
    rm r
    half_done x $options
    cp s half.s
    cp out half
    cp r half.r
    packstream -q $options --state=s --resume --verify -o out x
    cmp wanted out
    cmp wanted.r r
    packstream -q $options --state=s --resume --verify -o out x
    # In the rejects of the finished job and of the unfinished one.
    for at in 9000 70000; do
        cp wanted.r r
        flip r "$at"
        refused 65 "r: " out $options --verify -o out x
        cp half.s s
        cp half out
        cp half.r r
        flip r "$at"
        refused 65 "r: " out $options --verify -o out x
    done
    packstream -q $options --state=s --resume -o out x
    cmp wanted out
}

@test "--verify ignores bytes that were in the file before the job" {
    packstream -q -L 256 x >px
    packstream -q -L 256 y >py
    cat px py >wanted
    cp px out
    half_done y -L 256
    packstream -q -L 256 --state=s --resume --verify y >>out
    cmp wanted out
    packstream -q -L 256 --state=s --resume --verify y >>out
    cmp wanted out
}
