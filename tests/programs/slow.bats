#!/usr/bin/env bats
# slow.bats - packstream between a reader that stops and a writer that trickles:
# it uses no more memory, and holds no output back.
#
# SLOW_SECONDS sets for how long (default: 1 second).
#
# SPDX-License-Identifier: MIT

load ../support/helpers

setup() {
    start
    skip_if_quick
    skip_without python3
    skip_if_sanitized
    [ -r "/proc/$$/statm" ] || skip "this system does not tell of memory"
    seconds=${SLOW_SECONDS:-1}
}

# live NAME ARGUMENT...: runs a check in Python.
live() {
    support packlive.py "$@"
}

@test "a reader that stops for a while" { live stalled_reader "$seconds"; }

@test "a writer of one byte at a time" {
    live slow_writer "$seconds" 0.05
    [ "$seconds" -lt 30 ] || live slow_writer "$seconds" 1
}
