#!/bin/sh
# check.sh PROGRAM...
#
# Runs tests of kernels in five orders of threads and streams, in one order with
# sanitizers, and prints how many tests passed in each.  One order has large
# sizes, the others small ones, unless LONG is set; numbers read back from the
# device are bit-identical in all of these.
#
# SPDX-License-Identifier: MIT

set -eu

dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT

# run PROGRAM ORDER [quick]
run() {
    long=1
    [ -z "${3-}" ] || long=
    if ! LONG=$long HOSTCUDA_ORDER=$2 HOSTCUDA_STREAMS=$2 \
        TSAN_OPTIONS=halt_on_error=1 "./$1" >"$dir/out" 2>&1; then
        grep -v '^ok' "$dir/out" >&2 || true
        echo "$1, order $2: failed" >&2
        exit 1
    fi
    echo "$1, order $2${3:+, $3}: $(grep -c '^ok' "$dir/out") passed"
    sed -n "s/^# bits/${3:-all}/p" "$dir/out" >>"$dir/bits"
}

for program in "$@"; do
    : >"$dir/bits"
    case $program in
        *-tsan-t | *attention-asan-t | *graphs-asan-t | *packed-asan-t | \
            *attention-bytes-t | *gradient-t)
            run "$program" 1 quick
            ;;
        *-asan-t | *bytes-t) run "$program" 1 ;;
        *attention* | *graphs* | *rows* | *packed*)
            run "$program" forward
            for order in reverse 1 2 3; do
                run "$program" "$order" quick
            done
            ;;
        *)
            for order in forward reverse 1 2 3; do
                run "$program" "$order"
            done
            ;;
    esac
    if [ "$(sort -u "$dir/bits" | cut -d ' ' -f 1 | uniq -d)" ]; then
        echo "$program: the bits depend on the order" >&2
        exit 1
    fi
done
