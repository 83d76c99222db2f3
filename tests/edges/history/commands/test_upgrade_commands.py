"""Commands that change a running service: bounds, interrupts, and processes that they leave."""

from __future__ import annotations

import contextlib
import os
import signal
import threading
from pathlib import Path

import psutil
import pytest

from helpers.engines import until
from osbench.common.errors import OsbenchError
from osbench.coordinator.front.cli.one_run import Interrupts
from osbench.coordinator.front.cli.progress_display import Progress
from osbench.edges.history.commands.upgrade_commands import ServiceCommand


def command(
    folder: Path, text: str, *, within_s: float = 60.0, spared: bool = False
) -> ServiceCommand:
    """The option --change with a command."""
    return ServiceCommand(
        option="--change",
        command=text,
        log=folder / "change.log",
        within_s=within_s,
        spared=spared,
    )


def interrupted_when(path: Path, interrupts: Interrupts) -> threading.Thread:
    """Interrupt once a file exists."""

    def interrupt() -> None:
        until(path.exists)
        interrupts.note()

    thread = threading.Thread(target=interrupt)
    thread.start()
    return thread


def test_a_service_that_it_has_started_keeps_running(tmp_path: Path) -> None:
    started = command(tmp_path, f"sleep 600 & echo $! > {tmp_path}/pid; echo done")

    took_s = started.run(Interrupts(), Progress(quiet=True))

    pid = int((tmp_path / "pid").read_text("utf-8"))
    try:
        assert psutil.pid_exists(pid)
        assert took_s > 0
        assert (tmp_path / "change.log").read_text("utf-8") == "done\n"
        assert (tmp_path / "change.log").stat().st_mode & 0o777 == 0o600
    finally:
        os.kill(pid, signal.SIGKILL)


def test_a_command_that_does_not_end_is_ended_with_its_children(tmp_path: Path) -> None:
    endless = command(
        tmp_path, f"sleep 600 & echo $! > {tmp_path}/pid; echo waiting; wait", within_s=0.5
    )

    with pytest.raises(OsbenchError) as caught:
        endless.run(Interrupts(), Progress(quiet=True))

    assert "--change has not ended within 500ms" in str(caught.value)
    assert "raise --within" in str(caught.value)
    with contextlib.suppress(FileNotFoundError):
        pid = int((tmp_path / "pid").read_text("utf-8"))
        until(lambda: not psutil.pid_exists(pid) or psutil.Process(pid).status() == "zombie")


def test_an_interrupt_ends_a_restart_and_lets_a_change_end(tmp_path: Path) -> None:
    restart, change = Interrupts(), Interrupts()
    begun, going = tmp_path / "begun", tmp_path / "going"
    first = interrupted_when(begun, restart)

    command(tmp_path, f"touch {begun}; exec sleep 600").run(restart, Progress(quiet=True))
    first.join()
    second = interrupted_when(going, change)
    whole = command(
        tmp_path,
        f"touch {going}; cd {tmp_path}; until test -e go; do sleep 0.05; done; touch whole",
        spared=True,
    )
    until_noted = threading.Thread(
        target=lambda: (until(lambda: change.count > 0), (tmp_path / "go").touch())
    )
    until_noted.start()
    whole.run(change, Progress(quiet=True))
    second.join()
    until_noted.join()

    assert (tmp_path / "whole").exists()


def test_a_second_interrupt_ends_a_change(tmp_path: Path) -> None:
    interrupts = Interrupts()
    interrupts.note()
    interrupts.note()

    command(tmp_path, "exec sleep 600", spared=True).run(interrupts, Progress(quiet=True))


def test_an_empty_command_does_nothing(tmp_path: Path) -> None:
    assert command(tmp_path, "").run(Interrupts(), Progress(quiet=True)) == 0.0
    assert not (tmp_path / "change.log").exists()
