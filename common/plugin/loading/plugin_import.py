"""Imports plug-in files, each under a name of its own."""

from __future__ import annotations

import contextlib
import hashlib
import io
import logging
import sys
import traceback
from collections.abc import Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import FrameType, ModuleType

from osbench.common import errors
from osbench.common.named_files import read_named
from osbench.common.plugin.loading.class_guard import execute
from osbench.common.plugin.loading.exits import exits_refused
from osbench.common.plugin.loading.neighbours import neighbours

LOG = logging.getLogger(__name__)

#: Modules that plug-ins import.
_OURS = "osbench.common.plugin."


class PluginImport(MetaPathFinder):
    """Imports files once each, also where one imports another from its folder."""

    #: Tells finders of this class from others.
    of_plugins = True

    def __init__(self) -> None:
        self._modules: dict[Path, ModuleType] = {}
        #: Classes that could not be made, a sentence each, by file.
        self.faults: dict[Path, list[str]] = {}
        #: What plug-ins may import from their folders, by name.
        self._neighbours: dict[str, Path] = {}

    def load(self, file: Path) -> ModuleType:
        """The module of a file. Raises PluginError where it cannot be imported."""
        known = self._modules.get(file)
        if known is not None:
            return known
        self._admit(file)
        digest = hashlib.sha256(str(file).encode()).hexdigest()[:12]
        name = f"osbench_plugin_{digest}_{file.stem}"
        spec = spec_from_file_location(name, file)
        if spec is None:
            raise errors.PluginError(f"{file}: not importable as Python")
        module = module_from_spec(spec)
        # dataclasses and inspect look modules up by name while their body runs
        self._modules[file] = sys.modules[name] = module
        try:
            with exits_refused(), contextlib.redirect_stdout(_LoggedPrints(str(file))):
                found = execute(read_named(file), str(file), module.__dict__)
        except (Exception, SystemExit) as error:
            del sys.modules[name], self._modules[file]
            if isinstance(error, errors.PluginError):
                # of a module that it imports from its folder
                raise
            raise errors.PluginError(f"{place(error, str(file))}: {reason(error)}") from error
        self.faults[file] = [
            f"{place(one.error, str(file))}: class {one.name}: {reason(one.error)}" for one in found
        ]
        return module

    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Find what a plug-in imports from its folder, where nothing else has the name."""
        file = self._neighbours.get(fullname)
        if file is None:
            return None
        if file.name == "__init__.py":
            return PathFinder.find_spec(fullname, [str(file.parent.parent)])
        return spec_from_file_location(fullname, file, loader=_LoaderOfFile(self, file))

    def _admit(self, file: Path) -> None:
        """Let a file import its neighbours. Raises PluginError.

        Python knows one module of a name, so no two folders may have it.
        """
        for name, path in neighbours(file).items():
            other = self._neighbours.get(name)
            if other is None:
                self._neighbours[name] = path
                # of a plug-in that was imported earlier in this process
                sys.modules.pop(name, None)
            elif other != path:
                raise errors.PluginError(
                    f"{file}: imports {name}, which is {path} for it and {other} for another "
                    "plug-in: give one of them another name"
                )
        if self._neighbours and self not in sys.meta_path:
            sys.meta_path.append(self)


class _LoaderOfFile(Loader):
    """Gives the module of a plug-in file to those who import it by its own name."""

    def __init__(self, imports: PluginImport, file: Path) -> None:
        self._imports = imports
        self._file = file

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        """Import the file, or take what it is so far, where it is being imported."""
        return self._imports.load(self._file)

    def exec_module(self, module: ModuleType) -> None:
        """It is executed already."""


class _LoggedPrints(io.TextIOBase):
    """Stands for stdout, which a program may read: logs what is printed, and where that is."""

    def __init__(self, file: str) -> None:
        self._file = file
        self._line = ""

    def write(self, text: str) -> int:
        """Log each line that is whole."""
        *lines, self._line = (self._line + text).split("\n")
        for line in lines:
            LOG.warning("%s prints: %s", self._place(), line)
        return len(text)

    def _place(self) -> str:
        frame: FrameType | None = sys._getframe(2)
        while frame is not None and frame.f_code.co_filename != self._file:
            frame = frame.f_back
        return self._file if frame is None else f"{self._file}:{frame.f_lineno}"


def place(error: BaseException, file: str) -> str:
    """Where in `file` an import failed, as `file:line`; the file alone where that is unknown."""
    if isinstance(error, SyntaxError) and error.filename == file:
        return f"{file}:{error.lineno}"
    lines = [f.lineno for f in traceback.extract_tb(error.__traceback__) if f.filename == file]
    return f"{file}:{lines[-1]}" if lines else file


def reason(error: BaseException) -> str:
    """One line that says what was raised."""
    text = str(error)
    if isinstance(error, SyntaxError):
        line = (error.text or "").strip()
        text = f"{error.msg}: {line}" if line else error.msg
    name = type(error).__name__
    return f"{name}: {text}{_remedy(error)}" if text else name


def _remedy(error: BaseException) -> str:
    """What to write in place of what this package does not have, or ""."""
    if isinstance(error, ModuleNotFoundError) and str(error.name).startswith("osbench.plugin."):
        return f": write `from osbench.plugin import {str(error.name).rpartition('.')[2]}`"
    module = getattr(getattr(error, "obj", None), "__name__", "")
    if isinstance(error, AttributeError) and error.name == "configure" and module.startswith(_OURS):
        return ": only scenarios have that decorator; other classes have their name as NAME"
    return ""
