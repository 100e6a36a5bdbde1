#!/bin/sh
# corpus.sh - prints text that every system has, for the demos.
#
# This project's pages, the system's licences and copyright files, its manual
# pages and those inside Perl's modules: each line is a section of one of
# them, and has at least 120 characters.
#
# SPDX-License-Identifier: MIT

set -eu

# Roff to text, roughly: the sections of a page become lines.
strip_roff() {
    sed -e 's/\\f[BIRP]//g' -e 's/\\f([A-Z][A-Z]//g' -e 's/\\-/-/g' \
        -e 's/\\&//g' -e "s/\\\\(aq/'/g" -e 's/\\e/\\/g' |
        tr -cd '\n\040-\176' |
        awk '
            function flush() {
                gsub(/[ \t]+/, " ", text)
                sub(/^ /, "", text)
                sub(/ $/, "", text)
                if (length(text) >= 120)
                    print text
                text = ""
            }
            /^\.(SH|SS|Sh|Ss|TH|Dd)/ { flush(); next }
            /^\.[A-Z][A-Za-z]?[ \t]/ { sub(/^[^ \t]*/, ""); gsub(/"/, "") }
            /^[.'\'']/ { next }
            { text = text " " $0 }
            END { flush() }'
}

# A text without sections of its own is a section.
gather_texts() {
    for file; do
        [ -f "$file" ] || continue
        printf '.SH\n'
        cat "$file"
    done
}

gather_pages() {
    for section in 8 5 7 1 3; do
        find "/usr/share/man/man$section" -type f -print0 |
            sort -z | xargs -0 -r gzip -cdfq
    done
}

# The manuals inside Perl's modules: small containers have no man pages.
gather_pods() {
    find /usr/share/perl /usr/share/automake* /usr/share/autoconf \
        -name '*.p[om]*' -type f -print0 | sort -z |
        xargs -0 -r sed -n -e 's/^=head[12].*/.SH/' \
            -e '/^\.SH/,/^=cut/ { /^=/d; p; }'
}

gather() {
    gather_texts "$top"/man/*.[1-8] "$top"/README.md \
        /usr/share/common-licenses/*
    gather_texts /usr/share/doc/*/copyright | head -c 3000000
    gather_pages
    gather_pods
}

LC_ALL=C
export LC_ALL
top=$(cd "$(dirname "$0")/.." && pwd)
gather 2>/dev/null | strip_roff
