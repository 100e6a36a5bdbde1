#!/usr/bin/env bats
#
# faults.bats - whichever system call fails in any program, no data is lost and
# no message is wrong.
#
# tests/support/faults.bash does the work, because bats is too slow for
# thousands of runs.  By default only some calls fail; `make faults` makes each
# one fail, which takes minutes.
#
# SPDX-License-Identifier: MIT

load ../support/helpers

setup_file() {
    bats_require_minimum_version 1.5.0
    load ../support/helpers
    cd "$BATS_FILE_TMPDIR" || return 1
    bash "${abs_top_srcdir:?}/tests/support/faults.bash" inputs
}

# The reason that calls cannot be made to fail here, if any.
obstacle() {
    case ${CFLAGS-} in
        *-fsanitize=*) echo 'built with a sanitizer' ;;
        *)
            FAULTS_SO=${abs_top_builddir:?}/tests/support/.libs/faults.so
            if [ ! -e "$FAULTS_SO" ]; then
                echo 'no shared libraries were built'
            elif ! works; then
                echo 'LD_PRELOAD has no effect'
            fi
            ;;
    esac
}

# A program whose memory cannot be allocated does not start.
works() {
    ! LD_PRELOAD=$FAULTS_SO FAULT_CALL=malloc FAULT_AT=1 FAULT_FOREVER=1 \
        FAULT_ERRNO=ENOMEM packstream -L 4 </dev/null >/dev/null 2>&1
}

# each calls|world SCENARIO...: prints the number of faults of each scenario,
# and the errors.
each() {
    local scenario why failed=0
    skip_if_quick
    why=$(obstacle)
    [ -z "$why" ] || skip "$why"
    export FAULTS_SO=${abs_top_builddir:?}/tests/support/.libs/faults.so
    for scenario in "${@:2}"; do
        cp "$BATS_FILE_TMPDIR"/* .
        timeout 3600 bash "$abs_top_srcdir/tests/support/faults.bash" "$1" \
            "$scenario" | sed 's/^/# /' >&3 || failed=1
    done
    [ "$failed" = 0 ]
}

packing=(raw pipes framed unzstd)
busy=(rejects zstd3 threads state resume)
other=(records restored unzip shares sequences verify jsonl stream repeated
    kept staged converted parts sorted merged)
# Rarer scenarios, and those whose calls others also make.
forms=(wide several stats shuffle prices zstd writer range share dealt look
    bytes ids mix shuffled npy llmc trl tfrecord megatron datatrove share_zstd
    indexed losses samples)

@test "every scenario in the table is run" {
    [ "$(bash "$abs_top_srcdir/tests/support/faults.bash" list | sort)" = \
        "$(printf '%s\n' "${packing[@]}" "${busy[@]}" "${other[@]}" \
            "${forms[@]}" | sort)" ]
}

@test "packstream: calls fail" { each calls "${packing[@]}"; }

@test "packstream: calls fail beside threads and other outputs" {
    each calls "${busy[@]}"
}

@test "all other programs: calls fail" {
    each calls "${other[@]}"
}

# bats test_tags=night
@test "rarer scenarios: calls fail, and are interrupted" {
    each calls "${forms[@]}"
    each world "${forms[@]}"
}

@test "packstream: calls are interrupted, and disks are full" {
    each world "${packing[@]}" "${busy[@]}"
}

@test "other programs: calls are interrupted, and disks are full" {
    each world "${other[@]}"
}
