"""The tutorial for a first cloud, word by word."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from helpers.commands import LENIENT, environment
from helpers.readme import REPOSITORY, blocks
from servers import folder
from services.lab import Lab

pytestmark = [pytest.mark.lab, pytest.mark.timeout(900)]


@pytest.fixture
def home(keystone: Lab) -> Iterator[Path]:
    """The home of a user who has the file that a cloud gives its users."""
    with folder() as path:
        (path / "openrc").write_text(keystone.openrc())
        yield path


def test_a_cloud_is_loaded_as_readme_says(home: Path, keystone: Lab) -> None:
    commands = "\n".join(block.text for block in blocks("openstack", "docs/first-cloud.md"))

    done = subprocess.run(
        ["bash", "-ec", commands],
        cwd=REPOSITORY,
        env=environment(home) | LENIENT,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )

    assert done.returncode == 0, done.stdout + done.stderr
    assert "Exit code 0" in done.stdout
    assert "tracing     on, 40 iterations traced" in done.stdout
    *_, explained = done.stdout.split("Exit code 0")
    assert "slow traces" in explained
    assert keystone.password not in done.stdout + done.stderr
