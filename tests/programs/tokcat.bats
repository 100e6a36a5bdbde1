#!/usr/bin/env bats
# tokcat.bats - text becomes token records exactly, or is refused.
#
# The expected output is made independently, by helpers.bash or by
# tests/support/tokcat.py, and compared byte for byte.
#
# SPDX-License-Identifier: MIT

load ../support/helpers

# shellcheck disable=SC2034 # for bad_option
program=tokcat

# got_stream DESCRIPTION: `got` equals the stream that stream() makes.
got_stream() {
    skip_without python3
    stream "$1" | cmp - got
}

# bad_ids TEXT WHY [OPTION...]: a line of ids that is refused.
bad_ids() {
    printf '%b' "$1" >x.ids
    is 65 "tokcat: x.ids: $2" tokcat --from=ids "${@:3}" x.ids
}

# bad_json LINE WHY [OPTION...]: a seventh line that is refused, after six valid
# ones of one token, with labels and a score.
good='{"input_ids":[5],"labels":[1],"score":2}'
bad_json() {
    printf '%s\n' "$good"{,,,,,} "$1" "$good" >x.jsonl
    is 65 "tokcat: x.jsonl: line 7$2" tokcat --from=jsonl "${@:3}" x.jsonl
}

# bad_values: lines KEY|VALUE|WHY|OPTION; replaces the value in "$line", or in
# the valid line if unset.  The message names the column of the invalid element.
bad_values() {
    local key value why option before column
    while IFS='|' read -r key value why option; do
        [[ ${line-$good} =~ ^(.*\"$key\":)(\[[^]]*\]|[0-9]+)(.*)$ ]]
        before=${BASH_REMATCH[1]}
        column=$((${#before} + 1))
        case $why in
        '[0]'*) column=$((column + 1)) ;;
        '[1]'*) before+=${value%,*}, column=$((${#before} + 1)) ;;
        esac
        bad_json "${BASH_REMATCH[1]}$value${BASH_REMATCH[3]}" \
            ", column $column: $key$why" ${option:+"$option"}
    done
}

# remedy KEY: the end of the message for a channel.
remedy() {
    echo ": use --ignore=$1"
}

# typed KEY: the same if another type would do.
typed() {
    echo ": set its type with --channel=$1:TYPE, or use --ignore=$1"
}

# bad_first LINE WHY [OPTION...]: the same for a first line.
bad_first() {
    printf '%s\n' "$1" >x.jsonl
    is 65 "tokcat: x.jsonl: line 1$2" tokcat --from=jsonl "${@:3}" x.jsonl
}

# ------------------------------------------------------------------- ids

@test "ids: a line is a record" {
    printf '1 2 3\n0\n65535 256\n' >x
    { record16 1 2 3; record16 0; record16 65535 256; } >wanted
    tokcat --from=ids --raw x | cmp - wanted
    { record32 1 2 3; record32 0; record32 65535 256; } >wanted
    tokcat --from=ids --raw -t u32 <x | cmp - wanted
    tokcat --from=ids --raw --type=u32 - <x | cmp - wanted
}

@test "ids: the greatest token of each type" {
    echo 65535 | tokcat --from=ids --raw | cmp - <(record16 65535)
    echo 4294967295 | gives 32 4294967295 --from=ids -t u32
}

@test "ids: blanks, tabs, leading zeros, both kinds of line ends" {
    printf ' 1  2\t\t3 \r\n\t4\n0005 00000000000000000000000000006\n7' |
        tokcat --from=ids --raw >got
    { record16 1 2 3; record16 4; record16 5 6; record16 7; } | cmp - got
    printf '8\r' | tokcat --from=ids --raw | cmp - <(record16 8)
}

@test "a byte order mark is skipped, only at the start of text" {
    printf '\xef\xbb\xbf1 2\n3\n' >x
    { record16 1 2; record16 3; } >wanted
    tokcat --from=ids --raw x | cmp - wanted
    dd bs=1 if=x status=none | tokcat --from=ids --raw | cmp - wanted
    gzip -c x | tokcat --from=ids --raw | cmp - wanted
    tokcat --from=ids --raw x x | cmp - <(cat wanted wanted)
    printf '\xef\xbb\xbf{"input_ids": [1, 2]}\n{"input_ids": [3]}\n' >y
    tokcat --from=jsonl --raw y y | cmp - <(cat wanted wanted)
    tokcat --from=bytes --raw x |
        cmp - <(record16 239 187 191 49 32 50 10; record16 51 10)
    printf '\xef\xbb\xbf' | tokcat -q --from=ids --raw | cmp - /dev/null
    # Columns are counted after it.
    printf '\xef\xbb\xbf1 x\n' >x
    is 65 "tokcat: x: line 1, column 3: 'x' is not a number" \
        tokcat --from=ids x
    # Files that each begin with one, joined: as text, or compressed.
    local bom='a byte order mark (bytes EF BB BF) in the middle of the text: '
    bom+='remove it'
    bad_ids '1\n\xef\xbb\xbf2\n' "line 2, column 1: $bom"
    bad_ids '1 2\xef\xbb\xbf3\n' "line 1, column 4: $bom"
    bad_ids '\xef\xbb\xbf\xef\xbb\xbf2\n' "line 1, column 1: $bom"
    cat y y >x
    is 65 "tokcat: x: line 3, column 1: $bom" tokcat --from=jsonl x
    gzip -c y >y.gz
    cat y.gz y.gz >x
    is 65 "tokcat: x: line 3, column 1: $bom" tokcat --from=jsonl x
    head -c -1 y >z
    cat z y >x
    is 65 "tokcat: x: line 2, column 19: $bom" tokcat --from=jsonl x
    # It is allowed in a string.
    printf '{"input_ids": [1], "x": "a\xef\xbb\xbf"}\n' |
        tokcat -q --from=jsonl --raw --ignore=x | cmp - <(record16 1)
    bad_ids '\xef\xbb2\n' "line 1, column 1: '??2' is not a number"
    bad_ids '\xff\xfe2\0\n\0' "line 1, column 1: '??2?' is not a number"
}

@test "input that is not tokens is not silently read as tokens" {
    local form
    for form in gzip bzip2 xz; do
        command -v "$form" || continue
        seq 99 | "$form" -c >x
        [ $(($(size x) % 2)) -eq 0 ] || printf x >>x
        is 65 "tokcat: x: byte 0: this looks like $form (use $form -dc), not\
 tokens: use --no-decompress to read it anyway" \
            tokcat --from=nanogpt --split=8 x
        tokcat --from=nanogpt --split=1000 --raw --no-decompress x |
            tail -c +5 | cmp - x
        [ $form = gzip ] && continue
        run -0 --separate-stderr tokcat --from=bytes -o y x
        [ "$stderr" = "tokcat: x: this looks like $form (use $form -dc): its\
 bytes become tokens" ]
        run -0 tokcat -q --from=bytes -o y x
        [ -z "$output" ]
        run -0 tokcat --no-decompress --from=bytes -o y x
        [ -z "$output" ]
    done
    # Digits can be text, JSON or tokens.
    printf '{"ab' | tokcat --from=nanogpt --split=8 --raw |
        cmp - <(record16 8827 25185)
    printf '{"a": 1}\n' >x
    run -0 tokcat --from=bytes -o y x
    [ -z "$output" ]
}

@test "ids: a line longer than any buffer" {
    awk 'BEGIN { for (i = 0; i < 300000; i++) printf "%d ", i % 60000 }' >x
    tokcat --from=ids --raw x >got
    [ "$(size got)" = 600004 ]
    # A count and then the tokens, which od reads as numbers.
    od -An -tu4 -N4 got | grep -x ' *300000'
    tail -c +5 got | od -An -v -tu2 | xargs -n 1000 >back
    xargs -n 1000 <x | cmp - back
}

@test "ids: lines of every length around a buffer's end" {
    # The first read has 262143 bytes; the line ends on either side of that.
    local n
    for n in 262139 262140 262141 262142 262143 262144; do
        { head -c "$n" /dev/zero | tr '\0' ' '; printf '77\n88\n'; } >x
        tokcat --from=ids --raw x | cmp - <(record16 77; record16 88)
    done
}

@test "ids: input that arrives a byte at a time" {
    printf '10 200\n3000\n' >x
    dd if=x bs=1 status=none | tokcat --from=ids --raw >got
    { record16 10 200; record16 3000; } | cmp - got
}

@test "ids: the framed stream, byte for byte" {
    printf '1 2 3\n65535\n' | tokcat --from=ids >got
    got_stream '{"records": [[[1, 2, 3]], [[65535]]]}'
    printf '1 4294967295\n' | tokcat --from=ids -t u32 >got
    got_stream '{"width": 4, "records": [[[1, 4294967295]]]}'
}

@test "ids: every field that the header can have" {
    head -c 100000 /dev/urandom >model
    echo 5 6 | tokcat --from=ids --vocab=32k --pad-id=1 --bos-id=2 \
        --eos-id=3 --cls-id=4 --sep-id=5 --mask-id=6 --tokenizer=model \
        --labels=aligned >got
    got_stream '{"vocab": 32000, "labels": 1, "tokenizer": "model",
        "special": {"pad": 1, "bos": 2, "eos": 3, "cls": 4, "sep": 5,
                    "mask": 6}, "records": [[[5, 6]]]}'
    echo 5 | tokcat --from=ids --labels=shifted --mask-id=0 >got
    got_stream '{"labels": 2, "special": {"mask": 0}, "records": [[[5]]]}'
}

@test "ids: the digest of an empty tokenizer file, known by heart" {
    : >empty
    echo 1 | tokcat --from=ids --tokenizer=empty >got
    [ "$(od -An -v -tx1 -j 72 -N 32 got | tr -d ' \n')" = \
        99aa06d3014798d86001c324468d497f00000000000000000000000000000000 ]
}

@test "a tokenizer.json sets the size of the vocabulary" {
    # A dictionary, with ids in any order, and added tokens.
    echo '{"model": {"type": "BPE", "vocab": {"a": 0, "b": 41, "c": 2}},
        "added_tokens": [{"id": 12, "content": "x"}]}' >bpe.json
    echo '{"model": {"vocab": {"a": 0, "b": 9}},
        "added_tokens": [{"id": 69999}, {"id": 5}]}' >added.json
    # A list, whose indices are the ids.
    seq -s ', ' 300 | sed 's/[0-9][0-9]*/["p&", -&.5]/g
        s/.*/{"model": {"vocab": [&]}}/' >unigram.json
    local file wanted
    while read -r file wanted; do
        echo 7 | tokcat --from=ids "--tokenizer=$file.json" >got
        echo "$file: $(number got 44 4)"
        [ "$(number got 44 4)" = "$wanted" ]
    done <<END
bpe 42
added 70000
unigram 300
END
    echo 69999 | tokcat --from=ids --tokenizer=added.json >got
    got_stream '{"width": 4, "vocab": 70000, "tokenizer": "added.json",
        "records": [[[69999]]]}'
    is 65 "tokcat: stdin: line 1, column 1: 42 is not below the vocabulary\
 size 42" bash -c 'echo 42 | tokcat --from=ids --tokenizer=bpe.json'
    bad_option "a vocabulary of 70000 does not fit u16 tokens: use --type=u32" \
        --from=ids --type=u16 --tokenizer=added.json
    # --vocab overrides it.
    echo 99 | tokcat --from=ids --tokenizer=bpe.json --vocab=100 >got
    [ "$(number got 44 4)" = 100 ]
    printf 'ab\n' | tokcat --from=bytes --tokenizer=unigram.json >got
    [ "$(number got 44 4)" = 300 ]
}

@test "a file that is not a tokenizer.json gives only a digest" {
    local text
    while read -r text; do
        printf '%s' "$text" >file
        echo 7 | tokcat --from=ids --tokenizer=file >got
        got_stream '{"tokenizer": "file", "records": [[[7]]]}'
    done <<'END'

{
{}
[1, 2]
{"model": 5}
{"model": {}}
{"model": {"vocab": {}}, "added_tokens": 5}
{"model": {"vocab": {"a": -1, "b": "7", "c": 1.5}}}
{"model": {"vocab": []}, "added_tokens": [7, {}, {"id": 4294967295}]}
{"added_tokens": [{"id": 7}]}
{"model": {"vocab": {"a": 5}}} more
END
}

@test "a vocabulary above 65536 makes the tokens u32" {
    echo 65536 | tokcat --from=ids --vocab=65537 >got
    got_stream '{"width": 4, "vocab": 65537, "records": [[[65536]]]}'
    echo 65535 | tokcat --from=ids --vocab=64Ki >got
    got_stream '{"vocab": 65536, "records": [[[65535]]]}'
    echo 1 | tokcat --from=ids --vocab=100 -t u32 >got
    got_stream '{"width": 4, "vocab": 100, "records": [[[1]]]}'
}

@test "ids: empty lines are skipped and reported" {
    printf '\n1\n \t \n\n2\r\n\r\n' >x
    is 0 "tokcat: 4 empty lines skipped" tokcat --from=ids --raw -o got x
    { record16 1; record16 2; } | cmp - got
    is 0 "" tokcat --from=ids --empty=skip -q --raw -o got x
    { record16 1; record16 2; } | cmp - got
    printf '3\n\n' >x
    is 0 "tokcat: 1 empty line skipped" tokcat --from=ids --raw -o got x
    is 0 "tokcat: 2 empty lines skipped" tokcat --from=ids --raw -o got x x
}

@test "ids: empty lines are errors if requested" {
    bad_ids '1\n\n2\n' "line 2: no tokens" --empty=error
    bad_ids ' \t' "line 1: no tokens" --empty=error
}

@test "ids: invalid token ids" {
    bad_ids '1\n2 3 x\n' "line 2, column 5: 'x' is not a number"
    bad_ids 'abc 1\n' "line 1, column 1: 'abc' is not a number"
    bad_ids '12a 1\n' "line 1, column 1: '12a' is not a number"
    bad_ids '1,2\n' "line 1, column 1: '1,2' is not a number"
    bad_ids '[1 2]\n' "line 1, column 1: '[1' is not a number"
    bad_ids '1 +2\n' "line 1, column 3: '+2' is not a number"
    bad_ids '1 -\n' "line 1, column 3: '-' is not a number"
    bad_ids '1 0x10\n' "line 1, column 3: '0x10' is not a number"
    bad_ids '1 \r 2\n' "line 1, column 3: '?' is not a number"
    bad_ids '7 -5 8\n' "line 1, column 3: -5 is negative"
    bad_ids '7\t\t-0\n' "line 1, column 4: -0 is negative"
    bad_ids '1 1.5\n' "line 1, column 3: 1.5 is not an integer"
    bad_ids '1 2.\n' "line 1, column 3: 2. is not an integer"
    bad_ids '1 1e3\n' "line 1, column 3: 1e3 is not an integer"
    bad_ids '1 \033[31m\n' "line 1, column 3: '?[31m' is not a number"
    bad_ids '1 2\00003\n' "line 1, column 3: '2?3' is not a number"
    bad_ids '1 \303\251\n' "line 1, column 3: '??' is not a number"
}

@test "ids: a token above its type or its vocabulary" {
    bad_ids '1 65536' "line 1, column 3: 65536 does not fit u16: use\
 --type=u32"
    bad_ids '1\n2\n655350 1\n' \
        "line 3, column 1: 655350 does not fit u16: use --type=u32"
    bad_ids '4294967296\n' \
        "line 1, column 1: 4294967296 does not fit u32" -t u32
    # 2^64 + 5, which a careless parser reads as 5.
    bad_ids '18446744073709551621\n' \
        "line 1, column 1: 18446744073709551621 does not fit u32" -t u32
    bad_ids '499 500\n' \
        "line 1, column 5: 500 is not below the vocabulary size 500" \
        --vocab=500
    bad_ids '70000\n' \
        "line 1, column 1: 70000 is not below the vocabulary size 65536" \
        --vocab=65536
    echo 499 | tokcat --from=ids --raw --vocab=500 | cmp - <(record16 499)
}

@test "ids: only the start of an endless word is shown" {
    local digits
    digits=$(head -c 40 /dev/zero | tr '\0' 9)
    bad_ids "$digits$digits" \
        "line 1, column 1: $digits does not fit u16: use --type=u32"
}

@test "records before a bad line are written, without an END" {
    printf '1 2\n3\nx\n4\n' >x
    run -65 --separate-stderr into got tokcat --from=ids --raw x
    { record16 1 2; record16 3; } | cmp - got
    run -65 --separate-stderr into got tokcat --from=ids x
    tail -c +137 got | cmp - <(record16 1 2; record16 3)
}

@test "a line longer than memory can hold" {
    skip_if_quick
    is 65 "tokcat: stdin: line 1: no tokens" tokcat --from=ids \
        --empty=error < <(head -c 268435456 /dev/zero | tr '\0' ' ')
    is 65 "tokcat: stdin: line 2: the line exceeds 268435456 bytes" \
        tokcat --from=ids \
        < <(echo 1; head -c 268435457 /dev/zero | tr '\0' ' ')
}

# ----------------------------------------------------------------- bytes

# text16 TEXT: a record of its bytes, as printf %b prints them.
text16() {
    # shellcheck disable=SC2046
    record16 $(printf '%b' "$1" | od -An -v -tu1)
}

@test "bytes: a line is a record and keeps its newline" {
    printf 'ab\n\nc\r\n d' | tokcat --from=bytes --raw >got
    { text16 'ab\n'; text16 '\n'; text16 'c\r\n'; text16 ' d'; } | cmp - got
    printf '\n\n' | tokcat --from=bytes --split=line --raw |
        cmp - <(text16 '\n'; text16 '\n')
}

@test "bytes: a paragraph keeps the blank lines after it" {
    local head='\n \na\nb\n' middle='\n \t\r\n\n' tail='c\n\nd'
    printf '%b' "$head$middle$tail" |
        tokcat --from=bytes --split=paragraph --raw >got
    { text16 "$head$middle"; text16 'c\n\n'; text16 'd'; } | cmp - got
}

@test "bytes: paragraphs and lines end with their file" {
    printf 'a\n\n' >a
    printf '\nb' >b
    printf 'c' >c
    tokcat --from=bytes --split=paragraph --raw a b c |
        cmp - <(text16 'a\n\n'; text16 '\nb'; text16 c)
    tokcat --from=bytes --raw b c |
        cmp - <(text16 '\n'; text16 b; text16 c)
    printf '\n\n' | tokcat --from=bytes --split=paragraph --raw |
        cmp - <(text16 '\n\n')
}

@test "bytes: each of the 256, and the vocabulary is declared" {
    # The newline, byte 10, ends the first of two sequences.
    u8 {0..255} | tokcat --from=bytes -t u32 >got
    got_stream "{\"width\": 4, \"vocab\": 256, \"records\": [
        [[$(seq -s, 0 10)]], [[$(seq -s, 11 255)]]]}"
}

@test "bytes: ids beyond the bytes with a larger vocabulary" {
    printf 'A' | tokcat --from=bytes --vocab=258 --bos-id=256 --eos-id=257 \
        --pad-id=300 >got
    got_stream '{"vocab": 258, "special": {"bos": 256, "eos": 257, "pad": 300},
        "records": [[[65]]]}'
}

@test "bytes: a smaller vocabulary is checked" {
    printf 'fine\nbad\200\n' >x
    is 65 "tokcat: x: line 2, column 4: byte 128 is not below the\
 vocabulary size 128" tokcat --from=bytes --vocab=128 x
    printf '\001\n' | gives 16 '1 10' --from=bytes --vocab=11
    printf '\001\n' | is 65 "tokcat: stdin: line 1, column 2: byte 10 is not\
 below the vocabulary size 10" tokcat --from=bytes --vocab=10 --raw
}

@test "bytes: a long text is recovered from its records" {
    skip_without python3
    head -c 1000000 /dev/urandom >x
    local split
    for split in line paragraph; do
        tokcat --from=bytes --split=$split --raw x >got
        python3 -c '
import sys, struct
data = open("got", "rb").read()
at = 0
while at < len(data):
    n, = struct.unpack_from("<I", data, at)
    tokens = struct.unpack_from("<%dH" % n, data, at + 4)
    sys.stdout.buffer.write(bytes(tokens))
    at += 4 + 2 * n' | cmp - x
    done
}

@test "bytes: a sequence too large for a record" {
    skip_if_quick
    head -c 67108864 /dev/zero >x
    tokcat --from=bytes -t u32 --raw x | wc -c | grep -x ' *268435460'
    is 65 "tokcat: stdin: line 1: the sequence exceeds 67108864 tokens, the\
 most a record can hold" tokcat --from=bytes -t u32 < <(cat x; echo)
    is 65 "tokcat: stdin: line 2: the sequence exceeds 67108864 tokens, the\
 most a record can hold" \
        tokcat --from=bytes -t u32 --split=paragraph < <(echo; cat x)
}

# ----------------------------------------------------------------- jsonl

@test "jsonl: token ids alone" {
    printf '%s\n' '{"input_ids":[1, 2]}' ' { "input_ids" : [65535] } ' |
        tokcat --from=jsonl --raw | cmp - <(record16 1 2; record16 65535)
    printf '{"input_ids":[4294967295]}' |
        gives 32 4294967295 --from=jsonl -t u32
}

@test "jsonl: channels with well-known names" {
    echo '{"seq_label":7,"input_ids":[1,2],"labels":[-100,2],
        "token_type_ids":[0,255],"loss_mask":[true,false],
        "assistant_masks":[0,1],"completion_mask":[1,1],
        "attention_mask":[1,1],"next_sentence_label":0}' | tr -d '\n' |
        tokcat --from=jsonl >got
    got_stream '{"channels": [["seq_label", "i32", "sequence", -1],
        ["labels", "i32", "token", -100],
        ["token_type_ids", "u8", "token", 0],
        ["loss_mask", "u8", "token", 0],
        ["assistant_masks", "u8", "token", 0],
        ["completion_mask", "u8", "token", 0],
        ["attention_mask", "u8", "token", 0],
        ["next_sentence_label", "i32", "sequence", -1]],
        "records": [[[1, 2], 7, [-100, 2], [0, 255], [1, 0], [0, 1], [1, 1],
            [1, 1], 0]]}'
}

