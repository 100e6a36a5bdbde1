#!/bin/sh
# curves.sh - packed training is the same training, in less time: a figure.
#
# Trains the same small BERT twice, from the same weights, on the same
# sequences, in the same order, with the same sequences in each step: once
# padded, each sequence in a row of its own, and once packed.  Most sequences
# are made short, so that half of all padded rows is padding, as in the
# Wikipedia of BERT.  Dropout is 0, so that the losses may differ by rounding
# alone, and that they do not differ by more is checked.
#
#   trainer/curves.sh [--short] [-o FILE]
#
# draws the losses to FILE, or bert-curves.svg.  Needs what pipeline.sh does,
# and python3.
#
# SPDX-License-Identifier: MIT

set -eu

length=128
pieces=2000
text=2600000
steps=150
batch=64      # sequences
most=1e-4     # that losses may differ by
output=bert-curves.svg

LC_ALL=C
export LC_ALL
top=$(cd "$(dirname "$0")/.." && pwd)
examples=$top/examples
# shellcheck source=trainer/text.sh
. "$top/trainer/text.sh"

# train NAME OPTION...: packs as the options say, and their losses.
train() {
    name=$1
    shift
    packstream -q -L "$length" --flush-every="$batch" "$@" records.tok |
        bert-train --sequences="$batch" --steps="$steps" --hidden=64 \
            --heads=2 --layers=2 --dropout=0 --rate=0.01 \
            --warmup=$((steps * batch / 5)) --attention=dense --report=1 \
            --stats=json >"$name.json" || die 'training failed'
}

while [ $# -gt 0 ]; do
    case $1 in
        --short) pieces=500 text=300000 steps=12 ;;
        -o) output=${2?'-o wants a name'}; shift ;;
        *) die "unknown argument '$1'; see the head of this file" ;;
    esac
    shift
done
need spm_train spm_encode tokcat packstream bert-sequences bert-train python3
case $output in
    /*) ;;
    *) output=$PWD/$output ;;
esac

work=$(mktemp -d "${TMPDIR:-/tmp}/packstream-bert.XXXXXX")
trap 'rm -rf "$work"' EXIT
trap 'exit 1' HUP INT TERM
cd "$work"

step 'Gather text, and train a small tokenizer (sentencepiece)'
gather
train_pieces
step 'Make sequences'
records --short=1 >records.tok
step 'Train, padded and packed'
train padded -d 1
train packed -d 8
python3 "$top/trainer/curves.py" padded.json packed.json "$most" "$output"
