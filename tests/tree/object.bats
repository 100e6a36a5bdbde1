#!/usr/bin/env bats
# object.bats - packs of URLs: by HTTP from a server that can fail in many ways,
# and from moto's S3 server.
#
# The checks are functions of tests/support/object.py.  They run if PEERS_PYTHON
# names a python3 with packstream installed by pip, fsspec, aiohttp, s3fs and
# moto[server]; one needs torch.
#
# SPDX-License-Identifier: MIT

load ../support/helpers

# Prints the reason that nothing can be tested, if any.
lacking() {
    if [ -z "${PEERS_PYTHON-}" ]; then
        echo "PEERS_PYTHON names no python3 with fsspec and s3fs"
    else
        lacks_module "$PEERS_PYTHON" packstream._native fsspec aiohttp s3fs \
            moto flask || true
    fi
}

# Test the installed package, not the source tree.
check() {
    python=$PEERS_PYTHON support object.py "$@"
}

# Runs all checks except the nightly one before the tests: see forked.py.
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

@test "any order, one request for each block; the index is read once" {
    holds reads ahead sparse numpy_alone
}

@test "timeouts, 5xx, cut bodies, wrong ranges and damage: retried or refused" {
    holds faults
}

@test "a file replaced while it is read is refused" {
    holds replaced memory
}

@test "a cache in memory or in a folder: bounded, shared, checked" {
    holds cache
}

@test "S3: the same packs; a file that was replaced, is empty or missing" {
    holds s3
}

# bats test_tags=night
@test "PackDataset and Deal with workers, resumed from a state" {
    skip_without_modules "$PEERS_PYTHON" torch
    check torch
}
