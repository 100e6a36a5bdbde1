#!/usr/bin/env bats
# packstat.bats - packstat's output, compared with that of
# tests/support/packstat.py, which is written from the format alone; and
# --verify finds every fault.
#
# rules.bats breaks each rule of the format.  Here, poke makes faults that
# checksums do not reveal: it writes a number to a named field of a pack stream
# and updates the checksums.  Most streams here are a single block, at byte
# 4096.
#
# SPDX-License-Identifier: MIT

load ../support/helpers

at='in the block at byte 4096'

# sequences LENGTH...: raw u16 records, their tokens 1, 2, 3 ...
sequences() {
    printf '%s\n' "$@" |
        awk '{ for (i = 1; i <= $1; i++) printf "%d ", i; print "" }' |
        tokcat --from=ids --raw
}

# lengths FILE: the lengths of raw u16 records, found with od and awk.
lengths() {
    od -An -v -tu2 -w2 "$1" | awk '
        left > 0 { left--; next }
        low == "" { low = $1; next }
        { left = low + 65536 * $1; low = ""; print left }'
}

# counted: a `length count` histogram of the lengths on stdin.
counted() {
    awk '{ n[$1]++ } END { for (l in n) print l, n[l] }' | sort -n
}

# small.pks has several packs, each of several sequences; in split.pks two
# sequences are in several pieces.
setup_file() {
    cd "$BATS_FILE_TMPDIR" || return 1
    sequences 5 1 2 7 3 8 1 6 2 4 1 1 3 >small.tok
    packstream -L 8 -d 4 -w 4 small.tok >small.pks
    sequences 5 3 21 2 1 7 30 4 >split.tok
    packstream -L 8 -d 4 -w 4 --overlong=split split.tok >split.pks
}

# small, split: small.tok and small.pks, or split.tok and split.pks.
small() {
    cp "$BATS_FILE_TMPDIR"/small.* .
}

split() {
    cp "$BATS_FILE_TMPDIR"/split.* .
}

# refused FILE WHY: --verify exits with 65 and prints only WHY, a pattern for
# the rest of the line after the file's name.
refused() {
    run --separate-stderr packstat --verify "$1"
    echo "$output$stderr"
    [ "$status" -eq 65 ]
    [ -z "$output" ]
    # shellcheck disable=SC2053 # the right side is a pattern
    [[ $stderr == "packstat: $1: "$2 ]]
}

# damaged FILE WHY PLACE N...: so is x.pks, a copy of FILE with these numbers.
damaged() {
    cp "$1" x.pks
    poke x.pks "${@:3}"
    refused x.pks "$2"
}

# -------------------------------------------------------- command line

@test "options that are unknown or exclude each other are usage errors" {
    for options in --nonsense "-t u8" "-t" "--json --histogram" --json=1; do
        # shellcheck disable=SC2086 # words
        run -64 --separate-stderr packstat $options </dev/null
        [ -z "$output" ]
        [[ $stderr == "packstat: "* ]]
    done
}

@test "empty files and streams" {
    run -0 packstat --histogram /dev/null
    [ -z "$output" ]
    run -0 packstat /dev/null
    [[ $output == *"  sequences      0"* ]]
    run -65 packstat --verify </dev/null
    [ "$output" = \
        "packstat: stdin: the input is empty: nothing to verify" ]
    packstream -L 8 </dev/null >x.pks
    run packstat --verify x.pks
    [ "$output" = "x.pks: OK (0 packs, 0 sequences, 0 tokens)" ]
    run -0 packstat x.pks
    [[ $output == *"  packs          0"* ]]
    [[ $output != *nan* ]]
    [[ $output != *inf* ]]
}

