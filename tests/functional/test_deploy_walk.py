"""The deployment commands of docs/operations.md, with processes in place of containers."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from helpers.arena import wait_until
from helpers.commands import environment
from helpers.compose_stand_in import Compose
from helpers.kubectl_command import KubectlCommand
from helpers.kubernetes_stand_in import Cluster
from helpers.readme import REPOSITORY, blocks
from osbench.coordinator.results.accounting.block_contents import counted_rows
from osbench.coordinator.results.storage.run_directory import RunDirectory
from servers import folder
from servers.child import PATIENCE_S

pytestmark = pytest.mark.functional

DOCUMENT = "docs/operations.md"


class Terminal:
    """A copy of what an operator has checked out; types lines there, keeps what they print."""

    def __init__(self, home: Path) -> None:
        self.folder = home / "checkout"
        self._home = home
        self.variables: dict[str, str] = {}
        self.printed: list[str] = []
        self.compose: Compose | None = None
        self.cluster = Cluster(home)
        self.kubectl = KubectlCommand(self.cluster)
        for name in ("deploy", "samples"):
            shutil.copytree(
                REPOSITORY / name,
                self.folder / name,
                ignore=shutil.ignore_patterns("secrets", "data", "__pycache__"),
            )

    def type(self, line: str) -> None:
        """A line of the document."""
        words = shlex.split(line)
        match words:
            case ["docker", "build", *rest]:
                self._build(rest)
            case ["docker", "compose", *rest]:
                self._docker_compose(rest)
            case ["kubectl", *rest]:
                self._kubectl(rest)
            case _:
                self._shell(line)

    def close(self) -> None:
        """End all that is left."""
        self.kubectl.close()
        if self.compose:
            self.compose.remove()
        self.cluster.remove()

    def variables_of_commands(self) -> dict[str, str]:
        """An environment with kubectl, osbench and what was exported."""
        found = environment(self._home)
        path = f"{self.kubectl.folder}{os.pathsep}{found['PATH']}"
        return {**found, "PATH": path, **self.variables}

    def _shell(self, line: str) -> None:
        script = f"{line}\nenv -0" if line.startswith("export ") else line
        done = subprocess.run(
            ["bash", "-ec", script],
            cwd=self.folder,
            env=self.variables_of_commands(),
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, (line, done.stdout, done.stderr)
        if line.startswith("deploy/kubernetes/start-run"):
            self.printed.append(done.stdout)
        if line.startswith("export "):
            after = dict(one.split("=", 1) for one in done.stdout.rstrip("\0").split("\0"))
            name = line.removeprefix("export ").partition("=")[0]
            self.variables[name] = after[name]

    def _build(self, words: list[str]) -> None:
        file = self.folder / words[words.index("-f") + 1]
        assert file.is_file()
        # what the document builds is what compose.yaml runs
        assert words[words.index("-t") + 1] == "osbench"

    def _docker_compose(self, words: list[str]) -> None:
        if self.compose is None:
            file = self.folder / self.variables["COMPOSE_FILE"]
            self.compose = Compose(self._home, file, self.variables)
        match words:
            case ["up", "--detach", "--scale", scale]:
                name, _, count = scale.partition("=")
                self.compose.up({name: int(count)})
            case ["run", "--rm", service, *arguments]:
                done = self.compose.run(service, arguments)
                assert done.returncode == 0, (words, done.stdout, done.stderr)
                self.printed.append(done.stdout)
            case ["down"]:
                self.compose.down()
            case _:
                raise AssertionError(f"nobody has taught this stand-in {words}")

    def _kubectl(self, words: list[str]) -> None:
        if words[0] == "-n":
            namespace = self.cluster.of_kind("Namespace", words[1])
            assert namespace["metadata"]["name"] == words[1]
            words = words[2:]
        match words:
            case ["apply", "-k", path]:
                self.cluster.apply(self.folder / path)
            case ["rollout", "status", name]:
                self.cluster.await_ready(name)
            case ["wait", "--for=condition=complete", timeout, name]:
                (pod,) = self.cluster.pods[name]
                within_s = float(timeout.removeprefix("--timeout=").rstrip("s"))
                assert pod.container.wait(within_s) == 0, pod.container.log()
            case ["logs", name]:
                (pod,) = self.cluster.pods[name]
                self.printed.append(pod.container.log())
            case ["scale", name, replicas]:
                count = int(replicas.removeprefix("--replicas="))
                self.cluster.scale(*name.split("/"), count)
            case ["delete", name]:
                self.cluster.delete(name)
            case _:
                raise AssertionError(f"nobody has taught this stand-in {words}")


@pytest.fixture
def terminal() -> Iterator[Terminal]:
    with folder() as home:
        found = Terminal(home)
        try:
            yield found
        finally:
            found.close()


def lines(story: str) -> list[list[str]]:
    """The lines of a story's blocks."""
    found = [block.text.strip().splitlines() for block in blocks(story, DOCUMENT)]
    assert found, story
    return found


