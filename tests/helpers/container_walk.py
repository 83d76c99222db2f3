"""`make containers`: deploy/compose.yaml in the container engine of this machine, step by step.

python -m helpers.container_walk [--build ARGUMENT ...]

Needs docker with its compose plug-in, or podman with podman-compose. Ends with 1 at the first step
that differs from what is expected.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from helpers.readme import REPOSITORY
from servers import folder

IMAGE = "localhost/osbench-walk:latest"
#: Iterations of 50 ms: 20 s and more, for faults in the middle.
TASK = """
version: 2
title: containers
subtasks:
  - title: Dummy
    scenario: {Dummy.dummy: {sleep: 0.05}}
    runner: {constant: {times: 3200, concurrency: 8, timeout: 20}}
"""
#: All processes but init and the shell that stops them.
STOP_ALL = (
    "for p in /proc/[0-9]*; do n=${p#/proc/};"
    ' [ "$n" -gt 1 ] && [ "$n" != $$ ] && kill -STOP "$n"; done; true'
)
#: Longer than a worker process may give no sign of life.
PATIENCE_S = 180.0


class Differs(Exception):
    """A step did not do what it is to do."""


class Project:
    """A compose project of its own: nothing else on this machine has its name."""

    def __init__(self, home: Path) -> None:
        self.engine, self.compose = _engine()
        self.name = f"osbench-walk-{os.getpid()}"
        self.runs = home / "data" / "runs"
        self._home = home
        for name in ("data", "tasks"):
            (home / name).mkdir()
        (home / "tasks" / "load.yaml").write_text(TASK, "utf-8")
        shutil.copy(REPOSITORY / "samples/tasks/dummy.yaml", home / "tasks")
        # an engine without CAP_SYS_RESOURCE cannot raise limits
        limits = {
            "nofile": min(65536, resource.getrlimit(resource.RLIMIT_NOFILE)[1]),
            "nproc": 10_000,
        }
        services = {name: {"ulimits": limits} for name in ("worker", "coordinator")}
        (home / "limits.yaml").write_text(json.dumps({"services": services}), "utf-8")
        self._environment = {
            **os.environ,
            "COMPOSE_PROJECT_NAME": self.name,
            "COMPOSE_PATH_SEPARATOR": ":",
            "COMPOSE_FILE": f"{REPOSITORY / 'deploy/compose.yaml'}:{home / 'limits.yaml'}",
            "OSBENCH_USER": f"{os.getuid()}:{os.getgid()}",
            "OSBENCH_IMAGE": IMAGE,
            "OSBENCH_SECRETS": str(home / "secrets"),
            "OSBENCH_DATA": str(home / "data"),
            "OSBENCH_TASKS": str(home / "tasks"),
        }

    def build(self, arguments: list[str]) -> None:
        """Build the image, and make the secrets."""
        file = REPOSITORY / "deploy/Dockerfile"
        self._checked([self.engine, "build", *arguments, "-f", file, "-t", IMAGE, REPOSITORY])
        self._checked([REPOSITORY / "deploy/new-secrets", self._home / "secrets"])

    def up(self, workers: int) -> None:
        """Have so many workers."""
        self._checked([*self.compose, "up", "--detach", "--scale", f"worker={workers}"])

    def down(self) -> None:
        """Remove containers, network and volumes."""
        # podman-compose takes all but the first container of a service for orphans
        options = ["--volumes", "--remove-orphans"]
        down = [*self.compose, "--profile", "run", "down", *options]
        # podman keeps a Redis that the orphans depend on until these are gone
        for _ in range(2 if self.engine == "podman" else 1):
            self._checked(down)

    def containers(self, service: str = "", *, ended: bool = False) -> list[str]:
        """Names of the running containers of a service, or of all; with those that have ended."""
        labels = [f"label=com.docker.compose.project={self.name}"]
        if service:
            labels.append(f"label=com.docker.compose.service={service}")
        filters = [part for label in labels for part in ("--filter", label)]
        options = [*filters, *(["--all"] if ended else [])]
        listed = self._checked([self.engine, "ps", *options, "--format", "{{.Names}}"])
        return sorted(listed.split())

    def act(self, *arguments: str) -> str:
        """A command of the engine itself."""
        return self._checked([self.engine, *arguments])

    def check(self, container: str, *what: str) -> int:
        """`osbench-worker --check` in a container: its exit code."""
        command = [self.engine, "exec", container, "osbench-worker", "--check", *what]
        return subprocess.run(command, capture_output=True, check=False).returncode

    def start(self, task: str, workers: int) -> subprocess.Popen[bytes]:
        """Begin a run."""
        options = ["--workers", str(workers), "--wait-for-workers", "120"]
        command = [*self.compose, "--profile", "run", "run", "--rm", "-T", "coordinator"]
        log = (self._home / "run.log").open("wb")
        return subprocess.Popen(
            [*command, "run", f"/tasks/{task}", *options],
            env=self._environment,
            stdout=log,
            stderr=subprocess.STDOUT,
        )

    def finish(self, run: subprocess.Popen[bytes]) -> tuple[int, dict[str, Any], int]:
        """Exit code of a run, its accounting, and the workers that ran its iterations."""
        code = run.wait(PATIENCE_S)
        summary = self._newest() / "summary.json"
        if not summary.exists():
            raise Differs(f"no report: {(self._home / 'run.log').read_text('utf-8')[-2000:]}")
        (workload,) = json.loads(summary.read_text("utf-8"))["workloads"]
        return code, workload["accounting"], len(workload["workers"])

    def await_load(self, before: int) -> None:
        """Wait until a run that is newer than so many has results."""
        self.until(lambda: len(self._all()) > before and self._has_results())

    def until(self, holds: Callable[[], bool]) -> None:
        """Wait until something holds. Raises Differs."""
        deadline = time.monotonic() + PATIENCE_S
        while not holds():
            if time.monotonic() > deadline:
                raise Differs(f"not within {PATIENCE_S:.0f} s")
            time.sleep(0.5)

    def number(self) -> int:
        """How many runs there are."""
        return len(self._all())

    def _all(self) -> list[Path]:
        return sorted(self.runs.iterdir(), key=os.path.getctime) if self.runs.exists() else []

    def _newest(self) -> Path:
        found = self._all()
        if not found:
            raise Differs((self._home / "run.log").read_text("utf-8")[-2000:])
        return found[-1]

    def _has_results(self) -> bool:
        blocks = self._newest() / "blocks"
        return blocks.exists() and blocks.stat().st_size > 0

    def _checked(self, command: list[Any]) -> str:
        done = subprocess.run(
            [str(part) for part in command],
            env=self._environment,
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode:
            raise Differs(f"{command}: exit code {done.returncode}\n{done.stderr[-2000:]}")
        return done.stdout


def _engine() -> tuple[str, list[str]]:
    """The engine, and the command of its compose."""
    docker = ["docker", "compose"]
    if shutil.which("docker"):
        tried = subprocess.run([*docker, "version"], capture_output=True, check=False)
        if not tried.returncode:
            return "docker", docker
    if shutil.which("podman") and shutil.which("podman-compose"):
        # without a pod, each container has a network of its own, as with docker
        return "podman", ["podman-compose", "--in-pod", "false"]
    raise Differs("neither docker with its compose plug-in nor podman with podman-compose is here")


def expect(holds: object, what: str) -> None:
    """Raise Differs where something does not hold."""
    if not holds:
        raise Differs(what)


def say(what: str) -> None:
    """Print what was done."""
    print(f"{time.strftime('%H:%M:%S')}  {what}", flush=True)


def told(accounting: dict[str, Any]) -> str:
    """An accounting in one line, checked."""
    states = ("ok", "failed", "timed_out", "dropped", "lost", "not_started")
    expect(
        sum(accounting[one] for one in states) == accounting["planned"],
        f"not every iteration has one state: {accounting}",
    )
    return f"planned {accounting['planned']}: " + ", ".join(
        f"{accounting[one]} {one}" for one in states if accounting[one]
    )


def walk(project: Project, arguments: list[str]) -> None:
    """All steps. Raises Differs."""
    project.build(arguments)
    say(f"built with {project.engine}")
    project.up(2)
    expect(len(project.containers("worker")) == 2, "not two workers")
    code, accounting, workers = project.finish(project.start("dummy.yaml", 2))
    expect((code, workers) == (0, 2), f"exit code {code}, {workers} workers")
    say(f"two workers: exit code {code}; {told(accounting)}")

    before = project.number()
    run = project.start("load.yaml", 2)
    project.await_load(before)
    project.act("kill", "--signal", "KILL", project.containers("worker")[0])
    code, accounting, _ = project.finish(run)
    line = told(accounting)
    # its supervisor is gone too: nobody knows which of its batches' iterations had begun
    expect(accounting["lost"] < accounting["planned"] / 2, f"too much is lost: {line}")
    # 4 where the machine was too slow to hold the load while users moved
    expect(code in ((3,) if accounting["lost"] else (0, 4)), f"exit code {code}: {line}")
    say(f"a worker's container killed in a run: exit code {code}; {line}")

    project.up(3)
    project.until(lambda: len(project.containers("worker")) == 3)
    before = project.number()
    run = project.start("load.yaml", 3)
    project.await_load(before)
    # waits until it has drained
    project.act("stop", "--time", "45", project.containers("worker")[-1])
    code, accounting, workers = project.finish(run)
    line = told(accounting)
    expect(accounting["ok"] == accounting["planned"], f"a drained worker cost something: {line}")
    expect((code in (0, 4), workers) == (True, 3), f"exit code {code}, {workers} workers")
    say(f"scaled to three, and one drained in a run: exit code {code}; {line}")

    (redis,) = project.containers("osbench-redis")
    worker = project.containers("worker")[0]
    project.until(lambda: project.check(worker) == 0)
    expect(project.check(worker, "alive") == 0, "a worker that serves is not alive")
    project.act("stop", redis)
    expect(project.check(worker) == 3, "a worker without Redis is ready")
    expect(project.check(worker, "alive") == 0, "a worker without Redis is not alive")
    project.act("start", redis)
    project.until(lambda: project.check(worker) == 0)
    say("Redis away: alive, not ready; Redis back: ready")
    project.act("exec", worker, "sh", "-c", STOP_ALL)
    project.until(lambda: project.check(worker, "alive") == 1)
    say("stopped processes: not alive")

    project.down()
    left = project.containers(ended=True)
    expect(not left, f"left behind: {left}")
    say("down: nothing is left")


def main() -> int:
    """Walk; 0 where all went as expected."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--build", default="", help='options of the build, as "--network host"')
    chosen = parser.parse_args()
    with folder() as home:
        try:
            project = Project(home)
        except Differs as reason:
            print(reason, file=sys.stderr)
            return 1
        try:
            walk(project, chosen.build.split())
        except Differs as reason:
            print(f"differs: {reason}", file=sys.stderr)
            for name in project.containers():
                print(f"{name}: {project.act('logs', '--tail', '5', name)}", file=sys.stderr)
            project.down()
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
