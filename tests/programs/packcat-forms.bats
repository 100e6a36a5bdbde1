#!/usr/bin/env bats
# packcat-forms.bats - packs in the forms that trainers read.
#
# packcat-forms.py, which shares no code with the programs, compares the output
# with the packs; the packages that define the forms read it, if python3 or the
# one named by PYTHON_PEERS has them.
#
# SPDX-License-Identifier: MIT

load ../support/helpers

# shellcheck disable=SC2034 # for refused
speaker="packcat: "

# a.pks has packs of 300 sequences, a.tok their records, a.jsonl their lines of
# JSON, and a.wide packs of u32 tokens.
setup_file() {
    cd "$BATS_FILE_TMPDIR" || return 1
    bert_lines 300 40 >a.jsonl
    records a.jsonl >a.tok
    packstream -q -L 64 -w 100 --pad-id=7 a.tok >a.pks
    records a.jsonl -t u32 | packstream -q -t u32 -L 64 >a.wide
}

setup() {
    start
    cp "$BATS_FILE_TMPDIR"/a.* .
}

# agrees FORM OUTPUT PACKS [KEY=VALUE...]: see packcat-forms.py.
agrees() {
    skip_without python3
    support packcat-forms.py "$@"
}

# written FORM OUTPUT PACKS [OPTION]...: packcat writes it, and it agrees.
written() {
    local option keys=()
    case $1 in
        datatrove | tfrecord) keys=(order=input) ;;
    esac
    for option in "${@:4}"; do
        case $option in
            --order=*) keys+=("${option#--}") ;;
            --max-predictions=*) keys+=("room=${option#*=}") ;;
        esac
    done
    packcat --to="$1" "${@:4}" -o "$2" "$3"
    agrees "$1" "$2" "$3" "${keys[@]}"
}

# with_peer MODULE [ARGUMENT...]: runs the program on stdin if python3 has that
# module, otherwise skips the test.
with_peer() {
    local python
    for python in ${PYTHON_PEERS-} python3 "$PYTHON_NUMPY"; do
        if "$python" -c "import $1" 2>/dev/null; then
            "$python" - "${@:2}"
            return
        fi
    done
    skip "no python3 has $1"
}

# records FILE [OPTION...]: token records of these lines, without the ignored
# channel.
records() {
    local channel channels=()
    for channel in token_type_ids:u8 labels:i32:-100 loss_mask:u8 \
        next_sentence_label:i32:-1; do
        case " ${*:2} " in
            *" --ignore=${channel%%:*} "*) ;;
            *) channels+=("--channel=$channel") ;;
        esac
    done
    tokcat -q --from=jsonl "${channels[@]}" "${@:2}" "$1"
}

# one LINE [OPTION...]: packs of one sequence in JSON; options are tokcat's.
one() {
    printf '%s\n' "$1" | tokcat -q --from=jsonl "${@:2}" | packstream -q -L 8
}

# unfit FORM WHY LINE [OPTION...]: packs of this sequence are refused.
unfit() {
    one "${@:3}" >a.pks
    refused 65 "$2" packcat --to="$1" -o out a.pks
}

# none_left NAME...: neither the files nor temporary ones exist.
none_left() {
    local name
    for name; do
        absent "$name" "$name.new" || return 1
    done
}

# ------------------------------------------------------------------ llmc

@test "llmc is a header and the rows, for every kind of input" {
    written llmc b.bin a.wide
    written llmc a.bin a.pks
    packcat --to=rows a.pks | cmp - <(tail -c +1025 a.bin)
    packcat --to=llmc a.pks | cmp - a.bin
    packcat --to=llmc <a.pks | cmp - a.bin
    cat <a.pks | packcat --to=llmc >b.bin
    cmp a.bin b.bin
    refused 64 'llmc starts with the number of packs' bash -o pipefail -c \
        'cat <a.pks | packcat --to=llmc | cat >b.bin'
    [ ! -s b.bin ]
    packcat --to=llmc --range=3:5 a.pks >b.bin
    [ "$(number b.bin 8 4)" -eq 128 ]
    cmp <(tail -c +1025 b.bin) <(tail -c +$((1025 + 3 * 128)) a.bin |
        head -c 256)
    cat a.pks a.pks >both.pks
    packcat --to=llmc a.pks a.pks >both.bin
    agrees llmc both.bin both.pks
}

