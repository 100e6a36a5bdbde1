#!/usr/bin/env bats
# packcat.bats - unpacking to token records, and conversion to other forms.
#
# tokcat makes token records of text from awk, so a test shows the sequences
# that it packs; python3 or od read the output of packcat, independently of our
# code.
#
# SPDX-License-Identifier: MIT

load ../support/helpers

# shellcheck disable=SC2034 # for refused
speaker="packcat: "

# ids FILE [OPTION...]: token records of the lines of ids in FILE.
ids() {
    tokcat -q --from=ids "${@:2}" "$1"
}

# packed COUNT LONGEST VOCAB OPTION...: makes text with lines from draw();
# a.tok, their token records, raw if "$raw" is --raw; and a.pks, packed with the
# options.
packed() {
    draw "$1" "$2" "$3" >text
    ids text ${raw:+"$raw"} >a.tok
    packstream -q "${@:4}" a.tok >a.pks
}

# The channels of rich(), one of each type and kind, as options of tokcat.
rich_channels() {
    local type
    for type in u8 u16 u32 u64 i32 i64 f32 f64; do
        printf -- '--channel=t_%s:%s --channel=s_%s:%s ' \
            "$type" "$type" "$type" "$type"
    done
}

# rich COUNT LONGEST: lines of JSON, with values in each channel that only just
# fit its type.
rich() {
    draw "$1" "$2" 60000 | awk '
        function all(value,    i, text) {
            text = value
            for (i = 1; i < NF; i++)
                text = text "," (i % 2 ? "0" : value)
            return text
        }
        function channel(type, a, b) {
            value = NR % 2 ? a : b
            printf ",\"t_%s\":[%s],\"s_%s\":%s", type, all(value), type, value
        }
        {
            text = $0
            gsub(" ", ",", text)
            printf "{\"input_ids\":[%s]", text
            channel("u8", "255", "7")
            channel("u16", "65535", "1")
            channel("u32", "4294967295", "4000000000")
            channel("u64", "9223372036854775807", "4294967296")
            channel("i32", "-2147483648", "2147483647")
            channel("i64", "-9223372036854775807", "9223372036854775807")
            channel("f32", "3.40282347e+38", "-1.17549435e-38")
            channel("f64", "-0.1", "2.2250738585072014e-308")
            print "}"
        }'
}

# rich_records COUNT LONGEST: token records of these lines, kept in text.
rich_records() {
    rich "$@" >text
    rich_tokens text
}

# rich_tokens FILE: token records of FILE.
rich_tokens() {
    # shellcheck disable=SC2046
    tokcat -q --from=jsonl $(rich_channels) "$1"
}

# prefix SHORT LONG: LONG begins with all of SHORT.
prefix() {
    cmp -n "$(size "$1")" "$1" "$2"
}

# ---------------------------------------------------------- round trips

# comes_back OPTION...: a.tok is recovered from packs made with these options.
comes_back() {
    packstream -q "$@" a.tok | packcat | cmp - a.tok
}

@test "records are recovered byte for byte" {
    draw 2000 60 65536 | ids - --raw >a.tok
    comes_back -L 64 -w 100
    comes_back -L 64 -w 1 -d 1
    comes_back -L 16 -w 50 --overlong=split
    draw 2000 60 2000000000 | ids - --raw --type=u32 >a.tok
    comes_back -t u32 -L 64 -w 100
    draw 2000 60 50000 | ids - --vocab=50000 --eos-id=2 --bos-id=1 >a.tok
    comes_back -L 64 -w 100
    rich_records 300 100 >a.tok
    comes_back -L 128 -w 30
    comes_back -L 16 -w 50 --overlong=split
    ids /dev/null >a.tok
    comes_back -L 8
}

@test "raw records have the bytes shown on the format page" {
    { record16 5 6 7; record16 8; record16 65535 0; } >a.tok
    packstream -q -L 4 a.tok | packcat >b.tok
    [ "$(od -An -tx1 -v b.tok | tr -d ' \n')" = \
        03000000050006000700010000000800"02000000ffff0000" ]
}

@test "an empty raw stream has no bytes" {
    : >a.tok
    packstream -q -L 8 a.tok >a.pks
    packcat a.pks >b.tok
    [ ! -s b.tok ]
}

@test "pipes and file names give the same output" {
    packed 500 30 1000 -L 32
    packcat <a.pks >by_stdin
    cat <a.pks | packcat - >by_pipe
    packcat -o by_option a.pks
    cmp by_stdin a.tok
    cmp by_pipe a.tok
    cmp by_option a.tok
}

# ------------------------------------------------------ overlong policies

