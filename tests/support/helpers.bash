# helpers.bash - functions shared by the command-line tests: `load helpers`.
#
# `make check` sets the environment.  By hand, from the top of the tree,
# `bats tests/programs/x.bats` tests the programs in build/.
#
# A test starts in an empty folder of its own and writes only there.
#
# SPDX-License-Identifier: MIT

bats_require_minimum_version 1.5.0

# made NAME: the variable's value in the Makefile, as set by configure.
made() {
    sed -n "s/^$1 = //p" "$abs_top_builddir/Makefile"
}

if [ -z "${abs_top_builddir-}" ]; then
    abs_top_srcdir=$(cd "$BATS_TEST_DIRNAME/../.." && pwd)
    abs_top_builddir=$abs_top_srcdir/build
    PATH=$abs_top_builddir/.libs:$abs_top_builddir:$(made PYTHON_DIR)$PATH
    LD_LIBRARY_PATH=$abs_top_builddir/.libs
    LC_ALL=C
    for name in PYTHON_NUMPY CC CFLAGS NM MANDOC PACKAGE_VERSION; do
        printf -v "$name" '%s' "$(made "$name")"
    done
    export PATH LD_LIBRARY_PATH LC_ALL
fi

# Keep bytecode out of the tree, unless there is another place for it.
[ -n "${PYTHONPYCACHEPREFIX-}" ] || export PYTHONDONTWRITEBYTECODE=1

# A test file with its own setup calls this there.  A command that fails in the
# middle of a pipe is a failure, so no reader may end before its writer.
#
# bats traces each command to report the line of a failure, which takes 0.2 ms
# a command.  From here on it traces the test's own commands, but not inside
# functions that the test calls.
start() {
    set +T
    declare -ft "$BATS_TEST_NAME"
    cd "$BATS_TEST_TMPDIR" || return 1
    set -o pipefail
}

setup() {
    start
}

# A process that a failed test left in the background may wait for ever, and
# bats for the process.
teardown() {
    local left
    left=$(jobs -p)
    # shellcheck disable=SC2086 # words
    [ -z "$left" ] || kill $left 2>/dev/null || true
}

# start_training: start, with one thread for the BERT of the examples: it is
# small, and other tests may be running.
start_training() {
    start
    command -v packtrain >/dev/null || skip "the BERT in examples is not built"
    export OMP_NUM_THREADS=1
}

# allow_mpirun: lets mpirun start more ranks than processors, also as root, on
# this machine only.  Each test has its own session folder: the last of a user's
# runs to end removes the shared one in /tmp, and a run that is just starting in
# it would fail.
allow_mpirun() {
    export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
    export OMPI_MCA_rmaps_base_oversubscribe=1 OMPI_MCA_btl=self,vader
    export OMPI_MCA_btl_vader_single_copy_mechanism=none
    export OMPI_MCA_orte_tmpdir_base=$BATS_TEST_TMPDIR
}

# skip_without CMD...: skips the test if a command is not installed.
skip_without() {
    local command
    for command; do
        command -v "$command" >/dev/null || skip "$command is not installed"
    done
}

# skip_without_numpy: skips the test if no python3 has numpy; otherwise
# "$PYTHON_NUMPY" is one that has it.
skip_without_numpy() {
    case ${PYTHON_NUMPY:-no} in
        no) skip "no python3 has numpy" ;;
    esac
}

# skip_without_xxhash: the same, also if it lacks the module xxhash.
skip_without_xxhash() {
    skip_without_numpy
    "$PYTHON_NUMPY" -c 'import xxhash' 2>/dev/null ||
        skip "python3 has no xxhash module"
}

# skip_if_quick: skips a long test if QUICK is set, as .ci/run does for its
# extra builds. LONG determines how many cases a test tries.
skip_if_quick() {
    [ -z "${QUICK-}" ] || skip "QUICK is set"
}

# skip_if_sanitized: skips a test of memory or address space, because the
# sanitizers use far more of it than the programs.
skip_if_sanitized() {
    case ${CFLAGS-} in
        *-fsanitize=*) skip "built with a sanitizer" ;;
    esac
}

# little BYTES N...: each number as a little-endian integer of BYTES bytes.
little() {
    local bytes=$1 number i text
    shift
    for number; do
        text=
        for ((i = 0; i < bytes; i++)); do
            printf -v text '%s\\x%02x' "$text" $((number >> 8 * i & 255))
        done
        printf '%b' "$text"
    done
}

u8() { little 1 "$@"; }
u16() { little 2 "$@"; }
u32() { little 4 "$@"; }
u64() { little 8 "$@"; }

# record16 TOKEN..., record32 TOKEN...: a raw token record.
record16() {
    u32 $#
    u16 "$@"
}

