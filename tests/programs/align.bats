#!/usr/bin/env bats
# align.bats - packs in which sequences begin at multiples of a number, through
# all programs.  tests/programs/formats.bats reads them by the page.
#
# SPDX-License-Identifier: MIT

load ../support/helpers

setup() {
    start
    skip_without python3
}

# records SEED LONGEST [OPTION]...: token records with channels and labels.
records() {
    bert_lines 400 "$2" 60000 "$1" | tokcat --from=jsonl --labels=aligned \
        --channel=token_type_ids:u8:3 --channel=labels:i32:-100 \
        --channel=loss_mask:u8 --channel=next_sentence_label:i32 "${@:3}"
}

# sound N OPTION...: makes x.pks, the packs of x.tok aligned to N, and checks
# that it is aligned and complete, and that packcat recovers x.tok.
sound() {
    packstream "${@:2}" --align="$1" x.tok >x.pks
    model aligned x.pks "$1"
    packstat --verify -q --against=x.tok x.pks
    packcat x.pks | cmp - x.tok
}

@test "every sequence begins at a multiple, and all are recovered" {
    records 1 250 >x.tok
    for n in 1 2 8 16 64 128 256; do
        sound "$n" -L 256
    done
    for n in 3 7 21; do
        sound "$n" -L 252 -d 5
    done
}

@test "every algorithm aligns" {
    records 2 100 >x.tok
    for a in auto spfhp nnlshp bestfit nextfit none; do
        sound 8 -L 128 -d 6 -w 60 -a "$a"
        sound 8 -L 48 -w 60 -a "$a" --overlong=split
    done
    sound 8 -L 48 -a concat
    sound 16 -L 128 --shuffle=3
    sound 16 -L 128 --order=input --even-cost
    sound 4 -L 128 -M 16Mi --max-delay=50
}

@test "--align=1 is the default" {
    records 3 100 >x.tok
    packstream -L 100 --state=1.state x.tok -o 1.pks
    packstream -L 100 --align=1 --state=2.state x.tok -o 2.pks
    cmp 1.pks 2.pks
    cmp 1.state 2.state
    packstat --json 1.pks | grep -c align && return 1
    model aligned 1.pks 1
}

@test "raw records of both widths" {
    for bits in 16 32; do
        for n in 5 1 2 7 3 8 1; do
            "record$bits" $(seq "$n")
        done >x.raw
        packstream -L 8 -d 4 -t "u$bits" --pad-id=77 --align=4 x.raw >x.pks
        model aligned x.pks 4
        packcat x.pks | cmp - x.raw
    done
}

@test "compressed, through pipes and joined" {
    records 4 100 >x.tok
    packstream -L 128 --align=32 x.tok >x.pks
    packstream -L 128 --align=32 --zstd x.tok >x.zst
    zstd -dc x.zst | cmp - x.pks
    packstat --verify -q x.zst
    packcat x.zst | cmp - x.tok
    packcat --range=2:5 --to=jsonl x.zst >some
    packcat --range=2:5 --to=jsonl x.pks | cmp - some
    [ "$(wc -l <some)" -ge 3 ]
    cat x.pks x.pks | packcat --to=jsonl |
        cmp - <(cat <(bert_lines 400 100 60000 4) <(bert_lines 400 100 60000 4))
    packstream -L 128 --align=16 x.tok >y.pks
    cat x.pks y.pks >both.pks
    refused 65 "cannot be joined to the first: align is 16, not 32" \
        packstat --verify both.pks
}

@test "alignment does not change drops, truncation and rejects" {
    records 5 200 >x.tok
    for what in drop truncate; do
        packstream -L 64 --overlong=$what --rejects=1.tok x.tok >1.pks
        packstream -L 64 --overlong=$what --rejects=2.tok --align=16 x.tok \
            >2.pks
        cmp 1.tok 2.tok
        cmp <(packcat 1.pks) <(packcat 2.pks)
        model aligned 2.pks 16
        packstat --verify -q --against=x.tok --rejects=2.tok 2.pks
    done
}

@test "the trainers' forms have no gap between sequences" {
    records 6 100 --vocab=60000 --pad-id=0 >x.tok
    packstream -L 128 --align=16 x.tok >x.pks
    forms() {
        support packcat-forms.py "$@"
    }
    packcat --to=trl x.pks >x.jsonl
    forms trl x.jsonl x.pks
    packcat --to=llmc x.pks >x.bin
    forms llmc x.bin x.pks
    packcat --to=rows x.pks | cmp - <(tail -c +1025 x.bin)
    for order in input pack; do
        packcat --to=megatron --order=$order -o x x.pks
        forms megatron x x.pks order=$order
        packcat --to=datatrove --order=$order -o x.ds x.pks
        forms datatrove x.ds x.pks order=$order
    done
    packstream -L 128 x.tok >y.pks
    for form in ids jsonl megatron datatrove; do
        packcat --to=$form --order=input -o 1 x.pks
        packcat --to=$form --order=input -o 2 y.pks
        for file in 1*; do
            cmp "$file" "2${file#1}"
        done
        rm 1* 2*
    done
    bert_lines 400 100 60000 6 | cmp - <(packcat --to=jsonl x.pks)
}

