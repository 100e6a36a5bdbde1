#!/usr/bin/env bats
# packplan.bats - the input, errors and output of packplan.
#
# plan-t and others test the quality of plans; the numbers here are small enough
# to be worked out by hand.
#
# SPDX-License-Identifier: MIT

load ../support/helpers

program=packplan stderr=

# small: small.hist, 9 sequences of 40 tokens; 10 fit a pack.
small() {
    printf '%s\n' '7 2' '6 1' '4 3' '3 2' '2 1' >small.hist
}

# columns LIST COMMAND...: these columns of a tab-separated table.
columns() {
    local list=$1
    shift
    "$@" | cut -f "$list"
}

# plans PACKS OPTION...: exactly that many packs are planned.
plans() {
    [ "$(columns 3 packplan --tsv "${@:2}")" = $'packs\n'"$1" ]
}

# says STATUS MESSAGE COMMAND...: fails with only this message.
says() {
    local wanted=$1 message=$2
    shift 2
    is "$wanted" "$program: $message" "$@"
    [ -z "$output" ]
}

@test "a row for each algorithm and depth, flat ones once, by depth" {
    small
    columns 1,2 packplan -L 10 -d 1,2,max --tsv small.hist >got
    {
        printf 'algorithm\tdepth\nnone\t1\nsorted\t1\n'
        for depth in 1 2 max; do
            for name in greedy ffd bfd spfhp lpfhp nnlshp ennlshp; do
                printf '%s\t%s\n' "$name" "$depth"
            done
        done
    } >expected
    diff expected got
}

@test "the columns, by hand" {
    small
    # 7+3 7+3 6+4 4+4+2; none: 9 rows; sorted by fours: 7 7 6 4 padded to 28,
    # 4 4 3 3 to 16, 2.  At depth 2 the 2 has its own pack.
    columns 1-7 packplan -L 10 -d 2,max -a none,sorted,bfd --batch=4 \
        --tsv small.hist >got
    printf '%s\n' \
        'algorithm depth packs strategies max_depth efficiency packing_factor' \
        'none 1 9 5 1 0.444444444 1' \
        'sorted 1 5 5 1 0.8 1.8' \
        'bfd 2 5 4 2 0.8 1.8' \
        'bfd max 4 3 3 1 2.25' | tr ' ' '\t' >expected
    diff expected got
}

@test "the readable table has the same numbers" {
    small
    packplan -L 10 -d max -a none,bfd small.hist >got
    head -n 1 got >first
    echo '9 sequences, 40 tokens; packs of 10 tokens, at least 4' |
        diff - first
    awk 'NR == 4 && $2 == "none" && $3 == 9 && $4 == "44.444" { a = 1 }
        NR == 5 && $1 == "3/max" && $2 == "bfd" && $3 == 4 &&
            $4 == "100.000" && $5 == "2.2500" && $6 == 3 { b = 1 }
        END { exit !(NR == 5 && a && b) }' got
    # Columns are aligned: all lines of the table are equally long.
    [ "$(sed 1,2d got | awk '{ print length }' | sort -u | wc -l)" -eq 1 ]
}

@test "JSON holds the table" {
    skip_without python3
    small
    packplan -L 10 -d 2,max -a none,bfd --overhead=25 --lamb=0.25,0.5 \
        --json small.hist >got
    [ "$(wc -l <got)" -eq 1 ]
    python3 - got <<'EOF'
import json, sys
got = json.load(open(sys.argv[1]))
rows = got.pop("rows")
assert got == {"capacity": 10, "sequences": 9, "tokens": 40,
               "lower_bound": 4}, got
for row in rows:
    assert row.pop("seconds") >= 0
    assert row.pop("bound") > 0
assert rows[0] == {
    "algorithm": "none", "depth": 1, "packs": 9, "strategies": 5,
    "max_depth": 1, "efficiency": 0.444444444, "packing_factor": 1,
    "overhead": 0, "speed_up": 1, "beta1": 0.25, "beta2": 0.5}, rows[0]
assert rows[2] == {
    "algorithm": "bfd", "depth": None, "packs": 4, "strategies": 3,
    "max_depth": 3, "efficiency": 1, "packing_factor": 2.25,
    "overhead": 25, "speed_up": 1.8, "beta1": round(0.25 ** 2.25, 10),
    "beta2": round(0.5 ** 2.25, 9)}, rows[2]
assert len(rows) == 3
EOF
}

