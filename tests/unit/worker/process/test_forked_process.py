"""Worker processes that are forked begin as started ones do, with nothing of their supervisor."""

from __future__ import annotations

import io
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from osbench.worker.process.forked_process import ForkedProcess
from servers.child import PATIENCE_S


def sleeping(arguments: Sequence[str]) -> None:
    time.sleep(600)


def exiting(code: object) -> Callable[[Sequence[str]], object]:
    def run(arguments: Sequence[str]) -> None:
        sys.exit(code)  # type: ignore[arg-type]

    return run


@pytest.mark.parametrize(
    ("run", "code"),
    [(lambda arguments: None, 0), (exiting(None), 0), (exiting(3), 3), (exiting("no"), 1)],
)
def test_the_exit_code_is_that_of_a_program(run: Callable[..., object], code: int) -> None:
    process = ForkedProcess(run, [], ())

    assert process.wait(PATIENCE_S) == code
    assert process.poll() == process.returncode == code


def test_an_exception_ends_it_and_never_returns() -> None:
    def fail(arguments: Sequence[str]) -> None:
        # the streams of pytest are none of a worker
        sys.stderr = io.StringIO()
        raise KeyboardInterrupt(arguments[0])

    process = ForkedProcess(fail, ["as told"], ())

    assert process.wait(PATIENCE_S) == 1


def test_it_has_the_descriptors_that_it_is_passed_and_no_others(tmp_path: Path) -> None:
    kept, other = (os.open(tmp_path, os.O_RDONLY) for _ in range(2))

    def look(arguments: Sequence[str]) -> None:
        os.fstat(kept)
        try:
            os.fstat(other)
        except OSError:
            sys.exit(0)
        sys.exit(1)

    process = ForkedProcess(look, [], (kept,))

    assert process.wait(PATIENCE_S) == 0
    os.close(kept)
    os.close(other)


def test_it_leads_a_process_group_and_has_its_own_arguments() -> None:
    def look(arguments: Sequence[str]) -> None:
        sys.exit(0 if os.getpgid(0) == os.getpid() and sys.argv[1:] == ["a", "b"] else 1)

    assert ForkedProcess(look, ["a", "b"], ()).wait(PATIENCE_S) == 0


def test_a_signal_that_comes_at_once_ends_it_and_is_not_taken_for_the_supervisors() -> None:
    taken = []
    before = signal.signal(signal.SIGTERM, lambda *_: taken.append(os.getpid()))
    try:
        process = ForkedProcess(sleeping, [], ())
        process.send_signal(signal.SIGTERM)

        assert process.wait(PATIENCE_S) == -signal.SIGTERM
        assert taken == []
    finally:
        signal.signal(signal.SIGTERM, before)


def test_two_of_them_draw_different_numbers() -> None:
    import numpy.random

    reading, writing = os.pipe()

    def draw(arguments: Sequence[str]) -> None:
        os.write(writing, numpy.random.bytes(8))

    for _ in range(2):
        assert ForkedProcess(draw, [], (writing,)).wait(PATIENCE_S) == 0

    drawn = os.read(reading, 16)
    assert drawn[:8] != drawn[8:]
    os.close(reading)
    os.close(writing)


@pytest.mark.parametrize("waits", [True, False], ids=["", "on an old kernel"])
def test_one_that_does_not_end_is_waited_for_in_bounds_and_killed(
    waits: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(pid: int) -> int:
        raise OSError

    if not waits:
        monkeypatch.setattr(os, "pidfd_open", refuse)
    process = ForkedProcess(sleeping, [], ())

    with pytest.raises(subprocess.TimeoutExpired):
        process.wait(0.01)
    assert process.poll() is None
    process.kill()

    assert process.wait(PATIENCE_S) == -signal.SIGKILL
    process.send_signal(signal.SIGTERM)
