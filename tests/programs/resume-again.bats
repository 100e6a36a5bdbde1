#!/usr/bin/env bats
# resume-again.bats - jobs that resume with little or all of the work done, or
# for another reader: nothing is lost or repeated.
#
# SPDX-License-Identifier: MIT

# Word splitting of options is intended.
# shellcheck disable=SC2086

load ../support/helpers
load ../support/resumed

# A state exists before the first byte of output, so none is written twice.
@test "a job that was stopped before its first state writes nothing twice" {
    local options how job
    mkfifo in
    packstream -q -L 256 y >py
    for options in "-L 256" "-L 256 --zstd" "-L 150 --overlong=drop \
--rejects=r"; do
        packstream -q ${options%--rejects=r} x >px
        cat py px >wanted
        for how in fails killed; do
            echo "$options, $how"
            rm -f s r
            cp py out
            if [ "$how" = fails ]; then
                run -65 bash -c 'packstream -q --state=s --resume "$@" \
                    < <(head -c 600001 x) >>out' x $options
            else
                packstream -q --state=s --resume $options <in >>out &
                job=$!
                opens 7 '>' in "$job"
                { head -c 600001 x; told_to_end KILL "$job"; } >&7
                exec 7>&-
                wait "$job" || true
            fi
            [ -s s ]
            packstream -q $options --state=s --resume x >>out
            cmp wanted out
        done
    done
}

@test "a job that did not write a pack truncates no other file" {
    head -c 5 <(echo 5 6 7 | tokcat --from=ids --raw) >"cut"
    cp y out
    run -65 bash -c 'packstream -q -L 256 --state=s cut >>out'
    cp out part
    cat y x >other
    cp other other.before
    refused 1 "not the output that was written with this state" other -L 256 \
        -o other x
    # The file's bytes before the output must be unchanged, too.
    {
        head -c "$(($(size y) - 9))" y
        echo 12345678
        tail -c "+$(($(size y) + 1))" part
    } >other
    run -1 packstream -q -L 256 --state=s --resume -o other x
    cp s kept
    packstream -q -L 256 --state=s --resume-from=4 x | cat >got
    packstream -q -L 256 --resume-from=4 x | cmp - got
    mv kept s
    packstream -q -L 256 --state=s --resume -o part x
    { cat y; packstream -q -L 256 x; } | cmp - part
}

@test "without a state no output is continued" {
    packstream -q -L 256 --state=s -o out x
    cp out out.before
    run -64 packstream -q -L 256 --state=typo --resume -o out y
    [[ $output == \
        "packstream: out: exists already, but its state typo does not: remove\
 the output to start again" ]]
    cmp out out.before
    [ ! -e typo ]
}

@test "an input that grew after it was read is detected" {
    cp x x1
    head -c 500001 y >yc
    run -65 packstream -q -L 256 --state=s --state-every=30 -o out x1 yc
    cp x1 grown
    cat y >>grown
    refused 65 "the inputs before y had $(size x) bytes" out -L 256 \
        -o out grown y
    packstream -q -L 256 --state=s --resume -o out x1 y
    packstream -q -L 256 x y | cmp - out
    # Also while the job reads the next one.
    rm s
    mkfifo in
    packstream -q -L 256 --state=s -o out x1 - <in &
    opens 7 '>' in $!
    {
        cat y
        sleep 0.3
        cat y >>x1
    } >&7
    exec 7>&-
    wait "$!"
    packstream -q -L 256 x y | cmp - out
    rm s
    packstream -q -L 256 --state=s -o out x y
    refused 65 "but the input now has" out -L 256 -o out x1 y
}

@test "SIGTERM before the next input begins saves the state" {
    mkfifo in
    sleep 600 >in 3>&- &
    local holder=$!
    packstream -q -L 256 --state=s -o out x in 2>told &
    local job=$!
    eventually is_larger out 100000
    told_to_end TERM "$job"
    exits 143 "$job"
    kill "$holder"
    [ ! -s told ]
    cp y in2
    packstream -q -L 256 --state=s --resume -o out x y
    packstream -q -L 256 x y | cmp - out
}

@test "--resume-from changes neither an output nor its state" {
    packstream -q -L 256 --state=s -o out x
    refused 64 "out: cannot use --resume-from to write to a file" out -L 256 \
        --resume-from=5 -o out y
    half_done_anew() {
        rm s out
        half_done x -L 256
    }
    half_done_anew
    refused 64 "out: cannot use --resume-from to write to a file" out -L 256 --resume-from=5 -o out x
}

@test "rejects are not written twice" {
    local options="-L 150 --overlong=drop --rejects=r --state=s"
    packstream -q -L 150 --overlong=drop --rejects=all x >packs
    packstream -q $options x | cat >got
    cmp got packs
    # A different input is detected, and the rejects stay.
    run bash -c "packstream -q $options --resume-from=3 y | cat >got2
        exit \${PIPESTATUS[0]}"
    [ "$status" -eq 65 ]
    cmp r all
    # All of it once more, and only the end.
    packstream -q $options --resume-from=3 x | cat >got
    cmp r all
    cmp <(blocks_from 0 packs) <(blocks_from 0 got)
    packstream -q $options --resume x | cat >got
    cmp r all
    cmp <(blocks_from end packs) <(blocks_from end got)
    # An unfinished job: its rejects continue from the saved state.
    rm s r
    run -65 bash -c "head -c 400001 x |
        packstream -q $options --state-every=30 | cat >got
        exit \${PIPESTATUS[1]}"
    packstream -q $options --resume-from=3 x | cat >got
    cmp r all
    packstream -q -L 150 --overlong=drop --resume-from=3 x | cmp - got
}

