#!/bin/sh
# static.sh - builds the programs as single static files, and tests them:
#
#   tests/static.sh FOLDER [CONFIGURE_ARGUMENT]...
#
# Builds with --enable-static-programs in FOLDER, and checks that the programs
# need no library, and run in a folder that contains nothing else (if run as
# root, in a chroot).  CC=musl-gcc is a possible argument; PKG_CONFIG_LIBDIR
# names libraries that musl-gcc can link.  Prints the size of each program.
# Exits with 0 if all tests pass, with 77 if a library has no static form here.
#
# SPDX-License-Identifier: MIT

set -eu

programs='packcat packdeal packplan packstat packstream tokcat tokmix tokshuf'

fail() {
    echo "static.sh: $*" >&2
    exit 1
}

build() {
    "$tree/configure" -q --enable-static-programs --disable-shared \
        --without-cuda "$@" >configure.log 2>&1 || {
        tail -n 2 configure.log
        ! grep -q 'static form' configure.log || exit 77
        fail "configure failed: see $PWD/configure.log"
    }
    # Word splitting intended.
    # shellcheck disable=SC2086
    make -j"$(nproc)" $programs >make.log 2>&1 ||
        fail "make failed: see $PWD/make.log"
}

# is_alone PROGRAM: it names no interpreter, and no library.
is_alone() {
    ! readelf -ld "$1" | grep -E 'INTERP|NEEDED' ||
        fail "$1 needs other files"
}

# run PROGRAM ARGUMENT...: in bin/, which contains only the programs.
run() {
    program=$1
    shift
    if [ "$(id -u)" -eq 0 ]; then
        chroot bin "/$program" "$@"
    else
        env -i "bin/$program" "$@"
    fi
}

tree=$(cd "$(dirname "$0")/.." && pwd -P)
[ $# -ge 1 ] || {
    echo 'usage: static.sh FOLDER [CONFIGURE_ARGUMENT]...' >&2
    exit 64
}
mkdir -p "$1"
cd "$1"
shift
build "$@"
rm -rf bin
mkdir bin
for program in $programs; do
    is_alone "$program"
    strip -o "bin/$program" "$program"
    run "$program" --version >version
    grep -q "^$program (packstream)" version || fail "$program does not run"
    printf '%s %s bytes\n' "$program" "$(wc -c <"bin/$program")"
done
seq 20000 | run tokcat -q --from=bytes >x.tok
run packstream -q -L 512 -T 2 --overlong=split --zstd <x.tok >x.pks
run packstat -q --verify <x.pks
run packcat -q <x.pks | cmp - x.tok || fail 'the records differ'
seq 20000 | gzip | run tokcat -q --from=bytes | cmp - x.tok ||
    fail 'tokcat reads gzip in another way'
echo '{"input_ids": [1, 2]}' | run tokcat -q --from=jsonl |
    run packstat --json >json
grep -q '"tokens": 2' json || fail 'tokcat does not read JSON'
