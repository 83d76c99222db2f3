"""Workers of local mode import first; their arguments come later, or never."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

COMMAND = [sys.executable, "-P", "-m", "osbench.worker.main", "--prepared"]


def prepared(sent: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        COMMAND, input=sent, capture_output=True, text=True, timeout=120, check=False
    )


@pytest.mark.parametrize("sent", ["", '{"arguments": ["--ver'], ids=["nothing", "cut off"])
def test_without_arguments_it_ends_and_says_nothing(sent: str) -> None:
    done = prepared(sent)

    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_it_goes_on_as_the_command_with_arguments_and_environment_that_come() -> None:
    environment = {**os.environ, "OS_MESSAGING__REDIS_URL": "nonsense:"}
    order = {"arguments": ["--processes", "1"], "environment": environment, "modules": ["this"]}

    done = prepared(json.dumps(order) + "\n")

    assert done.returncode == 2
    assert "OS_MESSAGING__REDIS_URL" in done.stderr
    assert "Traceback" not in done.stderr
    # imported before the command went on
    assert "Zen of Python" in done.stdout
