#!/usr/bin/env bats
# ranks.bats - several processes train one model together, through MPI.
#
# SPDX-License-Identifier: MIT

# Each test runs in its own process with its own variables; bats sets stderr.
# shellcheck disable=SC2030,SC2031,SC2154

load ../support/helpers
load text
load ranks

setup() {
    start_ranks
}

# training OPTION...: starts three ranks; mpirun's process is "$pid".
training() {
    rm -f part out
    OMPI_MCA_odls_base_sigkill_timeout=10 "$MPIRUN" -n 3 "${small[@]}" \
        --packs=10 --epochs=100000 --save=part "$@" x.pks >out 2>err 3>&- &
    pid=$!
}

# Three packs are fewer than four ranks; with eight a step, one is left at the
# end of an epoch.
@test "two, three and four ranks learn the same as one" {
    skip_without_mpi
    for options in '4 --packs=10' '2 --packs=8 --epochs=2 --dropout=0.3' \
        '4 --packs=3 --steps=20' '3 --packs=5 --attention=dense' \
        '2 --packs=10 --micro-batch=2 --recompute'; do
        # shellcheck disable=SC2086 # a list of options
        set -- $options
        counts=${LONG:+2 3 4}
        counts=${counts:-$1}
        shift
        train "$@" x.pks >one
        for n in $counts; do
            ranks "$n" "${small[@]}" "$@" x.pks >some
            same_curve one some
        done
    done
    train --packs=5 --seed=2 x.pks >other
    run -1 same_curve other some
}

@test "a single process started by mpirun trains as without it" {
    skip_without_mpi
    train --packs=10 --steps=3 x.pks | sed 's/, "seconds.*//' >one
    ranks 1 "${small[@]}" --packs=10 --steps=3 x.pks |
        sed 's/, "seconds.*//' >some
    cmp one some
}

@test "when a rank is killed all end; more or fewer ranks can resume" {
    skip_without_mpi
    training --save-every=1
    eventually has_lines 5 out
    kill -9 "$(pgrep -P "$pid" -f packtrain | tail -n 1)"
    status=0
    wait "$pid" || status=$?
    [ "$status" -ne 0 ]
    grep -q 'exited on signal 9' err
    steps=$(($(number part 32 8) + 8))
    train --packs=10 --epochs=100000 --steps="$steps" x.pks | tail -n 8 >all
    for n in 2 ${LONG:+1 4}; do
        cp part go
        ranks "$n" "${small[@]}" --packs=10 --epochs=100000 --save=go \
            --resume --steps="$steps" x.pks >rest
        same_curve all rest
    done
}

# signalled COMMAND...: the command sends a signal.  The first rank has ten
# seconds to save the last step, for which mpirun waits in any case.
signalled() {
    training
    eventually has_lines 2 out
    "$@"
    status=0
    wait "$pid" || status=$?
    [ "$status" -ne 0 ]
    [ "$(number part 32 8)" -ge "$(wc -l <out)" ]
}

signal_mpirun() {
    kill -TERM "$pid"
}

signal_rank() {
    kill -INT "$(pgrep -P "$pid" -f packtrain | tail -n 1)"
}

# When mpirun signals all ranks, the first is the last one to end.
@test "a signal ends all ranks, and the last step is saved" {
    skip_without_mpi
    signalled signal_mpirun
    signalled signal_rank
    [ "$(grep '^packtrain' err)" = \
        'packtrain: rank 2: stopped by a signal' ]
}

@test "ranks that read different packs end, and one reports it" {
    skip_without_mpi
    cp x.pks 0.pks
    packs --depth=2 >1.pks
    cp x.pks 2.pks
    run ! --separate-stderr ranks 3 sh -c \
        "${small[*]} --packs=10 \$OMPI_COMM_WORLD_RANK.pks"
    [ "$(grep -c '^packtrain: ' <<<"$stderr")" -eq 1 ]
    [[ $stderr = *"packtrain: 0.pks: the ranks read different packs"* ]]
}

