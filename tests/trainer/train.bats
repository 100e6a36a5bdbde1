#!/usr/bin/env bats
# train.bats - the BERT example: its two programs, and a pipeline from text to a
# falling loss.
#
# SPDX-License-Identifier: MIT

# Options for ids are split into words; text.bash sets them.
# shellcheck disable=SC2086,SC2154

load ../support/helpers
load text

setup() {
    start_training
}

# train [OPTION]...: a very small BERT.
small=(--hidden=16 --heads=2 --layers=2 --dropout=0.1 --stats=json --report=1)
train() {
    packtrain "${small[@]}" "$@"
}

# packs_in FILE: the number of packs.
packs_in() {
    packstat --json "$1" | sed -n 's/.*"packs": *\([0-9]*\).*/\1/p'
}

# numbers FILE: the lines without times.
numbers() {
    sed 's/, "seconds.*//' "$1"
}

# ---- bert-sequences ----

@test "sequences are masked pairs of sentences from the text" {
    skip_without python3
    text 300 >some
    sequences <some >masked
    sequences --unmasked <some >plain
    python3 "${abs_top_srcdir:?}/tests/trainer/bert.py" sequences some masked plain
}

@test "a seed makes the same sequences again, another seed others" {
    text >some
    sequences <some >one
    sequences some >two
    sequences --seed=2 <some >three
    cmp one two
    run -1 cmp -s one three
}

@test "a single document is followed by its own text or by nothing" {
    printf '5 6 7\n8 9\n10\n' | sequences --unmasked >out
    [ "$(cat out)" = '{"input_ids": [2, 5, 6, 7, 3, 8, 9, 10, 3], "token_type_ids": [0, 0, 0, 0, 0, 1, 1, 1, 1], "next_sentence_label": 0}' ] ||
        [ "$(cat out)" = '{"input_ids": [2, 5, 6, 7, 8, 9, 3, 10, 3], "token_type_ids": [0, 0, 0, 0, 0, 0, 0, 1, 1], "next_sentence_label": 0}' ]
    printf '5 6 7' | sequences --unmasked >out
    [ "$(cat out)" = '{"input_ids": [2, 5, 6, 7, 3], "token_type_ids": [0, 0, 0, 0, 0], "next_sentence_label": -1}' ]
}

@test "a sentence of 200,000 tokens is cut" {
    for ((i = 0; i < 200; i++)); do
        printf '7 %.0s' {1..1000}
    done >long
    sequences --unmasked <long >out
    [ "$(wc -l <out)" -eq 4 ]
    [ "$(grep -o ' 7' out | wc -l)" -gt 100 ]
    run -1 grep -q '\(7, \)\{30\}' out
}

@test "bert-sequences reports line and column of an invalid token" {
    refused 65 "stdin: line 3, column 3: 'x' is not part of a number" \
        sequences <<<$'5 6\n\n7 x'
    refused 65 "stdin: line 2, column 4: the token is not below" \
        sequences <<<$'5 6\n12 60'
    refused 65 "column 1: the token is not below" \
        sequences <<<99999999999999999999999
    refused 65 "line 1, column 2: byte 195" sequences <<<$'5\xc3\xa9'
    refused 65 "'-' is not part" sequences <<<"-5"
    refused 1 "none: No such file" sequences none
}

@test "bert-sequences refuses contradictory options" {
    refused 64 "missing --vocab=N" bert-sequences </dev/null
    refused 64 "are required" bert-sequences --vocab=9 --cls-id=1
    refused 64 "are required" bert-sequences --vocab=9 --cls-id=1 \
        --sep-id=2 --mask-id=9
    refused 64 "--length=4: must be a number from 5 to 65536" \
        sequences --length=4
    refused 64 "--short=1.5: must be a number from 0 to 1" sequences --short=1.5
    refused 64 "--pool=-1: must be a number from 2" sequences --pool=-1
}

@test "bert-sequences reports that its output cannot be written" {
    [ -e /dev/full ] || skip "there is no /dev/full"
    text >some
    run -1 bash -c "bert-sequences $ids some >/dev/full"
    [[ $output == *"stdout: No space left"* ]]
}

# ---- packtrain ----

@test "the loss falls" {
    packs -d 4 >x.pks
    train --packs=8 --epochs=12 --rate=0.02 x.pks >out
    skip_without python3
    python3 "$abs_top_srcdir/tests/trainer/bert.py" falls out 0.3
}

@test "a pipe trains like a file, and text output has the same numbers" {
    packs -d 4 >x.pks
    train --steps=4 x.pks >one
    train --steps=4 <x.pks >two
    [ "$(wc -l <one)" -eq 4 ]
    diff <(numbers one) <(numbers two)
    packtrain --hidden=16 --steps=4 --report=2 x.pks >text
    [ "$(wc -l <text)" -eq 2 ]
    grep -q '^step 2: [0-9]* sequences, loss [0-9.]* (mlm [0-9.]*, nsp' text
}

