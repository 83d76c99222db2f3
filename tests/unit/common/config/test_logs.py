"""No logger writes a secret."""

import contextlib
import logging
import warnings

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


def test_a_deprecation_of_rally_is_told_once_and_all_else_each_time(capsys):
    with plain_root():
        logs.begin("WARNING")
        for number in range(3):
            logging.getLogger("rally.common.utils").warning("`f()' is deprecated in v%s", "0.1.2")
            logging.getLogger("rally.common.utils").warning("`g()' is Deprecated")
            logging.getLogger("rally.task.engine").warning("failed")
            logging.getLogger("lib").warning("deprecated, run %d", number // 3)

    said = capsys.readouterr().err
    counts = [said.count(one) for one in ("`f()'", "`g()'", "failed", "run 0")]
    assert counts == [1, 1, 3, 3]


def test_an_unverified_host_is_told_once():
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        logs.quieten()
        for host in ("once-a", "once-b", "once-a", "once-a"):
            warnings.warn(
                f"Unverified HTTPS request is being made to host '{host}'. Adding", stacklevel=1
            )

    assert [str(one.message).partition("'")[2][:6] for one in told] == ["once-a", "once-b"]


def test_what_is_below_the_level_is_not_said(capsys):
    with plain_root():
        logs.begin("WARNING")
        logging.getLogger("lib").info("much")
        logging.getLogger("lib").warning("enough")

    said = capsys.readouterr().err
    assert "enough" in said
    assert "much" not in said
