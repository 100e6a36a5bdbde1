#!/usr/bin/env bats
# man.bats - the manual pages: they pass lint, they list the options that the
# programs parse, and their examples work as shown.
#
# An example is a block of a page after the comment
#
#     .\" test: run
#
# and reads like a terminal: a line that begins with "$ " is a command, one with
# "> " continues it, and any other line is the command's output.  The commands
# of a block run in order in an empty folder.  Each must print exactly the lines
# shown and exit with 0, unless the next command shows another status with "echo
# $?".  A comment ".\" setup: COMMAND" between the two is part of a command that
# runs first and is not shown.
#
# SPDX-License-Identifier: MIT

load ../support/helpers

# page NAME.SECTION: its path.
page() {
    printf '%s/man/%s' "${abs_top_srcdir:?}" "$1"
}

# all_pages: all pages, one per line.
all_pages() {
    local path
    for path in "${abs_top_srcdir:?}"/man/*.[1-8]; do
        printf '%s\n' "${path##*/}"
    done
}

# plain: roff text as the reader sees it.
plain() {
    sed -e 's/\\-/-/g' -e "s/\\\\(aq/'/g" -e 's/\\(ga/`/g' \
        -e 's/\\(ha/^/g' -e 's/\\(ti/~/g' -e 's/\\&//g' -e 's/\\e/\\/g'
}

# blocks PAGE [TEST MARK]: the lines of its tested code; or of the blocks for
# TEST, with MARK before each of them.
blocks() {
    awk -v test="${2-}" -v mark="${3-}" '
        /^\.\\" test: / && index($3, test) == 1 { wanted = 1; next }
        wanted && mark && /^\.\\" setup: / {
            setup = setup (setup == "" ? "$ " : "> ") substr($0, 12) "\n"
        }
        wanted && /^\.Bd/ {
            wanted = 0
            inside = 1
            if (mark) printf "%s\n%s", mark, setup
            setup = ""
            next
        }
        /^\.Ed/ { inside = 0 }
        inside' "$(page "$1")" | plain
}

# fault TEXT: prints an error in the current example.
fault() {
    printf '%s: $ %s\n%s\n' "$example_page" "$example_command" "$1"
    return 1
}

# run_command STATUS: runs $example_command with $? set to STATUS, and saves its
# own status in $example_status.
run_command() {
    example_status=0
    sh -c "(exit $1)
$example_command" </dev/null >../output 2>&1 || example_status=$?
}

# finish_command NEXT: runs the command read so far and checks it; NEXT is the
# following one, if already known.
finish_command() {
    [ -n "$example_command" ] || return 0
    run_command "$example_status"
    printf '%s' "$example_output" >../wanted
    diff -u ../wanted ../output ||
        fault 'prints something else (+)' || return 1
    case $example_status,$1 in
        0,* | *'echo $?'*) ;;
        *) fault "exits with $example_status" ;;
    esac
}

# start_example: an empty folder, nothing run yet.
start_example() {
    examples=$((examples + 1))
    mkdir "$BATS_TEST_TMPDIR/$examples"
    cd "$BATS_TEST_TMPDIR/$examples" || return 1
    example_status=0 example_command=''
}

# run_examples PAGE: runs all examples, of which there must be one.
run_examples() {
    local line newline=$'\n'
    example_page=$1 example_command='' example_output='' examples=0
    blocks "$1" run % >transcript
    while IFS= read -r line; do
        case $line in
            %)
                finish_command '' || return 1
                start_example || return 1
                ;;
            '$ '*)
                finish_command "$line" || return 1
                example_command=${line#??} example_output=''
                ;;
            '> '*) example_command+=$newline${line#??} ;;
            *) example_output+=$line$newline ;;
        esac
    done <transcript
    finish_command '' || return 1
    [ "$examples" -gt 0 ] || fault 'no examples'
}

# help_options PROG: the options in its --help, one per line.
help_options() {
    "$1" --help | sed -n 's/^ *\(-.*\)/\1/p' | sed 's/   *.*//' |
        grep -oE -e '(^|[ ,])--?[A-Za-z][a-z0-9-]*' | tr -d ' ,' | sort -u
}

# joined FILE: joins lines that end with a backslash with the next.
joined() {
    sed -e ':again' -e '/\\$/N; s/\\\n//; t again' "$1"
}

