"""Packages that a simulation runs take clock, threads, chance and disk from `common/ports` only."""

from __future__ import annotations

import ast
from collections.abc import Iterator

import pytest

from helpers.readme import REPOSITORY

#: Folders and modules of the product that a simulation runs.
SIMULATED = (
    "common/machine/clock_steps.py",
    "common/plugin",
    "common/files/regular_files.py",
    "common/protocol",
    "common/machine/redis_clock.py",
    "coordinator/plugins/contexts/context_stack.py",
    "coordinator/plugins/contexts/history.py",
    "coordinator/plugins/contexts/state_store.py",
    "coordinator/load/dispatch",
    "coordinator/load/fleet",
    "coordinator/plugins/hooks",
    "coordinator/report/builder.py",
    "coordinator/results/accounting",
    "coordinator/load/run",
    "coordinator/results/storage",
    "coordinator/load/transport",
    "worker/engine",
    "worker/process",
    "worker/session",
)
#: Modules and functions of the standard library that have a port, or cannot be simulated.
BANNED = (
    "concurrent.futures",
    "os.fdatasync",
    "os.fsync",
    "queue",
    "secrets",
    "threading",
    "time",
)
#: Modules that take some of them all the same, and why.
EXCEPTIONS = {
    # asyncio waits for futures of this package, and a call that blocks needs a real thread
    "worker/engine/loop/blocking_calls.py": {"concurrent.futures"},
    # a command that compares what other processes wrote with the real clock
    "worker/process/health_check.py": {"time"},
    # looks at the stack of a real thread
    "common/plugin/loading/slow_import.py": {"threading"},
    # may be asked by a signal handler, which a simulation does not have
    "worker/process/leave_request.py": {"queue"},
    # forks real processes, and waits for them
    "worker/process/forked_process.py": {"threading", "time"},
    # starts real processes, waits for them and ends them
    "worker/process/supervisor.py": {"time"},
    # a stand-alone file that takes the place of the supervisor
    "worker/process/resting.py": {"time"},
    # feeds the watchdog of systemd for the supervisor
    "worker/process/supervisor_life.py": {"time"},
}


def banned(name: str) -> Iterator[str]:
    """The banned module or function that a dotted name is, or is part of."""
    yield from (one for one in BANNED if name == one or name.startswith(f"{one}."))


def taken(source: str) -> Iterator[tuple[int, str]]:
    """What code takes of `BANNED`, each with its line."""
    for node in ast.walk(ast.parse(source)):
        names = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            names = [f"{node.module}.{alias.name}" for alias in node.names]
        elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            # `time.sleep` is fine if `time` is a port, which imports show
            names = [f"{node.value.id}.{node.attr}"] if node.value.id == "os" else []
        for name in names:
            yield from ((node.lineno, one) for one in banned(name))


def simulated() -> list[str]:
    paths = [REPOSITORY / place for place in SIMULATED]
    files = [file for path in paths for file in (path.rglob("*.py") if path.is_dir() else [path])]
    return sorted(str(file.relative_to(REPOSITORY)) for file in files)


def test_clock_threads_chance_and_disk_come_from_ports() -> None:
    paths = simulated()

    assert len(paths) > 150
    wrong = [
        f"{path}:{line}: {name}"
        for path in paths
        for line, name in taken((REPOSITORY / path).read_text("utf-8"))
        if name not in EXCEPTIONS.get(path, ())
    ]
    assert wrong == [], "take it from osbench.common.ports, or add an exception with its reason"


def test_no_exception_is_left_over() -> None:
    for path, allowed in EXCEPTIONS.items():
        assert {name for _, name in taken((REPOSITORY / path).read_text("utf-8"))} == allowed, path


@pytest.mark.parametrize(
    ("planted", "name"),
    [
        ("import time", "time"),
        ("import threading as threads", "threading"),
        ("def late():\n    from time import monotonic", "time"),
        ("from secrets import token_hex as draw", "secrets"),
        ("import concurrent.futures", "concurrent.futures"),
        ("from concurrent import futures", "concurrent.futures"),
        ("from concurrent.futures import Future", "concurrent.futures"),
        ("import queue", "queue"),
        ("import os\n\nos.fsync(0)", "os.fsync"),
        ("from os import fdatasync", "os.fdatasync"),
    ],
)
def test_a_planted_import_is_found(planted: str, name: str) -> None:
    assert [found for _, found in taken(planted)] == [name]


def test_ports_and_modules_of_like_names_are_not_found() -> None:
    code = "\n".join(
        (
            "import os",
            "from osbench.common.ports import chance, disk",
            "from osbench.common.ports import clock as time",
            "from osbench.common.ports.threads import Event",
            "from osbench.common.secrets.masking import mask",
            "import timeit",
            "time.sleep(0)",
            "disk.fsync(os.open('/', os.O_RDONLY))",
        )
    )

    assert list(taken(code)) == []
