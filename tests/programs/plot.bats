#!/usr/bin/env bats
# plot.bats - the pages of --plot, against tests/support/plot.py, which turns
# places into values by the ticks of the axes; and bars on a terminal.
#
# SPDX-License-Identifier: MIT

load ../support/helpers

# lines N: objects of 1 to 400 tokens, most of them short, of 30 sources.
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

# bound CAPACITY DEPTH FILE [OPTION]: the fewest packs for what FILE holds.
bound() {
    packstat --histogram "$3" >hist
    packplan -L "$1" -d "$2" -a ffd "${@:4}" --tsv hist | awk 'NR == 2 {
        n = int($9); print n < $9 - 1e-6 ? n + 1 : n }'
}

# lengths FILE: those of raw u16 records, a line each.
lengths() {
    od -An -v -tu2 -w2 "$1" | awk '
        left > 0 { left--; next }
        low == "" { low = $1; next }
        { left = low + 65536 * $1; low = ""; print left }'
}

# sequences LENGTH...: raw u16 records.
sequences() {
    printf '%s\n' "$@" |
        awk '{ for (i = 1; i <= $1; i++) printf "%d ", i; print "" }' |
        tokcat --from=ids --raw
}

# zeros LENGTH...: raw u16 records of zeros, which may be long.
zeros() {
    for n; do
        awk -v n="$n" 'BEGIN { for (i = 0; i < 4; i++) {
            printf "%03o\n", n % 256; n = int(n / 256) } }' |
            while read -r byte; do printf '%b' "\\0$byte"; done
        head -c $((2 * n)) /dev/zero
    done
}

# draws OPTION... FILE: x.svg and x.html of it, and the summary as ever.
draws() {
    packstat -q "${@:1:$#-1}" "${@: -1}" >summary
    for form in svg html; do
        packstat -q --plot=x.$form "$@" >got
        cmp summary got
    done
}

# to_full COMMAND...: with no room for what it prints.
to_full() {
    "$@" >/dev/full
}

setup_file() {
    cd "$BATS_FILE_TMPDIR" || return 1
    lines 3000 | tokcat -q --from=jsonl >many.tok
    packstream -L 512 -d 3 many.tok >many.pks
}

many() {
    skip_without python3
    cp "$BATS_FILE_TMPDIR"/many.* .
}

@test "many packs: bars, axes, lines, the first packs and sources are right" {
    many
    draws --by=source many.pks
    support plot.py packs many.pks "$(bound 512 3 many.pks)" x.svg x.html
}

@test "split sequences, and no bound but that of the tokens" {
    many
    packstream -L 64 -d 64 --overlong=split many.tok >split.pks
    draws split.pks
    support plot.py packs split.pks "$(bound 64 64 split.pks)" x.svg x.html
}

@test "aligned sequences: the room between them is padding" {
    many
    packstream -L 512 -d 9 --align=64 many.tok >x.pks
    draws x.pks
    support plot.py packs x.pks "$(bound 512 9 x.pks --align=64)" x.svg x.html
}

@test "packs of 131,072 tokens: numbers below bars have room" {
    skip_without python3
    zeros 1 2 131000 131071 131072 100000 50000 90000 130000 >x.tok
    packstream -q -L 131072 -a none x.tok >x.pks
    draws x.pks
    support plot.py packs x.pks "$(bound 131072 1 x.pks)" x.svg x.html
    grep -q '>131,072<' x.svg
}

@test "no packs, and one of one sequence" {
    skip_without python3
    packstream -q -L 512 </dev/null >empty.pks
    draws empty.pks
    support plot.py packs empty.pks 0 x.svg x.html
    sequences 37 | packstream -L 512 >one.pks
    draws one.pks
    support plot.py packs one.pks 1 x.svg x.html
}

@test "token records: linear and logarithmic axes, one length, none" {
    skip_without python3
    sequences 3 1 2 7 3 8 1 6 2 4 1 1 3 >small.tok
    sequences 5 7 9 12 20 33 40 41 44 60 100 170 333 1000 9000 >large.tok
    sequences 400 400 >equal.tok
    sequences 1 1 >least.tok
    : >empty.tok
    for name in small large equal least empty; do
        draws $name.tok
        lengths $name.tok >numbers
        support plot.py tokens numbers x.svg x.html
    done
}

@test "a sequence of 20 million tokens" {
    skip_without python3
    sequences 1 1 1 2 2 3 >x.tok
    cp x.tok huge.tok
    printf '\x00\x2d\x31\x01' >>huge.tok
    truncate -s +40000000 huge.tok
    draws huge.tok
    printf '%s\n' 1 1 1 2 2 3 20000000 >numbers
    support plot.py tokens numbers x.svg x.html
}

@test "a page of the deepest packs, and one of many files, is small" {
    skip_without python3
    awk 'BEGIN { for (i = 0; i < 14000; i++) print "1 2 3 4 5 6 7 8 9" }' |
        tokcat --from=ids --raw | packstream -L 640 -d 65 >deep.pks
    draws deep.pks
    support plot.py packs deep.pks 216 x.svg x.html
    cp "$BATS_FILE_TMPDIR"/many.pks .
    packstat -q --plot=x.svg deep.pks many.pks many.pks many.pks many.pks \
        deep.pks >/dev/null
    support plot.py heading deep.pks x.svg
    refused 64 'packstat: --plot is for at most 6 files' packstat -q \
        --plot=x.svg 1 2 3 4 5 6 7
}