# page_options PROG: the options that its page explains, one per line.
page_options() {
    joined "$(page "$1.1")" |
        awk '/^\.Sh / { inside = $2 == "OPTIONS" } inside && /^\.It Fl/' |
        grep -oE 'Fl [A-Za-z-][a-z0-9-]*' | sed 's/^Fl /-/' | sort -u
}

# synopsis_options PROG: the options in its synopsis, one per line.
synopsis_options() {
    awk '/^\.Sh / { inside = $2 == "SYNOPSIS" } inside' "$(page "$1.1")" |
        grep -oE 'Fl [A-Za-z-][a-z0-9-]*' | sed 's/^Fl /-/' | sort -u
}

# table_options PROG: the options that it parses, one per line.
table_options() {
    "$1" --options-table | awk -F '\t' 'NF > 2 {
        if ($1 != "") print "-" $1
        if ($2 != "") print "--" $2 }' | sort
}

# compare_options PROG: its table, --help and page have the same options, and
# the synopsis no others.
compare_options() {
    table_options "$1" >in_table
    help_options "$1" >in_help
    diff -u in_table in_help
    page_options "$1" >in_page
    synopsis_options "$1" >in_synopsis
    [ "$(wc -l <in_help)" -ge 4 ]
    diff -u in_help in_page
    [ -s in_synopsis ]
    [ -z "$(comm -13 in_help in_synopsis)" ]
}

# sections PAGE: the names of its sections, one per line.
sections() {
    sed -n 's/^\.Sh //p' "$(page "$1")"
}

# has_sections PROG: has the sections common to all programs, in order.
has_sections() {
    sections "$1.1" >found
    printf '%s\n' NAME SYNOPSIS DESCRIPTION OPTIONS 'EXIT STATUS' EXAMPLES \
        'SEE ALSO' BUGS >wanted
    grep -xFf wanted found | diff -u wanted -
}

# statuses PROG: the numbers that EXIT STATUS explains.
statuses() {
    awk '/^\.Sh / { inside = $0 == ".Sh EXIT STATUS" }
        inside && /^\.It [0-9]/ { print $2 }' "$(page "$1.1")"
}

@test "every page passes mandoc's lint without a warning" {
    skip_without "${MANDOC:-mandoc}"
    for page in $(all_pages); do
        run "${MANDOC:-mandoc}" -T lint -W warning "$(page "$page")"
        [ "$status" -eq 0 ] && [ -z "$output" ] || {
            printf '%s\n' "$output"
            return 1
        }
    done
}

@test "the pages name the project and its version" {
    for page in $(all_pages); do
        grep -qxF ".Os packstream $PACKAGE_VERSION" "$(page "$page")"
    done
}

@test "the options of packstream come early in its page" {
    skip_without "${MANDOC:-mandoc}" col
    line=$("${MANDOC:-mandoc}" -T ascii "$(page packstream.1)" | col -b |
        grep -nx OPTIONS)
    [ "${line%%:*}" -lt 90 ]
}

@test "every program has a page, and every page its own name" {
    for program in packcat packdeal packplan packstat packstream tokcat tokmix \
        tokshuf; do
        grep -qxF "$program.1" <(all_pages)
    done
    for page in $(all_pages); do
        name=${page%.*}
        upper=$(printf %s "$name" | tr '[:lower:]' '[:upper:]')
        grep -qxF ".Dt $upper ${page##*.}" "$(page "$page")"
        grep -qxE "\.Nm $name( ,)?" "$(page "$page")"
    done
}

@test "the pages of the programs have the same sections" {
    for program in packcat packdeal packplan packstat packstream tokcat tokmix \
        tokshuf; do
        has_sections "$program"
    done
}

@test "no line of a page is longer than 80 bytes" {
    for page in $(all_pages); do
        run -1 grep -nE '^.{81}' "$(page "$page")"
    done
}

# Examples and code are indented by 11 columns and not broken.
@test "no line of an example is too long for an 80-column screen" {
    for page in $(all_pages); do
        blocks "$page" >lines
        [ -s lines ]
        run -1 grep -nE '^.{69}' lines
    done
}

@test "each page names the exit statuses that all programs share" {
    for program in packcat packdeal packplan packstat packstream tokcat tokmix \
        tokshuf; do
        [ "$(statuses "$program" | tr '\n' ' ')" = '0 1 64 65 ' ]
    done
}

