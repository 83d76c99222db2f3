"""Where log records go: to stderr, a line each, tracebacks below, no secrets in either."""

from __future__ import annotations

import logging

from osbench.common.masking import mask_url


class _Masking(logging.Formatter):
    """Hides what no log may hold, also in what libraries say and in tracebacks."""

    def format(self, record: logging.LogRecord) -> str:
        return mask_url(super().format(record))


def begin(level: str, *, process: bool = False) -> None:
    """Log to stderr from `level` on; with `process`, lines name the process id."""
    handler = logging.StreamHandler()
    parts = ["%(asctime)s", *(["%(process)d"] if process else []), "%(levelname)s", "%(message)s"]
    handler.setFormatter(_Masking(" ".join(parts)))
    logging.basicConfig(level=level.upper(), handlers=[handler])
