#!/usr/bin/env bash
# seeds.sh DIR - writes the first inputs of every fuzzing target, a folder in
# DIR for each.  The programs are found on the PATH.
#
# The head of each target explains the first bytes of its inputs.
#
# SPDX-License-Identifier: MIT

set -eu
export LC_ALL=C

dir=${1:?usage: seeds.sh DIR}
mkdir -p "$dir"
cd "$dir"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# u8 N...: each number as a byte.
u8() {
    local n
    for n; do
        printf '%b' "\\x$(printf '%x' "$n")"
    done
}

u16() {
    local n
    for n; do
        u8 $((n & 255)) $((n >> 8))
    done
}

# seed TARGET NAME OPTION...: an input: the options, then standard input.
seed() {
    local to=$1/$2
    shift 2
    mkdir -p "${to%/*}"
    { u8 "$@" && cat; } >"$to"
}

# ids N: N sequences of several lengths.
ids() {
    awk -v n="$1" 'BEGIN {
        for (i = 0; i < n; i++) {
            for (k = 0; k <= i * 7 % 11; k++)
                printf "%d ", (i * 31 + k) % 250
            print ""
        }
    }'
}

# objects N: the same with channels.
objects() {
    awk -v n="$1" 'BEGIN {
        for (i = 0; i < n; i++) {
            tokens = labels = ""
            for (k = 0; k <= i * 5 % 7; k++) {
                tokens = tokens (k ? "," : "") (i + k) % 250
                labels = labels (k ? "," : "") (k % 2 ? -100 : k)
            }
            printf "{\"input_ids\":[%s],\"labels\":[%s],\"w\":%d.5}\n",
                tokens, labels, i
        }
    }'
}

# listed N: token records with two lists per sequence.
listed() {
    ids "$1" | awk '{
        gsub(/ *$/, "")
        gsub(/ /, ",")
        printf "{\"input_ids\":[%s],\"a\":[%s],\"e\":[%s]}\n", $0,
            NR % 3 ? substr($0, 1, index($0 ",", ",") - 1) : "",
            NR % 2 ? "[1,2],[3,4]" : ""
    }' | tokcat --from=jsonl --channel=a:u16[] --channel=e:u8[2][]:7
}

# Ways to read: `manner` of feed() in tests/fuzz/fuzz.h.
manners='0 1 5 31 36 65 130'

raw_seeds() {
    local manner
    for manner in $manners; do
        ids 5 | tokcat --from=ids --raw |
            seed raw "u16-$manner" 0 0 0 "$manner"
        ids 5 | tokcat --from=ids --raw --type=u32 |
            seed raw "u32-$manner" 1 0 0 "$manner"
    done
    ids 9 | tokcat --from=ids --raw | seed raw long 8 3 0 3
    ids 9 | tokcat --from=ids --raw | seed raw vocabulary 16 0 64 3
    { ids 3 | tokcat --from=ids --raw && u16 0 0 &&
        ids 2 | tokcat --from=ids --raw; } | seed raw flush 2 0 0 9
    ids 5 | tokcat --from=ids --raw | head -c 30 | seed raw cut 0 0 0 0
    seed raw empty 0 0 0 0 </dev/null
}

framed_seeds() {
    local manner
    for manner in $manners; do
        ids 5 | tokcat --from=ids | seed framed "ids-$manner" 4 0 0 "$manner"
        objects 5 | tokcat --from=jsonl |
            seed framed "channels-$manner" 4 0 0 "$manner"
        listed 5 | seed framed "lists-$manner" 4 0 0 "$manner"
    done
    listed 5 | seed framed long-lists 13 2 0 3
    objects 5 | tokcat --from=jsonl --type=u32 | seed framed long 13 2 0 3
    ids 5 | tokcat --from=ids --vocab=250 --eos-id=2 |
        seed framed vocabulary 20 0 63 3
    { ids 3 | tokcat --from=ids && ids 2 | tokcat --from=ids; } |
        seed framed joined 0 0 0 9
    # Two records, then a flush record, with END's counts unchanged.
    { ids 2 | tokcat --from=ids >"$work/x" && head -c 162 "$work/x" &&
        u16 0 0 2 0 && tail -c 32 "$work/x"; } | seed framed flush 6 0 0 0
    printf '' | tokcat --from=ids | seed framed empty 4 0 0 0
}

