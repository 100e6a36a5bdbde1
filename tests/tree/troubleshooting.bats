#!/usr/bin/env bats
# troubleshooting.bats - the messages of docs/troubleshooting.md are those of
# the sources, and its examples print them.
#
# SPDX-License-Identifier: MIT

load ../support/helpers

page=${abs_top_srcdir:?}/docs/troubleshooting.md

setup() {
    start
}

# literals: the string literals of the sources; adjacent ones are joined.
literals() {
    (
        cd "$abs_top_srcdir" || exit
        find src python/packstream \( -name '*.[ch]' -o -name '*.py' \) \
            -exec cat {} +
    ) | tr '\n' ' ' | sed -E 's/ +/ /g; s/" ?\\ "//g
        s/" (PRI[A-Za-z0-9]+ )?"//g'
}

@test "every message of the page is in the sources" {
    local message part n=0
    literals >sources
    # … is a placeholder; the text of ENOSPC comes from strerror.
    # shellcheck disable=SC2016 # they are backquotes of Markdown
    sed -n 's/^### `\(.*\)`$/\1/p' "$page" |
        grep -vx 'No space left on device' >messages
    while IFS= read -r message; do
        printf '%s\n' "${message//…/$'\n'}" >parts
        while IFS= read -r part; do
            grep -qF -e "$part" sources || { echo "$message"; return 1; }
        done <parts
        n=$((n + 1))
    done <messages
    [ "$n" -gt 20 ]
}

@test "the examples of the page print these messages" {
    awk '
        /^```/ && to != "" { close(to); to = ""; next }
        /^```sh$/ { to = sprintf("%02d.sh", ++n) }
        /^```$/ { to = sprintf("%02d.wanted", n) }
        /^```/ { printf "" >to; next }
        to != "" { print >to }' "$page"
    local block wanted n=0
    for block in *.sh; do
        sh "$block" >printed 2>&1 || true # most commands fail
        wanted=${block%.sh}.wanted
        [ -e "$wanted" ] || : >"$wanted"
        diff -u "$wanted" printed
        n=$((n + 1))
    done
    [ "$n" -gt 12 ]
}
