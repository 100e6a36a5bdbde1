#!/usr/bin/env bats
# tokmix-stages.bats - tokmix --stage: in each stage every source has its share
# at every record, also in a job that is stopped and resumed with other stages.
#
# tests/support/tokmix-stages.py compares random mixes and jobs with a model.
#
# SPDX-License-Identifier: MIT

load ../support/helpers

# three: a.tok, b.tok and c.tok, 40 sequences of 2, 3 and 1 tokens.
three() {
    seq 100 139 | sed 's/$/ 1/' | tokcat --from=ids >a.tok
    seq 200 239 | sed 's/$/ 2 2/' | tokcat --from=ids >b.tok
    seq 300 339 | tokcat --from=ids >c.tok
}

# firsts FILE: the first token of each of its sequences.
firsts() {
    packstream -q -L 4096 -a none "$1" | packcat --to=ids |
        cut -d ' ' -f 1 | tr '\n' ' '
}

# resume OPTION...: starts or resumes a job with a state.
resume() {
    tokmix -q --state=s --state-every=1 --resume --stop=repeat -o out "$@"
}

# half OPTION...: `resume` with them, stopped after 1 KiB.
half() {
    (
        ulimit -f 1
        is 1 'tokmix: out: cannot write: File too large' resume "$@"
    )
    cp s s.before
    cp out out.before
}

# cannot_resume WHY OPTION...: it is refused and changes no file.
cannot_resume() {
    run --separate-stderr resume "${@:2}"
    # shellcheck disable=SC2154 # run sets them
    printf '%s: %s\n' "$status" "$stderr"
    [ "$status" = 64 ]
    [ "${stderr%%$'\n'*}" = "tokmix: $1" ]
    cmp s s.before
    cmp out out.before
}

# taken STATE SOURCE: tokens that the first stage has taken from one of three
# sources.
taken() {
    number "$1" $((8 * (1 + 13 + 3 * 11 + 2 + 1 + 3 * $2 + 2))) 8
}

@test "random stages, and all ways to stop" {
    skip_without python3
    support tokmix-stages.py mixes 1 60
}

@test "killed and stopped at random, and resumed with other stages" {
    skip_if_sanitized
    skip_without python3
    module=${abs_top_builddir:?}/tests/support/.libs/write-log.so
    [ -e "$module" ] || skip "no shared libraries were built"
    support tokmix-stages.py stopped "$module" 1 "${LONG:+1}50"
}

@test "a state with stages that is damaged anywhere is refused" {
    skip_without python3
    support tokmix-stages.py damaged
}

@test "a few stages: a source continues where it was" {
    three
    tokmix -q --by=sequences --stage=3:'2=a.tok 1=b.tok' \
        --stage='2:1=c.tok  1=a.tok' \
        --stage="4:$(printf '1=b.tok\n\t1=c.tok')" >out
    [ "$(firsts out)" = '100 200 101 102 300 201 301 202 302 ' ]
    # The sequence that reaches the length of a stage is its last one.
    tokmix -q --stage=7:1=b.tok --stage=2:1=a.tok --stage=1:1=b.tok >out
    [ "$(firsts out)" = '200 201 202 100 203 ' ]
    tokmix -q --stage=1k:1=a.tok --stop=repeat | packstat - |
        grep -x '  sequences      500'
}

@test "operands are the last stage, without a length" {
    three
    tokmix --stop=longest --stage=60:'2=a.tok 1=c.tok' 1=c.tok 1=a.tok \
        1=b.tok | firsts - | tr ' ' '\n' | sort >got
    { firsts a.tok; firsts b.tok; firsts c.tok; } | tr ' ' '\n' | sort |
        diff - got
    # A single stage without a length is a mix without stages.
    tokmix -q 2=a.tok 1=b.tok >wanted
    tokmix -q --stage=20:'2=a.tok 1=b.tok' 2=a.tok 1=b.tok >out
    [ "$(firsts out | cut -c 1-28)" = "$(firsts wanted | cut -c 1-28)" ]
}

@test "--channel has the number of the source, in the order of first use" {
    three
    tokmix -q --by=sequences --channel=from --stage=2:'1=c.tok 1=a.tok' \
        --stage=3:'1=a.tok 1=b.tok 1=c.tok' |
        packstream -q -L 64 -a none | packcat --to=jsonl >got
    diff got - <<'END'
{"input_ids":[300],"from":0}
{"input_ids":[100,1],"from":1}
{"input_ids":[301],"from":0}
{"input_ids":[101,1],"from":1}
{"input_ids":[200,2,2],"from":2}
END
}

