#!/usr/bin/env bats
# release.bats - the version has one source, and a release copies it to all
# documents; bootstrap --help.
# SPDX-License-Identifier: MIT

load ../support/helpers

# release ARGUMENT...: build-aux/release.sh.
release() {
    "${abs_top_srcdir:?}/build-aux/release.sh" "$@"
}

@test "all places have the version of the build" {
    release --check >found
    [ "$(awk '{ print $2 }' found | sort -u)" = "$PACKAGE_VERSION" ]
    [ "$(wc -l <found)" -eq 4 ]
}

# a_tree DISTRIBUTION: tree/ has the files that a release changes, as they are
# before it; debian/changelog ends with a version for DISTRIBUTION.
a_tree() {
    local file
    mkdir -p tree/build-aux tree/debian tree/man tree/src/include/packstream
    for file in build-aux/release.sh configure.ac NEWS debian/changelog \
        debian/control man/packcat.1 man/packstream.7 \
        src/include/packstream/base.h; do
        cp "$abs_top_srcdir/$file" "tree/$file"
    done
    chmod -R u+w tree
    sed -i "1s/) .*;/) $1;/" tree/debian/changelog
}

# in_news VERSION: NEWS begins with it.
in_news() {
    printf 'packstream %s (not yet released)\n\n' "$1" >news
    grep -v "^packstream $1 " tree/NEWS >>news
    mv news tree/NEWS
}

@test "a dry run shows what a release changes, and changes nothing" {
    a_tree UNRELEASED
    in_news "$PACKAGE_VERSION"
    cp -R tree before
    tree/build-aux/release.sh --dry-run "$PACKAGE_VERSION" 2025-02-03 >changes
    diff -r before tree
    grep -qxF "+packstream $PACKAGE_VERSION (2025-02-03)" changes
    grep -qxF '+AC_SUBST([RELEASE_DATE], [2025-02-03])' changes
    grep -qxF "+packstream ($PACKAGE_VERSION) unstable; urgency=medium" changes
    grep -q '^+ -- .*>  Mon, 03 Feb 2025 00:00:00 +0000$' changes
    [ "$(grep -c '^+[^+]' changes)" -eq 4 ]
}

@test "the next version is written everywhere, and requires an entry in NEWS" {
    skip_without patch
    local next=12.34.56 line
    a_tree unstable
    refused 1 "NEWS has no 'packstream $next (not yet released)'" \
        tree/build-aux/release.sh --dry-run "$next"
    in_news "$next"
    tree/build-aux/release.sh --dry-run "$next" 2025-02-03 >changes
    for line in '#define PACKSTREAM_VERSION_MAJOR 12' \
        '#define PACKSTREAM_VERSION_MINOR 34' \
        '#define PACKSTREAM_VERSION_PATCH 56' \
        "packstream $next (2025-02-03)" \
        "packstream ($next) unstable; urgency=medium" \
        '  * New release; NEWS says what it has.' \
        ".Os packstream $next"; do
        grep -qxF "+$line" changes
    done
    [ "$(grep -cxF "+.Os packstream $next" changes)" -eq 2 ]
    cp tree/debian/changelog older
    patch -s -d tree -p1 <changes
    tail -n "$(wc -l <older)" tree/debian/changelog | cmp - older
    tree/build-aux/release.sh --check
    sed -i "1s/($next)/(1.2.3)/" tree/debian/changelog
    refused 1 'not the same version everywhere' \
        tree/build-aux/release.sh --check
}

# The first and the second column of the table in CONTRIBUTING.md.
@test "the list of dependencies has the build's packages and versions" {
    {
        sed -n 's/^PKG_CHECK_MODULES(\[.*\], \[\(.*\) >= \(.*\)\].*/\1 \2/p' \
            "$abs_top_srcdir/configure.ac"
        grep -oE '"[a-z]+>=[0-9.]+"' "$abs_top_srcdir/pyproject.toml" |
            tr -d '"' | sed 's/>=/ /'
    } >wanted
    [ "$(wc -l <wanted)" -ge 8 ]
    while read -r name version; do
        grep -F "| $name | $version | " "$abs_top_srcdir/CONTRIBUTING.md"
    done <wanted
}

@test "release.sh refuses unknown arguments" {
    for arguments in '' 1.2 01.2.3 1.2.3.4 v1.2.3 '1.2.3 tomorrow' \
        '1.2.3 2025-02-03 x' '--check 1.2.3'; do
        # Word splitting intended.
        # shellcheck disable=SC2086
        refused 64 usage: release $arguments
    done
    refused 1 '9999-12-31 is still to come' release 1.2.3 9999-12-31
}

@test "bootstrap --help prints its usage and does nothing else" {
    run -0 "$abs_top_srcdir/bootstrap" --help
    [[ ${lines[0]} == 'bootstrap - prepares a clone of the repository, '* ]]
    for word in demo train check deps-ci deps-night --help; do
        [[ $output == *"./bootstrap $word "* ]]
    done
    [[ $output != *SPDX* ]]
    refused 64 "unknown argument '--what'" "$abs_top_srcdir/bootstrap" --what
    refused 64 'at most one argument' "$abs_top_srcdir/bootstrap" demo check
}
