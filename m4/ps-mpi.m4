# ps-mpi.m4 - MPI, for a trainer of several processes.
# SPDX-License-Identifier: MIT

# PS_MPI
# --with-mpi; sets MPI_CFLAGS and MPI_LIBS, MPIRUN for tests, and WITH_MPI for
# automake; ps_mpi says what is missing, or "yes".
AC_DEFUN([PS_MPI], [
    AC_ARG_WITH([mpi],
        [AS_HELP_STRING([--without-mpi],
            [packtrain does without MPI, as one process])],
        [], [with_mpi=check])
    AS_IF([test "$with_mpi" = no],
        [ps_mpi=no],
        [PKG_CHECK_MODULES([MPI], [mpi-c], [ps_mpi=yes],
            [PKG_CHECK_MODULES([MPI], [ompi-c], [ps_mpi=yes],
                [ps_mpi='no: MPI was not found'
                AS_IF([test "$with_mpi" = yes],
                    [AC_MSG_ERROR([--with-mpi: MPI was not found])])])])])
    AS_IF([test "$ps_mpi" = yes],
        [AC_PATH_PROGS([MPIRUN], [mpirun mpiexec], [no])], [MPIRUN=no])
    AC_SUBST([MPIRUN])
    AM_CONDITIONAL([WITH_MPI], [test "$ps_mpi" = yes])
])
