# resumed.bash - jobs that are stopped half way, for `load resumed`.
#
# SPDX-License-Identifier: MIT

# raw SEED: 3000 raw records of 1 to 200 tokens.
raw() {
    awk -v seed="$1" 'BEGIN {
        srand(seed)
        for (i = 0; i < 3000; i++) {
            n = 1 + int(200 * rand())
            line = ""
            for (k = 0; k < n; k++)
                line = line int(rand() * 60000) " "
            print line
        }
    }' | tokcat --from=ids --raw
}

setup() {
    start
    raw 1 >x
    raw 2 >y
}

# What `run` of bats sets is not set here.
# shellcheck disable=SC2154

# refused STATUS WORDS FILE OPTION...: a job that does not go on leaves FILE,
# its state s and its rejects r as they are.
refused() {
    local wanted=$1 words=$2 file=$3 name
    shift 3
    touch r
    for name in s "$file" r; do
        cp "$name" "$name.before"
    done
    run packstream -q --state=s --resume "$@"
    [ "$status" -eq "$wanted" ] || { echo "$status: $output"; return 1; }
    [[ $output == *"$words"* ]] || { echo "$output"; return 1; }
    [ "${#lines[@]}" -eq 1 ]
    for name in s "$file" r; do
        cmp "$name" "$name.before"
    done
}

# half_done INPUT OPTION...: part of a job on standard output, which is
# appended to `out`; its input is cut in a record.
half_done() {
    local input=$1
    shift
    # shellcheck disable=SC2016 # it is for the other shell
    run -65 bash -c 'head -c 400001 "$0" |
        packstream -q --state=s --state-every=30 "$@" >>out' "$input" "$@"
    [ -s s ]
}
