# resumed.bash - jobs that are stopped halfway, for `load resumed`.
#
# SPDX-License-Identifier: MIT

# raw SEED: 3000 raw records of 1 to 200 tokens.
raw() {
    draw 3000 200 60000 "$1" | tokcat --from=ids --raw
}

setup_file() {
    cd "$BATS_FILE_TMPDIR" || return 1
    raw 1 >x
    raw 2 >y
}

setup() {
    start
    small_blocks 8
    cp "$BATS_FILE_TMPDIR"/[xy] .
}

# Variables that bats' `run` sets are not set here.
# shellcheck disable=SC2154

# refused STATUS WORDS FILE OPTION...: the job does not resume, and leaves FILE,
# its state s and its rejects r unchanged.
refused() {
    local wanted=$1 words=$2 file=$3 name
    shift 3
    touch r
    for name in s "$file" r; do
        cp "$name" "$name.before"
    done
    run -"$wanted" packstream -q --state=s --resume "$@"
    echo "$output"
    [[ $output == *"$words"* ]]
    [ "${#lines[@]}" -eq 1 ]
    for name in s "$file" r; do
        cmp "$name" "$name.before"
    done
}

# half_done INPUT OPTION...: runs a job whose input is cut within a record, with
# its standard output appended to `out`.
half_done() {
    local input=$1
    shift
    # shellcheck disable=SC2016 # expanded by the other shell
    run -65 bash -c 'head -c 400001 "$0" |
        packstream -q --state=s --state-every=30 "$@" >>out' "$input" "$@"
    [ -s s ]
}
