"""Makes the driver known when a process imports OSProfiler's drivers.

OSProfiler looks its drivers up among the classes that are imported. A .pth file imports this module
when the interpreter starts. OSProfiler must not be imported then: a service that uses eventlet
replaces threads first, and OSProfiler keeps traces by the kind of threads at its import.
"""

from __future__ import annotations

import sys
from types import ModuleType
from typing import Any

_PACKAGE = "osprofiler.drivers"


class DriverFinder:
    """Finds OSProfiler's package of drivers as others do, and imports osbench's driver after it."""

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> Any:
        """Return the specification of the package, once; of no other module."""
        if name != _PACKAGE or self not in sys.meta_path:
            return None
        sys.meta_path.remove(self)
        import importlib.util  # noqa: PLC0415 - most processes of an environment do not need it

        spec = importlib.util.find_spec(name)
        if spec is not None and spec.loader is not None:
            execute = spec.loader.exec_module

            def exec_module(module: ModuleType) -> None:
                execute(module)
                _import_driver()

            spec.loader.exec_module = exec_module  # type: ignore[method-assign]
        return spec


def install() -> None:
    """Wait for OSProfiler in this process."""
    sys.meta_path.insert(0, DriverFinder())


def _import_driver() -> None:
    try:
        import osbench_osprofiler.driver  # noqa: F401, PLC0415
    except Exception:
        import logging  # noqa: PLC0415

        logging.getLogger(__name__).exception("the OSProfiler driver of osbench cannot be used")
