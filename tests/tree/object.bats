#!/usr/bin/env bats
# object.bats - packs of URLs: by HTTP from a server that can fail in many
# ways, and from moto's server, which speaks S3.
#
# The checks are functions of object.py in tests/support.  They run where
# PEERS_PYTHON names a python3 that has packstream itself, as pip installs it,
# fsspec, aiohttp, s3fs and moto[server]; one needs torch.
#
# SPDX-License-Identifier: MIT

load ../support/helpers

# Why nothing can be tested, or nothing.
lacking() {
    if [ -z "${PEERS_PYTHON-}" ]; then
        echo "PEERS_PYTHON names no python3 with fsspec and s3fs"
    else
        lacks_module "$PEERS_PYTHON" packstream._native fsspec aiohttp s3fs \
            moto flask || true
    fi
}

# What pip installed is tested, not what lies in the tree.
check() {
    python=$PEERS_PYTHON support object.py "$@"
}

# All checks but that for the night, before the tests: see forked.py.
setup_file() {
    cd "$BATS_FILE_TMPDIR" || return
    [ -z "${QUICK-}" ] || return 0
    lacking >reasons
    [ ! -s reasons ] || return 0
    check each . <<END
import fsspec.implementations.http
reads
ahead
sparse
numpy_alone
faults
replaced
memory
cache
s3 ${abs_top_srcdir:?}/docs/object-storage.md
END
}

setup() {
    start_checked
}

@test "any order, by as many requests as there are blocks; the index once" {
    holds reads ahead sparse numpy_alone
}

@test "timeouts, 5xx, cut bodies, wrong ranges and damage: again, or refused" {
    holds faults
}

@test "a file that is replaced under way is refused" {
    holds replaced memory
}

@test "a cache in memory or in a folder: bounded, shared, checked" {
    holds cache
}

@test "S3: the same packs; a file that was replaced, is empty or not there" {
    holds s3
}

# bats test_tags=night
@test "PackDataset and Deal with workers, and a state in between" {
    skip_without_modules "$PEERS_PYTHON" torch
    check torch
}
