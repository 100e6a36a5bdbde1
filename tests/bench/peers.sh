#!/bin/sh
# peers.sh - compares packstream with other packers:
#
#   tests/bench/peers.sh BUILD_DIR [VENV [OPTION...]]
#
# Makes a Python virtual environment in the folder VENV, or in a temporary one,
# and installs the packers that peers.py compares with packstream.  That needs
# the network, some gigabytes and minutes.  Each package has LIMIT (900)
# seconds; one that cannot be installed is skipped, and the tables give the
# reason.  An existing VENV is used unchanged.
#
# Then runs peers.py for the cases bert, short and long with the OPTIONs, of
# which --page=FILE puts the tables into BENCHMARKS.md; CASES may be set in
# the environment.  PYTHON (python3) makes the environment.  Not part of
# `make check`; `make bench-peers` runs it.
#
# SPDX-License-Identifier: MIT

set -eu

build=${1:?usage: peers.sh BUILD_DIR [VENV [OPTION...]]}
venv=${2-}
[ $# -lt 2 ] || shift
shift
here=$(cd "$(dirname "$0")" && pwd)
packages='numpy scipy datasets trl grain seqpacker'
limit=${LIMIT:-900}

work=
trap '[ -z "$work" ] || rm -rf "$work"' EXIT
trap 'exit 1' HUP INT TERM
if [ -z "$venv" ]; then
    work=$(mktemp -d "${TMPDIR:-/tmp}/packstream-peers.XXXXXX")
    venv=$work/venv
fi

# reason LOG: why pip failed, from the most informative line.
reason() {
    line=$(grep -m 1 'failed to download' "$1" ||
        grep -m 1 'No matching distribution' "$1" ||
        grep -m 1 -i error "$1" || echo "nothing was said in $limit seconds")
    # Addresses of machines are not for the page.
    echo "$line" | sed -E 's/^ *(ERROR: |error: )?//
        s,https?://[^ `'"'"']*,an address,g'
}

if [ ! -x "$venv/bin/python" ]; then
    "${PYTHON:-python3}" -m venv "$venv"
    : >"$venv/failed"
    for package in $packages; do
        echo "installing $package" >&2
        if ! timeout "$limit" "$venv/bin/pip" install -q \
            --disable-pip-version-check "$package" >"$venv/log" 2>&1; then
            echo "$package: $(reason "$venv/log")" >>"$venv/failed"
        fi
    done
fi

PIP_FAILED=$venv/failed
PYTHONDONTWRITEBYTECODE=1
export PIP_FAILED PYTHONDONTWRITEBYTECODE
for case in ${CASES:-bert short long}; do
    "$venv/bin/python" "$here/peers.py" "--case=$case" "$@" "$build"
done