@test "jsonl: types are guessed from the first record" {
    printf '%s\n' '{"input_ids":[],"a":[],"b":[],"c":[],"d":0,"e":0,"f":0}' \
        '{"input_ids":[1,2],"a":[1,0.5],"b":[3,true],"c":[true,false],
          "d":-3,"e":2.0,"f":true}' \
        '{"f":2,"e":3,"d":4,"c":[5,6],"b":[7,8],"a":[9,10],
          "input_ids":[11,12]}' | sed 's/^  *//' | tr -d '\n' |
        sed 's/}/}\n/g' >x
    is 0 "tokcat: 1 empty sequence skipped" tokcat --from=jsonl -o got x
    got_stream '{"channels": [["a", "f32", "token", 0],
        ["b", "i32", "token", 0], ["c", "u8", "token", 0],
        ["d", "i32", "sequence", 0],
        ["e", "f32", "sequence", 0], ["f", "u8", "sequence", 0]],
        "records": [[[1, 2], [1, 0.5], [3, 1], [1, 0], -3, 2, 1],
                    [[11, 12], [9, 10], [7, 8], [5, 6], 4, 3, 2]]}'
}

@test "jsonl: every type at its limits, of tokens and of sequences" {
    local pair type least most options=() line='{"input_ids":[1,2]'
    local channels='' values='' join=
    for pair in u8:0:255 u16:0:65535 u32:0:4294967295 \
        u64:0:9223372036854775807 i32:-2147483648:2147483647 \
        i64:-9223372036854775808:9223372036854775807 \
        f32:-16777216:3.4028234663852886e38 \
        f64:-9007199254740992:1.7976931348623157e308; do
        IFS=: read -r type least most <<<"$pair"
        options+=("--channel=t_$type:$type:$most")
        options+=("--channel=s_$type:$type:$least")
        line+=",\"s_$type\":$most,\"t_$type\":[$least,$most]"
        channels+="${join}[\"t_$type\",\"$type\",\"token\",$most],"
        channels+="[\"s_$type\",\"$type\",\"sequence\",$least]"
        values+=",[$least,$most],$most"
        join=,
    done
    echo "$line}" | tokcat --from=jsonl "${options[@]}" >got
    got_stream "{\"channels\": [$channels], \"records\": [[[1,2]$values]]}"
}

