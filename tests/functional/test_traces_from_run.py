"""Runs whose traces are queried from Tempo or Jaeger at their end."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from helpers.json_server import serving
from helpers.otlp_service import Service
from helpers.runs import Site, site
from helpers.trace_backends import FakeJaeger, FakeTempo, StoredTraces
from servers.child import PATIENCE_S

pytestmark = pytest.mark.functional


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


@pytest.fixture
def jaeger() -> Iterator[FakeJaeger]:
    with serving(FakeJaeger()) as running:
        yield running


def test_what_is_slow_in_a_service_is_named_from_where_its_traces_are(
    here: Site, jaeger: FakeJaeger
) -> None:
    # some spans come late
    jaeger.keep = lambda trace_id, spans, number: (
        spans if number > 1 or not trace_id.endswith("0") else []
    )
    jaeger.needed = ("X-Scope-OrgID", "s3cret-tenant")
    with_password = jaeger.url.replace("http://", "jaeger+http://anna:s3cret-word@")
    query = {"query_url": with_password, "query_headers": "X-Scope-OrgID=s3cret-tenant"}
    # a busy machine takes long to answer all of them once
    patient = {"query_late_s": PATIENCE_S, "query_limit_s": 2 * PATIENCE_S}
    here.configure({"traces": {"otlp_late_s": 1, **patient, **query}})
    with Service(here, place(jaeger), "lock") as service:
        done = here.run(here.task(service.workload()))
        explained = here.coord("trace", "explain", "last")
        queries = sum(jaeger.queries.values())

    assert done.code == 0, done.err
    shown = with_password.replace("anna:s3cret-word", "***")
    assert f"traces are queried at {shown}" in done.err
    (workload,) = done.result["workloads"]
    tracing = workload["tracing"]
    assert (tracing["state"], tracing["traced"]) == ("on", 1200)
    assert "items acquire lock" in tracing["explanation"]
    assert explained.out.splitlines()[0].startswith(tracing["explanation"][:60])
    told = "queried: a random sample of 1,200 of 1,200 traced iterations, which is compared"
    assert told in " ".join(explained.out.split())
    assert f"1,200 of 1,200 traces found at {shown}" in " ".join(done.result["notes"])
    # once before the run, which no trace answers
    assert queries >= 1201
    assert sorted(one.name for one in (only_directory(here) / "traces").iterdir()) == [
        *("collection.json", "features", "kept")
    ]
    trace = here.coord("trace", "show", workload["exemplars"][0]["trace_id"]).out
    assert "osbench.iteration" in trace
    assert "GET /items" in trace
    assert "anna" not in trace + explained.out
    # headers and passwords are sent, and neither shown nor kept
    assert all("authorization" in one for one in jaeger.headers)
    assert "s3cret" not in done.out + done.err + explained.out
    for path in only_directory(here).rglob("*"):
        assert path.is_dir() or b"s3cret-" not in path.read_bytes(), path


class FailingTempo(FakeTempo):
    """Breaks after the query before the run."""

    def answer_to(self, version: str, trace_id: str) -> tuple[int, Any]:
        if self.queries.keys() - {trace_id}:
            return 500, "it broke"
        return super().answer_to(version, trace_id)


def test_a_backend_that_goes_away_costs_the_traces_and_not_the_run(here: Site) -> None:
    here.configure({"traces": {"otlp_late_s": 0, "query_late_s": 0}})
    task = here.task({"scenario": {"Dummy.dummy": {}}, "runner": {"serial": {"times": 5}}})
    page = here.home / "report.html"

    with serving(FailingTempo()) as tempo:
        done = here.run(task, "--traces-from", f"tempo+{tempo.url}")
    explained = here.coord("trace", "explain", "last")
    reported = here.coord("report", "last", "--html", str(page))

    assert done.code == 0, done.err
    notes = " ".join(done.result["notes"])
    assert f"0 of 5 traces found at tempo+{tempo.url}" in notes
    assert "5 could not be read (HTTP 500 it broke)" in notes
    # nor are there spans of services, and what to look at is told
    assert "OTEL_TRACES_SAMPLER" in notes
    assert "hmac" not in notes + explained.out
    assert explained.code == 0, explained.err
    assert "5 could not be read (HTTP 500 it broke)" in " ".join(explained.out.split())
    assert reported.code == 0, reported.err
    assert "Traceback" not in done.err + explained.err + reported.err


def test_a_backend_that_cannot_be_queried_ends_the_run_before_it_begins(
    here: Site, tempo: FakeTempo
) -> None:
    tempo.needed = ("X-Scope-OrgID", "team")
    urls = (
        # nobody there, credentials that are refused, and no address
        "tempo+http://anna:s3cret-word@127.0.0.1:1",
        tempo.url.replace("http://", "tempo+http://anna:s3cret-word@"),
        "http://anna:s3cret-word@127.0.0.1:3200",
    )
    task = here.task({"scenario": {"Dummy.dummy": {}}, "runner": {"serial": {"times": 1}}})

    done = [here.run(task, "--traces-from", url) for url in urls]

    for one in done:
        assert one.code == 2
        said = one.out + one.err
        assert "quer" in said
        assert "Traceback" not in said
        assert "s3cret" not in said
    assert not list(here.data.glob("runs/*"))
