#!/usr/bin/env bats
# cluster.bats - packing with many machines: what packstream-cluster(7) shows
# for GNU parallel, Open MPI and Slurm, run as it stands there, and
# examples/python for Spark and datatrove.
#
# A test is skipped where its program is missing.  PEERS_PYTHON names a
# python3 that has packstream, as pip installs it; Spark and datatrove have
# environments of their own, at night.
#
# SPDX-License-Identifier: MIT

load ../support/helpers

# The short ones first: without the histogram parts would have two depths.
setup_file() {
    cd "$BATS_FILE_TMPDIR" || return
    draw 900 63 64 1 2 | awk '{ print NF, $0 }' | sort -n | cut -d ' ' -f 2- \
        >x.txt
    tokcat --from=ids x.txt | packstat --histogram >x.hist
}

setup() {
    start
    ln -s "$BATS_FILE_TMPDIR"/x.* .
}

# recipe NAME: the commands of packstream-cluster(7) below the comment
# "recipe: NAME".
recipe() {
    awk -v name="$1" '
        /^\.\\" recipe: / && $3 == name { wanted = 1; next }
        wanted && /^\.Bd/ { wanted = 0; inside = 1; next }
        /^\.Ed/ { inside = 0 }
        inside' "${abs_top_srcdir:?}/man/packstream-cluster.7" |
        sed -e 's/\\-/-/g' -e "s/\\\\(aq/'/g" -e 's/\\e/\\/g' |
        sed -n -e 's/^[$>] //p'
}

# follows NAME: bash does what it says.
follows() {
    recipe "$1" >commands
    [ -s commands ]
    bash -e -o pipefail commands
}

# joined PARTS FILE...: the files together are x.txt, in so many streams.
joined() {
    cat "${@:2}" >all.pks
    packcat --to=ids all.pks | cmp - x.txt
    packstat -q --verify all.pks
    [ "$(LC_ALL=C grep -aFo $'\x89PKS\r' all.pks | wc -l)" -eq "$1" ]
}

@test "GNU parallel" {
    skip_without parallel
    PARALLEL=-j4 follows parallel
    joined 4 x.pks
}

@test "Open MPI" {
    skip_without mpirun
    allow_mpirun
    follows mpi
    joined 4 ./[0-3].pks
}

@test "an array of Slurm's, of which a job is queued twice" {
    local i
    for i in 0 1 2 3; do
        SLURM_ARRAY_TASK_ID=$i SLURM_ARRAY_TASK_COUNT=4 follows slurm
    done
    cp 2.pks before
    # It has ended, and does not read: the others may die of SIGPIPE.
    SLURM_ARRAY_TASK_ID=2 SLURM_ARRAY_TASK_COUNT=4 bash -e commands
    cmp 2.pks before
    joined 4 ./[0-3].pks
}

# bats test_tags=night
@test "datatrove" {
    skip_without_modules "${PEERS_PYTHON-}" packstream._native
    own_python datatrove orjson
    export PYTHONPATH=$PWD/own
    local script=$abs_top_srcdir/examples/python/datatrove_packs.py
    [ "$(sed -n '/^class/,/^def/p' "$script" | wc -l)" -lt 40 ]
    mkdir packs texts
    awk '{ print "{\"text\": \"" $0 "\"}" }' x.txt |
        split -l 450 - texts/ --additional-suffix=.jsonl
    awk '{ print length + 1, 1 }' x.txt >text.hist
    env/bin/python "$script" texts packs text.hist 2>log
    cat packs/0000[01].pks | packcat --to=ids >got
    [ "$(wc -l <got)" -eq 900 ]
    # Each line is one of ids: those of its characters, and 256.
    "$PEERS_PYTHON" -c 'import sys
for line in sys.stdin:
    ids = [int(word) for word in line.split()]
    assert ids.pop() == 256
    print(bytes(ids).decode())' <got | sort | cmp - <(sort x.txt)
    # The executor fails with a packer that does.
    mkdir none
    run ! env/bin/python "$script" texts none x.txt
    [[ $output == *'packstream: x.txt: line 1: '* ]]
    absent none/*.pks
}

# bats test_tags=night
@test "Spark" {
    skip_without_modules "${PEERS_PYTHON-}" packstream._native
    skip_without java
    own_python pyspark
    mkdir packs
    export PYSPARK_PYTHON=$PWD/env/bin/python SPARK_LOCAL_IP=127.0.0.1
    env/bin/python "$abs_top_srcdir/examples/python/spark_packs.py" \
        "$PWD/x.txt" "$PWD/packs" >out
    grep -q '^4 parts' out
    joined 4 packs/*.pks
}
