#!/usr/bin/env bats
# imports.bats - tokcat reads the files of other programs, or reports why not.
#
# The files are made by tests/support/imports.py, which shares no code with
# tokcat, and by the packages that define the forms, if a python3 has them:
# PYTHON_PEERS in the environment can name one.
#
# SPDX-License-Identifier: MIT

load ../support/helpers

# shellcheck disable=SC2034 # for bad_option
program=tokcat

setup() {
    start
    skip_without_numpy
    skip_without python3
}

# make_file WHAT NAME...: makes a file of that form.
make_file() {
    python=${python:-$PYTHON_NUMPY} support imports.py "$@"
}

# of FORM FILE [OPTION...]: sets the arguments of tokcat for later `bad`s.
of() {
    input=("$@")
}

# bad WHY [OPTION...]: the file is refused for WHY.
bad() {
    is 65 "tokcat: $1" tokcat --from="${input[0]}" -o /dev/null \
        "${input[@]:2}" "${@:2}" "${input[1]}"
}

# spoilt WHY FILE OFFSET BYTES N...: FILE, a copy of `good` with these numbers
# of BYTES bytes at OFFSET, is refused for WHY.
spoilt() {
    cp good "$2"
    put "${@:2}"
    bad "$1"
}

# begun WHY FILE BYTES: so is FILE with only the first bytes of `good`.
begun() {
    head -c "$3" good >"$2"
    bad "$1"
}

# put FILE OFFSET BYTES N...: overwrites bytes with numbers of BYTES bytes.
put() {
    little "$3" "${@:4}" | dd of="$1" bs=1 seek="$2" conv=notrunc status=none
}

# ------------------------------------------------------- llm.c and nanoGPT

@test "llmc: documents begin with a token, or end with it" {
    make_file llmc x.bin '[9,1,2,9,3,9,9,4]'
    { record16 9 1 2; record16 9 3; record16 9; record16 9 4; } >wanted
    tokcat --from=llmc --split=bos --bos-id=9 --raw x.bin | cmp - wanted
    { record16 9; record16 1 2 9; record16 3 9; record16 9
        record16 4; } >wanted
    tokcat --from=llmc --split=eos --eos-id=9 --raw <x.bin | cmp - wanted
    { record16 9 1 2; record16 9 3 9; record16 9 4; } >wanted
    tokcat --from=llmc --split=3 --raw x.bin | cmp - wanted
}

@test "llmc: u32 tokens give a u32 stream, unless an option says otherwise" {
    make_file llmc x.bin '[128000,1,2,128000,3]' 4
    tokcat --from=llmc --split=bos --bos-id=128000 x.bin >got
    stream '{"width": 4, "special": {"bos": 128000},
        "records": [[[128000, 1, 2]], [[128000, 3]]]}' | cmp - got
    make_file llmc x.bin '[7,1,2,7,3]' 4
    tokcat --from=llmc --split=bos --bos-id=7 --vocab=8 x.bin >got
    stream '{"vocab": 8, "special": {"bos": 7},
        "records": [[[7, 1, 2]], [[7, 3]]]}' | cmp - got
    make_file llmc y.bin '[5]' 2
    tokcat --from=llmc --split=9 --raw -t u32 y.bin | cmp - <(record32 5)
    # The first of several files determines the type.
    gives 16 '5, 7 1 2 7 3' --from=llmc --split=9 y.bin x.bin
    gives 32 '7 1 2 7 3, 5' --from=llmc --split=9 x.bin y.bin
}

@test "llmc: no tokens" {
    make_file llmc x.bin
    tokcat --from=llmc --split=1 x.bin | cmp - <(stream '{"records": []}')
}

@test "llmc: other files, and truncated ones" {
    make_file llmc good '[1,2,3]'
    of llmc x.bin --split=1
    local why="the file ends within the header of 1024 bytes"
    begun "x.bin: byte 1023: $why" x.bin 1023
    begun "x.bin: byte 0: $why" x.bin 0
    begun "x.bin: byte 1029: the file ends within a token" x.bin 1029
    begun "x.bin: byte 1028: truncated: 1 tokens are missing at the end" \
        x.bin 1028
    { cat good; u8 0; } >x.bin
    bad "x.bin: byte 1030: extra bytes after the 3 tokens that the header\
 declares"
    spoilt "x.bin: byte 0: not an llm.c token file: it starts with 1" \
        x.bin 0 4 1
    spoilt "x.bin: byte 4: unknown llm.c version 7: expected 1 for magic\
 number 20240520" x.bin 0 4 20240520 7
    spoilt "x.bin: byte 4: unknown llm.c version 1: expected 7 for magic\
 number 20240801" x.bin 0 4 20240801 1
    spoilt "x.bin: byte 8: the number of tokens is negative" \
        x.bin 0 4 20240520 1 $((0x80000003))
}

@test "nanogpt: streams of both types, cut in each way" {
    make_file raw x.bin u16 '[1,2,50256,3,50256,4]'
    tokcat --from=nanogpt --split=eos --eos-id=50256 --raw x.bin |
        cmp - <(record16 1 2 50256; record16 3 50256; record16 4)
    tokcat --from=nanogpt --split=bos --bos-id=50256 --raw <x.bin |
        cmp - <(record16 1 2; record16 50256 3; record16 50256 4)
    gives 16 '1 2 50256 3, 50256 4' --from=nanogpt --split=4 x.bin
    gives 16 '1 2 50256 3 50256 4' --from=nanogpt --split=6 x.bin
    make_file raw x.bin u32 '[1,70000,2]'
    gives 32 '1 70000, 2' --from=nanogpt --split=eos --eos-id=70000 -t u32 x.bin
    gives 32 '1 70000, 2' --from=nanogpt --split=2 --vocab=100k x.bin
}

@test "nanogpt: a sequence ends with its file" {
    make_file raw x.bin u16 '[1,9,2]'
    make_file raw y.bin u16 '[3,9]'
    : >z.bin
    tokcat --from=nanogpt --split=eos --eos-id=9 --raw x.bin z.bin y.bin |
        cmp - <(record16 1 9; record16 2; record16 3 9)
    cat x.bin y.bin |
        gives 16 '1 9, 2 3 9' --from=nanogpt --split=eos --eos-id=9
}

@test "nanogpt: the special tokens are declared" {
    make_file raw x.bin u16 '[1,9]'
    tokcat --from=nanogpt --split=eos --eos-id=9 --pad-id=0 x.bin >got
    stream '{"special": {"eos": 9, "pad": 0}, "records": [[[1, 9]]]}' |
        cmp - got
}

