"""build_native.py - makes the extension packstream._native with cffi, and
knows the flags for all C of the Python package.

setup.py links the extension with the library, whose sources are those in
src/lib.  What Python can call is what packstream.h declares, as the
preprocessor reads it, and the loops of native.h.

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
# A header of each library, and Debian's package.
LIBRARIES = {"libzstd": ("zstd.h", "libzstd-dev"),
             "libxxhash": ("xxhash.h", "libxxhash-dev")}
if PROGRAMS:
    LIBRARIES.update({"jansson": ("jansson.h", "libjansson-dev"),
                      "zlib": ("zlib.h", "zlib1g-dev")})
# Appended to Python's own flags, unless the environment has better ones.
SPEED = [] if os.environ.get("CFLAGS") else ["-O3", "-g0"]
# The hook of psn_open, which remote.py defines.
FETCH = ("extern \"Python\" ps_result psn_fetch(void *, void *, size_t, "
         "uint64_t, ps_error *);\n")
CONSTANTS = ("PS_MAX_CHANNELS", "PS_NAME_BYTES")


def path(name):
    return os.path.normpath(os.path.join(TOP, name))


def compiler():
    return shlex.split(os.environ.get("CC") or
                       sysconfig.get_config_var("CC") or "cc")


def declarations():
    """What packstream.h and native.h declare, without the headers of C."""
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
    """What pkg-config says of these libraries, or nothing."""
    try:
        found = subprocess.run(["pkg-config", option, *names],
                               check=True, capture_output=True, text=True)
        return shlex.split(found.stdout)
    except (OSError, subprocess.CalledProcessError):
        return []


def linked(*names):
    """Arguments to link with these libraries; without pkg-config by the names
    that nearly all systems have."""
    return (requirement("--libs", *names) or
            ["-l" + re.sub("^lib|lib$", "", name) for name in names]
            ) + ["-pthread", "-lm"]


def has_header(name):
    return subprocess.run(
        [*compiler(), "-E", "-x", "c", "-include", name,
         *requirement("--cflags", *LIBRARIES), os.devnull],
        capture_output=True, check=False).returncode == 0


# base/hash.h does without the dispatch of xxHash if the library lacks it in
# spite of the header.
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
    # Symbols of libraries that are linked in are not taken from elsewhere.
    extra_link_args=["-Wl,-Bsymbolic"] + linked("libzstd", "libxxhash"))