@test "numpy loads packcat's rows, with gaps as padding" {
    skip_without_numpy
    records 7 100 >x.tok
    packstream -L 128 --align=16 x.tok >x.pks
    packcat --to=npy -o x.npy x.pks
    "$PYTHON_NUMPY" - <<'END'
import numpy as np
from subprocess import run
rows = np.load("x.npy")["tokens"]
whole = run(["packcat", "--to=rows", "x.pks"], capture_output=True, check=True)
assert (rows == np.frombuffer(whole.stdout, "<u2").reshape(-1, 128)).all()
assert len(rows) > 3
END
}

@test "packstat shows the alignment and counts tokens, not gaps" {
    records 8 100 >x.tok
    packstream -L 128 --align=16 x.tok >x.pks
    packstat --json x.pks >x.json
    model agree x.pks <x.json
    grep -q '"align": 16' x.json
    packstat x.pks >told
    grep -q "^  alignment  *16 tokens$" told
    packstat --histogram x.tok | cmp - <(packstat --histogram x.pks)
    packstream -L 128 --align=16 --stats=json x.tok 2>&1 >/dev/null |
        grep '"align": 16'
}

# damaged WHY FIELD VALUE...: with valid checksums, --verify prints WHY.
damaged() {
    cp good.pks x.pks
    poke x.pks "${@:2}"
    refused 65 "$1" packstat --verify x.pks
}

@test "invalid lengths and boundaries are found" {
    # Two sequences in the pack: they start at 0 and 4, and have 3 and 5 tokens.
    { record16 1 2 3; record16 1 2 3 4 5; } >x.raw
    packstream -L 12 -d 9 -a nextfit --align=4 x.raw >good.pks
    packstat --verify good.pks
    damaged "sequence 0 has 0 tokens, but only 12 fit" "0 seq_tok 0" 0
    damaged "n_tok is 8, not 9" "0 seq_tok 0" 4
    damaged "sequence 0 has 4294967295 tokens" "0 seq_tok 0" -1
    damaged "max_seqlen is 5, not 4" "0 seq_tok 1" 4 "0 n_tok" 7
    damaged "sequence 1 starts at 4, not 8" "0 seq_tok 0" 5 "0 n_tok" 10
    damaged "sequence 1 starts at 5, not 4" "0 seq_start 1" 5
    damaged "sequence 1 starts at 8, not 4" "0 seq_start 1" 8
    damaged "sequence 0 starts at 4, not 0" "0 seq_start 0" 4
    damaged "sequence 1 starts at 0, not 4" "0 seq_start 1" 0
    damaged "sequence 1 has 9 tokens, but only 8 fit" "0 seq_tok 1" 9
    damaged "its packs have 1 sequences, not 2" "0 n_seq" 1
    damaged "element 3 of 'tokens' is not the fill" "0 tokens 3" 9
    damaged "element 10 of 'tokens' is not the fill" "0 tokens 10" 9
    damaged "does not divide the capacity" "header 180" 5
    damaged "sequences aligned to 1" "header 180" 1
    damaged "unknown features" "header 80" 3
}

@test "an alignment that does not divide the capacity is a usage error" {
    : >x.raw
    for n in 5 24 16777216; do
        refused 64 "--align=$n does not divide the capacity, 12" \
            packstream -L 12 --align="$n" x.raw
    done
    for n in 0 -1 x 16777217 ''; do
        refused 64 "must be a number that divides the capacity" \
            packstream -L 12 --align="$n" x.raw
    done
}

@test "channels that leave no space for a field are refused" {
    line='{"input_ids":[1]'
    channels=()
    for name in a b c d e f g h i j k l m n o p q r s t u v w; do
        line+=",\"$name\":1"
        channels+=("--channel=$name:u8")
    done
    echo "$line}" | tokcat --from=jsonl "${channels[@]}" >x.tok
    packstream -L 8 --align=4 x.tok | packcat | cmp - x.tok
    refused 64 "the fields of 23 channels and of split sequences" \
        packstream -L 8 --overlong=split --align=4 x.tok
    for name in seq_id seq_start seq_tok n_tok piece_off full_len; do
        echo "{\"input_ids\":[1],\"$name\":1}" >x.jsonl
        refused 64 "$name" tokcat --from=jsonl "--channel=$name:u8" x.jsonl
    done
}

@test "a job resumes only with its alignment" {
    records 9 100 >x.tok
    packstream -L 128 -w 50 --align=16 -o whole x.tok
    for bytes in 50000 90000 110001; do
        rm -f s out
        # shellcheck disable=SC2016 # it is for the other shell
        run -65 bash -c 'head -c "$0" x.tok | packstream -q -L 128 -w 50 \
            --align=16 --state=s --state-every=5 >>out' "$bytes"
        [ -s s ]
        cp s s.before
        cp out out.before
        for n in 1 8 32; do
            refused 64 "saved with align 16, not $n" packstream -q \
                -L 128 -w 50 --align=$n --state=s --resume -o out x.tok
            cmp s s.before
            cmp out out.before
        done
        packstream -q -L 128 -w 50 --align=16 --state=s --resume x.tok >>out
        cmp out whole
    done
}
