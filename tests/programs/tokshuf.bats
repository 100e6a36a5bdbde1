#!/usr/bin/env bats
# tokshuf.bats - tokshuf: every sequence once, in an order that depends only on
# the seed and is as good as random.
#
# tests/support/tokshuf.py computes the expected output.
#
# SPDX-License-Identifier: MIT

load ../support/helpers

# some: a.tok, 3000 sequences of 1 to 40 tokens; more than 64 KiB of them.
some() {
    draw 3000 40 60000 | tokcat --from=ids >a.tok
}

# ids FILE...: the sequences, one per line.
ids() {
    cat "$@" | packstream -q -L 4096 -a none | packcat --to=ids
}

@test "random inputs and options give the computed output" {
    skip_without python3
    support tokshuf.py trials 1 60
}

@test "orders are uniform: of few sequences, and positions of many" {
    skip_without python3
    support tokshuf.py uniform
}

@test "every sequence once, in a different order for each seed" {
    some
    ids a.tok | sort >wanted
    for seed in 0 1 18446744073709551615; do
        tokshuf --seed=$seed a.tok >$seed.tok
        ids $seed.tok >$seed.ids
        sort $seed.ids | diff -q - wanted
    done
    run -1 cmp -s 0.ids 1.ids
    run -1 cmp -s 1.ids 18446744073709551615.ids
    tokshuf a.tok | cmp - 0.tok
}

@test "memory, pipes, files and their number make no difference" {
    some
    head -n 5 <(ids a.tok) | tokcat --from=ids >b.tok
    cat a.tok b.tok >c.tok
    tokshuf -v c.tok >wanted 2>told
    [ "$(cat told)" = 'tokshuf: 3005 sequences read, 0 too short, 0 too long, '\
'3005 written; 0 runs in temporary files' ]
    for memory in 64Ki 100000 1M; do
        tokshuf -M $memory c.tok | cmp - wanted
        piped c.tok | tokshuf -M $memory | cmp - wanted
        tokshuf -M $memory a.tok b.tok | cmp - wanted
        tokshuf -M $memory <(cat a.tok) - <b.tok | cmp - wanted
    done
    tokshuf -v -M 64Ki c.tok 2>told >out
    grep -E '; [1-9][0-9]* runs in temporary files$' told
    skip_without zstd
    zstd -q c.tok
    tokshuf -M 64Ki -o out c.tok.zst
    cmp out wanted
}

@test "a sample is the beginning of the whole order" {
    some
    tokshuf a.tok >all
    for n in 1 100 2999 3000 9999; do
        tokshuf --head-count=$n a.tok | ids | cmp - <(ids all | head -n $n)
        tokshuf -M 64Ki --head-count=$n a.tok | ids |
            cmp - <(ids all | head -n $n)
    done
    # A small one needs no temporary file, for any kind of input.
    tokshuf -v --head-count=100 -M 64Ki a.tok a.tok a.tok 2>&1 >out |
        grep ' 100 written; 0 runs in'
    tokshuf --head-count=0 a.tok | cmp - <(tokcat --from=ids /dev/null)
}

