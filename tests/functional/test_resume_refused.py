"""Runs that cannot be resumed as they are: each is refused in one line, and nothing is lost.

What was wrong is put right afterwards, and the run goes on to its end.
"""

from __future__ import annotations

import contextlib
import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from helpers.runs import Cluster, site
from osbench.coordinator.results.storage.run_directory import RunDirectory
from servers import redis_server

pytestmark = [pytest.mark.functional, pytest.mark.timeout(600)]


#: Iterations end at once, but the last ones wait until the test has killed the coordinator.
HELD = """
import pathlib
import time

from osbench.plugin import scenario

GO = pathlib.Path(__file__).parent / "go"


@scenario.configure(name="Held.act")
class Act(scenario.Scenario):
    def run(self):
        while self.context["iteration"] > 300 and not GO.exists():
            time.sleep(0.01)
"""


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    with redis_server(password="functional") as redis, site() as here:
        found = Cluster(here, redis)
        folder = here.write("plugins/held.py", HELD).parent
        paths = {"plugin_path": folder}
        # as long as the tests may take
        patient = {"worker": {**paths, "coordinator_lost_s": 600}, "coordinator": paths}
        here.configure(found.messaging, patient)
        found.start_worker()
        found.await_idle(1)
        yield found


@pytest.fixture(scope="module")
def killed(cluster: Cluster) -> RunDirectory:
    """A run whose coordinator was killed under load: all tests try to resume it."""
    here = cluster.site
    task = here.task(
        {
            "scenario": {"Held.act": {}},
            "runner": {"constant": {"times": 400, "concurrency": 4}},
        }
    )
    run = here.begin("osbench-coord", "run", "--json", task)
    run.await_said(" running: ")
    directory = RunDirectory.find(str(here.data), "last")

    def noted() -> bool:
        sizes = (directory.read("status.json") or {}).get("on_disk", {})
        return bool(sizes.get("blocks"))

    run.wait_for(noted)
    os.kill(run.process.pid, signal.SIGKILL)
    run.process.wait()
    (here.home / "plugins" / "go").touch()
    return directory


def refused(cluster: Cluster, directory: RunDirectory, code: int) -> str:
    """The one line that says why a run is not resumed; it stays resumable."""
    done = cluster.site.coord("resume", directory.path.name)
    (line,) = [line for line in done.err.splitlines() if line.strip()]
    assert done.code == code, done.err
    assert f"run {directory.path.name} cannot be resumed: " in line
    return line


@contextlib.contextmanager
def replaced(path: Path, content: bytes | None) -> Iterator[None]:
    """Have another content in a file, or no file, and what was in it afterwards."""
    whole = path.read_bytes()
    path.unlink()
    if content is not None:
        path.write_bytes(content)
        path.chmod(0o600)
    try:
        yield
    finally:
        path.write_bytes(whole)
        path.chmod(0o600)


@pytest.mark.parametrize("name", ["journal", "blocks"])
def test_a_cut_file(cluster: Cluster, killed: RunDirectory, name: str) -> None:
    path = killed.path / name
    cut = path.read_bytes()[: path.stat().st_size // 3]

    with replaced(path, cut):
        line = refused(cluster, killed, 3)
        left = cluster.site.coord("results", killed.path.name, "--csv", "--damaged")
        unasked = cluster.site.coord("results", killed.path.name, "--csv")

    assert f"{name} is damaged: it has {len(cut):,} of at least" in line
    assert "--csv --damaged` prints the rest" in line
    assert left.code == 0, left.err
    assert left.out.startswith("# PARTIAL: ")
    assert unasked.code == 3


def test_keys_that_were_replaced(cluster: Cluster, killed: RunDirectory) -> None:
    keys = cluster.site.data / "keys"
    # workers read the file, too: as on other hosts, they keep the keys that they have
    own = keys.read_bytes()
    other = cluster.site.home / "other-keys"
    made = cluster.site.coord("keys", "new", "--file", str(other))
    conf = _with_keys(cluster, other)

    done = cluster.site.coord("resume", killed.path.name, "--config-file", str(conf))

    assert made.code == 0, made.err
    assert done.code == 2, done.err
    assert f"run {killed.path.name} cannot be resumed: its messages are signed with key" in done.err
    assert f"key file {other} has" in done.err
    assert keys.read_bytes() == own


def _with_keys(cluster: Cluster, keys: Path) -> Path:
    conf = cluster.site.home / "other.conf"
    text = (cluster.site.data / "osbench.conf").read_text()
    conf.write_text(f"{text}\n[security]\nkey_file = {keys}\n")
    return conf


@pytest.mark.parametrize("name", ["plan", "prepared"])
def test_a_file_that_cannot_be_decrypted(cluster: Cluster, killed: RunDirectory, name: str) -> None:
    path = killed.path / name

    with replaced(path, b"?" + path.read_bytes()[1:]):
        line = refused(cluster, killed, 2)

    assert f"{path} cannot be decrypted with" in line


def test_a_plan_that_is_gone(cluster: Cluster, killed: RunDirectory) -> None:
    with replaced(killed.path / "plan", None):
        line = refused(cluster, killed, 2)

    assert "its file plan is missing; put it back from a copy" in line


def test_blocks_of_another_run(cluster: Cluster, killed: RunDirectory) -> None:
    path, other = killed.path / "blocks", "20200101-000000-0000"
    stranger = RunDirectory.create(str(cluster.site.home / "elsewhere"), other)
    body = {"run": other, "workload": 0, "incarnation": "w", "columns": b"", "failures": []}
    stranger.keep([body])
    stranger.close()

    with replaced(path, (stranger.path / "blocks").read_bytes() + path.read_bytes()):
        line = refused(cluster, killed, 3)

    assert f"blocks at byte 0 belongs to run {other}, not to run {killed.path.name}" in line


def test_a_run_that_was_put_right_goes_on(cluster: Cluster, killed: RunDirectory) -> None:
    done = cluster.site.coord("resume", killed.path.name, "--json")

    assert done.code == 0, done.err
    assert done.sums["ok"] == 400
    cluster.await_idle(1)