@test "nanogpt: the position of invalid tokens is reported" {
    make_file raw x.bin u16 '[1,2,500]'
    of nanogpt x.bin --split=1
    bad "x.bin: byte 4: 500 is not below the vocabulary size 500" --vocab=500
    make_file raw y.bin u32 '[1,2,500]'
    of nanogpt y.bin --split=1
    bad "y.bin: byte 8: 500 is not below the vocabulary size 500" --vocab=500 \
        -t u32
    # Complete sequences before it have been passed on.
    run --separate-stderr into got \
        tokcat --from=nanogpt --split=1 --vocab=500 --raw x.bin
    cmp got <(record16 1; record16 2)
    truncate -s 5 x.bin
    of nanogpt x.bin --split=1
    bad "x.bin: byte 5: the file ends within a token"
    is 65 "tokcat: stdin: byte 5: the file ends within a token" \
        tokcat --from=nanogpt --split=1 <x.bin
    bad "x.bin: byte 5: the file ends within a token: check --type" -t u32
    is 1 "tokcat: nothing.bin: No such file or directory" \
        tokcat --from=nanogpt --split=1 nothing.bin
}

@test "streams: sequences of all lengths around the blocks that are read" {
    # Sequences of 65536 numbers end anywhere in a block.
    local every
    head -c 600000 /dev/urandom >x.bin
    for every in 65535 65536 65537 131072 131073 300000 300001; do
        tokcat --from=nanogpt --split=$every --raw -o got x.bin
        split -b $((2 * every)) -a 3 x.bin piece.
        for piece in piece.*; do
            u32 $(($(size "$piece") / 2)) && cat "$piece"
        done | cmp - got
        rm piece.*
    done
}

@test "streams: cut at random offsets, also from a slow pipe" {
    "$PYTHON_NUMPY" -c '
import numpy
r = numpy.random.default_rng(7)
a = r.integers(0, 300, 400000).astype("<u2")
a[r.integers(0, a.size, 40)] = 999
# Numbers are read in blocks of 131072 or 65536.
a[[65535, 65536, 131071, 131072, 196608]] = 999
a.tofile("x.bin")
ends = numpy.flatnonzero(a == 999)
for name, edges in ("eos", ends + 1), ("bos", ends):
    with open(name, "wb") as file:
        for piece in numpy.split(a, edges):
            if piece.size:
                file.write(numpy.uint32(piece.size).tobytes())
                file.write(piece.tobytes())
numpy.save("x.npy", a.astype("<i8"))'
    local split
    for split in eos bos; do
        tokcat --from=nanogpt --split=$split --$split-id=999 --raw x.bin |
            cmp - $split
        dd if=x.bin bs=999 status=none |
            tokcat --from=nanogpt --split=$split --$split-id=999 --raw |
            cmp - $split
        tokcat --from=npy --split=$split --$split-id=999 --raw -t u16 \
            x.npy | cmp - $split
    done
}

@test "streams: a sequence too large for a record" {
    head -c 268435460 /dev/zero >x.bin
    is 65 "tokcat: x.bin: sequence 0 at byte 0: the sequence exceeds\
 134217728 tokens, the most a record can hold" \
        tokcat --from=nanogpt --split=200M x.bin
    tokcat --from=nanogpt --split=134217728 --raw x.bin | wc -c |
        grep -x ' *268435468'
}

# ------------------------------------------------------------------- numpy

@test "npy: one dimension of every integer type" {
    local type
    for type in u1 i1 u2 i2 u4 i4 u8 i8; do
        make_file npy x.npy "<$type" '[1,100,9,3]'
        gives 16 '1 100 9, 3' --from=npy --split=eos --eos-id=9 -t u16 x.npy
        gives 32 '1 100 9, 3' --from=npy --split=eos --eos-id=9 -t u32 <x.npy
    done
}

@test "npy: the token type follows the array's" {
    local type
    for type in u1 i1 u2 i2; do
        make_file npy x.npy "<$type" '[1,2]'
        tokcat --from=npy --split=9 --raw x.npy | cmp - <(record16 1 2)
    done
    for type in u4 i4 u8 i8; do
        make_file npy x.npy "<$type" '[1,2]'
        tokcat --from=npy --split=9 --raw x.npy | cmp - <(record32 1 2)
    done
    gives 16 '1 2' --from=npy --split=9 --vocab=100 x.npy
}

@test "npy: a row is a sequence, without its padding if requested" {
    make_file npy x.npy i4 '[[1,2,0],[3,0,0],[0,4,0]]'
    gives 16 '1 2 0, 3 0 0, 0 4 0' --from=npy -t u16 x.npy
    gives 16 '1 2, 3, 0 4' --from=npy -t u16 --trim-pad --pad-id=0 x.npy
    # Declaring the padding does not remove it.
    tokcat --from=npy -t u16 --pad-id=0 x.npy | packstat --histogram - >got
    [ "$(cat got)" = '3 3' ]
    gives 32 '1 2, 3, 0 4' --from=npy --trim-pad --pad-id=0 x.npy
    make_file npy x.npy u2 '[[7,5],[7,7],[5,7],[7,7]]'
    is 0 "tokcat: 2 empty rows skipped" \
        tokcat --from=npy --raw --trim-pad --pad-id=7 -o got x.npy
    cmp got <(record16 7 5; record16 5)
    is 65 "tokcat: x.npy: row 1 at byte 132: no tokens" tokcat --from=npy \
        --trim-pad --pad-id=7 --empty=error x.npy
}

@test "npy: rows longer than a block, of token and other types" {
    "$PYTHON_NUMPY" -c '
import numpy
a = (numpy.arange(600000) % 65536).reshape(3, -1)
numpy.save("u2.npy", a.astype("<u2"))
numpy.save("i8.npy", a.astype("<i8"))
with open("wanted", "wb") as file:
    for row in a:
        file.write(numpy.uint32(row.size).tobytes())
        file.write(row.astype("<u2").tobytes())'
    tokcat --from=npy --raw u2.npy | cmp - wanted
    tokcat --from=npy --raw -t u16 <i8.npy | cmp - wanted
}

@test "npy: versions, blanks, quotes and the order of keys" {
    local version
    for version in 1 2 3; do
        make_file npy x.npy u2 '[1,2]' version$version
        [ "$(number x.npy 6 1)" = $version ]
        tokcat --from=npy --split=9 --raw x.npy | cmp - <(record16 1 2)
    done
    { header '{"shape":(2,),"descr":"<u2","fortran_order":False}'
        u16 1 2; } | gives 16 '1 2' --from=npy --split=9
    { header " { 'fortran_order' : False , 'shape' : ( 1 , 2 , ) ,
        'descr' : '<u2' , } "
        u16 1 2; } | tokcat --from=npy --raw | cmp - <(record16 1 2)
}

