#!/usr/bin/env bats
# packstat-against.bats - packstat --verify --against: packs match their input
# with options of every kind, and match no other input.
#
# Most packs refused here are valid in themselves, but made from a slightly
# different input; the others were changed, and their checksums updated.
#
# SPDX-License-Identifier: MIT

# Word splitting of options is intended.
# shellcheck disable=SC2086

load ../support/helpers

# One in EVERY similar cases is tried; all of them with LONG.
one_in=7
[ -z "${LONG-}" ] || one_in=1

at='in the block at byte 4096'

# ids SEED N MOST: N lines of 1 to MOST token ids below 5000.
ids() {
    draw "$2" "$3" 5000 "$1"
}

# raw FILE: raw u16 records of the lines of ids on stdin.
raw() {
    tokcat -q --from=ids --raw >"$1"
}

# with_channels FILE: framed records of the lines of ids on stdin, with two
# channels for each token and two for each sequence.
with_channels() {
    awk '{
        line = "{\"input_ids\": [" $1
        labels = -$1
        mask = 0
        for (i = 2; i <= NF; i++) {
            line = line ", " $i
            labels = labels ", " 3 * $i
            mask = mask ", " $i % 2
        }
        printf "%s], \"labels\": [%s], \"source\": %d, ", line, labels, NR
        printf "\"loss_mask\": [%s], \"weight\": %d.5}\n", mask, NF
    }' | tokcat -q --from=jsonl --channel=source:u64 --channel=weight:f64 \
        >"$1"
}

# same PACKS OPTION...: the packs hold the input that the options name.
same() {
    run --separate-stderr packstat --verify "${@:2}" "$1"
    printf '%s\n' "$*: $status: $output$stderr"
    [ "$status" -eq 0 ]
    [ -z "$stderr" ]
    [[ $output == "$1: OK ("*"; all of the input: "*")" ]]
}

# packs OPTION...: makes x.pks, all of x.tok.
packs() {
    packstream -q "$@" -o x.pks x.tok
    same x.pks --against=x.tok
}

# tampered WHY FIELD N...: x.pks with these numbers is valid in itself, but does
# not match x.tok.
tampered() {
    poke x.pks "${@:2}"
    packstat --verify -q x.pks
    differs x.pks "$1" --against=x.tok
}

# differs PACKS WHY OPTION...: they do not match; WHY is a pattern for the
# message after the packs' name.
differs() {
    fails 65 "$1: $2" --verify "${@:3}" "$1"
}

# fails STATUS WHY OPTION...: packstat fails and prints only WHY, a pattern.
fails() {
    run --separate-stderr packstat "${@:3}"
    printf '%s\n' "${*:3}: $status: $output$stderr"
    [ "$status" -eq "$1" ]
    [ -z "$output" ]
    # shellcheck disable=SC2053 # the right side is a pattern
    [[ $stderr == "packstat: "$2 ]]
}

# --------------------------------------------------------- command line

@test "options that need another, or exclude each other, are usage errors" {
    record16 1 2 3 >x.tok
    packstream -L 8 -o x.pks x.tok
    while read -r options; do
        fails 64 "*" $options <x.tok
    done <<'END'
--against=x.tok x.pks
--verify --rejects=x.tok x.pks
--verify --vocab=5 x.pks
--verify --empty x.pks
--verify --against=x.tok --vocab=0 x.pks
--verify --against=x.tok x.pks x.pks
--verify --against=- -
--verify --against=-
--verify --against=x.tok --rejects=- -
--verify --against=- --against=- x.pks
--verify --against x.tok --quick x.pks
--verify --against
END
}

