#!/usr/bin/env bats
# python.bats - python/packstream: the pack reader, compared with naive loops,
# and the adapters with the packages that they are for.
#
# The checks are functions of python.py and python-labels.py in tests/support,
# which need only numpy, and of python-adapters.py, which uses the packages of
# the python3 that PEERS_PYTHON names, or otherwise of the one that has numpy.
#
# SPDX-License-Identifier: MIT

load ../support/helpers

peers=${PEERS_PYTHON:-$PYTHON_NUMPY}

# It does not depend on the compiler, so one build is enough.
setup() {
    start
    skip_if_quick
    skip_without_numpy
}

# check NAME [ARGUMENT]..., labels NAME [FILE]..., adapter NAME [ARGUMENT]...
check() {
    python=$PYTHON_NUMPY support python.py "$@"
}

labels() {
    python=$PYTHON_NUMPY support python-labels.py "$@"
}

adapter() {
    python=$peers support python-adapters.py "$@"
}

# lines SEED N LONGEST VOCAB: sequences with channels, as JSON.
lines() {
    awk -v seed="$1" -v n="$2" -v longest="$3" -v vocab="$4" '
        function list(vocab,    k, s) {
            for (k = 0; k < length_; k++)
                s = s sprintf(k ? ",%.0f" : "%.0f", int(rand() * vocab))
            return "[" s "]"
        }
        BEGIN {
            srand(seed)
            for (i = 0; i < n; i++) {
                length_ = 1 + int(rand() * longest)
                printf "{\"input_ids\":%s,\"kind\":%s,", list(vocab), list(3)
                printf "\"labels\":%s,\"source\":%d}\n", list(9), rand() * 99
            }
        }'
}

# packed NAME SEED N LONGEST VOCAB OPTION...: NAME.pks with channels.
packed() {
    lines "$2" "$3" "$4" "$5" |
        tokcat --from=jsonl -t "${WIDTH-u16}" --pad-id="${PAD-0}" \
            --channel=kind:u8:9 --channel=labels:i64:-100 \
            --channel=source:u32 >"$1.tok"
    packstream "${@:6}" -o "$1.pks" "$1.tok"
}

# small [TOKEN]: small.pks, plain, with about four packs, the last one not full.
small() {
    { record16 3 1 "${1-4}"; record16 1 5; record16 9 2 6 5; record16 3 5 8
      record16 9 7 9 3 2 3 8 4; record16 6; record16 2 6 4; } >small.tok
    packstream -L 8 -d 3 -a bestfit --block-packs=2 -o small.pks small.tok
}

