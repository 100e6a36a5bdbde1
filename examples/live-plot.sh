#!/bin/sh
# live-plot.sh - draws the padding of packs while packstream works: one bar for
# each line of --stats=json --every=N.
#
#     packstream -L 512 --stats=json --every=1000 corpus.tok 2>&1 >corpus.pks |
#         examples/live-plot.sh
#
# A bar shows the packs since the line before: ten characters are one percent.
#
# SPDX-License-Identifier: MIT

exec awk '
# The number after a key; 0 if it is missing.
function number(key) {
    if (!match($0, "\"" key "\": [0-9]+"))
        return 0
    return substr($0, RSTART + length(key) + 4, RLENGTH - length(key) - 4) + 0
}

BEGIN { printf "%12s  %8s\n", "packs", "% full" }

number("packs") > packs {
    places = (number("packs") - packs) * number("capacity")
    full = 100 * (number("tokens") - tokens) / places
    packs = number("packs")
    tokens = number("tokens")
    n = int(10 * (100 - full) + 0.5)
    bar = sprintf("%" (n < 50 ? n : 50) "s", "")
    gsub(/ /, "#", bar)
    printf "%12d  %8.3f  |%s\n", packs, full, bar
    fflush()
}

# Messages without numbers.
!/^{/'
