# ps-bert.m4 - libraries for the trainer.
# SPDX-License-Identifier: MIT

# PS_BERT
# Sets OPENMP_CFLAGS, OPENBLAS_CFLAGS and OPENBLAS_LIBS, and HAVE_BERT for
# automake; ps_bert says what is missing, or "yes".
AC_DEFUN([PS_BERT], [
    AC_OPENMP
    PKG_CHECK_MODULES([OPENBLAS], [openblas >= 0.3],
        [ps_bert=yes], [ps_bert='OpenBLAS was not found'])
    AS_IF([test "$ac_cv_prog_c_openmp" = unsupported ||
            test "$enable_openmp" = no],
        [ps_bert='the compiler has no OpenMP'])
    AM_CONDITIONAL([HAVE_BERT], [test "$ps_bert" = yes])
])
