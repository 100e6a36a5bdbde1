#!/usr/bin/env bats
# exchange.bats - ranks that read different packs exchange them.
#
# SPDX-License-Identifier: MIT

# Each test runs in its own process with its own variables; bats sets stderr.
# shellcheck disable=SC2030,SC2031,SC2154

load ../support/helpers
load text
load ranks

setup() {
    start_ranks
    skip_without_mpi
}

# uneven: three shards: all packs, a few, and all sequences, each in its own
# pack.
uneven() {
    cp x.pks u.0.pks
    text 20 | sequences --short=1 | records | packstream -q -L 32 >u.1.pks
    packs --depth=1 >u.2.pks
}

# one_message TEXT: the last run printed TEXT, and nothing else.
one_message() {
    [ "$(grep '^packtrain: ' <<<"$stderr" | grep -v -- --help)" = \
        "packtrain: $1" ]
}

@test "each sequence goes to one rank" {
    uneven
    list=${abs_top_builddir:?}/tests/trainer/exchange-packs
    ranks 3 sh -c "$list 12 u.%d.pks >\$OMPI_COMM_WORLD_RANK"
    for i in 0 1 2; do
        "$list" 12 "u.$i.pks"
    done | sort >input
    [ "$(wc -l <input)" -gt 800 ]
    sort 0 1 2 | cmp - input
}

@test "training on packdeal's shards equals training on its input" {
    packdeal -n 3 -b 4 -o 'x.%d.pks' x.pks
    train --packs=12 --epochs=2 --dropout=0 x.pks >one
    ranks 3 "${small[@]}" --packs=12 --epochs=2 --dropout=0 'x.%d.pks' >some
    same_curve one some
    grep -q '"imbalance": 1' some
    packs --depth=1 >d.pks
    packdeal -n 2 -b 4 -o 'd.%d.pks' d.pks
    train --sequences=8 --dropout=0 d.pks >one
    ranks 2 "${small[@]}" --sequences=8 --dropout=0 'd.%d.pks' >some
    same_curve one some
}

# masked_packs [DOCUMENTS]: packs with a loss mask.
masked_packs() {
    # shellcheck disable=SC2119,SC2120 # an optional argument
    text "$@" | grep . | awk '{
        mask = $0
        gsub(/[0-9]+/, 1, mask)
        sub(/^1 1/, "0 0", mask)
        gsub(/ /, ", ")
        gsub(/ /, ", ", mask)
        printf "{\"input_ids\": [%s], \"loss_mask\": [%s]}\n", $0, mask
    }' | tokcat -q --from=jsonl --vocab=60 --pad-id=0 \
        --channel=loss_mask:u8 | packstream -q -L 32
}

llama() {
    mkdir llama
    echo '{"model_type": "llama", "vocab_size": 60, "hidden_size": 16,
        "num_hidden_layers": 2, "num_attention_heads": 4,
        "num_key_value_heads": 2, "intermediate_size": 24,
        "rope_theta": 1e4}' >llama/config.json
    small=(packtrain --config=llama --stats=json --report=1)
}

@test "a Llama learns the same from shards, with its loss mask" {
    llama
    masked_packs >l.pks
    train --packs=12 --eval=l.pks l.pks >all
    grep -v eval all >one
    packdeal -n 3 -b 4 -o 'l.%d.pks' l.pks
    ranks 3 "${small[@]}" --packs=12 --eval=l.pks 'l.%d.pks' >shards
    grep -v eval shards >some
    same_curve one some
    loss=$(sed -n 's/.*"eval_loss": \([0-9.]\{6\}\).*/\1/p' all)
    [ "$loss" = "$(sed -n 's/.*"eval_loss": \([0-9.]\{6\}\).*/\1/p' shards)" ]
    # The loss mask has less to learn than all tokens.
    targets=$(sed -n 's/.*"eval_targets": \([0-9]*\).*/\1/p' all)
    [ "$targets" -lt "$(sed -n 's/.*"tokens": \([0-9]*\).*/\1/p' one |
        awk '{ n += $1 } END { print int(n * 0.9) }')" ]
    # Shards that differ, exchanged between the ranks.
    cp l.pks u.0.pks
    masked_packs 20 >u.1.pks
    masked_packs 90 >u.2.pks
    ranks 3 "${small[@]}" --packs=9 --save=whole 'u.%d.pks' >one
    ranks 3 "${small[@]}" --packs=9 --save=part --steps=4 'u.%d.pks' >first
    ranks 3 "${small[@]}" --packs=9 --save=part --resume 'u.%d.pks' >second
    cat first second >some
    same_curve one some
    cmp whole part
}

