#!/usr/bin/env bats
# docs.bats - the commands in README.md and docs work, and print the output
# shown.
#
# The blocks of a page run one after another in one folder.  A block marked sh
# is run; one with the name of a file is written there; an unmarked one is the
# expected output of the sh block before it, in which numbers and the width of
# columns may differ.
#
# The last step of the tutorial needs torch, in the python3 that PEERS_PYTHON
# names, or otherwise in the one that has numpy.  Text and chats need packages
# that only the former has.
#
# SPDX-License-Identifier: MIT

load ../support/helpers

docs=${abs_top_srcdir:?}/docs

# python3 is the one with numpy, with the tree's package.
setup() {
    start
    mkdir bin
    ln -s "$PYTHON_NUMPY" bin/python3 2>/dev/null || true
    PATH=$PWD/bin:$PATH PYTHONPATH=$abs_top_srcdir/python
    export PATH PYTHONPATH
    cd "$BATS_FILE_TMPDIR" || return
}

# blocks PAGE FIRST LAST: writes the blocks of these sections to blocks/, in
# order: NUMBER.sh, NUMBER.shown, NUMBER.as.NAME, or NUMBER.theirs, which is
# a chart or Python code of other projects.
blocks() {
    rm -rf blocks
    mkdir blocks
    awk -v first="$2" -v last="$3" '
        /^## / { section++ }
        section < first || section > last { next }
        /^```/ && to != "" { close(to); to = ""; next }
        /^```/ {
            kind = $1 == "```" ? ".shown" : ".theirs"
            kind = $1 == "```sh" ? ".sh" : $2 != "" ? ".as." $2 : kind
            to = sprintf("blocks/%03d", ++n) kind
            printf "" >to
            next
        }
        to != "" { print >to }' "$docs/$1"
}

# likeness: stdin without the parts that can differ.
likeness() {
    sed -E 's/[0-9][0-9.,]*/N/g; s/ +/ /g; s/ $//; s/N( N)+/N/g'
}

