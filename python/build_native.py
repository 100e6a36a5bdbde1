"""build_native.py - makes the extension packstream._native with cffi.

The extension holds the library itself, whose sources are those in src/lib,
and needs libzstd and libxxhash.  What Python can call is what packstream.h
declares, as the preprocessor reads it, and the loops of native.h.

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
# Behind Python's own flags, unless the environment has better ones.
SPEED = [] if os.environ.get("CFLAGS") else ["-O3", "-g0"]
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
    return text + "void free(void *);\n" + "".join(
        "#define %s ...\n" % name for name in CONSTANTS)


def requirement(option, *defaults):
    """What pkg-config says of the libraries, or what nearly all have."""
    try:
        found = subprocess.run(["pkg-config", option, "libzstd", "libxxhash"],
                               check=True, capture_output=True, text=True)
        return shlex.split(found.stdout)
    except (OSError, subprocess.CalledProcessError):
        return list(defaults)


def dispatch():
    """Whether xxHash chooses its code at run time; base/hash.h does without,
    if the library lacks it in spite of the header."""
    return subprocess.run(
        [*compiler(), "-E", "-x", "c", "-include", "xxh_x86dispatch.h",
         *requirement("--cflags"), os.devnull], capture_output=True,
        check=False).returncode == 0


builder = FFI()
builder.cdef(declarations())
builder.set_source(
    "packstream._native",
    "#include <packstream.h>\n#include <stdlib.h>\n#include \"native.h\"\n",
    sources=[path("python/native.c")] +
            sorted(glob.glob(path("src/lib/*/*.c"))),
    depends=sorted(glob.glob(path("src/**/*.h"), recursive=True)) +
            [path("python/native.h")],
    include_dirs=[path(name) for name in INCLUDE],
    define_macros=[("_POSIX_C_SOURCE", "200809L")] +
                  [("HAVE_XXH_DISPATCH", None)] * dispatch(),
    extra_compile_args=SPEED +
                       ["-std=c11", "-ffp-contract=off",
                        "-fvisibility=hidden", "-pthread"] +
                       requirement("--cflags"),
    extra_link_args=["-pthread", "-lm"] +
                    requirement("--libs", "-lzstd", "-lxxhash"))

if __name__ == "__main__":
    builder.compile(verbose=True)
