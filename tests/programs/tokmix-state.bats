#!/usr/bin/env bats
# tokmix-state.bats - tokmix --state, stopped in any way at any time, resumes
# with exactly the output of an uninterrupted job.
#
# Most checks are in tests/support/tokmix-state.py; crash.bats cuts the power,
# and faults.bats makes calls fail.
#
# SPDX-License-Identifier: MIT

load ../support/helpers

# checks CHECK [ARGUMENT]
checks() {
    skip_without python3
    support tokmix-state.py "$@"
}

# three [raw]: a.tok, b.tok and c.tok, and `wanted`, the mix of them by mixing.
three() {
    local name seed=1 option=--quiet
    [ "${1-}" != raw ] || option=--raw
    for name in a b c; do
        { seq -s ' ' 20; draw 200 20 60000 $((seed++)) 3; } |
            tokcat --from=ids $option >$name.tok
    done
    tokmix -q --stop=longest 3=a.tok 1=b.tok 1=c.tok -o wanted
}

# mixing A B C OPTION...
mixing() {
    tokmix -q --stop=longest --state=s --resume "3=$1" "1=$2" "1=$3" "${@:4}"
}

# half FILE...: `mixing` with them stops halfway.
half() {
    (
        ulimit -f 4
        is 1 'tokmix: out: cannot write: File too large' \
            mixing "$@" --state-every=7 -o out
    )
    [ -s s ]
}

@test "killed at entries of a log of its file operations" {
    skip_if_sanitized
    module=${abs_top_builddir:?}/tests/support/.libs/write-log.so
    [ -e "$module" ] || skip "no shared libraries were built"
    checks killed "$module"
}

@test "stopped by a full disk again and again" {
    checks full
}

@test "stopped by a signal, or killed, while it waits" {
    checks signals
}

@test "a state with other options is refused" {
    checks options
}

@test "changed sources are refused" {
    checks changed
    checks ended
}

@test "a state that is damaged at any byte is refused" {
    checks damaged
}

@test "a changed output is refused" {
    checks outputs
}

@test "pipes and compressed sources are read again" {
    three
    skip_without zstd
    zstd -q b.tok
    half a.tok b.tok.zst <(cat c.tok)
    mixing <(cat a.tok) - c.tok -o out <b.tok.zst
    cmp wanted out
}

@test "bytes before the job's output stay" {
    three
    echo before >out
    cat out wanted >both
    # shellcheck disable=SC2016 # it is for the other shell
    run -1 bash -c 'ulimit -f 4
        tokmix -q --stop=longest --state=s --state-every=7 "$@" >>out' - \
        3=a.tok 1=b.tok 1=c.tok
    [ -s s ]
    mixing a.tok b.tok c.tok >>out
    cmp both out
    mixing a.tok b.tok c.tok >>out
    cmp both out
}

@test "a job that was stopped before its first sequence starts again" {
    local kind bytes
    for kind in framed raw; do
        rm -f ./*
        three "$kind"
        bytes=136 # the header
        [ $kind = framed ] || bytes=8
        mkfifo in
        tokmix -q --stop=longest --state=s -o out 3=in 1=b.tok 1=c.tok &
        exec 4>in
        head -c $bytes a.tok >&4
        eventually test -s s
        kill -9 $!
        wait $! 2>/dev/null || :
        exec 4>&-
        # The output of another job is not truncated.
        cp out out.before
        cp /bin/sh out
        is 1 'tokmix: out: not the output that was written with this state' \
            mixing a.tok b.tok c.tok -o out
        cmp out /bin/sh
        # The file's name need not have survived a power failure either.
        rm out
        cp s s.before
        mixing a.tok b.tok c.tok -o out
        cmp wanted out
        mv s.before s
        mv out.before out
        mixing a.tok b.tok c.tok -o out
        cmp wanted out
    done
}

@test "a state at the target of a link stays there" {
    three
    mkdir far
    ln -s far/s s
    half a.tok b.tok c.tok
    [ -L s ]
    [ -s far/s ]
    absent s.new far/s.new
    is 65 'tokmix: s: not token records: this looks like a saved state of '\
'tokmix' tokmix 1=s
    mixing a.tok b.tok c.tok -o out
    [ -L s ]
    cmp wanted out
    is 0 'tokmix: s: the mix is complete: nothing to do
tokmix: a.tok: 201 sequences, '"$(tokens a.tok)"' tokens, share '"$(share a)"'
tokmix: b.tok: 201 sequences, '"$(tokens b.tok)"' tokens, share '"$(share b)"'
tokmix: c.tok: 201 sequences, '"$(tokens c.tok)"' tokens, share '"$(share c)" \
        mixing a.tok b.tok c.tok -v -o out
}

tokens() {
    number "$1" $(($(size "$1") - 16)) 8
}

# share NAME: its share of the tokens, and its weight.
share() {
    awk -v own="$(tokens "$1.tok")" -v all="$(tokens wanted)" \
        -v weight="$([ "$1" = a ] && echo 0.6 || echo 0.2)" \
        'BEGIN { printf "%.4f of %.4f", own / all, weight }'
}

@test "the state must not be another file of the job, and is locked by one" {
    three
    # shellcheck disable=SC2034 # bad_option takes it
    program=tokmix
    operands=("1=a.tok" "1=b.tok")
    bad_option '--state=col: col is also the output: choose another name' \
        --state=col -o col
    bad_option '--state=col: col.new is also the output: choose another name' \
        --state=col -o col.new
    bad_option '--state=a.tok: a.tok is also a source: choose another name' \
        --state=a.tok --resume -o out
    bad_option '--state=s.new: a name that ends in .new is reserved for '\
'states being written: choose another name' --state=s.new -o out
    bad_option '--state=: must be the name of a file' --state=
    bad_option '--resume and --state-every need --state=FILE' --resume
    bad_option '--resume and --state-every need --state=FILE' --state-every=3
    bad_option '--state-every=0: must be a number of sequences from 1' \
        --state-every=0
    absent col col.new out s s.new
    mkfifo in
    mixing in b.tok c.tok -o out &
    exec 4>in
    head -c 400 a.tok >&4
    eventually test -s s
    is 1 'tokmix: s: locked: another job is saving its state here' \
        mixing a.tok b.tok c.tok -o out
    is 1 'tokmix: out: locked: another job is writing '\
'it' \
        tokmix -q --state=other -o out 1=a.tok
    tail -c +401 a.tok >&4
    exec 4>&-
    wait
    cmp wanted out
}

@test "a mix resumes only in a regular file" {
    three
    # shellcheck disable=SC2034 # bad_option takes them
    program=tokmix operands=("1=a.tok")
    bad_option '--state needs a regular file as output, but /dev/full is not '\
'a regular file: use -o FILE' --state=s -o /dev/full
    mkfifo fifo
    bad_option '--state needs a regular file as output, but fifo is not a regular file: '\
'use -o FILE' --state=s -o fifo
    is 1 'tokmix: c.tok: is also an input: choose another output' \
        mixing a.tok b.tok c.tok -o c.tok
    absent s s.new
    is 1 'tokmix: none/s: No such file or directory' \
        tokmix --state=none/s -o out 1=a.tok
    absent out
}
