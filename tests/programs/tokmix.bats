#!/usr/bin/env bats
# tokmix.bats - tokmix: each source has its share at every record, and
# nothing is lost.
#
# tests/support/tokmix.py checks the shares.
#
# SPDX-License-Identifier: MIT

load ../support/helpers

# two: a.tok and b.tok, 6 sequences of 3 tokens and 9 of 2.
two() {
    seq 6 | sed 's/.*/& 1 1/' | tokcat --from=ids >a.tok
    seq 11 19 | sed 's/.*/& 2/' | tokcat --from=ids >b.tok
}

# ids FILE...: the sequences, one per line.
ids() {
    cat "$@" | packstream -q -L 4096 -a none | packcat --to=ids
}

@test "shares hold at every record: random sources, weights and ends" {
    skip_without python3
    support tokmix.py 1 80
}

@test "the mix of a few, by tokens and by sequences" {
    two
    tokmix -q 1=a.tok 1=b.tok | ids | cut -d ' ' -f 1 | tr '\n' ' ' >got
    [ "$(cat got)" = '11 1 12 2 13 14 3 15 4 16 17 5 18 6 19 ' ]
    tokmix -q --by=sequences 1=a.tok 2=b.tok --stop=longest | ids |
        cut -d ' ' -f 1 | tr '\n' ' ' >got
    [ "$(cat got)" = '11 1 12 13 2 14 15 3 16 17 4 18 19 5 6 ' ]
}

@test "weights are decimals, of which only the ratio matters" {
    two
    tokmix -q 7=a.tok 3=b.tok >wanted
    for weights in '0.7 0.3' '.7 .30' '70. 30.0' '0.000000000007 3e' \
        '6456360425798343060 2767011611056432740' \
        '000000000000000000000007 3'; do
        # shellcheck disable=SC2086 # two words
        set -- $weights
        tokmix -q "$1=a.tok" "${2/3e/0.000000000003}=b.tok" | cmp - wanted
    done
}

@test "pipes, FIFOs, stdin and compressed sources give the same output" {
    two
    for stop in first longest; do
        tokmix -q --stop=$stop 5=a.tok 3=b.tok 1=a.tok >wanted
        tokmix -q --stop=$stop 5=<(cat a.tok) 3=- 1=a.tok <b.tok | cmp - wanted
        mkfifo in
        cat a.tok >in &
        tokmix -q --stop=$stop -o out 5=in 3=- 1=<(cat a.tok) < <(cat b.tok)
        cmp out wanted
        rm in
    done
    skip_without zstd
    zstd -q a.tok
    tokmix -q --stop=longest 5=a.tok.zst 3=b.tok 1=a.tok | cmp - wanted
}

@test "joined streams are one source, and flush records are skipped" {
    two
    tokmix -q --stop=longest 1=a.tok 1=<(cat b.tok a.tok) | ids | sort >got
    ids a.tok b.tok a.tok | sort | diff - got
    without_lengths a.tok >less.tok
    { head -c 136 less.tok; u32 0 2; tail -c +137 less.tok; } >flush
    refused 65 'flush: the records before END' tokmix 1=flush
}

@test "a sequence is written as soon as it is its turn" {
    two
    mkfifo in
    tokmix -q 1=in 1=b.tok >out &
    opens 4 '>' in $!
    # Its header and two of its sequences.
    head -c $((136 + 20)) a.tok >&4
    eventually is_larger out $((136 + 40))
    tail -c +$((136 + 21)) a.tok >&4
    exec 4>&-
    wait
    tokmix -q 1=a.tok 1=b.tok | cmp - out
}

@test "--stop=repeat reads files again until all have ended" {
    two
    tokmix --stop=repeat 1=a.tok 3=b.tok | ids | sort | uniq -c |
        awk '{ print $1, $NF }' | sort | uniq -c >got
    # Each of a once; the 18 tokens of b three times, or once more.
    awk '$3 == 1 { exit !($1 == 6 && $2 == 1) }' got
    awk '$3 == 2 { n += $1; m += $1 * $2 } END { exit !(n == 9 && m >= 25) }' \
        got
    tokmix --stop=repeat 1=- 3=b.tok <a.tok | cmp - <(
        tokmix --stop=repeat 1=a.tok 3=b.tok)
    is 1 'tokmix: stdin: --stop=repeat needs a regular file, which can be '\
'read again' tokmix --stop=repeat 1=a.tok 1=- < <(cat b.tok)
    tokcat --from=ids /dev/null >none.tok
    is 65 'tokmix: none.tok: has no sequences to repeat' \
        tokmix --stop=repeat 1=a.tok 1=none.tok
}

