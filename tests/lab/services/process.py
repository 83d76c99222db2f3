"""Processes of the lab: started apart from who starts them, known and ended by their pid files."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import psutil

from servers.child import PATIENCE_S
from services.faults import NotStarted

#: How often a process is asked whether it is ready.
POLL_S = 0.25


@dataclass(frozen=True, kw_only=True)
class Process:
    """How a process is started, and how it is known to answer."""

    name: str
    command: list[str]
    #: Variables in addition to PATH, HOME and LANG.
    env: Mapping[str, str] = field(default_factory=dict)
    #: Whether it does its work; asked again and again.
    ready: Callable[[], bool]
    within_s: float = PATIENCE_S
    #: Port of 127.0.0.1 that it has to hold itself before `ready` is asked.
    port: int | None = None


class Processes:
    """The processes of one lab, each with `run/NAME.pid` and `log/NAME.log` in its folder."""

    def __init__(self, folder: Path) -> None:
        self._run, self._log = folder / "run", folder / "log"
        for path in (self._run, self._log):
            path.mkdir(mode=0o700, parents=True, exist_ok=True)

    def names(self) -> list[str]:
        """All that were started and not stopped since."""
        return sorted(path.stem for path in self._run.glob("*.pid"))

    def find(self, name: str) -> psutil.Process | None:
        """The living process of that name, never another one that got its number later."""
        try:
            noted = json.loads(self._pid_file(name).read_text())
            process = psutil.Process(noted["pid"])
            if process.create_time() == noted["created"] and not _ended(process):
                return process
        except (FileNotFoundError, psutil.NoSuchProcess):
            pass
        return None

    def started_as(self, name: str) -> str:
        """The identity with which the process of that name was started."""
        return str(json.loads(self._pid_file(name).read_text())["identity"])

    def start(self, process: Process, identity: str) -> None:
        """Start a process; it may not be ready yet."""
        env = {name: os.environ[name] for name in ("PATH", "HOME") if name in os.environ}
        log = str(self.log(process.name))
        pid = os.posix_spawnp(
            process.command[0],
            process.command,
            {**env, "LANG": "C.UTF-8", "PYTHONUNBUFFERED": "1", **process.env},
            file_actions=[
                (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0),
                (os.POSIX_SPAWN_OPEN, 1, log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600),
                (os.POSIX_SPAWN_DUP2, 1, 2),
            ],
            setsid=True,
        )
        created = psutil.Process(pid).create_time()
        noted = {"pid": pid, "created": created, "identity": identity}
        self._pid_file(process.name).write_text(json.dumps(noted))

    def wait(self, process: Process) -> None:
        """Wait until a process is ready; raises NotStarted with its last output."""
        deadline = time.monotonic() + process.within_s
        while (found := self.find(process.name)) is not None and time.monotonic() < deadline:
            if (process.port is None or holds(found, process.port)) and process.ready():
                return
            time.sleep(POLL_S)
        self.stop(process.name)
        log = self.log(process.name)
        raise NotStarted(f"{process.name} did not start; {log} ends with\n{_tail(log)}")

    def stop(self, name: str, within_s: float = 15.0) -> bool:
        """End a process and its children; whether there was one."""
        process = self.find(name)
        if process is not None:
            family = [process, *_children(process)]
            with contextlib.suppress(psutil.NoSuchProcess):
                process.send_signal(signal.SIGTERM)
            psutil.wait_procs([process], timeout=within_s)
            for left in family:
                # psutil refuses to signal a number that has gone to another process
                with contextlib.suppress(psutil.NoSuchProcess):
                    left.kill()
            psutil.wait_procs(family, timeout=within_s)
        self._pid_file(name).unlink(missing_ok=True)
        return process is not None

    def log(self, name: str) -> Path:
        """What the process of that name wrote."""
        return self._log / f"{name}.log"

    def _pid_file(self, name: str) -> Path:
        return self._run / f"{name}.pid"


def says(log: Path, text: str) -> Callable[[], bool]:
    """Whether a log has a text in what is written to it from now on."""
    begin = log.stat().st_size if log.exists() else 0

    def says() -> bool:
        with log.open("rb") as file:
            file.seek(begin)
            return text.encode() in file.read()

    return says


def holds(process: psutil.Process, port: int) -> bool:
    """Whether the process, or a child of it, listens on that port: else a stranger may."""
    for one in (process, *_children(process)):
        with contextlib.suppress(psutil.Error):
            for connection in one.net_connections("tcp"):
                if connection.status == psutil.CONN_LISTEN and connection.laddr.port == port:
                    return True
    return False


def _children(process: psutil.Process) -> list[psutil.Process]:
    with contextlib.suppress(psutil.NoSuchProcess):
        return process.children(recursive=True)
    return []


def _ended(process: psutil.Process) -> bool:
    with contextlib.suppress(psutil.NoSuchProcess):
        return process.status() == psutil.STATUS_ZOMBIE
    return True


def _tail(log: Path) -> str:
    return "\n".join(log.read_text(errors="replace").splitlines()[-20:])
