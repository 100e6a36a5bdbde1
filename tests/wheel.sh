#!/bin/sh
# wheel.sh - installs a wheel in minimal systems, and tests it:
#
#   tests/wheel.sh WHEEL [SUITE]...
#
# Makes a folder of each SUITE of Debian (default: bookworm and trixie) with
# python3, pip, numpy, cffi's back end and little else.  There pip installs the
# wheel, and its programs and the package run a job.  Exits with 0 if all tests
# pass, with 77 if such a folder cannot be made.
#
# SPDX-License-Identifier: MIT

set -eu

programs='packcat packdeal packplan packstat packstream tokcat tokmix tokshuf'

fail() {
    echo "wheel.sh: $*" >&2
    exit 1
}

skip() {
    echo "skipped: $*"
    exit 77
}

# is_alone PROGRAM: it needs only the C library.
is_alone() {
    ! readelf -d "$1" | grep NEEDED |
        grep -vE '\[(lib(c|m|pthread|rt|dl)|ld-linux.*)\.so\.[0-9]+\]' ||
        fail "$1 needs other files"
}

# run PROGRAM ARGUMENT...: in the folder of the suite.
run() {
    chroot "$root" "$@"
}

try_programs() {
    for program in $programs; do
        is_alone "$root/usr/local/bin/$program"
        run "$program" --version | grep -q "^$program (packstream)" ||
            fail "$program does not run"
        [ -f "$root/usr/local/share/man/man1/$program.1" ] ||
            fail "$program has no manual page"
    done
    seq 20000 | run tokcat -q --from=bytes >x.tok
    run packstream -q -L 512 -T 2 --overlong=split --zstd <x.tok >x.pks
    run packstat -q --verify <x.pks
    run packcat -q <x.pks | cmp - x.tok || fail 'the records differ'
    seq 20000 | gzip | run tokcat -q --from=bytes | cmp - x.tok ||
        fail 'tokcat reads gzip in another way'
    echo '{"input_ids": [1, 2]}' | run tokcat -q --from=jsonl |
        run packstat --json | grep -q '"tokens": 2' ||
        fail 'tokcat does not read JSON'
}

try_package() {
    cp x.pks "$root/tmp/x.pks"
    packs=$(run packstat --json <x.pks | sed 's/.*"packs": \([0-9]*\).*/\1/')
    [ "$packs" = "$(run python3 -c '
import packstream
packstream.Packer(8)
print(len(packstream.open("/tmp/x.pks")))')" ] ||
        fail 'the package reads other packs'
}

[ $# -ge 1 ] || {
    echo 'usage: wheel.sh WHEEL [SUITE]...' >&2
    exit 64
}
wheel=$(cd "$(dirname "$1")" && pwd)/$(basename "$1")
shift
[ $# -gt 0 ] || set -- bookworm trixie
[ "$(id -u)" -eq 0 ] || skip 'only root can change the root folder'
command -v debootstrap >/dev/null || skip 'debootstrap is not installed'
work=$(mktemp -d "${TMPDIR:-/tmp}/packstream-wheel.XXXXXX")
trap 'rm -rf "$work"' EXIT
cd "$work"
for suite; do
    root=$work/$suite
    debootstrap --variant=minbase \
        --include=python3-pip,python3-numpy,python3-cffi-backend \
        "$suite" "$root" >log 2>&1 || {
        tail -n 3 log
        skip "debootstrap cannot make $suite"
    }
    cp "$wheel" "$root/tmp"
    run pip install -q --no-index --no-deps --break-system-packages \
        --root-user-action=ignore "/tmp/${wheel##*/}"
    try_programs
    try_package
    echo "$suite: $(basename "$wheel") runs"
done
