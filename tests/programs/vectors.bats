#!/usr/bin/env bats
# vectors.bats - channels of vectors: tokcat reads them from lists of lists, and
# the other programs carry them.
#
# SPDX-License-Identifier: MIT

load ../support/helpers

# shellcheck disable=SC2034 # for bad_option
program=tokcat

# vector_rows N: rows with a vector of three per token, a declared one per
# sequence, and numbers of both kinds.  All values are exact in an f32.
vector_rows() {
    awk -v n="$1" 'BEGIN {
        srand(7)
        for (i = 0; i < n; i++) {
            length_ = 1 + int(rand() * 12)
            ids = mel = labels = ""
            for (t = 0; t < length_; t++) {
                comma = t > 0 ? "," : ""
                ids = ids comma int(rand() * 1000)
                labels = labels comma int(rand() * 9) - 4
                mel = mel comma "[" int(rand() * 99) ".5," \
                    int(rand() * 9) ".25,-" int(rand() * 9) ".75]"
            }
            printf "{\"input_ids\":[%s],\"e\":[%d,%d],\"mel\":[%s],", ids,
                i, i * 7 - 300, mel
            printf "\"labels\":[%s],\"id\":%d}\n", labels, i
        }
    }'
}

# rows_to_tokens [OPTION...]: these rows as token records.
rows_to_tokens() {
    tokcat --from=jsonl --channel='e:i64[2]:-1' "$@"
}

# bad_second LINE WHY [OPTION...]: a second line that is refused.
bad_second() {
    printf '%s\n' '{"input_ids":[1],"v":[[1,2]],"e":[3,4,5]}' "$1" >x
    is 65 "tokcat: x: line 2, column $2" tokcat --from=jsonl \
        --channel='e:f32[3]' "${@:3}" x
}

# bad_first VALUE WHY [OPTION...]: a value of `v` in the first line.
bad_first() {
    printf '{"input_ids":[1,2],"v":%s}\n' "$1" >x
    is 65 "tokcat: x: line 1, column $2" tokcat --from=jsonl "${@:3}" x
}

@test "a list of lists is a channel of vectors" {
    cat >x <<'END'
{"input_ids":[1,2],"v":[[0.5,1,null],[-2,0.25,3]],"w":[[1,2],[3,-4]]}
{"w":[ [5 ,6] ],"input_ids":[3],"v":[[1,2,3]]}
{"w":[],"input_ids":[],"v":[]}
END
    tokcat -q --from=jsonl x >got
    skip_without python3
    stream '{"channels": [["v", "f32[3]", "token", 0],
        ["w", "i32[2]", "token", 0]],
        "records": [[[1, 2], [[0.5, 1, null], [-2, 0.25, 3]],
                     [[1, 2], [3, -4]]],
                    [[3], [[1, 2, 3]], [[5, 6]]]]}' | cmp - got
    # The declared type and fill, and null without numbers.
    echo '{"input_ids":[7],"a":[[null,null]],"b":[[1,0]],"c":[[true,2]]}' |
        tokcat --from=jsonl --channel='b:u8[2]:9' --channel=a:f64 \
            --channel=c:u16:5 >got
    stream '{"channels": [["b", "u8[2]", "token", 9],
        ["a", "f64[2]", "token", 0], ["c", "u16[2]", "token", 5]],
        "records": [[[7], [[1, 0]], [[null, null]], [[1, 2]]]]}' | cmp - got
}

@test "types are derived from all values of the vectors" {
    local channels='["b", "u8[2]", "token", 0], ["i", "i32[2]", "token", 0],
        ["w", "i64[2]", "token", 0], ["f", "f32[2]", "token", 0],
        ["n", "f32[2]", "token", 0]'
    echo '{"input_ids":[1,2],"b":[[true,false],[true,true]],
        "i":[[1,2],[true,4]],"w":[[1,2],[3,2147483648]],
        "f":[[1,2],[3,0.5]],"n":[[1,2],[null,4]]}' | tr -d '\n' |
        tokcat --from=jsonl >got
    skip_without python3
    stream "{\"channels\": [$channels], \"records\": [[[1, 2],
        [[1, 0], [1, 1]], [[1, 2], [1, 4]], [[1, 2], [3, 2147483648]],
        [[1, 2], [3, 0.5]], [[1, 2], [null, 4]]]]}" | cmp - got
}

