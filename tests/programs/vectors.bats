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

# refused LINE WHY [OPTION...]: a second line that is refused.
refused() {
    printf '%s\n' '{"input_ids":[1],"v":[[1,2]],"e":[3,4,5]}' "$1" >x
    is 65 "tokcat: x: line 2, column $2" tokcat --from=jsonl \
        --channel='e:f32[3]' "${@:3}" x
}

# refused_first VALUE WHY [OPTION...]: a value of `v` in the first line.
refused_first() {
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
    refused "$v[[1,2],[3]]}" \
        "43: v[1] has length 1, but the channel is i32[2]: use --ignore=v"
    refused "$v[[1,2,3],[1,2]]}" \
        "37: v[0] has length 3, but the channel is i32[2]: use --ignore=v"
    refused "$v[[],[]]}" \
        "37: v[0] has length 0, but the channel is i32[2]: use --ignore=v"
    refused "$v[[1,2]]}" \
        "36: v has length 1, but input_ids has length 2: use --ignore=v"
    refused "$v[]}" \
        "36: v has length 0, but input_ids has length 2: use --ignore=v"
    refused "$v[1,2]}" "36: v: is one vector, but was a list of vectors in the\
 first record: use --ignore=v"
    refused "$v[1,2,3]}" \
        "36: v has length 3, but the channel is i32[2]: use --ignore=v"
    refused "${v}7}" \
        "36: v: is not a list, but the channel is i32[2]: use --ignore=v"
    refused "${v}null}" \
        "36: v: is not a list, but the channel is i32[2]: use --ignore=v"
    refused "$v[[1,2],null]}" "43: v[1]: null is not a vector: use --ignore=v"
    refused "$v[[1,2],3]}" "43: v[1]: 3 is not a vector: use --ignore=v"
    refused "$v[[1,2],\"a\"]}" \
        "43: v[1]: a string is not a vector: use --ignore=v"
    refused "$v[[1,2],[3,\"a\"]]}" \
        "46: v[1][1]: a string is not a number: use --ignore=v"
    refused "$v[[1,2],[[3],4]]}" \
        "44: v[1][0]: a list is not a number: use --ignore=v"
    refused "$v[[1,2],[3,0.5]]}" "46: v[1][1]: 0.5 is not an integer, but the\
 channel is i32: set its type with --channel=v:TYPE, or use --ignore=v"
    refused "$v[[1,2],[NaN,4]]}" "44: expected a value near 'NaN,4]]}'"
    refused "$v[[1,2],[3,4],]}" "49: expected a value near ']}'"
    refused "$v[[1,2],[3,4" "47: expected ',' or ']' at the end of the line"
    local e='{"input_ids":[1,2],"v":[[1,2],[3,4]],"e":'
    refused "$e[1,2]}" \
        "42: e has length 2, but the channel is f32[3]: use --ignore=e"
    refused "$e[[1,2,3],[1,2,3]]}" "42: e: is a list of vectors, but was one\
 vector in the first record: use --ignore=e"
    refused "${e}1}" \
        "42: e: is not a list, but the channel is f32[3]: use --ignore=e"
    refused "$e[1,2,16777217]}" "47: e[2]: 16777217 has no exact f32: set its\
 type with --channel=e:TYPE, or use --ignore=e"
}

@test "first records that do not determine a channel of vectors" {
    refused_first '[[1,2],[3]]' \
        "31: v[1] has length 1, but v[0] has length 2: use --ignore=v"
    refused_first '[[],[1,2]]' \
        "28: v[1] has length 2, but v[0] has length 0: use --ignore=v"
    refused_first '[[1],[2]]' "24: v: vectors of length 1, but the limits are 2\
 and 16384: use --ignore=v"
    refused_first '[[1,2]]' \
        "24: v has length 1, but input_ids has length 2: use --ignore=v"
    refused_first '[1,2,3]' "24: v has length 3, but input_ids has length 2:\
 use --ignore=v, or --channel=v:TYPE[3] for a vector per sequence"
    refused_first '[[1,2],[3,4]]' \
        "25: v[0] has length 2, but the channel is f64[3]: use --ignore=v" \
        --channel='v:f64[3]'
    refused_first '[[1,"a"],[3,4]]' \
        "24: v: not a list of numbers: use --ignore=v" --channel='v:f64[2]'
    refused_first '[[],[]]' "24: v: vectors of length 0, but the limits are 2\
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
    for value in x:f32[1] x:f32[16385] x:f32[] x:f32[2 x:f32[2]3 x:f32[+2] \
        x:f32[02] 'x:f32[ 2]' x:f32[2][2] x:f32[99999999999999999999]; do
        bad_option "--channel=$value: the length of a vector, as in f32[80],\
 must be from 2 to 16384" --from=jsonl "--channel=$value"
    done
    bad_option "--channel=attention_mask:u8[2]: an attention mask has no\
 vectors" --from=jsonl '--channel=attention_mask:u8[2]'
    bad_option "--channel=x:u8[2]:256: the fill must be a number that the type\
 can hold" --from=jsonl '--channel=x:u8[2]:256'
}