@test "streams without labels are masked with their own mask token" {
    text | sequences --unmasked >plain
    # shellcheck disable=SC2086
    tokcat -q --from=jsonl $ids --pad-id=0 plain |
        packstream -q -L 32 >x.pks
    train --steps=3 x.pks >one
    train --steps=3 --mask=0.5 x.pks >two
    [ "$(wc -l <one)" -eq 3 ]
    numbers one >first
    numbers two >second
    run -1 cmp -s first second
    tokcat -q --from=jsonl --vocab=$vocab plain | packstream -q -L 32 >y.pks
    refused 64 "y.pks: has no labels, and declares no mask token" \
        train y.pks
}

# goes_on COMMAND...: the command makes 3 steps with a checkpoint "part";
# resumed, they continue as in an uninterrupted run.
goes_on() {
    rm -f whole part
    train --steps=6 --save=whole "${given[@]}" >all
    "$@" >first
    train --steps=6 --save=part --resume "${given[@]}" >rest
    diff <(numbers all) <(numbers first; numbers rest)
    cmp whole part
}

@test "a run resumes where it ended, bit for bit" {
    packs -d 4 >x.pks
    packs -d 4 --zstd >y.pks
    given=(--packs=5 x.pks)
    goes_on train --steps=3 --save=part "${given[@]}"
    # Another file, and another epoch.
    given=(--packs=40 --epochs=3 y.pks x.pks)
    goes_on train --steps=3 --save=part "${given[@]}"
    # Resuming once more does nothing.
    train --steps=6 --save=part --resume "${given[@]}" >none
    [ ! -s none ]
    cmp whole part
}

@test "a run resumes where it was killed, in a file or a pipe" {
    packs -d 4 --block-packs=1 >x.pks
    given=(--packs=5 x.pks)
    # The data in the pipe is enough for three steps and no more.
    killed() {
        local bytes=4096 i pid
        for ((i = 0; i < 16; i++)); do
            bytes=$((bytes + $(number x.pks $((bytes + 24)) 8)))
        done
        mkfifo in
        packtrain "${small[@]}" --packs=5 --save-every=3 --save=part in \
            >told &
        pid=$!
        opens 7 '>' in "$pid"
        {
            head -c "$bytes" x.pks
            eventually test -e part
            kill -9 "$pid"
        } >&7
        exec 7>&-
        wait "$pid" || true
        rm in
        cat told
    }
    goes_on killed
    rm -f part
    killed >first
    train --steps=6 --save=part --resume --packs=5 <x.pks >rest
    diff <(numbers all) <(numbers first; numbers rest)
    cmp whole part
}

@test "SIGTERM ends a run after a whole step, with a checkpoint" {
    packs -d 4 >x.pks
    given=(--packs=5 --epochs=1000000 x.pks)
    # The file exists before the run: a signal that arrives before bash has
    # become packtrain is lost.
    terminated() {
        local pid
        : >told
        packtrain "${small[@]}" --save=part "${given[@]}" >told &
        pid=$!
        while kill -0 "$pid" && [ "$(wc -l <told)" -lt 2 ]; do
            sleep 0.1
        done
        kill -TERM "$pid"
        exits 143 "$pid"
        cat told
    }
    terminated >first
    made=$(wc -l <first)
    train --steps=$((made + 2)) --save=part --resume "${given[@]}" >rest
    train --steps=$((made + 2)) --save=whole "${given[@]}" >all
    diff <(numbers all) <(numbers first; numbers rest)
    cmp whole part
}

@test "a checkpoint of another model or input is refused" {
    packs -d 4 >x.pks
    train --steps=2 --save=s x.pks >out
    refused 64 "s: exists already" train --steps=4 --save=s x.pks
    refused 64 "s: saved with hidden=16, not with hidden=32" \
        train --save=s --resume --hidden=32 x.pks
    refused 64 "s: saved with rate=0.004, not with rate=0.5" \
        train --save=s --resume --rate=0.5 x.pks
    packs -d 2 >y.pks
    refused 64 "y.pks: " train --save=s --resume y.pks
    flip s 5000
    refused 65 "s: the checkpoint is damaged" train --save=s --resume x.pks
    head -c 5000 s >t
    refused 65 "t: the checkpoint is truncated" train --save=t --resume x.pks
    refused 1 "none/s: No such file" train --steps=1 --save=none/s x.pks
}

