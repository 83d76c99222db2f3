"""What each service of the lab has in common: needs, files, databases, processes."""

from __future__ import annotations

import os
import shlex
import subprocess
from collections.abc import Iterable, Mapping
from pathlib import Path

import requests

from services.faults import NotStarted
from services.lab import Lab
from services.process import Process, says

INSIDE = Path(__file__).parent / "inside"

FAULTY_THREADS = 8


class Service:
    """One service; subclasses say how it differs."""

    name: str
    #: Names of services that have to run before.
    needs: tuple[str, ...] = ()
    #: Name of the environment (a file in requirements/), where it has one.
    packages: str | None = None
    #: Type in Keystone's catalogue, where it is there.
    kind: str | None = None
    #: What follows the port in its URL in the catalogue.
    path: str = ""
    #: Names of the ports that it takes; the one that is its own name is in the catalogue.
    ports: tuple[str, ...] = ()

    #: Whether its processes may start together; else each waits for the one before.
    at_once: bool = False

    #: Whether it starts only if it is named: few need it, and its packages take time and disk.
    by_name: bool = False

    def check(self) -> None:
        """Raise Unavailable where this machine cannot run it."""

    def files(self, lab: Lab) -> Mapping[Path, str]:
        """Its configuration files, written at each start."""
        return {}

    def initialise(self, lab: Lab) -> None:
        """Make its databases and keys, once in the life of a lab."""

    def processes(self, lab: Lab) -> list[Process]:
        """Its processes in the order of their start."""
        return []

    def finish(self, lab: Lab) -> None:
        """What is left to do when all its processes answer."""

    def url(self, lab: Lab) -> str:
        """Its address."""
        return f"http://127.0.0.1:{lab.port(self.name)}{self.path}"


def served(
    lab: Lab,
    service: Service,
    application: str,
    *,
    env: Mapping[str, str],
    ready: str = "/",
    threads: int = 1,
) -> Process:
    """A WSGI application behind waitress in the service's own environment.

    One thread is right for SQLite: it answers no second writer but "database is locked". Where
    faults are injected there are more, and no request may write: else all wait for a delayed one.
    """
    port = lab.port(service.name)
    assert service.packages is not None
    if lab.options.faults:
        threads = max(threads, FAULTY_THREADS)
        if not lab.fault_file.exists():
            lab.plant()
        env = {**env, "LAB_FAULT": str(lab.fault_file), "LAB_SERVICE": service.name}
    python = lab.interpreter(service.packages)
    return Process(
        name=service.name,
        command=[str(python), str(INSIDE / "serve.py"), application, str(port), str(threads)],
        env=env,
        port=port,
        ready=lambda: answers(f"http://127.0.0.1:{port}{ready}"),
    )


def daemon(lab: Lab, service: str, name: str, config: Path, text: str) -> Process:
    """A daemon from the environment of a service; `text` is in its log when it is up."""
    return Process(
        name=name,
        command=[str(lab.environment(service) / "bin" / name), "--config-file", str(config)],
        ready=says(lab.processes.log(name), text),
    )


def answers(url: str) -> bool:
    """Whether there is any answer but a failure of the server."""
    try:
        return requests.get(url, timeout=10).status_code < 500
    except requests.RequestException:
        return False


def run(command: list[str], *, env: Mapping[str, str] | None = None) -> str:
    """Run a command of a service to its end; what it printed."""
    done = subprocess.run(
        command, env={**os.environ, **(env or {})}, capture_output=True, text=True, check=False
    )
    if done.returncode:
        name = " ".join(Path(part).name for part in command[:1] + command[-3:])
        raise NotStarted(f"{name} failed:\n{(done.stdout + done.stderr)[-3000:]}")
    return done.stdout


def run_several(
    python: Path,
    function: str,
    config: Path,
    calls: Iterable[list[str]],
    *,
    env: Mapping[str, str] | None = None,
) -> str:
    """Call a command's function, MODULE:FUNCTION, with several lists of arguments."""
    command = [str(python), str(INSIDE / "several.py"), function, str(config)]
    return run([*command, *map(shlex.join, calls)], env=env)
