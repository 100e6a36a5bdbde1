#!/usr/bin/env bats
# find.bats - which sequences are in a step, which step has a sequence, where
# a sequence is, and shares without some sequences.
#
# tests/support/find.py reads packs according to packstream(5).
#
# SPDX-License-Identifier: MIT

load ../support/helpers

# some NAME SEED N [OPTION]...: NAME.pks of N random sequences.
some() {
    draw "$3" 90 900 "$2" | tokcat --from=ids >"$1.tok"
    packstream -q -L 128 "${@:4}" "$1.tok" -o "$1.pks"
}

# ------------------------------------------------------- packdeal --find

# same_steps OPTION... -- FILE...: --find of each step, joined, has the packs
# of --list. With a window and without, in any order and epoch.
same_steps() {
    local deal=(packdeal -n 3 -b 2) step
    while [ "$1" != -- ]; do
        deal+=("$1")
        shift
    done
    shift
    "${deal[@]}" --list "$@" >listed
    for ((step = 0; step < $("${deal[@]}" --steps "$@"); step++)); do
        "${deal[@]}" --find=$step "$@"
    done >found
    support find.py steps listed found "$@"
}

@test "--find prints the sequences of each step" {
    skip_without python3 zstd
    some a 1 150 --overlong=split
    some b 2 150 --overlong=split --zstd=1
    for last in short pad drop; do
        same_steps --last=$last -- a.pks
        same_steps --last=$last --seed=4 -- a.pks
        same_steps --last=$last --seed=4 --epoch=3 -- a.pks b.pks a.pks
        same_steps --last=$last --window=4 --cost=tokens -- a.pks
        same_steps --last=$last --window=4 --seed=9 --cost=0:1 -- a.pks
    done
    cat a.pks a.pks >aa.pks
    same_steps -- b.pks aa.pks
    same_steps --seed=1 -- aa.pks b.pks
}

@test "--find of a pipe, of several and of token records" {
    some a 1 150
    cat a.pks a.pks >aa.pks
    for find in --find=0 --find=7 --find-id=299,5,170; do
        packdeal -n 3 -b 2 $find aa.pks a.pks | sort |
            sed 's/ [^ ]*$//' >wanted
        [ -s wanted ]
        for files in 'aa.pks -' '- a.pks'; do
            stdin=aa.pks
            [ "$files" = '- a.pks' ] || stdin=a.pks
            # shellcheck disable=SC2086 # two words
            packdeal -n 3 -b 2 $find $files <$stdin | sort |
                sed 's/ [^ ]*$//' | diff wanted -
        done
    done
    packdeal -n 2 -b 2 --list a.tok | awk '$1 == 3' >listed
    packdeal -n 2 -b 2 --find=3 a.tok >found
    packdeal -n 2 -b 2 --find=3 <a.tok | sed 's/stdin/a.tok/' | cmp - found
    [ "$(awk '{ print $1, $2, $3 }' found)" = \
        "$(awk '{ print $1, $2, $3; print $1, $2, $4 }' listed)" ]
    packdeal -n 2 -b 2 --find-id=12 a.tok | cmp - <(grep '^3 . 12 ' found)
}

@test "--find: one rank, and JSON" {
    skip_without python3
    some a 1 150
    packdeal -n 3 -b 2 --find=5 a.pks >found
    for rank in 0 1 2; do
        packdeal -n 3 -b 2 --find=5 --rank=$rank a.pks
    done | cmp - found
    packdeal -n 3 -b 2 --find=5 --json a.pks >json
    python3 -c '
import json
for line in open("json"):
    one = json.loads(line)
    assert one["stream_id"] == one["id"] and one["pack"] == one["file_pack"]
    assert one["length"] == one["tokens"]
    print(*(one[key] for key in ("step", "rank", "id", "stream", "pack",
                                 "slot", "start", "tokens", "offset", "file")))
' | cmp - found
}

