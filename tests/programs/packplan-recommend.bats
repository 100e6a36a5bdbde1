#!/usr/bin/env bats
# packplan-recommend.bats - the window that packplan recommends for a capacity,
# and the treatment of overlong sequences.
#
# SPDX-License-Identifier: MIT

load ../support/helpers

# Used by bad_option.
export program=packplan

# bell COUNT: ids of COUNT sequences, most of about 90 tokens and some of 400,
# always the same.
bell() {
    awk -v n="$1" 'BEGIN {
        for (x = 42; n > 0; n--) {
            for (length_ = k = 0; k < 3; k++) {
                x = (x * 16807) % 2147483647
                length_ += x % 60
            }
            length_ = 1 + length_ * (x % 11 ? 1 : 4)
            line = "1"
            for (k = 1; k < length_; k++)
                line = line " 1"
            print line
        }
    }' | tokcat --from=ids --vocab=2
}

@test "the optimum is within the bound and reached" {
    skip_without python3
    # shellcheck disable=SC2046 # numbers
    support packplan.py brute $(seq 60)
}

# The stream's order differs from the trial's, so the loss can differ, too: here
# by 0.05 points, as much as the window may lose.
@test "the command for each capacity runs, with the predicted fill" {
    bell 8000 >x.tok
    packstat --histogram x.tok >h
    packplan -L 128,192 --overlong=split --tsv h >rows
    packplan -L 160 --overlong=truncate --align=8 --recommend --tsv h |
        sed 1d >>rows
    [ "$(wc -l <rows)" -eq 4 ]
    sed 1d rows >recommended
    while IFS=$'\t' read -r capacity _ efficiency _ long lost command; do
        [[ $command == "packstream -L $capacity "* ]]
        sh -c "$command <x.tok >x.pks"
        packstat --json x.pks >told
        awk -v said="$efficiency" '{
            sub(/.*"efficiency": /, "")
            print $1 + 0, said
            exit !($1 + 0 >= said - 0.0005)
        }' told
        case $command in
            *split) grep "\"split_sequences\": $long," told ;;
            *) grep "\"truncated_sequences\": $long, \"truncated_tokens\": $lost," \
                told ;;
        esac
    done <recommended
}

# It tries a sample if there are very many sequences.  The last pack of a stream
# of 8,000 is not in the sample's.
@test "a sample of very many sequences predicts the packing of all" {
    bell 8000 >x.tok
    packstat --histogram x.tok | sed 's/$/000000000000/' >h
    packplan -L 1024 --recommend --tsv h | sed 1d >row
    sh -c "$(cut -f 7 row) <x.tok >x.pks"
    packstat --json x.pks >told
    awk -F '\t' -v told="$(cat told)" '{
        sub(/.*"packs": /, "", told); packs = told + 0
        sub(/.*"efficiency": /, "", told)
        print told + 0, $3
        exit !($3 > 0.999 && told + 0 >= $3 - 0.0005 - 1 / packs)
    }' row
}

@test "a larger window if needed, and a bound that cannot be reached" {
    # Pairs that only just fit: a window evens out random variation.
    awk 'BEGIN { for (i = 1; i < 512; i++) print i, 100 }' >h
    packplan -L 512 --recommend h | sed -n '2p;$p' >got
    [[ "$(head -n 1 got)" == '     512    4096  '* ]]
    tail -n 1 got | grep -x 'packstream -L 512 -w 4096'
    # One or two in a pack, or nearly empty packs.
    printf '%s\n' '300 10' '1 1' >h
    [ "$(packplan -L 512 --recommend --tsv h | cut -f 2-4 | sed 1d)" = \
        $'1024\t0.586132813\t0.586132813' ]
}

@test "the table, TSV and JSON have the same numbers" {
    skip_without python3
    printf '%s\n' '7 2' '6 1' '4 3' '3 2' '2 1' '25 1' >h
    packplan -L 10,12 --overlong=split --align=2 h >table
    packplan -L 10,12 --overlong=split --align=2 --tsv h >tsv
    packplan -L 10,12 --overlong=split --align=2 --json h >json
    [ "$(tail -n 2 table)" = "$(sed 1d tsv | cut -f 7)" ]
    python3 - <<'PYTHON'
import json
got = json.load(open("json"))
lines = [line.rstrip("\n").split("\t") for line in open("tsv")]
table = [line.split() for line in open("table")][1:3]
assert got["within"] == 0.0005
for row, line, cells in zip(got["rows"], lines[1:], table, strict=True):
    of = dict(zip(lines[0], line, strict=True))
    for key, value in of.items():
        assert str(row[key]) == value, key
    assert row["sequences"] == 12
    assert row["tokens"] == 65 and row["overlong_sequences"] == 1
    assert cells[:2] == line[:2] and cells[4:] == line[4:6], cells
    for i in 2, 3:
        assert cells[i] == f"{100 * float(line[i]):.3f}"
assert [row["command"] for row in got["rows"]] == [
    f"packstream -L {row['capacity']} --align=2 --overlong=split"
    for row in got["rows"]]
PYTHON
}

