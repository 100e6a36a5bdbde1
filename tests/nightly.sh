#!/usr/bin/env bash
# nightly.sh - all tests in their long forms, and a table of the results.
#
#     tests/nightly.sh BUILD_DIR [--part=N] [STEP]...
#     tests/nightly.sh --report BUILD_DIR
#
# runs the STEPs, or all, in BUILD_DIR, after `make`.  All steps take about ten
# hours on two processors, most of it for ten million inputs of each fuzzing
# target.  With --part=N each step that has a number of cases does an Nth of
# them.
#
# A step writes its output to BUILD_DIR/nightly/STEP.log and its row of the
# table to STEP.row; a later run of the same step replaces both.  --report puts
# the rows into RELIABILITY.md, between its two marks.
#
# `./bootstrap deps-night` installs the tools.  Tests of recipes and of cuDNN's
# plans need Python packages as well: see CONTRIBUTING.md.
#
# Exits with 0 if every step that could be run found nothing.
#
# SPDX-License-Identifier: MIT

set -u
export LC_ALL=C LONG=1

steps="check faults resume crash signals differential memory slow builds
    static dist debian wheel cuda valgrind soak fuzz"

usage() {
    echo "usage: nightly.sh BUILD_DIR [--part=N] [STEP]..." >&2
    echo "       nightly.sh --report BUILD_DIR" >&2
    exit 64
}

tree=$(cd "$(dirname "$0")/.." && pwd -P)

# ---- Steps: each prints its output, and its figure in the last line ----

# counted FILTER COMMAND...: prints the counts of `make check` as the last line.
counted() {
    local name=$1 status=0
    shift
    "$@" || status=$?
    awk '/^# (PASS|SKIP|FAIL|ERROR):/ { n[$2] += $3 } END {
        printf "%d passed, %d skipped, %d failed\n", n["PASS:"], n["SKIP:"],
            n["FAIL:"] + n["ERROR:"] }' "nightly/$name.log"
    return "$status"
}

run_check() { counted check make -j"$(nproc)" check; }

run_faults() {
    local status=0
    make check FAULTS=all TESTS=tests/programs/faults.bats || status=$?
    awk '/^# .* faults, / { n += $3; failures += $5; scenarios[$2] } END {
        printf "%d faults in %d scenarios, %d failures\n", n,
            length(scenarios), failures }' tests/programs/faults.log
    return "$status"
}

run_resume() {
    RESUME_KILLS=$((200 / part + 1)) \
        counted resume make check TESTS=tests/programs/resume.bats
    local status=$?
    echo "$((200 / part + 1)) kills in each of its tests"
    return "$status"
}

run_crash() {
    python3 "$tree/tests/crash.py" --points=$((10000 / part)) \
        --seed="$seed" "$PWD"
}

run_signals() {
    python3 "$tree/tests/crash.py" --signals="$part" "$PWD"
}

run_differential() {
    make differential COUNT=$((10000 / part)) SEED="$seed"
}

run_memory() {
    make tests/bench/gen || return
    sh "$tree/tests/memory-long.sh" $((10 / part + 1)) 64 \
        -L 512 -d 16 -w 16384
}

run_slow() {
    SLOW_SECONDS=$((60 / part + 1)) \
        counted slow make check TESTS=tests/programs/slow.bats
}

run_builds() {
    "$tree/tests/builds.sh" nightly/builds
    local status=$?
    echo "$(grep -c ' 0 changed' nightly/builds.log) builds agree with the first"
    return "$status"
}

# Also with musl, if libzstd and the other libraries were built for it: Debian's
# are not, so STATIC_MUSL names a PKG_CONFIG_LIBDIR that has them.
run_static() {
    "$tree/tests/static.sh" nightly/static || return
    [ -n "${STATIC_MUSL-}" ] || {
        echo "$(grep -c 'bytes$' nightly/static.log) programs, with libc alone"
        return
    }
    "$tree/tests/static.sh" nightly/static-musl CC=musl-gcc \
        PKG_CONFIG_LIBDIR="$STATIC_MUSL" || return
    echo "$(grep -c 'bytes$' nightly/static.log) programs, with libc and musl"
}