@test "--find-id is the inverse of --find" {
    some a 1 150 --overlong=split -L 40
    cat a.pks a.pks >aa.pks
    for options in '' --seed=3 '--seed=3 --epoch=2 --window=3' --window=4 \
        --last=pad; do
        # shellcheck disable=SC2206 # words
        deal=(packdeal -n 3 -b 2 $options)
        for step in 0 3 20; do
            "${deal[@]}" --find=$step aa.pks a.pks
        done >found
        ids=$(cut -d ' ' -f 3 found | sort -un | paste -sd ,)
        "${deal[@]}" --find-id="$ids" aa.pks a.pks |
            awk '$1 == 0 || $1 == 3 || $1 == 20' | sort >again
        sort found | diff - again
    done
}

@test "--find and --find-id refuse what is not there" {
    some a 1 150
    speaker='packdeal: '
    n=$(packdeal -n 3 -b 2 --steps a.pks)
    refused 65 "--find=$n: out of range: the last step is $((n - 1))" \
        packdeal -n 3 -b 2 --find="$n" a.pks
    refused 65 "--find=$n: out of range" packdeal -n 3 -b 2 --find="$n" <a.pks
    refused 65 "--find=$n: out of range" \
        packdeal -n 3 -b 2 --find="$n" --seed=1 a.pks
    packs=$(packdeal -n 1 -b 1 --steps a.pks)
    id=$(packdeal -n 1 -b 1 --find=$((packs - 1)) a.pks |
        awk 'NR == 1 { print $3 }')
    for file in a.pks -; do
        refused 65 "--find-id=$id: no step has this sequence, or --last=drop \
omits its pack" packdeal -n $((packs - 1)) -b 1 --last=drop --find-id="$id" \
            $file <a.pks
    done
    refused 65 '--find-id=150: no step has this sequence' \
        packdeal -n 3 -b 2 --find-id=3,150 a.pks
    refused 65 '--find-id=150: no step has this sequence' \
        packdeal -n 3 -b 2 --find-id=3,150 <a.pks
    refused 65 '--seed needs a regular file' \
        packdeal -n 3 -b 2 --find=0 --seed=1 < <(cat a.pks)
    head -c 20000 a.pks >cut.pks
    refused 65 'cut.pks: no complete END' packdeal -n 3 -b 2 --find=0 cut.pks
    refused 1 'none.pks: No such file' packdeal -n 3 -b 2 --find=0 none.pks
    head -c 3 a.pks >/dev/full 2>/dev/null || true
    refused 1 'stdout' bash -c 'packdeal -n 3 -b 2 --find=0 a.pks >/dev/full'
}

@test "bad options of lookups" {
    # shellcheck disable=SC2034 # bad_option takes them
    program=packdeal operands=(x.pks)
    deal=(-n 2 -b 2)
    bad_option '--find and --find-id cannot be combined' "${deal[@]}" \
        --find=1 --find-id=1
    bad_option '--find cannot be combined with --list' "${deal[@]}" \
        --find=1 --list
    bad_option '--find-id cannot be combined with --steps' "${deal[@]}" \
        --find-id=1 --steps
    bad_option '--find cannot be combined with --start' "${deal[@]}" \
        --find=1 --start=1
    bad_option '--find-id cannot be combined with --rank' "${deal[@]}" \
        --find-id=1 --rank=1
    bad_option '-o: --find writes no shares' "${deal[@]}" --find=1 -o r%d
    bad_option '--skip: --find writes no shares' "${deal[@]}" --find=1 \
        --skip=ids
    bad_option '--skip: --list writes no shares' "${deal[@]}" --list --skip=ids
    bad_option '--json needs --list without --rank, or --find or --find-id' \
        "${deal[@]}" --json --rank=1
    for ids in '' x '1,' ,1 1,,2 -1 1k 18446744073709551616; do
        bad_option "--find-id=$ids: must be an id, or ids separated by commas" \
            "${deal[@]}" --find-id=$ids
    done
    # shellcheck disable=SC2034
    operands=()
    bad_option '--skip and the packs cannot both be stdin' "${deal[@]}" \
        -o r%d --skip=-
}

# ------------------------------------------------------- packstat --find

# all_ids FILE: packstat --find of all ids finds each sequence and piece.
all_ids() {
    packstat --find="$(seq -s , 0 299)" "$1" >found || [ $? = 65 ]
    sort -n -s -k 1,1 found >sorted
    support find.py ids "$1" sorted
    packstat --find="$(seq -s , 0 299)" <"$1" | sort -k 1,1n -k 2,2n -k 3,3n |
        sed "s/stdin/$1/" | cmp - sorted || [ "${PIPESTATUS[0]}" = 65 ]
}

