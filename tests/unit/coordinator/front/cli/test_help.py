"""The text of `--help` of every command: a golden file for each command or group of them."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from helpers.cli_commands import COMMANDS
from helpers.help_texts import help_texts


@pytest.fixture(scope="module")
def texts() -> dict[str, str]:
    return help_texts()


@pytest.mark.parametrize("name", ("osbench-coord", *COMMANDS, "osbench-worker"))
def test_help_of_a_command_and_of_those_below_it(
    name: str, texts: dict[str, str], golden: Callable[[str, str], None]
) -> None:
    golden(f"help/{name}.txt", texts[name])
