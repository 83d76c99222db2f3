"""The core alone, without the folder `edges`, runs tasks and shows runs that edges have watched."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from helpers.installations import DUMMY, install_wheel
from helpers.runs import Site, site
from servers import redis_server

# it installs a wheel
pytestmark = [pytest.mark.functional, pytest.mark.dear]

#: An iteration in ten is slow.
UNEVEN = """
import itertools
import time

from osbench.plugin import atomic, scenario

NUMBERS = itertools.count()


class Uneven(scenario.Scenario):
    @scenario.configure(name="Uneven.wait")
    def wait(self):
        with atomic.ActionTimer(self, "wait"):
            time.sleep(0.08 if next(NUMBERS) % 10 == 0 else 0.002)
"""


@pytest.fixture(scope="module")
def programs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the commands of the core."""
    return install_wheel(tmp_path_factory.mktemp("core"), edges=False)


@pytest.fixture
def here(programs: Path) -> Iterator[Site]:
    """The home of a user of the core."""
    with site(programs=programs) as found:
        yield found


def test_help_names_all_commands_and_a_missing_one_says_so(here: Site) -> None:
    helped = here.coord("--help")
    missing = here.coord("trace", "explain", "last")

    assert helped.code == 0, helped.err
    assert "osbench-coord run" in helped.out
    assert missing.code == 2
    assert "No such command 'trace'" in missing.err
    assert "Traceback" not in missing.err


def test_a_record_of_a_cloud_names_the_missing_part_and_one_of_services_needs_none(
    here: Site,
) -> None:
    admin = {"username": "ann", "password": "pw-hidden", "project_name": "ops"}
    cloud = {"openstack": {"auth_url": "http://127.0.0.1:1/v3", "admin": admin}}
    file = here.write("cloud.json", json.dumps(cloud))
    refused = here.coord("deployment", "create", "--name", "lab", "--file", str(file))
    here.deployment({"osbench": {}})
    done = here.run(here.task(DUMMY))

    assert refused.code == 2
    assert "entry point 'openstack' of the group osbench.cloud" in refused.err
    assert "Traceback" not in refused.err
    assert done.code == 0, done.err


def test_a_run_an_iteration_and_a_report(here: Site) -> None:
    done = here.run(here.task(DUMMY), "--report", "report.html")
    once = here.coord("run", "--once", here.task(DUMMY))
    own = here.coord("report", "last", "--csv=r.csv", "--json=r.json", "--openmetrics=r.prom")
    missing = [here.coord("report", "last", f"--{name}=r") for name in ("junit", "csv-times")]

    assert done.code == 0, done.err
    assert done.sums["ok"] == 10
    assert "</html>" in (here.home / "report.html").read_text("utf-8")
    assert once.code == 0, once.err
    assert own.code == 0, own.err
    for found, name in zip(missing, ("junit", "csv-times"), strict=True):
        assert found.code == 2
        assert f"entry point '{name}' of the group osbench.exporter" in found.err
        assert "Traceback" not in found.err


def test_stages_have_no_staircase_and_a_stored_one_is_shown(here: Site, programs: Path) -> None:
    levels = [{"duration": duration, "users": users} for users in (1, 2) for duration in (0, 1)]
    task = here.task(
        {
            "scenario": {"Dummy.dummy": {"sleep": 0.02}},
            "runner": {"user_stages": {"stages": levels}},
        }
    )

    own = here.run(task)
    here.programs = None
    stored = here.run(task)
    here.programs = programs
    shown = here.coord("results", "last", "--details")

    assert own.code in (0, 4), own.err
    assert own.result["workloads"][0]["staircase"] is None
    assert len(own.result["workloads"][0]["stages"]) == len(stored.result["workloads"][0]["stages"])
    assert shown.code == 0, shown.err
    sentence = stored.result["workloads"][0]["staircase"]["fit_sentence"]
    assert sentence in " ".join(shown.out.split())


def test_a_run_that_was_watched_is_shown(here: Site, programs: Path) -> None:
    plugin = here.write("uneven.py", UNEVEN)
    task = here.task(
        {
            "scenario": {"Uneven.wait": {}},
            "runner": {"constant": {"times": 800, "concurrency": 2}},
        }
    )
    with redis_server(password="functional") as redis:
        store = {"profiler_hmac_key": "a key", "profiler_conn_str": redis.url}
        here.deployment({"osbench": store})
        here.programs = None
        watched = here.run(task, "--plugin-path", str(plugin))
    assert watched.code in (0, 4), watched.err
    explanation = watched.result["workloads"][0]["tracing"]["explanation"]
    # the text depends on how busy the machine is
    assert explanation

    here.programs = programs
    results = here.coord("results", "last")
    report = here.coord("report", "last", "--html", str(here.home / "page.html"))

    assert results.code == 0, results.err
    assert explanation in " ".join(results.out.split())
    assert report.code == 0, report.err
    assert "Why the slow ones are slow" in (here.home / "page.html").read_text("utf-8")
