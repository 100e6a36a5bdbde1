# text.bash - text in which each token determines the next, for trainer tests.
#
# SPDX-License-Identifier: MIT

vocab=60
ids="--vocab=$vocab --cls-id=2 --sep-id=3 --mask-id=4"

# text [DOCUMENTS]: sentences in which each token determines the next one.  The
# same with any awk: in some, srand() has no effect on rand().
# shellcheck disable=SC2120 # train.bats passes one
text() {
    awk -v documents="${1:-150}" '
    function below(n) {
        seed = 16807 * seed % 2147483647 # Park and Miller (1988)
        return int(n * seed / 2147483647)
    }
    BEGIN {
        seed = 1234
        for (d = 0; d < documents; d++) {
            for (s = 1 + below(8); s > 0; s--) {
                line = token = 5 + below(50)
                for (n = 2 + below(7); n > 0; n--) {
                    token = 5 + (token - 5 + 7) % 50
                    line = line " " token
                }
                print line
            }
            print ""
        }
    }'
}

# sequences [OPTION]...: runs bert-sequences on stdin.
sequences() {
    # shellcheck disable=SC2086
    bert-sequences $ids --length=32 "$@"
}

records() {
    # shellcheck disable=SC2086
    tokcat -q --from=jsonl $ids --pad-id=0 --labels=aligned \
        --channel=token_type_ids:u8 --channel=labels:i32:-100 \
        --channel=next_sentence_label:i32:-1
}

# packs [OPTION]...: packs of 32 tokens, with as many sequences as fit.
packs() {
    # shellcheck disable=SC2119
    text | sequences --short=1 | records | packstream -q -L 32 "$@"
}