@test "a missing file is reported; the others are read" {
    sequences 1 2 >x.tok
    printf 'x' >bad.tok
    run -1 --separate-stderr packstat --json no.tok x.tok
    [[ $stderr == "packstat: no.tok: "* ]]
    [[ $output == '{"file": "x.tok", "sequences": 2, "tokens": 3,'* ]]
    cp x.tok y.tok
    packstat x.tok no.tok - <y.tok >both 2>/dev/null || [ $? -eq 1 ]
    { packstat x.tok; echo; packstat - <y.tok; } | cmp - both
    # The greatest status is returned.
    run -65 packstat no.tok bad.tok
    run -65 packstat bad.tok no.tok
    run -1 bash -c "packstat <&-"
    [[ $output == "packstat: stdin: "* ]]
}

@test "control characters in a name reach neither terminal nor JSON" {
    name=$'a\n\033"b.tok'
    sequences 1 >"$name"
    run packstat --verify "$name"
    [ "$output" = "a??\"b.tok: OK (1 sequences, 1 tokens, raw: \
without checksums)" ]
    run packstat --json "$name"
    [[ $output == '{"file": "a\n\u001b\"b.tok", '* ]]
    cp "$name" bad
    u8 1 >>"$name"
    run packstat "$name"
    [[ $output == 'packstat: a??"b.tok: record 1 at byte 6: '* ]]
}

@test "writing to a full device or a closed stdout fails" {
    sequences 1 2 3 >x.tok
    for options in "" --json --histogram --verify; do
        run -1 bash -c "packstat $options x.tok >/dev/full"
        [[ $output == "packstat: stdout: "* ]]
        run -1 bash -c "packstat $options x.tok >&-"
        [[ $output == "packstat: stdout: "* ]]
    done
}

# ------------------------------------------------------------- summary

@test "the summary of packs matches the records" {
    small
    run -0 packstat small.pks
    echo "$output"
    for line in \
        "small.pks" \
        "  format         pack stream, version 2.0" \
        "  row            16 bytes" \
        "  sequence row   16 bytes" \
        "  block          32,768 packs, 2,883,648 bytes at most" \
        "  capacity       8 tokens" \
        "  depth cap      4 sequences" \
        "  max delay      8 records" \
        "  sequences      13" \
        "  tokens         44" \
        "  lower bound    6 packs; packs/bound 1.0000" \
        "  packs          6" \
        "  padding        4 tokens" \
        "  efficiency     91.667%" \
        "  bytes          6.182 per byte of tokens" \
        "  packing factor 2.167 sequences per pack"; do
        [[ $'\n'$output$'\n' == *$'\n'"$line"$'\n'* ]]
    done
    [[ $output != *rejected* ]]
    [[ $output != *split* ]]
    packstream -q -L 8 -w 4 small.tok | packstat >uncapped
    run -1 grep 'depth cap' uncapped
}

@test "the rows of the summary's histograms add up to its totals" {
    skip_without python3
    small
    packstat small.pks >summary
    awk '$2 == "packs" && $1 == "depth" { on = 1; next }
        on && NF < 3 { exit } on { n += $2; s += $1 * $2 }
        END { print n, s }' summary >rows
    [ "$(cat rows)" = "6 13" ]
    awk '$2 == "sequences" && $1 == "length" { on = 1; next }
        on { print $1, $2 }' summary | awk '$2 > 0' >rows
    cmp rows <(model lengths small.pks | counted)
}

@test "rejected, truncated and split sequences are in the summary" {
    sequences 1 9 20 3 >x.tok
    run bash -c "packstream -L 8 --overlong=drop x.tok | packstat"
    [[ $output == *"  rejected       2 sequences, 29 tokens"* ]]
    run bash -c "packstream -L 8 --overlong=truncate x.tok | packstat"
    [[ $output == *"  truncated      2 sequences, 13 tokens removed"* ]]
    run bash -c "packstream -L 8 --overlong=split x.tok | packstat"
    [[ $output == *"  split          2 sequences, 3 more pieces"* ]]
}

