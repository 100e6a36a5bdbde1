#!/bin/sh
# ablation.sh - the effect of each constant of the engine:
#
#   tests/bench/ablation.sh BUILD_DIR [NAME...]
#
# For each constant of src/lib/engine/tuning.h, or those named, builds the
# engine with half and with twice its value, packs the streams below with each,
# and prints a line: the name, its value, and for both values the points of
# efficiency lost on average and the most lost on one stream.  Negative: the
# other value is better there.
#
# The build directory has tests/bench/engine (`make tests/bench/engine`).  Takes
# about ten seconds of processor time a value; SEQUENCES (100000) a stream,
# WINDOW (1024).
#
# SPDX-License-Identifier: MIT

set -eu
LC_ALL=C
export LC_ALL

build=$(cd "${1:?usage: ablation.sh BUILD_DIR [NAME...]}" && pwd)
shift
source=$(cd "$(dirname "$0")/../.." && pwd)
tuning=$source/src/lib/engine/tuning.h
sequences=${SEQUENCES:-100000}
window=${WINDOW:-1024}
flags='-std=c11 -O2 -ffp-contract=off -D_GNU_SOURCE'

work=$(mktemp -d "${TMPDIR:-/tmp}/ablation.XXXXXX")
trap 'rm -rf "$work"' EXIT
trap 'exit 1' HUP INT TERM

# Lengths, capacity, depth (0: no cap).
streams() {
    cat <<'EOF'
uniform:1,512 512 0
uniform:1,512 512 4
uniform:300,1900 2048 0
uniform:500,3500 4096 0
uniform:200,900 1024 4
uniform:100,400 512 0
normal:180,40 512 0
normal:250,30 512 0
normal:300,60 1024 0
normal:700,120 2048 3
normal:684,60 2048 0
normal:1350,200 4096 0
lognormal:4,0.6 512 8
lognormal:5,0.8 1024 0
lognormal:5,0.8 1024 5
lognormal:5.5,0.9 2048 6
lognormal:6.5,1.2 4096 0
lognormal:7.5,0.7 8192 5
lognormal:9,0.9 16384 0
mix:0.7*lognormal:5,0.6+0.3*lognormal:7,0.5 4096 8
mix:0.5*normal:350,40+0.3*normal:900,100+0.2*uniform:1,200 2048 4
normal:330,25+normal:130,25 512 0
pareto:200,1.1 16384 0
poisson:90 512 0
geometric:200 1024 5
0.3*=293+0.25*=401+0.2*=683+0.15*=911+0.1*=1367 2048 0
=171+=308+=445+=582+=719+=856+=993+=1130 4096 6
EOF
}

# build_engine FILE: an engine with $work/engine/tuning.h.
build_engine() {
    rm -f "$work"/*.o
    for file in "$source"/src/lib/engine/*.c; do
        # shellcheck disable=SC2086
        ${CC:-cc} $flags -I"$work" -I"$build" -I"$source/src/lib" \
            -I"$source/src/include" -I"$source/src/common" \
            -c "$file" -o "$work/$(basename "$file" .c).o"
    done
    ${CC:-cc} -o "$1" "$work"/*.o "$build"/tests/bench/engine-*.o \
        "$build"/tests/support/bench_engine-*.o "$build/.libs/libcore.a" \
        -lzstd -lxxhash -lm -lpthread
}

# pack ENGINE FILE: the efficiency for each stream.
pack() {
    streams | while read -r lengths capacity depth; do
        "$1" --source="$lengths" --capacity="$capacity" --depth="$depth" \
            --window="$window" --sequences="$sequences" --bound=0 | cut -f1
    done >"$2"
}

mkdir "$work/engine"
cp "$tuning" "$work/engine"
build_engine "$work/base"
pack "$work/base" "$work/base.txt"

names=${*:-$(sed -n 's/^#define \(TUNE_[A-Z_0-9]*\) .*/\1/p' "$tuning")}
for name in $names; do
    value=$(sed -n "s/^#define $name \([^ ]*\).*/\1/p" "$tuning")
    printf '%-24s %-8s' "$name" "$value"
    for factor in 0.5 2; do
        other=$(awk -v v="$value" -v f="$factor" 'BEGIN {
            if (v ~ /[.e]/) printf "%.9e", v * f
            else printf "%d", v * f < 1 ? 1 : v * f }')
        sed "s/^#define $name .*/#define $name $other/" "$tuning" \
            >"$work/engine/tuning.h"
        if build_engine "$work/other" && pack "$work/other" "$work/other.txt"
        then
            paste "$work/base.txt" "$work/other.txt" | awk '
                { d = $1 - $2; sum += d; if (NR == 1 || d > max) max = d }
                END { printf "  %+.4f (%+.3f)", sum / NR, max }'
        else
            printf '  -'
        fi
    done
    echo
done
