#!/usr/bin/env bats
# crash.bats - after a power failure at any point, a job with a state resumes,
# and its outputs are the same bytes.
#
# tests/crash.py does the work; `make crash` tries 10,000 cuts, and the short
# form 150.
#
# SPDX-License-Identifier: MIT

load ../support/helpers

setup() {
    start
    skip_if_sanitized
    module=${abs_top_builddir:?}/tests/support/.libs/write-log.so
    [ -e "$module" ] || skip "no shared libraries were built"
    # If there is a log, it has an effect.
    WRITE_LOG=$PWD/log LD_PRELOAD=$module packstream -q -L 4 -o o </dev/null
    [ -s log ] || skip "LD_PRELOAD has no effect"
}

crash() {
    python3 "${abs_top_srcdir:?}/tests/crash.py" "$@" "$abs_top_builddir"
}

@test "power cuts" {
    local points=${LONG:+500}
    crash --points="${points:-60}"
}

@test "signals at many steps of saving a state" {
    crash --signals=97
}

@test "data not synced to disk is found missing" {
    run -1 crash --points=60 --plant=no-sync
    [[ $output == *" lost"* ]]
    run -1 crash --points=60 --plant=no-folder
    [[ $output == *" lost"* ]]
}

@test "the folder of a new output is synced to disk, through a link, too" {
    mkdir links there
    ln -s ../there/out links/out
    WRITE_LOG=$PWD/log LD_PRELOAD=$module packstream -q -L 4 --state=s \
        -o links/out </dev/null
    python3 - <<'EOF'
import os
import struct
with open("log", "rb") as log:
    while head := log.read(25):
        kind, place, inode, n = struct.unpack("=cQQQ", head)
        log.read(n)
        if kind == b"D" and inode == os.stat("there").st_ino:
            raise SystemExit
raise SystemExit("the folder was not synchronised")
EOF
}
