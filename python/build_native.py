"""build_native.py - builds the extension packstream._native with cffi, and
defines the compiler flags for all C code of the Python package.

setup.py links the extension with the library, which is built from src/lib.
Python can call the functions that packstream.h (after preprocessing) and
native.h declare.

SPDX-License-Identifier: MIT
"""

import glob
import os
import re
import shlex
import subprocess
import sysconfig
import tempfile

from cffi import FFI

TOP = os.path.relpath(os.path.join(os.path.dirname(
    os.path.abspath(__file__)), ".."))
INCLUDE = ["python", "src/include", "src/lib", "src/common"]
PROGRAM_INCLUDE = ["src", "src/include"]
PROGRAMS = os.environ.get("PACKSTREAM_PROGRAMS") != "no"
# For each library, one of its headers and Debian's package
LIBRARIES = {"libzstd": ("zstd.h", "libzstd-dev"),
             "libxxhash": ("xxhash.h", "libxxhash-dev")}
if PROGRAMS:
    LIBRARIES.update({"jansson": ("jansson.h", "libjansson-dev"),
                      "zlib": ("zlib.h", "zlib1g-dev")})
# Appended to Python's own flags, unless the environment sets flags
SPEED = [] if os.environ.get("CFLAGS") else ["-O3", "-g0"]
# The hook of psn_open, which remote.py defines.
FETCH = ("extern \"Python\" ps_result psn_fetch(void *, void *, size_t, "
         "uint64_t, ps_error *);\n")
CONSTANTS = ("PS_MAX_CHANNELS", "PS_MAX_SEQUENCE_BYTES", "PS_NAME_BYTES")


def path(name):
    return os.path.normpath(os.path.join(TOP, name))


def compiler():
    return shlex.split(os.environ.get("CC") or
                       sysconfig.get_config_var("CC") or "cc")


def declarations():
    """Returns the declarations of packstream.h and native.h, without those of
    C's headers."""
    with tempfile.TemporaryDirectory() as empty:
        for name in ("stdbool.h", "stddef.h", "stdint.h"):
            open(os.path.join(empty, name), "w").close()
        flags = ["-E", "-P", "-x", "c", "-nostdinc", "-U__GNUC__",
                 "-DUINT32_C(n)=n", "-I", empty]
        text = "".join(subprocess.run(
            compiler() + flags + ["-I", path("src/include"), path(name)],
            check=True, capture_output=True, text=True).stdout
            for name in ("src/include/packstream.h", "python/native.h"))
    text = re.sub(r"^#.*$", "", text, flags=re.M)
    return text + "void free(void *);\n" + FETCH + "".join(
        "#define %s ...\n" % name for name in CONSTANTS)


def requirement(option, *names):
    """Returns pkg-config's flags for these libraries, or an empty list."""
    try:
        found = subprocess.run(["pkg-config", option, *names],
                               check=True, capture_output=True, text=True)
        return shlex.split(found.stdout)
    except (OSError, subprocess.CalledProcessError):
        return []


def linked(*names):
    """Returns the arguments to link with these libraries; without pkg-config,
    uses the names that nearly all systems have."""
    return (requirement("--libs", *names) or
            ["-l" + re.sub("^lib|lib$", "", name) for name in names]
            ) + ["-pthread", "-lm"]


def has_header(name):
    return subprocess.run(
        [*compiler(), "-E", "-x", "c", "-include", name,
         *requirement("--cflags", *LIBRARIES), os.devnull],
        capture_output=True, check=False).returncode == 0


# base/hash.h does not use xxHash's dispatch if the library lacks it despite
# the header.
MACROS = [("_POSIX_C_SOURCE", "200809L"), ("_FILE_OFFSET_BITS", "64")] + [
    (macro, None) for macro, header in (
        ("HAVE_XXH_DISPATCH", "xxh_x86dispatch.h"),
        ("HAVE_LINUX_LANDLOCK_H", "linux/landlock.h")) if has_header(header)]
CFLAGS = SPEED + ["-std=c11", "-ffp-contract=off", "-fvisibility=hidden",
                  "-pthread"] + requirement("--cflags", *LIBRARIES)

builder = FFI()
builder.cdef(declarations())
builder.set_source(
    "packstream._native",
    "#include <packstream.h>\n#include <stdlib.h>\n#include \"native.h\"\n",
    sources=[path("python/native.c")],
    depends=sorted(glob.glob(path("src/**/*.h"), recursive=True)) +
            [path("python/native.h")],
    include_dirs=[path(name) for name in INCLUDE],
    define_macros=MACROS,
    extra_compile_args=CFLAGS,
    # Do not take symbols of statically linked libraries from elsewhere.
    extra_link_args=["-Wl,-Bsymbolic"] + linked("libzstd", "libxxhash"))