@test "a missing or failing input is a failure" {
    record16 1 2 3 >x.tok
    packstream -L 8 -o x.pks x.tok
    for options in --against=no.tok "--against=x.tok --against=no.tok" \
        --against=. "--against=x.tok --rejects=no.tok"; do
        fails 1 "*" --verify $options x.pks
    done
    differs x.tok "token records, but --against needs a pack stream" \
        --against=x.tok
    differs x.pks "*" --against=x.pks
    tokcat -q --from=ids <<<'1 2 3' >x.tok
    packstream -q -L 8 -o x.pks x.tok
    cp x.tok y.tok
    flip y.tok $(($(size y.tok) - 1))
    head -c $(($(size x.tok) - 32)) x.tok >z.tok
    for input in y z; do
        fails 65 "$input.tok: *" --verify --against=$input.tok x.pks
    done
}

@test "the output for packs that match their input" {
    { record16 1 2 3; record16 4; } >a.tok
    record16 5 6 7 8 9 >b.tok
    packstream -L 4 --overlong=truncate -o x.pks a.tok b.tok
    run packstat --verify --against=a.tok --against=b.tok x.pks
    [ "$output" = "x.pks: OK (2 packs, 3 sequences, 8 tokens; all of the \
input: 3 sequences, 9 tokens; 0 dropped, 1 truncated, 0 split)" ]
    run -0 packstat --verify -q --against=a.tok --against=b.tok x.pks
    [ -z "$output" ]
    packstat --verify --json --against=a.tok --against=b.tok x.pks >against
    packstat --verify --json x.pks >alone
    sed 's/}$/, "against": ["a.tok", "b.tok"]}/' alone | diff -u - against
    cmp <(packstat --verify --histogram --against=a.tok --against=b.tok \
        x.pks) <(packstat --histogram x.pks)
}

@test "either of packs and input may be a pipe" {
    ids 1 50 9 | raw x.tok
    packstream -q -L 16 x.tok >x.pks
    packstat --verify -q --against=- x.pks <x.tok
    packstat --verify -q --against=x.tok <x.pks
    packstat --verify -q --against=x.tok - <x.pks
    packstat --verify -q --against=<(cat x.tok) <(cat x.pks)
    ids 2 50 9 | raw y.tok
    run ! packstat --verify -q --against=- x.pks <y.tok
    run ! packstat --verify -q --against=y.tok <x.pks
}

# ------------------------------------------------------------ good packs

# Sequences of up to 60 tokens, most of them longer than some packs.
@test "packs made with options of every kind match their input" {
    ids 3 700 60 >x.ids
    raw raw.tok <x.ids
    with_channels framed.tok <x.ids
    while read -r options; do
        for input in raw framed; do
            packstream -q $options -o x.pks $input.tok
            same x.pks --against=$input.tok
        done
    done <<'END'
-L 4096 -d 64
-L 64 -d 1 -w 1
-L 64 --shuffle=7 -w 30 --max-delay=60
-L 64 --order=input
-L 64 -a bestfit -w 64 --even-cost
-L 64 -a none --block-packs=256
-L 64 --flush-every=10
-L 7 -a concat
-L 64 --zstd --shuffle=3 -T 3
-L 20 --overlong=drop --zstd -w 9
-L 2 --overlong=drop
-L 20 --overlong=truncate --shuffle=5 -w 11
-L 1 --overlong=truncate
-L 20 --overlong=split --shuffle=8 -w 40
-L 1 --overlong=split
-L 7 --overlong=split -d 2 -w 9 --order=input
END
}

@test "inputs of u32, compressed, in several files, and empty" {
    ids 4 60 9 >x.ids
    tokcat -q --from=ids --raw --type=u32 <x.ids >wide.tok
    packstream -q -t u32 -L 16 -o x.pks wide.tok
    same x.pks --against=wide.tok
    same x.pks --against=wide.tok -t u32
    raw a.tok <x.ids
    ids 5 1 9 | raw b.tok
    : >none.tok
    packstream -q -L 16 -o x.pks a.tok none.tok b.tok a.tok
    same x.pks --against=a.tok --against=none.tok --against=b.tok \
        --against=a.tok
    packstream -q -L 16 --vocab=6000 -o x.pks a.tok
    same x.pks --against=a.tok
    packstream -q -L 16 -o x.pks none.tok
    same x.pks --against=none.tok
    { record16 1 2 3; u32 0; record16 4; u32 0; } >flush.tok
    packstream -q -L 16 --flush-records -o x.pks flush.tok
    same x.pks --against=flush.tok
    with_channels framed.tok <x.ids
    packstream -q -L 16 -o x.pks framed.tok framed.tok
    same x.pks --against=framed.tok --against=framed.tok
    skip_without zstd
    zstd -q framed.tok
    same x.pks --against=framed.tok.zst --against=framed.tok
}

