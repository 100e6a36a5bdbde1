#!/usr/bin/env bats
# budget.bats - packstream --budget: no pack exceeds it, and nothing is lost.
#
# SPDX-License-Identifier: MIT

# bad_option uses `program` and `operands`.
# shellcheck disable=SC2034

load ../support/helpers

setup() {
    start
    skip_without python3
}

@test "random budgets agree with a model, also after a resume" {
    support budget.py trials 0 "${LONG:+20}10"
}
