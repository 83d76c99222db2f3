"""The steps of the Dockerfile that make the programs, replayed in an empty folder."""

from __future__ import annotations

import io
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import sysconfig
import tarfile
from dataclasses import dataclass
from pathlib import Path

import pytest

from osbench import __version__

REPOSITORY = Path(__file__).resolve().parents[2]
DOCKERFILE = REPOSITORY / "deploy" / "Dockerfile"

pytestmark = pytest.mark.functional


@dataclass(frozen=True, kw_only=True)
class Step:
    """One instruction of a stage."""

    stage: str
    name: str
    text: str


def steps() -> list[Step]:
    """The instructions of the Dockerfile; the last stage is called `image`."""
    lines = [line for line in DOCKERFILE.read_text("utf-8").splitlines() if line[:1] != "#"]
    found, stage = [], ""
    for line in "\n".join(lines).replace("\\\n", " ").splitlines():
        name, _, text = line.partition(" ")
        if name == "FROM":
            stage = text.partition(" AS ")[2] or "image"
        elif name and stage:
            found.append(Step(stage=stage, name=name, text=" ".join(text.split())))
    return found


@pytest.fixture(scope="module")
def context(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What is committed, and of that what .dockerignore lets through."""
    done = subprocess.run(
        ["git", "archive", "HEAD"], cwd=REPOSITORY, capture_output=True, check=False
    )
    if done.returncode:
        pytest.skip("not a git repository")
    sent = tmp_path_factory.mktemp("context")
    ignore = (REPOSITORY / "deploy" / "Dockerfile.dockerignore").read_text("utf-8").splitlines()
    allowed = {line[1:] for line in ignore if line.startswith("!")}
    with tarfile.open(fileobj=io.BytesIO(done.stdout)) as archive:
        members = [one for one in archive if one.name.partition("/")[0] in allowed]
        archive.extractall(sent, members, filter="tar")
    return sent


@pytest.fixture(scope="module")
def installed(context: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """/opt/osbench as the first stage makes it, with the dependencies of these tests."""
    folder = tmp_path_factory.mktemp("build")
    opt = tmp_path_factory.mktemp("opt") / "osbench"
    for step in steps():
        if step.stage != "build":
            continue
        if step.name == "COPY":
            copy(context, folder, step.text)
        elif step.name == "RUN":
            run(hurried(step.text.replace("/opt/", f"{opt.parent}/")), folder)
    site = sysconfig.get_path("purelib", vars={"base": str(opt), "platbase": str(opt)})
    # a path in a .pth file adds what is there, and not the editable osbench that is there too
    Path(site, "dependencies.pth").write_text(sysconfig.get_path("purelib") + "\n")
    return opt


def copy(context: Path, folder: Path, text: str) -> None:
    *sources, target = text.split()
    for source in sources:
        origin = context / source
        assert origin.exists(), f"{source} is not sent to the builder"
        if origin.is_dir():
            shutil.copytree(origin, folder / target, symlinks=True)
        else:
            shutil.copy(origin, folder / target / source)


def hurried(line: str) -> str:
    """The same with uv, if it is there, which installs with a quarter of pip's CPU."""
    if not (Path(sys.executable).parent / "uv").exists():
        return line
    # osbench has the dependencies of these tests; a tool that looks at it needs its own
    options = "" if "cyclonedx" in line else " --no-deps"
    line = line.replace("python -m venv", f"uv venv --quiet --python {sys.executable}")
    return re.sub(
        r"(\S+)/bin/pip install --no-cache-dir",
        rf"uv pip install --quiet{options} --python \1/bin/python",
        line,
    )


def run(line: str, folder: Path) -> None:
    done = subprocess.run(
        ["sh", "-ec", line],
        cwd=folder,
        env={
            **os.environ,
            "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
            # osbench has those of these tests; a tool that looks at it needs its own
            **({} if "cyclonedx" in line else {"PIP_NO_DEPS": "1"}),
            "PIP_DISABLE_PIP_VERSION_CHECK": "1",
        },
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, (line, done.stdout, done.stderr)


def in_image(installed: Path, *command: str) -> subprocess.CompletedProcess[str]:
    """Run a program of the image in an empty environment."""
    return subprocess.run(
        [installed / "bin" / command[0], *command[1:]],
        cwd=installed,
        env={"PATH": f"{installed}/bin:/usr/bin:/bin", "HOME": str(installed)},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.parametrize("program", ["osbench-coord", "osbench-worker"])
def test_the_image_has_the_programs(installed: Path, program: str) -> None:
    version = in_image(installed, program, "--version")
    help_text = in_image(installed, program, "--help")

    assert __version__ in version.stdout
    assert "Usage:" in help_text.stdout
    assert (version.returncode, help_text.returncode) == (0, 0), help_text.stderr


def test_the_programs_are_those_that_were_copied(installed: Path) -> None:
    where = "import osbench.worker.main, osbench.coordinator.front.cli as c; print(c.__file__)"

    done = in_image(installed, "python", "-P", "-c", where)

    assert Path(done.stdout.strip()).is_relative_to(installed), done.stderr


def test_the_image_knows_its_plugins(installed: Path, context: Path) -> None:
    task = context / "task.yaml"
    shutil.copy(REPOSITORY / "deploy" / "kubernetes" / "run" / "task.yaml", task)

    done = in_image(installed, "osbench-coord", "validate", str(task))

    assert done.returncode == 0, done.stderr


def test_the_image_tells_what_it_is_made_of(installed: Path) -> None:
    told = json.loads((installed / "sbom.cdx.json").read_text("utf-8"))

    (own,) = [one for one in told["components"] if one["name"] == "osbench"]
    assert told["bomFormat"] == "CycloneDX"
    assert own["version"] == __version__
    assert own["licenses"][0]["license"]["id"] == "Apache-2.0"


def test_the_image_runs_as_any_user() -> None:
    image = {step.name: step.text for step in steps() if step.stage == "image"}

    user, _, group = image["USER"].partition(":")
    assert int(user) > 0
    assert int(group) > 0
    assert shlex.split(image["CMD"].strip("[]"))[0] == "osbench-worker"
