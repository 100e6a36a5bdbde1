# ps-cuda.m4 - CUDA, for the BERT in trainer.
# SPDX-License-Identifier: MIT

# PS_CUDA
# Finds nvcc of CUDA 12 or 13 and cublasLt, or does without.  Sets NVCC,
# CUDA_ARCHS, NVCC_GENCODE, NVCC_WARN, CUDA_HOME and CUDA_LIBS; ps_cuda says
# what is missing, or "yes".  WITH_CUDA, for automake, is true only if the user
# asked for it: its compiler takes minutes, and few who build have a GPU.
#
# Sub-architectures that this nvcc does not know are left out: sm_100 came with
# CUDA 12.8.
AC_DEFUN([PS_CUDA], [
    AC_REQUIRE([PS_BERT])
    AC_REQUIRE([PS_WARNINGS])
    AC_ARG_WITH([cuda],
        [AS_HELP_STRING([--with-cuda@<:@=DIR@:>@],
            [build the trainer for GPUs, with CUDA of DIR @<:@no@:>@])],
        [], [with_cuda=check])
    AC_ARG_VAR([NVCC], [CUDA's compiler])
    AC_ARG_VAR([NVCCFLAGS], [its flags [-O3]])
    AC_ARG_VAR([CUDA_ARCHS], [what it compiles for [80 90 100]])
    : ${NVCCFLAGS=-O3}
    AS_CASE([$with_cuda],
        [no], [ps_cuda='no: --without-cuda'],
        [yes|check],
            [PS_CUDA_FIND([$PATH$PATH_SEPARATOR/usr/local/cuda/bin])],
        [PS_CUDA_FIND([$with_cuda/bin])])
    AS_IF([test "$ps_cuda" = yes && test "$ps_bert" != yes],
        [ps_cuda="$ps_bert"])
    AS_CASE([$with_cuda,$ps_cuda],
        [no,*|check,*|*,yes], [],
        [AC_MSG_ERROR([--with-cuda, but $ps_cuda])])
    NVCC_WARN=
    ps_ptxas=--warn-on-spills,--warn-on-local-memory-usage
    AS_IF([test "$enable_werror" != no],
        [NVCC_WARN='-Werror all-warnings'
        ps_ptxas=$ps_ptxas,-Werror])
    AC_SUBST([NVCC_WARN], ["$NVCC_WARN -Xptxas $ps_ptxas"])
    AC_SUBST([NVCC_GENCODE])
    AC_SUBST([CUDA_HOME])
    AC_SUBST([CUDA_LIBS])
    AM_CONDITIONAL([WITH_CUDA],
        [test "$ps_cuda" = yes && test "$with_cuda" != check])
])

# PS_CUDA_FIND(PATH)
# Looks for it there; what nvcc says of itself leads to the libraries.
AC_DEFUN([PS_CUDA_FIND], [
    AC_PATH_PROG([NVCC], [nvcc], [no], [$1])
    ps_cuda='nvcc was not found'
    AS_IF([test "$NVCC" != no], [
        AC_CACHE_CHECK([for the release of CUDA], [ps_cv_cuda_release],
            [ps_cv_cuda_release=`$NVCC --version 2>/dev/null |
                sed -n 's/.*release \(@<:@0-9@:>@*\)\..*/\1/p'`])
        AS_CASE([$ps_cv_cuda_release],
            [12|13], [PS_CUDA_TRY],
            [ps_cuda="CUDA 12 or 13 is needed, and $NVCC is another"])])
])

AC_DEFUN([PS_CUDA_TRY], [
    AC_CACHE_CHECK([what $NVCC compiles for], [ps_cv_cuda_archs], [
        ps_cv_cuda_archs=
        for ps_arch in ${CUDA_ARCHS-80 90 100}; do
            AS_IF([$NVCC --list-gpu-code | grep -qx sm_$ps_arch],
                [AS_VAR_APPEND([ps_cv_cuda_archs], [" $ps_arch"])])
        done])
    CUDA_ARCHS=$ps_cv_cuda_archs
    NVCC_GENCODE=
    for ps_arch in $CUDA_ARCHS; do
        AS_VAR_APPEND([NVCC_GENCODE],
            [" -gencode arch=compute_$ps_arch,code=sm_$ps_arch"])
    done
    dnl For GPUs to come: what the driver compiles when it loads a kernel.
    AS_VAR_APPEND([NVCC_GENCODE],
        [" -gencode arch=compute_$ps_arch,code=compute_$ps_arch"])
    AC_CACHE_CHECK([whether $NVCC compiles], [ps_cv_cuda_compiles], [
        ps_cv_cuda_compiles=no
        echo '__global__ void f(int *x) { *x = 1; }' >conftest.cu
        AS_IF([test "$CUDA_ARCHS" != '' &&
                $NVCC -c conftest.cu -o conftest.cuo >&AS_MESSAGE_LOG_FD 2>&1],
            [ps_cv_cuda_compiles=yes])
        rm -f conftest.cu conftest.cuo])
    AC_CACHE_CHECK([where CUDA is], [ps_cv_cuda_home], [
        echo >conftest.cu
        ps_cv_cuda_home=`$NVCC --dryrun -c conftest.cu 2>&1 |
            sed -n 's/^#\\$ TOP=//p'`
        ps_cv_cuda_home=`cd "$ps_cv_cuda_home" 2>/dev/null && pwd -P`
        rm -f conftest.cu])
    CUDA_HOME=$ps_cv_cuda_home
    AS_IF([test "$ps_cv_cuda_compiles" = no],
        [ps_cuda="$NVCC does not compile"], [
        for ps_lib in lib64 lib targets/*/lib; do
            for ps_lib in "$CUDA_HOME"/$ps_lib; do
                AS_IF([test -e "$ps_lib/libcublasLt.so"], [break 2])
            done
        done
        CUDA_LIBS="-L$ps_lib -lcublasLt -lcudart_static -lrt -ldl -lstdc++"
        ps_save_LIBS=$LIBS
        LIBS="$CUDA_LIBS $LIBS"
        AC_CACHE_CHECK([for cublasLt], [ps_cv_cuda_cublaslt],
            [AC_LINK_IFELSE([AC_LANG_CALL([], [cublasLtGetVersion])],
                [ps_cv_cuda_cublaslt=yes], [ps_cv_cuda_cublaslt=no])])
        LIBS=$ps_save_LIBS
        CUDA_LIBS="$CUDA_LIBS -Wl,-rpath,$ps_lib"
        AS_IF([test "$ps_cv_cuda_cublaslt" = yes],
            [ps_cuda=yes], [ps_cuda='cublasLt was not found'])])
])