@test "packs of several files must have one capacity" {
    packstream -q -L 128 a.tok >b.pks
    for form in llmc tfrecord; do
        refused 65 'b.pks: cannot be joined to a.pks: capacity is 128, not 64' \
            packcat --to=$form -o out a.pks b.pks
    done
    records a.jsonl --vocab=30000 | packstream -q -L 64 >b.pks
    refused 65 'b.pks: cannot be joined to a.pks: vocab_size is 30000' \
        packcat --to=tfrecord -o out a.pks b.pks
}

@test "split sequences are whole or in pieces" {
    printf '1 2 3 4 5\n' | tokcat -q --from=ids |
        packstream -q -L 4 --overlong=split >a.pks
    packcat --to=datatrove -o a.ds a.pks
    [ "$(od -An -tu8 a.ds.index | tr -d ' ')" = 5 ]
    written datatrove b.ds a.pks --order=pack
    written trl a.jsonl a.pks
    refused 65 'a.pks: sequence 0 was split: it has 5 tokens' \
        packcat --to=tfrecord -o out a.pks
    written tfrecord out a.pks --order=pack
}

@test "llmc holds fewer than 2^31 tokens; more are refused at once" {
    skip_if_quick
    # Four packs in each file: only the last record of a file is read.
    printf '1 2\n%.0s' 1 2 3 4 | tokcat -q --from=ids |
        packstream -q -L 16777216 -d 1 >large.pks
    many=()
    for ((i = 0; i < 31; i++)); do many+=(large.pks); done
    refused 65 'holds at most 127 of these packs' \
        packcat --to=llmc -o out "${many[@]}" large.pks
    [ ! -s out ]
    # A range that fits is written, even of an input that does not fit.
    packcat --to=llmc --range=126: -o out "${many[@]}" large.pks
    [ "$(number out 8 4)" -eq 33554432 ]
    [ "$(size out)" -eq $((1024 + 4 * 16777216)) ]
}

@test "the llmc header for truncated input has no tokens" {
    head -c $(($(size a.pks) - 1)) a.pks >part.pks
    refused 65 'part.pks: ' into a.bin packcat --to=llmc part.pks
    [ "$(size a.bin)" -gt 1024 ]
    [ "$(number a.bin 8 4)" -eq 0 ]
    # To a pipe, the damage is found while packs are counted.
    run -65 sh -c 'packcat --to=llmc part.pks >>b.bin'
    [ ! -s b.bin ]
}

# -------------------------------------------------------------- megatron

@test "megatron is tokens and an index, with a document per pack" {
    written megatron m a.pks
    packcat --to=megatron --order=pack -o n a.pks
    cmp m.bin n.bin
    cmp m.idx n.idx
    written megatron b a.wide
}

@test "megatron in input order has a document per sequence" {
    written megatron m a.pks --order=input
    # In any other order the files differ.
    packcat --to=megatron --order=pack -o n a.pks
    run ! cmp -s m.bin n.bin
}

@test "megatron's index spans many blocks" {
    awk 'BEGIN { for (i = 0; i < 20000; i++) print i % 3 ? i : i " " i }' |
        tokcat -q --from=ids | packstream -q -L 16 -w 50 >a.pks
    written megatron m a.pks
    written megatron m a.pks --order=input
}

@test "megatron's files are named by either name, or by their prefix" {
    for name in m n.bin o.idx .bin; do
        packcat --to=megatron -o $name a.pks
    done
    for name in n o ''; do
        cmp m.bin $name.bin
        cmp m.idx $name.idx
    done
    [ "$(find . -name '*.bin*' -o -name '*.idx*' | wc -l)" -eq 8 ]
}

