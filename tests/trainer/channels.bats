#!/usr/bin/env bats
# channels.bats - channels of any type that the BERT example accepts, and its
# defaults without them.
#
# SPDX-License-Identifier: MIT

load ../support/helpers

setup() {
    start_training
}

# lines: forty sequences with all channels.
lines() {
    awk 'BEGIN {
        for (i = 0; i < 40; i++) {
            ids = types = labels = ""
            n = 2 + i * 7 % 11
            for (k = 0; k < n; k++) {
                comma = k ? "," : ""
                ids = ids comma (k ? 5 + (i * 13 + k * 5) % 50 : 2)
                types = types comma (k > n / 2)
                labels = labels comma (k % 3 == 1 ? 5 + (i + k) % 50 : -100)
            }
            printf "{\"input_ids\":[%s],\"token_type_ids\":[%s]," \
                "\"labels\":[%s],\"next_sentence_label\":%d}\n", ids, types,
                labels, i % 2
        }
    }'
}

# packs [OPTION]... <LINES: packs of 16 tokens; options are tokcat's.
packs() {
    tokcat -q --from=jsonl --vocab=60 --pad-id=0 --cls-id=2 --mask-id=4 "$@" |
        packstream -q -t "${token:-u16}" -L 16
}

# train [OPTION]...: a very small BERT; prints its losses.
train() {
    packtrain --hidden=16 --packs=4 --stats=json --report=1 "$@" >told ||
        return
    sed 's/, "seconds.*//' told
}

# typed TYPES LABELS NEXT: trains with all channels, of these types.
typed() {
    packs -t "${token:-u16}" --channel=token_type_ids:"$1" \
        --channel=labels:"$2":-100 --channel=next_sentence_label:"$3"
}

@test "channels of all integer types train the same" {
    lines >some
    typed u8 i32 i32 <some >a.pks
    train a.pks >wanted
    [ "$(wc -l <wanted)" -gt 3 ]
    for types in "u16 i64 u8" "u32 i64 u16" "u64 i64 u32" "i32 i32 u64" \
        "i64 i64 i64"; do
        # shellcheck disable=SC2086
        typed $types <some >b.pks
        train b.pks | cmp - wanted
    done
    token=u32
    typed u8 i32 i32 <some >b.pks
    train b.pks | cmp - wanted
    typed u64 i64 i64 <some | train | cmp - wanted
}

