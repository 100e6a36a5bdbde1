#!/usr/bin/env bats
# packdeal.bats - packdeal: shares have every pack once, in its step of the
# stream, and ranks have similar costs.
#
# tests/support/packdeal.py reads shares according to packstream(5).
#
# SPDX-License-Identifier: MIT

load ../support/helpers

# shares_of R B FILE OPTION...: makes shares r0, r1 and so on of the file.
shares_of() {
    rm -f r[0-9]*
    packdeal -q -n "$1" -b "$2" -o r%d "${@:4}" "$3"
}

# whole R B FILE: shares r0, r1... together have the packs of the file.
whole() {
    skip_without python3
    support packdeal.py shares "$1" "$2" "$3" r%d
    for ((rank = 0; rank < $1; rank++)); do
        packstat -q --verify "r$rank"
    done
}

# uneven [OPTION...]: x.pks, packs of very different lengths.
uneven() {
    draw 900 128 90 7 3 | tokcat --from=ids >x.tok
    packstream -q -L 128 "$@" x.tok >x.pks
}

# makes FILE COMMAND...: the command's output, written to a file, equals FILE.
# (To a pipe each step would be a block.)
makes() {
    "${@:2}" >made
    cmp made "$1"
}

# ------------------------------------------------------------------ shares

@test "every pack is in one share, in its step" {
    uneven
    for shape in '4 4' '3 2' '1 5' '7 1' '2 100'; do
        # shellcheck disable=SC2086 # two words
        shares_of $shape x.pks
        # shellcheck disable=SC2086
        whole $shape x.pks
    done
    # The same with channels, gaps, pieces and rejects.
    bert_lines 300 40 >lines
    tokcat --from=jsonl lines >x.tok
    for option in --align=8 --overlong=truncate --overlong=split -aconcat; do
        packstream -q -L 32 "$option" --overlong=drop x.tok >x.pks ||
            packstream -q -L 32 "$option" x.tok >x.pks
        shares_of 4 3 x.pks
        whole 4 3 x.pks
    done
}

@test "packcat recovers a share's sequences, split ones only in pack order" {
    uneven
    shares_of 3 4 x.pks
    packcat --to=ids x.pks | sort >wanted
    packcat --to=ids r0 r1 r2 | sort | diff -u wanted -
    packcat --to=ids r1 >part
    [ "$(wc -l <part)" -gt 100 ]
    packcat --to=ids x.pks | diff - part >changes || true
    run -1 grep '^>' changes
    packstream -q -L 50 --overlong=split x.tok >x.pks
    shares_of 3 4 x.pks
    refused 65 'r2: the share of one rank, whose split sequences' \
        packcat r2
    packcat --to=ids --order=pack r0 r1 r2 | sort >got
    packcat --to=ids --order=pack x.pks | sort | diff -u - got
    refused 65 'r1: is a share of a stream' packstat --verify --against=x.tok r1
}

@test "a share can be divided again" {
    uneven
    shares_of 2 6 x.pks
    cp r1 y.pks
    shares_of 3 2 y.pks
    for file in r0 r1 r2; do
        packstat -q --verify "$file"
    done
    packstat --verify y.pks >wanted
    [ "$(packcat --to=ids r0 r1 r2 | sort | cksum)" = \
        "$(packcat --to=ids y.pks | sort | cksum)" ]
}

# ------------------------------------------------------------ one rank alone

# alike R B FILE...: --rank writes the same as -o, from files and from pipes.
# The files have a depth, which a pipe reveals only at its end.
alike() {
    local rank
    rm -f r[0-9]*
    packdeal -q -n "$1" -b "$2" -o r%d "${@:3}"
    for ((rank = 0; rank < $1; rank++)); do
        makes "r$rank" packdeal -n "$1" -b "$2" --rank=$rank "${@:3}"
        cat "${@:3}" | makes "r$rank" packdeal -n "$1" -b "$2" --rank=$rank
    done
    packdeal -n "$1" -b "$2" --rank=0 -o one "$3" "${@:4}"
    cmp one r0
    packdeal -n "$1" -b "$2" --rank=0 -o one.%03d "$3" "${@:4}"
    cmp one.000 r0
}

@test "--rank is file r of -o, byte for byte" {
    uneven -d 20
    alike 4 3 x.pks
    alike 3 50 x.pks
}

@test "compressed packs make the same shares, and shares can be compressed" {
    uneven -d 20
    packstream -q -L 128 -d 20 --zstd=1 x.tok >x.zst
    shares_of 4 3 x.pks
    for ((rank = 0; rank < 4; rank++)); do
        makes r$rank packdeal -n 4 -b 3 --rank=$rank x.zst
        piped x.zst | makes r$rank packdeal -n 4 -b 3 --rank=$rank
        packdeal -n 4 -b 3 --rank=$rank --zstd x.zst >y.zst
        packstat -q --verify y.zst
        [ "$(packcat --range=0: --to=ids y.zst | cksum)" = \
            "$(packcat --range=0: --to=ids r$rank | cksum)" ]
        [ "$(size y.zst)" -lt "$(size r$rank)" ]
        packdeal -q -n 4 -b 3 --rank=$rank --zstd -o z.zst x.pks
        cmp y.zst z.zst
    done
}

@test "dropped packs of joined streams" {
    uneven
    for seed in 1 2 3; do
        draw 9 100 90 $seed | tokcat --from=ids |
            packstream -q -L 128 -d 9 -a none >$seed.pks
    done
    cat 1.pks 2.pks 3.pks >x.pks
    for batch in 2 3 4; do
        packdeal -q -n 4 -b $batch --last=drop -o r%d x.pks
        for rank in 0 1 2 3; do
            piped x.pks | makes r$rank \
                packdeal -n 4 -b $batch --rank=$rank --last=drop
            packstat -q --verify r$rank
        done
    done
    # 16 packs are assigned, none of the last stream.
    packcat --to=ids r0 r1 r2 r3 | sort >got
    packcat --range=:16 --to=ids x.pks | sort | diff - got
}

@test "joined streams, and several files" {
    uneven
    packstream -q -L 128 -d 14 --shuffle=3 x.tok >y.pks
    packstream -q -L 128 -d 14 x.tok >x.pks
    tokcat --from=ids /dev/null | packstream -q -L 128 -d 14 >none.pks
    draw 90 400 90 | tokcat --from=ids >z.tok
    packstream -q -L 128 -d 14 --overlong=truncate z.tok >z.pks
    cat none.pks x.pks none.pks none.pks y.pks z.pks none.pks >all.pks
    alike 4 3 all.pks
    whole 4 3 all.pks
    alike 4 3 none.pks x.pks none.pks y.pks z.pks
    alike 2 200 x.pks y.pks z.pks
    for file in x y z; do
        packstream -q -L 128 -d 14 --zstd=1 x.tok >$file.zst
    done
    alike 4 3 x.zst y.zst z.zst
    # In some streams a rank has no packs.
    for seed in 1 2 3 4; do
        draw 3 100 90 $seed | tokcat --from=ids | packstream -q -L 128 -d 14
    done >fews.pks
    alike 4 2 fews.pks
    whole 4 2 fews.pks
}

