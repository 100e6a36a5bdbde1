#!/usr/bin/env bats
# rejects.bats - sequences that cannot be packed as they are: too long, empty,
# or with a token outside the vocabulary.  Each is an error, or is counted by
# reason and written to --rejects, also by a job that is killed and resumed.
# SPDX-License-Identifier: MIT

# Word splitting of options is intended.
# shellcheck disable=SC2086

load ../support/helpers

# shellcheck disable=SC2034 # run sets it
stderr=

# mixed SEED N: makes x of N raw records of up to 30 tokens, some empty and some
# with a token of 1000 or more; `lines` has their tokens.
mixed() {
    awk -v seed="$1" -v n="$2" 'BEGIN {
        srand(seed)
        while (n-- > 0) {
            many = rand() < .05 ? 0 : int(1 + 16 * rand())
            if (rand() < .1)
                many = int(17 + 14 * rand())
            bad = rand() < .06 ? int(many * rand()) : -1
            line = ""
            for (i = 0; i < many; i++)
                line = line " " int(1000 * (i == bad) + 1000 * rand())
            print substr(line, 2)
        }
    }' >lines
    # In octal: four bytes of the count, and two of each token.
    printf '%b' "$(awk '
        function two(v) {
            return sprintf("\\0%03o\\0%03o", v % 256, int(v / 256))
        }
        {
            printf "%s", two(NF) two(0)
            for (i = 1; i <= NF; i++)
                printf "%s", two($i)
        }' lines)" >x
}

# model HOW: writes the part of the lines that packs of 16 tokens contain to
# `kept`, the number and the reason of each reject to `left`, and counts to
# `counts`.
model() {
    awk -v how="$1" '
        function reject(reason) {
            sequences[reason]++
            tokens[reason] += NF
        }
        {
            outside = 0
            for (i = 1; i <= NF; i++)
                outside = outside || $i >= 1000
        }
        NF == 0 { reject("empty"); next }
        NF > 16 && how == "drop" {
            reject("overlong"); print NR - 1, 1 >"left"; next
        }
        outside { reject("out_of_vocab"); print NR - 1, 3 >"left"; next }
        NF > 16 && how == "truncate" { print NR - 1, 2 >"left"; NF = 16 }
        { print >"kept" }
        END {
            n = split("overlong empty out_of_vocab", reason)
            for (i = 1; i <= n; i++)
                printf "\"rejected_%s_sequences\": %d, " \
                    "\"rejected_%s_tokens\": %d%s", reason[i],
                    sequences[reason[i]], reason[i], tokens[reason[i]],
                    i < n ? ", " : "}\n" >"counts"
        }' lines
}

drop="--empty=drop --vocab=1000 --out-of-vocab=drop"

# names_of FILE: number and reason of each reject in it.
names_of() {
    packstream -q -L 64 "$1" | packcat --to=jsonl |
        sed 's/.*"source_id":\([0-9]*\),"reason":\([0-9]\).*/\1 \2/'
}

# tokens_of FILE: the tokens of each reject in it.
tokens_of() {
    packstream -q -L 64 "$1" | packcat --to=ids
}

@test "every sequence is in a pack or counted under one reason" {
    mixed 1 3000
    local how
    for how in drop truncate split; do
        rm -f kept left
        model $how
        packstream -q -L 16 -w 50 --overlong=$how $drop --rejects=r \
            --stats=json -o out x 2>told
        packcat --to=ids out | cmp - kept
        grep -F "$(cat counts)" told
        packstat --verify -q out
        names_of r | cmp - left
        # The rejects are unchanged sequences.
        awk 'NR == FNR { is[$1 + 1]; next } FNR in is' left lines >wanted
        tokens_of r | cmp - wanted
        packstat --verify --against=x --empty --rejects=r out
    done
    # Each reason occurs, and each reject counts once in the sum.
    local sum
    sum=$(grep -o '_sequences": [0-9]*' counts |
        awk '{ n += $2 } END { print n }')
    grep -F "\"rejected\": $sum, " told
}

@test "-a concat skips sequences that are empty or outside the vocabulary" {
    mixed 2 1000
    model split
    packstream -q -L 16 -a concat $drop --stats=json -o out x 2>told
    packcat --to=ids out | cmp - kept
    grep -F "$(cat counts)" told
    packstat --verify --against=x --empty out
}

