"""Runs whose traces are queried from Tempo or Jaeger at their end."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from helpers.json_server import serving
from helpers.otlp_service import Service
from helpers.runs import Site, site
from helpers.trace_backends import FakeJaeger, FakeTempo, Spans, StoredTraces
from servers.child import PATIENCE_S

pytestmark = pytest.mark.functional

#: Of the sample service, in nanoseconds.
SLOW_NS = 150_000_000


@pytest.fixture
def here() -> Iterator[Site]:
    with site() as found:
        # the service sends its spans every half second
        found.configure({"traces": {"otlp_late_s": 1}})
        yield found


@pytest.fixture
def tempo() -> Iterator[FakeTempo]:
    with serving(FakeTempo()) as running:
        yield running


def only_directory(here: Site) -> Path:
    """The directory of the only run."""
    (found,) = here.data.glob("runs/*")
    return found


def place(server: StoredTraces) -> str:
    return server.url.removeprefix("http://")


def duration_ns(spans: Spans) -> int:
    return max(int(one["endTimeUnixNano"]) - int(one["startTimeUnixNano"]) for _, one in spans)


@pytest.mark.parametrize("kind", [FakeTempo, FakeJaeger])
@pytest.mark.parametrize(
    ("slow", "named"),
    [
        ("db", "items SELECT SELECT * FROM items WHERE owner = ? LIMIT ?"),
        ("lock", "items acquire lock"),
        ("queue", "waiting for items (from osbench/worker"),
    ],
)
def test_what_is_slow_in_a_service_is_named_from_where_its_traces_are(
    here: Site, kind: type[FakeTempo | FakeJaeger], slow: str, named: str
) -> None:
    with serving(kind()) as server, Service(here, place(server), slow) as service:
        url = f"{server.kind}+{server.url}"
        done = here.run(here.task(service.workload()), "--traces-from", url)
        explained = here.coord("trace", "explain", "last")
        queries = sum(server.queries.values())

    assert done.code == 0, done.err
    assert f"traces are queried at {url}" in done.err
    (workload,) = done.result["workloads"]
    tracing = workload["tracing"]
    assert (tracing["state"], tracing["traced"]) == ("on", 1200)
    assert named in tracing["explanation"]
    assert explained.out.splitlines()[0].startswith(tracing["explanation"][:60])
    told = "queried: a random sample of 1,200 of 1,200 traced iterations, which is compared"
    assert told in " ".join(explained.out.split())
    assert f"1,200 of 1,200 traces found at {url}" in " ".join(done.result["notes"])
    # once before the run, which no trace answers
    assert queries >= 1201
    assert sorted(one.name for one in (only_directory(here) / "traces").iterdir()) == [
        *("collection.json", "features", "kept")
    ]
    shown = here.coord("trace", "show", workload["exemplars"][0]["trace_id"]).out
    assert "osbench.iteration" in shown
    assert "GET /items" in shown
    assert "anna" not in shown + explained.out


def test_a_part_is_queried_of_a_run_with_more_iterations(here: Site, tempo: FakeTempo) -> None:
    here.configure({"traces": {"otlp_late_s": 1, "query_most": 900, "keep_slowest": 20}})
    with Service(here, place(tempo)) as service:
        done = here.run(
            here.task(service.workload(times=3000)), "--traces-from", f"tempo+{tempo.url}"
        )

    assert done.code == 0, done.err
    (workload,) = done.result["workloads"]
    # percentiles are those of all iterations
    assert workload["accounting"]["ok"] == 3000
    assert "items SELECT" in workload["tracing"]["explanation"]
    assert 700 < len(tempo.queries) < 1100
    (note,) = [one for one in done.result["notes"] if "random sample of" in one]
    assert re.search(r"of 3,000 traced iterations, which is compared, and \d+ others", note)


def test_spans_that_come_late_are_waited_for(here: Site, tempo: FakeTempo) -> None:
    tempo.keep = lambda _id, spans, number: spans if number > 1 else []
    with Service(here, place(tempo)) as service:
        done = here.run(
            here.task(service.workload(times=100)), "--traces-from", f"tempo+{tempo.url}"
        )

    assert done.code == 0, done.err
    assert f"100 of 100 traces found at tempo+{tempo.url}" in " ".join(done.result["notes"])


def test_a_backend_that_keeps_slow_traces_is_not_taken_for_an_even_sample(
    here: Site, tempo: FakeTempo
) -> None:
    def keep(trace_id: str, spans: Spans, _number: int) -> Spans:
        kept = duration_ns(spans) > SLOW_NS if spans else False
        return spans if kept or trace_id[-1] < "8" else []

    tempo.keep = keep
    here.configure({"traces": {"otlp_late_s": 1, "query_late_s": 0}})
    with Service(here, place(tempo)) as service:
        done = here.run(
            here.task(service.workload(times=2400)), "--traces-from", f"tempo+{tempo.url}"
        )

    assert done.code == 0, done.err
    notes = " ".join(done.result["notes"])
    assert "how many are there depends on their service time" in notes
    assert "are not there: not sampled, not stored yet, or past its retention" in notes
    (workload,) = done.result["workloads"]
    assert "items SELECT" in workload["tracing"]["explanation"]


def test_a_backend_without_spans_of_the_run_says_what_to_look_at(
    here: Site, tempo: FakeTempo
) -> None:
    here.configure({"traces": {"otlp_late_s": 0, "query_late_s": 0}})
    task = here.task({"scenario": {"Dummy.dummy": {}}, "runner": {"serial": {"times": 5}}})

    done = here.run(task, "--traces-from", f"tempo+{tempo.url}")
    explained = here.coord("trace", "explain", "last")

    assert done.code == 0, done.err
    notes = " ".join(done.result["notes"])
    assert f"0 of 5 traces found at tempo+{tempo.url}" in notes
    assert "OTEL_TRACES_SAMPLER" in notes
    assert "hmac" not in notes + explained.out
    assert "Traceback" not in done.err + explained.err


@pytest.mark.parametrize("wrong", ["away", "refused", "not an address"])
def test_a_backend_that_cannot_be_queried_ends_the_run_before_it_begins(
    here: Site, tempo: FakeTempo, wrong: str
) -> None:
    tempo.needed = ("X-Scope-OrgID", "team")
    urls = {
        "away": "tempo+http://anna:s3cret-word@127.0.0.1:1",
        "refused": tempo.url.replace("http://", "tempo+http://anna:s3cret-word@"),
        "not an address": "http://anna:s3cret-word@127.0.0.1:3200",
    }
    task = here.task({"scenario": {"Dummy.dummy": {}}, "runner": {"serial": {"times": 1}}})

    done = here.run(task, "--traces-from", urls[wrong])

    assert done.code == 2
    said = done.out + done.err
    assert "quer" in said
    assert "Traceback" not in said
    assert "s3cret" not in said
    assert not list(here.data.glob("runs/*"))


def test_headers_and_passwords_are_sent_and_never_shown_or_kept(
    here: Site, tempo: FakeTempo
) -> None:
    tempo.needed = ("X-Scope-OrgID", "s3cret-tenant")
    here.configure(
        {
            "traces": {
                "otlp_late_s": 1,
                "query_url": tempo.url.replace("http://", "tempo+http://anna:s3cret-word@"),
                "query_headers": "X-Scope-OrgID=s3cret-tenant",
            }
        }
    )
    with Service(here, place(tempo)) as service:
        done = here.run(here.task(service.workload(times=50)))
    again = here.coord("trace", "explain", "last")

    assert done.code == 0, done.err
    assert "50 of 50 traces found" in " ".join(done.result["notes"])
    assert all("authorization" in one for one in tempo.headers)
    said = done.out + done.err + again.out
    assert "s3cret" not in said
    for path in only_directory(here).rglob("*"):
        assert path.is_dir() or b"s3cret-" not in path.read_bytes(), path


def test_a_backend_that_goes_away_costs_the_traces_and_not_the_run(
    here: Site, tempo: FakeTempo
) -> None:
    here.configure({"traces": {"otlp_late_s": 0, "query_late_s": 0}})
    with Service(here, place(tempo)) as service:
        started = here.start(
            "osbench-coord",
            *("run", here.task(service.workload()), "--json"),
            *("--traces-from", f"tempo+{tempo.url}"),
        )
        started.wait_for(lambda: bool(tempo.traces))
        tempo.status, tempo.text = 500, "it broke"
        done = started.finish()
    explained = here.coord("trace", "explain", "last")
    page = here.home / "report.html"
    reported = here.coord("report", "last", "--html", str(page))

    assert done.code == 0, done.err
    notes = " ".join(done.result["notes"])
    assert "0 of 1,200 traces found" in notes
    assert "1,200 could not be read (HTTP 500 it broke)" in notes
    # what the client measured is left
    (workload,) = done.result["workloads"]
    assert "first byte of " in workload["tracing"]["explanation"]
    assert explained.code == 0, explained.err
    said = " ".join(explained.out.split())
    assert "first byte of " in said
    assert "1,200 could not be read (HTTP 500 it broke)" in said
    assert reported.code == 0, reported.err
    assert "first byte of " in page.read_text("utf-8")


def test_a_resumed_run_queries_the_traces_of_all_its_iterations(
    here: Site, tempo: FakeTempo
) -> None:
    with Service(here, place(tempo)) as service:
        task = here.task(service.workload(times=400, concurrency=2))
        started = here.start("osbench-coord", "run", task, "--traces-from", f"tempo+{tempo.url}")
        started.wait_for(lambda: bool(tempo.traces))
        started.process.kill()
        started.process.wait(PATIENCE_S)
        done = here.coord("resume", "last", "--json")

    sums = done.sums
    # workers of local mode have two seconds to deliver what they have, which may be too short
    assert sums["ok"] + sums["lost"] == 400
    assert sums["ok"] > 0
    assert done.code == (3 if sums["lost"] else 0), done.err
    assert f"{sums['ok']} of {sums['ok']} traces found at tempo+{tempo.url}" in " ".join(
        done.result["notes"]
    )


def test_ctrl_c_ends_the_queries(here: Site, tempo: FakeTempo) -> None:
    with Service(here, place(tempo)) as service:
        started = here.start(
            "osbench-coord",
            *("run", here.task(service.workload(times=100_000))),
            *("--traces-from", f"tempo+{tempo.url}"),
        )
        started.wait_for(lambda: bool(tempo.traces))
        started.interrupt()
        started.await_said("stopping: running iterations end")
        started.interrupt()
        done = started.finish()

    assert done.code == 130
    assert "Traceback" not in done.err
    here.await_nothing_left()
    assert not list(only_directory(here).glob("traces/queried*"))