@test "packstat --find finds each sequence, and all pieces" {
    skip_without python3
    for options in '' '--overlong=split -L 40' '-a concat' '-a none' \
        '--align=8' '-w 100000 --max-delay=20' '--zstd=1' \
        '--overlong=drop -L 80' '--shuffle=3'; do
        # shellcheck disable=SC2086 # words
        some a 1 300 $options
        zstd -qdcf a.pks >plain.pks 2>/dev/null || cp a.pks plain.pks
        all_ids plain.pks
        [ "$options" != --zstd=1 ] || {
            packstat --find=7,250 a.pks | sed 's/a.pks/plain.pks/' |
                cmp - <(packstat --find=7,250 plain.pks)
        }
    done
    cat plain.pks plain.pks >joined.pks
    all_ids joined.pks
}

@test "packstat --find in shares, also shuffled, which have no watermarks" {
    skip_without python3
    some a 1 300 --overlong=split -L 40
    for option in '' --seed=5 --window=3; do
        # shellcheck disable=SC2086 # none or one word
        packdeal -q -n 3 -b 2 $option -o r%d a.pks
        for share in r0 r1 r2; do
            all_ids $share
        done
        # Each id is in some share.
        packstat --find="$(seq -s , 0 299)" r0 r1 r2 >found
        [ "$(cut -d ' ' -f 1 found | sort -u | wc -l)" = 300 ]
    done
}

@test "packstat --find refuses what is not there" {
    some a 1 150
    speaker='packstat: '
    refused 65 '--find=150: no pack has this sequence' \
        packstat --find=150,3 a.pks
    refused 65 '--find=150: no pack has this sequence' \
        packstat --find=150,3 <a.pks
    refused 64 '--find needs packs: a.tok has token records' \
        packstat --find=3 a.tok
    refused 64 '--find prints only where sequences are' \
        packstat --find=3 --quick a.pks
    refused 64 '--find=x: must be an id' packstat --find=x a.pks
    head -c 20000 a.pks >cut.pks
    refused 65 'cut.pks: no complete END' packstat --find=3 cut.pks
    refused 65 'stdin: ' packstat --find=3 < <(cat cut.pks)
    [ "$(packstat --find=3 --json a.pks)" = "$(packstat --find=3 a.pks |
        awk '{ printf "{\"id\": %s, \"stream\": %s, \"pack\": %s, \"slot\": %s,\
 \"start\": %s, \"tokens\": %s, \"offset\": %s, \"length\": %s, \
\"file\": \"%s\"}\n", $1, $2, $3, $4, $5, $6, $7, $6, $8 }')" ]
}

# --------------------------------------------------------- packdeal --skip

# skips N OPTION... -- FILE...: the shares lack N sequences or pieces, and
# other packs are unchanged.
skips() {
    local deal=(packdeal -n 3 -b 2) n=$1
    shift
    while [ "$1" != -- ]; do
        deal+=("$1")
        shift
    done
    shift
    rm -f r[0-9] s[0-9]
    "${deal[@]}" -q -o r%d "$@"
    "${deal[@]}" -o s%d --skip=ids "$@" 2>said
    [ "$(support find.py skipped ids r%d 3 s%d)" = "$n" ]
    packstat -q --verify s0 s1 s2
    # The changed packs are named, and are those of --find-id.
    grep -F ', pack ' said | tr -cd '0-9 \n' | awk '{ print $1, $2, $3 }' |
        sort >named
    "${deal[@]}" --find-id="$(paste -sd , ids)" "$@" |
        cut -d ' ' -f 1,2,5 | sort -u | cmp - named
    for rank in 0 1 2; do
        "${deal[@]}" -q --rank=$rank --skip=ids "$@" >one
        cmp one s$rank
    done
}

