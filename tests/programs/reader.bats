#!/usr/bin/env bats
# reader.bats - the examples in C: read-packs, a minimal reader, reads the whole
# stream in every way; next-tokens has labels for all of it; packstream reads
# the records of write-tokens; and decode-packs, which shares no code with the
# library, reads packs.  SPDX-License-Identifier: MIT

load ../support/helpers

reader() {
    "${abs_top_builddir:?}/examples/c/read-packs" "$@"
}

# Packs of sequences of many lengths; $wanted is their content.
setup_file() {
    cd "$BATS_FILE_TMPDIR" || return 1
    seq 3000 | factor | tokcat -q --from=bytes >x.tok
    packstream -q -L 64 -d 5 x.tok -o x.pks
    packstream -q -L 64 -d 5 --zstd x.tok -o x.zst
    wanted="$(count packs) packs, $(count sequences) sequences, $(count \
        tokens) tokens"
    export wanted
}

# count WORD: that number in packstat's summary of x.pks.
count() {
    packstat --json x.pks | grep -oE "\"$1\": ?[0-9]+" | sed -n 1p |
        grep -oE '[0-9]+'
}

setup() {
    start
    cd "$BATS_FILE_TMPDIR" || return 1
}

@test "files, pipes and compressed ones, pack by pack and in batches" {
    [[ $wanted =~ ^[1-9][0-9]*\ packs,\ [1-9].*\ sequences,\ [1-9] ]]
    for options in '' '-s 1' '-s 7' '-s 100000'; do
        # Word splitting is intended for options.  And cat is a pipe.
        # shellcheck disable=SC2086,SC2002
        {
            reader $options x.pks | grep -F "$wanted in "
            reader $options <x.zst | grep -F "$wanted in "
            cat x.pks | reader $options | grep -F "$wanted in "
            cat x.zst | reader $options | grep -F "$wanted in "
        }
    done
    reader -s 100000 x.pks | grep -F 'tokens in 1 steps'
}

# tokens OPTION...: the number of tokens that a rank gets.
tokens() {
    reader "$@" x.pks | sed -n 's/.* \([0-9]*\) tokens in .*/\1/p'
}

@test "ranks get every token once" {
    local all=${wanted% tokens} sum
    for batch in '' '-s 3'; do
        for ranks in 1 2 5; do
            sum=0
            for ((rank = 0; rank < ranks; rank++)); do
                # shellcheck disable=SC2086
                sum=$((sum + $(tokens $batch -r "$rank/$ranks")))
            done
            [ "$sum" -eq "${all##* }" ]
        done
    done
}

@test "truncated or damaged packs are reported" {
    head -c -1 x.pks >short.pks
    { head -c 5000 x.pks; printf '\377'; tail -c +5002 x.pks; } >damaged.pks
    for options in '' '-s 7'; do
        # shellcheck disable=SC2086
        run -65 reader $options short.pks
        [[ $output == 'read-packs: block at byte '* ]]
        # shellcheck disable=SC2086
        run -65 reader $options damaged.pks
        [[ $output == 'read-packs: pack '*' in the block at byte 4096: '* ]]
    done
    run -65 reader x.tok
}

@test "invalid arguments are refused" {
    for options in '-s 0' '-s 4x' '-s x' '-s -4' '-s +4' '-s 4294967297' \
        '-s 18446744073709551617' '-r 1' '-r 1/2x' '-r 2/2' '-r 1x/2' \
        '-r -1/2' '-r 0/-2' '-r /2' '-r 1/' '-r 4294967296/2' \
        '-r 0/4294967297' '-x' 'a b'; do
        # shellcheck disable=SC2086
        run -64 reader $options
        [[ ${lines[-1]} == 'usage: read-packs '* ]]
    done
    run -1 reader no-such-file
}

@test "next-tokens has a label for all but the last token of each sequence" {
    local step=${abs_top_builddir:?}/examples/c/next-tokens tokens sequences
    tokens=$(count tokens) sequences=$(count sequences)
    for packs in 1 7 100000; do
        "$step" "$packs" <x.pks >steps
        [ "$(tail -n 1 steps)" = "every token is accounted for" ]
        [ "$(awk '/packs/ { n += $5 } END { print n }' steps)" -eq \
            $((tokens - sequences)) ]
        [ "$(awk '/packs/ { n += $3 } END { print n }' steps)" -eq "$tokens" ]
        run -1 grep -v 'weights 1.000$' <(grep packs steps)
    done
    run -64 "$step"
    head -c -1 x.pks >short.pks
    run -65 "$step" 7 <short.pks
}

@test "decode-packs prints the ids of any plain stream" {
    local decode=${abs_top_builddir:?}/examples/c/decode-packs
    for options in '' '-d 3' '--align=8' '-L 9 --overlong=split' '-a concat' \
        '--block-packs=1' '--block-packs=4 --flush-every=50'; do
        # shellcheck disable=SC2086
        packstream -q -L 64 $options x.tok >y.pks
        "$decode" <y.pks >ids
        [ -s ids ]
        packcat --to=ids --order=pack y.pks | cmp - ids
    done
    cat y.pks x.pks | "$decode" | cmp - <(cat ids - < <("$decode" <x.pks))
    seq 9000 | tokcat --from=ids --type=u32 |
        packstream -q -L 1 --block-packs=1 | "$decode" | cmp - <(seq 9000)
    run -65 "$decode" <x.zst
    head -c -1 x.pks >short.pks
    run -65 "$decode" <short.pks
    [[ $output == *'decode-packs: byte '*': cut short'* ]]
}

@test "decode-packs checks the rules that it relies on" {
    skip_without python3
    support packrules.py decoder "${abs_top_builddir:?}/examples/c/decode-packs"
}

@test "write-tokens writes the records of tokcat, and flushes" {
    local write=${abs_top_builddir:?}/examples/c/write-tokens
    printf '1 2 3\n40000 5\n' | "$write" | packstat --histogram >got
    printf '2 1\n3 1\n' | cmp - got
    printf '1 2 3\n40000 5\n' | "$write" | packstream -q -L 8 |
        packcat --to=ids | cmp - <(printf '1 2 3\n40000 5\n')
    # Without the flush both would fit into one pack.
    printf '1 2\n\n3\n' | "$write" | packstream -q -L 8 | packstat --json |
        grep -E '"packs": ?2'
    printf '1 x\n' >bad
    run -65 "$write" <bad
    printf '65536\n' >bad
    run -65 "$write" <bad
}
