#!/usr/bin/env bats
# cluster.bats - packing with many machines: the recipes of
# packstream-cluster(7) for GNU parallel, Open MPI and Slurm, run unchanged, and
# examples/python for Spark and datatrove.
#
# A test is skipped if its program is missing.  PEERS_PYTHON names a python3
# with packstream installed by pip; Spark and datatrove have their own
# environments and run nightly.
#
# SPDX-License-Identifier: MIT

load ../support/helpers

# Short lines first: without the histogram, parts would have two depths.
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

# recipe NAME: the commands in packstream-cluster(7) after the comment
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

# follows NAME: bash runs the recipe.
follows() {
    recipe "$1" >commands
    [ -s commands ]
    bash -e -o pipefail commands
}

# joined PARTS FILE...: the files together are x.txt, in PARTS streams.
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

@test "a Slurm array with a job queued twice" {
    local i
    for i in 0 1 2 3; do
        SLURM_ARRAY_TASK_ID=$i SLURM_ARRAY_TASK_COUNT=4 follows slurm
    done
    cp 2.pks before
    # It may end without reading, and SIGPIPE may end the others.
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
    # Each line has the ids of its characters, and 256.
    "$PEERS_PYTHON" -c 'import sys
for line in sys.stdin:
    ids = [int(word) for word in line.split()]
    assert ids.pop() == 256
    print(bytes(ids).decode())' <got | sort | cmp - <(sort x.txt)
    # The executor fails if a packer does.
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
