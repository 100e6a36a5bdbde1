#!/usr/bin/env bash
# valgrind.sh - runs tests under memcheck.
#
#     tests/valgrind.sh BUILD_DIR [TEST]...
#
# A TEST is a C test that was built in BUILD_DIR (lib/packer/packer-t), or a
# bats file (programs/resume.bats), in which every program then runs under
# valgrind.  The default, which is `make valgrind` in BUILD_DIR, is all C tests
# that valgrind can run and some of the programs' tests; it takes two hours.
#
# Findings are invalid or uninitialised memory, leaks, and C tests that fail.
# Other tests may fail: some of them time out because programs run slower under
# valgrind.  Reports of findings are in BUILD_DIR/memcheck.
#
# Exits with 0 if nothing was found, 77 without valgrind, otherwise with 1.
#
# SPDX-License-Identifier: MIT

set -u
export LC_ALL=C

[ -e "${1-}/libtool" ] || {
    echo "usage: valgrind.sh BUILD_DIR [TEST]..." >&2
    exit 64
}
command -v valgrind >/dev/null || {
    echo "valgrind.sh: nothing is done: there is no valgrind" >&2
    exit 77
}
top=$(cd "$(dirname "$0")/.." && pwd -P)
build=$(cd "$1" && pwd -P)
shift
reports=$build/memcheck
rm -rf "$reports"
mkdir -p "$reports/bin" || exit 1

export abs_top_srcdir=$top abs_top_builddir=$build
export LD_LIBRARY_PATH=$build/.libs
for name in PYTHON_NUMPY CC CFLAGS NM MANDOC PACKAGE_VERSION; do
    printf -v "$name" '%s' "$(sed -n "s/^$name = //p" "$build/Makefile")"
    export "${name?}"
done
# A job to be killed takes longer to get as far.
export RESUME_KILLS=${RESUME_KILLS:-2}

# Memory with only interior pointers is not a leak: XXH3 keeps its state that
# way, and a process that a signal ends does not free it.
lost='definite,indirect'
memcheck=(valgrind -q --leak-check=full --error-exitcode=99
    "--show-leak-kinds=$lost" "--errors-for-leak-kinds=$lost")

# actual PROGRAM: the program itself, not libtool's wrapper.
actual() {
    local folder=$build/${1%/*}
    if [ -x "$folder/.libs/${1##*/}" ]; then
        echo "$folder/.libs/${1##*/}"
    else
        echo "$folder/${1##*/}"
    fi
}

# Scripts by the programs' names, for the PATH.
wrap() {
    local name
    for name in packstream packcat packdeal packstat packplan tokcat \
        tokmix tokshuf; do
        {
            echo '#!/bin/sh'
            # Expanded by the script that is written here.
            # shellcheck disable=SC2016
            printf 'exec %s --log-file=%s/$TEST_NAME.%%p %s "$@"\n' \
                "${memcheck[*]}" "$reports" "$(actual "./$name")"
        } >"$reports/bin/$name"
        chmod +x "$reports/bin/$name"
    done
}

# gave_up REPORT: valgrind ran out of memory because of a test's limit, without
# having reported an error.
gave_up() {
    head -n 1 "$1" | grep -q '^--' &&
        grep -q "Valgrind's memory management: out of memory" "$1"
}

# clean TEST: no report of the test has an error; only warnings are left.
clean() {
    local report
    for report in "$reports/$1".[0-9]*; do
        [ -e "$report" ] || break
        ! grep -q '^==' "$report" || gave_up "$report" || return 1
        rm "$report"
    done
}

run() {
    case $1 in
        *.bats) PATH=$reports/bin:$PATH bats "$top/tests/$1" ;;
        *) "${memcheck[@]}" --log-file="$reports/$TEST_NAME.%p" \
            "$(actual "tests/$1")" ;;
    esac
}

# check TEST: runs it and prints the result on one line.
check() {
    export TEST_NAME=${1//\//-}
    local begin=$SECONDS status=0
    run "$1" >"$reports/$TEST_NAME.log" 2>&1 </dev/null || status=$?
    case $1 in
        *.bats) ! grep -q '^ok' "$reports/$TEST_NAME.log" || status=0 ;;
    esac
    if [ "$status" = 0 ] && clean "$TEST_NAME"; then
        echo "ok - $1: $((SECONDS - begin)) s"
        return 0
    fi
    echo "not ok - $1: ended with $status"
    grep -h -A 12 '^==\|^not ok' "$reports/$TEST_NAME".* | head -n 60
    return 1
}

# C tests, and how programs handle memory when everything fails.  The CUDA
# emulator needs an address range that valgrind reserves.  The scheduler of the
# thread tests reads the stacks of waiting threads, which valgrind considers
# unused.
usual() {
    (cd "$build/tests" && find . -name '*-t' -type f ! -path '*/.libs/*' \
        ! -path '*/cuda/*' ! -path '*/hostcuda/*' ! -name '*-threads-t' |
        sed 's,^\./,,' | sort)
    printf 'programs/%s.bats\n' tokcat packstream rejects packcat \
        packcat-range seekable packdeal packplan resume tokmix \
        tokshuf
}

wrap
[ $# -gt 0 ] || mapfile -t all < <(usual)
failed=0
for name in "${@:-${all[@]}}"; do
    check "$name" || failed=1
done
exit "$failed"
