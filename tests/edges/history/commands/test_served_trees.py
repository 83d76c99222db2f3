"""What `gate` asks git about a repository."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from osbench.common.errors import OsbenchError, UsageError
from osbench.edges.history.commands.served_trees import (
    Serving,
    changed_files,
    find_commit,
    running_services,
)


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
        running_services(repository, [commit], serving, [log]),
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


def commit_of(repository: Path, text: str) -> None:
    (repository / "text").write_text(f"{text}\n")
    git(repository, "add", ".")
    git(repository, "commit", "--quiet", "--message", text)


@pytest.fixture
def nested(tmp_path: Path) -> Path:
    """A repository of two commits with a submodule, which has one, too; each has its commits."""
    above = ""
    for name in ("engine", "library", "shop"):
        repository = tmp_path / name
        repository.mkdir()
        git(repository, "init", "--quiet")
        commit_of(repository, f"{name} before")
        if above:
            local = ("-c", "protocol.file.allow=always")
            git(repository, *local, "submodule", "--quiet", "add", f"../{above}", above)
            git(repository, *local, "submodule", "--quiet", "update", "--init", "--recursive")
            git(repository, "commit", "--quiet", "--message", "With a part")
        above = name
    shop = tmp_path / "shop"
    for folder, name in (("library/engine", "engine"), ("library", "library"), (".", "shop")):
        commit_of(shop / folder, f"{name} after")
    return shop


def set_up_of(repository: Path, revision: str, log: Path) -> list[str]:
    """What the setup of a commit finds in its tree, and below."""
    serving = Serving(
        setup="cat text library/text library/engine/text; exit 7", serve="", ready_s=1.0
    )
    with (
        pytest.raises(OsbenchError, match="exit code 7"),
        running_services(repository, [find_commit(repository, revision)], serving, [log]),
    ):
        pass
    return log.read_text().splitlines()


def trees_of(repository: Path) -> int:
    listed = subprocess.run(
        ["git", "-C", str(repository), "worktree", "list"],
        check=True,
        capture_output=True,
        text=True,
    )
    return len(listed.stdout.splitlines())


@pytest.mark.parametrize(("revision", "when"), [("HEAD", "after"), ("HEAD^1", "before")])
def test_a_tree_has_the_submodules_of_its_commit(nested: Path, revision: str, when: str) -> None:
    found = set_up_of(nested, revision, nested.parent / "log")

    assert found == [f"{name} {when}" for name in ("shop", "library", "engine")]
    for folder in (nested, nested / "library", nested / "library" / "engine"):
        assert trees_of(folder) == 1


def test_a_submodule_that_was_not_fetched_is_named(nested: Path) -> None:
    git(nested, "submodule", "--quiet", "deinit", "--force", "library")

    with (
        pytest.raises(UsageError, match=r"submodule library of HEAD .*`git submodule update"),
        running_services(
            nested,
            [find_commit(nested, "HEAD")],
            Serving(setup="", serve="", ready_s=1),
            [nested.parent / "log"],
        ),
    ):
        pass
