# ps-cudnn.m4 - cuDNN, for attention of the trainer on GPUs.
# SPDX-License-Identifier: MIT

# PS_CUDNN
# --with-cudnn; sets CUDNN_LIBS, and WITH_CUDNN for automake; ps_cudnn says what
# is missing, or "yes".
AC_DEFUN([PS_CUDNN], [
    AC_REQUIRE([PS_CUDA])
    AC_ARG_WITH([cudnn],
        [AS_HELP_STRING([--with-cudnn@<:@=auto|yes|no@:>@],
            [the trainer on GPUs has --attention=cudnn, where there are CUDA,
            cuDNN and the headers of cudnn-frontend @<:@auto@:>@;
            NVCCFLAGS=-isystem and LDFLAGS=-L say where they are])],
        [], [with_cudnn=auto])
    CUDNN_LIBS=
    AS_IF([test "$with_cudnn" = no], [ps_cudnn='no: --without-cudnn'],
        [test "$ps_cuda" != yes || test "$with_cuda" = check],
            [ps_cudnn='no: see --with-cuda'],
        [PS_CUDNN_TRY])
    AS_IF([test "$with_cudnn" = yes && test "$ps_cudnn" != yes],
        [AC_MSG_ERROR([--with-cudnn: $ps_cudnn])])
    AC_SUBST([CUDNN_LIBS])
    AM_CONDITIONAL([WITH_CUDNN], [test "$ps_cudnn" = yes])
])

# PS_CUDNN_HAS(HEADER, CONDITION, IF_NOT)
AC_DEFUN([PS_CUDNN_HAS], [
    AS_ECHO(['@%:@include <$1>
        static_assert($2, "too old");']) >conftest.cu
    AS_IF([$NVCC $NVCCFLAGS -c conftest.cu -o conftest.cuo \
            >&AS_MESSAGE_LOG_FD 2>&1], [], [$3])
    rm -f conftest.cu conftest.cuo
])

# These versions plan for sm_80, 90 and 100; on sm_80 older ones take no ragged
# rows.  The headers themselves take a minute to compile, so configure looks at
# their version only.  NVRTC is what they compile other graphs with.
AC_DEFUN([PS_CUDNN_TRY], [
    AC_CACHE_CHECK([for cuDNN], [ps_cv_cudnn], [
        ps_cv_cudnn=yes
        ps_save_LIBS=$LIBS
        LIBS="-lcudnn -lnvrtc $CUDA_LIBS $LIBS"
        AC_LINK_IFELSE([AC_LANG_CALL([], [cudnnBackendExecute])], [],
            [ps_cv_cudnn='no: cuDNN was not found'])
        LIBS=$ps_save_LIBS
        PS_CUDNN_HAS([cudnn_frontend_version.h],
            [CUDNN_FRONTEND_VERSION >= 12200],
            [ps_cv_cudnn='no: cudnn-frontend 1.22 was not found'])
        PS_CUDNN_HAS([cudnn.h], [CUDNN_VERSION >= 91900],
            [ps_cv_cudnn='no: cuDNN 9.19 was not found'])])
    ps_cudnn=$ps_cv_cudnn
    AS_IF([test "$ps_cudnn" = yes], [CUDNN_LIBS='-lcudnn -lnvrtc'])
])
