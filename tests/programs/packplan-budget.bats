#!/usr/bin/env bats
# packplan-budget.bats - the bounds of packplan --budget, and its input.
#
# SPDX-License-Identifier: MIT

load ../support/helpers

# Used by bad_option.
export program=packplan

# three: three.tok, sequences of 8, 4 and 4 tokens with 0, 3 and 3 tiles.
three() {
    printf '%s\n' '{"input_ids": [1,2,3,4,5,6,7,8], "tiles": 0, "x": 0.5}' \
        '{"input_ids": [1,2,3,4], "tiles": 3, "x": 0.5}' \
        '{"input_ids": [1,2,3,4], "tiles": 3, "x": 0.5}' |
        tokcat -q --from=jsonl >three.tok
}

@test "no packing of few sequences is below the bound" {
    skip_without python3
    support planbudgets.py brute 0 "${LONG:+20}40"
}

@test "the bounds agree with a linear program" {
    local python=${PYTHON_NUMPY:-python3}
    "$python" -c 'import highspy' 2>/dev/null ||
        skip "no python3 has highspy"
    support planbudgets.py highs 0 "${LONG:+20}20"
}

@test "each limit, and all of them, by hand" {
    three
    # 8 tokens fill a pack; 3 + 3 tiles need two others.
    packplan -L 8 --budget=tiles:5 three.tok >got
    printf '%s\n' '3 sequences, 16 tokens; packs of 8 tokens, at least 3' '' \
        'resource  limit  total  bound' \
        '  tokens      8     16      2' \
        '   tiles      5      6      2' \
        '     all      -      -      3' | diff - got
    packplan -L 8 --budget=tiles:5 --budget=attention:64 --tsv three.tok >got
    printf '%s\t%s\t%s\t%s\n' resource limit total bound tokens 8 16 2.000 \
        tiles 5 6 2.000 attention 64 96 1.500 all - - 3.000 | diff - got
    packplan -L 8 --budget=tiles:6 --json three.tok >got
    echo '{"capacity": 8, "sequences": 3, "tokens": 16, "lower_bound": 2,' \
        '"bound": 2.000, "resources": [{"name": "tokens", "limit": 8,' \
        '"total": 16, "bound": 2.000}, {"name": "tiles", "limit": 6,' \
        '"total": 6, "bound": 1.000}]}' | diff - got
    # All files together, from a pipe, or compressed.
    packplan -L 8 --budget=tiles:5 --tsv - three.tok < <(cat three.tok) >got
    tail -n 1 got | grep -x $'all\t-\t-\t6.000'
    zstd -q three.tok
    packplan -L 8 --budget=tiles:5 --tsv three.tok.zst | tail -n 1 |
        grep -x $'all\t-\t-\t3.000'
}

@test "packstream needs at least as many packs as the bound, and few more" {
    awk 'BEGIN {
        srand(3)
        for (k = 0; k < 4000; k++) {
            printf "{\"tiles\": %d, \"input_ids\": [1", int(8 * rand())
            for (i = int(40 * rand()); i > 0; i--) printf ", 1"
            print "]}"
        }
    }' | tokcat -q --from=jsonl >x.tok
    packplan -L 64 --budget=tiles:12 --json x.tok >plan
    packstream -L 64 --budget=tiles:12 --stats=json -o x.pks x.tok 2>stats
    bound=$(grep -oE '"lower_bound": [0-9]+' plan | tr -dc 0-9)
    packs=$(grep -oE '"packs": [0-9]+' stats | tr -dc 0-9)
    echo "# $bound $packs"
    [ "$packs" -ge "$bound" ]
    [ $((packs * 50)) -le $((bound * 51)) ]
}

