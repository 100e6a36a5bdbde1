"""setup.py - builds the Python package: python/packstream, an extension that
holds the library, and the programs.  pyproject.toml says the rest.

The extension and the programs are linked with one build of the library.
Each folder of src/ with a main.c is a program.  Their manual pages go beside
them, where man finds those of a PATH.  PACKSTREAM_PROGRAMS=no leaves both out,
where `make install` installs them.

SPDX-License-Identifier: MIT
"""

import atexit
import glob
import os
import re
import shlex
import shutil
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor

from setuptools import setup
from setuptools.command.build_clib import build_clib
from distutils.command.build_scripts import build_scripts

sys.path.insert(0, "python")
import build_native as native  # noqa: E402


class build_library(build_clib):
    """Names what is missing before a compiler does."""

    def run(self):
        missing = [library for library in native.LIBRARIES.values()
                   if not native.has_header(library[0])]
        if missing:
            raise SystemExit(
                "packstream: missing %s: on Debian, apt-get install %s" % (
                    ", ".join(header for header, _ in missing),
                    " ".join(package for _, package in missing)))
        super().run()


class build_programs(build_scripts):
    """Compiles the programs in place of copying scripts."""

    def run(self):
        self.run_command("build_clib")
        os.makedirs(self.build_dir, exist_ok=True)
        with ThreadPoolExecutor(os.cpu_count()) as pool:
            list(pool.map(self.build, self.scripts))

    def build(self, name):
        library = self.get_finalized_command("build_clib")
        compiler = library.compiler
        objects = compiler.compile(
            sorted(glob.glob("src/%s/*.c" % name)),
            output_dir=library.build_temp, macros=native.MACROS,
            include_dirs=native.PROGRAM_INCLUDE,
            extra_preargs=native.CFLAGS)
        compiler.link_executable(
            objects, name, output_dir=self.build_dir,
            libraries=["packcli", "packcore"],
            library_dirs=[library.build_clib],
            extra_preargs=shlex.split(os.environ.get("LDFLAGS", "")),
            extra_postargs=native.linked(*native.LIBRARIES))

    def get_source_files(self):
        return []


def archive(name, include, *sources):
    """A static library, for build_clib."""
    return name, {"sources": sorted(sum(map(glob.glob, sources), [])),
                  "include_dirs": include, "macros": native.MACROS,
                  "cflags": native.CFLAGS}


with open("src/include/packstream/base.h") as header:
    version = ".".join(re.findall(
        r"#define PACKSTREAM_VERSION_[A-Z]+ (\d+)", header.read()))

programs = sorted(os.path.basename(os.path.dirname(name))
                  for name in glob.glob("src/*/main.c") * native.PROGRAMS)

# pip builds in the clone: put build files and metadata in a temporary
# directory.  A source distribution needs its metadata in the tree.
scratch = tempfile.mkdtemp(prefix="packstream-")
atexit.register(shutil.rmtree, scratch, ignore_errors=True)
setup(version=version,
      cffi_modules=["python/build_native.py:builder"],
      libraries=[archive("packcore", native.INCLUDE, "src/lib/*/*.c")] +
                [archive("packcli", native.PROGRAM_INCLUDE, "src/cli/*.c",
                         "src/files/*.c", "src/wire/*.c")] * bool(programs),
      scripts=programs,
      data_files=[("share/man/man" + section,
                   sorted(glob.glob("man/*." + section)))
                  for section in "157" * bool(programs)],
      cmdclass={"build_clib": build_library,
                "build_scripts": build_programs},
      options={"build": {"build_base": scratch},
               "egg_info": {"egg_base": "python" if "sdist" in sys.argv
                            else scratch},
               "bdist_wheel": {"py_limited_api": "cp39"}})