@test "the plan uses every sequence once, for every algorithm" {
    local name
    awk 'BEGIN { for (i = 1; i <= 64; i++) print i, 1 + i * 37 % 101 }' >h
    for name in none sorted greedy ffd bfd spfhp lpfhp nnlshp ennlshp; do
        packplan -L 64 -d 4 -a "$name" --plan h >plan
        awk -F '[: ]+' '
            { sum = 0
              for (i = 2; i <= NF; i++) { used[$i] += $1; sum += $i }
              if (NF > 5 || sum > 64) exit 1 }
            END { for (i in used) print i, used[i] }' plan |
            sort -n | diff h -
    done
}

@test "the form of a plan, and the effects of options" {
    small
    packplan -L 10 -d max -a bfd --plan small.hist | sort >got
    printf '%s\n' '1: 2 4 4' '1: 4 6' '2: 3 7' | diff - got
    # packstream's nextfit is greedy.
    packplan -L 10 -a nextfit --plan small.hist >got
    packplan -L 10 -a greedy --plan small.hist | diff - got
    [ "$(columns 9 packplan -L 10 -a none --tsv small.hist | tail -n 1)" = \
        '9.000' ]
    [ "$(columns 9 packplan -L 10 -a ffd --no-bound --tsv small.hist |
        tail -n 1)" = '-' ]
    printf '4 3\n' >h
    plans 2 -L 10 -a lpfhp h
    plans 3 -L 10 -a lpfhp --no-distribute h
    printf '9 1\n1 5\n' >h
    plans 3 -L 10 -a sorted --batch=2 h
    plans 6 -L 10 -a sorted --batch=8 h
}