@test "npy: Python 2's long integers" {
    local shape dictionary="{'descr': '<u2', 'fortran_order': False, 'shape': "
    for shape in '(1L, 2L)' '(1, 2L)' '( 1L , 2 , )'; do
        { header "$dictionary$shape, }"; u16 1 2; } >x.npy
        tokcat --from=npy --raw x.npy | cmp - <(record16 1 2)
    done
    { header "$dictionary(2L,), }"; u16 1 2; } >x.npy
    tokcat --from=npy --split=9 --raw x.npy | cmp - <(record16 1 2)
    # numpy wrote version 3.0 only under Python 3, and does not read it here.
    header "$dictionary(2L,), }" 3 >x.npy
    of npy x.npy
    bad "x.npy: byte 64: 'shape' is not a tuple of valid sizes"
}

@test "npy: arrays without elements" {
    make_file npy x.npy u2 '[]'
    tokcat --from=npy --split=9 --raw x.npy | cmp - /dev/null
    "$PYTHON_NUMPY" -c '
import numpy
numpy.save("none.npy", numpy.zeros((0, 5), "<u2"))
numpy.save("empty.npy", numpy.zeros((10 ** 15, 0), "<u2"))'
    tokcat --from=npy --raw none.npy | cmp - /dev/null
    is 0 "tokcat: 1000000000000000 empty rows skipped" \
        tokcat --from=npy --raw empty.npy
    is 65 "tokcat: empty.npy: row 0 at byte 128: no tokens" \
        tokcat --from=npy --empty=error empty.npy
}

@test "npy: more empty rows than can be counted" {
    header "{'descr': '|u1', 'fortran_order': False, \
'shape': (9223372036854775807, 0), }" >x.npy
    is 0 "tokcat: 9223372036854775807 empty rows skipped" \
        tokcat --from=npy --raw x.npy
    is 0 "tokcat: 18446744073709551615 empty rows skipped" \
        tokcat --from=npy --raw x.npy x.npy x.npy
}

@test "npy: arrays that cannot be tokens are named in the message" {
    local type
    make_file npy x.npy '>u2' '[1]'
    of npy x.npy --split=1
    bad "x.npy: byte 21: a big-endian array: --from=npy reads little-endian\
 arrays"
    for type in f4 bool; do
        make_file npy x.npy $type '[1]'
        bad "x.npy: byte 21: not an array of integers: token ids are integers"
    done
    make_file npy x.npy object '[1]'
    bad "x.npy: byte 21: an array of pickled objects: --from=npy reads\
 integers"
    of npy x.npy
    make_file npy x.npy i4 '[[1,2],[3,4]]' fortran
    bad "x.npy: byte 44: an array in Fortran order: --from=npy reads arrays\
 in C order"
    make_file npy x.npy i4 '[[[1]]]'
    bad "x.npy: byte 68: an array of more than two dimensions"
    make_file npy x.npy i4 '3'
    bad "x.npy: byte 62: an array of zero dimensions"
    "$PYTHON_NUMPY" -c '
import numpy
numpy.save("x.npy", numpy.zeros(2, [("a", "<u2"), ("b", "<u4")]))'
    bad "x.npy: byte 20: an array of records: --from=npy reads integers"
}