@test "a file name that XML cannot hold, and that would be markup" {
    many
    local r bad good
    bad=$'<b>&"\'\x01\t\x7f\xff\xed\xa0\x80\xef\xbf\xbe\xc2\x85\xc3\xa4]]>'
    cp many.pks "$bad"
    r=$'\xef\xbf\xbd'
    good="<b>&\"'$r$r$r$r$r$r$r$r$r$r$r$r"$'\xc3\xa4]]>'
    draws "$bad"
    support plot.py heading "$good" x.svg x.html
    packstat -q --plot=x.html - <many.pks >/dev/null
    support plot.py heading stdin x.html
}

@test "a heading that is too long for a panel ends as the name does" {
    many
    local folder=a-folder-of-shards-with-a-name-that-is-long
    mkdir $folder
    cp many.pks $folder/shard-00017.pks
    draws $folder/shard-00017.pks
    support plot.py heading $folder/shard-00017.pks x.html
    local dots=$'\xe2\x80\xa6'
    support plot.py heading "a-folder-of-sh${dots}s-long/shard-00017.pks" x.svg
    grep -q "<title>$folder/shard-00017.pks</title>" x.svg
    # Letters that are twice as wide.
    local letter=$'\xe8\xaa\x9e'
    local two=$letter$letter
    local six=$two$two$two
    cp many.pks abc$six$six$six
    packstat -q --plot=x.svg abc* >/dev/null
    support plot.py heading "abc$six$dots$six$two$two$letter" x.svg
}

@test "a page appears whole or not at all" {
    many
    echo old >x.svg
    cp x.svg old
    head -c 9000 many.pks >cut.pks
    refused 65 'packstat: cut.pks: ' packstat -q --plot=x.svg many.pks cut.pks
    cmp old x.svg
    refused 1 'packstat: none: ' packstat -q --plot=x.svg none many.pks
    refused 1 'packstat: x.svg: ' packstat -q --plot=x.svg x.svg
    cmp old x.svg
    refused 1 'packstat: none/x.svg.new: ' packstat -q --plot=none/x.svg \
        many.pks
    mkdir folder.svg
    refused 1 'packstat: folder.svg: ' packstat -q --plot=folder.svg many.pks
    ln -s /dev/full full.svg
    refused 1 'packstat: full.svg: No space' packstat -q --plot=full.svg \
        many.pks
    [ ! -e x.svg.new ]
    # Standard output is as important as the page.
    refused 1 'packstat: stdout: ' to_full packstat -q --plot=x.svg many.pks
    cmp old x.svg
    run -1 bash -c 'packstat -q --plot=out.svg many.pks >out.svg'
    [ "$output" = 'packstat: out.svg: cannot take two streams' ]
    ln -s /dev/stdout link.svg
    refused 1 'packstat: link.svg: cannot take two streams' \
        packstat -q --plot=link.svg many.pks
    packstat -q --plot=x.svg --json many.pks | grep '"packs"'
    support plot.py heading many.pks x.svg
}

@test "--plot: the ending says the form, and what it does not go with" {
    for name in x.png svg .svg x.SVG ''; do
        refused 64 "packstat: --plot=$name: must be the name of a file that" \
            packstat --plot="$name" x
    done
    for other in --histogram --verify --quick; do
        refused 64 'packstat: --plot is for a summary or --json' \
            packstat --plot=x.svg $other x
    done
    [ ! -e x.svg ]
}

@test "a range has no displacement" {
    many
    packstat -q --plot=x.svg --range=5:30 many.pks >/dev/null
    grep -q 'a range of a pack stream' x.svg
    grep -q 'The 25 packs' x.svg
    run -1 grep -q 'places late' x.svg
}

@test "packplan: curves of efficiency, of the bound and of what is above it" {
    many
    packstat --histogram many.pks >hist
    for form in svg html; do
        packplan -L 512 -d 8,1,2,3,max --tsv --plot=x.$form hist >table
    done
    support plot.py plan table x.svg x.html
    # Depths of its own, in rising order; the table has them, too.
    packplan -L 512 --plot=x.svg --tsv hist | cut -f2 | uniq | paste -sd' ' >got
    echo 'depth 1 2 3 4 6 8 12 16 max' | diff - got
    grep -q 'Median length' x.svg
}