@test "a source that ends before its stage" {
    three
    is 0 'tokmix: a.tok ended, which ends the mix in stage 2 of 2 after 70 of '\
'1000 tokens (see --stop)' tokmix -o out --stage=10:1=a.tok --stage=1k:1=a.tok
    is 0 '' tokmix -q -o out --stage=10:1=a.tok --stage=1k:1=a.tok
    is 0 'tokmix: all sources of stage 1 ended after 80 of 100 tokens (see '\
'--stop)
tokmix: all sources of stage 2 ended after 0 of 5 tokens (see --stop)' \
        tokmix --stop=longest -o out --stage=100:1=a.tok --stage=5:1=a.tok \
        --stage=9:1=b.tok
    packstat out | grep -x '  sequences      43'
    is 0 '' tokmix --stop=repeat -o out --stage=100:1=a.tok --stage=9:1=b.tok
    tokcat --from=ids /dev/null >none.tok
    is 65 'tokmix: none.tok: has no sequences to repeat' \
        tokmix -o out --stop=repeat --stage=100:1=none.tok
    is 0 'tokmix: a.tok ended, which ends the mix: 1 other source was not '\
'read to the end (see --stop)' \
        tokmix -o out --stage=1:1=c.tok 9=a.tok 1=b.tok
}

@test "-v prints the shares of each stage" {
    three
    is 0 'tokmix: stage 1: 7 sequences, 18 tokens, starting after 0 '\
'sequences, 0 tokens
tokmix: stage 1: a.tok: 3 sequences, 6 tokens, share 0.3333 of 0.3333
tokmix: stage 1: b.tok: 4 sequences, 12 tokens, share 0.6667 of 0.6667
tokmix: stage 2: 9 sequences, 9 tokens, starting after 7 sequences, 18 tokens
tokmix: stage 2: c.tok: 9 sequences, 9 tokens, share 1.0000 of 1.0000' \
        tokmix -v -o out --stage=18:'1=a.tok 2=b.tok' --stage=9:1=c.tok
}

@test "pipes, stdin and FIFOs" {
    three
    tokmix -q --stage=9:'1=a.tok 1=b.tok' --stage=9:'1=b.tok 2=c.tok' >wanted
    mkfifo in
    cat b.tok >in &
    tokmix -q --stage=9:"1=-  1=in" --stage=9:"1=in 2="<(cat c.tok) <a.tok |
        cmp - wanted
    wait
}

@test "weights change at a resume, once" {
    three
    half --stage=2k:'2=c.tok 1=a.tok' --stage=9:1=b.tok
    n=$(($(taken s 0) + $(taken s 1)))
    cannot_resume 's: the state was saved with a stage 1 weight of 2/3 for '\
'c.tok, not 1/2' --stage=2k:'1=c.tok 1=a.tok'
    cannot_resume 's: the state was saved with other sources in stage 1' \
        --stage=2k:'2=c.tok 1=a.tok 1=b.tok 1=new.tok'
    cannot_resume "s: stage 1 already has $n tokens, more than its length of \
$((n - 1)): end it there with the length now" \
        --stage=$((n - 1)):'2=c.tok 1=a.tok'
    cannot_resume 'stage 2: the length can be now only if the stage has begun' \
        --stage=2k:'2=c.tok 1=a.tok' --stage=now:1=b.tok
    # The job fails before and after the change has been saved.
    changed=(--stage=now:'2=c.tok 1=a.tok' --stage=2k:'1=c.tok 2=b.tok')
    (
        ulimit -f 0
        run ! resume "${changed[@]}"
    )
    cmp s s.before
    (
        ulimit -f 2
        is 1 'tokmix: out: cannot write: File too large' resume "${changed[@]}"
    )
    cp s s.before
    cp out out.before
    cannot_resume "s: the state was saved with a stage 1 length of $n, not \
2000" --stage=2k:'2=c.tok 1=a.tok' --stage=9:1=b.tok
    cannot_resume 's: the state has begun stage 2, but the command line has '\
'only 1' --stage=now:'2=c.tok 1=a.tok'
    cannot_resume 's: the state was saved with a stage 1 weight of 2/3 for '\
'c.tok, not 1/2' --stage=now:'1=c.tok 1=a.tok' 1=b.tok
    changed+=(--stage=9:1=b.tok)
    is 0 '' resume "${changed[@]}"
    is 0 '' resume "${changed[@]}"
    # The same mix without a state, and with the length instead of `now`.
    changed[0]=--stage=$n:'2=c.tok 1=a.tok'
    is 0 '' resume "${changed[@]}"
    tokmix --stop=repeat "${changed[@]}" | cmp - out
    cp s s.before
    cp out out.before
    cannot_resume 's: the mix is complete with 3 stages, which cannot become '\
'4' "${changed[@]}" 1=c.tok
}