# Builds the tarball from read-only sources, installs it and removes it again.
# .ci/run checks that it has all tests, so only those of the installation run,
# and one other.
run_dist() {
    QUICK=1 counted dist make -j"$(nproc)" distcheck VERBOSE=1 \
        TESTS="tests/lib/version-t tests/tree/exports.bats \
            tests/tree/install.bats" \
        DISTCHECK_CONFIGURE_FLAGS='CFLAGS=-O0 CXXFLAGS=-O0 --without-cuda'
}

# make reports all failures alike, so a skipped check is found by its output.
run_debian() {
    local status=0 figure
    make check-debian || status=$?
    ! grep -q '^skipped: ' nightly/debian.log || return 77
    figure=$(grep -E '^(lintian: |not looked at)' nightly/debian.log)
    echo "$figure"
    return "$status"
}

# make also hides the exit status of a skipped check.
run_wheel() {
    local status=0 figure
    make check-wheel || status=$?
    ! grep -q '^skipped: ' nightly/wheel.log || return 77
    figure=$(grep -c ' runs$' nightly/wheel.log)
    echo "runs in $figure minimal systems"
    return "$status"
}

run_cuda() {
    local status=0
    make -j"$(nproc)" check-cuda || status=$?
    ! command -v clang-tidy >/dev/null || make cuda-tidy || status=1
    ! grep -q '^NVCC = /' Makefile || make cuda-report || status=1
    awk '/ passed$/ { n += $(NF - 1) } END { printf "%d passed\n", n }' \
        nightly/cuda.log
    return "$status"
}

run_valgrind() {
    make valgrind
    local status=$?
    echo "$(grep -c '^ok' nightly/valgrind.log) tests without an error"
    return "$status"
}

run_soak() {
    make tests/bench/gen || return
    "$tree/tests/soak.sh" . --minutes=$((60 / part + 1))
}

run_fuzz() {
    "$tree/tests/fuzz/run.sh" . --runs=$((10000000 / part)) \
        --jobs="$(nproc)"
    local status=$?
    awk '/^ok - / { n += $4; targets++ } END {
        printf "%d inputs for %d targets\n", n, targets }' nightly/fuzz.log
    return "$status"
}

# ---- The table ----

# run STEP: writes its log and its row; returns the step's status.
run() {
    local step=$1 status=0 began=$SECONDS result
    "run_$step" >"nightly/$step.log" 2>&1 </dev/null || status=$?
    case $status in
        0) result="nothing found" ;;
        77) result="not run here" ;;
        *) result="**failed**, $status" ;;
    esac
    printf '| %s | %s | %s | %s | %d min |\n' "$step" "$result" \
        "$(tail -n 1 "nightly/$step.log" | tr '|' '/')" "$(date +%F)" \
        $(((SECONDS - began + 59) / 60)) >"nightly/$step.row"
    cat "nightly/$step.row"
    [ "$status" -eq 0 ] || [ "$status" -eq 77 ]
}

report() {
    local step
    {
        echo "$(git -C "$tree" describe --always --dirty), $(uname -sm)," \
            "$(nproc) processors, $(${CC:-cc} --version | head -n 1):"
        echo
        echo "| step | result | figure | run | took |"
        echo "|---|---|---|---|---|"
        for step in $steps; do
            cat "nightly/$step.row" 2>/dev/null || true
        done
    } >nightly/table
    awk -v table=nightly/table '
        /^<!-- end of the table -->/ { within = 0; ends++ }
        !within { print }
        /^<!-- the table of nightly.sh -->/ {
            within = 1
            while ((getline line <table) > 0)
                print line
        }
        END { exit ends != 1 }' "$tree/RELIABILITY.md" >nightly/page &&
        cat nightly/page >"$tree/RELIABILITY.md"
}

if [ "${1-}" = --report ]; then
    cd "${2:?}" || usage
    report
    exit
fi
[ -e "${1-}/config.status" ] || usage
cd "$1" || usage
shift
part=1
seed=$(date +%Y%m%d)
chosen=
for word; do
    case $word in
        --part=[1-9]*) part=${word#*=} ;;
        -*) usage ;;
        *) chosen="$chosen $word" ;;
    esac
done
export PATH="$PWD/.libs:$PWD:$PATH" LD_LIBRARY_PATH="$PWD/.libs"
mkdir -p nightly
failures=0
for step in ${chosen:-$steps}; do
    declare -F "run_$step" >/dev/null || usage
    run "$step" || failures=$((failures + 1))
done
[ "$failures" -eq 0 ]