@test "packplan: pages of one depth, of flat algorithms, of nothing" {
    many
    packstat --histogram many.pks >hist
    packplan -L 512 -d 3 --plot=x.svg hist >/dev/null
    grep -q 'at depth 3 is' x.svg
    packplan -L 512 -a none,sorted --plot=x.svg hist >/dev/null
    grep -q 'sorted is' x.svg
    packplan -L 512 --no-bound --plot=x.html hist >/dev/null
    run -1 grep bound x.html
    # So little that it is no pack by far.
    echo '1 1' >hist1
    packplan -L 16777216 -a spfhp -d max --tsv --plot=y.svg hist1 >/dev/null
    run -1 grep -E '[=" ,]-?(inf|nan)' y.svg
    packplan -q -L 512 --plot=x.html </dev/null >/dev/null
    grep -q 'No sequences: nothing to draw' x.html
    support plot.py heading 'Packs of 512 tokens' x.svg x.html
    cp x.svg old
    refused 1 'packplan: none.hist: ' packplan -L 512 --plot=x.svg none.hist
    echo '513 1' >bad.hist
    refused 65 'packplan: bad.hist: ' packplan -L 512 --plot=x.svg bad.hist
    refused 1 'packplan: stdout: ' to_full packplan -L 512 --plot=x.svg hist
    for other in --plan --scaling; do
        refused 64 'packplan: --plot is for the table' \
            packplan -L 512 -a bfd $other --plot=x.svg hist
    done
    for other in -L512,1024 '-L512 --recommend'; do
        # shellcheck disable=SC2086 # options
        refused 64 'packplan: --plot is for the table of one capacity' \
            packplan $other --plot=x.svg hist
    done
    cmp old x.svg
    [ ! -e x.svg.new ]
}

@test "packdeal: how far the costliest rank is above the mean of a step" {
    many
    for form in svg html; do
        packdeal -n 4 -b 2 --cost=0:1 --list --plot=x.$form many.pks >list
    done
    support plot.py deal many.pks 4 list x.svg x.html
    # Of more steps than there are bins, from one on, and of a single one.
    packdeal -n 2 -b 1 --cost=0:1 --start=7 --list --plot=x.svg many.pks >list
    support plot.py deal many.pks 2 list x.svg
    packdeal -n 40 -b 99 --cost=0:1 --list --plot=x.svg many.pks >list
    support plot.py deal many.pks 40 list x.svg
    # One rank has nothing to wait for.
    packdeal -n 1 -b 1 --cost=0:1 --list --plot=x.svg many.pks >list
    support plot.py deal many.pks 1 list x.svg
    support plot.py heading '1 rank, 1 pack each' x.svg
}

@test "packdeal: a page beside shares, whole or not at all" {
    many
    mkdir pages shares
    packdeal -q -n 2 -b 4 --list --plot=list.svg many.pks >/dev/null
    packdeal -q -n 2 -b 4 -o shares/r%d --plot=pages/x.svg many.pks
    cmp list.svg pages/x.svg
    packstat -q --verify shares/r0 shares/r1
    packdeal -q -n 2 -b 4 --rank=1 --plot=x.svg many.pks >got
    cmp got shares/r1
    cmp list.svg x.svg
    refused 1 'packdeal: stdout: ' to_full packdeal -n 2 -b 1 --list \
        --plot=list.svg many.pks
    refused 1 'packdeal: none/x.svg.new: ' packdeal -q -n 2 -b 1 -o new%d \
        --plot=none/x.svg many.pks
    why=': -o and --plot would both write this file'
    refused 1 "packdeal: new1.svg$why" packdeal -q -n 2 -b 1 -o new%d.svg \
        --plot=./new1.svg many.pks
    echo old >new0.svg.new
    refused 1 "packdeal: new0.svg.new$why" packdeal -q -n 2 -b 1 \
        -o new%d.svg.new --plot=new0.svg many.pks
    [ "$(cat new0.svg.new)" = old ]
    rm new0.svg.new
    mkfifo pipe.svg
    refused 1 "packdeal: pipe.svg$why" packdeal -q -n 2 -b 1 --rank=0 \
        -o pipe.svg --plot=pipe.svg many.pks
    ln -s /dev/full full.svg
    refused 1 'packdeal: full.svg: No space' packdeal -q -n 2 -b 1 -o new%d \
        --plot=full.svg many.pks
    refused 64 'packdeal: --plot: with --steps' packdeal -n 2 -b 1 --steps \
        --plot=x.svg many.pks
    cmp list.svg x.svg
    run -2 ls new* ./*.new
}

@test "joined streams: ids and displacements begin again in each" {
    many
    lines 40 | tokcat -q --from=jsonl | packstream -L 512 -d 3 >less.pks
    cat many.pks less.pks >x.pks
    draws x.pks
    late=$(packstat -q --json x.pks |
        sed 's/.*"max_displacement": \([0-9]*\).*/\1/')
    sed 's/,//g' x.svg | grep "Sequences come at most $late places late"
}

@test "bars are as wide as a terminal, of blocks where its locale has them" {
    many
    for columns in 40 61 120; do
        support plot.py bars $columns ASCII packstat -q many.pks
        grep -qix 'c\.utf-\?8' <(locale -a) || continue
        support plot.py bars $columns UTF-8 packstat -q many.pks
    done
    # Not for a terminal: ASCII, of 80 columns.
    LC_ALL=C.UTF-8 packstat -q many.pks >got
    awk '/\|/ && length > n { n = length } END { exit n != 80 }' got
    run -1 grep -q '[^ -~]' got
}
