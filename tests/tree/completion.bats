#!/usr/bin/env bats
# completion.bats - the shells' command line completions match the options that
# the programs parse.
# SPDX-License-Identifier: MIT

load ../support/helpers

programs='packcat packdeal packplan packstat packstream tokcat tokmix tokshuf'

setup() {
    start
    made_here=${abs_top_builddir:?}/completion
    [ -d "$made_here" ] || skip "there is no completion in this build"
}

# table_options PROGRAM: the options that it parses, one per line.
table_options() {
    "$1" --options-table | awk -F '\t' 'NF > 2 {
        if ($1 != "") print "-" $1
        if ($2 != "") print "--" $2 }' | sort
}

# load_bash PROGRAM: loads its completion.  Options cannot be changed without an
# interactive readline, so compopt's are recorded in "$changed".
load_bash() {
    # shellcheck disable=SC1090
    . "$made_here/bash/$1"
    compopt() { changed="$changed $*"; }
}

# offers WORDS WORD...: bash offers these for the last WORD of a command line.
offers() {
    local wanted=$1 offered
    shift
    # shellcheck disable=SC2034
    COMP_WORDS=("$@") COMP_CWORD=$(($# - 1)) changed=
    "_$1"
    offered=${COMPREPLY[*]}
    [ "$offered" = "$wanted" ] && return
    printf '%s\n    offers %s\n    wanted %s\n' "$*" "$offered" "$wanted"
    return 1
}

@test "bash offers exactly the options of every program" {
    for program in $programs; do
        load_bash "$program"
        [ "$(complete -p "$program")" = \
            "complete -o default -F _$program $program" ]
        # shellcheck disable=SC2034
        COMP_WORDS=("$program" -) COMP_CWORD=1
        "_$program"
        printf '%s\n' "${COMPREPLY[@]%=}" | sort >offered
        table_options "$program" >wanted
        [ "$(wc -l <wanted)" -ge 5 ]
        diff -u wanted offered
    done
}

@test "zsh and fish have exactly the options of every program" {
    for program in $programs; do
        table_options "$program" >wanted
        grep -oE -- "^    '\*'(\{[^}]*\}|[^'[]*)" "$made_here/zsh/_$program" |
            grep -oE -- '--?[[:alnum:]-]+' | sed 's/-$//' | sort >offered
        diff -u wanted offered
        awk '{ for (i = 2; i < NF; i++) {
                if ($i == "-d") break
                if ($i == "-s") print "-" $(i + 1)
                if ($i == "-l") print "--" $(i + 1)
            } }' "$made_here/fish/$program.fish" | sort >offered
        diff -u wanted offered
    done
}

# A value takes effect immediately, before --help.
@test "every word that is offered is accepted by the program" {
    for program in $programs; do
        "$program" --options-table | awk -F '\t' '$4 != "" { print $2, $4 }' |
            while read -r name words; do
                for word in $words; do
                    "$program" "--$name=$word" --help >help || exit 1
                done
                echo "$name"
            done >taken
        load_bash "$program"
        while read -r name; do
            COMP_WORDS=("$program" "--$name" "=" '') COMP_CWORD=3
            "_$program"
            [ ${#COMPREPLY[@]} -gt 0 ]
        done <taken
    done
    [ -s taken ]
}

# An algorithm with two names is offered by both.
@test "every algorithm of packplan is offered" {
    echo '3 4' | packplan -L 8 --tsv | tail -n +2 | cut -f 1 >wanted
    packplan --options-table | awk -F '\t' '$2 == "algorithm" { print $4 }' |
        tr ' ' '\n' | grep -vx all >offered
    grep -vx nextfit offered | diff -u wanted -
    grep -qx nextfit offered
}

@test "bash: words of an option, however it is written" {
    load_bash packstream
    offers 'error drop truncate split' packstream --overlong ''
    offers 'drop' packstream x.tok --overlong d
    offers 'error drop truncate split' packstream --overlong =
    offers '' packstream --overlong = t x
    offers 'drop' packstream --overlong = d
    offers '--overlong=drop' packstream --overlong=d
    [ "$changed" = ' +o default' ]
    offers 'spfhp' packstream -a s
    offers '' packstream -a none ''
}

@test "bash: an optional value follows an equals sign" {
    load_bash packstream
    offers 'json' packstream --stats =
    offers '--stats=json' packstream --stats=
    offers '' packstream --stats ''
    [ -z "$changed" ]
    offers '--stats' packstream --stats
}

@test "bash: files, folders, or nothing" {
    load_bash packstream
    load_bash tokshuf
    offers '' packstream -o ''
    [ -z "$changed" ]
    offers '' packstream --state = x
    [ -z "$changed" ]
    offers '' packstream x
    [ -z "$changed" ]
    offers '' packstream -q -- --ver
    [ -z "$changed" ]
    offers '' packstream -L 5
    [ "$changed" = ' +o default' ]
    offers '' tokshuf --temporary-directory = ''
    [ "$changed" = ' -o dirnames +o default' ]
    offers '--verify --verbose --version' packstream --ver
    [ "$changed" = ' +o default' ]
    offers '--rejects=' packstream --rej
    [ "$changed" = ' +o default -o nospace' ]
}

@test "bash: a list has comma-separated words" {
    load_bash packplan
    offers 'sorted spfhp' packplan -a s
    [ "$changed" = ' -o nospace +o default' ]
    offers 'none,ffd,sorted none,ffd,spfhp' packplan --algorithm = none,ffd,s
    offers '--depth=3,max' packplan --depth=3,m
}

@test "zsh reads its files" {
    skip_without zsh
    for program in $programs; do
        zsh -fn "$made_here/zsh/_$program"
        [ "$(head -n 1 "$made_here/zsh/_$program")" = "#compdef $program" ]
    done
}

@test "fish offers options, words, files and nothing" {
    skip_without fish
    touch "a file"
    # shellcheck disable=SC2016 # fish expands it
    fish --no-config -c '
        for file in $argv
            source $file
        end
        for line in "packstream --over" "packcat --to=tr" "tokshuf -o a" \
                "packstream -L a" "packplan -a ffd,spf"
            complete -C $line | string replace -r "\t.*" ""
        end' "$made_here"/fish/*.fish >offered
    printf '%s\n' --overlong --to=trl 'a file' ffd,spfhp | diff -u - offered
}

@test "a letter is the same option in every program" {
    local program
    for program in $programs; do
        "$program" --options-table | awk -F '\t' 'NF > 2 && $1 != "" {
            print $1, $2 }'
    done | sort -u >letters
    cut -d ' ' -f 1 letters | uniq -d | diff /dev/null -
}
