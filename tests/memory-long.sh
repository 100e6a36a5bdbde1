#!/bin/sh
# memory-long.sh - packs gigabytes within a memory limit.
#
#     memory-long.sh [GIGABYTES [MEBIBYTES [OPTION]...]]
#
# Run in the folder in which the tests were built, it packs 10 GB of u16 records
# with -M 64Mi, and with the options or otherwise the defaults for 512 tokens,
# and prints the peak of memory in KiB.  Fails if that exceeds the limit by more
# than the 4 MiB of packstream(1), or if the output is not a complete stream.
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
