#!/usr/bin/env bats
# packstream.bats - packs contain the input, whatever it is; invalid input and
# options are reported, and so are system errors.
#
# Checks that need more than a shell are in tests/support/packstream-checks.py
# and packlive.py, which have their own encoder and decoder of both formats.
#
# SPDX-License-Identifier: MIT

# Word splitting of options is intended.
# shellcheck disable=SC2086

load ../support/helpers

# For bad_option, where x holds records.
# shellcheck disable=SC2034
program=packstream operands=(x)

# skip_without_decoder: skips the test if packformat.py cannot run.
skip_without_decoder() {
    skip_without python3
    [ -e "${abs_top_srcdir:?}/tests/support/packformat.py" ]
    support packformat.py 2>/dev/null || skip "python3 finds no libxxhash"
}

# check, live NAME ARGUMENT...: run a check in Python.
check() {
    skip_without_decoder
    support packstream-checks.py "$@"
}

live() {
    skip_without_decoder
    support packlive.py "$@"
}

# bad_input WHY [OPTION...]: the input, on stdin, is refused.
bad_input() {
    cat >input
    is 65 "packstream: stdin: $1" into out packstream -L 4 "${@:2}" <input
}

# two: x, raw u16 records of 3 tokens and 1.
two() {
    record16 1 2 3 >x
    record16 7 >>x
}

# framed SEQUENCE... [end=SEQUENCES:TOKENS]: framed u16 records, from sequences
# of tokens with commas.
framed() {
    check make_framed "$@"
}

# ---------------------------------------------------------------- options

@test "valid and invalid options" {
    two
    local option values value why
    bad_option "missing -L N" -d 4 -w 8
    while IFS='|' read -r option values why; do
        for value in $values; do
            case $option in
                -?) bad_option "$option $value: $why" -L 4 $option "$value" ;;
                *) bad_option "$option=$value: $why" -L 4 "$option=$value" ;;
            esac
        done
    done <<'END'
-L|0 16777217|must be a number from 1 to 16777216
--capacity|-1 4x|must be a number from 1 to 16777216
-d|0 1048577 auto|must be a number from 1 to 1048576; omit it for no limit
--block-packs|0 65537|must be a power of two from 1 to 65536
-w|0 16777217|must be a number from 1 to 16777216
--max-delay|0 16777217|must be a number from 1 to 16777216
--vocab|0 4294967296|must be a number from 1 to 4294967295
--pad-id|-1 4294967295|must be a token id
-M|0 64MB|must be a number of bytes from 1, such as 64Mi
--shuffle|0 1e3|must be a number from 1 to 18446744073709551615
--shuffle|18446744073709551616|exceeds the maximum, 18446744073709551615
--flush-every|0|must be a number of records from 1
--flush-idle|0 31536000001|must be a number of milliseconds from 1 to 31536000000
-a|best|must be auto, spfhp, nnlshp, bestfit, nextfit, none or concat
--order|random|must be window or input
-t|u8 U16|must be u16 or u32
--overlong|cut|must be error, drop, truncate or split
--stats|yaml|must be json, or nothing
END
    bad_option "--block-packs=12 is not a power of two" -L 4 --block-packs=12
    # The last of two options applies, but both must be valid.
    bad_option "-L 0: must be a number from 1 to 16777216" -L 0 -L 4
    packstream -L 9 -L 4 x | cmp - <(packstream -L 4 x)
    packstream -L 4 --max-delay=16777216 -M 1T --flush-every=1T -d 1Mi \
        --flush-idle=31536000000 --shuffle=18446744073709551615 \
        --block-packs=64Ki x | packcat | cmp - x
    packstream --capacity=2Ki x | cmp - <(packstream -L 2048 x)
    skip_if_sanitized
    packstream -L 16Mi -w 1 x | packcat | cmp - x
    packstream -L 4 -w 16777216 x | packcat | cmp - x
}

@test "options that cannot be combined" {
    two
    local why="--order=input and --shuffle cannot be combined"
    bad_option "$why" -L 4 --order=input --shuffle=1
    bad_option "$why" -L 4 --shuffle=1 --order=input
    packstream -L 4 --order=window --shuffle=1 x | packcat | cmp - x
    why="--overlong cannot be used with -a concat, which cuts sequences\
 wherever a pack ends"
    bad_option "$why" -L 4 -a concat --overlong=split
    bad_option "$why" -L 4 -a concat --overlong=error
    local least
    least=$(least_memory -L 130)
    bad_option "-M $((least - 1)) is too small: these options need at least\
 $least bytes" -L 130 -M $((least - 1)) -o out
    [ ! -e out ]
    packstream -L 130 -M "$least" x | packcat | cmp - x
}

@test "a row larger than allowed is refused" {
    # 8 bytes for each of two channels and 2 for a token, with L tokens.
    echo '{"input_ids":[1],"a":[1],"b":[1]}' |
        tokcat --from=jsonl --channel=a:u64 --channel=b:u64 >x
    local why="a row takes 301989888 bytes, but the limit is 268435456"
    bad_option "$why" -L 16Mi -o out
    [ ! -e out ]
    skip_if_sanitized
    packstream -L 14M -w 1 x | packcat | cmp - x
}

