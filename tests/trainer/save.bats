#!/usr/bin/env bats
# save.bats - the checkpoint of the BERT example after a run that ends early,
# and refusals to write one.
#
# SPDX-License-Identifier: MIT

# Each test runs in its own process with its own variables.
# shellcheck disable=SC2030,SC2031

load ../support/helpers

setup() {
    start_training
    packs 40 >x.pks
    bytes=$(number x.pks $((4096 + 24)) 8)
}

# packs SEQUENCES: one pack of 16 tokens for each, and a block of "bytes".
packs() {
    awk -v n="$1" 'BEGIN {
        for (i = 0; i < n; i++) {
            printf "2"
            for (k = 0; k < 8 + i % 7; k++)
                printf " %d", 5 + (i * 13 + k * 7) % 50
            print ""
        }
    }' |
        tokcat -q --from=ids --vocab=60 --pad-id=0 --cls-id=2 --mask-id=4 |
        packstream -q -L 16 -d 1 --block-packs=1
}

# first PACKS: the stream before that pack.
first() {
    head -c $((4096 + $1 * bytes)) x.pks
}

# $! is the process.  A background process of a shell ignores SIGINT, for good.
reset=(env)
! env --default-signal=INT true 2>/dev/null || reset+=(--default-signal=INT)
small=("${reset[@]}" packtrain --hidden=16 --packs=5 --stats=json --report=1)
train() {
    "${small[@]}" "$@"
}

# steps_in FILE: the number of steps in its checkpoint.
steps_in() {
    number "$1" 32 8
}

# whole STEPS [OPTION]...: writes the checkpoint of an uninterrupted run.
whole() {
    local steps=$1
    shift
    rm -f whole
    train --save=whole --steps="$steps" "$@" >all
}

# goes_on [OPTION]...: resumes the run from "part" for some steps; the result
# must equal that of an uninterrupted run.
goes_on() {
    local steps
    [ -s part ]
    [ ! -e part.new ]
    steps=$(($(steps_in part) + 2))
    whole "$steps" "$@"
    train --save=part --resume --steps="$steps" "$@" >rest
    cmp whole part
}

# halted PID: true when SIGSTOP has stopped all of its threads.
halted() {
    [ "$(sed 's/.*) \(.\).*/\1/' "/proc/$1/task/"*/stat | sort -u)" = T ]
}

# ends STATUS PID: the process ends soon, with this status.
ends() {
    local status=0
    eventually gone "$2" || kill -9 "$2"
    wait "$2" || status=$?
    [ "$status" -eq "$1" ]
}

# ended_by SIGNAL: the signal ends "$pid", which prints nothing.
ended_by() {
    kill "-$1" "$pid"
    ends $((128 + $(kill -l "$1"))) "$pid"
    exec 7>&-
    [ ! -s err ]
}

# stalled: starts a run, "$pid", that has made 3 steps and waits for more input:
# this shell holds the pipe open.
stalled() {
    rm -f in part told err
    mkfifo in
    "${small[@]}" --save=part in >told 2>err &
    pid=$!
    opens 7 '>' in "$pid"
    first 16 >&7
    eventually has_lines 3 told
}

# stalled_silently: the same, but nothing was printed.
stalled_silently() {
    rm -f in part
    mkfifo in
    "${small[@]}" --report=1000 --save=part in >out 2>err &
    pid=$!
    opens 7 '>' in "$pid"
    first 16 >&7
    idle "$pid"
}

# ---- Failures during a run ----

@test "after truncated input the checkpoint has the last whole step" {
    head -c $((4096 + 33 * bytes + 100)) x.pks >cut.pks
    refused 65 "cut.pks: " train --save=part cut.pks
    [ "$(steps_in part)" -eq 6 ]
    goes_on x.pks
    rm part
    first 33 >cut.pks
    run -65 train --save=part <cut.pks
    [ "$(steps_in part)" -eq 6 ]
    goes_on x.pks
    # The same with the second of several files.
    rm part
    refused 65 "cut.pks: " train --save=part x.pks cut.pks
    [ "$(steps_in part)" -eq 14 ]
    goes_on x.pks x.pks
}

@test "after damaged input the checkpoint has the steps before the damage" {
    cp x.pks bad.pks
    flip bad.pks $((4096 + 22 * bytes + 100))
    refused 65 "bad.pks: " train --save=part bad.pks
    [ "$(steps_in part)" -eq 4 ]
    goes_on x.pks
}

@test "a run cut short resumes bit for bit to the end" {
    first 33 | run -65 train --save=part
    train --save=part --resume x.pks >rest
    train --save=whole x.pks >all
    [ "$(steps_in whole)" -eq 8 ]
    [ "$(wc -l <rest)" -eq 2 ]
    cmp whole part
}

