#!/usr/bin/env bats
# packstat-channels.bats - packstat's counts of channels: labels that are not
# ignored, and sequences and tokens by a channel's values.  awk counts the same
# in the text of the records.
#
# SPDX-License-Identifier: MIT

load ../support/helpers

# lines N: objects with per-token channels of several types, and a source.
lines() {
    awk -v n="$1" '
    function draw(k) { x = (x * 1103515245 + 12345) % 2147483648
        return int(x / 65536) % k }
    function list(key, a, k,    i, s) {
        for (i = 1; i <= len; i++)
            s = s (i > 1 ? "," : "") a[draw(k) + 1]
        return "\"" key "\":[" s "]"
    }
    BEGIN {
        x = 7
        split("1 2 3 60000", ids); split("-100 -100 0 -1 9", labels)
        split("0 1 100", bytes); split("0 0.5 -0.0 2", floats)
        split("-2147483648 -3 0 7", sources)
        for (r = 0; r < n; r++) {
            len = 1 + draw(40)
            print "{" list("input_ids", ids, 4) "," list("labels", labels, 5) \
                "," list("loss_mask", bytes, 3) "," list("far", labels, 5) \
                "," list("weight", floats, 4) "," list("wide", bytes, 3) \
                ",\"source\":" sources[draw(4) + 1] "}"
        }
    }'
}

# records: token records of lines.
records() {
    tokcat -q --from=jsonl --channel=far:i64 --channel=wide:f64 \
        --channel=weight:f32
}

# counts KEY IGNORED: values of a list in lines on stdin that are not IGNORED.
counts() {
    grep -o "\"$1\":\[[^]]*\]" | sed 's/.*\[//; s/\]//' | tr , '\n' |
        awk -v ignored="$2" '$1 + 0 != ignored { n++ } END { print n + 0 }'
}

# by_source: "value sequences tokens" of lines on stdin.
by_source() {
    sed 's/.*"input_ids":\[\([^]]*\)\].*"source":\(.*\)}/\2 \1/' |
        awk '{ n[$1]++; tokens[$1] += split($2, ids, ",") }
            END { for (v in n) print v, n[v], tokens[v] }' | sort -n
}

# values: the same from packstat's JSON.
values() {
    grep -o '"value": [^}]*' | sed 's/"[a-z]*": //g; s/,//g'
}

# targets: "name count" from packstat's JSON, sorted by name.
targets() {
    sed 's/.*"targets": {//; s/}.*//' | tr -d '":' | sed 's/, /\n/g' | sort
}

@test "labels that are not ignored are counted, by type" {
    lines 500 >x
    records <x >x.tok
    {
        echo "far $(counts far -100 <x)"
        echo "labels $(counts labels -100 <x)"
        echo "loss_mask $(counts loss_mask 0 <x)"
        echo "weight $(counts weight 0 <x)"
        echo "wide $(counts wide 0 <x)"
    } >wanted
    [ "$(awk '$2 > 0' wanted | wc -l)" -eq 5 ]
    packstat --json x.tok | targets | diff -u wanted -
    for options in "-L 64" "-L 64 --align=16" "-L 16 --overlong=split" \
        "-L 64 -d 2 --zstd"; do
        # shellcheck disable=SC2086 # words
        packstream -q $options x.tok >x.pks
        packstat --json x.pks | targets | diff -u wanted -
        packstat --json --verify x.pks | targets | diff -u wanted -
        packstat --json <x.pks | targets | diff -u wanted -
    done
    # Joined streams, and a whole file in two parts.
    packstream -q -L 64 x.tok >x.pks
    cat x.pks x.pks >two.pks
    packstat --json two.pks | targets | awk '{ print $1, $2 / 2 }' |
        diff -u wanted -
    for range in 0:20 20:; do
        packstat --json --range=$range x.pks | targets
    done | awk '{ n[$1] += $2 } END { for (k in n) print k, n[k] }' | sort |
        diff -u wanted -
}