# depths FILE...: the depths in the headers.
depths() {
    local file
    for file; do
        number "$file" 52 4
    done | paste -sd' '
}

@test "all shares have the depth of all inputs, if each has one" {
    uneven
    packstream -q -L 128 -a none x.tok >one.pks
    packstream -q -L 128 -d 3 x.tok >three.pks
    most=$(packstat --json x.pks | sed 's/.*"max_depth": \([0-9]*\),.*/\1/')
    [ "$most" -gt 3 ]
    shares_of 2 3 one.pks
    [ "$(depths r0 r1)" = '1 1' ]
    shares_of 2 3 three.pks
    [ "$(depths r0 r1)" = '3 3' ]
    for option in --last=drop --seed=1 --zstd; do
        packdeal -q -n 2 -b 3 -o r%d "$option" one.pks three.pks x.pks
        [ $option != --zstd ] || for rank in 0 1; do
            zstd -qdc r$rank >r$rank.plain
            mv r$rank.plain r$rank
        done
        [ "$(depths r0 r1)" = "$most $most" ]
    done
    # A pipe's depth is unknown before it is read; a cap of all inputs applies.
    packdeal -q -n 2 -b 3 -o r%d <(cat three.pks) three.pks
    [ "$(depths r0 r1)" = '3 3' ]
    packdeal -q -n 2 -b 3 -o r%d x.pks <(cat x.pks)
    [ "$(depths r0 r1)" = '0 0' ]
    packstat -q --verify r0 r1
}

# ------------------------------------------------------------------- deals

@test "no other assignment is better" {
    skip_without python3
    uneven
    for shape in '2 4' '3 3' '4 2'; do
        # shellcheck disable=SC2086
        set -- $shape
        packdeal -n "$1" -b "$2" --hidden=5 --last=drop --list x.pks >list
        support packdeal.py best "$1" "$2" 5 x.pks <list
    done
}

@test "the list matches the shares, and -v reports each step's imbalance" {
    uneven
    shares_of 3 4 x.pks
    packdeal -n 3 -b 4 --list x.pks >list
    packdeal -n 3 -b 4 --list --rank=1 - <x.pks |
        diff - <(awk '$2 == 1' list)
    for rank in 0 1 2; do
        awk -v rank=$rank '$2 == rank { for (i = 3; i <= NF; i++) print $i }' \
            list | while read -r number; do
            packcat --range="$number:$((number + 1))" --to=ids x.pks
        done >wanted
        packcat --order=pack --to=ids r$rank | diff - wanted
    done
    [ "$(wc -l <list)" = $((3 * $(packdeal -n 3 -b 4 --steps x.pks))) ]
    packdeal -n 4 -b 4 -v -o r%d x.pks 2>told
    [[ $(cat told) =~ ^'packdeal: '[0-9]+' steps; imbalance (max/mean) '\
1.[0-9]{4}', round robin '1.[0-9]{4}$ ]]
    packdeal -n 4 -b 4 -v --list x.pks 2>&1 >list | diff - told
    awk '{ exit !($6 < $9 && $6 >= 1) }' told
}

@test "the cost is the requested one" {
    # Four packs of 8 tokens: one sequence, or several.
    printf '%s\n' '1 2 3 4 5 6 7 8' '1 2 3 4 5 6 7 8' '1 2 3 4' '1 2 3 4' \
        '1 2 3 4' '1 2 3 4' | tokcat --from=ids |
        packstream -q -L 8 -a nextfit >x.pks
    packdeal -n 2 -b 2 --list --cost=0:1 x.pks | diff - <(
        printf '0 0 0 3\n0 1 1 2\n')
    packdeal -n 2 -b 2 --list --hidden=1 x.pks | diff - <(
        printf '0 0 0 3\n0 1 1 2\n')
    # Attention does not count: 8 tokens each, or 8 and 4 below.
    for cost in --cost=tokens --cost=1:0 --cost=attention; do
        packdeal -n 2 -b 2 --list $cost x.pks >list
        [ "$(cut -d ' ' -f 3- list | tr ' ' '\n' | sort | tr -d '\n')" = 0123 ]
    done
    printf '%s\n' '1 2 3 4 5 6' '1 2 3' '1 2 3' 5 |
        tokcat --from=ids | packstream -q -L 6 -a none >x.pks
    packdeal -n 2 -b 2 --list --cost=tokens x.pks | diff - <(
        printf '0 0 0 3\n0 1 1 2\n')
    speaker=packdeal refused 65 'the costs of a global batch exceed 63 bits' \
        packdeal -n 2 -b 2 --list --cost=0:200000000000000000 x.pks
    speaker=packdeal refused 65 'x.pks: ' \
        packdeal -n 2 -b 2 --list --cost=0:18446744073709551615 x.pks
}

@test "--list --json: the list, and the costs of each rank" {
    skip_without python3
    uneven
    for option in --window=2 --last=pad --start=7; do
        packdeal -n 4 -b 3 --cost=0:1 $option --list x.pks | tr -d - >list
        packdeal -n 4 -b 3 --cost=0:1 $option --list --json x.pks >x.json
        support packdeal.py objects 4 x.pks list x.json
    done
    for option in --steps --rank=1 '--list --rank=1' -or%d; do
        # shellcheck disable=SC2086 # options
        refused 64 'packdeal: --json needs --list without --rank' \
            packdeal -n 4 -b 3 --json $option x.pks
    done
}

# --------------------------------------------------------------- last steps

