"""Logging to stderr: one line per record, followed by its traceback.

Secrets are masked, and what could steer a terminal or begin another line is escaped.
"""

from __future__ import annotations

import logging

from osbench.common.escaping import escaped
from osbench.common.masking import mask_url


class _SafeFormatter(logging.Formatter):
    """Masks and escapes, also in messages of libraries and in tracebacks."""

    def format(self, record: logging.LogRecord) -> str:
        return escaped(mask_url(super().format(record)), breaks=True)

    def formatMessage(self, record: logging.LogRecord) -> str:
        return escaped(super().formatMessage(record))


def begin(level: str, *, process: bool = False) -> None:
    """Log to stderr from `level` on; with `process`, lines name the process id."""
    handler = logging.StreamHandler()
    parts = ["%(asctime)s", *(["%(process)d"] if process else []), "%(levelname)s", "%(message)s"]
    handler.setFormatter(_SafeFormatter(" ".join(parts)))
    logging.basicConfig(level=level.upper(), handlers=[handler])
