#!/usr/bin/env bats
# resume.bats - packstream, stopped in any way at any time, resumes with exactly
# the output of an uninterrupted job.
#
# RESUME_KILLS sets how often jobs are killed (default: 5 times in each test
# that kills jobs).
#
# SPDX-License-Identifier: MIT

# Variables set in a test are used in that test only.
# shellcheck disable=SC2030,SC2031

# Word splitting of options is intended.
# shellcheck disable=SC2086

load ../support/helpers

# Runs under sanitizers; other extra builds would add nothing.
setup() {
    start
    case ${CFLAGS-} in
        *-fsanitize=*) ;;
        *) skip_if_quick ;;
    esac
    small_blocks 8
}

kills=${RESUME_KILLS:-${QUICK:+2}}
kills=${kills:-5}

records=${QUICK:+3000}
records=${records:-12000}

# sample [SEED]: some thousand records of 1 to 300 tokens, framed, with a
# channel; a seed determines them.
sample() {
    draw $((records / 2)) 300 60000 "${1-1}" 3 | sed 's/ /,/g; h
        s/[0-9]*\([0-9]\)/\1/g; H; g
        s/\(.*\)\n\(.*\)/{"input_ids":[\1],"mask":[\2]}/' |
        tokcat --from=jsonl --channel=mask:u8
}

# raw [SEED]: twice as many raw records, made once.
raw() {
    local file=$BATS_FILE_TMPDIR/raw${1-1}
    [ -e "$file" ] ||
        draw "$records" 300 60000 "${1-1}" 3 | tokcat --from=ids --raw >"$file"
    cat "$file"
}

# job: packs x, from the file or a pipe as $how says, to out with a state.  Run
# it in the background: the subshell becomes packstream.
job() {
    case $how in
        file)
            exec packstream "$@" -q --state=s --state-every=90 --resume \
                -o out x
            ;;
        pipe)
            exec packstream "$@" -q --state=s --state-every=90 --resume \
                -o out < <(cat x)
            ;;
    esac
}

# killed_often OPTION...: jobs on x, killed at random times; the final output of
# each must be `wanted`.
killed_often() {
    local n=0 tries=0 pid status
    packstream "$@" -q -o wanted x
    rm -f s out
    while [ "$n" -lt "$kills" ] || [ "$tries" -gt 0 ]; do
        job "$@" 2>err &
        pid=$!
        # Jobs that are always killed too early would never end.
        if [ "$n" -lt "$kills" ] && [ "$tries" -lt 30 ]; then
            sleep "0.0$((RANDOM % 50 + 10))"
            kill -9 "$pid" || true
        fi
        status=0
        wait "$pid" || status=$?
        tries=$((tries + 1))
        case $status in
            0)
                cmp wanted out
                rm s out
                tries=0
                ;;
            137) n=$((n + 1)) ;;
            *)
                cat err
                return 1
                ;;
        esac
    done
    echo "$n kills"
}

@test "killed at random, from file to file" {
    how='file'
    raw >x
    killed_often -L 512 -d 3 -w 256
}

@test "killed at random, from pipe to file" {
    how='pipe'
    raw >x
    killed_often -L 512 -d 3 -w 256
}

@test "killed at random, framed, shuffled, compressed, on threads" {
    how='file'
    kills=$((kills / 2))
    sample >x
    killed_often -L 400 -d 8 -w 64 --shuffle=7 --zstd=1 -T3
}

@test "jobs resume with every algorithm and order" {
    skip_if_quick
    raw 3 >x
    local options
    for options in "-w 100" "-d 5 -w 50" "-a spfhp -w 60" \
        "-a nnlshp -d 3 -w 60" "-a bestfit -w 60" "-a nextfit" \
        "-a concat" "-a none" "--shuffle=9 -w 64" "--order=input" \
        --block-packs=1 --block-packs=4096 \
        "--even-cost --flush-every=99" "--max-delay=70" "--align=16" \
        "-w 4096 -M $(least_memory -L 512 -w 4096)"; do
        echo "$options"
        goes_on -L 512 $options
    done
}

@test "a job whose window is limited by tokens resumes" {
    local options
    "${abs_top_builddir:?}/tests/bench/gen" --bytes=5000000 --longest=90 \
        --mean=40 >x
    for options in "" "-a bestfit" "-a concat" "-a spfhp" "-M 32Mi" \
        "--order=input"; do
        goes_on -L 2048 $options
    done
}

@test "jobs with overlong sequences and rejects resume" {
    raw 4 >x
    goes_on -L 200 -w 64 --overlong=split
    goes_on -L 200 -w 64 --overlong=truncate
    goes_on -L 200 -w 64 --overlong=drop --rejects=r
}

