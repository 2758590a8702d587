"""What pyproject.toml cannot say: where there is a C++ compiler, a wheel carries the compiled kernels.

Without one the wheel is one for every machine, and the kernels are compiled on first use.
"""

import importlib.util
from pathlib import Path

import setuptools
from setuptools.command.bdist_wheel import bdist_wheel
from setuptools.command.build_py import build_py

HERE = Path(__file__).parent
specification = importlib.util.spec_from_file_location("compiling", HERE / "runtime" / "compiling.py")
compiling = importlib.util.module_from_spec(specification)
specification.loader.exec_module(compiling)


class BuildPackages(build_py):
    """Compiles the kernels beside the modules they belong to, but not for an editable install."""

    def run(self):
        """Copies the modules, then compiles."""
        super().run()
        if self.editable_mode or not self.distribution.kernels:
            return
        folder = Path(self.build_lib) / "draftcert" / compiling.BUILT.relative_to(HERE)
        folder.mkdir(exist_ok=True)
        self.distribution.kernels = False
        for name in compiling.FOLDERS:
            files = compiling.sources(name)
            try:
                compiling.compile_library(folder / compiling.file_name(name, files), files)
                self.distribution.kernels = True
            except compiling.NoLibraryError as error:
                self.announce(f"the {name} are compiled on first use: {error}", level=3)


class Distribution(setuptools.Distribution):
    """Belongs to the platform if kernels are in it: before they are compiled, if there is a compiler."""

    def __init__(self, attributes=None):
        try:
            self.kernels = bool(compiling.compiler())
        except compiling.NoLibraryError:
            self.kernels = False
        super().__init__(attributes)

    def has_ext_modules(self):
        """Whether files are for this platform alone."""
        return self.kernels


class Wheel(bdist_wheel):
    """The kernels need the platform, but no version of Python."""

    def get_tag(self):
        """The tag of the wheel's name."""
        *_, platform = super().get_tag()
        return "py3", "none", platform if self.distribution.kernels else "any"


setuptools.setup(distclass=Distribution, cmdclass={"build_py": BuildPackages, "bdist_wheel": Wheel})
