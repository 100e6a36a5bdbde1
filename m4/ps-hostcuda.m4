# ps-hostcuda.m4 - a compiler for CUDA sources without CUDA, for tests.
# SPDX-License-Identifier: MIT

# PS_CXX_LINKS(FLAGS, IF_YES, IF_NO)
AC_DEFUN([PS_CXX_LINKS], [
    ps_save_CXXFLAGS=$CXXFLAGS
    CXXFLAGS="$CXXFLAGS $1"
    AC_LINK_IFELSE([AC_LANG_PROGRAM([[#include <tuple>]],
        [[const std::tuple<int> t(0); return std::apply(
            [](auto... v) { return (v + ...); }, t);]])],
        [$2], [$3])
    CXXFLAGS=$ps_save_CXXFLAGS
])

# PS_HOSTCUDA
# Finds a C++17 compiler.  Sets HAVE_HOSTCUDA, and HAVE_HOSTCUDA_ASAN and
# HAVE_HOSTCUDA_TSAN where it has those sanitizers, for automake; ps_hostcuda
# says what is missing, or what there is.
AC_DEFUN([PS_HOSTCUDA], [
    AC_LANG_PUSH([C++])
    AC_MSG_CHECKING([what $CXX can build of the tests of CUDA sources])
    PS_CXX_LINKS([-std=c++17 -pthread],
        [ps_hostcuda=yes], [ps_hostcuda=no])
    ps_hostcuda_asan=no ps_hostcuda_tsan=no
    AS_IF([test "$ps_hostcuda" = yes], [
        PS_CXX_LINKS([-std=c++17 -fsanitize=address,undefined],
            [ps_hostcuda_asan=yes])
        PS_CXX_LINKS([-std=c++17 -fsanitize=thread],
            [ps_hostcuda_tsan=yes])
    ])
    AS_IF([test "$ps_hostcuda_asan" = yes],
        [ps_hostcuda="$ps_hostcuda, with address"])
    AS_IF([test "$ps_hostcuda_tsan" = yes],
        [ps_hostcuda="$ps_hostcuda, with thread"])
    AC_MSG_RESULT([$ps_hostcuda])
    AC_LANG_POP([C++])
    AS_IF([test "$ps_hostcuda" = no],
        [ps_hostcuda='skipped: no C++17 compiler was found'])
    AM_CONDITIONAL([HAVE_HOSTCUDA],
        [test "${ps_hostcuda%%,*}" = yes])
    AM_CONDITIONAL([HAVE_HOSTCUDA_ASAN], [test "$ps_hostcuda_asan" = yes])
    AM_CONDITIONAL([HAVE_HOSTCUDA_TSAN], [test "$ps_hostcuda_tsan" = yes])
    HOSTCUDA_WARN='-Wall -Wextra'
    AS_IF([test "$enable_werror" != no],
        [HOSTCUDA_WARN="$HOSTCUDA_WARN -Werror"])
    AC_SUBST([HOSTCUDA_WARN])
])
