# exports.bats - the shared library exports exactly what the header declares,
# and the map lists the same.
# SPDX-License-Identifier: MIT

load ../support/helpers

# The calls that packstream.h declares: without comments and the right-hand
# sides of macros, all names ps_ before a parenthesis.
declared() {
    # Word splitting intended: CC is a list.
    # shellcheck disable=SC2086
    $CC -E -P -x c "${abs_top_srcdir:?}/src/include/packstream.h" |
        grep -oE '\bps_[a-z0-9_]+\(' | tr -d '(' |
        grep -vxE "ps_(reject|wait|write)_hook" | sort -u
}

@test "the map lists the calls that the header declares" {
    sed -n 's/^ *\(ps_[a-z0-9_]*\);$/\1/p' \
        "$abs_top_srcdir/libpackstream.map" >map
    declared >header
    [ -s header ]
    diff -u header map
}

@test "each part of the header compiles on its own" {
    local part
    for part in "$abs_top_srcdir"/src/include/packstream/*.h; do
        # Word splitting intended: CC and CFLAGS are lists.
        # shellcheck disable=SC2086
        $CC $CFLAGS -std=c11 -Wall -Wextra -Werror -fsyntax-only -x c "$part"
        grep -F "#include \"packstream/${part##*/}\"" \
            "$abs_top_srcdir/src/include/packstream.h"
    done
}

@test "the header is valid C++" {
    skip_without c++
    echo '#include <packstream.h>' >x.cc
    c++ -std=c++11 -Wall -Wextra -Wpedantic -Werror -fsyntax-only \
        -I"$abs_top_srcdir/src/include" x.cc
}

@test "the shared library exports the calls that the header declares" {
    local library=${abs_top_builddir:?}/.libs/libpackstream.so
    [ -e "$library" ] || skip "this build has no shared library"
    [ "$NM" != no ] || skip "nm is not installed"
    # Word splitting intended: NM may be "nm -B".
    # shellcheck disable=SC2086
    $NM -D --defined-only "$library" | awk '$2 != "A" { print $3 }' |
        sed 's/@.*//' | sort -u >exports
    declared >header
    diff -u header exports
}

@test "the shared library's name carries interface 0" {
    local library=${abs_top_builddir:?}/.libs/libpackstream.so
    [ -e "$library" ] || skip "this build has no shared library"
    [ -e "$library.0" ]
    skip_without readelf
    readelf -d "$library" | grep -F 'Library soname: [libpackstream.so.0]'
}
