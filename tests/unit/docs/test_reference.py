"""docs/task-reference.md is what the schemas say."""

from __future__ import annotations

import subprocess
import sys

import pytest

from helpers.readme import REPOSITORY
from osbench.common.plugin.plugins import Plugins

PAGE = REPOSITORY / "docs" / "task-reference.md"


def test_the_page_is_what_the_module_writes() -> None:
    written = subprocess.run(
        [sys.executable, "-m", "osbench.coordinator.front.cli.reference"],
        check=True,
        capture_output=True,
        text=True,
    )

    assert PAGE.read_text("utf-8") == written.stdout


@pytest.mark.parametrize("kind", ["runner", "sla"])
def test_every_key_of_a_plugin_says_what_it_means(kind: str) -> None:
    plugins = Plugins()

    for name in plugins.names(kind):
        schema = plugins.get(kind, name).CONFIG_SCHEMA
        for key, value in schema.get("properties", {}).items():
            assert value.get("description"), (name, key)
