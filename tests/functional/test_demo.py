"""`make demo` shows a profiled run, and leaves nothing behind, however it is ended."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from helpers.commands import LENIENT, environment
from helpers.readme import REPOSITORY
from servers import folder
from servers.child import PATIENCE_S

pytestmark = pytest.mark.functional


@pytest.fixture
def temporary() -> Iterator[Path]:
    """The folder for temporary files of the demo and of all that it starts."""
    with folder() as path:
        yield path


def start(temporary: Path) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "samples/demo.py"],
        cwd=REPOSITORY,
        env=environment(temporary / "home") | LENIENT | {"TMPDIR": str(temporary)},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )


def processes(temporary: Path) -> list[psutil.Process]:
    """What lives with this folder for temporary files."""
    found = []
    for process in psutil.process_iter():
        try:
            if process.environ().get("TMPDIR") == str(temporary):
                found.append(process)
        except psutil.Error:
            continue
    return found


def test_the_demo_runs_and_shows_a_slow_trace(temporary: Path) -> None:
    demo = start(temporary)

    printed, _ = demo.communicate(timeout=PATIENCE_S)

    assert demo.returncode == 0, printed
    assert "Exit code 0" in printed
    assert "osbench.iteration osbench/worker" in printed
    assert "wsgi shop/web" in printed
    # on a busy machine the slowest iteration need not be one that recomputes
    assert "db shop/web" in printed
    assert not processes(temporary)
    assert not list(temporary.iterdir())


def begin_load(temporary: Path) -> subprocess.Popen[str]:
    """A demo whose first iterations run."""
    demo = start(temporary)
    while " running: " not in (line := demo.stdout.readline()):
        assert line, "the demo ended before its load"
    return demo


def test_an_interrupted_demo_leaves_nothing_behind(temporary: Path) -> None:
    demo = begin_load(temporary)

    os.killpg(demo.pid, signal.SIGINT)  # as a terminal does
    demo.communicate(timeout=PATIENCE_S)

    assert demo.returncode == 130
    assert not processes(temporary)
    assert not list(temporary.iterdir())


def test_a_killed_demo_leaves_no_process_behind(temporary: Path) -> None:
    demo = begin_load(temporary)

    demo.kill()
    demo.communicate(timeout=PATIENCE_S)

    while processes(temporary):
        time.sleep(0.05)


def test_the_shop_says_that_its_port_is_in_use(temporary: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        done = subprocess.run(
            [sys.executable, REPOSITORY / "samples" / "webservice.py", "--port", str(port)],
            cwd=temporary,
            capture_output=True,
            text=True,
            timeout=PATIENCE_S,
            check=False,
        )

    assert done.returncode == 1
    said = f"webservice.py: 127.0.0.1:{port}: Address already in use; give another --port, or 0\n"
    assert done.stderr == said
