# ps-static.m4 - statically linked programs.
# SPDX-License-Identifier: MIT

# PS_STATIC_ASK
# Adds --enable-static-programs.  Call it before the checks for libraries, so
# that each library lists its own dependencies.
AC_DEFUN([PS_STATIC_ASK], [
    AC_ARG_ENABLE([static-programs],
        [AS_HELP_STRING([--enable-static-programs],
            [programs that need no libraries where they run])],
        [], [enable_static_programs=no])
    AS_IF([test "$enable_static_programs" = yes],
        [PKG_CONFIG="$PKG_CONFIG --static"])
])

# PS_STATIC
# Sets PROGRAM_LDFLAGS, for libtool; fails if a library has no static form.
AC_DEFUN([PS_STATIC], [
    AS_IF([test "$enable_static_programs" = yes], [
        AS_IF([test "$enable_static" = no],
            [AC_MSG_ERROR([--enable-static-programs needs --enable-static])])
        ps_libs=$LIBS ps_ldflags=$LDFLAGS
        LIBS="$ZSTD_LIBS $XXHASH_LIBS $JANSSON_LIBS $ZLIB_LIBS -lm $LIBS"
        LDFLAGS="$LDFLAGS -static"
        AC_MSG_CHECKING([for static libraries])
        AC_LINK_IFELSE([AC_LANG_CALL([], [ZSTD_versionNumber])], [],
            [AC_MSG_RESULT([no])
            AC_MSG_FAILURE([--enable-static-programs: not all of these libraries have a static form: $LIBS])])
        AC_MSG_RESULT([$LIBS])
        LIBS=$ps_libs LDFLAGS=$ps_ldflags
        AC_SUBST([PROGRAM_LDFLAGS], [-all-static])
    ])
])