@test "no line of any summary exceeds 80 columns" {
    small
    split
    printf '{"input_ids": [1, 2], "a_name_of_23_characters": [3, 4]}\n' |
        tokcat --from=jsonl >wide.tok
    for n in 1 70000 2000 65 3 4 5 6 7 8 9; do
        u32 "$n"
        head -c $((2 * n)) /dev/zero
    done >spread.tok
    packstat small.pks split.pks small.tok wide.tok spread.tok >all
    [ "$(wc -l <all)" -gt 80 ]
    [ -z "$(awk 'length > 80' all)" ]
}

@test "a skewed histogram has growing ranges, with all of its counts" {
    for n in 70000 1 1 2 2 3 3 4 5 6 7 8 9; do
        u32 "$n"
        head -c $((2 * n)) /dev/zero
    done >x.tok
    packstat x.tok >summary
    awk '/^ +length +sequences/ { on = 1; next } on { print $1, $2 }' \
        summary >rows
    [ "$(head -n 1 rows)" = "1-3 6" ]
    [ "$(wc -l <rows)" -le 16 ]
    [ "$(awk '{ n += $2 } END { print n }' rows)" -eq 13 ]
    [[ $(tail -n 1 rows) == *"-70000 1" ]]
}

@test "the summary of token records shows lengths and channels" {
    printf '%s\n' '{"input_ids": [1, 2, 3], "labels": [4, 5, 6], "kind": 7}' \
        '{"input_ids": [1], "labels": [-100], "kind": 8}' |
        tokcat --from=jsonl --channel=kind:u8 --channel=labels:i32:-100 \
            >x.tok
    run -0 packstat x.tok
    echo "$output"
    for line in \
        "  format         token records, framed" \
        "  token type     u16" \
        "  sequences      2" \
        "  tokens         4" \
        "  length         min 1, mean 2.00, max 3"; do
        [[ $'\n'$output$'\n' == *$'\n'"$line"$'\n'* ]]
    done
    [[ $output =~ kind\ +u8\ per\ sequence ]]
    [[ $output =~ labels\ +i32\ per\ token ]]
}

# ---------------------------------------------------------------- JSON

@test "--json of packs matches the records" {
    skip_without python3
    small
    split
    sequences 1 9 20 3 8 >x.tok
    packstream -L 8 --overlong=drop x.tok >drop.pks
    packstream -L 8 --overlong=truncate x.tok >cut.pks
    packstream -L 1 -d 1 -w 1 --overlong=drop x.tok >one.pks
    packstream -L 8 </dev/null >empty.pks
    cat small.pks small.pks >twice.pks
    for file in small split drop cut one empty twice; do
        packstat --json "$file.pks" >"$file.json"
        [ "$(wc -l <"$file.json")" -eq 1 ]
        model agree "$file.pks" <"$file.json"
    done
    # The comparison itself can fail:
    run ! model agree small.pks <drop.json
}

# correlations FILE: position and neighbour, rounded to two digits.
correlations() {
    packstat --json "$1" >x.json
    python3 - <<'END'
import json
x = json.load(open("x.json"))
print(*(x[key] if x[key] is None else "%.2f" % x[key]
        for key in ("place_correlation", "neighbour_correlation")))
END
}

@test "lengths that depend on their position are detected" {
    skip_without python3
    # shellcheck disable=SC2046 # the words are the lengths
    {
        sequences $(seq 64) >up.tok
        sequences $(seq 64 -1 1) >down.tok
        sequences $(yes 5 60 | head -n 32) >turns.tok
        sequences $(seq 64 | awk '{ print $1 * 37 % 65 }') >mixed.tok
        sequences 7 7 7 7 >equal.tok
        sequences 3 >one.tok
    }
    for file in up down turns mixed equal one; do
        packstream -L 64 -d 1 -w 1 "$file.tok" >"$file.pks"
        packstat --json "$file.pks" | model agree "$file.pks"
    done
    [ "$(correlations up.pks)" = "1.00 0.95" ]
    [ "$(correlations down.pks)" = "-1.00 0.95" ]
    [ "$(correlations turns.pks)" = "0.03 -0.98" ]
    [ "$(correlations equal.pks)" = "None None" ]
    [ "$(correlations one.pks)" = "None None" ]
    # Lengths far from 0 and close together keep their digits.
    seq 300 | awk '{ n = 900 + $1 * 37 % 11 + ($1 > 150)
        for (i = 0; i < n; i++) printf "1 "
        print "" }' | tokcat --from=ids >x.tok
    packstream -L 2000 -d 2 -w 2 x.tok >x.pks
    packstat --json x.pks | model agree x.pks
    # The figures in the summary are the same.
    run packstat up.pks
    [[ $output == *$'\n'"  correlation    1.0000 with place, \
0.9"*" between neighbours"$'\n'* ]]
    run packstat equal.pks
    [[ $output != *correlation* ]]
}