@test "jsonl: declared channels are first, in their order" {
    echo '{"z":[1],"input_ids":[9],"b":2,"a":[3],"y":4}' |
        tokcat --from=jsonl --channel=a:u16 --channel=b:i64:-1 >got
    got_stream '{"channels": [["a", "u16", "token", 0],
        ["b", "i64", "sequence", -1], ["z", "i32", "token", 0],
        ["y", "i32", "sequence", 0]], "records": [[[9], [3], 2, [1], 4]]}'
}

@test "jsonl: fills, given or known by the name" {
    echo '{"input_ids":[1],"labels":[2],"seq_label":[3],"f":4,"g":5}' |
        tokcat --from=jsonl --channel=labels:i64 --channel=seq_label:u8 \
            --channel=f:f64:null --channel=g:f32:-0.5 >got
    got_stream '{"channels": [["labels", "i64", "token", -100],
        ["seq_label", "u8", "token", 0], ["f", "f64", "sequence", null],
        ["g", "f32", "sequence", -0.5]],
        "records": [[[1], [2], [3], 4, 5]]}'
}

@test "jsonl: null is a NaN in channels of floats" {
    printf '%s\n' '{"input_ids":[1,2],"w":[0.1,null],"d":null}' \
        '{"input_ids":[1,2],"w":[null,null],"d":1e-320}' |
        tokcat --from=jsonl --channel=d:f64 >got
    got_stream '{"channels": [["d", "f64", "sequence", 0],
        ["w", "f32", "token", 0]], "records": [[[1, 2], null, [0.1, null]],
        [[1, 2], 1e-320, [null, null]]]}'
}

