"""Services of `gate`, each started from a commit in its own directory, ended with the command."""

from __future__ import annotations

import contextlib
import os
import socket
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from osbench.common.errors import OsbenchError, UsageError
from osbench.common.ports import clock
from osbench.coordinator.load.local.child import Child, last_lines
from osbench.coordinator.load.local.lifeline import Lifeline

#: Between two looks whether a service accepts connections, seconds.
_LOOK_S = 0.05
#: Mode of a submodule in a tree of git.
_SUBMODULE = "160000"
#: Time of a service from SIGTERM to SIGKILL, seconds.
_GRACE_S = 5.0


@dataclass(frozen=True, kw_only=True)
class Serving:
    """Shell commands that set up and start a service in a source tree; both run in the tree."""

    #: Runs once, before both services start; "" for nothing.
    setup: str
    #: Serves at 127.0.0.1 on the TCP port in the environment variable PORT, until SIGTERM.
    serve: str
    #: Longest time from its start until the service accepts connections, seconds.
    ready_s: float


@dataclass(frozen=True)
class Commit:
    """A commit of a repository, as `find_commit` found it."""

    #: Its name as the user wrote it, such as HEAD^1.
    revision: str
    #: 40 hexadecimal digits.
    id: str

    def __str__(self) -> str:
        return f"{self.revision} ({self.id[:8]})"


def find_commit(repository: Path, revision: str) -> Commit:
    """Return the commit that a revision such as HEAD^1 means in the repository.

    Raises UsageError if there is no such commit or repository, or no git.
    """
    found = _git(repository, "rev-parse", "--quiet", "--verify", f"{revision}^{{commit}}")
    if found.returncode:
        said = found.stderr.strip()
        if said:
            raise UsageError(f"--repository {repository}: {said}; name the service's repository")
        raise UsageError(
            f"{repository}: there is no commit {revision}; name an existing one, or in a shallow"
            " clone fetch its history (git fetch --deepen=1, `fetch-depth: 2`)"
        )
    return Commit(revision, found.stdout.strip())


def changed_files(repository: Path) -> bool:
    """Return whether tracked files of the work tree differ from the checked-out commit.

    Raises UsageError if git fails, or is missing.
    """
    found = _git(repository, "status", "--porcelain", "--untracked-files=no")
    if found.returncode:
        raise UsageError(
            f"--repository {repository}: git cannot say whether files have changed:"
            f" {found.stderr.strip()}; repair the repository"
        )
    return bool(found.stdout.strip())


@contextlib.contextmanager
def running_services(
    repository: Path, commits: Sequence[Commit], serving: Serving, logs: Sequence[Path]
) -> Iterator[list[str]]:
    """Serve commits at the same time, each from its own tree; yield their URLs, in order.

    Output of each goes to its file in `logs`. Services are ended and trees removed at the end, also
    if this process is killed. Raises OsbenchError if a tree cannot be made, its setup fails or its
    service ends or does not accept connections in time.
    """
    lifeline = Lifeline()
    folder = Path(tempfile.gettempdir()) / f"osbench-trees-{os.getpid()}"
    lifeline.register_folder(folder)
    services: list[Child] = []
    #: Repositories of which there are trees: this one, and its submodules.
    cleaned: dict[Path, None] = {repository: None}
    try:
        folder.mkdir(mode=0o700)
        trees = [folder / f"{number}-{commit.id[:8]}" for number, commit in enumerate(commits)]
        for tree, commit, log in zip(trees, commits, logs, strict=True):
            for used in _check_out(repository, commit, tree):
                cleaned[used] = None
            if serving.setup:
                _set_up(tree, commit, serving.setup, log)
        addresses = []
        for tree, commit, log in zip(trees, commits, logs, strict=True):
            port = _free_port()
            child = Child(
                role="workers",
                command=("/bin/sh", "-c", serving.serve),
                environment={**os.environ, "PORT": str(port)},
                log=log,
                lifeline=lifeline,
                cwd=tree,
            )
            services.append(child)
            _await_service(child, commit, port, serving.ready_s)
            addresses.append(f"http://127.0.0.1:{port}")
        yield addresses
    finally:
        for child in services:
            child.end(_GRACE_S)
        lifeline.close()
        # trees of commands that were killed, too
        for used in cleaned:
            _git(used, "worktree", "prune")


