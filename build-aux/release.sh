#!/bin/sh
# release.sh - makes a release of the source tree that contains it:
#
#   build-aux/release.sh --check
#   build-aux/release.sh [--dry-run] VERSION [DATE]
#
# --check compares the versions in src/include/packstream/base.h (the source for
# configure and setup.py), NEWS, debian/changelog and the footers of the manual
# pages.
#
# Otherwise VERSION and DATE (default: today) are written to these files and to
# RELEASE_DATE of configure.ac, which is the date of all files in the tarball.
# NEWS must begin with "packstream VERSION (not yet released)".  Then the
# tarball is made in a copy of the files that git tracks, and once more from
# itself; both must be identical.  It is left in dist/ with SHA256SUMS.  Commit
# and tag it yourself.
#
# --dry-run only prints the changes.
#
# SPDX-License-Identifier: MIT

set -eu

header=src/include/packstream/base.h

fail() {
    echo "release.sh: $*" >&2
    exit 1
}

usage() {
    echo 'usage: release.sh --check' >&2
    echo '       release.sh [--dry-run] VERSION [DATE]' >&2
    exit 64
}

# The versions in all files, each after the file's name.
versions() {
    printf '%s ' "$header"
    sed -n 's/^#define PACKSTREAM_VERSION_[A-Z]* //p' "$header" |
        paste -s -d . -
    printf 'NEWS '
    sed -n 's/^packstream \([0-9.]*\) .*/\1/p' NEWS | head -n 1
    printf 'debian/changelog '
    sed -n 's/^packstream (\([0-9.]*\)) .*/\1/p' debian/changelog | head -n 1
    sed -n 's/^\.Os packstream /man /p' man/*.[1-8] | sort -u
}

check() {
    versions
    [ "$(versions | awk '{ print $2 }' | sort -u | wc -l)" -eq 1 ] ||
        fail 'not the same version everywhere'
}

# edit FILE SED_ARGUMENT...
edit() {
    file=$1
    shift
    sed "$@" "$file" >"$work/edited"
    cat "$work/edited" >"$file"
}

# Writes version and date to the files, below the current folder.
edit_places() {
    heading="packstream $version (not yet released)"
    grep -qxF "$heading" NEWS || fail "NEWS has no '$heading'"
    edit NEWS "s/^$heading\$/packstream $version ($date)/"
    edit configure.ac "s/^\(AC_SUBST(\[RELEASE_DATE\], \[\)[^]]*/\1$date/"
    # Word splitting intended: three numbers.
    # shellcheck disable=SC2046
    set -- $(echo "$version" | tr . ' ')
    edit "$header" -e "s/^\(#define PACKSTREAM_VERSION_MAJOR \).*/\1$1/" \
        -e "s/^\(#define PACKSTREAM_VERSION_MINOR \).*/\1$2/" \
        -e "s/^\(#define PACKSTREAM_VERSION_PATCH \).*/\1$3/"
    edit_changelog
    for page in man/*.[1-8]; do
        edit "$page" "s/^\.Os packstream .*/.Os packstream $version/"
    done
    check >/dev/null
}

# Replaces its first entry, or adds one if that has been released.
edit_changelog() {
    maintainer=$(sed -n 's/^Maintainer: //p' debian/control)
    {
        printf 'packstream (%s) unstable; urgency=medium\n\n' "$version"
        if head -n 1 debian/changelog | grep -q ') UNRELEASED;'; then
            sed -n '3,/^ -- /p' debian/changelog | sed '$d'
        else
            printf '  * New release; NEWS says what it has.\n\n'
        fi
        printf ' -- %s  %s\n' "$maintainer" \
            "$(LC_ALL=C date -u -d "$date" '+%a, %d %b %Y 00:00:00 +0000')"
        if head -n 1 debian/changelog | grep -q ') UNRELEASED;'; then
            sed '1,/^ -- /d' debian/changelog
        else
            echo
            cat debian/changelog
        fi
    } >"$work/changelog"
    cat "$work/changelog" >debian/changelog
}

# tarball SOURCE BUILD: made in the folder BUILD.
tarball() {
    mkdir "$2"
    (cd "$2" && "$1/configure" -q --disable-dependency-tracking &&
        make -s dist) >"$2.log" 2>&1 || {
        tail -n 20 "$2.log"
        fail 'make dist failed'
    }
}

release() {
    name=packstream-$version
    (cd "$work/tree" && ./bootstrap >"$work/bootstrap.log" 2>&1) ||
        fail 'bootstrap failed'
    tarball "$work/tree" "$work/first"
    tar -C "$work" -xzf "$work/first/$name.tar.gz"
    tarball "$work/$name" "$work/second"
    cmp "$work/first/$name.tar.gz" "$work/second/$name.tar.gz" ||
        fail 'the tarball does not make itself again'
    mkdir -p dist
    cp "$work/first/$name.tar.gz" dist
    (cd dist && sha256sum "$name.tar.gz" >SHA256SUMS && cat SHA256SUMS)
    for place in $places; do
        cat "$work/tree/$place" >"$place"
    done
    echo "to do: git commit -a -m 'Release $version' &&" \
        "git tag -a v$version -m 'packstream $version'"
}

cd "$(dirname "$0")/.."
places="$header configure.ac NEWS debian/changelog $(echo man/*.[1-8])"
[ "${1-}" != --check ] || {
    [ $# -eq 1 ] || usage
    check
    exit
}
dry=no
[ "${1-}" != --dry-run ] || { dry=yes; shift; }
[ $# -eq 1 ] || [ $# -eq 2 ] || usage
version=$1
today=$(date -u +%Y-%m-%d)
date=${2-$today}
echo "$version" | grep -qxE '(0|[1-9][0-9]*)(\.(0|[1-9][0-9]*)){2}' || usage
echo "$date" | grep -qxE '[0-9]{4}-[0-9]{2}-[0-9]{2}' || usage
# configure refuses files that are newer than the clock.
[ "$(printf '%s\n' "$date" "$today" | sort | tail -n 1)" = "$today" ] ||
    fail "$date is still to come"
work=$(mktemp -d "${TMPDIR:-/tmp}/packstream-release.XXXXXX")
trap 'rm -rf "$work"' EXIT

mkdir "$work/tree"
if [ "$dry" = yes ]; then
    # Word splitting intended here and below: names of files.
    # shellcheck disable=SC2086
    tar -cf - $places debian/control | tar -C "$work/tree" -xf -
    (cd "$work/tree" && edit_places)
    for place in $places; do
        diff -u --label "a/$place" --label "b/$place" "$place" \
            "$work/tree/$place" || [ $? -eq 1 ]
    done
    exit
fi
[ -z "$(git status --porcelain)" ] || fail 'there is what git does not hold'
! git rev-parse -q --verify "refs/tags/v$version" >/dev/null ||
    fail "v$version has been released"
git ls-files -z | tar --null -T - -cf - | tar -C "$work/tree" -xf -
(cd "$work/tree" && edit_places)
release
