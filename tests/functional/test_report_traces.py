"""What a report says of the traces of a real run, read when services and trace store are gone."""

from __future__ import annotations

import html
import json
import re
from collections.abc import Iterator
from typing import Any

import pytest

from helpers.runs import Site, site
from helpers.shown_page import page_of
from osbench.coordinator.report.run_facts import read_facts
from osbench.coordinator.results.storage.run_directory import RunDirectory
from osbench.edges.traces.output.report_traces import WorkloadTraces, report_traces
from servers import redis_server
from servers.traced_shop import KEY, traced_shop

pytestmark = pytest.mark.functional

TIMES = 700
#: Seconds of the planted lock at least; one of these requests has it: twice as many as are
#: compared, and far longer than what a busy machine adds (once 150 ms to a third of them).
PLANTED_S, EVERY = 0.5, 10

SCENARIO = '''
import requests
from osbench.plugin import atomic, scenario


class OutOfStock(Exception):
    pass


@scenario.configure(name="Shop.buy")
class Buy(scenario.Scenario):
    """Buys something, and thinks meanwhile."""

    def run(self, url):
        with atomic.ActionTimer(self, "shop.buy"):
            requests.get(f"{url}/buy", headers=self.trace_headers(), timeout=30)
        self.sleep_between(0.02)
        if self.context["iteration"] % 50 == 3:
            raise OutOfStock("no lamp is left")
        if self.context["iteration"] == 444:
            raise KeyError("lamp")
'''


@pytest.fixture(scope="module")
def here() -> Iterator[Site]:
    """A site with one finished run; its services and its trace store are stopped."""
    with site() as found:
        plugins = {"plugin_path": found.write("plugins/shop.py", SCENARIO).parent}
        found.configure({"worker": plugins, "coordinator": plugins})
        with (
            redis_server(password="traces") as store,
            traced_shop(found.home, store.url, planted_s=PLANTED_S, every=EVERY) as address,
        ):
            found.deployment(
                {
                    "osbench": {
                        "services": {"shop": address},
                        "profiler_hmac_key": KEY,
                        "profiler_conn_str": store.url,
                    }
                }
            )
            task = found.task(
                {
                    "scenario": {"Shop.buy": {"url": address}},
                    "runner": {"constant": {"times": TIMES, "concurrency": 2}},
                    "sla": {"failure_rate": {"max": 100}},
                }
            )
            done = found.run(task)
            assert done.code == 0, done.err
        yield found


@pytest.fixture(scope="module")
def directory(here: Site) -> RunDirectory:
    return RunDirectory.find(str(here.data), "last")


@pytest.fixture(scope="module")
def summary(directory: RunDirectory) -> dict[str, Any]:
    found = directory.read("summary.json")
    assert found is not None
    return found


@pytest.fixture(scope="module")
def told(directory: RunDirectory, summary: dict[str, Any]) -> WorkloadTraces:
    (found,) = report_traces(directory, summary)
    return found


def test_the_planted_delay_is_named(told: WorkloadTraces, summary: dict[str, Any]) -> None:
    assert told.reason == ""
    assert "shop/stock row lock UPDATE items SET n = ? on host " in told.sentence
    assert re.search(r", in (all|\d\d(\.\d)? %) of the slow ones, in none of the", told.sentence)
    assert " ms on average" in told.sentence
    assert told.sentence == summary["workloads"][0]["tracing"]["explanation"]
    assert told.answer is not None
    (cause, *_) = told.answer.bands[0].causes
    assert cause.clear
    assert cause.interval_s[0] < cause.excess_s < cause.interval_s[1]
    assert cause.excess_s > PLANTED_S / 2


def test_two_calls_give_the_same(
    told: WorkloadTraces, directory: RunDirectory, summary: dict[str, Any]
) -> None:
    assert report_traces(directory, summary) == [told]


