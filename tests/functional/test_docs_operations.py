"""The commands of the operations page on TLS, users of Redis and upgrades do what it says."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator

import pytest

from helpers.machine import Machine
from helpers.readme import blocks
from osbench import __version__
from servers import child, folder, free_port, redis_executable
from servers.child import PATIENCE_S

pytestmark = pytest.mark.functional

PAGE = "docs/operations.md"


@pytest.fixture
def machine() -> Iterator[Machine]:
    """A machine whose Redis has TLS."""
    tried = subprocess.run(
        [redis_executable(), "--port", "0", "--tls-port", str(free_port())],
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
    )
    said = tried.stdout + tried.stderr
    if "Bad directive" in said or "Failed finding TLS support" in said:
        child.missing("a redis-server with TLS")
    with folder() as home:
        yield Machine(home, forked=True)


def test_tls_and_a_user_for_osbench(machine: Machine) -> None:
    redis, configure, worker, look, doctor, versions, backup = blocks("redis-access", PAGE)

    with machine.running(redis) as server:
        machine.wait_for_port("6379", server)
        machine.run(configure)
        with machine.running(worker) as terminal:
            machine.wait_for_workers(terminal, 1)
            looked = machine.run(look)
            well = machine.run(doctor)
            told = machine.run(versions)
            restored = machine.run(backup)

    assert "1 of 1 worker processes are heard and take work" in looked
    assert "20 planned = 20 ok" in " ".join(looked.split())
    assert "the certificate of Redis is valid for 36" in well
    assert "all that a coordinator does is allowed" in well
    assert "1 process on 1 host" in well
    assert told.count(__version__) >= 3
    assert "finished" in told
    assert "finished" in restored
    assert "20 planned = 20 ok" in " ".join(restored.split())