# part MAKE: standard input as a part of the zstd target's input.
part() {
    cat >"$work/part"
    u8 "$1"
    u16 "$(wc -c <"$work/part")"
    cat "$work/part"
}

zstd_seeds() {
    local make
    for make in 0 4 8 16 28; do
        objects 5 | tokcat --from=jsonl | part "$make" |
            seed zstd "frame-$make" 0 0 0 0
        ids 5 | tokcat --from=ids --raw | part "$make" |
            seed zstd "raw-$make" 0 0 0 7
    done
    ids 9 | tokcat --from=ids --raw >"$work/x"
    { head -c 20 "$work/x" | part 0 && printf skipped | part 1 &&
        printf '' | part 4 && tail -c +21 "$work/x" | part 8; } |
        seed zstd frames 0 0 0 130
    part 130 <"$work/x" | seed zstd cut 0 0 0 0
    { part 0 <"$work/x" && printf rubbish | part 3; } |
        seed zstd rubbish 0 0 0 5
}

# packs NAME OPTION...: a stream of packs in $work/NAME.
packs() {
    local name=$1
    shift
    objects 9 | tokcat --from=jsonl |
        packstream -L 12 -d 4 -w 4 "$@" >"$work/$name"
}

plain_seeds() {
    local name
    packs plain
    packs split -L 5 --overlong=split
    packs none -a none
    packs blocks -a none --block-packs=2
    packs aligned --align=4
    packs aligned-split -L 6 --align=3 --overlong=split
    ids 9 | tokcat --from=ids | packstream -L 16 -d 3 >"$work/ids"
    ids 9 | tokcat --from=ids --raw --type=u32 |
        packstream --type=u32 -L 11 -d 9 >"$work/wide"
    listed 9 | packstream -L 12 -w 4 --budget=e:5 >"$work/lists"
    listed 9 | packstream -L 5 --overlong=split >"$work/split-lists"
    printf '' | packstream -L 8 -d 2 >"$work/empty"
    cat "$work/ids" "$work/ids" >"$work/joined"
    # A later minor version may have more fields, also in the dtype.
    { head -c 14 "$work/ids" && u16 1 && tail -c +17 "$work/ids"; } \
        >"$work/later"
    # So may its END, here at byte 40, also after a stream of a known version.
    { cat "$work/ids" && head -c -216 "$work/later" && u8 1 &&
        tail -c 215 "$work/later"; } >"$work/joined-later"
    for name in plain split none blocks aligned aligned-split ids wide empty \
        lists split-lists joined later joined-later; do
        seed plain "$name" 1 0 <"$work/$name"
        seed plain "$name-pieces" 1 31 <"$work/$name"
    done
    head -c 4700 "$work/ids" | seed plain cut 1 0
    seed plain unsealed 0 65 <"$work/ids"
    seed plain nothing 1 0 </dev/null
}

# Run after plain_seeds, whose streams it uses.
seekable_seeds() {
    local name
    for name in plain split blocks ids lists empty joined joined-later; do
        seed seekable "$name" 1 0 0 4 0 0 0 0 0 0 0 0 0 0 0 0 0 \
            <"$work/$name"
        seed seekable "$name-blocks" 5 3 1 0 0 0 0 0 0 0 0 0 0 0 0 0 0 \
            <"$work/$name"
    done
    seed seekable checksums 7 130 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 <"$work/ids"
    seed seekable nothing 1 </dev/null
    seed seekable twice 13 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 <"$work/ids"
    # Changes the number of frames, and a size in the table.
    seed seekable count 5 0 0 0 1 8 0 1 0 0 0 0 0 0 0 0 0 <"$work/ids"
    seed seekable size 5 0 0 0 1 12 0 255 0 0 0 0 0 0 0 0 0 <"$work/ids"
}