@test "joined packs match the joined inputs" {
    ids 6 40 9 | raw a.tok
    ids 7 25 30 | raw b.tok
    : >none.tok
    packstream -q -L 16 -o a.pks a.tok
    packstream -q -L 16 --overlong=drop -o b.pks b.tok
    packstream -q -L 16 -o none.pks none.tok
    cat a.pks none.pks b.pks b.pks a.pks >x.pks
    same x.pks --against=a.tok --against=b.tok --against=b.tok \
        --against=a.tok
    differs x.pks "*" --against=a.tok --against=b.tok --against=a.tok \
        --against=b.tok
    differs x.pks "pack * in the block *: sequence 0 should be in the input, \
but b.tok ends before record 90" \
        --against=a.tok --against=b.tok --against=b.tok
}

# More than 2^24 consecutive sequences that need not be in a pack: none may be
# kept in memory, and the next one is not too far ahead.
# bats test_tags=night
@test "any number of sequences can be dropped" {
    record16 0 0 >two
    for _ in $(seq 16); do
        cat two two >four
        mv four two
    done
    input() {
        record16 1
        for _ in $(seq 257); do
            cat two
        done
        record16 2
    }
    input | packstream -q -L 1 --overlong=drop -o x.pks
    run packstat --verify --against=- x.pks < <(input)
    [ "$output" = "x.pks: OK (2 packs, 2 sequences, 2 tokens; all of the \
input: 16842754 sequences, 33685506 tokens; 16842752 dropped, 0 truncated, \
0 split)" ]
}

# --------------------------------------------- packs of another input

# altered HOW: changes the lines on stdin in some way.
altered() {
    case $1 in
        first-missing) sed 1d ;;
        one-missing) sed 20d ;;
        last-missing) sed '$d' ;;
        doubled) sed 20p ;;
        added) sed '20i 1 2 3' ;;
        last-added) sed '$a 1 2 3' ;;
        swapped) sed '20{h;d};21{G}' ;;
        far-swapped) awk '{ l[NR] = $0 } END { t = l[3]; l[3] = l[90]
            l[90] = t; for (i = 1; i <= NR; i++) print l[i] }' ;;
        token) sed '20s/[0-9]*$/4321/' ;;
        first-token) sed '1s/^[0-9]*/4321/' ;;
        tokens-swapped) sed '20s/^\([0-9]*\) \([0-9]*\)/\2 \1/' ;;
        shorter) sed '20s/ [0-9]*$//' ;;
        longer) sed '20s/$/ 9/' ;;
        moved-token) sed '20{N;s/ \([0-9]*\)\n/\n\1 /}' ;;
        nothing) : ;;
    esac
}

@test "packs do not match a slightly different input" {
    skip_if_quick
    ids 8 100 12 >x.ids
    raw x.tok <x.ids
    with_channels x.framed <x.ids
    for how in first-missing one-missing last-missing doubled added \
        last-added swapped far-swapped token first-token tokens-swapped \
        shorter longer moved-token nothing; do
        altered $how <x.ids >y.ids
        run ! cmp -s x.ids y.ids
        raw y.tok <y.ids
        with_channels y.framed <y.ids
        for options in "-L 16 --shuffle=3 -w 20" "-L 4 --overlong=split"; do
            packstream -q $options -o y.pks y.tok
            same y.pks --against=y.tok
            differs y.pks "*" --against=x.tok
            packstream -q $options -o x.pks x.tok
            differs x.pks "*" --against=y.tok
        done
        [ "$how" != nothing ] || continue
        packstream -q -L 16 -o y.pks y.framed
        differs y.pks "*" --against=x.framed
    done
}