@test "--json is UTF-8 for any file name" {
    skip_without python3
    small
    local name=$'\303\251 \342\202\254 \360\220\200\200 a\377'
    name+=$' \303 \355\240\200.x'
    local file
    for file in small.pks small.tok; do
        cp "$file" "$name"
        packstat --json "$name" >x.json
        python3 - <<'END'
import json
x = json.load(open("x.json", encoding="utf-8"))
bad = "\ufffd"
assert x["file"] == "\u00e9 \u20ac \U00010000 a%s %s %s.x" % (
    bad, bad, 3 * bad), x
END
    done
}

@test "--json of token records" {
    skip_without python3
    sequences 5 1 12 >x.tok
    packstat --json - <x.tok >x.json
    tokcat --from=ids >empty.tok </dev/null
    packstat --json <empty.tok >empty.json
    python3 - <<'END'
import json
x = json.load(open("x.json"))
assert x == {"file": "-", "sequences": 3, "tokens": 18, "min_seqlen": 1,
             "max_seqlen": 12, "mean_seqlen": 6, "token_type": "u16",
             "framed": False, "channels": [], "targets": {},
             "lengths": [[1, 1], [5, 1], [12, 1]]}, x
x = json.load(open("empty.json"))
assert x == {"sequences": 0, "tokens": 0, "min_seqlen": None,
             "max_seqlen": None, "mean_seqlen": None, "token_type": "u16",
             "framed": True, "channels": [], "targets": {},
             "lengths": []}, x
END
}

@test "bars are as wide as a terminal, of blocks if its locale has them" {
    skip_without python3
    # shellcheck disable=SC2046 # the words are the lengths
    sequences $(yes 1 1 1 1 1 1 2 2 2 2 5 | head -n 30) >x.tok
    packstream -q -L 16 x.tok >x.pks
    for columns in 40 61 120; do
        support bars.py $columns ASCII packstat -q x.pks
        grep -qix 'c\.utf-\?8' <(locale -a) || continue
        support bars.py $columns UTF-8 packstat -q x.pks
    done
    # Not on a terminal: ASCII, 80 columns.
    LC_ALL=C.UTF-8 packstat -q x.pks >got
    awk '/\|/ && length > n { n = length } END { exit n != 80 }' got
    run -1 grep -q '[^ -~]' got
}

# ----------------------------------------------------------- histogram

@test "--histogram of token records and of packs is awk's count" {
    skip_without python3
    small
    lengths small.tok | counted >expected
    [ "$(wc -l <expected)" -eq 8 ]
    packstat --histogram small.tok | cmp - expected
    packstat --histogram small.pks | cmp - expected
    split
    packstat --histogram split.pks |
        cmp - <(model lengths split.pks | counted)
    { lengths small.tok; lengths small.tok; lengths split.tok; } |
        counted >expected
    packstat --histogram small.tok small.pks split.tok | cmp - expected
    # Many lengths, many times.
    seq 3000 | awk '{ n = $1 * 7919 % 1500 + 1; print n >"lens"
        for (i = 0; i < n; i++) printf "1 "; print "" }' |
        tokcat --from=ids -t u32 >x.tok
    packstat --histogram x.tok | cmp - <(counted <lens)
}