@test "jsonl: --ids-key and --ignore" {
    printf '%s\n' '{"ids":[1],"text":"x\u0000","meta":{"a":[[]]},"x":[2]}' \
        '{"ids":[3],"input_ids":"no","x":[4]}' |
        tokcat --from=jsonl --ids-key=ids --ignore=text --ignore=meta \
            --ignore=input_ids >got
    got_stream '{"channels": [["x", "i32", "token", 0]],
        "records": [[[1], [2]], [[3], [4]]]}'
    echo '{"input_ids":[1],"labels":[1,2,3]}' |
        tokcat --from=jsonl --ignore=labels --raw | cmp - <(record16 1)
}

@test "jsonl: sequences without tokens" {
    printf '%s\n' '{"input_ids":[],"x":3}' '' '{"input_ids":[1],"x":[2]}' \
        '  ' '{"input_ids":[],"x":[]}' >x
    is 0 "tokcat: 4 empty sequences skipped" tokcat --from=jsonl -o got x
    is 0 "" tokcat --from=jsonl -q -o got x
    # Header, a record of a token and an i32, LENGTHS with one length, and END.
    [ "$(size got)" = $((136 + 64 + 4 + 2 + 4 + 48 + 32)) ]
    is 65 "tokcat: x: line 1: no tokens" tokcat --from=jsonl --empty=error x
    echo >x
    is 65 "tokcat: x: line 1: no tokens" tokcat --from=jsonl --empty=error x
    bad_first '{"input_ids":[],"x":[1]}' \
        ", column 21: x has length 1, but input_ids has length 0$(remedy x),\
 or --channel=x:TYPE[] for a list of any length"
}

@test "jsonl: broken JSON" {
    local one=": an object must be on one line, as jq -c writes it"
    bad_json '{"input_ids":[1}' \
        ", column 16: expected ',' or ']' near '}'"
    bad_json '{"input_ids":[5]' \
        ", column 17: expected ',' or '}' at the end of the line$one"
    bad_json '{"input_ids":[5],}' ", column 18: expected '\"' near '}'"
    bad_json '{"input_ids"' ", column 13: expected ':' at the end of the line$one"
    bad_json '{"input_ids":[5],"labels":[tru],"score":2}' ", column 28:\
 expected a value near 'tru],\"score\":2}'"
    bad_json '{"input_ids":[5],"labels":[1],"score":1.}' ", column 41:\
 expected a digit near '}'"
    bad_json 'x' ", column 1: expected '{' near 'x'"
    bad_json "$good x" ", column 42: expected the end of the line near 'x'"
    bad_json "$good$good" ", column 41: expected the end of the line near\
 '{\"input_ids\":[5]'"
    bad_json '{"input_ids":[5],"input_ids":[6]}' \
        ", column 18: duplicate key near '\"input_ids\":[6]}'"
    bad_json '{"input_ids":[5],"input\u005fids":[6]}' ", column 18: duplicate\
 key near '\"input\\u005fids\"'"
    bad_json $'{"\xff":1}' ", column 3: invalid UTF-8: byte 0xff"
    bad_json '{"\ud800":1}' \
        ", column 3: half of a surrogate pair near '\\ud800\":1}'"
    bad_json '{"\x":1}' ", column 3: invalid escape near '\\x\":1}'"
    bad_json $'{"\x1f":1}' ", column 3: a control character in a key: byte\
 0x1f"
    bad_json '{"input_ids":[9223372036854775808]}' ", column 15: a number is\
 too large (the largest integer is\
 9223372036854775807) near '9223372036854775'"
    bad_json '{"input_ids":[5],"labels":[1],"score":1e999}' ", column 39: a\
 number is too large (the largest integer is\
 9223372036854775807) near '1e999}'"
}

@test "jsonl: keys can be written with escapes" {
    printf '{"\\u0069nput_ids":[1,2],"la\\u0062els":[3,4],"\\u0078":"\\""}\n' |
        tokcat --from=jsonl --ignore=x >got
    printf '{"input_ids":[1,2],"labels":[3,4]}\n' |
        tokcat --from=jsonl | cmp - got
    printf '{"\\ud83d\\ude00\\n":[1]}\n' |
        tokcat --from=jsonl --raw --ids-key=$'\xf0\x9f\x98\x80\n' |
        cmp - <(record16 1)
}