@test "a stream read by the first rank trains like a single process" {
    train --packs=10 --epochs=1 --dropout=0.3 x.pks >one
    ranks 3 "${small[@]}" --packs=10 --dropout=0.3 <x.pks >some
    same_curve one some
    mkfifo in
    cat x.pks >in &
    ranks 2 "${small[@]}" --packs=10 --dropout=0.3 in >some
    same_curve one some
    # A name may be a pipe that exists only on the first rank's machine.
    mkfifo p.0
    cp x.pks p.1
    cat x.pks >p.0 &
    ranks 2 sh -c "exec ${small[*]} --packs=10 --dropout=0.3 \
        p.\$OMPI_COMM_WORLD_RANK" >some
    same_curve one some
}

# At the end of an epoch one shard is left, and then none.
@test "uneven shards: the same batches, and a run resumes where it was" {
    uneven
    options=(--packs=7 --epochs=2)
    ranks 3 "${small[@]}" "${options[@]}" 'u.%d.pks' >all
    ranks 3 "${small[@]}" "${options[@]}" --save=part --steps=60 \
        'u.%d.pks' >some
    run -64 --separate-stderr ranks 2 "${small[@]}" "${options[@]}" \
        --save=part --resume 'u.%d.pks'
    one_message 'part: saved with shards=3, not with shards=2'
    run -64 --separate-stderr train "${options[@]}" --save=part --resume x.pks
    one_message 'part: saved with shards=3, which is missing'
    for steps in 125 1000; do
        ranks 3 "${small[@]}" "${options[@]}" --save=part --resume \
            --steps="$steps" 'u.%d.pks' >>some
    done
    same_curve all some
}

@test "a checkpoint of several ranks is resumed by one, and vice versa" {
    train --packs=10 x.pks >all
    ranks 2 "${small[@]}" --packs=10 --save=part --steps=9 <x.pks >some
    train --packs=10 --save=part --resume --steps=14 x.pks >>some
    ranks 2 "${small[@]}" --packs=10 --save=part --resume <x.pks >>some
    same_curve all some
}

# count FILE: packs.
count() {
    packstat -q --json "$1" | sed 's/.*"packs": \([0-9]*\).*/\1/'
}

@test "a run opens no input after its last step" {
    mkfifo never
    (echo >never; touch opened) &
    run --separate-stderr ranks 2 "${small[@]}" --packs="$(count x.pks)" \
        --steps=1 x.pks never
    kill $! || true
    [ "$status" -eq 0 ] && [ "${#lines[@]}" -eq 1 ]
    absent opened
}

# Step 1 cannot be printed while the reader of step 2 is waiting: for more of a
# stream, or for the writer of another one.
@test "a run that fails ends while its stream waits" {
    mkfifo in never
    exec 9<>in
    cat x.pks >&9 &
    for input in "$(($(count x.pks) - 1)) in" "$(count x.pks) x.pks never"; do
        # shellcheck disable=SC2016,SC2086
        ranks 2 sh -c 'exec "$0" "$@" >/dev/full' "${small[@]}" \
            --packs=$input 2>told &
        eventually gone $!
        exits 1 $!
        grep -q '^packtrain: stdout: cannot be written' told
    done
    exec 9>&-
}