@test "megatron refuses tokens above 2^31 - 1" {
    printf '1 2147483647\n' | tokcat -q --from=ids -t u32 |
        packstream -q -L 8 >a.pks
    written megatron m a.pks
    rm m.bin m.idx
    printf '5\n1 2147483648\n' | tokcat -q --from=ids -t u32 |
        packstream -q -L 8 -d 1 >a.pks
    for order in pack input; do
        refused 65 "a.pks: sequence 1: token 1 is 2147483648" \
            packcat --to=megatron --order=$order -o m a.pks
        none_left m.bin m.idx
    done
}

@test "megatron of a range, of several files, and from a pipe" {
    cat a.pks a.pks >both.pks
    packcat --to=megatron -o m a.pks a.pks
    agrees megatron m both.pks
    cat <both.pks | packcat --to=megatron -o n
    cmp m.bin n.bin
    cmp m.idx n.idx
    packcat --to=megatron --range=2:4 -o m a.pks
    [ "$(number m.idx 26 8)" -eq 3 ]
    refused 64 '--order=input cannot be used with --range' \
        packcat --to=megatron --range=2:4 --order=input -o m a.pks
    refused 65 'a.wide: cannot be joined to a.pks: tokens are u32, not u16' \
        packcat --to=megatron -o n a.pks a.wide
}

# IndexedDataset needs more of the machine than its file does.
@test "Megatron-LM reads packcat's megatron files" {
    packcat --to=megatron -o m a.pks
    packcat --to=ids --order=pack a.pks >wanted
    with_peer megatron.core.datasets.indexed_dataset >got <<'END'
from megatron.core.datasets.indexed_dataset import IndexedDataset
data = IndexedDataset("m")
for i in range(len(data)):
    print(*data[i])
END
    diff wanted got
}

# ------------------------------------------------------------- datatrove

@test "datatrove is tokens, ends and a loss mask" {
    for order in input pack; do
        written datatrove a.ds a.pks --order=$order
    done
    written datatrove b.ds a.wide
}

@test "datatrove without a loss mask writes none and refuses an older one" {
    printf '3 1 4\n1 5\n' | tokcat -q --from=ids | packstream -q -L 8 >a.pks
    packcat --to=datatrove -o a.ds a.pks
    [ "$(od -An -v -tu2 -w10 a.ds)" = "$(u16 3 1 4 1 5 | od -An -tu2)" ]
    [ "$(od -An -v -tu8 a.ds.index)" = "$(u64 3 5 | od -An -tu8)" ]
    none_left a.ds.loss
    : >a.ds.loss
    u8 1 >old
    cp old a.ds
    refused 1 "a.ds.loss: exists already, but the packs have no channel" \
        packcat --to=datatrove -o a.ds a.pks
    cmp old a.ds
}

@test "datatrove's loss mask is u8 per token, and 0 or 1" {
    one '{"input_ids":[1,2,3],"loss_mask":[0,1,2]}' \
        --channel=loss_mask:u8 >a.pks
    refused 65 "a.pks: sequence 0: 'loss_mask' of token 2 is 2" \
        packcat --to=datatrove -o a.ds a.pks
    one '{"input_ids":[1,2,3],"loss_mask":[0,1,1]}' \
        --channel=loss_mask:f32 >b.pks
    refused 65 "b.pks: channel 'loss_mask' must be u8 per token" \
        packcat --to=datatrove -o a.ds b.pks
    one '{"input_ids":[1,2,3],"loss_mask":1}' --channel=loss_mask:u8 >b.pks
    refused 65 "b.pks: channel 'loss_mask' must be u8 per token" \
        packcat --to=datatrove -o a.ds b.pks
    none_left a.ds a.ds.index a.ds.loss
}

@test "datatrove reads packcat's datatrove files" {
    packcat --to=datatrove -o a.ds a.pks
    packcat --to=ids a.pks >wanted
    with_peer datatrove.pipeline.tokens.merger >got <<'END'
from datatrove.io import get_datafolder
from datatrove.pipeline.tokens.merger import load_doc_ends
import numpy
data = numpy.fromfile("a.ds", "<u2")
folder = get_datafolder(".")
begin = 0
for end in load_doc_ends(folder.open("a.ds.index", "rb")):
    print(*data[begin:end])
    begin = int(end)
END
    diff wanted got
}