@test "packs that do not fill a step are assigned as well, or dropped" {
    draw 23 20 90 | tokcat --from=ids | packstream -q -L 32 -a none >x.pks
    [ "$(packdeal -n 4 -b 3 --steps x.pks)" = 2 ]
    [ "$(piped x.pks | packdeal -n 4 -b 3 --steps --last=drop)" = 1 ]
    [ "$(piped x.pks | packdeal -n 4 -b 3 --steps x.pks - x.pks)" = 6 ]
    [ "$(packdeal -n 4 -b 3 --steps --last=drop x.pks x.pks)" = 3 ]
    shares_of 4 3 x.pks
    whole 4 3 x.pks
    packdeal -n 4 -b 3 --list --last=drop x.pks >list
    packdeal -n 4 -b 3 --list --last=short x.pks >short
    head -n 4 short | diff - list
    shares_of 4 3 x.pks --last=drop
    packstat --quick --json r0 r1 r2 r3 | grep -c '"packs": 3,' | grep -x 4
    for file in r0 r1 r2 r3; do
        packstat -q --verify $file
    done
    # Fewer packs than ranks are left: one rank gets none.
    [ "$(packdeal -n 5 -b 4 --list x.pks | awk 'NF == 2' | wc -l)" = 2 ]
    shares_of 5 4 x.pks
    whole 5 4 x.pks
    # The packs are fewer than a step, but not fewer than ranks.
    shares_of 5 40 x.pks
    whole 5 40 x.pks
}

@test "with --last=pad every rank takes part in the last step" {
    draw 23 20 90 | tokcat --from=ids >x.tok
    packstream -q -L 32 -a none x.tok >x.pks
    for file in x.pks x.tok; do
        packdeal -n 4 -b 3 --list $file >short
        packdeal -n 4 -b 3 --list --last=pad $file >padded
        sed 's/ -//g' padded | diff - short
        [ "$(awk '{ print NF }' padded | sort -u)" = 5 ]
        packdeal -n 4 -b 3 --list --last=pad --window=2 $file |
            awk '{ print NF }' | sort -u | grep -x 5
        [ "$(packdeal -n 4 -b 3 --steps --last=pad $file)" = 2 ]
        packdeal -q -n 4 -b 3 -o s%d $file
        packdeal -q -n 4 -b 3 -o r%d --last=pad $file
        for rank in 0 1 2 3; do
            cmp r$rank s$rank
        done
        rm r?
        # Three are left, and a share cannot have an empty pack.
        [ "$(packdeal -n 5 -b 4 --list --last=pad $file | tail -n 2)" = \
            $'1 3 - - - -\n1 4 - - - -' ]
        for option in --rank=1 -or%d; do
            speaker=packdeal refused 65 '--last=pad: the last step has 3 ' \
                packdeal -q -n 5 -b 4 --last=pad $option $file
        done
        absent r0 r1 r0.new r1.new
    done
}

# ------------------------------------------------------------- later steps

# goes_on START FILE...: with --start, --rank and -o write the same as without,
# except the packs of the earlier steps.
goes_on() {
    local start=$1
    packdeal -q -n 3 -b 4 -o "whole%d" "${@:2}"
    packdeal -q -n 3 -b 4 --start="$start" -o "r%d" "${@:2}"
    support packdeal.py tail $((4 * start)) whole0 r0 whole1 r1 whole2 r2
    packstat -q --verify r0 r1 r2
    makes r1 packdeal -n 3 -b 4 --start="$start" --rank=1 "${@:2}"
    cat "${@:2}" | makes r1 packdeal -n 3 -b 4 --start="$start" --rank=1
}

@test "--start continues after the completed steps" {
    skip_without python3
    uneven
    packdeal -n 3 -b 4 --list x.pks >list
    steps=$(packdeal -n 3 -b 4 --steps x.pks)
    for start in 0 1 5 $((steps - 1)); do
        awk -v start="$start" '$1 >= start' list >wanted
        packdeal -n 3 -b 4 --list --start="$start" x.pks | diff - wanted
        piped x.pks | packdeal -n 3 -b 4 --list --start="$start" |
            diff - wanted
        [ "$(packdeal -n 3 -b 4 --steps --start="$start" x.pks)" = \
            $((steps - start)) ]
    done
    packdeal -n 3 -b 4 -v --list --start=$((steps - 2)) x.pks 2>&1 >/dev/null |
        grep '^packdeal: 2 steps; '
    # The same for shares, from files, streams and pipes.
    packstream -q -L 128 -d 14 x.tok >x.pks
    packstream -q -L 128 -d 14 --shuffle=3 x.tok >y.pks
    tokcat --from=ids /dev/null | packstream -q -L 128 -d 14 >none.pks
    cat x.pks none.pks y.pks x.pks >all.pks
    # Within the first stream, and at its end.
    packs=$(packdeal -n 1 -b 1 --steps x.pks)
    for start in 1 $((packs / 12)); do
        goes_on "$start" all.pks
    done
    goes_on $((packs * 2 / 12 + 1)) x.pks none.pks y.pks x.pks
    packstream -q -L 128 -d 14 --zstd=1 x.tok >x.zst
    packdeal -n 3 -b 4 --rank=1 --start=2 x.zst >got
    makes got packdeal -n 3 -b 4 --rank=1 --start=2 x.pks
}

# none_made WHY ARGUMENT...: packdeal refuses to make shares, a list or a count
# of steps.
none_made() {
    local option
    for option in --rank=0 --list --steps -or%d; do
        speaker=packdeal refused 65 "$1" packdeal -q "${@:2}" $option
    done
    absent r0 r1 r0.new r1.new
}

@test "too few packs, or no steps left" {
    draw 23 20 90 | tokcat --from=ids | packstream -q -L 32 -a none >x.pks
    : | packstream -q -L 32 -d 4 >none.pks 2>/dev/null
    for start in 2 18446744073709551615; do
        none_made "--start=$start: out of range: the last step is 1" \
            -n 4 -b 3 --start=$start x.pks
    done
    none_made '--start=1: out of range: the last step is 0' \
        -n 4 -b 3 --start=1 --last=drop x.pks
    none_made 'too few packs for 24 ranks: 23' -n 24 -b 1 --start=9 x.pks
    none_made "23 packs do not fill a step of 24, so --last=drop would drop all \
of them" -n 4 -b 6 --last=drop x.pks
    none_made 'too few packs for 1 ranks: 0' -n 1 -b 1 none.pks
    # No file is created first, for any kind of input.
    tokcat --from=ids <<<1 >x.tok
    for input in x.pks <(cat x.pks); do
        speaker=packdeal refused 65 'too few packs for 1000000 ranks: 23' \
            packdeal -q -n 1000000 -b 1 -o missing/r%d "$input"
    done
    speaker=packdeal refused 65 'too few sequences for 8 ranks: 1' \
        packdeal -q -n 8 -b 1 -o missing/r%d x.tok
    speaker=packdeal refused 1 'missing/r0.new: No such file' \
        packdeal -q -n 7 -b 1 -o missing/r%d x.pks
}

# ------------------------------------------------------------------- epochs