@test "a run whose second file is missing writes a checkpoint" {
    refused 1 "none: No such file" train --save=part x.pks none
    [ "$(steps_in part)" -eq 8 ]
    goes_on x.pks x.pks
}

@test "a run whose output is full writes a checkpoint and reports the error" {
    [ -e /dev/full ] || skip "there is no /dev/full"
    full() {
        train --save=part "$@" x.pks >/dev/full
    }
    refused 1 "stdout: cannot be written" full --report=3
    [ "$(steps_in part)" -eq 3 ]
    [ "${#lines[@]}" -eq 1 ]
    goes_on x.pks
    rm part
    refused 1 "stdout: cannot be written" full --report=1000 --steps=4
    [ "$(steps_in part)" -eq 4 ]
    goes_on x.pks
}

@test "a run whose reader is gone writes a checkpoint, then SIGPIPE ends it" {
    piped() {
        local ended
        "${small[@]}" --save=part --epochs=1000000 x.pks | head -n 2 >two
        ended=${PIPESTATUS[0]}
        return "$ended"
    }
    run -141 piped
    [ -z "$output" ]
    [ "$(steps_in part)" -ge 2 ]
    goes_on --epochs=1000000 x.pks
    # With SIGPIPE ignored it gets an error instead.
    rm part
    trap '' PIPE
    refused 1 "stdout: cannot be written" piped
    trap - PIPE
    goes_on --epochs=1000000 x.pks
}

@test "a run whose loss becomes NaN keeps the checkpoint from before" {
    wild=(--rate=1000 --clip=0 --epochs=100 x.pks)
    refused 1 "the loss is not finite" train --save=part "${wild[@]}"
    whole "$(steps_in part)" "${wild[@]}"
    cmp whole part
    refused 1 "the loss is not finite" \
        train --save=part --resume "${wild[@]}"
}

# far [OPTION]...: the same on a device that computes asynchronously.
far() {
    "${reset[@]}" "${abs_top_builddir:?}/tests/trainer/packtrain-far" \
        --hidden=16 --packs=5 --stats=json "$@"
}

# digits FILE: the lines without times, and with fewer digits.
digits() {
    sed -E 's/, "seconds.*//; s/(\.[0-9]{10})[0-9]*/\1/g' "$1"
}

skip_without_far() {
    [ -x "$abs_top_builddir/tests/trainer/packtrain-far" ] ||
        skip "tests/trainer/packtrain-far is not built"
}

@test "an asynchronous device learns the same and writes equal checkpoints" {
    skip_without_far
    # 80 steps: more than can be in flight.
    whole 80 --epochs=10 x.pks
    far --save=one --steps=80 --epochs=10 --report=1 x.pks >each
    diff <(sed 's/, "seconds.*//' all) <(sed 's/, "seconds.*//' each)
    cmp whole one
    far --save=two --steps=80 --epochs=10 --report=1000 x.pks >once
    cmp whole two
    # Sums are rounded in another order.
    train --steps=80 --epochs=10 --report=1000 x.pks >all
    diff <(digits all) <(digits once)
    [ "$(wc -l <once)" -eq 1 ]
    far --save=part --steps=33 --epochs=10 --report=5 --save-every=7 x.pks \
        >/dev/null
    # From one device to the other and back.
    train --save=part --resume --steps=50 --epochs=10 x.pks >/dev/null
    far --save=part --resume --steps=80 --epochs=10 x.pks >/dev/null
    cmp whole part
}

@test "an asynchronous device keeps the steps before a NaN loss" {
    skip_without_far
    wild=(--rate=1000 --clip=0 --epochs=100 x.pks)
    refused 1 "the loss is not finite" train --save=whole "${wild[@]}"
    steps=$(steps_in whole)
    [ "$steps" -gt 0 ]
    refused 1 "step $((steps + 1)): the loss is not finite" \
        far --save=part --report=1000 "${wild[@]}"
    cmp whole part
    # Steps before it are printed, too.
    run -1 far --report=1000 "${wild[@]}"
    [[ $output == *"\"step\": $steps, "* && $output != *nan* ]]
}

@test "a device failure is reported, and the last checkpoint stays whole" {
    skip_without_far
    whole 3 x.pks
    cp whole part
    export FAR_FAILS=1
    refused 1 "the device fell off the bus" far --save=part --resume x.pks
    cmp whole part
    refused 1 "the device fell off the bus" far --save=none x.pks
    [ ! -e none ] && [ ! -e none.new ]
}

@test "a device that this build lacks is refused before anything else" {
    skip_without_far
    refused 1 "this build has no CUDA back end" \
        far --device=cuda --save=part /nonexistent
    [ ! -e part ]
    refused 64 "device" train --device=abacus x.pks
}