@test "the defaults are those in --help" {
    skip_if_quick
    check make_sample 1 >x
    packstream -L 64 x >out
    packstream -L 64 -M 1Gi -t u16 --overlong=error x | cmp - out
    packstream -L 64 -a auto --order=window --max-delay=8192 x | cmp - out
    packstream -L 64 --pad-id=0 --block-packs=8192 x | cmp - out
    packstream -L 64 --type=u16 -q x | cmp - out
    packstream -L 64 -w 1024 x | packcat --to=rows >rows
    packcat --to=rows out | cmp - rows
    run ! cmp -s <(packstream -L 64 --block-packs=4096 x) out
    run ! cmp -s <(packstream -L 64 -d 15 x) out
    run ! cmp -s <(packstream -L 64 -w 1024 x) out
    run ! cmp -s <(packstream -L 64 --pad-id=1 x) out
    run ! cmp -s <(packstream -L 64 --max-delay=8191 x) out
    run ! cmp -s <(packstream -L 64 --even-cost x) out
    packstream -L 64 --shuffle=5 x >out
    packstream -L 64 --shuffle=5 --max-delay=16384 x | cmp - out
    run ! cmp -s <(packstream -L 64 --shuffle=6 x) out
}

@test "-t cannot change the width of framed tokens" {
    framed 1,2,3 >x
    packstream -L 4 x >out
    packstream -L 4 -t u16 x | cmp - out
    bad_option "x: the records have u16 tokens, not u32" -L 4 -t u32
    echo 70000 | tokcat --from=ids -t u32 >x
    packstream -L 4 x >out
    packstream -L 4 -t u32 x | cmp - out
    bad_option "x: the records have u32 tokens, not u16" -L 4 -t u16
}

@test "the pad id is the option's, otherwise the records', otherwise 0" {
    row() {
        packstream -L 3 "$@" x | packcat --to=rows | od -An -v -tu2
    }
    record16 9 >x
    [ "$(row)" = "     9     0     0" ]
    [ "$(row --pad-id=65535)" = "     9 65535 65535" ]
    bad_option "pad id 65536 does not fit u16 tokens" -L 8 --pad-id=65536
    echo 9 | tokcat --from=ids --pad-id=5 >x
    [ "$(row)" = "     9     5     5" ]
    [ "$(row --pad-id=0)" = "     9     0     0" ]
    packstream -L 3 --pad-id=7 x | packcat | cmp - x
    record32 9 >x
    packstream -L 8 -t u32 --pad-id=4294967294 x | packcat | cmp - x
}

# -------------------------------------------------------------- bad input

@test "empty input is a stream without packs" {
    packstream -L 4 </dev/null >out
    [ "$(size out)" = $((4096 + 256)) ]
    packstat --verify out
    is 0 "" packcat out
    [ -z "$output" ]
    packstream -L 4 -t u32 /dev/null /dev/null - </dev/null >out
    packstat --verify out
    framed >x
    packstream -L 4 x | packcat >y
    without_lengths y | cmp - x
}

@test "a raw stream cut at any byte" { check cuts_of_raw; }
@test "a framed stream cut at any byte" { check cuts_of_framed; }
@test "a flipped bit at every byte of a framed stream" { check flips; }

@test "an odd byte at the end" {
    { record16 1 2; u8 5; } | bad_input \
        "record 1 at byte 8: truncated: the input ends after 1 of its 4 bytes"
    { framed 1,2; u8 5; } | bad_input \
        "extra data after END, at byte 176: not token records"
    # u32 tokens read as u16, or the other way round, rarely end well.
    record32 1 2 | bad_input "record 1 at byte 8: truncated: the input ends\
 after 4 of its 8 bytes"
    record16 1 2 | bad_input "record 0 at byte 0: truncated: the input ends\
 after 8 of its 12 bytes" -t u32
}

@test "a length of 0" {
    u32 0 | bad_input "record 0 at byte 0: an empty sequence (length 0)"
    { record16 1 2 3; record16 7; u32 0 1; } |
        bad_input "record 2 at byte 16: an empty sequence (length 0)"
    # Earlier packs are written, but no END.
    { record16 1 2 3; record16 7; u32 0; } |
        bad_input "record 2 at byte 16: an empty sequence (length 0)" -w 1
    [ "$(size out)" = $((4096 + 64 + 2 * 64)) ]
}

@test "a length of 2^32-1 costs no memory" {
    skip_if_sanitized
    u32 4294967295 1 >x
    (ulimit -v 65536 && packstream --version) ||
        skip "64 MiB of address space are not enough to start"
    limited() {
        is 65 "packstream: x: record 0 at byte 0: $1" bash -c '
            ulimit -v 65536
            packstream -L 4 "$@" x >/dev/null' bash "${@:2}"
    }
    limited "4294967295 tokens exceed the capacity, 4: use --overlong=split,\
 truncate or drop"
    limited "truncated: the input ends after 8 of its 8589934594 bytes" \
        --overlong=drop
    limited "truncated: the input ends after 8 of its 17179869184 bytes" \
        --overlong=drop -t u32
    local policy
    for policy in truncate split; do
        limited "4294967295 tokens take 8589934590 bytes, but the limit is\
 268435456" --overlong=$policy
    done
    limited "4294967295 tokens take 8589934590 bytes, but the limit is 268435456" \
        --overlong=drop --rejects=rejects
    # The greatest length that can be held; memory grows with the bytes read.
    { u32 134217728; head -c 5000000 /dev/zero; } >x
    limited "truncated: the input ends after 5000004 of its 268435460 bytes" \
        --overlong=split
}

@test "more memory than the machine has" {
    skip_if_sanitized
    two
    (ulimit -v 65536 && packstream --version) ||
        skip "64 MiB of address space are not enough to start"
    is 1 "packstream: out of memory" bash -c '
        ulimit -v 65536
        packstream -L 4 -w 16Mi x >/dev/null'
}

# outside FILE RECORD BYTE TOKEN ID VOCAB [OPTION...]: a token of FILE is
# outside the vocabulary.
outside() {
    is 65 "packstream: $1: record $2 at byte $3: token $4 is $5, outside the\
 vocabulary of $6" packstream -L 4 "${@:7}" -o out "$1"
}