@test "jsonl: padding is left out" {
    # By the mask, at both ends of all lists; a row of padding alone is empty.
    printf '{"input_ids":[%s],"attention_mask":[%s],"labels":[%s]}\n' \
        101,7,102,0,0 1,1,1,0,0 1,2,3,-100,-100 \
        0,8,0,9 0,1,0,1 -100,4,5,6 0,0 0,0 -100,-100 7 true 7 >x
    is 0 "tokcat: 1 empty sequence skipped
tokcat: 5 padding tokens removed (attention_mask is 0)" \
        tokcat --from=jsonl -o got x
    got_stream '{"channels": [["attention_mask", "u8", "token", 0],
        ["labels", "i32", "token", -100]],
        "records": [[[101, 7, 102], [1, 1, 1], [1, 2, 3]],
            [[8, 0, 9], [1, 0, 1], [4, 5, 6]], [[7], [1], [7]]]}'
    # Not if the mask is ignored: then pad ids can mark padding.
    tokcat --from=jsonl --raw --ignore=attention_mask --ignore=labels x |
        cmp - <(record16 101 7 102 0 0; record16 0 8 0 9; record16 0 0
            record16 7)
    is 0 "tokcat: 1 empty sequence skipped" tokcat --from=jsonl --raw -o got \
        --trim-pad --pad-id=0 --ignore=attention_mask --ignore=labels x
    cmp got <(record16 101 7 102; record16 0 8 0 9; record16 7)
}

@test "jsonl: no NUL is skipped, whichever parser reads the line" {
    local column byte line before
    # In the first line, whose values define the channels, and in a later one.
    while IFS='|' read -r column byte line; do
        for before in '' '{"x":0,"input_ids":[7]}\n{"x":0,"input_ids":[8]}\n'
        do
            printf '%b\n' "$before$line" >x
            is 65 "tokcat: x: line $(wc -l <x), column $column: a NUL byte\
 (byte $byte of the line) is not JSON: the file may be damaged" \
                tokcat -q --from=jsonl --ignore=x -o y x
        done
    done <<'END'
16|16|{"input_ids":[1\0,2\0],"x":0}
16|16|{"input_ids":[1\0],"x":0}
15|15|{"input_ids":[\0 1],"x":0}
18|18|{"input_ids":[12]\0,"x":0}
7|7|{"x":1\0,"input_ids":[1]}
8|9|{"x":"\xc3\xa9\0","input_ids":[1]}
10|10|{"x":true\0,"input_ids":[1]}
8|8|{"x":[5\0],"input_ids":[1]}
4|4|{"x\0":0,"input_ids":[1]}
1|1|\0{"input_ids":[1],"x":0}
24|24|{"input_ids":[1],"x":0}\0
12|12|{"input_ids\0":[1],"x":0}
END
    # A key with a NUL is not taken for a shorter key either.
    echo '{"input_ids\u0000":[1]}' >x
    is 65 "tokcat: x: line 1, column 12: a NUL character in a key near\
 '\\u0000\":[1]}'" tokcat --from=jsonl x
}

@test "jsonl: deep nesting is refused, or ignored at any depth" {
    { printf '{"input_ids":[1],"x":'
      head -c 100000 /dev/zero | tr '\0' '['; } >x
    local why="tokcat: x: line 1, column 100022: expected ']' or '}' at the"
    why+=" end of the line: an object must be on one line, as jq -c writes it"
    is 65 "$why" tokcat --from=jsonl x
    is 65 "$why" tokcat --from=jsonl --ignore=x x
    { cat x; head -c 100000 /dev/zero | tr '\0' ']'; echo '}'; } >y
    run -0 --separate-stderr tokcat --from=jsonl --raw -o z y
    [ "$stderr" = "tokcat: y: ignoring 'x': not a list of numbers" ]
    cmp z <(record16 1)
    tokcat --from=jsonl --raw --ignore=x y | cmp - <(record16 1)
}

@test "jsonl: no object, no ids" {
    local remedy=": tokenize the rows with 'python -m packstream.tokenize',"
    remedy+=' or name the key of token ids with --ids-key'
    local long
    long=$(printf 'n%.0s' {1..40})
    bad_json '[1,2]' ", column 1: expected '{' near '[1,2]': write an object on\
 each line, as jq -c '.[]' does"
    bad_json '{"labels":[1],"score":2}' ": no key 'input_ids' (keys: labels,\
 score)$remedy"
    bad_json '{"input_ids":5,"labels":[1],"score":2}' \
        ": input_ids: not a list"
    bad_first '{"input_ids":[1]}' \
        ": no key 'ids' (keys: input_ids)$remedy" --ids-key=ids
    bad_first '{}' ": no key 'input_ids' (keys: none)$remedy"
    bad_first '{"messages":[{"role":"user","content":"x"}],"id":7}' \
        ": no key 'input_ids' (keys: messages, id)$remedy"
    bad_first '{"conversations":[{"from":"human","value":"x"}]}' \
        ": no key 'input_ids' (keys: conversations)$remedy"
    bad_first '{"prompt":"x","completion":"y"}' \
        ": no key 'input_ids' (keys: prompt, completion)$remedy"
    # Many or long keys are abbreviated, and control characters escaped.
    bad_first '{"a\u001b[2J":1,"b":2,"'"$long"'":3,"d":4,"e":5,"f":6}' \
        ": no key 'input_ids' (keys: a?[2J, b, ${long:0:32}..., d, e,\
 ...)$remedy"
    bad_first '{"ids":null}' ": ids: not a list" --ids-key=ids
}

@test "jsonl: invalid token ids" {
    local line='{"input_ids":[5,5],"labels":[1,2],"score":2}'
    bad_values <<'END'
input_ids|[1,-1]|[1]: -1 is negative
input_ids|[1.5,1]|[0]: 1.5 is not an integer
input_ids|[1.0,1]|[0]: 1.0 is not an integer
input_ids|["1",1]|[0]: a string is not a number
input_ids|[[1],1]|[0]: a list is not a number
input_ids|[{},1]|[0]: an object is not a number
input_ids|[1,null]|[1]: null is not a number
input_ids|[1,true]|[1]: true is not a number
input_ids|[1,65536]|[1]: 65536 does not fit u16: use --type=u32
input_ids|[1,4294967296]|[1]: 4294967296 does not fit u32|-tu32
input_ids|[1,500]|[1]: 500 is not below the vocabulary size 500|--vocab=500
END
}

@test "jsonl: every line must have the same columns" {
    bad_json '{"input_ids":[1,2],"labels":[1],"score":2}' \
        ", column 29: labels has length 1, but input_ids has length 2:\
 fix or remove the row"
    bad_json '{"input_ids":[1],"labels":[1,2],"score":2}' \
        ", column 27: labels has length 2, but input_ids has length 1:\
 fix or remove the row"
    bad_json '{"input_ids":[1],"labels":[],"score":2}' \
        ", column 27: labels has length 0, but input_ids has length 1:\
 fix or remove the row"
    bad_json '{"input_ids":[1],"score":2}' \
        ": no key 'labels', which the first record has: add it, or remove the row"
    bad_json '{"input_ids":[1],"labels":[1],"score":2,"extra":3}' \
        ", column 49: the key 'extra' is not in the first record$(
            remedy extra)"
    bad_json '{"input_ids":[1],"labels":[1],"score":[2]}' \
        ", column 39: score: is a list, but was not in the first record$(
            remedy score)"
    bad_json '{"input_ids":[1],"labels":1,"score":2}' \
        ", column 27: labels: is not a list, but was in the first record$(
            remedy labels)"
    bad_first '{"input_ids":[1],"x":[1]}' \
        ": no key 'y', which --channel declares" --channel=y:u8
    bad_first '{"input_ids":[1,2,3],"x":[1,3]}' \
        ", column 26: x has length 2, but input_ids has length 3$(remedy x),\
 or --channel=x:TYPE[2] for a vector per sequence, or TYPE[] for a list of any\
 length"
}

