#!/usr/bin/env bats
# terminal.bats - the progress line is erased before a message is printed.
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

@test "a program erases its line before a message" {
    echo x >bad
    record16 1 2 3 >long
    head -c 5 long >short
    fails_cleanly text bad tokcat --from=ids
    fails_cleanly text.tok short tokmix 1=-
    fails_cleanly text.tok short tokshuf
    fails_cleanly text.tok short tokshuf --no-shuffle
    fails_cleanly text.tok long packstream -L 2
    fails_cleanly text.tok short packstream -L 2
    fails_cleanly text.pks bad packcat
    fails_cleanly text.pks bad packcat --to=rows
    fails_cleanly text.pks bad packstat
    fails_cleanly text.pks bad packstat --verify
    fails_cleanly text.tok short packstat
}
