#!/bin/sh
# shards.sh - what small shards of a corpus reach, each packed alone, and with
# the histogram of the corpus (packstream --learn-from):
#
#   tests/bench/shards.sh BUILD_DIR
#
# Prints, for shards of so many sequences drawn at random, the means of 200 to
# 10 shards, of a million sequences at most: the bound, and the efficiency
# alone, with the histogram of a million other sequences, and with that of quite
# another corpus: lengths from 1 to the capacity, equally often.  Takes some
# minutes.  Wikipedia and SQuAD are as in engine.sh.
#
# SPDX-License-Identifier: MIT

set -eu
LC_ALL=C
export LC_ALL

build=${1:?usage: shards.sh BUILD_DIR}
here=$(cd "$(dirname "$0")" && pwd)
data=${SHARED_DATA:-$here/../../../shared/data}

# each SEQUENCES OPTION...: a line of numbers of `engine` for each shard.
each() {
    n=$1
    shift
    shards=$((1000000 / n))
    seed=0
    while [ "$((seed += 1))" -le "$shards" ] && [ "$seed" -le 200 ]; do
        "$build/tests/bench/engine" --sequences="$n" --seed="$seed" "$@"
    done
}

# mean COLUMN, of standard input
mean() {
    awk -v column="$1" '{ sum += $column } END { printf "%.3f", sum / NR }'
}

# rows NAME SOURCE CAPACITY DEPTH WINDOW; depth 0 is no cap.
rows() {
    case $2 in
        /*) [ -r "$2" ] || {
            echo "No $(basename "$2") in \$SHARED_DATA: left out."
            return 0
        } ;;
    esac
    name=$1 capacity=$3 depth=$4 window=$5
    set -- --source="$2" --learn-from="$2" --capacity="$3" --depth="$4" \
        --window="$5"
    [ "$depth" != 0 ] || depth=-
    for n in 1000 10000 100000; do
        alone=$(each "$n" "$@" --learn-from=)
        learned=$(each "$n" "$@" --bound=0)
        other=$(each "$n" "$@" --bound=0 --learn-from="uniform:1,$capacity")
        printf '%-15s %5s %5s %9s %8s %8s %8s %8s\n' "$name" "$depth" \
            "$window" "$n" "$(echo "$alone" | mean 2)" \
            "$(echo "$alone" | mean 1)" "$(echo "$learned" | mean 1)" \
            "$(echo "$other" | mean 1)"
    done
}

printf '%-15s %5s %5s %9s %8s %8s %8s %8s\n' input D W sequences bound alone \
    learned other
rows Wikipedia-512 "$data/wikipedia-bert-512.hist" 512 3 1024
rows Wikipedia-512 "$data/wikipedia-bert-512.hist" 512 3 256
rows Wikipedia-512 "$data/wikipedia-bert-512.hist" 512 0 1024
rows SQuAD-384 "$data/squad-1.1-384.hist" 384 3 1024
rows lognormal-2048 lognormal 2048 0 1024
