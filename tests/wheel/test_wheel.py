"""osbench as `pip install` leaves it: all commands, and hosts with differently installed osbench.

All other tests run the checkout, where links, paths and package data differ.
"""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from helpers.installations import DUMMY, REPOSITORY, install_wheel, run_of_two_installations
from helpers.runs import Site, site
from osbench import __version__
from servers import RedisServer, redis_server

pytestmark = pytest.mark.functional

#: The variable that names the folder of commands to test instead of those of a new wheel.
PROGRAMS = "OSBENCH_TESTED_PROGRAMS"


@pytest.fixture(scope="module")
def programs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the wheel's commands; a release names one that it has installed."""
    given = os.environ.get(PROGRAMS)
    return Path(given) if given else install_wheel(tmp_path_factory.mktemp("wheel"))


@pytest.fixture(scope="module")
def here(programs: Path) -> Iterator[Site]:
    """The home of a user of the wheel."""
    with site(programs=programs) as found:
        yield found


@pytest.fixture
def redis() -> Iterator[RedisServer]:
    """An empty Redis that hosts share."""
    with redis_server(password="functional") as server:
        yield server


def test_the_commands_are_those_of_the_wheel(here: Site, programs: Path) -> None:
    code = "import osbench.coordinator.main as main; print(main.__file__)"

    printed = subprocess.run(
        [programs / "python", "-c", code], cwd=here.home, capture_output=True, check=True, text=True
    )

    assert str(programs.parent) in printed.stdout
    assert not Path(printed.stdout.strip()).is_relative_to(REPOSITORY)
    assert here.coord("--version").out.split()[-1] == __version__


def test_the_description_on_an_index_has_no_links_into_the_repository(programs: Path) -> None:
    code = (
        "from importlib.metadata import metadata; found = metadata('osbench'); "
        "print('Author:', found['Author'], found['Description'] or found.get_payload())"
    )

    printed = subprocess.run(
        [programs / "python", "-c", code], capture_output=True, check=True, text=True
    ).stdout

    assert "Author: The osbench authors" in printed
    assert "osbench is a load generator" in printed
    assert re.findall(r"\]\((?!https?://)", printed) == []


def test_help_plug_ins_and_validation(here: Site) -> None:
    helped = here.coord("--help")
    listed = here.coord("plugin", "list", "scenario")
    valid = here.coord("validate", str(REPOSITORY / "samples" / "tasks" / "demo.yaml"))

    assert (helped.code, listed.code, valid.code) == (0, 0, 0), helped.err + listed.err + valid.err
    assert "osbench-coord run" in helped.out
    assert "Dummy.dummy" in listed.out
    assert "NovaServers.boot_and_delete_server" in listed.out
    assert "OK, 2 subtasks" in valid.out


def test_a_run_in_local_mode_and_its_report(here: Site) -> None:
    done = here.run(here.task(DUMMY), "--report", "report.html")

    assert done.code == 0, done.err
    assert done.sums["ok"] == 10
    page = (here.home / "report.html").read_text("utf-8")
    assert "echarts" in page
    assert "</html>" in page
    here.await_nothing_left()


@pytest.mark.parametrize("coordinator", ["wheel", "checkout"])
def test_a_wheel_and_a_checkout_make_one_run(
    programs: Path, redis: RedisServer, coordinator: str
) -> None:
    sides = {"wheel": programs, "checkout": None}
    (worker,) = set(sides) - {coordinator}

    done = run_of_two_installations(redis, sides[coordinator], sides[worker])

    assert done.code == 0, done.err
    assert done.sums["ok"] == 10
