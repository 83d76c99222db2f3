"""`osbench-worker --check`: what it answers to a probe."""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest
from click.testing import CliRunner

from helpers.heartbeats import heartbeat
from osbench.common.config.config import load
from osbench.common.errors import ConfigError
from osbench.common.protocol import redis_keys
from osbench.common.protocol.envelope import Signer
from osbench.common.protocol.keyring import Keyring
from osbench.common.protocol.messages import Heartbeat
from osbench.worker.main import main
from osbench.worker.process import health_check
from osbench.worker.process.health_check import (
    host_name,
    process_record,
    states,
    supervisor_record,
)
from osbench.worker.process.life_record import LifeRecord, living
from servers import RedisServer, redis_server

NUMBER = itertools.count()


@pytest.fixture(scope="module")
def shared() -> Iterator[RedisServer]:
    with redis_server(password="probe") as server:
        yield server


def test_a_record_of_any_label_is_read_whole(tmp_path: Path) -> None:
    record = LifeRecord(tmp_path / "host.1", {"label": "ä" * 500})
    record.tell("busy", 1.5)
    record.tell("idle")

    assert living(tmp_path, "host")["host.1"]["state"] == "idle"
    record.close()


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
        self.records: dict[str, LifeRecord] = {}

    def supervise(self, processes: int) -> LifeRecord:
        """A supervisor."""
        return supervisor_record(self.conf, next(NUMBER), processes)

    def start(self, *, state: str = "idle", label: str = "") -> str:
        """A worker process with its first beat."""
        name = f"{host_name()}.1.{next(NUMBER):016x}"
        self.conf.set_override("label", label, group="worker")
        self.records[name] = process_record(self.conf, name)
        self.conf.clear_override("label", group="worker")
        self.records[name].tell(state)
        self.beat(name, self.ring, state=state, label=label)
        return name

    def beat(self, name: str, ring: Keyring, *, state: str = "idle", label: str = "") -> None:
        beat = heartbeat(name, host="host", label=label, state=state)
        with self.redis.client() as client:
            client.set(redis_keys.worker(name), Signer(ring).sign(Heartbeat.KIND, beat.body()))

    def silence(self, name: str) -> None:
        with self.redis.client() as client:
            client.delete(redis_keys.worker(name))

    def check(self, *arguments: str) -> int:
        return self.asked("--check", *arguments)[0]

    def alive(self, *arguments: str) -> tuple[int, str]:
        return self.asked("--check", "alive", *arguments)

    def asked(self, *arguments: str) -> tuple[int, str]:
        """The exit code, and what it says."""
        done = CliRunner().invoke(main, ["--config-file", str(self.file), *arguments])
        return done.exit_code, done.output

    def close(self) -> None:
        """All processes end."""
        for record in self.records.values():
            record.close()


@pytest.fixture
def host(tmp_path: Path, shared: RedisServer) -> Iterator[Host]:
    found = Host(tmp_path, shared)
    yield found
    found.close()


@pytest.fixture
def later(monkeypatch: pytest.MonkeyPatch) -> Callable[[float], None]:
    """Sets the clock that health checks read so many seconds on."""

    def set_on(seconds: float) -> None:
        now = time.monotonic()
        clock = SimpleNamespace(monotonic=lambda: now + seconds)
        monkeypatch.setattr(health_check, "time", clock)

    return set_on


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
    neighbour = Host(other, host.redis)
    neighbour.start()

    assert host.check("--processes", "1") == 1
    neighbour.close()


def test_a_process_that_takes_no_more_work_is_not_well(host: Host) -> None:
    host.start(state="stuck")

    assert host.check("--processes", "1") == 1


def test_a_process_that_drains_is_alive_and_not_ready(host: Host) -> None:
    supervisor = host.supervise(1)
    host.start(state="draining")

    code, told = host.asked("--check", "--processes", "1")

    assert (code, told) == (1, "0 of 1 worker processes are heard and take work, 1 draining\n")
    assert host.alive() == (0, "worker processes: 1 draining\n")
    supervisor.close()


@pytest.mark.parametrize("state", ["starting", "waiting", "idle", "draining"])
def test_a_process_that_goes_on_is_alive(host: Host, state: str) -> None:
    supervisor = host.supervise(2)
    host.start()
    host.start(state=state)

    assert host.alive()[0] == 0
    supervisor.close()


def test_a_host_without_workers_is_not_alive(host: Host) -> None:
    code, told = host.alive()

    assert code == 1
    assert "no osbench-worker runs here" in told
    assert host.conf.data_dir in told


