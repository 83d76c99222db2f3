"""The live table of a run whose stderr is a terminal: a pseudo-terminal here."""

from __future__ import annotations

import fcntl
import os
import re
import struct
import subprocess
import termios
from collections.abc import Iterator
from pathlib import Path

import pytest

from helpers.commands import LENIENT, environment
from servers.child import PATIENCE_S

pytestmark = pytest.mark.functional

ROWS, COLUMNS = 40, 110


class Terminal:
    """What a terminal would get."""

    def __init__(self, home: Path, *command: str) -> None:
        self._own, other = os.openpty()
        fcntl.ioctl(other, termios.TIOCSWINSZ, struct.pack("HHHH", ROWS, COLUMNS, 0, 0))
        self.process = subprocess.Popen(
            command,
            cwd=home,
            env=environment(home) | LENIENT | {"TERM": "xterm-256color"},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=other,
            text=True,
            start_new_session=True,
        )
        os.close(other)
        self.text = ""

    def read(self, until: str = "") -> None:
        """Read until a pattern was shown; without one, until the end."""
        while not (until and re.search(until, self.text, re.S)):
            try:
                part = os.read(self._own, 1 << 16)
            except OSError:
                part = b""
            if not part:
                assert not until, self.text
                return
            # colours and movements of the cursor left out
            self.text += re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", part.decode("utf-8", "replace"))

    def close(self) -> None:
        """End the command if it still runs."""
        self.process.kill()
        self.process.communicate()
        os.close(self._own)


@pytest.fixture
def terminal(tmp_path: Path) -> Iterator[Terminal]:
    found = Terminal(
        tmp_path,
        *("osbench-coord", "run", "--scenario", "Dummy.dummy", "--arg", "sleep=0.05"),
        *("--concurrency", "4", "--duration", "12", "--json"),
    )
    try:
        yield found
    finally:
        found.close()


def test_the_table_shows_figures_and_a_row_a_worker_until_the_run_ends(terminal: Terminal) -> None:
    terminal.read(r"users in use.*\d of \d +\d[\d.]*/s")
    terminal.read()
    code = terminal.process.wait(PATIENCE_S)

    assert code == 0
    text = terminal.text
    assert re.search(r"Dummy\.dummy  running \d", text)
    for head in ("rate", "service p50", "p95", "p99", "failed", "running", "start lag p99"):
        assert head in text
    # some figure of each kind: done, a rate, a percentile, a criterion, a worker
    assert re.search(r"[\d,]+ done", text)
    assert re.search(r"\d+(\.\d+)?/s +([2-9]\d\.\d|\d{3,})ms", text)
    assert "✓ failure_rate: 0 of" in text
    worker = rf"{re.escape(os.uname().nodename)}:\d+ +\d of \d +\S+/s +\d+% +\S+ +running"
    assert len({match.split()[0] for match in re.findall(worker, text)}) >= 1
    # no plain lines beside it
    assert "0 failed, " not in text


def test_without_a_terminal_there_are_lines(tmp_path: Path) -> None:
    done = subprocess.run(
        ["osbench-coord", "run", "--scenario", "Dummy.dummy", "--duration", "3", "--json"],
        cwd=tmp_path,
        env=environment(tmp_path) | LENIENT,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=True,
    )

    lines = re.findall(r"^\[ *\d+\.\d s\] Dummy\.dummy running: .*$", done.stderr, re.M)
    assert lines
    assert "\x1b" not in done.stderr
    assert "users in use" not in done.stderr