@test "lengths" {
    some
    tokshuf a.tok | ids | awk 'NF >= 7 && NF <= 19' >wanted
    tokshuf -v --min-length=7 --max-length=19 a.tok 2>told | ids | cmp - wanted
    tokshuf --min-length=7 a.tok | tokshuf --no-shuffle --max-length=19 | ids |
        cmp - wanted
    [[ $(cat told) == "tokshuf: 3000 sequences read, $(ids a.tok |
        awk 'NF < 7' | wc -l) too short, $(ids a.tok | awk 'NF > 19' |
        wc -l) too long, $(wc -l <wanted) written; 0 runs"* ]]
}

@test "shares are exact, and every sequence is in one" {
    some
    tokshuf a.tok | ids >all
    tokshuf --split=0.99:train.tok,0.01:valid.tok a.tok
    ids train.tok | cmp - <(head -n 2970 all)
    ids valid.tok | cmp - <(tail -n 30 all)
    absent train.tok.new valid.tok.new
    tokshuf --head-count=10 --split=1:a,1:b,1:c a.tok
    for file in a b c; do
        ids $file | wc -l
    done | tr '\n' ' ' >got
    [ "$(cat got)" = '3 3 4 ' ]
    cat a b c | ids | cmp - <(head -n 10 all)
    mkdir dir
    tokshuf --split=1:dir/x,9:y a.tok
    ids dir/x y | cmp - all
    mkfifo fifo
    ids fifo >got &
    tokshuf --split=9:y,1:fifo a.tok
    wait
    cmp got <(tail -n 300 all)
}

@test "shares appear together or not at all" {
    some
    echo old >x
    speaker=tokshuf
    refused 1 'none/y.new: No such file' tokshuf --split=1:x,1:none/y a.tok
    refused 1 './x: used for two outputs: give each its own name' \
        tokshuf --split=1:x,1:./x a.tok
    refused 1 './y: used for two outputs: give each its own name' \
        tokshuf --split=1:y,1:./y a.tok
    # Another output must not have a temporary name.
    echo old >y.new
    refused 1 'y.new: used for two outputs: give each its own name' \
        tokshuf --split=1:y.new,1:./y a.tok
    refused 1 './y.new: used for two outputs: give each its own name' \
        tokshuf --split=1:y,1:x,1:./y.new a.tok
    [ "$(cat y.new)" = old ]
    absent y y.new.new x.new
    rm y.new
    run -1 bash -c 'set -o pipefail
        tokshuf --split=1:/dev/stdout,1:/dev/stdout a.tok | cat'
    [ "$output" = 'tokshuf: /dev/stdout: used for two outputs: give each its '\
'own name' ]
    refused 1 'a.tok: is also an input: choose another output' \
        tokshuf --split=1:x,1:a.tok a.tok
    head -c -3 a.tok >cut.tok
    refused 65 'cut.tok: ' tokshuf --split=1:x,1:y cut.tok
    [ "$(cat x)" = old ]
    absent x.new y y.new
    # One that is written to the end, and one that fails.
    run -1 tokshuf --split=1:x,1:/dev/full a.tok
    [ "$output" = 'tokshuf: /dev/full: cannot write: No space left on device' ]
    [ "$(cat x)" = old ]
    absent x.new
}

@test "--by-length sorts windows, without a shuffle in input order" {
    some
    ids a.tok | awk '{ print int((NR - 1) / 500), NF, NR, $0 }' |
        sort -k 1,1n -k 2,2n -k 3,3n | cut -d ' ' -f 4- >wanted
    tokshuf --no-shuffle --by-length=500 a.tok | ids | cmp - wanted
    tokshuf --no-shuffle --by-length=500 -M 64Ki a.tok | ids | cmp - wanted
    tokshuf --seed=4 a.tok | tokshuf --no-shuffle --by-length=500 >wanted
    tokshuf --seed=4 --by-length=500 -M 64Ki a.tok | cmp - wanted
    tokshuf --no-shuffle a.tok | cmp - a.tok
    tokshuf --no-shuffle --head-count=7 a.tok | ids |
        cmp - <(ids a.tok | head -n 7)
}

@test "without a shuffle, a window is written before the next is read" {
    seq 6 | sed 's/.*/& 1 1/' | tokcat --from=ids >a.tok
    mkfifo in
    tokshuf -q --no-shuffle --by-length=2 in >out &
    opens 4 '>' in $!
    # Three sequences of 10 bytes: the third has to wait for the next window.
    head -c $((136 + 30)) a.tok >&4
    eventually is_larger out $((136 + 19))
    [ "$(size out)" = $((136 + 20)) ]
    tail -c +$((136 + 31)) a.tok >&4
    exec 4>&-
    wait
    cmp out a.tok
}

@test "temporary files are removed, and refused if impossible" {
    some
    mkdir tmp
    tokshuf a.tok >wanted
    tokshuf -M 64Ki --temporary-directory=tmp --by-length=1000 -o out a.tok
    tokshuf --by-length=1000 a.tok | cmp - out
    TMPDIR=tmp tokshuf -M 64Ki a.tok | cmp - wanted
    [ -z "$(ls -A tmp)" ]
    speaker=tokshuf
    refused 1 'none: cannot create a temporary file: No such file' \
        tokshuf --temporary-directory=none -o new a.tok
    refused 1 'a.tok: cannot create a temporary file: Not a directory' \
        tokshuf --temporary-directory=a.tok -o new a.tok
    absent new new.new
    # Input order needs no temporary files.
    tokshuf --no-shuffle --temporary-directory=none a.tok | cmp - a.tok
}

@test "a killed job leaves its new output, which the next one overwrites" {
    some
    mkdir tmp
    echo old >out
    mkfifo in
    tokshuf -M 64Ki --temporary-directory=tmp -o out in &
    exec 4>in
    # More than fits in memory.
    head -c 100000 a.tok >&4
    eventually test -e out.new
    kill -9 $!
    wait $! 2>/dev/null || :
    exec 4>&-
    [ "$(echo *)" = 'a.tok in out out.new tmp' ]
    [ -z "$(ls -A tmp)" ]
    [ "$(cat out)" = old ]
    tokshuf -M 64Ki -o out a.tok
    absent out.new
    tokshuf a.tok | cmp - out
}

@test "temporary files that need a name" {
    skip_if_sanitized
    local faults=${abs_top_builddir:?}/tests/support/.libs/faults.so
    [ -e "$faults" ] || skip 'no shared libraries were built'
    some
    mkdir tmp
    tokshuf a.tok >wanted
    # The first file that it opens is its input, followed by these two.
    for at in 2 3; do
        : >fired
        LD_PRELOAD=$faults FAULT_CALL=open FAULT_AT=$at FAULT_FOREVER=0 \
            FAULT_ERRNO=EOPNOTSUPP FAULT_REPORT=fired \
            tokshuf -M 64Ki --temporary-directory=tmp a.tok | cmp - wanted
        [ -s fired ]
        [ -z "$(ls -A tmp)" ]
    done
}

@test "a killed packing resumes after a mix that starts again" {
    some
    draw 2000 30 60000 7 | tokcat --from=ids >b.tok
    shuffled() {
        tokmix -q --stop=longest 7=a.tok 3=b.tok | tokshuf --seed=5
    }
    shuffled >x
    packstream -q -L 64 -o wanted x
    stopped_at $(($(size x) / 2)) -L 64
    shuffled | packstream -q -L 64 --state=s --resume -o out
    cmp out wanted
}

@test "raw records, and those with channels" {
    { record16 1 2 3; record16 4; } >x
    tokshuf --no-shuffle --by-length=2 x | cmp - <(record16 4; record16 1 2 3)
    { record32 1 2 3; record32 4; } >x
    tokshuf -t u32 --no-shuffle --by-length=2 x |
        cmp - <(record32 4; record32 1 2 3)
    bert_lines 50 20 | tokcat --from=jsonl >x
    refused 64 'x: the records have u16 tokens, not u32' tokshuf -t u32 x
    jsonl() {
        packstream -q -L 64 -a none "$@" | packcat --to=jsonl
    }
    tokshuf x | jsonl | sort | cmp - <(jsonl x | sort)
    : >none
    tokshuf none | cmp - none
}

@test "missing, damaged or truncated inputs, and those that do not match" {
    some
    tokcat --from=ids -t u32 <<<'1 2' >u32.tok
    head -c -5 a.tok >cut.tok
    cp a.tok flip.tok
    flip flip.tok 150
    speaker=tokshuf
    refused 1 'missing: No such file' tokshuf -o out a.tok missing
    refused 65 'u32.tok: cannot be joined to the previous input: tokens are' \
        tokshuf -o out a.tok u32.tok
    for file in cut.tok flip.tok; do
        refused 65 "$file: " tokshuf -o out $file
        refused 65 "$file: " tokshuf -o out a.tok $file
        refused 65 "$file: " tokshuf --no-shuffle -o out $file
    done
    absent out out.new
    some_packs
    refused 65 'x.pks: not token records' tokshuf x.pks
}

@test "outputs" {
    some
    tokshuf a.tok >wanted
    tokshuf -q a.tok -o out
    cmp out wanted
    cp a.tok b.tok
    # shellcheck disable=SC2034 # refused takes it
    speaker=tokshuf
    refused 1 'b.tok: is also an input: choose another output' \
        tokshuf b.tok -o b.tok
    refused 1 'stdout: is also an input: choose another output' \
        sh -c 'tokshuf b.tok >>b.tok'
    # With --split, nothing is written to it.
    sh -c 'tokshuf --split=1:c,1:d b.tok >>b.tok'
    cmp a.tok b.tok
    ids c d | cmp - <(ids wanted)
    run -1 sh -c 'tokshuf a.tok >/dev/full'
    [ "$output" = 'tokshuf: stdout: cannot write: No space left on device' ]
    many 3000 100 >x
    run -141 --separate-stderr bash -c 'set -o pipefail
        tokshuf x | head -c 100 >/dev/null'
    [ -z "$stderr" ]
}

@test "invalid command lines" {
    # shellcheck disable=SC2034 # bad_option takes it
    program=tokshuf
    bad_option '--min-length is greater than --max-length: no sequence fits' \
        --min-length=3 --max-length=2
    bad_option '--no-shuffle and --seed cannot be combined' --no-shuffle \
        --seed=1
    bad_option '--no-shuffle and --split cannot be combined' --no-shuffle \
        --split=1:x
    bad_option '--split and -o cannot be combined' -o x --split=1:x
    for part in '' 1 1: x; do
        bad_option "--split: '$part' must be SHARE:FILE" --split="1:y,$part"
    done
    for part in :x -1:x y:x; do
        bad_option "--split: '$part': the share must be a number such as 7 \
or 0.7" --split="$part,1:y"
    done
    bad_option "--split: '0:x': the share must be greater than 0" --split=0:x
    bad_option "--split: '1:-': cannot write a share to stdout" --split=1:-
    bad_option '--split: the shares have too many digits to add' \
        --split=9223372036854775807:x,1:y
    bad_option '-M 65535: must be a number of bytes from 64Ki, such as 4Gi' \
        -M 65535
    bad_option '--head-count=-1: must be a number of sequences' --head-count=-1
    bad_option '--by-length=0: must be a number of sequences from 1' \
        --by-length=0
}

# groups: g.tok, 900 groups of 1 to 5 sequences, which can have equal numbers.
groups() {
    awk 'BEGIN {
        srand(9)
        for (g = 0; g < 900; g++)
            for (k = int(1 + 5 * rand()); k > 0; k--) {
                printf "{\"g\": %d, \"input_ids\": [%d", g % 300 - 9, n++
                for (i = int(20 * rand()); i > 0; i--) printf ", 1"
                print "]}"
            }
    }' | tokcat -q --from=jsonl >g.tok
}

