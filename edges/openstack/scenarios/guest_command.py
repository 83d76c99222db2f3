"""The argument `command` of scenarios that run a command in a server, as Rally has it."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

#: Keys of the argument.
_KEYS = (
    "script_file",
    "script_inline",
    "interpreter",
    "remote_path",
    "local_path",
    "command_args",
)
#: Keys of a word, or of a list of words.
_WORDS = ("interpreter", "remote_path")
#: Largest script that is read from a file: all workers get it, bytes.
MOST_SCRIPT = 1024 * 1024


@dataclass(frozen=True, kw_only=True)
class GuestCommand:
    """A command for the shell of a server, with its input, and a file to upload before."""

    line: str
    script: str = ""
    #: Path on the host of the worker and path in the server; "" without an upload.
    local_path: str = ""
    remote_path: str = ""

    @classmethod
    def of(cls, command: Mapping[str, Any]) -> GuestCommand:
        """Return the command of an argument without `command_problems`. Raises OSError.

        The file `script_file` is read.
        """
        words = [*_list(command, "interpreter"), *_list(command, "remote_path")]
        words += [str(word) for word in command.get("command_args") or ()]
        script = str(command.get("script_inline") or "")
        if command.get("script_file"):
            script = _home_path(command["script_file"]).read_text("utf-8")
        uploads = bool(command.get("local_path"))
        return cls(
            line=shlex.join(words),
            script=script,
            local_path=str(_home_path(command["local_path"])) if uploads else "",
            remote_path=_list(command, "remote_path")[-1] if uploads else "",
        )


def command_problems(command: Any) -> list[str]:
    """Return messages on errors in the argument `command`; empty if it can be run."""
    if not isinstance(command, Mapping):
        return [
            "argument command: must be an object, such as {remote_path: /bin/true}, got"
            f" {command!r}"
        ]
    return [f"argument command: {problem}" for problem in _problems(command)]


def _problems(command: Mapping[str, Any]) -> Iterator[str]:
    yield from (
        f"unknown key {key}; there are {', '.join(_KEYS)}" for key in command.keys() - _KEYS
    )
    for key in _WORDS:
        if not isinstance(command.get(key) or [], str | Sequence):
            yield f"{key} must be a string or a list of strings, got {command[key]!r}"
            return
    interpreter = _list(command, "interpreter")
    if command.get("script_file") and command.get("script_inline"):
        yield "script_file and script_inline cannot be combined: give one script"
    if not interpreter and not command.get("remote_path"):
        yield "has no program: give interpreter with a script, or remote_path"
    if command.get("local_path") and not command.get("remote_path"):
        yield "local_path needs remote_path, its place in the server"
    elif interpreter and command.get("local_path"):
        uploaded = _list(command, "remote_path")
        if uploaded[-1] != interpreter[-1]:
            yield f"an uploaded interpreter must be at remote_path, {interpreter[-1]}"
    for key in ("script_file", "local_path"):
        if command.get(key):
            yield from _file_problems(key, _home_path(command[key]))


def _file_problems(key: str, path: Path) -> Iterator[str]:
    if not path.is_file():
        yield f"cannot read {path}: No such file; correct {key}"
    elif key == "script_file" and path.stat().st_size > MOST_SCRIPT:
        yield f"{key}: {path} is larger than {MOST_SCRIPT // 1024} KiB; upload it as local_path"


def _list(command: Mapping[str, Any], key: str) -> list[str]:
    value = command.get(key) or []
    return [value] if isinstance(value, str) else [str(word) for word in value]


def _home_path(path: Any) -> Path:
    return Path(str(path)).expanduser()