@test "sources without sequences" {
    two
    tokcat --from=ids /dev/null >none.tok
    tokmix --stop=longest 1=none.tok 1=a.tok 9=none.tok | cmp - a.tok
    is 0 'tokmix: none.tok ended, which ends the mix: 1 other source was not '\
'read to the end (see --stop)' tokmix -o out 1=none.tok 1=a.tok
    cmp out none.tok
    tokmix --stop=repeat 1=none.tok | cmp - none.tok
}

@test "unread records are reported, and those read with -v" {
    two
    is 0 'tokmix: a.tok ended, which ends the mix: 2 other sources were not '\
'read to the end (see --stop)' tokmix -o out 9=a.tok 1=b.tok 1=b.tok
    is 0 '' tokmix -q -o out 9=a.tok 1=b.tok
    is 0 '' tokmix -o out --by=sequences 2=a.tok 3=b.tok
    is 0 'tokmix: a.tok: 6 sequences, 18 tokens, share 0.5000 of 0.5000
tokmix: b.tok: 9 sequences, 18 tokens, share 0.5000 of 0.5000' \
        tokmix -v -o out 1=a.tok 1=b.tok
    is 0 'tokmix: a.tok: 6 sequences, 18 tokens, share 0.4000 of 0.2500
tokmix: b.tok: 9 sequences, 18 tokens, share 0.6000 of 0.7500' \
        tokmix -v --stop=longest --by=sequences -o out 1=a.tok 3=b.tok
}

@test "raw records" {
    record16 1 2 3 >a
    record16 4 5 >b
    tokmix --stop=longest 1=a 1=b | cmp - <(cat b a)
    record32 1 2 3 >a
    record32 4 5 >b
    tokmix -t u32 --stop=longest 1=a 1=b | cmp - <(cat b a)
    tokmix -t u32 --stop=longest 1=a 1=/dev/null | cmp - a
    tokmix -t u32 --stop=longest --channel=from 1=a 1=b |
        packstream -q -L 8 -a none | packcat --to=jsonl >got
    diff got - <<'END'
{"input_ids":[4,5],"from":1}
{"input_ids":[1,2,3],"from":0}
END
    tokcat --from=ids <<<'1 2' >c
    refused 64 'c: the records have u16 tokens, not u32' tokmix -t u32 1=c
}

@test "channels are copied, and one more has the source" {
    bert_lines 40 20 >x
    bert_lines 30 20 30000 7 >y
    for file in x y; do
        tokcat --from=jsonl $file >$file.tok
    done
    tokmix --stop=longest 2=x.tok 1=y.tok >z.tok
    jsonl() {
        packstream -q -L 64 -a none "$@" | packcat --to=jsonl
    }
    jsonl x.tok y.tok | sort >wanted
    jsonl z.tok | sort | diff - wanted
    for type in '' :u16 :i32 :u64; do
        tokmix --stop=longest --channel="which$type" 2=x.tok 1=y.tok >w.tok
        jsonl w.tok >got
        jsonl z.tok | diff - <(sed 's/,"which":[01]}/}/' got)
        for source in 0,x 1,y; do
            sed -n "s/,\"which\":${source%,*}}/}/p" got |
                diff - <(jsonl "${source#*,}.tok")
        done
    done
    # The fill matches no source: all ones, a u64 after four entries of 64.
    [ "$(od -An -tx8 -j $((128 + 4 * 64 + 40)) -N 8 w.tok)" = \
        ' ffffffffffffffff' ]
    tokmix -q --channel=which:i32 1=x.tok |
        od -An -tx8 -j $((128 + 4 * 64 + 40)) -N 8 | grep -x ' 00000000ffffffff'
}

@test "sources that cannot be combined" {
    two
    tokcat --from=ids -t u32 <<<'1 2' >u32.tok
    tokcat --from=ids --vocab=9 <<<'1 2' >vocab.tok
    tokcat --from=jsonl <<<'{"input_ids": [1], "c": 5}' >channel.tok
    record16 1 2 >raw
    # shellcheck disable=SC2034 # refused takes it
    speaker=tokmix
    refused 65 'u32.tok: cannot be mixed with a.tok: tokens are u32, not u16' \
        tokmix -o out 1=a.tok 1=u32.tok
    refused 65 'vocab.tok: cannot be mixed with a.tok: vocab_size is 9, not ' \
        tokmix -o out 1=a.tok 1=vocab.tok
    refused 65 "a.tok: cannot be mixed with channel.tok: channel 'c' is" \
        tokmix -o out 1=channel.tok 1=a.tok
    refused 65 'raw: cannot be mixed with a.tok: records are raw, not framed' \
        tokmix -o out 1=a.tok 1=raw
    refused 64 "--channel=c: " tokmix -o out --channel=c 1=channel.tok
    { printf '{"input_ids": [1]' && seq -f ', "c%g": 1' 23 && echo '}'; } |
        tr -d '\n' | tokcat --from=jsonl >full.tok
    refused 64 '--channel: the sources already have 23 channels' \
        tokmix -o out --channel=d 1=full.tok
    absent out out.new
}