@test "a sequence above a limit is refused as by packstream, or counted" {
    three
    local options wanted
    for options in '-L 8 --budget=tiles:2' '-L 7 --budget=tiles:3' \
        '-L 8 --budget=attention:63' \
        '-L 8 --budget=tiles:2 --overlong=split'; do
        # Word splitting intended: a list of options.
        # shellcheck disable=SC2086
        run --separate-stderr -65 packstream $options -o x.pks three.tok
        # shellcheck disable=SC2154 # `run` sets it
        wanted=${stderr/#packstream/packplan}
        # shellcheck disable=SC2086
        is 65 "$wanted" packplan $options three.tok
    done
    packplan -L 8 --budget=tiles:2 --overlong=drop three.tok | sed -n 1,2p >got
    printf '%s\n' '1 sequences, 8 tokens; packs of 8 tokens, at least 1' \
        '2 exceeded a limit, and 8 tokens are lost' | diff - got
    packplan -L 8 --budget=attention:25 --overlong=split --json three.tok |
        grep -F '"overlong_sequences": 1, "lost_tokens": 0, "sequences": 4'
}

@test "other input is refused, with a remedy" {
    local why='--budget needs framed token records, because a histogram has '
    why+='only lengths'
    local text='not token records: this looks like text (use tokcat)'
    local raw='raw records, or not token records'
    three
    printf '8 1\n4 2\n' >h
    is 65 "packplan: h: $text: $why" packplan -L 8 --budget=attention:64 h
    is 65 "packplan: stdin: $text: $why" packplan -L 8 --budget=tiles:64 <h
    is 65 "packplan: h: $text: $why" \
        packplan -L 8 --budget=tiles:5 three.tok h
    little 4 2 >raw
    little 2 5 6 >>raw
    is 65 "packplan: raw: $raw: $why" packplan -L 8 --budget=attention:64 raw
    head -c -1 three.tok >cut.tok
    run -65 packplan -L 8 --budget=tiles:5 cut.tok
    flip three.tok 330
    run -65 packplan -L 8 --budget=tiles:5 three.tok
    three
    packstream -q -L 8 -o x.pks three.tok
    run -65 packplan -L 8 --budget=tiles:5 x.pks
}

@test "invalid budgets, and options that ignore budgets" {
    # shellcheck disable=SC2034 # bad_option uses it
    local operands=(-L 8 three.tok) budget option
    three
    for budget in tiles tiles: :5 tiles:0 tiles:x tiles:9T; do
        bad_option "--budget=$budget: must be CHANNEL:N or attention:N, N \
from 1 to 8Ti" --budget=$budget
    done
    bad_option '--budget=e:1: exceeds the limit of 4 budgets' --budget=a:1 \
        --budget=b:1 --budget=c:1 --budget=d:1 --budget=e:1
    for option in --plan --scaling --recommend --no-bound --lamb=0.9,0.99 \
        --overhead=5 --global-batch=4 --batch=4; do
        bad_option "--budget and ${option%%=*} cannot be combined" \
            --budget=tiles:5 "$option"
    done
    bad_option '--budget and -a cannot be combined' --budget=tiles:5 -a ffd
    bad_option '--budget needs a single depth' --budget=tiles:5 -d 2,3
    # shellcheck disable=SC2034
    operands=(--capacity="8,9" three.tok)
    bad_option '--budget needs a single capacity' --budget=tiles:5
    is 64 "packplan: three.tok: the sequences have no channel 'y' for a \
budget" packplan -L 8 --budget=y:5 three.tok
    is 64 "packplan: three.tok: channel 'x' has type f32, but a budget needs \
integers" packplan -L 8 --budget=x:5 three.tok
}

@test "no sequences: no packs, and a warning" {
    tokcat -q --from=ids </dev/null >empty.tok
    is 0 'packplan: there are no sequences' packplan -L 8 --budget=attention:9 \
        --tsv empty.tok
    [ "$(tail -n 1 <<<"$output")" = $'all\t-\t-\t0.000' ]
    if [ -w /dev/full ]; then
        run -1 sh -c 'packplan -L 8 --budget=attention:9 empty.tok >/dev/full'
    fi
}