# shellcheck disable=SC2030
@test "framed records with a declared vocabulary, or a smaller one" {
    mixed 3 1000
    sed -i '/^$/d' lines
    model truncate
    tokcat --from=ids --vocab=2000 lines >large.tok
    # A header without channels has 136 bytes, which END does not cover.
    tokcat --from=ids --vocab=1000 <<<1 >one.tok
    { head -c 136 one.tok; tail -c +137 large.tok; } >small.tok
    local input
    for input in large.tok small.tok; do
        packstream -q -L 16 --overlong=truncate --vocab=1000 \
            --out-of-vocab=drop --rejects=r -o out $input
        packcat --to=ids out | cmp - kept
        names_of r | cmp - left
        packstat --verify --against=$input --vocab=1000 --rejects=r out
    done
    packstat --verify --against=small.tok --rejects=r out
    # Without the smaller vocabulary the reason is unknown.
    run -65 packstat --verify --against=large.tok --rejects=r out
}

# says STATUS MESSAGE OPTION...: packstream exits with STATUS and MESSAGE.
says() {
    is "$1" "packstream: $2" packstream "${@:3}" -L 4 -o out x
}

@test "errors by default, naming the record" {
    { record16 1 2; u32 0; } >x
    says 65 "x: record 1 at byte 8: an empty sequence (length 0)"
    says 65 "x: record 1 at byte 8: an empty sequence (length 0)" --empty=error
    { record16 1 2; record16 1 9 1; } >x
    says 65 "x: record 1 at byte 8: token 1 is 9, outside the vocabulary of 9" \
        --vocab=9
    says 65 "x: record 1 at byte 8: token 1 is 9, outside the vocabulary of 9" \
        --vocab=9 --out-of-vocab=error --empty=drop
    # A pipe gets the packs made before the error, but no END.
    run -65 bash -c 'packstream -L 4 --vocab=9 -w 1 x >out'
    [ "$(size out)" = $((4096 + 64 + 64)) ]
}

@test "a sequence that is both too long and outside the vocabulary" {
    { record16 1 2; record16 1 2 3 4 9; record16 3; } >x
    # Its length is checked first.
    says 65 "x: record 1 at byte 8: 5 tokens exceed the capacity, 4: use\
 --overlong=split, truncate or drop" --vocab=9 --out-of-vocab=drop
    # Its tokens are checked in any case.
    local how text
    for how in "drop" "drop --rejects=r" "truncate" "split"; do
        says 65 "x: record 1 at byte 8: token 4 is 9, outside the vocabulary\
 of 9" --vocab=9 --overlong=$how
    done
    # It has a single reason.
    while read -r how text; do
        says 0 "2 sequences, 3 tokens in 1 packs, 75.00% full; 1 rejected\
 (1 $text), 0 truncated, 0 split; longest delay 2" --overlong="$how" \
            --vocab=9 --out-of-vocab=drop --stats --rejects=r
        [ "$(tokens_of r)" = "1 2 3 4 9" ]
        packstat --verify --against=x --rejects=r out
    done <<'END'
drop overlong
truncate out of vocabulary
split out of vocabulary
END
}

@test "the line of --stats names the reasons that occurred" {
    { record16 1 2; u32 0; record16 1 9 1; record16 1 2 3 4 9; u32 0; } >x
    says 0 "1 sequences, 2 tokens in 1 packs, 50.00% full; 4 rejected\
 (1 overlong, 2 empty, 1 out of vocabulary), 0 truncated, 0 split; longest\
 delay 4" --stats --overlong=drop --empty=drop --vocab=9 --out-of-vocab=drop
    record16 1 2 3 4 >x
    says 0 "1 sequences, 4 tokens in 1 packs, 100.00% full; 0 rejected,\
 0 truncated, 0 split; longest delay 0" --stats --overlong=drop --empty=drop
}

@test "options that cannot be combined, and invalid values" {
    record16 1 >x
    local help="
packstream: try 'packstream --help'"
    says 64 "--flush-records and --empty=drop cannot be combined$help" \
        --flush-records --empty=drop
    says 64 "--empty=skip: must be error or drop$help" --empty=skip
    says 64 "--out-of-vocab=: must be error or drop$help" --out-of-vocab=
    says 64 "--rejects needs --overlong=drop or truncate, or\
 --out-of-vocab=drop$help" --rejects=r --empty=drop
    says 64 "--rejects needs --overlong=drop or truncate, or\
 --out-of-vocab=drop$help" --rejects=r --overlong=split
    packstream -L 4 --empty=error --flush-records -o out x
}

