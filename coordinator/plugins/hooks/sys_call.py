"""Hook `sys_call`: runs a command on the coordinator's host."""

from __future__ import annotations

import contextlib
import json
import os
import shlex
import signal
import subprocess
import tempfile
from collections.abc import Mapping
from typing import IO, Any, ClassVar

from osbench.plugin import hook
from osbench.plugin.durations import DURATION
from osbench.plugin.formatting import mask_text

#: Default timeout of a command, seconds.
TIMEOUT_S = 60.0
#: Time from SIGTERM to SIGKILL, seconds.
GRACE_S = 1.0
#: Bytes of stdout and of stderr that are read.
READ = 64 * 1024


class SysCall(hook.Hook):
    """Runs a command: a string that is split as by a shell, but run without one.

    If it returns 0, and stdout is a JSON object with `additive` or `complete`, that is the output,
    else a text with return code, stdout and stderr. Other return codes and timeouts are failures.
    """

    NAME: ClassVar[str] = "sys_call"
    CONFIG_SCHEMA: ClassVar[Mapping[str, Any]] = {
        "anyOf": [
            {"type": "string", "minLength": 1, "examples": ["systemctl restart keystone"]},
            {
                "type": "object",
                "properties": {
                    "command": {"type": "string", "minLength": 1},
                    "timeout": {
                        **DURATION,
                        "exclusiveMinimum": 0,
                        "default": TIMEOUT_S,
                        "description": "seconds after which the command is ended",
                    },
                },
                "required": ["command"],
                "additionalProperties": False,
            },
        ]
    }

    def __init__(self, config: Any) -> None:
        super().__init__(config)
        given: Mapping[str, Any] = {"command": config} if isinstance(config, str) else config
        self._command: str = given["command"]
        self._timeout_s = float(given.get("timeout", TIMEOUT_S))
        self._process: subprocess.Popen[bytes] | None = None
        self._stopping = False

    @classmethod
    def check_config(cls, config: Any) -> list[str]:
        """Return a message if the command is empty or cannot be split into words, else []."""
        try:
            words = shlex.split(cls(config)._command)
        except ValueError as error:
            return [f"is not a command: {error}"]
        return [] if words else ["is not a command: it is empty"]

    def run(self, event: hook.Event) -> Mapping[str, Any]:
        """Run the command, wait for its end, and return its output as charts.

        Raises Failed, with the output, if it returns another code than 0 or exceeds its timeout,
        after which it is ended. Raises OSError if it cannot be started.
        """
        # files and not pipes: a grandchild that keeps a pipe open would block us
        with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
            self._process = subprocess.Popen(  # noqa: S603 - the task's author asks for it
                shlex.split(self._command),
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=err,
                start_new_session=True,
            )
            if self._stopping:
                self.stop()
            try:
                code = self._process.wait(self._timeout_s)
            except subprocess.TimeoutExpired:
                self.stop()
                raise hook.Failed(
                    f"the command had not ended after {self._timeout_s:g} s; raise its timeout",
                    self._text("none", out, err),
                ) from None
            if code:
                raise hook.Failed(f"the command returned {code}", self._text(str(code), out, err))
            return _charts(_start(out)) or self._text("0", out, err)

    def stop(self) -> None:
        """End a running command and its child processes: SIGTERM, SIGKILL at most GRACE_S s later.

        Waits for its end. A command that starts later is ended at once. Called in another thread,
        or after a timeout.
        """
        self._stopping = True
        process = self._process
        if process is None or process.poll() is not None:
            return
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGTERM)
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(GRACE_S)
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()

    def _text(self, code: str, out: IO[bytes], err: IO[bytes]) -> Mapping[str, Any]:
        texts = [mask_text(_start(file)) or "(empty)" for file in (out, err)]
        chart = {
            "title": "System call",
            "chart_plugin": "TextArea",
            "description": f"Command: {mask_text(self._command)}",
            "data": [f"Return code: {code}", f"Stdout: {texts[0]}", f"Stderr: {texts[1]}"],
        }
        return {"additive": [], "complete": [chart]}


def _start(file: IO[bytes]) -> str:
    file.seek(0)
    text = file.read(READ).decode("utf-8", errors="replace")
    return f"{text}\n(cut: only {READ:,} bytes are read)" if file.read(1) else text


def _charts(text: str) -> Mapping[str, Any] | None:
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        return None
    named = isinstance(found, dict) and bool(found.keys() & {"additive", "complete"})
    return {"additive": [], "complete": [], **found} if named else None
