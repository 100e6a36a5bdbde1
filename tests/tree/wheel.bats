#!/usr/bin/env bats
# wheel.bats - the Python package and its programs, built by pip from a source
# distribution and installed in a separate environment.
#
# The checks are functions of tests/support/python-package.py.
#
# SPDX-License-Identifier: MIT

load ../support/helpers

# The first python3 with numpy that can build the package.
builder() {
    local python
    for python in "$PYTHON_NUMPY" python3 /usr/bin/python3; do
        "$python" -c 'import cffi, numpy, setuptools, wheel, pip, venv' \
            2>/dev/null || continue
        printf '%s\n' "$python"
        return
    done
    return 1
}

# The wheel is built once, without optimisation and without downloads.
setup_file() {
    local python
    [ -z "${QUICK-}" ] || return 0
    python=$(builder) || return 0
    cd "$BATS_FILE_TMPDIR" || return
    mkdir clone source
    (cd "${abs_top_srcdir:?}" &&
        cp -R MANIFEST.in COPYING pyproject.toml setup.py python src man \
            "$OLDPWD/clone")
    chmod -R u+w clone
    rm -rf clone/python/build clone/python/packstream.egg-info
    (cd clone && "$python" -c '
from setuptools.build_meta import build_sdist
build_sdist("..")') >sdist.log 2>&1 || { mv sdist.log wheel.log; return 0; }
    tar -xzf packstream-*.tar.gz -C source --strip-components=1
    (cd source && find . | sort) >tree
    CFLAGS=-O0 "$python" -m pip wheel -q --no-build-isolation --no-deps \
        --no-index -w wheels ./source >wheel.log 2>&1 || return 0
    # Uses the system's pip; installing another one is slow.
    "$python" -m venv --system-site-packages --without-pip venv
    # pip removes the manual pages, but not these folders.
    mkdir -p venv/share/man
    find venv | sort >before
    venv/bin/python -m pip install -q --no-deps --no-index wheels/*.whl
}

setup() {
    start
    skip_if_quick
    package=$BATS_FILE_TMPDIR/venv/bin/python
    [ -s "$BATS_FILE_TMPDIR/wheel.log" ] && cat "$BATS_FILE_TMPDIR/wheel.log"
    [ -d "$BATS_FILE_TMPDIR/source" ] ||
        skip "no python3 has cffi, numpy, setuptools, wheel, pip and venv"
}

# check NAME [ARGUMENT]...
check() {
    python=$package support python-package.py "$@"
}

# The path of a program of this build.
program() {
    command -v "$1"
}

# some NAME SEED N [OPTION]...: NAME.pks of N random sequences.
some() {
    awk -v seed="$2" -v n="$3" 'BEGIN {
        srand(seed)
        while (n--) {
            for (k = 1 + int(rand() * 32); k; k--)
                printf "%d%s", rand() * 60000, (k > 1 ? " " : "\n")
        } }' | tokcat --from=ids | packstream -L 32 -d 4 "${@:4}" -o "$1.pks"
}

@test "the wheel is built, and installed with all its modules" {
    [ -x "$package" ]
    "$package" -c 'import packstream; packstream.Packer(8)'
    "$package" -c 'from packstream._native import lib'
    (cd "$abs_top_srcdir/python/packstream" && ls -- *.py) >modules
    run -0 "$package" -c '
import os, packstream
print(*sorted(n for n in os.listdir(os.path.dirname(packstream.__file__))
              if n.endswith(".py")), sep="\n")'
    sort modules | LC_ALL=C sort | diff - <(LC_ALL=C sort <<<"$output")
    local version
    version=$(packstream --version | sed -n '1s/.* //p')
    check version "$version"
    # Without the extension: as installed, and in the sources.
    mkdir pure
    "$package" -m zipfile -e "$BATS_FILE_TMPDIR"/wheels/*.whl pure
    rm pure/packstream/_native*
    mkdir sources
    cp -R "$abs_top_srcdir/python" "$abs_top_srcdir/src" sources
    rm -f sources/python/packstream/_native*
    for place in pure sources/python; do
        run -0 env PYTHONPATH="$place" "$package" -c '
import packstream
assert packstream.library.lib is None
print(packstream.__version__)'
        [ "$output" = "$version" ]
    done
}

@test "the programs are installed, and are those of this build" {
    local bin=$BATS_FILE_TMPDIR/venv/bin main name
    for main in "$abs_top_srcdir"/src/*/main.c; do
        name=$(basename "$(dirname "$main")")
        cmp <("$bin/$name" --help) <("$name" --help)
        cmp <("$bin/$name" --version) <("$name" --version)
    done
    [ "$(find "$bin" -name 'pack*' -o -name 'tok*' | wc -l)" -eq 8 ]
    local page
    for page in "$abs_top_srcdir"/man/*.[157]; do
        cmp "$page" "$bin/../share/man/man${page##*.}/${page##*/}"
    done
    seq 20000 | gzip | "$bin/tokcat" -q --from=bytes |
        "$bin/packstream" -q -L 64 --overlong=split --zstd >x.pks
    seq 20000 | tokcat -q --from=bytes |
        packstream -q -L 64 --overlong=split --zstd | cmp - x.pks
    "$bin/packcat" --to=bytes x.pks | cmp - <(seq 20000)
    echo '{"input_ids": [1, 2]}' | "$bin/tokcat" --from=jsonl |
        "$bin/packstat" --json | grep -F '"tokens": 2,'
}