@test "--skip changes only the packs that have a skipped sequence" {
    skip_without python3
    some a 1 300 -d 20
    printf '%s\n' 5 17 200 201 202 299 >ids
    skips 6 -- a.pks
    skips 6 --seed=3 --epoch=1 -- a.pks
    skips 6 --window=3 --last=drop -- a.pks
    packdeal -n 3 -b 2 --rank=0 --skip=- -q a.pks <ids | cmp - <(
        packdeal -n 3 -b 2 --rank=0 --skip=ids -q a.pks)
    packdeal -n 3 -b 2 -q --skip=ids -o t%d < <(cat a.pks)
    packdeal -n 3 -b 2 -q --skip=ids -o r%d a.pks
    for rank in 0 1 2; do
        cmp t$rank r$rank
    done
    # A pack of each sequence alone, and pieces of sequences.
    some a 1 300 -a none
    skips 6 --seed=3 -- a.pks
    some a 1 300 --overlong=split -L 20
    n=$(packstat --find="$(paste -sd , ids)" a.pks | wc -l)
    [ "$n" -gt 6 ]
    skips "$n" -- a.pks
    some a 1 300 -a concat --align=8
    skips "$(packstat --find="$(paste -sd , ids)" a.pks | wc -l)" -- a.pks
}

@test "--skip with channels and lists" {
    skip_without python3
    for ((i = 0; i < 200; i++)); do
        n=$((1 + i * 7 % 20))
        tokens=$(seq -s , "$i" $((i + n - 1)))
        printf '{"input_ids": [%s], "labels": [%s], "source": %d, %s}\n' \
            "$tokens" "$tokens" $i "\"edges\": [$(seq -s , 1 $((i % 9)))]"
    done >lines
    tokcat --from=jsonl '--channel=edges:u32[]' lines >x.tok
    packstream -q -L 64 --budget=edges:40 x.tok -o x.pks
    printf '%s\n' 0 3 50 51 52 53 54 199 >ids
    skips 8 --seed=1 -- x.pks
    packstream -q -L 20 --budget=edges:8 x.tok -o x.pks
    skips 8 -- x.pks
}

@test "a share without an omitted sequence, of which a token remains, is valid" {
    printf '1 2 3\n4 5 6\n' | tokcat --from=ids | packstream -L 4 -o a.pks
    echo 0 >ids
    packdeal -q -n 1 -b 1 --skip=ids -o 'r%d' a.pks
    packstat --verify r0
}

@test "--skip counts ids over all streams" {
    some a 1 150
    cat a.pks a.pks >aa.pks
    echo 320 >ids
    packdeal -n 3 -b 2 --skip=ids -o r%d aa.pks a.pks 2>said
    pack=$(sed -n 's/.*pack \([0-9]*\): omitted 1 of .*/\1/p' said)
    packdeal -n 3 -b 2 --find-id=320 aa.pks a.pks >found
    [ "$(cut -d ' ' -f 5 found)" = "$pack" ]
    [ "$(packstat --find=20 a.pks | cut -d ' ' -f 3)" = \
        $((pack - $(packdeal -n 1 -b 1 --steps aa.pks))) ]
}

@test "--skip reports ids that it did not find, and refuses others" {
    some a 1 150
    printf '3\n\n150\n3\n' >ids
    packdeal -n 3 -b 2 --skip=ids -o r%d a.pks 2>said
    tail -n 1 said | grep -Fx 'packdeal: omitted 1 of the 2 sequences in '\
'ids, from 1 pack'
    # shellcheck disable=SC2034
    speaker='packdeal: '
    for line in x 1,2 -3 18446744073709551616 ' 4' 4k; do
        printf '3\n%s\n' "$line" >ids
        refused 65 "ids: line 2: '$line' is not the id of a sequence" \
            packdeal -n 3 -b 2 --skip=ids --rank=0 a.pks
    done
    refused 1 'none: No such file' \
        packdeal -n 3 -b 2 --skip=none --rank=0 a.pks
    echo 3 >r1
    refused 1 'r1: ' packdeal -n 3 -b 2 --skip=r1 -o r%d a.pks
    [ "$(cat r1)" = 3 ]
    echo 3 >ids
    refused 65 'a.tok: --skip needs packs' \
        packdeal -n 3 -b 2 --skip=ids --rank=0 a.tok
}
