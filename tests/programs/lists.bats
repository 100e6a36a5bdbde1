#!/usr/bin/env bats
# lists.bats - list channels: each sequence has a list of its own length, which
# goes into an array of its own in the rows.
#
# SPDX-License-Identifier: MIT

load ../support/helpers

setup() {
    start
    skip_without python3
}

@test "random lists and vectors are packed whole, also after a resume" {
    support lists.py trials 0 "${LONG:+20}10"
}