@test "--seed has each pack once, in a different order for each epoch" {
    uneven
    n=$(packdeal -n 1 -b 1 --steps --seed=7 x.pks x.pks)
    for epoch in 0 1 18446744073709551615; do
        packdeal -n 3 -b 4 --list --seed=7 --epoch=$epoch x.pks x.pks \
            >epoch$epoch
        cut -d ' ' -f 3- epoch$epoch | tr ' ' '\n' | sort -n |
            diff - <(seq 0 $((n - 1)))
    done
    run -1 cmp -s epoch0 epoch1
    packdeal -n 3 -b 4 --list --seed=7 x.pks x.pks | cmp - epoch0
    packdeal -n 3 -b 4 --list --seed=8 x.pks x.pks >other
    run -1 cmp -s epoch0 other
    # The numbers in epoch-t.c.
    draw 10 20 90 | tokcat --from=ids | packstream -q -L 32 -a none >y.pks
    packdeal -n 1 -b 10 --list --seed=7 --epoch=1 y.pks |
        diff - <(echo 0 0 3 7 8 6 0 4 1 2 9 5)
    for start in 1 9 $((n / 12)); do
        packdeal -n 3 -b 4 --list --seed=7 --start=$start x.pks x.pks |
            diff - <(awk -v start=$start '$1 >= start' epoch0)
    done
}

@test "shuffled shares are streams of the same packs" {
    skip_without python3
    uneven
    packstream -q -L 128 -d 14 x.tok >x.pks
    packstream -q -L 128 -d 14 --shuffle=3 --zstd=1 x.tok >y.zst
    zstd -qdc y.zst >y.pks
    tokcat --from=ids /dev/null | packstream -q -L 128 -d 14 >none.pks
    cat none.pks x.pks none.pks y.pks >xy.pks
    cat xy.pks x.pks y.pks none.pks >all.pks
    deal=(packdeal -q -n 3 -b 4 --seed=5 --epoch=2)
    "${deal[@]}" -o r%d xy.pks x.pks y.zst none.pks
    "${deal[@]}" --list all.pks | support packdeal.py shuffled 3 all.pks r%d
    packstat -q --verify r0 r1 r2
    packcat --to=ids r0 r1 r2 | sort >got
    packcat --to=ids all.pks | sort | cmp - got
    makes r1 "${deal[@]}" --rank=1 all.pks
    "${deal[@]}" --rank=1 --zstd=1 all.pks >r1.zst
    zstd -qdc r1.zst | cmp - r1
    "${deal[@]}" --rank=1 --start=50 all.pks >rest
    support packdeal.py tail 200 r1 rest
    mkfifo fifo
    cat fifo >got &
    "${deal[@]}" --rank=1 -o fifo all.pks
    wait
    support packdeal.py tail 0 r1 got
}

@test "--seed refuses inputs with a fixed order" {
    skip_without python3
    uneven
    packstream -q -L 128 --align=2 x.tok >y.pks
    zstd -q x.pks
    head -c -1 x.pks >cut.pks
    why=': --seed needs a regular file that is uncompressed or written by '\
'packstream --zstd'
    for option in --rank=1 --list --steps -or%d; do
        deal=(packdeal -q -n 2 -b 4 --seed=1 "$option")
        speaker=packdeal refused 65 "stdin$why" \
            sh -c 'cat x.pks | "$@"' - "${deal[@]}"
        speaker=packdeal refused 65 "x.pks.zst$why" \
            "${deal[@]}" x.pks x.pks.zst
        speaker=packdeal refused 65 'y.pks does not match x.pks: ' \
            "${deal[@]}" x.pks y.pks
        speaker=packdeal refused 65 'cut.pks: no complete END before' \
            "${deal[@]}" x.pks cut.pks
        speaker=packdeal refused 1 'missing: No such file' \
            "${deal[@]}" x.pks missing
        speaker=packdeal refused 65 '--start=7: out of range: the last step is 6' \
            "${deal[@]}" -n 3 -b 12 --start=7 x.pks
        speaker=packdeal refused 65 'packs for 9999 ranks' \
            "${deal[@]}" -n 9999 --start=1 x.pks
    done
    absent r0 r1 r0.new r1.new
    cp x.pks flipped
    flip flipped $((4160 + 3 * $(number x.pks 20 4) + 100))
    speaker=packdeal refused 65 'flipped: ' \
        packdeal -q -n 2 -b 4 --seed=1 -o r%d flipped
    # All heads are read first, unless most packs are skipped.
    cp x.pks flipped
    # Its sequence count, too large for any pack.
    flip flipped $(($(model at x.pks '3 n_seq') + 3))
    speaker=packdeal refused 65 'flipped: pack 3 in the block at byte 4096: ' \
        packdeal -q -n 2 -b 4 --seed=1 --list flipped
    speaker=packdeal refused 65 'x.pks: ' packdeal -n 2 -b 2 --list --seed=3 \
        --cost=0:18446744073709551615 x.pks
    steps=$(packdeal -n 1 -b 1 --steps x.pks)
    packdeal -n 1 -b 1 --list --seed=2 x.pks | tail -n 3 >wanted
    [ "$(grep -c ' 0 3$' wanted)" = 0 ]
    packdeal -n 1 -b 1 --list --seed=2 --start=$((steps - 3)) flipped |
        diff - wanted
    cp x.pks later
    poke later "header 12" 65538
    packdeal --list --seed=1 -n 2 -b 4 x.pks later >/dev/null
    speaker=packdeal refused 65 'later: packs of format version 2.1 may' \
        packdeal -q -n 2 -b 4 --seed=1 -o r%d x.pks later
    absent r0 r1 r0.new r1.new
}

# ------------------------------------------------------------------ windows

# over_mean OPTION...: the imbalance of steps of 8 packs of t.pks, one per rank.
over_mean() {
    packdeal -n 8 -b 1 -v --list --cost=0:1 "$@" t.pks 2>&1 >/dev/null |
        sed 's/.*max.mean) \([0-9.]*\),.*/\1/'
}

