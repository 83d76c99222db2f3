"""Checks, builds, tries and tags a release: `make release`, described in docs/maintaining.md.

What is built is the commit that is checked out, not what lies around in the work tree.
"""

from __future__ import annotations

import argparse
import datetime
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import venv
import zipfile
from collections.abc import Mapping
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[1]
#: Where the version stands.
VERSION = "src/osbench/__init__.py"
#: Supported, and not run by CI.
PYTHONS = ("3.12", "3.13")


class Failed(Exception):
    """Why there is no release, and what to do."""


def say(text: str) -> None:
    """Tell what happens next."""
    print(f"== {text}", flush=True)


def version_of(folder: Path) -> str:
    """The version of the sources in a folder. Raises Failed."""
    found = re.search(r'^__version__ = "(.+)"$', (folder / VERSION).read_text("utf-8"), re.M)
    if found is None or not re.fullmatch(r"\d+\.\d+\.\d+", found[1]):
        raise Failed(f'{VERSION} has no line such as __version__ = "1.2.3": write one')
    return found[1]


def check_changelog(folder: Path, version: str) -> None:
    """See that a version has a section with a date and some lines. Raises Failed."""
    sections = re.split(r"^## ", (folder / "CHANGELOG.md").read_text("utf-8"), flags=re.M)
    section = next((one for one in sections if one.startswith(f"[{version}]")), None)
    if section is None:
        raise Failed(f"CHANGELOG.md has no section [{version}]: move [Unreleased] to one")
    heading, _, body = section.partition("\n")
    date = heading.removeprefix(f"[{version}]").removeprefix(" - ").strip()
    try:
        datetime.date.fromisoformat(date)
    except ValueError:
        raise Failed(
            f"CHANGELOG.md: the section [{version}] has no date: "
            f"write ## [{version}] - {datetime.date.today()}"
        ) from None
    if not re.search(r"^- ", body, re.M):
        raise Failed(f"CHANGELOG.md: the section [{version}] is empty: say what changed")


def check_tree(folder: Path) -> None:
    """See that all is committed. Raises Failed."""
    changed = output(["git", "status", "--porcelain"], folder)
    if changed:
        raise Failed(f"{folder} has changes that are not committed: commit them\n{changed}")


def check_tag(folder: Path, tag: str) -> None:
    """See that there is no such tag yet. Raises Failed."""
    if output(["git", "tag", "--list", tag], folder):
        raise Failed(f"the tag {tag} exists: raise __version__ in {VERSION}")


def check_names(archive: str, expected: set[str], found: set[str]) -> None:
    """See that an archive has the files of the package and no others. Raises Failed."""
    wrong = [f"  {name} is missing" for name in sorted(expected - found)]
    wrong += [f"  {name} is not in git" for name in sorted(found - expected)]
    if wrong:
        raise Failed(
            "\n".join([f"{archive}: look into setup.cfg, [options.packages.find]", *wrong])
        )


def run(command: list[str], folder: Path, environment: Mapping[str, str] | None = None) -> None:
    """Run a command; what it prints is shown. Raises Failed where its exit code is not 0."""
    code = subprocess.run(command, cwd=folder, env=environment, check=False).returncode
    if code:
        raise Failed(f"{' '.join(command)} in {folder} ended with exit code {code}: see above")


def output(command: list[str], folder: Path, environment: Mapping[str, str] | None = None) -> str:
    """What a command prints. Raises Failed where its exit code is not 0."""
    done = subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise Failed(f"{' '.join(command)} in {folder}: {done.stderr.strip()}")
    return done.stdout.strip()


def export(folder: Path) -> None:
    """Write the commit that is checked out into a folder."""
    archive = folder.with_suffix(".tar")
    run(["git", "archive", "--output", str(archive), "HEAD"], REPOSITORY)
    with tarfile.open(archive) as tar:
        tar.extractall(folder, filter="tar")


def package_files(folder: Path) -> set[str]:
    """Files of the package, from the sources in a folder; links are followed."""
    top = folder / "src"
    return {
        str(Path(where, name).relative_to(top))
        for where, _, names in os.walk(top / "osbench", followlinks=True)
        for name in names
    }