# starts FILE: the first token of each sequence, which counts up in a group, and
# the group.
starts() {
    packstream -q -L 4096 -a none "$1" | packcat -q --to=jsonl |
        sed -E 's/.*"input_ids":\[([0-9]+).*"g":(-?[0-9]+).*/\1 \2/'
}

@test "groups are moved as a whole" {
    groups
    tokshuf --group=g --seed=3 -o out.tok g.tok
    starts g.tok | sort >wanted
    starts out.tok >found
    sort found | diff -q - wanted
    # A group begins where the number changes or does not count up.
    awk '$1 != last + 1 || $2 != g { n++ } { last = $1; g = $2 }
        END { print n }' found >pieces
    starts g.tok | awk '$2 != g { n++ } { g = $2 } END { print n }' >whole
    echo "$(cat pieces) pieces, $(cat whole) groups"
    # By chance, few groups follow the one that they followed in the input.
    [ "$(cat pieces)" -le "$(cat whole)" ]
    [ "$(cat pieces)" -ge $(($(cat whole) - 9)) ]
    head -n 400 found | awk '$1 < 1350 { n++ } END { exit n < 100 || n > 300 }'
    # Neither memory nor the files matter, nor does where a job is stopped.
    tokshuf --group=g --seed=3 -M 64Ki g.tok | cmp - out.tok
    tokshuf --group=g --seed=4 g.tok | run -1 cmp -s - out.tok
    for cut in 9000 20001 30002; do
        rm -f s s.0 s.1
        run -65 tokshuf -q --group=g --seed=3 --state=s --state-every=1 \
            -o new.tok - < <(head -c "$cut" g.tok)
        tokshuf -q --group=g --seed=3 --state=s --resume -o new.tok g.tok
        cmp new.tok out.tok
    done
}

@test "groups are refused where they would be cut" {
    groups
    for option in --no-shuffle --head-count=9 --by-length=9 --split=1:a,1:b \
        --min-length=2 --max-length=9; do
        refused 64 "--group and ${option%%=*} cannot be combined" \
            tokshuf --group=g "$option" g.tok
    done
    refused 64 "g.tok: no channel 'x' with one number per sequence to group by" \
        tokshuf --group=x g.tok
    run -65 tokshuf -q --group=g --state=s --state-every=9 -o new.tok - \
        < <(head -c 9000 g.tok)
    refused 64 'whole groups' tokshuf --state=s --resume -o new.tok g.tok
}
