"""Commands that tests fork from a process with their imports do what those of a shell do."""

from __future__ import annotations

from pathlib import Path

import pytest

from helpers import forked_commands
from helpers.commands import environment

pytestmark = pytest.mark.functional

SECONDS = 120.0


@pytest.mark.parametrize(
    "arguments",
    [
        ["runs", "lisst"],
        ["run", "--scenario", "Dummy.dummy", "--times", "1", "--sla", "max_s=oops"],
    ],
    ids=["mistyped", "bad value"],
)
def test_code_and_output_are_those_of_a_command_of_a_shell(
    tmp_path: Path, arguments: list[str]
) -> None:
    env = environment(tmp_path)

    found = [
        # a variable that Python reads at its start cannot be had from a template
        forked_commands.run(arguments, folder=tmp_path, env=env | more, within_s=SECONDS)
        for more in ({}, {"PYTHONNODEBUGRANGES": "1"})
    ]

    forked, started = ((one.returncode, one.stdout, one.stderr) for one in found)
    assert forked == started
    assert any(forked)


def test_a_command_that_does_not_end_is_ended(tmp_path: Path) -> None:
    run = ["run", "--scenario", "Dummy.dummy", "--arg", "sleep=600", "--times", "1"]

    with pytest.raises(AssertionError, match="does not end within"):
        forked_commands.run(run, folder=tmp_path, env=environment(tmp_path), within_s=2.0)
