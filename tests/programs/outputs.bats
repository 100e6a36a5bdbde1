#!/usr/bin/env bats
# outputs.bats - an existing file is truncated for an output only after every
# check that is possible before the first byte.
#
# SPDX-License-Identifier: MIT

load ../support/helpers

setup() {
    start
    { record16 1 2 3; record16 4 5; } >in
    packstream -L 8 -o in.pks in
    echo precious >old
    cp old before
}

# keeps PROGRAM [ARGUMENT]...: fails, and does not change `old`.
keeps() {
    run "$@"
    [ "$status" -ne 0 ]
    cmp old before
}

@test "packstream: errors in another file" {
    keeps packstream -L 8 --overlong=drop --rejects=no/such/file -o old in
    keeps packstream -L 8 --state=no/such/file -o old in
    keeps packstream -L 8 -o old in missing
    [[ $output == "packstream: missing: "* ]]
    mkdir folder
    keeps packstream -L 8 -o old in folder
    keeps packstream -L 8 -o old in.pks
    keeps packstream -L 8 -o old missing
    # Existing rejects are unchanged, too.
    keeps packstream -L 8 --overlong=drop --rejects=old -o no/such/file in
    keeps packstream -L 8 --overlong=drop --rejects=old -o new in missing
}

@test "packstream: errors of the job" {
    keeps packstream -L 8 --pad-id=70000 -o old in
    keeps packstream -L 8 -t u32 -o old in.pks
    keeps packstream -L 100000000 -o old in
    packstream -L 8 --state=s -o out in
    keeps packstream -L 9 --state=s --resume -o old in
    { printf '\x03\0\0\0'; } >./cut
    keeps packstream -L 8 -o old cut missing
}

@test "packstream: a job that resumes with later packs has its own file" {
    small_blocks 2
    for k in 1 2 3 4 5 6 7 8 9; do record16 "$k" 2 3 4 5 6; done >./more
    packstream -L 8 -o whole more
    packstream -L 8 --resume-from=4 -o old more
    cmp <(head -c 4096 whole) <(head -c 4096 old)
    cmp <(blocks_from 2 whole) <(blocks_from 0 old)
}

@test "packstream: compressed, over an existing file" {
    packstream -L 8 --zstd in >whole
    for _ in 1 2 3 4 5 6 7 8; do
        packstream -L 8 --zstd -o old in
        cmp old whole
    done
    packstream -L 8 --state=s --zstd -o old in
    cmp old whole
}

@test "tokcat: errors in an input" {
    keeps tokcat --from=npy -o old in
    keeps tokcat --from=llmc -o old in
    keeps tokcat --from=tfrecord -o old in
    echo '{"ids": [1]}' >x.jsonl
    keeps tokcat --from=jsonl -o old x.jsonl
    echo 1 2 3 >ids
    keeps tokcat --from=ids -o old ids missing
    [[ $output == "tokcat: missing: "* ]]
    keeps tokcat --from=megatron -o old missing
}

@test "packcat: errors in an input" {
    keeps packcat -o old in.pks missing
    [[ $output == "packcat: missing: "* ]]
    keeps packcat -o old --to=npy in
    keeps packcat -o old missing
}

@test "an existing output is truncated if all is well" {
    packstream -L 8 -o old in
    cmp old in.pks
    head -c 100000 /dev/zero >old
    packcat -o old in.pks
    cmp old in
    head -c 100000 /dev/zero >old
    packcat --to=ids -o old in.pks
    [ "$(cat old)" = $'1 2 3\n4 5' ]
    head -c 100000 /dev/zero >old
    tokcat --from=ids --raw -o old <(printf '1 2 3\n4 5\n')
    cmp old in
}

# is_cut_short FILE INPUT PROGRAM [ARGUMENT]...: the program, which writes FILE
# and reads INPUT from the FIFO, detects that FILE is cut while it waits.
is_cut_short() {
    local file=$1 input=$2 job
    shift 2
    rm -f fifo "$file"
    mkfifo fifo
    "$@" 2>err &
    job=$!
    opens 7 '>' fifo "$job"
    {
        head -c 400001 "$input"
        idle "$job"
        is_larger "$file" 4096 && : >"$file"
        tail -c +400002 "$input" || true # the job may have ended by then
    } >&7
    exec 7>&-
    exits 1 "$job"
    cat err
    grep -q "has [0-9]* bytes, but [0-9]* were written: truncated by another\
 program" err
    [ "$(wc -l <err)" -eq 1 ]
}

