# install.bats - the files of `make install` are complete and usable.
# SPDX-License-Identifier: MIT

load ../support/helpers

setup_file() {
    cd "$BATS_FILE_TMPDIR" || return 1
    unset MAKEFLAGS MFLAGS MAKELEVEL
    make -C "${abs_top_builddir:?}" install DESTDIR="$PWD/root" \
        >install.log 2>&1 || { cat install.log; return 1; }
}

setup() {
    start
    # The folder of configure's --prefix below our DESTDIR.
    root=$BATS_FILE_TMPDIR/root
    bindir=$(dirname "$(find "$root" -path '*/bin/packstat')")
    prefix=$(dirname "$bindir")
    libdir=$(dirname "$(find "$root" -name 'libpackstream.la')")
}

@test "programs, pages, libraries, header and .pc file are installed" {
    local file
    for file in packcat packstat packstream tokcat tokmix tokshuf; do
        [ -x "$bindir/$file" ]
    done
    for file in packcat.1 packstat.1 packstream.1 packstream.3 packstream.5 \
        packstream.7 packstream-cluster.7 packstream-files.7 \
        packstream-packing.7 packstream-tuning.7 packstream-tutorial.7 \
        packdeal.1 packplan.1 tokcat.1 tokmix.1 tokshuf.1; do
        [ -s "$prefix/share/man/man${file##*.}/$file" ]
    done
    for file in libpackstream ps_version ps_packer_put ps_unpacker_next; do
        grep -Fx '.so man3/packstream.3' \
            "$prefix/share/man/man3/$file.3"
    done
    [ -s "$prefix/include/packstream.h" ]
    for file in "${abs_top_srcdir:?}"/src/include/packstream/*.h; do
        cmp "$file" "$prefix/include/packstream/${file##*/}"
    done
    [ -n "$(find "$prefix" -name 'libpackstream.*[ao]')" ]
    [ -n "$(find "$prefix" -name libpackstream.pc)" ]
}

@test "completion is installed where shells look for it" {
    [ -d "$abs_top_builddir/completion" ] || skip "this build has none"
    local program
    for program in packcat packdeal packplan packstat packstream tokcat \
        tokmix tokshuf; do
        [ -s "$prefix/share/bash-completion/completions/$program" ]
        [ -s "$prefix/share/zsh/site-functions/_$program" ]
        [ -s "$prefix/share/fish/vendor_completions.d/$program.fish" ]
    done
}

@test "the installed programs run and print the version of the build" {
    local program
    for program in packcat packstat packstream tokcat tokmix tokshuf; do
        run -0 env LD_LIBRARY_PATH="$libdir" "$bindir/$program" --version
        [ "${lines[0]}" = "$program (packstream) $PACKAGE_VERSION" ]
    done
}

@test "a program built with the .pc file runs" {
    skip_without pkg-config
    cat >user.c <<'END'
#include <packstream.h>
#include <stdio.h>
int main(void)
{
    return puts(ps_version()) < 0;
}
END
    local flags
    flags=$(PKG_CONFIG_PATH=$libdir/pkgconfig \
        pkg-config --define-variable=prefix="$prefix" \
        --cflags --libs --static libpackstream)
    # Word splitting intended: CC, CFLAGS and flags are lists.
    # shellcheck disable=SC2086
    $CC $CFLAGS -o user user.c $flags
    run -0 env LD_LIBRARY_PATH="$libdir" ./user
    [ "$output" = "$PACKAGE_VERSION" ]
}

# link_static FLAGS: a program that reads packs, from the static library alone,
# with the flags of its .pc file.
link_static() {
    local flags
    flags=$(PKG_CONFIG_PATH=$BATS_TEST_TMPDIR/lib/pkgconfig \
        pkg-config --define-variable=prefix="$prefix" \
        --define-variable=libdir="$BATS_TEST_TMPDIR/lib" \
        --cflags --libs --static libpackstream)
    # Word splitting intended: CC, CFLAGS and flags are lists.
    # shellcheck disable=SC2086
    $CC $CFLAGS $1 -o user user.c $flags
}

# libxxhash.a may lack calls that libxxhash.so has.
@test "the static library links from its .pc file" {
    skip_without pkg-config
    [ -e "$libdir/libpackstream.a" ] || skip "this build has no static library"
    cp -a "$libdir" lib
    rm -f lib/libpackstream.so*
    cat >user.c <<'END'
#include <packstream.h>
#include <stdio.h>
int main(void)
{
    ps_pack_reader *reader;
    ps_pack pack;
    ps_result r = ps_pack_reader_open(&reader, 0, NULL);
    while (r == PS_OK)
        r = ps_pack_reader_next(reader, &pack, NULL);
    if (r == PS_END)
        printf("%d\n", (int)ps_pack_reader_totals(reader)->tokens);
    ps_pack_reader_free(reader);
    return r != PS_END;
}
END
    seq 9999 | tokcat -q --from=bytes | packstream -q -L 64 >x.pks
    tokens=$(packcat -q --to=ids x.pks | wc -w)
    link_static ''
    [ "$(./user <x.pks)" = "$tokens" ]
    case $CFLAGS in
        *sanitize*) ;; # these have no static libraries
        *)
            link_static -static
            [ "$(./user <x.pks)" = "$tokens" ]
            ;;
    esac
}

@test "install-strip installs the same files, without symbols" {
    unset MAKEFLAGS MFLAGS MAKELEVEL
    make -C "$abs_top_builddir" install-strip DESTDIR="$PWD/strip" \
        >strip.log 2>&1
    (cd "$root" && find . | sort) >wanted
    (cd strip && find . | sort) | diff -u wanted -
    stripped=strip${bindir#"$root"}
    # It is a command with options.
    # shellcheck disable=SC2086
    $NM "$bindir/packstream" >symbols
    grep -q ' T main$' symbols
    # shellcheck disable=SC2086
    [ -z "$($NM "$stripped/packstream" 2>symbols.log)" ]
    run -0 env LD_LIBRARY_PATH="strip${libdir#"$root"}" \
        "$stripped/packstream" --version
}

@test "uninstall leaves nothing behind" {
    unset MAKEFLAGS MFLAGS MAKELEVEL
    cp -a "$root" root
    make -C "$abs_top_builddir" uninstall DESTDIR="$PWD/root" >uninstall.log
    run find root -type f -o -type l -o -path '*/include/packstream'
    [ -z "$output" ]
}