# header DICTIONARY [VERSION]: the header before the numbers; default 1.0.
header() {
    printf '\223NUMPY'
    little 1 "${2-1}" 0
    little "$((${2-1} == 1 ? 2 : 4))" ${#1}
    printf '%s' "$1"
}

# bad_header WHY DICTIONARY [OPTION...]: that header is refused for WHY.
bad_header() {
    header "$2" >x.npy
    of npy x.npy
    bad "x.npy: byte $1" "${@:3}"
}

@test "npy: invalid headers" {
    local dictionary why at shape
    while IFS='|' read -r dictionary why; do
        bad_header "$why" "$dictionary"
    done <<'END'
xx|10: not a dictionary
{:|11: expected a dictionary key
{1: 2}|11: expected a dictionary key
{'descr|17: expected a dictionary key
{'a\\x': 1}|14: expected a dictionary key
{'what': 1}|17: an unknown key
{'descr', 1}|18: a key without a value
{'descr': '<u2',      'descr': '<u2'}|39: duplicate key
{'descr': 2}|20: 'descr' is not a string
{'descr': '<U12'}|21: not an array of integers: token ids are integers
{'descr': '<u3'}|21: integers of an unsupported width
{'descr': '<i0'}|21: integers of an unsupported width
{'descr': '=u2'}|21: an array of unknown byte order
{'fortran_order': 0}|28: 'fortran_order' is not True or False
{'shape': 3}|20: 'shape' is not a tuple
END
    while read -r at shape; do
        bad_header "$at: 'shape' is not a tuple of valid sizes" \
            "{'shape': $shape}"
    done <<'END'
21 (-1,)
22 (1l,)
23 (1 L,)
23 (4)
25 ( 4 )
23 (04,)
39 (9223372036854775808,)
40 (18446744073709551616,)
END
    bad_header "21: an array of unknown byte order" "{'descr': '|u2'}"
    bad_header "27: expected a comma or the end of the dictionary" \
        "{'shape': (1, 2) 'descr': '<u2'}"
    bad_header "29: one of 'descr', 'fortran_order' and 'shape' is missing" \
        "{'shape': (1, 2), }"
    bad_header "66: extra characters after the dictionary" \
        "{'descr': '<u2', 'fortran_order': False, 'shape': (1,)} x"
}

@test "npy: impossible sizes, missing bytes and extra ones" {
    local shape dictionary="{'descr': '<u2', 'fortran_order': False, 'shape': "
    local large="0: the array has more numbers than a file can hold"
    bad_header "$large" "$dictionary(9223372036854775807,)}" --split=1
    for shape in 4294967296,4294967296 4611686018427387904,0 \
        0,4611686018427387904; do
        bad_header "$large" "$dictionary($shape)}"
    done
    bad_header "74: truncated: 4294967296 tokens are missing at the end" \
        "$dictionary(4294967296,)}" --split=1
    header "$dictionary(1,134217729)}" >x.npy
    bad "x.npy: row 0 at byte 74: the sequence exceeds 134217728 tokens, the\
 most a record can hold"
    bad_header "73: the file ends within row 0, which begins at byte 73" \
        "$dictionary(2,10000000)}"
    make_file npy good u2 '[1,2]'
    of npy x.npy --split=1
    begun "x.npy: byte 131: the file ends within a token" x.npy 131
    { cat good; u8 1; } >x.npy
    bad "x.npy: byte 132: extra bytes after the array"
    make_file npy good u2 '[[1,2],[3,4]]'
    of npy x.npy
    local why="the file ends within row 1, which begins at byte 132"
    begun "x.npy: byte 134: $why" x.npy 134
    begun "x.npy: byte 133: $why, and within a token" x.npy 133
}

@test "npy: files without a header, or with part of one" {
    local version
    of npy x.npy
    printf '1234567890123' >x.npy
    bad "x.npy: byte 0: not a .npy file (use --from=nanogpt for numbers\
 without a header)"
    for version in '\0004\0000' '\0001\0001'; do
        printf '%b' "\0223NUMPY$version\0166\0000\0000\0000" >x.npy
        bad "x.npy: byte 6: unknown .npy version: only 1.0, 2.0 and 3.0 are\
 supported"
    done
    printf '\223NUMPY\002\000\377\377\377\377' >x.npy
    bad "x.npy: byte 8: the header exceeds 20000 bytes"
    printf '\223NUMPY\001\000\166\000{ ' >good
    begun "x.npy: byte 11: the file ends within the header" x.npy 11
    begun "x.npy: byte 12: the file ends within the header" x.npy 12
}

@test "npy: tokens that do not fit" {
    local type array why
    of npy x.npy --split=1
    while read -r type array why; do
        make_file npy x.npy "$type" "[$array]"
        bad "x.npy: byte $why"
    done <<'END'
i8 5,-3 136: -3 is negative
i1 5,-128 129: -128 is negative
i8 -9223372036854775808 128: -9223372036854775808 is negative
u8 18446744073709551615 128: 18446744073709551615 does not fit u32
END
    make_file npy x.npy i4 '[[65536,1]]'
    of npy x.npy
    bad "x.npy: byte 128: 65536 does not fit u16: use --type=u32" -t u16
    bad "x.npy: byte 128: 65536 is not below the vocabulary size 10" --vocab=10
}

@test "npy: options that the number of dimensions excludes" {
    of npy x.npy
    make_file npy x.npy u2 '[1,2]'
    bad "x.npy: byte 0: a one-dimensional array needs --split=eos,\
 --split=bos or --split=N"
    bad "x.npy: byte 0: --trim-pad needs a two-dimensional array, which has\
 rows to trim" --split=1 --trim-pad --pad-id=0
    make_file npy x.npy u2 '[[1,2]]'
    bad "x.npy: byte 0: --split cannot be used with a two-dimensional array,\
 in which each row is a sequence" --split=1
}

# ---------------------------------------------------------------- Megatron

@test "megatron: sequences, and documents of several" {
    local type name
    for type in u8 i8 u16 i16 i32 i64; do
        make_file megatron x $type '[[[1,2],[3]],[[4,5,6]]]'
        for name in x x.idx x.bin; do
            gives 16 '1 2, 3, 4 5 6' --from=megatron -t u16 $name
        done
        gives 32 '1 2, 3, 4 5 6' --from=megatron --split=sequence -t u32 x
        gives 16 '1 2 3, 4 5 6' --from=megatron --split=document -t u16 x
    done
}

@test "megatron: the token type follows the data's" {
    make_file megatron x u16 '[[[1]]]'
    make_file megatron y i32 '[[[70000]]]'
    tokcat --from=megatron --raw x | cmp - <(record16 1)
    tokcat --from=megatron --raw y x | cmp - <(record32 70000; record32 1)
    is 65 "tokcat: y.bin: byte 0: 70000 does not fit u16: use --type=u32" \
        tokcat --from=megatron x y
}

@test "megatron: no tokens, and modes for text only" {
    make_file megatron x u16 '[[[],[1]],[],[[]],[[2],[]]]' '[0,0,0,0,0]'
    is 0 "tokcat: 3 empty sequences skipped" \
        tokcat --from=megatron --raw -o got x
    cmp got <(record16 1; record16 2)
    is 0 "tokcat: 2 empty sequences skipped" \
        tokcat --from=megatron --split=document --raw -o got x
    cmp got <(record16 1; record16 2)
    is 65 "tokcat: x.bin: sequence 0 at byte 0: no tokens" \
        tokcat --from=megatron --empty=error x
    make_file megatron x u16 '[]'
    tokcat --from=megatron --raw x | cmp - /dev/null
    tokcat --from=megatron --raw --split=document x | cmp - /dev/null
}

@test "megatron: sequences can be in any order, and repeated" {
    make_file megatron x u16 '[[[1,2],[3],[4,5,6]]]'
    # Offsets of the three, after 34 bytes and three lengths.
    put x.idx 46 8 6 0 2
    gives 16 '4 5, 1, 2 3 4' --from=megatron x
}

@test "megatron: many sequences, some longer than a block" {
    "$PYTHON_NUMPY" -c '
import json, numpy
r = numpy.random.default_rng(3)
lengths = [int(n) for n in r.integers(0, 90, 3000)] + [200000, 1, 70000]
values = r.integers(0, 65536, sum(lengths))
places = numpy.cumsum([0] + lengths)
numpy.save("lengths", lengths)
for name, kind, code in ("a", "<u2", 8), ("b", "<i4", 4):
    values.astype(kind).tofile(name + ".bin")
    width = numpy.dtype(kind).itemsize
    with open(name + ".idx", "wb") as file:
        file.write(b"MMIDIDX\0\0" + numpy.uint64(1).tobytes())
        file.write(bytes([code]) + numpy.array(
            [len(lengths), len(lengths) + 1], "<u8").tobytes())
        file.write(numpy.array(lengths, "<i4").tobytes())
        file.write((places[:-1] * width).astype("<i8").tobytes())
        file.write(numpy.arange(len(lengths) + 1, dtype="<i8").tobytes())
with open("wanted", "wb") as file:
    for i, n in enumerate(lengths):
        if n:
            file.write(numpy.uint32(n).tobytes())
            file.write(values[places[i]:places[i + 1]].astype("<u2"))'
    local name split
    for name in a b; do
        for split in sequence document; do
            tokcat -q --from=megatron --split=$split --raw -t u16 $name |
                cmp - wanted
        done
    done
}

@test "megatron: an invalid index, or one with different counts" {
    make_file megatron x u16 '[[[1,2],[3]],[[4]]]'
    cp x.idx good
    of megatron x
    begun "x.idx: byte 33: the file ends within the header" x.idx 33
    cp good x.idx
    flip x.idx 7
    bad "x.idx: byte 0: not a Megatron index"
    spoilt "x.idx: byte 9: unknown index version 2: only 1 is supported" \
        x.idx 9 8 2
    spoilt "x.idx: byte 17: the data are floating-point numbers: token ids\
 are integers" x.idx 17 1 7
    spoilt "x.idx: byte 17: unknown data type 0" x.idx 17 1 0
    spoilt "x.idx: byte 17: unknown data type 9" x.idx 17 1 9
    spoilt "x.idx: byte 18: 4 sequences and 3 document entries need 106\
 bytes, but the file has 94" x.idx 18 8 4
    spoilt "x.idx: byte 18: 18446744073709551615 sequences and 3 document\
 entries exceed the size of the file" x.idx 18 8 -1
    spoilt "x.idx: byte 18: 3 sequences and 1000 document entries exceed the\
 size of the file" x.idx 18 8 3 1000
    { cat good; u8 0 0; } >x.idx
    bad "x.idx: byte 18: 3 sequences and 3 document entries need 94 bytes,\
 but the file has 96"
}

@test "megatron: impossible lengths, offsets and modes" {
    of megatron x
    make_file megatron x u16 '[[[1,2],[3]],[[4]]]' '[0,0,1]'
    bad "x.idx: byte 96: sequence 2 has mode 1, which is not text"
    make_file megatron x u16 '[[[1,2],[3]],[[4]]]'
    cp x.idx good
    local n
    spoilt "x.idx: byte 38: sequence 1 has a negative length" x.idx 38 4 -1
    for n in 3 2147483647; do
        spoilt "x.idx: byte 54: sequence 1, $n tokens from byte 4, is outside\
 the 8 bytes of the data" x.idx 38 4 $n
    done
    for n in 9 -2; do
        spoilt "x.idx: byte 46: sequence 0, 2 tokens from byte $n, is outside\
 the 8 bytes of the data" x.idx 46 8 $n
    done
    cp good x.idx
    truncate -s 7 x.bin
    bad "x.idx: byte 62: sequence 2, 1 tokens from byte 6, is outside the 7\
 bytes of the data"
}

@test "megatron: documents that are not consecutive" {
    make_file megatron x u16 '[[[1,2],[3]],[[4]]]'
    cp x.idx good
    of megatron x --split=document
    spoilt "x.idx: byte 70: the first document starts at sequence 1, not 0" \
        x.idx 70 8 1
    tokcat --from=megatron x >got
    local n why="invalid document: starts at sequence"
    for n in 4 -1; do
        spoilt "x.idx: byte 78: $why $n of 3, after 0" x.idx 78 8 $n
    done
    spoilt "x.idx: byte 86: $why 2 of 3, after 3" x.idx 78 8 3 2
    spoilt "x.idx: byte 94: the documents end at sequence 2 of 3" \
        x.idx 78 8 2 2
}

@test "megatron: missing files, pipes, and the output" {
    make_file megatron x u16 '[[[1]]]'
    is 64 "tokcat: --from=megatron reads two files and cannot use standard\
 input: name a file
tokcat: try 'tokcat --help'" tokcat --from=megatron <x.idx
    is 1 "tokcat: x.bin: is also an input: choose another output" \
        tokcat --from=megatron -o x.bin x.idx
    is 1 "tokcat: x.idx: is also an input: choose another output" \
        tokcat --from=megatron -o x.idx x.bin
    mv x.bin y.bin
    is 1 "tokcat: x.bin: No such file or directory" tokcat --from=megatron x
    mkfifo x.bin
    : >x.bin &
    is 1 "tokcat: x.bin: not a regular file: this form cannot be read as a\
 stream" \
        tokcat --from=megatron x
    wait
    rm x.idx
    is 1 "tokcat: x.idx: No such file or directory" tokcat --from=megatron x
}

# --------------------------------------------------------------- datatrove

@test "datatrove: documents, with and without losses" {
    make_file datatrove x.ds 2 '[[1,2],[3],[4,5,6]]'
    tokcat --from=datatrove x.ds |
        cmp - <(stream '{"records": [[[1, 2]], [[3]], [[4, 5, 6]]]}')
    make_file datatrove x.ds 2 '[[1,2],[3]]' '[[0,1],[1]]'
    tokcat --from=datatrove x.ds >got
    stream '{"channels": [["loss_mask", "u8", "token", 0]],
        "records": [[[1, 2], [0, 1]], [[3], [1]]]}' | cmp - got
    gives 16 '1 2, 3' --from=datatrove --ignore=loss_mask x.ds
    make_file datatrove x.ds 4 '[[1,70000],[3]]' '[[0,1],[1]]'
    tokcat --from=datatrove -t u32 x.ds x.ds >got
    stream '{"width": 4, "channels": [["loss_mask", "u8", "token", 0]],
        "records": [[[1, 70000], [0, 1]], [[3], [1]],
            [[1, 70000], [0, 1]], [[3], [1]]]}' | cmp - got
}

@test "datatrove: documents longer than a block, and empty ones" {
    "$PYTHON_NUMPY" -c '
import numpy
r = numpy.random.default_rng(5)
lengths = [300000, 0, 1, 140000, 140001]
ends = numpy.cumsum(lengths)
tokens = r.integers(0, 65536, ends[-1]).astype("<u2")
losses = r.integers(0, 2, ends[-1]).astype("u1")
tokens.tofile("x.ds")
ends.astype("<u8").tofile("x.ds.index")
losses.tofile("x.ds.loss")
with open("wanted", "wb") as file:
    for n, end in zip(lengths, ends):
        if n:
            file.write(numpy.uint32(n).tobytes())
            file.write(tokens[end - n:end].tobytes())
            file.write(losses[end - n:end].tobytes())'
    is 0 "tokcat: 1 empty document skipped" tokcat --from=datatrove -o got \
        x.ds
    # Between a header with one channel, and LENGTHS of four, and END.
    tail -c +$((136 + 64 + 1)) got | head -c -$((36 + 4 * 12 + 32)) |
        cmp - wanted
    is 65 "tokcat: x.ds: document 1 at byte 600000: no tokens" \
        tokcat --from=datatrove --empty=error x.ds
}

@test "datatrove: files that do not belong together" {
    make_file datatrove x.ds 2 '[[1,2],[3]]' '[[0,1],[1]]'
    cp x.ds.index good
    of datatrove x.ds
    local why="but the data have 6 bytes at 2 per token: check --type"
    bad "x.ds.index: byte 16: the last document ends at token 3,\
 ${why/2/4}" -t u32
    spoilt "x.ds.index: byte 16: the last document ends at token 4, $why" \
        x.ds.index 8 8 4
    spoilt "x.ds.index: byte 0: invalid document in a file of 3 tokens: it\
 starts at 0\
 and ends at 4" x.ds.index 0 8 4 3
    { u64 2 1; tail -c 8 good; } >x.ds.index
    bad "x.ds.index: byte 8: invalid document in a file of 3 tokens: it\
 starts at 2\
 and ends at 1"
    { cat good; u8 0; } >x.ds.index
    bad "x.ds.index: byte 17: the file ends within an 8-byte document end"
    begun "x.ds.index: byte 0: the last document ends at token 0, $why" \
        x.ds.index 0
    cp good x.ds.index
    u8 1 >>x.ds.loss
    bad "x.ds.loss: byte 4: the file ends, but it must have one byte for each\
 of the 3 tokens"
    u8 0 1 2 >x.ds.loss
    bad "x.ds.loss: byte 2: 2 is not 0 or 1"
    rm x.ds.index
    is 1 "tokcat: x.ds.index: No such file or directory" \
        tokcat --from=datatrove x.ds
}

@test "datatrove: losses of some files only, raw records, pipes, the output" {
    make_file datatrove x.ds 2 '[[1]]' '[[1]]'
    make_file datatrove y.ds 2 '[[2]]'
    is 65 "tokcat: y.ds.index: has no loss file, but the first input does:\
 use --ignore=loss_mask" tokcat --from=datatrove x.ds y.ds
    is 65 "tokcat: x.ds.loss: the first input has no loss file: use\
 --ignore=loss_mask" tokcat --from=datatrove y.ds x.ds
    gives 16 '2, 1' --from=datatrove --ignore=loss_mask y.ds x.ds
    of datatrove x.ds --raw
    bad "x.ds: document 0 at byte 0: loss_mask: --raw stores no channels: use\
 --ignore=loss_mask, or write framed records"
    is 64 "tokcat: --from=datatrove reads several files and cannot use\
 standard input: name a file
tokcat: try 'tokcat --help'" tokcat --from=datatrove - <x.ds
    is 1 "tokcat: x.ds.loss: is also an input: choose another output" \
        tokcat --from=datatrove -o x.ds.loss x.ds
    is 1 "tokcat: y.ds.index: is also an input: choose another output" \
        tokcat --from=datatrove -o y.ds.index x.ds y.ds
}

# ---------------------------------------------------------------- --ignore

@test "--ignore without effect gets a warning" {
    local warning="tokcat: --ignore=lables: no key or channel has this name"
    echo '{"input_ids":[1],"labels":[1],"n":7}' >x.jsonl
    is 0 "$warning" tokcat --from=jsonl --ignore=n --ignore=lables x.jsonl
    is 0 "" tokcat -q --from=jsonl --ignore=lables x.jsonl
    is 0 "" tokcat --from=jsonl --ignore=labels --ignore=n --raw x.jsonl
    # The key can be in any record, as a list or not; no records, no warning.
    { cat x.jsonl; echo '{"input_ids":[2],"labels":[2],"n":1,"lables":""}'
    } >y.jsonl
    is 0 "" tokcat --from=jsonl --ignore=lables x.jsonl y.jsonl
    is 0 "" tokcat --from=jsonl --ignore=lables /dev/null
    u16 1 2 >x.ds
    u64 2 >x.ds.index
    warning="tokcat: --ignore=loss_mask: no key or channel has this name"
    is 0 "$warning" tokcat --from=datatrove --ignore=loss_mask x.ds
    u8 0 1 >x.ds.loss
    is 0 "" tokcat --from=datatrove --ignore=loss_mask --raw x.ds
}

@test "--ignore of features that no example has gets a warning" {
    make_file tfrecord x '[{"input_ids":[5,6],"input_mask":[1,1],
        "segment_ids":[0,1],"masked_lm_ids":[7],"masked_lm_weights":[1.0]}]'
    is 0 "tokcat: --ignore=next_sentence_label: no key or channel has this\
 name" \
        tokcat --from=tfrecord --raw --ignore=token_type_ids \
        --ignore=labels --ignore=next_sentence_label x
}

