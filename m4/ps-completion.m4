# ps-completion.m4 - where shells look for the completion of command lines.
# SPDX-License-Identifier: MIT

# PS_COMPLETION: what a shell's own .pc file says, below our data folder, and
# the usual place otherwise.  The programs print what is installed there, so
# there is none where they cannot run.
AC_DEFUN([PS_COMPLETION], [
_PS_COMPLETION([bash], [bash-completion],
    ['${datadir}/bash-completion/completions'])
_PS_COMPLETION([zsh], [zsh], ['${datadir}/zsh/site-functions'])
_PS_COMPLETION([fish], [fish], ['${datadir}/fish/vendor_completions.d'])
AM_CONDITIONAL([COMPLETION], [test "$cross_compiling" = no])
])

# _PS_COMPLETION(SHELL, PACKAGE, FOLDER)
AC_DEFUN([_PS_COMPLETION], [
AC_ARG_WITH([$1-completion-dir],
    [AS_HELP_STRING([--with-$1-completion-dir=DIR],
        [completion for $1 goes there])], [],
    [with_$1_completion_dir=`$PKG_CONFIG --variable=completionsdir \
        --define-variable=datadir='${datadir}' $2 2>/dev/null`])
AS_CASE([$with_$1_completion_dir],
    [''|yes|no], [with_$1_completion_dir=$3])
AC_SUBST([$1_completiondir], [$with_$1_completion_dir])
])
