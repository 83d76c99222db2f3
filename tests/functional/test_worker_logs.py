"""What a scenario prints and logs, where an iteration failed, and why."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml

from helpers.commands import coord
from helpers.runs import Cluster, site
from servers import redis_server

pytestmark = pytest.mark.functional

SCENARIO = """
import logging

from osbench.plugin import atomic, scenario

LOG = logging.getLogger("shop")


class Shop(scenario.Scenario):
    @scenario.configure(name="Shop.buy")
    def buy(self, password):
        with atomic.ActionTimer(self, "pay"):
            print("paying with", password, "for", self.context["iteration"])
        LOG.warning("token=planted-token of %d", self.context["iteration"])
        LOG.info("not at this level")
        if self.context["iteration"] % 2 == 0:
            raise RuntimeError("sold out")
"""

TASK = {
    "version": 2,
    "title": "Shop",
    "subtasks": [
        {
            "title": "Buy",
            "scenario": {"Shop.buy": {"password": "planted-word"}},
            "runner": {"constant": {"times": 4, "concurrency": 2}},
        }
    ],
}


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A home with a finished run."""
    folder = tmp_path_factory.mktemp("home")
    (folder / "shop.py").write_text(SCENARIO, encoding="utf-8")
    (folder / "task.yaml").write_text(yaml.safe_dump(TASK), encoding="utf-8")
    done = coord(folder, "run", "task.yaml", "--plugin-path", "shop.py", "-q")
    assert "4 = 2 + 2" in " ".join(done.stdout.split()), done.stdout + done.stderr
    return folder


def test_logs_shows_what_workers_printed_and_logged_by_iteration(home: Path) -> None:
    text = coord(home, "logs")
    found = [json.loads(line) for line in coord(home, "logs", "--json").stdout.splitlines()]

    assert "Shop.buy 3 stdout: paying with *** for 3" in text.stdout
    assert "Shop.buy 3 WARNING: shop: token=*** of 3" in text.stdout
    assert "not at this level" not in text.stdout
    assert sorted((one["iteration"], one["source"]) for one in found) == [
        (number, source) for number in (1, 2, 3, 4) for source in ("WARNING", "stdout")
    ]
    assert all(one["at"] > 1.7e9 for one in found)
    for path in (home / ".osbench" / "runs").rglob("*"):
        assert not path.is_file() or b"planted" not in path.read_bytes(), path


def test_logs_of_one_worker(home: Path) -> None:
    first = json.loads(coord(home, "logs", "--json").stdout.splitlines()[0])

    mine = coord(home, "logs", "--worker", first["worker"])
    nobody = coord(home, "logs", "--worker", "elsewhere")

    assert first["worker"] in mine.stdout
    assert nobody.returncode == 2
    assert "worker 'elsewhere' of run" in nobody.stderr
    assert first["worker"] in nobody.stderr


def test_a_failed_iteration_is_shown_with_traceback_actions_and_log(home: Path) -> None:
    text = coord(home, "results", "--iteration", "2").stdout
    (found,) = json.loads(coord(home, "results", "--iteration", "2", "--json").stdout)["iterations"]
    well = coord(home, "results", "--iteration", "1").stdout
    absent = coord(home, "results", "--iteration", "9")

    assert "0. Shop.buy  iteration 2: failed after " in text
    assert "error     RuntimeError: sold out" in text
    assert 'shop.py", line ' in text and 'raise RuntimeError("sold out")' in text
    assert "actions   pay  " in text
    assert "stdout: paying with *** for 2" in text
    assert (found["outcome"], found["error"]["type"]) == ("failed", "RuntimeError")
    assert [action["name"] for action in found["actions"]] == ["pay"]
    assert len(found["log"]) == 2
    assert "iteration 1: ok after " in well
    assert "Traceback" not in well
    assert absent.returncode == 2
    assert "has reported an iteration 9" in absent.stderr


def test_errors_are_shown_with_their_tracebacks(home: Path) -> None:
    text = coord(home, "results", "--errors").stdout
    found = json.loads(coord(home, "results", "--errors", "--json").stdout)["errors"]

    assert "2 x RuntimeError: sold out" in text
    assert "first in iteration 2: osbench-coord results --iteration 2" in text
    assert 'raise RuntimeError("sold out")' in text
    assert found[0]["errors"][0]["count"] == 2


def test_workers_of_other_hosts_are_followed_to_the_end_of_the_run() -> None:
    slow = SCENARIO.replace("LOG.warning(", "time.sleep(0.05)\n        LOG.warning(", 1)
    with redis_server() as redis, site() as here:
        cluster = Cluster(here, redis)
        path = str(here.write("shop.py", f"import time\n{slow}"))
        for label in ("north", "south"):
            options = ("--processes", "1", "--label", label, "--plugin-path", path)
            cluster.start_worker(*options)
        cluster.await_idle(2)
        task = here.task(
            {
                "scenario": {"Shop.buy": {"password": "planted-word"}},
                "runner": {"constant_for_duration": {"duration": 3, "concurrency": 2}},
            }
        )

        run = here.start("osbench-coord", "run", task, "--plugin-path", path, "--quiet")
        run.wait_for(lambda: list(here.data.glob("runs/*/status.json")))
        followed = here.coord("logs", "--follow", "--json")
        done = run.finish()
        mine = here.coord("logs", "--worker", "north", "--json")
        again = here.coord("logs", "--json")

    assert done.code in (0, 1), done.err
    assert followed.out == again.out
    entries = [json.loads(line) for line in again.out.splitlines()]
    workers = {one["worker"].partition(" ")[0] for one in entries}
    assert workers == {"north", "south"}
    assert {json.loads(line)["worker"].partition(" ")[0] for line in mine.out.splitlines()} == {
        "north"
    }
    assert "planted" not in again.out + again.err
