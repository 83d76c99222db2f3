"""Puts the .pth file next to the package, for which setuptools has no setting."""

from pathlib import Path

from setuptools import setup
from setuptools.command.build_py import build_py


class BuildWithHook(build_py):
    """Builds the package and its .pth file."""

    def run(self) -> None:
        """Build both."""
        super().run()
        self.copy_file("osbench_osprofiler.pth", str(Path(self.build_lib)))

    def get_source_files(self) -> list[str]:
        """Return all files of a source distribution."""
        return [*super().get_source_files(), "osbench_osprofiler.pth"]

    def get_outputs(self, include_bytecode: bool = True) -> list[str]:
        """Return all files that are installed."""
        hook = str(Path(self.build_lib, "osbench_osprofiler.pth"))
        return [*super().get_outputs(include_bytecode), hook]


setup(cmdclass={"build_py": BuildWithHook})
