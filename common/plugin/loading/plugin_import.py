"""Imports plug-in files, each as a separate module."""

from __future__ import annotations

import contextlib
import hashlib
import importlib
import io
import logging
import sys
import traceback
from collections.abc import Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec, SourceFileLoader
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import CodeType, FrameType, ModuleType

from osbench.common import errors
from osbench.common.files.named_files import read_named
from osbench.common.plugin.loading.class_guard import execute
from osbench.common.plugin.loading.exits import exits_refused
from osbench.common.plugin.loading.monkey_patches import GEVENT, refuse_eventlet, watch_gevent
from osbench.common.plugin.loading.neighbours import (
    RELATIVE,
    SourceFiles,
    package_of,
)
from osbench.common.plugin.loading.slow_import import told_if_slow

LOG = logging.getLogger(__name__)

#: Modules that plug-ins import.
_OURS = "osbench.common.plugin."
#: Begins the name of the module of a file that is imported by itself, not as part of a package.
_ALONE = "osbench_plugin_"


class PluginImport(MetaPathFinder):
    """Imports plug-in files, each once, even if one plug-in file imports another from its folder.

    It is also a finder in `sys.meta_path` for modules in the plug-ins' folders.
    """

    #: Distinguishes finders of this class from others.
    of_plugins = True

    def __init__(self, files: SourceFiles) -> None:
        self._files = files
        self._modules: dict[Path, ModuleType] = {}
        #: Messages on classes whose definition failed, by file.
        self.faults: dict[Path, list[str]] = {}
        #: What plug-ins may import from their folders, by name.
        self._neighbours: dict[str, Path] = {}

    def load(self, file: Path) -> ModuleType:
        """Import a plug-in file unless it is imported, and return its module; sets `faults[file]`.

        Logs printed lines and slow imports; refuses `os._exit` and monkey patches. Raises
        PluginError with file and line if the import fails.
        """
        known = self._modules.get(file)
        if known is not None:
            return known
        name = self._admit(file)
        if not name.startswith(_ALONE) and name in sys.modules:
            # another file of its package has imported it
            self.faults[file] = []
            self._modules[file] = sys.modules[name]
            return sys.modules[name]
        spec = spec_from_file_location(name, file)
        if spec is None:
            raise errors.PluginError(f"cannot import {file}; give it a name that ends in .py")
        module = module_from_spec(spec)
        # dataclasses and inspect look modules up by name while their body runs
        self._modules[file] = sys.modules[name] = module
        try:
            printed = contextlib.redirect_stdout(_LoggedPrints(str(file)))
            with exits_refused(), printed, told_if_slow(str(file)):
                found = execute(read_named(file), str(file), module.__dict__)
                refuse_eventlet()
        except (Exception, SystemExit) as error:
            self._modules.pop(file, None)
            sys.modules.pop(name, None)
            if isinstance(error, errors.PluginError):
                # of a module that it imports from its folder
                raise
            raise errors.PluginError(
                f"{place(error, str(file))}: {reason(error)}; correct it, or install its imports"
            ) from error
        outer, _, own = name.rpartition(".")
        if outer:
            setattr(sys.modules[outer], own, module)
        self.faults[file] = [
            f"{place(one.error, str(file))}: class {one.name}: {reason(one.error)}" for one in found
        ]
        return module

    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Return the spec of a module in a plug-in's folder; None for all other names.

        Before gevent.monkey is imported, gevent is made to refuse patches.
        """
        if fullname == GEVENT:
            watch_gevent()
        top, *inner = fullname.split(".")
        file = self._neighbours.get(top)
        if file is None:
            return None
        if file.name != "__init__.py":
            loader = _LoaderOfFile(self, file)
            return None if inner else spec_from_file_location(fullname, file, loader=loader)
        module = file.parent.joinpath(*inner)
        for one in (module / "__init__.py", module.with_suffix(".py")):
            if one.is_file():
                return spec_from_file_location(
                    fullname, one, loader=_TextLoader(fullname, str(one))
                )
        return None

    def _admit(self, file: Path) -> str:
        """Allow a plug-in file to import modules of its folder; return its own module's name.

        Inserts this finder in `sys.meta_path`, removes older modules of these names from
        `sys.modules`, and imports the file's package. Raises PluginError if that fails, and if a
        module of another plug-in, or an installed package, has a name that this file needs.
        """
        beside = self._files.neighbours(file)
        for name, path in beside.items():
            other = self._neighbours.get(name)
            if other is None:
                self._neighbours[name] = path
                # of a plug-in that was imported earlier in this process
                for known in [one for one in sys.modules if f"{one}.".startswith(f"{name}.")]:
                    del sys.modules[known]
            elif other != path:
                raise errors.PluginError(
                    f"{file}: imports {name}, which is {path} for it and {other} for another "
                    "plug-in: give one of them another name"
                )
        if self not in sys.meta_path:
            # before the finder of files, whose .pyc may be older than the text that is hashed
            sys.meta_path.insert(0, self)
        top = package_of(file)
        if top is None or beside.get(top.parent.name) != top:
            if top is not None and RELATIVE in self._files.imported_names(file):
                raise errors.PluginError(
                    f"{file}: its package {top.parent.name} has the name of another one, which is"
                    " installed: give its folder another name"
                )
            digest = hashlib.sha256(str(file).encode()).hexdigest()[:12]
            return f"{_ALONE}{digest}_{file.stem}"
        *outer, own = file.relative_to(top.parent.parent).with_suffix("").parts
        name = ".".join(outer if own == "__init__" else (*outer, own))
        try:
            with exits_refused(), contextlib.redirect_stdout(_LoggedPrints(str(top))):
                # what relative imports are relative to
                importlib.import_module(name.rpartition(".")[0] or name)
                refuse_eventlet()
        except (Exception, SystemExit) as error:
            if isinstance(error, errors.PluginError):
                raise
            raise errors.PluginError(
                f"{place(error, str(top))}: {reason(error)}; correct it, or install its imports"
            ) from error
        return name


class _TextLoader(SourceFileLoader):
    """Loads a module of a plug-in's package from its source, never from an older .pyc."""

    def get_code(self, fullname: str) -> CodeType:
        path = self.get_filename(fullname)
        code: CodeType = self.source_to_code(read_named(path), path)
        return code