@test "a declared channel of vectors can have one per sequence" {
    cat >x <<'END'
{"input_ids":[1,2],"e":[0.5,-1,null]}
{"input_ids":[],"e":[]}
{"input_ids":[],"e":[1,2,3]}
{"input_ids":[1,2,3],"e":[4,5,6]}
END
    tokcat -q --from=jsonl --channel='e:f64[3]:null' x >got
    skip_without python3
    stream '{"channels": [["e", "f64[3]", "sequence", null]],
        "records": [[[1, 2], [0.5, -1, null]], [[1, 2, 3], [4, 5, 6]]]}' |
        cmp - got
    # Without a length in the declaration, a list has a number for each token.
    echo '{"input_ids":[1,2],"e":[4,5]}' |
        tokcat --from=jsonl --channel=e:u8 >got
    stream '{"channels": [["e", "u8", "token", 0]],
        "records": [[[1, 2], [4, 5]]]}' | cmp - got
}

@test "padding is removed with its vectors" {
    echo '{"input_ids":[9,1,2,9],"attention_mask":[0,1,1,0],
        "v":[[1,2],[3,4],[5,6],[7,8]]}' | tr -d '\n' |
        tokcat -q --from=jsonl | packstream -q --capacity=4 |
        packcat --to=jsonl >got
    diff - got <<'END'
{"input_ids":[1,2],"attention_mask":[1,1],"v":[[3,4],[5,6]]}
END
}

@test "vectors of other lengths, and values that are not vectors" {
    local v='{"input_ids":[1,2],"e":[1,2,3],"v":'
    bad_second "${v}[[1,2],[3]]}" \
        "43: v[1] has length 1, but the channel is i32[2]: use --ignore=v"
    bad_second "${v}[[1,2,3],[1,2]]}" \
        "37: v[0] has length 3, but the channel is i32[2]: use --ignore=v"
    bad_second "${v}[[],[]]}" \
        "37: v[0] has length 0, but the channel is i32[2]: use --ignore=v"
    bad_second "${v}[[1,2]]}" \
        "36: v has length 1, but input_ids has length 2: use --ignore=v"
    bad_second "${v}[]}" \
        "36: v has length 0, but input_ids has length 2: use --ignore=v"
    bad_second "${v}[1,2]}" "36: v: is one vector, but was a list of vectors in\
 the first record: use --ignore=v"
    bad_second "${v}[1,2,3]}" \
        "36: v has length 3, but the channel is i32[2]: use --ignore=v"
    bad_second "${v}7}" \
        "36: v: is not a list, but the channel is i32[2]: use --ignore=v"
    bad_second "${v}null}" \
        "36: v: is not a list, but the channel is i32[2]: use --ignore=v"
    bad_second "${v}[[1,2],null]}" "43: v[1]: null is not a vector: use --ignore=v"
    bad_second "${v}[[1,2],3]}" "43: v[1]: 3 is not a vector: use --ignore=v"
    bad_second "${v}[[1,2],\"a\"]}" \
        "43: v[1]: a string is not a vector: use --ignore=v"
    bad_second "${v}[[1,2],[3,\"a\"]]}" \
        "46: v[1][1]: a string is not a number: use --ignore=v"
    bad_second "${v}[[1,2],[[3],4]]}" \
        "44: v[1][0]: a list is not a number: use --ignore=v"
    bad_second "${v}[[1,2],[3,0.5]]}" "46: v[1][1]: 0.5 is not an integer, but the\
 channel is i32: set its type with --channel=v:TYPE, or use --ignore=v"
    bad_second "${v}[[1,2],[NaN,4]]}" "44: expected a value near 'NaN,4]]}'"
    bad_second "${v}[[1,2],[3,4],]}" "49: expected a value near ']}'"
    bad_second "${v}[[1,2],[3,4" "47: expected ',' or ']' at the end of the line:\
 an object must be on one line, as jq -c writes it"
    local e='{"input_ids":[1,2],"v":[[1,2],[3,4]],"e":'
    bad_second "${e}[1,2]}" \
        "42: e has length 2, but the channel is f32[3]: use --ignore=e"
    bad_second "${e}[[1,2,3],[1,2,3]]}" "42: e: is a list of vectors, but was one\
 vector in the first record: use --ignore=e"
    bad_second "${e}1}" \
        "42: e: is not a list, but the channel is f32[3]: use --ignore=e"
    bad_second "${e}[1,2,16777217]}" "47: e[2]: 16777217 has no exact f32: set its\
 type with --channel=e:TYPE, or use --ignore=e"
}

