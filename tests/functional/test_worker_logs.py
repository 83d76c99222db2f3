"""What a scenario prints and logs, where an iteration failed, and why."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator

import pytest

from helpers.runs import Cluster, Site, site
from servers import redis_server

pytestmark = pytest.mark.functional

SCENARIO = """
import logging
import time

from osbench.plugin import atomic, scenario

LOG = logging.getLogger("shop")


class Shop(scenario.Scenario):
    @scenario.configure(name="Shop.buy")
    def buy(self, password):
        with atomic.ActionTimer(self, "pay"):
            print("paying with", password, "for", self.context["iteration"])
        time.sleep(0.05)
        LOG.warning("token=planted-token of %d", self.context["iteration"])
        LOG.info("not at this level")
        if self.context["iteration"] % 2 == 0:
            raise RuntimeError("sold out")
"""

TIMES = 40


@pytest.fixture(scope="module")
def here() -> Iterator[Site]:
    """A home with a finished run on two hosts, whose log was followed from its begin."""
    with redis_server() as redis, site() as found:
        cluster = Cluster(found, redis)
        path = str(found.write("shop.py", SCENARIO))
        for label in ("north", "south"):
            options = ("--processes", "1", "--label", label, "--plugin-path", path)
            cluster.start_worker(*options)
        cluster.await_idle(2)
        task = found.task(
            {
                "title": "Buy",
                "scenario": {"Shop.buy": {"password": "planted-word"}},
                "runner": {"constant": {"times": TIMES, "concurrency": 2}},
            }
        )
        run = found.begin("osbench-coord", "run", task, "--plugin-path", path, "-q")
        run.wait_for(lambda: list(found.data.glob("runs/*/status.json")))
        followed = found.coord("logs", "--follow", "--json")
        done = run.finish()
        assert "40 planned = 20 ok + 20 failed" in " ".join(done.out.split()), done.out + done.err
        assert followed.out == found.coord("logs", "--json").out
        yield found


def test_logs_shows_what_workers_printed_and_logged_by_iteration(here: Site) -> None:
    text = here.coord("logs")
    found = [json.loads(line) for line in here.coord("logs", "--json").out.splitlines()]

    assert "Shop.buy 3 stdout: paying with *** for 3" in text.out
    assert "Shop.buy 3 WARNING: shop: token=*** of 3" in text.out
    assert "not at this level" not in text.out
    assert sorted((one["iteration"], one["source"]) for one in found) == [
        (number, source) for number in range(1, TIMES + 1) for source in ("WARNING", "stdout")
    ]
    assert all(one["at"] > 1.7e9 for one in found)
    for path in (here.data / "runs").rglob("*"):
        assert not path.is_file() or b"planted" not in path.read_bytes(), path


def test_logs_of_one_worker(here: Site) -> None:
    entries = [json.loads(line) for line in here.coord("logs", "--json").out.splitlines()]
    # label (host:pid)
    first = entries[0]["worker"]

    mine = here.coord("logs", "--worker", first.partition("(")[2].rstrip(")"))
    nobody = here.coord("logs", "--worker", "elsewhere")
    north = here.coord("logs", "--worker", "north", "--json")

    assert first in mine.out
    assert {one["worker"].partition(" ")[0] for one in entries} == {"north", "south"}
    labels = {json.loads(line)["worker"].partition(" ")[0] for line in north.out.splitlines()}
    assert labels == {"north"}
    assert nobody.code == 2
    assert "worker 'elsewhere' of run" in nobody.err
    assert first in nobody.err


def test_a_failed_iteration_is_shown_with_traceback_actions_and_log(here: Site) -> None:
    text = here.coord("results", "--iteration", "2").out
    (found,) = json.loads(here.coord("results", "--iteration", "2", "--json").out)["iterations"]
    well = here.coord("results", "--iteration", "1").out
    absent = here.coord("results", "--iteration", "99")

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
    assert absent.code == 2
    assert "has reported an iteration 99" in absent.err


def test_errors_are_shown_with_their_tracebacks(here: Site) -> None:
    text = here.coord("results", "--errors").out
    found = json.loads(here.coord("results", "--errors", "--json").out)["errors"]

    assert "20 x RuntimeError: sold out" in text
    assert re.search(r"first in iteration (\d+): osbench-coord results --iteration \1", text)
    assert 'raise RuntimeError("sold out")' in text
    assert found[0]["errors"][0]["count"] == 20