@test "rejects are completed without new input" {
    local options="-L 150 --overlong=drop --rejects=r --state=s" job
    mkfifo in
    packstream -q $options <in > >(cat >got) &
    job=$!
    opens 7 '>' in "$job"
    { cat x; told_to_end TERM "$job"; } >&7
    exec 7>&-
    exits 143 "$job"
    packstream -q $options --resume-from=2 x | cat >got
    packstream -q -L 150 --overlong=drop --rejects=all --resume-from=2 x |
        cmp - got
    cmp r all
}

@test "rejects of a job with a state cannot be a pipe" {
    mkfifo rf
    run -64 timeout 600 packstream -q -L 150 --overlong=drop --rejects=rf \
        --state=s -o out x
    [[ ${lines[0]} == "packstream: --rejects=rf: is a pipe, which --state \
cannot rewind"* ]]
    [ ! -e s ]
}

@test "a reader that has all packs of a job can still get the end" {
    local flush job
    # Packs of a timed flush cannot be made again.
    mkfifo in
    for flush in "" --flush-idle=50; do
        rm -f s
        packstream -q -L 256 -d 16 $flush --state=s <in | cat >all &
        job=$(jobs -p %+)
        opens 7 '>' in "$job"
        {
            head -c 300000 x
            [ -z "$flush" ] || idle "$job"
            tail -c +300001 x
        } >&7
        exec 7>&-
        wait
        cp s s.before
        packstream -q -L 256 -d 16 $flush --state=s --resume <x | cat >end
        cmp s s.before
        cmp <(head -c 4096 all) <(head -c 4096 end)
        cmp <(blocks_from end all) <(blocks_from end end)
        [ "$(size end)" -eq $((4096 + 256)) ]
    done
    run -65 bash -c "packstream -q -L 256 -d 16 --flush-idle=50 --state=s \
        --resume-from=5 <x | cat >end
        exit \${PIPESTATUS[0]}"
}

# A pause while repeated input is read does not flush.
@test "a job without timed flushes can be repeated" {
    head -c 400001 x >"cut"
    # shellcheck disable=SC2016 # it is for the other shell
    run -65 bash -c 'packstream -q -L 256 --flush-idle=50 --state=s \
        --state-every=30 <cut | cat >got
        exit ${PIPESTATUS[0]}'
    # The state needs part of the input before this offset again.
    { head -c 300000 x; sleep 0.3; tail -c +300001 x; } |
        packstream -q -L 256 --flush-idle=50 --state=s --resume | cat >rest
    packstream -q -L 256 --flush-idle=50 --state=s --resume-from=5 <x |
        cat >got
    packstream -q -L 256 --resume-from=5 x | cmp - got
}

@test "all packs of a finished job can be written again" {
    packstream -q -L 256 --state=s --state-every=20 x | cat >all
    local from
    for from in 1 5 900; do
        packstream -q -L 256 --state=s --state-every=20 --resume-from="$from" \
            x | cat >got
        packstream -q -L 256 --resume-from="$from" x | cmp - got
    done
}

@test "a job that stopped after a flush record can be repeated" {
    local options="-L 64 -w 64 --flush-records --state=s" job
    # 32 records of two tokens fill a pack.  The flush closes a block.
    many 100 2 >p
    printf '\0\0\0\0' >flush
    mkfifo in
    packstream -q $options <in > >(cat >got) &
    job=$!
    opens 7 '>' in "$job"
    { cat p flush; told_to_end TERM "$job"; } >&7
    exec 7>&-
    exits 143 "$job"
    cat p flush p p >longer
    packstream -q $options --resume-from=1 longer | cat >got
    packstream -q -L 64 -w 64 --flush-records --resume-from=1 longer |
        cmp - got
}

@test "a finished job without packs" {
    : >empty
    local out
    for out in "-L 256" "-L 256 --zstd" "-L 256 -d 3"; do
        rm -f ./*.s all
        for _ in 1 2 3; do
            packstream -q $out --state=e.s --resume empty >>all
            packstream -q $out --state=x.s --resume x >>all
        done
        { packstream -q $out empty; packstream -q $out x; } | cmp - all
    done
}

@test "options that a state cannot resume with are refused at once" {
    run -64 packstream -q -L 64 --zstd --state=s x
    [[ ${lines[0]} == *"--state with --zstd needs a regular file \
as output, but stdout is not a regular file"* ]]
    run -64 packstream -q -L 64 --overlong=drop --rejects=- --state=s -o out x
    [[ ${lines[0]} == *"--rejects=- cannot be used with --state"* ]]
    [ ! -e s ]
    # A later first pack is not written into an existing file either.
    cp y out
    run -64 packstream -q -L 64 --state=s --resume-from=3 -o out x
    cmp out y
}

@test "a job that had just started at a power failure starts again" {
    head -c 5 <(echo 5 6 7 | tokcat --from=ids --raw) >"cut"
    local what
    for what in zeros gone; do
        rm -f s out
        run -65 packstream -q -L 256 --state=s -o out cut
        case $what in
            zeros) head -c 5000 /dev/zero >out ;;
            gone) rm out ;;
        esac
        packstream -q -L 256 --state=s --resume -o out x
        packstream -q -L 256 x | cmp - out
    done
}

@test "a finished job leaves its output's offset at the end" {
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

@test "an output that other programs wrote to is refused" {
    mkfifo in
    packstream -q -L 256 --state=s --state-every=30 <in >>out 2>told &
    local job=$!
    opens 7 '>' in "$job"
    {
        head -c 400000 x
        sleep 0.5
        echo "from somebody else" >>out
        tail -c +400001 x || true # the job may have ended by then
    } >&7
    exec 7>&-
    exits 1 "$job"
    grep -F "changed by another program" told
}