@test "sequences and tokens by the values of a channel" {
    lines 500 >x
    records <x >x.tok
    by_source <x >wanted
    [ "$(wc -l <wanted)" -eq 4 ]
    packstat --json --by=source x.tok | values | diff -u wanted -
    for options in "-L 64" "-L 64 --align=16" "-L 64 --zstd"; do
        # shellcheck disable=SC2086 # words
        packstream -q $options x.tok >x.pks
        packstat --json --by=source x.pks | values | diff -u wanted -
    done
    # Each piece of a split sequence counts; tokens do not change.
    packstream -q -L 16 --overlong=split x.tok >x.pks
    packstat --json --by=source x.pks | values | cut -d' ' -f1,3 |
        diff -u <(cut -d' ' -f1,3 wanted) -
    [ "$(packstat --json --by=source x.pks | values |
        awk '{ n += $2 } END { print n }')" -eq "$(packstat --json x.pks |
        grep -o '"sequences": [0-9]*' | sed -n 1p | tr -dc 0-9)" ]
}

@test "values of every integer type" {
    for type in u8 u16 u32 u64 i32 i64; do
        case $type in
            i32) set -- -2147483648 -1 0 2147483647 ;;
            i64) set -- -9223372036854775808 -1 0 9223372036854775807 ;;
            u64) set -- 0 1 4294967296 9223372036854775807 ;;
            *) set -- 0 1 2 $(((1 << ${type#u}) - 1)) ;;
        esac
        for value in "$3" "$1" "$4" "$2"; do
            printf '{"input_ids":[1,2],"v":%s}\n' "$value"
        done | tokcat -q --from=jsonl --channel=v:$type >x.tok
        packstream -q -L 4 x.tok >x.pks
        for file in x.tok x.pks; do
            packstat --json --by=v $file | values |
                diff -u <(printf '%s 1 2\n' "$@") -
        done
    done
}

@test "1024 values are listed, the rest as one sum" {
    seq 2000 | awk '{ print "{\"input_ids\":[1,2,3],\"v\":" 3000 - $1 "}" }' |
        tokcat -q --from=jsonl >x.tok
    packstream -q -L 3 -w 1 x.tok >x.pks
    for file in x.tok x.pks; do
        packstat --json --by=v $file >json
        values <json | diff -u <(seq 1976 2999 | sed 's/$/ 1 3/') -
        grep -F '"others": {"sequences": 976, "tokens": 2928}' json
        packstat --by=v $file >text
        grep -Ex ' *2999  +1  +3  +0\.05%' text
        grep -Ex ' *others  +976  +2,928  +48\.80%' text
    done
    head -n 1 text | grep -Fx x.pks
}

@test "the summary shows both" {
    printf '%s\n' '{"input_ids":[1,2,3],"labels":[-100,5,6],"source":1}' \
        '{"input_ids":[4],"labels":[-100],"source":20}' |
        tokcat -q --from=jsonl >x.tok
    packstat --by=source x.tok >text
    grep -Fx '  targets        labels                  2, 50.00%' text
    grep -A2 -Fx '  source  sequences  tokens' text | tail -n 2 | diff -u - \
        <(printf '%s\n' '       1          1       3   75.00%' \
            '      20          1       1   25.00%')
}

# A sequence must fit in memory to be counted.
@test "sequences of any length are counted" {
    awk 'BEGIN { printf "{\"input_ids\":[1"
        for (i = 1; i < 100000; i++) printf ",1"
        printf "],\"labels\":[-100"
        for (i = 1; i < 100000; i++) printf i % 4 ? ",1" : ",-100"
        print "]}" }' | tokcat -q --from=jsonl >x.tok
    packstat --json x.tok | targets | grep -Fx 'labels 75000'
}

@test "a channel that cannot be counted by, and conflicting options" {
    lines 9 | records | tee x.tok | packstream -q -L 64 >x.pks
    echo '1 2 3' | tokcat -q --from=ids --raw >raw.tok
    printf '{"input_ids":[1],"score":0.5}\n' | tokcat -q --from=jsonl >f.tok
    while read -r file channel; do
        run -65 --separate-stderr packstat --by="$channel" "$file"
        [ -z "$output" ]
        # shellcheck disable=SC2154 # run sets it
        [ "$stderr" = "packstat: $file: no channel '$channel' with one \
integer per sequence" ]
    done <<'END'
x.tok none
x.pks none
x.pks labels
x.pks start
raw.tok source
f.tok score
END
    for option in --histogram --quick --verify; do
        run -64 --separate-stderr packstat --by=source $option x.pks
        [[ $stderr == 'packstat: --by is for a summary or --json: '* ]]
    done
}
