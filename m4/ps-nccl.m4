# ps-nccl.m4 - NCCL, for a trainer of several processes on GPUs.
# SPDX-License-Identifier: MIT

# PS_NCCL
# --with-nccl; sets NCCL_LIBS, and WITH_NCCL for automake; ps_nccl says what is
# missing, or "yes".
AC_DEFUN([PS_NCCL], [
    AC_REQUIRE([PS_CUDA])
    AC_REQUIRE([PS_MPI])
    AC_ARG_WITH([nccl],
        [AS_HELP_STRING([--with-nccl@<:@=auto|yes|no@:>@],
            [GPUs of several processes sum by NCCL, where there are CUDA and
            MPI @<:@auto@:>@; NVCCFLAGS=-I and LDFLAGS=-L say where it is])],
        [], [with_nccl=auto])
    NCCL_LIBS=
    AS_IF([test "$with_nccl" = no], [ps_nccl='no: --without-nccl'],
        [test "$ps_mpi" != yes], [ps_nccl='no: MPI was not found'],
        [test "$ps_cuda" != yes || test "$with_cuda" = check],
            [ps_nccl='no: see --with-cuda'],
        [PS_NCCL_TRY])
    AS_IF([test "$with_nccl" = yes && test "$ps_nccl" != yes],
        [AC_MSG_ERROR([--with-nccl: $ps_nccl])])
    AC_SUBST([NCCL_LIBS])
    AM_CONDITIONAL([WITH_NCCL], [test "$ps_nccl" = yes])
])

# ncclInProgress came with 2.14.
AC_DEFUN([PS_NCCL_TRY], [
    AC_CACHE_CHECK([for NCCL], [ps_cv_nccl], [
        ps_cv_nccl=no
        AS_ECHO(['@%:@include <nccl.h>
            static_assert(NCCL_VERSION_CODE >= 21400, "too old");']) >conftest.cu
        AS_IF([$NVCC $NVCCFLAGS -c conftest.cu -o conftest.cuo \
                >&AS_MESSAGE_LOG_FD 2>&1], [
            ps_save_LIBS=$LIBS
            LIBS="-lnccl $CUDA_LIBS $LIBS"
            AC_LINK_IFELSE([AC_LANG_CALL([], [ncclCommAbort])],
                [ps_cv_nccl=yes])
            LIBS=$ps_save_LIBS])
        rm -f conftest.cu conftest.cuo])
    AS_IF([test "$ps_cv_nccl" = yes],
        [ps_nccl=yes NCCL_LIBS=-lnccl], [ps_nccl='no: NCCL was not found'])
])
