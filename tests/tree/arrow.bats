#!/usr/bin/env bats
# arrow.bats - Arrow tables, parquet files and datasets, converted to packs and
# token records.
#
# The checks are functions of tests/support/python-arrow.py.  PEERS_PYTHON names
# a python3 with the package, pyarrow, datasets and trl.
#
# SPDX-License-Identifier: MIT

load ../support/helpers

# Runs all checks before the tests: see forked.py.  Those listed first run
# without pandas, which datasets needs.
setup_file() {
    cd "$BATS_FILE_TMPDIR" || return
    [ -z "${QUICK-}" ] && [ -n "${PEERS_PYTHON-}" ] || return 0
    ! lacks_module "$PEERS_PYTHON" packstream._native pyarrow >reasons ||
        return 0
    {
        printf '%s\n' sources source_refused faults_placed hostile_arrays \
            files_cut names_printed padded_rows into_packer packed_tables \
            packed_labels packed_numbers packed_budgets named_rows overlong \
            vectors_read vectors_packed lists_read lists_packed \
            "program $(command -v packcat)" program_interrupted
        lacks_module "$PEERS_PYTHON" datasets >/dev/null ||
            printf '%s\n' 'import datasets' datasets_source packed_datasets streamed \
                packed_groups_of_datasets packed_numbers_of_datasets \
                vectors_of_datasets lists_of_datasets \
                rows_left_out file_is_whole_or_not_there datasets_refused
    } >checks
    python=$PEERS_PYTHON support python-arrow.py each . <checks
}

setup() {
    start_checked
}

@test "sequences of tables, parquet and Arrow files" {
    holds sources
}

@test "sequences of datasets" {
    skip_without_modules "$PEERS_PYTHON" datasets
    holds datasets_source
}

@test "sequences that cannot be read" {
    holds source_refused
}

@test "vectors per token and per row" {
    holds vectors_read vectors_packed
}

@test "lists with lengths of their own" {
    holds lists_read lists_packed
}

@test "lists of datasets" {
    skip_without_modules "$PEERS_PYTHON" datasets
    holds lists_of_datasets
}

@test "vectors of datasets" {
    skip_without_modules "$PEERS_PYTHON" datasets
    holds vectors_of_datasets
}

@test "errors name the file, the row and the column" {
    holds faults_placed
}

@test "arrays shorter than they claim, and files truncated while read" {
    holds hostile_arrays files_cut
}

@test "names with terminal escapes" {
    holds names_printed
}

@test "padded rows, with an attention mask" {
    holds padded_rows
}

@test "a packer of a table" {
    holds into_packer
}

@test "tables, packed" {
    holds packed_tables
}

@test "masks become labels; columns with a number or a name per row" {
    holds packed_labels packed_numbers named_rows
}

@test "tables are packed within budgets" {
    holds packed_budgets
}

@test "columns with a number per row, in datasets" {
    skip_without_modules "$PEERS_PYTHON" datasets
    holds packed_groups_of_datasets packed_numbers_of_datasets \
        rows_left_out
}

@test "rows that are too long" {
    holds overlong
}

@test "datasets, packed in memory and in files" {
    skip_without_modules "$PEERS_PYTHON" datasets
    holds packed_datasets
}

@test "streamed datasets" {
    skip_without_modules "$PEERS_PYTHON" datasets
    holds streamed
}

@test "datasets on a full disk" {
    skip_without_modules "$PEERS_PYTHON" datasets
    holds file_is_whole_or_not_there
}

# bats test_tags=night
@test "no more rows than TRL makes" {
    skip_without_modules "$PEERS_PYTHON" datasets trl
    python=$PEERS_PYTHON support python-arrow.py as_full_as_trl
}

@test "datasets that cannot be packed" {
    skip_without_modules "$PEERS_PYTHON" datasets
    holds datasets_refused
}

@test "python -m packstream.tokens" {
    holds program program_interrupted
}

# bats test_tags=night
@test "MDS, litdata and WebDataset" {
    own_python pyarrow mosaicml-streaming litdata webdataset
    PYTHONPATH=$PWD/own python=$PWD/env/bin/python \
        support python-arrow.py other_packages
}
