#!/usr/bin/env bats
# resume-fits.bats - packstream resumes only if the options, the input and the
# output match the state; otherwise all files are unchanged.
#
# SPDX-License-Identifier: MIT

# Word splitting of options is intended.
# shellcheck disable=SC2086

load ../support/helpers
load ../support/resumed

@test "bytes before the job's output stay" {
    packstream -q -L 256 x >px
    packstream -q -L 256 y >py
    cat px py >wanted
    cp px out
    half_done y -L 256
    packstream -q -L 256 --state=s --resume y >>out
    cmp wanted out
    # Also when the job has ended.
    packstream -q -L 256 --state=s --resume y >>out
    cmp wanted out
    # If the shell opens the file without appending.
    rm s
    cp px out
    run -65 bash -c 'head -c 400001 y | {
        tail -c 1 >&2 <&3
        packstream -q -L 256 --state=s --state-every=30
    } 3<>out 1>&3'
    packstream -q -L 256 --state=s --resume -o out y
    cmp wanted out
}

@test "a finished job is compared with its options" {
    packstream -q -L 256 --state=s -o out x
    refused 64 "saved with capacity 256, not 100" out -L 100 -w 5 -o out x
    refused 64 "window of default size, not 5" out -L 256 -w 5 -o out x
    refused 64 "not compressed, but these packs are" out -L 256 --zstd -o out x
    refused 64 "tokens are u16, not u32" out -L 256 -t u32 -o out x
    packstream -q -L 256 --state=s --resume -o out x
    # Output sent elsewhere would be missing from the file.
    refused 64 "the job that saved this state wrote to a file" out -L 256 \
        -o /dev/null x
    refused 64 "saved with capacity 256, not 100" out -L 100 --resume-from=1 \
        -o /dev/null x
}

@test "a finished job is compared with its input" {
    packstream -q -L 256 --state=s -o out x
    refused 65 "but the input now has" out -L 256 -o out y
    refused 1 "none" out -L 256 -o out none
    packstream -q -L 256 --state=s --resume -o out <x
    # A pipe cannot be checked.
    packstream -q -L 256 --state=s --resume -o out < <(cat x)
}

@test "a finished job is compared with its output" {
    local options other
    for options in "-L 256" "-L 256 --zstd" \
        "-L 100000 -w 50 --block-packs=1"; do
        echo "$options"
        rm -f s
        packstream -q $options --state=s -o out x
        head -c "$(size out)" /dev/urandom >random
        # The same options, so that only the records differ.
        packstream -q $options -o other y
        truncate -s "$(size out)" other
        { head -c 4096 out; tail -c +4097 random; } >behind
        for other in random other behind; do
            refused 1 "not the output" "$other" $options -o "$other" x
        done
        packstream -q $options --state=s --resume -o out x
        # Nothing was appended either.
        { cat out; echo; } >longer
        refused 1 "longer: has" longer $options -o longer x
    done
}

@test "a finished job is compared with its rejects" {
    local options="-L 150 --overlong=drop --rejects=r -o out"
    packstream -q $options --state=s x
    cp r whole
    packstream -q $options --state=s --resume x
    truncate -s -1 r
    refused 1 "r: has" out $options x
    head -c "$(size whole)" /dev/urandom >r
    refused 1 "r: not the output" out $options x
    { cat whole; echo; } >r
    refused 1 "r: has" out $options x
    rm r
    run -1 packstream -q --state=s --resume $options x
}

@test "another job's output is not truncated" {
    local options
    for options in "-L 256 -d 16" "-L 256 -w 50" \
        "-L 2048 --zstd -w 300 --block-packs=4"; do
        echo "$options"
        rm -f s out
        half_done x $options
        packstream -q $options -o other y
        cat other other other >longer
        cat x x >tokens
        for other in longer tokens; do
            refused 1 "not the output" "$other" $options -o "$other" x
        done
        packstream -q $options --state=s --resume -o out x
        packstream -q $options x | cmp - out
    done
}

@test "another job's rejects are not truncated" {
    local options="-L 150 --overlong=drop --rejects=r"
    half_done x $options
    mv r good
    cat y y >r
    refused 1 "r: not the output" out $options -o out x
    mv good r
    packstream -q $options --state=s --resume -o out x
    cp r again
    packstream -q -L 150 --overlong=drop --rejects=r x | cmp - out
    cmp r again
}

@test "jobs that discard their rejects resume" {
    local options="-L 150 --overlong=drop --rejects=/dev/null"
    half_done x $options
    packstream -q $options --state=s --resume -o out x
    packstream -q $options --state=s --resume -o out x
    packstream -q -L 150 --overlong=drop x | cmp - out
    # If it is a file now, it lacks the earlier rejects.
    refused 64 "r: the state was saved by a job" out -L 150 --overlong=drop \
        --rejects=r -o out x
}

@test "nothing is truncated before the input is compared" {
    local options
    for options in "-L 256" "-L 256 --zstd -w 300" \
        "-L 150 --overlong=drop --rejects=r"; do
        echo "$options"
        rm -f s out r
        half_done x $options
        echo "what came after the state" >>out
        refused 65 "packstream: y: " out $options -o out y
        refused 65 "" out $options -o out <(head -c 200000 x)
        packstream -q $options --state=s --resume -o out x
        packstream -q ${options%--rejects=r} x | cmp - out
    done
}

@test "an input that ends before the state is refused" {
    # Records of 22 bytes, none of which waits between two packs.
    many 40000 9 >x
    local options="-L 16 -a none -w 64 --state-every=31" n k
    half_done x $options
    n=$((400001 / 22 / 31 * 31))
    # The resume point is one of these.
    for k in {1..10}; do
        head -c $(((n - k) * 22)) x >y
        refused 65 "y: " out $options -o out y
    done
    packstream -q $options --state=s --resume -o out x
    packstream -q ${options% *} x | cmp - out
}

@test "resuming into a pipe compares the state" {
    half_done x -L 256
    refused 64 "the job that saved this state wrote to a file" out -L 256 \
        -o /dev/null x
    refused 64 "saved with capacity 256, not 100" out -L 100 -w 5 \
        --resume-from=1 -o /dev/null x
    # A different input is detected when the state's packs are made again.
    refused 65 "the first" out -L 256 --resume-from=1 \
        --state-every=1 -o /dev/null y
    head -c 100000 x >part
    refused 65 "part: " out -L 256 --resume-from=1 \
        --state-every=1 -o /dev/null part
    packstream -q -L 256 --state=s --resume-from=1 --state-every=9 x |
        cat >got
    packstream -q -L 256 --resume-from=1 x | cmp - got
    # Now it is the state of a pipe, not of a file.
    refused 64 "by a job that did not write to a regular file" out -L 256 -o out x
}

@test "a finished job is verified again" {
    packstream -q -L 256 --state=s -o out x
    packstream -q -L 256 --state=s --resume-from=5 x | cat >got
    packstream -q -L 256 --resume-from=5 x | cmp - got
    refused 65 "the first" out -L 256 --resume-from=5 -o /dev/null y
}

@test "an output that cannot be read again is refused" {
    [ "$(id -u)" -ne 0 ] || skip "root reads everything"
    : >out
    chmod 200 out
    run -1 packstream -q -L 256 --state=s -o out x
    [[ $output == "packstream: out: cannot reopen the output for reading: "* ]]
}
