#!/bin/sh
# debian.sh - builds the Debian packages and tests them:
#
#   tests/debian.sh TARBALL [FOLDER]
#
# Unpacks the tarball of `make dist` and builds its packages with
# dpkg-buildpackage, without optimisation, without the build's tests, and with
# your DEB_BUILD_OPTIONS; runs lintian on them, and debian/tests on their
# contents, without installing them.  With FOLDER, copies the packages there.
# Exits with 0 if no errors are found, with 77 if a tool is missing.
#
# SPDX-License-Identifier: MIT

set -eu

fail() {
    echo "debian.sh: $*" >&2
    exit 1
}

skip() {
    echo "skipped: $*"
    exit 77
}

# Lists files that a package lacks or should not have.
has_file() {
    [ -n "$(find "$root" -path "$root/$1")" ] || fail "no package has $1"
}

version() {
    dpkg-parsechangelog -l "$work/packstream/debian/changelog" -S Version
}

# The packages are built outside the source tree.
build() {
    mkdir "$work/packstream"
    tar -C "$work/packstream" --strip-components=1 -xzf "$tarball"
    cd "$work/packstream"
    missing=$(dpkg-checkbuilddeps -P nocheck 2>&1) || skip "$missing"
    DEB_BUILD_OPTIONS="nocheck noopt parallel=$(nproc) ${DEB_BUILD_OPTIONS-}" \
        DEB_BUILD_PROFILES=nocheck \
        dpkg-buildpackage -us -uc -b >"$work/log" 2>&1 || {
        tail -n 40 "$work/log"
        fail 'dpkg-buildpackage failed'
    }
    cd "$work"
    set -- ./*.deb
    [ $# -ge 5 ] || fail "only these packages: $*"
    echo "packages: $*"
}

look() {
    command -v lintian >/dev/null || {
        echo 'not looked at: lintian is not installed'
        return
    }
    lintian --allow-root --fail-on error,warning \
        --suppress-tags unreleased-changes ./*.changes
    echo 'lintian: no errors, no warnings'
}

unpack() {
    root=$work/root
    for package in ./*.deb; do
        case $package in
            *-dbgsym_*) ;;
            *) dpkg-deb -x "$package" "$root" ;;
        esac
    done
    libraries=$(dirname "$root"/usr/lib/*/libpackstream.so.0)
    has_file usr/bin/packstream
    has_file 'usr/share/man/man1/packstream.1*'
    has_file 'usr/share/man/man3/ps_packer_put.3*'
    has_file 'usr/share/man/man5/packstream.5*'
    has_file 'usr/share/man/man7/packstream.7*'
    has_file 'usr/share/man/man7/packstream-files.7*'
    has_file 'usr/share/doc/packstream/docs/choosing.md*'
    has_file 'usr/share/man/man7/packstream-tutorial.7*'
    has_file usr/share/bash-completion/completions/packstream
    has_file usr/share/zsh/vendor-completions/_packstream
    has_file usr/share/fish/vendor_completions.d/packstream.fish
    has_file usr/share/doc/packstream/examples/python/ddp.py
}

# run COMMAND...: runs it as if the packages were installed.
run() {
    env PATH="$root/usr/bin:/usr/bin:/bin" LD_LIBRARY_PATH="$libraries" \
        PYTHONPATH="$root/usr/lib/python3/dist-packages" \
        PYTHONDONTWRITEBYTECODE=1 \
        PKG_CONFIG_PATH="$libraries/pkgconfig" \
        PKG_CONFIG_SYSROOT_DIR="$root" "$@"
}

# run_test TEST: runs it as autopkgtest does.
run_test() {
    mkdir "$work/$1"
    run AUTOPKGTEST_TMP="$work/$1" "$work/packstream/debian/tests/$1" ||
        fail "debian/tests/$1 failed"
    echo "debian/tests/$1: passed"
}

[ $# -ge 1 ] || {
    echo 'usage: debian.sh TARBALL [FOLDER]' >&2
    exit 64
}
tarball=$(realpath "$1")
for program in dpkg-buildpackage dh; do
    command -v "$program" >/dev/null || skip "$program is not installed"
done
folder=
[ $# -lt 2 ] || { mkdir -p "$2" && folder=$(realpath "$2"); }
work=$(mktemp -d "${TMPDIR:-/tmp}/packstream-debian.XXXXXX")
trap 'rm -rf "$work"' EXIT
build
look
unpack
[ "$(run packstream --version)" = "packstream (packstream) $(version)" ] ||
    fail 'the versions differ'
run_test round-trip
run_test build
run_test python
if [ -n "$folder" ]; then
    cp "$work"/*.deb "$work"/*.changes "$folder"
fi
