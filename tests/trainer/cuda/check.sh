#!/bin/sh
# check.sh PROGRAM...
#
# Runs tests of kernels in five orders of threads and streams, in one order under
# sanitizers, and says how many tests passed in each.  The numbers that come
# back from the device are the same bits in every order.
#
# SPDX-License-Identifier: MIT

set -eu

dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT

# run PROGRAM ORDER [ARGUMENT...]
run() {
    program=$1 order=$2
    shift 2
    if ! HOSTCUDA_ORDER=$order HOSTCUDA_STREAMS=$order \
        TSAN_OPTIONS=halt_on_error=1 "./$program" "$@" >"$dir/out" 2>&1; then
        grep -v '^ok' "$dir/out" >&2 || true
        echo "$program, order $order: failed" >&2
        exit 1
    fi
    echo "$program, order $order: $(grep -c '^ok' "$dir/out") passed"
    grep '^# bits' "$dir/out" >>"$dir/bits" || true
}

for program in "$@"; do
    : >"$dir/bits"
    case $program in
    *-tsan-t | *attention-asan-t | *attention-bytes-t)
        run "$program" 1 quick
        ;;
    *-asan-t | *bytes-t | *gradient-t) run "$program" 1 ;;
    *)
        for order in forward reverse 1 2 3; do
            run "$program" "$order"
        done
        ;;
    esac
    if [ "$(sort -u "$dir/bits" | wc -l)" -gt 1 ]; then
        echo "$program: the bits depend on the order" >&2
        exit 1
    fi
done