@test "numbers out of range are reported unchanged" {
    one() {
        printf '%s\n' "$1" | tokcat -q --from=jsonl -t u32 "${@:2}" |
            packstream -q -t u32 -L 16 >b.pks
    }
    one '{"input_ids":[1,4294967294]}' --mask-id=4
    refused 65 "pack 0: tokens of 4294967294, must be from 0 to 59" \
        train --vocab=60 b.pks
    local type value
    for value in u32:4294967295 i32:-1 i64:9223372036854775807; do
        type=${value%:*} value=${value#*:}
        one "{\"input_ids\":[1,2],\"token_type_ids\":[0,$value]}" \
            --mask-id=4 --channel=token_type_ids:"$type"
        refused 65 "token_type_ids of $value, must be from 0 to 1" \
            train --vocab=60 b.pks
    done
    for value in u32:4294967295 i64:-2147483649 i64:4294967296; do
        type=${value%:*} value=${value#*:}
        one "{\"input_ids\":[1,2],\"next_sentence_label\":$value}" \
            --mask-id=4 --channel=next_sentence_label:"$type"
        refused 65 "next_sentence_label of $value, must be from -1 to 1" \
            train --vocab=60 b.pks
    done
    one '{"input_ids":[1,2],"labels":[-100,4294967296]}' --channel=labels:i64
    refused 65 "labels of 4294967296, must be from 0 to 59" \
        train --vocab=60 b.pks
    one '{"input_ids":[1,2],"labels":[-100,4294967196]}' --channel=labels:i64
    refused 65 "labels of 4294967196, must be" train --vocab=60 b.pks
}

@test "labels of a type without -100 are refused, with a remedy" {
    printf '{"input_ids":[5,6],"labels":[5,6]}\n' >some
    for type in u8 u16 u32 u64; do
        packs --channel=labels:$type <some >a.pks
        refused 64 "a.pks: channel labels is $type, which cannot hold -100" \
            train a.pks
        [[ $output == *"tokcat --channel=labels:i32:-100"* ]]
    done
    packs --channel=labels:i32:-100 <some >a.pks
    train a.pks
}

@test "labels of tokens that are not masked are refused" {
    tokens=$(seq -s , 5 40)
    printf '{"input_ids":[%s],"labels":[%s]}\n' "$tokens" "$tokens" |
        tokcat -q --from=jsonl --vocab=60 --pad-id=0 --mask-id=4 \
            --channel=labels:i32:-100 | packstream -q -L 40 -o a.pks
    refused 64 "a.pks: pack 0 has labels, but no token is masked: BERT and \
ModernBERT predict masked tokens" train a.pks
}

@test "--mask is refused if there are labels, in any of the files" {
    lines >some
    typed u8 i32 i32 <some >a.pks
    packs --ignore=labels --ignore=token_type_ids \
        --ignore=next_sentence_label <some >b.pks
    refused 64 "a.pks: has labels: --mask is for streams without labels" \
        train --mask=0.15 a.pks
    refused 64 "a.pks: has labels" train --mask=0 a.pks
    refused 64 "a.pks: has labels" train --mask=0.2 b.pks a.pks
    # The default is 0.15, also for a checkpoint.
    train --steps=2 --save=s b.pks >one
    train --steps=4 --save=s --resume --mask=0.15 b.pks >two
    train --mask=0.15 b.pks >three
    cat one two | cmp - <(head -n 4 three)
    refused 64 "s: saved with mask=0.15, not with mask=0.2" \
        train --save=s --resume --mask=0.2 b.pks
}

@test "data without labels and masks is refused, next sentences are enough" {
    lines >some
    packs --ignore=labels --channel=token_type_ids:u8 \
        --ignore=next_sentence_label <some >a.pks
    refused 64 "a.pks: nothing to learn: no labels, no next_sentence_label, \
and --mask=0" train --mask=0 a.pks
    packs --ignore=labels --ignore=token_type_ids \
        --channel=next_sentence_label:i32 <some >b.pks
    train --mask=0 b.pks >out
    grep -q '"mlm": 0, "nsp": 0\.[0-9]' out
}

@test "a run without labels in any step reports that" {
    printf '{"input_ids":[5,6],"labels":[-100,-100]}\n%.0s' {1..20} >none
    lines >some
    packs --channel=labels:i32:-100 <none >a.pks
    refused 65 "a.pks: nothing was learnt: no step had a target" train --packs=1 a.pks
    # Special tokens are never masked.
    printf '{"input_ids":[2,0]}\n' | packs >b.pks
    refused 65 "nothing was learnt" train b.pks
    packs --channel=next_sentence_label:i32 >c.pks <<'END'
{"input_ids":[2,0],"next_sentence_label":-1}
END
    refused 65 "nothing was learnt" train --mask=0 c.pks
    # One step is enough, also one before --resume.
    packs --channel=labels:i32:-100 --ignore=token_type_ids \
        --ignore=next_sentence_label <some >d.pks
    train --packs=1 a.pks d.pks
    local steps
    steps=$(packstat --json d.pks |
        sed -n 's/.*"packs": *\([0-9]*\).*/\1/p')
    train --packs=1 --save=s --steps="$steps" d.pks a.pks
    train --packs=1 --save=s --resume d.pks a.pks >rest
    [ -s rest ]
    run -1 grep -v '"mlm": 0, "nsp": 0,' rest
}
