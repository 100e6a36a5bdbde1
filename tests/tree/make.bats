#!/usr/bin/env bats
# make.bats - `make t` runs one test, and after an edit of the library rebuilds
# only what a test needs.
#
# SPDX-License-Identifier: MIT

load ../support/helpers

setup() {
    start
    unset MAKEFLAGS MFLAGS MAKELEVEL T F
}

made_by() {
    make -C "${abs_top_builddir:?}" --no-print-directory "$@"
}

# t NAME [ARGUMENT]...
t() {
    made_by t "T=$1" "${@:2}"
}

skip_without_cmocka() {
    [ -e "$abs_top_builddir/tests/lib/version-t" ] ||
        skip "cmocka was not found"
}

@test "t finds a C test by any end of its name" {
    skip_without_cmocka
    local name
    for name in version version-t lib/version tests/lib/version-t.c; do
        run -0 t "$name"
        [[ $output == *'ok 1 - '* ]]
    done
}

@test "t runs the chosen tests of a bats file" {
    run -0 t layers F='has no cycle'
    [[ $output == *1..1*'has no cycle'* ]]
    run -0 t tests/tree/layers.bats F="in the table, and no other|no cycle"
    [[ $output == *1..2* ]]
}

@test "t fails if the test does" {
    skip_without_cmocka
    run -2 t version LOG_COMPILER=false
    [[ $output == *version-t.log*'Error 1'* ]]
    run -2 t layers.bats BATS=false
    [[ $output == *layers.log*'Error 1'* ]]
}

@test "t refuses an unknown or ambiguous name, and suggests others" {
    run -2 t auto
    [[ $output == "t: no test 'auto'; similar: "*policy-auto* ]]
    run -2 t packsteam
    [[ $output == "t: no test 'packsteam'; similar: "*packstream* ]]
    run -2 t qqqqqq
    [[ ${lines[0]} == "t: no test 'qqqqqq'" ]]
    run -2 t ''
    [[ $output == 't: missing T=TEST, such as '* ]]
}

@test "t needs a path if a name is ambiguous, and takes F for bats files only" {
    skip_without_cmocka
    run -2 t packer-t TESTS='a/packer-t b/packer-t'
    [[ $output == "t: 'packer-t' is ambiguous: a/packer-t, b/packer-t"* ]]
    run -2 t version F=x
    [[ $output == 't: F= selects tests of a bats file; tests/lib/version-t '* ]]
    run -2 t make.bats F=zzz
    [[ $output == "t: no test of tests/tree/make.bats matches 'zzz'"* ]]
}

# What TARGET... would relink if this source of the library had changed.
links() {
    made_by -n -W "$(made srcdir)/src/lib/base/error.c" "$@" |
        grep -- --mode=link || true
}

@test "an edit of the library relinks no other programs" {
    skip_without_cmocka
    [[ $(links tests/lib/version-t) == *libcore.la*version-t* ]]
    [ -z "$(links check-TESTS TESTS=)" ]
    links all >linked
    run ! grep -E 'tests/|examples/' linked
    grep -q packstream linked
}
