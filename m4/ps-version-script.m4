# ps-version-script.m4 - whether the linker can hide internal symbols.
# SPDX-License-Identifier: MIT

# PS_VERSION_SCRIPT
# Sets the conditional HAVE_VERSION_SCRIPT.
AC_DEFUN([PS_VERSION_SCRIPT], [
    AC_CACHE_CHECK([whether the linker takes a version script],
        [ps_cv_version_script], [
        echo 'V_0 { global: main; local: *; };' >conftest.map
        ps_save_LDFLAGS=$LDFLAGS
        LDFLAGS="$LDFLAGS -Wl,--version-script=conftest.map"
        AC_LINK_IFELSE([AC_LANG_PROGRAM([], [])],
            [ps_cv_version_script=yes], [ps_cv_version_script=no])
        LDFLAGS=$ps_save_LDFLAGS
        rm -f conftest.map
    ])
    AM_CONDITIONAL([HAVE_VERSION_SCRIPT],
        [test "$ps_cv_version_script" = yes])
])