@test "an output that another program cuts" {
    small_blocks 16
    draw 3000 200 60000 1 >ids
    tokcat --from=ids --raw ids >many
    is_cut_short o.new many packstream -q -L 256 -o o fifo
    is_cut_short o.new many packstream -q -L 256 --zstd -o o fifo
    is_cut_short o many packstream -q -L 256 --state=s -o o fifo
    # shellcheck disable=SC2016 # it is for the other shell
    is_cut_short o many bash -c 'exec packstream -q -L 256 fifo >o'
    # shellcheck disable=SC2016
    is_cut_short o many bash -c 'exec packstream -q -L 256 fifo >>o'
    is_cut_short o.new ids tokcat --from=ids -o o fifo
    is_cut_short r.new many packstream -q -L 100 --overlong=drop --rejects=r \
        -o o fifo
    packstream -q -L 256 many >packs
    is_cut_short o.new packs packcat -q -o o fifo
    is_cut_short o.new packs packcat -q --to=jsonl -o o fifo
    # shellcheck disable=SC2016
    is_cut_short o packs bash -c 'exec packcat -q --to=rows fifo >>o'
    # By then everything is written, and no END follows.
    head -n 500 ids >few
    is_cut_short o.new few tokcat --from=ids --raw -o o fifo
}

# is_removed FILE INPUT PROGRAM [ARGUMENT]...: the program, which writes FILE
# and reads INPUT from the FIFO, detects at its end that FILE is gone.
is_removed() {
    local file=$1 input=$2 job
    shift 2
    rm -f fifo s o
    mkfifo fifo
    "$@" 2>err &
    job=$!
    opens 7 '>' fifo "$job"
    {
        head -c 400001 "$input"
        idle "$job"
        rm "$file"
        tail -c +400002 "$input"
    } >&7
    exec 7>&-
    exits 1 "$job"
    cat err
    [[ $(cat err) == *": o: removed by another program: the output is lost" ]]
    [ ! -e o ] && [ ! -e o.new ]
}

@test "an output that another program removes" {
    draw 3000 200 60000 1 >ids
    tokcat --from=ids --raw ids >many
    packstream -q -L 256 many >packs
    is_removed o.new many packstream -q -L 256 -o o fifo
    is_removed o.new ids tokcat --from=ids -o o fifo
    is_removed o.new packs packcat -q -o o fifo
    is_removed o many packstream -q -L 256 --state=s -o o fifo
    # A file written in place is the caller's to protect.
    bash -c 'exec 3<>t; rm t; packstream -q -L 256 -o /dev/fd/3 many'
}

@test "a later input is replaced while another is read" {
    record16 1 2 3 >x
    cp x y
    mkfifo pipe
    packstream -q -L 8 -o o pipe y 2>err &
    local job=$!
    opens 7 '>' pipe "$job"
    idle "$job"
    cp x z
    mv z y
    cat x >&7
    exec 7>&-
    wait "$job" || grep -q "^packstream: y: replaced since the job started,\
 and the sandbox allows only the earlier file: use --no-sandbox\$" err
    # Without a sandbox it is read.
    [ -s err ] || packstat -q --verify --against=x --against=x o
}

@test "an output appears when it is complete; until then the old one stays" {
    { record16 1 2 3; record16 1 2 3 4 5 6; } >bad
    tokcat --from=ids <<<'1 2' >in.tok
    packstream -L 8 -o in.pks in.tok
    head -c -1 in.pks >cut.pks
    printf '{"input_ids":[1]}\n{"input_ids":1}\n' >bad.jsonl
    echo old >old
    local what
    for what in "packstream -L 5 -w 1" "packcat --to=ids" "packcat --to=npy" \
        "packcat --merge" "tokcat --from=jsonl"; do
        case $what in
            packs*) input=bad ;;
            packcat*) input=cut.pks ;;
            *) input=bad.jsonl ;;
        esac
        # shellcheck disable=SC2086 # a program and its options
        run -65 $what -o old $input
        [ "$(cat old)" = old ]
        # shellcheck disable=SC2086
        run -65 $what -o none $input
        [ ! -e none ] && [ ! -e none.new ] && [ ! -e old.new ]
    done
    # Rejects are renamed with their output.
    echo old >r
    run -65 packstream -L 5 --out-of-vocab=drop --vocab=9 --rejects=r -o old bad
    [ "$(cat old r)" = $'old\nold' ]
    # Bytes are written at once to anything except a regular file.
    mkfifo fifo
    packstream -q -L 5 -w 1 -o fifo bad 2>/dev/null &
    [ "$(wc -c <fifo)" -gt 4096 ]
}

