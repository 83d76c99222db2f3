"""A plug-in of pytest: writes the names of the tests that failed, a line each, to a file."""

from __future__ import annotations

from pathlib import Path

import pytest

OPTION = "--failures"


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the option that names the file."""
    parser.addoption(OPTION, metavar="FILE", help="write the names of failed tests to a file")


def pytest_configure(config: pytest.Config) -> None:
    """Begin to collect, in the process that sees all reports."""
    if not hasattr(config, "workerinput"):
        config.pluginmanager.register(_Failures(Path(config.getoption(OPTION))))


class _Failures:
    def __init__(self, path: Path) -> None:
        self._path = path
        self._names: dict[str, None] = {}

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed:
            self._names[report.nodeid] = None

    def pytest_sessionfinish(self) -> None:
        text = "".join(f"{name}\n" for name in self._names)
        self._path.write_text(text, encoding="utf-8")
