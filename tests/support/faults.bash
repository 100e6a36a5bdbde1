#!/usr/bin/env bash
#
# faults.bash - makes the system calls of a program fail one by one, and checks
# that the program handles it.
#
# usage: faults.bash inputs
#        faults.bash calls|world SCENARIO
#        faults.bash list
# `inputs` makes the files that the scenarios work on, in the working
# directory.  `calls` runs a scenario again and again; in each run one more
# call succeeds before one fails, once or from then on, until a run makes too
# few calls for one to fail.  `world` makes no call fail for good: calls are
# interrupted, fail with EAGAIN or transfer single bytes; and it fills the disk.
#
# FAULTS=all in the environment makes each call fail; the default is the first
# few and then fewer and fewer.  FAULTS_SO is the module built from
# tests/support/faults.c.
#
# A program may do its work in spite of a fault: then it succeeds and its
# outputs are the same as without the fault.  Otherwise it exits with 1 and
# prints one line with the reason, however many outputs fail after the first;
# packstat, which continues with the next input, prints one line for each.
# Its outputs are then incomplete, and readers must recognise that.
#
# SPDX-License-Identifier: MIT

set -u

# Each call and its errors; the short form uses the first.
calls='
    read:EIO pread:EIO write:ENOSPC,EIO,EDQUOT pwrite:ENOSPC
    open:EACCES,EMFILE,EOPNOTSUPP close:EIO lseek:EIO ftruncate:EIO
    fsync:EIO fdatasync:EIO rename:EACCES unlink:EACCES link:EPERM
    fstat:EIO stat:EACCES fcntl:EPERM poll:ENOMEM pselect:ENOMEM
    pipe:EMFILE mmap:ENOMEM malloc:ENOMEM pthread_create:EAGAIN
    syscall:ENOMEM prctl:EPERM'

# A program that needs the effect of these must not succeed without it.
serious=' write pwrite ftruncate fsync fdatasync rename '

# ------------------------------------------------------------- scenarios
#
# Each is a function run_NAME, which has `faulty` run one command, and sets the
# program, the maximum number of error lines, and the types and names of its
# outputs:
#
#   packs    pack streams, and reject streams: without END they are cut
#   zstd     compressed pack streams
#   tokens   framed token records: without END they are cut
#   lines    no end marker: can look complete although the input was not
#   reports  a line for each of several inputs
#   npy      a numpy array, whose header is completed last

scenarios='
    raw        packstream 1 packs   out
    wide       packstream 1 packs   out
    pipes      packstream 1 packs   out
    framed     packstream 1 packs   out
    several    packstream 1 packs   out
    rejects    packstream 1 packs   out rejects
    stats      packstream 1 packs   out
    shuffle    packstream 1 packs   out
    prices     packstream 1 packs   out
    unzstd     packstream 1 packs   out
    zstd       packstream 1 zstd    out
    zstd3      packstream 1 zstd    out
    writer     packstream 1 packs   out
    threads    packstream 1 packs   out
    records    packcat    1 lines   out
    restored   packcat    1 tokens  out
    range      packcat    1 lines   out
    unzip      packcat    1 lines   out
    npy        packcat    1 npy     out
    llmc       packcat    1 npy     out
    trl        packcat    1 lines   out
    tfrecord   packcat    1 lines   out
    megatron   packcat    1 npy     out.bin out.idx
    datatrove  packcat    1 npy     out out.index out.loss
    merged     packcat    1 packs   out
    shares     packdeal   1 packs   r0 r1
    share      packdeal   1 packs   out
    share_zstd packdeal   1 zstd    out
    dealt      packdeal   1 lines   out
    sequences  packdeal   1 tokens  r0 r1
    verify     packstat   3 reports out
    look       packstat   2 reports out
    bytes      tokcat     1 tokens  out
    ids        tokcat     1 tokens  out
    jsonl      tokcat     1 tokens  out
    stream     tokcat     1 tokens  out
    indexed    tokcat     1 tokens  out
    losses     tokcat     1 tokens  out
    samples    tokcat     1 tokens  out
    mix        tokmix     1 tokens  out
    repeated   tokmix     1 tokens  out
    kept       tokmix     1 tokens  out
    staged     tokmix     1 tokens  out
    converted  tokcat     1 tokens  out
    shuffled   tokshuf    1 tokens  out
    parts      tokshuf    1 tokens  r0 r1
    sorted     tokshuf    1 tokens  out
    state      packstream 1 packs   out
    resume     packstream 1 packs   out'