@test "first records that do not determine a channel of vectors" {
    bad_first '[[1,2],[3]]' \
        "31: v[1] has length 1, but v[0] has length 2: use --ignore=v"
    bad_first '[[],[1,2]]' \
        "28: v[1] has length 2, but v[0] has length 0: use --ignore=v"
    bad_first '[[1],[2]]' "24: v: vectors of length 1, but the limits are 2\
 and 16384: use --ignore=v"
    bad_first '[[1,2]]' \
        "24: v has length 1, but input_ids has length 2: use --ignore=v"
    bad_first '[1,2,3]' "24: v has length 3, but input_ids has length 2:\
 use --ignore=v, or --channel=v:TYPE[3] for a vector per sequence, or TYPE[]\
 for a list of any length"
    bad_first '[[1,2],[3,4]]' \
        "25: v[0] has length 2, but the channel is f64[3]: use --ignore=v" \
        --channel='v:f64[3]'
    bad_first '[[1,"a"],[3,4]]' \
        "24: v: not a list of numbers: use --ignore=v" --channel='v:f64[2]'
    bad_first '[[],[]]' "24: v: vectors of length 0, but the limits are 2\
 and 16384: use --ignore=v" --channel=v:f32
    # A well-known channel has single values unless it is declared.
    printf '{"input_ids":[1,2],"labels":[[1,2],[3,4]]}\n' >x
    is 65 "tokcat: x: line 1, column 29: labels: not a list of numbers: use\
 --ignore=labels" tokcat --from=jsonl x
    tokcat --from=jsonl --channel='labels:i32[2]' x >y
    run -0 packstat y
    [[ $output == *"labels "*" i32[2] per token"* ]]
    # Other nested lists are ignored, with a warning.
    printf '{"input_ids":[1,2],"a":[[[1]],[[2]]],"b":[[],[]],%s' \
        '"c":[["x"],[]],"d":[[null,null],[null,null]],"f":[[1,2],{}]}' >x
    run -0 --separate-stderr tokcat --from=jsonl -o y x
    # shellcheck disable=SC2154 # run sets it
    diff - <(echo "$stderr") <<'END'
tokcat: x: ignoring 'a': not a list of numbers
tokcat: x: ignoring 'b': lists without numbers
tokcat: x: ignoring 'c': not a list of numbers
tokcat: x: ignoring 'd': null (see --channel)
tokcat: x: ignoring 'f': not a list of numbers
END
}