@test "truncated sequences are recovered in part, dropped ones are not" {
    packed 300 100 1000 -L 16 --overlong=truncate
    packcat --to=ids a.pks | diff -u <(cut -d ' ' -f 1-16 text) -
    packed 300 100 1000 -L 16 --overlong=drop
    packcat --to=ids a.pks | diff -u <(awk 'NF <= 16' text) -
}

# ---------------------------------------------------------------- orders

@test "pack order is the order of the sequences in the packs" {
    skip_without python3
    packed 500 30 1000 -L 32 -w 60
    model pieces a.pks | sed 's/^[0-9]*: //' >wanted
    packcat --to=ids --order=pack a.pks | diff -u wanted -
    packcat --order=pack a.pks | packstream -q -L 32 -a none |
        packcat --to=ids | diff -u wanted -
    # The window has moved some sequences, so this differs from input order,
    # the default.
    run -1 cmp -s wanted text
    packcat --to=ids a.pks | diff -u text -
    packcat --to=ids --order=input a.pks | diff -u text -
}

@test "the memory for restoring the input order is bounded" {
    packed 500 30 1000 -L 32 -w 60
    run -65 packcat -M 1000 -o text2 a.pks
    [[ $output =~ ^"packcat: a.pks: pack "[0-9]+" in the block at byte 4096:\
 restoring the order takes more than 1000 bytes: raise the limit (packcat -M),\
 or use the pack order"$ ]]
    packcat -M 100k --to=ids a.pks | diff -u text -
    packcat -M 1 --order=pack a.pks >text2
    # shellcheck disable=SC2034 # bad_option runs it
    local program=packcat
    bad_option '-M 0: must be a number of bytes from 1, such as 64Mi' -M 0
}

# ------------------------------------------------------- several streams

@test "several streams and files are one stream" {
    local raw
    draw 200 30 1000 1 >text1
    draw 300 30 1000 2 >text2
    cat text1 text2 text1 >text
    for raw in '' --raw; do
        ids text1 $raw | packstream -q -L 32 -w 60 >a.pks
        ids text2 $raw | packstream -q -L 64 -d 3 -w 60 >b.pks
        ids /dev/null $raw | packstream -q -L 8 >c.pks
        ids text $raw >wanted
        packcat a.pks c.pks b.pks a.pks | cmp - wanted
        packcat a.pks - c.pks a.pks <b.pks | cmp - wanted
    done
    ids text2 --raw | packstream -q -L 32 -w 60 >b.pks
    cat a.pks b.pks a.pks | packcat | cmp - wanted
    cat a.pks b.pks a.pks | packcat --to=ids | diff -u text -
}

@test "a second input with another schema, or not a pack stream, is refused" {
    packed 20 8 1000 -L 8
    ids text --vocab=1000 | packstream -q -L 8 >b.pks
    local why='b.pks: cannot be joined to a.pks: vocab_size is 1000, not none'
    refused 65 "$why" packcat a.pks b.pks
    refused 65 "$why" packcat --to=jsonl a.pks b.pks
    packcat --to=ids a.pks b.pks >out
    cat text text | diff -u - out
    echo 'no packs at all' >b.pks
    refused 65 'b.pks: ' into out packcat --to=ids a.pks b.pks
    diff -u text out
}

# ------------------------------------------------------------------ jsonl

@test "jsonl shows every channel, lists and numbers" {
    printf '%s\n' \
        '{"input_ids":[1,2],"mask":[1,0],"key":-5,"w":0.25,"x":[null,1.5]}' \
        '{"input_ids":[9],"mask":[1],"key":7,"w":0.100000001,"x":[null]}' \
        '{"input_ids":[9],"mask":[1],"key":7,"w":-0.0,"x":[16777216.0]}' \
        '{"input_ids":[9],"mask":[1],"key":7,"w":1.00000002e+30,"x":[0.5]}' \
        >text
    tokcat -q --from=jsonl --channel=mask:u8 --channel=key:i64 \
        --channel=w:f32 --channel=x:f64 text | packstream -q -L 4 |
        packcat --to=jsonl | diff -u text -
}

# Most data sets number their rows this way.
@test "id and start are channel names like any others" {
    printf '%s\n' '{"input_ids":[1,2],"id":7,"start":[5,6]}' \
        '{"input_ids":[3,4],"id":-8,"start":[9,0]}' >text
    tokcat -q --from=jsonl text | packstream -q -L 4 >x.pks
    packcat --to=jsonl x.pks | diff -u text -
    printf '%s\n' "{\"input_ids\":[1,2,3,4],\"seq_lengths\":[2,2],\
\"id\":[7,-8],\"start\":[5,6,9,0]}" | diff -u - <(packcat --to=trl x.pks)
    packstat -q --verify --against=<(tokcat -q --from=jsonl text) x.pks
}