# bestfit takes less time; use it where the packing does not matter.
run_raw() { faulty packstream -T1 -L 64 x >out; }
run_wide() {
    faulty packstream -T1 -t u32 -L 64 -a bestfit -o out - <wide
}
run_pipes() { faulty packstream -T1 -L 64 < <(cat x) | cat >out; }
run_framed() { faulty packstream -T1 -L 64 framed >out; }
run_several() {
    faulty packstream -T3 -L 64 -a bestfit framed - framed <again >out
}
run_rejects() {
    faulty packstream -T1 -L 12 -a bestfit --overlong=drop --rejects=rejects \
        -o out framed
}
run_stats() { faulty packstream -T1 -L 64 --stats=json x >out; }
run_shuffle() { faulty packstream -T1 -L 64 -w 64 --shuffle=7 x >out; }
run_prices() { faulty packstream -T1 -L 64 -q -d 3 -a nnlshp x >out; }
run_unzstd() { faulty packstream -T3 -L 64 x.zst >out; }
run_zstd() { faulty packstream -T1 --zstd=1 -L 512 -a bestfit large >out; }
run_zstd3() { faulty packstream -T3 --zstd=1 -L 512 -a bestfit large >out; }
run_writer() { faulty packstream -T2 -L 512 -a bestfit large >out; }
run_threads() {
    faulty packstream -T3 -L 512 -a bestfit < <(cat large) | cat >out
}
run_records() { faulty packcat x.pks -o out; }
run_restored() { faulty packcat <framed.pks >out; }
run_range() { faulty packcat --range=2:9 --to=ids zstd.pks >out; }
run_unzip() { faulty packcat --to=jsonl < <(cat zstd.pks) >out; }
run_npy() { faulty packcat --to=npy -o out x.pks; }
run_llmc() { faulty packcat --to=llmc -o out x.pks; }
run_trl() { faulty packcat --to=trl framed.pks >out; }
run_tfrecord() { faulty packcat --to=tfrecord framed.pks -o out; }
run_megatron() { faulty packcat --to=megatron -o out x.pks; }
run_datatrove() { faulty packcat --to=datatrove -o out few.pks; }
run_merged() { faulty packcat --merge x.pks x.pks >out; }
run_shares() { faulty packdeal -q -n 2 -b 3 -o r%d x.pks x.pks; }
run_share() { faulty packdeal -n 2 -b 3 --rank=1 < <(cat x.pks) >out; }
run_share_zstd() {
    faulty packdeal -q -n 2 -b 3 --rank=1 --zstd=1 -o out zstd.pks
}
run_dealt() {
    faulty packdeal -n 2 -b 3 --list --seed=1 --window=2 x.pks x.pks >out
}
run_sequences() {
    faulty packdeal -q -n 2 -b 3 -o r%d framed - < <(cat framed)
}
run_verify() { faulty packstat --verify x.pks zstd.pks framed >out; }
run_look() { faulty packstat --json - x.pks <framed.pks >out; }
run_bytes() { faulty tokcat --from=bytes text >out; }
run_ids() { faulty tokcat --from=ids -t u32 -o out numbers; }
run_jsonl() { faulty tokcat --from=jsonl --channel=c:u8 - <few >out; }
run_stream() {
    faulty tokcat --from=nanogpt --split=7 -t u32 - <few.u16 -o out
}
run_indexed() { faulty tokcat --from=megatron --split=document few >out; }
run_losses() { faulty tokcat --from=datatrove few.ds >out; }
run_samples() { faulty tokcat --from=tfrecord few.tfrecord -o out; }
run_mix() {
    faulty tokmix -q --stop=longest 2=framed 1=- < <(cat again) >out
}
run_repeated() {
    faulty tokmix --stop=repeat --channel=s -o out 2=framed 3=few.tok
}
run_shuffled() { faulty tokshuf -M 64Ki - framed <longer >out; }
run_parts() {
    faulty tokshuf -q -M 64Ki --by-length=999 --split=9:r0,1:r1 longer
}

# --resume can continue from the files of these scenarios after any fault, and
# the result equals that of the same packing without a state.
saving() {
    faulty packstream -T"$1" -L 64 -w 64 --state=state --state-every=8 \
        -o out "${@:2}"
}

prepare_state() { packstream -T1 -L 64 -w 64 -o plain x; }
run_state() {
    rm -f state
    saving 1 x
}
again_state() { saving 3 --resume x; }