def _git(repository: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    try:
        return subprocess.run(  # noqa: S603 - git, with our own arguments
            ["git", "-C", str(repository), *arguments],  # noqa: S607 - the user's git
            capture_output=True,
            text=True,
            check=False,
            errors="replace",
        )
    except OSError as error:
        raise UsageError(f"git cannot be started: {error.strerror}; install it") from None


def _check_out(repository: Path, commit: Commit, tree: Path) -> Iterator[Path]:
    """Check out a commit to the new folder `tree`, with its submodules; yield the clones used.

    Works only while it is iterated. Submodules are taken from the clones in `repository`: nothing
    is fetched. Raises OsbenchError, UsageError if a submodule or its commit is not there.
    """
    done = _git(repository, "worktree", "add", "--detach", "--force", str(tree), commit.id)
    if done.returncode:
        raise OsbenchError(
            f"{repository}: git cannot check out {commit} to {tree}: {done.stderr.strip()}; remove"
            " this cause and start the gate again"
        )
    yield repository
    # of a bare repository it is "", and no submodule is there
    top = _git(repository, "rev-parse", "--show-toplevel").stdout.strip()
    for path, identity in _submodules(repository, commit):
        clone = Path(top or repository) / path
        known = _git(clone, "cat-file", "-e", f"{identity}^{{commit}}").returncode == 0
        if not (clone / ".git").exists() or not known:
            raise UsageError(
                f"{repository}: the submodule {path} of {commit} is not in this clone at its commit"
                f" {identity[:8]}: run `git submodule update --init --recursive`, or check out"
                f" {commit.revision} once with `git checkout --recurse-submodules`"
            )
        part = Commit(f"{path} of {commit.revision}", identity)
        yield from _check_out(clone, part, tree / path)


def _submodules(repository: Path, commit: Commit) -> Iterator[tuple[str, str]]:
    """Yield path and commit of each submodule that a commit has directly. Raises OsbenchError."""
    listed = _git(repository, "ls-tree", "-r", "-z", "--full-tree", commit.id)
    if listed.returncode:
        raise OsbenchError(
            f"{repository}: git cannot list {commit}: {listed.stderr.strip()}; repair it"
        )
    for line in filter(None, listed.stdout.split("\0")):
        facts, _, path = line.partition("\t")
        mode, _, identity = facts.split(" ")
        if mode == _SUBMODULE:
            yield path, identity


def _set_up(tree: Path, commit: Commit, command: str, log: Path) -> None:
    with log.open("ab") as output:
        code = subprocess.run(  # noqa: S602 - the command of the user
            command, shell=True, cwd=tree, stdout=output, stderr=subprocess.STDOUT, check=False
        ).returncode
    if code:
        raise OsbenchError(
            f"the setup of {commit} ended with exit code {code}; correct --setup or the commit. "
            f"The last lines of {log}:\n"
            f"{last_lines(log)}"
        )


def _await_service(child: Child, commit: Commit, port: int, ready_s: float) -> None:
    end = clock.monotonic() + ready_s
    while True:
        reason = child.exit_reason()
        if reason is not None:
            raise OsbenchError(
                f"the service of {commit} is not running; correct --serve or the commit. It "
                f"{reason}"
            )
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), _LOOK_S):
            return
        if clock.monotonic() > end:
            raise OsbenchError(
                f"the service of {commit} does not accept connections on 127.0.0.1:{port} (PORT); "
                f"correct --serve, or raise --ready-within from {ready_s:g} s; {child.log_end()}"
            )
        clock.sleep(_LOOK_S)


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