@test "SECURITY.md names the programs that give up rights, and no others" {
    sed -n '/^- Only /,/ give up rights/p' "${abs_top_srcdir:?}/SECURITY.md" |
        grep -o "\`[a-z]*\`" | tr -d '`' | sort >named
    for program in packcat packdeal packplan packstat packstream tokcat tokmix \
        tokshuf; do
        if grep -qx -e --no-sandbox <(help_options "$program"); then
            echo "$program"
        fi
    done | sort | diff named -
}

@test "every page of this project that another refers to exists" {
    for page in $(all_pages); do
        sed -n 's/^\.Xr \([^ ]*\) \([1-8]\).*/\1.\2/p' "$(page "$page")" |
            grep -E '^(pack|tok)' | while read -r other; do
            case $other in
                # Generated from docs/tutorial.md.
                packstream-tutorial.7) ;;
                *) [ -f "$(page "$other")" ] || exit 1 ;;
            esac
        done
    done
}

# Text copied from the screen must be the text tested here, with any groff: in
# examples these characters must be written as escapes.
@test "code in the pages survives copying from the screen" {
    for page in $(all_pages); do
        run awk -v page="$page" '
            /^\.\\" test: / { wanted = 1; next }
            wanted && /^\.Bd/ { wanted = 0; inside = 1; next }
            /^\.Ed/ { inside = 0 }
            inside {
                line = $0
                gsub(/\\[-e&]|\\\([a-z][a-z]/, "", line)
                if (line ~ /[-\\^~`'\'']/) {
                    printf "%s:%d: %s\n", page, NR, $0
                    bad = 1
                }
            }
            END { exit bad }' "$(page "$page")"
        [ "$status" -eq 0 ] || {
            printf '%s\n' "$output"
            return 1
        }
    done
}

@test "mandoc shows the examples as they are run" {
    skip_without "${MANDOC:-mandoc}"
    for page in $(all_pages); do
        "${MANDOC:-mandoc}" -T ascii "$(page "$page")" |
            sed 's/^ *//' >screen
        blocks "$page" | sed 's/^ *//' | sort -u >lines
        while IFS= read -r line; do
            grep -qxF -e "$line" screen || {
                printf '%s: %s\n' "$page" "$line"
                return 1
            }
        done <lines
    done
}

@test "packstream: --help and its page agree" { compare_options packstream; }
@test "tokcat: --help and its page agree" { compare_options tokcat; }
@test "packcat: --help and its page agree" { compare_options packcat; }
@test "packstat: --help and its page agree" { compare_options packstat; }
@test "packdeal: --help and its page agree" { compare_options packdeal; }
@test "tokmix: --help and its page agree" { compare_options tokmix; }
@test "tokshuf: --help and its page agree" { compare_options tokshuf; }
@test "packplan: --help and its page agree" { compare_options packplan; }
@test "packtrain: --help and its page agree" {
    [ -x "${abs_top_builddir:?}/packtrain" ] || skip "packtrain is not built"
    compare_options packtrain
}
@test "packstream.1: examples do what they show" { run_examples packstream.1; }
@test "packstream.5: examples do what they show" { run_examples packstream.5; }
@test "packstream.7: examples do what they show" { run_examples packstream.7; }
@test "packstream-files.7: examples do what they show" {
    run_examples packstream-files.7
}
@test "packstream-packing.7: examples do what they show" {
    run_examples packstream-packing.7
}
@test "packstream-tuning.7: examples do what they show" {
    run_examples packstream-tuning.7
}
@test "packstream-cluster.7: examples do what they show" {
    run_examples packstream-cluster.7
}
@test "tokcat.1: examples do what they show" { run_examples tokcat.1; }
@test "packcat.1: examples do what they show" { run_examples packcat.1; }
@test "packstat.1: examples do what they show" { run_examples packstat.1; }
@test "packdeal.1: examples do what they show" { run_examples packdeal.1; }
@test "tokmix.1: examples do what they show" { run_examples tokmix.1; }
@test "tokshuf.1: examples do what they show" { run_examples tokshuf.1; }
@test "packplan.1: examples do what they show" { run_examples packplan.1; }
@test "packtrain.1: examples do what they show" {
    [ -x "${abs_top_builddir:?}/packtrain" ] || skip "packtrain is not built"
    run_examples packtrain.1
}