@test "every byte of a raw input matters" {
    ids 9 14 6 | raw x.tok
    packstream -q -L 8 -d 3 -o x.pks x.tok
    [ "$(size x.tok)" -gt 100 ]
    for byte in $(seq 0 $one_in $(($(size x.tok) - 1))); do
        cp x.tok y.tok
        flip y.tok "$byte" 4
        run packstat --verify --against=y.tok x.pks
        echo "byte $byte: $status: $output"
        [ "$status" -eq 65 ]
        head -c "$byte" x.tok >y.tok
        run packstat --verify --against=y.tok x.pks
        echo "cut at $byte: $status: $output"
        [ "$status" -eq 65 ]
    done
}

@test "token records of another kind do not match" {
    ids 10 20 6 >x.ids
    raw x.tok <x.ids
    tokcat -q --from=ids --raw --type=u32 <x.ids >wide.tok
    tokcat -q --from=ids <x.ids >framed.tok
    tokcat -q --from=ids --type=u32 <x.ids >framed32.tok
    tokcat -q --from=ids --vocab=7000 <x.ids >vocab.tok
    with_channels channels.tok <x.ids
    packstream -q -L 8 -o x.pks x.tok
    packstream -q -L 8 -o framed.pks framed.tok
    while read -r packs input why; do
        fails 65 "$input.tok: not the input of these packs: $why" \
            --verify --against=$input.tok $packs
    done <<'END'
x.pks framed records are framed, not raw
framed.pks x records are raw, not framed
framed.pks framed32 tokens are u32, not u16
framed.pks vocab vocab_size is 7000, not none
framed.pks channels unexpected channel 'source'
END
    fails 65 "*not the input of these packs: tokens are u32, not u16" \
        --verify -t u32 --against=wide.tok x.pks
    # Read as u16, its records do not even end at the end of the file.
    fails 65 "*" --verify --against=wide.tok x.pks
}

# --------------------------------------------------------- messages

@test "missing and extra sequences are named" {
    { record16 1 2 3; record16 4 5; record16 6; } >x.tok
    packstream -q -L 3 -d 1 -w 1 -o x.pks x.tok
    { record16 1 2 3; record16 4 5; } >y.tok
    differs x.pks "pack 2 $at: sequence 2 should be in the \
input, but y.tok ends before record 2" --against=y.tok
    { cat x.tok; record16 7; } >y.tok
    differs x.pks "END of stream 0: input_sequences is 3, but \
y.tok continues with record 3 at byte 24" --against=y.tok
    { record16 1 2 3; record16 4 5 6; record16 6; } >y.tok
    differs x.pks "pack 1 $at: sequence 1 has 2 tokens, not 3 as in \
record 1 at byte 10 of y.tok*" --against=y.tok
}

@test "a missing sequence that would fit a pack" {
    { record16 1 2 3 4; record16 5 6; record16 7; } >x.tok
    packs -L 3 -d 1 -w 1 --overlong=drop
    # The totals still balance with sequence 1 dropped instead of 0.
    tampered "pack 0 $at: sequence 0 has 2 tokens, not 4 as in \
record 0 at byte 0 of x.tok
packstat: x.pks: pack 0 $at: sequence 1 is not in any pack \
so far: record 1 at byte 12 of x.tok*" "0 seq_id 0" 0
}

@test "ten differences are reported and the others counted" {
    ids 12 40 5 | raw x.tok
    ids 13 40 5 | raw y.tok
    packstream -q -L 8 -o x.pks x.tok
    run -65 packstat --verify --against=y.tok x.pks
    [ "${#lines[@]}" -eq 11 ]
    [[ ${lines[10]} == "packstat: x.pks: ... and "*" more faults" ]]
}

# ------------------------------------- packs that were tampered with

# fives: x.tok, twelve different sequences of five tokens, and x.pks, a pack for
# each two of them.
fives() {
    skip_without python3
    seq 10 10 120 | awk '{ print $1, $1 + 1, $1 + 2, $1 + 3, $1 + 4 }' |
        raw x.tok
    packs -L 10 -d 2 -w 4 --order=input
    cp x.pks good.pks
}

