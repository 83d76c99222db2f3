"""Redis, workers and coordinators start in any order."""

from __future__ import annotations

import signal
from collections.abc import Iterator

import pytest

from helpers.runs import Site, site
from servers import free_port, redis_server

pytestmark = pytest.mark.functional

GOOD = {"scenario": {"Dummy.dummy": {}}, "runner": {"constant": {"times": 20, "concurrency": 2}}}


@pytest.fixture
def here() -> Iterator[Site]:
    with site() as found:
        yield found


def test_a_worker_and_a_run_that_come_before_redis_wait_for_it(here: Site) -> None:
    port = free_port()
    here.configure({"messaging": {"redis_url": f"redis://:secret-word@127.0.0.1:{port}/0"}})
    here.coord("keys", "new")
    worker = here.start("osbench-worker", "--processes", "1")
    run = here.start("osbench-coord", "run", "--json", "--wait-for-workers", "120", here.task(GOOD))
    worker.await_said("Waiting for it; Ctrl-C ends this")
    run.await_said("Waiting for it, for 120 s at most; Ctrl-C ends this")

    with redis_server(port=port, password="secret-word"):
        done = run.finish()
        worker.process.send_signal(signal.SIGTERM)
        assert worker.finish().code == 0

    assert done.code == 0, done.err
    assert done.sums["ok"] == 20
    assert "secret-word" not in worker.said() + done.err


def test_a_wait_ends_with_an_interrupt(here: Site) -> None:
    here.configure({"messaging": {"redis_url": f"redis://127.0.0.1:{free_port()}/0"}})
    here.coord("keys", "new")
    worker = here.begin("osbench-worker", "--processes", "1")
    run = here.begin("osbench-coord", "run", "--wait-for-workers", "120", here.task(GOOD))
    worker.await_said("Waiting for it")
    run.await_said("Waiting for it")

    worker.process.send_signal(signal.SIGTERM)
    run.interrupt()

    assert worker.finish().code == 0
    done = run.finish()
    assert done.code == 130
    assert "Traceback" not in done.err + worker.said()


def test_what_waiting_would_not_mend_is_an_error_at_once(here: Site) -> None:
    with redis_server(password="right-word") as redis:
        wrong = redis.url.replace("right-word", "wrong-word")
        here.configure({"messaging": {"redis_url": wrong}})
        here.coord("keys", "new")

        refused = here.begin("osbench-worker", "--processes", "1").finish()

    assert refused.code == 2
    assert "refuses access" in refused.err
    assert "wrong-word" not in refused.err


def test_redis_at_a_unix_socket_serves_as_broker_too(here: Site) -> None:
    with redis_server(password="of-socket", unixsocket=True) as redis:
        here.configure({"messaging": {"redis_url": redis.url}})
        here.coord("keys", "new")
        worker = here.begin("osbench-worker", "--processes", "1")
        done = here.coord("run", "--json", "--wait-for-workers", "120", here.task(GOOD))
        worker.process.send_signal(signal.SIGTERM)
        worker.finish()

    assert redis.url.startswith("unix://")
    assert done.code == 0, done.err
    assert done.sums["ok"] == 20
