#!/usr/bin/env bats
# terminal.bats - a message does not stand in the rest of a progress line.
#
# SPDX-License-Identifier: MIT

load ../support/helpers

# fails_cleanly FIRST LAST PROG...: see terminal.py.
fails_cleanly() {
    support terminal.py "$@"
}

setup() {
    start
    skip_without python3
    seq 500 >text
    tokcat --from=ids --raw text >text.tok
    packstream -L 2 -w 1 text.tok >text.pks
}

@test "tokcat wipes its line before a message" {
    echo x >bad
    fails_cleanly text bad tokcat --from=ids
}

@test "tokmix wipes its line before a message" {
    record16 1 2 3 >short
    truncate -s 5 short
    { cat text.tok short; } >bad
    fails_cleanly text.tok short tokmix 1=-
}

@test "tokshuf wipes its line before a message" {
    record16 1 2 3 >short
    truncate -s 5 short
    fails_cleanly text.tok short tokshuf
    fails_cleanly text.tok short tokshuf --no-shuffle
}

@test "packstream wipes its line before a message" {
    record16 1 2 3 >long
    head -c 5 long >short
    fails_cleanly text.tok long packstream -L 2
    fails_cleanly text.tok short packstream -L 2
}

@test "packcat wipes its line before a message" {
    echo x >bad
    fails_cleanly text.pks bad packcat
    fails_cleanly text.pks bad packcat --to=rows
}

@test "packstat wipes its line before a message" {
    echo x >bad
    fails_cleanly text.pks bad packstat
    fails_cleanly text.pks bad packstat --verify
    record16 1 >short
    truncate -s 5 short
    fails_cleanly text.tok short packstat
}
