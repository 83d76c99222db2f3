"""How a case is played: a run of the product in local mode in which something is planted."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psutil

from helpers.processes import command_of
from helpers.runs import Finished, Site, Started, site
from servers.hostile_http import hostile_server
from servers.referee import Referee, RefereeLog, referee

#: Options of users who configure nothing: `Site` itself is lenient with late machines.
STRICT: Mapping[str, Mapping[str, Any]] = {"benchmark": {"lag_limit_s": 0.1, "max_lag_s": 1.0}}
#: Scenarios and contexts of the cases.
PLUGINS = Path(__file__).parent / "plugins" / "planted.py"
#: Stands for the address of the server in workloads.
URL = "{url}"
#: Stands for the home of the run in workloads and arguments.
HOME = "{home}"

#: Disturbance of a run that is under way.
Deed = Callable[["Ground"], None]
#: Preparation of a home before the run: the site, and the address of the server.
Errand = Callable[[Site, str], None]


@dataclass(frozen=True, kw_only=True)
class Planting:
    """A task, the world around it, and what happens meanwhile."""

    #: Workloads of the task; without any, `arguments` name the task or address to run.
    workloads: Sequence[Mapping[str, Any]] = ()
    #: Rule of the referee with its values, or `hostile` (servers.hostile_http), or "".
    server: str = ""
    values: Mapping[str, float] = field(default_factory=dict)
    #: Sections of osbench.conf.
    config: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    arguments: Sequence[str] = ()
    #: Folders that are made in the home of the run.
    folders: Sequence[str] = ()
    #: Command that runs osbench-coord.
    within: Sequence[str] = ()
    before: Errand | None = None
    during: Deed | None = None


@dataclass(frozen=True, kw_only=True)
class Seen:
    """Remains of a run: the only thing that checks look at."""

    code: int
    err: str
    #: The object of `run --json`; empty if there is none.
    summary: Mapping[str, Any]
    #: Requests that the referee got.
    log: RefereeLog = field(default_factory=RefereeLog)
    #: Files in the folders of the planting.
    left: Sequence[str] = ()
    #: JUnit file of the run, or "".
    junit: str = ""
    #: Number of the workload that checks look at.
    at: int = 0

    @property
    def workload(self) -> Mapping[str, Any]:
        """The workload that is checked; empty if it is not in the summary."""
        found: Sequence[Mapping[str, Any]] = self.summary.get("workloads") or ()
        return found[self.at] if self.at < len(found) else {}

    @property
    def notes(self) -> Sequence[str]:
        """All notes of the run."""
        found: Sequence[str] = self.summary.get("notes") or ()
        return found

    @property
    def bounds(self) -> Sequence[Mapping[str, str]]:
        """Causes that bound the load."""
        found: Sequence[Mapping[str, str]] = self.workload.get("bounds") or ()
        return found


class Ground:
    """A run that goes on, and what deeds need of it."""

    def __init__(self, here: Site, started: Started) -> None:
        self.site = here
        self.started = started

    def await_load(self, after_s: float = 0.0) -> None:
        """Wait until iterations have ended and the load has lasted for some seconds."""

        def is_loaded() -> bool:
            status = self.site.status()
            return (
                status.get("phase") == "running"
                and bool(status.get("ok"))
                and status.get("elapsed_s", 0.0) >= after_s
            )

        self.started.wait_for(is_loaded)

    def workers(self) -> Sequence[psutil.Process]:
        """All worker processes: children of a supervisor, which has the same command."""
        workers = [one for one in self.site.private() if "osbench.worker" in command_of(one)]
        numbers = {one.pid for one in workers}
        return [one for one in workers if one.ppid() in numbers]

    def run_folder(self) -> Path:
        """The run directory."""
        return next(self.site.data.glob("runs/*"))


def play(planting: Planting, *, lenient: bool = False) -> Seen:
    """Run the product to its end; `lenient`: lateness of the machine is not what is looked at."""
    with contextlib.ExitStack() as stack:
        here = stack.enter_context(site(planting.within))
        here.configure({} if lenient else STRICT, planting.config)
        served = stack.enter_context(_server(planting))
        places = {URL: served.url if served is not None else "", HOME: str(here.home)}
        arguments = [*_filled(planting.arguments, places), "--plugin-path", str(PLUGINS)]
        if planting.workloads:
            arguments.insert(0, here.task(*_filled(planting.workloads, places)))
        for name in planting.folders:
            (here.home / name).mkdir()
        if planting.before is not None:
            planting.before(here, places[URL])
        done = _run(here, planting.during, arguments)
        junit = here.home / "junit.xml"
        return Seen(
            code=done.code,
            err=done.err,
            summary=done.printed if done.out else {},
            log=served.seen() if isinstance(served, Referee) else RefereeLog(),
            left=[one.name for name in planting.folders for one in here.home.glob(f"{name}/*")],
            junit=junit.read_text("utf-8") if junit.exists() else "",
        )


def _run(here: Site, during: Deed | None, arguments: Sequence[str]) -> Finished:
    if during is None:
        return here.run(*arguments)
    started = here.start("osbench-coord", "run", "--json", *arguments)
    during(Ground(here, started))
    return started.finish()


@contextlib.contextmanager
def _server(planting: Planting) -> Iterator[Any]:
    """The server under load, None if there is none."""
    if not planting.server:
        yield None
    elif planting.server == "hostile":
        with hostile_server() as hostile:
            yield hostile
    else:
        with referee(planting.server, **planting.values) as served:
            yield served


def _filled(value: Any, places: Mapping[str, str]) -> Any:
    """Copy a piece of a task with this run's values instead of URL and HOME."""
    if isinstance(value, str):
        for name, text in places.items():
            value = value.replace(name, text)
        return value
    if isinstance(value, Mapping):
        return {name: _filled(one, places) for name, one in value.items()}
    if isinstance(value, Sequence):
        return [_filled(one, places) for one in value]
    return value
