"""What Celery logs, for people who know osbench and not Celery."""

from __future__ import annotations

import logging


class CeleryInOneLine(logging.Filter):
    """What a message that is none, or a broker that is away, makes Celery raise is one line.

    A filter of handlers: those of a logger do not see what the loggers below it log.
    """

    def filter(self, record: logging.LogRecord) -> bool:
        """Let every record pass, those of Celery without their traceback."""
        if record.name.partition(".")[0] in ("celery", "kombu"):
            record.exc_info = record.exc_text = None
        return True