# ------------------------------------------------------------------- trl

@test "trl is a row per pack, with its lengths" {
    written trl a.jsonl a.pks
    packcat --to=trl --range=2:4 a.pks | cmp - <(sed -n 3,4p a.jsonl)
    cat a.pks a.pks | packcat --to=trl | cmp - <(cat a.jsonl a.jsonl)
}

@test "trl has lists for per-token and per-sequence channels" {
    printf '%s\n' '{"input_ids":[1,2],"labels":[-100,2],"w":0.5}' \
        '{"input_ids":[9],"labels":[9],"w":null}' |
        tokcat -q --from=jsonl --channel=labels:i32 --channel=w:f32 |
        packstream -q -L 4 -a nextfit | packcat --to=trl >out
    echo '{"input_ids":[1,2,9],"seq_lengths":[2,1],"labels":[-100,2,9],'\
'"w":[0.5,null]}' | diff -u - out
}

@test "trl: more lengths than fit the buffer" {
    seq 140000 | sed 's/.*/7/' | tokcat -q --from=ids |
        packstream -q -L 140000 -a nextfit | packcat --to=trl >a.jsonl
    printf '{"input_ids":[%s],"seq_lengths":[%s]}\n' \
        "$(seq -s , 140000 | sed 's/[0-9]*/7/g')" \
        "$(seq -s , 140000 | sed 's/[0-9]*/1/g')" | cmp - a.jsonl
}

@test "trl refuses what TRL would misread" {
    unfit trl 'a.pks: its labels are already shifted' \
        '{"input_ids":[1,2],"labels":[2,3]}' --channel=labels:i32 \
        --labels=shifted
    unfit trl "a.pks: channel 'seq_lengths': --to=trl uses" \
        '{"input_ids":[1,2],"seq_lengths":[2,3]}' --channel=seq_lengths:i32
    "${abs_top_builddir:?}/tests/gen/edge_values" f32 3f800000 7f800000 |
        packstream -q -L 1 >a.pks
    refused 65 "a.pks: pack 1: channel 'x' has an infinity" \
        into out packcat --to=trl a.pks
    [ "$(cat out)" = '{"input_ids":[0],"seq_lengths":[1],"x":[1.0]}' ]
    # Without labels, or with aligned ones, nothing can be misread.
    one '{"input_ids":[1,2]}' --labels=shifted | packcat --to=trl
    one '{"input_ids":[1,2],"labels":[2,3]}' --channel=labels:i32 \
        --labels=aligned | packcat --to=trl
}

@test "load_dataset reads packcat's trl files" {
    packcat --to=trl a.pks >a.jsonl
    HF_HOME=$PWD HF_HUB_OFFLINE=1 with_peer datasets >out <<'END'
import json
from datasets import load_dataset
wanted = [json.loads(line) for line in open("a.jsonl")]
found = load_dataset("json", data_files="a.jsonl", split="train")
assert found.column_names[:2] == ["input_ids", "seq_lengths"]
assert found.to_list() == wanted and len(wanted) > 10
END
}

@test "TRL collates packcat's trl files" {
    packcat --to=trl a.pks >a.jsonl
    with_peer trl.trainer.sft_trainer <<'END'
import json
from trl.trainer.sft_trainer import DataCollatorForLanguageModeling
rows = [json.loads(line) for line in open("a.jsonl")][:3]
batch = DataCollatorForLanguageModeling(0, padding_free=True)(rows)
ids, positions, labels = [], [], []
for row in rows:
    ids += row["input_ids"]
    for n in row["seq_lengths"]:
        positions += range(n)
    labels += row["labels"]
labels = [label if place else -100 for label, place in zip(labels, positions)]
assert batch["input_ids"].tolist() == [ids]
assert batch["position_ids"].tolist() == [positions]
assert batch["labels"].tolist() == [labels]
END
}

# -------------------------------------------------------------- tfrecord

@test "tfrecord is an example per sequence" {
    for order in input pack; do
        written tfrecord a.tfrecord a.pks --order=$order
    done
    written tfrecord a.tfrecord a.pks --max-predictions=6
    written tfrecord b.tfrecord a.wide
}

