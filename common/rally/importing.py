"""Imports Rally and all its plug-ins, once per process, where it is installed."""

from __future__ import annotations

import importlib
import importlib.util
import logging
import sys
import threading
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from osbench.common.errors import PluginError

#: What Rally logs of the docstring of a scenario: users cannot change it.
_OF_DOCSTRINGS = "documents an argument that run() does not accept"

#: Rally's own configuration file: the first of these that exists.
FILES = (
    Path(sys.prefix, "etc/rally/rally.conf"),
    Path("~/.rally/rally.conf"),
    Path("/etc/rally/rally.conf"),
)


class _Loaded:
    """What this process has imported so far."""

    def __init__(self) -> None:
        self.lock = threading.RLock()
        self.plugins = False
        #: Import errors by plug-in path; "" where there are none.
        self.paths: dict[Path, str] = {}


_LOADED = _Loaded()


def installed() -> bool:
    """Whether Rally can be imported here."""
    return importlib.util.find_spec("rally") is not None


def load(paths: Sequence[str] = ()) -> bool:
    """Import Rally's plug-ins, those of its entry points, and the files and folders `paths`.

    Each is imported once, however often this is called and from any thread. Returns False where
    Rally is not installed. Raises PluginError where Rally or its configuration file is broken.
    """
    if not installed():
        return False
    with _LOADED.lock:
        if not _LOADED.plugins:
            with _quiet():
                _load()
            _LOADED.plugins = True
        wanted = [Path(path).expanduser().resolve() for path in paths]
        for path in wanted:
            if path not in _LOADED.paths:
                _LOADED.paths[path] = _load_from(path)
    return True


def faults(paths: Sequence[str]) -> list[str]:
    """Why files of `paths`, which were loaded, cannot be used."""
    wanted = [Path(path).expanduser().resolve() for path in paths]
    found = ((path, _LOADED.paths.get(path)) for path in wanted)
    return [f"plug-in path {path}: {said}" for path, said in found if said]


def configuration_file() -> Path | None:
    """Rally's configuration file, if there is one."""
    found = (path.expanduser() for path in FILES)
    return next((path for path in found if path.is_file()), None)


def _load() -> None:
    file = configuration_file()
    of_scenarios = logging.getLogger("rally.task.scenario")
    of_scenarios.addFilter(lambda record: _OF_DOCSTRINGS not in record.getMessage())
    try:
        # some plug-ins read options at import time, so the file must be read first
        opts = importlib.import_module("rally.common.opts")
        cfg = importlib.import_module("rally.common.cfg")
        opts.update_opt_defaults()
        cfg.CONF(
            [],
            project="rally",
            default_config_files=[str(file)] if file else [],
            default_config_dirs=[],
        )
        importlib.import_module("rally.plugins").load()
    except Exception as error:
        where = f" (its configuration file is {file})" if file else ""
        raise PluginError(
            f"Rally cannot be loaded{where}: {type(error).__name__}: {error}"
        ) from error


def _load_from(path: Path) -> str:
    """Import a plug-in path; returns the import errors, which Rally only logs."""
    discover = importlib.import_module("rally.common.plugin.discover")
    logger, errors = logging.getLogger(discover.__name__), _LoadErrors()
    logger.addHandler(errors)
    # logged by the caller, in one line
    before, logger.propagate = logger.propagate, False
    try:
        with _quiet():
            discover.load_plugins(str(path))
    finally:
        logger.removeHandler(errors)
        logger.propagate = before
    return "; ".join(errors.messages)


class _LoadErrors(logging.Handler):
    """Collects messages logged at WARNING or above."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.messages: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        """Keep the message, in one line."""
        self.messages.append(" ".join(record.getMessage().split()))


@contextmanager
def _quiet() -> Iterator[None]:
    """Suppress warnings of foreign imports, and undo their changes to the root logger."""
    root = logging.getLogger()
    before = root.handlers[:]
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        for handler in root.handlers[:]:
            if handler not in before:
                root.removeHandler(handler)
