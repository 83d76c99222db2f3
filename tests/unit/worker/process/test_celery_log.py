"""What Celery raises while its broker is away is a line, what others log has its traceback."""

from __future__ import annotations

import io
import logging

import pytest

from osbench.worker.process.celery_log import CeleryInOneLine


@pytest.mark.parametrize(
    ("name", "lines"),
    [("celery.worker.request", 1), ("kombu.transport", 1), ("my.scenario", 5)],
)
def test_only_what_celery_logs_is_without_its_traceback(name: str, lines: int) -> None:
    said = io.StringIO()
    handler = logging.StreamHandler(said)
    handler.addFilter(CeleryInOneLine())
    logger = logging.getLogger(name)
    logger.addHandler(handler)

    try:
        raise ConnectionError("the broker is away")
    except ConnectionError:
        logger.critical("Couldn't ack", exc_info=True)
    logger.removeHandler(handler)

    assert said.getvalue().count("\n") == lines