# Lengths, then at the end special steps: filter.c.
steps() {
    u8 3 0 40 7 7 12 90 1 2 199 5 230 11 0 249 6 250 80 30 251 4 252 9 9 201
}

filter_seeds() {
    local policy overlong
    for policy in 0 1 2 3 4 5 6; do
        for overlong in 0 1 2 3; do
            [ "$policy" -lt 6 ] || [ "$overlong" -eq 0 ] || continue
            steps | seed filter "policy-$policy-$overlong" 2 0 "$policy" \
                63 4 9 "$policy" 0 "$overlong" 1 0 0 0
        done
    done
    steps | seed filter uncapped 2 0 3 99 41 9 0 0 1 7 0 0 0
    steps | seed filter shuffled 2 5 3 99 5 9 0 2 1 7 0 0 0
    steps | seed filter by-input 7 5 0 99 5 9 0 1 1 7 0 0 0
    steps | seed filter compressed 10 5 3 99 5 9 3 0 3 7 0 0 0
    steps | seed filter delay 26 5 3 99 5 9 1 0 3 7 3 0 0
    steps | seed filter bytes 34 5 3 99 5 9 2 0 2 7 3 0 1
    steps | seed filter skips 112 64 0 40 5 9 0 0 1 7 3 0 1
    for policy in 0 1 2 3 4 5 6; do
        steps | seed filter "aligned-$policy" 130 0 3 99 4 9 "$policy" 0 \
            $((policy < 6 ? 3 : 0)) 1 0 0 0 $((2 * policy + 1))
    done
}

# A job is stopped after some of its steps, with its state changed or not.
state_seeds() {
    local policy stop
    for policy in 0 1 2 3 4 5 6; do
        for stop in 9 14 22; do
            steps | seed state "policy-$policy-$stop" "$stop" 0 \
                0 0 0 0 0 0 0 0 0 0 0 0 \
                2 0 "$policy" 40 4 5 "$policy" 0 3 1 0 0 0
        done
    done
    steps | seed state sealed 20 1 50 0 1 0 0 0 0 0 0 0 0 0 \
        2 0 1 40 4 5 0 0 3 1 0 0 0
    steps | seed state changed 20 0 51 0 1 0 0 0 0 0 0 0 0 0 \
        2 0 1 40 4 5 0 0 3 1 0 0 0
    steps | seed state cut 20 18 0 0 0 0 0 0 0 0 0 0 0 0 \
        2 0 1 40 4 5 0 0 1 1 0 0 0
    steps | seed state compressed 20 0 0 0 0 0 0 0 0 0 0 0 0 0 \
        10 0 1 40 4 5 0 0 3 1 0 0 0
    steps | seed state aligned 20 0 0 0 0 0 0 0 0 0 0 0 0 0 \
        130 0 1 40 4 5 0 0 3 1 0 0 0 7
    steps | seed state shuffled 21 0 0 0 0 0 0 0 0 0 0 0 0 0 \
        2 0 1 40 4 5 0 2 3 9 0 0 0
    steps | seed state by-input 21 0 0 0 0 0 0 0 0 0 0 0 0 0 \
        2 0 1 40 4 5 3 1 3 9 0 0 0
}

ids_seeds() {
    local bits manner
    for bits in 0 1 2 4 8; do
        ids 5 | seed ids "ids-$bits" "$bits" 0 0
    done
    for manner in $manners; do
        ids 3 | seed ids "manner-$manner" 0 0 "$manner"
    done
    printf '1 2\r\n\n \t3\t4 \n5' | seed ids blanks 0 0 1
    printf '65535 65536\n' | seed ids large 0 0 0
    printf '4294967295 4294967296\n' | seed ids larger 1 0 0
    printf '1 -2 3\n' | seed ids negative 0 0 0
    printf '1 2.5 3e4\n' | seed ids fraction 0 0 0
    printf '1 \001\377x 3\n' | seed ids word 0 0 0
    printf 'a line\n\nanother\r\n \t\nlast' | seed ids bytes 16 0 3
    printf 'a line\n\nanother\r\n \t\nlast' | seed ids paragraphs 48 0 3
    # Compressed: by gzip, and by zstd in an uncompressed block.
    ids 9 | gzip -n | seed ids gzip 0 0 3
    ids 2 | gzip -n | seed ids gzip-bytes 16 0 0
    ids 2 | gzip -n | seed ids gzip-kept 80 0 0
    printf '(\265/\375 \0061\000\0001 2\n3\n' | seed ids zstd 0 0 1
}

