"""A temporary checkout of the repository, in which mutants are planted and tests run."""

from __future__ import annotations

import contextlib
import os
import re
import resource
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from mutants.layers import Suite
from mutants.mutant import Mutant

#: Variables of make and of this process that tests must not get.
_UNWANTED = ("MAKEFLAGS", "MAKELEVEL", "MFLAGS", "PYTHONPATH", "VIRTUAL_ENV")
#: Memory of a test's process: a mutant may append without an end. Bytes.
_MEMORY = 12 << 30
#: Seconds for fixtures to stop servers after an interrupt.
_CLEAN_UP_S = 60.0
#: `Told` in tests/conftest.py prints the first, pytest's summary the second.
_FAILED = re.compile(r"^failed: (.+?) \((?:setup|call|teardown|\?\?\?)\)(?::|$)|^ERROR (\S+\.py)\b")
_COUNTED = re.compile(r"(\d+) (?:passed|failed|errors?)\b")
#: Exit codes of pytest: all passed, some failed, no tests.
_NORMAL = (0, 1, 5)


@dataclass(kw_only=True)
class Outcome:
    """Results of a run of tests."""

    #: Tests that failed, in the order of their failures.
    failed: list[str] = field(default_factory=list)
    #: Tests that ran.
    count: int = 0
    #: Why the run says little about single tests, such as a timeout; empty if it does not.
    broken: str = ""

    @property
    def is_passed(self) -> bool:
        """True if nothing failed."""
        return not self.failed and not self.broken

    @property
    def culprit(self) -> str:
        """The test that failed first, or why the run broke."""
        return self.failed[0] if self.failed else self.broken

    def add(self, other: Outcome) -> None:
        """Add the results of another suite."""
        self.failed += other.failed
        self.count += other.count
        self.broken = self.broken or other.broken


class Checkout:
    """A worktree of git with its own virtual environment."""

    def __init__(self, root: Path) -> None:
        self.root = root
        # compiled code counts as current if time and size of its source fit: two mutants of the
        # same second may have the same
        self._time = int(time.time())

    def has_place(self, mutant: Mutant) -> bool:
        """Report whether the lines of a mutant are in its module."""
        file = self.root / mutant.path
        return file.exists() and mutant.planted(file.read_bytes()) is not None

    @contextlib.contextmanager
    def planted(self, mutants: Iterable[Mutant]) -> Iterator[None]:
        """Plant mutants of different modules, each of which has a place, for a while."""
        sources: dict[str, bytes] = {}
        try:
            for mutant in mutants:
                assert mutant.path not in sources, "several mutants of one module"
                source = (self.root / mutant.path).read_bytes()
                text = mutant.planted(source)
                assert text is not None
                sources[mutant.path] = source
                self._write(mutant.path, text)
            yield
        finally:
            for path, source in sources.items():
                self._write(path, source)

    def run(
        self, suite: Suite, tests: Sequence[str], *options: str, limit_s: float, is_small: bool
    ) -> Outcome:
        """Run tests of a suite; a small suite has a limit of memory.

        An interrupt or a failure in this process interrupts the tests.
        """
        names = self.root.parent / "tests.txt"
        names.write_text("".join(f"{test}\n" for test in tests), "utf-8")
        command = [self.root / ".venv/bin/python", "-m", "pytest", "-q", *suite.options]
        with (
            (self.root.parent / "output.txt").open("w+", encoding="utf-8", errors="replace") as out,
            subprocess.Popen(
                [*command, "--tb=short", *options, f"@{names}"],
                cwd=self.root,
                env=self._environment(suite.variables),
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            ) as process,
        ):
            try:
                if is_small:
                    resource.prlimit(process.pid, resource.RLIMIT_AS, (_MEMORY, _MEMORY))
                process.wait(limit_s)
                broken = "" if process.returncode in _NORMAL else f"exit {process.returncode}"
            except subprocess.TimeoutExpired:
                broken = f"hangs: not finished after {limit_s:.0f} s"
            finally:
                _end(process)
            out.seek(0)
            outcome = outcome_of(out.read())
        outcome.broken = broken
        return outcome

    def _environment(self, variables: Mapping[str, str]) -> dict[str, str]:
        given = {name: value for name, value in os.environ.items() if name not in _UNWANTED}
        return given | {name: value.format(root=self.root) for name, value in variables.items()}

    def _write(self, path: str, text: bytes) -> None:
        self._time += 1
        (self.root / path).write_bytes(text)
        os.utime(self.root / path, (self._time, self._time))


def outcome_of(output: str) -> Outcome:
    """Read the output of pytest: names of failed tests and of files with errors, and a count."""
    lines = output.splitlines()
    names = [found[1] or found[2] for found in map(_FAILED.match, lines) if found]
    count = sum(map(int, _COUNTED.findall(lines[-1]))) if lines else 0
    return Outcome(failed=list(dict.fromkeys(names)), count=count)


@contextlib.contextmanager
def checkout(repository: Path) -> Iterator[Checkout]:
    """Check HEAD of a repository out into a temporary worktree with a virtual environment."""
    with tempfile.TemporaryDirectory(prefix="osbench-mutants-") as folder:
        root = Path(folder).resolve() / "tree"
        git = ["git", "-C", str(repository), "worktree"]
        try:
            subprocess.run([*git, "add", "--quiet", "--detach", str(root)], check=True)
            command = [sys.executable, ".ci/environment.py", ".venv", "-e", ".[dev,rally]"]
            subprocess.run(command, cwd=root, stdout=sys.stderr, check=True)
            yield Checkout(root)
        finally:
            subprocess.run([*git, "remove", "--force", "--force", str(root)], check=False)


def _end(process: subprocess.Popen[bytes]) -> None:
    """End pytest: with time for its fixtures, then all that it has left in its process group."""
    if process.poll() is None:
        process.send_signal(signal.SIGINT)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(_CLEAN_UP_S)
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