@test "a failure to write a checkpoint is reported once, and leaves no file" {
    limited() {
        ulimit -f 4
        train "$@"
    }
    refused 1 "part: File too large" limited --save=part --save-every=2 x.pks
    [ "$(grep -c part <<<"$output")" -eq 1 ]
    absent part part.new
    # The first failure determines the exit status.
    first 33 >cut.pks
    refused 65 "part: File too large" limited --save=part cut.pks
    [[ $output == *"cut.pks: "* ]]
    # The old checkpoint is unchanged.
    train --save=part --steps=2 x.pks >out
    cp part old
    refused 1 "part: File too large" limited --save=part --resume x.pks
    cmp part old
    [ ! -e part.new ]
}

# ---- Signals ----

@test "SIGTERM ends a run that waits for input, with a checkpoint" {
    stalled
    ended_by TERM
    [ "$(steps_in part)" -eq 3 ]
    goes_on x.pks
}

@test "SIGINT ends a run that waits for input, with a checkpoint" {
    set -m
    stalled
    ended_by INT
    [ "$(steps_in part)" -eq 3 ]
    goes_on x.pks
}

@test "SIGINT to a whole pipeline is not reported as an input error" {
    set -m
    for ((i = 0; i < 5; i++)); do
        rm -f part told
        { first 16; "${reset[@]}" sleep 600; } |
            "${small[@]}" --save=part >told 2>err &
        pid=$!
        eventually has_lines 3 told
        kill -INT -- "-$(jobs -p %+)"
        ends 130 "$pid"
        [ ! -s err ]
        [ "$(steps_in part)" -eq 3 ]
    done
    goes_on x.pks
}

@test "a signal takes precedence over input truncated at the same time" {
    for ((i = 0; i < 10; i++)); do
        stalled
        kill -STOP "$pid"
        eventually halted "$pid"
        exec 7>&-
        kill -TERM "$pid"
        kill -CONT "$pid"
        ends 143 "$pid"
        [ ! -s err ]
        [ "$(steps_in part)" -eq 3 ]
    done
}

