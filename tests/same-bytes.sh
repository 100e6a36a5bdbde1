#!/bin/sh
# same-bytes.sh - checks that two builds write the same bytes for the same jobs:
#
#   tests/same-bytes.sh BUILD_DIR           prints a digest for each job
#   tests/same-bytes.sh BUILD_DIR OLDER     compares with those of OLDER
#
# A job is a command line of one of the programs, on inputs made by
# tests/bench/gen and tokcat of BUILD_DIR; the digest is that of all output,
# messages included.  With OLDER, jobs that it left unfinished are resumed by
# BUILD_DIR, from the states of OLDER.  Prints the differences, and exits with 1
# if there are any.  For changes that must not change the packs; not part of
# `make check`.
#
# SPDX-License-Identifier: MIT

set -eu
LC_ALL=C
export LC_ALL

build=$(cd "${1:?usage: same-bytes.sh BUILD_DIR [OLDER]}" && pwd)
older=${2:+$(cd "$2" && pwd)}


if [ ! -x "$build/tests/bench/gen" ]; then
    echo "same-bytes.sh: $build/tests/bench/gen is not there; \`make" \
        'tests/bench/gen` makes it' >&2
    exit 1
fi

work=$(mktemp -d "${TMPDIR:-/tmp}/same-bytes.XXXXXX")
trap 'rm -rf "$work"' EXIT
trap 'exit 1' HUP INT TERM
cd "$work"

# use BUILD_DIR: its programs, not libtool's wrappers.
use() {
    PATH=$1/.libs:$1:$start_path
    LD_LIBRARY_PATH=$1/.libs
    export PATH LD_LIBRARY_PATH
}
start_path=$PATH

# ---- Inputs ----

make_inputs() {
    gen=$build/tests/bench/gen
    "$gen" --bytes=3000000 --longest=512 >text.u16
    "$gen" --bytes=2000000 --longest=4096 --mean=600 --width=4 --seed=2 \
        >long.u32
    "$gen" --bytes=1000000 --longest=512 --mean=20 --seed=3 >short.u16
    "$gen" --bytes=1500000 --longest=900 --mean=300 --seed=4 >over.u16
    awk 'BEGIN {
        srand(5)
        for (i = 0; i < 4000; i++) {
            n = 1 + int(120 * rand() * rand())
            ids = labels = ""
            for (k = 0; k < n; k++) {
                ids = ids (k ? "," : "") int(rand() * 70000)
                labels = labels (k ? "," : "") (rand() < 0.3 ? -100 : k)
            }
            print "{\"input_ids\":[" ids "],\"labels\":[" labels "]," \
                "\"source\":" i % 7 "}"
        }
    }' >lines.jsonl
    awk 'BEGIN {
        srand(6)
        for (i = 0; i < 3000; i++) {
            n = 1 + int(60 * rand())
            for (k = 0; k < n; k++)
                printf "%d ", rand() * 60000
            print ""
        }
    }' >lines.ids
    tokcat -q --from=jsonl -t u32 --channel=labels:i32:-100 \
        --channel=source:u8 --vocab=70000 --pad-id=3 lines.jsonl >lines.tok
    tokcat -q --from=ids --eos-id=2 lines.ids >ids.tok
    packstream -q -L 512 -d 4 text.u16 -o text.pks
    packstream -q -L 128 lines.tok -o lines.pks
    packstat --histogram text.pks >text.hist
}

# ---- Jobs: the name of a program and its options, a line each ----

