#!/usr/bin/env bash
# run.sh - runs the fuzzing targets with clang and libFuzzer.
#
#     tests/fuzz/run.sh BUILD_DIR [--runs=N | --seconds=N] [--jobs=N]
#                       [--one-build] [TARGET]...
#
# runs each TARGET, or all of them, on N inputs (1000000 without either option),
# or for N seconds; --jobs runs several at once.  `make fuzz` in BUILD_DIR does
# that without options.  --one-build halves the build time, for short runs.
#
# All files are in BUILD_DIR/fuzzing: build/, a build with address and undefined
# behaviour sanitizers, and build-jobs/, one for the targets that pack; seeds/,
# the output of seeds.sh; corpus/TARGET, the inputs that found new coverage,
# with which the next run begins; findings/, inputs for which a check failed;
# and TARGET.log.  To reproduce a finding:
#
#     BUILD_DIR/fuzzing/build*/tests/fuzz/TARGET FINDING
#
# Exits with 0 if nothing was found, 77 without clang or libFuzzer, otherwise
# with 1.
#
# For AFL++, build the targets with its compiler:
#
#     ./configure CC=afl-clang-fast --disable-shared && make fuzzers
#     afl-fuzz -i BUILD_DIR/fuzzing/seeds/raw -o out -- tests/fuzz/raw @@
#
# SPDX-License-Identifier: MIT

set -u

all='raw framed zstd plain seekable filter state ids jsonl arrays megatron'
all="$all model tfrecord"

usage() {
    echo "usage: run.sh BUILD_DIR [--runs=N | --seconds=N] [--jobs=N]" \
        "[TARGET]..." >&2
    exit 64
}

top=$(cd "$(dirname "$0")/../.." && pwd -P)
[ -d "${1-}" ] || usage
place=$(cd "$1" && pwd -P)/fuzzing
shift
bound=-runs=1000000
jobs=1
one_build=
targets=
for argument; do
    case $argument in
        --runs=*) bound=-runs=${argument#*=} ;;
        --seconds=*) bound=-max_total_time=${argument#*=} ;;
        --jobs=*) jobs=${argument#*=} ;;
        --one-build) one_build=1 ;;
        -*) usage ;;
        *)
            case " $all " in
                *" $argument "*) targets="$targets $argument" ;;
                *) usage ;;
            esac
            ;;
    esac
done
targets=${targets:-$all}
mkdir -p "$place/findings" "$place/seeds" || exit 1

# Can clang link a libFuzzer program at all?
works() {
    printf '%s\n' '#include <stddef.h>' '#include <stdint.h>' \
        'int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n);' \
        'int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n)' \
        '{ return p == NULL && n > 0; }' >"$place/probe.c"
    "${CLANG:-clang}" -fsanitize=fuzzer,address,undefined \
        -o "$place/probe" "$place/probe.c" 2>"$place/probe.log"
}

# folder TARGET: where it is built.
folder() {
    case ${one_build:+filter}$1 in
        filter* | state) echo "$place/build-jobs" ;;
        *) echo "$place/build" ;;
    esac
}

# build_in FOLDER FLAGS: builds the targets of that folder.
build_in() {
    local target programs=
    for target in $targets; do
        [ "$(folder "$target")" != "$1" ] ||
            programs="$programs tests/fuzz/$target"
    done
    mkdir -p "$1" && cd "$1" || return 1
    [ -e Makefile ] ||
        "$top/configure" --quiet --disable-shared CC="${CLANG:-clang}" \
            CFLAGS="-g -O1 -fno-omit-frame-pointer $2" || return 1
    # Word splitting intended: names of programs.
    # shellcheck disable=SC2086
    [ -z "$programs" ] ||
        make -j "$(nproc)" FUZZ_LINK=-fsanitize=fuzzer $programs
}

# Packing compares numbers that it has computed.  Tracing these comparisons
# would teach a fuzzer nothing about the input, and take half of the time.
build() {
    local flags='-fsanitize=fuzzer-no-link,address,undefined'
    flags="$flags -fno-sanitize-recover=all"
    build_in "$place/build-jobs" \
        "$flags -fno-sanitize-coverage=trace-cmp" &&
        { [ -n "$one_build" ] || build_in "$place/build" "$flags"; } &&
        make -j "$(nproc)" tokcat packstream
}

# fuzz TARGET: one run; the last line of its output is the result.
fuzz() {
    local target=$1 most=1024 entropic=1
    case $target in
        plain | seekable) most=12288 ;;
        framed | zstd | arrays) most=1536 ;;
        filter | state) most=96 entropic=0 ;; # it would take half of the time
    esac
    mkdir -p "$place/corpus/$target"
    # A reproduced finding prints its whole stack.
    ASAN_OPTIONS=quarantine_size_mb=16:detect_leaks=1:malloc_context_size=2 \
        "$(folder "$target")/tests/fuzz/$target" "$bound" -max_len="$most" \
        -entropic="$entropic" \
        -timeout=20 -report_slow_units=20 \
        -rss_limit_mb=2048 -malloc_limit_mb=300 \
        -artifact_prefix="$place/findings/$target-" \
        -print_final_stats=1 "$place/corpus/$target" \
        "$place/seeds/$target" >"$place/$target.log" 2>&1
}

# tell TARGET: prints one line for a run, and findings in full.
tell() {
    local target=$1
    if fuzz "$target"; then
        printf 'ok - %s:' "$target"
        awk '/^stat::number_of_executed_units/ { runs = $2 }
            /^stat::average_exec_per_sec/ { rate = $2 }
            / cov: / { cover = $4 }
            END { printf " %d inputs, %d a second, %d edges\n",
                runs, rate, cover }' "$place/$target.log"
        return 0
    fi
    printf 'not ok - %s:\n' "$target"
    tail -n 60 "$place/$target.log"
    return 1
}

if ! works; then
    echo "run.sh: nothing is fuzzed: ${CLANG:-clang} with libFuzzer is not" \
        "there" >&2
    exit 77
fi
build >"$place/build.log" 2>&1 || {
    tail -n 40 "$place/build.log" >&2
    exit 1
}
PATH=$(folder raw):$PATH "$top/tests/fuzz/seeds.sh" "$place/seeds" || exit 1

export -f folder fuzz tell
export place bound one_build
# Word splitting intended: names of targets.  Text in single quotes is for
# another shell.
# shellcheck disable=SC2086,SC2016
printf '%s\n' $targets |
    xargs -P "$jobs" -I '{}' bash -c 'tell "$1"' tell '{}' || exit 1
