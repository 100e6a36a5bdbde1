#!/usr/bin/env bash
# soak.sh - packs streams whose lengths drift, for a long time, killed and
# resumed again and again, and verifies each.
#
#     tests/soak.sh BUILD_DIR [--minutes=N] [--bytes=N]
#
# In each round a stream of --bytes (200000000) is packed with other options by
# jobs that are killed at random times, until one finishes; then
# `packstat --verify --against` compares the packs with the input.  Prints the
# peak of resident memory of all jobs of a round, sampled 20 times a second.
# Exits with 0 if all rounds were correct.
#
# SPDX-License-Identifier: MIT

set -u
export LC_ALL=C

usage() {
    echo "usage: soak.sh BUILD_DIR [--minutes=N] [--bytes=N]" >&2
    exit 64
}

{ [ -x "${1-}/packstream" ] && [ -x "$1/tests/bench/gen" ]; } || usage
build=$(cd "$1" && pwd -P)
shift
minutes=60
bytes=200000000
for option; do
    case $option in
        --minutes=*) minutes=${option#*=} ;;
        --bytes=*) bytes=${option#*=} ;;
        *) usage ;;
    esac
done
export LD_LIBRARY_PATH=$build/.libs
PATH=$build/.libs:$PATH

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder" || exit 1

# drifting SEED: records whose mean length goes up and down.
drifting() {
    local mean i=0
    for mean in 20 60 180 420 250 90 30 300; do
        "$build/tests/bench/gen" "--bytes=$((bytes / 8))" "--mean=$mean" \
            --longest=512 "--seed=$(($1 * 8 + i))"
        i=$((i + 1))
    done
}

# The options of a round.
options=(
    '-L 512 -d 3 -w 4096'
    '-L 512 -d 16'
    '-L 512 -d 8 --shuffle=5'
    '-L 512 -d 3 --zstd=1 -T3'
    '-L 512 -T3'
    '-L 2048 -d 64 -w 2000'
    '-L 300 -d 8 --overlong=split'
    '-L 512 -d 8 --order=input -T1'
)

# job OPTION...: one try; raises `memory` to its peak in KiB.
job() {
    local pid status=0
    packstream "$@" -q --state=s --state-every=9999 --resume -o out x 2>err &
    pid=$!
    if [ "$tries" -lt 20 ]; then
        (
            sleep "0.0$((RANDOM % 90 + 10))"
            kill -9 "$pid" 2>/dev/null
        ) &
    fi
    while [ -r "/proc/$pid/status" ]; do
        local now
        # Before exec it is a copy of this shell.
        now=$(awk '$1 == "Name:" && $2 != "packstream" { print 0; exit }
            $1 == "VmHWM:" { print $2 }' "/proc/$pid/status" 2>/dev/null)
        [ -n "$now" ] || break
        [ "$now" -le "$memory" ] || memory=$now
        sleep 0.05
    done
    wait "$pid" || status=$?
    wait
    return "$status"
}

# round N: returns 0 if the packs are correct.
round() {
    local status
    # shellcheck disable=SC2206
    local with=(${options[$1 % ${#options[@]}]})
    drifting "$1" >x
    rm -f s out
    tries=0
    memory=0
    while :; do
        status=0
        job "${with[@]}" 2>/dev/null || status=$?
        tries=$((tries + 1))
        [ "$status" -eq 137 ] || break
        kills=$((kills + 1))
    done
    if [ "$status" -ne 0 ]; then
        cat err
        return 1
    fi
    packstat --verify --against=x out >verified || return 1
    printf 'round %d: %s: %d tries, %d KiB, %s\n' "$1" "${with[*]}" \
        "$tries" "$memory" "$(cat verified)"
}

kills=0
rounds=0
end=$((SECONDS + minutes * 60))
while [ "$SECONDS" -lt "$end" ]; do
    round "$rounds" || {
        echo "round $rounds failed" >&2
        exit 1
    }
    rounds=$((rounds + 1))
done
echo "$rounds rounds, $kills kills, $((rounds * bytes)) bytes, all verified"
