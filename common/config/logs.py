"""Logging to stderr: one line per record, followed by its traceback.

Secrets are masked; characters that could steer a terminal or begin another line are escaped.
"""

from __future__ import annotations

import logging
import warnings
from collections.abc import Callable

from osbench.common.secrets.masking import mask_text
from osbench.common.text.escaping import escaped

#: Loggers of libraries that log a deprecation at each use.
_REPEATING = ("rally.", "rally_openstack.", "oslo_config.")


class SafeFormatter(logging.Formatter):
    """A log formatter that masks secrets and escapes control characters.

    It does so in the whole record, with its traceback, also for libraries.
    """

    #: Hides secrets in a text.
    masked: Callable[[str], str] = staticmethod(mask_text)

    def format(self, record: logging.LogRecord) -> str:
        return escaped(self.masked(super().format(record)), breaks=True)

    def formatMessage(self, record: logging.LogRecord) -> str:
        return escaped(super().formatMessage(record))


class _OnceEach(logging.Filter):
    """Passes each deprecation of Rally or oslo.config once, and all other records always."""

    def __init__(self) -> None:
        super().__init__()
        self._seen: set[str] = set()

    def filter(self, record: logging.LogRecord) -> bool:
        if not record.name.startswith(_REPEATING):
            return True
        said = record.getMessage()
        if "deprecated" not in said.lower():
            return True
        new = said not in self._seen
        self._seen.add(said)
        return new


def quieten() -> None:
    """Let each deprecation of Rally, and each host of an unverified connection, be logged once.

    Changes the filters of `warnings` and logging's last resort, which works without `begin`.
    """
    # urllib3 would warn at each request; the message names the host
    warnings.filterwarnings("once", message="Unverified HTTPS request")
    last = logging.lastResort
    if last is not None and not any(isinstance(one, _OnceEach) for one in last.filters):
        last.addFilter(_OnceEach())


def begin(level: str, *, process: bool = False) -> None:
    """Set up logging to stderr for records of `level`, a name, and above, with SafeFormatter.

    `process`: lines have the process id. If the root logger has a handler, it only calls `quieten`.
    """
    quieten()
    handler = logging.StreamHandler()
    handler.addFilter(_OnceEach())
    parts = ["%(asctime)s", *(["%(process)d"] if process else []), "%(levelname)s", "%(message)s"]
    handler.setFormatter(SafeFormatter(" ".join(parts)))
    logging.basicConfig(level=level.upper(), handlers=[handler])