jsonl_seeds() {
    local bits
    for bits in 0 1 4 8; do
        objects 4 | seed jsonl "objects-$bits" "$bits" 0
    done
    objects 4 | seed jsonl pieces 0 5
    # A zstd frame: an uncompressed block of 20 bytes, and one of unknown type.
    { u8 40 181 47 253 0 0 160 0 0 && printf '{"input_ids":[1,2]}\n' &&
        u8 6 0 0; } | seed jsonl damaged 0 5
    printf '{"input_ids":[1,2]}\n\n{"input_ids":[]}\n' | seed jsonl raw 2 0
    { echo 'labels:i64:-1' && objects 3; } | seed jsonl declared 16 0
    { echo 'w:f64:null' && objects 3; } | seed jsonl null 16 9
    printf '{"input_ids":[%s],"w":[%s],"s":%s}\n' 1 0.5 -0.25 2 1e-3 7 \
        3 0.30000000000000004 16777217.5 | seed jsonl floats 0 0
    printf '{"input_ids":[1,2],"x":{"y":[]}}\n' | seed jsonl ignored 32 0
    printf '{"input_ids":[1,2],"b":[true,false],"f":[1e3,null]}\n' |
        seed jsonl kinds 0 0
    printf '{"input_ids":[1],"id":-2147483649,"%s":%s,"t":[null,2]}\n' \
        a null a 0.5 index 1 b '[]' b '[1]' c '[null]' | seed jsonl left-out 0 0
    printf '{"input_ids":[1],"input_ids":[2]}\n' | seed jsonl twice 0 0
    printf '{"input_ids":[65536]}\n' | seed jsonl large 0 0
    printf '{"input_ids":[1.5]}\n' | seed jsonl fraction 0 0
    printf '{"input_ids":["\\u0000\\ud800"]}\n' | seed jsonl string 0 0
    printf '[[[[[[[[1]]]]]]]]\n' | seed jsonl deep 0 0
    printf '{"input_ids":[%b],"x":%b}\n' 7 0 1 '2\0' '2\0' 3 |
        seed jsonl nul 32 0
    printf '\357\273\277{"input_ids":[%s]}\n' 1 2 | seed jsonl marks 0 0
    printf '{"input_ids":[1],"z":99999999999999999999}\n' |
        seed jsonl larger 0 0
    printf '{"input_ids":[1],"\\u0078":"\\"\\u00e9\\\\"}\n' | seed jsonl escaped 32 0
    printf '{"\\ud83d\\ude00\\n":[],"input_ids":[]}\n{"input_ids":[1]}\n' |
        seed jsonl surrogates 0 0
    printf '{"x":[{"role":"user","content":["a",{"b":null}]}],%s}\n' \
        '"input_ids":[1]' '"input_ids":[2]' | seed jsonl messages 32 0
    printf '{"input_ids":[%s],"attention_mask":[%s]}\n' 7,8,0 1,1,0 \
        0,7,0 0,1,1 0,0 0,0 | seed jsonl padded 64 0
    { echo 'attention_mask:f32' &&
        printf '{"attention_mask":[0.0,1,false],"input_ids":[1,2,3]}\n'; } |
        seed jsonl masked 16 0
    printf '{"input_ids":[%s],"v":[%s],"w":[%s]}\n' 1,2 '[0.5,1],[null,2]' \
        '[1,2,3] , [4,5,6]' 3 '[7,8]' '[-1,-2,-3]' '' '' '' \
        4 '[1]' '[1,2,3]' | seed jsonl vectors 0 0
    { echo 'e:f32[3]:-1' && printf '{"input_ids":[%s],"e":[%s]}\n' \
        1,2 1,2.5,3 1 4,5,6 '' '' 1 '[1,2,3]'; } | seed jsonl one-vector 16 0
}

