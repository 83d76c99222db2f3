"""Copies of a lab's service: the same packages and data, other processes and configurations."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from services import operations
from services.lab import Lab
from services.process import Process
from services.service import answers

INSIDE = Path(__file__).parent / "inside"
#: Where `services.service.served` has the port in its command.
_PORT = -2


@dataclass(frozen=True, kw_only=True)
class Like:
    """How a copy differs from the lab's own process."""

    #: Whether OSProfiler is enabled in its configuration.
    profiler: bool = False
    #: Whether it writes traces with the driver of deploy/osprofiler.
    buffered: bool = False
    #: Whether it takes OSProfiler's published default key in addition to the lab's.
    default_key: bool = False
    #: A script of `INSIDE` and its arguments, which runs the lab's own script.
    launcher: tuple[str | Path, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Copy:
    """A process that serves as the lab's own does."""

    pid: int
    port: int


@contextlib.contextmanager
def copies(lab: Lab, service: str, wanted: Mapping[str, Like]) -> Iterator[dict[str, Copy]]:
    """Copies by their names, side by side; ended when the block is left. Raises NotStarted."""
    processes = {name: _process(lab, service, name, like) for name, like in wanted.items()}
    try:
        for process in processes.values():
            lab.processes.start(process, identity="")
        found = {}
        for name, process in processes.items():
            lab.processes.wait(process)
            running = lab.processes.find(process.name)
            assert running is not None
            assert process.port is not None
            found[name] = Copy(pid=running.pid, port=process.port)
        yield found
    finally:
        for process in processes.values():
            lab.processes.stop(process.name)


def _process(lab: Lab, service: str, name: str, like: Like) -> Process:
    full = f"{service}-{name}"
    lab.choose_ports([full])
    port = lab.port(full)
    theirs, home = lab.home(service), lab.home(full)
    before = lab.options
    lab.options = replace(
        before, profiler=like.profiler, buffered=like.buffered, default_key=like.default_key
    )
    try:
        files = operations.ALL[service].files(lab)
        (process,) = operations.ALL[service].processes(lab)
    finally:
        lab.options = before
    for path, text in files.items():
        lab.write(home / path.relative_to(theirs), text)
    moved = {key: str(home) if at == str(theirs) else at for key, at in process.env.items()}
    python, *script = process.command
    script[_PORT] = str(port)
    return replace(
        process,
        name=full,
        command=[python, *map(str, like.launcher), *script],
        # the order of sets and dicts is chance, and weighs on what a request costs
        env={**moved, "PYTHONHASHSEED": "0"},
        port=port,
        ready=lambda: answers(f"http://127.0.0.1:{port}/"),
    )


def note_requests(lab: Lab, service: str) -> Path:
    """Start a lab's own process anew, so that it writes a line for each request; where to.

    A line is the second of the wall clock at which the request came.
    """
    (process,) = operations.ALL[service].processes(lab)
    notes = lab.home(service) / "requests"
    notes.touch()
    python, *script = process.command
    launcher = [str(INSIDE / "serve_noted.py"), str(notes)]
    lab.processes.stop(process.name)
    lab.processes.start(replace(process, command=[python, *launcher, *script]), identity="")
    lab.processes.wait(process)
    return notes