@test "--window=N evens out steps, and moves packs by fewer than N steps" {
    skip_without python3
    # Most sequences are short, and some fill a pack: a long tail.
    draw 1500 512 9 5 9 | tokcat --from=ids |
        packstream -q -L 512 -a nextfit >t.pks
    n=$(packdeal -n 1 -b 1 --steps t.pks)
    for shape in '8 1' '3 4'; do
        # shellcheck disable=SC2086 # two words
        set -- $shape
        for w in 2 5; do
            packdeal -n "$1" -b "$2" --list --window=$w t.pks >list
            support packdeal.py window $w $(($1 * $2)) <list
            cut -d ' ' -f 3- list | tr ' ' '\n' | grep . | sort -n |
                diff - <(seq 0 $((n - 1)))
            for start in 1 7; do
                packdeal -n "$1" -b "$2" --list --window=$w --start=$start \
                    t.pks | diff - <(awk -v start=$start '$1 >= start' list)
            done
        done
        packdeal -n "$1" -b "$2" --list --window=5 --last=drop t.pks |
            diff - <(head -n $(($1 * (n / ($1 * $2)))) list)
    done
    packdeal -n 3 -b 4 --list t.pks |
        cmp - <(packdeal -n 3 -b 4 --list --window=1 t.pks)
    over_mean --window=1 >alone
    over_mean --window=2 >two
    over_mean --window=8 >eight
    cat alone two eight
    awk '{ at[NR] = $1 - 1 } END {
        exit !(at[1] > 0.3 && at[2] < 0.7 * at[1] && at[3] < 0.3 * at[1]) }' \
        alone two eight
}

@test "shares with a window have the same packs" {
    skip_without python3
    uneven
    packstream -q -L 128 -d 14 x.tok >x.pks
    packstream -q -L 128 -d 14 --shuffle=3 x.tok >y.pks
    cat x.pks y.pks >all.pks
    for option in '' --seed=4; do
        deal=(packdeal -q -n 3 -b 4 --window=5 ${option:+"$option"})
        "${deal[@]}" -o r%d x.pks y.pks
        "${deal[@]}" --list all.pks | support packdeal.py shuffled 3 all.pks r%d
        packstat -q --verify r0 r1 r2
        "${deal[@]}" --rank=2 --start=7 all.pks >rest
        support packdeal.py tail 28 r2 rest
    done
    [ "$(packdeal -n 3 -b 4 --steps --window=5 x.pks)" = \
        "$(packdeal -n 3 -b 4 --steps x.pks)" ]
    speaker=packdeal refused 65 'stdin: --window needs a regular file '\
'that is uncompressed or written by packstream --zstd' \
        sh -c 'cat x.pks | packdeal -q -n 3 -b 4 --window=2 --rank=0'
    speaker=packdeal refused 65 '--start=99: out of range: the last step is ' \
        packdeal -q -n 3 -b 4 --window=5 --start=99 --rank=0 x.pks
    speaker=packdeal refused 65 'x.pks: ' packdeal -n 2 -b 2 --list --window=3 \
        --cost=0:18446744073709551615 x.pks
}

# ------------------------------------------------------------------- pipes

# readers R: R readers of FIFOs r0, r1 and so on, writing to got0, got1...
readers() {
    local rank
    pids=()
    for ((rank = 0; rank < $1; rank++)); do
        mkfifo "r$rank"
        cat "r$rank" >"got$rank" &
        pids+=($!)
    done
}

@test "FIFOs get the shares, a block per step" {
    uneven -d 20
    readers 3
    packdeal -q -n 3 -b 4 -o r%d x.pks
    wait "${pids[@]}"
    for rank in 0 1 2; do
        packdeal -n 3 -b 4 --rank=$rank x.pks | cmp - got$rank
    done
    rm -f r?
    readers 3
    piped x.pks | packdeal -q -n 3 -b 4 -o r%d --zstd
    wait "${pids[@]}"
    for rank in 0 1 2; do
        packdeal -n 3 -b 4 --rank=$rank --zstd x.pks | cmp - got$rank
    done
    # Files have full blocks.
    rm -f r?
    uneven -d 20 --block-packs=8
    shares_of 2 3 x.pks
    packdeal -n 2 -b 3 --rank=1 x.pks | cat >piped
    [ "$(number r1 $((4096 + 8)) 4)" = 8 ]
    [ "$(number piped $((4096 + 8)) 4)" = 3 ]
    support packdeal.py tail 0 r1 piped
    piped x.pks | packdeal -n 2 -b 3 --rank=1 | cmp - piped
}

@test "a step is written as soon as it has been read" {
    uneven --block-packs=2
    readers 2
    mkfifo in
    packdeal -q -n 2 -b 3 -o r%d in &
    opens 4 '>' in $!
    step=$(block_at x.pks 3)
    head -c "$step" x.pks >&4
    for rank in 0 1; do
        # Three packs of 256 bytes, 40 and 16 per sequence; the last is alone in
        # its block.
        eventually is_larger got$rank $((4096 + 128 + 3 * 312 - 1))
        idle $!
        last=$(block_at got$rank 1)
        [ "$(number got$rank $((last + 8)) 4)" = 1 ]
        [ "$(size got$rank)" = "$(block_at got$rank 2)" ]
    done
    tail -c +$((step + 1)) x.pks >&4
    exec 4>&-
    wait
    packdeal -n 2 -b 3 --rank=1 x.pks >got
    support packdeal.py tail 0 got1 got
}

@test "a slow reader stops the others only once its buffer is full" {
    many 3000 1000 | packstream -q -L 1000 -a none >x.pks
    mkfifo r0 r1
    packdeal -q -n 2 -b 4 -o r%d x.pks &
    opens 5 '<' r0 $!
    cat r1 >got1 &
    # More waits for rank 0 than its pipe holds: three of 64 pages for each
    # step.
    eventually is_larger got1 220000
    packdeal -n 2 -b 4 --rank=0 x.pks | cmp - /dev/fd/5
    exec 5<&-
    wait
    packdeal -n 2 -b 4 --rank=1 x.pks | cmp - got1
}

# Reads each step from the last rank to the first, and nothing ahead: rows
# exceed a pipe, and streams end within a step.
@test "readers in lockstep do not wait" {
    skip_without python3
    for letter in a b c; do
        for n in 5 3 9 2 7 4; do
            head -c "${n}00000" /dev/zero | tr '\0' "$letter"
            echo
        done | tokcat --from=bytes | packstream -q -L 1000000 -a none
    done >x.pks
    packdeal -n 3 -b 2 --list x.pks >list
    [ -s list ]
    run -1 grep -qvE '^[0-9]+ [0-9]+ [0-9]+ [0-9]+$' list
    mkfifo r0 r1 r2
    packdeal -q -n 3 -b 2 -o r%d x.pks &
    timeout 600 python3 - "$(number x.pks 20 4)" <<'END'
import struct
import sys
row = int(sys.argv[1])
assert row > 1 << 20
ranks = [open("r%d" % rank, "rb") for rank in range(3)]
got = [open("got%d" % rank, "wb") for rank in range(3)]

def copy(rank, size):
    data = ranks[rank].read(size)
    assert len(data) == size
    got[rank].write(data)
    return data

def copy_packs(rank, packs):
    while packs > 0:
        head = ranks[rank].read(64)
        got[rank].write(head)
        if head[:4] != b"PKSB":     # the header of a stream
            copy(rank, 4096 - 64)
            continue
        packs -= struct.unpack_from("<I", head, 8)[0]
        copy(rank, struct.unpack_from("<Q", head, 24)[0] - 64)

for step in range(3):
    for rank in 2, 1, 0:
        copy_packs(rank, 2)
for rank in 2, 1, 0:
    got[rank].write(ranks[rank].read())
END
    wait
    for rank in 0 1 2; do
        packdeal -n 3 -b 2 --rank=$rank x.pks | cmp - got$rank
    done
}