@test "an output keeps its links and its permissions" {
    tokcat --from=ids <<<'1 2' >in.tok
    mkdir far
    echo old >far/o
    chmod 640 far/o
    ln -s far/o link
    packstream -L 8 -o link in.tok
    [ -L link ] && [ "$(stat -c %a far/o)" = 640 ]
    packcat -o far/t far/o
    cmp far/t in.tok
    packstream -L 8 in.tok | packcat --merge -o link
    packstat --verify far/o
    ln -s far/new nowhere
    tokcat --from=ids -o nowhere <<<'1 2'
    cmp far/new in.tok
    # A link to standard output, if that is a file, is standard output.
    ln -s /dev/stdout out
    packstream -L 8 -o out in.tok >x.pks
    packstat --verify x.pks
    ln -s round round
    speaker=packstream refused 1 'round: ' packstream -L 8 -o round in.tok
    speaker=packstream refused 1 'y.new: named by both -o and --rejects' \
        packstream -L 8 --overlong=drop --rejects=y.new -o y in.tok
    speaker=packstream refused 1 'in.tok: ' packstream -L 8 -o in.tok in.tok
    cp in.tok z.new
    speaker=packstream refused 1 'z.new: ' packstream -L 8 -o z z.new
    cmp z.new in.tok
}

@test "other files with an output's temporary name stay" {
    tokcat --from=ids <<<'1 2' >in.tok
    packstat --histogram in.tok >h.new
    echo precious >precious
    ln precious q.new
    speaker=packstream refused 1 'q.new: exists and has another hard link' \
        packstream -L 8 -o q in.tok
    [ "$(cat precious)" = precious ] && [ ! -e q ]
    speaker=packstream refused 1 'h.new: is also an input: choose another '\
'output' \
        packstream -L 8 --learn-from=h.new -o h in.tok
    echo '{"model": {"vocab": {"a": 0}}}' >t.new
    speaker=tokcat refused 1 't.new: is also an input: choose another output' \
        tokcat --from=ids --tokenizer=t.new -o t /dev/null
    speaker=packcat refused 1 'the name of an output is empty' \
        packcat -o '' <(packstream -L 8 in.tok)
    # Files left by a killed job are overwritten.
    echo left >z.new
    chmod 600 z.new
    (umask 022 && packstream -L 8 -o z in.tok)
    [ "$(stat -c %a z)" = 644 ]
}

# meanwhile MAKE OPTION...: MAKE replaces the output, r, of a job that is about
# to end; the job reports it, and the replacement stays.
meanwhile() {
    local job
    rm -rf f r pipe
    echo old >f
    echo old >r
    mkfifo pipe
    packstream -q -L 2 --overlong=drop "${@:2}" pipe 2>err &
    job=$!
    opens 7 '>' pipe "$job"
    record16 1 2 3 >&7
    idle "$job"
    rm r
    "$1" r
    exec 7>&-
    exits 1 "$job"
    [ "$(cat err)" = 'packstream: r: exists and is not a regular file: choose '\
'another name' ]
    [ "$(cat f)" = old ] && [ -e r ] && [ ! -f r ]
    [ "$(echo ./*.new*)" = './*.new*' ]
}

@test "if one output cannot be renamed, all files stay unchanged" {
    local sandbox
    for sandbox in -q --no-sandbox; do
        meanwhile mkdir -o f --rejects=r "$sandbox"
        meanwhile mkfifo -o f --rejects=r "$sandbox"
        meanwhile mkdir -o r "$sandbox"
        meanwhile mkfifo -o r "$sandbox"
    done
}

# keeps_aside MESSAGE COMMAND...: f.new.old and f do not change.
keeps_aside() {
    echo old >f
    cp in.tok f.new.old
    speaker=${2%% *} refused 1 "$1" "${@:2}"
    cmp in.tok f.new.old
    [ "$(cat f)" = old ]
    absent f.new r r.new g g.new
    rm f.new.old
}

