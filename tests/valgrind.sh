#!/usr/bin/env bash
# valgrind.sh - runs tests under memcheck.
#
#     tests/valgrind.sh BUILD_DIR [TEST]...
#
# A TEST is a C test that was built in BUILD_DIR (lib/packer/packer-t), or a
# file of tests of the programs (programs/resume.bats), whose every program
# then runs under valgrind; without any it is all C tests that valgrind can run,
# and some of the programs' tests, which takes two hours.  `make valgrind` in
# BUILD_DIR does that.
#
# It is a finding if memory is used that must not be or means nothing, if
# memory is lost, and if a C test fails.  The others may: some of them wait for
# what takes a program longer under valgrind than they have time for.  What was
# found lies in BUILD_DIR/memcheck.
#
# Exits with 0 if nothing was found, 77 where valgrind is not there, else 1.
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
# A job that is killed takes longer to come so far.
export RESUME_KILLS=${RESUME_KILLS:-2}

# Where only the middle of something is known it is not lost: XXH3 has its
# state there, and who ends by a signal leaves it.
lost='definite,indirect'
memcheck=(valgrind -q --leak-check=full --error-exitcode=99
    "--show-leak-kinds=$lost" "--errors-for-leak-kinds=$lost")

# actual PROGRAM: that, not libtool's wrapper.
actual() {
    local folder=$build/${1%/*}
    if [ -x "$folder/.libs/${1##*/}" ]; then
        echo "$folder/.libs/${1##*/}"
    else
        echo "$folder/${1##*/}"
    fi
}

# The programs on the PATH are scripts by these names.
wrap() {
    local name
    for name in packstream packcat packdeal packstat packplan tokcat \
        tokmix tokshuf; do
        {
            echo '#!/bin/sh'
            # The script is to say so, not this one.
            # shellcheck disable=SC2016
            printf 'exec %s --log-file=%s/$TEST_NAME.%%p %s "$@"\n' \
                "${memcheck[*]}" "$reports" "$(actual "./$name")"
        } >"$reports/bin/$name"
        chmod +x "$reports/bin/$name"
    done
}

# gave_up REPORT: a test's limit left valgrind no memory, and it had reported
# nothing before.
gave_up() {
    head -n 1 "$1" | grep -q '^--' &&
        grep -q "Valgrind's memory management: out of memory" "$1"
}

# clean TEST: no report of the test has an error; what is left are warnings.
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

# check TEST: runs it, and says in a line how it went.
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

# C tests, and what the programs do with memory when all goes wrong.  The CUDA
# emulator wants a range of addresses that valgrind does not leave it; and the
# scheduler of the tests of threads reads the stacks of those that wait, which
# valgrind takes for unused memory.
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
