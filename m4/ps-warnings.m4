# ps-warnings.m4 - warnings that the compiler supports.
# SPDX-License-Identifier: MIT

# PS_CC_FLAG(FLAG)
# Appends FLAG to WARN_CFLAGS if the compiler accepts it silently.
AC_DEFUN([PS_CC_FLAG], [
    AS_VAR_PUSHDEF([known], [ps_cv_cc_flag_$1])
    AC_CACHE_CHECK([whether $CC takes $1], [known], [
        ps_save_CFLAGS=$CFLAGS
        CFLAGS="$CFLAGS -Werror $1"
        AC_COMPILE_IFELSE([AC_LANG_PROGRAM([], [])],
            [AS_VAR_SET([known], [yes])], [AS_VAR_SET([known], [no])])
        CFLAGS=$ps_save_CFLAGS
    ])
    AS_VAR_IF([known], [yes], [WARN_CFLAGS="${WARN_CFLAGS:+$WARN_CFLAGS }$1"])
    AS_VAR_POPDEF([known])
])

# PS_WARNINGS
# Sets WARN_CFLAGS; --enable-werror makes every warning an error.
#
# Looked at and left out:
#   -Wpadded              structures in memory may have gaps
#   -Waggregate-return    small structures are returned by value on purpose
#   -Wswitch-enum         asks for every case even where there is a default
#   -Wswitch-default      the opposite: hides a case that was forgotten
#   -Wunused-macros       a header's table of results is expanded in parts
#   -Wlogical-op          EAGAIN and EWOULDBLOCK may be one number or two
#   -Wfloat-equal         the few comparisons with zero are meant
#   -Winline, -Wunsafe-loop-optimizations    about the optimiser, not the code
#   -Wtraditional, -Wc++-compat    we write C11
#   -Weverything          switches on warnings that contradict one another
#   -Wdeclaration-after-statement  variables are declared where needed
#   -Wstack-usage, -Wframe-larger-than  depend on the optimiser's choices
AC_DEFUN([PS_WARNINGS], [
    AC_ARG_ENABLE([werror],
        [AS_HELP_STRING([--enable-werror],
            [treat warnings as errors (for developers)])],
        [], [enable_werror=no])
    WARN_CFLAGS=
    m4_map_args_w([
        -Wall -Wextra -Wpedantic
        -Wconversion -Wsign-conversion -Wdouble-promotion
        -Wshadow -Wundef -Wvla -Walloca
        -Wstrict-prototypes -Wmissing-prototypes -Wold-style-definition
        -Wmissing-variable-declarations -Wredundant-decls -Wnested-externs
        -Wcast-align -Wcast-qual -Wpointer-arith -Wwrite-strings
        -Wformat=2 -Wimplicit-fallthrough -Wnull-dereference
        -Wduplicated-cond -Wduplicated-branches
        -Wjump-misses-init -Wdate-time -Wunreachable-code
        -Wcomma -Wassign-enum -Wshorten-64-to-32
    ], [PS_CC_FLAG(], [)
    ])
    AS_IF([test "$enable_werror" != no],
        [WARN_CFLAGS="$WARN_CFLAGS -Werror"])
    AC_SUBST([WARN_CFLAGS])
])
