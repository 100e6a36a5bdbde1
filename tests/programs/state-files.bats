#!/usr/bin/env bats
# state-files.bats - packstream --state beside other files and jobs: no foreign
# file is lost, and no two jobs write the same file.
#
# SPDX-License-Identifier: MIT

# Variables set in a test are used in that test only.
# shellcheck disable=SC2030,SC2031

load ../support/helpers
load ../support/resumed

setup() {
    start
    small_blocks 8
    cp "$BATS_FILE_TMPDIR"/x .
    waiting=
    helpers=
}

# Files and processes left by a test.
teardown() {
    local pid
    for pid in $waiting $helpers; do
        kill -9 "$pid" 2>/dev/null || :
        # Otherwise the shell reports the signal.
        wait "$pid" 2>/dev/null || :
    done
}

job() {
    packstream -q -L 256 -w 64 "$@"
}

# begin OPTION...: starts a job that gets half of x and waits for the rest,
# which finish writes; its process id is in $waiting.
begin() {
    mkfifo in
    packstream -q -L 256 -w 64 --state-every=25 "$@" in 2>err &
    waiting=$!
    opens 5 '>' in "$waiting"
    head -c "$(($(size x) / 2))" x >&5
}

finish() {
    # A job that has ended does not read it.
    tail -c "+$(($(size x) / 2 + 1))" x >&5 || :
    exec 5>&-
    await
    rm in
}

# await: waits for the job, which has ended with $status.
# shellcheck disable=SC2034 # which a caller looks at
await() {
    status=0
    wait "$waiting" || status=$?
    waiting=
}

# packing OPTION...: standard output is appended to $to, if set.
packing() {
    if [ -n "${to-}" ]; then
        timeout 600 packstream -q -L 256 -w 64 "$@" >>"$to"
    else
        timeout 600 packstream -q -L 256 -w 64 "$@" >/dev/null
    fi
}

# refused STATUS MESSAGE OPTION...
refused() {
    run --separate-stderr -"$1" packing "${@:3}"
    # shellcheck disable=SC2154 # run sets it
    echo "$stderr"
    [[ $stderr == "packstream: $2"* ]]
}