def build(sources: Path, dist: Path, version: str) -> list[Path]:
    """Make wheel and sdist, and see that they hold what they should. Raises Failed."""
    say("building wheel and sdist")
    run([sys.executable, "-m", "build", "--outdir", str(dist)], sources)
    wheel = dist / f"osbench-{version}-py3-none-any.whl"
    sdist = dist / f"osbench-{version}.tar.gz"
    say("checking their metadata: twine check")
    run([sys.executable, "-m", "twine", "check", "--strict", str(wheel), str(sdist)], dist)
    say("checking that both hold every module")
    expected = package_files(sources)
    with zipfile.ZipFile(wheel) as archive:
        check_names(wheel.name, expected, {n for n in archive.namelist() if ".dist-info/" not in n})
    with tarfile.open(sdist) as archive:
        top = f"osbench-{version}/src/"
        members = {one.name.removeprefix(top) for one in archive if one.isfile()}
        check_names(sdist.name, expected, {one for one in members if one.startswith("osbench/")})
    return [wheel, sdist]


def build_driver(sources: Path, dist: Path, version: str) -> list[Path]:
    """Make sdist and, from it, wheel of the driver for services under test. Raises Failed."""
    say("building the OSProfiler driver for services")
    folder = sources / "deploy" / "osprofiler"
    own = folder / "osbench_osprofiler" / "__init__.py"
    if f'__version__ = "{version}"' not in own.read_text("utf-8"):
        raise Failed(f"{own.relative_to(sources)} has another version: write {version} there, too")
    run([sys.executable, "-m", "build", "--outdir", str(dist), str(folder)], sources)
    wheel = dist / f"osbench_osprofiler-{version}-py3-none-any.whl"
    sdist = dist / f"osbench_osprofiler-{version}.tar.gz"
    run([sys.executable, "-m", "twine", "check", "--strict", str(wheel), str(sdist)], dist)
    expected = {f"osbench_osprofiler/{one.name}" for one in folder.glob("*/*.py")}
    with zipfile.ZipFile(wheel) as archive:
        found = {n for n in archive.namelist() if ".dist-info/" not in n}
    check_names(wheel.name, expected | {"osbench_osprofiler.pth"}, found)
    return [wheel, sdist]


def try_out(package: Path, folder: Path) -> None:
    """Install a package into an empty environment and play there. Raises Failed."""
    say(f"installing {package.name} into an empty environment")
    venv.create(folder / "venv", with_pip=True)
    programs = folder / "venv" / "bin"
    pip = [str(programs / "python"), "-m", "pip", "--disable-pip-version-check"]
    run([*pip, "install", "--quiet", str(package)], folder)
    say(f"playing with {package.name}, alone and beside the checkout")
    tested = {**os.environ, "OSBENCH_TESTED_PROGRAMS": str(programs)}
    run([sys.executable, "-m", "pytest", "-q", "tests/wheel"], REPOSITORY, tested)


def try_python(version: str) -> None:
    """Run the demo and the tests that start no whole run with a Python. Raises Failed."""
    say(f"demo and tests with Python {version}")
    make = ["make", f"VENV=.venv-{version}", f"PYTHON=python{version}"]
    run([".ci/with-python", version, *make, "demo", "test-python"], REPOSITORY)


def release(*, tag: bool) -> None:
    """All steps, in order. Raises Failed."""
    version = version_of(REPOSITORY)
    name = f"v{version}"
    say(f"osbench {version}: checking changelog and work tree")
    check_changelog(REPOSITORY, version)
    check_tree(REPOSITORY)
    if tag:
        check_tag(REPOSITORY, name)
    with tempfile.TemporaryDirectory(prefix="osbench-release-") as temporary:
        folder = Path(temporary)
        sources = folder / "sources"
        export(sources)
        packages = build(sources, folder / "dist", version)
        for package in packages:
            tried = folder / package.name.replace(".", "-")
            tried.mkdir()
            try_out(package, tried)
        packages += build_driver(sources, folder / "dist", version)
        for python in PYTHONS:
            try_python(python)
        kept = REPOSITORY / "dist"
        kept.mkdir(exist_ok=True)
        for package in packages:
            shutil.copy(package, kept)
    say(f"{', '.join(one.name for one in packages)} lie in dist/")
    if tag:
        run(["git", "tag", "--annotate", name, "--message", f"osbench {version}"], REPOSITORY)
        say(f"tagged {name}; next: git push origin {name}, twine upload dist/osbench*-{version}*")
    else:
        say("no tag was asked for")


def main() -> None:
    """Read the arguments; end with 1 where a step fails."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--no-tag", action="store_true", help="all but the tag, as often as you like"
    )
    arguments = parser.parse_args()
    try:
        release(tag=not arguments.no_tag)
    except Failed as why:
        sys.exit(f"no release: {why}")


if __name__ == "__main__":
    main()