@test "every token of every pack matters" {
    fives
    for pack in 0 3 5; do
        for token in 0 4 8; do
            cp good.pks x.pks
            tampered "pack $pack in the block *: token $((token % 5)) of \
sequence * is 9, not * as in record * at byte * of x.tok" \
                "$pack tokens $token" 9
        done
    done
    # So does every channel.
    { echo '{"input_ids": [1, 2], "labels": [3, 4], "weight": 5}'
      echo '{"input_ids": [6], "labels": [7], "weight": 8}'; } >x.jsonl
    tokcat -q --from=jsonl x.jsonl >x.tok
    packs -L 4
    sed 's/4\]/9]/' x.jsonl | tokcat -q --from=jsonl >y.tok
    differs x.pks "pack 0 $at: 'labels' of token 1 of sequence 0 \
differs from record 0 at byte 264 of y.tok" --against=y.tok
    sed 's/8}/9}/' x.jsonl | tokcat -q --from=jsonl >y.tok
    differs x.pks "pack 0 $at: 'weight' of sequence 1 \
differs from record 1 at byte 284 of y.tok" --against=y.tok
}

@test "a watermark that leaves no more sequences" {
    fives
    poke x.pks "2 watermark" 12
    differs x.pks "*pack 2 in the block *: sequence * is not in any pack \
so far: record * at byte * of x.tok*" --against=x.tok
    cp good.pks x.pks
    poke x.pks "2 watermark" 18446744073709551615
    differs x.pks "*sequence 12 should be in the input, but x.tok ends \
before record 12*" --against=x.tok
}

@test "with split sequences none is too long to be packed" {
    { record16 1 2; record16 3; } >x.tok
    packstream -q -L 4 --overlong=split -o x.pks x.tok
    record16 4 5 6 7 8 >>x.tok
    tampered "END of stream 0: sequence 2 is not in any pack so far: \
record 2 at byte 14 of x.tok*" "end input_sequences" 3 "end input_tokens" 8 \
        "end rejected_sequences" 1 "end rejected_tokens" 5
}

@test "an id far out of bounds" {
    fives
    for id in 16777300 9223372036854775807 18446744073709551614; do
        cp good.pks x.pks
        poke x.pks "0 seq_id 0" $id
        differs x.pks "*pack 0 $at: sequence $id is more than \
16777216 ahead of sequence *, which is missing so far*" --against=x.tok
    done
}

# pieces PLACES...: x.pks, a pack for each of three pieces of a sequence of 24
# tokens, with changes.
pieces() {
    # shellcheck disable=SC2046 # the words are the tokens
    record16 $(seq 24) >x.tok
    packstream -q -L 8 -d 1 -w 4 --overlong=split x.tok >x.pks
    same x.pks --against=x.tok
    poke x.pks "$@"
}

@test "incomplete pieces, or pieces of another sequence" {
    pieces "2 piece_off 0" 8
    differs x.pks "*token 8 of sequence 0 is repeated*" --against=x.tok
    pieces "2 piece_off 0" 17 "0 full_len 0" 25 "1 full_len 0" 25 \
        "2 full_len 0" 25
    differs x.pks "*pack 0 $at: sequence 0 has 25 tokens, not 24 \
as in record 0 at byte 0 of x.tok*" --against=x.tok
    pieces "2 piece_off 0" 4294967295
    differs x.pks "*a piece of 8 at token 4294967295*" --against=x.tok
}

@test "totals that are consistent but do not match the input" {
    { record16 1 2 3 4 5; record16 6 7; record16 8 9 10 11; } >x.tok
    packs -L 3 --overlong=drop
    tampered "END of stream 0: input_tokens is 12, but must \
be 11 for this input
packstat: x.pks: END of stream 0: rejected_tokens is 10, but must \
be 9 for this input" "end rejected_tokens" 10 "end input_tokens" 12
    packs -L 3 --overlong=truncate
    tampered "END *: truncated_sequences is 1, but must be 2 for this input" \
        "end truncated_sequences" 1
    tampered "END *: truncated_tokens is 4, but must be 3 for this input" \
        "end truncated_sequences" 2 "end truncated_tokens" 4 \
        "end input_tokens" 12
}

