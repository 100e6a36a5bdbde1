# ps-xxh-dispatch.m4 - whether libxxhash chooses its code at run time.
#
# PS_XXH_DISPATCH
#
# Adds -DHAVE_XXH_DISPATCH to XXHASH_CFLAGS if the header and the library
# have these functions, which exist for x86 if they were built in.  The library
# linked later may lack them (base/hash.h).
#
# SPDX-License-Identifier: MIT

AC_DEFUN([PS_XXH_DISPATCH], [
ps_save_CFLAGS=$CFLAGS
ps_save_LIBS=$LIBS
CFLAGS="$CFLAGS $XXHASH_CFLAGS"
LIBS="$LIBS $XXHASH_LIBS"
AC_CACHE_CHECK([whether xxHash chooses its code at run time],
    [ps_cv_xxh_dispatch],
    [AC_LINK_IFELSE([AC_LANG_PROGRAM([[#include <xxhash.h>
#include <xxh_x86dispatch.h>]],
        [[return (int)XXH3_64bits("", 0);]])],
        [ps_cv_xxh_dispatch=yes], [ps_cv_xxh_dispatch=no])])
CFLAGS=$ps_save_CFLAGS
LIBS=$ps_save_LIBS
AS_IF([test "$ps_cv_xxh_dispatch" = yes],
    [XXHASH_CFLAGS="$XXHASH_CFLAGS -DHAVE_XXH_DISPATCH"])
])
