#!/usr/bin/env bats
# library.bats - the programs in packstream(3) compile and work as described.
# SPDX-License-Identifier: MIT

load ../support/helpers

# program NAME: the code after "test: NAME" in packstream(3).
program() {
    awk -v name="$1" '
        $0 == ".\\\" test: " name { wanted = 1; next }
        wanted && /^\.Bd/ { wanted = 0; inside = 1; next }
        /^\.Ed/ { inside = 0 }
        inside' "${abs_top_srcdir:?}/man/packstream.3" |
        sed -e 's/\\-/-/g' -e 's/\\e/\\/g'
}

# build NAME: compiles it with the library of the build tree.
build() {
    program "$1" >"$1.c"
    [ -s "$1.c" ]
    # Word splitting intended: CC and CFLAGS are lists.
    # shellcheck disable=SC2086
    $CC $CFLAGS -std=c11 -Wall -Wextra -Werror -D_POSIX_C_SOURCE=200809L \
        -I"$abs_top_srcdir/src/include" -o "$1" "$1.c" \
        -L"${abs_top_builddir:?}/.libs" -lpackstream -lzstd -lxxhash -lm -lpthread
}

@test "every call of the library is named in packstream(3)" {
    sed -n 's/^ *\(ps_[a-z0-9_]*\);$/\1/p' \
        "$abs_top_srcdir/libpackstream.map" >calls
    [ -s calls ]
    while read -r call; do
        grep -qE "\b$call\b" "$abs_top_srcdir/man/packstream.3" || {
            printf '%s\n' "$call"
            return 1
        }
    done <calls
}

# If the header declares it differently, the compiler reports an error.
@test "packstream(3) shows the prototype of every call" {
    { echo '#include <packstream.h>'; program prototypes; } >calls.c
    # Word splitting intended: CC and CFLAGS are lists.
    # shellcheck disable=SC2086
    $CC $CFLAGS -std=c11 -Wall -Wextra -Werror -fsyntax-only \
        -I"$abs_top_srcdir/src/include" calls.c
    sed -n 's/^ *\(ps_[a-z0-9_]*\);$/\1/p' \
        "$abs_top_srcdir/libpackstream.map" >map
    [ -s map ]
    grep -oE '\bps_[a-z0-9_]+\(' calls.c | tr -d '(' |
        grep -vxE 'ps_(reject|wait|write)_hook' | sort | diff -u map -
}

# types: the C structures and enumerations on stdin, one per line.
types() {
    # Word splitting intended: CC may have options.
    # shellcheck disable=SC2086
    $CC -E -P -I"$abs_top_srcdir/src/include" -x c - | tr -s ' \n' '  ' |
        sed -e 's/ *\([][{};,]\) */\1/g' -e 's/,}/}/g' |
        grep -oE 'typedef (struct|enum) ps_[a-z_]*\{[^}]*\}ps_[a-z_]*;' | sort
}

@test "packstream(3) shows all members of structures and enumerations" {
    echo '#include <packstream.h>' | types >header
    [ -s header ]
    # With the page's copy after the header, each appears twice.
    { echo '#include <packstream.h>'; program types; } | types >both
    sort header header | diff -u - both
}

@test "lines are packed, and packs are read" {
    build c-pack
    build c-read
    # One has 300 bytes, and one fills a pack.
    { seq 500 | factor; printf '%0299d\n%04095d\n' 1 2; } >x
    ./c-pack <x >x.pks
    packstat --verify x.pks >/dev/null
    packcat -q --to=ids x.pks >ids
    while IFS= read -r line; do
        printf '%s\n' "$line" | od -An -v -tu1 -w999 | xargs
    done <x | cmp - ids
    ./c-read <x.pks >text
    [ "$(tail -n 1 text)" = "$(wc -c <x) tokens in all" ]
    sed -n 's/^pack [0-9]*: sequence //p' text | sort -n >pieces
    awk '{ print NR - 1 ", " length($0) + 1 " tokens" }' x | cmp - pieces
    run -1 ./c-read <x
    [[ $output == *'not'* ]]
    printf '%04096d\n' 1 >x
    run -1 sh -c './c-pack <x 2>&1 >packed'
    [[ $output == *'4097 tokens'* ]]
}

@test "packs of a file, one by one" {
    build c-pack-file
    some_packs
    for i in 0 1 77 300; do
        packcat -q --to=ids --range=$i:$((i + 1)) x.pks >wanted
        ./c-pack-file x.pks $i | cmp - wanted
        ./c-pack-file x.zst $i | cmp - wanted
    done
    run -1 ./c-pack-file x.pks 99999999
    [[ $output == 'pack 99999999 is out of range'* ]]
    run -1 ./c-pack-file /dev/null 0
}

@test "a reader resumes where it stopped" {
    build c-resume
    some_packs
    local all tokens more
    all=$(packcat -q --to=ids x.pks | wc -w)
    for input in "cat x.pks" "cat x.zst"; do
        tokens=0
        rm -f mark
        until [[ $more == *END ]]; do
            more=$($input | ./c-resume mark 300)
            tokens=$((tokens + ${more%% *}))
        done
        [ "$tokens" -eq "$all" ]
        more=
    done
    ./c-resume mark 300 <x.pks | grep -Fx '0 tokens, END'
}

@test "a reader resumes in a stream that starts later, given its start" {
    build c-resume
    some_packs
    small_blocks 1
    local all some
    packstream -q -L 64 x.tok >x.pks
    all=$(packcat -q --to=ids x.pks | wc -w)
    some=$(./c-resume mark 100 <x.pks)
    for first in 1 50 100; do
        packstream -q -L 64 --resume-from=$first x.tok >y
        cp mark m
        run ./c-resume m 1000000 <y
        [ "$output" = "$((all - ${some% *})) tokens, END" ]
    done
    packstream -q -L 64 --resume-from=101 x.tok >y
    run -1 ./c-resume mark 1 <y
    [[ $output == 'block at byte 4096: '*'requires the packs from 100 on' ]]
}

# Sequences of 2 tokens and more have a target: each counts 2.5 / 7.
@test "batches, and a loss in which every sequence counts the same" {
    build c-loader
    printf '%s\n' '5 6' '7' '8 9 10 11' '12 13' '14' '15 16 17' '18 19' \
        '20 21 22 23 24 25 26' '27 28 29' | tokcat -q --from=ids >x.tok
    packstream -q -L 8 -d 3 x.tok >x.pks
    ./c-loader 7 <x.pks | grep -Fx 2.500
    packstream -q -L 8 -d 1 --zstd x.tok | ./c-loader 14 | grep -Fx 1.250
    run -1 ./c-loader 7 <x.tok
    [ -n "$output" ]
}

@test "a truncated or damaged mark is refused" {
    build c-resume
    seq 300 | factor | tokcat -q --from=bytes | packstream -q -L 64 >x.pks
    ./c-resume mark 5 <x.pks
    cp mark whole
    head -c 255 whole >mark
    run -1 ./c-resume mark 5 <x.pks
    [[ $output == 'not a mark of a pack reader'* ]]
    { head -c 60 whole; printf x; tail -c +62 whole; } >mark
    run -1 ./c-resume mark 5 <x.pks
    [[ $output == 'the mark is damaged'* ]]
}
