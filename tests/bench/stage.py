"""What every row works with: a folder, osbench's commands, the peers' interpreter, servers."""

from __future__ import annotations

import contextlib
import itertools
import json
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from helpers.commands import BIN, environment
from helpers.import_path import SOURCE, TESTS, import_path
from helpers.installations import install_wheel
from servers import Child

HERE = Path(__file__).resolve().parent
PEERS = HERE / "peers"
SCENARIOS = HERE / "scenarios"

#: Worker processes of osbench, Locust and Celery alike.
WORKERS = 2
#: On top of what a command measures: start, preparation, report.
MARGIN_S = 90.0

_LENIENT = {"lag_limit_s": 60, "max_lag_s": 60}


class BenchError(Exception):
    """Something that was to be measured did not run as it must."""


@dataclass(frozen=True, kw_only=True)
class Stage:
    """Where a bench takes place. All that it starts ends with it; all it writes is in `folder`."""

    folder: Path
    #: Interpreter of the environment that holds the peers.
    peers: Path
    rounds: int
    #: Length of one measured block, seconds.
    block_s: float
    #: Folder of osbench's commands; None for those of the checkout.
    programs: Path | None = None
    _numbers: Iterator[int] = field(default_factory=itertools.count)

    @property
    def data(self) -> Path:
        """osbench's data directory."""
        return self.folder / ".osbench"

    def count(self, per_s: float) -> int:
        """How many units of work fill a block at an expected rate."""
        return max(1, round(per_s * self.block_s))

    def subfolder(self, name: str) -> Path:
        """A new, empty folder."""
        path = self.folder / f"{name}-{next(self._numbers)}"
        path.mkdir()
        return path

    @contextlib.contextmanager
    def child(
        self,
        command: Sequence[str | Path],
        *,
        cwd: Path | None = None,
        env: Mapping[str, str] | None = None,
    ) -> Iterator[Child]:
        """A process that is ended with its whole group when the block is left."""
        # without what is set for the bench itself: what is measured must not see its modules
        inherited = {**environment(self.folder), "PYTHONPATH": str(SOURCE)}
        if self.programs:
            del inherited["PYTHONPATH"]
        child = Child(
            [str(part) for part in command],
            folder=self.folder,
            log=self.folder / f"log-{next(self._numbers)}",
            cwd=cwd or self.folder,
            env={**inherited, **(env or {})},
        )
        try:
            yield child
        finally:
            child.end(signal.SIGTERM)

    def finish(
        self,
        command: Sequence[str | Path],
        *,
        within_s: float,
        cwd: Path | None = None,
        env: Mapping[str, str] | None = None,
        codes: Sequence[int] = (0,),
    ) -> str:
        """Run a command to its end; answers what it printed. Raises BenchError."""
        with self.child(command, cwd=cwd, env=env) as child:
            try:
                code = child.process.wait(within_s)
            except subprocess.TimeoutExpired:
                raise BenchError(
                    f"{command[0]} runs after {within_s:g} s\n{child.tail()}"
                ) from None
            if code not in codes:
                raise BenchError(f"{' '.join(map(str, command))} ended with {code}\n{child.tail()}")
            return child.log.read_text("utf-8", errors="replace")

    # osbench

    def with_wheel(self) -> Stage:
        """Install osbench's wheel, and return this stage with its commands."""
        return replace(self, programs=install_wheel(self.subfolder("wheel")))

    def command(self, name: str) -> Path:
        """The path of one of osbench's commands."""
        return (self.programs or BIN) / name

    def configure(self, **sections: Mapping[str, Any]) -> None:
        """Start with an empty data directory and a new osbench.conf.

        The bench judges start lag itself: runs need not, and drop nothing that is late.
        """
        lines = [f"[DEFAULT]\ndata_dir = {self.data}"]
        for section, values in {"benchmark": _LENIENT, **sections}.items():
            lines += [f"[{section}]", *(f"{key} = {value}" for key, value in values.items())]
        shutil.rmtree(self.data, ignore_errors=True)
        self.data.mkdir(mode=0o700)
        (self.data / "osbench.conf").write_text("\n".join(lines) + "\n", encoding="utf-8")

    def coord(
        self, *arguments: str, codes: Sequence[int] = (0,), within_s: float | None = None
    ) -> str:
        """Run osbench-coord; `within_s` is for what does not last as long as a block."""
        command = [self.command("osbench-coord"), *arguments]
        return self.finish(command, within_s=within_s or self.block_s * 8 + MARGIN_S, codes=codes)

    def run(
        self,
        workload: Mapping[str, Any],
        *arguments: str,
        within_s: float | None = None,
        plugins: bool = True,
    ) -> dict[str, Any]:
        """`osbench-coord run --json` of one workload; answers the run's object.

        Without `plugins` the scenarios of the bench, and what they import, are not there. Raises
        BenchError where an iteration is not ok. Exit code 4 (the generator was the limit) is what a
        bench is after.
        """
        task = self.subfolder("task") / "task.json"
        subtask = {"title": "bench", **workload}
        task.write_text(json.dumps({"version": 2, "title": "bench", "subtasks": [subtask]}))
        options = ["--quiet", "--json", *arguments]
        options += ["--plugin-path", str(SCENARIOS)] if plugins else []
        said = self.coord("run", str(task), *options, codes=(0, 4), within_s=within_s)
        found: dict[str, Any] = last_json(said)
        sums = found["workloads"][0]["accounting"]
        if not sums["ok"] or sums["ok"] != sums["planned"]:
            raise BenchError(f"not every iteration was ok: {sums}")
        return found

    def run_folder(self, found: Mapping[str, Any]) -> Path:
        """The run directory of a finished run."""
        return self.data / "runs" / str(found["run_id"])

    def forget_runs(self) -> None:
        """Remove all run directories: ten million records take their place."""
        shutil.rmtree(self.data / "runs", ignore_errors=True)

    # the rest

    def peer(
        self, script: str, *arguments: object, env: Mapping[str, str] | None = None
    ) -> dict[str, Any]:
        """Run a script of `peers` in the peers' environment; answers the object it printed."""
        command = [self.peers, PEERS / script, *map(str, arguments)]
        within_s = self.block_s * 4 + MARGIN_S
        found: dict[str, Any] = last_json(
            self.finish(command, within_s=within_s, cwd=PEERS, env=env)
        )
        return found

    def harness(self, module: str, *arguments: object) -> dict[str, Any]:
        """Run a module of `bench.harness` in osbench's environment; the object it printed."""
        command = [sys.executable, "-m", f"bench.harness.{module}", *map(str, arguments)]
        path = import_path(TESTS)
        within_s = self.block_s * 4 + MARGIN_S * 3
        found: dict[str, Any] = last_json(self.finish(command, within_s=within_s, env=path))
        return found


def last_json(text: str) -> Any:
    """The last line that is a JSON object or list. Raises BenchError where there is none."""
    for line in reversed(text.splitlines()):
        if line.startswith(("{", "[")):
            with contextlib.suppress(ValueError):
                return json.loads(line)
    raise BenchError(f"no result among:\n{text[-2000:]}")
