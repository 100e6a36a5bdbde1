#!/usr/bin/env bats
# resume-fits.bats - packstream goes on only with what fits its state: the
# options, the input and the output; else all is left as it is.
#
# SPDX-License-Identifier: MIT

load helpers

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

@test "what is before the output of the job stays" {
    packstream -q -L 256 x >px
    packstream -q -L 256 y >py
    cat px py >wanted
    cp px out
    half_done y -L 256
    packstream -q -L 256 --state=s --resume y >>out
    cmp wanted out
    # And so it does where the job has ended.
    packstream -q -L 256 --state=s --resume y >>out
    cmp wanted out
    # Where the shell goes to a place without appending.
    rm s
    cp px out
    run -65 bash -c 'head -c 400001 y | {
        tail -c 1 >&2 <&3
        packstream -q -L 256 --state=s --state-every=30
    } 3<>out 1>&3'
    packstream -q -L 256 --state=s --resume -o out y
    cmp wanted out
}

@test "a job that has ended is compared with its options" {
    packstream -q -L 256 --state=s -o out x
    refused 64 "packs of 256 tokens, not 100" out -L 100 -w 5 -o out x
    refused 64 "other options" out -L 256 -w 5 -o out x
    refused 64 "other compression" out -L 256 --zstd -o out x
    refused 64 "other tokens" out -L 256 -t u32 -o out x
    packstream -q -L 256 --state=s --resume -o out x
    # What goes elsewhere would be lacking in the file.
    refused 64 "the job of the state wrote to a file" out -L 256 \
        -o /dev/null x
    refused 64 "packs of 256 tokens, not 100" out -L 100 --resume-from=1 \
        -o /dev/null x
}

@test "a job that has ended is compared with its input" {
    packstream -q -L 256 --state=s -o out x
    refused 65 "bytes of input and not" out -L 256 -o out y
    refused 1 "none" out -L 256 -o out none
    packstream -q -L 256 --state=s --resume -o out <x
    # Of a pipe nothing is known.
    packstream -q -L 256 --state=s --resume -o out < <(cat x)
}

@test "a job that has ended is compared with its output" {
    local options other
    for options in "-L 256" "-L 256 --zstd" "-L 100000 -d 2 -w 9"; do
        echo "$options"
        rm -f s
        # shellcheck disable=SC2086
        packstream -q $options --state=s -o out x
        head -c "$(size out)" /dev/urandom >random
        # The same options, so that only the records differ.
        # shellcheck disable=SC2086
        packstream -q $options -o other y
        truncate -s "$(size out)" other
        { head -c 4096 out; tail -c +4097 random; } >behind
        for other in random other behind; do
            # shellcheck disable=SC2086
            refused 1 "is not the output" "$other" $options -o "$other" x
        done
        # shellcheck disable=SC2086
        packstream -q $options --state=s --resume -o out x
    done
}

@test "a job that has ended is compared with its rejects" {
    local options="-L 150 --overlong=drop --rejects=r -o out"
    # shellcheck disable=SC2086
    packstream -q $options --state=s x
    cp r whole
    # shellcheck disable=SC2086
    packstream -q $options --state=s --resume x
    truncate -s -1 r
    # shellcheck disable=SC2086
    refused 1 "r: has" out $options x
    head -c "$(size whole)" /dev/urandom >r
    # shellcheck disable=SC2086
    refused 1 "r: is not the output" out $options x
    rm r
    # shellcheck disable=SC2086
    run packstream -q --state=s --resume $options x
    [ "$status" -eq 1 ]
}

@test "an output of something else is not cut" {
    local options
    for options in "-L 256" "-L 256 -d auto -w 50" "-L 8192 --zstd -w 300"; do
        echo "$options"
        rm -f s out
        # shellcheck disable=SC2086
        half_done x $options
        # shellcheck disable=SC2086
        packstream -q $options -o other y
        cat other other other >longer
        cat x x >tokens
        for other in longer tokens; do
            # shellcheck disable=SC2086
            refused 1 "is not the output" "$other" $options -o "$other" x
        done
        # shellcheck disable=SC2086
        packstream -q $options --state=s --resume -o out x
        # shellcheck disable=SC2086
        packstream -q $options x | cmp - out
    done
}

