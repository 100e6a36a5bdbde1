#!/usr/bin/env bats
# tokcat-state.bats - tokcat --state, stopped at any time, resumes with exactly
# the output of an uninterrupted job.
#
# SPDX-License-Identifier: MIT

load ../support/helpers

# rows N: N rows of JSON Lines, some of them empty.
rows() {
    awk -v n="$1" 'BEGIN {
        for (i = 0; i < n; i++) {
            ids = ""
            for (k = 0; k < i * 7 % 40; k++)
                ids = ids (k ? "," : "") (i * 31 + k) % 50000
            printf "{\"input_ids\":[%s],\"score\":%d}\n", ids, i
        }
    }'
}

# resumes [OPTION|FILE]...: resumes with a state after every 50 sequences.
resumes() {
    tokcat -q --state=s --resume --state-every=50 -o out "$@"
}

# stopped N OPTION...: the same on a disk that is full after N KiB.
stopped() {
    (
        ulimit -f "$1"
        is 1 'tokcat: out: cannot write: File too large' resumes "${@:2}"
    )
    [ -s s ]
}

@test "stopped again and again, from files and pipes in several forms" {
    local form options
    rows 1000 >x.jsonl
    gzip -c x.jsonl >x.gz
    sed 's/.*\[\(.*\)\].*/\1/; s/,/ /g' x.jsonl >x.ids
    tokcat -q --from=ids --raw x.ids >x.bin
    for form in jsonl:x.jsonl jsonl:x.gz ids:x.ids bytes:x.jsonl \
        nanogpt:x.bin; do
        options=("--from=${form%:*}")
        [[ $form != nanogpt* ]] || options+=(--split=40)
        tokcat -q "${options[@]}" "${form#*:}" >wanted
        rm -f s out
        stopped 8 "${options[@]}" "${form#*:}"
        stopped 16 "${options[@]}" <"${form#*:}"
        # Bytes after the last state are written again.
        echo rubbish >>out
        resumes "${options[@]}" < <(cat "${form#*:}")
        cmp out wanted
    done
}

@test "killed at any time" {
    local i status n=0
    rows 20000 >x
    tokcat -q --from=jsonl x >wanted
    for i in {1..15}; do
        "${abs_top_builddir:?}/tokcat" -q --state=s --resume \
            --state-every=200 -o out --from=jsonl x &
        sleep "0.0$((i % 90 + 10))"
        kill -KILL $! 2>/dev/null || true
        # A killed job holds its lock until it has ended.
        status=0
        wait $! || status=$?
        n=$((n + (status > 0)))
        [ "$status" -ne 0 ] || break
    done
    [ "$n" -gt 0 ] && echo "$n kills"
    resumes --from=jsonl x
    cmp out wanted
}

@test "raw records, killed while input is awaited" {
    local options=(--from=jsonl --raw --ignore=score)
    rows 1000 >x
    tokcat -q "${options[@]}" x >wanted
    mkfifo in
    "${abs_top_builddir:?}/tokcat" -q --state=s --resume --state-every=50 \
        -o out "${options[@]}" <in 3>&- &
    local pid=$!
    opens 7 '>' in $pid
    # The state is that after 450 records; the output has 468.
    head -n 480 x >&7
    eventually is_larger out 20591
    kill -KILL $pid
    wait $pid || [ $? = 137 ]
    exec 7>&-
    [ -s s ]
    head -c "$(size out)" wanted | cmp - out
    echo rubbish >>out
    stopped 32 "${options[@]}" x
    resumes "${options[@]}" x
    cmp out wanted
    is 0 "" resumes "${options[@]}" x
    cmp out wanted
}

@test "a finished job has nothing left to do" {
    rows 99 >x
    resumes --from=jsonl x
    cp out wanted
    is 0 "" resumes --from=jsonl x
    cmp out wanted
    # Nor does it start again.
    is 64 "tokcat: s: exists already: use --resume to continue from it" \
        tokcat -q --state=s -o out --from=jsonl x
    echo >>out
    run -1 resumes --from=jsonl x
}

@test "different input or options are refused" {
    local other="tokcat: s: the state was saved with different input or\
 options: the first 300 records differ; remove the state and the output to\
 start again"
    rows 1000 >x
    stopped 16 --from=jsonl x
    cp out cut
    sed '300s/"score":299/"score":0/' x >y
    is 64 "$other" resumes --from=jsonl y
    is 64 "tokcat: s: the state was saved for different token\
 records: vocab_size is\
 none, not 60000" resumes --from=jsonl --vocab=60000 x
    run -64 resumes --from=jsonl --ignore=score x
    head -n 300 x >y
    is 64 "$other" resumes --from=jsonl y
    cmp out cut
    # Later rows can differ.
    head -n 900 x >y
    resumes --from=jsonl y
    cmp out <(tokcat -q --from=jsonl y)
}

@test "damaged states and changed outputs are refused" {
    local i
    rows 1000 >x
    stopped 16 --from=jsonl x
    cp s good
    for i in 0 9 17 30 40 50 60 70 80; do
        cp good s
        flip s "$i"
        run -65 resumes --from=jsonl x
    done
    cp good s
    head -c 5000 out >short
    cp short out
    run -1 resumes --from=jsonl x
}

@test "options that cannot be combined with a state" {
    rows 1 >x
    is 64 "tokcat: --resume and --state-every need --state=FILE
tokcat: try 'tokcat --help'" \
        tokcat --from=jsonl --resume -o out x
    is 64 "tokcat: --state needs a regular file as output, but stdout is not a\
 regular file: use -o FILE
tokcat: try 'tokcat --help'" \
        bash -c 'set -o pipefail; tokcat --from=jsonl --state=s x | cat'
    is 64 "tokcat: --state=x: x is also an input: choose another name
tokcat: try 'tokcat --help'" \
        tokcat --from=jsonl --state=x -o out x
}