@test "jsonl: values that a channel cannot hold" {
    local labels score
    labels=$(typed labels)
    score=$(typed score)
    bad_json '{"input_ids":[1,2],"labels":[1,[2]],"score":2}' \
        ", column 32: labels[1]: a list is not a number$(remedy labels)"
    bad_values <<END
labels|[0.5]|[0]: 0.5 is not an integer, but the channel is i32$labels
labels|[null]|[0]: null needs a channel of floats, but the channel is i32$labels
score|null|: null needs a channel of floats, but the channel is i32$score
score|""|: a string is not a number$(remedy score)
score|{}|: an object is not a number$(remedy score)
score|2147483648|: 2147483648 does not fit i32$score
score|-2147483649|: -2147483649 does not fit i32$score
score|"2"|: a string is not a number$(remedy score)
labels|[256]|[0]: 256 does not fit u8$labels|--channel=labels:u8
labels|[-1]|[0]: -1 does not fit u64$labels|--channel=labels:u64
score|65536|: 65536 does not fit u16$score|--channel=score:u16
score|4294967296|: 4294967296 does not fit u32$score|--channel=score:u32
END
}

@test "jsonl: floats hold integers exactly or not at all" {
    local score
    score=$(typed score)
    bad_values <<END
score|16777217|: 16777217 has no exact f32$score|--channel=score:f32
score|-9007199254740993|: -9007199254740993 has no exact f64$score|\
--channel=score:f64
score|3.5e38|: 3.5e38 does not fit f32$score|--channel=score:f32
END
    # Even numbers have a larger range, and decimals are rounded.
    echo '{"input_ids":[1,2,3],"x":[33554432,-9223372036854775808,0.1]}' |
        tokcat --from=jsonl >got
    got_stream '{"channels": [["x", "f32", "token", 0]], "records": [[[1, 2, 3],
        [33554432, -9223372036854775808, 0.1]]]}'
}

@test "jsonl: integers beyond i32, and lists with null, determine the type" {
    echo '{"input_ids":[1,2],"id":1723456789012,"a":[0,-2147483649],
        "b":[2147483647,-2147483648],"w":[null,7],"t":[true,null]}' |
        tr -d '\n' | tokcat --from=jsonl >got
    got_stream '{"channels": [["id", "i64", "sequence", 0],
        ["a", "i64", "token", 0], ["b", "i32", "token", 0],
        ["w", "f32", "token", 0], ["t", "f32", "token", 0]],
        "records": [[[1, 2], 1723456789012, [0, -2147483649],
            [2147483647, -2147483648], [null, 7], [1, null]]]}'
}

@test "jsonl: keys without numbers are skipped, with a warning each" {
    cat >x <<'END'
{"input_ids":[],"empty":"not yet: this row has no tokens","tags":[]}
{"input_ids":[1],"text":"a \" \u00e9","meta":{"a":[{"b":null}]},"s":2,"id":17}
{"s":3,"id":18,"input_ids":[2],"text":5,"meta":null,"words":["a",1],"z":null}
{"s":4,"id":19,"input_ids":[3],"words":[1,2,3],"tags":[],"nulls":[null]}
{"s":5,"id":20,"input_ids":[4],"tags":["a"],"nulls":[1],"z":0.5}
{"s":6,"id":21,"input_ids":[5],"tags":[1,2],"index":6,"a-b":true}
END
    run -0 --separate-stderr tokcat --from=jsonl -o got x
    diff - <(echo "$stderr") <<'END'
tokcat: x: ignoring 'text': a string
tokcat: x: ignoring 'meta': an object
tokcat: x: ignoring 'words': not a list of numbers
tokcat: x: ignoring 'z': null (see --channel)
tokcat: x: ignoring 'tags': an empty list
tokcat: x: ignoring 'nulls': null (see --channel)
tokcat: x: ignoring 'index': not a valid channel name
tokcat: x: ignoring 'a-b': not a valid channel name
tokcat: 1 empty sequence skipped
END
    got_stream '{"channels": [["s", "i32", "sequence", 0],
        ["id", "i32", "sequence", 0]], "records": [[[1], 2, 17], [[2], 3, 18],
        [[3], 4, 19], [[4], 5, 20], [[5], 6, 21]]}'
    tokcat -q --from=jsonl --ignore={text,meta,words,empty,z,tags,nulls} \
        --ignore={index,a-b} x | cmp - got
    run -0 tokcat -q --from=jsonl -o got x
    [ -z "$output" ]
    # The maximum that --ignore can name, and one more.
    awk 'BEGIN { printf "{\"input_ids\":[1]"
        for (i = 0; i < 64; i++) printf ",\"t%d\":\"\"", i; print "}" }' >x
    tokcat -q --from=jsonl --raw x | cmp - <(record16 1)
    { cat x; echo '{"input_ids":[1],"u":""}'; } >y
    is 65 "tokcat: y: line 2: u: more than 64 keys are not channels: remove\
 them from the rows" tokcat -q --from=jsonl -o z y
}

@test "jsonl: values that cannot be a channel" {
    bad_first '{"input_ids":[1],"labels":["a"]}' \
        ", column 27: labels: not a list of numbers$(remedy labels)"
    bad_first '{"input_ids":[1],"text":"hello"}' \
        ", column 25: text: a string is not a number$(remedy text)" \
        --channel=text:u8
    # Labels and declared channels cannot be ignored.
    bad_first '{"input_ids":[1],"labels":null}' ", column 27: labels: null\
 needs a channel of floats, but the channel is i32$(typed labels)"
    bad_first '{"input_ids":[1],"x":[]}' ", column 22: x has length 0, but\
 input_ids has length 1$(remedy x), or --channel=x:TYPE[] for a list of any\
 length" --channel=x:f32
    local key
    for key in a-b 1a '' _a tokens cu a23456789012345678901234; do
        bad_first "{\"input_ids\":[1],\"$key\":[1]}" ": the key '$key' is not\
 a valid channel name$(remedy "$key")"
    done
    bad_first $'{"input_ids":[1],"\xc3\xa9":[1]}' ": the key '??' is not\
 a valid channel name$(remedy '??')"
}

@test "jsonl: at most 23 channels" {
    local i line='{"input_ids":[1]'
    for i in {1..23}; do line+=",\"c$i\":$i"; done
    echo "$line}" | tokcat --from=jsonl >got
    [ "$(size got)" = $((136 + 23 * 64 + 4 + 2 + 23 * 4 + 48 + 32)) ]
    bad_first "$line,\"c24\":24}" \
        ": c24: exceeds the limit of 23 channels: use --ignore for some"
}

@test "jsonl: channels are not lost in a raw stream" {
    bad_first '{"input_ids":[1],"x":[1]}' \
        ": x: --raw stores no channels: use --ignore=x, or write framed\
 records" --raw
    bad_first '{"input_ids":[1,0],"attention_mask":[1,0]}' \
        ": attention_mask: --raw stores no channels and cannot remove masked\
 padding: write framed records" --raw
}

@test "jsonl: a line longer than memory can hold" {
    { echo "$good"; head -c 67108865 /dev/zero | tr '\0' ' '; } >x
    is 65 "tokcat: x: line 2: the line exceeds 67108864 bytes" \
        tokcat --from=jsonl x
}

@test "jsonl: several files have the same columns" {
    printf '%s' "$good" >a
    echo '{"score":3,"labels":[4],"input_ids":[5]}' >b
    echo '{"input_ids":[5],"score":3}' >c
    tokcat --from=jsonl a b >got
    cat a <(echo) b | tokcat --from=jsonl | cmp - got
    is 65 "tokcat: c: line 1: no key 'labels', which the first record has: add\
 it, or remove the row" tokcat --from=jsonl a b c
}

# ------------------------------------------------------- files and pipes

@test "an empty input is a stream without records" {
    skip_without python3
    stream '{"records": []}' >wanted
    tokcat --from=ids </dev/null | cmp - wanted
    tokcat --from=jsonl </dev/null | cmp - wanted
    tokcat --from=jsonl --channel=x:u8 </dev/null | cmp - wanted
    stream '{"vocab": 256, "records": []}' >wanted
    tokcat --from=bytes /dev/null /dev/null | cmp - wanted
    tokcat --from=bytes --raw </dev/null | cmp - /dev/null
}

