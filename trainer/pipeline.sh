#!/bin/sh
# pipeline.sh - train a BERT on text, in one pipe.
#
#   text -> spm_encode -> bert-sequences -> tokcat -> packstream -> packtrain
#
# Trains a small sentencepiece model on text that every system has, then a
# small BERT, for about a minute on two CPUs. Fails unless the loss falls: the
# mean loss of masked tokens over the last tenth of the steps must be well
# below the mean over the first tenth.
#
#   trainer/pipeline.sh            the whole training
#   trainer/pipeline.sh --short    a run of a few seconds
#
# PATH must contain packstream's programs, bert-sequences and packtrain, which
# are in the build directory, and sentencepiece's spm_train and spm_encode.
#
# SPDX-License-Identifier: MIT

set -eu

length=128    # maximum tokens in a sequence and in a pack
pieces=4000   # size of the sentencepiece model
text=4000000  # size of the text, in bytes
steps=500
width=128
rate=0.01     # peak learning rate
fall=1.5      # minimum decrease of the loss
# The ids that spm_train assigns, in the order of its options
pad=0 cls=2 sep=3 mask=4

LC_ALL=C
export LC_ALL
top=$(cd "$(dirname "$0")/.." && pwd)

die() {
    printf '%s: %s\n' "${0##*/}" "$*" >&2
    exit 1
}

step() {
    printf '\n== %s\n' "$*"
}

# Writes corpus.txt: one sentence per line, with an empty line between
# documents. The documents are shuffled in an order that depends only on the
# text.
gather() {
    "$top/examples/corpus.sh" | head -c "$text" | sed '$d' >ordered.txt
    shuf --random-source=ordered.txt ordered.txt |
        awk '{ gsub(/[.!?;] /, "&\n"); print; print "" }' >corpus.txt
    [ -s corpus.txt ] || die 'found no text'
    printf '%s documents, %s bytes\n' "$(wc -l <ordered.txt)" \
        "$(wc -c <corpus.txt)"
}

# Writes pieces.model, and sets "pieces" to the size of its vocabulary.
train_pieces() {
    grep . corpus.txt | head -n 20000 >sample.txt
    spm_train --input=sample.txt --model_prefix=pieces --model_type=unigram \
        --vocab_size="$pieces" --hard_vocab_limit=false --pad_id="$pad" \
        --unk_id=1 --bos_id=-1 --eos_id=-1 \
        --control_symbols='[CLS],[SEP],[MASK]' \
        --max_sentence_length=100000 >train.log 2>&1 ||
        { cat train.log; die 'spm_train failed'; }
    pieces=$(wc -l <pieces.vocab)
    printf '%s pieces\n' "$pieces"
}

# Writes token records of masked sentence pairs to stdout.
records() {
    spm_encode --model=pieces.model --output_format=id corpus.txt |
        bert-sequences --vocab="$pieces" --cls-id=$cls --sep-id=$sep \
            --mask-id=$mask --length="$length" |
        tokcat -q --from=jsonl --vocab="$pieces" --pad-id=$pad \
            --cls-id=$cls --sep-id=$sep --mask-id=$mask --labels=aligned \
            --channel=token_type_ids:u8 --channel=labels:i32:-100 \
            --channel=next_sentence_label:i32:-1
}

train_bert() {
    { records | packstream -q -L "$length" |
        packtrain --packs=16 --steps="$steps" --hidden="$width" \
            --dropout=0 --rate="$rate" --warmup=$((steps * 4)) \
            --total=$((steps * 20)) --report=1 --stats=json ||
        : >failed; } | keep_losses
    [ ! -e failed ] || die 'training failed'
}

# Saves the losses, and reports progress at each tenth of the steps.
keep_losses() {
    n=0
    while IFS= read -r line; do
        printf '%s\n' "$line"
        n=$((n + 1))
        [ $((n * 10 % steps)) -ne 0 ] || printf '  step %d of %d\n' \
            "$n" "$steps" >&2
    done >losses.json
}

# Prints the mean losses of each tenth of the steps, and their decrease.
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
                printf "at least %s expected\n", fall
                exit !(first - m >= fall)
            }' || die 'the loss does not fall as it should'
}

case ${1-} in
    '') ;;
    --short) pieces=1000 text=600000 steps=40 width=64 fall=0.5 rate=0.02 ;;
    *) die "unknown argument '$1'; see the head of this file" ;;
esac
for program in spm_train spm_encode tokcat packstream bert-sequences \
    packtrain; do
    command -v "$program" >/dev/null || die "$program is not on the PATH"
done

work=$(mktemp -d "${TMPDIR:-/tmp}/packstream-bert.XXXXXX")
trap 'rm -rf "$work"' EXIT
trap 'exit 1' HUP INT TERM
cd "$work"

step 'Gather text: one sentence a line'
gather
step 'Train a small tokenizer (sentencepiece)'
train_pieces
step 'Tokenize, pair and mask, pack, and train'
train_bert
step 'Losses'
check_losses