@test "the state must not be another file of the job" {
    cp x in.new
    ln -s "$PWD" way
    mkdir folder
    refused 64 "--state=col: col is also the output: choose another name" \
        --state=col -o col x
    refused 64 "--state=col: col.new is also the output: choose another name" \
        --state=col -o col.new x
    refused 64 "--state=way/col: way/col.new is also the output: choose\
 another name" \
        --state=way/col -o folder/../col.new x
    refused 64 "--state=in: in.new is also an input: choose another name" \
        --state=in -o o in.new
    refused 64 "--state=in: in.new is also an input: choose another name" \
        --state=in -o o x in.new
    refused 64 "--state=in: in.new is also an input: choose another name" \
        --state=in -o o <in.new
    refused 64 "--state=x: x is also an input: choose another name" \
        --state=x --resume -o o x
    refused 64 "--state=rej: rej is also the file of --rejects: choose\
 another name" \
        --rejects=rej --overlong=drop --state=rej -o o x
    refused 64 "--state=rej: rej.new is also the file of --rejects: choose\
 another name" \
        --rejects=./rej.new --overlong=drop --state=rej -o o x
    cmp x in.new
    absent col col.new o rej
    to=s.new refused 64 "--state=s: s.new is also the output: choose another\
 name" --state=s x
    [ -e s.new ]
    rm s.new
    # A file that does not exist yet can still have a second name, and is not
    # created by the refusal.
    mkdir other
    ln -s s link
    ln -s s.new link.new
    ln -s ../link other/far
    ln -s "$PWD/other/far" other/farther
    refused 64 "--state=s: s is also the output: choose another name" \
        --state=s -o link x
    refused 64 "--state=link: link is also the output: choose another name" \
        --state=link -o s x
    refused 64 "--state=s: s.new is also the output: choose another name" \
        --state=s -o link.new x
    refused 64 "--state=s: s is also the output: choose another name" \
        --state=s -o other/farther x
    refused 64 "--state=s: s is also the file of --rejects: choose another\
 name" \
        --rejects=link --overlong=drop --state=s -o o x
    absent s s.new o
    rm other/far other/farther
    # A link to itself is refused as well.
    ln -s round round
    refused 1 "round: Too many levels of symbolic links" --state=s -o round x
    [ ! -e s ]
    job --state=other/x -o other/out x
    job -o out x
    cmp out other/out
    [ "$(ls other)" = "out
x" ]
}

@test "a state cannot have a name reserved for the next one" {
    job --state=s -o out x
    mv s s.new
    cp s.new kept
    refused 64 "--state=s.new: a name that ends in .new is reserved" \
        --state=s.new --resume -o out x
    refused 64 "--state=./t.new: a name that ends in .new is reserved" \
        --state=./t.new -o o x
    cmp kept s.new
    absent t.new o
    mkdir folder
    refused 1 "folder/: Is a directory" --state=folder/ -o o x
    refused 1 "folder: Is a directory" --state=folder -o o x
    refused 1 "none/: No such file" --state=none/ -o o x
    absent o folder.new
    [ -z "$(ls -A folder)" ]
    job --state=new -o o x
    job --state=folder/news -o o x
    [ -s new ]
    [ -s folder/news ]
}

@test "a state at the target of a symbolic link" {
    local link
    mkdir far other
    ln -s ../far/s other/link
    ln -s other/link link
    job -o wanted x
    # First to nothing, then to a state.
    for link in link other/link "$PWD/link"; do
        begin --state="$link" -o out
        eventually test -s far/s
        # Saving a state renames the next file; a moment later another one
        # exists.
        eventually test -e far/s.new
        absent link.new other/link.new
        refused 1 "far/s: locked: another job is saving its state here" \
            --state=far/s -o o x
        refused 1 "other/link: locked: another job is saving its state here" \
            --state=other/link -o o x
        kill -9 "$waiting"
        exec 5>&-
        await
        rm in
        job --state=link --resume -o out x
        cmp out wanted
        [ "$(readlink link)" = other/link ]
        [ "$(readlink other/link)" = ../far/s ]
        [ "$(ls far)" = s ]
        rm out far/s
    done
    # A link to a missing folder, to a name for the next state, and to itself.
    ln -s none/s nowhere
    refused 1 "nowhere: No such file" --state=nowhere -o o x
    ln -s t.new news
    refused 64 "--state=news: a name that ends in .new" --state=news -o o x
    ln -s round round
    refused 1 "round: Too many levels of symbolic links" --state=round -o o x
    refused 64 "--state=link: link is also the output: choose another name" \
        --state=link -o far/s x
    refused 64 "--state=link: other/../far/s.new is also the output: choose\
 another name" \
        --state=link -o far/s.new x
    absent none t.new o o.new
}

@test "files with the temporary name of the state" {
    # Not left by a power failure, though it begins the same way.
    { head -c 200 /dev/zero; echo precious; } >precious
    local way before
    for way in "ln -s precious" "mkfifo" "ln precious" "cp precious" mkdir; do
        $way s.new
        before=$(stat -c '%F %i %s' s.new)
        refused 1 "s.new: needed as the temporary file of s, but exists and\
 is not a temporary file: rename or remove it" \
            --state=s -o out x
        [ "$(stat -c '%F %i %s' s.new)" = "$before" ]
        [ ! -f s.new ] || cmp precious s.new
        rm -r s.new
    done
    : >s.new
    chmod a= s.new
    if [ ! -r s.new ]; then
        refused 1 "s.new: needed as the temporary file of s, but exists and\
 cannot be opened: Permission; remove it denied" --state=s -o out x
    fi
    rm -f s.new
    tail -c 9 precious | grep -x precious
    absent out s

    # A killed job leaves nothing, part of a state, or all of it.
    local n
    job --state=good -o out x
    for n in 0 5 8 100 "$(size good)"; do
        head -c "$n" good >s.new
        rm -f s
        job --state=s -o out x
        cmp s good
        [ ! -e s.new ]
    done
    # A power failure leaves zeros instead of all of it, or of its first sector.
    for n in 0 100; do
        { head -c 512 /dev/zero; head -c "$n" good; } >s.new
        rm -f s
        job --state=s -o out x
        cmp s good
    done
    # A hard link to the state is not a temporary file.
    ln s s.new
    refused 1 "s.new: needed as the temporary file of s" \
        --state=s --resume -o out x
    cmp s good
}

# spoilt KIND: another program changes the new state.
spoilt() {
    case $1 in
        written) cp precious s.new ;;
        replaced)
            cp precious other
            mv other s.new
            ;;
        emptied) # As long as that of the job.
            : >other
            mv other s.new
            ;;
        removed) rm s.new ;;
    esac
}

