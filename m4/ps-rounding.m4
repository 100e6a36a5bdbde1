# ps-rounding.m4 - rounds doubles after each operation.
#
# PS_ROUNDING
#
# Substitutes FP_CFLAGS.  The packs of an input are the same bytes on every
# machine only if no operation keeps more bits than a double has.  The x87 unit
# of 32-bit x86 does, so SSE2 is used there.
#
# SPDX-License-Identifier: MIT

AC_DEFUN([PS_ROUNDING], [
AC_CACHE_CHECK([for flags to round doubles after each operation],
    [ps_cv_fp_cflags],
    [ps_cv_fp_cflags=unknown
    ps_save_CFLAGS=$CFLAGS
    for ps_flags in "" "-msse2 -mfpmath=sse"; do
        CFLAGS="$ps_save_CFLAGS -std=c11 $ps_flags"
        AC_COMPILE_IFELSE([AC_LANG_PROGRAM([[#include <float.h>]],
            [[int ok[FLT_EVAL_METHOD == 0 || FLT_EVAL_METHOD == 1 ? 1 : -1];
              (void)ok;]])],
            [ps_cv_fp_cflags=${ps_flags:-none needed}; break])
    done
    CFLAGS=$ps_save_CFLAGS])
AS_CASE([$ps_cv_fp_cflags],
    ["none needed"], [FP_CFLAGS=],
    [unknown], [FP_CFLAGS=
        AC_MSG_WARN([packs may differ from those of other machines])],
    [FP_CFLAGS=$ps_cv_fp_cflags])
AC_SUBST([FP_CFLAGS])
])