@test "rejects of something else are not cut" {
    local options="-L 150 --overlong=drop --rejects=r"
    # shellcheck disable=SC2086
    half_done x $options
    mv r good
    cat y y >r
    # shellcheck disable=SC2086
    refused 1 "r: is not the output" out $options -o out x
    mv good r
    # shellcheck disable=SC2086
    packstream -q $options --state=s --resume -o out x
    cp r again
    packstream -q -L 150 --overlong=drop --rejects=r x | cmp - out
    cmp r again
}

@test "rejects that are kept nowhere go on" {
    local options="-L 150 --overlong=drop --rejects=/dev/null"
    # shellcheck disable=SC2086
    half_done x $options
    # shellcheck disable=SC2086
    packstream -q $options --state=s --resume -o out x
    # shellcheck disable=SC2086
    packstream -q $options --state=s --resume -o out x
    packstream -q -L 150 --overlong=drop x | cmp - out
    # What is a file now would lack what came before.
    refused 64 "r: the state is not of a job" out -L 150 --overlong=drop \
        --rejects=r -o out x
}

@test "nothing is cut before the input is compared" {
    local options
    for options in "-L 256" "-L 256 --zstd -w 300" \
        "-L 150 --overlong=drop --rejects=r"; do
        echo "$options"
        rm -f s out r
        # shellcheck disable=SC2086
        half_done x $options
        echo "what came after the state" >>out
        # shellcheck disable=SC2086
        refused 65 "packstream: y: " out $options -o out y
        # shellcheck disable=SC2086
        refused 65 "" out $options -o out <(head -c 200000 x)
        # shellcheck disable=SC2086
        packstream -q $options --state=s --resume -o out x
        # shellcheck disable=SC2086
        packstream -q ${options%--rejects=r} x | cmp - out
    done
}

@test "an input that ends before the state is refused" {
    # 22 bytes each, and none is held between two packs.
    yes "1 2 3 4 5 6 7 8 9" | head -40000 | tokcat --from=ids --raw >x
    local options="-L 16 -a none -d 1 -w 64 --state-every=31" n k
    # shellcheck disable=SC2086
    half_done x $options
    n=$((400001 / 22 / 31 * 31))
    # The place to go on from is one of these.
    for k in {1..10}; do
        head -c $(((n - k) * 22)) x >y
        # shellcheck disable=SC2086
        refused 65 "y: " out $options -o out y
    done
    # shellcheck disable=SC2086
    packstream -q $options --state=s --resume -o out x
    # shellcheck disable=SC2086
    packstream -q ${options% *} x | cmp - out
}

@test "into a pipe the state is compared" {
    half_done x -L 256
    refused 64 "the job of the state wrote to a file" out -L 256 \
        -o /dev/null x
    refused 64 "packs of 256 tokens, not 100" out -L 100 -w 5 \
        --resume-from=1 -o /dev/null x
    # Another input shows when the packs of the state are made again.
    refused 65 "the first" out -L 256 --resume-from=1 \
        --state-every=1 -o /dev/null y
    head -c 100000 x >part
    refused 65 "part: " out -L 256 --resume-from=1 \
        --state-every=1 -o /dev/null part
    packstream -q -L 256 --state=s --resume-from=1 --state-every=9 x |
        cat >got
    packstream -q -L 256 --resume-from=1 x | cmp - got
    # Now it is the state of a pipe, and of no file.
    refused 64 "not of a job that wrote to a file" out -L 256 -o out x
}

@test "a job that has ended is proved again" {
    packstream -q -L 256 --state=s -o out x
    packstream -q -L 256 --state=s --resume-from=5 x | cat >got
    packstream -q -L 256 --resume-from=5 x | cmp - got
    refused 65 "the first" out -L 256 --resume-from=5 -o /dev/null y
}

