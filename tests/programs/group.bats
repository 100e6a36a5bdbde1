#!/usr/bin/env bats
# group.bats - packstream --group: groups stay together, fit, and are all there.
#
# SPDX-License-Identifier: MIT

# bad_option uses `program` and `operands`.
# shellcheck disable=SC2034

load ../support/helpers

setup() {
    start
    skip_without python3
}

# pairs N: JSON lines of N groups of 2 or 3 sequences with 1 to 40 tokens.
pairs() {
    awk -v n="$1" 'BEGIN {
        srand(7)
        for (g = 0; g < n; g++)
            for (k = int(2 + 2 * rand()); k > 0; k--) {
                printf "{\"pair\": %d, \"row\": %d, \"mask\": [", g, k
                m = int(1 + 40 * rand())
                for (i = 0; i < m; i++) printf "%s%d", i ? ", " : "", i % 2
                printf "], \"input_ids\": ["
                for (i = 0; i < m; i++) printf "%s%d", i ? ", " : "", g % 900
                print "]}"
            }
    }' | tokcat -q --from=jsonl --channel=mask:u8
}

@test "random groups agree with a model, also after a resume" {
    support group.py trials 0 "${LONG:+20}10"
}

@test "packs of groups are as full as a plan for their lengths" {
    pairs 4000 >x.tok
    packstream -L 512 --group=pair -o x.pks x.tok
    packstat --verify -q --against=x.tok x.pks
    packcat x.pks | cmp - x.tok
    packstat --histogram --group=pair x.tok >hist
    [ "$(awk '{ n += $2 } END { print n }' hist)" -eq 4000 ]
    local bound packs
    bound=$(packplan -L 512 --json hist | grep -o '"lower_bound": [0-9]*' |
        head -n 1 | grep -o '[0-9]*')
    packs=$(packstat --json x.pks | grep -o '"packs": [0-9]*' |
        grep -o '[0-9]*')
    echo "$packs packs, at least $bound"
    [ "$packs" -le $((bound + 2)) ]
    # With an alignment, the lengths are those of packstream.
    packstat --histogram --group=pair --align=16 x.tok >hist
    bound=$(packplan -L 512 --json hist | grep -o '"lower_bound": [0-9]*' |
        head -n 1 | grep -o '[0-9]*')
    packs=$(packstream -L 512 --align=16 --group=pair x.tok |
        packstat --json - | grep -o '"packs": [0-9]*' | grep -o '[0-9]*')
    echo "$packs packs, at least $bound"
    [ "$packs" -ge "$bound" ] && [ "$packs" -le $((bound + bound / 50)) ]
}

@test "what cannot be grouped is refused" {
    local program=packstream operands=(-L 128 x.tok)
    pairs 40 >x.tok
    bad_option "the sequences have no channel 'x' to group by" --group=x
    bad_option "channel 'mask' has a value per token, but one per sequence \
is needed to group by" --group=mask
    bad_option "policy concat cuts sequences wherever a pack ends and cannot \
keep groups together" --group=pair -a concat
    bad_option "depth cannot be combined with groups, which may have more \
sequences" --group=pair -d 4
    bad_option "--rejects with --group needs --overlong=drop or \
--out-of-vocab=drop, not both" --group=pair --overlong=drop \
        --out-of-vocab=drop --rejects=r.tok
    refused 64 "with groups, the capacity must be at most 1048576 times the \
alignment, since a pack has at most as many sequences" packstream -L 2000000 --group=pair x.tok
    refused 65 ", exceeds the capacity, 40: use \
--overlong=split, truncate or drop" packstream -L 40 --group=pair x.tok
    program=packstat operands=(x.tok)
    bad_option '--group needs --histogram' --group=pair
    bad_option '--align needs --group' --align=4 --histogram
    refused 65 "no channel 'mask' with one number per sequence to group by" \
        packstat --histogram --group=mask x.tok
    packstream -L 128 -o x.pks x.tok
    refused 64 '--group needs token records: x.pks has packs' \
        packstat --histogram --group=pair x.pks
}

@test "a state is for one grouping" {
    pairs 400 >x.tok
    refused 65 truncated packstream -w 20 -L 128 --group=pair --state=s \
        --state-every=2 -o out - < <(head -c 9000 x.tok)
    refused 64 'saved with groups' packstream -w 20 -L 128 --state=s \
        --resume -o out x.tok
    refused 64 'saved with groups by another channel' packstream -w 20 \
        -L 128 --group=row --state=s --resume -o out x.tok
    packstream -w 20 -L 128 --group=pair --state=s --resume -o out x.tok
    packstream -w 20 -L 128 --group=pair x.tok | cmp - out
    refused 64 'saved with groups' packstream -w 20 -L 128 --state=s \
        --resume -o out x.tok
    rm s
    packstream -L 128 --state=s -o out x.tok
    refused 64 'saved with no groups' packstream -L 128 --group=pair \
        --state=s --resume -o out x.tok
}