@test "missing, damaged or truncated sources" {
    two
    speaker=tokmix
    refused 1 'missing: No such file' tokmix -o out 1=a.tok 1=missing
    refused 1 'tmp: Is a directory' tokmix -o out 1=a.tok 1=../tmp ||
        refused 1 '.: Is a directory' tokmix -o out 1=a.tok 1=.
    head -c -5 b.tok >cut.tok
    cp b.tok flip.tok
    flip flip.tok 150
    echo old >out
    for file in cut.tok flip.tok; do
        refused 65 "$file: " tokmix --stop=longest -o out 1=a.tok 1=$file
        [ "$(cat out)" = old ]
        absent out.new
        # Through a pipe the output has no END.
        run -65 sh -c "tokmix -q --stop=longest 1=a.tok 1=$file >part"
        refused_speaker=$speaker speaker=
        refused 65 part packstat --verify part
        speaker=$refused_speaker
    done
    some_packs
    refused 65 'x.pks: not token records' tokmix 1=x.pks
}

@test "outputs" {
    two
    tokmix -q 1=a.tok 1=b.tok >wanted
    echo old >out
    tokmix -q -o out 1=a.tok 1=b.tok
    cmp out wanted
    absent out.new
    # A system link to an open file is not replaced.
    tokmix -q -o /dev/fd/5 1=a.tok 1=b.tok 5>linked
    cmp linked wanted
    mkfifo fifo
    cat fifo >got &
    tokmix -q -o fifo 1=a.tok 1=b.tok
    wait
    cmp got wanted
    speaker=tokmix
    cp a.tok c.tok
    refused 1 'c.tok: is also an input: choose another output' \
        tokmix -o c.tok 1=c.tok 1=b.tok
    cmp a.tok c.tok
    refused 1 'stdout: is also an input: choose another output' \
        sh -c 'tokmix 1=c.tok >>c.tok'
    refused 1 'none/x.new: No such file' tokmix -o none/x 1=a.tok
    refused 1 '.: exists and is not a regular file: choose another name' \
        tokmix -o . 1=a.tok
    run -1 sh -c 'tokmix 1=a.tok >/dev/full'
    [ "$output" = 'tokmix: stdout: cannot write: No space left on device' ]
}

@test "a closed pipe ends it silently" {
    many 3000 100 >x
    run -141 --separate-stderr bash -c 'set -o pipefail
        tokmix 1=x 1=x | head -c 100 >/dev/null'
    [ -z "$stderr" ]
}

@test "invalid command lines" {
    # shellcheck disable=SC2034 # bad_option takes it
    program=tokmix
    bad_option 'missing sources: name each as WEIGHT=FILE'
    for operand in x 7= 7 ''; do
        bad_option "$operand: must be WEIGHT=FILE" "$operand"
    done
    for operand in =x -1=x 1e3=x 0x7=x 7,5=x 1.2.3=x .=x '7 =x' +1=x; do
        bad_option "$operand: the weight must be a number such as 7 or 0.7" \
            -- "$operand"
    done
    for weight in 0 0.000 00; do
        bad_option "$weight=x: the weight must be greater than 0" $weight=x
    done
    bad_option '9223372036854775808=x: the weight has too many digits' \
        9223372036854775808=x
    bad_option 'the weights have too many digits' 9223372036854775807=x 1=x
    bad_option 'the weights have too many digits' 0.0000000001=x 9999999999=x
    bad_option '"-": only one source can be standard input' 1=- 1=x 1=-
    bad_option '--by=bytes: must be tokens or sequences' --by=bytes 1=x
    bad_option '--stop=never: must be first, longest or repeat' --stop=never \
        1=x
    bad_option '--channel=a:f32: the type must be u8, u16, u32, u64, i32 or '\
'i64' --channel=a:f32 1=x
    for name in '' 1 a-b tokens; do
        bad_option "--channel=$name: is not a valid channel name" \
            --channel="$name" 1=x
    done
    mapfile -t many < <(seq -f '1=%g' 256)
    bad_option '--channel: type u8 is too small to number 256 sources' \
        --channel=a "${many[@]}"
}

@test "the sandbox lets it do its work" {
    two
    mkdir -p dir
    tokmix -q -o dir/out 1=a.tok 1=b.tok
    tokmix -q -o "$PWD/out" 1=a.tok 1=b.tok
    tokmix -q --no-sandbox 1=a.tok 1=b.tok | cmp - out
    cmp out dir/out
    tokmix --stop=repeat -o out 1=a.tok 1=b.tok
    tokmix --stop=repeat --no-sandbox 1=a.tok 1=b.tok | cmp - out
}