@test "building the wheel does not change the sources" {
    (cd "$BATS_FILE_TMPDIR/source" && find . | sort) |
        diff "$BATS_FILE_TMPDIR/tree" -
}

@test "a packer: each sequence once, with its channels" {
    check packer
    check packer_steps
    check packer_at_once
    check packer_after_failure
}

@test "a packer makes the packs of packstream" {
    check packer_is_packstream "$(program packstream)"
}

@test "a packer is saved and resumed" {
    check packer_resumes
    check packer_learns
    check packer_groups
    check packer_budgets
}

@test "a packer that is deleted with sequences inside" {
    check packer_lost
}

@test "channels of vectors, from writers and packers to readers" {
    check vectors "$(program packstream)"
}

@test "channels of lists, from writers and packers to readers" {
    check lists "$(program packstream)"
}

@test "a packer refuses invalid sequences" {
    check packer_refuses
    check masked_refused
}

@test "packers in threads" {
    check packer_threads
}

@test "packs from lengths alone" {
    check lengths
}

@test "deals: the ranks together take each pack once, with equal work" {
    some a 1 80
    some z 2 150 --zstd
    check deals a.pks z.pks
    check deals_of_few a.pks
    check deals_of_all_sizes a.pks
    check deals_refused a.pks
}

@test "balance: one step in packs, with equal work for the ranks" {
    check balance
    check balance_refused
}

@test "lookups return what a run recorded" {
    some a 1 300
    some z 2 400 --zstd
    check lookups a.pks z.pks
    some a 1 120 --overlong=split -L 20
    some z 2 80 --overlong=split -L 20
    check lookups a.pks z.pks
}

@test "packs of files in any order: plain, compressed, joined, several" {
    some a 1 80
    some b 2 50
    some z 1 80 --zstd
    cat a.pks b.pks >j.pks
    check files a.pks b.pks z.pks j.pks
    some d 3 60 -d 9
    check depths a.pks d.pks
}

@test "checksums compared by the extension" {
    local name
    for name in one other; do
        printf '3 1 4\n1 5\n9 2 6 5\n3 5 8\n9 7 9\n%d\n' "${#name}" |
            tokcat --from=ids | packstream -L 8 -a nextfit -o "$name.pks"
    done
    check verified one.pks other.pks
    WITHOUT_XXHASH=1 check verified one.pks other.pks
}

# As in tests/tree/python.bats with numpy alone.
@test "rules that the extension checks, and boundaries that it computes" {
    printf '%s\n' '3 1 4' '1 5' '9 2 6 5' '3 5 8' '9 7 9 3 2 3 8 4' 6 \
        '2 6 4' | tokcat --from=ids |
        packstream -L 8 -d 3 -a bestfit --block-packs=2 -o small.pks
    some a 1 80
    some b 2 80 --align=4 --block-packs=4
    export INSTALLED=1 python=$package
    support python.py rules small.pks
    printf '1 2 3\n4\n' | tokcat --from=ids | packstream -L 8 -o one.pks
    support python.py unowned one.pks
    support python.py views a.pks 32 4
    support python.py views b.pks 32 4 0 4
    support python.py sequences b.pks
}