# On another thread the handler might run only after the main thread has seen
# the end of the input.
@test "only the main thread handles the signals that end a run" {
    stalled
    local task mask
    for task in /proc/"$pid"/task/*; do
        [ "${task##*/}" != "$pid" ] || continue
        mask=$((16#$(sed -n 's/^SigBlk:[[:space:]]*//p' "$task/status")))
        [ $((mask >> 1 & 1)) -eq 1 ]
        [ $((mask >> 14 & 1)) -eq 1 ]
    done
    ended_by TERM
}

@test "a signal before the first pack ends a run, whenever it arrives" {
    # The run waits for a writer, then a header, then the first pack.
    mkfifo in
    "${small[@]}" --save=part in 2>err &
    pid=$!
    sleep 0.3
    ended_by TERM
    for part in 100 4096; do
        "${small[@]}" --save=part in 2>>err &
        pid=$!
        opens 7 '>' in "$pid"
        head -c $part x.pks >&7
        sleep 0.3
        kill -TERM "$pid"
        ends 143 "$pid"
        exec 7>&-
    done
    [ ! -s err ]
    absent part part.new
}

@test "a signal ends a run that waits for its next file, with a checkpoint" {
    mkfifo in
    "${small[@]}" --save=part x.pks in >told 2>err &
    pid=$!
    eventually has_lines 8 told
    ended_by TERM
    goes_on x.pks x.pks
}

@test "a signal ends a run that waits while skipping packs on resume" {
    stalled
    ended_by TERM
    cp part old
    "${small[@]}" --save=part --resume in >told 2>err &
    pid=$!
    opens 7 '>' in "$pid"
    first 10 >&7
    sleep 0.3
    ended_by TERM
    cmp part old
}

@test "a signal ends a run over files without packs" {
    packs 0 >empty.pks
    "${small[@]}" --save=part --epochs=1000000 empty.pks 2>err &
    pid=$!
    sleep 0.3
    ended_by TERM
    [ ! -e part ]
}

@test "a signal ends a run whose reader does not read" {
    mkfifo out
    exec 8<>out
    "${small[@]}" --save=part --epochs=1000000 x.pks >out 2>err &
    pid=$!
    idle "$pid"
    ended_by TERM
    exec 8>&-
    goes_on --epochs=1000000 x.pks
}

@test "pending output is printed before a signal ends a run" {
    stalled_silently
    ended_by TERM
    [ "$(wc -l <out)" -eq 1 ]
    grep -q '^{"step": 3, "sequences": 15,' out
}

@test "a second signal ends a run at once" {
    # The first signal makes the run print to a full pipe.
    set -m
    for second in TERM INT; do
        rm -f out
        mkfifo out
        exec 8<>out
        dd if=/dev/zero of=out bs=4096 count=1024 oflag=nonblock \
            status=none 2>full || true
        stalled_silently
        kill -TERM "$pid"
        eventually test -e part
        sleep 0.2
        kill -0 "$pid"
        kill -$second "$pid"
        ends $((128 + $(kill -l $second))) "$pid"
        exec 7>&- 8>&-
        [ "$(steps_in part)" -eq 3 ]
    done
    goes_on x.pks
}

@test "a signal that was ignored stays ignored" {
    trap '' TERM
    stalled
    trap - TERM
    kill -TERM "$pid"
    sleep 0.2
    tail -c +$((4096 + 16 * bytes + 1)) x.pks >&7
    exec 7>&-
    ends 0 "$pid"
    [ "$(steps_in part)" -eq 8 ]
}

# ---- Files ----

# unwritable STATUS TEXT NAME: reported before the input, which never arrives.
unwritable() {
    refused "$1" "$2" timeout 600 "${small[@]}" --save="$3" never
    [ "${#lines[@]}" -eq 1 ]
}

@test "an unwritable path is reported before anything is read" {
    mkfifo never
    mkdir folder
    : >file
    unwritable 1 "none/s: No such file or directory" none/s
    unwritable 1 "file/s: Not a directory" file/s
    refused 64 "--save must be the name of a file" train --save= never
    unwritable 1 "/proc/s.new: " /proc/s
    unwritable 1 ": File name too long" "$(printf '%0252d' 0)"
    unwritable 64 "folder: is not a regular file" folder
    unwritable 64 "never: is an input" never
    mkfifo pipe
    unwritable 64 "pipe: is not a regular file" pipe
    unwritable 64 "file: exists already" file
    [ -z "$(ls folder)" ]
}

@test "a folder without write permission is reported before anything is read" {
    [ "$(id -u)" -ne 0 ] || skip "root writes everywhere"
    mkfifo never
    mkdir folder
    chmod a-w folder
    unwritable 1 "folder/s: Permission denied" folder/s
}

@test "files next to the checkpoint are not written, followed or removed" {
    mkfifo never
    echo precious >victim
    # Not even if it is the checkpoint under another name.
    train --save=old --steps=1 x.pks >out
    cp old kept
    local way before
    for way in "ln -s victim" "ln victim" "cp victim" "ln old" \
        "ln -s nowhere" mkdir mkfifo; do
        $way s.new
        before=$(stat -c '%F %i %s' s.new)
        unwritable 1 "s.new: needed as the temporary file of s, but exists\
 and is not a temporary file: rename or remove it" s
        [ "$(stat -c '%F %i %s' s.new)" = "$before" ]
        [ ! -f s.new ] || cmp -s s.new victim || cmp s.new old
        rm -r s.new
    done
    cmp old kept
    absent nowhere
    [ "$(cat victim)" = precious ]
}

@test "a file created next to the checkpoint during a run is not followed" {
    echo precious >victim
    stalled
    ln -sf victim part.new
    exec 7>&-
    ends 65 "$pid"
    grep -q "part.new: changed or removed by another program" err
    [ "$(cat victim)" = precious ]
    [ -L part.new ]
    [ ! -e part ]
}

@test "the temporary file of a killed run is removed" {
    train --save=s --steps=2 x.pks >out
    head -c 5000 s >left
    rm s
    for size in 5000 8 3 0; do
        head -c $size left >s.new
        train --save=s --steps=2 x.pks >out
        [ ! -e s.new ]
        rm s
    done
}

@test "the temporary file of another running process is left alone" {
    skip_without python3
    mkfifo never locked
    : >s.new
    python3 -c '
import fcntl, time
file = open("s.new", "r+")
fcntl.lockf(file, fcntl.LOCK_EX)
open("locked", "w").close()
time.sleep(60)' &
    pid=$!
    : <locked
    unwritable 1 "s: locked: another job is saving its state here" s
    [ -e s.new ]
    kill "$pid"
    wait "$pid" || true
    train --save=s --steps=2 x.pks >out
}

@test "an input cannot be used as a checkpoint" {
    cp x.pks s.new
    refused 64 "s.new: is an input" train --save=s s.new
    refused 64 "s.new: is an input" train --save=s <s.new
    refused 64 "s.new: is an input" train --save=./s x.pks "$PWD/s.new"
    ln x.pks y.pks
    refused 64 "y.pks: is an input" train --save=y.pks x.pks
    refused 64 "y.pks: is an input" train --save=y.pks --resume <x.pks
    refused 64 "later: is an input" train --save=later x.pks later
    refused 64 "s.new: is an input" train --save=s x.pks s.new
    cmp x.pks s.new
    cmp x.pks y.pks
}