# npy DICTIONARY: everything before the numbers of a .npy file.
npy() {
    printf '\223NUMPY\001\000'
    u16 ${#1}
    printf '%s' "$1"
}

# llmc MAGIC VERSION TOKENS: the header of llm.c.
llmc() {
    u16 $(($1 & 65535)) $(($1 >> 16)) "$2" 0 "$3" 0
    head -c 1012 /dev/zero
}

arrays_seeds() {
    local type split manner before="{'descr': '<"
    local behind="', 'fortran_order': False, 'shape': "
    for type in u1 i1 u2 i2 u4 i4 u8 i8; do
        for split in 0 4 8; do
            { npy "$before$type$behind(4,)}" && u8 1 2 3 9 &&
                head -c $((4 * ${type#?} - 4)) /dev/zero; } |
                seed arrays "$type-$split" $((1 + split)) 3 0
        done
        { npy "$before$type$behind(2, 2), }" && u8 1 2 0 0 &&
            head -c $((4 * ${type#?} - 4)) /dev/zero; } |
            seed arrays "$type-rows" 160 0 0
    done
    for manner in $manners; do
        { npy "${before}u2$behind(2, 2)}" && u16 1 2 3 4; } |
            seed arrays "rows-$manner" 0 3 "$manner"
        u16 1 2 3 9 4 3 5 | seed arrays "nanogpt-$manner" 7 3 "$manner"
    done
    for split in 0 4 8; do
        { llmc 20240520 1 4 && u16 1 2 3 9; } |
            seed arrays "llmc-$split" $((2 + split)) 3 0
        { llmc 20240801 7 2 && u16 1 0 3 0; } |
            seed arrays "llmc-wide-$split" $((2 + split)) 3 0
    done
    u16 1 2 300 4 | seed arrays vocabulary 67 1 0
    npy "${before}u2$behind(0,)}" | seed arrays none 1 1 0
    npy "${before}u2$behind(9,0)}" | seed arrays empty 0 1 0
}

# index TYPE SEQUENCES ENTRIES: the header of Megatron's index.
index() {
    printf 'MMIDIDX\000\000'
    u8 1 0 0 0 0 0 0 0 "$1"
    u16 "$2" 0 0 0 "$3" 0 0 0
}

# wide N...: each number in 8 bytes.
wide() {
    local n
    for n; do
        u16 "$n" 0 0 0
    done
}

# megatron NAME OPTIONS TYPE BYTES: a data set of three sequences in two
# documents, with BYTES bytes per token, followed by standard input.
megatron() {
    { index "$3" 3 3 && u16 2 0 1 0 3 0 && wide 0 $((2 * $4)) $((3 * $4)) &&
        wide 0 2 3 && cat; } >"$work/idx"
    { u16 "$(wc -c <"$work/idx")" && cat "$work/idx" &&
        u8 1 2 3 4 5 6 && head -c $((6 * $4 - 6)) /dev/zero; } |
        seed megatron "$1" "$2"
}

megatron_seeds() {
    local options
    for options in 0 1 2 3 4 8 16; do
        megatron "u16-$options" "$options" 8 2 </dev/null
        megatron "i32-$options" "$options" 4 4 </dev/null
    done
    megatron u8 0 1 1 </dev/null
    megatron i64 0 5 8 </dev/null
    u8 0 0 0 | megatron modes 0 8 2
    u8 0 1 0 | megatron no-text 0 8 2
    megatron floats 0 7 4 </dev/null
    { u16 42 && index 8 0 1 && wide 0; } | seed megatron none 1
}

# chunk NUMBER: standard input as a field of fewer than 128 bytes.
chunk() {
    cat >"$work/chunk-$1"
    u8 $(($1 << 3 | 2)) "$(wc -c <"$work/chunk-$1")"
    cat "$work/chunk-$1"
}

# feature NAME KIND BYTE...: a list of integers (3), packed, or of floats (2).
feature() {
    {
        printf '%s' "$1" | chunk 1
        u8 "${@:3}" | chunk 1 | chunk "$2" | chunk 2
    } >"$work/feature"
    u8 10 "$(wc -c <"$work/feature")"
    cat "$work/feature"
}

# sample: the features on standard input as a record.
sample() {
    cat >"$work/features"
    local n
    n=$(wc -c <"$work/features")
    u16 $((n + 3))
    # The length takes two bytes, whatever it is.
    u8 10 $((n & 127 | 128)) $((n >> 7))
    cat "$work/features"
}

tokens_of_bert() {
    feature input_ids 3 5 6 7 0
    feature input_mask 3 1 1 1 0
}

sample_of_bert() {
    tokens_of_bert
    feature segment_ids 3 0 1 1 0
    feature masked_lm_positions 3 1 0
    feature masked_lm_ids 3 9 0
    feature masked_lm_weights 2 0 0 128 63 0 0 0 0
    feature next_sentence_labels 3 1
}

tfrecord_seeds() {
    local options manner
    tokens_of_bert | sample >"$work/small"
    sample_of_bert | sample >"$work/whole"
    for options in 1 3 5 9 17; do
        seed tfrecord "small-$options" "$options" 0 <"$work/small"
        cat "$work/whole" "$work/whole" |
            seed tfrecord "whole-$options" "$options" 0
    done
    for manner in $manners; do
        seed tfrecord "manner-$manner" 1 "$manner" <"$work/whole"
    done
    cat "$work/small" "$work/whole" | seed tfrecord different 1 0
    seed tfrecord unframed 0 0 <"$work/whole"
    u16 0 | seed tfrecord empty 1 0
}

# config NAME TYPE MEMBERS: config.json of a model.
config() {
    printf '{"model_type":"%s","num_hidden_layers":2,%s}' "$2" "$3" |
        seed model "$1" 1
}

# tensors NAME HEADER BYTES: a safetensors file.
tensors() {
    { u16 ${#2} && u8 0 0 0 0 0 0 && printf '%s' "$2" &&
        head -c "$3" /dev/zero; } | seed model "$1" 0
}

model_seeds() {
    local rope='"rope_theta":5e5,"factor":8.0'
    local llama3="$rope,\"low_freq_factor\":1,\"high_freq_factor\":4"
    local entry='"dtype":"F32","shape":[2,3],"data_offsets":[0,24]'
    config bert bert '"hidden_act":"gelu_new","type_vocab_size":2'
    config modernbert modernbert '"local_attention":128'
    config layers modernbert '"layer_types":["full_attention",
        "sliding_attention"],"rope_parameters":{"full_attention":{}}'
    config llama llama "\"rope_scaling\":{\"type\":\"linear\",$rope}"
    config llama3 llama \
        "\"rope_parameters\":{\"rope_type\":\"llama3\",$llama3}"
    config qwen2 qwen2 '"use_sliding_window":true,"max_window_layers":1'
    config qwen3 qwen3 '"head_dim":128,"attention_bias":false'
    config mistral mistral '"sliding_window":null,"head_dim":null'
    tensors empty '{}' 0
    tensors one "{\"a\":{$entry}}" 24
    tensors two "{\"__metadata__\":{\"format\":\"pt\"},\"a\":{$entry},
        \"b\":{\"dtype\":\"BF16\",\"shape\":[2],\"data_offsets\":[24,28]}}" 28
}

raw_seeds
framed_seeds
zstd_seeds
plain_seeds
seekable_seeds
filter_seeds
state_seeds
ids_seeds
jsonl_seeds
arrays_seeds
megatron_seeds
model_seeds
tfrecord_seeds