def test_a_process_with_hanging_iterations_is_not_alive(host: Host) -> None:
    supervisor = host.supervise(1)
    host.start(state="stuck")

    code, told = host.alive()

    assert (code, "worker process 1 is stuck" in told) == (1, True)
    supervisor.close()


def test_a_process_that_gives_no_sign_is_not_alive(
    host: Host, later: Callable[[float], None]
) -> None:
    supervisor = host.supervise(1)
    host.start()

    later(50)
    patient = host.alive()[0]
    later(70)
    code, told = host.alive()

    assert (patient, code) == (0, 1)
    assert "worker process 1 gave no sign of life for 7" in told
    supervisor.close()


def test_a_supervisor_that_gives_no_sign_is_not_alive(
    host: Host, later: Callable[[float], None]
) -> None:
    supervisor = host.supervise(1)

    later(70)

    code, told = host.alive()
    assert (code, told.startswith("supervisor ")) == (1, True)
    supervisor.close()


def test_a_process_that_does_not_follow_its_run_is_not_alive(host: Host) -> None:
    supervisor = host.supervise(1)
    name = host.start()

    host.records[name].tell("running", time.monotonic() - 70)

    code, told = host.alive()
    assert code == 1
    assert "worker process 1 does not follow its run for 7" in told
    supervisor.close()


def test_health_is_that_of_a_label(host: Host) -> None:
    supervisor = host.supervise(1)
    host.conf.set_override("label", "rack-7", group="worker")
    other = host.supervise(1)
    host.start(state="stuck", label="rack-7")

    assert [host.alive("--label", name)[0] for name in ("rack-7", "rack-8")] == [1, 1]
    assert "no osbench-worker" in host.alive("--label", "rack-8")[1]
    host.start(label="")
    assert host.alive()[0] == 1
    for record in (supervisor, other):
        record.close()


def test_a_host_is_alive_without_redis(tmp_path: Path) -> None:
    with redis_server() as server:
        host = Host(tmp_path, server)
        supervisor = host.supervise(1)
        host.start()

        server.stop()

        assert host.alive()[0] == 0
        assert host.check("--processes", "1") == 3
    supervisor.close()
    host.close()


def test_a_heartbeat_that_others_wrote_does_not_count(host: Host) -> None:
    name = host.start()

    host.beat(name, Keyring.generate())

    assert host.check("--processes", "1") == 1


def test_a_label_picks_the_processes_of_one_supervisor(host: Host) -> None:
    host.start(label="one")

    one, two = (host.check("--processes", "1", "--label", name) for name in ("one", "two"))

    assert (one, two) == (0, 1)


def test_without_a_number_those_count_that_supervisors_keep_running(host: Host) -> None:
    supervisor = host.supervise(2)
    host.start()
    half = host.check()
    host.start()
    all_of_them = host.check()
    with_other_label = host.check("--label", "rack-7")
    as_asked = host.check("--processes", "3")
    supervisor.close()

    assert (half, all_of_them, with_other_label, as_asked) == (1, 0, 1, 1)


def test_the_record_of_a_supervisor_that_was_killed_does_not_count(host: Host) -> None:
    folder = Path(host.conf.data_dir, "supervisors")
    folder.mkdir()
    (folder / f"{host_name()}.7").write_text('{"label": "", "processes": 5}')
    supervisor = host.supervise(1)
    host.start()

    assert host.check() == 0
    supervisor.close()
    assert list(folder.iterdir()) == []


def test_records_of_the_dead_are_dropped_and_those_of_other_hosts_kept(host: Host) -> None:
    folder = Path(host.conf.data_dir, "workers")
    living = host.start()
    for name in ("elsewhere.4194305.00", f"{host_name()}.1.aa"):
        # nobody locks it: its process has ended
        (folder / name).write_text("{}")

    started = host.start()

    assert {path.name for path in folder.iterdir()} == {living, started, "elsewhere.4194305.00"}


def test_a_record_is_taken_away_at_the_end(host: Host) -> None:
    name = host.start()

    host.records[name].close()

    assert host.check("--processes", "1") == 1
    assert list(Path(host.conf.data_dir, "workers").iterdir()) == []


def test_a_longer_record_is_followed_by_a_shorter_one(host: Host) -> None:
    name = host.start(state="a" * 100)

    host.records[name].tell("b")

    assert states(host.conf) == ["b"]


def test_a_data_directory_that_cannot_be_written_is_reported(host: Host) -> None:
    Path(host.conf.data_dir, "workers").touch()

    with pytest.raises(ConfigError, match=r"\[DEFAULT\] data_dir: .*workers"):
        process_record(host.conf, "host.1.00")