@test "the window in the header bounds the order exactly" {
    skip_without python3
    ids 14 300 12 | raw x.tok
    for options in "-L 12 -d 2 -w 50" "-L 12 -w 9 --shuffle=1" \
        "-L 5 --overlong=split -w 20 --shuffle=2"; do
        packstream -q $options -o x.pks x.tok
        least=$(model window x.pks)
        [ "$least" -gt 10 ]
        poke x.pks "header 56" "$least"
        same x.pks --against=x.tok
        tampered "pack * in the block *: sequence * comes after $least \
sequences or pieces with higher ids, but the window allows $((least - 1))*" \
            "header 56" $((least - 1))
    done
}

# ------------------------------------------------------------- rejects

@test "rejects are the sequences that were dropped or truncated" {
    ids 15 200 30 >x.ids
    raw raw.tok <x.ids
    with_channels framed.tok <x.ids
    for input in raw framed; do
        for how in drop truncate; do
            packstream -q -L 16 --overlong=$how --rejects=r.tok -o x.pks \
                $input.tok
            same x.pks --against=$input.tok --rejects=r.tok
        done
        # There are none.
        packstream -q -L 64 --overlong=drop --rejects=r.tok -o x.pks \
            $input.tok
        same x.pks --against=$input.tok --rejects=r.tok
    done
}

@test "with rejects every byte of an input matters" {
    { record16 1 2 3 4 5 6; record16 7 8; record16 9 10 11 12; } >x.tok
    for how in drop truncate; do
        packstream -q -L 3 --overlong=$how --rejects=r.tok -o x.pks x.tok
        missed=0
        for byte in $(seq 0 $((one_in / 3 + 1)) $(($(size x.tok) - 1))); do
            cp x.tok y.tok
            flip y.tok "$byte" 64
            run packstat --verify --against=y.tok --rejects=r.tok x.pks
            echo "byte $byte: $status: $output"
            [ "$status" -eq 65 ]
            packstat --verify -q --against=y.tok x.pks 2>message ||
                continue
            missed=$((missed + 1))
        done
        # Without rejects, sequences missing from the packs are not detected.
        [ "$missed" -ge 2 ]
    done
}

@test "rejects of another run do not match" {
    { record16 1 2 3 4 5; record16 6 7; record16 8 9 10 11; } >x.tok
    packstream -q -L 3 --overlong=drop --rejects=r.tok -o x.pks x.tok
    packstream -q -L 3 --overlong=truncate --rejects=cut.tok -o cut.pks x.tok
    differs x.pks "pack * in the block *: sequence 0 is dropped, but in \
cut.tok with reason 2: record 0 at byte 0 of x.tok*" \
        --against=x.tok --rejects=cut.tok
    differs cut.pks "pack * in the block *: sequence 0 is truncated, but in \
r.tok with reason 1: record 0 at byte 0 of x.tok*" \
        --against=x.tok --rejects=r.tok
    packstream -q -L 4 --overlong=drop --rejects=few.tok x.tok >few.pks
    differs x.pks "pack * in the block *: sequence 2 was dropped, but is not \
in few.tok: record 2 at byte 22 of x.tok" \
        --against=x.tok --rejects=few.tok
    differs few.pks "pack * in the block *: sequence 2 is completely in packs, but \
in r.tok with reason 1: record 2 at byte 22 of x.tok" \
        --against=x.tok --rejects=r.tok
    { cat x.tok; record16 1 2 3 4; } >long.tok
    packstream -q -L 3 --overlong=drop --rejects=more.tok long.tok >/dev/null
    differs x.pks "END of stream 0: record 2 at byte * of more.tok, \
sequence 3, is beyond the end of the input" \
        --against=x.tok --rejects=more.tok
    cp x.tok other.tok
    flip other.tok 6
    packstream -q -L 3 --overlong=drop --rejects=other.r other.tok >/dev/null
    differs x.pks "*of other.r, sequence 0, differs from the \
input*" --against=x.tok --rejects=other.r
}