@test "jobs on several files, plain and compressed, resume" {
    skip_without zstd
    local i
    for i in 1 2 3; do
        sample "$i" >"x$i"
    done
    zstd -q x2
    packstream -q -L 512 -w 64 x1 x2.zst x3 -o wanted
    for i in 1 2 3 4 5 6; do
        packstream -q -L 512 -w 64 --state=s --resume --state-every=25 \
            -o out x1 x2.zst x3 &
        sleep "0.$((RANDOM % 3))"
        kill -9 $! 2>/dev/null || true
        wait $! || true
    done
    packstream -q -L 512 -w 64 --state=s --resume -o out x1 x2.zst x3
    cmp wanted out
}

@test "a job that gets a signal saves its state" {
    env --default-signal=INT true 2>/dev/null ||
        skip "env has no --default-signal"
    raw >x
    packstream -q -L 512 -w 64 x >wanted
    local signal status pid
    for signal in TERM INT; do
        rm -f s out
        mkfifo in
        # In the background a shell has SIGINT ignored, for good.
        env --default-signal=INT packstream -q -L 512 -w 64 --state=s \
            -o out in &
        pid=$!
        opens 7 '>' in "$pid"
        { head -c 300000 x; told_to_end "$signal" "$pid"; } >&7
        exec 7>&-
        exits $((128 + $(kill -l "$signal"))) "$pid"
        rm in
        [ -s s ]
        # It is the state after the last pack.
        run -0 packstream -q -L 512 -w 64 --state=s --resume -o out x
        cmp wanted out
    done
}

@test "output to a pipe resumes with the pack that its reader wants" {
    raw >x
    packstream -q -L 512 -w 64 x >wanted
    local at n
    (packstream -q -L 512 -w 64 --state=s --state-every=10 x || true) |
        head -c $(($(block_at wanted 12) + 7)) >part
    [ -s s ]
    # With an earlier state, a later one, or none, the whole block that
    # contains the pack is written.
    for at in 96 100 103 1 7 8; do
        packstream -q -L 512 -w 64 --state=s "--resume-from=$at" x | cat >rest
        cmp <(head -c 4096 wanted) <(head -c 4096 rest)
        cmp <(blocks_from $((at / 8)) wanted) <(blocks_from 0 rest)
        [ "$(block_at rest 0)" -eq 4096 ]
        rm s
        packstream -q -L 512 -w 64 "--resume-from=$at" x | cmp - rest
        (packstream -q -L 512 -w 64 --state=s --state-every=10 x || true) |
            head -c "$(block_at wanted 25)" >part
    done
    n=$(packstat --json wanted | sed 's/.*"packs": \([0-9]*\),.*/\1/')
    packstream -q -L 512 -w 64 "--resume-from=$n" x >rest
    cmp <(head -c 4096 wanted) <(head -c 4096 rest)
    [ "$(end_at rest)" -eq 4096 ]
    cmp <(blocks_from end wanted) <(blocks_from end rest)
    run -64 packstream -q -L 512 -w 64 "--resume-from=$((n + 1))" x
    [[ $output == *"packstream: stdout: the stream has $n packs"* ]]
}

# half_done: a job on x, half of it done, with its state in s.
half_done() {
    rm -f s out
    stopped_at $(($(stat -c %s x) / 2)) -L 512 -w 64
    [ -s s ]
}

# refused STATUS WORDS OPTION...: the job does not resume, and leaves state and
# output unchanged.
refused() {
    local wanted=$1 words=$2
    shift 2
    cp s s.before
    cp out out.before
    run -"$wanted" packstream -q --state=s --resume -o out "$@"
    echo "$output"
    [[ $output == *"$words"* ]]
    [ "${#lines[@]}" -le 2 ]
    cmp s s.before
    cmp out out.before
}

@test "a state that does not match is refused" {
    raw >x
    half_done
    refused 64 "saved with capacity 512, not 256" -L 256 -w 64 x
    refused 64 "depth unlimited, not 8" -L 512 -w 64 -d 8 x
    refused 64 "blocks of 8 packs, not 16" -L 512 -w 64 --block-packs=16 x
    refused 64 "window 64, not 65" -L 512 -w 65 x
    refused 64 "policy auto, not spfhp" -L 512 -w 64 -a spfhp x
    refused 64 "order by window, not shuffled" -L 512 -w 64 --shuffle=1 x
    refused 64 "even_cost off, not on" -L 512 -w 64 --even-cost x
    refused 64 "overlong error, not drop" -L 512 -w 64 --overlong=drop x
    refused 64 "pad_id 0, not 1" -L 512 -w 64 --pad-id=1 x
    refused 64 "max_delay 128, not 9" -L 512 -w 64 --max-delay=9 x
    refused 64 "not compressed, but these packs are" -L 512 -w 64 --zstd x
    refused 64 "--flush-every none, not 5" -L 512 -w 64 --flush-every=5 x
    refused 64 "no --flush-records, not --flush-records" -L 512 -w 64 \
        --flush-records x
    refused 64 "no --rejects, not --rejects" -L 512 -w 64 --overlong=drop \
        --rejects=r x
    refused 64 "--out-of-vocab error, not drop" -L 512 -w 64 --vocab=65536 \
        --out-of-vocab=drop x
    refused 64 "--empty error, not drop" -L 512 -w 64 --empty=drop x
    refused 64 "an input count of 1, not 2" -L 512 -w 64 x x
    refused 64 "different token records: tokens are u16, not u32" -L 512 -w 64 \
        -t u32 x
    refused 64 "different token records: vocab_size is none, not 65536" -L 512 \
        -w 64 --vocab=65536 x
    run -64 packstream -q -L 512 -w 64 --state=s -o out x
    [ "$output" = "packstream: s: exists already: use --resume to continue \
from it" ]
}