@test "--histogram and --quick read only LENGTHS, if a file has it" {
    seq 300 | factor | tokcat --from=bytes >small.tok
    cat small.tok small.tok >two.tok
    local line options
    for line in --histogram --quick "--quick --json"; do
        read -r -a options <<<"$line"
        packstat "${options[@]}" two.tok >wanted
        cp two.tok x.tok
        # A token of the first record, and of the last before the second END.
        flip x.tok $((136 + 4))
        packstat "${options[@]}" x.tok | sed 's/x\.tok/two.tok/' | cmp - wanted
        run -65 packstat "${options[@]}" <(cat x.tok)
        run -65 packstat "${options[@]}" <(zstd -qc x.tok)
    done
    packstat --histogram two.tok >wanted
    packstat --histogram <two.tok | cmp - wanted
    # Streams without LENGTHS are read in full.
    without_lengths small.tok >less.tok
    cat small.tok less.tok small.tok >three.tok
    packstat --histogram small.tok small.tok small.tok >wanted
    packstat --histogram three.tok | cmp - wanted
    packstat --histogram < <(cat three.tok) | cmp - wanted
    flip x.tok $(($(size x.tok) - 40))
    run -65 packstat --histogram x.tok
    # Channel values of records that were not read are unknown.
    printf '{"input_ids":[1,2],"labels":[1,-100]}\n' |
        tokcat --from=jsonl >c.tok
    packstat --json c.tok | grep '"targets": {"labels": 1}'
    packstat --quick --json c.tok | grep '"targets": null'
    packstat c.tok | grep targets
    run -1 grep targets <(packstat --quick c.tok)
}

@test "--histogram prints nothing for an incomplete file" {
    sequences 3 3 >good.tok
    head -c 9 good.tok >cut.tok
    for files in "good.tok cut.tok" "cut.tok good.tok" "good.tok no.tok"; do
        # shellcheck disable=SC2086 # words
        run --separate-stderr packstat --histogram $files
        [ "$status" -ne 0 ]
        [ -z "$output" ]
        [ -n "$stderr" ]
    done
}

@test "a length far beyond the end takes no memory" {
    { u32 4294967295; head -c 3000000 /dev/zero; } >x.tok
    run -65 packstat --histogram x.tok
    [[ $output == "packstat: x.tok: record 0 at byte 0: "* ]]
}

@test "sequences of any length are counted in little memory" {
    skip_if_sanitized
    { u32 100000000; head -c 200000000 /dev/zero; sequences 2; } |
        (ulimit -v 100000 && packstat --histogram) >counts
    printf '2 1\n100000000 1\n' | cmp - counts
}

# --------------------------------------------------------------- input

@test "packs and records through a pipe, compressed too" {
    small
    for file in small.tok small.pks; do
        packstat --json <"$file" >expected
        # shellcheck disable=SC2002 # it must be a pipe
        cat "$file" | packstat --json | cmp - expected
        packstat --json - <"$file" | grep '^{"file": "-", '
        if command -v zstd >/dev/null; then
            zstd -qc "$file" | packstat --json | cmp - expected
        fi
    done
}

@test "-t u32 reads raw records of u32" {
    { record32 1 70000 3; record32 4; } >x.tok
    run packstat --histogram -t u32 x.tok
    [ "$output" = $'1 1\n3 1' ]
    run -65 packstat --histogram -t u16 x.tok
}

# -------------------------------------------------------- verify: good

@test "--verify finds no fault in packstream's output" {
    small
    split
    cat small.pks small.pks >twice.pks
    seq 500 | awk '{ for (i = $1 * 37 % 23; i >= 0; i--) printf "%d ", i
        print "" }' | tokcat --from=ids >x.tok
    packstream -L 7 -d 2 -w 9 --overlong=split x.tok >a.pks
    packstream -L 7 -d 7 -w 500 --overlong=drop x.tok >b.pks
    packstream -L 7 -d 1 -w 1 --overlong=truncate x.tok >c.pks
    packstream -L 64 -d 16 x.tok >d.pks
    cat a.pks a.pks >e.pks
    for file in small split twice a b c d e; do
        run packstat --verify "$file.pks"
        echo "$output"
        [ "$status" -eq 0 ]
        [[ $output == "$file.pks: OK ("*" packs, "*" tokens)" ]]
    done
    run packstat --verify small.pks
    [ "$output" = "small.pks: OK (6 packs, 13 sequences, 44 tokens)" ]
}

