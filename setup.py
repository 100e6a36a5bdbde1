"""setup.py - builds the Python package: python/packstream, and an extension
that holds the library.  pyproject.toml says the rest.

SPDX-License-Identifier: MIT
"""

import atexit
import re
import shutil
import sys
import tempfile

from setuptools import setup

with open("src/include/packstream/base.h") as header:
    version = ".".join(re.findall(
        r"#define PACKSTREAM_VERSION_[A-Z]+ (\d+)", header.read()))

# pip builds in the clone: put build files and metadata in a temporary
# directory.  A source distribution needs its metadata in the tree.
scratch = tempfile.mkdtemp(prefix="packstream-")
atexit.register(shutil.rmtree, scratch, ignore_errors=True)
setup(version=version,
      cffi_modules=["python/build_native.py:builder"],
      options={"build": {"build_base": scratch},
               "egg_info": {"egg_base": "python" if "sdist" in sys.argv
                            else scratch},
               "bdist_wheel": {"py_limited_api": "cp39"}})