# run_sections PAGE FIRST LAST: runs them in the page's own folder.
run_sections() {
    local block
    local page=${1##*/}
    mkdir -p "${page%.md}"
    cd "${page%.md}" || return
    blocks "$@"
    for block in blocks/*; do
        case $block in
            *.theirs) ;;
            *.as.*) cp "$block" "${block##*.as.}" ;;
            *.sh)
                sh -eu "$block" >printed 2>&1 || {
                    cat "$block" printed
                    return 1
                }
                ;;
            *) diff <(likeness <"$block") <(likeness <printed) ;;
        esac
    done
}

# python3_is PYTHON: calls it by its own path, because a link would hide the
# packages of a venv.
python3_is() {
    mkdir -p peers
    printf '#!/bin/sh\nexec "%s" "$@"\n' "$1" >peers/python3
    chmod +x peers/python3
    PATH=$PWD/peers:$PATH
}

# A depth that suits one text leaves packs of another nearly empty.
@test "README.md: no example sets a depth, and the first fills its packs" {
    local readme=$abs_top_srcdir/README.md options
    run -1 grep -nE 'packstream .*(-d|--depth)' "$readme"
    options=$(sed -n 's/^ *packstream \(.*\) -o chat.pks$/\1/p' "$readme" |
        head -n 1)
    [ "$options" = '-L 4096' ]
    # Word splitting intended.
    # shellcheck disable=SC2086
    awk 'BEGIN { for (i = 0; i < 20000; i++)
            print i, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13 }' |
        tokcat -q --from=ids | packstream -q $options | packstat --json - |
        sed 's/.*"efficiency": \([^,]*\),.*/\1/' |
        awk '{ print } END { exit !($1 > 0.98) }'
}

@test "README.md: thirty seconds" {
    run_sections ../README.md 2 2
}

@test "the tutorial: from text to the packs of each rank" {
    skip_without spm_train spm_encode spm_decode
    run_sections tutorial.md 1 9
    [ "$(find . -name 'train.[01].pks' | wc -l)" -eq 2 ]
}

@test "the tutorial: PyTorch trains on the packs" {
    skip_without spm_train spm_encode
    skip_without_numpy
    local python=${PEERS_PYTHON:-$PYTHON_NUMPY}
    skip_without_modules "$python" torch
    [ -s tutorial/train.pks ] || run_sections tutorial.md 1 9
    cd "$BATS_FILE_TMPDIR"
    python3_is "$python"
    OMP_NUM_THREADS=1 run_sections tutorial.md 10 10
    awk '/^epoch 0 / { first = $4 } /^validation/ { last = $2 }
        END { exit !(last > 0 && last < first - 0.5) }' printed
}

@test "capacity, depth, window, order, alignment" {
    run_sections choosing.md 0 9
    [ -s corpus.hist ]
    # The chart has these figures.
    for algorithm in nnlshp greedy; do
        packplan -L 64 -d 1,2,3,4,5,6,7,8 -a $algorithm --tsv corpus.hist |
            awk 'NR > 1 { printf "%s%.1f", sep, 100 * $6; sep = ", " }
                END { print "" }'
    done >wanted
    sed -n 's/^    line \[\(.*\)\]$/\1/p' "$docs/choosing.md" |
        diff -u wanted -
}

@test "migrating from other packers" {
    run_sections coming-from.md 0 9
    # TRL's rows have labels, too.
    grep -q '"seq_lengths":.*"labels":\[-100,-100,' packed.jsonl
    packcat grain.pks | cmp - data.tok
    packcat rows.pks | cmp - data.tok
}

@test "groups and shared prefixes" {
    skip_without_numpy
    run_sections groups.md 0 9
}

@test "the documents of a step" {
    skip_without python3
    run_sections lookups.md 0 9
}

@test "mixtures in stages" {
    run_sections mixing.md 0 9
}

@test "budgets" {
    skip_without python3
    run_sections budgets.md 0 9
}

@test "vectors" {
    skip_without_numpy
    run_sections vectors.md 0 9
}

@test "packs in llm.c" {
    PATH=${abs_top_builddir:?}/examples/llmc:$PATH run_sections llmc.md 0 9
}

@test "lists: encoder-decoder text and graphs" {
    unset PYTHONPATH        # the package as pip installs it
    skip_without_modules "${PEERS_PYTHON-}" packstream._native transformers
    python3_is "$PEERS_PYTHON"
    HF_HUB_OFFLINE=1 OMP_NUM_THREADS=1 run_sections lists.md 0 9
}

@test "text and chats" {
    unset PYTHONPATH        # the package as pip installs it
    skip_without_modules "${PEERS_PYTHON-}" packstream._native tokenizers \
        transformers
    python3_is "$PEERS_PYTHON"
    (HF_HUB_OFFLINE=1 run_sections text-and-chat.md 0 4)
    [ "$(wc -l <text-and-chat/rejects.jsonl)" -eq 1 ]
    [ -x "${abs_top_builddir:?}/packtrain" ] || skip "packtrain is not built"
    run_sections text-and-chat.md 5 5
    [ -s tuned/config.json ]
}

@test "packstream-tutorial(7) is the tutorial" {
    skip_without "${MANDOC:-mandoc}"
    awk -v version="$PACKAGE_VERSION" -f "$docs/mdoc.awk" "$docs/tutorial.md" \
        >packstream-tutorial.7
    run "${MANDOC:-mandoc}" -T lint -W warning packstream-tutorial.7
    [ "$status" -eq 0 ] && [ -z "$output" ]
    "${MANDOC:-mandoc}" -T ascii -O width=90 packstream-tutorial.7 |
        sed 's/^ *//' >screen
    grep -q 'PACKSTREAM-TUTORIAL(7)' screen
    grep -q "^packstream $PACKAGE_VERSION" screen
    # It has every command, unchanged.
    awk '/^```/ { inside = !inside; next } inside { sub(/^ */, ""); print }' \
        "$docs/tutorial.md" >lines
    [ "$(wc -l <lines)" -gt 80 ]
    while IFS= read -r line; do
        grep -qxF -e "$line" screen || { echo "$line"; return 1; }
    done <lines
}
