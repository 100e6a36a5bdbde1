#!/bin/sh
# pipeline.sh - from text to a BERT that learns, in one pipe.
#
#   text -> spm_encode -> bert-sequences -> tokcat -> packstream -> bert-train
#
# Trains a small sentencepiece model on text that every system has, and then a
# small BERT, for a minute or so on two processors, and checks that the loss
# falls: to masked tokens, the mean of the last tenth of all steps has to be
# well below that of the first.
#
#   trainer/pipeline.sh            all of it
#   trainer/pipeline.sh --short    some seconds of it
#
# Finds the programs on the PATH: those of packstream, bert-sequences and
# bert-train from the folder of the build, spm_train and spm_encode from
# sentencepiece.  Leaves nothing behind.
#
# SPDX-License-Identifier: MIT

set -eu

length=128    # most tokens of a sequence, and of a pack
pieces=4000   # of the sentencepiece model
text=4000000  # bytes
steps=500
width=128
rate=0.01     # of learning, at most
fall=1.5      # what the loss has to lose, at least

LC_ALL=C
export LC_ALL
top=$(cd "$(dirname "$0")/.." && pwd)
examples=$top/examples
# shellcheck source=trainer/text.sh
. "$top/trainer/text.sh"

train_bert() {
    { records --seed=1 | packstream -q -L "$length" |
        bert-train --packs=16 --steps="$steps" --hidden="$width" \
            --heads=2 --layers=2 --dropout=0 --rate="$rate" \
            --warmup=$((steps * 4)) --total=$((steps * 20)) --report=1 \
            --stats=json || : >failed; } | keep_losses
    [ ! -e failed ] || die 'training failed'
}

# Keeps what it reads, and tells each tenth of the steps that it is made.
keep_losses() {
    n=0
    while IFS= read -r line; do
        printf '%s\n' "$line"
        n=$((n + 1))
        [ $((n * 10 % steps)) -ne 0 ] || printf '  step %d of %d\n' \
            "$n" "$steps" >&2
    done >losses.json
}

# Tells the losses of each tenth, and what they lost from first to last.
check_losses() {
    sed 's/.*"mlm": \([^,]*\), "nsp": \([^,]*\),.*/\1 \2/' losses.json |
        awk -v fall="$fall" -v wanted="$steps" '
            { mlm[NR] = $1; nsp[NR] = $2 }
            END {
                if (NR != wanted) {
                    print "there were", NR, "steps, not", wanted
                    exit 1
                }
                for (t = 0; t < 10; t++) {
                    from = int(t * NR / 10); to = int((t + 1) * NR / 10)
                    m = n = 0
                    for (i = from + 1; i <= to; i++) {
                        m += mlm[i]; n += nsp[i]
                    }
                    m /= to - from; n /= to - from
                    printf "steps %4d to %4d: ", from + 1, to
                    printf "masked tokens %.3f, next sentence %.3f\n", m, n
                    if (t == 0)
                        first = m
                }
                printf "masked tokens: %.3f less, ", first - m
                printf "to be at least %s\n", fall
                exit !(first - m >= fall)
            }' || die 'the loss does not fall as it should'
}

case ${1-} in
    '') ;;
    --short) pieces=1000 text=600000 steps=40 width=64 fall=0.5 rate=0.02 ;;
    *) die "unknown argument '$1'; see the head of this file" ;;
esac
need spm_train spm_encode tokcat packstream bert-sequences bert-train

work=$(mktemp -d "${TMPDIR:-/tmp}/packstream-bert.XXXXXX")
trap 'rm -rf "$work"' EXIT
trap 'exit 1' HUP INT TERM
cd "$work"

step 'Gather text: a sentence on each line'
gather
step 'Train a small tokenizer (sentencepiece)'
train_pieces
step 'Tokenise, pair and mask, pack, and train'
train_bert
step 'Losses'
check_losses