# ---------------------------------------------------------------- TFRecord

sample='{"input_ids":[101,5,103,102,0],"input_mask":[1,1,1,1,0],
    "segment_ids":[0,0,1,1,0],"masked_lm_positions":[2,0],
    "masked_lm_ids":[7,0],"masked_lm_weights":[1.0,0.0],
    "next_sentence_labels":[1]}'
channels='"labels": 1, "channels": [["token_type_ids", "u8", "token", 0],
    ["labels", "i32", "token", -100],
    ["next_sentence_label", "i32", "sequence", -1]]'
record='[[101, 5, 103, 102], [0, 0, 1, 1], [-100, -100, 7, -100], 1]'

@test "tfrecord: a sample with all features, in every valid encoding" {
    local way
    stream "{$channels, \"records\": [$record, $record]}" >wanted
    for way in packed single mixed reversed unknown; do
        make_file tfrecord x.tfrecord "[$sample,$sample]" $way
        tokcat --from=tfrecord x.tfrecord | cmp - wanted
        dd if=x.tfrecord bs=7 status=none | tokcat --from=tfrecord |
            cmp - wanted
    done
}

@test "tfrecord: only some of the features, in each of two files" {
    make_file tfrecord x '[{"input_ids":[5,6],"input_mask":[1,0]}]'
    tokcat --from=tfrecord x x | cmp - <(stream '{"records": [[[5]], [[5]]]}')
    tokcat --from=tfrecord --raw -t u32 x | cmp - <(record32 5)
    make_file tfrecord x '[{"input_ids":[5,6],"input_mask":[1,1],
        "segment_ids":[255,1],"extra":"text","next_sentence_labels":[-7]}]'
    tokcat --from=tfrecord x >got
    stream '{"channels": [["token_type_ids", "u8", "token", 0],
        ["next_sentence_label", "i32", "sequence", -1]],
        "records": [[[5, 6], [255, 1], -7]]}' | cmp - got
}