@test "--overlong splits, truncates and drops as packstream does" {
    printf '%s\n' '1 1 1' '1 1 1 1 1 1 1 1 1 1 1' '1 1 1 1 1 1 1 1' 1 |
        tokcat -q --from=ids >x.tok
    packstat --histogram x.tok >h
    for what in split truncate drop; do
        packstream -q -L 4 -a none --overlong=$what x.tok | packstat --histogram |
            sort -n >expected
        packplan -q -L 4 -a none -d 1 --plan --overlong=$what h |
            awk -F ': ' '{ print $2, $1 }' | sort -n | diff expected -
    done
    packplan -L 4 -a none --overlong=truncate h | sed -n 2p |
        grep -x '2 were longer, and 11 tokens are lost'
    packplan -L 4 -a none --overlong=drop --json h |
        grep '"overlong_sequences": 2, "lost_tokens": 19, "sequences": 2'
    is 65 'packplan: h: line 3: length 8 exceeds the capacity, 4: use '\
'--overlong=split, truncate or drop' \
        packplan -L 8,4 h
    is 65 'packplan: h: line 4: length 11 exceeds the capacity, 8: use '\
'--overlong=split, truncate or drop' \
        packplan -L 8 --overlong=error h
}

# beyond LINES WHY OVERLONG: these lines are refused for WHY.
beyond() {
    printf '%b' "$1" >h
    is 65 "packplan: h: line $2" packplan -L 2,1 --overlong="$3" h
}

@test "overlong sequences are counted without overflow" {
    local max=9223372036854775807
    beyond '4294967296 1\n' '1: length 4294967296 exceeds the maximum, '\
'4294967295' \
        drop
    beyond "3 $max\n" '1: more than 2^63 - 1 tokens are lost' drop
    beyond "4294967295 4294967296\n" '1: more than 2^63 - 1 tokens are lost' \
        truncate
    beyond "3 $max\n" '1: histogram: exceeds 2^63 - 1 tokens' split
    beyond '4294967295 18446744073709551615\n' \
        '1: more than 2^63 - 1 sequences' split
    beyond "3 2\n3 $max\n" '2: more than 2^63 - 1 sequences' drop
    beyond '3 3074457345618258603\n' '1: more than 2^63 - 1 tokens are lost' \
        drop
    printf '3 3074457345618258602\n' >h
    packplan -q -L 2 -a none --json --overlong=drop h |
        grep '"lost_tokens": 9223372036854775806,'
    printf '4294967295 2147483647\n' >h
    packplan -q -L 16777215 -a none --tsv --overlong=split h |
        cut -f 3 | grep -x 551903297279
}

@test "the default window fills long packs, up to the bound" {
    echo 1 1 >h
    [ "$(packplan -L 16777216 --recommend --tsv h | sed 1d)" = \
        $'16777216\t1024\t5.96046448e-08\t5.96046448e-08\t0\t0\tpackstream '\
'-L 16777216' ]
    echo 1 1000000 >h
    packplan -L 65536 --recommend --tsv h |
        awk 'NR == 2 { good = $2 == 1024 && $3 == $4 } END { exit !good }'
    packplan -L 4096 --recommend --tsv h |
        awk 'NR == 2 { good = $3 <= $4 } END { exit !good }'
}

@test "no sequences: nothing is recommended" {
    : >h
    is 0 'packplan: there are no sequences' packplan -L 8,9 --json h
    # shellcheck disable=SC2154 # is sets it
    grep -q '"capacity": 8, "sequences": 0, .*"command": null' <<<"$output"
    [ "$(packplan -q -L 8,9 h | wc -l)" -eq 3 ]
    [ "$(packplan -q -L 8 --recommend --tsv h | sed 1d)" = \
        $'8\t-\t-\t-\t0\t0\t-' ]
    # With one capacity, all of them can be dropped.
    echo 9 1 >h
    [ "$(packplan -q -L 8,9 --overlong=drop h | tail -n 1)" = \
        'packstream -L 9 --overlong=drop' ]
}

@test "lists of capacities, and options that exclude them" {
    local why='must be numbers from 1 to 16777216, separated by commas'
    local list
    for list in 0 '' '8,' ,8 16777217 8x max; do
        bad_option "-L $list: $why" -L "$list"
    done
    bad_option "-L $(seq -s , 65): $why" -L "$(seq -s , 65)"
    echo 1 1 | packplan -L "$(seq -s , 64)" --tsv >got
    [ "$(wc -l <got)" -eq 65 ]
    bad_option '--align=8 does not divide the capacity, 12' -L 8,12 --align=8
    bad_option '--recommend and --plan cannot be combined' \
        -L 8 --recommend --plan
    bad_option '--recommend and --scaling cannot be combined' \
        -L 8 --scaling --recommend
    bad_option '--plan needs a single capacity' -L 8,9 --plan -a ffd
    bad_option '--tsv and --json cannot be combined' -L 8,9 --tsv --json
    bad_option '-L 8,9,8: contains a capacity twice' -L 8,9,8
    bad_option '-L 1000,1k: contains a capacity twice' -L 1000,1k
    why=' cannot be used with --recommend or several capacities, which use'
    why+=' the algorithm of packstream'
    local option
    for option in '-a ffd' '-d 3' --overhead=1 --lamb=0.9,0.9 --batch=1 \
        --global-batch=1 --devices=1 --short-length=1 --short-weight=1 \
        --no-distribute --no-bound; do
        # shellcheck disable=SC2086 # -a and its word
        bad_option "${option%%[ =]*}$why" -L 8,9 $option
        # shellcheck disable=SC2086
        bad_option "${option%%[ =]*}$why" -L 8 --recommend $option
    done
    bad_option '--overlong=cut: must be error, drop, truncate or split' \
        -L 8 --overlong=cut
}
