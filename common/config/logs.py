"""Logging to stderr: one line per record, followed by its traceback.

Secrets are masked; characters that could steer a terminal or begin another line are escaped.
"""

from __future__ import annotations

import logging
from collections.abc import Callable

from osbench.common.escaping import escaped
from osbench.common.secrets.masking import mask_text


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


def begin(level: str, *, process: bool = False) -> None:
    """Set up logging to stderr for records of `level`, a name, and above, with SafeFormatter.

    `process`: lines have the process id. Does nothing if the root logger has a handler already.
    """
    handler = logging.StreamHandler()
    parts = ["%(asctime)s", *(["%(process)d"] if process else []), "%(levelname)s", "%(message)s"]
    handler.setFormatter(SafeFormatter(" ".join(parts)))
    logging.basicConfig(level=level.upper(), handlers=[handler])