# From a run that stopped halfway: after saving a state it cannot write.
prepare_resume() {
    prepare_state
    rm -f state
    preload=$FAULTS_SO
    export FAULT_CALL=write FAULT_ERRNO=ENOSPC FAULT_FOREVER=1
    for ((FAULT_AT = 1; FAULT_AT < 100; FAULT_AT++)); do
        saving 1 x 2>told && break
        [ ! -e state ] || break
    done
    preload=
    unset FAULT_CALL FAULT_FOREVER
    FAULT_AT=0
    cp state state.half
    cp out out.half
    ! cmp -s out plain
}
run_resume() {
    cp state.half state
    cp out.half out
    saving 1 --resume x
}
again_resume() { again_state; }

# The same for a mix.
keeping() {
    faulty tokmix -q --stop=repeat --state=state --state-every=200 -o out \
        "$@" 2=framed 3=few.tok
}
prepare_kept() { tokmix --stop=repeat -o plain 2=framed 3=few.tok; }
run_kept() {
    rm -f state
    keeping
}
again_kept() { keeping --resume; }

# A mix in stages.
staging() {
    faulty tokmix -q --stop=repeat --state=state --state-every=200 -o out \
        --stage=2k:'2=framed 3=few.tok' --stage=3k:1=few.tok "$@"
}
prepare_staged() {
    tokmix --stop=repeat -o plain --stage=2k:'2=framed 3=few.tok' \
        --stage=3k:1=few.tok
}
run_staged() {
    rm -f state
    staging
}
again_staged() { staging --resume; }

# The same for tokcat.
converting() {
    faulty tokcat -q --from=jsonl --channel=c:u8 --state=state \
        --state-every=40 "$@" -o out lines
}
prepare_converted() { tokcat --from=jsonl --channel=c:u8 -o plain lines; }
run_converted() {
    rm -f state
    converting
}
again_converted() { converting --resume; }

# The same for a shuffle, whose runs are merged twice.
sorting() {
    faulty tokshuf -q -M 64Ki --state=state --state-every=400 -o out "$@" \
        longer
}
prepare_sorted() { tokshuf -o plain longer; }
run_sorted() {
    rm -f state state.?
    sorting
}
again_sorted() { sorting --resume; }

inputs() {
    seq 1200 >text
    seq 28000 >larger
    awk 'BEGIN { for (i = 1; i <= 400; i++) {
        s = i; for (j = 1; j <= i * 7 % 20; j++) s = s " " j; print s } }' \
        >numbers
    sed 's/ /, /g; s/.*/{"input_ids": [&], "c": 5}/' numbers >lines
    sed '30q' lines >few
    seq 30 >few.n
    tokcat --raw --from=bytes text >x
    tokcat --raw --from=bytes larger >large
    tokcat --raw --from=ids -t u32 numbers >wide
    tokcat --from=jsonl --channel=c:u8 lines >framed
    cp framed again
    sed 's/.*/{"input_ids": [1, &], "c": 7}/; 1500q' larger |
        tokcat --from=jsonl --channel=c:u8 >longer
    tokcat --from=jsonl --channel=c:u8 few >few.tok
    packstream -L 64 x >x.pks
    packstream -L 64 --zstd=1 x >zstd.pks
    packstream -L 64 framed >framed.pks
    sed 's/.*/{"input_ids": [7, &], "loss_mask": [0, 1]}/' few.n |
        tokcat --from=jsonl | packstream -L 64 >few.pks
    packcat --to=rows few.pks >few.u16
    packcat --to=megatron -o few few.pks
    packcat --to=datatrove -o few.ds few.pks
    packcat --to=tfrecord few.pks >few.tfrecord
    if command -v zstd >/dev/null; then
        zstd -q x
    else
        cp x x.zst
    fi
}

# ---------------------------------------------------------------- a run

preload=
faulty() { LD_PRELOAD=$preload "$@"; }