@test "tfrecord: ignored features are not checked" {
    make_file tfrecord x '[{"input_ids":[5],"input_mask":[1],
        "segment_ids":[1,2,3],"masked_lm_positions":[0],
        "next_sentence_labels":[1.5]}]'
    tokcat --from=tfrecord --raw --ignore=token_type_ids --ignore=labels \
        --ignore=next_sentence_label x | cmp - <(record16 5)
    of tfrecord x
    bad "x: record 0 at byte 0: no feature 'masked_lm_ids'"
    make_file tfrecord x "[$sample]"
    bad "x: record 0 at byte 0: token_type_ids: --raw stores no channels: use\
 --ignore=token_type_ids, or write framed records" --raw
}

@test "tfrecord: samples without tokens" {
    make_file tfrecord x '[{"input_ids":[5],"input_mask":[0]},
        {"input_ids":[],"input_mask":[]},{"input_ids":[6],"input_mask":[1]}]'
    is 0 "tokcat: 2 empty records skipped" tokcat --from=tfrecord --raw \
        -o got x
    cmp got <(record16 6)
    is 65 "tokcat: x: record 0 at byte 0: no tokens" \
        tokcat --from=tfrecord --empty=error x
    : >x
    tokcat --from=tfrecord --raw x | cmp - /dev/null
}

@test "tfrecord: many masked positions, and weights" {
    make_file tfrecord x '[{"input_ids":[5,6,7],"input_mask":[1,1,1],
        "masked_lm_positions":[2,0,1,1],"masked_lm_ids":[9,0,8,4],
        "masked_lm_weights":[1.0,1.0,0.0,0.0]}]'
    tokcat --from=tfrecord x >got
    stream '{"labels": 1, "channels": [["labels", "i32", "token", -100]],
        "records": [[[5, 6, 7], [0, -100, 9]]]}' | cmp - got
    tokcat --from=tfrecord --labels=aligned x | cmp - got
}