@test "a mix without stages gets stages at a resume, and loses them" {
    three
    tokmix -q --stop=repeat 2=c.tok 1=a.tok >wanted
    half 2=c.tok 1=a.tok
    [ "$(number s 8 8)" = 2 ]
    cannot_resume 's: the state was saved with a weight of 2/3 for c.tok, not '\
'1/2' 1=c.tok 1=a.tok
    (
        ulimit -f 1
        run -1 resume --stage=2k:'2=c.tok 1=a.tok' 1=b.tok
    )
    [ "$(number s 8 8)" = 3 ]
    resume 2=c.tok 1=a.tok
    cmp wanted out
    [ "$(number s 8 8)" = 2 ]
    cp s.before s
    cp out.before out
    resume --stage=now:'2=c.tok 1=a.tok' 1=a.tok 1=b.tok
    cmp -n "$(number s.before 72 8)" out out.before
    [ "$(firsts out | tr ' ' '\n' | grep -c 2..)" -ge 40 ]
}

@test "invalid stages" {
    # shellcheck disable=SC2034 # bad_option takes it
    program=tokmix
    for stage in '' 5 1=x 5=x:y; do
        bad_option "stage 1: $stage: must be LENGTH:'WEIGHT=FILE ...'" \
            --stage="$stage"
    done
    for length in 0 '' -1 1.5 5X 18446744073709551615 18446744073709551616 \
        99999999T Now; do
        bad_option "stage 2: $length: the length must be a number of tokens \
from 1, or now" --stage=1:1=x --stage="$length:1=x"
    done
    bad_option 'stage 1: 0: the length must be a number of sequences from 1, '\
'or now' --stage=0:1=x --by=sequences
    bad_option 'stage 1: the length can be now only with --resume' \
        --stage=now:1=x 1=y
    is 64 "tokmix: stage 1: the length can be now only with a state, but s \
does not exist
tokmix: try 'tokmix --help'" tokmix --state=s --resume --stage=now:1=x -o out
    absent s s.new out out.new
    for stage in '' ' '; do
        bad_option 'stage 1: missing sources: name each as WEIGHT=FILE' \
            --stage="1:$stage"
    done
    bad_option 'stage 1: x: must be WEIGHT=FILE' --stage='1:1=y x'
    bad_option 'stage 1: 1=: must be WEIGHT=FILE' --stage='1:1=y 1='
    bad_option 'x: must be WEIGHT=FILE' --stage='1:1=y' x
    bad_option 'stage 2: 0=x: the weight must be greater than 0' \
        --stage=1:1=x --stage='1:1=y 0=x'
    bad_option 'stage 1: -1=x: the weight must be a number such as 7 or 0.7' \
        --stage=1:-1=x
    bad_option 'stage 1: 2=x: this source is named twice' --stage='1:1=x 2=x'
    bad_option '2=x: this source is named twice' --stage=1:1=x 1=x 2=x
    bad_option 'stage 2: the weights have too many digits' --stage=1:1=x \
        --stage='1:9223372036854775807=x 1=y'
    mapfile -t many < <(seq -f '--stage=%g:1=x' 1001)
    bad_option '--stage=1001:1=x: there are more than 1000 stages' "${many[@]}"
    bad_option '--channel: type u8 is too small to number 256 sources' \
        --channel=a --stage="1:$(seq -f '1=%g' 256)"
    # shellcheck disable=SC2034 # refused takes it
    speaker=tokmix
    tokcat --from=ids <<<'1 2' >a.tok
    refused 1 'missing: No such file' tokmix -o out --stage=1:1=a.tok \
        --stage=1:1=missing
    absent out out.new
}