@test "another JSON reader reads the same values from jsonl" {
    skip_without python3
    rich_records 200 30 | packstream -q -L 32 | packcat --to=jsonl >out
    python3 - text out <<'EOF'
import json, struct, sys

def load(name):
    return [json.loads(line) for line in open(name)]

def single(value):
    if isinstance(value, list):
        return [single(v) for v in value]
    return struct.unpack("<f", struct.pack("<f", value))[0]

wanted, found = load(sys.argv[1]), load(sys.argv[2])
assert len(wanted) == len(found) == 200
for a, b in zip(wanted, found):
    assert list(a) == list(b)
    for key in a:
        if key.endswith("f32"):
            assert single(a[key]) == single(b[key]), key
        else:
            assert a[key] == b[key], key
EOF
}

# edge TYPE BITS...: packs of sequences of one token, with values in `x` that
# JSON may lack.
edge() {
    "${abs_top_builddir:?}/tests/gen/edge_values" "$@" | packstream -q -L 1
}

# shown TYPE BITS... = VALUE...: JSON shows them as these values.
shown() {
    local given=()
    until [ "$1" = = ]; do
        given+=("$1")
        shift
    done
    edge "${given[@]}" | packcat --to=jsonl | sed 's/.*://' >out
    printf '[%s]}\n' "${@:2}" | diff -u - out
}

@test "integers are exact to the last digit" {
    shown u64 ffffffffffffffff 8000000000000000 2386f26fc10000 0 = \
        18446744073709551615 9223372036854775808 10000000000000000 0
    shown i64 8000000000000000 ffffffffffffffff 7fffffffffffffff = \
        -9223372036854775808 -1 9223372036854775807
    shown i32 80000000 ffffffff 7fffffff = -2147483648 -1 2147483647
}

@test "every NaN is null, and a zero keeps its sign" {
    shown f32 7fc00000 ff800001 80000000 0 1 = \
        null null -0.0 0.0 1.40129846e-45
    shown f64 fff0000000000001 8000000000000000 1 = \
        null -0.0 4.9406564584124654e-324
}

@test "an infinity is refused, after the sequences before it" {
    edge f32 3f800000 40000000 7f800000 3f800000 >a.pks
    refused 65 "a.pks: sequence 2: channel 'x' has an infinity" \
        into out packcat --to=jsonl a.pks
    printf '{"input_ids":[%d],"x":[%d.0]}\n' 0 1 1 2 | diff -u - out
    edge f64 0 fff0000000000000 >a.pks
    refused 65 "a.pks: sequence 1: channel 'x' has an infinity" \
        into out packcat --to=jsonl a.pks
    [ "$(wc -l <out)" -eq 1 ]
    # Only JSON lacks it.
    packcat a.pks >out
    packcat --to=ids a.pks >out
    [ "$(wc -l <out)" -eq 2 ]
}

# ------------------------------------------------------- ids, bytes, rows

@test "ids are lines of numbers" {
    printf '7\n65535 0 10 99 100 999 1000 9999 10000\n' >text
    ids text | packstream -q -L 16 | packcat --to=ids | diff -u text -
    printf '4294967295 4294967294 1000000000 99999\n' >text
    ids text --type=u32 | packstream -q -L 16 | packcat --to=ids |
        diff -u text -
}

@test "a sequence longer than the output buffer is printed whole" {
    draw 1 1 1000 >text
    awk 'BEGIN { for (i = 0; i < 300000; i++) printf "%d ", i % 60000 + 1
        print 5 }' >>text
    ids text | packstream -q -L 400000 -d 2 >a.pks
    packcat --to=ids a.pks | cmp - text
    packcat --to=jsonl a.pks | tr -d '{}[]' | sed 's/.*://' | tr , ' ' |
        cmp - text
}

@test "bytes are the original text" {
    for byte in $(seq 0 255); do u8 "$byte"; done >text
    for i in 1 2 3; do printf 'line %d\n' "$i"; done >>text
    tokcat -q --from=bytes text | packstream -q -L 512 |
        packcat --to=bytes | cmp - text
}

@test "a sequence of bytes longer than the output buffer is complete" {
    awk 'BEGIN { for (i = 0; i < 60000; i++) printf "%d,%s", i, "lorem" }' \
        >text
    tokcat -q --from=bytes --type=u32 text |
        packstream -q -L 700000 -d 1 | packcat --to=bytes | cmp - text
}

