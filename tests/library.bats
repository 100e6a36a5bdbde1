#!/usr/bin/env bats
# library.bats - the programs in packstream(3) compile and do what they say.
# SPDX-License-Identifier: MIT

load helpers

# program NAME: the code behind "test: NAME" in packstream(3).
program() {
    awk -v name="$1" '
        $0 == ".\\\" test: " name { wanted = 1; next }
        wanted && /^\.Bd/ { wanted = 0; inside = 1; next }
        /^\.Ed/ { inside = 0 }
        inside' "${abs_top_srcdir:?}/man/packstream.3" |
        sed -e 's/\\-/-/g' -e 's/\\e/\\/g'
}

# build NAME: compiles it, against the library of the build tree.
build() {
    program "$1" >"$1.c"
    [ -s "$1.c" ]
    # Words are meant to split: CC and CFLAGS are lists.
    # shellcheck disable=SC2086
    $CC $CFLAGS -std=c11 -Wall -Wextra -Werror -D_POSIX_C_SOURCE=200809L \
        -I"$abs_top_srcdir/src/include" -o "$1" "$1.c" \
        -L"${abs_top_builddir:?}/.libs" -lpackstream -lzstd -lxxhash -lm -lpthread
}

@test "packs of a file, one by one" {
    build c-pack-file
    seq 3000 | factor | tokcat -q --from=bytes >x.tok
    packstream -q -L 64 x.tok >x.pks
    packstream -q -L 64 --zstd x.tok >x.zst
    for i in 0 1 77 300; do
        packcat -q --to=ids --range=$i:$((i + 1)) x.pks >wanted
        ./c-pack-file x.pks $i | cmp - wanted
        ./c-pack-file x.zst $i | cmp - wanted
    done
    run ./c-pack-file x.pks 99999999
    [ "$status" -eq 1 ]
    [[ $output == 'there is no pack 99999999'* ]]
    run ./c-pack-file /dev/null 0
    [ "$status" -eq 1 ]
}