@test "--verify: token records are read to their end" {
    tokcat --from=ids <<<'1 2 3' >x.tok
    run packstat --verify x.tok
    [ "$output" = "x.tok: OK (1 sequences, 3 tokens)" ]
    flip x.tok 140
    run -65 packstat --verify x.tok
    [[ $output == "packstat: x.tok: "*digest* ]]
}

@test "--verify: a token outside the vocabulary, also of a long sequence" {
    { seq -s ' ' 70000 | sed 's/[0-9]*/7/g'; echo 1 2 3; } |
        tokcat --from=ids --vocab=8 >x.tok
    packstat --verify -q x.tok
    # The count of the first record is at 136, its tokens follow.
    flip x.tok $((140 + 2 * 69000)) 8
    run -65 packstat --verify x.tok
    [ "$output" = "packstat: x.tok: record 0 at byte 136: \
token 69000 is 15, outside the vocabulary of 8" ]
}

@test "-q omits the OK, not the faults" {
    small
    run -0 packstat --verify -q small.pks small.tok
    [ -z "$output" ]
    flip small.pks 4200
    run -65 packstat --verify -q small.pks
    [ -n "$output" ]
}

@test "--verify can be combined with --json and --histogram" {
    small
    cmp <(packstat --verify --json small.pks) <(packstat --json small.pks)
    cmp <(packstat --verify --histogram small.pks) \
        <(packstat --histogram small.pks)
    poke small.pks "0 sum_len_sq" 1
    for option in --json --histogram; do
        packstat "$option" small.pks >/dev/null
        run -65 --separate-stderr packstat --verify "$option" small.pks
        [ -z "$output" ]
    done
}

# --------------------------------------------------- verify: bad bytes

@test "--verify: a flipped bit in any field of a pack stream is found" {
    skip_if_quick
    skip_without python3
    sequences 5 3 21 2 1 >x.tok
    packstream -L 9 -d 5 -w 4 --overlong=split x.tok >good.pks
    packstat --verify -q good.pks
    model places good.pks >list
    [ "$(wc -l <list)" -gt 80 ]
    while read -r place; do
        cp good.pks x.pks
        flip x.pks "$place" 16
        run packstat --verify x.pks
        echo "byte $place: $status: $output"
        [ "$status" -eq 65 ]
    done <list
}

# ----------------------------- verify: faults that checksums do not reveal

@test "poke does not change a valid stream" {
    small
    cat small.pks small.pks >x.pks
    cp x.pks y.pks
    poke y.pks
    cmp x.pks y.pks
}

# eights N: eights.pks, N packs, each of one sequence of 8 tokens.
eights() {
    # shellcheck disable=SC2046 # the words are the lengths
    sequences $(yes 8 | head -n "$1") >eights.tok
    packstream -L 8 -d 1 -w 1 eights.tok >eights.pks
}

@test "--verify: a repeated sequence" {
    eights 5
        # Its own id 3 is then missing, which must not be reported as well.
    damaged eights.pks "pack 3 $at: \
token 0 of sequence 2 is repeated: it was in pack 2" \
        "3 seq_id 0" 2 "all watermark" 0
}

# pieces OFFSET LENGTH ...: x.pks, a pack for each piece of one sequence of 24
# tokens, with the pieces' offsets and lengths changed to these.
pieces() {
    sequences 24 >x.tok
    packstream -L 8 -d 1 -w 4 --overlong=split x.tok >x.pks
    packstat --verify -q x.pks
    poke x.pks "0 piece_off 0" "$1" "0 full_len 0" "$2" "1 piece_off 0" "$3" \
        "1 full_len 0" "$4" "2 piece_off 0" "$5" "2 full_len 0" "$6"
}

