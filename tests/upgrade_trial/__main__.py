"""Plays upgrades of the lab's Keystone and Glance, and has `osbench-coord gate` judge them.

    python -m upgrade_trial play [--trials 20] [--upgrades 2]
    python -m upgrade_trial release old|new [--slower]

`play` judges real upgrades from the release before, and then upgrades of a release to itself, each
as it is and with a regression in turn. It prints a line a trial. It ends with 1 if the gate is
wrong more often than docs/gate.md promises. `release` is the command that an upgrade is made of.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import click
import yaml

from helpers.commands import BIN, LENIENT
from services import operations
from upgrade_trial.released_lab import ReleasedLab

ROOT = Path(__file__).resolve().parents[2]
SHARE_FOUND, SHARE_FALSE = 0.9, 0.05
_TASK = {
    "version": 2,
    "title": "Tokens and images",
    "subtasks": [
        {
            "title": name,
            "scenario": {name: {}},
            "runner": {"constant": {"times": 40, "concurrency": 1}},
        }
        for name in ("Authenticate.keystone", "GlanceImages.list_images")
    ],
}


class Trial:
    """A folder with a lab, a task, and a data directory of osbench."""

    def __init__(self, folder: Path, blocks: int) -> None:
        self.folder = folder
        self._blocks = blocks
        folder.mkdir(parents=True, exist_ok=True)
        self.lab = ReleasedLab(folder / "lab")
        (folder / "load.yaml").write_text(yaml.safe_dump(_TASK), "utf-8")

    def prepare(self, *, old: bool = False) -> None:
        """Start the lab, and make its deployment record."""
        self.lab.release(old=old)
        if self._coord("deployment", "show", "lab").returncode:
            file = str(self.lab.folder / "deployment.json")
            self._coord("deployment", "create", "--name", "lab", "--file", file, check=True)

    def judge(self, *, old: bool, slower: bool) -> tuple[int, str]:
        """Upgrade; returns the exit code of the gate, and the first line of its verdict."""
        start = "old" if old else "new"
        self._command(start)
        change = self._release("new", *(["--slower"] if slower else []))
        restarts = ("--before", self._release(start), "--after", change)
        sizes = ("--blocks", str(self._blocks), "--runs", "1", "--quiet")
        done = self._coord(
            "gate", "load.yaml", "--deployment", "lab", "--change", change, *restarts, *sizes
        )
        verdict = self.folder / "osbench-gate" / "verdict.md"
        if done.returncode not in {0, 1, 4}:
            click.echo(done.stdout + done.stderr)
        return done.returncode, verdict.read_text("utf-8").splitlines()[0]

    def _release(self, *arguments: str) -> str:
        return " ".join(
            (sys.executable, "-m", "upgrade_trial", "release", str(self.folder), *arguments)
        )

    def _command(self, *arguments: str) -> None:
        subprocess.run(self._release(*arguments), shell=True, check=True, env=self._environment)

    def _coord(self, *arguments: str, check: bool = False) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [str(BIN / "osbench-coord"), *arguments],
            cwd=self.folder,
            env=self._environment,
            capture_output=True,
            text=True,
            check=check,
        )

    @property
    def _environment(self) -> dict[str, str]:
        paths = os.pathsep.join(str(ROOT / one) for one in ("tests", "tests/lab"))
        return os.environ | LENIENT | {"HOME": str(self.folder), "PYTHONPATH": paths, **_CACHE}


#: Environments of services stay where the user's are.
_CACHE = {
    "OSBENCH_LAB_DIR": os.environ.get(
        "OSBENCH_LAB_DIR", str(Path.home() / ".cache" / "osbench-lab")
    )
}


@click.group()
def main() -> None:
    """Play upgrades."""


@main.command()
@click.option("--dir", "folder", type=click.Path(path_type=Path), default=Path("build/upgrades"))
@click.option("--trials", type=click.IntRange(0), default=20, show_default=True, help="Of each.")
@click.option("--upgrades", type=click.IntRange(0), default=2, show_default=True, help="Of each.")
@click.option("--blocks", type=click.IntRange(3), default=4, show_default=True, help="Of a side.")
def play(folder: Path, trials: int, upgrades: int, blocks: int) -> None:
    """Judge upgrades to the next release and to the same one, each equal and slower."""
    os.environ.update(_CACHE)
    folder = folder.resolve()
    real, same = Counts("upgrade"), Counts("same")
    for number in range(1, upgrades + 1):
        for slower in (False, True):
            # no release goes back
            home = folder / f"upgrade-{number}{'-slower' if slower else ''}"
            shutil.rmtree(home, ignore_errors=True)
            upgraded = Trial(home, blocks)
            upgraded.prepare(old=True)
            real.note(number, slower, upgraded.judge(old=True, slower=slower))
            operations.stop(upgraded.lab)
    trial = Trial(folder, blocks)
    trial.prepare()
    for number in range(1, trials + 1):
        for slower in (False, True):
            same.note(number, slower, trial.judge(old=False, slower=slower))
    operations.stop(trial.lab)
    for counts in (real, same):
        click.echo(json.dumps(counts.summary))
    # a release may be slower than the one before, as it ships
    right = real.has_found and same.has_found and same.worse[False] <= SHARE_FALSE * trials
    sys.exit(0 if right else 1)


class Counts:
    """Verdicts on upgrades of one kind, with and without a regression."""

    def __init__(self, name: str) -> None:
        self._name = name
        #: Trials, verdicts of "worse", and trials without a verdict, by whether they are slower.
        self.trials, self.worse, self.limited = ({False: 0, True: 0} for _ in range(3))

    def note(self, number: int, slower: bool, judged: tuple[int, str]) -> None:
        """Count and print the verdict of a trial: exit code and first line."""
        code, verdict = judged
        self.trials[slower] += 1
        self.worse[slower] += code == 1
        self.limited[slower] += code == 4
        change = "slower" if slower else "equal"
        click.echo(f"{number:3} {self._name:7} {change:6} {code} {verdict}")

    @property
    def has_found(self) -> bool:
        """Whether regressions were found as often as wanted, of trials with a verdict."""
        return self.worse[True] >= SHARE_FOUND * (self.trials[True] - self.limited[True])

    @property
    def summary(self) -> dict[str, Any]:
        """All counts as JSON values."""
        return {
            "kind": self._name,
            **{
                "slower" if slower else "equal": {
                    "trials": self.trials[slower],
                    "worse": self.worse[slower],
                    "without a verdict": self.limited[slower],
                }
                for slower in (True, False)
            },
        }


@main.command()
@click.argument("folder", type=click.Path(path_type=Path))
@click.argument("name", type=click.Choice(["old", "new"]))
@click.option("--slower", is_flag=True, help="With a regression.")
def release(folder: Path, name: str, slower: bool) -> None:
    """Have Keystone and Glance of a release run in the lab of FOLDER, restarted."""
    ReleasedLab(folder / "lab").release(old=name == "old", slower=slower)


if __name__ == "__main__":
    main()
