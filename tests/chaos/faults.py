"""What each kind of fault does to an arena.

A fault is a generator: it does something, yields for how many seconds that lasts, and ends it.
"""

from __future__ import annotations

import random
import signal
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

from chaos.schedule import Fault
from helpers.arena import Arena, Host, Load
from servers import RabbitmqServer

#: Writes as much as fits; what is removed makes room again.
FILLER = "filler"


class Skipped(Exception):
    """This machine cannot do it; the reason."""


def host_of(arena: Arena, fault: Fault) -> Host:
    """The host that a fault befalls: one that is up, if there is one."""
    up = [host for host in arena.hosts if host.is_up] or arena.hosts
    return up[fault.target % len(up)]


def load_of(arena: Arena, fault: Fault) -> Load:
    """The run that a fault befalls."""
    return arena.loads[fault.target % len(arena.loads)]


def kill_process(arena: Arena, fault: Fault) -> Iterator[float]:
    """The supervisor starts another process in its place."""
    host_of(arena, fault).signal_process(signal.SIGKILL)
    yield 0.0


def kill_host(arena: Arena, fault: Fault) -> Iterator[float]:
    """Supervisor and process die at once; in half of the cases another host comes later."""
    host_of(arena, fault).signal_host(signal.SIGKILL)
    if fault.value < 0.5:
        yield fault.for_s
        arena.start_host()


def start_host(arena: Arena, fault: Fault) -> Iterator[float]:
    """One more host comes: a run that takes all workers takes its worker, too."""
    arena.start_host()
    yield 0.0


def stop_process(arena: Arena, fault: Fault) -> Iterator[float]:
    """The worker process stands still, its supervisor goes on."""
    host = host_of(arena, fault)
    host.signal_process(signal.SIGSTOP)
    yield fault.for_s
    host.signal_process(signal.SIGCONT)


def stop_host(arena: Arena, fault: Fault) -> Iterator[float]:
    """Both stand still."""
    host = host_of(arena, fault)
    host.signal_host(signal.SIGSTOP)
    yield fault.for_s
    host.signal_host(signal.SIGCONT)


def stop_supervisor(arena: Arena, fault: Fault) -> Iterator[float]:
    """The process is killed while its supervisor stands still: its will comes late."""
    host = host_of(arena, fault)
    host.supervisor.process.send_signal(signal.SIGSTOP)
    host.signal_process(signal.SIGKILL)
    yield fault.for_s
    host.supervisor.process.send_signal(signal.SIGCONT)


def drain_host(arena: Arena, fault: Fault) -> Iterator[float]:
    """The host is asked to leave, if another one stays."""
    if sum(host.is_up for host in arena.hosts) > 1:
        host_of(arena, fault).supervisor.process.terminate()
    yield 0.0


def kill_coordinator(arena: Arena, fault: Fault) -> Iterator[float]:
    """The run is resumed after a while."""
    load = load_of(arena, fault)
    if load.is_running:
        load.signal(signal.SIGKILL)
        yield fault.for_s
        arena.resume(load)


def stop_coordinator(arena: Arena, fault: Fault) -> Iterator[float]:
    """The coordinator stands still."""
    load = load_of(arena, fault)
    load.signal(signal.SIGSTOP)
    yield fault.for_s
    load.signal(signal.SIGCONT)


def interrupt(arena: Arena, fault: Fault) -> Iterator[float]:
    """Ctrl-C; in a third of the cases a second one."""
    load = load_of(arena, fault)
    # a command that has just begun is not in a run yet
    while load.is_running and not arena.is_driven(load):
        yield 0.1
    for _ in range(2 if fault.value < 0.33 else 1):
        if load.is_running:
            load.interrupt()
        yield min(2.0, fault.for_s)


def redis_restart(arena: Arena, fault: Fault) -> Iterator[float]:
    """Redis is killed, and comes back with its file."""
    arena.fragile.kill()
    yield fault.for_s
    arena.fragile.begin_again()


def redis_cut_off(arena: Arena, fault: Fault) -> Iterator[float]:
    """Redis is killed, and the last bytes of its file are gone."""
    arena.fragile.kill()
    arena.fragile.cut_off(round(50_000 * fault.value**2))
    yield fault.for_s / 4
    arena.fragile.begin_again()


