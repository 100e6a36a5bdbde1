#!/usr/bin/env bats
# tokshuf-state.bats - tokshuf --state, stopped in any way at any time, resumes
# with exactly the output of an uninterrupted job.
#
# Most checks are in tests/support/tokshuf-state.py; crash.bats cuts the power,
# and faults.bats makes calls fail.
#
# SPDX-License-Identifier: MIT

load ../support/helpers

# checks CHECK [ARGUMENT]
checks() {
    skip_without python3
    support tokshuf-state.py "$@"
}

# logs CHECK: with the module that stops a job at an entry of its log.
logs() {
    skip_if_sanitized
    module=${abs_top_builddir:?}/tests/support/.libs/write-log.so
    [ -e "$module" ] || skip "no shared libraries were built"
    checks "$1" "$module"
}

@test "killed at entries of a log of its file operations" {
    logs killed
}

@test "stopped by a full disk again and again" {
    checks full
}

@test "stopped by a signal, or killed, while it waits" {
    checks signals
}

@test "a state with other options is refused" {
    logs options
}

@test "changed inputs are refused" {
    logs changed
}

@test "changed runs are refused" {
    logs runs
}

@test "a damaged state is refused" {
    logs damaged
}

@test "a changed output is refused" {
    logs outputs
}

# two: a.tok and b.tok, and `wanted`, their shuffle.
two() {
    draw 300 40 60000 >lines
    tokcat --from=ids lines >a.tok
    head -n 40 lines | tokcat --from=ids >b.tok
    tokshuf -q -o wanted a.tok b.tok
}

# half FILE...: `shuffling` with them stops halfway.
half() {
    (
        ulimit -f 10
        is 1 'tokshuf: s.0: File too large' \
            shuffling "$@" --state-every=20 -o out
    )
    [ -s s ]
    [ -s s.0 ]
}

# shuffling FILE... OPTION...
shuffling() {
    tokshuf -q --state=s --resume "$@"
}

@test "pipes, compressed inputs and standard input are read again" {
    two
    skip_without zstd
    zstd -q a.tok
    half a.tok.zst <(cat b.tok)
    shuffling <(cat a.tok) - -o out <b.tok
    cmp wanted out
    absent s.0 s.1 s.new
}

@test "a state at the target of a link stays there, with its runs" {
    two
    mkdir far
    ln -s far/s s
    (
        ulimit -f 10
        is 1 'tokshuf: far/s.0: File too large' shuffling a.tok b.tok \
            --state-every=20 -o out
    )
    [ -L s ]
    [ -s far/s ]
    [ -s far/s.0 ]
    absent s.0 s.1
    is 65 'tokshuf: s: not token records: this looks like a saved state of '\
'tokshuf' tokshuf s
    is 65 'tokshuf: far/s.0: not token records: this looks like a temporary '\
'file of tokshuf' tokshuf far/s.0
    shuffling a.tok b.tok -o out
    cmp wanted out
    [ -L s ]
    [ "$(ls far)" = s ]
    is 0 'tokshuf: s: the shuffle is complete: nothing to do' \
        shuffling -v a.tok b.tok -o out
}

@test "bytes before the job's output stay" {
    two
    echo before >out
    cat out wanted >both
    # shellcheck disable=SC2016 # it is for the other shell
    run -1 bash -c 'ulimit -f 10
        tokshuf -q --state=s --state-every=20 a.tok b.tok >>out'
    [ -s s ]
    shuffling a.tok b.tok >>out
    cmp both out
    shuffling a.tok b.tok >>out
    cmp both out
}

@test "figures cover the whole job" {
    two
    half --min-length=9 a.tok b.tok
    tokshuf -qv --min-length=9 -o new a.tok b.tok 2>told
    shuffling -v --min-length=9 a.tok b.tok -o out 2>told.again
    cmp out new
    diff <(sed 's/;.*//' told) <(sed 's/;.*//' told.again)
}

@test "the state and the runs cannot be other files of the job" {
    two
    # shellcheck disable=SC2034 # bad_option takes them
    program=tokshuf operands=(a.tok)
    bad_option '--state=col: col is also an output: choose another name' \
        --state=col -o col
    bad_option '--state=col: col.new is also an output: choose another name' \
        --state=col -o col.new
    bad_option '--state=col: col.1 is also an output: choose another name' \
        --state=col --split=1:x,1:col.1
    cp a.tok a.0
    # shellcheck disable=SC2034
    operands=(a.0)
    bad_option '--state=a: a.0 is also an input: choose another name' \
        --state=a -o out
    bad_option '--state=a.0: a.0 is also an input: choose another name' \
        --state=a.0 --resume -o out
    bad_option '--state=s.new: a name that ends in .new is reserved for '\
'states being written: choose another name' --state=s.new -o out
    bad_option '--state=: must be the name of a file' --state=
    bad_option '--resume and --state-every need --state=FILE' --resume
    bad_option '--resume and --state-every need --state=FILE' --state-every=3
    bad_option '--state-every=0: must be a number of sequences from 1' \
        --state-every=0
    bad_option '--no-shuffle and --state cannot be combined' --no-shuffle \
        --state=s -o out
    bad_option '--state needs a regular file as output, but /dev/full is not '\
'a regular file: use -o FILE' --state=s --split=1:x,1:/dev/full
    is 1 'tokshuf: a.tok: is also an input: choose another output' \
        shuffling a.tok -o a.tok
    is 1 'tokshuf: none/s: No such file or directory' \
        tokshuf --state=none/s -o out a.tok
    is 1 'tokshuf: missing: No such file or directory' \
        shuffling a.tok missing -o out
    absent col col.new out s s.new s.0 s.1
}

@test "one job at a time locks the state" {
    two
    mkfifo in
    shuffling in b.tok -o out &
    exec 4>in
    head -c 400 a.tok >&4
    eventually test -s s
    is 1 'tokshuf: s: locked: another job is saving its state here' \
        shuffling a.tok b.tok -o out
    is 1 'tokshuf: out: locked: another job is '\
'writing it' \
        tokshuf -q --state=other -o out a.tok
    tail -c +401 a.tok >&4
    exec 4>&-
    wait
    cmp wanted out
    absent other other.0 other.1
}

@test "a shuffle of no sequences, and its resumption" {
    : >none
    tokshuf -q --state=s -o out none
    cmp out none
    shuffling none -o out
    tokcat --from=ids none >none.tok
    tokshuf -q --state=t --by-length=3 -o out none.tok
    cmp out none.tok
    tokshuf -q --state=t --resume --by-length=3 -o out none.tok
    absent s.0 s.1 t.0 t.1
}