@test "a failure that every rank sees is reported once; nothing is lost" {
    skip_without_mpi
    packs --block-packs=8 >y.pks
    head -c 20000 y.pks >cut.pks
    for options in '65 --packs=10 cut.pks' \
        '1 --rate=1000 --warmup=1 --decay=1 --clip=0 x.pks'; do
        # shellcheck disable=SC2086 # a status and a list of options
        set -- $options
        rm -f part
        run "-$1" --separate-stderr ranks 3 "${small[@]}" --save=part "${@:2}"
        [ "$(grep -c '^packtrain: ' <<<"$stderr")" -eq 1 ]
        [[ $stderr = *"packtrain: "@(cut.pks|step *: the loss is not finite)* ]]
        steps=$(number part 32 8)
        [ "$steps" -gt 0 ]
        [ "${#lines[@]}" -eq "$steps" ]
    done
    run -64 --separate-stderr ranks 3 "${small[@]}" --steps=1 \
        --positions=8 x.pks
    [ "$(grep -c '^packtrain: ' <<<"$stderr")" -eq 1 ]
}

@test "if the first rank cannot print, all end, and the step is saved" {
    skip_without_mpi
    run -1 --separate-stderr ranks 3 sh -c \
        "exec ${small[*]} --save=part x.pks >/dev/full"
    [ "$(grep '^packtrain' <<<"$stderr")" = \
        'packtrain: stdout: cannot be written' ]
    [[ $stderr != *MPI_ABORT* ]]
    [ "$(number part 32 8)" -eq 1 ]
}

@test "ranks resumed with different files end with one message" {
    skip_without_mpi
    cp x.pks y.pks
    train --packs=10 --save=part x.pks y.pks --steps=30 >out
    run -64 --separate-stderr ranks 3 "${small[@]}" --packs=10 --save=part \
        --resume x.pks
    [ "$(grep '^packtrain' <<<"$stderr")" = \
        'packtrain: x.pks: fewer files or epochs than in the checkpoint' ]
}

@test "if one rank cannot start, all end" {
    skip_without_mpi
    run ! --separate-stderr ranks 3 sh -c \
        "exec ${small[*]} x.pks\${OMPI_COMM_WORLD_RANK#[02]}"
    [[ $stderr = *"packtrain: x.pks1: No such file or directory"* ]]
    [ -z "$output" ]
}

# told_once: one message, not counting the hint to try --help.
told_once() {
    [ "$(grep '^packtrain: ' <<<"$stderr" | grep -cv -- --help)" -eq 1 ]
}

@test "invalid or differing options are reported once" {
    skip_without_mpi
    for options in --packs=0 --no-such-option --save 'bert.pks --resume'; do
        # shellcheck disable=SC2086 # a list of options
        run -64 --separate-stderr ranks 3 "${small[@]}" $options
        told_once
    done
    # shellcheck disable=SC2016 # for sh
    for options in '--packs=${OMPI_COMM_WORLD_RANK#0} x.pks' \
        '--report=$((OMPI_COMM_WORLD_RANK + 1)) x.pks'; do
        run -64 --separate-stderr ranks 3 sh -c "exec ${small[*]} $options"
        told_once
        [ -z "$output" ]
    done
    [[ $stderr = *"packtrain: the ranks have different options"* ]]
    run -0 --separate-stderr ranks 3 packtrain --help
    [ "$(grep -c '^Usage' <<<"$output")" -eq 1 ]
}

# All of them would write the same checkpoint.
@test "a rank that its launcher's MPI does not connect does not train alone" {
    run -1 --separate-stderr env SLURM_STEP_NUM_TASKS=2 \
        "${small[@]}" x.pks
    [[ $stderr = *"one of several processes, "* ]]
    [ -z "$output" ]
}

@test "without MPI, one of several processes does not train alone" {
    far=${abs_top_builddir:?}/tests/trainer/packtrain-far
    run -1 --separate-stderr env OMPI_COMM_WORLD_SIZE=2 "$far" x.pks
    [[ $stderr = *"started as one of several processes, but built without MPI" ]]
    run -1 env PMI_SIZE=2 "$far" x.pks
    OMPI_COMM_WORLD_SIZE=1 "$far" --hidden=16 --steps=1 x.pks
}