def redis_rollback(arena: Arena, fault: Fault) -> Iterator[float]:
    """Redis comes back with its file as it was a second or two ago."""
    copy = arena.fragile.copied()
    yield 0.2 + 2 * fault.value
    arena.fragile.begin_again(copy)


def redis_empty(arena: Arena, fault: Fault) -> Iterator[float]:
    """Redis is killed, and comes back without its file."""
    arena.fragile.kill()
    yield fault.for_s / 4
    arena.fragile.begin_empty()


def redis_flush(arena: Arena, fault: Fault) -> Iterator[float]:
    """FLUSHALL, in a third of the cases twice."""
    arena.fragile.flush()
    if fault.value < 0.33:
        yield fault.for_s
        arena.fragile.flush()


def redis_forget(arena: Arena, fault: Fault) -> Iterator[float]:
    """Some keys are deleted again and again."""
    chance = random.Random(fault.target)
    for _ in range(1 + fault.target % 6):
        arena.fragile.forget(chance, fault.value)
        yield min(0.5, fault.for_s / 6)


def redis_hang(arena: Arena, fault: Fault) -> Iterator[float]:
    """Redis stands still; connections stay."""
    if not arena.fragile.is_started:
        # another fault has killed it: this one has no effect
        return
    arena.fragile.pause()
    yield fault.for_s
    if arena.fragile.is_started:
        arena.fragile.resume()


def redis_full(arena: Arena, fault: Fault) -> Iterator[float]:
    """Redis refuses all writes that need memory."""
    arena.fragile.fill()
    yield fault.for_s
    arena.fragile.free()


def failover(arena: Arena, fault: Fault) -> Iterator[float]:
    """A replica that lags behind by a second or two takes over; nobody is told."""
    copy = arena.fragile.copied()
    yield 0.2 + 2 * fault.value
    arena.fail_over(copy)


def cut_host(arena: Arena, fault: Fault) -> Iterator[float]:
    """One host loses its connections to Redis and gets no new ones."""
    host_of(arena, fault).proxy.cut(fault.for_s)
    yield fault.for_s


def hang_host(arena: Arena, fault: Fault) -> Iterator[float]:
    """What one host and Redis send each other arrives late, all at once."""
    host_of(arena, fault).proxy.hang(fault.for_s)
    yield fault.for_s


def cut_coordinator(arena: Arena, fault: Fault) -> Iterator[float]:
    """The coordinators lose their connections to Redis."""
    arena.proxy.cut(fault.for_s)
    yield fault.for_s


def delay(arena: Arena, fault: Fault) -> Iterator[float]:
    """Every piece of data is late."""
    for proxy in arena.proxies():
        proxy.delay_s = 0.4 * fault.value
    yield fault.for_s
    for proxy in arena.proxies():
        proxy.delay_s = 0.0


def throttle(arena: Arena, fault: Fault) -> Iterator[float]:
    """One host has a thin line."""
    proxy = host_of(arena, fault).proxy
    proxy.bytes_per_s = 5_000 + 50_000 * fault.value
    yield fault.for_s
    proxy.bytes_per_s = 0.0


def meddle(kind: str, arena: Arena, fault: Fault) -> Iterator[float]:
    """The proxies do what `servers.redis_proxy` says to a share of the writes."""
    for proxy in arena.proxies():
        proxy.shares[kind] = 0.05 + 0.45 * fault.value
    yield fault.for_s
    for proxy in arena.proxies():
        proxy.shares[kind] = 0.0


def disk_full(arena: Arena, fault: Fault) -> Iterator[float]:
    """The run directories' file system is full, and has room again later. Raises Skipped."""
    folder = arena.site.data / "runs"
    if not folder.is_mount():
        raise Skipped("no file system of its own can be mounted here (root can)")
    fill(folder)
    yield 5 + fault.for_s
    (folder / FILLER).unlink()


def fill(folder: Path) -> None:
    """Leave no room in a file system."""
    with (folder / FILLER).open("ab", buffering=0) as file:
        for size in (1 << 16, 1 << 12, 1):
            try:
                while True:
                    file.write(bytes(size))
            except OSError:
                continue


def clock_step(arena: Arena, fault: Fault) -> Iterator[float]:
    """The wall clock of one host steps by up to an hour, and back."""
    host = host_of(arena, fault)
    host.step_clock((fault.value - 0.5) * 7200)
    yield fault.for_s
    host.step_clock(0.0)