jobs() {
    cat <<'JOBS'
packstream -L 512 text.u16
packstream -L 512 -d 3 text.u16
packstream -L 512 -d 16 -w 256 text.u16
packstream -L 512 --block-packs=64 text.u16
packstream -L 512 -d 8 -w 4096 text.u16
packstream -L 384 --overlong=drop text.u16
packstream -L 384 --overlong=truncate -w 100 text.u16
packstream -L 384 --overlong=split -d 5 text.u16
packstream -L 300 --overlong=drop --rejects=all.out over.u16
packstream -L 512 --order=input text.u16
packstream -L 512 --shuffle=7 text.u16
packstream -L 512 --shuffle=8 --max-delay=9000 -w 512 text.u16
packstream -L 512 --max-delay=1024 text.u16
packstream -L 512 -a spfhp text.u16
packstream -L 512 -a nnlshp -w 512 text.u16
packstream -L 512 -a bestfit text.u16
packstream -L 512 -a nextfit text.u16
packstream -L 512 -a none text.u16
packstream -L 512 -a concat text.u16
packstream -L 512 --even-cost text.u16
packstream -L 512 --align=8 text.u16
packstream -L 512 --align=64 -d 4 text.u16
packstream -L 512 --flush-every=700 text.u16
packstream -L 512 --pad-id=9 --vocab=65536 text.u16
packstream -L 512 --vocab=60000 --out-of-vocab=drop text.u16
packstream -L 512 --zstd text.u16
packstream -L 512 --zstd=9 -T 1 text.u16
packstream -L 512 -T 3 text.u16
packstream -L 512 --stats text.u16
packstream -L 512 --stats=json -d 3 text.u16
packstream -L 512 -v text.u16
packstream -L 4096 -t u32 long.u32
packstream -L 8192 -t u32 -d 64 long.u32
packstream -L 4096 -t u32 -w 64 --zstd=1 long.u32
packstream -L 16384 -t u32 -d 4 long.u32
packstream -L 4096 -t u32 -a concat long.u32
packstream -L 512 short.u16
packstream -L 512 -d 64 short.u16
packstream -L 131072 short.u16
packstream -L 512 text.u16 short.u16
packstream -L 128 lines.tok
packstream -L 128 -d 6 --shuffle=3 --zstd lines.tok
packstream -L 100 --overlong=split lines.tok
packstream -L 100 --overlong=truncate --stats lines.tok
packstream -L 64 ids.tok
packstream -L 64 -a nnlshp ids.tok
packstream -L 64 -a concat ids.tok
packstream -L 10 text.u16
packstream -L 512 -t u32 text.u16
packstream -L 512 -d 0 text.u16
packstream -L 512 missing.u16
tokcat --from=jsonl -t u32 --channel=labels:i32:-100 lines.jsonl
tokcat --from=jsonl -t u32 --ignore=labels --ignore=source --raw lines.jsonl
tokcat --from=ids lines.ids
tokcat --from=bytes lines.ids
tokcat --from=bytes --split=paragraph --bos-id=1 lines.ids
tokcat --from=npy lines.ids
tokmix --stop=longest 0.7=text.u16 0.3=short.u16
tokmix --by=sequences --channel=s 92233720368547758=text.u16 1.1=over.u16
tokshuf lines.tok
tokshuf --seed=9 -M 1Mi --by-length=500 --head-count=9000 text.u16
packcat text.pks
packcat --range=5:9 text.pks
packcat --to=jsonl lines.pks
packcat --to=ids text.pks
packstat text.pks
packstat --verify text.pks
packstat --json lines.pks
packstat --histogram lines.pks
packstat --verify --against=text.u16 text.pks
packplan -L 512 -d 2,3,8,max text.hist
packplan -L 512 -d 3 -a nnlshp --plan text.hist
packplan -L 512 -d 3,16 --json text.hist
JOBS
}

# Seconds differ from run to run, and with them the width of columns.
without_times() {
    sed -E 's/"seconds": *[0-9.e+-]+/"seconds": _/g
        s/ +[0-9.]+ (s|ms|us)( |$)/ _\2/g
        s/ +/ /g'
}

# run_jobs FILE: a digest, the exit status and the job.
run_jobs() {
    jobs | while read -r job; do
        status=0
        $job >job.out 2>job.err </dev/null || status=$?
        case $job in
            packplan*) without_times <job.out >all.out ;;
            *) cat job.out >>all.out ;;
        esac
        without_times <job.err >>all.out
        echo "$(sha256sum <all.out | cut -c1-32) $status $job"
        rm all.out
    done >"$1"
}

# ---- States ----

# half_of INPUT FILE OPTION...: packs a part of INPUT into FILE, with a state.
half_of() {
    input=$1 output=$2
    shift 2
    bytes=$(($(wc -c <"$input") / 2 + 1))
    head -c "$bytes" "$input" |
        packstream -q --state="$output.state" --state-every=20 "$@" \
            >"$output" 2>"$output.err" || true
    [ -s "$output.state" ] || {
        echo "no state of $input $options" >&2
        cat "$output.err" >&2
        return 1
    }
}

states() {
    cat <<'STATES'
text.u16 -L 512
text.u16 -L 512 -d 3 -w 256
text.u16 -L 512 -d 8 --shuffle=2
text.u16 -L 512 --order=input
text.u16 -L 512 --zstd
text.u16 -L 512 -a nnlshp -w 128
text.u16 -L 512 -a spfhp
text.u16 -L 512 --flush-every=500
text.u16 -L 512 -a concat
text.u16 -L 384 --overlong=split
short.u16 -L 512 -d 64
long.u32 -L 8192 -t u32
lines.tok -L 128 -w 64
STATES
}

# Jobs that OLDER left unfinished, resumed by BUILD_DIR, and whole ones.
end_states() {
    states | while read -r input options; do
        use "$older"
        # shellcheck disable=SC2086 # options are words
        half_of "$input" half $options
        use "$build"
        # shellcheck disable=SC2086
        if packstream -q --state=half.state --resume $options <"$input" \
                >>half && packstream -q $options <"$input" | cmp -s - half
        then
            echo "resumed: $input $options"
        else
            echo "not resumed: $input $options"
        fi
        rm -f half*
    done
}

use "$build"
make_inputs
run_jobs new
if [ -z "$older" ]; then
    cat new
    exit 0
fi
use "$older"
run_jobs old
diff old new >changed || true
end_states >resumed
echo "$(grep -c . new) jobs, $(grep -c '^>' changed || true) changed;" \
    "$(grep -c '^resumed' resumed) of $(grep -c . resumed) resumed"
cat changed
grep '^not' resumed && exit 1
[ ! -s changed ]
