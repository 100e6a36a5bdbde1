#!/bin/sh
# engine.sh - what the engine reaches, and what it costs:
#
#   tests/bench/engine.sh BUILD_DIR [PICTURE]
#
# Prints five tables, each of SEQUENCES (2000000) sequences a row, the flush
# at the end included:
#
#   1. efficiency, delay and speed on random streams, next to what is wanted
#   2. streams in an order that is hard to pack, against best fit decreasing
#      on blocks as long as the window; and equal lengths
#   3. time per pack as the capacity grows
#   4. efficiency, delay and speed as the window grows; PICTURE
#      (BUILD_DIR/tests/bench/engine.svg) shows it as a curve
#   5. policies and orders next to each other
#
# The histograms wikipedia-bert-512.hist and squad-1.1-384.hist, published
# with arXiv 2107.02027, are taken from the folder SHARED_DATA, or
# ../shared/data beside the source tree; what needs them is left out where
# they are missing.  tests/support/lengths.h says what lognormal and heavy are; short
# ones are lognormal with a mean of 20.
#
# Exits with 1 if an efficiency or a delay is not what is wanted.  Speeds are
# only printed: they are this machine's, in processor time of one core.  Not
# part of `make check`; `make bench` runs it.
#
# SPDX-License-Identifier: MIT

set -eu
LC_ALL=C
export LC_ALL

build=${1:?usage: engine.sh BUILD_DIR [PICTURE]}
picture=${2:-$build/tests/bench/engine.svg}
engine=$build/tests/bench/engine
sequences=${SEQUENCES:-2000000}
here=$(cd "$(dirname "$0")" && pwd)
data=${SHARED_DATA:-$here/../../../shared/data}
wikipedia=$data/wikipedia-bert-512.hist
squad=$data/squad-1.1-384.hist
windows='64 128 256 512 1024 2048 4096 8192 16384'
capacities='512 1024 2048 4096 8192 16384 32768 65536 131072'

if [ ! -x "$engine" ]; then
    echo "engine.sh: $engine is not there; \`make bench\` makes it" >&2
    exit 1
fi

work=$(mktemp -d "${TMPDIR:-/tmp}/engine-bench.XXXXXX")
trap 'rm -rf "$work"' EXIT
trap 'exit 1' HUP INT TERM

# measure SOURCE CAPACITY DEPTH WINDOW [OPTION...]: the line of numbers, in
# $work/row too.
measure() {
    source=$1 capacity=$2 depth=$3 window=$4
    shift 4
    "$engine" --source="$source" --capacity="$capacity" --depth="$depth" \
        --window="$window" --sequences="$sequences" "$@"
}

missed() {
    echo "$*" >>"$work/missed"
}

