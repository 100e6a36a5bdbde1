#!/usr/bin/env bash
# pipe.sh - what packstream costs in a pipe, measured beside cat.
#
#     pipe.sh [-b BYTES] [-r ROUNDS] [-H HISTOGRAM] [BUILD_DIR]
#
# Times `cat FILE | X | cat >/dev/null` with cat and with packstream as X, in
# turns, on BYTES (a billion) of raw u16 records that lie in memory; prints
# the medians of ROUNDS (9), their ratio, and the resident memory that
# packstream takes for a tenth of the records and for all of them.  Lengths
# are those of HISTOGRAM, or as tests/bench/gen draws them.  `make bench`
# runs it.
#
# Exits with 1 if packstream takes more than 3 times as long as cat.
#
# SPDX-License-Identifier: MIT

set -eu -o pipefail
export LC_ALL=C

usage() {
    echo "usage: $0 [-b BYTES] [-r ROUNDS] [-H HISTOGRAM] [BUILD_DIR]" >&2
    exit 64
}

bytes=1000000000
rounds=9
limit=3
lengths=()
while getopts b:r:H: option; do
    case $option in
        b) bytes=$OPTARG ;;
        r) rounds=$OPTARG ;;
        H) lengths=("--hist=$OPTARG") ;;
        *) usage ;;
    esac
done
shift $((OPTIND - 1))
[ $# -le 1 ] || usage

source=$(cd "$(dirname "$0")" && pwd)
build=$(cd "${1-$source/../../build}" && pwd)
gen=$build/tests/bench/gen
if [ ! -x "$gen" ] || [ ! -x "$build/packstream" ]; then
    echo "$0: $build holds no packstream and no tests/bench/gen;" \
        "\`make bench\` there makes both" >&2
    exit 1
fi
# The program proper, not libtool's wrapper, as the tests have it.
export PATH=$build/.libs:$build:$PATH LD_LIBRARY_PATH=$build/.libs

# Room in memory, where there is enough: a disk would be measured instead.
place=${TMPDIR-/tmp}
if [ -d /dev/shm ] && [ -w /dev/shm ]; then
    free=$(df -Pk /dev/shm | awk 'NR == 2 { print $4 }')
    [ $((free / 2)) -lt $((bytes / 1024)) ] || place=/dev/shm
fi
dir=$(mktemp -d "$place/packstream-bench.XXXXXX")
trap 'rm -rf "$dir"' EXIT
file=$dir/records

pack() {
    packstream -L 512 -d 8 "$@"
}

# seconds X...: how long the pipe takes with X in the middle.
seconds() {
    local begin=$EPOCHREALTIME
    # shellcheck disable=SC2002 # the pipe is the point
    cat "$file" | "$@" | cat >/dev/null
    awk "BEGIN { print $EPOCHREALTIME - $begin }"
}

# summary FILE: the median, least and greatest of its lines.
summary() {
    sort -n "$1" | awk '
        { x[NR] = $1 }
        END {
            m = int((NR + 1) / 2)
            median = NR % 2 ? x[m] : (x[m] + x[m + 1]) / 2
            print median, x[1], x[NR]
        }'
}

# report NAME FILE: a line about what was measured.
report() {
    summary "$2" | awk -v name="$1" -v bytes="$bytes" '{
        printf "%-10s  median %.3f s (%.3f to %.3f), %.2f GB/s\n",
            name, $1, $2, $3, bytes / $1 / 1e9 }'
}

# peak BYTES: the resident memory, in KiB, for so many bytes of records.
peak() {
    "$gen" "--bytes=$1" "${lengths[@]}" | PYTHONDONTWRITEBYTECODE=1 \
        python3 "$source/../memory.py" packstream -L 512 -d 8
}

"$gen" "--bytes=$bytes" "${lengths[@]}" >"$file"
bytes=$(wc -c <"$file")
echo "cat FILE | X | cat >/dev/null, $bytes bytes of raw u16 records in" \
    "$place, $(getconf _NPROCESSORS_ONLN) processors, $rounds rounds"
{ pack --stats "$file" >/dev/null; } 2>&1

# They take turns in going first.  The very first run warms up.
seconds cat >/dev/null
for ((round = 0; round < rounds; round++)); do
    if ((round % 2)); then
        seconds cat >>"$dir/cat"
        seconds pack >>"$dir/packstream"
    else
        seconds pack >>"$dir/packstream"
        seconds cat >>"$dir/cat"
    fi
done
report cat "$dir/cat"
report packstream "$dir/packstream"

if command -v python3 >/dev/null && [ -r /proc/self/status ]; then
    echo "resident memory of packstream: $(peak $((bytes / 10))) KiB for a" \
        "tenth, $(peak "$bytes") KiB for all"
fi

read -r with _ < <(summary "$dir/packstream")
read -r without _ < <(summary "$dir/cat")
awk -v a="$with" -v b="$without" -v limit="$limit" 'BEGIN {
    printf "packstream takes %.2f times as long as cat (at most %d wanted)\n",
        a / b, limit
    exit a / b > limit }'
