"""Packages that oslo.config imports for options that osbench lacks, loaded when they are used.

They take longer to import than oslo.config itself, and every command would.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Sequence
from importlib.machinery import ModuleSpec, PathFinder
from types import ModuleType
from typing import TYPE_CHECKING, Any, cast

if TYPE_CHECKING:
    # takes longer to import than most of what `--help` does
    from importlib.abc import Loader

#: For types of options (addresses of hosts, URIs), and for sources of options other than files.
_NAMES = frozenset(("netaddr", "rfc3986", "stevedore"))


class _LateModule(ModuleType):
    """An imported package that is not loaded: the first use of a name in it loads it."""

    def __getattr__(self, name: str) -> object:
        """Load the package and return its attribute `name`. Raises AttributeError, ImportError."""
        spec = self.__spec__
        loader: Any = spec.loader if spec is not None else None
        # another thread may have loaded it meanwhile
        if isinstance(loader, _LateLoader):
            loader.load(self)
        return ModuleType.__getattribute__(self, name)


class _LateLoader:
    """Loads one package by its usual loader, once, when `load` is called."""

    def __init__(self, loader: Loader) -> None:
        self._loader = loader
        self._loading = False
        # its own code looks at it, too
        self._lock = threading.RLock()

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        """Return None: an ordinary module will do."""
        return None

    def exec_module(self, module: ModuleType) -> None:
        """Postpone the execution of the package's code."""
        # an import of one of its modules looks for this, and finds the package loaded
        del module.__path__
        module.__class__ = _LateModule

    def load(self, module: _LateModule) -> None:
        """Execute the package's code, unless that was done, or is in progress in this thread."""
        with self._lock:
            if self._loading or not isinstance(module, _LateModule):
                return
            self._loading = True
            try:
                assert module.__spec__ is not None
                module.__path__ = module.__spec__.submodule_search_locations or []
                self._loader.exec_module(module)
                module.__class__ = ModuleType  # type: ignore[assignment] # loaded
                module.__spec__.loader = module.__loader__ = self._loader
            finally:
                self._loading = False


class _LateFinder:
    """Finds the packages of `_NAMES`, and no others."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Return the spec of a package of `_NAMES` with a `_LateLoader`, else None."""
        if fullname not in _NAMES:
            return None
        spec = PathFinder.find_spec(fullname, path, target)
        if spec is not None and spec.loader is not None:
            spec.loader = cast(Any, _LateLoader(spec.loader))
        return spec


def load_late() -> None:
    """Postpone the load of `netaddr`, `rfc3986` and `stevedore` until they are used."""
    if not any(isinstance(one, _LateFinder) for one in sys.meta_path):
        sys.meta_path.insert(0, _LateFinder())
