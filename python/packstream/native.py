"""native.py - the extension, and XXH3.

`lib` and `ffi` are cffi's objects, or None if the extension was not built; lib
has the functions of packstream.h and of native.h.  `xxh3` is the hash of bytes
with an optional seed, or None if the module xxhash is not installed either.

SPDX-License-Identifier: MIT
"""

try:
    from packstream._native import ffi, lib
except ImportError:
    ffi = lib = None

try:
    from xxhash import xxh3_64_intdigest as xxh3
except ImportError:
    xxh3 = lib and (lambda data, seed=0: lib.psn_hash(
        ffi.from_buffer(data), len(data), seed))