@test "another file with the name for an old output is not overwritten" {
    local packing=(packstream -q -L 8 --overlong=drop) sandbox
    tokcat --from=ids <<<'1 2' >in.tok
    for sandbox in -q --no-sandbox; do
        keeps_aside 'f.new.old: is also an input: choose another output' \
            "${packing[@]}" "$sandbox" -o f --rejects=r f.new.old
        keeps_aside 'f.new.old: exists already: rename or remove it' \
            "${packing[@]}" "$sandbox" -o f --rejects=r in.tok
        keeps_aside 'f.new.old: exists already: rename or remove it' \
            "${packing[@]}" "$sandbox" -o r --rejects=f in.tok
    done
    packstat --histogram in.tok >h.new.old
    speaker=packstream refused 1 'h.new.old: is also an input: choose another '\
'output' \
        "${packing[@]}" --learn-from=h.new.old -o h in.tok
    [ -s h.new.old ]
    keeps_aside 'named by both -o and --rejects' \
        "${packing[@]}" -o f --rejects=f.new.old in.tok
    keeps_aside 'named by both -o and --rejects' \
        "${packing[@]}" -o f.new.old --rejects=f in.tok
    keeps_aside 'f.new.old: is also an input: choose another output' \
        tokshuf -q --split=1:f,1:g f.new.old
    keeps_aside 'f.new.old: used for two outputs: give each its own name' \
        tokshuf -q --split=1:f,1:f.new.old in.tok
    keeps_aside 'f.new.old: exists already: rename or remove it' \
        tokshuf -q --split=1:g,1:f in.tok
    # A single output does not need that name.
    echo mine >f.new.old
    "${packing[@]}" -o f in.tok
    packstat -q --verify f
    [ "$(cat f.new.old)" = mine ]
}

@test "a file created there later is not overwritten either" {
    local job
    echo old >f
    mkfifo pipe
    packstream -q -L 2 --overlong=drop -o f --rejects=r pipe 2>err &
    job=$!
    opens 7 '>' pipe "$job"
    record16 1 2 3 >&7
    idle "$job"
    echo mine >f.new.old
    exec 7>&-
    exits 1 "$job"
    grep 'packstream: f.new.old: exists' err
    [ "$(cat f)" = old ] && [ "$(cat f.new.old)" = mine ]
    absent f.new r r.new
}

@test "a link that replaces one of two outputs is replaced" {
    local job sandbox
    mkfifo pipe
    for sandbox in -q --no-sandbox; do
        rm -f f r
        echo old >f
        echo theirs >t
        packstream -q -L 2 --overlong=drop "$sandbox" -o f --rejects=r pipe &
        job=$!
        opens 7 '>' pipe "$job"
        record16 1 2 >&7
        idle "$job"
        rm f
        ln -s t f
        exec 7>&-
        exits 0 "$job"
        [ ! -L f ] && packstat -q --verify f
        [ "$(cat t)" = theirs ]
        absent f.new f.new.old r.new r.new.old
    done
}

# limited BLOCKS COMMAND...: limits the size of files, except messages.
limited() {
    (
        ulimit -f "$1"
        exec "${@:2}" 2>&1
    ) | cat >&2
    return "${PIPESTATUS[0]}"
}

@test "exceeding the file size limit is an error, not a signal" {
    local k threads form
    small_blocks 8
    for ((k = 0; k < 3000; k++)); do echo "$k 1 2 3 4 5 6"; done >ids
    tokcat --from=ids -o more ids
    packstream -L 16 -o whole more
    speaker=tokcat refused 1 'out: cannot write: File too large' \
        limited 4 tokcat --from=ids -o out ids
    for form in ids trl llmc; do
        speaker=packcat refused 1 'out: cannot write: File too large' \
            limited 4 packcat --to=$form -o out whole
        rm -f out
    done
    packstat --histogram whole >hist
    speaker=packstat refused 1 'stdout: ' limited 0 sh -c \
        'exec packstat whole >out'
    speaker=packplan refused 1 'stdout: ' limited 0 sh -c \
        'exec packplan -q -L 16 hist >out'
    for threads in 1 3; do
        speaker=packstream refused 1 'out: cannot write: File too large' \
            limited 48 packstream -T$threads -L 16 -o out more
        # It continues once there is space again.
        rm -f s
        speaker=packstream refused 1 'out: cannot write: File too large' \
            limited 48 packstream -T$threads -L 16 --state=s \
            --state-every=10 -o out more
        packstream -L 16 --state=s --resume -o out more
        cmp out whole
        rm -f s
        speaker=packstream refused 1 's: File too large' \
            limited 0 packstream -L 16 --state=s -o /dev/null more
        [ ! -e s ] && [ ! -e s.new ]
    done
}