@test "tfrecord: broken frames" {
    make_file tfrecord good "[$sample,$sample]"
    local n=$(($(size good) / 2)) short
    of tfrecord x
    cp good x
    flip x $((n + 3))
    bad "x: record 1 at byte $n: the length's checksum does not match"
    cp good x
    flip x $((n + 40))
    bad "x: record 1 at byte $n: the record's checksum does not match"
    for short in $((n + 11)) $((2 * n - 1)); do
        begun "x: record 1 at byte $n: the file ends within the record, at byte\
 $short" x $short
    done
    gzip -c good >x
    bad "x: record 0 at byte 0: the length's checksum does not match; this\
 looks like gzip (use gzip -dc)"
    gzip -dc x | tokcat --from=tfrecord | cmp - <(tokcat --from=tfrecord good)
    make_file head x 4294967296
    bad "x: record 0 at byte 0: a record of 4294967296 bytes exceeds the\
 limit of 67108864"
}

# bad_samples: lines WHY|CHANGES|OPTION; a second sample with these features
# changed, or removed if they are null, is refused for WHY.
bad_samples() {
    local why option n=0
    cat >cases
    cut -d '|' -f 2 cases | make_file changed x "$sample"
    while IFS='|' read -r why _ option; do
        of tfrecord x.$n
        bad "x.$n: record 1 at byte 216: $why" ${option:+"$option"}
        n=$((n + 1))
    done <cases
}

@test "tfrecord: records that are not samples of BERT" {
    local why broken=0a300a140a09696e7075745f69647312071a050a030105ff0a180a
    make_file tfrecord x "[$sample]"
    [ "$(size x)" = 216 ]
    # The last is a list that ends within a number, of a needed feature.
    broken+=0a696e7075745f6d61736b120a1a080a06010101010101
    {
        for why in input_ids input_mask; do
            printf '%s\n' "no feature '$why'|\"$why\": null" \
                "$why: not a list of integers|\"$why\": \"a\"" \
                "$why: not a list of integers|\"$why\": [1.5]"
        done
        for why in segment_ids masked_lm_positions masked_lm_ids \
            next_sentence_labels; do
            echo "$why: not a list of integers|\"$why\": [1.5]"
        done
        for why in masked_lm_positions masked_lm_ids masked_lm_weights; do
            echo "no feature '$why'|\"$why\": null"
        done
        cat <<END
masked_lm_weights: not a list of floats|"masked_lm_weights": [1,0]
not a tf.train.Example|ff
not a tf.train.Example|0a05
input_ids: malformed list|$broken
END
    } | bad_samples
    # A feature that occurs twice.
    make_file tfrecord x "[$sample]" segment_ids
    of tfrecord x
    bad "x: record 0 at byte 0: not a tf.train.Example"
}

@test "tfrecord: features that the first record had, or lacked" {
    bad_samples <<END
no feature 'segment_ids', which the first record has: use --ignore|"segment_ids": null
no feature 'next_sentence_labels', which the first record has: use --ignore|\
"next_sentence_labels": null
no feature 'masked_lm_positions', which the first record has: use --ignore|\
"masked_lm_positions": null, "masked_lm_ids": null, "masked_lm_weights": null
END
    make_file tfrecord x "[{\"input_ids\":[5],\"input_mask\":[1]},$sample]"
    of tfrecord x
    bad "x: record 1 at byte 59: the feature 'segment_ids' is not in the\
 first record: use --ignore"
}

@test "tfrecord: lists whose lengths disagree" {
    bad_samples <<END
input_mask has length 4, but input_ids has length 5|"input_mask": [1,1,1,0]
segment_ids has length 6, but input_ids has length 5|"segment_ids": [0,0,0,0,0,0]
masked_lm_ids has length 1, but masked_lm_positions has length 2|\
"masked_lm_ids": [7]
masked_lm_weights has length 3, but masked_lm_positions has length 2|\
"masked_lm_weights": [1.0, 0.0, 0.0]
next_sentence_labels: 2 values, expected one|"next_sentence_labels": [1, 1]
next_sentence_labels: 0 values, expected one|"next_sentence_labels": []
END
}

@test "tfrecord: invalid values" {
    bad_samples <<END
input_mask[1]: 2 is not 0 or 1|"input_mask": [1,2,1,1,0]
input_mask[0]: -1 is not 0 or 1|"input_mask": [-1,1,1,1,0]
input_mask[3]: 1 comes after a 0|"input_mask": [1,1,0,1,0]
input_ids[1]: -5 is negative|"input_ids": [1,-5,1,1,0]
input_ids[1]: 65536 does not fit u16: use --type=u32|"input_ids": [1,65536,1,1,0]
input_ids[1]: 4294967296 does not fit u32|"input_ids": [1,4294967296,1,1,0]|\
-tu32
input_ids[1]: 500 is not below the vocabulary size 500|\
"input_ids": [1,500,1,1,0]|--vocab=500
segment_ids[2]: 256 does not fit u8|"segment_ids": [0,0,256,1,0]
next_sentence_labels[0]: 2147483648 does not fit i32|\
"next_sentence_labels": [2147483648]
next_sentence_labels[0]: -2147483649 does not fit i32|\
"next_sentence_labels": [-2147483649]
masked_lm_positions[0]: 4 is not the position of a token|"masked_lm_positions": [4,0]
masked_lm_positions[0]: -1 is not the position of a token|"masked_lm_positions": [-1,0]
masked_lm_positions[1]: 2 is listed twice|\
"masked_lm_positions": [2,2], "masked_lm_weights": [1.0,1.0]
masked_lm_ids[0]: -7 is negative|"masked_lm_ids": [-7,0]
masked_lm_ids[0]: 2147483648 does not fit u32|"masked_lm_ids": [2147483648,0]|\
-tu32
masked_lm_weights[0]: 0.5 is not 0 or 1: labels have no weights|\
"masked_lm_weights": [0.5,0.0]
END
    # Padding can hold any value.
    make_file changed x "$sample" <<'END'
"input_ids": [101,5,103,102,-9], "segment_ids": [0,0,1,1,999]
END
    tokcat --from=tfrecord x.0 |
        cmp - <(stream "{$channels, \"records\": [$record, $record]}")
}

# ------------------------------------------------------------------ options