@test "several files are one stream, and lines count from 1 in each" {
    printf '1\n2' >a
    printf '3\n' >b
    printf '4\nx\n' >c
    echo 5 | gives 16 '1, 2, 5, 3' --from=ids a - b
    is 65 "tokcat: c: line 2, column 1: 'x' is not a number" \
        tokcat --from=ids a c
    is 65 "tokcat: stdin: line 2, column 1: 'x' is not a number" \
        tokcat --from=ids a - <c
}

@test "records are written while the input waits" {
    mkfifo in
    tokcat --from=ids --raw <in >out 3>&- &
    local pid=$!
    opens 7 '>' in $pid
    printf '1 2\n3\n4' >&7
    # The last line is incomplete; the two before it must not wait for it.
    eventually is_larger out 13
    [ "$(size out)" -eq 14 ]
    exec 7>&-
    wait $pid
    { record16 1 2; record16 3; record16 4; } | cmp - out
}

@test "a non-blocking input is waited for" {
    skip_without python3
    python3 -c '
import os, subprocess, time
r, w = os.pipe()
os.set_blocking(r, False)
with open("out", "wb") as out:
    p = subprocess.Popen(["tokcat", "--from=ids", "--raw"], stdin=r,
                         stdout=out)
    os.close(r)
    for text in b"1 ", b"2\n", b"3\n":
        time.sleep(0.1)
        os.write(w, text)
    os.close(w)
    assert p.wait() == 0'
    { record16 1 2; record16 3; } | cmp - out
}

@test "write errors are reported: a full device, a closed output" {
    skip_without python3
    is 1 "tokcat: stdout: cannot write: No space left on device" \
        bash -c 'echo 1 | tokcat --from=ids >/dev/full'
    is 1 "tokcat: /dev/full: cannot write: No space left on device" \
        bash -c 'yes 1 2 3 2>/dev/null | tokcat --from=ids -o /dev/full'
    is 1 "tokcat: stdout: Bad file descriptor" \
        bash -c 'echo 1 | tokcat --from=ids >&-'
    is 1 "tokcat: stdin: Bad file descriptor" \
        bash -c 'tokcat --from=ids <&-'
}

@test "a vanished reader ends it silently, by SIGPIPE" {
    # shellcheck disable=SC2016
    is 0 "" bash -c '
        { yes 1 2 3 4 5 2>/dev/null | timeout 600 tokcat --from=ids
          echo ${PIPESTATUS[1]} >status; } | head -c 1000 >/dev/null'
    # timeout exits with the signal of the program, and the shell adds 128.
    [ "$(cat status)" = 141 ]
}

@test "a parent that ignores SIGPIPE changes nothing" {
    skip_without python3
    python3 -c '
import signal, subprocess
signal.signal(signal.SIGPIPE, signal.SIG_IGN)
yes = subprocess.Popen(["yes"], stdout=subprocess.PIPE)
p = subprocess.Popen(["tokcat", "--from=bytes"], stdin=yes.stdout,
                     stdout=subprocess.PIPE, restore_signals=False)
p.stdout.read(100)
p.stdout.close()
assert p.wait(600) == -signal.SIGPIPE
yes.kill()'
}

@test "-o writes a file, but never the input" {
    echo 1 2 >x
    echo 3 >y
    tokcat --from=ids --raw -o got x
    cmp got <(record16 1 2)
    echo 4 | tokcat --from=ids --raw --output=got
    cmp got <(record16 4)
    is 1 "tokcat: x: is also an input: choose another output" \
        tokcat --from=ids -o x x
    is 1 "tokcat: y: is also an input: choose another output" \
        tokcat --from=ids -o y x y
    is 1 "tokcat: ./y: is also an input: choose another output" \
        tokcat --from=ids -o ./y - <y
    is 1 "tokcat: stdout: is also an input: choose another output" \
        bash -c 'tokcat --from=ids x >>x'
    [ "$(cat x y)" = "1 2
3" ]
}

@test "jsonl: an ignored key can have values that cannot be read" {
    local values=(18446744073709551616 NaN -Infinity 1e400 '"\ud800"' '"\x"'
        '{"a": 1, "a": 2}' '"a \" , } b"' '[{"x": [1, "]"]}, "}"]' '' '1 2'
        $'"\xff"' '[[]' '{"s": 1}') value
    for value in "${values[@]}"; do
        printf '{"s": %s, "input_ids": [1, 2], "n": 3}\n' "$value" |
            tokcat --from=jsonl --ignore=s --channel=n:u8 >x.tok && continue
        # A value without an end is an error.
        [[ $value == '' || $value == '1 2' || $value == '[[]' ]]
    done
    # At any depth and in any position, the other values are still checked.
    deep() {
        awk -v n="$1" -v o="$2" 'BEGIN { while (n--) printf "%s", o }'
    }
    printf '{"input_ids": [5], "s": %s%s}\n' "$(deep 100000 '[')" \
        "$(deep 100000 ']')" >deep.jsonl
    printf '{"input_ids": [6], "s": 1e999}\n' >>deep.jsonl
    tokcat --from=jsonl --ignore=s deep.jsonl | packcat --to=ids >ids
    [ "$(cat ids)" = $'5\n6' ]
    tokcat -q --from=jsonl deep.jsonl | packcat --to=ids | cmp - ids
    printf '{"s": [1e999, {}], "input_ids": [1, 1e999]}\n' >bad.jsonl
    run -65 tokcat --from=jsonl --ignore=s bad.jsonl
    [[ $output == *"line 1, column "* ]]
    printf '{"t": 1e999, "input_ids": [1]}\n' >bad.jsonl
    run -65 tokcat --from=jsonl --ignore=s bad.jsonl
}

@test "a wrong input name does not cost the old output" {
    echo old >got
    is 1 "tokcat: missing: No such file or directory" \
        tokcat --from=ids -o got missing
    [ "$(cat got)" = old ]
    is 1 "tokcat: .: Is a directory" tokcat --from=ids -o got .
    [ "$(cat got)" = old ]
    is 1 "tokcat: missing: No such file or directory" \
        tokcat --from=ids --raw -o got - missing < <(echo 1)
    [ "$(cat got)" = old ]
    is 1 "tokcat: nowhere/x.new: No such file or directory" \
        tokcat --from=ids -o nowhere/x /dev/null
    is 1 "tokcat: missing: No such file or directory" \
        tokcat --from=ids --tokenizer=missing -o got /dev/null
    [ "$(cat got)" = old ]
}

@test "records are not written to a terminal" {
    skip_without script
    run -1 script -qec 'echo 1 | tokcat --from=ids' /dev/null
    [[ $output = "tokcat: stdout: refusing to write binary output to a\
 terminal: redirect it or use -o FILE"* ]]
}

@test "progress is shown on a terminal unless -q" {
    skip_without script
    # Slow input with a visible pause: tokcat has started by then, as the pipe
    # cannot hold the part before it.
    printf 'seq 30000\nsleep 0.3\nseq 1000\n' >slow
    run -0 script -qec 'sh slow | tokcat --from=ids >/dev/null' /dev/null
    [[ $output = *" sequences "*" tokens "*"B/s"* ]]
    run -0 script -qec 'sh slow | tokcat -q --from=ids >/dev/null' /dev/null
    [ -z "$output" ]
}

# peak LINES: the peak memory of tokcat, in KiB, for that many lines.
peak() {
    awk -v n="$1" 'BEGIN { while (n-- > 0) print "1 2 3 4 5 6 7 8 9" }' >x
    python3 -c '
import resource, subprocess
subprocess.run(["tokcat", "--from=ids", "-o", "out", "x"], check=True)
print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)'
}

@test "memory does not grow with the input" {
    skip_without python3
    local small large
    small=$(peak 200000)
    large=$(peak 2000000)
    [ "$large" -lt $((small + 1000)) ]
}

