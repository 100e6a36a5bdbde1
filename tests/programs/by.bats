#!/usr/bin/env bats
# by.bats - packstream --by: sequences of one value share packs, at no cost.
#
# SPDX-License-Identifier: MIT

# bad_option uses `program` and `operands`.
# shellcheck disable=SC2034

load ../support/helpers

setup() {
    start
}

# topics N: JSON lines of N sequences of 1 to 60 tokens on 8 topics.
topics() {
    awk -v n="$1" 'BEGIN {
        srand(5)
        for (k = 0; k < n; k++) {
            printf "{\"topic\": %d, \"mask\": [", int(8 * rand()) - 3
            m = int(1 + 60 * rand() * rand())
            for (i = 0; i < m; i++) printf "%s1", i ? ", " : ""
            printf "], \"input_ids\": ["
            for (i = 0; i < m; i++) printf "%s%d", i ? ", " : "", k % 900
            print "]}"
        }
    }' | tokcat -q --from=jsonl --channel=mask:u8
}

# of_first FILE: percentage of sequences with the topic of the pack's first.
of_first() {
    packstat --by=topic "$1" |
        sed -nE 's/^  ([0-9]+)\.[0-9]+% of the other.*/\1/p'
}

packs() {
    packstat --json "$1" | grep -o '"packs": [0-9]*' | tr -dc '0-9'
}

@test "topics share packs, as many packs as without" {
    topics 12000 >x.tok
    for options in -w1024 -w4096 --align=4 --order=input; do
        packstream -L 128 "$options" -o plain.pks x.tok
        packstream -L 128 "$options" --by=topic -o by.pks x.tok
        packstat --verify -q --against=x.tok by.pks
        echo "$options: $(of_first plain.pks) $(of_first by.pks)" \
            "$(packs plain.pks) $(packs by.pks)"
        # One in eight, by chance.
        [ "$(of_first plain.pks)" -le 15 ]
        [ "$(of_first by.pks)" -ge 40 ]
        [ "$(packs by.pks)" -le $(($(packs plain.pks) + 2)) ]
    done
    packcat by.pks | cmp - x.tok
    packstat --json --by=topic by.pks | grep -qE '"same": 0\.[4-9]'
    packstat --json --by=topic x.tok | grep -q '"same": null'
}

@test "a job that packs by topic resumes" {
    topics 3000 >x.tok
    for options in '' --shuffle=3 --zstd; do
        packstream -L 128 --by=topic $options -o whole x.tok
        rm -f s
        refused 65 truncated packstream -L 128 --by=topic $options --state=s \
            --state-every=20 -o out - < <(head -c 90000 x.tok)
        packstream -L 128 --by=topic $options --state=s --resume -o out x.tok
        cmp whole out
    done
    rm s
    refused 65 truncated packstream -L 128 --by=topic --state=s \
        --state-every=20 -o out - < <(head -c 90000 x.tok)
    refused 64 'saved with a channel to pack by' packstream -L 128 --state=s \
        --resume -o out x.tok
}

@test "what sequences cannot be packed by is refused" {
    local program=packstream operands=(-L 128 x.tok)
    topics 40 >x.tok
    bad_option "the sequences have no channel 'x' to pack by" --by=x
    bad_option "channel 'mask' has a value per token, but one per sequence \
is needed to pack by" --by=mask
    bad_option 'packing by a channel needs policy auto, not bestfit' \
        --by=topic -a bestfit
    bad_option 'packing by a channel cannot be combined with groups' \
        --by=topic --group=topic
    bad_option 'packing by a channel cannot be combined with budgets' \
        --by=topic --budget=topic:9
}
