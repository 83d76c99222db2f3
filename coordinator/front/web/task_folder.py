"""The task files that may be started from the page: the files of one folder, by name."""

from __future__ import annotations

import json
import os
import re
import stat
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from osbench.common.errors import UsageError
from osbench.common.secrets.masking import mask_text
from osbench.coordinator.formatting import plain
from osbench.coordinator.results.storage.detached_run import own_command

#: Folder of the data directory.
FOLDER = "tasks"
#: Names of files that are offered, and how many of them.
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9 ._-]{0,150}\.(?:yaml|yml|json)")
MOST = 200
#: Longest check of a file, seconds.
CHECK_S = 30.0
#: Problems of a file that are shown, and letters of one.
_PROBLEMS = 50
_LETTERS = 500


@dataclass(frozen=True, kw_only=True)
class TaskCheck:
    """The result of checking a task file with the command `validate`: problems and notes."""

    ok: bool
    #: Each a place in the file ("" for none) and a message.
    problems: Sequence[tuple[str, str]]
    #: Settings without an effect, in the same form.
    notes: Sequence[tuple[str, str]] = ()

    def to_json(self) -> dict[str, Any]:
        """Return the result as a dict with `ok`, `problems` and `notes`, for scripts.

        Each problem and note is a dict with `place` and `message`.
        """
        return {
            "ok": self.ok,
            **{
                name: [{"place": place, "message": message} for place, message in found]
                for name, found in (("problems", self.problems), ("notes", self.notes))
            },
        }


class TaskFolder:
    """The folder `tasks` in the data directory, whose task files may be started from the page.

    The folder may be a symbolic link; linked files in it do not count.
    """

    def __init__(self, data_dir: str, options: Sequence[str] = ()) -> None:
        """Use the folder of the data directory `data_dir`; it need not exist.

        `options`: options of all commands, such as `--config-file FILE`.
        """
        self.path = Path(data_dir).absolute() / FOLDER
        self._options = tuple(options)

    def names(self) -> list[str]:
        """Return the names of the task files in the folder, sorted; at most `MOST`.

        Empty if the folder cannot be read.
        """
        try:
            with os.scandir(self.path) as entries:
                found = [entry.name for entry in entries if entry.is_file(follow_symlinks=False)]
        except OSError:
            return []
        return sorted(name for name in found if _NAME.fullmatch(name))[:MOST]

    def find(self, name: str) -> Path:
        """Return the path of the task file `name`. Raises UsageError if the folder has no such
        file.
        """
        path = self.path / name
        if _NAME.fullmatch(name) is None or not _is_file(path):
            raise UsageError(
                f"there is no task file {plain(name, 80)!r} in {self.path}; put it there, or "
                "choose another"
            )
        return path

    def check(self, name: str) -> TaskCheck:
        """Check a task file as `validate --offline` does, in a separate process; return the result.

        If the check fails or takes more than `CHECK_S` seconds, the result has that as its problem.
        Raises UsageError if the folder has no such file.
        """
        path = self.find(name)
        # plug-ins of the task are code: this process does not import them
        command = own_command(*self._options, "validate", "--offline", "--json", "--", str(path))
        try:
            done = subprocess.run(  # noqa: S603 - our own command
                command,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                timeout=CHECK_S,
                check=False,
                start_new_session=True,
            )
        except subprocess.TimeoutExpired:
            return _failed_check(f"the check has not ended within {CHECK_S:g} s")
        try:
            found = json.loads(done.stdout)
            problems, notes = _problem_pairs(found["problems"]), _problem_pairs(found["notes"])
        except (ValueError, KeyError, TypeError):
            lines = done.stderr.decode("utf-8", "replace").strip().splitlines()
            return _failed_check(lines[-1] if lines else f"the check ended with {done.returncode}")
        return TaskCheck(ok=not problems and done.returncode == 0, problems=problems, notes=notes)


def _failed_check(message: str) -> TaskCheck:
    return TaskCheck(ok=False, problems=[("", plain(mask_text(message), _LETTERS))])


def _problem_pairs(problems: Sequence[Any]) -> list[tuple[str, str]]:
    """Return (place, message) of problems, cut and masked. Raises KeyError or TypeError."""
    return [
        (
            plain(str(problem["place"]), _LETTERS),
            plain(mask_text(str(problem["message"])), _LETTERS),
        )
        for problem in problems[:_PROBLEMS]
    ]


def _is_file(path: Path) -> bool:
    try:
        return stat.S_ISREG(path.lstat().st_mode)
    except OSError:
        return False