# A state is there from the first byte on: what follows is not written twice.
@test "a job that was stopped before its first state writes nothing twice" {
    local options how
    packstream -q -L 256 y >py
    for options in "-L 256" "-L 256 --zstd" "-L 150 --overlong=drop \
--rejects=r"; do
        # shellcheck disable=SC2086
        packstream -q ${options%--rejects=r} x >px
        cat py px >wanted
        for how in fails killed; do
            echo "$options, $how"
            rm -f s r
            cp py out
            if [ "$how" = fails ]; then
                # shellcheck disable=SC2086
                run -65 bash -c 'packstream -q --state=s --resume "$@" \
                    < <(head -c 600001 x) >>out' x $options
            else
                # shellcheck disable=SC2016,SC2086 # for the other shell
                run bash -c '{ head -c 600001 x; sleep 60 & echo $! >pid
                        wait; } |
                    timeout -s KILL 0.3 packstream -q --state=s --resume \
                    "$@" >>out; kill "$(cat pid)"' x $options
            fi
            [ -s s ]
            # shellcheck disable=SC2086
            packstream -q $options --state=s --resume x >>out
            cmp wanted out
        done
    done
}

@test "a job that did not write a pack cuts no other file" {
    echo 5 6 7 | tokcat --from=ids --raw | head -c 5 >"cut"
    cp y out
    run -65 bash -c 'packstream -q -L 256 --state=s cut >>out'
    cp out part
    cat y x >other
    cp other other.before
    run packstream -q -L 256 --state=s --resume -o other x
    [ "$status" -eq 1 ]
    [[ $output == *"is not the output of the job of the state" ]]
    cmp other other.before
    # What is before the output has to be the same, too.
    {
        head -c "$(($(size y) - 9))" y
        echo 12345678
        tail -c "+$(($(size y) + 1))" part
    } >other
    run packstream -q -L 256 --state=s --resume -o other x
    [ "$status" -eq 1 ]
    packstream -q -L 256 --state=s --resume -o part x
    { cat y; packstream -q -L 256 x; } | cmp - part
}

@test "without a state no output is gone on with" {
    packstream -q -L 256 --state=s -o out x
    cp out out.before
    run packstream -q -L 256 --state=typo --resume -o out y
    [ "$status" -eq 64 ]
    [[ $output == \
        "packstream: out: is there already, but not typo to go on from" ]]
    cmp out out.before
    [ ! -e typo ]
}

@test "an input that grew after it was read is noticed" {
    cp x x1
    head -c 500001 y >yc
    run -65 packstream -q -L 256 --state=s --state-every=30 -o out x1 yc
    cp x1 grown
    cat y >>grown
    refused 65 "of the inputs before y $(size x) bytes were read" out -L 256 \
        -o out grown y
    packstream -q -L 256 --state=s --resume -o out x1 y
    packstream -q -L 256 x y | cmp - out
    # While the job works on the next one, also.
    rm s
    mkfifo in
    packstream -q -L 256 --state=s -o out x1 - <in &
    {
        cat y
        sleep 0.3
        cat y >>x1
    } >in
    wait "$!"
    packstream -q -L 256 x y | cmp - out
    rm s
    packstream -q -L 256 --state=s -o out x y
    refused 65 "bytes of input and not" out -L 256 -o out x1 y
}

@test "SIGTERM before the next input begins saves the state" {
    mkfifo in
    sleep 20 >in &
    local holder=$! status=0
    packstream -q -L 256 --state=s -o out x in 2>told &
    local job=$!
    for _ in {1..100}; do
        [ "$(size out)" -lt 100000 ] || break
        sleep 0.1
    done
    sleep 0.3
    kill -TERM "$job"
    wait "$job" || status=$?
    kill "$holder"
    [ "$status" -eq 143 ]
    [ ! -s told ]
    cp y in2
    packstream -q -L 256 --state=s --resume -o out x y
    packstream -q -L 256 x y | cmp - out
}

@test "--resume-from leaves an output and its state alone" {
    packstream -q -L 256 --state=s -o out x
    refused 64 "out: is a file, as is the output" out -L 256 \
        --resume-from=5 -o out y
    half_done_anew() {
        rm s out
        half_done x -L 256
    }
    half_done_anew
    refused 64 "out: is a file" out -L 256 --resume-from=5 -o out x
}