def test_examples_are_those_of_the_percentiles_and_of_each_class_of_error(
    here: Site, told: WorkloadTraces, summary: dict[str, Any]
) -> None:
    rows = {int(row["iteration"]): row for row in here.rows(str(summary["run_id"]))}
    kinds = [pick.kind for pick in told.picks]

    assert kinds[:4] == ["max", "p99", "p95", "p50"]
    assert {pick.label for pick in told.picks if pick.kind == "error"} == {"OutOfStock", "KeyError"}
    assert kinds.count("slow") >= 3
    assert len({pick.iteration for pick in told.picks}) == len(told.picks)
    for pick in told.picks:
        row = rows[pick.iteration]
        assert row["trace_id"] == pick.trace_id == pick.waterfall.trace_id
        assert row["outcome"] == pick.outcome
        assert (row["error"].partition(":")[0]) == pick.error
        assert pick.service_s == pytest.approx(float(row["service_s"]))
        assert pick.due_s == pytest.approx(float(row["due_s"]))
        assert told.kept[pick.trace_id] == pick.iteration
    ok = sorted(float(row["service_s"]) for row in rows.values() if row["outcome"] == "ok")
    assert told.picks[0].service_s == pytest.approx(ok[-1])
    assert told.error_examples["KeyError"] == rows[444]["trace_id"]


def test_a_waterfall_shows_where_the_time_went(told: WorkloadTraces) -> None:
    named = [(pick, {row.name: row for row in pick.waterfall.rows}) for pick in told.picks]
    pick, rows = next((pick, rows) for pick, rows in named if "row lock" in rows)

    cause = r"shop/stock row lock UPDATE items SET n = \?: \d\d\d ms of the path \(\d+ %\)"
    assert any(re.fullmatch(cause, one.cause) for one, _ in named)
    lock = rows["row lock"]
    assert (lock.project, lock.service) == ("shop", "stock")
    assert lock.host
    assert lock.duration_s >= PLANTED_S
    # its own work is on the path from beginning to end
    assert lock.segments[0].kind == "span"
    assert sum(one.to_s - one.from_s for one in lock.segments[1:]) == pytest.approx(lock.critical_s)
    assert {one.kind for one in lock.segments[1:]} == {"path"}
    on_path = sum(row.critical_s + row.waited_s for row in pick.waterfall.rows)
    assert on_path == pytest.approx(pick.waterfall.duration_s)
    # the pause is a row of its own, and no part of the time of the iteration
    pause = rows["osbench.pause"]
    assert pause.is_pause
    assert pause.duration_s == pytest.approx(pick.waterfall.paused_s)
    assert pick.waterfall.paused_s >= 0.02
    # spans are whole microseconds
    assert lock.duration_s < pick.service_s < pick.waterfall.duration_s - 0.0199


def test_pauses_are_told_from_work(here: Site, told: WorkloadTraces) -> None:
    ranked = json.loads(here.call("trace", "rank", "last", "--json").out)
    printed = here.call("trace", "rank", "last", "--by", "critical").out

    assert ranked["pauses"] == told.pauses == TIMES
    assert ranked["paused_s"] == told.paused_s >= 0.02 * TIMES
    rows = {row["name"]: row for row in ranked["ranking"]}
    assert "osbench.pause" not in rows
    assert rows["osbench.iteration"]["paused_s"] == pytest.approx(ranked["paused_s"])
    # without them the iterations take little longer than what they call
    assert rows["osbench.iteration"]["critical_s"] < ranked["paused_s"]
    assert "pauses of the scenario: 700 pauses, " in printed
    assert told.ranking[0].critical_s == max(row["critical_s"] for row in rows.values())
    assert told.answer is not None
    causes = [cause.what for band in told.answer.bands for cause in band.causes]
    assert "osbench.pause" not in causes