class _LoaderOfFile(Loader):
    """Loader of a plug-in file that another file imports by name; returns its only module."""

    def __init__(self, imports: PluginImport, file: Path) -> None:
        self._imports = imports
        self._file = file

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        """Import the plug-in file and return its module, perhaps partial, during its own import."""
        return self._imports.load(self._file)

    def exec_module(self, module: ModuleType) -> None:
        """Do nothing, since `create_module` has executed the module."""


class _LoggedPrints(io.TextIOBase):
    """Replacement of stdout during a plug-in's import: logs printed lines as warnings.

    A program may read stdout, so they must not go there.
    """

    def __init__(self, file: str) -> None:
        self._file = file
        self._line = ""

    def write(self, text: str) -> int:
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
    """Return where in `file` an exception was raised, as `file:line`; only `file` if unknown."""
    if isinstance(error, SyntaxError) and error.filename == file:
        return f"{file}:{error.lineno}"
    lines = [f.lineno for f in traceback.extract_tb(error.__traceback__) if f.filename == file]
    return f"{file}:{lines[-1]}" if lines else file


def reason(error: BaseException) -> str:
    """Return type and message of an exception, for a message, with a remedy if one is known."""
    text = str(error)
    if isinstance(error, SyntaxError):
        line = (error.text or "").strip()
        text = f"{error.msg}: {line}" if line else error.msg
    name = type(error).__name__
    return f"{name}: {text}{_remedy(error)}" if text else name


def _remedy(error: BaseException) -> str:
    if isinstance(error, ModuleNotFoundError) and str(error.name).startswith("osbench.plugin."):
        return f": write `from osbench.plugin import {str(error.name).rpartition('.')[2]}`"
    if isinstance(error, ImportError) and "no known parent package" in str(error):
        return ": put an __init__.py into its folder, or name the module without the dot"
    module = getattr(getattr(error, "obj", None), "__name__", "")
    if isinstance(error, AttributeError) and error.name == "configure" and module.startswith(_OURS):
        return ": only scenarios have that decorator; other classes have their name as NAME"
    return ""
