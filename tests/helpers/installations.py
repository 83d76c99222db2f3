"""osbench as users install it, outside the checkout, and runs of differently installed hosts."""

from __future__ import annotations

import configparser
import os
import shutil
import subprocess
import sys
from pathlib import Path

from helpers.runs import Cluster, Finished, site
from servers import RedisServer

#: A workload that needs no service.
DUMMY = {
    "scenario": {"Dummy.dummy": {}},
    "runner": {"constant": {"times": 10, "concurrency": 2}},
}

REPOSITORY = Path(__file__).resolve().parents[2]

#: Files and folders of the repository that make the wheel.
SOURCES = ("setup.cfg", "pyproject.toml", "README.md", "LICENSE", "common", "worker", "coordinator")
SOURCES += ("edges", "src")


def copy_sources(folder: Path) -> None:
    """Copy the sources of the wheel, as they lie in the work tree, into an empty folder."""
    for name in SOURCES:
        if (REPOSITORY / name).is_dir():
            left_out = shutil.ignore_patterns("__pycache__", "*.egg-info")
            shutil.copytree(REPOSITORY / name, folder / name, symlinks=True, ignore=left_out)
        else:
            shutil.copy(REPOSITORY / name, folder)


def remove_edges(sources: Path) -> None:
    """Take the edges and their entry points away, as their READMEs say."""
    shutil.rmtree(sources / "edges")
    (sources / "src" / "osbench" / "edges").unlink()
    setup = configparser.ConfigParser(interpolation=None)
    setup.optionxform = str  # type: ignore[assignment, method-assign]
    setup.read(sources / "setup.cfg")
    groups = setup["options.entry_points"]
    for name, lines in list(groups.items()):
        kept = [line for line in lines.splitlines() if "= osbench.edges." not in line]
        groups[name] = "\n".join(kept)
        if not any(kept):
            del groups[name]
    with (sources / "setup.cfg").open("w", encoding="utf-8") as file:
        setup.write(file)


def install_wheel(folder: Path, *, edges: bool = True) -> Path:
    """Build the wheel and install it into a new environment; return the folder of its commands.

    `folder` is empty. Without `edges` the wheel is of the core alone. Raises CalledProcessError.
    """
    sources = folder / "sources"
    sources.mkdir(parents=True)
    copy_sources(sources)
    if not edges:
        remove_edges(sources)
    environment = folder / "environment"
    command = [sys.executable, REPOSITORY / ".ci" / "environment.py", "--bare", environment]
    kept = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    subprocess.run([*command, sources], env=kept, check=True)
    return environment / "bin"


def run_of_two_installations(
    redis: RedisServer, coordinator: Path | None, worker: Path | None
) -> Finished:
    """Run `DUMMY` with a worker process; each side is a folder of commands, None the checkout's."""
    with site(programs=worker) as here:
        cluster = Cluster(here, redis)
        cluster.start_worker()
        cluster.await_idle(1)
        here.programs = coordinator
        return here.run(here.task(DUMMY), "--workers", "1")