@test "a different input is detected" {
    raw >x
    half_done
    raw 2 >y
    refused 65 "packstream: y: " -L 512 -w 64 y
    head -c 1000 x >y
    refused 65 "ends" -L 512 -w 64 y
    packstream -q -L 512 -w 64 --state=s --resume -o out x
    packstream -q -L 512 -w 64 x | cmp - out
}

@test "a different output is detected" {
    raw >x
    half_done
    cp out whole
    truncate -s 5000 out
    run -1 packstream -q -L 512 -w 64 --state=s --resume -o out x
    [[ $output == "packstream: out: has 5000 bytes, but the state was saved after "* ]]
    [ "$(stat -c %s out)" -eq 5000 ]
    rm out
    run -1 packstream -q -L 512 -w 64 --state=s --resume -o out x
    [ "$output" = "packstream: out: does not exist, but its state does: remove\
 the state to start again" ]
    [ ! -e out ]
    cp whole out
    packstream -q -L 512 -w 64 --state=s --resume -o out x
    packstream -q -L 512 -w 64 x | cmp - out
}

@test "a damaged or truncated state is refused" {
    seq 3000 | tokcat --from=bytes --raw >x
    rm -f s out
    stopped_at 10000 -L 32 -w 8
    [ -s s ]
    cp s good
    local n i
    n=$(stat -c %s good)
    for i in 0 7 8 12 16 100 $((n / 2)) $((n - 9)) $((n - 8)) $((n - 1)); do
        cp good s
        flip s "$i" 4
        refused 65 "packstream: s: " -L 32 -w 8 x
    done
    for i in 0 1 8 11 12 19 20 500 $((n / 2)) $((n - 1)); do
        head -c "$i" good >s
        refused 65 "packstream: s: " -L 32 -w 8 x
    done
    cat good good >s
    refused 65 "packstream: s: " -L 32 -w 8 x
    echo text >s
    refused 65 "packstream: s: not a saved state" -L 32 -w 8 x
}

@test "a finished job is not repeated" {
    raw >x
    packstream -q -L 512 -w 64 --state=s --resume -o out x
    cp out wanted
    touch -d @0 out
    packstream -q -L 512 -w 64 --state=s --resume -o out x
    cmp wanted out
    [ "$(stat -c %Y out)" -eq 0 ]
    truncate -s -1 out
    run -1 packstream -q -L 512 -w 64 --state=s --resume -o out x
    [[ $output == "packstream: out: has "*" bytes, but the state was saved after "* ]]
}

@test "a finished job reports its statistics when resumed" {
    raw >x
    seq -s ' ' 513 | tokcat --from=ids --raw >long
    local how="-q -L 512 -w 64 --overlong=drop --stats=json --state=s"
    # Word splitting of options is intended.
    packstream $how -o out x long 2>first
    packstream $how --resume -o out x long 2>again
    cmp first again
    grep '"rejected_overlong_sequences": *1\b' again
    grep '"max_delay": *[1-9]' again
    packstream $how --resume -v -o out x long 2>&1 |
        grep -Fx 'packstream: s: the job is complete: nothing to do'
    # To a pipe that has all packs already.
    local packs
    packs=$(packstat --json out | sed -n 's/.*"packs": \([0-9]*\).*/\1/p')
    packstream $how --resume-from="$packs" x long 2>again | cat >rest
    cmp first again
}

@test "a state that cannot be written" {
    raw >x
    run -1 packstream -q -L 512 --state=none/s -o out x
    [[ $output == "packstream: none/s: "* ]]
    mkdir folder
    run -1 packstream -q -L 512 --state=folder -o out x
    [[ $output == "packstream: folder: "* ]]
    run -64 packstream -q -L 512 --state= x
    run -64 packstream -q -L 512 --resume x
    run -64 packstream -q -L 512 --state-every=5 x
    run -64 packstream -q -L 512 --zstd --resume-from=5 x
}

@test "packs of a timed flush cannot be repeated" {
    raw >x
    mkfifo in
    packstream -q -L 512 -w 64 --flush-idle=20 --state=s in >out &
    local pid=$!
    opens 7 '>' in "$pid"
    {
        head -c 300000 x
        idle "$pid"
        tail -c +300001 x
    } >&7
    exec 7>&-
    wait "$pid"
    run -65 packstream -q -L 512 -w 64 --flush-idle=20 --state=s \
        --resume-from=3 x
    [[ $output == "packstream: s: packs were flushed by time"* ]]
}