@test "vectors have at most 16384 values" {
    local n
    for n in 16384 16385; do
        printf '{"input_ids":[5],"v":[[%s1]]}\n' \
            "$(head -c $((2 * n - 2)) /dev/zero | sed 's/\x00\x00/1,/g')" >$n
    done
    tokcat --from=jsonl 16384 >y
    run -0 packstat y
    [[ $output == *"i32[16384] per token"* ]]
    is 65 "tokcat: 16385: line 1, column 22: v: vectors of length 16385, but\
 the limits are 2 and 16384: use --ignore=v" tokcat --from=jsonl 16385
    # One long vector, and many empty ones after it.
    { printf '{"input_ids":[5],"v":[['
      head -c 200000 /dev/zero | sed 's/\x00\x00/1,/g'
      printf '1]'
      head -c 200000 /dev/zero | sed 's/\x00\x00/,[]/g'
      echo ']}'; } >x
    is 65 "tokcat: x: line 1, column 22: v has length 100001, but input_ids has\
 length 1: use --ignore=v" tokcat --from=jsonl x
    local value
    for value in x:f32[1] x:f32[16385] x:f32[][] x:f32[2 x:f32[2]3 x:f32[+2] \
        x:f32[02] 'x:f32[ 2]' x:f32[2][2] \
        'x:f32[99999999999999999999]'; do
        bad_option "--channel=$value: the length of a vector, as in f32[80],\
 must be from 2 to 16384" --from=jsonl "--channel=$value"
    done
    bad_option "--channel=attention_mask:u8[2]: an attention mask has one\
 number per token" --from=jsonl '--channel=attention_mask:u8[2]'
    bad_option "--channel=x:u8[2]:256: the fill must be a number that the type\
 can hold" --from=jsonl '--channel=x:u8[2]:256'
}

@test "rows with vectors are packed and printed unchanged" {
    vector_rows 300 >x
    rows_to_tokens x >x.tok
    packcat --to=jsonl x.tok | cmp - x
    local options
    for options in '' '-a bestfit' '--zstd -T2' '--align=8' '--shuffle=3' \
        '--overlong=split -L 5' '--by=id' '--budget=id:4000'; do
        # shellcheck disable=SC2086 # words
        packstream -q -L 32 $options x.tok >y
        packstat -q --verify --against=x.tok y
        packcat y | cmp - x.tok
        packcat --to=jsonl y | cmp - x
        packcat --to=packs y y >z
        packcat --to=jsonl --range=-1: z >/dev/null
    done
    packstream -q -L 5 --overlong=truncate x.tok >y
    packstat -q --verify --against=x.tok y
    packstream -q -L 5 --overlong=drop --rejects=r x.tok >y
    packstat -q --verify --against=x.tok --rejects=r y
    # In pack order, for TRL: a list of all vectors in the pack.
    packstream -q -L 32 x.tok | packcat --to=trl >trl
    skip_without python3
    python3 - <<'END'
import json
import sys

rows = {r["id"]: r for r in map(json.loads, open("x"))}
for line in open("trl"):
    pack = json.loads(line)
    begin = 0
    for i, n in enumerate(pack["seq_lengths"]):
        row = rows.pop(pack["id"][i])
        assert pack["e"][i] == row["e"]
        for key in "input_ids", "mel", "labels":
            assert pack[key][begin:begin + n] == row[key]
        begin += n
assert not rows
END
}

@test "numpy loads vectors as another dimension" {
    skip_without_numpy
    vector_rows 40 >x
    rows_to_tokens x >x.tok
    printf '%s\n' '{"input_ids":[1,2],"v":[[1,2],[3,4]]}' |
        tokcat --from=jsonl --channel='v:i64[2]:-7' |
        packstream -q -L 3 | packcat --to=npy -o small.npy
    packstream -q -L 32 x.tok >x.pks
    packcat --to=npy -o x.npy x.pks
    packcat --to=jsonl --order=pack x.pks >ordered
    "$PYTHON_NUMPY" - <<'END'
import json
import numpy as np

small = np.load("small.npy")
assert small["v"].shape == (1, 3, 2) and small["v"].dtype == "<i8"
assert small["v"].tolist() == [[[1, 2], [3, 4], [-7, -7]]]

packs = np.load("x.npy")
assert packs["mel"].shape == (len(packs), 32, 3)
assert packs["mel"].dtype == "<f4"
assert "e" not in packs.dtype.names
rows = map(json.loads, open("ordered"))
for pack in packs:
    begin = 0
    while begin < 32 and pack["mel"][begin].any():
        row = next(rows)
        n = len(row["input_ids"])
        assert pack["tokens"][begin:begin + n].tolist() == row["input_ids"]
        assert pack["mel"][begin:begin + n].tolist() == row["mel"]
        begin += n
    assert not pack["mel"][begin:].any()
assert next(rows, None) is None
END
}

@test "forms without channels leave vectors out, or refuse them" {
    vector_rows 40 >x
    rows_to_tokens x >x.tok
    packstream -q -L 32 x.tok >x.pks
    tokcat --from=jsonl --ignore={e,mel,labels,id} x >plain.tok
    packstream -q -L 32 plain.tok >plain.pks
    local form
    for form in ids rows llmc megatron datatrove; do
        packcat -q --to=$form -o vectors x.pks
        packcat -q --to=$form -o alone plain.pks
        for name in vectors*; do
            cmp "$name" "alone${name#vectors}"
        done
        rm -f vectors* alone*
    done
    # Channels that a form uses must have single values.
    local channel
    for channel in labels:i32 token_type_ids:u8; do
        printf '{"input_ids":[1],"%s":[[1,2]]}\n' "${channel%:*}" |
            tokcat --from=jsonl --channel="${channel}[2]" |
            packstream -q -L 4 >y
        is 65 "packcat: y: channel '${channel%:*}' has type ${channel#*:}[2],\
 which --to=tfrecord cannot write" packcat --to=tfrecord -o z y
    done
    printf '{"input_ids":[1],"loss_mask":[[1,0]]}\n' |
        tokcat --from=jsonl --channel='loss_mask:u8[2]' |
        packstream -q -L 4 >y
    is 65 "packcat: y: channel 'loss_mask' must be u8 per token for\
 --to=datatrove" packcat --to=datatrove -o z y
}

@test "packstat shows vectors and compares them" {
    vector_rows 40 >x
    rows_to_tokens x >x.tok
    packstream -q -L 32 x.tok >x.pks
    local file
    for file in x.tok x.pks; do
        run -0 packstat $file
        [[ $output =~ channels\ +e\ +i64\[2\]\ per\ sequence ]]
        [[ $output =~ mel\ +f32\[3\]\ per\ token ]]
        [[ $output =~ labels\ +i32\ per\ token ]]
        # Vectors per token are inputs, not targets.
        run -0 packstat --json $file
        [[ $output =~ \"targets\":\ \{\"labels\":\ [0-9]+\} ]]
        for channel in e mel; do
            is 65 "packstat: $file: no channel '$channel' with one integer per\
 sequence" packstat --by=$channel $file
        done
    done
    # The second token of sequence 5, and the embedding of sequence 7.
    sed '6s/\(\],\[[0-9.]*,\)[0-9.]*/\199.5/' x | rows_to_tokens >y.tok
    run -65 packstat --verify --against=y.tok x.pks
    [[ $output == *"'mel' of token 1 of sequence 5 differs from"* ]]
    sed '8s/"e":\[7,/"e":[8,/' x | rows_to_tokens >y.tok
    run -65 packstat --verify --against=y.tok x.pks
    [[ $output == *"'e' of sequence 7 differs from"* ]]
    # Another length is another schema.
    sed 's/,-[0-9]*.75\]/]/g' x | rows_to_tokens >y.tok
    run -65 packstat --verify --against=y.tok x.pks
    [[ $output == *"channel 'mel' is f32["[23]"], not f32["[23]"]"* ]]
    run packstream -q -L 32 x.tok y.tok
    [[ $output == *"channel 'mel' is f32[2], not f32[3]"* ]]
}

@test "a vector is not a value to group, to limit or to sort by" {
    vector_rows 5 | rows_to_tokens >x.tok
    # shellcheck disable=SC2034 # for bad_option
    local use program=packstream operands=(x.tok)
    for use in 'group=e|to group by' 'by=e|to pack by' 'budget=e:5|for a budget'
    do
        bad_option "channel 'e' has vectors, but a single value is needed\
 ${use#*|}" -L 32 "--${use%|*}"
    done
    bad_option "channel 'mel' has a value per token, but one per sequence is\
 needed to group by" -L 32 --group=mel
    # shellcheck disable=SC2034 # for bad_option
    program=tokshuf
    bad_option "x.tok: no channel 'e' with one number per sequence to group\
 by" --group=e
    is 65 "packstat: x.tok: no channel 'e' with one number per sequence to\
 group by" packstat --histogram --group=e x.tok
}

@test "shuffling, mixing and dealing carry vectors unchanged" {
    vector_rows 300 >x
    rows_to_tokens x >x.tok
    sort x >sorted
    tokshuf -q -M 64Ki --seed=5 x.tok | packcat --to=jsonl | sort |
        cmp - sorted
    head -150 x | rows_to_tokens >a.tok
    tail -150 x | rows_to_tokens >b.tok
    tokmix -q --stop=longest 1=a.tok 2=b.tok | packcat --to=jsonl | sort |
        cmp - sorted
    # A channel of the source after the vector per sequence.
    tokmix -q --stop=longest --channel=source 1=a.tok 2=b.tok |
        packcat --to=jsonl | sed 's/,"source":[01]}/}/' | sort | cmp - sorted
    packdeal -q -n 2 -b 3 -o r%d x.tok
    packcat --to=jsonl r0 r1 | sort | cmp - sorted
    packstream -q -L 32 x.tok >x.pks
    packdeal -q -n 2 -b 3 -o r%d x.pks
    packcat --to=jsonl r0 r1 | sort | cmp - sorted
}

# killed PROGRAM INPUT [OPTION...]: kills a job with a state after it has read
# most of its input, resumes it, and compares with the output of an
# undisturbed one.
killed() {
    local command=("$1" -q "${@:3}") pid
    rm -rf pipe state resumed
    "${command[@]}" -o whole "$2"
    mkfifo pipe
    "${command[@]}" --state=state --state-every=20 -o resumed - <pipe &
    pid=$!
    exec 5>pipe
    head -c $(($(wc -c <"$2") * 2 / 3)) "$2" >&5
    idle $pid
    [ -s state ]
    kill -9 $pid
    wait $pid || true
    exec 5>&-
    ! cmp -s resumed whole
    "${command[@]}" --state=state --resume -o resumed - <"$2"
    cmp resumed whole
}

@test "killed jobs with vectors resume with the same bytes" {
    vector_rows 3000 >x
    rows_to_tokens x >x.tok
    killed tokcat x --from=jsonl '--channel=e:i64[2]:-1'
    cmp whole x.tok
    killed packstream x.tok -L 64
    killed packstream x.tok -L 64 --zstd=1 --shuffle=3
    killed tokshuf x.tok --seed=2 -M 64Ki
}
