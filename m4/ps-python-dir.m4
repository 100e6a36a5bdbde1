# ps-python-dir.m4 - the folder of python3 itself, for tests alone.
# SPDX-License-Identifier: MIT

# PS_PYTHON_DIR
# Sets PYTHON_DIR to the folder of the interpreter, and a colon, where python3
# on the PATH is a script that looks for it, such as that of pyenv: this takes
# longer than python3 takes to start, and tests start it a thousand times.
# Otherwise it is empty.
AC_DEFUN([PS_PYTHON_DIR], [
    AC_CACHE_CHECK([for a folder of python3 itself], [ps_cv_python_dir], [
        ps_cv_python_dir=none
        ps_python=$(command -v python3)
        AS_IF([test -n "$ps_python" &&
                head -c 2 "$ps_python" | grep '^#!' >/dev/null],
            [ps_python=$(python3 -c 'import sys; print(sys.executable)')
            AS_CASE([$ps_python], [/*/python3],
                [ps_cv_python_dir=$(dirname "$ps_python")])])
    ])
    PYTHON_DIR=$ps_cv_python_dir:
    AS_IF([test "$ps_cv_python_dir" = none], [PYTHON_DIR=])
    AC_SUBST([PYTHON_DIR])
])
