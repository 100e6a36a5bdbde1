#!/usr/bin/env bats
# lists.bats - list channels: each sequence has a list of its own length, which
# goes into an array of its own in the rows.
#
# SPDX-License-Identifier: MIT

# bad_option uses `program` and `operands`.
# shellcheck disable=SC2034

load ../support/helpers

setup() {
    start
    skip_without python3
}

@test "random lists and vectors are packed whole, also after a resume" {
    support lists.py trials 0 "${LONG:+20}10"
}

# pairs N: JSON lines of N pairs of texts, the first one for an encoder, and of
# the edges between its words.
pairs() {
    awk -v n="$1" 'BEGIN {
        srand(5)
        for (k = 0; k < n; k++) {
            m = int(1 + 30 * rand())
            printf "{\"input_ids\":["
            for (i = 0; i < m; i++) printf "%s%d", (i ? "," : ""), k % 900
            printf "],\"encoder_ids\":["
            m = int(50 * rand())
            for (i = 0; i < m; i++) printf "%s%d", (i ? "," : ""), i
            printf "],\"edges\":["
            for (i = 1; i < m; i += 2)
                printf "%s[%d,%d]", (i > 1 ? "," : ""), i, 0
            print "]}"
        }
    }'
}

@test "JSON Lines: declared lists come back as they were" {
    pairs 2000 >x.jsonl
    tokcat -q --from=jsonl --channel=encoder_ids:u16[] \
        --channel=edges:u8[2][]:9 x.jsonl >x.tok
    packstream -L 256 --budget=encoder_ids:400 --budget=edges:200 \
        -o x.pks x.tok
    packstat --verify -q --against=x.tok x.pks
    packcat --to=jsonl x.pks | cmp - x.jsonl
    packcat x.pks | cmp - x.tok
}

@test "the statistics show lists and how their room is used" {
    pairs 2000 | tokcat -q --from=jsonl --channel=encoder_ids:u16[] \
        --channel=edges:u8[2][] >x.tok
    packstat x.tok >out
    grep -E '^  channels       encoder_ids +u16\[\] per sequence$' out
    packstream -L 256 --budget=edges:200 -o x.pks x.tok
    packstat x.pks >out
    grep -E '^ +edges +u8\[2\]\[\] per sequence$' out
    # Without a budget, a list has as many elements in a row as tokens.
    grep -E '^  budgets        edges +200, ' out
    grep -E '^                 encoder_ids +256, ' out
}

@test "--to=trl has the lists of a pack one after the other, and lengths" {
    printf '%s\n' '{"input_ids":[1,2],"edges":[[0,1],[1,0]],"a":[]}' \
        '{"input_ids":[3],"edges":[],"a":[]}' |
        tokcat -q --from=jsonl --channel=edges:i32[2][] --channel=a:u8[] |
        packstream -L 4 | packcat --to=trl >out
    grep -F '"edges":[[0,1],[1,0]],"edges_lengths":[0,2],"a":[],' out ||
        grep -F '"edges":[[0,1],[1,0]],"edges_lengths":[2,0],"a":[],' out
    grep -F '"a":[],"a_lengths":[0,0]}' out
    echo '{"input_ids":[1],"a":[5],"a_lengths":7}' |
        tokcat -q --from=jsonl --channel=a:u8[] | packstream -L 4 >x.pks
    run -65 packcat --to=trl x.pks
    [[ $output = *"channel 'a_lengths': --to=trl uses this name itself" ]]
}

@test "an npy file has lists of the budget's length" {
    skip_without_numpy
    pairs 200 | tokcat -q --from=jsonl --channel=encoder_ids:u16[] \
        --channel=edges:u8[2][]:9 >x.tok
    packstream -L 64 --budget=encoder_ids:100 --budget=edges:31 -o x.pks x.tok
    packstream -L 64 --budget=encoder_ids:100 --budget=edges:32 -o y.pks x.tok
    packcat --to=npy -o x.npy x.pks
    "$PYTHON_NUMPY" - x.npy x.pks <<'EOF'
import ast, sys
import numpy as np

raw = open(sys.argv[2], "rb").read()
literal = raw[2048:4088].decode("ascii").partition("\n")[0]
dtype = np.dtype(ast.literal_eval(literal))
n, = np.frombuffer(raw, "<u4", 1, 4096 + 8)
found = np.load(sys.argv[1])
assert found.dtype == dtype, found.dtype
assert found["edges"].shape[1:] == (31, 2)
assert found[:n].tobytes() == np.frombuffer(raw, dtype, n, 4160).tobytes()
EOF
    # Both have the same row size.
    refused 65 "y.pks: cannot be joined to x.pks: 'edges' has a budget of 32,\
 not 31" \
        packcat --to=npy -o y.npy x.pks y.pks
}

@test "lists that are not as declared are refused" {
    local program=tokcat operands=(--from=jsonl x.jsonl)
    # says LINE MESSAGE OPTION...
    says() {
        local line=$1 message=$2
        shift 2
        printf '%s\n' '{"input_ids":[1,2],"e":[[0,1]]}' "$line" >x.jsonl
        run -65 bash -c 'tokcat --from=jsonl "$@" x.jsonl >x.out' - "$@"
        [[ $output = *"tokcat: x.jsonl: line 2, column 24: $message" ]]
    }
    says '{"input_ids":[1,2],"e":[0,1]}' \
        'e: is not a list of vectors, as --channel declares' --channel=e:u8[2][]
    says '{"input_ids":[1,2],"e":7}' \
        'e: is not a list of vectors, as --channel declares' --channel=e:u8[2][]
    printf '%s\n' '{"input_ids":[1,2],"e":[[0,1]]}' >x.jsonl
    run -65 tokcat --from=jsonl --channel=e:u8[] x.jsonl
    [[ $output = *'e: is not a list of numbers, as --channel declares: for '*\
'vectors of N numbers, use TYPE[N][]' ]]
    printf '%s\n' '{"input_ids":[1,2],"e":[0,1,2]}' >x.jsonl
    run -65 tokcat --from=jsonl x.jsonl
    [[ $output = *'e has length 3, but input_ids has length 2: use '*\
'--ignore=e, or --channel=e:TYPE[3] for a vector per sequence, or TYPE[] for '*\
'a list of any length' ]]
    bad_option '--channel=attention_mask:u8[]: an attention mask has one '\
'number per token' --channel=attention_mask:u8[]
    bad_option '--channel=e:u8[1][]: the length of a vector, as in f32[80], '\
'must be from 2 to 16384' --channel=e:u8[1][]
}

@test "packstream: what cannot be done with lists is refused" {
    local program=packstream operands=(-L 64 x.tok)
    pairs 40 | tokcat -q --from=jsonl --channel=encoder_ids:u16[] \
        --channel=edges:u8[2][] >x.tok
    bad_option "lists need policy auto, not bestfit" -a bestfit
    bad_option "channel 'edges' has lists, but a single value is needed to \
group by" --group=edges
    bad_option "channel 'edges' has lists, but a single value is needed to \
pack by" --by=edges
    bad_option "lists cannot be combined with even_cost: use a budget for \
attention" --even-cost
    # A list that does not fit a row.
    run -65 packstream -L 64 --budget=edges:3 x.tok
    [[ $output = *': edges has length '*', but a pack can hold 0 to 3'* ]]
    packstream -q -L 64 --budget=edges:3 --overlong=drop --rejects=x.rej \
        -o x.pks x.tok
    packstat --verify -q --against=x.tok --rejects=x.rej x.pks
}
