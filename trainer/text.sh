# shellcheck shell=sh
# text.sh - from text to token records, for the scripts beside it.
#
# They source this file and set, besides "examples": "text", how many bytes to
# take, "pieces", how many the sentencepiece model is to have, and "length",
# the most tokens of a sequence.  Each function works in the current folder.
#
# SPDX-License-Identifier: MIT

# The ids that spm_train gives to them, in the order of its options.
pad=0 cls=2 sep=3 mask=4

die() {
    printf '%s: %s\n' "${0##*/}" "$*" >&2
    exit 1
}

step() {
    printf '\n== %s\n' "$*"
}

# need PROGRAM...: all are on the PATH.
need() {
    for program; do
        command -v "$program" >/dev/null || die "$program is not on the PATH"
    done
}

# corpus.txt: documents, shuffled in a way that depends on nothing but the
# text; a sentence on each line, and an empty line between documents.
gather() {
    "${examples:?}/corpus.sh" | head -c "${text:?}" | sed '$d' >ordered.txt
    shuf --random-source=ordered.txt ordered.txt |
        awk '{ gsub(/[.!?;] /, "&\n"); print; print "" }' >corpus.txt
    [ -s corpus.txt ] || die 'found no text'
    printf '%s documents, %s bytes\n' "$(wc -l <ordered.txt)" \
        "$(wc -c <corpus.txt)"
}

# pieces.model, and in "pieces" how many it really has.
train_pieces() {
    grep . corpus.txt | head -n 20000 >sample.txt
    spm_train --input=sample.txt --model_prefix=pieces --model_type=unigram \
        --vocab_size="${pieces:?}" --hard_vocab_limit=false --pad_id="$pad" \
        --unk_id=1 --bos_id=-1 --eos_id=-1 \
        --control_symbols='[CLS],[SEP],[MASK]' \
        --max_sentence_length=100000 >train.log 2>&1 ||
        { cat train.log; die 'spm_train failed'; }
    pieces=$(wc -l <pieces.vocab)
    printf '%s pieces\n' "$pieces"
}

# records [OPTION]...: token records of masked pairs, to stdout; the options
# are for bert-sequences.
records() {
    spm_encode --model=pieces.model --output_format=id corpus.txt |
        bert-sequences --vocab="$pieces" --cls-id=$cls --sep-id=$sep \
            --mask-id=$mask --length="${length:?}" "$@" |
        tokcat -q --from=jsonl --vocab="$pieces" --pad-id=$pad \
            --cls-id=$cls --sep-id=$sep --mask-id=$mask --labels=aligned \
            --channel=token_type_ids:u8 --channel=labels:i32:-100 \
            --channel=next_sentence_label:i32:-1
}
