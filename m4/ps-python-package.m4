# ps-python-package.m4 - the Python package as part of `make install`.
# SPDX-License-Identifier: MIT

# PS_PYTHON_PACKAGE
# Adds --enable-python, which sets with_python to what `make install` then
# makes; sets PYTHON to the interpreter, and pythondir to where it looks for
# packages below the prefix.
AC_DEFUN([PS_PYTHON_PACKAGE], [
    AC_ARG_VAR([PYTHON], [the python3 for which to install the package])
    AC_ARG_ENABLE([python],
        [AS_HELP_STRING([--enable-python],
            [install the Python package, too; `pip install .' does without])],
        [], [enable_python=no])
    AC_PATH_PROG([PYTHON], [python3], [no])
    AS_IF([test "$enable_python" = yes &&
            ! $PYTHON -c 'import cffi, setuptools, wheel, pip' 2>/dev/null],
        [AC_MSG_ERROR([--enable-python: $PYTHON lacks cffi, pip, setuptools or wheel])])
    ps_prefix=$prefix
    test "$ps_prefix" != NONE || ps_prefix=$ac_default_prefix
    # Debian has one folder for its own packages, and others for those of the
    # administrator.
    pythondir=$($PYTHON -c '
import sys, sysconfig
debian = "deb_system" in sysconfig.get_scheme_names()
version = "python%d.%d" % sys.version_info[[:2]]
print("%s/lib/%s" % (sys.argv[[1]],
    "python3/dist-packages" if debian and sys.argv[[1]] == "/usr" else
    version + ("/dist-packages" if debian else "/site-packages")))' \
        "$ps_prefix" 2>/dev/null) || pythondir='${libdir}/python3'
    AC_SUBST([pythondir])
    AS_IF([test "$enable_python" = yes], [AC_SUBST([with_python], [python])])
])
