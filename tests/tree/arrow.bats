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

# All checks before the tests: see forked.py.  What comes first is without
# pandas, which datasets needs.
setup_file() {
    cd "$BATS_FILE_TMPDIR" || return
    [ -z "${QUICK-}" ] && [ -n "${PEERS_PYTHON-}" ] || return 0
    ! lacks_module "$PEERS_PYTHON" packstream._native pyarrow >reasons ||
        return 0
    {
        printf '%s\n' sources source_refused faults_placed hostile_arrays \
            files_cut names_printed padded_rows into_packer packed_tables \
            packed_labels packed_numbers named_rows overlong \
            "program $(command -v packcat)" program_interrupted
        lacks_module "$PEERS_PYTHON" datasets >/dev/null ||
            printf '%s\n' 'import datasets' datasets_source packed_datasets streamed \
                packed_numbers_of_datasets rows_left_out \
                file_is_whole_or_not_there datasets_refused
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

@test "errors name the file, the row and the column" {
    holds faults_placed
}

@test "arrays that are shorter than they say, and files that become so" {
    holds hostile_arrays files_cut
}

@test "names that could steer a terminal" {
    holds names_printed
}

@test "padded rows, by their attention mask" {
    holds padded_rows
}

@test "a packer of a table" {
    holds into_packer
}

@test "tables, packed" {
    holds packed_tables
}

@test "masks become labels; columns of a number or a name for each row" {
    holds packed_labels packed_numbers named_rows
}

@test "columns of a number for each row, in datasets" {
    skip_without_modules "$PEERS_PYTHON" datasets
    holds packed_numbers_of_datasets rows_left_out
}

@test "rows that are too long" {
    holds overlong
}

@test "datasets, packed in memory and in files" {
    skip_without_modules "$PEERS_PYTHON" datasets
    holds packed_datasets
}

@test "datasets that are streamed" {
    skip_without_modules "$PEERS_PYTHON" datasets
    holds streamed
}

@test "datasets, where there is no space for the file" {
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
