#!/bin/sh
# memory-long.sh - so many gigabytes through a bound of memory.
#
#     memory-long.sh [GIGABYTES [MEBIBYTES [OPTION]...]]
#
# from the folder in which the tests were built packs 10 GB of u16 records
# under -M 64Mi, with the options or else those of the defaults for 512 tokens,
# and prints the peak of memory in KiB.  Fails if that is above the bound and
# the 4 MiB of packstream(1), or if a pack stream that is not whole came out.
#
# SPDX-License-Identifier: MIT

set -eu

gigabytes=${1:-10}
most=${2:-64}
[ $# -lt 1 ] || shift
[ $# -lt 1 ] || shift
[ $# -gt 0 ] || set -- -L 512 -d 16 -w 16384 --zstd=1

here=$(dirname "$0")
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

mkfifo "$folder/packs"
packstat --verify --json "$folder/packs" >"$folder/verified" &
tests/bench/gen --bytes="${gigabytes}000000000" |
    python3 "$here/support/memory.py" --whole packstream -q -M "${most}Mi" "$@" \
        -o "$folder/packs" >"$folder/peak"
wait $!
peak=$(cat "$folder/peak")
echo "$gigabytes GB through -M ${most}Mi: at most $peak KiB"
[ "$peak" -le $((most * 1024 + 4096)) ]
