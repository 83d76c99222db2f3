"""`osbench-worker --check`: what it answers to a probe."""

from __future__ import annotations

import itertools
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner

from helpers.heartbeats import heartbeat
from osbench.common.config.config import load
from osbench.common.errors import ConfigError
from osbench.common.protocol import redis_keys
from osbench.common.protocol.envelope import Sealer
from osbench.common.protocol.keyring import Keyring
from osbench.common.protocol.messages import Heartbeat
from osbench.worker.main import main
from osbench.worker.process import health_check
from osbench.worker.process.supervisor_records import supervisor_recorded
from servers import RedisServer, redis_server

NUMBER = itertools.count()


@pytest.fixture(scope="module")
def shared() -> Iterator[RedisServer]:
    with redis_server(password="probe") as server:
        yield server


class Host:
    """A worker's host: its configuration, and worker processes that are heard as a test says."""

    def __init__(self, folder: Path, redis: RedisServer) -> None:
        self.file = folder / "osbench.conf"
        self.file.write_text(
            f"[DEFAULT]\ndata_dir = {folder}\n[messaging]\nredis_url = {redis.url}\n", "utf-8"
        )
        self.conf = load([str(self.file)])
        self.redis = redis
        self.ring = Keyring.generate()
        self.ring.save(folder / "keys")

    def start(self, *, state: str = "idle", label: str = "") -> str:
        """A worker process, by the pid of one that is always there, with its first beat."""
        name = f"host.1.{next(NUMBER):016x}"
        health_check.register(self.conf, name)
        self.beat(name, self.ring, state=state, label=label)
        return name

    def beat(self, name: str, ring: Keyring, *, state: str = "idle", label: str = "") -> None:
        beat = heartbeat(name, host="host", label=label, state=state)
        with self.redis.client() as client:
            client.set(redis_keys.worker(name), Sealer(ring).seal(Heartbeat.KIND, beat.body()))

    def silence(self, name: str) -> None:
        with self.redis.client() as client:
            client.delete(redis_keys.worker(name))

    def check(self, *arguments: str) -> int:
        done = CliRunner().invoke(main, ["--config-file", str(self.file), "--check", *arguments])
        return done.exit_code


@pytest.fixture
def host(tmp_path: Path, shared: RedisServer) -> Host:
    return Host(tmp_path, shared)


def test_a_host_is_well_when_all_its_processes_are_heard(host: Host) -> None:
    before = host.check("--processes", "2")
    host.start()
    half = host.check("--processes", "2")
    host.start()

    assert (before, half, host.check("--processes", "2")) == (1, 1, 0)


def test_a_process_that_fell_silent_is_missed(host: Host) -> None:
    name = host.start()

    host.silence(name)

    assert host.check("--processes", "1") == 1


def test_workers_of_other_hosts_do_not_count(host: Host, tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.mkdir()
    Host(other, host.redis).start()

    assert host.check("--processes", "1") == 1


def test_a_process_that_takes_no_more_work_is_not_well(host: Host) -> None:
    host.start(state="stuck")

    assert host.check("--processes", "1") == 1


def test_a_process_that_drains_is_at_work(host: Host) -> None:
    host.start(state="draining")

    assert host.check("--processes", "1") == 0


def test_a_heartbeat_that_others_wrote_does_not_count(host: Host) -> None:
    name = host.start()

    host.beat(name, Keyring.generate())

    assert host.check("--processes", "1") == 1


def test_a_label_picks_the_processes_of_one_supervisor(host: Host) -> None:
    host.start(label="one")

    one, two = (host.check("--processes", "1", "--label", name) for name in ("one", "two"))

    assert (one, two) == (0, 1)


def test_without_a_number_those_count_that_supervisors_keep_running(host: Host) -> None:
    with supervisor_recorded(host.conf, 2):
        host.start()
        half = host.check()
        host.start()
        all_of_them = host.check()
        with_other_label = host.check("--label", "rack-7")
        as_asked = host.check("--processes", "3")

    assert (half, all_of_them, with_other_label, as_asked) == (1, 0, 1, 1)


def test_the_record_of_a_supervisor_that_was_killed_does_not_count(host: Host) -> None:
    folder = Path(host.conf.data_dir, "supervisors")
    folder.mkdir()
    (folder / "host.7").write_text('{"label": "", "processes": 5}')
    with supervisor_recorded(host.conf, 1):
        host.start()

        assert host.check() == 0
    assert list(folder.iterdir()) == []


def test_without_redis_the_answer_is_another_than_without_workers(tmp_path: Path) -> None:
    with redis_server() as server:
        host = Host(tmp_path, server)
        host.start()

        server.stop()

        assert host.check("--processes", "1") == 3


def test_names_of_the_dead_are_dropped_and_those_of_other_hosts_kept(host: Host) -> None:
    living, elsewhere = host.start(), "elsewhere.4194305.00"
    health_check.register(host.conf, elsewhere)
    gone = subprocess.Popen([sys.executable, "-S", "-c", ""])
    gone.wait()
    health_check.register(host.conf, f"host.{gone.pid}.00")

    health_check.register(host.conf, "host.1.ff")

    left = {path.name for path in Path(host.conf.data_dir, "workers").iterdir()}
    assert left == {living, elsewhere, "host.1.ff"}


def test_a_name_is_taken_away_at_the_end(host: Host) -> None:
    name = host.start()

    health_check.forget(host.conf, name)
    health_check.forget(host.conf, name)

    assert host.check("--processes", "1") == 1


def test_a_data_directory_that_cannot_be_written_is_reported(host: Host) -> None:
    Path(host.conf.data_dir, "workers").touch()

    with pytest.raises(ConfigError, match=r"\[DEFAULT\] data_dir: .*workers"):
        health_check.register(host.conf, "host.1.00")