# run: the scenario with the faults of the environment, from empty outputs.
run() {
    local name
    for name in $outputs fired; do
        : >"$name"
    done
    rm -f ./*.new.old
    preload=$FAULTS_SO
    "run_$scenario" 2>told
    status=$?
    preload=
    # Another line can report that an older output is kept; that is expected.
    sed -i '/\.new\.old: cannot .*older output/d' told
}

complain() {
    failures=$((failures + 1))
    printf '%s, %s: %s\n' "$scenario" "$what" "$1"
    sed 's/^/    /' told
}

# One line, or up to the allowed number: program name, colon and reason.
is_message() {
    local line lines=0
    while IFS= read -r line; do
        [[ $line == "$program: "?* ]] || return 1
        lines=$((lines + 1))
    done <told
    [ "$lines" -ge 1 ] && [ "$lines" -le "$most" ]
}

is_whole() { cmp -s "$1" "$1.wanted"; }

# begins FILE WHOLE: whether WHOLE begins with FILE.
begins() {
    local said
    said=$(cmp "$1" "$2" 2>&1)
    [[ $said == *"EOF on $1"* || $said == '' ]]
}

# has_first_packs FILE WHOLE: whether the last block was closed early, after the
# first packs of WHOLE.
has_first_packs() {
    local said
    said=$(packcat -q --to=jsonl --order=pack "$1" 2>&1 >part.packs)
    [[ $said == *'the stream ends without END'* ]] && [ -s part.packs ] &&
        packcat -q --to=jsonl --order=pack "$2" >all.packs &&
        begins part.packs all.packs
}

is_beginning() {
    # Files that are renamed together: all of them or none.
    [ -e "$1" ] || return 0
    case $form in
        packs) begins "$1" "$1.wanted" || has_first_packs "$1" "$1.wanted" ;;
        tokens | lines) begins "$1" "$1.wanted" ;;
        reports) ! grep -qvxF -f "$1.wanted" "$1" ;;
        npy) true ;;
        zstd)
            command -v zstd >/dev/null || return 0
            zstd -qdc "$1" >part 2>/dev/null
            begins part "$1.plain" || has_first_packs "$1" "$1.wanted"
            ;;
    esac
}

# is_refused NAME: its readers detect that this output is incomplete.
is_refused() {
    local bytes
    [ -e "$1" ] || return 0
    bytes=$(stat -c %s "$1")
    [ "$bytes" = 0 ] && return
    [ -n "${refused[$1:$bytes]-}" ] && return
    refused[$1:$bytes]=1
    case $form in
        packs | tokens) ! packstat --verify "$1" >/dev/null 2>&1 ;;
        # If only the seek table is missing, all packs and END exist.
        zstd)
            ! packstat --verify "$1" >/dev/null 2>&1 ||
                zstd -qdc "$1" 2>/dev/null | cmp -s - "$1.plain"
            ;;
    esac
}

check_success() {
    local name
    for name in $outputs told; do
        is_whole "$name" || complain "success, and a wrong '$name'"
    done
}

# may_be_whole NAME: whether an output can be complete although the program
# failed: in closing it, in saving a state after it, or in printing the
# statistics.  Rejects end before the packs and can be complete without them.
may_be_whole() {
    [ "$call" = close ] || [ "$form" = lines ] || has again ||
        [ "$1" = rejects ] || grep -q "^$program: the statistics: " told
}

check_failure() {
    local name
    is_message || complain 'the wrong words'
    for name in $outputs; do
        if is_whole "$name"; then
            may_be_whole "$name" || complain "failure, and '$name' is whole"
        elif ! is_beginning "$name"; then
            complain "'$name' is not a beginning"
        elif ! is_refused "$name"; then
            complain "the cut '$name' is accepted"
        fi
    done
}

# goes_on: --resume, if the scenario has it, completes the output.
goes_on() {
    has again || return
    preload=$FAULTS_SO
    FAULT_AT=0 FAULT_FOREVER=0 FAULT_REPORT=none "again_$scenario" \
        2>>told || complain 'not resumed'
    preload=
    cmp -s out plain || complain 'resumed to something else'
}

check() {
    case $status in
        0) check_success ;;
        1) check_failure ;;
        *) complain "ended with $status" ;;
    esac
    goes_on
}

# has STEP: whether there is a function of that name for the scenario.
has() { declare -F "$1_$scenario" >/dev/null; }

undisturbed() {
    local name
    if has prepare; then
        "prepare_$scenario" || exit 1
    fi
    for name in $outputs; do
        : >"$name"
    done
    "run_$scenario" 2>told.wanted || {
        cat told.wanted
        exit 1
    }
    for name in $outputs; do
        cp "$name" "$name.wanted"
    done
    if [ "$form" = zstd ] && command -v zstd >/dev/null; then
        zstd -qdc out >out.plain
    fi
}

# -------------------------------------------------------------- all runs

# number_of CALL: the number of such calls in an undisturbed run.
number_of() {
    grep -cx "$1" made
}

# next_call: sets the next call to fail; the short form alternates between
# failing once and for ever.
next_call() {
    if [ "${FAULTS-}" = all ]; then
        at=$((at + 1))
    else
        at=$((at * 2 + (at > 1)))
        FAULT_FOREVER=$((1 - FAULT_FOREVER))
    fi
}

# fail_calls CALL ERRNO FOREVER: for as long as there are calls to fail.  With
# threads their number varies, so the long form continues until none is left.
fail_calls() {
    local unharmed=1 number=1000000
    call=$1
    [ "${FAULTS-}" = all ] || number=$(number_of "$1")
    export FAULT_CALL=$1 FAULT_ERRNO=$2 FAULT_FOREVER=$3
    for ((at = 1; at <= number; )); do
        what="$1 number $at fails with $2"
        [ "$FAULT_FOREVER" = 0 ] || what="$what, and so do all later ones"
        FAULT_AT=$at run
        check
        [ -s fired ] || break
        if [ "$status" = 0 ] && [[ $serious == *" $1 "* ]]; then
            complain 'success'
        fi
        [ "$status" = 0 ] || unharmed=0
        fired=$((fired + 1))
        next_call
    done
    [ "$at" -le 1000000 ] || complain 'no end'
    # Closing an input may fail without harm, closing an output may not.
    if [ "$1" = close ] && [ "$unharmed" = 1 ]; then
        complain 'no failure of a close was told'
    fi
}

calls() {
    local entry error
    : >made
    FAULT_CALLS=made run
    for entry in $calls; do
        for error in $(tr , ' ' <<<"${entry#*:}"); do
            fail_calls "${entry%%:*}" "$error" 0
            [ "${FAULTS-}" = all ] || break
            fail_calls "${entry%%:*}" "$error" 1
        done
    done
}

# survives WHAT VARIABLE=VALUE...: an environment in which the run succeeds.
survives() {
    what=$1
    shift
    local variable
    for variable; do
        export "${variable?}"
    done
    run
    check
    [ "$status" = 0 ] || complain 'failure'
    if [ -s fired ]; then
        fired=$((fired + 1))
    fi
    for variable; do
        unset "${variable%%=*}"
    done
}

world() {
    local room size=0 name
    survives 'interrupted' FAULT_EACH=EINTR
    survives 'not ready' FAULT_EACH=EAGAIN
    survives 'byte by byte' FAULT_SHORT=1
    survives 'non-blocking' FAULT_NONBLOCK=1
    if [ "${FAULTS-}" = all ]; then
        survives 'all of it' FAULT_NONBLOCK=1 FAULT_EACH=EINTR FAULT_SHORT=1
    fi
    # Earlier bytes are already allocated; stdio's writes are not intercepted.
    case $scenario in
        resume | verify | look | dealt) return ;;
    esac
    for name in $outputs; do
        size=$((size + $(stat -c %s "$name.wanted")))
    done
    for room in 0 1 63 4095 4096 4097 4100 $((size / 2)) $((size - 1)); do
        [ "$room" -lt "$size" ] || continue
        what="room for $room bytes"
        FAULT_ROOM=$room run
        check
        [ "$status" = 1 ] || complain 'success'
        grep -q 'No space left on device$' told || complain 'no reason'
    done
    # The header of an array is written twice, and a state or temporary files
    # beside the output.
    if [ "$form" = npy ] || [ "$program" = tokshuf ] || has again; then
        return
    fi
    what='just enough room'
    FAULT_ROOM=$size run
    check
    [ "$status" = 0 ] || complain 'failure'
}

# report: prints the number of faults; fails if anything was wrong.
report() {
    printf '%s: %d faults, %d failures\n' "$scenario" "$fired" "$failures"
    [ "$fired" -gt 0 ] && [ "$failures" = 0 ]
}

list() {
    awk 'NF { print $1 }' <<<"$scenarios"
}

case $1 in
    inputs | list)
        "$1"
        exit
        ;;
esac
set -o pipefail
scenario=$2
read -r program most form outputs < <(awk -v name="$2" \
    '$1 == name { $1 = ""; print }' <<<"$scenarios")
declare -A refused=()
call='' what='undisturbed' fired=0 failures=0
export FAULT_REPORT=fired FAULT_AT=0
undisturbed
"$1"
report
