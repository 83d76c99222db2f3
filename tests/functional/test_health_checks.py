"""What health checks say of real workers that wait, work, drain, hang and lose Redis."""

from __future__ import annotations

import os
import signal
import socket
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest
from click.testing import CliRunner

from helpers.runs import Site, Started, site
from osbench.common.config.config import load
from osbench.worker.main import main
from osbench.worker.process.health_check import complaints, states
from servers import CountingServer, free_port, redis_server
from servers.child import PATIENCE_S

pytestmark = pytest.mark.functional


@pytest.fixture
def here() -> Iterator[Site]:
    with site() as found:
        yield found


def at(here: Site, port: int) -> None:
    # also for what this process reads
    data = {"DEFAULT": {"data_dir": here.data}}
    here.configure(data, {"messaging": {"redis_url": f"redis://127.0.0.1:{port}/0"}})
    here.coord("keys", "new")


def asked(here: Site, *what: str) -> tuple[int, str]:
    """Exit code and output of `osbench-worker --check`, called in this process."""
    conf = str(here.data / "osbench.conf")
    done = CliRunner().invoke(main, ["--check", *(what or ["ready"]), "--config-file", conf])
    return done.exit_code, done.stdout.strip()


def await_true(condition: Callable[[], object], within_s: float = PATIENCE_S) -> None:
    deadline = time.monotonic() + within_s
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.1)


def await_state(here: Site, worker: Started, *wanted: str) -> None:
    conf = load([str(here.data / "osbench.conf")])
    worker.wait_for(lambda: states(conf) == list(wanted))


def test_a_worker_that_waits_for_redis_or_has_lost_it_is_alive_and_not_ready(here: Site) -> None:
    port = free_port()
    at(here, port)
    worker = here.start("osbench-worker", "--processes", "1")
    worker.await_said("Waiting for it")
    waiting = asked(here, "alive"), asked(here, "ready")[0]

    with redis_server(port=port):
        await_state(here, worker, "idle")
        there = asked(here, "alive"), asked(here)
    lost = asked(here, "alive"), asked(here)[0]
    probe = here.start("osbench-worker", "--check").finish()

    assert waiting == ((0, "worker processes: none has started"), 3)
    idle = (0, "worker processes: 1 idle")
    assert there == (idle, (0, "1 of 1 worker processes are heard and take work"))
    assert lost == (idle, 3)
    assert probe.code == 3


def test_a_worker_that_drains_is_alive_and_not_ready(here: Site, counting: CountingServer) -> None:
    request = {"url": counting.url, "method": "GET", "status_code": 200}
    two = {
        "scenario": {"HttpRequests.check_request": request},
        "runner": {"constant": {"times": 2, "concurrency": 2}},
    }
    # its iterations last until it was asked while it drains
    counting.stall(PATIENCE_S)
    with redis_server() as redis:
        at(here, redis.port)
        worker = here.begin("osbench-worker", "--processes", "1")
        run = here.begin("osbench-coord", "run", "--json", "--wait-for-workers", "60",
                         here.task(two))  # fmt: skip
        await_state(here, worker, "running")
        run.wait_for(lambda: counting.counts.total() == 2)
        at_work = asked(here, "alive")[0], asked(here)[0]

        worker.process.send_signal(signal.SIGTERM)
        await_state(here, worker, "draining")
        draining = asked(here, "alive"), asked(here)
        counting.stall(0.0)
        done = run.finish()
        ended = worker.finish().code

    assert at_work == (0, 0)
    assert draining == (
        (0, "worker processes: 1 draining"),
        (1, "0 of 1 worker processes are heard and take work, 1 draining"),
    )
    assert (ended, done.sums["ok"]) == (0, 2)
    assert list((here.data / "workers").iterdir()) == []
    assert list((here.data / "supervisors").iterdir()) == []


def test_a_stopped_worker_process_is_not_alive_until_it_goes_on(here: Site) -> None:
    with redis_server() as redis:
        at(here, redis.port)
        worker = here.begin("osbench-worker", "--processes", "2")
        await_state(here, worker, "idle", "idle")
        conf = load([str(here.data / "osbench.conf")])
        stopped = psutil.Process(worker.process.pid).children()[0]

        # others may get no core for as long
        told = f"worker process {stopped.pid} gave no sign of life for "

        def is_told() -> bool:
            return any(one.startswith(told) for one in complaints(conf, hang_s=5))

        stopped.suspend()
        await_true(is_told)
        stopped.resume()
        await_true(lambda: not is_told())


def test_the_watchdog_of_a_service_is_fed_while_it_waits_works_and_drains(
    here: Site, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    port = free_port()
    at(here, port)
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
        manager.bind(str(tmp_path / "notify"))
        monkeypatch.setenv("NOTIFY_SOCKET", str(tmp_path / "notify"))
        worker = here.begin("osbench-worker", "--processes", "1")
        monkeypatch.delenv("NOTIFY_SOCKET")
        worker.await_said("Waiting for it")
        waiting = fed(manager)
        with redis_server(port=port):
            await_state(here, worker, "idle")
            working = fed(manager)
            supervisor = psutil.Process(worker.process.pid)
            child = supervisor.children()[0]
            child.suspend()
            os.kill(supervisor.pid, signal.SIGTERM)
            draining = [fed(manager) for _ in range(3)][-1]
            child.resume()
            ended = worker.finish().code

    assert (waiting, working, draining, ended) == (b"WATCHDOG=1", b"WATCHDOG=1", b"WATCHDOG=1", 0)


def fed(manager: socket.socket) -> bytes:
    """The next message, those that came before left aside."""
    manager.setblocking(False)
    while True:
        try:
            manager.recv(100)
        except BlockingIOError:
            break
    manager.settimeout(PATIENCE_S)
    return manager.recv(100)