def test_a_trace_is_found_by_run_and_iteration_and_by_run_and_id(
    here: Site, told: WorkloadTraces, directory: RunDirectory
) -> None:
    pick, run = told.picks[0], directory.path.name
    shown = [
        json.loads(here.call("trace", "show", which, "--json").out)
        for which in (
            f"{run}:{pick.iteration}",
            f"last:{pick.trace_id}",
            # with its dash: eight digits could be the number of an iteration
            f"{run}:{pick.trace_id[:9]}",
            str(pick.iteration),
            pick.trace_id,
        )
    ]

    assert {one["trace_id"] for one in shown} == {pick.trace_id}
    (root, *_) = shown[0]["spans"]
    assert root["attributes"]["iteration"] == pick.iteration
    assert shown[0]["paused_s"] == pytest.approx(pick.waterfall.paused_s)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("nothing:1",), "no run 'nothing'"),
        (("last:",), "'last:' has no iteration or trace id after the colon"),
        ((":3",), "':3' has no run before the colon"),
        (("last:5", "--run", "last"), "the run is named twice"),
        (("last:123456",), "iteration 123456 of "),
        (("last:zzz",), "has kept no trace 'zzz'"),
    ],
)
def test_what_cannot_be_shown_is_said_in_one_sentence(
    here: Site, arguments: tuple[str, ...], said: str
) -> None:
    done = here.call("trace", "show", *arguments)

    assert done.code == 2
    assert said in " ".join(done.err.split())
    assert "Traceback" not in done.err


def test_nothing_that_a_user_sent_is_kept_by_default(told: WorkloadTraces) -> None:
    assert not told.has_arguments
    fields = {name for pick in told.picks for row in pick.waterfall.rows for name, _ in row.fields}
    assert not any(name.startswith(("db.", "request.")) for name in fields)
    assert "lamp" not in repr([pick.waterfall for pick in told.picks])


@pytest.fixture(scope="module")
def page(directory: RunDirectory) -> str:
    return page_of(read_facts(directory))


def words(part: str) -> str:
    """What a reader sees of a part of a page."""
    return " ".join(html.unescape(re.sub(r"<[^>]*>", "", part)).split())


def test_the_first_screen_names_the_planted_delay(page: str, told: WorkloadTraces) -> None:
    first, rest = page.split("<nav", 1)

    assert words(told.sentence) in words(first)
    # the trace that it leads to is further below; failures lead to others
    why = first.split('aria-labelledby="why-h"')[1].partition("</section>")[0]
    (link,) = set(re.findall(r'href="#(t-[0-9a-f]+)"', why))
    assert f'id="{link}"' in rest


def test_the_page_names_the_best_place_to_work(page: str, told: WorkloadTraces) -> None:
    assert told.best.startswith("Best place to work: halving shop/stock row lock UPDATE items SET")
    section = page.split('id="traces"', 1)[1]
    assert words(told.best).partition(" takes ")[0] in words(section)


def test_the_page_has_every_field_of_every_span_of_its_examples(
    page: str, told: WorkloadTraces
) -> None:
    parts = re.split(r'<details class="trace" id="t-([0-9a-f]+)"', page)
    shown = dict(zip(parts[1::2], map(words, parts[2::2]), strict=True))

    assert len(shown) == len(told.picks)
    for pick in told.picks:
        text = shown[pick.trace_id.replace("-", "")[:8]]
        for row in pick.waterfall.rows:
            fields = (row.name, row.detail, row.project, row.service, row.host, row.error)
            ids = (row.span_id, row.parent_id, row.started_at, row.stopped_at)
            for value in (*fields, *ids, *(value for _, value in row.fields)):
                assert words(value) in text


def test_the_page_has_an_example_of_each_class_of_error(page: str, told: WorkloadTraces) -> None:
    errors = page.partition("no lamp is left")[2]

    assert f'href="#t-{told.error_examples["OutOfStock"].replace("-", "")[:8]}"' in errors


def test_a_run_without_traces_says_why(guest: Site) -> None:
    load = {
        "scenario": {"Dummy.dummy": {}},
        "runner": {"constant": {"times": 3, "concurrency": 1}},
    }
    done = guest.run(guest.task(load))
    directory = RunDirectory.find(str(guest.data), "last")
    (found,) = report_traces(directory, done.result)

    assert found.picks == ()
    assert (
        found.reason == "tracing needs a deployment with a profiler_hmac_key, `run --otlp`"
        " or `--traces-from`"
    )