record32() {
    u32 $#
    u32 "$@"
}

# many N LENGTH: N raw u16 records of LENGTH tokens each, written quickly.
many() {
    seq "$1" | sed "s/.*/$(seq -s ' ' "$2")/" | tokcat --from=ids --raw
}

# gives WIDTH RECORDS OPTION...: `tokcat --raw` writes these raw records of
# WIDTH-bit tokens, with commas between the records.
gives() {
    local tokens
    tokcat --raw "${@:3}" | cmp - <(while read -ra tokens; do
        "record$1" "${tokens[@]}"
    done <<<"${2//,/$'\n'}")
}

# number FILE OFFSET BYTES: the unsigned number at that offset.
number() {
    od -An -tu"$3" -j "$2" -N "$3" "$1" | tr -d ' '
}

# block_at FILE N: the offset of block N of a pack stream, from 0; END is the
# last block.
block_at() {
    local at=4096 i
    for ((i = 0; i < $2; i++)); do
        at=$((at + $(number "$1" $((at + 24)) 8)))
    done
    echo "$at"
}

# some_packs: writes records of bytes to x.tok, their packs of 64 tokens to
# x.pks, and these compressed to x.zst.  All packs are in one block: 64 bytes,
# rows of 128 bytes, heads of 40, sequence rows.
some_packs() {
    seq 3000 | factor | tokcat -q --from=bytes >x.tok
    packstream -q -L 64 x.tok >x.pks
    packstream -q -L 64 --zstd=1 x.tok >x.zst
}

# piped FILE: prints its content, through a pipe.
piped() {
    cat "$1"
}

# flip FILE OFFSET [MASK]: changes bits of the byte at OFFSET, in place.
flip() {
    local byte
    byte=$(od -An -tu1 -j "$2" -N 1 "$1")
    u8 $((byte ^ ${3-1})) |
        dd of="$1" bs=1 seek="$2" conv=notrunc status=none
}

# absent NAME...: the files do not exist.
absent() {
    local name
    for name; do
        [ ! -e "$name" ] || return 1
    done
}

# draw COUNT LONGEST VOCAB [SEED [SKEW]]: COUNT lines of 1 to LONGEST ids below
# VOCAB; a larger SKEW makes long lines rarer.  A seed determines the lines.
draw() {
    awk -v count="$1" -v longest="$2" -v vocab="$3" -v x="${4-42}" \
        -v skew="${5-1}" '
        function below(n) {
            x = (x * 16807) % 2147483647
            return x % n
        }
        BEGIN {
            for (i = 0; i < count; i++) {
                line = below(vocab)
                n = below(longest)
                for (n = int(longest * (n / longest) ^ skew); n > 0; n--)
                    line = line " " below(vocab)
                print line
            }
        }'
}

# bert_lines COUNT LONGEST [VOCAB [SEED]]: lines of JSON with the channels of
# BERT and a loss mask; a seventh of the tokens are masked.  A seed determines
# the lines.
bert_lines() {
    awk -v count="$1" -v longest="$2" -v vocab="${3-30000}" -v x="${4-42}" '
        function below(n) {
            x = (x * 16807) % 2147483647
            return x % n
        }
        BEGIN {
            for (i = 0; i < count; i++) {
                ids = types = labels = loss = ""
                n = 1 + below(longest)
                a = below(n + 1)
                for (k = 0; k < n; k++) {
                    comma = k ? "," : ""
                    ids = ids comma below(vocab)
                    types = types comma (k >= a)
                    labels = labels comma (k % 7 == 3 ? below(vocab) : -100)
                    loss = loss comma below(2)
                }
                printf "{\"input_ids\":[%s],\"token_type_ids\":[%s]," \
                    "\"labels\":[%s],\"loss_mask\":[%s]," \
                    "\"next_sentence_label\":%d}\n", ids, types, labels, loss,
                    below(2)
            }
        }'
}

# size FILE: its bytes.
size() {
    wc -c <"$1" | tr -d ' '
}

# without_lengths FILE: framed token records, a stream, without its LENGTHS.
without_lengths() {
    local all lengths
    all=$(size "$1")
    lengths=$(number "$1" $((all - 40)) 8)
    head -c $((all - 32 - lengths)) "$1"
    tail -c 32 "$1"
}

# least_memory OPTION...: the least -M that packstream accepts with them.
least_memory() {
    { packstream "$@" -M 1 </dev/null 2>&1 >/dev/null || :; } |
        sed -n 's/.* need at least \([0-9]*\) bytes$/\1/p'
}

