# ps-python-numpy.m4 - a python3 that has numpy, for tests alone.
# SPDX-License-Identifier: MIT

# PS_PYTHON_NUMPY
# Sets PYTHON_NUMPY to the first of python3 on the PATH and the system's own
# that can import numpy, otherwise to "no".
AC_DEFUN([PS_PYTHON_NUMPY], [
    AC_ARG_VAR([PYTHON_NUMPY], [a python3 that has numpy, for tests])
    AC_CACHE_CHECK([for a python3 with numpy], [ps_cv_python_numpy], [
        ps_cv_python_numpy=no
        for ps_python in $PYTHON_NUMPY python3 /usr/bin/python3; do
            AS_IF([$ps_python -c 'import numpy' >/dev/null 2>&1],
                [ps_cv_python_numpy=$ps_python; break])
        done
    ])
    PYTHON_NUMPY=$ps_cv_python_numpy
])
