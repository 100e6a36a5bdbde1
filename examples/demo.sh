#!/bin/sh
# demo.sh - a complete job, end to end, on text that every system has.
#
# Gathers a corpus (this project's pages, the system's licences and manual
# pages), tokenises it, packs it, inspects and verifies the packs, and checks
# that unpacking restores the input byte for byte.
#
#   examples/demo.sh            a small sentencepiece model, if spm_train and
#                               spm_encode are installed, otherwise bytes
#   examples/demo.sh --bytes    bytes as tokens
#
# Finds the programs on the PATH.  Removes all its files.
#
# SPDX-License-Identifier: MIT

set -eu

corpus_bytes=20000000 # at most
least_efficiency=0.998

die() {
    printf 'demo: %s\n' "$*" >&2
    exit 1
}

step() {
    printf '\n== %s\n' "$*"
}

# Prints a command, then runs it.
show() {
    printf '$ %s\n' "$*"
    "$@"
}

# Gathering the corpus ------------------------------------------------------

# Sections are too long for rows of 512 bytes, so each sentence is a sequence.
cut_up() {
    if [ "$tokens" = bytes ]; then
        awk '{ gsub(/[.] /, ".\n"); print }' | awk 'length >= 32'
    else
        cat
    fi
}

# corpus.txt: one sequence a line, none cut, shuffled in a way that depends only
# on the text.
make_corpus() {
    "$top/examples/corpus.sh" | cut_up | head -c "$corpus_bytes" |
        sed '$d' >ordered.txt
    shuf --random-source=ordered.txt ordered.txt >corpus.txt
    lines=$(wc -l <corpus.txt)
    [ "$lines" -gt 0 ] || die 'found no text'
    printf '%s sequences, %s bytes\n' "$lines" "$(wc -c <corpus.txt)"
}

# Tokenising ----------------------------------------------------------------

# A model from a sample of the corpus; it depends only on the corpus.
train_model() {
    awk -v every=$((lines / 20000 + 1)) 'NR % every == 0' corpus.txt |
        head -c 2000000 >sample.txt
    spm_train --input=sample.txt --model_prefix=model --model_type=unigram \
        --vocab_size=8000 --hard_vocab_limit=false \
        --max_sentence_length=100000 >train.log 2>&1 ||
        { cat train.log; die 'spm_train failed'; }
    printf '%s pieces\n' "$(wc -l <model.vocab)"
}

tokenise_with_model() {
    step 'Train a small tokenizer (sentencepiece)'
    train_model
    step 'Tokenise: ids as text, then token records'
    show spm_encode --model=model.model --output_format=id \
        --output=corpus.ids corpus.txt
    show tokcat --from=ids -o corpus.tok corpus.ids
}

tokenise_bytes() {
    step 'Tokenise: each byte is a token'
    show tokcat --from=bytes -o corpus.tok corpus.txt
}

# Packing and back ----------------------------------------------------------

# Sequences left in the window at the end pack worst, because there are few to
# choose from; so a small corpus needs a small window.
pack() {
    step 'Pack into rows of 512 tokens'
    show packstream -L 512 -w 256 --overlong=split -o corpus.pks corpus.tok
    step 'Look at the packs'
    show packstat corpus.pks
    step 'Verify every checksum, boundary, pad and total'
    show packstat --verify corpus.pks
}

# same FILE COMMAND...: checks that the command prints the file's contents.
same() {
    file=$1
    shift
    printf '$ %s | cmp - %s\n' "$*" "$file"
    "$@" >back || die "$* failed"
    cmp back "$file" || die 'the round trip changed something'
}

unpack() {
    step 'Unpack, and compare with what went in'
    same corpus.tok packcat corpus.pks
    if [ "$tokens" = bytes ]; then
        same corpus.txt packcat --to=bytes corpus.pks
    else
        same corpus.ids packcat --to=ids corpus.pks
    fi
    echo 'the same, byte for byte'
}

check_efficiency() {
    efficiency=$(packstat --json corpus.pks |
        sed -n 's/.*"efficiency": *\([0-9.e-]*\).*/\1/p')
    step "Efficiency: $efficiency, to be at least $least_efficiency"
    awk -v is="$efficiency" -v least="$least_efficiency" \
        'BEGIN { exit !(is + 0 >= least + 0) }' ||
        die 'the packs are emptier than promised'
}

tokens=bytes
if command -v spm_train >/dev/null && command -v spm_encode >/dev/null; then
    tokens=model
fi
case ${1-} in
    '') ;;
    --bytes) tokens=bytes ;;
    *) die "unknown argument '$1'; see the head of this file" ;;
esac

LC_ALL=C
export LC_ALL
top=$(cd "$(dirname "$0")/.." && pwd)
work=$(mktemp -d "${TMPDIR:-/tmp}/packstream-demo.XXXXXX")
trap 'rm -rf "$work"' EXIT
trap 'exit 1' HUP INT TERM
cd "$work"

step 'Gather a corpus: each line, a piece of a page, is a sequence'
make_corpus
case $tokens in
    model) tokenise_with_model ;;
    bytes) tokenise_bytes ;;
esac
pack
unpack
check_efficiency