@test "options that do not fit a form, or are missing" {
    local form
    for form in llmc nanogpt; do
        bad_option "--from=$form needs --split=eos, --split=bos or --split=N" \
            --from=$form
        not_with --empty $form --split=1 --empty=skip
    done
    bad_option "--split=eos needs --eos-id" --from=llmc --split=eos
    bad_option "--split=bos needs --bos-id" --from=npy --split=bos --eos-id=1
    bad_option "--trim-pad needs --pad-id" --from=npy --trim-pad
    not_with --trim-pad tfrecord --trim-pad --pad-id=0
    not_with --split=line npy --split=line
    not_with --split=N megatron --split=3
    not_with --split=document datatrove --split=document
    not_with --split=sequence tfrecord --split=sequence
    not_with --ignore megatron --ignore=x
    not_with --ids-key tfrecord --ids-key=x
    not_with --channel datatrove --channel=x:u8
    bad_option "--labels=shifted cannot be used with --from=tfrecord, whose\
 labels are aligned" --from=tfrecord --labels=shifted
    bad_option "--split=0: must be line, paragraph, eos, bos, sequence,\
 document or a number of tokens" --from=llmc --split=0
    bad_option "--eos-id=65536 does not fit u16 tokens: use --type=u32" \
        --from=nanogpt --split=eos --eos-id=65536
    bad_option "--eos-id=65536 does not fit u16 tokens: use --type=u32" \
        --from=llmc --split=eos --eos-id=65536 -t u16
}

@test "--raw keeps no ids except those that cuts need" {
    bad_option "--bos-id cannot be used with --raw, which writes no header to\
 store it in" \
        --from=llmc --split=eos --eos-id=1 --bos-id=2 --raw
    bad_option "--pad-id cannot be used with --raw, which writes no header to\
 store it in" \
        --from=npy --split=1 --pad-id=2 --raw
}

@test "an old output is kept if the first input cannot be read" {
    echo old >x
    run -1 --separate-stderr tokcat --from=llmc --split=1 -o x nothing
    run -1 --separate-stderr tokcat --from=megatron -o x nothing
    [ "$(cat x)" = old ]
}

# ------------------------------------------------------------- other writers

# written_by PACKAGE NAME: has the package write NAME, or skips the test.
written_by() {
    local python result
    for python in ${PYTHON_PEERS-} "$PYTHON_NUMPY"; do
        result=0
        make_file peer "$@" >said 2>&1 || result=$?
        [ $result = 77 ] || break
    done
    [ $result != 77 ] || skip "no python3 has $1"
    [ $result = 0 ] || cat said
    [ $result = 0 ]
}

@test "files of Python's tfrecord package" {
    written_by tfrecord x
    tokcat --from=tfrecord x |
        cmp - <(stream "{$channels, \"records\": [$record]}")
}

@test "files of Megatron-LM" {
    written_by megatron x
    gives 32 '1 2, 70000, 4 5 6' --from=megatron x
    gives 32 '1 2 70000, 4 5 6' --from=megatron --split=document x
}

@test "files of datatrove" {
    written_by datatrove x
    tokcat --from=datatrove x >got
    stream '{"channels": [["loss_mask", "u8", "token", 0]],
        "records": [[[1, 2], [0, 1]], [[3], [1]]]}' | cmp - got
}

# ------------------------------------------------------------ there and back

# packs: records of JSON on standard input, with channels, in x.pks.
packs() {
    tokcat --from=jsonl --labels=aligned "$@" >x.tok
    packstream -L 16 x.tok >x.pks
}

@test "packcat's files for BERT are read back, with channels" {
    bert_lines 500 13 | packs --ignore=loss_mask
    packcat --to=tfrecord --max-predictions=5 x.pks |
        tokcat --from=tfrecord | cmp - x.tok
}

@test "packcat's files for datatrove are read back, with the losses" {
    bert_lines 500 13 | packs --ignore=labels --ignore=token_type_ids \
        --ignore=next_sentence_label
    packcat --to=datatrove -o x.ds x.pks
    tokcat --from=datatrove --labels=aligned x.ds | cmp - x.tok
    tokcat --from=ids --raw <(packcat --to=ids x.pks) >wanted
    tokcat --from=datatrove --ignore=loss_mask --raw x.ds | cmp - wanted
}

@test "packcat's files for Megatron-LM are read back, packs as documents" {
    bert_lines 500 13 | packs
    packcat --to=ids --order=pack x.pks | tokcat --from=ids --raw >wanted
    packcat --to=megatron -o x x.pks
    tokcat --from=megatron --raw x | cmp - wanted
    packcat --to=megatron --order=input -o y x.pks
    packcat --to=ids x.pks | tokcat --from=ids --raw >wanted
    tokcat --from=megatron --raw y | cmp - wanted
    # A document is a pack without padding.
    "$PYTHON_NUMPY" - <<'END'
import struct
with open("x.idx", "rb") as file:
    index = file.read()
n_sequences, n_entries = struct.unpack_from("<QQ", index, 18)
lengths = struct.unpack_from("<%di" % n_sequences, index, 34)
firsts = struct.unpack_from("<%dq" % n_entries, index, 34 + 12 * n_sequences)
with open("x.bin", "rb") as data, open("wanted", "wb") as file:
    for begin, end in zip(firsts, firsts[1:]):
        n = sum(lengths[begin:end])
        file.write(struct.pack("<I", n) + data.read(2 * n))
END
    tokcat --from=megatron --split=document --raw x | cmp - wanted
}

@test "packcat's files for llm.c and nanoGPT are read back, row by row" {
    bert_lines 500 13 | packs
    packcat --to=rows x.pks >x.bin
    packcat --to=llmc x.pks >y.bin
    tokcat --from=nanogpt --split=16 --raw x.bin >wanted
    [ "$(size wanted)" = $(($(size x.bin) * 36 / 32)) ]
    tokcat --from=llmc --split=16 --raw y.bin | cmp - wanted
}

# ------------------------------------------------------------------- damage

# damaged FILE FLIPS GOOD OPTION...: see imports.py.
damaged() {
    skip_if_quick
    make_file damage "$1" "$2" "$3" tokcat "${@:4}"
}

@test "damage: llm.c" {
    make_file llmc x.bin '[9,1,2,9,3]'
    damaged x.bin any none --from=llmc --split=bos --bos-id=9 x.bin
}

@test "damage: numpy" {
    make_file npy x.npy i4 '[[1,2],[3,4]]'
    damaged x.npy any none --from=npy -t u16 x.npy
}

@test "damage: Megatron" {
    make_file megatron x i32 '[[[1,2],[3]],[[4]]]' '[0,0,0]'
    # Without the modes the file is complete as well.
    damaged x.idx any 94 --from=megatron x
    damaged x.idx any 94 --from=megatron --split=document x
    damaged x.bin any none --from=megatron x
}

@test "damage: datatrove" {
    make_file datatrove x.ds 2 '[[1,2],[3]]' '[[0,1],[1]]'
    damaged x.ds any none --from=datatrove x.ds
    damaged x.ds.index any none --from=datatrove x.ds
    damaged x.ds.loss any none --from=datatrove x.ds
}

@test "damage: TFRecord" {
    make_file tfrecord x "[$sample,$sample]"
    damaged x refused 0,216 --from=tfrecord x
}
