"""What `gate` asks git about a repository."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from osbench.common.errors import OsbenchError, UsageError
from osbench.coordinator.cli.served_trees import Serving, changed_files, find_commit, served


def git(repository: Path, *arguments: str) -> None:
    identity = ("-c", "user.name=a", "-c", "user.email=a@example.org")
    subprocess.run(["git", "-C", str(repository), *identity, *arguments], check=True)


def test_changed_files_are_those_that_git_tracks(tmp_path: Path) -> None:
    git(tmp_path, "init", "--quiet")
    (tmp_path / "shop.py").write_text("pass\n")
    git(tmp_path, "add", ".")
    git(tmp_path, "commit", "--quiet", "--message", "A shop")
    (tmp_path / "new.py").write_text("pass\n")

    before = changed_files(tmp_path)
    (tmp_path / "shop.py").write_text("sell()\n")

    assert (before, changed_files(tmp_path)) == (False, True)


def test_a_repository_that_git_cannot_read_is_not_taken_for_unchanged(tmp_path: Path) -> None:
    git(tmp_path, "init", "--quiet")
    (tmp_path / ".git" / "index").write_bytes(b"damaged")

    with pytest.raises(UsageError, match=r"git cannot say whether files have changed: .*index"):
        changed_files(tmp_path)


def test_a_service_is_set_up_in_the_tree_of_its_commit(tmp_path: Path) -> None:
    repository, log = tmp_path / "shop", tmp_path / "log"
    repository.mkdir()
    git(repository, "init", "--quiet")
    for text in ("before", "after"):
        (repository / "shop.py").write_text(f"{text}\n")
        git(repository, "add", ".")
        git(repository, "commit", "--quiet", "--message", text)
    commit = find_commit(repository, "HEAD^1")
    serving = Serving(setup="cat shop.py; pwd; exit 7", serve="", ready_s=1.0)

    with (
        pytest.raises(OsbenchError, match=r"HEAD\^1 .* ended with exit code 7"),
        served(repository, [commit], serving, [log]),
    ):
        pass

    text, tree = log.read_text().splitlines()
    assert text == "before"
    assert not Path(tree).exists()


@pytest.mark.parametrize(
    ("folder", "revision", "said"),
    [(".", "HEAD~7", "there is no commit HEAD~7"), ("/", "HEAD", "not a git repository")],
)
def test_a_commit_that_is_not_there_is_named(
    tmp_path: Path, folder: str, revision: str, said: str
) -> None:
    git(tmp_path, "init", "--quiet")
    git(tmp_path, "commit", "--quiet", "--allow-empty", "--message", "A shop")

    with pytest.raises(UsageError, match=said):
        find_commit(tmp_path / folder, revision)