# rejects.bats tests every reason.
@test "sequences dropped for a token, or because they are empty" {
    { record16 1 2; record16 3 9; record16 4 5 6 9; u32 0; record16 7; } >x.tok
    drop="--vocab=9 --out-of-vocab=drop --empty=drop"
    packstream -q -L 3 --overlong=drop $drop --rejects=r.tok -o x.pks x.tok
    packstream -q -L 3 --overlong=split $drop --rejects=s.tok -o s.pks x.tok
    packstream -q -L 4 $drop --rejects=t.tok -o t.pks x.tok
    for packs in x s t; do
        same $packs.pks --empty --against=x.tok
        [ $packs = x ] || same $packs.pks --empty --against=x.tok \
            --rejects=s.tok
    done
    same x.pks --empty --against=x.tok --rejects=r.tok
    # Either of two reasons is reported.
    same x.pks --empty --against=x.tok --rejects=s.tok
    differs s.pks "*sequence 2 is dropped for a token, but in r.tok with \
reason 1: record 2 at byte 16 of x.tok" \
        --empty --against=x.tok --rejects=r.tok
    packstream -q -L 3 --overlong=drop --rejects=e.tok -o e.pks x.tok \
        --empty=drop
    differs x.pks "*sequence 1 was dropped for a token, but is not in e.tok: \
record 1 at byte 8 of x.tok" --empty --against=x.tok --rejects=e.tok
    # A valid sequence cannot be missing.
    { record16 1 2; record16 3 8; record16 4 5 6 9; u32 0; record16 7; } >y.tok
    differs x.pks "*sequence 1 is not in any pack so far: record 1 at byte 8 \
of y.tok*" --empty --against=y.tok
}

@test "rejects in another order, or of another kind" {
    printf '%s\n' '{"input_ids":[1,2,3,4],"source_id":1,"reason":1}' \
        '{"input_ids":[5,6,7,8],"source_id":0,"reason":1}' |
        tokcat -q --from=jsonl --channel=source_id:u64 --channel=reason:u8 \
            >r.tok
    { record16 5 6 7 8; record16 1 2 3 4; record16 9; } >x.tok
    packstream -q -L 3 --overlong=drop -o x.pks x.tok
    differs x.pks "*record 1 at byte * of r.tok, sequence 0, is out of \
order*" --against=x.tok --rejects=r.tok
    tokcat -q --from=ids <<<'5 6 7 8' >plain.tok
    fails 65 "plain.tok: not rejects of this input: channel \
'source_id' is missing" --verify --against=x.tok --rejects=plain.tok x.pks
}

# -------------------------------------------------------------- memory

# Half a million more sequences: a few bytes for each would show.
@test "memory depends on the displacement, not the input" {
    skip_if_sanitized
    skip_without python3
    peak() {
        support memory.py "$@"
    }
    local status=0
    peak true </dev/null >/dev/null 2>&1 || status=$?
    [ "$status" != 77 ] || skip "this system does not tell a peak of memory"
    seq -f '%g 1' 16 >even
    for options in "-L 14 --overlong=drop" \
        "-L 4 --overlong=split --shuffle=1"; do
        for n in 2 12; do
            "${abs_top_builddir:?}/tests/bench/gen" "--bytes=${n}000000" \
                --hist=even >x.tok
            packstream -q $options -o x.pks x.tok
            peak packstat -q --verify --against=x.tok <x.pks >peak.$n
        done
        echo "$options: $(cat peak.2) KiB, then $(cat peak.12) KiB"
        # Two threads do not always get equally far ahead of one another.
        [ "$(cat peak.12)" -le $(($(cat peak.2) + 2000)) ]
    done
}