@test "a closed pipe ends it silently, and others get a truncated stream" {
    many 3000 1000 | packstream -q -L 1000 -a none >x.pks
    mkfifo r0 r1
    cat r1 >got1 &
    other=$!
    head -c 5000 r0 >/dev/null &
    run --separate-stderr packdeal -q -n 2 -b 4 -o r%d x.pks
    [ "$status" = 141 ]
    [ -z "$stderr" ]
    wait "$other"
    refused 65 'got1: ' packstat --verify got1
}

@test "a missing pipe does not become a file" {
    uneven
    mkfifo r0 r1
    speaker=packdeal refused 1 'r2: is not a pipe, but r0 is a pipe' \
        packdeal -n 3 -b 4 -o r%d x.pks
    rm r0
    speaker=packdeal refused 1 'r0: is not a pipe, but r1 is a pipe' \
        packdeal -n 2 -b 4 -o r%d x.pks
    absent r0 r2 r0.new r2.new
    # A directory is not a pipe.
    rm r1
    mkdir r1
    for option in -or%d --rank=1\ -or1 --rank=1\ -or1/; do
        # shellcheck disable=SC2086 # two words
        speaker=packdeal refused 1 ': exists and is not a regular file: '\
'choose another name' \
            packdeal -n 2 -b 4 $option x.pks
    done
    absent r0 r0.new r1.new
}

# ------------------------------------------------------------ token records

# sequences_of FILE NUMBER...: these sequences of a file, as ids.
sequences_of() {
    local number
    packcat --to=ids "$1" >all.ids
    for number in "${@:2}"; do
        sed -n "$((number + 1))p" all.ids
    done
}

@test "token records are assigned by the costs of their sequences" {
    draw 200 128 90 7 3 | tokcat --from=ids >x.tok
    packdeal -q -n 3 -b 5 -o r%d x.tok
    packdeal -n 3 -b 5 --list x.tok >list
    [ "$(wc -l <list)" = $((3 * $(packdeal -n 3 -b 5 --steps x.tok))) ]
    for rank in 0 1 2; do
        # shellcheck disable=SC2046 # numbers
        sequences_of x.tok $(awk -v rank=$rank '$2 == rank {
            for (i = 3; i <= NF; i++) print $i }' list) >wanted
        packcat --to=ids r$rank | diff - wanted
        packdeal -n 3 -b 5 --rank=$rank x.tok | cmp - r$rank
        piped x.tok | packdeal -n 3 -b 5 --rank=$rank | cmp - r$rank
    done
    # Like packs of one sequence each, and better than in turn.
    packstream -q -L 512 -a none x.tok >x.pks
    for option in --cost=tokens --cost=0:1 --hidden=3 --window=4 --last=drop; do
        packdeal -n 3 -b 5 --list $option x.pks >wanted
        packdeal -n 3 -b 5 --list $option x.tok | diff - wanted
        packdeal -n 3 -b 5 --list --start=4 $option x.tok |
            diff - <(awk '$1 >= 4' wanted)
        piped x.tok | packdeal -n 3 -b 5 --rank=2 --start=4 $option |
            packcat --to=ids >got
        # shellcheck disable=SC2046
        sequences_of x.tok $(awk '$1 >= 4 && $2 == 2 {
            for (i = 3; i <= NF; i++) print $i }' wanted) | diff - got
    done
    packdeal -n 4 -b 4 -v --list x.tok 2>&1 >list |
        awk '{ exit !($6 < $9 && $6 >= 1) }'
}

@test "token records of several files, with channels, also to FIFOs" {
    skip_without python3
    bert_lines 90 40 >lines
    tokcat --from=jsonl lines >x.tok
    head -n 31 lines | tokcat --from=jsonl >y.tok
    packdeal -q -n 4 -b 3 -o r%d x.tok y.tok
    packcat --to=jsonl x.tok y.tok | sort >wanted
    packcat --to=jsonl r0 r1 r2 r3 | sort | diff - wanted
    packdeal -n 4 -b 3 --rank=1 x.tok - < <(cat y.tok) | cmp - r1
    zstd -q x.tok
    packdeal -n 4 -b 3 --rank=1 x.tok.zst y.tok | cmp - r1
    rm r?
    readers 2
    packdeal -q -n 2 -b 3 -o r%d x.tok
    wait "${pids[@]}"
    for rank in 0 1; do
        packdeal -n 2 -b 3 --rank=$rank x.tok | cmp - got$rank
    done
}

@test "refused token records" {
    draw 90 128 90 7 3 | tokcat --from=ids >x.tok
    draw 90 128 90 7 3 | tokcat --from=ids --type=u32 >y.tok
    draw 90 128 90 7 3 | tokcat --from=ids --raw >raw
    packstream -q -L 128 x.tok >x.pks
    head -c -1 x.tok >cut.tok
    for option in --rank=1 --list --steps -or%d; do
        deal=(packdeal -q -n 2 -b 4 "$option")
        speaker=packdeal refused 65 'x.tok: --seed cannot reorder token '\
'records; use tokshuf' \
            "${deal[@]}" --seed=1 x.tok
        speaker=packdeal refused 65 'raw: neither a pack stream nor framed '\
'token records, as tokcat writes them without --raw' "${deal[@]}" raw
        speaker=packdeal refused 65 'y.tok does not match '\
'x.tok: tokens are u32, not u16' \
            "${deal[@]}" x.tok y.tok
        speaker=packdeal refused 65 \
            'x.pks does not match x.tok: only one of them has packs' \
            "${deal[@]}" x.tok x.pks
        speaker=packdeal refused 65 \
            'x.tok does not match x.pks: only one of them has packs' \
            "${deal[@]}" x.pks x.tok
        speaker=packdeal refused 65 'cut.tok: ' "${deal[@]}" cut.tok
        speaker=packdeal refused 65 'too few sequences for 91 ranks: 90' \
            "${deal[@]}" -n 91 x.tok
        speaker=packdeal refused 65 '90 sequences do not fill a step of 120, so ' \
            "${deal[@]}" -b 60 --last=drop x.tok
    done
    absent r0 r1 r0.new r1.new
    speaker=packdeal refused 65 'x.tok: --zstd cannot compress token records; ' \
        packdeal -q -n 2 -b 4 --rank=1 --zstd x.tok
    speaker=packdeal refused 65 'x.tok: the cost of a pack exceeds 64 bits' \
        packdeal -q -n 2 -b 4 --list --cost=0:18446744073709551615 x.tok
    [ -c /dev/full ] || return 0
    speaker=packdeal refused 1 '/dev/full: cannot write: No space left' \
        packdeal -q -n 2 -b 4 --rank=1 -o /dev/full x.tok
}

