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

# rows N: JSON lines of N sequences with up to 40 tokens and 8 tiles.
rows() {
    awk -v n="$1" 'BEGIN {
        srand(3)
        for (k = 0; k < n; k++) {
            printf "{\"tiles\": %d, \"score\": 0.5, \"g\": %d, \"mask\": [",
                int(8 * rand()), k / 2
            m = int(1 + 40 * rand())
            for (i = 0; i < m; i++) printf "%s1", i ? ", " : ""
            printf "], \"input_ids\": ["
            for (i = 0; i < m; i++) printf "%s%d", i ? ", " : "", k % 900
            print "]}"
        }
    }' | tokcat -q --from=jsonl --channel=mask:u8
}

@test "the statistics show what a budget is used for" {
    rows 4000 >x.tok
    packstream -L 512 --budget=tiles:64 --budget=attention:30000 -o x.pks x.tok
    packstat --verify -q --against=x.tok x.pks
    packcat x.pks | cmp - x.tok
    packstat x.pks >out
    grep -E '^  budgets        tiles +64, 9[0-9.]+% used, max 6[0-4]$' out
    grep -E '^                 attention +30,000, [0-9.]+% used, max ' out
    packstat --json x.pks | grep -oF '"budgets": [{"name": "tiles", "limit": 64'
    # Without budgets, nothing is printed.
    packstream -L 512 x.tok | packstat - >out
    run ! grep budgets out
    # Shares keep them.
    packdeal -b 4 --ranks=2 -o 's%d.pks' x.pks
    packstat --verify -q s0.pks s1.pks
    packstat s0.pks | grep -F '  budgets'
}

@test "what cannot be a budget is refused" {
    local program=packstream operands=(-L 128 x.tok)
    rows 40 >x.tok
    for budget in tiles tiles: :5 tiles:0 tiles:x tiles:9T; do
        bad_option "--budget=$budget: must be CHANNEL:N or attention:N, N \
from 1 to 8Ti" --budget=$budget
    done
    bad_option "the sequences have no channel 'x' for a budget" --budget=x:5
    bad_option "channel 'mask' has a value per token, but one per sequence \
is needed for a budget" --budget=mask:5
    bad_option "channel 'score' has type f32, but a budget needs integers" \
        --budget=score:5
    bad_option "budget 'tiles' is given twice" --budget=tiles:9 \
        --budget=tiles:9
    bad_option '--budget=e:1: exceeds the limit of 4 budgets' --budget=a:1 \
        --budget=b:1 --budget=c:1 --budget=d:1 --budget=e:1
    bad_option '--budget needs -a auto, not -a bestfit' --budget=tiles:9 \
        -a bestfit
    bad_option "--budget and --even-cost cannot be combined: use \
--budget=attention:N" --budget=tiles:9 --even-cost
    bad_option '--budget and --learn-from cannot be combined' \
        --budget=tiles:9 --learn-from=x.tok
    bad_option "budget 'attention' must be at least the square of the \
alignment, 16" --budget=attention:200 --align=16
}

@test "a sequence that exceeds a budget is an error, or dropped" {
    printf '{"tiles": %s, "input_ids": [1, 2, 3, 4]}\n' 3 9 -1 2 |
        tokcat -q --from=jsonl >x.tok
    refused 65 ': tiles is 9, but a pack can hold 0 to 8: use --overlong=drop' \
        packstream -L 16 --budget=tiles:8 -o x.pks x.tok
    refused 65 'tiles is 9, but' packstream -L 16 --budget=tiles:8 \
        --overlong=truncate -o x.pks x.tok
    refused 65 ': tiles is -1, but a pack can hold 0 to 80' packstream -L 16 \
        --budget=tiles:80 -o x.pks x.tok
    refused 65 '4 tokens exceed 3, the most that the budget for attention' \
        packstream -L 16 --budget=attention:15 -o x.pks x.tok
    packstream -L 16 --budget=tiles:8 --overlong=drop --rejects=r.tok \
        -o x.pks x.tok
    packcat --to=jsonl x.pks | grep -oE '"tiles":[-0-9]+' | tr -dc '0-9\n' |
        paste -s -d ' ' | grep -Fx '3 2'
    packstat r.tok | grep -E '^  sequences +2$'
    packstat --verify -q --against=x.tok --rejects=r.tok x.pks
}

@test "a state is for its budgets" {
    rows 400 >x.tok
    refused 65 truncated packstream -w 20 -L 128 --budget=tiles:9 --state=s \
        --state-every=2 -o out - < <(head -c 9000 x.tok)
    for other in '' --budget=tiles:8 '--budget=tiles:9 --budget=attention:9000'; do
        # Word splitting intended: a list of options.
        # shellcheck disable=SC2086
        refused 64 'saved with different budgets' packstream -w 20 -L 128 $other \
            --state=s --resume -o out x.tok
    done
    packstream -w 20 -L 128 --budget=tiles:9 --state=s --resume -o out x.tok
    packstream -w 20 -L 128 --budget=tiles:9 x.tok | cmp - out
}
