#!/usr/bin/env bats
# layers.bats - a module of the library uses only the modules listed for it in
# CONTRIBUTING.md; lines of C have at most 80 columns.
# SPDX-License-Identifier: MIT

load ../support/helpers

# modules: lines of a module and one that it may use, including itself.
modules() {
    awk -F '|' '
        /^\| module \|/ { inside = 1; getline; next }
        !/^\|/ { inside = 0 }
        inside {
            gsub(/ /, "", $2)
            print $2, $2
            n = split($4, may, " ")
            for (i = 1; i <= n; i++)
                if (may[i] != "-")
                    print $2, may[i]
        }' "${abs_top_srcdir:?}/CONTRIBUTING.md"
}

# not_allowed: lines of "module, module, what" whose pair is not in `table`.
not_allowed() {
    awk 'NR == FNR { may[$1, $2] = 1; next } !(($1, $2) in may)' table -
}

# includes FOLDER: which module includes which, and where.
includes() {
    (cd "$1" && grep -rHo '^#include "[a-z]*/' .) |
        sed -E 's,^\./([a-z]*)/([^:]*):#include "([a-z]*)/,\1 \3 \1/\2,'
}

# calls FOLDER [SOURCES]: which module uses a symbol of another, by its object
# files; then the files, and the symbol.  Objects left from deleted sources do
# not count.
calls() {
    local object source sources=${2:-$abs_top_srcdir/src/lib}
    # shellcheck disable=SC2086 # NM may have options
    (cd "$1" && for object in */*.o */.libs/*.o; do
        source=${object##*[/-]}
        [ -e "$sources/${object%%/*}/${source%.o}.c" ] || continue
        printf '%s\n' "$object"
    done | xargs ${NM:-nm} -A) | awk '
        {
            type = $(NF - 1); name = $NF; file = here = $1
            sub(/:.*/, "", file); sub(/\/.*/, "", here)
            sub(/\.libs\//, "", file); sub(/lib[a-z]*_la-/, "", file)
        }
        type ~ /^[TDRBC]$/ { module[name] = here; place[name] = file }
        type == "U" { used[here " " file " " name] = 1 }
        END {
            for (one in used) {
                split(one, part, " ")
                if (part[3] in module)
                    print part[1], module[part[3]], part[2], place[part[3]], \
                        part[3]
            }
        }'
}

setup() {
    start
    modules >table
}

@test "each module of the library is in the table, and no other" {
    cut -d ' ' -f 1 table | sort -u >named
    (cd "$abs_top_srcdir/src/lib" && printf '%s\n' */) | tr -d / >there
    diff named there
}

@test "the table has no cycle" { tsort <(awk '$1 != $2' table) >/dev/null; }

@test "headers are included only from allowed modules" {
    includes "$abs_top_srcdir/src/lib" >found
    [ "$(grep -c . found)" -gt 100 ]
    not_allowed <found >bad
    cat bad
    [ ! -s bad ]
}

@test "only functions of allowed modules are called" {
    calls "${abs_top_builddir:?}/src/lib" >found
    [ "$(grep -c . found)" -gt 100 ]
    not_allowed <found >bad
    cat bad
    [ ! -s bad ]
}

@test "no call cycles between files of the library" {
    calls "$abs_top_builddir/src/lib" | awk '$3 != $4 { print $3, $4 }' |
        sort -u >found
    [ "$(grep -c . found)" -gt 100 ]
    tsort <found >/dev/null
    # tsort fails on a cycle.
    echo 'format/schema.o base/x.o base/x.o format/schema.o' >bad
    run -1 tsort bad
}

@test "no call cycles between files of tokcat" {
    ln -s "$abs_top_builddir/src/tokcat" tokcat
    calls . "$abs_top_srcdir/src" |
        awk '$3 != $4 { print $3, $4 }' | sort -u >found
    [ "$(grep -c . found)" -gt 30 ]
    tsort <found >/dev/null
}

@test "a dependency that is not in the table is detected" {
    mkdir -p lib/base lib/io
    echo '#include "io/input.h"' >lib/base/x.c
    echo '#include "base/error.h"' >lib/io/x.c
    includes lib | not_allowed >bad
    [ "$(cat bad)" = 'base io base/x.c' ]
}

@test "programs include only the library's public header" {
    cd "$abs_top_srcdir/src"
    for program in packcat packdeal packplan packstat packstream tokcat tokmix \
        tokshuf cli files wire; do
        run -1 grep -rE '#include "(base|io|format|lp|deal|plan|engine|stream|packer|batch)/' \
            "$program"
    done
}

@test "only the trainer's cpu/ computes, and only train_device.c refers to it" {
    cd "$abs_top_srcdir/trainer"
    grep -q '<cblas.h>' cpu/*.h
    run -1 grep -E '<(cblas|tgmath|omp).h>' \
        {run,data,folder,ranks,model,model/bert,model/prenorm,optim,corpus}/*.[ch]
    [ "$(grep -l '"cpu/' {run,data,folder,ranks,model,model/bert,model/prenorm,optim,corpus}/*.[ch])" = \
        run/train_device.c ]
    # Nor do cpu/ and cuda/ refer to a family of models, or to its shared parts.
    run -1 grep -hE '"(optim|data|corpus|model/[a-z]+)/' cpu/* cuda/* model/*.[ch]
}

@test "headers of the trainer that kernels include are valid C++" {
    skip_without c++
    printf '#include "model/%s.h"\n' ops batch config scalar counter_rng dropout \
        bert/dropout_sites >x.cc
    c++ -std=c++17 -Wall -Wextra -Wpedantic -Werror -H -fsyntax-only \
        -I"$abs_top_srcdir/trainer" -I"$abs_top_srcdir/src" x.cc 2>included
    grep -F trainer/model/host_device.h included
    run -1 grep -E '(cblas|tgmath)' included
}

@test "lines of C have at most 80 columns" {
    cd "$abs_top_srcdir"
    find src trainer tests examples python -name '*.[ch]' -o -name '*.cc' \
        -o -name '*.cu' >"$BATS_TEST_TMPDIR/files"
    [ "$(wc -l <"$BATS_TEST_TMPDIR/files")" -gt 300 ]
    run -0 xargs awk 'length > 80 { print FILENAME ":" FNR }' \
        <"$BATS_TEST_TMPDIR/files"
    echo "$output"
    [ -z "$output" ]
}