@test "--overhead gives the realised speed-up, one or one per depth" {
    small
    [ "$(columns 2,10,11 packplan -L 10 -d 2,max -a none,bfd --tsv \
        --overhead=20 small.hist | tr '\t' ' ')" = \
        'depth overhead speed_up
1 0 1
2 20 1.5
max 20 1.875' ]
    [ "$(columns 2,10,11 packplan -L 10 -d 2,max -a bfd --tsv \
        --overhead=20,12.5 small.hist | tr '\t' ' ')" = \
        'depth overhead speed_up
2 20 1.5
max 12.5 2' ]
}

@test "--lamb raises the decays to the packing factor, if it packs" {
    printf '1 4\n' >h
    [ "$(columns 1,10,11 packplan -L 2 -d 2 -a none,sorted,lpfhp --tsv \
        --lamb=0.5,0.9 h | tr '\t' ' ')" = \
        'algorithm beta1 beta2
none 0.5 0.9
sorted 0.5 0.9
lpfhp 0.25 0.81' ]
}

@test "--global-batch prints the steps, with an incomplete last one" {
    skip_without python3
    printf '1 9\n2 1\n' >h
    for n in 1 2 5 10 18446744073709551615; do
        packplan -L 2 -d 2 -a none,lpfhp --tsv --global-batch=$n h |
            awk -F '\t' -v n=$n 'NR == 1 { ok = $10 == "steps"; next }
                $10 != int($3 / n) + ($3 % n > 0) { ok = 0 }
                END { exit !(ok && NR == 3) }'
    done
    packplan -L 2 -a lpfhp --global-batch=4 h | awk 'END { exit $NF != 2 }'
    packplan -L 2 -a lpfhp --global-batch=4 --lamb=0.5,0.9 --json h |
        python3 -c 'import json, sys
assert json.load(sys.stdin)["rows"][0]["steps"] == 2'
    printf '' >none
    packplan -L 2 -a lpfhp --global-batch=4 --tsv none |
        awk -F '\t' 'END { exit $10 != 0 }'
    # As many as packdeal makes of that many packs.
    seq 1 40 | tokcat --from=ids | packstream -q -L 2 -d 2 >x.pks
    packplan -L 2 -d 2 -a lpfhp --global-batch=6 --tsv <(echo 1 40) |
        awk -F '\t' 'END { print $10 }' |
        diff - <(packdeal -n 2 -b 3 --steps x.pks)
}

# One token or two, equally likely.  The longest of R is 2, except in one of 2^R
# cases; a sum of two is 2, 3, 4 in one, two, one of four cases.
@test "--scaling, by hand" {
    printf '1 5\n2 5\n' >h
    packplan -L 2 -d 1 -a none --scaling --batch=1 --devices=1,2,10 \
        --tsv h | tr '\t' ' ' >got
    printf '%s\n' 'devices unpadding slowdown packing' \
        '1 1.33333333 1 1' '2 1.14285714 1.16666667 1' \
        '10 1.00048852 1.33268229 1' | diff - got
    [ "$(columns 2 packplan -L 2 -d 1 -a none --scaling --batch=2 \
        --devices=2 --tsv h)" = 'unpadding
1.18518519' ]
    # Five packs of a 2, three of the 1s: 10 / 8, and half of it.
    packplan -L 2 -d 2 -a lpfhp --scaling --overhead=100 --devices=1 h >got
    [ "$(awk 'END { print $4 }' got)" = '0.6250' ]
    # With a single device it is the bound of packing.
    awk 'BEGIN { for (i = 1; i <= 2000; i += 7) print i, i % 13 + 1 }' >h
    packplan -L 2048 -d 4 -a spfhp --scaling --batch=20000 --devices=1 \
        --tsv h >got
    awk '{ n += $2; t += $1 * $2 } END { printf "%.6f\n", 2048 * n / t }' h |
        diff - <(awk 'END { printf "%.6f\n", $2 }' got)
}

@test "--scaling in JSON" {
    skip_without python3
    printf '1 5\n2 5\n' >h
    packplan -L 2 -d 1 -a none --scaling --batch=1 --devices=2 --json h |
        python3 -c 'import json, sys
got = json.load(sys.stdin)
assert got == {"capacity": 2, "batch": 1, "algorithm": "none", "rows": [
    {"devices": 2, "unpadding": 1.14285714, "slowdown": 1.16666667,
     "packing": 1}]}, got'
}

@test "lines in any order, repeats, comments, blanks, several files" {
    small
    packplan -L 10 -a spfhp --plan small.hist >expected
    printf '%s\n' '# of two' '' '2 1' '4 1' '3 0' $' \t7  1 ' >a
    printf '%s\n' '3 2' '4 2' '  ' $'6\t1' '7 1' '#' >b
    packplan -L 10 -a spfhp --plan a b | diff expected -
    packplan -L 10 -a spfhp --plan a - <b | diff expected -
    cat a b | packplan -L 10 -a spfhp --plan | diff expected -
}

# bad LINES WHY: the lines are refused for WHY.
bad() {
    printf '%b' "$1" >bad.hist
    says 65 "bad.hist: line $2" packplan -L 512 bad.hist
    says 65 "stdin: line $2" packplan -L 512 <bad.hist
}

@test "invalid lines, each with its number" {
    bad '5 1\n0 3\n' '2: a length must be at least 1'
    bad '5 1\n\n#\n513 1\n' \
        '4: length 513 exceeds the capacity, 512: use --overlong=split, '\
'truncate or drop'
    bad '4294967297 1\n' \
        '1: length 4294967297 exceeds the capacity, 512: use '\
'--overlong=split, truncate or drop'
    bad '18446744073709551616 1\n' '1: the length does not fit 64 bits'
    bad '5 18446744073709551616\n' '1: the count does not fit 64 bits'
    local line
    for line in '-5 1\n' '5,1\n' 'length count\n' '\xff 1\n' '5\0 1\n' \
        '\xef\xbb5 1\n'; do
        bad "$line" '1: the length is not a number'
    done
    for line in '5 -1\n' '5 1.5\n' '5 1\r\r\n' '5 1\r7 1\n' '5 1\0\n'; do
        bad "$line" '1: the count is not a number'
    done
    for line in '5\n' '5 \n' '5\r\n'; do
        bad "$line" '1: missing count after the length'
    done
    # shellcheck disable=SC2016 # backquotes of the message
    bad '5 1 1\n' '1: more than two numbers: a line is `length count`'
    bad '5 1\r' '1: truncated: no newline at the end'
    for line in '6 1' '6 ' 6 '#' ' '; do
        bad "5 1\n$line" '2: truncated: no newline at the end'
    done
    bad '5 1\n\xef\xbb\xbf5 1\n' '2: the length is not a number'
    # A count of 0 adds nothing, but its length must be valid.
    bad '0 0\n' '1: a length must be at least 1'
    says 1 'nowhere: No such file or directory' packplan -L 8 nowhere
    mkdir folder
    says 1 'folder: Is a directory' packplan -L 8 folder
    says 1 'stdin: Bad file descriptor' sh -c 'packplan -L 8 <&-'
}

@test "lines that end with CR LF, and a byte order mark" {
    printf '\xef\xbb\xbf# a comment\r\n\r\n 5 1\r\n7\t2 \r\n3 4\n' >h
    printf '5 1\n7 2\n3 4\n' | packplan -q -L 8 -d 2 -a ffd --plan >wanted
    packplan -q -L 8 -d 2 -a ffd --plan h | cmp - wanted
    # For reads of any size.
    dd bs=1 if=h status=none | packplan -q -L 8 -d 2 -a ffd --plan | cmp - wanted
    printf '\xef\xbb\xbf5 1\r\n' >h
    [ "$(packplan -q -L 8 --plan -a none h h)" = '2: 5' ]
}

@test "token records are planned from the LENGTHS at their end" {
    seq 300 | factor | tokcat -q --from=bytes >x.tok
    packstat --histogram x.tok >h
    local line options
    for line in "--plan -a ffd -d 3" "--plan -a none -d 1" --recommend; do
        read -r -a options <<<"$line"
        packplan -q -L 64 "${options[@]}" h >wanted
        packplan -q -L 64 "${options[@]}" x.tok | cmp - wanted
        packplan -q -L 64 "${options[@]}" <x.tok | cmp - wanted
        packplan -q -L 64 "${options[@]}" h h >wanted
        cat x.tok x.tok >xx.tok
        packplan -q -L 64 "${options[@]}" xx.tok | cmp - wanted
        packplan -q -L 64 "${options[@]}" h x.tok | cmp - wanted
    done
    # Standard input is at its end, as if it had been read.
    packplan -q -L 64 --plan -a none - <x.tok >wanted
    packplan -q -L 64 --plan -a none - - <x.tok | cmp - wanted
    (packplan -q -L 64 >wanted; [ "$(wc -c)" = 0 ]) <x.tok
    (packstat --histogram - >wanted; [ "$(wc -c)" = 0 ]) <x.tok
    # Only LENGTHS is read, even if a record is damaged.
    flip x.tok 140
    packplan -q -L 64 --recommend x.tok
    says 65 "x.tok: length 9 exceeds the capacity, 8: use --overlong=split,\
 truncate or drop" \
        packplan -L 8 x.tok
    packplan -q -L 8 --overlong=split --recommend x.tok
}

@test "token records without usable LENGTHS are refused, with a remedy" {
    echo 5 6 | tokcat -q --from=ids >x.tok
    without_lengths x.tok >less.tok
    cat x.tok less.tok x.tok >three.tok
    says 65 "less.tok: the stream that ends at byte 176 has no LENGTHS: \
packstat --histogram prints its lengths" packplan -L 8 less.tok
    says 65 "three.tok: the stream that ends at byte 400 has no LENGTHS: \
packstat --histogram prints its lengths" packplan -L 8 three.tok
    packstat --histogram three.tok | packplan -q -L 8
    head -c -1 x.tok >cut.tok
    says 65 "cut.tok: no complete END before byte 223: the stream is\
 truncated or damaged there" packplan -L 8 cut.tok
    flip x.tok 180
    says 65 "x.tok: LENGTHS at byte 144: its checksum does not match" \
        packplan -L 8 x.tok
}

@test "a file of another type is named in the message" {
    local why='line 1: the length is not a number; this looks like'
    echo 5 6 | tokcat -q --from=ids >x.tok
    packstream -q -L 8 -o x.pks x.tok
    printf '{"input_ids":[1]}\n' >x.jsonl
    printf '5 1\n{"input_ids":[1]}\n' >later
    says 65 "stdin: $why token records (pack them with\
 packstream): packstat --histogram\
 prints its lengths" packplan -L 8 < <(cat x.tok)
    says 65 "x.pks: $why a pack stream (unpack it with\
 packcat): packstat --histogram\
 prints its lengths" packplan -L 8 x.pks
    zstd -q x.tok
    says 65 "x.tok.zst: $why zstd: packstat --histogram prints its lengths" \
        packplan -L 8 x.tok.zst
    says 65 "x.jsonl: $why JSON (use tokcat --from=jsonl)" \
        packplan -L 8 x.jsonl
    says 65 "later: line 2: the length is not a number" packplan -L 8 later
    packstat --histogram x.pks | packplan -L 8 -q
}

@test "lines of several megabytes" {
    # many CHARACTER: ten million of it.
    many() { head -c 10000000 /dev/zero | tr '\0' "$1"; }
    {
        printf '#'
        many x
        echo
        many ' '
        many 0
        printf '5'
        many '\t'
        many 0
        echo 3
    } >h
    [ "$(packplan -L 8 -a none --plan h)" = '3: 5' ]
    says 65 'stdin: line 1: the length does not fit 64 bits' \
        packplan -L 8 < <(many 7)
    says 65 'stdin: line 1: the length is not a number' \
        packplan -L 8 < <(many x)
}

@test "totals beyond 2^63 - 1" {
    bad '1 9223372036854775807\n1 1\n' \
        '2: histogram: exceeds 2^63 - 1 sequences'
    bad '2 4611686018427387904\n' \
        '1: histogram: exceeds 2^63 - 1 tokens'
    bad '2 4611686018427387903\n3 1\n' \
        '2: histogram: exceeds 2^63 - 1 tokens'
    bad '1 18446744073709551615\n' \
        '1: histogram: exceeds 2^63 - 1 sequences'
    # Summed over files, too.
    printf '1 9223372036854775807\n' >a
    printf '1 1\n' >b
    says 65 'b: line 1: histogram: exceeds 2^63 - 1 sequences' \
        packplan -L 1 a b
    printf '1 9223372036854775807\n' >h
    plans 9223372036854775807 -L 1 -a spfhp h
}

@test "no sequences: no packs, and a warning" {
    local form
    : >empty
    for form in --plan --tsv --json --no-bound; do
        run --separate-stderr -0 packplan -L 8 -d 2 -a ffd "$form" empty
        [ "$stderr" = 'packplan: there are no sequences' ]
        run --separate-stderr -0 packplan -q -L 8 -d 2 -a ffd "$form" empty
        [ "$stderr" = '' ]
    done
    [ "$(packplan -q -L 8 -d 2 -a ffd --plan empty)" = '' ]
    [ "$(columns 1-7 packplan -q -L 8 -d 2 -a ffd --tsv empty |
        sed 1d | tr '\t' ' ')" = 'ffd 2 0 0 0 - -' ]
    packplan -q -L 8 -d 2 -a ffd --json empty |
        grep '"efficiency": null, "packing_factor": null'
    printf '5 0\n' | packplan -q -L 8 | grep '^0 sequences'
    says 65 '--scaling: there are no sequences' \
        packplan -q -L 8 -d 2 -a ffd --scaling empty
}

@test "invalid options" {
    local option value why
    bad_option 'missing -L N'
    while IFS='|' read -r option value why; do
        case $option in
            -?) bad_option "$option $value: $why" -L 8 "$option" "$value" ;;
            *) bad_option "$option=$value: $why" -L 8 "$option=$value" ;;
        esac
    done <<'END'
-d|0|must be numbers from 1 to 4294967294, or max, separated by commas
-d|1,|must be numbers from 1 to 4294967294, or max, separated by commas
-d|4294967295|must be numbers from 1 to 4294967294, or max, separated by commas
-a|ffd,|must be all, or some of none, sorted, greedy (or nextfit), ffd, bfd, spfhp, lpfhp, nnlshp, ennlshp, separated by commas
-a|FFD|must be all, or some of none, sorted, greedy (or nextfit), ffd, bfd, spfhp, lpfhp, nnlshp, ennlshp, separated by commas
--lamb|1,0.5|must be two decays below 1, such as 0.9,0.999
--lamb|0.5,1|must be two decays below 1, such as 0.9,0.999
--lamb|0.5,0.5,0.5|must be two decays below 1, such as 0.9,0.999
--lamb|1e-1,0.5|must be two decays below 1, such as 0.9,0.999
--overhead|-5|must be percentages such as 4.25, separated by commas
--batch|0|must be a number from 1 to 65536
--batch|65537|must be a number from 1 to 65536
--devices|0|must be numbers from 1 to 1048576, separated by commas
--short-weight|0|must be greater than 0 and at most 1
--short-weight|1.1|must be greater than 0 and at most 1
--short-length|x|must be a number from 0 to 16777216
--align|0|must be a number that divides the capacity
--align|16777217|must be a number that divides the capacity
END
    bad_option "--align=5 does not divide the capacity, 12" -L 12 --align=5
    # Lists of 64 depths are accepted, longer ones are not.
    printf '7 2\n' >h
    [ "$(packplan -L 10 -a ffd -d "$(seq -s , 64)" --tsv h | wc -l)" -eq 65 ]
    run -64 packplan -L 10 -a ffd -d "$(seq -s , 65)" h
}

@test "options that cannot be combined" {
    bad_option '--plan and --scaling cannot be combined' \
        -L 8 -a ffd --plan --scaling
    bad_option '--tsv and --json cannot be combined' -L 8 --tsv --json
    bad_option '--plan cannot be combined with --tsv or --json' -L 8 -a ffd --plan --json
    local why='needs one algorithm and one depth: use -a and -d'
    bad_option "--plan $why" -L 8 --plan
    bad_option "--plan $why" -L 8 --plan -a ffd -d 1,2
    bad_option "--scaling $why" -L 8 --scaling -a all
    bad_option '--overhead needs one value for all depths, or one for each' \
        -L 8 -d 1,2 --overhead=1,2,3
}

@test "lost output is not reported as success" {
    local form
    small
    for form in --tsv --json --plan --no-bound; do
        run --separate-stderr -1 sh -c \
            "packplan -L 10 -a ffd $form small.hist >&-"
        [ "$stderr" = 'packplan: stdout: Bad file descriptor' ]
        [ -w /dev/full ] || continue
        run --separate-stderr -1 sh -c \
            "packplan -L 10 -a ffd $form small.hist >/dev/full"
        [ "$stderr" = 'packplan: stdout: No space left on device' ]
    done
}

@test "SIGPIPE ends it when the reader has gone" {
    awk 'BEGIN { for (i = 1; i <= 60000; i++) print i, 1 }' >h
    run -141 bash -o pipefail -c \
        'packplan -L 65536 -a none --plan h | head -n 1 >/dev/null'
}

@test "--align plans for rounded-up lengths, and counts tokens" {
    small
    # 8+4 8+4 8+4 4+4+4, and 40 tokens in 4 packs of 12.
    columns 1-3,6,9 packplan -L 12 -d 3 -a lpfhp,none --align=4 --tsv \
        small.hist >got
    printf '%s\t%s\t%s\t%s\t%s\n' \
        algorithm depth packs efficiency bound \
        none 1 9 0.37037037 9.000 lpfhp 3 4 0.833333333 4.000 >expected
    diff expected got
    packplan -L 12 -d 3 -a lpfhp --align=4 --plan small.hist >plan
    printf '%s\n' '8 3' '4 6' | packplan -L 12 -d 3 -a lpfhp --plan |
        diff - plan
    packplan -L 12 --align=4 --json small.hist |
        grep '^{"capacity": 12, "align": 4, "sequences": 9, "tokens": 40'
    packplan -L 12 --align=4 small.hist | sed -n 2p |
        grep -x "sequences begin at multiples of 4"
}
