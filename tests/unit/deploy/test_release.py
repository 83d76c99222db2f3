"""What `make release` refuses, and what it says of it."""

from __future__ import annotations

import importlib.util
import subprocess
from pathlib import Path
from types import ModuleType

import pytest

import osbench
from helpers.readme import REPOSITORY

GOOD = "# Changelog\n\n## [Unreleased]\n\n## [1.2.3] - 2026-01-31\n\n### Added\n\n- This.\n"


@pytest.fixture(scope="module")
def release() -> ModuleType:
    spec = importlib.util.spec_from_file_location("release", REPOSITORY / ".ci" / "release.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A repository of version 1.2.3, all of it committed."""
    source = tmp_path / "src" / "osbench" / "__init__.py"
    source.parent.mkdir(parents=True)
    source.write_text('"""A package."""\n\n__version__ = "1.2.3"\n')
    (tmp_path / "CHANGELOG.md").write_text(GOOD)
    git(tmp_path, "init", "--quiet")
    git(tmp_path, "add", ".")
    git(tmp_path, "commit", "--quiet", "--message", "All of it")
    return tmp_path


def git(folder: Path, *arguments: str) -> None:
    author = ["-c", "user.name=A", "-c", "user.email=a@example.org"]
    subprocess.run(["git", *author, *arguments], cwd=folder, check=True)


def test_a_version_with_a_dated_section_passes(release: ModuleType, checkout: Path) -> None:
    version = release.version_of(checkout)

    release.check_changelog(checkout, version)
    release.check_tree(checkout)
    release.check_tag(checkout, f"v{version}")
    assert version == "1.2.3"


def test_the_version_is_the_one_that_is_installed(release: ModuleType) -> None:
    assert release.version_of(REPOSITORY) == osbench.__version__


@pytest.mark.parametrize("line", ["", '__version__ = "1.2"\n', "__version__ = VERSION\n"])
def test_a_version_that_is_none_is_refused(release: ModuleType, checkout: Path, line: str) -> None:
    (checkout / release.VERSION).write_text(line)

    with pytest.raises(release.Failed, match=r"src/osbench/__init__\.py .* write one"):
        release.version_of(checkout)


@pytest.mark.parametrize(
    ("changelog", "told"),
    [
        (GOOD.replace("1.2.3", "1.2.2"), r"no section \[1\.2\.3\]"),
        (GOOD.replace("## [1.2.3]", "### [1.2.3]"), r"no section \[1\.2\.3\]"),
        (GOOD.replace(" - 2026-01-31", ""), "has no date"),
        (GOOD.replace("01-31", "02-31"), "has no date"),
        (GOOD.replace("- This.\n", ""), "is empty"),
        (GOOD.replace("- This.\n", "## [1.2.2] - 2026-01-01\n\n- That.\n"), "is empty"),
    ],
)
def test_a_changelog_without_the_version_is_refused(
    release: ModuleType, checkout: Path, changelog: str, told: str
) -> None:
    (checkout / "CHANGELOG.md").write_text(changelog)

    with pytest.raises(release.Failed, match=f"CHANGELOG.md.*{told}"):
        release.check_changelog(checkout, "1.2.3")


def test_what_is_not_committed_is_refused(release: ModuleType, checkout: Path) -> None:
    (checkout / "new.py").touch()

    with pytest.raises(release.Failed, match=r"(?s)commit them.*new\.py"):
        release.check_tree(checkout)


def test_a_tag_that_exists_is_refused(release: ModuleType, checkout: Path) -> None:
    git(checkout, "tag", "v1.2.3")

    with pytest.raises(release.Failed, match=r"the tag v1\.2\.3 exists"):
        release.check_tag(checkout, "v1.2.3")


def test_files_of_the_package_are_found_through_links(release: ModuleType, checkout: Path) -> None:
    (checkout / "common" / "inner").mkdir(parents=True)
    (checkout / "common" / "inner" / "one.py").touch()
    (checkout / "src" / "osbench" / "common").symlink_to("../../common")

    files = release.package_files(checkout)

    assert files == {"osbench/__init__.py", "osbench/common/inner/one.py"}


def test_an_archive_must_hold_these_files_and_no_others(release: ModuleType) -> None:
    release.check_names("a.whl", {"osbench/a.py"}, {"osbench/a.py"})

    with pytest.raises(release.Failed) as failed:
        release.check_names("a.whl", {"osbench/a.py"}, {"osbench/old.py"})

    told = str(failed.value)
    assert "a.whl" in told
    assert "osbench/a.py is missing" in told
    assert "osbench/old.py is not in git" in told


def test_a_step_that_fails_is_named(release: ModuleType, tmp_path: Path) -> None:
    with pytest.raises(release.Failed, match=rf"sh -c exit 3 in {tmp_path} ended with exit code 3"):
        release.run(["sh", "-c", "exit 3"], tmp_path)