@test "tfrecord: channels of other integers, and zeros if there are none" {
    for type in u8 u16 u32 i32 i64; do
        one '{"input_ids":[1,2],"token_type_ids":[0,1],'\
'"next_sentence_label":1}' --channel=token_type_ids:$type \
            --channel=next_sentence_label:$type >a.pks
        written tfrecord a.tfrecord a.pks
    done
    one '{"input_ids":[1,2,3],"labels":[-100,2147483647,-100]}' \
        --channel=labels:i64 >a.pks
    written tfrecord a.tfrecord a.pks
    one '{"input_ids":[1,2,3]}' >a.pks
    written tfrecord a.tfrecord a.pks
}

@test "tfrecord refuses more masked tokens than fit" {
    one '{"input_ids":[1,2,3],"labels":[0,-100,3]}' \
        --channel=labels:i32 >a.pks
    packcat --to=tfrecord --max-predictions=2 a.pks >out
    refused 65 'a.pks: sequence 0 has 2 masked tokens, more than' \
        into out packcat --to=tfrecord --max-predictions=1 a.pks
    [ ! -s out ]
    ids=$(seq -s , 21)
    printf '{"input_ids":[%s],"labels":[%s]}\n' "$ids" "$ids" |
        tokcat -q --from=jsonl --channel=labels:i32 |
        packstream -q -L 32 >a.pks
    refused 65 'sequence 0 has 21 masked tokens' \
        packcat --to=tfrecord -o out a.pks
    packcat --to=tfrecord --max-predictions=21 a.pks >out
    for number in 0 16777217 x; do
        refused 64 'max-predictions' \
            packcat --to=tfrecord --max-predictions=$number a.pks
    done
    refused 64 '--max-predictions needs --to=tfrecord' \
        packcat --to=ids --max-predictions=5 a.pks
}

@test "tfrecord refuses channels that it cannot use" {
    local line='{"input_ids":[1,2],"labels":[0,1],"token_type_ids":[0,1],'\
'"next_sentence_label":1}'
    for type in f32 f64 u64; do
        for name in labels token_type_ids next_sentence_label; do
            unfit tfrecord "a.pks: channel '$name' has type $type" "$line" \
                --channel=$name:$type
        done
    done
    unfit tfrecord "channel 'labels' is per sequence, but" \
        '{"input_ids":[1,2],"labels":1}' --channel=labels:i32
    unfit tfrecord "channel 'token_type_ids' is per sequence, but" \
        '{"input_ids":[1,2],"token_type_ids":1}' --channel=token_type_ids:u8
    unfit tfrecord "channel 'next_sentence_label' is per token, but" \
        '{"input_ids":[1,2],"next_sentence_label":[1,1]}' \
        --channel=next_sentence_label:u8
    # Without a -100, every token would be masked.
    for type in u8 u16 u32; do
        unfit tfrecord "channel 'labels' has type $type, which cannot hold the -100" \
            "$line" --channel=labels:$type
    done
    unfit tfrecord 'a.pks: its labels are shifted to the next token' \
        '{"input_ids":[1,2],"labels":[2,-100]}' --channel=labels:i32 \
        --labels=shifted
}

@test "tfrecord refuses values that it cannot use" {
    local values
    for values in labels:-1 labels:-101 labels:2147483648 \
        token_type_ids:-1 token_type_ids:-100; do
        unfit tfrecord "channel '${values%:*}' has ${values#*:}," \
            "{\"input_ids\":[1,2],\"${values%:*}\":[0,${values#*:}]}" \
            --channel="${values%:*}:i64"
    done
    for values in -1 2; do
        unfit tfrecord \
            "a.pks: sequence 0: channel 'next_sentence_label' has" \
            "{\"input_ids\":[1,2],\"next_sentence_label\":$values}" \
            --channel=next_sentence_label:i32
    done
}

