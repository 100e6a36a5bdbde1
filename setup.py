"""setup.py - builds the Python package: python/packstream, and an extension
that holds the library.  pyproject.toml says the rest.

SPDX-License-Identifier: MIT
"""

import re

from setuptools import setup

with open("src/include/packstream/base.h") as header:
    version = ".".join(re.findall(
        r"#define PACKSTREAM_VERSION_[A-Z]+ (\d+)", header.read()))

# Not in build/, which is that of ./bootstrap.
setup(version=version,
      cffi_modules=["python/build_native.py:builder"],
      options={"build": {"build_base": "python/build"},
               "egg_info": {"egg_base": "python"},
               "bdist_wheel": {"py_limited_api": "cp39"}})