@test "a token outside the vocabulary that the records declare" {
    echo 5 6 299 | tokcat --from=ids --vocab=300 >x
    packstream -L 4 x | packcat | cmp - x
    check edit x 44 I 299
    outside x 0 136 2 299 299
    # --vocab can be stricter, never laxer.
    outside x 0 136 2 299 299 --vocab=1000
    outside x 0 136 1 6 6 --vocab=6
}

@test "a token outside --vocab" {
    two
    packstream -L 4 --vocab=8 x | packcat | cmp - x
    outside x 1 10 0 7 7 --vocab=7
    record32 4294967295 >x
    packstream -L 4 -t u32 x | packcat | cmp - x
    outside x 0 0 0 4294967295 4294967295 -t u32 --vocab=4294967295
    framed 5,6 >x
    outside x 0 136 1 6 6 --vocab=6
    # Records of the second file are numbered within it.
    record16 1 >x
    record16 9 >y
    outside y 1 0 0 9 9 --vocab=9 x
}

@test "messages name the formats of other programs' files" {
    local why="not token records: this looks like" bytes name option
    local tables='(use python -m packstream.tokens for ids,'
    tables+=' packstream.tokenize for text)'
    while IFS='|' read -r bytes name; do
        name=${name/TABLES/"$tables"}
        # The bytes are a format string of escapes.
        # shellcheck disable=SC2059
        printf "$bytes" >x
        for option in '' --overlong=drop --overlong=split; do
            is 65 "packstream: x: $why $name" packstream -L 4 $option x
        done
        is 65 "packcat: x: $why $name" packcat x
        is 65 "packcat: x: not a pack stream: this looks like $name" \
            packcat --to=npy x
        is 65 "packstat: x: $why $name" packstat x
    done <<'END'
{"input_ids": [1]}|JSON (use tokcat --from=jsonl)
[{ "a":|JSON (use tokcat --from=jsonl)
  { }|JSON (use tokcat --from=jsonl)
{      |JSON (use tokcat --from=jsonl)
{}      |JSON (use tokcat --from=jsonl)
[1, 2, 3]|text (use tokcat)
1 2 3\n4 5\n|text (use tokcat)
\xef\xbb\xbfsome text|text (use tokcat)
\4\x22\x4d\x18\x64\x40\xa7\x1a|lz4 (use lz4 -dc)
\x93NUMPY\x01\x00v\x00|a numpy array (use tokcat --from=npy)
\x88\xdb\x34\x01\x01\x00\x00\x00\x01|an llm.c token file (use tokcat --from=llmc)
MMIDIDX\x00\x00\x01|a Megatron-LM index (use tokcat --from=megatron)
PAR1\x15\x04\x15\x10|Parquet TABLES
ARROW1\x00\x00\xff|Arrow TABLES
\xff\xff\xff\xff\x10\x01\x00\x00|Arrow TABLES
\x1f\x8b\x08\x00\x00\x00\x00\x00|gzip (use gzip -dc)
BZh91AY&SY|bzip2 (use bzip2 -dc)
\xfd7zXZ\x00\x00\x04|xz (use xz -dc)
PK\x03\x04\x14\x00\x00\x00|a zip archive
END
    two
    packstream -L 4 x >packs
    is 65 "packstream: packs: $why a pack stream (unpack it with packcat)" \
        packstream -L 4 -o out - packs <x
}

@test "an empty input gets a warning, or is refused" {
    : >x
    local why="the input is empty (use --expect-end to refuse it)"
    is 0 "packstream: x: $why" packstream -L 4 -o out x
    is 0 "packstream: stdin: $why" packstream -L 4 -o out - </dev/null
    is 0 "packstream: x: $why" packstream -L 4 -o out x x
    is 0 "" packstream -L 4 -q -o out x
    tokcat --from=ids </dev/null >y
    is 0 "" packstream -L 4 -o out y
    is 0 "" packstream -L 4 -o out --expect-end y
    two
    is 0 "" packstream -L 4 -o out x
    rm out
    why="raw records have no END, which --expect-end requires: write framed\
 records"
    is 65 "packstream: x: $why" packstream -L 4 -o out --expect-end x
    is 65 "packstream: stdin: $why" packstream -L 4 -o out --expect-end \
        - </dev/null
    [ ! -e out ]
    # A producer that failed does not cost the output of an earlier run.
    echo kept >out
    why="the pipe ended without data: its producer failed, or wrote no raw\
 records"
    is 65 "packstream: stdin: $why" packstream -q -L 4 -o out < <(false)
    [ "$(cat out)" = kept ]
    rm out
    # A truncated framed input is refused anyway.
    head -c 100 y >z
    run -65 packstream -L 4 -o out --expect-end z
}

@test "raw records are not mistaken for another form" {
    local first
    # As many tokens as the count in the characters, and no more.
    for first in 9 10 32 40 80 123 137; do
        { u32 "$first"; head -c $((2 * first)) /dev/zero; } >x
        packstream -L 200 x | packcat --to=records | cmp - x
    done
}

@test "headers of other versions or with unknown features" {
    framed 1,2,3 >good
    # header MESSAGE OFFSET CODE NUMBER...: an edited header is refused.
    header() {
        cp good x
        check edit x "${@:2}"
        is 65 "packstream: x: $1" packstream -L 4 -o out x
    }
    header "format version 2.0 is newer than 1.0: use a newer packstream" 12 H 2
    header "the stream uses unknown features (incompat flags 0x1): use a\
 newer packstream" 24 Q 1
    header "the stream uses unknown features (incompat flags\
 0x8000000000000000): use a newer packstream" 24 Q 0x8000000000000000
    header "invalid size: tokens of 3 bytes" 40 B 3
    # A newer minor version and compatible features change nothing.
    cp good x
    check edit x 14 H 9 32 Q 0xff
    packstream -L 4 x | cmp - <(packstream -L 4 good)
}

@test "a damaged header" {
    framed 1,2,3 >x
    flip x 50
    bad_input "the header's checksum does not match" <x
    flip x 50
    tr '\r' '\n' <x >y
    bad_input "record 0 at byte 0: 1263490185 tokens exceed the capacity, 4:\
 use --overlong=split, truncate or drop" <y
}

@test "an END that disagrees" {
    framed 1,2,3 4 end=2:4 | packstream -L 4 | packstat --verify
    framed 1,2,3 4 end=3:4 | bad_input "END at byte 152 declares 3 sequences\
 and 4 tokens, but 2 and 4 were read"
    framed 1,2,3 4 end=2:5 | bad_input "END at byte 152 declares 2 sequences\
 and 5 tokens, but 2 and 4 were read"
    framed 1,2,3 4 >x
    flip x 142
    bad_input "the records before END at byte 152 do not match its digest" <x
    framed 1,2,3 4 >x
    flip x 156 4
    bad_input "record 2 at byte 152: a control record of unknown kind 5" <x
    { framed 1,2,3 4; record16 5; } | bad_input "extra data after END, at\
 byte 184: not token records"
    { framed 1,2,3 4; printf '\211TO'; } |
        bad_input "the input ends inside the header"
    echo 5 | tokcat --from=ids --vocab=7 >x
    { framed 1,2,3 4; cat x; } | bad_input "the stream at byte 184 cannot be\
 joined to the first: vocab_size is 7, not none"
}

@test "a truncated or damaged zstd file" {
    skip_without zstd
    check make_sample 2 >x
    zstd -q x
    head -c 100000 x.zst >short
    run -65 --separate-stderr packstream -L 64 -o out short
    [[ $stderr = "packstream: short: the zstd frame is truncated after byte "* ]]
    cp x.zst broken
    # The checksum at the end of the frame.
    flip broken $(($(size broken) - 1))
    run -65 --separate-stderr packstream -L 64 -o out broken
    [[ $stderr = "packstream: broken: zstd, after byte "*"checksum"* ]]
}

# ---------------------------------------------------------------- overlong

@test "overlong: an error by default, naming record and length" {
    { record16 1 2; record16 1 2 3 4 5; } | bad_input "record 1 at byte 8: 5\
 tokens exceed the capacity, 4: use --overlong=split, truncate or drop"
    { record16 1 2; record16 1 2 3 4 5; } | bad_input "record 1 at byte 8: 5\
 tokens exceed the capacity, 4: use --overlong=split, truncate or drop" --overlong=error
    record16 1 2 3 4 >x
    packstream -L 4 x | packcat | cmp - x
}

@test "overlong: dropped, truncated or split" {
    { record16 1 2; record16 3 4 5 6 7 8 9; record16 6; } >x
    ids() {
        packstream -L 3 -w 1 "$@" x | packcat --to=ids --order=pack | xargs
    }
    [ "$(ids --overlong=drop)" = "1 2 6" ]
    [ "$(ids --overlong=truncate)" = "1 2 3 4 5 6" ]
    [ "$(ids --overlong=split)" = "1 2 3 4 5 6 7 8 9 6" ]
    packstream -L 3 --overlong=split x | packcat | cmp - x
    # An input of only flush records.
    record16 1 2 3 4 5 >x
    packstream -L 4 --overlong=drop x >out
    [ "$(size out)" = $((4096 + 256)) ]
    packstat --json --verify out | grep -F '"rejected": 1,'
}

@test "packs and rejects are the input: drop" { check rejects 0 30 drop; }

@test "packs and rejects are the input: truncate" {
    check rejects 30 60 truncate
}

@test "rejects can be packed again" {
    { record16 1 2; record16 3 4 5 6 7; record16 6; record16 8 9 9 9; } >x
    packstream -L 3 --overlong=drop --rejects=rejects -o out x
    packstream -L 8 rejects | packcat --to=jsonl >again
    diff -u - again <<'EOF'
{"input_ids":[3,4,5,6,7],"source_id":1,"reason":1}
{"input_ids":[8,9,9,9],"source_id":3,"reason":1}
EOF
    packstream -L 3 --overlong=truncate --rejects=rejects -o out x
    packstream -L 8 rejects | packcat --to=jsonl | grep -c '"reason":2'
    # Rejects to stdout, packs to a file; but not both to one file.
    packstream -L 3 --overlong=truncate --rejects=- -o out x | cmp - rejects
    is 1 "packstream: stdout: used for two outputs: give each its own name" \
        packstream -L 2 --overlong=drop --rejects=- x
    [ -z "$output" ]
    cp x same
    is 1 "packstream: same: used for two outputs: give each its own name" \
        packstream -L 2 --overlong=drop --rejects=same -o same x
    cmp x same
    # Without any rejects.
    two
    packstream -L 3 --overlong=drop --rejects=rejects -o out x
    [ "$(packstream -L 8 rejects | packcat --to=jsonl)" = "" ]
    packstream -L 3 --overlong=drop --rejects=empty -o out /dev/null
    cmp empty rejects
}

@test "rejects of a truncated input have no END" {
    { record16 1 2 3 4 5; u8 1; } >x
    mkfifo fifo
    cat fifo >rejects &
    is 65 "packstream: x: record 1 at byte 14: truncated: the input ends\
 after 1 of its 4 bytes" packstream -L 4 --overlong=drop --rejects=fifo -o out x
    wait $!
    run -65 packstream -L 8 -o again rejects
}

@test "invalid uses of --rejects" {
    two
    local why="--rejects needs --overlong=drop or truncate, or\
 --out-of-vocab=drop"
    bad_option "$why" -L 4 --rejects=rejects
    bad_option "$why" -L 4 --rejects=rejects --overlong=error
    bad_option "$why" -L 4 --rejects=rejects --overlong=split
    [ ! -e rejects ]
    is 1 "packstream: no/where.new: No such file or directory" \
        packstream -L 4 --overlong=drop --rejects=no/where -o out x
    echo '{"input_ids":[1],"reason":2}' | tokcat --from=jsonl >x
    bad_option "--rejects: channel 'reason' is listed twice" \
        -L 4 --overlong=drop --rejects=rejects
    [ ! -e rejects ]
}

# ------------------------------------------------------------------- files

@test "several files are one input" {
    { record16 1 2; record16 3; } >x
    { record16 4 5 6; record16 7; } >y
    cat x y | packstream -L 4 -w 2 >out
    packstream -L 4 -w 2 x y | cmp - out
    packstream -L 4 -w 2 x - <y | cmp - out
    packstream -L 4 -w 2 - y <x | cmp - out
    packstream -L 4 -w 2 /dev/null x /dev/null y | cmp - out
    packcat out | cmp - <(cat x y)
    framed 1,2 3 >x
    framed 4,5,6 7 >y
    framed 1,2 3 4,5,6 7 >both
    packstream -L 4 -w 2 both >out
    packstream -L 4 -w 2 x y | cmp - out
    cat x y | packstream -L 4 -w 2 | cmp - out
}

@test "files that cannot be combined" {
    two
    framed 1,2 >y
    echo 5 | tokcat --from=ids --vocab=7 >z
    local why="cannot be joined to the previous input:"
    is 65 "packstream: y: $why records are framed, not raw" \
        packstream -L 4 -o out x y
    is 65 "packstream: x: $why records are raw, not framed" \
        packstream -L 4 -o out y x
    is 65 "packstream: z: $why vocab_size is 7, not none" \
        packstream -L 4 -o out y z
    cat y z >both
    is 65 "packstream: both: the stream at byte $(size y) cannot be joined to\
 the first: vocab_size is 7, not none" packstream -L 4 -o out both
    is 65 "packstream: /dev/null: the input is empty: even framed records\
 without sequences have a header" packstream -L 4 -o out y /dev/null
}

@test "missing files and directories" {
    two
    echo old >out
    is 1 "packstream: missing: No such file or directory" \
        packstream -L 4 -o out missing
    is 1 "packstream: .: Is a directory" packstream -L 4 -o out .
    is 1 "packstream: no/out.new: No such file or directory" \
        packstream -L 4 -o no/out x
    is 1 "packstream: .: exists and is not a regular file: choose another name" \
        packstream -L 4 -o . x
    [ "$(cat out)" = old ]
    is 1 "packstream: missing: No such file or directory" \
        packstream -L 4 -w 1 -o out x missing
    [ "$(cat out)" = old ]
    head -c 5 x >"cut"
    run -65 into out packstream -L 4 -w 1 x cut
    # Decided packs are written, but no END.
    [ "$(size out)" = $((4096 + 64 + 2 * 64)) ]
    is 1 "packstream: a?b?: No such file or directory" \
        packstream -L 4 -o out $'a\eb\n'
}

@test "an output that is an input is refused, and left alone" {
    { record16 1 2 3; record16 7; } | tee x >y
    is 1 "packstream: x: is also an input: choose another output" \
        packstream -L 4 -o x x
    is 1 "packstream: ./x: is also an input: choose another output" \
        packstream -L 4 -o ./x - <x
    is 1 "packstream: y: is also an input: choose another output" \
        packstream -L 4 -o y x y
    is 1 "packstream: stdout: is also an input: choose another output" \
        bash -c 'packstream -L 4 x >>x'
    ln x link
    is 1 "packstream: link: is also an input: choose another output" \
        packstream -L 4 -o link x
    is 1 "packstream: y: is also an input: choose another output" \
        packstream -L 2 --overlong=drop --rejects=y -o out x y
    cmp x y
    [ "$(size x)" = 16 ]
}

@test "write errors are reported: a full device, a closed stream" {
    two
    check make_sample 3 >large
    local why="cannot write: No space left on device"
    is 1 "packstream: stdout: $why" bash -c 'packstream -L 4 x >/dev/full'
    is 1 "packstream: /dev/full: $why" packstream -L 4 -o /dev/full x
    is 1 "packstream: stdout: $why" \
        bash -c 'packstream -L 64 large >/dev/full'
    is 1 "packstream: stdout: $why" \
        bash -c 'packstream -L 4 --stats </dev/null >/dev/full'
    is 1 "packstream: /dev/full: $why" packstream -L 2 --overlong=drop \
        --rejects=/dev/full -o out x
    is 1 "packstream: stdout: Bad file descriptor" \
        bash -c 'packstream -L 4 x >&-'
    is 1 "packstream: stdin: Bad file descriptor" \
        bash -c 'packstream -L 4 <&-'
    is 1 "packstream: stdin: Bad file descriptor" \
        bash -c 'packstream -L 4 </dev/null 0>out'
    # Without stderr only the exit status shows the error.
    run -1 bash -c 'packstream -L 4 x >/dev/full 2>&-'
}

@test "a write error while the input pauses is reported as such" {
    mkfifo in
    record16 1 2 >x
    timeout 600 packstream -L 4 -w 1 --block-packs=1 <in >/dev/full 2>told \
        3>&- &
    local pid=$!
    opens 7 '>' in $pid
    # In a single write: after part of it there would be a pause.
    cat x >&7
    # It does not wait for more of the input.
    exits 1 $pid
    exec 7>&-
    [ "$(cat told)" = \
        "packstream: stdout: cannot write: No space left on device" ]
}

@test "a closed pipe ends it by SIGPIPE, silently" {
    live vanished_reader
    check make_sample 3 >x
    is 0 "" bash -c '
        { packstream -L 64 x; echo $? >status; } | head -c 100 >/dev/null'
    [ "$(cat status)" = 141 ]
}

@test "packs are not written to a terminal" { live terminal; }
@test "progress is shown on a terminal unless -q" { live progress; }

@test "progress shows how much of the files has been read" {
    live progress_of_files
}

# ------------------------------------------------------------ determinism

@test "the same bytes for reads of any size" {
    check make_sample 4 >x
    packstream -L 64 x | packcat --to=ids | tokcat --from=ids >y
    local file
    for file in x y; do
        packstream -L 64 $file >wanted
        packstream -L 64 <$file | cmp - wanted
        # shellcheck disable=SC2002 # a pipe is the point
        cat $file | packstream -L 64 | cmp - wanted
        { dd bs=1 count=9999 status=none; cat; } <$file |
            packstream -L 64 | cmp - wanted
        dd if=$file bs=7 status=none | packstream -L 64 | cmp - wanted
    done
    [ -z "${QUICK-}" ] || return 0
    local options
    for options in "-a spfhp" "-a nnlshp" "-a bestfit" "-a nextfit" \
        "-a concat" --order=input --shuffle=3 "-d 3" --block-packs=4 \
        "-w 4096 -M $(least_memory -L 64 -w 4096)" \
        --max-delay=9 --flush-every=100 --even-cost; do
        packstream -L 64 $options x >wanted
        dd if=x bs=97 status=none | packstream -L 64 $options | cmp - wanted
    done
}

@test "the same bytes from non-blocking inputs" { live unblocked; }

@test "the same bytes from compressed input" {
    skip_without zstd
    check make_sample 5 >x
    packstream -L 64 x >wanted
    zstd -q x
    packstream -L 64 x.zst | cmp - wanted
    packstream -L 64 - <x.zst | cmp - wanted
    dd if=x.zst bs=7 status=none | packstream -L 64 | cmp - wanted
    # Several frames, and a skippable one between them.
    head -c 100000 x | zstd -q >y
    { u32 $((0x184D2A50)) 3; printf abc; } >>y
    tail -c +100001 x | zstd -q >>y
    packstream -L 64 y | cmp - wanted
    # Compressed and plain files in one run.
    record16 1 >z
    packstream -L 64 x.zst z | cmp - <(cat x z | packstream -L 64)
}

# ---------------------------------------------------------------- promises

@test "random streams are recovered byte for byte, within every guarantee" {
    check round_trips 0 60
}

@test "no sequence waits longer than guaranteed" { check bound; }

@test "the input is recovered with every algorithm and order" {
    check algorithms
}

@test "without -d a pack holds as many sequences as fit" {
    skip_if_quick
    check no_cap
    # Two sequences of 500 tokens fill a pack, or a thousand of one token.
    { many 70 500; many 40000 1; many 70 500; } >x
    packstream -L 1000 --stats=json x 2>told >out
    grep -F '"packs": 110, "capacity": 1000, "depth": null, "max_depth": 1000,' \
        told
    packstream -L 1000 -d 3 --stats=json x 2>told >out
    grep -F '"depth": 3, "max_depth": 3,' told
    packcat out | cmp - x
    packstream -L 1000 -a concat -d 3 x | packstat --json |
        grep -F '"max_depth": 3,'
}

# sixties PACKS L: raw records of 60 tokens for PACKS packs of L tokens.
sixties() {
    many $(($1 * $2 / 60)) 60
}

# fills_packs L PACKS [OPTION]...: packs these into the fewest packs possible,
# plus 0.5 % and one, without a warning, and recovers them.
fills_packs() {
    local packs
    sixties "$2" "$1" >x
    packstream -L "$1" "${@:3}" -o out x 2>told
    packs=$(packstat --json out | sed 's/.*"packs": \([0-9]*\),.*/\1/')
    echo "-L $1 ${*:3}: $packs packs"
    [ "$packs" -le $(($2 + $2 / 200 + 1)) ]
    [ ! -s told ]
    packcat out | cmp - x
    rm out
}

@test "the default window fills packs of any capacity" {
    skip_if_quick
    local name
    fills_packs 4194304 4
    fills_packs 4096 400 -d 100
    fills_packs 131072 70 -a bestfit
    [ -n "${LONG-}" ] || return 0
    for name in auto nextfit concat; do
        fills_packs 131072 70 -a "$name"
        fills_packs 1048576 9 -a "$name"
    done
    fills_packs 131072 70 --order=input
    fills_packs 131072 70 -a nnlshp
    fills_packs 131072 140 --shuffle=3 -q
    fills_packs 16777216 2 -t u16
}

@test "the default window does not depend on how packs are written" {
    sixties 5 131072 >x
    printf '60 1\n' >hist
    packstream -L 131072 --overlong=drop x >wanted
    packstream -L 131072 --overlong=drop --zstd=19 x | zstd -dcq | cmp - wanted
    packstream -L 131072 --overlong=drop --rejects=r -T 4 x | cmp - wanted
    packstream -L 131072 --overlong=drop --state=s -o out x
    cmp out wanted
    # Byte 56 has the window.
    packstream -L 131072 --overlong=drop --block-packs=32 x >out
    [ "$(number out 56 4)" -eq "$(number wanted 56 4)" ]
    packstream -L 131072 --overlong=drop --learn-from=hist x >out
    [ "$(number out 56 4)" -eq "$(number wanted 56 4)" ]
}

@test "a window that is too small for the packs is reported" {
    sixties 20 32768 >x
    packstream -L 32768 -w 100 x 2>told >out
    [ "$(cat told)" = "packstream: packs are only 18.2% full, because -w 100\
 holds few packs: use -w 35000, which holds 64 packs" ]
    packstream -L 32768 -w 35000 x 2>told >out
    [ ! -s told ]
    packstream -q -L 32768 -w 100 x 2>told >out
    [ ! -s told ]
    # Depth and a short delay are not problems of the window.
    packstream -L 32768 -w 100 -d 10 x 2>told >out
    packstream -L 32768 -w 3000 --max-delay=20 x 2>told >out
    [ ! -s told ]
    local least
    least=$(least_memory -L 131072)
    sixties 40 131072 >x
    packstream -L 131072 -M "$least" x 2>told >out
    [[ $(cat told) =~ ^"packstream: packs are only "[0-9.]+"% full, because\
 "[0-9]+" MiB of memory holds few packs: use -M "([0-9]+Mi)", which holds 16\
 packs"$ ]]
    packstream -L 131072 -M "${BASH_REMATCH[1]}" x 2>told >out
    [ ! -s told ]
}

@test "-v prints the bytes of packs and sequences" {
    two
    packstream -L 16 -v x 2>told >out
    grep -Fx "packstream: stdout: rows of 16 tokens, 32 bytes each, and 16\
 bytes for each sequence; 16384 packs in a block" told
    packstream -L 16 -v --overlong=split --block-packs=2 x 2>told >out
    grep -F "32 bytes each, and 24 bytes for each sequence; 2 packs" told
}

@test "flushes that account for most packs get one warning" {
    local warning='packstream: --flush-every=2 writes 50.0 times as many'
    warning+=' packs as the sequences need: raise it'
    many 1000 2 >x
    run -0 --separate-stderr packstream -L 200 -d 100 --flush-every=2 -o out x
    [ "$stderr" = "$warning" ]
    run -0 --separate-stderr packstream -q -L 200 -d 100 --flush-every=2 \
        -o out x
    [ -z "$stderr" ]
    # Not if flushes are few, are not the cause, or cost less.
    is 0 '' packstream -L 200 -d 100 --flush-every=100 -o out x
    is 0 '' packstream -L 200 -d 100 --flush-every=2 -a none -o out x
    is 0 '' packstream -L 200 -d 100 --flush-every=2 --max-delay=1 -o out x
    head -c 1000 x >y
    is 0 '' packstream -L 200 -d 100 --flush-every=2 -o out y
    # Without -d the tokens alone determine how many packs are needed.
    is 0 "$warning" packstream -L 200 --flush-every=2 -o out x
}

# ids PACKS: all tokens, in pack order.
ids() {
    packcat --to=ids --order=pack "$1" | xargs
}

@test "-a none, nextfit, concat" {
    { record16 1 2; record16 3; record16 4 5 6; record16 7 8; } >x
    packs() {
        packstream -L 4 -a "$1" x >out
        packcat out | cmp - x
        [ "$(ids out)" = "1 2 3 4 5 6 7 8" ]
        packstat --json out | grep -oE '"packs": [0-9]+|"split_[a-z]+": .'
    }
    [ "$(packs none | xargs)" = "packs: 4 split_sequences: 0" ]
    [ "$(packs nextfit | xargs)" = "packs: 3 split_sequences: 0" ]
    [ "$(packs concat | xargs)" = "packs: 2 split_sequences: 1" ]
    record16 1 2 3 4 5 6 7 8 9 >>x
    packstream -L 4 -a concat x | packcat | cmp - x
    packstream -L 4 -a concat x | packstat --json |
        grep -F '"split_sequences": 2, "extra_pieces": 3,'
}

@test "--order=input: packs are in the order of their oldest sequences" {
    check make_sample 9 >x
    packstream -L 64 --order=input x >out
    packcat out | cmp - x
    packcat --to=jsonl --order=pack out >/dev/null
    packstat --verify out
    # Otherwise the first sequences of the packs would not increase.
    check rises out
    run check rises <(packstream -L 64 x)
    [ "$status" -ne 0 ]
}

@test "--shuffle: a different order for each seed, the same set of packs" {
    check make_sample 9 >x
    packstream -L 64 --shuffle=1 x >one
    packstream -L 64 --shuffle=2 x >two
    packstream -L 64 --shuffle=1 x | cmp - one
    run ! cmp -s one two
    packcat one | cmp - x
    packcat two | cmp - x
    packstat --verify one two
}

@test "--flush-every" {
    { record16 1; record16 2; record16 3 3 3 3 3; record16 4; } >x
    record16 5 >>x
    packs() {
        packstream -L 4 "$@" x >out
        packcat --to=ids out | cmp - wanted
        packstat --json out | grep -oE '"packs": [0-9]+'
    }
    printf '%s\n' 1 2 4 5 >wanted
    # A dropped record counts, too.
    [ "$(packs --overlong=drop)" = '"packs": 1' ]
    [ "$(packs --overlong=drop --flush-every=1)" = '"packs": 4' ]
    [ "$(packs --overlong=drop --flush-every=2)" = '"packs": 3' ]
    [ "$(packs --overlong=drop --flush-every=3)" = '"packs": 2' ]
    [ "$(packs --overlong=drop --flush-every=5)" = '"packs": 1' ]
}

@test "--flush-idle: a pause of the producer flushes the window" {
    live idle
}

@test "SIGUSR1 flushes the window" { live signalled; }
@test "many SIGUSR1 lose nothing" { live signalled_often; }

@test "flush records" {
    live asked
    # Sequence numbers in messages do not count flush records.
    { record16 1; u32 0; record16 2; u32 0 0; record16 1 2 3 4 5; } |
        bad_input "record 2 at byte 24: 5 tokens exceed the capacity, 4: use\
 --overlong=split, truncate or drop" --flush-records
    { record16 1; u32 0; u8 0; } | bad_input "record 1 at byte 10: truncated:\
 the input ends after 1 of its 4 bytes" --flush-records
    framed flush 1 flush flush 2 flush >x
    packstream -L 4 x >out
    packstat --json out | grep -F '"packs": 2,'
    [ "$(ids out)" = "1 2" ]
    packcat out >y
    without_lengths y | cmp - <(framed 1 2)
    # END covers them.
    flip x 140 3
    run -65 packstream -L 4 -o out x
    # Other programs ignore them.
    framed 1 flush 2 | packstat --json | grep -F '"sequences": 2,'
}

@test "complete blocks are written while the input pauses" {
    live delay 1 1
    live delay 4 1
    live delay 4 2
    live delay 1 8
}

@test "complete blocks are written before the next file is opened" {
    two
    mkfifo later
    packstream -L 4 -w 1 --block-packs=1 x later >out 3>&- &
    local pid=$!
    eventually is_larger out $((4096 + 2 * 128 - 1))
    [ "$(size out)" -eq $((4096 + 2 * 128)) ]
    record16 9 >later
    wait $pid
    packcat out | cmp - <(cat x; record16 9)
}

# ------------------------------------------------------------------- stats

@test "--stats is one line on stderr" {
    { record16 1 2 3; record16 4 5; record16 6 7 8 9 10; } >x
    is 0 "packstream: 2 sequences, 5 tokens in 2 packs, 62.50% full; 1\
 rejected (1 overlong), 0 truncated, 0 split; longest delay 2" \
        packstream -L 4 --overlong=drop --stats -o out x
    is 0 "packstream: 4 sequences, 10 tokens in 3 packs, 83.33% full; 0\
 rejected, 0 truncated, 1 split; longest delay 3" \
        packstream -L 4 --overlong=split --stats -q -o out x
    is 0 "packstream: 0 sequences, 0 tokens in 0 packs, 0.00% full; 0\
 rejected, 0 truncated, 0 split; longest delay 0" \
        packstream -L 4 --stats -o out /dev/null
    packstream -L 4 --stats=json -o out /dev/null 2>&1 |
        grep -F '"efficiency": null, "packing_factor": null'
    # A failed run prints none.
    u8 1 >x
    is 65 "packstream: x: record 0 at byte 0: truncated: the input ends after 1 of its\
 4 bytes" packstream -L 4 --stats -o out x
}

@test "--stats=json agrees with the packs and with packstat" {
    skip_if_quick
    skip_without_decoder
    local policy
    for policy in split ${LONG:+drop truncate}; do
        check make_sample 6 >raw
        packstream -L 64 raw | packcat --to=ids | tokcat --from=ids >x
        packstream -L 50 -d 3 -w 20 --overlong=$policy --stats=json x \
            >out 2>told
        packstat --json out >seen
        check stats x out told seen
    done
}

@test "--every: a line after every N packs, and the usual one at the end" {
    skip_without python3
    draw 3000 40 100 | tokcat -q --from=ids >x
    packstream -q -L 50 -d 8 -w 64 --stats=json -o wanted x 2>last
    packstream -q -L 50 -d 8 -w 64 --stats=json --every=100 -o out x 2>lines
    cmp wanted out
    tail -n 1 lines | cmp - last
    python3 - <<'PYTHON'
import json
*lines, last = map(json.loads, open("lines"))
assert len(lines) in (last["packs"] // 100 - 1, last["packs"] // 100)
for i, line in enumerate(lines, 1):
    # The packs of one flush are written together; this run has no flush.
    assert line["packs"] // 100 == i and line["packs"] % 100 < 3, line
    assert line["efficiency"] == float(
        f"{line['tokens'] / (50 * line['packs']):.9g}")
    assert set(last) == set(line)
PYTHON
    # A resumed job does not repeat earlier messages.
    packstream -q -L 50 -d 8 -w 64 --state=s -o state x
    packstream -q -L 50 -d 8 -w 64 --state=s --resume --stats=json --every=100 \
        -o state x 2>again
    cmp again last
    bad_option '--every needs --stats=json' -L 4 --every=3
    bad_option '--every needs --stats=json' -L 4 --every=3 --stats
    bad_option '--every=0: must be a number of packs from 1' -L 4 --every=0
}

@test "examples/live-plot.sh draws the lines of --every" {
    draw 3000 40 100 | tokcat -q --from=ids >x
    packstream -q -L 50 -d 8 -a nextfit --stats=json --every=200 x 2>&1 >out |
        "${abs_top_srcdir:?}/examples/live-plot.sh" >plot
    sed -n '1p;2p;$p' plot
    # As many lines as the JSON has, and bars of the right length.
    awk 'NR > 1 && NF { n = length($3) - 1
            exact = 10 * (100 - $2)
            if (n > 50 || (exact < 50 && (n - exact > 1 || exact - n > 1)))
                exit 1
            lines++ }
        END { exit !(lines > 5) }' plot
}

@test "-M: packs stay full and shuffled when memory is short" {
    seq 20000 | factor | tokcat --from=bytes >short.tok
    for option in --order=window --shuffle=1 --shuffle=2 --order=input; do
        set -- -L 64 -d 8 -w 4096 "$option"
        packstream "$@" -M "$(least_memory "$@")" short.tok >"short$option"
        packcat "short$option" | cmp - short.tok
        # At least 98 % of the tokens are not padding.
        [ "$(packstat --json "short$option" | tr ',' '\n' |
            sed -n 's/.*"packs": //p')" -lt 4920 ]
    done
    run -1 cmp -s short--shuffle=1 short--shuffle=2
    run -1 cmp -s short--shuffle=1 short--order=window
}
