#!/bin/sh
# builds.sh - checks that every build packs alike:
#
#   tests/builds.sh FOLDER
#
# Builds the tree in FOLDER with other compilers, without and with much
# optimisation, for 32 bits and for a big-endian machine, and runs the jobs of
# tests/same-bytes.sh with each: their outputs must be identical to those of
# gcc -O2, and states saved by one build are resumed by another.  Also runs
# them on processors without AVX2.  Prints a line for each build, or why it
# could not be made; exits with 1 if one differs.  Takes ten minutes.
#
# Builds for other machines need a cross compiler, qemu-user to run them, and
# libraries, which are fetched as Debian's packages:
#
#   apt-get install qemu-user gcc-i686-linux-gnu gcc-s390x-linux-gnu \
#       libc6-dev-i386-cross libc6-dev-s390x-cross
#   dpkg --add-architecture i386; dpkg --add-architecture s390x
#   apt-get update
#
# SPDX-License-Identifier: MIT

set -u
tree=$(cd "$(dirname "$0")/.." && pwd)
mkdir -p "${1:?usage: builds.sh FOLDER}" && cd "$1" || exit 1
folder=$PWD
failures=0

# build NAME CONFIGURE_ARGUMENT...: in the folder NAME, afresh.
build() {
    name=$1
    shift
    rm -rf "${folder:?}/$name"
    mkdir "$folder/$name" && cd "$folder/$name" &&
        "$tree/configure" -q "$@" >log 2>&1 &&
        make -j"$(nproc)" all tests/bench/gen >>log 2>&1 && return
    echo "$name: not built, see $folder/$name/log"
    failures=$((failures + 1))
    return 1
}

# compare NAME: with the first build.
compare() {
    cd "$folder" || exit 1
    if sh "$tree/tests/same-bytes.sh" first "$1" >"$1/differs" 2>&1; then
        echo "$1: $(head -n 1 "$1/differs")"
    else
        echo "$1: differs, see $folder/$1/differs"
        failures=$((failures + 1))
    fi
}

# emulated NAME BUILD COMMAND...: a build that runs the programs of BUILD with
# the command.
emulated() {
    name=$1 from=$2
    shift 2
    rm -rf "${folder:?}/$name"
    mkdir -p "$folder/$name/.libs"
    for program in packstream tokcat tokmix tokshuf packcat packdeal \
        packstat packplan; do
        printf '#!/bin/sh\nexec %s %s "$@"\n' "$*" \
            "$folder/$from/$program" >"$folder/$name/.libs/$program"
        chmod +x "$folder/$name/.libs/$program"
    done
}

# lacks NAME PROGRAM...: prints so if one of the programs is missing.
lacks() {
    name=$1
    shift
    for program; do
        command -v "$program" >/dev/null && continue
        echo "$name: not tried: no $program"
        return
    done
    return 1
}

# libraries DEBIAN_ARCHITECTURE: fetches static ones, into a folder of the name.
libraries() {
    rm -rf "${folder:?}/$1"
    mkdir "$folder/$1" && cd "$folder/$1" || return
    for package in zlib1g-dev libzstd-dev libxxhash-dev libjansson-dev; do
        apt-get download -qq "$package:$1" >log 2>&1 || {
            echo "$1: not tried: $package:$1 cannot be fetched"
            return 1
        }
    done
    for package in *.deb; do
        dpkg-deb -x "$package" . || return
    done
}

# cross NAME HOST DEBIAN_ARCHITECTURE MULTIARCH
cross() {
    libraries "$3" || return
    export PKG_CONFIG_LIBDIR="$folder/$3/usr/lib/$4/pkgconfig"
    export PKG_CONFIG_SYSROOT_DIR="$folder/$3"
    build "$1" --host="$2" --disable-shared --enable-static-programs \
        CPPFLAGS="-isystem $folder/$3/usr/include" \
        LDFLAGS="-L$folder/$3/usr/lib/$4"
    built=$?
    unset PKG_CONFIG_LIBDIR PKG_CONFIG_SYSROOT_DIR
    return "$built"
}

[ -x "$tree/configure" ] || (cd "$tree" && ./bootstrap) || exit 1
build first CC=gcc || exit 1
build gcc-O0 CC=gcc CFLAGS=-O0 && compare gcc-O0
build gcc-O3 CC=gcc CFLAGS='-O3 -march=native' && compare gcc-O3
lacks clang clang || { build clang CC=clang && compare clang; }
if [ "$(uname -m)" = x86_64 ] && ! lacks no-avx2 qemu-x86_64 &&
    build static --disable-shared --enable-static-programs; then
    emulated no-avx2 static qemu-x86_64 -cpu Nehalem
    compare no-avx2
fi
lacks i386 i686-linux-gnu-gcc dpkg-deb ||
    { cross i686 i686-linux-gnu i386 i386-linux-gnu && compare i686; }
if ! lacks s390x s390x-linux-gnu-gcc qemu-s390x dpkg-deb &&
    cross s390x-build s390x-linux-gnu s390x s390x-linux-gnu; then
    emulated big-endian s390x-build qemu-s390x
    compare big-endian
fi
[ "$failures" -eq 0 ]