@test "files that do not match, are missing or are damaged" {
    some a 1 80
    some b 2 50 --align=4
    cp a.pks d.pks
    check files_refused a.pks b.pks d.pks
    check files_hostile a.pks
}

@test "files that change, streams, and descriptors" {
    some a 1 80
    some b 2 90 -L 64
    check files_replaced a.pks b.pks
    check streams_refused a.pks
    check descriptors a.pks
}

@test "files after fork" {
    some z 1 80 --zstd
    check forked z.pks
}

@test "token records round-trip" {
    check writer "$(program packcat)"
    check writer_ends "$(program packstream)"
}

@test "token records: an older file stays until the new one is complete" {
    check writer_replaces
    check writer_to_stdout "$PWD/records" >records
}

@test "the examples of python/README.md" {
    local readme=$abs_top_srcdir/python/README.md
    sed -n 's/^    [$>] //p' "$readme" |
        sed "s:python3 examples/:$package $abs_top_srcdir/examples/:" \
            >examples.sh
    echo '1 2 3' | tokcat --from=ids >corpus.tok
    run -0 bash -e examples.sh
    [[ $output == *'1 steps, 1 sequences, 3 tokens, '* ]]
    sed -n "/^\`\`\`/,/^\`\`\`/d; /^    [$>] /d; s/^    //p" "$readme" \
        >examples.py
    run -0 "$package" examples.py
    [ "${lines[0]}" = "[-100    2    3 -100] 7" ]
    [ "${lines[1]}" = "[[1, 0], [2, 3]]" ]
    [ "${lines[2]}" = "8 2" ]
    [[ $output == *"[[[0]], [[1]], []]"* ]]
}

@test "the examples of docs/lookups.md" {
    local page=$abs_top_srcdir/docs/lookups.md
    sed -n "/^\`\`\`sh/,/^\`\`\`/{/^\`/!p;}" "$page" >examples.sh
    run -0 bash -e examples.sh
    sed -n "/^\`\`\`python/,/^\`\`\`/{/^\`/!p;}" "$page" >examples.py
    echo 'print((labels != views.labels(batch)).sum())' >>examples.py
    run -0 "$package" examples.py
    [ "$output" = $((4 - 1 + 30 - 1)) ]     # first tokens have no target
}

@test "make install-python, and make uninstall-python" {
    local python
    python=$(builder)
    unset MAKEFLAGS MFLAGS MAKELEVEL
    # Keep the existing wheel; a new one would lack the programs.
    mkdir -p "${abs_top_builddir:?}/python-wheel"
    "$python" - "$BATS_FILE_TMPDIR"/wheels/*.whl \
        "$abs_top_builddir/python-wheel" <<'EOF'
import os, sys, zipfile
old = zipfile.ZipFile(sys.argv[1])
with zipfile.ZipFile(os.path.join(
        sys.argv[2], os.path.basename(sys.argv[1])), "w") as new:
    for name in old.namelist():
        if ".data/" not in name:
            new.writestr(name, old.read(name))
EOF
    touch "$abs_top_builddir/python-wheel/stamp"
    make -C "$abs_top_builddir" install-python PYTHON="$python" \
        DESTDIR="$PWD/installed" pythondir=/lib/packages >install.log 2>&1
    (cd "$abs_top_builddir" && rm -rf python-wheel)
    PYTHONDONTWRITEBYTECODE=1 PYTHONPATH=$PWD/installed/lib/packages \
        "$python" -c 'import packstream; packstream.Packer(8)'
    make -C "$abs_top_builddir" uninstall-python DESTDIR="$PWD/installed" \
        pythondir=/lib/packages
    run -0 find installed -type f
    [ -z "$output" ]
}

@test "uninstalling leaves no files" {
    cd "$BATS_FILE_TMPDIR"
    "$package" -m pip uninstall -q -y packstream
    find venv -name __pycache__ -prune -o -print | grep -v __pycache__ |
        sort >after
    grep -v __pycache__ before | diff - after
}