@test "a token above 255 is not a byte" {
    printf '104 105\n106 107 256 108\n109\n' >text
    ids text | packstream -q -L 8 >a.pks
    refused 65 'a.pks: sequence 1: token 2 is 256' \
        into out packcat --to=bytes a.pks
    [ "$(cat out)" = hi ]
}

@test "rows are the packs' tokens with their padding" {
    skip_without python3
    draw 300 30 1000 >text
    for type in u16 u32; do
        ids text --type=$type | packstream -q -L 32 --pad-id=999 >a.pks
        model rows a.pks >wanted
        packcat --to=rows a.pks >out
        bytes=${type#u} bytes=$((bytes / 8))
        od -An -v -tu$bytes -w$((32 * bytes)) out |
            sed 's/  */ /g; s/^ //' | diff -u wanted -
        packcat --to=rows --order=pack a.pks | cmp - out
    done
}

@test "rows larger than the output buffer are complete" {
    skip_without python3
    packed 60 3000 60000 -L 150000
    stride=$(number a.pks 20 4)
    [ "$stride" -eq 300000 ]
    n=$(number a.pks $((4096 + 8)) 4)
    tail -c +4161 a.pks | head -c $((n * stride)) >wanted
    packcat --to=npy a.pks | tail -c +4097 | cmp - wanted
    model rows a.pks >wanted
    packcat --to=rows a.pks | od -An -v -tu2 -w300000 |
        sed 's/  */ /g; s/^ //' | cmp - wanted
}

@test "rows and npy of several files must have one layout" {
    printf '1 2\n' >text
    ids text | packstream -q -L 8 >a.pks
    ids text | packstream -q -L 4 >b.pks
    ids text --type=u32 | packstream -q -L 8 >c.pks
    ids text --vocab=9 | packstream -q -L 8 -d 2 >d.pks
    refused 65 'b.pks: cannot be joined to a.pks' packcat --to=rows a.pks b.pks
    refused 65 'c.pks: cannot be joined to a.pks' packcat --to=rows a.pks c.pks
    refused 65 'b.pks: cannot be joined to a.pks: capacity is 4, not 8' \
        packcat --to=npy -o a.npy a.pks b.pks
    [ "$(packcat --to=rows a.pks d.pks | od -An -v -tu2 -w16)" = \
        "$(u16 1 2 0 0 0 0 0 0 1 2 0 0 0 0 0 0 | od -An -v -tu2 -w16)" ]
    ids text | packstream -q -L 8 -d 2 --overlong=split >b.pks
    packcat --to=npy -o a.npy a.pks b.pks
    [ "$(size a.npy)" -eq $((4096 + 2 * 16)) ]
    for name in x y; do
        printf '{"input_ids":[1,2],"%s":[3,4]}\n' $name |
            tokcat -q --from=jsonl --channel=$name:u8 |
            packstream -q -L 8 >$name.pks
    done
    refused 65 "y.pks: cannot be joined to x.pks: field 1 is 'y', u8 at byte 16,\
 not 'x', u8 at 16" \
        packcat --to=npy -o a.npy x.pks y.pks
}

# -------------------------------------------------------------------- npy

# npy_packs OPTION...: a.pks, a block with channels, and a.npy made from it.
npy_packs() {
    rich_records 200 30 | packstream -q -L 32 -w 50 "$@" >a.pks
    packcat --to=npy -o a.npy a.pks
}

@test "numpy loads an npy file, with and without mmap" {
    skip_without_numpy
    for split in error split; do
        npy_packs --overlong=$split
        "$PYTHON_NUMPY" - a.npy a.pks <<'EOF'
import ast, sys
import numpy as np

raw = open(sys.argv[2], "rb").read()
literal = raw[2048:4088].decode("ascii").partition("\n")[0]
dtype = np.dtype(ast.literal_eval(literal))
n, = np.frombuffer(raw, "<u4", 1, 4096 + 8)
wanted = np.frombuffer(raw, dtype, n, 4160)
for mode in None, "r":
    found = np.load(sys.argv[1], mmap_mode=mode)
    assert found.dtype == dtype, found.dtype
    assert found.shape == wanted.shape and len(found) > 1
    assert found.tobytes() == wanted.tobytes()
assert found.dtype.names[:2] == ("tokens", "t_u8")
assert "" not in found.dtype.names
assert not any(name.startswith("f") and name[1:].isdigit()
               for name in found.dtype.names)
EOF
    done
}

@test "an npy file of an empty stream is an empty array" {
    skip_without_numpy
    : >text
    ids text | packstream -q -L 8 >a.pks
    packcat --to=npy -o a.npy a.pks
    [ "$(size a.npy)" -eq 4096 ]
    "$PYTHON_NUMPY" -c 'import numpy
a = numpy.load("a.npy")
assert a.shape == (0,) and "tokens" in a.dtype.names'
}

@test "npy to a pipe is the same as to a file, if the input is a file" {
    npy_packs
    packcat --to=npy a.pks | cat >b.npy
    cmp a.npy b.npy
    packcat --to=npy <a.pks | cat >b.npy
    cmp a.npy b.npy
    cat <a.pks | packcat --to=npy >b.npy
    cmp a.npy b.npy
    # shellcheck disable=SC2094
    packcat --to=npy a.pks - <a.pks >c.npy
    # shellcheck disable=SC2094
    packcat --to=npy - a.pks <a.pks | cmp - c.npy
    printf 'before' >b.npy
    packcat --to=npy a.pks >>b.npy
    { printf 'before'; cat a.npy; } | cmp - b.npy
}

@test "npy starts at the offsets of output and input" {
    npy_packs
    { printf 'twelve bytes'; cat a.pks; } >later
    { printf 'before'; cat a.npy; } >wanted
    {
        dd bs=1 count=12 status=none of=/dev/null
        { printf 'before'; packcat --to=npy; } >b.npy
    } <later
    cmp wanted b.npy
    {
        dd bs=1 count=12 status=none of=/dev/null
        { printf 'before'; packcat --to=npy; } | cat >b.npy
    } <later
    cmp wanted b.npy
}

@test "npy from a pipe to a pipe is refused, with advice" {
    npy_packs
    refused 64 'npy starts with the number of packs' bash -o pipefail -c \
        'cat <a.pks | packcat --to=npy | cat >b.npy'
    [ ! -s b.npy ]
    # Stdin can be read only once, so it cannot be two of the inputs here.
    refused 64 'npy starts with the number of packs' bash -o pipefail -c \
        'packcat --to=npy - - <a.pks | cat >b.npy'
    [ ! -s b.npy ]
}

@test "a truncated npy file cannot be loaded" {
    skip_without_numpy
    npy_packs
    head -c $(($(size a.pks) - 1)) a.pks >part.pks
    refused 65 'part.pks: ' into b.npy packcat --to=npy part.pks
    [ "$(size b.npy)" -gt 4096 ]
    run -1 "$PYTHON_NUMPY" -c 'import numpy; numpy.load("b.npy")'
    # To a pipe, the damage is found while packs are counted.
    run -65 sh -c 'packcat --to=npy part.pks >>c.npy'
    [ ! -s c.npy ]
}

# -------------------------------------------------------------- bad input

@test "input cut anywhere is detected, and the output is a prefix" {
    local step=${LONG:+61}
    : "${step:=307}"
    raw=--raw packed 12 8 1000 -L 8 -w 4
    whole=$(size a.pks)
    for ((at = 1; at < whole; at += at < 4096 ? 455 : step)); do
        head -c "$at" a.pks >part.pks
        : >out
        refused 65 'stdin: ' packcat -o out <part.pks
        prefix out a.tok
    done
    head -c 4096 a.pks >part.pks
    refused 65 '4096' packcat part.pks -o out
}

@test "a flipped bit anywhere is detected, and the output is a prefix" {
    local step=${LONG:+59}
    : "${step:=307}"
    raw=--raw packed 12 8 1000 -L 8 -w 4
    whole=$(size a.pks)
    for ((at = 0; at < whole; at += at < 4096 ? 449 : step)); do
        cp a.pks bad
        flip bad "$at" $((1 << at % 8))
        : >out
        refused 65 'bad: ' packcat bad -o out
        prefix out a.tok
    done
}

@test "the message names the pack and its offset" {
    raw=--raw packed 40 8 1000 -L 8 -d 2 -w 4 --block-packs=2
    second=$(block_at a.pks 1)
    flip a.pks $((second + 64 + 16 + 3))
    refused 65 "a.pks: pack 3 in the block at byte $second: " \
        into out packcat a.pks
    prefix out a.tok
    [ -s out ]
}

@test "truncated framed output lacks END, so that the next reader notices" {
    packed 40 8 1000 -L 8 -w 4
    head -c $(($(size a.pks) - 1)) a.pks >part.pks
    refused 65 'part.pks: ' into out packcat part.pks
    prefix out a.tok
    run -65 packstream -q -L 8 out
}

@test "files that are not pack streams are refused" {
    : >empty
    refused 65 'empty: ' packcat empty
    echo 'some text, long enough to hold a magic' >text
    refused 65 'text: ' packcat text
    printf '1 2\n' | tokcat --from=ids >a.tok
    refused 65 'a.tok: ' packcat --to=rows a.tok
    refused 1 "$PWD: Is a directory" packcat "$PWD"
}

# ----------------------------------------------------------- command line

@test "invalid options are usage errors" {
    local form
    refused 64 'to' packcat --to=xml
    refused 64 'order' packcat --order=random
    for form in rows npy llmc trl; do
        refused 64 "--order=input cannot be used with --to=$form" \
            packcat --to=$form --order=input
    done
}

@test "an output that is an input is refused and left alone" {
    packed 20 8 1000 -L 8
    cp a.pks b.pks
    refused 1 'is also an input' packcat -o b.pks a.pks b.pks
    cmp a.pks b.pks
    # shellcheck disable=SC2094
    refused 1 'is also an input' packcat -o b.pks - <b.pks
    cmp a.pks b.pks
    ln -s a.pks link
    refused 1 'is also an input' packcat -o link a.pks
    cmp a.pks b.pks
    refused 1 'is also an input' sh -c 'packcat a.pks b.pks >>b.pks'
    cmp a.pks b.pks
}

# ------------------------------------------------------------ bad outputs

@test "a full device, a closed output or a vanished reader, in every form" {
    [ -c /dev/full ] || skip "there is no /dev/full"
    packed 20000 60 100 -L 64
    cp a.pks large.pks
    packed 20 8 100 -L 8
    for form in records jsonl npy rows ids bytes llmc trl tfrecord; do
        for file in a.pks large.pks; do
            refused 1 'stdout: ' sh -c "packcat --to=$form $file >/dev/full"
            # shellcheck disable=SC2154 # refused sets it
            [[ $stderr == *'No space left on device' ]]
        done
        refused 1 'stdout: ' sh -c "packcat --to=$form a.pks >&-"
        # Even if the parent ignores the signal.
        run bash -c "trap '' PIPE
            packcat --to=$form large.pks 2>err | head -c 1 >/dev/null
            echo \${PIPESTATUS[0]}"
        [ "$output" = 141 ]
        [ ! -s err ]
    done
    refused 1 'stdin: ' sh -c 'packcat <&-'
}

@test "a full device is an error at once, not at the end of input" {
    [ -c /dev/full ] || skip "there is no /dev/full"
    packed 40 8 100 -L 8 -w 1
    mkfifo pipe
    # The writer stays open, so the reader does not see an end.
    exec 7<>pipe
    for form in records jsonl rows ids bytes trl tfrecord; do
        head -c "$(block_at a.pks 1)" a.pks >&7
        refused 1 '/dev/full: ' timeout 600 \
            packcat --to=$form -o /dev/full pipe 7>&-
        [[ $stderr == *'No space left on device' ]]
    done
    exec 7>&-
}

@test "output is written before the next input is opened" {
    packed 40 8 100 -L 8 -w 1
    packcat --to=ids a.pks >wanted
    mkfifo next
    packcat --to=ids a.pks next >got 3>&- &
    eventually cmp -s got wanted
    cat a.pks >next
    wait $!
    cat text text | cmp - got
}

@test "a slow non-blocking output loses nothing" {
    skip_without python3
    packed 20000 60 100 -L 64
    python3 - <<'EOF'
import fcntl, os, subprocess, time
reader, writer = os.pipe()
flags = fcntl.fcntl(writer, fcntl.F_GETFL)
fcntl.fcntl(writer, fcntl.F_SETFL, flags | os.O_NONBLOCK)
child = subprocess.Popen(["packcat", "--to=ids", "a.pks"], stdout=writer)
os.close(writer)
with open("out", "wb") as out:
    while True:
        part = os.read(reader, 50000)
        if not part:
            break
        out.write(part)
        time.sleep(0.001)
assert child.wait() == 0
EOF
    cmp out text
}

# -------------------------------------------------------------- terminals

@test "binary output is refused on a terminal, text is not" {
    skip_without script
    printf '72 105\n' >text
    ids text | packstream -q -L 4 >a.pks
    for form in records npy rows bytes llmc tfrecord; do
        run -1 script -qec "packcat --to=$form a.pks" /dev/null </dev/null
        [[ $output == *terminal* ]]
    done
    for form in ids jsonl trl; do
        run -0 script -qec "packcat --to=$form a.pks" /dev/null </dev/null
        [[ $output == *72* ]]
    done
}

@test "progress is shown on a terminal unless -q" {
    skip_without script
    packed 20000 10 100 -L 32
    # More than a pipe holds, so output has begun when the pause begins.
    slow="{ head -c 200000; sleep 0.3; cat; } <a.pks | packcat -o out"
    run -0 script -qec "$slow" /dev/null </dev/null
    [[ $output == *' sequences'*B/s* ]]
    run -0 script -qec "$slow -q" /dev/null </dev/null
    [ -z "$output" ]
}

@test "output is written while the input pauses" {
    printf '3 1 4\n1 5\n' >text
    ids text | packstream -L 4 -w 1 --block-packs=1 >a.pks
    second=$(block_at a.pks 1)
    mkfifo in out
    for form in ids records; do
        packcat --to=$form <in >out &
        opens 4 '>' in $!
        opens 5 '<' out $!
        head -c "$second" a.pks >&4
        if [ $form = ids ]; then
            read -r -t 20 -u 5 line
            [ "$line" = "3 1 4" ]
        else
            timeout 600 head -c $((136 + 10)) <&5 >got
            [ "$(size got)" -eq 146 ]
        fi
        tail -c +$((second + 1)) a.pks >&4
        exec 4>&-
        cat <&5 >/dev/null
        exec 5<&-
        wait $!
    done
}

@test "framed token records give the same as their packs" {
    seq 40 | sed 's/.*/{"input_ids": [&, 2, 3], "labels": [-100, 0, &]}/' |
        tokcat --from=jsonl >t.tok
    packstream -q -L 16 t.tok -o t.pks
    local form
    for form in records jsonl ids bytes; do
        packcat --to=$form t.pks >wanted
        packcat --to=$form t.tok | cmp - wanted
        packcat --to=$form <t.tok | cmp - wanted
        dd bs=7 if=t.tok status=none | packcat --to=$form | cmp - wanted
    done
    packcat --to=datatrove -o d t.pks
    packcat --to=datatrove -o e t.tok
    cmp d e
    cmp d.index e.index
    # One after the other, unchanged.
    packcat --to=ids t.tok t.pks t.tok | cmp - <(
        for form in 1 2 3; do packcat --to=ids t.pks; done)
    # A truncated stream is reported, after the sequences before the cut.
    head -c $(($(size t.tok) - 40)) t.tok >cut.tok
    run -65 bash -c 'packcat --to=ids cut.tok >got'
    [[ $output == "packcat: cut.tok: "* ]]
    packcat --to=ids t.pks | cmp -n "$(size got)" got -
}

@test "raw token records, and the forms of packs, need packs" {
    record16 1 2 3 >r.tok
    is 65 "packcat: r.tok: neither a pack stream nor framed token records:\
 pack raw records with packstream first" \
        packcat --to=ids r.tok
    tokcat --from=ids <<<'1 2' >f.tok
    local option
    for option in --to=rows --to=npy --to=trl --to=tfrecord --range=1:; do
        is 65 "packcat: f.tok: not a pack stream: this looks like token\
 records (pack them with packstream)" packcat $option f.tok
    done
}

# ----------------------------------------------------- streams made one

@test "--merge joins streams, with one END and consecutive sequences" {
    local i
    : >text
    for i in 1 2 3; do
        draw $((200 * i)) 40 60000 >$i.txt
        # The second is two streams, one of which lost sequences.
        ids $i.txt | packstream -q -L 32 -d 4 -w 50 --overlong=drop \
            -o $i.pks
        cat $i.pks >>all.pks
    done
    cat 1.pks 2.pks >12.pks
    packcat --merge -o one.pks 12.pks 3.pks
    packcat --to=packs all.pks | cmp - one.pks
    cat 12.pks 3.pks | packcat --merge | cmp - one.pks
    # One header, one END, and a block for all packs.
    [ "$(number one.pks 4104 4)" -eq "$(packstat --quick --json all.pks |
        sed 's/.*"packs": \([0-9]*\).*/\1/')" ]
    packstat --verify one.pks
    packcat all.pks | cmp - <(packcat one.pks)
    [ "$(packcat --to=rows all.pks | od -An -tx1 | md5sum)" = \
        "$(packcat --to=rows one.pks | od -An -tx1 | md5sum)" ]
    # Its totals are the sums of theirs.
    packstat --verify --against=<(cat 1.txt 2.txt 3.txt |
        tokcat -q --from=ids) one.pks
    # A single stream stays the same, except for the options in its header.
    packcat --merge one.pks | cmp - one.pks
    packcat --merge 1.pks >x.pks
    cmp -i 4096 -n 8192 1.pks x.pks
}

@test "merged streams can be compressed, and start at any offset" {
    draw 3000 40 60000 >text
    ids text | packstream -q -L 64 -d 4 -o a.pks
    packstream -q -L 64 -d 4 --zstd -o b.pks <(ids text)
    packcat --merge --zstd=1 -o c.pks a.pks b.pks a.pks
    zstd -dcq c.pks | cmp - <(packcat --merge a.pks a.pks a.pks)
    packstat --verify c.pks
    packcat --range=-1: --to=ids c.pks | cmp - <(
        packcat --range=-1: --to=ids a.pks)
    # With split sequences and channels, too.
    rich_records 60 100 >a.tok
    packstream -q -L 32 -d 4 --overlong=split -o a.pks a.tok
    packcat --merge a.pks a.pks >two.pks
    packcat two.pks | cmp - <(packcat a.pks a.pks)
    packstat --verify --against=<(cat a.tok a.tok) two.pks
    # And with streams without packs.
    ids <(printf '1 2 3\n') | packstream -q -L 2 --overlong=drop -o none.pks
    ids <(printf '1 2\n') | packstream -q -L 2 --overlong=drop -o one.pks
    packcat --merge none.pks one.pks none.pks >x.pks
    packstat --verify x.pks
    packstat --json x.pks | grep -q '"rejected_sequences": *2'
    packcat --merge none.pks none.pks | packcat --to=ids | cmp - /dev/null
}

@test "streams that cannot be merged are refused" {
    ids <(printf '1 2\n3\n') >a.tok
    packstream -q -L 4 -d 2 -w 3 -o a.pks a.tok
    packstream -q -L 4 -d 2 -w 9 -o window.pks a.tok
    is 65 "packcat: window.pks: its max_displacement is 18, but the first\
 stream has only 6: name this file first" packcat --merge -o x a.pks window.pks
    packcat --merge -o x window.pks a.pks
    packdeal -n 2 -b 1 -o 'share.%d' a.pks window.pks
    is 65 "packcat: share.0: the share of one rank cannot be joined: the\
 other packs are in other files" packcat --merge share.0
    is 65 "packcat: a.tok: not a pack stream: this looks like token records\
 (pack them with packstream)" packcat --merge a.tok
    refused 64 '--range cannot be used with --to=packs' \
        packcat --merge --range=1: a.pks
    refused 64 '--zstd needs --to=packs' packcat --zstd a.pks
    refused 64 '--merge means --to=packs' packcat --merge --to=ids a.pks
    refused 64 'from 1 to 22' packcat --merge --zstd=23 a.pks
}

@test "depths can differ; the merged stream has none in its header" {
    ids <(printf '1 2\n3\n4\n') >a.tok
    packstream -q -L 4 -d 1 -w 3 -o one.pks a.tok
    packstream -q -L 4 -d 2 -w 3 -o two.pks a.tok
    packstream -q -L 4 -w 3 -o any.pks a.tok
    local first
    for first in one two any; do
        packcat --merge -o x.pks $first.pks any.pks two.pks one.pks
        packstat --verify x.pks
        [ "$(number x.pks 52 4)" -eq 0 ]
        packcat x.pks | cmp - <(packcat one.pks one.pks one.pks one.pks)
    done
}

@test "blocks of a stream do not depend on input timing" {
    packed 200 20 60000 -L 32 -d 4 --block-packs=8
    packcat --merge a.pks >wanted
    mkfifo in
    packcat --merge <in >got &
    opens 4 '>' in $!
    local half
    half=$(block_at a.pks 3)
    head -c "$half" a.pks >&4
    idle $!
    tail -c +$((half + 1)) a.pks >&4
    exec 4>&-
    wait $!
    cmp got wanted
}

@test "a merged stream has no END if an input was cut" {
    draw 500 20 60000 >text
    ids text | packstream -q -L 32 -d 4 --block-packs=8 -o a.pks
    head -c "$(block_at a.pks 5)" a.pks >cut.pks
    run -65 bash -c 'packcat --merge a.pks cut.pks >got.pks'
    [[ $output == "packcat: cut.pks: "* ]]
    run -65 bash -c 'packcat --to=rows got.pks >rows'
    packcat --to=rows a.pks cut.pks >wanted 2>&1 || true
    [ "$(size rows)" -gt "$(packcat --to=rows a.pks | wc -c)" ]
    cmp -n "$(size rows)" rows wanted
    run -65 packstat --verify got.pks
}

@test "sums that exceed END's numbers are an error of the input" {
    ids <(printf '1 2\n3\n') | packstream -q -L 4 -d 2 -o a.pks
    # It claims that 2^63 input tokens were truncated.
    poke a.pks "end truncated_sequences" 1 \
        "end truncated_tokens" 9223372036854775808 \
        "end input_tokens" 9223372036854775811
    packcat --merge -o one.pks a.pks
    is 65 "packcat: a.pks: together with the streams before it, the input\
 counts exceed 64 bits" packcat --merge -o two.pks a.pks a.pks
    [ ! -e two.pks ]
}