@test "the tfrecord package reads packcat's tfrecord files" {
    packcat --to=tfrecord a.pks >a.tfrecord
    packcat --to=jsonl a.pks >wanted
    with_peer tfrecord <<'END'
import json
from tfrecord.reader import tfrecord_loader
kinds = dict.fromkeys(["input_ids", "input_mask", "segment_ids",
    "masked_lm_positions", "masked_lm_ids", "next_sentence_labels"], "int")
kinds["masked_lm_weights"] = "float"
found = list(tfrecord_loader("a.tfrecord", None, kinds))
wanted = [json.loads(line) for line in open("wanted")]
assert len(found) == len(wanted) == 300
for a, b in zip(found, wanted):
    n = len(b["input_ids"])
    assert a["input_ids"].tolist() == b["input_ids"] + [7] * (64 - n)
    assert a["input_mask"].tolist() == [1] * n + [0] * (64 - n)
    assert a["segment_ids"].tolist()[:n] == b["token_type_ids"]
    assert a["next_sentence_labels"].tolist() == [b["next_sentence_label"]]
    picks = int(a["masked_lm_weights"].sum())
    labels = [-100] * n
    for place, label in zip(a["masked_lm_positions"][:picks],
                            a["masked_lm_ids"][:picks]):
        labels[place] = int(label)
    assert labels == b["labels"]
END
}

# ------------------------------------------------- and back, with tokcat

# back FORM FILE [OPTION...]: the file as tokcat reads it, as lines of ids.
back() {
    tokcat -q --from="$1" "${@:3}" "$2" | packstream -q -L 64 |
        packcat --to=ids
}

@test "tokcat recovers the sequences of megatron files" {
    packcat --to=ids --order=pack a.pks >wanted
    packcat --to=megatron -o m a.pks
    back megatron m.bin | cmp - wanted
    # A document is a pack: nanoGPT's input, without padding.
    packcat --to=trl a.pks | sed 's/.*"input_ids":\[//; s/].*//; s/,/ /g' |
        cmp - <(back megatron m.bin --split=document)
    packcat --to=megatron --order=input -o m a.pks
    packcat --to=ids a.pks | cmp - <(back megatron m.bin)
}

@test "tokcat recovers the records of datatrove files" {
    for type in u16 u32; do
        records a.jsonl -t $type --ignore=token_type_ids \
            --ignore=labels --ignore=next_sentence_label >a.tok
        packstream -q -t $type -L 64 -w 100 a.tok |
            packcat --to=datatrove -o a.ds
        tokcat -q --from=datatrove -t $type a.ds | cmp - a.tok
    done
}

@test "tokcat recovers the records of tfrecord files" {
    for type in u16 u32; do
        records a.jsonl -t $type --ignore=loss_mask --labels=aligned >a.tok
        packstream -q -t $type -L 64 -w 100 a.tok |
            packcat --to=tfrecord -o a.tfrecord
        tokcat -q --from=tfrecord -t $type a.tfrecord | cmp - a.tok
    done
}

@test "tokcat recovers the rows of llmc and rows files" {
    packcat --to=rows a.pks >a.rows
    packcat --to=llmc a.pks >a.bin
    od -An -v -tu2 -w128 a.rows | sed 's/  */ /g; s/^ //' >wanted
    back nanogpt a.rows --split=64 | cmp - wanted
    back llmc a.bin --split=64 | cmp - wanted
}

# -------------------------------------------------- an empty pack stream

@test "every form of an empty pack stream is empty" {
    tokcat -q --from=ids </dev/null | packstream -q -L 8 >a.pks
    for form in llmc trl tfrecord; do
        written $form out a.pks
    done
    for order in pack input; do
        written megatron m a.pks --order=$order
        written datatrove a.ds a.pks --order=$order
    done
    [ "$(size m.idx)" -eq 42 ]
}

# -------------------------------------------------------- several files

# each_form COMMAND...: called with form, -o's value and the files of each form.
each_form() {
    "$@" megatron m m.bin m.idx
    "$@" datatrove a.ds a.ds a.ds.index a.ds.loss
}

