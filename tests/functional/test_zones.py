"""Loads with shares of zones and rows by server, on real workers and over real connections."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterator
from typing import Any, ClassVar

import pytest

from helpers.json_server import LoopbackServer, QuietHandler, serving
from helpers.readme import REPOSITORY
from helpers.runs import Cluster, checked, site
from servers import RedisServer

pytestmark = pytest.mark.functional

#: The sample of the page: 30 % of 1,000 arrivals from one zone, 70 % from another.
SAMPLE = "title: Two zones\n"
ARRIVALS = 1000
GET = {"name": "look", "path": "/", "expect": [200, 500]}


class Backends(QuietHandler):
    """Responds as each of three backends in turn; the third one fails."""

    turns: ClassVar[Iterator[str]] = itertools.cycle(("b1", "b2", "b3"))
    served: ClassVar[Counter[str]] = Counter()

    def do_GET(self) -> None:
        name = next(self.turns)
        self.served[name] += 1
        self.answer(500 if name == "b3" else 200, {}, **{"X-Backend": name})


@pytest.fixture
def cluster(redis: RedisServer) -> Iterator[Cluster]:
    with site() as here:
        found = Cluster(here, redis)
        here.configure(found.messaging)
        for label in ("eu/rack-1", "us", "us/rack-2", "elsewhere"):
            found.start_worker("--label", label)
        found.await_idle(4)
        yield found


def rows(workload: dict[str, Any], number: int = 0) -> dict[str, dict[str, Any]]:
    """The rows of a breakdown of the report, by name."""
    return {one["name"]: one for one in workload["breakdowns"][number]["rows"]}


def test_arrivals_go_to_zones_by_share_and_the_report_has_a_row_of_each(cluster: Cluster) -> None:
    page = (REPOSITORY / "docs" / "load.md").read_text(encoding="utf-8")
    (text,) = [part for part in page.split("```") if SAMPLE in part]
    task = cluster.site.write("zones.yaml", text.removeprefix("yaml\n"))
    done = cluster.site.coord("run", "--json", str(task))

    (found,) = done.result["workloads"]
    assert checked(found)["ok"] == ARRIVALS
    by_label = {one["label"]: one["iterations"] for one in found["workers"]}
    assert by_label == {"eu/rack-1": 300, "us": 350, "us/rack-2": 350}
    by_zone = rows(found)
    assert {name: (one["share"], one["asked"], one["ok"]) for name, one in by_zone.items()} == {
        "eu": (0.3, 0.3, 300),
        "us": (0.7, 0.7, 700),
    }
    assert all(0 < one["p50"] <= one["p95"] <= one["p99"] for one in by_zone.values())
    shown = cluster.site.coord("results", done.result["run_id"])
    assert "eu: 30.0 % of iterations (30 % planned), 300 ok" in shown.out


@pytest.mark.parametrize("method", ["check_request", "flow"])
def test_requests_are_counted_by_the_backend_that_responded(cluster: Cluster, method: str) -> None:
    Backends.served.clear()
    with serving(LoopbackServer(Backends)) as server:
        scenarios = {
            "check_request": {"HttpRequests.check_request": {"url": server.url, "method": "GET"}},
            "flow": {"HttpFlow.run": {"base": server.url, "steps": [GET]}},
        }
        workload = {
            "scenario": scenarios[method],
            "runner": {"rps": {"rps": 100, "times": 150}},
            "http": {"by": "X-Backend"},
            "sla": {"failure_rate": {"max": 100}},
        }
        done = cluster.site.coord("run", "--json", cluster.site.task(workload))

        (found,) = done.result["workloads"]
        by = found["breakdowns"][0]
        assert (by["by"], by["of"]) == ("X-Backend", "requests")
        assert {name: one["ok"] + one["failed"] for name, one in rows(found).items()} == (
            dict(Backends.served)
        )
        assert {name: one["failed"] > 0 for name, one in rows(found).items()} == {
            "b1": False,
            "b2": False,
            "b3": True,
        }
        address = {**workload, "http": {"by": "address"}}
        done = cluster.site.coord("run", "--json", cluster.site.task(address))

        assert list(rows(done.result["workloads"][0])) == [server.url.removeprefix("http://")]