# ------------------------------------------------------------------ refused

@test "bad options" {
    # shellcheck disable=SC2034 # bad_option takes them
    program=packdeal operands=(x.pks)
    bad_option 'missing -n R and -b B'
    bad_option 'missing -n R' -b 3
    bad_option 'missing -b B' -n 3
    bad_option 'missing -o or --rank: use -o to write all shares, or --rank '\
'to write one' -n 2 -b 2
    bad_option '--rank: 2 is out of range: ranks are 0 to 1' \
        -n 2 -b 2 --rank=2
    bad_option '-n and -b: a step has at most 4194304 packs' \
        -n 4194304 -b 2 --rank=0
    bad_option '--hidden needs --cost=attention' -n 2 -b 2 --rank=0 \
        --cost=tokens --hidden=3
    for cost in 3 3: :3 0:0 a:b token 1:2:3 -1:2 99999999999999999999999:1; do
        bad_option "--cost=$cost: must be tokens, attention, or A:B, two \
numbers that are not both 0" -n 2 -b 2 --rank=0 --cost=$cost
    done
    bad_option '-o: out: needs exactly one %d, for the rank' -n 2 -b 2 -o out
    bad_option '-o: %d%d: needs exactly one %d, for the rank' -n 2 -b 2 -o %d%d
    bad_option '-o: %%: needs exactly one %d, for the rank' -n 2 -b 2 -o %%
    for name in %s out% %0d %10d %-d %ld; do
        bad_option "-o: $name: % must be followed by d, 03d or similar, or %" \
            -n 2 -b 2 -o "$name"
    done
    for start in -1 x; do
        bad_option "--start=$start: must be a number from 0 to \
18446744073709551615" -n 2 -b 2 --rank=0 --start=$start
    done
    bad_option '--window: a window has at most 4194304 packs' \
        -n 2 -b 2 --rank=0 --window=1048577
    bad_option '--window=0: must be a number from 1 to 4194304' -n 2 -b 2 \
        --rank=0 --window=0
    bad_option '--epoch needs --seed' -n 2 -b 2 --rank=0 --epoch=0
    bad_option '--seed=x: must be a number from 0 to 18446744073709551615' \
        -n 2 -b 2 --rank=0 --seed=x
    bad_option '-o: the name is empty' -n 2 -b 2 --rank=0 -o ''
    bad_option '-o: --list writes no shares' -n 2 -b 2 --list -o r%d
    bad_option '-o: --steps writes no shares' -n 2 -b 2 --steps -o r%d
}

@test "names of files" {
    uneven
    mkdir dir
    packdeal -q -n 2 -b 4 -o 'dir/50%%-%02d' x.pks
    makes dir/50%-01 packdeal -n 2 -b 4 --rank=1 x.pks
    mkdir dir/0 dir/1
    packdeal -q -n 2 -b 4 -o 'dir/%d/x.pks' x.pks
    makes dir/1/x.pks packdeal -n 2 -b 4 --rank=1 x.pks
    speaker=packdeal refused 1 'none/0.new: No such file' \
        packdeal -n 2 -b 4 -o 'none/%d' x.pks
    cp x.pks r1
    speaker=packdeal refused 1 'r1: ' packdeal -n 2 -b 4 -o r%d r1
    cmp x.pks r1
    absent r0 r0.new r1.new
}

@test "packs that do not fit the first" {
    uneven
    packstream -q -L 128 --align=2 x.tok >y.pks
    # Before any pack of the first file is assigned, if it is a file.
    run -65 --separate-stderr packdeal -n 2 -b 4 --list x.pks x.pks y.pks
    [ -z "$output" ]
    run -65 --separate-stderr packdeal -n 2 -b 4 --list x.pks <(cat y.pks)
    [ -n "$output" ]
    head -c -1 x.pks >cut.pks
    run -65 --separate-stderr packdeal -n 2 -b 4 --list x.pks cut.pks
    [ -z "$output" ]
    run -1 --separate-stderr packdeal -n 2 -b 4 --list x.pks missing
    [ -z "$output" ]
    for option in --rank=1 --list --steps -or%d; do
        speaker=packdeal refused 65 'y.pks does not match x.pks: ' \
            packdeal -q -n 2 -b 4 $option x.pks y.pks
    done
    shares_of 2 4 x.pks
    mv r0 share
    speaker=packdeal refused 65 \
        'share does not match x.pks: share is 1, not 0' \
        packdeal -q -n 2 -b 4 --rank=0 x.pks share
    speaker=packdeal refused 1 'missing: No such file' \
        packdeal -q -n 2 -b 4 --rank=0 missing
}

@test "damaged or truncated inputs, and those of a later version" {
    uneven
    head -c -1 x.pks >less.pks
    cp x.pks flipped
    flip flipped $((4160 + 3 * $(number x.pks 20 4) + 100))
    for file in less.pks flipped; do
        rm -f r?
        speaker=packdeal refused 65 "$file: " \
            packdeal -q -n 2 -b 4 -o r%d $file
        absent r0 r1 r0.new r1.new
        run -65 sh -c "cat $file | packdeal -q -n 2 -b 4 --rank=0 2>/dev/null"
    done
    cp x.pks y.pks
    poke y.pks "end sequences" 9 "end input_sequences" 9
    speaker='packdeal: y.pks: ' refused 65 \
        'more than END declares as input' \
        packdeal -q -n 2 -b 4 -o r%d y.pks
    # These are read, but not copied.
    poke x.pks "header 12" 65538
    packdeal --steps -n 2 -b 4 x.pks
    speaker=packdeal refused 65 'packs of format version 2.1 may contain data' \
        packdeal -q -n 2 -b 4 -o r%d x.pks
    absent r0 r1 r0.new r1.new
}