# replaces FORM NAME FILE...: a successful run replaces older and temporary
# files; a failed one leaves them alone.
replaces() {
    local file
    for file in "${@:3}"; do
        echo older >"$file"
    done
    refused 65 'part.pks: ' packcat --to="$1" -o "$2" part.pks
    for file in "${@:3}"; do
        [ "$(cat "$file")" = older ]
        [ ! -e "$file.new" ]
        rm "$file"
    done
    refused 65 'part.pks: ' packcat --to="$1" -o "$2" part.pks
    none_left "${@:3}"
    packcat --to="$1" -o "$2" a.pks
    for file in "${@:3}"; do
        mv "$file" "$file.wanted"
        # Longer than the new file.
        cat "$file.wanted" a.pks | tee "$file" >"$file.new"
    done
    packcat --to="$1" -o "$2" a.pks
    for file in "${@:3}"; do
        cmp "$file" "$file.wanted"
        [ ! -e "$file.new" ]
    done
}

@test "several files replace older ones only on success" {
    head -c $(($(size a.pks) - 1)) a.pks >part.pks
    each_form replaces
}

# not_named WHY STATUS NAME: several files cannot have that name.
not_named() {
    local form
    for form in megatron datatrove; do
        refused "$2" "$1" packcat --to=$form -o "$3" a.pks
    done
}

@test "invalid names for several files" {
    local name form
    for form in megatron datatrove; do
        refused 64 "--to=$form writes several files: name them with -o FILE" \
            packcat --to=$form a.pks
        refused 64 "--to=$form writes several files: name them with -o FILE" \
            packcat --to=$form -o - a.pks
    done
    mkdir folder
    mkdir -m 555 shut
    mkfifo pipe
    for name in folder folder/ pipe /dev/null; do
        not_named "$name: exists and is not a regular file, so the output\
 files cannot be named after it" 1 $name
    done
    not_named "none/: not a name that output files can be named after" 1 none/
    not_named "-o: not a name that output files can be named after" 1 ''
    not_named "No such file or directory" 1 missing/x
    not_named "Not a directory" 1 a.tok/x
    [ "$(id -u)" -eq 0 ] || not_named "Permission denied" 1 shut/x
    [ -z "$(find . -name '*.bin*' -o -name '*.i*' -o -name '*.new')" ]
}

@test "several files do not replace another file or an input" {
    local file name kind
    for file in a.ds a.ds.index a.ds.loss; do
        for name in $file $file.new; do
            for kind in mkdir mkfifo 'ln -s other'; do
                [ "$kind $name" != "ln -s other $file" ] || continue
                $kind "$name"
                refused 1 "$name: " packcat --to=datatrove -o a.ds a.pks
                # shellcheck disable=SC2154 # refused sets it
                [ -L "$name" ] ||
                    [[ $stderr == *": exists and is not a regular file"* ]]
                rm -r "$name"
                none_left a.ds a.ds.index a.ds.loss
            done
            cp a.pks "$name"
            refused 1 "$name: is also an input: choose another output" \
                packcat --to=datatrove -o a.ds a.pks "$name"
            cmp a.pks "$name"
            rm "$name"
            none_left a.ds a.ds.index a.ds.loss
        done
    done
    # Links are replaced, but not the files they point to.
    echo other >other
    for file in m.bin m.idx; do
        ln -s other $file
    done
    packcat --to=megatron -o m a.pks
    for file in m.bin m.idx; do
        [ ! -L $file ] && [ -s $file ]
    done
    [ "$(cat other)" = other ]
}

# unwritten FORM NAME FILE...: the disk has no space for all of it.
unwritten() {
    local room file whole=0
    packcat --to="$1" -o "$2" a.pks
    for file in "${@:3}"; do
        whole=$((whole + $(size "$file")))
        rm "$file"
    done
    for room in 0 1 33 4096 $((whole / 2)) $((whole - 1)); do
        refused 1 ': cannot write: No space left on device' \
            env LD_PRELOAD="$faults" FAULT_ROOM=$room \
            packcat --to="$1" -o "$2" a.pks
        none_left "${@:3}"
    done
}

@test "a full disk leaves none of several files" {
    skip_if_sanitized
    faults=${abs_top_builddir:?}/tests/support/.libs/faults.so
    [ -e "$faults" ] || skip 'no shared libraries were built'
    each_form unwritten
}
