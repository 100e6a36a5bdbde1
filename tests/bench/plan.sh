#!/bin/sh
# plan.sh - how packplan compares with the published method, and scales:
#
#   tests/bench/plan.sh BUILD_DIR [FILE CAPACITY [ROUNDS]]
#
# FILE is a histogram; the default is 10^6 lognormal lengths for 512 tokens.
# First compares `packplan -a nnlshp -d 3` with the published method, as
# implemented in plan.py with scipy's non-negative least squares: ROUNDS (3)
# times in turn, each time 50 plans and then the method once, which takes a
# minute or so, so that a noisy machine affects both alike.  Prints the packs of
# both, the median times and their ratio, and the median times of the other
# algorithms.  Only solving is timed, not reading and listing.
#
# Then prints time and peak memory of each algorithm as lengths and depths grow:
# CAPACITIES (512 2048 8192 32768 131072), DEPTHS (3 8 64) and SEQUENCES (10^6)
# can be set in the environment.  "bound" is a whole run of packplan with the
# bound and lpfhp; memory is always that of the whole program.
#
# PYTHON (python3) runs plan.py; without numpy and scipy the first part is
# skipped.  Not part of `make check`; `make bench` runs it.
#
# SPDX-License-Identifier: MIT

set -eu

build=${1:?usage: plan.sh BUILD_DIR [FILE CAPACITY [ROUNDS]]}
file=${2-}
capacity=${3:-512}
rounds=${4:-3}
python=${PYTHON:-python3}
capacities=${CAPACITIES:-512 2048 8192 32768 131072}
depths=${DEPTHS:-3 8 64}
sequences=${SEQUENCES:-1000000}
plans_per_round=50
algorithms='greedy ffd bfd spfhp lpfhp nnlshp ennlshp'
script=$(dirname "$0")/plan.py

if [ -n "$file" ] && [ $# -lt 3 ]; then
    echo 'plan.sh: FILE needs its CAPACITY' >&2
    exit 64
fi

work=$(mktemp -d "${TMPDIR:-/tmp}/packplan-bench.XXXXXX")
trap 'rm -rf "$work"' EXIT
trap 'exit 1' HUP INT TERM

# The programs themselves, not libtool's wrappers.
PATH=$build/.libs:$build:$PATH
LD_LIBRARY_PATH=$build/.libs
# Both contenders use one processor.
OPENBLAS_NUM_THREADS=1
OMP_NUM_THREADS=1
export PATH LD_LIBRARY_PATH OPENBLAS_NUM_THREADS OMP_NUM_THREADS

median() {
    sort -n | awk '{ t[NR] = $1 } END { print t[int((NR + 1) / 2)] }'
}

# plan ALGORITHM DEPTH CAPACITY FILE: packs and seconds.
plan() {
    packplan -L "$3" -d "$2" -a "$1" --no-bound --tsv "$4" >"$work/run"
    awk -F '\t' 'NR == 2 { print $3, $8 }' "$work/run"
}

# ---- The published method ----

plan_often() {
    i=0
    while [ "$i" -lt "$plans_per_round" ]; do
        for a in $algorithms; do
            plan "$a" 3 "$capacity" "$file" >>"$work/ours.$a"
        done
        i=$((i + 1))
    done
}

measure_method() {
    round=0
    plan_often
    while [ "$round" -lt "$rounds" ]; do
        "$python" "$script" nnls "$capacity" "$file" >>"$work/method"
        plan_often
        round=$((round + 1))
    done
}

# row NAME FILE: packs and median of its seconds, and how they compare.
row() {
    packs=$(tail -n 1 "$2" | cut -d ' ' -f 1)
    cut -d ' ' -f 2 "$2" | median |
        awk -v name="$1" -v packs="$packs" -v method="$method" '{
            printf "%-10s %12s %14.1f %12.1f\n", name, packs, 1e6 * $1,
                method / $1
        }'
}

print_method() {
    method=$(cut -d ' ' -f 2 "$work/method" | median)
    bound=$(packplan -L "$capacity" -d 3 -a lpfhp --tsv "$file" |
        awk -F '\t' 'NR == 2 { print $9 }')
    printf 'capacity %s, depth 3, %s strategies to choose from, bound %s\n' \
        "$capacity" "$(tail -n 1 "$work/method" | cut -d ' ' -f 3)" "$bound"
    printf '%-10s %12s %14s %12s\n' '' packs microseconds 'times faster'
    row published "$work/method"
    for a in $algorithms; do
        row "$a" "$work/ours.$a"
    done
}

# ---- Growth ----

# grow ALGORITHM DEPTH CAPACITY: a line of the table.
grow() {
    case $1 in
        bound) set -- lpfhp "$2" "$3" bound ;;
        *) set -- "$1" "$2" "$3" "$1" --no-bound ;;
    esac
    "$python" "$script" peak packplan -L "$3" -d "$2" -a "$1" --tsv ${5+"$5"} \
        "$work/$3" >"$work/run"
    awk -v capacity="$3" -v depth="$2" -v name="$4" '
        NR == 1 { kib = $1; all = $2 }
        NR == 3 {
            printf "%8s %6s  %-10s %12s %12.6f %10d\n", capacity, depth,
                name, name == "bound" ? $9 : $3,
                name == "bound" ? all : $8, kib
        }' "$work/run"
}

print_growth() {
    printf '\n%8s %6s  %-10s %12s %12s %10s\n' capacity depth algorithm \
        packs seconds KiB
    for c in $capacities; do
        "$python" "$script" lognormal "$c" "$sequences" >"$work/$c"
        for d in $depths; do
            for a in $algorithms bound; do
                grow "$a" "$d" "$c"
            done
        done
    done
}

printf '%s processors, %s, %s rounds\n\n' "$(getconf _NPROCESSORS_ONLN)" \
    "$(uname -sm)" "$rounds"
if "$python" -c 'import numpy, scipy' 2>"$work/why"; then
    if [ -z "$file" ]; then
        file=$work/histogram
        "$python" "$script" lognormal "$capacity" "$sequences" >"$file"
    fi
    measure_method
    print_method
else
    echo 'No numpy or no scipy: the published method is left out.'
fi
print_growth
