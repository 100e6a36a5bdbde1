#!/usr/bin/env bats
# arrow.bats - Arrow's tables, parquet files and datasets, into packs and token
# records.
#
# The checks are functions of python-arrow.py in tests/support.  They want the
# package and pyarrow, datasets and trl installed for the python3 that
# PEERS_PYTHON names.
#
# SPDX-License-Identifier: MIT

load ../support/helpers

setup() {
    start
    skip_if_quick
    [ -n "${PEERS_PYTHON-}" ] || skip "PEERS_PYTHON names no python3"
}

# check NAME MODULE...: skips the test where a module is missing.
check() {
    local name
    for name in packstream._native pyarrow "${@:2}"; do
        "$PEERS_PYTHON" -c 'import importlib.util as u, sys
sys.exit(u.find_spec(sys.argv[1]) is None)' "$name" 2>/dev/null ||
            skip "$PEERS_PYTHON has no $name"
    done
    python=$PEERS_PYTHON support python-arrow.py "$1"
}

@test "sequences of tables, parquet and Arrow files" {
    check sources
}

@test "sequences of datasets" {
    check datasets_source datasets
}

@test "sequences that cannot be read" {
    check source_refused
}

@test "a packer of a table" {
    check into_packer
}

@test "tables, packed" {
    check packed_tables
}

@test "rows that are too long" {
    check overlong
}

@test "datasets, packed in memory and in files" {
    check packed_datasets datasets
}

@test "datasets, where there is no space for the file" {
    check file_is_whole_or_not_there datasets
}

# bats test_tags=night
@test "no more rows than TRL makes" {
    check as_full_as_trl datasets trl
}

@test "datasets that cannot be packed" {
    check datasets_refused datasets
}

@test "python -m packstream.tokens" {
    "${PEERS_PYTHON}" -c 'import packstream._native, pyarrow' 2>/dev/null ||
        skip "$PEERS_PYTHON has no packstream or pyarrow"
    python=$PEERS_PYTHON support python-arrow.py program \
        "$(command -v packcat)"
    check program_interrupted
}
