#!/usr/bin/env bats
# differential.bats - packs of packstream, decoded by another program.
#
# tests/differential.py draws options and sequences, packs them and compares
# the input with the packs, as a Python decoder written from packstream(5)
# reads them.  `make differential` tries a thousand sets.
#
# SPDX-License-Identifier: MIT

load ../support/helpers

differential() {
    skip_without_numpy
    "$PYTHON_NUMPY" "$BATS_TEST_DIRNAME/../differential.py" "$@"
}

@test "30 random sets of options: the other decoder recovers the input" {
    differential --count=30
}

@test "every changed number in decoded packs is detected" {
    differential --plant --count=40
}

# instead PROGRAM SCRIPT: a PROGRAM that is found before the real one, whose
# path is "$real" in the script.
instead() {
    mkdir -p bin
    printf '#!/bin/sh\nreal=%s\n%s\n' "$(command -v "$1")" "$2" >"bin/$1"
    chmod +x "bin/$1"
    PATH=$PWD/bin:$PATH
}

@test "a packstream that writes different packs is detected" {
    skip_without_numpy
    # It takes only the first file.
    # shellcheck disable=SC2016 # for the script
    instead packstream 'for word; do
        case $word in in[1-9]) ;; *) set -- "$@" "$word" ;; esac; shift
    done
    exec "$real" "$@"'
    run -1 differential --count=10 --seed=1
    [[ $output == *"10 sets, "*" differ" ]]
    [[ $output != *" 0 differ" ]]
}
