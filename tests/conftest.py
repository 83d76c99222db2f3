"""Options and fixtures of all tests."""

from __future__ import annotations

import faulthandler
import gc
import os
import resource
import signal
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import coverage
import hypothesis
import pytest
from xdist.scheduler import LoadFileScheduling

from helpers import forked_commands
from helpers.examples import PROFILES
from helpers.virtual_time import VirtualTime

# the width of somebody's terminal is no business of what tests print; xdist has it for its workers
os.environ.pop("COLUMNS", None)

GOLDEN = Path(__file__).parent / "golden"

#: Files of tests/lab that compare with Rally, and need no service; the others share one lab.
BESIDE_LAB = ("test_rally_corpus.py", "test_rally_report.py", "test_sla_rally.py")

#: Files that share a RabbitMQ, which takes longer to start than most tests take.
RABBITMQ = (
    "test_rabbitmq_alarms.py",
    "test_rabbitmq_run.py",
    "test_rabbitmq_users.py",
    "test_servers.py",
    "test_tutorials.py",
)

#: Files whose commands are forked from a process that has Rally's plug-ins: one is enough.
RALLY = (
    "test_docs_rally.py",
    "test_rally_beside_run.py",
    "test_rally_preferred.py",
    "test_rally_run.py",
    "test_rally_runners_run.py",
)

#: Seconds that a test may take to clean up after its timeout, before its process is ended.
CLEAN_UP_S = 180

#: Standard error as it is before tests are captured.
STDERR = pytest.StashKey[int]()

# machines of very different speed run these: a slow example is not a failure, nor is one that takes
# long to make. With CI set (to whatever value) examples are the same each time: chance finds where
# somebody looks, and not where a change is to land
for name, count in PROFILES.items():
    hypothesis.settings.register_profile(
        name,
        max_examples=count,
        deadline=None,
        derandomize="CI" in os.environ,
        suppress_health_check=[hypothesis.HealthCheck.too_slow],
    )

# a shell without job control has what it starts in the background ignore Ctrl-C, and processes that
# tests start would inherit that
signal.signal(signal.SIGINT, signal.default_int_handler)


# threads that multiply small matrices together wait for each other in a loop, which takes twice the
# CPU. numpy, which reads this, is imported later
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the options of these tests."""
    parser.addoption(
        "--update-golden",
        action="store_true",
        help="write what the code prints now to tests/golden instead of comparing with it",
    )
    parser.addoption("--lab", metavar="DIR", help="use the lab that runs in this folder")
    parser.addoption("--costs", metavar="CSV", help="append what each test took to a file")
    parser.addoption(
        "--examples",
        choices=PROFILES,
        default="few",
        help="how many examples property tests try: few (the default) or many, four times as many",
    )


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Put the tests of the lab first: they take longest, and others run beside them."""
    items.sort(key=lambda item: item.get_closest_marker("lab") is None)


def pytest_collection_finish() -> None:
    """Spare the garbage collector what is there until the end: modules and thousands of tests."""
    gc.collect()
    gc.freeze()


def pytest_configure(config: pytest.Config) -> None:
    """Keep standard error for what a test that hangs says at its end; choose examples."""
    config.stash[STDERR] = os.dup(2)
    # before test modules are imported, whose decorators ask for it
    hypothesis.settings.load_profile(config.getoption("--examples"))
    if not hasattr(config, "workerinput"):
        config.pluginmanager.register(Told(config))
    if costs := config.getoption("--costs"):
        config.pluginmanager.register(Costs(Path(costs)))


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish() -> None:
    """Write what coverage has measured: xdist kills a process that takes over 10 s to exit."""
    measured = coverage.Coverage.current()
    if measured is not None:
        measured.save()


class Told:
    """Names a test as soon as it fails, since a run may be cut off; skipped tests by reason."""

    def __init__(self, config: pytest.Config) -> None:
        self._config = config
        self._skipped: Counter[str] = Counter()

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Print the name of a test that failed, and the first line of why."""
        if report.failed:
            terminal = self._config.pluginmanager.get_plugin("terminalreporter")
            why = str(getattr(report.longrepr, "reprcrash", report.longrepr)).splitlines()
            terminal.write_line(f"\nfailed: {report.nodeid} ({report.when}): {''.join(why[:1])}")
        elif report.skipped and isinstance(report.longrepr, tuple):
            self._skipped[report.longrepr[2].removeprefix("Skipped: ")] += 1

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Print a line for each reason, with how many tests it has kept from running."""
        for reason, count in self._skipped.most_common():
            terminalreporter.write_line(f"skipped {count}: {reason}")


class Costs:
    """Writes what each test took: seconds of time, of CPU, and of CPU of its processes; its name.

    Processes count once they have ended and were waited for.
    """

    def __init__(self, path: Path) -> None:
        self._path = path

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Iterator[object]:
        """Measure a test with its fixtures."""
        before = self._now()
        try:
            return (yield)
        finally:
            spent = (after - at for after, at in zip(self._now(), before, strict=True))
            with self._path.open("a", encoding="utf-8") as file:
                file.write(",".join((*(f"{one:.3f}" for one in spent), item.nodeid)) + "\n")

    @staticmethod
    def _now() -> tuple[float, ...]:
        own, others = map(resource.getrusage, (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
        cpu = (used.ru_utime + used.ru_stime for used in (own, others))
        own_s, others_s = cpu
        return time.monotonic(), own_s, others_s + sum(forked_commands.cpu_s)


def end_process(stderr: int) -> None:
    """Say where all threads are, and end this process."""
    faulthandler.dump_traceback(stderr)
    os._exit(1)


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[object]:
    """End the process of a test that hangs after its timeout, too, and say where it hangs.

    pytest-timeout interrupts a test once; what its fixtures do afterwards has no limit. pytest's
    own `faulthandler_timeout` ends with the first failure of a test.
    """
    marker = item.get_closest_marker("timeout")
    limit_s = marker.args[0] if marker else float(item.config.getini("timeout"))
    end = threading.Timer(limit_s + CLEAN_UP_S, end_process, (item.config.stash[STDERR],))
    end.daemon = True
    end.start()
    try:
        return (yield)
    finally:
        end.cancel()


class Scheduling(LoadFileScheduling):
    """Gives a process the tests of a file; those that share a lab or a broker go to one process."""

    def _split_scope(self, nodeid: str) -> str:
        file: str = super()._split_scope(nodeid)
        folder, _, name = file.rpartition("/")
        if folder == "tests/functional" and name in RABBITMQ:
            return f"{folder} rabbitmq"
        if folder == "tests/functional" and name in RALLY:
            return f"{folder} rally"
        if folder != "tests/lab":
            return file
        return f"{folder} beside" if name in BESIDE_LAB else folder


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Scheduling:
    """Have `--numprocesses` divide the tests so."""
    return Scheduling(config, log)


@pytest.fixture
def golden(request: pytest.FixtureRequest) -> Callable[[str, str], None]:
    """Compare a text with the golden file of a name, or update the file."""

    def compare(name: str, text: str) -> None:
        path = GOLDEN / name
        if request.config.getoption("--update-golden"):
            path.parent.mkdir(exist_ok=True, parents=True)
            path.write_text(text, encoding="utf-8")
        assert text == path.read_text(encoding="utf-8")

    return compare


@pytest.fixture
def virtual_time(monkeypatch: pytest.MonkeyPatch) -> VirtualTime:
    """Have a test wait no real time by the clock of `osbench.common.ports`."""
    found = VirtualTime()
    found.put(monkeypatch)
    return found