# is STATUS MESSAGE CMD...: CMD exits with STATUS and prints only MESSAGE.
is() {
    run --separate-stderr "${@:3}"
    # shellcheck disable=SC2154
    [ "$status" = "$1" ] && [ "$stderr" = "$2" ] && return
    printf 'ended with %s and said: %s\n' "$status" "$stderr"
    printf '    wanted %s and     : %s\n' "$1" "$2"
    return 1
}

# bad_option WHY OPTION...: "$program" refuses the command line, which ends with
# "${operands[@]}" if set.
operands=()
bad_option() {
    is 64 "${program:?}: $1
$program: try '$program --help'" "$program" "${@:2}" "${operands[@]}" \
        </dev/null
    # shellcheck disable=SC2154 # `is` sets it
    [ -z "$output" ]
}

# not_with OPTION FORM [OPTION...]: tokcat refuses OPTION with --from=FORM.
not_with() {
    bad_option "$1 cannot be used with --from=$2" --from="$2" "${@:3}"
}

# refused STATUS TEXT COMMAND...: it exits with STATUS and prints TEXT.  If
# "$speaker" is set, stderr is one line that begins with it, and may be followed
# by one on --help.
# shellcheck disable=SC2154 # run sets them
refused() {
    if [ -z "${speaker-}" ]; then
        run -"$1" "${@:3}"
        [[ $output == *"$2"* ]]
        return
    fi
    stderr=
    run --separate-stderr -"$1" "${@:3}"
    printf '%s\n' "$stderr"
    [[ $stderr == "$speaker"*"$2"* ]] &&
        [ "$(grep -cv -- '--help' <<<"$stderr")" -eq 1 ]
}

# lacks_module PYTHON NAME...: prints the module that this python3 lacks; fails
# if it has all.  Finding modules is faster than importing, which takes seconds.
lacks_module() {
    "$1" -c 'import importlib.util, sys
for name in sys.argv[2:]:
    try:
        there = importlib.util.find_spec(name)
    except ImportError:
        there = None
    if not there:
        sys.exit(print("%s has no %s" % (sys.argv[1], name)))
sys.exit(1)' "$@"
}

# skip_without_modules PYTHON NAME...
skip_without_modules() {
    [ -n "$1" ] || skip "PEERS_PYTHON names no python3"
    ! lacks_module "$@" >"$BATS_TEST_TMPDIR/lacking" ||
        skip "$(cat "$BATS_TEST_TMPDIR/lacking")"
}

# own_python PACKAGE...: makes env/bin/python, a separate environment with these
# packages, because they pin others; and own, a folder with the packstream of
# PEERS_PYTHON.
own_python() {
    local -x UV_CACHE_DIR=$BATS_FILE_TMPDIR/uv
    "$PEERS_PYTHON" -m venv env
    env/bin/pip install -q --retries 1 --timeout 20 uv ||
        skip "pip cannot install packages here"
    env/bin/uv pip install -q --python env/bin/python cffi numpy "$@"
    mkdir own
    "$PEERS_PYTHON" -c 'import os, packstream
os.symlink(os.path.dirname(packstream.__file__), "own/packstream")'
}

# support SCRIPT [ARGUMENT...]: runs a Python script of tests/support with
# "$python", by default a python3 that ignores installed packages, which starts
# in half the time.
support() {
    local run=("${python:-python3}")
    [ -n "${python-}" ] || run+=(-S)
    "${run[@]}" "${abs_top_srcdir:?}/tests/support/$1" "${@:2}"
}

# start_checked: start, for tests whose checks forked.py ran in setup_file;
# skips them if the file "reasons" has a reason.
start_checked() {
    start
    skip_if_quick
    [ ! -s "$BATS_FILE_TMPDIR/reasons" ] ||
        skip "$(head -n 1 "$BATS_FILE_TMPDIR/reasons")"
    [ -n "${PEERS_PYTHON-}" ] || skip "PEERS_PYTHON names no python3"
}

# holds CHECK...: shows the output of checks that forked.py ran in setup_file,
# and fails if one of them failed.
holds() {
    local name failed=0
    for name; do
        cat "$BATS_FILE_TMPDIR/$name/told"
        [ "$(cat "$BATS_FILE_TMPDIR/$name/status")" = 0 ] || failed=1
    done
    [ "$failed" = 0 ]
}

# model COMMAND [ARGUMENT...]: packstat.py, written from the format alone.
model() {
    support packstat.py "$@"
}

# poke FILE PLACE N...: changes numbers and updates the checksums.
poke() {
    skip_without python3
    model poke "$@"
}

# stream DESCRIPTION: the stream that tests/support/tokcat.py describes.
stream() {
    support tokcat.py "$1"
}

