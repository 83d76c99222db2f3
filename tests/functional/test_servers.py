"""The servers that other tests rest on do what those tests take for granted."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import amqp
import psutil
import pytest
import requests

from helpers.engines import until
from helpers.import_path import TESTS, import_path
from servers import CountingServer, RabbitmqServer, RedisServer, redis_server
from servers.child import PATIENCE_S

pytestmark = pytest.mark.functional

ORPHAN = """
import time
from servers import redis_server
with redis_server() as server:
    print(server.pid, server.folder, flush=True)
    time.sleep(60)
"""


def running(pid: int) -> bool:
    """Whether a process is alive; where nothing reaps orphans, a dead one remains as a zombie."""
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def test_redis_forgets_at_a_restart_without_appendonly(redis: RedisServer) -> None:
    redis.client().set("kept", 1)
    before = redis.client().info("server")["run_id"]

    redis.kill()
    redis.restart()

    assert redis.client().get("kept") is None
    assert redis.client().info("server")["run_id"] != before


def test_redis_remembers_over_a_kill_with_appendonly() -> None:
    with redis_server(appendonly=True, unixsocket=True) as server:
        server.client().set("kept", 1)

        server.kill()
        server.restart()

        assert server.client().get("kept") == b"1"


def test_servers_end_with_the_process_that_started_them() -> None:
    parent = subprocess.Popen(
        [sys.executable, "-c", ORPHAN],
        stdout=subprocess.PIPE,
        text=True,
        env=os.environ | import_path(TESTS),
    )
    with parent:
        pid, folder = parent.stdout.readline().split()

        parent.send_signal(signal.SIGKILL)

    while Path(folder).exists() or running(int(pid)):
        time.sleep(0.01)


def test_counting_server_counts_iterations_and_responses(counting: CountingServer) -> None:
    for iteration in (1, 2, 2):
        headers = {"X-Osbench-Run": "r", "X-Osbench-Iteration": str(iteration)}
        answer = requests.post(counting.url, data=b"body", headers=headers, timeout=PATIENCE_S)
        assert answer.text == "ok\n"
    requests.get(counting.url + "/other", timeout=PATIENCE_S)

    assert counting.counts == {1: 1, 2: 2}
    assert counting.by_run == {("r", 1): 1, ("r", 2): 2}
    assert counting.anonymous == 1


def test_counting_server_counts_before_it_responds(counting: CountingServer) -> None:
    counting.stall(PATIENCE_S)

    with ThreadPoolExecutor(1) as asking:
        answer = asking.submit(requests.get, counting.url, headers={"X-Osbench-Iteration": "7"})
        until(lambda: counting.counts)
        is_answered = answer.done()
        counting.stall(0.0)

    assert counting.counts == {7: 1}
    assert not is_answered
    assert answer.result().text == "ok\n"


def test_rabbitmq_takes_and_gives_messages(rabbitmq: RabbitmqServer) -> None:
    with amqp.Connection(f"127.0.0.1:{rabbitmq.port}") as connection:
        channel = connection.channel()
        channel.queue_declare("q")
        channel.basic_publish(amqp.Message("hello"), routing_key="q")

        received = channel.basic_get("q", no_ack=True)

    assert received.body == "hello"