@test "rejects that are written already are not written again" {
    local options="-L 150 --overlong=drop --rejects=r --state=s" from
    # shellcheck disable=SC2086
    packstream -q -L 150 --overlong=drop --rejects=all x >packs
    # shellcheck disable=SC2086
    packstream -q $options x | cat >got
    cmp got packs
    # Another input is noticed, and what is there stays.
    # shellcheck disable=SC2086
    run bash -c "packstream -q $options --resume-from=3 y | cat >got2
        exit \${PIPESTATUS[0]}"
    [ "$status" -eq 65 ]
    cmp r all
    # All of it once more, and the end alone.
    for from in --resume-from=3 --resume; do
        # shellcheck disable=SC2086
        packstream -q $options "$from" x | cat >got
        cmp r all
        tail -c 448 packs | cmp - <(tail -c 448 got)
    done
    # A job that has not ended: its rejects go on where the state was saved.
    rm s r
    # shellcheck disable=SC2086
    run -65 bash -c "head -c 400001 x |
        packstream -q $options --state-every=30 | cat >got
        exit \${PIPESTATUS[1]}"
    # shellcheck disable=SC2086
    packstream -q $options --resume-from=3 x | cat >got
    cmp r all
    packstream -q -L 150 --overlong=drop --resume-from=3 x | cmp - got
}

@test "rejects of a job with a state are no pipe" {
    mkfifo rf
    run timeout 10 packstream -q -L 150 --overlong=drop --rejects=rf \
        --state=s -o out x
    [ "$status" -eq 64 ]
    [[ ${lines[0]} == "packstream: --rejects=rf: with --state it must not be \
a pipe"* ]]
    [ ! -e s ]
}

@test "a reader that has all packs of a job gets its end" {
    local flush
    # Packs that were flushed because of time cannot be made again.
    for flush in "" --flush-idle=50; do
        rm -f s
        # shellcheck disable=SC2086
        { head -c 300000 x; sleep 0.3; tail -c +300001 x; } |
            packstream -q -L 256 $flush --state=s | cat >all
        cp s s.before
        # shellcheck disable=SC2086
        packstream -q -L 256 $flush --state=s --resume <x | cat >end
        cmp s s.before
        { head -c 4096 all; tail -c "$(($(size end) - 4096))" all; } |
            cmp - end
        [ "$(size end)" -lt 10000 ]
    done
    # shellcheck disable=SC2086
    run -65 bash -c "packstream -q -L 256 --flush-idle=50 --state=s \
        --resume-from=5 <x | cat >end
        exit \${PIPESTATUS[0]}"
}

# A pause while what was held comes again flushes nothing.
@test "a job that was not flushed because of time can be made again" {
    head -c 400001 x >"cut"
    # shellcheck disable=SC2016 # it is for the other shell
    run -65 bash -c 'packstream -q -L 256 --flush-idle=50 --state=s \
        --state-every=30 <cut | cat >got
        exit ${PIPESTATUS[0]}'
    # The state needs some of what comes before this place again.
    { head -c 300000 x; sleep 0.3; tail -c +300001 x; } |
        packstream -q -L 256 --flush-idle=50 --state=s --resume | cat >rest
    packstream -q -L 256 --flush-idle=50 --state=s --resume-from=5 <x |
        cat >got
    packstream -q -L 256 --resume-from=5 x | cmp - got
}

@test "a job that has ended leaves its output open at its end" {
    packstream -q -L 256 x >px
    packstream -q -L 256 y >py
    cat px py >wanted
    : >out
    { packstream -q -L 256 --state=a x; } 1<>out
    {
        packstream -q -L 256 --state=a --resume x
        packstream -q -L 256 --state=b --resume y
    } 1<>out
    cmp wanted out
}

@test "an output to which others wrote is no output of the job" {
    mkfifo in
    packstream -q -L 256 --state=s --state-every=30 <in >>out 2>told &
    local job=$! status=0
    {
        head -c 400000 x
        sleep 0.5
        echo "from somebody else" >>out
        tail -c +400001 x
    } >in
    wait "$job" || status=$?
    [ "$status" -eq 1 ]
    grep -F "another program changed it" told
}

@test "an output that cannot be read again is refused" {
    [ "$(id -u)" -ne 0 ] || skip "root reads everything"
    : >out
    chmod 200 out
    run packstream -q -L 256 --state=s -o out x
    [ "$status" -eq 1 ]
    [[ $output == "packstream: out: cannot be read again: "* ]]
}