@test "packtrain refuses input that it cannot train on" {
    packs -d 4 >x.pks
    refused 1 "none: No such file" train none
    refused 65 "stdin: " train </dev/null
    refused 65 "stdin: not a pack stream" train <"$BATS_TEST_FILENAME"
    head -c 9000 x.pks >cut.pks
    refused 65 "cut.pks: " train --packs=2 cut.pks
    refused 65 "tokens of" train --vocab=20 x.pks
    refused 64 "packs of 32 tokens need more than 16 positions" \
        train --positions=16 x.pks
    refused 64 "--packs and --sequences exclude" train --packs=1 --sequences=1
    refused 64 "--hidden must be a multiple of --heads" train --heads=3 x.pks
    refused 64 "--total must be greater than --warmup" \
        train --total=5 --warmup=5
    refused 64 "--resume and --save-every need --save" train --resume
    refused 64 "--attention=wide: must be varlen, dense, cudnn or auto" \
        train --attention=wide
    refused 64 "--rate=x: must be a number, 0 or more" train --rate=x
    refused 64 "read only once" train --epochs=2 -
    records </dev/null | packstream -q -L 32 >empty.pks
    refused 65 "empty.pks: no packs" train --epochs=3 empty.pks
    run -0 packtrain --help
    [[ $output == *"--sequences=N"* ]]
    refused 64 "--no-such: unknown option" packtrain --no-such
    refused 64 "-x: unknown option" packtrain -xy
    refused 64 "--save: needs a value" packtrain --save
    refused 64 "--resume: takes no value" packtrain --resume=1
}

@test "packtrain reports that its output cannot be written" {
    [ -e /dev/full ] || skip "there is no /dev/full"
    packs >x.pks
    run -1 bash -c "packtrain --hidden=16 --report=1 x.pks >/dev/full"
    [[ $output == *"stdout: cannot be written"* ]]
}

@test "packed and padded training have the same loss at every step" {
    skip_without python3
    packs -d 1 --flush-every=16 >padded.pks
    packs -d 4 --flush-every=16 >packed.pks
    for kind in padded packed; do
        # A GPU has no dense attention: tests/device.sh.
        for way in varlen "${OTHER_ATTENTION:-dense}"; do
            train --sequences=16 --dropout=0 --rate=0.02 --attention=$way \
                $kind.pks >$kind.$way
        done
    done
    [ "$(wc -l <packed.varlen)" -gt 10 ]
    [ "$(packs_in packed.pks)" -lt "$(($(packs_in padded.pks) * 9 / 10))" ]
    python3 "$abs_top_srcdir/tests/trainer/bert.py" same 1e-3 padded.varlen \
        packed.varlen padded."$way" packed."$way"
    # The rest is rounding, which is less in double.
    double="${abs_top_builddir:?}/tests/trainer/packtrain-double"
    [ -x "$double" ] || skip "tests/trainer/packtrain-double is not built"
    for kind in padded packed; do
        "$double" --hidden=16 --sequences=16 --dropout=0 --rate=0.02 \
            --stats=json --report=1 $kind.pks >$kind.double
    done
    python3 "$abs_top_srcdir/tests/trainer/bert.py" same 1e-10 padded.double \
        packed.double
    refused 64 "crosses the end of a batch of 17 sequences: make packs with" \
        train --sequences=17 packed.pks
}

@test "LAMB's decays are raised to the power of a step's factor" {
    skip_without python3
    packs -d 4 --flush-every=16 >x.pks
    for factor in 0 1 2.5; do
        options=(--packs=5 "--factor=$factor")
        [ $factor != 1 ] || options=(--sequences=16) # where it is the default
        [ $factor != 0 ] || options=(--packs=5)
        for steps in 1 3; do
            rm -f state
            train "${options[@]}" --steps=$steps --save=state x.pks >out
            python3 "${abs_top_srcdir:?}/tests/trainer/bert.py" lamb state \
                out $factor
        done
    done
}

@test "skipping the padding changes no loss" {
    skip_without python3
    packs -d 1 -w 1 >x.pks
    for way in padded stripped unpadded; do
        train --packs=10 --rows=$way --steps=8 x.pks >$way
    done
    train --packs=10 --steps=8 x.pks | numbers /dev/stdin >default
    numbers unpadded | cmp - default
    for way in padded stripped; do
        # As above.
        train --packs=10 --rows=$way --attention="${OTHER_ATTENTION:-dense}" \
            --steps=8 x.pks >dense.$way
    done
    [ "$(wc -l <unpadded)" -eq 8 ]
    python3 "$abs_top_srcdir/tests/trainer/bert.py" same 1e-5 padded stripped \
        unpadded dense.padded dense.stripped
    refused 64 "--attention=dense does not support --rows=unpadded" \
        train --rows=unpadded --attention=dense x.pks
    refused 64 "--rows=none: must be padded, stripped or unpadded" \
        train --rows=none x.pks
}

# ---- The whole pipeline ----

@test "the loss falls in the pipeline from text" {
    skip_without spm_train spm_encode
    run -0 "$abs_top_srcdir/trainer/pipeline.sh" --short
    [[ $output == *"less, at least"* ]]
}