# idle PID: waits until a process has done nothing for a while: it has read all
# input there is and written the resulting output.
idle() {
    local before='' now=none
    while [ "$before" != "$now" ]; do
        before=$now
        sleep 0.3
        now=$(awk '{ print $14 + $15 }' "/proc/$1/stat")
        # On a busy machine a runnable process may not have run.
        ! awk '$3 != "S" { busy = 1 } END { exit !busy }' \
            "/proc/$1/task/"*/stat || before=
    done
}

# eventually CMD...: waits until the command succeeds, up to a limit.
eventually() {
    local i
    for ((i = 0; i < 12000; i++)); do
        ! "$@" || return 0
        sleep 0.05
    done
    echo "in vain: $*"
    return 1
}

# into FILE COMMAND...: writes the command's output to FILE.
into() {
    "${@:2}" >"$1"
}

# is_larger FILE BYTES: whether the file exists and is larger.
is_larger() {
    [ -e "$1" ] && [ "$(size "$1")" -gt "$2" ]
}

# has_lines N FILE: whether it has N lines or more.
has_lines() {
    [ -e "$2" ] && [ "$(wc -l <"$2")" -ge "$1" ]
}

# gone PID: whether the process has ended, even if nobody waited for it.
gone() {
    ! kill -0 "$1" 2>/dev/null || grep -q '^State:.Z' "/proc/$1/status"
}

# exits STATUS PID: waits for a child of this shell to exit with STATUS.
exits() {
    local status=0
    wait "$2" || status=$?
    [ "$status" -eq "$1" ] || { echo "ended with $status"; return 1; }
}

# has_open PID FILE: whether the process has it open, or has ended.
has_open() {
    local fd
    for fd in "/proc/$1/fd/"*; do
        [ ! "$fd" -ef "$2" ] || return 0
    done
    gone "$1"
}

# opens FD HOW FIFO PID: opens the FIFO as descriptor FD, to write (>) or read
# (<), once the process has opened the other end.  If the process has ended
# before, a write fails, and a read returns the end of file.
opens() {
    local both
    exec {both}<>"$3"
    eventually has_open "$4" "$3"
    eval "exec $1$2\"\$3\""
    exec {both}>&-
}

# told_to_end SIGNAL PID: sends the signal once the process has read all input
# there is, and waits for its end.
told_to_end() {
    idle "$2"
    kill "-$1" "$2"
    eventually gone "$2"
}

# small_blocks N: from now on packstream makes blocks of N packs, so that small
# jobs write some before they end.
small_blocks() {
    local bin=$BATS_TEST_TMPDIR.bin
    mkdir "$bin"
    # shellcheck disable=SC2016 # expanded by the other shell
    printf '#!/bin/sh\nexec "%s" --block-packs=%d "$@"\n' \
        "$(command -v packstream)" "$1" >"$bin/packstream"
    chmod +x "$bin/packstream"
    export PATH=$bin:$PATH
}

# end_at FILE: the offset of the END block of a pack stream.
end_at() {
    local bytes
    bytes=$(size "$1")
    echo $((bytes - $(number "$1" $((bytes - 24)) 8)))
}

# blocks_from N FILE: the blocks of packs of a stream, from block N on, or none
# with N "end"; and the totals and the digest of END, which do not depend on
# the positions of blocks.
blocks_from() {
    local from end
    from=$(end_at "$2")
    end=$from
    [ "$1" = end ] || from=$(block_at "$2" "$1")
    head -c "$end" "$2" | tail -c "+$((from + 1))"
    head -c $((end + 184)) "$2" | tail -c 120
}

# stopped_at BYTES OPTION...: runs a job on the first BYTES of x and kills it
# with SIGKILL.  Its state is in s, its packs are in out.
stopped_at() {
    local bytes=$1 pid
    shift
    mkfifo in
    packstream -q --state=s --resume --state-every=25 -o out "$@" in 2>err &
    pid=$!
    opens 7 '>' in "$pid"
    {
        head -c "$bytes" x
        idle "$pid"
        kill -9 "$pid"
    } >&7
    exec 7>&-
    wait "$pid" || true
    rm in
}

# goes_on OPTION...: a job that is stopped at several offsets of x and resumed
# each time, from a pipe and from the file, gives the same packs, counts and,
# with --rejects=r, rejects as an uninterrupted one.  Do not call it before an
# ||, which would ignore failures of all commands but the last.
goes_on() {
    local all part
    rm -f s out r dropped
    packstream "$@" -q --stats=json -o wanted x 2>told
    if [ -e r ]; then
        mv r dropped
    fi
    all=$(size x)
    for part in 10 45 90; do
        stopped_at $((all * part / 100)) "$@"
        [ -s s ]
    done
    packstream "$@" -q --state=s --resume --stats=json -o out <x 2>again
    cmp wanted out
    cmp told again
    if [ -e dropped ]; then
        cmp dropped r
    fi
}
