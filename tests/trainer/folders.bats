#!/usr/bin/env bats
# folders.bats - model folders, compared with transformers and safetensors.
#
# SPDX-License-Identifier: MIT

load ../support/helpers

# check MODULE NAME: runs a check of folders.py with a python3 that has this
# module, and torch, or skips the test.
check() {
    local program=${abs_top_builddir:?}/tests/gen/model_folder
    [ -x "$program" ] || skip "the BERT in examples is not built"
    for python in ${PYTHON_TORCH-} python3 /usr/bin/python3; do
        ! "$python" -c "import numpy, torch, $1" >/dev/null 2>&1 || break
        python=
    done
    [ -n "$python" ] || skip "no python3 has numpy, torch and $1"
    "$python" "${abs_top_srcdir:?}/tests/trainer/folders.py" "$program" "$2" \
        ${LONG:+long}
}

@test "changed files are refused as by the safetensors package" {
    check safetensors mutants
}

@test "all types of numbers are read and written as by torch" {
    check safetensors numbers
}

@test "config.json is read as by transformers, in old and new forms" {
    check transformers configs
}

@test "a composed config.json is read as the same config" {
    check transformers composed
}

@test "unsupported settings are refused by name" {
    check json refused
}

@test "models of all types are read, from one file and from shards" {
    check transformers loaded
}

@test "other classes and old names are read, other tensors are refused" {
    check transformers names
}

@test "models of base classes are read, without heads" {
    check transformers bases
}

@test "damaged indexes and shards are refused by name" {
    check transformers indexes
}

@test "transformers loads exported models" {
    check transformers saved
}

@test "an exported model has the files of its tokenizer" {
    check transformers tokenizers
}
