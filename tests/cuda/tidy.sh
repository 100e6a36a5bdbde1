#!/usr/bin/env bash
# tidy.sh - runs clang-tidy on CUDA sources, with the headers of tests/hostcuda.
#
#     tests/cuda/tidy.sh FILE...
#
# CLANG_TIDY names another clang-tidy.  Disabled are the checks for narrowing
# and widening conversions, which -Wconversion and reviews cover, and for
# adjacent parameters of one type, which kernels have.
#
# Exits with 0 if nothing was found, 77 without clang-tidy, otherwise with 1.
#
# SPDX-License-Identifier: MIT

set -u
export LC_ALL=C

top=$(cd "$(dirname "$0")/../.." && pwd -P)
tidy=${CLANG_TIDY:-clang-tidy}
checks='-*,clang-analyzer-*,bugprone-*,performance-*'
for name in easily-swappable-parameters narrowing-conversions \
    implicit-widening-of-multiplication-result; do
    checks+=,-bugprone-$name
done

[ $# -gt 0 ] || {
    echo "usage: tidy.sh FILE..." >&2
    exit 64
}
command -v "$tidy" >/dev/null || {
    echo "tidy.sh: nothing is done: there is no $tidy" >&2
    exit 77
}
status=0
for file; do
    "$tidy" --quiet --checks="$checks" --warnings-as-errors='*' "$file" -- \
        -x c++ -std=c++17 -I"$top/tests/hostcuda" -I"$top/trainer" \
        -I"$top/src" -I"$top/src/include" 2> >(grep -v ' warnings\? generated' >&2) ||
        status=1
done
exit "$status"
