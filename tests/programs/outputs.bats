#!/usr/bin/env bats
# outputs.bats - a file that is there is cut for an output only when all has
# been checked that can be known before the first byte.
#
# SPDX-License-Identifier: MIT

load ../support/helpers

setup() {
    start
    { record16 1 2 3; record16 4 5; } >in
    packstream -L 8 -o in.pks in
    echo precious >old
    cp old before
}

# keeps PROGRAM [ARGUMENT]...: fails, and leaves `old` as it was.
keeps() {
    run "$@"
    [ "$status" -ne 0 ]
    cmp old before
}

@test "packstream: what is wrong with another file" {
    keeps packstream -L 8 --overlong=drop --rejects=no/such/file -o old in
    keeps packstream -L 8 --state=no/such/file -o old in
    keeps packstream -L 8 -o old in missing
    [[ $output == "packstream: missing: "* ]]
    mkdir folder
    keeps packstream -L 8 -o old in folder
    keeps packstream -L 8 -o old in.pks
    keeps packstream -L 8 -o old missing
    # Neither are rejects that were there.
    keeps packstream -L 8 --overlong=drop --rejects=old -o no/such/file in
    keeps packstream -L 8 --overlong=drop --rejects=old -o new in missing
}

@test "packstream: what is wrong with the job" {
    keeps packstream -L 8 --pad-id=70000 -o old in
    keeps packstream -L 8 -t u32 -o old in.pks
    keeps packstream -L 100000000 -o old in
    packstream -L 8 --state=s -o out in
    keeps packstream -L 9 --state=s --resume -o old in
    { printf '\x03\0\0\0'; } >./cut
    keeps packstream -L 8 -o old cut missing
}

@test "packstream: a job that goes on with later packs has its own file" {
    for k in 1 2 3 4 5 6 7 8 9; do record16 "$k" 2 3 4 5 6; done >./more
    packstream -L 8 -o whole more
    packstream -L 8 --resume-from=4 -o old more
    cmp old <(head -c 4096 whole; tail -c +$((4096 + 4 * $(stride whole) + 1)) \
        whole)
}

@test "packstream: compressed, over a file that is there" {
    packstream -L 8 -d 2 --zstd in >whole
    for _ in 1 2 3 4 5 6 7 8; do
        packstream -L 8 -d 2 --zstd -o old in
        cmp old whole
    done
    packstream -L 8 -d 2 --state=s --zstd -o old in
    cmp old whole
}

# stride FILE: bytes of a record.
stride() {
    od -An -t u4 -j 20 -N 4 "$1" | tr -d ' '
}

@test "tokcat: what is wrong with an input" {
    keeps tokcat --from=npy -o old in
    keeps tokcat --from=llmc -o old in
    keeps tokcat --from=tfrecord -o old in
    echo '{"ids": [1]}' >x.jsonl
    keeps tokcat --from=jsonl -o old x.jsonl
    echo 1 2 3 >ids
    keeps tokcat --from=ids -o old ids missing
    [[ $output == "tokcat: missing: "* ]]
    keeps tokcat --from=megatron -o old missing
}

@test "packcat: what is wrong with an input" {
    keeps packcat -o old in.pks missing
    [[ $output == "packcat: missing: "* ]]
    keeps packcat -o old --to=npy in
    keeps packcat -o old missing
}

@test "an output that is there is cut when all is well" {
    packstream -L 8 -o old in
    cmp old in.pks
    head -c 100000 /dev/zero >old
    packcat -o old in.pks
    cmp old in
    head -c 100000 /dev/zero >old
    packcat --to=ids -o old in.pks
    [ "$(cat old)" = $'1 2 3\n4 5' ]
    head -c 100000 /dev/zero >old
    tokcat --from=ids --raw -o old <(printf '1 2 3\n4 5\n')
    cmp old in
}