# --------------------------------------------------------------- options

@test "options that contradict the source or each other" {
    bad_option "missing --from=FORM: ids, bytes, jsonl, llmc, nanogpt, npy,\
 megatron, datatrove or tfrecord"
    bad_option "missing --from=FORM: ids, bytes, jsonl, llmc, nanogpt, npy,\
 megatron, datatrove or tfrecord" --empty=skip --split=1
    bad_option "--from=text: must be ids, bytes, jsonl, llmc, nanogpt, npy,\
 megatron, datatrove or tfrecord" --from=text
    bad_option "-t u8: must be u16 or u32" --from=ids -t u8
    bad_option "--type=u64: must be u16 or u32" --from=ids --type=u64
    bad_option "--split=word: must be line, paragraph, eos, bos, sequence,\
 document or a number of tokens" --from=bytes --split=word
    not_with --split=line ids --split=line
    bad_option "--empty=no: must be skip or error" --from=ids --empty=no
    not_with --empty bytes --empty=skip
    not_with --ids-key ids --ids-key=x
    not_with --channel ids --channel=x:u8
    not_with --ignore ids --ignore=x
    bad_option "--ignore=ids: this is the key of the token ids (see --ids-key)" \
        --from=jsonl --ids-key=ids --ignore=ids
    bad_option "--channel=ids: this is the key of the token ids (see\
 --ids-key)" \
        --from=jsonl --ids-key=ids --channel=ids:u8
    bad_option "--channel=x and --ignore=x cannot be combined" \
        --from=jsonl --channel=x:u8 --ignore=x
    bad_option "--labels=none: must be aligned or shifted" \
        --from=ids --labels=none
    bad_option "--tokenizer=-: must be a file; standard input carries the\
 tokens" --from=ids --tokenizer=-
    bad_option "--nonsense: unknown option" --from=ids --nonsense
}

@test "impossible ids and sizes" {
    local why="must be a number from 1 to 4294967295"
    bad_option "--vocab=0: $why" --from=ids --vocab=0
    bad_option "--vocab=4294967296: $why" --from=ids --vocab=4294967296
    bad_option "--vocab=many: $why" --from=ids --vocab=many
    why="must be a token id from 0 to 4294967294"
    bad_option "--pad-id=-1: $why" --from=ids --pad-id=-1
    bad_option "--eos-id=4294967295: $why" --from=ids --eos-id=4294967295
    bad_option "a vocabulary of 65537 does not fit u16 tokens: use --type=u32" \
        --from=ids -t u16 --vocab=65537
    bad_option "--pad-id=65536 does not fit u16 tokens: use --type=u32" \
        --from=ids --pad-id=65536
    bad_option "--eos-id=500 is not below the vocabulary size 500" \
        --from=ids --vocab=500 --eos-id=500
    bad_option "--bos-id=256 is not below the vocabulary size 256" \
        --from=bytes --bos-id=256
}

@test "--raw refuses options that need a header" {
    local option
    echo x >file
    for option in --pad-id --bos-id --eos-id --cls-id --sep-id --mask-id; do
        bad_option "$option cannot be used with --raw, which writes no header\
 to store it in" \
            --from=ids --raw $option=1
    done
    bad_option "--labels cannot be used with --raw, which writes no header to\
 store it in" \
        --from=ids --raw --labels=shifted
    bad_option "--tokenizer cannot be used with --raw, which writes no header\
 to store it in" \
        --from=ids --raw --tokenizer=file
    bad_option "--channel cannot be used with --raw, which writes no header\
 to store it in" \
        --from=jsonl --raw --channel=x:u8
}

@test "--channel is KEY:TYPE or KEY:TYPE:FILL" {
    local value
    channel() {
        bad_option "--channel=$1: $2" --from=jsonl "--channel=$1"
    }
    channel x "must be KEY:TYPE or KEY:TYPE:FILL"
    for value in :u8 1:u8 a-b:u8 tokens:u8 a23456789012345678901234:u8; do
        channel "$value" "the key is not a valid channel name"
    done
    for value in x: x:u9 x:U8 x:float x:i8:0 x::1 x:u8u8u8u8u8; do
        channel "$value" \
            "the type must be u8, u16, u32, u64, i32, i64, f32 or f64"
    done
    for value in x:u8: x:u8:256 x:u8:-1 x:i32:0.5 x:i32:null x:u8:x \
        x:u8:1x 'x:u8:"1"' x:f32:1e39 x:f32:16777217; do
        channel "$value" "the fill must be a number that the type can hold"
    done
    bad_option "--channel=x:u8: the channel is declared twice" \
        --from=jsonl --channel=x:u16 --channel=x:u8
    mapfile -t value < <(printf -- '--channel=c%d:u8\n' {1..24})
    bad_option "--channel=c24:u8: exceeds the limit of 23 channels" \
        --from=jsonl "${value[@]}"
    mapfile -t value < <(printf -- '--ignore=c%d\n' {1..65})
    bad_option "--ignore=c65: exceeds the limit of 64 ignored keys" \
        --from=jsonl "${value[@]}"
}

@test "--help names every option, in 79 columns" {
    run -0 --separate-stderr tokcat --help
    [ -z "$stderr" ]
    local option
    for option in --from --type --raw --output --empty --split --trim-pad \
        --no-decompress \
        --ids-key --channel --ignore --vocab --pad-id --bos-id --eos-id \
        --cls-id --sep-id --mask-id --tokenizer --labels --quiet --help \
        --version; do
        [[ $output = *" $option"[=$'\n'\ ]* ]]
    done
    awk 'length > 79 { exit 1 }' <<<"$output"
}

@test "the tokenizer's file is not overwritten either" {
    echo model >m
    echo 1 >text
    run -1 tokcat --from=ids --tokenizer=m -o m text
    [ "$output" = "tokcat: m: is also an input: choose another output" ]
    [ "$(cat m)" = model ]
}

# looks_like FORM NAME OPTION...: --from=FORM refuses x and calls it NAME.
looks_like() {
    run -65 --separate-stderr tokcat -q "--from=$1" "${@:3}" x
    echo "$1: $stderr"
    [[ $stderr == "tokcat: x: "*"; this looks like $2" ]]
}

@test "messages name the formats of other programs' files" {
    echo '{"input_ids": [1]}' >x
    looks_like ids 'JSON (use tokcat --from=jsonl)'
    looks_like npy 'JSON (use tokcat --from=jsonl)'
    seq 999 >>x
    looks_like llmc 'JSON (use tokcat --from=jsonl)' --split=9
    { printf 'PAR1\x15\x04\x15\x10'; seq 99; } >x
    local tables='(use python -m packstream.tokens for ids,'
    tables+=' packstream.tokenize for text)'
    looks_like ids "Parquet $tables"
    looks_like jsonl "Parquet $tables"
    looks_like npy "Parquet $tables"
    echo 1 | tokcat --from=ids >x
    looks_like jsonl 'token records (pack them with packstream)'
    packstream -q -L 4 x -o y
    mv y x
    looks_like ids 'a pack stream (unpack it with packcat)'
    printf 'BZh91AY&SY' >x
    looks_like ids 'bzip2 (use bzip2 -dc)'
    looks_like jsonl 'bzip2 (use bzip2 -dc)'
    looks_like npy 'bzip2 (use bzip2 -dc)'
    looks_like llmc 'bzip2 (use bzip2 -dc)' --split=9
    looks_like tfrecord 'bzip2 (use bzip2 -dc)'
    # Valid files, and later ones, are not.
    echo '{"input_ids": [x]}' >x
    run -65 tokcat --from=jsonl x
    [[ $output != *looks* ]]
    printf '1\n{"input_ids": [1]}\n' >x
    run -65 tokcat --from=ids x
    [[ $output == *"line 2"* && $output != *looks* ]]
}
