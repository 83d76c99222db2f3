"""Starting and stopping of a lab's services, in the order that they need."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterable
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from graphlib import TopologicalSorter

from services import environments
from services.barbican import Barbican
from services.catalogue import Catalogue
from services.cinder import Cinder
from services.designate import Designate
from services.faults import Unavailable
from services.glance import Glance
from services.ironic import Ironic
from services.keystone import Keystone
from services.lab import Lab
from services.manila import Manila
from services.mariadb import Mariadb
from services.mistral import Mistral
from services.neutron import Neutron
from services.nova import Nova
from services.placement import Placement
from services.process import Process
from services.rabbitmq import Rabbitmq
from services.service import Service
from services.swift import Swift
from services.trace_store import Redis
from services.zaqar import Zaqar

SERVICES = (
    Redis(),
    Keystone(),
    Placement(),
    Glance(),
    Zaqar(),
    Swift(),
    Mariadb(),
    Rabbitmq(),
    Mistral(),
    Neutron(),
    Nova(),
    Cinder(),
    Barbican(),
    Ironic(),
    Designate(),
    Manila(),
)
ALL: dict[str, Service] = {service.name: service for service in SERVICES}

Tell = Callable[[str], None]


@dataclass(frozen=True, kw_only=True)
class Row:
    """What there is to know about a process."""

    service: str
    process: str
    url: str
    #: None where it does not run.
    pid: int | None


def with_needs(names: Iterable[str]) -> list[str]:
    """Those services and all that they need, in the order of their start."""
    graph: dict[str, tuple[str, ...]] = {}
    wanted = list(names)
    while wanted:
        name = wanted.pop()
        graph[name] = ALL[name].needs
        wanted += [need for need in graph[name] if need not in graph]
    return list(TopologicalSorter(graph).static_order())


def available(names: Iterable[str]) -> tuple[list[str], dict[str, str]]:
    """Those of the services that this machine can run, and why not the others."""
    can, cannot = [], {}
    for name in names:
        try:
            for need in with_needs([name]):
                ALL[need].check()
            can.append(name)
        except Unavailable as fault:
            cannot[name] = str(fault)
    return can, cannot


def start(lab: Lab, names: Iterable[str], *, tell: Tell = lambda line: None) -> None:
    """Start what does not run as it is configured now; may be used any number of times.

    Raises Unavailable where something is not on this machine, NotStarted where a service fails.
    """
    order = with_needs(names)
    for name in order:
        ALL[name].check()
    environments.install(packages for name in order if (packages := ALL[name].packages) is not None)
    with lab.locked():
        # Clients' files contain these two, also where only a server is started.
        named = ["redis", "keystone", *order]
        lab.choose_ports([port for name in named for port in ALL[name].ports])
        _in_order(order, lambda service: _bring_up(lab, service, tell))
        lab.write_clients_files()


def stop(lab: Lab, names: Iterable[str] | None = None, *, tell: Tell = lambda line: None) -> None:
    """End the processes of those services, else all that the lab started."""
    with lab.locked():
        there = [row for row in status(lab) if names is None or row.service in set(names)]
        # What others need is stopped last; the rest is stopped at the same time.
        for stage in (False, True):
            of_stage = [row.process for row in there if (ALL[row.service].kind is None) is stage]
            with ThreadPoolExecutor(len(of_stage) or 1) as pool:
                for process, stopped in zip(
                    of_stage, pool.map(lab.processes.stop, of_stage), strict=True
                ):
                    tell(f"{process}: {'stopped' if stopped else 'was gone'}")


def status(lab: Lab) -> list[Row]:
    """All processes that were started and not stopped since."""
    there = lab.processes.names()
    rows = []
    for name in with_needs(ALL):
        for process in [one for one in there if _belongs(one, name)]:
            found = lab.processes.find(process)
            url = ALL[name].url(lab) if process == name else ""
            rows.append(
                Row(service=name, process=process, url=url, pid=found.pid if found else None)
            )
    return rows


def _belongs(process: str, service: str) -> bool:
    return process == service or process.startswith(f"{service}-")


def _in_order(order: list[str], bring_up: Callable[[Service], None]) -> None:
    """Bring services up, two at a time where they do not need each other."""
    sorter = TopologicalSorter({name: ALL[name].needs for name in order})
    sorter.prepare()
    running: dict[Future[None], str] = {}
    with ThreadPoolExecutor(2) as pool:
        while sorter.is_active():
            for name in sorter.get_ready():
                running[pool.submit(bring_up, ALL[name])] = name
            done, _ = wait(running, return_when=FIRST_COMPLETED)
            for future in done:
                future.result()
                sorter.done(running.pop(future))


def _bring_up(lab: Lab, service: Service, tell: Tell) -> None:
    files = service.files(lab)
    for path, text in files.items():
        lab.write(path, text)
    initialised = lab.home(service.name) / ".initialised"
    if not initialised.exists():
        service.initialise(lab)
        initialised.touch()
    _register(lab, service)
    started = _start_processes(lab, service, files.values())
    unfinished = lab.home(service.name) / ".unfinished"
    if started:
        unfinished.touch()
    if unfinished.exists():
        service.finish(lab)
        unfinished.unlink()
    tell(f"{service.name}: {'started' if started else 'runs'}")


def _register(lab: Lab, service: Service) -> None:
    """Have the service in Keystone's catalogue at its present URL."""
    if service.kind is None:
        return
    registered = lab.home(service.name) / ".registered"
    url = service.url(lab)
    if not registered.exists() or registered.read_text() != url:
        Catalogue(lab).register(service.name, service.kind, url)
        registered.write_text(url)


def _start_processes(lab: Lab, service: Service, texts: Iterable[str]) -> bool:
    """Start those that do not run as they should; whether there were any."""
    begun: list[Process] = []
    for process in service.processes(lab):
        identity = _identity(process, texts)
        if lab.processes.find(process.name) is not None:
            if lab.processes.started_as(process.name) == identity:
                continue
            lab.processes.stop(process.name)
        lab.processes.start(process, identity)
        begun.append(process)
        if not service.at_once:
            lab.processes.wait(process)
    if service.at_once:
        for process in begun:
            lab.processes.wait(process)
    return bool(begun)


def _identity(process: Process, texts: Iterable[str]) -> str:
    """A digest that shows whether a running process was started as it would be now."""
    parts = [*process.command, *sorted(f"{key}={process.env[key]}" for key in process.env), *texts]
    return hashlib.sha256("\0".join(map(os.fspath, parts)).encode()).hexdigest()
