#!/usr/bin/env bats
# plot.bats - packstream.plot: the numbers that it draws, its output formats,
# and input that it refuses.
#
# It needs matplotlib, in the python3 that PEERS_PYTHON names, or otherwise in
# the one that has numpy.
#
# SPDX-License-Identifier: MIT

load ../support/helpers

setup() {
    start
    skip_if_quick
    python=${PEERS_PYTHON-}
    if [ -z "$python" ]; then
        skip_without_numpy
        python=$PYTHON_NUMPY
        export PYTHONPATH=${abs_top_srcdir:?}/python
    fi
    skip_without_modules "$python" packstream matplotlib
    export MPLCONFIGDIR=$BATS_FILE_TMPDIR/matplotlib
}

plot() {
    "$python" -m packstream.plot "$@"
}

# lines N: N objects of 1 to 400 tokens, most of them short, of 30 sources.
lines() {
    awk -v n="$1" '
    function draw(k) { x = (x * 1103515245 + 12345) % 2147483648
        return int(x / 65536) % k }
    BEGIN {
        x = 7
        for (r = 0; r < n; r++) {
            len = 1 + int((draw(20) + 1) * (draw(400) + 1) / 20)
            s = "1"
            for (i = 1; i < len; i++)
                s = s ",1"
            print "{\"input_ids\":[" s "],\"source\":" int(900 / (draw(900) \
                + 30)) - 2 "}"
        }
    }'
}

@test "bars, steps and curves match the JSON; output formats; bad input" {
    lines 3000 | tokcat -q --from=jsonl >x.tok
    packstream -q -L 512 -d 3 x.tok >x.pks
    packstat -q --json --by=source x.pks >packs
    packstat -q --json x.tok >tokens
    # Most lengths are far below the longest: a logarithmic axis.
    awk 'BEGIN { for (n = 1; n < 2000; n += 1 + int(n * n / 9000)) {
        s = ""; for (i = 0; i < n; i++) s = s " 1"; print s } }' |
        tokcat -q --from=ids | packstat -q --json >skewed
    packstat --histogram x.pks >hist
    packplan -L 512 -d 8,1,2,3,max --json hist >plan
    packdeal -n 4 -b 2 --start=7 --list --json x.pks >deal
    packdeal -n 2 -b 1 --list --json x.pks >long
    cp x.tok a\$b\<c.tok
    packstat -q --json a\$b\<c.tok >named
    plot named >named.svg
    {
        packplan -q -L 512 --json </dev/null
        packplan -q -L 512 -d 2 -a none,sorted --no-bound --json <<<'100 3'
    } >few
    support plot.py packs packs tokens tokens tokens skewed plan plan \
        deal deal deal long forms named sections few refused -
}

@test "docs/choosing.md: the commands that draw" {
    mkdir bin
    printf '#!/bin/sh\nexec "%s" "$@"\n' "$python" >bin/python3
    chmod +x bin/python3
    seq 99 | factor | tokcat -q --from=bytes >corpus.tok
    packstat --histogram corpus.tok >corpus.hist
    PATH=$PWD/bin:$PATH sh -eu <(sed -n '/^    packplan/,/packs.html/p' \
        "${abs_top_srcdir:?}/docs/choosing.md")
    grep -E '>[a-z]+ is [0-9.]+% full' depths.svg
    grep -F ' tokens in ' packs.html
}

@test "messages and exit statuses" {
    # A plot does not replace its input.
    echo 5 3 | packplan -q -L 10 --json >same.svg
    cp same.svg wanted
    run -1 plot same.svg -o same.svg
    cmp same.svg wanted
    # shellcheck disable=SC2034 # refused has it
    local speaker=packstream.plot
    refused 65 'stdin: line 1: not what packstat --json' plot <<<'{}'
    refused 1 "No such file or directory: 'none'" plot none
    refused 64 '-o x.pdf: must end in' plot -o x.pdf
    echo 'raise ImportError("no matplotlib", name="matplotlib")' >matplotlib.py
    PYTHONPATH=$PWD:${PYTHONPATH-} refused 1 \
        'no matplotlib; pip install matplotlib' plot \
        <<<'{"lengths": [[1, 1]], "sequences": 1, "tokens": 1}'
}