# shifted [OPTION]...: x.pks with aligned labels, y.pks with the same ones
# shifted, and z.pks with shifted labels also for sequences' last tokens.
shifted() {
    lines 17 60 32 60000 >x.jsonl
    labels shift <x.jsonl >y.jsonl
    cp x.jsonl z.jsonl
    local name convention
    for name in x:aligned y:shifted z:shifted; do
        convention=${name#*:} name=${name%:*}
        tokcat --from=jsonl --channel=labels:i64 --labels="$convention" \
            "$name.jsonl" | packstream -L 32 -d 4 "$@" -o "$name.pks"
    done
}

# chat NAME CHANNEL...: NAME.pks with labels or masks of tokens, and a source.
chat() {
    local channels=("${@:2}")
    labels rows "${channels[@]%%:*}" |
        tokcat --from=jsonl -t u16 --channel=source:u32 \
            "${channels[@]/#/--channel=}" |
        packstream -L 32 -d 4 "$align" -o "$1.pks"
}

# all_labels [OPTION]: packs with each source of labels.
all_labels() {
    local align=${1:---align=1}
    chat none
    chat labels labels:i64:-100
    chat mask loss_mask:u8
    chat masks loss_mask:u8 assistant_masks:u8:7 completion_mask:f32
    chat both labels:i32:-100 loss_mask:u8
}

@test "views of a batch equal those of naive loops" {
    packed x 1 60 32 60000 -L 32 -d 4
    check views x.pks 32 4
    check channels x.pks 32 4
    WIDTH=u32 PAD=7 packed y 2 50 40 4000000000 -L 40 -d 40
    check views y.pks 40 40 7
    packed z 3 20 6 100 -L 6 -d 1
    check views z.pks 6 1
    packed one 4 9 1 100 -L 1
    check views one.pks 1 1
}

@test "aligned sequences equal those of naive loops" {
    for n in 8 ${LONG:+2 16}; do
        packed x "$n" 60 32 60000 -L 32 -d 2 --align="$n"
        check views x.pks 32 2 0 "$n"
        check channels x.pks 32 2 "$n"
    done
    packed y 3 30 50 60000 -L 21 -d 9 --align=3 --overlong=split
    check views y.pks 21 7 0 3
    packed z 4 9 12 100 -L 12 --align=12
    check views z.pks 12 1 0 12
    check pipes y.pks
    check shares y.pks
    { record16 1 2 3; record16 4 5 6 7 8; } >x.raw
    packstream -L 12 -d 9 -a nextfit --align=4 -o x.pks x.raw
    check lengths x.pks
    packstream -L 12 -d 3 --align=2 -o other.pks x.raw
    check joined x.pks other.pks 'align 2, not 4'
}

@test "the arrays of a batch, on request" {
    packed x 19 60 32 60000 -L 32 -d 4
    check lazy x.pks
    check sequences x.pks
    packed y 19 60 32 60000 -L 32 -d 4 --align=8 --block-packs=4
    check lazy y.pks
    check sequences y.pks
    for id in 0 1 2; do
        echo "{\"input_ids\":[$id,5],\"id\":$((id - 7)),\"start\":[$id,5]}"
    done | tokcat --from=jsonl -t u16 --channel=id:i64 --channel=start:u16 |
        packstream -q -L 4 >z.pks
    check names z.pks
}

@test "the depth of packs: from the header, from END, or from the batch" {
    small
    packstream -L 8 -a bestfit -o any.pks small.tok
    packstream -L 8 -d 5 -a bestfit -o deeper.pks small.tok
    check depths any.pks deeper.pks
}

@test "blocks of any size, and an index of several parts" {
    local n
    for n in 2 ${LONG:+1 8}; do
        packed x "$n" 60 32 60000 -L 32 -d 4 --block-packs="$n"
        check views x.pks 32 4
        check pipes x.pks
        check shares x.pks
        check orders x.pks
        check unchanged x.pks
        check shrunk x.pks
    done
    seq 9000 | tokcat --from=ids |
        packstream -L 1 --block-packs=1 -o indexed.pks
    check indexed indexed.pks
}

@test "pieces of split sequences are separate sequences" {
    packed x 5 30 50 60000 -L 16 -d 3 --overlong=split
    check views x.pks 16 3
}

@test "a file that is changed, truncated or replaced while it is read" {
    packed x 1 60 32 60000 -L 32 -d 4
    check unchanged x.pks
    check shrunk x.pks
}

@test "a pipe yields the same as a file, and without delay" {
    packed x 6 60 32 60000 -L 32 -d 4
    check pipes x.pks
    # shellcheck disable=SC2002 # it is to be a pipe
    cat x.pks | check stdin x.pks
    check nonblocking x.pks
    packed y 6 60 32 60000 -L 32 -d 4 --block-packs=2
    check pipes y.pks
    check prompt y.pks
}

@test "a stream without packs" {
    packstream -L 8 -d 8 -o none.pks </dev/null
    check views none.pks 8 8
    check pipes none.pks
    small
    cat none.pks none.pks >nones.pks
    check views nones.pks 8 8
}

@test "joined streams are read as one if their geometry agrees" {
    small
    packstream -L 8 -d 3 -o none.pks </dev/null
    cat none.pks small.pks none.pks small.pks >x.pks
    check pipes x.pks
    check shares x.pks
    check orders x.pks
    packstream -L 800 -d 3 -o other.pks small.tok
    check joined small.pks other.pks 'capacity 800, not 8'
    tokcat --from=ids -t u32 <<<'1 2 3' | packstream -L 8 -d 3 -o other.pks
    check joined small.pks other.pks "field \
tokens ('<u4', (8,)) at byte 0, not tokens ('<u2', (8,)) at byte 0"
    tokcat --from=ids --eos-id=2 <<<'1 2 3' | packstream -L 8 -d 3 -o other.pks
    check joined small.pks other.pks 'eos id 2, not 4294967295'
}

@test "default labels: their channel, masks, or the tokens" {
    local option
    for option in --align=8 ${LONG:+--align=1}; do
        all_labels "$option"
        labels by_default ./*.pks
        labels by_name both.pks masks.pks
    done
    tokcat --from=jsonl --channel=labels:i32 --labels=aligned - <<'END' |
{"input_ids": [1, 2, 3], "labels": 4}
END
        packstream -L 8 -d 8 -o each.pks
    labels per_sequence each.pks
}

@test "labels that are already shifted" {
    for option in --align=8 ${LONG:+--align=1}; do
        shifted "$option"
        labels shifted x.pks y.pks
        labels beyond z.pks
    done
}

@test "ranks share the records, starting anywhere" {
    packed x 7 60 32 60000 -L 32 -d 4
    check shares x.pks
    check equal_ranks x.pks
    check orders x.pks
    check arguments x.pks
    check too_large
}

@test "compressed packs: refused, and read from zstd -dc" {
    skip_without zstd
    small
    packstream -L 8 -d 3 -a bestfit --zstd -o x.zst small.tok
    run -1 check views x.zst 8 3
    [[ $output == *"PackError: byte 0: "*"zstd -dc FILE |"* ]]
    zstd -qdc x.zst | check stdin small.pks
}

@test "a stream truncated anywhere is refused" {
    small
    check cuts small.pks
    cat small.pks small.pks >x.pks
    check cuts x.pks "$(size small.pks)"
}

@test "any flipped bit is found if xxhash is installed" {
    skip_without_xxhash
    small
    check flips small.pks
}

@test "a record of another stream is found if xxhash is installed" {
    skip_without_xxhash
    small 7
    mv small.pks other.pks
    small
    check swapped small.pks other.pks
}

@test "without xxhash, only bad checksums go unnoticed" {
    small
    WITHOUT_XXHASH=1 check unverified small.pks
    WITHOUT_XXHASH=1 check pipes small.pks
    WITHOUT_XXHASH=1 check rules small.pks
}

@test "invalid packs and headers" {
    small
    check rules small.pks
    { record16 1 2 3; record16 4; } | packstream -L 8 -o one.pks
    check unowned one.pks
    check headers small.pks
    check tables small.pks
}

@test "a stream that starts where a reader stopped" {
    packed x 8 60 32 60000 -L 32 -d 4
    packstream -L 32 -d 4 --block-packs=2 --resume-from=5 -o rest.pks x.tok
    check resumed rest.pks x.pks 5
}

@test "the minimal trainer counts everything" {
    packed x 9 60 32 60000 -L 32 -d 4
    local count=${abs_top_srcdir:?}/examples/count.py wanted
    export PYTHONPATH=$abs_top_srcdir/python
    wanted=", 60 sequences, $(packcat --to=ids x.pks | wc -w) tokens, "
    run -0 "$PYTHON_NUMPY" "$count" x.pks 4
    [[ $output == *"$wanted"* ]]
    # shellcheck disable=SC2016 # it is for the other shell
    run -0 bash -c 'packstream -L 32 -d 4 x.tok | "$0" "$1" -' \
        "$PYTHON_NUMPY" "$count"
    [[ $output == *"$wanted"* ]]
    run -1 "$PYTHON_NUMPY" "$count"
    [[ $output == *"count.py FILE [BATCH]"* ]]
    head -c 5000 x.pks >cut.pks
    run -1 "$PYTHON_NUMPY" "$count" cut.pks
    [[ $output == "count.py: byte 5000: truncated"* ]]
}


@test "a reader with only numpy reads a stream, but not joined ones" {
    local reader=$abs_top_srcdir/examples/python/numpy_reader.py
    packed x 1 60 32 60000 -L 32 -d 4
    "$PYTHON_NUMPY" "$reader" x.pks >got
    packcat --range=0:1 --to=ids --order=pack x.pks | cmp - got
    cat x.pks x.pks >joined.pks
    run -1 "$PYTHON_NUMPY" "$reader" joined.pks
    [[ $output == 'numpy_reader.py: several streams joined'* ]]
}

@test "JAX: names and values of packed examples" {
    PAD=7 packed x 10 60 32 60000 -L 32 -d 4
    check maxtext x.pks 32 4
    PAD=7 packed x 10 60 32 60000 -L 32 -d 4 --align=8
    check maxtext x.pks 32 4 8
}

@test "torch: each pack once, whatever the workers, and resumed" {
    skip_without_modules "$peers" torch
    packed x 11 80 32 60000 -L 32 -d 4
    adapter dataset x.pks
}

@test "torchdata: StatefulDataLoader resumes in mid-epoch" {
    skip_without_modules "$peers" torchdata.stateful_dataloader
    packed x 12 80 32 60000 -L 32 -d 4
    adapter stateful x.pks
}

@test "torch: every adapter has the targets of its input" {
    skip_without_modules "$peers" torch
    local option
    for option in --align=8 ${LONG:+--align=1}; do
        all_labels "$option"
        adapter by_default ./*.pks
        adapter masked labels.pks mask.pks
    done
}

@test "transformers: the same as DataCollatorWithFlattening" {
    skip_without_modules "$peers" torch transformers
    packed x 13 60 32 60000 -L 32 -d 4
    adapter flattening x.pks
    packed x 13 60 32 60000 -L 32 -d 4 --align=8
    adapter flattening x.pks
}

@test "transformers: a model's loss equals that of separate sequences" {
    skip_without_modules "$peers" torch transformers
    packed x 18 20 32 100 -L 32 -d 4
    adapter model_loss x.pks
}

@test "transformers, Megatron: labels that are already shifted" {
    skip_without_modules "$peers" torch
    for option in --align=8 ${LONG:+--align=1}; do
        shifted "$option"
        adapter shifted_flat x.pks y.pks
        adapter shifted_megatron x.pks y.pks
    done
}

@test "flash-attention: its arguments separate the sequences" {
    skip_without_modules "$peers" torch
    packed x 14 40 32 60000 -L 32 -d 4
    packed y 14 40 32 60000 -L 32 -d 4 --align=8
    adapter varlen x.pks y.pks
}

@test "Megatron: fields of packed sequences" {
    skip_without_modules "$peers" torch
    packed x 15 40 32 60000 -L 32 -d 4
    packed y 15 40 32 60000 -L 32 -d 4 --align=8
    adapter megatron x.pks y.pks
}