def attack_replay(arena: Arena, fault: Fault) -> Iterator[float]:
    """Old records are put back for a while; all of them in a quarter of the cases."""
    attacker = arena.attacker
    if fault.value < 0.25:
        attacker.replay_all()
        return
    for _ in range(1 + round(4 * fault.for_s)):
        attacker.replay(round(2 + 40 * fault.value))
        yield 0.25


def attack_swap(arena: Arena, fault: Fault) -> Iterator[float]:
    """Specifications of two runs change places for a while."""
    for _ in range(1 + round(4 * fault.for_s)):
        arena.attacker.swap_specifications()
        yield 0.25


def attack_close_streams(arena: Arena, fault: Fault) -> Iterator[float]:
    """The result streams take no further entry."""
    arena.attacker.close_streams()
    yield 0.0


def attack_types(arena: Arena, fault: Fault) -> Iterator[float]:
    """Keys become such of another type."""
    arena.attacker.change_types(fault.value)
    yield 0.0


def attack_overwrite(arena: Arena, fault: Fault) -> Iterator[float]:
    """Junk stands in keys."""
    arena.attacker.overwrite(fault.value)
    yield 0.0


def attack_junk(arena: Arena, fault: Fault) -> Iterator[float]:
    """Junk stands beside what is there."""
    for _ in range(1 + round(fault.for_s)):
        arena.attacker.add_junk(*(load.run for load in arena.loads))
        yield 1.0


def attack_reorder(arena: Arena, fault: Fault) -> Iterator[float]:
    """The entries of the result streams change their order, again and again."""
    for _ in range(1 + round(10 * fault.for_s)):
        arena.attacker.reorder_results()
        yield 0.1


def attack_delete(arena: Arena, fault: Fault) -> Iterator[float]:
    """Entries of the result streams are deleted, again and again."""
    for _ in range(1 + round(10 * fault.for_s)):
        arena.attacker.delete_results()
        yield 0.1


def broker_memory(arena: Arena, fault: Fault) -> Iterator[float]:
    """RabbitMQ is short of memory: it reads nothing from those who publish."""
    return _alarm(arena, fault, "memory")


def broker_disk(arena: Arena, fault: Fault) -> Iterator[float]:
    """RabbitMQ is short of disk space."""
    return _alarm(arena, fault, "disk")


def _alarm(arena: Arena, fault: Fault, resource: str) -> Iterator[float]:
    broker = _broker(arena)
    broker.begin_alarm(resource)
    yield fault.for_s
    broker.end_alarm(resource)


def broker_hang(arena: Arena, fault: Fault) -> Iterator[float]:
    """RabbitMQ stands still; connections stay."""
    with _broker(arena).paused():
        yield fault.for_s


def broker_restart(arena: Arena, fault: Fault) -> Iterator[float]:
    """RabbitMQ is killed, and comes back without its queues."""
    broker = _broker(arena)
    broker.kill()
    yield fault.for_s / 4
    broker.start_broker()


def _broker(arena: Arena) -> RabbitmqServer:
    """RabbitMQ. Raises Skipped where it is not installed."""
    if arena.rabbitmq is None:
        raise Skipped("RabbitMQ is not installed (Debian package rabbitmq-server)")
    return arena.rabbitmq


_MEDDLES: dict[str, Callable[[Arena, Fault], Iterator[float]]] = {
    kind.replace("_", "-"): partial(meddle, kind)
    for kind in ("lose_replies", "swallow", "reorder", "repeat")
}

FAULTS: dict[str, Callable[[Arena, Fault], Iterator[float]]] = {
    one.__name__.replace("_", "-"): one
    for one in (
        *(kill_process, kill_host, start_host, stop_process, stop_host, stop_supervisor),
        drain_host,
        *(kill_coordinator, stop_coordinator, interrupt),
        *(redis_restart, redis_cut_off, redis_rollback, redis_empty, redis_flush, redis_forget),
        *(redis_hang, redis_full, failover),
        *(cut_host, hang_host, cut_coordinator, delay, throttle, disk_full, clock_step),
        *(attack_replay, attack_swap, attack_close_streams, attack_types, attack_overwrite),
        *(attack_junk, attack_reorder, attack_delete),
        *(broker_memory, broker_disk, broker_hang, broker_restart),
    )
} | _MEDDLES