@test "--verify: pieces can be in any order" {
    pieces 16 24 0 24 8 24
    packstat --verify -q x.pks
}

@test "--verify: pieces that do not make a complete sequence" {
    pieces 0 24 8 24 8 24
    refused x.pks "*pack 2 $at: \
token 8 of sequence 0 is repeated: it was in pack 1
packstat: x.pks: pack 2 $at: sequence 0: its tokens from 16 to \
its end at 24 are not in any pack"
    pieces 0 24 8 24 17 24
    refused x.pks "*pack 2 $at: \
sequence 0 has 24 tokens, but a piece of 8 at token 17*"
}

# many N: x.pks, one sequence of N tokens in N pieces, one per pack.
many() {
    { seq -s ' ' "$1"; echo 7; } | tokcat --from=ids |
        packstream -L 1 -d 1 -w 8 --overlong=split >x.pks
}

@test "--verify: a sequence of very many pieces is followed to its end" {
    many 9000
    packstat --verify -q x.pks
    mv x.pks many.pks
    damaged many.pks "pack 8999 $at: \
sequence 0 has 9001 tokens here, but 9000 in pack 8998
packstat: x.pks: *: its tokens from 9000 to its end at 9001 are not in \
any pack" \
        "8999 full_len 0" 9001
    damaged many.pks "*: token 17 of sequence 0 *
packstat: x.pks: *: sequence 0: its tokens 5000 to 5000 are not in any pack" \
        "5000 piece_off 0" 17
}

# stuck WINDOW: x.pks, 5000 packs with a watermark that never rises.
stuck() {
    seq 5000 | sed 's/.*/1/' | tokcat --from=ids |
        packstream -L 1 -d 1 -w 1 >x.pks
    poke x.pks "header 56" "$1" "all watermark" 0
}

@test "--verify: a watermark that makes readers wait too long" {
    stuck 4000
    refused x.pks "pack 4096 $at: \
4096 sequences or pieces are ahead of the watermark, 0, but the window allows 4000"
}

@test "--verify: a watermark can lag as far as the window allows" {
    stuck 5000
    packstat --verify -q x.pks
    poke x.pks "end max_displacement" 4997 "4999 seq_id 0" 1
    refused x.pks "pack 4999 in the block *: \
token 0 of sequence 1 is repeated: it was in pack 1"
}

@test "--verify continues after a fault" {
    small
    poke small.pks "1 sum_len_sq" 1 "3 sum_len_sq" 1 \
        "end max_displacement" 99
    run -65 packstat --verify small.pks
    [ "${#lines[@]}" -eq 3 ]
    [[ ${lines[0]} == *": pack 1 in the block at byte "* ]]
    [[ ${lines[1]} == *": pack 3 in the block at byte "* ]]
    [[ ${lines[2]} == *": END declares "* ]]
}

@test "--verify reports ten faults of a file and counts the others" {
    eights 13
    poke eights.pks "all sum_len_sq" 1
    cp eights.pks x.pks
    cp eights.pks y.pks
    run -65 packstat --verify x.pks y.pks
    [ "${#lines[@]}" -eq 22 ]
    [ "${lines[10]}" = "packstat: x.pks: ... and 3 more faults" ]
    [ "${lines[21]}" = "packstat: y.pks: ... and 3 more faults" ]
}

@test "--verify: faults before a cut are reported, and so is the cut" {
    small
    packstream -L 8 -d 4 -w 4 --block-packs=1 small.tok >x.pks
    poke x.pks "1 sum_len_sq" 1
    second=$(model at x.pks "block 1 magic")
    fifth=$(model at x.pks "block 4 magic")
    cp x.pks whole.pks
    head -c $((fifth + 90)) whole.pks >x.pks
    run -65 packstat --verify x.pks
    [ "${#lines[@]}" -eq 2 ]
    [[ ${lines[0]} == *"pack 1 in the block at byte $second: sum_len_sq"* ]]
    [[ ${lines[1]} == *"block at byte $fifth: "* ]]
}