@test "a damaged shard ends all ranks, with one message" {
    packs --block-packs=8 >d.0.pks
    head -c 50000 d.0.pks >d.1.pks
    run -1 --separate-stderr ranks 3 "${small[@]}" --packs=9 --save=part \
        'd.%d.pks'
    [[ $stderr == *'packtrain: d.2.pks: No such file'* ]]
    cp x.pks d.2.pks
    run -65 --separate-stderr ranks 3 "${small[@]}" --packs=9 --save=part \
        'd.%d.pks'
    [ "$(grep -c '^packtrain: ' <<<"$stderr")" -eq 1 ]
    [[ $stderr == *'packtrain: d.1.pks: '* ]]
    steps=$(number part 32 8)
    [ "$steps" -gt 5 ]
    [ "${#lines[@]}" -eq "$steps" ]
}

# fault WHAT STATUS MESSAGE [OPTION]...: MPI fails that way in rank 1, and the
# run ends with this status and message.
fault() {
    run "-$2" --separate-stderr ranks 2 env MPI_FAULT="$1" \
        LD_PRELOAD="${abs_top_builddir:?}/tests/trainer/.libs/mpi-faults.so" \
        "${small[@]}" --packs=8 "${@:4}" 'x.%d.pks'
    grep '^packtrain: ' <<<"$stderr"
    [ "$(grep -c '^packtrain: ' <<<"$stderr")" -eq 1 ]
    [[ $stderr == *"packtrain: "$3* ]]
}

@test "data from other ranks is checked" {
    packdeal -n 2 -b 4 -o 'x.%d.pks' x.pks
    fault trade 65 'x.0.pks: pack * of a batch arrived damaged from rank 1'
    fault offer 65 'x.0.pks: rank 1 adds 1000000 packs to a batch'
    fault table 65 'x.0.pks: rank 1 has a pack of * sequences and 1000 tokens'
}

# Before the first table, before the second trade, and before the fourth.
@test "running out of memory during an exchange ends all ranks" {
    skip_if_sanitized
    packdeal -n 2 -b 4 -o 'x.%d.pks' x.pks
    ranks 2 "${small[@]}" --packs=8 'x.%d.pks' >all
    for MPI_FAULT_AT in 2 7 15; do
        export MPI_FAULT_AT
        rm -f part
        fault memory 1 'x.1.pks: no memory for ' --save=part
    done
    # The last of these has made three steps, which are saved.
    [ "${#lines[@]}" -eq 3 ]
    printf '%s\n' "${lines[@]}" >some
    ranks 2 "${small[@]}" --packs=8 --save=part --resume 'x.%d.pks' >>some
    same_curve all some
}

@test "an MPI for one thread is refused" {
    packdeal -n 2 -b 4 -o 'x.%d.pks' x.pks
    fault level 1 'ranks that exchange packs need an MPI with'
}

@test "ranks with different packs, and ambiguous names, are refused" {
    cp x.pks o.0.pks
    text | sequences --short=1 | records | packstream -q -L 64 >o.1.pks
    run -64 --separate-stderr ranks 2 "${small[@]}" 'o.%d.pks'
    one_message 'o.1.pks: packs of 64 tokens below 60, rank 0 has packs of 32 tokens below 60'
    run -64 --separate-stderr ranks 2 "${small[@]}" --packs=1 'o.%d.pks'
    one_message 'o.%d.pks: --packs=1 is less than one for each of 2 ranks with shards'
    run -64 --separate-stderr train 'o.%d.pks' x.pks
    one_message 'x.pks: needs %d for the rank, like the other names'
}

@test "each rank reads its own shard, and writes to none" {
    cp x.pks o.0.pks
    train --packs=10 --steps=3 x.pks | sed 's/, "seconds.*//' >one
    train --packs=10 --steps=3 'o.%d.pks' | sed 's/, "seconds.*//' | cmp one -
    cp x.pks o.1.pks
    run -64 --separate-stderr ranks 2 "${small[@]}" --save=o.1.pks 'o.%d.pks'
    one_message 'o.1.pks: is an input file, which --save would overwrite'
}
