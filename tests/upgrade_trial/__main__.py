"""Plays upgrades of the lab's Keystone and Glance, and has `osbench-coord gate` judge them.

    python -m upgrade_trial play [--trials 20] [--upgrades 2]
    python -m upgrade_trial release old|new [--slower]

`play` judges real upgrades from the release before, and then upgrades of a release to itself, equal
and with a regression in turn. It prints a line a trial. It ends with 1 if the gate is wrong more
often than docs/gate.md promises. `release` is the command that an upgrade is made of.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

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
@click.option("--upgrades", type=click.IntRange(0), default=2, show_default=True, help="Real ones.")
@click.option("--blocks", type=click.IntRange(3), default=4, show_default=True, help="Of a side.")
def play(folder: Path, trials: int, upgrades: int, blocks: int) -> None:
    """Judge upgrades to the same release, equal and slower, and upgrades of releases."""
    os.environ.update(_CACHE)
    counts = {True: 0, False: 0}
    limited = {True: 0, False: 0}
    for number in range(1, upgrades + 1):
        # no release goes back
        home = folder.resolve() / f"upgrade-{number}"
        shutil.rmtree(home, ignore_errors=True)
        upgraded = Trial(home, blocks)
        upgraded.prepare(old=True)
        code, verdict = upgraded.judge(old=True, slower=False)
        operations.stop(upgraded.lab)
        click.echo(f"{number:3} upgrade {code} {verdict}")
    trial = Trial(folder.resolve(), blocks)
    trial.prepare()
    for number in range(1, trials + 1):
        for slower in (False, True):
            code, verdict = trial.judge(old=False, slower=slower)
            counts[slower] += code == 1
            limited[slower] += code == 4
            click.echo(f"{number:3} {'slower' if slower else 'equal':7} {code} {verdict}")
    click.echo(json.dumps({"found": counts[True], "false": counts[False], "trials": trials}))
    click.echo(f"without a verdict: {limited[True]} slower, {limited[False]} equal")
    right = counts[True] >= SHARE_FOUND * (trials - limited[True])
    sys.exit(0 if right and counts[False] <= SHARE_FALSE * trials else 1)


@main.command()
@click.argument("folder", type=click.Path(path_type=Path))
@click.argument("name", type=click.Choice(["old", "new"]))
@click.option("--slower", is_flag=True, help="With a regression.")
def release(folder: Path, name: str, slower: bool) -> None:
    """Have Keystone and Glance of a release run in the lab of FOLDER, restarted."""
    ReleasedLab(folder / "lab").release(old=name == "old", slower=slower)


if __name__ == "__main__":
    main()