@test "another program's file with the state's temporary name stays" {
    local kind
    echo precious >precious
    for kind in written replaced emptied removed; do
        echo "$kind"
        rm -f s s.new out
        begin --state=s -o out
        eventually test -s s
        idle "$waiting"
        cp s before
        spoilt "$kind"
        finish
        [ "$status" -eq 1 ]
        [ "$(cat err)" = "packstream: s.new: changed or removed by another\
 program, so s was not updated" ]
        cmp before s
        case $kind in
            removed) [ ! -e s.new ] ;;
            emptied) [ -e s.new ] && [ ! -s s.new ] ;;
            *) cmp precious s.new ;;
        esac
        rm -f s.new
        job --state=s --resume -o out x
        job x | cmp - out
    done
    # Nor does a job that has no state of its own to write remove it.
    for kind in written replaced; do
        rm -f s s.new
        begin --state=s -o out --state-every=1000000
        idle "$waiting"
        cp s s.before
        spoilt "$kind"
        printf '\377\377\377\377\377' >&5
        exec 5>&-
        await
        rm in
        [ "$status" -eq 65 ]
        cmp precious s.new
        cmp s.before s
    done
}

@test "a new state that is damaged while it is written is not used" {
    skip_without strace
    skip_if_sanitized # their search for leaks is not to be traced
    local kind
    echo precious >precious
    # strace stops the job when the new state is on disk, before it is renamed.
    # The first fsync is that of the output's folder.
    for kind in written replaced removed; do
        echo "$kind"
        rm -f s s.new trace
        strace -D -f -qq -e trace=fsync -e inject=fsync:signal=STOP:when=2 \
            -o trace packstream -q -L 256 -w 64 --state=s -o out x 2>err &
        waiting=$!
        eventually grep -qs 'stopped by SIGSTOP' trace
        is_larger s.new 100
        spoilt "$kind"
        kill -s CONT "$waiting"
        await
        [ "$status" -eq 1 ]
        [[ $(cat err) == "packstream: s.new: changed or removed by another program"* ]]
        [ ! -e s ]
        [ "$kind" = removed ] || cmp precious s.new
    done
}

@test "a state that cannot be written fails before the output is truncated" {
    local name
    echo precious >out
    printf -v name '%0253d' 0
    refused 1 "$name.new: File name too long" "--state=$name" -o out x
    refused 1 "none/s: No such file" --state=none/s -o out x
    mkdir folder
    chmod a-w folder
    if [ ! -w folder ]; then
        refused 1 "folder/s.new: Permission denied" --state=folder/s -o out x
    fi
    [ "$(cat out)" = precious ]
}

@test "one job at a time writes an output" {
    job -o wanted x
    begin --state=s -o out
    eventually is_larger out 20000
    eventually test -s s
    refused 1 "out: locked: another job is writing it" --state=other -o out x
    refused 1 "out: locked: another job is writing it" -o out x
    to=out refused 1 "stdout: locked: another job is\
 writing it" x
    refused 1 "out: locked: another job is writing it" -L 100 --overlong=drop \
        --rejects=out -o else x
    absent other other.new
    finish
    [ "$status" -eq 0 ]
    cmp wanted out
    # The lock ends with the job, even if a shell holds the file open.
    {
        job x
        job --state=other x
    } >both
    cmp <(cat wanted wanted) both
}

# with_helper CMD...: runs a job beside a process that keeps its output open.
with_helper() {
    {
        status=0
        "$@" || status=$?
        sleep 600 3>&- &
        helpers="$helpers $!"
    } >>both
}

