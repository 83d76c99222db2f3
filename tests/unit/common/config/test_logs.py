"""No logger writes a secret."""

import contextlib
import logging

from osbench.common.config import logs


@contextlib.contextmanager
def plain_root():
    """The root logger without handlers, as a command finds it."""
    root = logging.getLogger()
    before, level = root.handlers[:], root.level
    root.handlers[:] = []
    try:
        yield
    finally:
        root.handlers[:] = before
        root.setLevel(level)


def test_secrets_are_hidden_in_arguments_and_tracebacks(capsys):
    with plain_root():
        logs.begin("debug", process=True)
        try:
            raise ValueError("no answer of http://admin:hunter2@keystone/v3")
        except ValueError:
            logging.getLogger("lib").debug("tried %s", "redis://:hunter2@host:6379", exc_info=True)

    said = capsys.readouterr().err
    assert "DEBUG tried redis://***@host:6379\nTraceback" in said
    assert said.rstrip().endswith("ValueError: no answer of http://***@keystone/v3")
    assert "hunter2" not in said


def test_what_is_below_the_level_is_not_said(capsys):
    with plain_root():
        logs.begin("WARNING")
        logging.getLogger("lib").info("much")
        logging.getLogger("lib").warning("enough")

    said = capsys.readouterr().err
    assert "enough" in said
    assert "much" not in said
