#!/bin/sh
# depth.sh - the depth that is chosen next to fixed ones:
#
#   tests/bench/depth.sh BUILD_DIR [WINDOW]...
#
# Prints, for each stream of SEQUENCES (200000) and each WINDOW (256 1024
# 4096 65536), the depth that packstream chooses, the efficiency with it, and
# the best efficiency among the depths 3, 4, 5, 8, 16, 64 and L.  Streams are
# those of tests/bench/engine --source, and the histograms in the folder
# SHARED_DATA, or ../shared/data beside the source tree.  Exits with 1 if one
# is more than 0.02 points worse.
#
# SPDX-License-Identifier: MIT

set -eu
LC_ALL=C
export LC_ALL

build=${1:?usage: depth.sh BUILD_DIR [WINDOW]...}
shift
[ $# -gt 0 ] || set -- 256 1024 4096 65536
engine=$build/tests/bench/engine
here=$(cd "$(dirname "$0")" && pwd)
data=${SHARED_DATA:-$here/../../../shared/data}
missed=0

# measure SOURCE CAPACITY DEPTH WINDOW: efficiency; with depth 0 also the
# depth that was chosen.
measure() {
    "$engine" --source="$1" --capacity="$2" --depth="$3" --window="$4" \
        --sequences="${SEQUENCES:-200000}" --bound=0 | cut -f 1,13
}

# compare SOURCE CAPACITY WINDOW: a row.
compare() {
    [ -r "$1" ] || [ "${1#/}" = "$1" ] || return 0
    for depth in 3 4 5 8 16 64 "$2"; do
        echo "$depth $(measure "$1" "$2" "$depth" "$3")"
    done | sort -k 2,2nr | head -n 1 >"$work/best"
    measure "$1" "$2" 0 "$3" | paste - "$work/best" |
        awk -v source="$(basename "$1")" -v capacity="$2" -v window="$3" '{
            good = $1 >= $4 - 0.02
            printf "%-24s %7s %6s %6s %8s %6s %8s %7.3f%s\n", source,
                capacity, window, $2, $1, $3, $4, $1 - $4,
                good ? "" : "  missed"
            exit !good
        }' || missed=1
}

work=$(mktemp -d "${TMPDIR:-/tmp}/depth-bench.XXXXXX")
trap 'rm -rf "$work"' EXIT
trap 'exit 1' HUP INT TERM

printf '%-24s %7s %6s %6s %8s %6s %8s %7s\n' input L W chosen reached best \
    reached more
for window; do
    compare lognormal:5,1 512 "$window"
    compare lognormal:5,1 1024 "$window"
    compare lognormal:5,1 2048 "$window"
    compare lognormal:5,1 8192 "$window"
    compare lognormal:2.5,1 512 "$window"
    compare lognormal:6,0.3 2048 "$window"
    compare lognormal:4,1.5 4096 "$window"
    compare lognormal:6.5,1.2 8192 "$window"
    compare heavy 8192 "$window"
    compare heavy 131072 "$window"
    compare "$data/wikipedia-bert-512.hist" 512 "$window"
    compare "$data/squad-1.1-384.hist" 384 "$window"
done
exit $missed