@test "an empty record is not a flush record, and is counted in order" {
    { record16 1; u32 0; record16 2; u32 0; u32 0; record16 3; } >x
    packstream -L 8 --empty=drop -o out x
    packstat --json out | grep -F '"packs": 1,'
    packcat --to=jsonl out
    # Ids count all records.
    packstat --json out | grep -F '"input_sequences": 6,'
    packstat --verify --against=x --empty out
    run -65 packstat --verify --against=x out
    packstream -L 8 --empty=drop --flush-every=2 -o out x
    packstat --json out | grep -F '"packs": 3,'
}

@test "killed and resumed, every reject is written once" {
    mixed 5 6000
    small_blocks 8
    local options
    for options in "--overlong=drop" "--overlong=truncate -w 300" \
        "--overlong=split --shuffle=3 -w 40" "-a concat" "-d 2 -w 60 \
--overlong=drop" "--zstd=1 --overlong=drop -w 20"; do
        echo "$options"
        goes_on -L 16 $drop --rejects=r $options
    done
}

@test "a state with other reasons is refused" {
    mixed 6 2000
    # The input ends in the middle of a record.
    head -c 20001 x |
        packstream -q -L 40 -w 20 --empty=drop --vocab=2000 \
            --out-of-vocab=drop --state=s --state-every=5 -o out || true
    [ -s s ]
    while IFS='|' read -r options why; do
        cp out before
        # shellcheck disable=SC2086 # words
        run --separate-stderr packstream -q -L 40 -w 20 $options --state=s \
            --resume -o out x
        echo "$options: $status: $stderr"
        [ "$status" -eq 64 ]
        [ "$stderr" = "packstream: s: the state was saved with $why" ]
        cmp before out
    done <<'END'
--vocab=2000 --out-of-vocab=drop|--empty drop, not error
--vocab=2000 --empty=drop|--out-of-vocab drop, not error
--vocab=1000 --out-of-vocab=drop --empty=drop|--vocab 2000, not 1000
END
}

@test "a signal before all of an overlong record has arrived" {
    mixed 7 2000
    # Its announced length makes the record larger than a buffer.
    { cat x; u32 400000; head -c 100000 /dev/zero; } >part
    { cat part; head -c 700000 /dev/zero; record16 1 2; } >all
    local options
    for options in "--overlong=drop" "--overlong=drop --rejects=r" \
        "--overlong=split"; do
        rm -f s out r in
        packstream -q -L 16 $drop $options -o wanted all
        mkfifo in
        packstream -q -L 16 $drop $options --state=s --resume -o out in \
            2>err &
        local pid=$! status=0
        opens 7 '>' in "$pid"
        { cat part; told_to_end TERM "$pid"; } >&7
        exec 7>&-
        wait "$pid" || status=$?
        echo "$options: $status: $(cat err)"
        [ "$status" -eq 143 ]
        [ ! -s err ]
        packstream -q -L 16 $drop $options --state=s --resume -o out all
        cmp wanted out
    done
}

@test "a full disk is reported once for several outputs" {
    [ -c /dev/full ] || skip "there is no /dev/full"
    mixed 8 20000
    local rejects='--overlong=drop --rejects=/dev/full'
    local option
    while read -r option; do
        rm -f s s.* out
        is 1 "packstream: /dev/full: cannot write: No space left on device" \
            packstream -q -L 16 $drop $option x
    done <<END
$rejects -o out
$rejects -o /dev/full
$rejects -o out --state=s --state-every=1
$rejects -o out --state=s --state-every=100
$rejects -o /dev/full --state=s --state-every=1
$rejects -o /dev/full --state=s --state-every=100000
--overlong=drop --rejects=r -o /dev/full --state=s --state-every=1
END
    # Finished packs are written nonetheless, if there is space.
    packstream -q -L 16 $drop $rejects x 2>/dev/null >out || true
    packcat -q --to=ids --order=pack out 2>/dev/null >some || true
    [ -s some ]
    packstream -q -L 16 $drop --overlong=drop x |
        packcat -q --to=ids --order=pack >all
    head -c "$(size some)" all | cmp - some
}
