#!/usr/bin/env bats
# reader.bats - the examples in C: read-packs, a minimal reader, reads the whole
# stream in every way; next-tokens has labels for all of it; packstream reads
# the records of write-tokens; decode-packs, which shares no code with the
# library, reads packs; and pks_loader.h gives them to llm.c.
#
# SPDX-License-Identifier: MIT

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

batches() {
    "${abs_top_builddir:?}/examples/llmc/print-batches" "$@"
}

# batches_of L B ALIGN: the batches of the packs that packcat --to=trl wrote.
batches_of() {
    sed -E 's/[][{} "]//g
        s/^input_ids:(.*),seq_lengths:([0-9,]*)(,labels:)?/\1 \2 /' |
        awk -v L="$1" -v B="$2" -v align="$3" '
        function row(id, label, start, end,   t, next_label) {
            cu = cu " " base + start
            for (t = start; t < end; t++) {
                inputs = inputs " " (id[t] == "" ? 0 : id[t])
                next_label = t + 1 < end ? label[t + 1] : ""
                targets = targets " " (next_label == "" ? -100 : next_label)
                positions = positions " " t - start
            }
            spans++
        }
        {
            n = split($2, length_of, ",")
            split($1, ids, ",")
            split($3 == "" ? $1 : $3, labels, ",")
            split("", id)
            split("", label)
            at = k = 0
            for (s = 1; s <= n; s++) {
                start = at
                for (; at < start + length_of[s]; at++) {
                    id[at] = ids[++k]
                    label[at] = labels[k]
                }
                while (at % align != 0)
                    at++
                row(id, label, start, at)
            }
            if (at < L)
                row(id, label, at, L)
            base += L
            if (NR % B != 0)
                next
            for (padded = 32; padded < spans; padded *= 2)
                continue
            print "inputs" inputs "\ntargets" targets "\npositions" positions
            print "cu_seqlens" cu " " base "\nsequences " padded
            inputs = targets = positions = cu = ""
            base = spans = 0
        }'
}

@test "llm.c gets the tokens, targets, positions and boundaries of packs" {
    local options n
    for options in '' '--align=8' '-d 60' '--zstd'; do
        # shellcheck disable=SC2086
        packstream -q -L 64 $options x.tok -o y.pks
        [[ $options = --align=* ]] && align=8 || align=1
        for B in 1 20; do
            packcat --to=trl y.pks | batches_of 64 "$B" "$align" >wanted
            n=$(($(wc -l <wanted) / 5))
            [ "$n" -gt 5 ]
            batches y.pks $B 64 0 1 0 "$n" | cmp - wanted
        done
        grep -qE 'sequences (64|128)$' wanted
    done
    # The next epoch begins with the first pack.
    batches y.pks 20 64 0 1 0 $((n + 1)) | tail -n 5 | cmp - <(head -n 5 wanted)
    # Labels select the targets.
    seq 100 | awk '{ print "{\"input_ids\":[" $1 ",2,3,4],\"labels\":[-100,2," \
        "-100," $1 "]}" }' | tokcat -q --from=jsonl --labels=aligned |
        packstream -q -L 11 -o y.pks
    packcat --to=trl y.pks | batches_of 11 2 1 >wanted
    batches y.pks 2 11 0 1 0 25 | cmp - wanted
    sed -n 2p wanted | grep -E '^targets 2 -100 [0-9]+ -100 2 '
}

@test "llm.c: ranks share a shuffled epoch, and a run resumes" {
    local n rank
    n=$(count packs)
    n=$((n / 6))
    for epoch in 0 1; do
        for rank in 0 1; do
            batches x.pks 3 64 $rank 2 1 $n $epoch 0 >"$epoch.$rank"
            grep '^inputs' "$epoch.$rank"
        done | sed "s:^inputs ::" | xargs -n 64 >"$epoch"
        [ "$(wc -l <$epoch)" -eq $((n * 6)) ]
        # Each pack is read once, except the remainder.
        packcat --to=trl x.pks | batches_of 64 1 1 | grep '^inputs' |
            cut -d ' ' -f 2- | sort >all
        sort $epoch | comm -23 - all >others
        [ ! -s others ]
        [ "$(sort -u $epoch | wc -l)" -eq $((n * 6)) ]
    done
    run -1 cmp -s 0 1
    batches x.pks 3 64 1 2 1 $((2 * n)) | cmp - <(cat 0.1 1.1)
    batches x.pks 3 64 1 2 1 3 0 4 | cmp - <(sed -n '21,35p' 0.1)
}

@test "llm.c: packs that do not fit are refused, and C++ compiles the loader" {
    run -1 batches no-such-file 1 64 0 1 0 1
    run -1 batches x.tok 1 64 0 1 0 1
    run -1 batches x.pks 1 63 0 1 0 1
    [ "$output" = 'x.pks: the capacity of its packs is not T' ]
    run -1 batches x.pks 9 64 0 9999 0 1
    [[ $output = *'fewer packs than a batch of all processes' ]]
    echo '{"input_ids":[1,2],"labels":[2,-100]}' |
        tokcat -q --from=jsonl --labels=shifted | packstream -q -L 8 -o y.pks
    run -1 batches y.pks 1 8 0 1 0 1
    [[ $output = *'use tokcat --labels=aligned' ]]
    echo '{"input_ids":[1,2],"loss_mask":[0,1]}' |
        tokcat -q --from=jsonl | packstream -q -L 8 -o y.pks
    run -1 batches y.pks 1 8 0 1 0 1
    [[ $output = *'a loss mask is not supported; use labels' ]]
    run -64 batches
    skip_without g++
    g++ -std=c++17 -Wall -Wextra -Werror -fsyntax-only -x c++ \
        -I "${abs_top_srcdir:?}/src/include" \
        "$abs_top_srcdir/examples/llmc/pks_loader.h"
}