@test "a batch from a pipe that needs too much memory" {
    many 3 1000 | packstream -q -L 1000000 >x.pks
    packdeal -n 2 -b 100000 --rank=0 x.pks >/dev/null || true
    speaker=packdeal refused 65 'stdin: a step of 200000 packs takes' \
        sh -c 'cat x.pks | packdeal -n 2 -b 100000 --rank=0'
    piped x.pks | packdeal -n 1 -b 1 --list >/dev/null
}

# ------------------------------------------------------------------ outputs

@test "a full device, a closed output, a terminal and an input" {
    [ -c /dev/full ] || skip "there is no /dev/full"
    uneven
    cp x.pks y.pks
    ln y.pks linked
    speaker=packdeal refused 1 '/dev/full: cannot write: No space left' \
        packdeal -n 2 -b 4 --rank=0 -o /dev/full x.pks
    for option in --rank=0 --list --steps; do
        speaker=packdeal refused 1 'stdout: ' \
            sh -c "packdeal -n 2 -b 4 $option x.pks >/dev/full"
        speaker=packdeal refused 1 'stdout: ' \
            sh -c "packdeal -n 2 -b 4 $option x.pks >&-"
        speaker=packdeal refused 1 'stdout: is also an input: choose another '\
'output' \
            sh -c "packdeal -q -n 2 -b 4 $option x.pks linked 1<>y.pks"
        speaker=packdeal refused 1 'stdout: is also an input: choose another '\
'output' \
            sh -c "packdeal -q -n 2 -b 4 $option <y.pks >>y.pks"
    done
    cmp x.pks y.pks
    skip_without script
    run -1 script -qec 'packdeal -q -n 2 -b 4 --rank=0 x.pks' /dev/null \
        </dev/null
    [[ $output == *terminal* ]]
}

@test "files appear together, and older ones stay until then" {
    uneven --block-packs=8
    mkfifo in
    for name in r0 r1; do
        echo old >$name
    done
    packdeal -q -n 2 -b 4 -o r%d in &
    job=$!
    opens 4 '>' in "$job"
    head -c 30000 x.pks >&4
    eventually is_larger r0.new -1
    [ "$(cat r0 r1)" = $'old\nold' ]
    kill "$job"
    exits 143 "$job"
    exec 4>&-
    [ "$(cat r0 r1)" = $'old\nold' ]
    packdeal -q -n 2 -b 4 -o r%d x.pks
    absent r0.new r1.new
    makes r1 packdeal -n 2 -b 4 --rank=1 x.pks
}

@test "two shares cannot have names of the same file" {
    uneven
    mkdir dir
    ln -s dir d0
    ln -s dir d1
    echo old >dir/r
    speaker=packdeal refused 1 'd1/r.new: used for two outputs: give each '\
'its own name' \
        packdeal -q -n 2 -b 4 -o d%d/r x.pks
    [ "$(cat dir/r)" = old ]
    absent dir/r.new
    # A killed job can leave these, and so can copying with links.
    echo left >r0.new
    ln r0.new r1.new
    speaker=packdeal refused 1 'r0.new: exists and has another hard link' \
        packdeal -q -n 2 -b 4 -o r%d x.pks
    absent r0 r1
    [ "$(cat r0.new)" = left ]
}

@test "two jobs do not write the same shares" {
    uneven -d 20
    mkfifo in
    packdeal -q -n 2 -b 4 -o r%d in &
    job=$!
    opens 4 '>' in "$job"
    cat x.pks >&4
    eventually is_larger r1.new -1
    idle "$job"
    speaker=packdeal refused 1 'r0.new: locked: '\
'another job is writing it' \
        packdeal -q -n 2 -b 4 -o r%d x.pks
    speaker=packdeal refused 1 'r1.new: locked: '\
'another job is writing it' \
        packdeal -q -n 2 -b 4 --rank=1 -o r%d x.pks
    exec 4>&-
    wait "$job"
    whole 2 4 x.pks
}

@test "a temporary file that another program replaced is not renamed" {
    uneven
    mkfifo in
    for what in 'echo theirs >r1.new' true; do
        packdeal -q -n 2 -b 4 -o r%d in 2>err &
        job=$!
        opens 4 '>' in "$job"
        cat x.pks >&4
        idle "$job"
        rm r1.new
        eval "$what"
        exec 4>&-
        exits 1 "$job"
        grep -x 'packdeal: r1: removed by another program: the output is lost' err
        absent r0 r1 r0.new
        [ "$what" = true ] || [ "$(cat r1.new)" = theirs ]
        rm -f r1.new
    done
}

@test "more ranks than the limit on open files" {
    uneven
    local limit worked=
    # Before the first is created, even if their folder does not exist.
    # shellcheck disable=SC2016 # it is for the other shell
    speaker=packdeal refused 1 "-n 30: 33 files have to be open at once, but\
 only 1" bash -c '
        ulimit -n 20; exec packdeal -q -n 30 -b 1 -o missing/r%02d x.pks'
    [[ $stderr == *'raise the limit, or write one share at a time with --rank' ]]
    # A job that cannot open its files does not start.
    cp x.pks y.pks
    for ((limit = 24; limit < 40; limit++)); do
        # shellcheck disable=SC2016 # it is for the other shell
        run bash -c 'ulimit -n "$1"; exec packdeal -q -n 20 -b 1 -o r%02d \
            x.pks y.pks' - "$limit"
        worked+=$status
        [ "$status" = 0 ] || [[ $output == *'files have to be open at once'* ]]
    done
    [[ $worked == 1*0 ]]
    rm r??
    [ -z "$(find . -name 'r*')" ]
}

@test "inputs are closed after their last step" {
    draw 10 20 90 | tokcat --from=ids | packstream -q -L 32 -a none >x.pks
    mapfile -t many < <(yes x.pks | head -n 60)
    for option in --list --list\ --start=90 --rank=0 --rank=0\ --start=90; do
        # shellcheck disable=SC2016,SC2086 # it is for the other shell
        bash -c 'ulimit -n 20; exec packdeal -n 2 -b 3 "$@"' - $option \
            "${many[@]}" >/dev/null
    done
}

@test "an output cut by another program is an error" {
    many 3000 1000 | packstream -q -L 1000 -a none --block-packs=16 >x.pks
    mkfifo in
    packdeal -q -n 2 -b 4 -o r%d in 2>err &
    job=$!
    opens 4 '>' in "$job"
    head -c 3000000 x.pks >&4
    idle "$job"
    : >r1.new
    tail -c +3000001 x.pks >&4 2>/dev/null || true
    exec 4>&-
    exits 1 "$job"
    grep 'r1: has [0-9]* bytes, but [0-9]* were written' err
    absent r0 r1 r0.new r1.new
}