@test "a finished job's lock is not held by others with its output open" {
    job -o wanted x
    with_helper job x
    [ "$status" -eq 0 ]
    with_helper job --state=s x
    [ "$status" -eq 0 ]
    cmp <(cat wanted wanted) both
    # Also if it failed, at the end or at once.
    printf '\377' >bad
    with_helper job bad
    [ "$status" -eq 65 ]
    : >both
    with_helper job --state=s --resume x
    [ "$status" -eq 1 ]
    job -o both x
    cmp wanted both
}

@test "one job at a time resumes an output" {
    job -o wanted x
    stopped_at "$(($(size x) / 2))" -L 256 -w 64
    cp s other
    begin --state=s --resume -o out
    eventually test -e s.new
    eventually is_larger out 20000
    refused 1 "out: locked: another job is writing it" \
        --state=other --resume -o out x
    finish
    [ "$status" -eq 0 ]
    cmp wanted out
}

@test "a state is locked by one job at a time" {
    job -o wanted x
    begin --state=s --resume > >(cat >out)
    eventually test -s s
    refused 1 "s: locked: another job is saving its state here" --state=s -o else x
    refused 1 "s: locked: another job is saving its state here" --state=s --resume \
        -o else x
    refused 1 "./s: locked: another job is saving its state here" --state=./s x
    eventually test -e s.new
    [ ! -e else ]
    finish
    [ "$status" -eq 0 ]
    eventually cmp -s wanted out
    [ ! -e s.new ]
}

@test "a job that starts while a state is replaced does not get it" {
    job -o wanted x
    packstream -q -L 256 -w 64 --state=s --state-every=1 x >out 2>err &
    waiting=$!
    eventually test -s s
    local tries=0
    while ! gone "$waiting"; do
        run packing --state=s --resume -o else x
        tries=$((tries + 1))
    done
    echo "$tries tries"
    await
    cat err
    [ "$status" -eq 0 ]
    cmp wanted out
}

@test "a job that gets a signal leaves no temporary state" {
    begin --state=s -o out
    eventually test -s s
    eventually test -e s.new
    kill -TERM "$waiting"
    finish
    [ "$status" -eq 143 ]
    [ ! -e s.new ]
    job --state=s --resume -o out x
    job x | cmp - out
}

@test "an output that is longer than expected is detected" {
    begin --state=s -o out
    # The output is emptied after the first state is saved.
    eventually test -s out
    head -c 3000000 /dev/zero >>out
    finish
    [ "$status" -eq 1 ]
    [[ $(cat err) == "packstream: out: has "*": changed by another program" ]]
}

@test "a file that is not a state is not read in full" {
    skip_if_sanitized
    local least
    least=$(least_memory -L 256 -w 64)
    job --state=s -M "$least" -o out x
    job --state=s -M "$least" --resume -o out x
    truncate -s 3G s
    (
        ulimit -v 200000
        refused 1 "s: File too large" --state=s --resume -M 16Mi -o out x
        echo text >s
        truncate -s 3G s
        refused 65 "s: not a saved state" --state=s --resume \
            -o out x
    )
}

# is_full FIFO: a write to it would block.
is_full() {
    python3 -c 'import os, select, sys
end = os.open(sys.argv[1], os.O_WRONLY | os.O_NONBLOCK)
sys.exit(end in select.select([], [end], [], 0)[1])' "$1"
}

# taken PID: no signal to it is pending any more.
taken() {
    grep -qx 'ShdPnd:[[:space:]]*0*' "/proc/$1/status"
}

@test "a second signal ends it at once, whichever it is" {
    local pair status
    for pair in "TERM INT" "INT TERM" "TERM TERM"; do
        # In the background a shell has SIGINT ignored, for good.
        mkfifo full
        env --default-signal=INT packstream -q -L 256 -w 64 --state=s \
            -T1 x >full &
        waiting=$!
        opens 6 '<' full "$waiting"
        eventually is_full full
        kill -s "${pair% *}" "$waiting"
        eventually taken "$waiting"
        kill -s "${pair#* }" "$waiting"
        eventually gone "$waiting"
        await
        exec 6<&-
        rm -f full s s.new
        [ "$status" -eq $((128 + $(kill -l "${pair#* }"))) ]
    done
}
