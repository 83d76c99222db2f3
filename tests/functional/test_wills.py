"""A supervisor tells the run what its dead worker process cannot have started.

What becomes of a will afterwards is in `tests/world/test_scenes_wills.py`.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from helpers.engines import until
from helpers.import_path import TESTS, import_path
from osbench.common.config.config import load
from osbench.common.protocol.envelope import Signer
from osbench.common.protocol.keyring import Keyring
from osbench.common.protocol.messages import Will
from osbench.common.protocol.redis_client import connect
from osbench.common.protocol.store import Store
from servers.child import PATIENCE_S

pytestmark = pytest.mark.functional


class Site:
    """A configuration with keys, and the results of one run in Redis."""

    def __init__(self, folder: Path, redis) -> None:
        self.file = folder / "osbench.conf"
        self.file.write_text(
            f"[DEFAULT]\ndata_dir = {folder}\n"
            f"[messaging]\nredis_url = {redis.url}\nredis_timeout_s = 1\n",
            encoding="utf-8",
        )
        Keyring.generate().save(folder / "keys")
        self._conf = load([str(self.file)])
        self._client = connect(redis.url, 30.0)
        self._store = Store(self._client, "run-1")
        self._store.tend()

    def close(self) -> None:
        self._client.close()

    def wills(self) -> list[Will]:
        """Those that stand in Redis now."""
        signer = Signer(Keyring.load(self._conf.security.key_file))
        found = self._store.read(0, 1000)
        return [Will.parse(signer.verify(Will.KIND, data)) for _, data in found]


@pytest.fixture
def here(tmp_path, redis) -> Iterator[Site]:
    found = Site(tmp_path, redis)
    yield found
    found.close()


@pytest.fixture
def supervisor(here, tmp_path) -> Iterator[subprocess.Popen]:
    process = subprocess.Popen(
        [sys.executable, "-m", "helpers.supervised", str(here.file)],
        env=os.environ | import_path(TESTS),
        cwd=tmp_path,
    )
    yield process
    process.terminate()
    assert process.wait(PATIENCE_S) == 0


def pids(here: Site) -> list[int]:
    """The worker processes that were started so far."""
    file = here.file.with_name("pids")
    return [int(line) for line in file.read_text("utf-8").split()] if file.exists() else []


def of(pid: int) -> Will:
    """The will of a worker process."""
    return Will(
        run="run-1",
        incarnation=f"host.{pid}.aa",
        membership=f"{pid:032x}",
        workload=0,
        seq=3,
        number=7,
    )


def test_a_killed_process_leaves_a_will_and_one_that_has_left_its_run_does_not(here, supervisor):
    until(lambda: pids(here))
    (first,) = pids(here)
    os.kill(first, signal.SIGKILL)
    until(here.wills)
    until(lambda: len(pids(here)) == 2)
    supervisor.terminate()
    supervisor.wait(PATIENCE_S)

    assert {will.incarnation for will in here.wills()} == {f"host.{first}.aa"}
    assert here.wills()[0] == of(first)


def test_the_supervisor_sends_a_will_before_it_ends(here, supervisor):
    until(lambda: pids(here))
    (first,) = pids(here)
    # it cannot leave its run, and is killed at the end
    os.kill(first, signal.SIGSTOP)
    os.kill(supervisor.pid, signal.SIGTERM)
    os.kill(first, signal.SIGKILL)
    supervisor.wait(PATIENCE_S)

    assert of(first) in here.wills()
