#!/bin/sh
# live-plot.sh - draws, while packstream works, how much of its packs is
# padding: a bar for each line of --stats=json --every=N.
#
#     packstream -L 512 --stats=json --every=1000 corpus.tok 2>&1 >corpus.pks |
#         examples/live-plot.sh
#
# A bar tells of the packs since the line before: ten characters are a percent.
#
# SPDX-License-Identifier: MIT

exec awk '
# The number behind a key; 0 where there is none.
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

# Messages that are no figures.
!/^{/'