def workers_of(data_dir: Path) -> list[int]:
    """For each run that a data directory has, how many workers ran iterations of it."""
    return [
        len({worker for _, worker, _ in counted_rows(run)})
        for run in RunDirectory.all(str(data_dir))
    ]


def test_one_host_with_containers_scales_as_the_document_tells(terminal: Terminal) -> None:
    first, more = lines("compose")

    for line in first:
        terminal.type(line)
    for line in more:
        terminal.type(line)

    assert terminal.compose is not None
    one, table, two, printed = terminal.printed
    assert table.count("idle") == 2
    assert "Exit code 0" in one
    assert "Exit code 0" in two
    assert json.loads(printed)["exit_code"] == 0
    assert workers_of(terminal.folder / "deploy" / "data") == [2, 4]
    assert not terminal.compose.running
    assert set(terminal.compose.stopped) == {0}


def test_kubernetes_scales_as_the_document_tells(terminal: Terminal) -> None:
    for block in lines("kubernetes"):
        for line in block:
            terminal.type(line)

    assert ["Exit code 0" in printed for printed in terminal.printed] == [True] * 3
    runs = RunDirectory.all(str(terminal.cluster.claims["osbench-runs"]))
    # the second by plan.json
    assert workers_of(terminal.cluster.claims["osbench-runs"]) == [2, 3, 4]
    assert runs[0].read("run.json")["tags"] == ["first"]
    # with the Job goes its task
    jobs = [name for name in terminal.cluster.pods if name.startswith("job/")]
    assert sorted(terminal.kubectl.owners.values()) == jobs
    assert all(name.startswith("configmap/osbench-task-") for name in terminal.kubectl.owners)


def test_ctrl_c_ends_a_run_in_a_cluster_with_its_report(terminal: Terminal) -> None:
    install, *_ = lines("kubernetes")
    for line in install:
        terminal.type(line)
    command = terminal.folder / "deploy" / "kubernetes" / "start-run"
    record = terminal.folder / "samples" / "deployments" / "webservice.json"
    task = terminal.folder / "deploy" / "kubernetes" / "run" / "task.yaml"
    options = ["--set", "0.0.runner.times=1000000", "--quiet"]

    run = subprocess.Popen(
        [command, "--deployment-file", record, task, *options],
        env=terminal.variables_of_commands(),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    claim = terminal.cluster.claims["osbench-runs"]
    assert wait_until(lambda: run.poll() is not None or any(workers_of(claim)))
    run.send_signal(signal.SIGINT)
    printed, _ = run.communicate(timeout=PATIENCE_S)

    assert run.returncode == 130, printed
    assert "Exit code 130" in printed
    (stored,) = RunDirectory.all(str(claim))
    summary = stored.read("summary.json")
    assert summary is not None
    assert summary["workloads"][0]["accounting"]["ok"] > 0
    assert "secret/osbench-deployment-" in "".join(sorted(terminal.kubectl.owners))


def test_scaling_down_in_a_run_loses_nothing_and_workers_outlive_their_redis(
    terminal: Terminal,
) -> None:
    install, _, _, run = lines("kubernetes")
    task = terminal.folder / "deploy" / "kubernetes" / "run" / "task.yaml"
    task.write_text(task.read_text("utf-8").replace("times: 2000", "times: 5000"), "utf-8")
    for line in [*install, *(one for one in run[:5] if "kubectl -n" not in one)]:
        terminal.type(line)
    (job,) = terminal.cluster.pods["job/osbench-run"]
    claim = terminal.cluster.claims["osbench-runs"]
    while workers_of(claim) != [2]:
        assert "Exit code" not in job.container.log(), job.container.log()
        time.sleep(0.1)

    terminal.type("kubectl -n osbench scale deployment/osbench-worker --replicas=1")

    # 4 where the machine was too slow to hold the concurrency while users moved
    assert job.container.wait(PATIENCE_S) in (0, 4), job.container.log()
    (left,) = terminal.cluster.pods["deployment/osbench-worker"]
    (summary,) = [found.read("summary.json") for found in RunDirectory.all(str(claim))]
    assert summary is not None
    assert summary["workloads"][0]["accounting"]["ok"] == 5000
    assert terminal.cluster.stopped == [0]
    assert left.probe("readinessProbe") == 0

    terminal.type("kubectl -n osbench scale deployment/osbench-worker --replicas=2")
    terminal.type("kubectl -n osbench rollout status deployment/osbench-worker")
    one, two = terminal.cluster.pods["deployment/osbench-worker"]
    (redis,) = terminal.cluster.pods["statefulset/osbench-redis"]
    two.container.remove()
    while two.probe("readinessProbe") == 0:
        time.sleep(0.5)  # a heartbeat outlives its worker for seconds
    with_redis = [(pod.probe("readinessProbe"), pod.probe("livenessProbe")) for pod in (one, two)]
    redis.container.remove()
    without = [(pod.probe("readinessProbe"), pod.probe("livenessProbe")) for pod in (one, two)]

    assert with_redis == [(0, 0), (1, 1)]
    # the one whose worker is gone is dead, whatever Redis does
    assert without == [(3, 0), (3, 1)]
