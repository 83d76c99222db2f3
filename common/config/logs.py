"""Logging to stderr: one line per record, followed by its traceback, with secrets masked."""

from __future__ import annotations

import logging

from osbench.common.masking import mask_url


class _Masking(logging.Formatter):
    """Masks secrets, also in messages of libraries and in tracebacks."""

    def format(self, record: logging.LogRecord) -> str:
        return mask_url(super().format(record))


def begin(level: str, *, process: bool = False) -> None:
    """Log to stderr from `level` on; with `process`, lines name the process id."""
    handler = logging.StreamHandler()
    parts = ["%(asctime)s", *(["%(process)d"] if process else []), "%(levelname)s", "%(message)s"]
    handler.setFormatter(_Masking(" ".join(parts)))
    logging.basicConfig(level=level.upper(), handlers=[handler])
