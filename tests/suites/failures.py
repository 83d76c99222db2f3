"""A plug-in of pytest: writes the tests that failed to a file, a line each: cause, tab, name.

The cause of a failure is the test itself. Tests whose common fixture failed have one cause, and so
have tests whose process ended.
"""

from __future__ import annotations

from pathlib import Path

import pytest

OPTION = "--failures"
#: Cause of a test whose process has ended; tests that were left to that process have not run.
ENDED = "its process has ended"


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
        #: Causes by name.
        self._causes: dict[str, str] = {}

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed:
            # pytest-xdist reports so of a process
            ended = ENDED if report.when == "???" else ""
            self._causes[report.nodeid] = ended or _fixture(report) or report.nodeid

    def pytest_sessionfinish(self) -> None:
        text = "".join(f"{cause}\t{name}\n" for name, cause in self._causes.items())
        self._path.write_text(text, encoding="utf-8")


def _fixture(report: pytest.TestReport) -> str:
    """Return the line at which a fixture failed, with the file of the test; "" for a test."""
    crash = getattr(report.longrepr, "reprcrash", None)
    if report.when != "setup" or crash is None:
        return ""
    return f"{report.nodeid.partition('::')[0]} {crash.path}:{crash.lineno}"
