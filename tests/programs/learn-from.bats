#!/usr/bin/env bats
# learn-from.bats - parts of a corpus, packed separately with the histogram of
# the whole.  tests/lib/packer/learn-from-t.c measures the gain.
#
# SPDX-License-Identifier: MIT

load ../support/helpers

# shellcheck disable=SC2034 # `refused` reads it
speaker='packstream: '

# 4000 sequences in four parts; the second and the fourth are short.
setup_file() {
    cd "$BATS_FILE_TMPDIR" || return
    draw 1000 120 60000 1 | tokcat --from=ids >0.tok
    draw 1000 30 60000 2 | tokcat --from=ids >1.tok
    draw 1000 100 60000 3 | tokcat --from=ids >2.tok
    draw 1000 12 60000 4 | tokcat --from=ids >3.tok
    packstat --histogram ./?.tok >hist
}

setup() {
    start
    ln -s "$BATS_FILE_TMPDIR"/?.tok .
    cp "$BATS_FILE_TMPDIR/hist" .
}

@test "parts can be joined, with or without a histogram, at any depth" {
    for i in 0 1 2 3; do
        packstream -q -L 256 --learn-from=hist -o $i.pks $i.tok
        packstream -q -L 256 -o $i.alone $i.tok
        packstream -q -L 256 -d $((i + 2)) -o $i.capped $i.tok
        run -1 cmp -s $i.alone $i.capped
    done
    cat ./?.tok | packcat --to=ids >wanted
    for kind in pks alone capped; do
        cat ./?.$kind >x
        packstat --verify -q x
        packcat --to=ids x | cmp - wanted
    done
}

@test "the same bytes with and without threads, from a pipe or a file" {
    packstream -q -L 256 --learn-from=hist -T 1 0.tok 1.tok >wanted
    packstream -q -L 256 --learn-from=hist -T 3 0.tok 1.tok | cmp - wanted
    cat 0.tok 1.tok | packstream -q -L 256 --learn-from=<(cat hist) |
        cmp - wanted
    # Lines in any order, with comments.
    { echo '# the corpus'; sort -r hist; } >other
    packstream -q -L 256 --learn-from=other 0.tok 1.tok | cmp - wanted
    # From the LENGTHS of token records.
    cat ./?.tok >all.tok
    packstream -q -L 256 --learn-from=all.tok 0.tok 1.tok | cmp - wanted
    packstream -q -L 256 0.tok 1.tok >x
    run -1 cmp x wanted
}

@test "a stopped job resumes, but not with another histogram" {
    small_blocks 8
    local options=(-q -L 256 -w 100 --state=s --state-every=20)
    packstream -q -L 256 -w 100 --learn-from=hist 0.tok >wanted
    # The input is cut, so the job fails halfway.
    head -c 60000 0.tok >part
    run -65 packstream "${options[@]}" --learn-from=hist -o x.pks part
    [ -s s ]
    cp s before
    sed '1d' hist >other
    refused 64 's: the state was saved with a different '\
'histogram to learn from' \
        packstream "${options[@]}" --resume --learn-from=other -o x.pks 0.tok
    refused 64 's: the state was saved with a histogram to learn from' \
        packstream "${options[@]}" --resume -o x.pks 0.tok
    cmp s before
    packstream "${options[@]}" --resume --learn-from=hist -o x.pks 0.tok
    cmp x.pks wanted
}

# same OVERLONG TEXT OTHER: both histograms are equivalent.  No pack is written
# before the end, so only the header can differ.
same() {
    printf '%b' "$2" >h
    printf '%b' "$3" >other
    packstream -q -L 128 --learn-from=h --overlong="$1" 0.tok >x
    packstream -q -L 128 --learn-from=other --overlong="$1" 0.tok | cmp - x
}

@test "sequences longer than a pack, in the histogram as in the input" {
    same drop '30 5\n128 1\n1000 7\n' '30 5\n128 1\n'
    same truncate '30 5\n129 1\n4294967295 1\n' '30 5\n128 2\n'
    same split '30 5\n256 2\n300 1\n' '30 5\n128 6\n44 1\n'
    run -1 same split '30 5\n300 1\n' '30 5\n128 2\n43 1\n'
}

# bad TEXT WHY [OPTION...]: a histogram is refused, and nothing is written.
bad() {
    printf '%b' "$1" >h
    refused 65 "h: $2" packstream -q -L 64 --learn-from=h -o bad.pks "${@:3}" \
        3.tok
    absent bad.pks
}

@test "a damaged, empty or too large histogram" {
    bad '' 'the histogram is empty, so --learn-from has nothing to learn'
    bad '# none\n\n30 0\n' 'the histogram is empty, so --learn-from has '\
'nothing to learn'
    bad '65 3\n' 'the histogram is empty, so --learn-from has nothing to learn' --overlong=drop
    bad '30 5\n0 1\n' 'line 2: a length must be at least 1'
    bad '30 5\n31' 'line 2: truncated: no newline at the end'
    bad '30 5\nx 3\n' 'line 2: the length is not a number'
    bad '30 5\n\n65 0\n' 'line 3: length 65 exceeds the capacity, 64: use '\
'--overlong=split, truncate or drop'
    bad '1 9223372036854775807\n2 1\n' \
        'line 2: histogram: exceeds 2^63 - 1 sequences'
    bad '64 9223372036854775807\n' \
        'line 1: histogram: exceeds 2^63 - 1 tokens'
    bad '1280 18446744073709551615\n' 'line 1: more than 2^63 - 1 sequences' \
        --overlong=split
    packstream -q -L 64 --overlong=drop -o 0.pks 0.tok
    refused 65 '0.pks: line 1: the length is not a number; this looks like' \
        packstream -q -L 64 --learn-from=0.pks 3.tok
    without_lengths 0.tok >less.tok
    refused 65 'less.tok: the stream that ends at byte' \
        packstream -q -L 64 --learn-from=less.tok 3.tok
    refused 1 'missing: No such file or directory' \
        packstream -q -L 64 --learn-from=missing 3.tok
}

@test "options that cannot be combined" {
    # shellcheck disable=SC2034 # for bad_option
    local program=packstream operands=(3.tok)
    bad_option '--learn-from=-: must be the name of a file' -L 64 \
        --learn-from=-
    bad_option '--learn-from=: must be the name of a file' -L 64 --learn-from=
    for a in spfhp nnlshp bestfit nextfit none concat; do
        bad_option "--learn-from needs -a auto, not -a $a" -L 64 -a $a \
            --learn-from=hist
    done
}

@test "the histogram is not overwritten" {
    cp hist before
    refused 1 'hist: is also an input: choose another output' \
        packstream -q -L 256 --learn-from=hist -o hist 0.tok
    refused 1 'hist: is also an input: choose another output' \
        packstream -q -L 256 \
        --learn-from=hist --overlong=drop --rejects=hist -o x 0.tok
    refused 64 '--state=hist: hist is also the histogram: choose another name' \
        packstream -q -L 256 --learn-from=hist --state=hist -o x 0.tok
    cmp hist before
}

@test "-v reports the histogram; -M counts it" {
    run -0 packstream -v -q -L 256 --learn-from=hist -o x.pks 0.tok
    [[ $output == *$'\npackstream: hist: learned from 4000 sequences\n'* ]]
    seq 20000 | sed 's/$/ 1/' >large
    local least more
    least=$(least_memory -L 20000)
    more=$(least_memory -L 20000 --learn-from=large)
    [ "$more" -gt $((least + 20000 * 32)) ]
    packstream -q -L 20000 --learn-from=large -M "$more" 3.tok |
        packstat -q --verify
}