# has SOURCE: false, and says so once, if it is a file that is missing.
has() {
    case $1 in
        /*) ;;
        *) return 0 ;;
    esac
    [ ! -r "$1" ] || return 0
    if ! grep -qxF "$1" "$work/missing" 2>/dev/null; then
        echo "No $(basename "$1") in \$SHARED_DATA: left out."
        echo "$1" >>"$work/missing"
    fi
    return 1
}

# ---- 1. Random streams ----

# wanted NAME SOURCE CAPACITY DEPTH WINDOW LEAST AIM DELAY: a row; LEAST is
# the efficiency, DELAY the most windows, "-" where none is stated.
wanted() {
    has "$2" || return 0
    measure "$2" "$3" "$4" "$5" >"$work/row"
    awk -v name="$1" -v depth="$4" -v window="$5" -v least="$6" -v aim="$7" \
        -v most="$8" '{
            good = $1 >= least && (most == "-" || $5 <= most)
            printf "%-15s %4s %6s %7s %6s %8s %8s %7s %6s%s\n", name, depth,
                window, least, aim, $1, $2, $5, $6, good ? "" : "  missed"
            exit !good
        }' "$work/row" || missed "$1, D $4, W $5"
}

print_random() {
    echo "Random streams of $sequences sequences.  Delay is the most records"
    echo 'between a sequence and its leaving, in windows; speed is millions'
    echo 'of sequences per second.'
    echo
    printf '%-15s %4s %6s %7s %6s %8s %8s %7s %6s\n' input D W wanted aim \
        reached bound delay speed
    wanted Wikipedia-512 "$wikipedia" 512 3 1024 99.60 99.75 2
    wanted Wikipedia-512 "$wikipedia" 512 3 4096 99.83 99.86 2
    wanted Wikipedia-512 "$wikipedia" 512 3 16384 99.85 99.88 2
    wanted Wikipedia-512 "$wikipedia" 512 4 256 99.90 99.95 2
    wanted Wikipedia-512 "$wikipedia" 512 16 1024 99.95 99.99 2
    wanted SQuAD-384 "$squad" 384 3 4096 98.60 98.75 -
    wanted short-512 short 512 64 1024 99.99 - 2
    wanted lognormal-2048 lognormal 2048 64 256 99.99 - -
    wanted lognormal-8192 lognormal 8192 64 1024 99.99 - -
    wanted heavy-131072 heavy 131072 256 1024 99.90 - -
}

# ---- 2. Streams that are hard to pack ----

# hard NAME SOURCE CAPACITY DEPTH WINDOW: a row for each order.
hard() {
    has "$2" || return 0
    for shape in ascending descending alternating drifting bursty; do
        measure "$2" "$3" "$4" "$5" --shape=$shape --bfd=1 --bound=0 \
            >"$work/row"
        awk -v name="$1" -v depth="$4" -v window="$5" -v shape=$shape '{
            good = $1 - $3 >= -0.1
            printf "%-15s %4s %6s  %-11s %8s %8s %8.3f %6s%s\n", name, depth,
                window, shape, $1, $3, $1 - $3, $5, good ? "" : "  missed"
            exit !good
        }' "$work/row" || missed "$1, D $4, W $5, $shape"
    done
}

# equal LENGTH BEST: a row for sequences of one length, BEST in a pack.
equal() {
    measure "=$1" 512 64 1024 --bound=0 >"$work/row"
    awk -v name="all of $1" -v best="$2" -v sequences="$sequences" \
        -v capacity=512 -v length_="$1" '{
        packs = int((sequences + best - 1) / best)
        most = sprintf("%.3f", 100 * sequences * length_ / packs / capacity)
        printf "%-15s %4s %6s  %-11s %8s %8s %8.3f %6s%s\n", name, 64,
            1024, "equal", $1, most, $1 - most, $5,
            $8 == packs ? "" : "  missed"
        exit $8 != packs
    }' "$work/row" || missed "all of $1"
}

print_hard() {
    echo
    echo 'Hard streams, against best fit decreasing on blocks of W; equal'
    echo 'lengths, L 512, against the optimum.'
    echo
    printf '%-15s %4s %6s  %-11s %8s %8s %8s %6s\n' input D W order reached \
        blocks more delay
    hard Wikipedia-512 "$wikipedia" 512 3 1024
    hard Wikipedia-512 "$wikipedia" 512 16 1024
    hard SQuAD-384 "$squad" 384 3 1024
    hard lognormal-2048 lognormal 2048 64 256
    hard heavy-131072 heavy 131072 256 1024
    equal 257 1
    equal 512 1
    equal 1 64
}

# ---- 3. Capacity ----

# cost CAPACITY DEPTH: nanoseconds per pack.  What takes longer is done less
# often, though not so seldom that the first window weighs.
cost() {
    n=$((sequences * 1024 / $1))
    [ "$n" -ge 50000 ] || n=50000
    [ "$n" -le "$sequences" ] || n=$sequences
    measure lognormal "$1" "$2" 1024 --bound=0 --sequences="$n" | cut -f 7
}

print_capacity() {
    echo
    echo 'Time per pack, lognormal lengths with a median of L / 8, W 1024;'
    echo 'picoseconds per token of L.'
    echo
    printf '%8s %12s %10s %12s %10s\n' L 'D 3, ns' 'ps/token' 'D 64, ns' \
        'ps/token'
    for capacity in $capacities; do
        three=$(cost "$capacity" 3)
        many=$(cost "$capacity" 64)
        awk "BEGIN { printf \"%8d %12d %10d %12d %10d\\n\", $capacity,
            $three, 1000 * $three / $capacity, $many,
            1000 * $many / $capacity }"
    done
}

# ---- 4. The window ----

# curve DEPTH: lines of window, efficiency, delay in windows, speed.
curve() {
    for window in $windows; do
        measure "$curved" 512 "$1" "$window" --bound=0 |
            awk -v window="$window" '{ print window, $1, $5, $6 }'
    done >"$work/curve.$1"
}

print_window() {
    for depth in 3 4 16; do
        curve $depth
    done
    bound=$(measure "$curved" 512 3 64 | cut -f 2)
    echo
    echo "The window: $curved_name, a bound of $bound at D 3."
    echo
    printf '%6s |%8s %6s %6s |%8s %6s %6s |%8s %6s %6s\n' '' 'D 3' '' '' \
        'D 4' '' '' 'D 16' '' '' W percent delay speed percent delay speed \
        percent delay speed
    paste -d ' ' "$work/curve.3" "$work/curve.4" "$work/curve.16" |
        while read -r w a b c _ d e f _ g h i; do
            printf '%6s |%8s %6s %6s |%8s %6s %6s |%8s %6s %6s\n' "$w" \
                "$a" "$b" "$c" "$d" "$e" "$f" "$g" "$h" "$i"
        done
}

# The percentage of padding against the window, both on scales of powers.
draw_window() {
    awk -v name="$curved_name" -v bound="$bound" '
    function x(window) { return 70 + (log(window) / log(2) - 6) * 62.5 }
    function y(padding) {
        if (padding < 0.001)
            padding = 0.001
        return 30 + (1 - log(padding) / log(10)) * 90
    }
    function text(at_x, at_y, anchor, what) {
        printf "<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"%s\">%s</text>\n",
            at_x, at_y, anchor, what
    }
    function line(x1, y1, x2, y2, colour, dash) {
        printf "<line x1=\"%.1f\" y1=\"%.1f\" x2=\"%.1f\" y2=\"%.1f\"" \
            " stroke=\"%s\"%s/>\n", x1, y1, x2, y2, colour,
            dash == "" ? "" : " stroke-dasharray=\"" dash "\""
    }
    function legend(row, colour, dash, what) {
        line(450, 28 + 18 * row, 480, 28 + 18 * row, colour, dash)
        text(488, 32 + 18 * row, "start", what)
    }
    BEGIN {
        colour[3] = "#b3262a"; colour[4] = "#1f6f8b"; colour[16] = "#3b7d23"
        print "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"600\"" \
            " height=\"460\" font-family=\"sans-serif\" font-size=\"13\">"
        print "<rect width=\"600\" height=\"460\" fill=\"white\"/>"
        for (power = 1; power >= -3; power--) {
            line(70, y(10 ^ power), 570, y(10 ^ power), "#ddd", "")
            text(62, y(10 ^ power) + 4, "end", (10 ^ power) "%")
        }
        for (power = 6; power <= 14; power++) {
            line(x(2 ^ power), 30, x(2 ^ power), 390, "#eee", "")
            text(x(2 ^ power), 408, "middle", 2 ^ power)
        }
        text(320, 435, "middle", "window, sequences")
        text(70, 18, "start", "padding, " name)
        line(70, y(100 - bound), 570, y(100 - bound), colour[3], "5 4")
        legend(1, colour[3], "5 4", "bound, D 3")
    }
    FNR == 1 {
        if (depth != "")
            print "\"/>"
        depth = FILENAME
        sub(/.*\./, "", depth)
        printf "<polyline fill=\"none\" stroke=\"%s\" stroke-width=\"2\"" \
            " points=\"", colour[depth]
    }
    { printf "%.1f,%.1f ", x($1), y(100 - $2) }
    END {
        print "\"/>"
        legend(2, colour[3], "", "D 3")
        legend(3, colour[4], "", "D 4")
        legend(4, colour[16], "", "D 16")
        print "</svg>"
    }' "$work/curve.3" "$work/curve.4" "$work/curve.16" >"$picture"
    echo
    echo "$picture shows the padding."
}

# ---- 5. Policies and orders ----

# compared POLICY ORDER: a row.
compared() {
    measure "$curved" 512 3 1024 --bound=0 --policy="$1" --order="$2" |
        awk -v policy="$1" -v order="$2" '{
            printf "%-8s %-8s %8s %6s %7s %5s\n", policy, order, $1, $5, $6, $9
        }'
}

print_policies() {
    echo
    echo "Policies and orders: $curved_name, D 3, W 1024.  Burst is the most"
    echo 'packs that left after one record.'
    echo
    printf '%-8s %-8s %8s %6s %7s %5s\n' policy order percent delay speed \
        burst
    for policy in auto nnlshp bestfit spfhp concat nextfit none; do
        compared $policy window
    done
    for order in input shuffle; do
        compared auto $order
    done
}

# What tables 4 and 5 are about.
curved=$wikipedia curved_name='Wikipedia, L 512'
if [ ! -r "$wikipedia" ]; then
    curved=lognormal curved_name='lognormal, L 512'
fi
print_random
print_hard
print_capacity
print_window
draw_window
print_policies
if [ -e "$work/missed" ]; then
    echo
    sed 's/^/Missed: /' "$work/missed"
    exit 1
fi
