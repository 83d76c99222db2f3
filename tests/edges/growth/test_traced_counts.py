"""Spans and statements of each request are counted in the traces that a run keeps."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from osbench.coordinator.results.storage.run_directory import RunDirectory
from osbench.edges.growth import traced_counts as module
from osbench.edges.growth.traced_counts import (
    RequestKey,
    TracedCounts,
    call_name,
    is_statement,
    per_call,
    traced_counts,
)
from osbench.edges.traces.collection.archive import Archive
from osbench.edges.traces.model.spans import LOST_STOP, Span, Trace

MS = 1_000_000


class Made:
    """A trace that is made of nested spans."""

    def __init__(self, number: int) -> None:
        self.id = f"{number + 1:032x}"
        self.spans: list[Span] = []

    def add(self, name: str, service: str, parent: str = "", **more: Any) -> str:
        """Add a span of 5 ms; return its id."""
        span_id = f"{len(self.spans) + 1:016x}"
        self.spans.append(Span(span_id, parent, name, service, "h", 10**18, 5 * MS, **more))
        return span_id

    def root(self) -> str:
        """Add the root."""
        return self.add("osbench.iteration", "osbench/worker")

    def action(self, name: str, parent: str) -> str:
        """Add an action."""
        return self.add(name, "osbench/worker", parent)

    def request(self, path: str, parent: str, statements: int = 0) -> str:
        """Add a request to a service, with statements."""
        span = self.add("wsgi", "net/api", parent, detail=f"GET {path}")
        for _ in range(statements):
            self.add("db", "net/api", span, detail="SELECT id FROM ports WHERE id = ?")
        return span

    @property
    def trace(self) -> Trace:
        """The trace."""
        return Trace(trace_id=self.id, spans=tuple(self.spans))


def counted(tmp_path: Path, *traces: Trace, actions: tuple[str, ...] = ()) -> TracedCounts:
    """The counts of traces that a run has kept."""
    path = tmp_path / "20260101-000000-abcd"
    path.mkdir()
    archive = Archive(path)
    for trace in traces:
        archive.keep(trace)
    archive.release()
    directory = RunDirectory.of(tmp_path, path.name)
    directory = RunDirectory(path) if not directory.path.exists() else directory
    return traced_counts(directory, {one.trace_id: 0 for one in traces}, {0: actions})


def test_spans_and_statements_count_for_their_action_and_the_actions_around(
    tmp_path: Path,
) -> None:
    made = Made(0)
    root = made.root()
    outer = made.action("outer", root)
    made.request("/a", outer, statements=2)
    inner = made.action("inner", outer)
    made.request("/b", inner, statements=3)

    found = counted(tmp_path, made.trace, actions=("outer", "outer > inner"))

    def sums(action: str, call: str = "") -> tuple[int, int, int]:
        (one,) = found.requests[RequestKey(0, action, call)].iterations
        return one.calls, one.spans, one.sql

    assert sums("") == (1, 7, 5)
    assert sums("outer") == (1, 7, 5)
    assert sums("outer > inner") == (1, 4, 3)
    assert sums("outer", "GET /a") == (1, 3, 2)
    assert sums("outer", "GET /b") == (1, 4, 3)
    assert found.has_spans
    kinds = found.requests[RequestKey(0, "outer > inner")].kinds
    assert kinds["net/api db SELECT id FROM ports WHERE id = ?"] == 3


def test_an_action_that_is_called_twice_is_counted_per_call(tmp_path: Path) -> None:
    made = Made(0)
    root = made.root()
    for statements in (1, 3):
        made.request("/a", made.action("get", root), statements)

    found = counted(tmp_path, made.trace, actions=("get",))

    request = found.requests[RequestKey(0, "get")]
    assert request.calls == 2
    assert per_call(request.iterations, "sql") == [2.0]


def test_spans_of_a_scenario_that_are_not_actions_are_transparent(tmp_path: Path) -> None:
    made = Made(0)
    action = made.action("get", made.root())
    made.request("/a", made.action("own span", action), 1)

    found = counted(tmp_path, made.trace, actions=("get",))

    assert [one.sql for one in found.requests[RequestKey(0, "get")].iterations] == [1]
    assert set(found.requests) == {
        *(RequestKey(0, ""), RequestKey(0, "", "GET /a")),
        *(RequestKey(0, "get"), RequestKey(0, "get", "GET /a")),
    }


def test_traces_that_lack_spans_are_not_counted(tmp_path: Path) -> None:
    whole, orphan, stopless, headless = (Made(number) for number in range(4))
    for made in (whole, orphan, stopless):
        made.request("/a", made.root(), 1)
    orphan.add("db", "net/api", "f" * 16)
    stopless.spans[1] = stopless.spans[1]._replace(marks=LOST_STOP)
    headless.request("/a", "")

    found = counted(tmp_path, *(one.trace for one in (whole, orphan, stopless, headless)))

    assert (found.counted, found.incomplete) == (1, 3)


def test_traces_of_other_iterations_do_not_count(tmp_path: Path) -> None:
    made = Made(0)
    made.request("/a", made.root(), 1)
    other = replace(made.trace, trace_id="f" * 32)
    path = tmp_path / "run"
    path.mkdir()
    archive = Archive(path)
    archive.keep(made.trace)
    archive.keep(other)
    archive.release()

    # rows have the ids as UUIDs
    uuid = "00000000-0000-0000-0000-000000000001"
    found = traced_counts(RunDirectory(path), {uuid: 3}, {})

    assert (found.counted, found.incomplete) == (1, 0)
    assert {key.workload for key in found.requests} == {3}


def test_more_spans_than_can_be_counted_are_left_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "MOST_SPANS", 25)
    traces = []
    for number in range(4):
        made = Made(number)
        made.request("/a", made.root(), 8)
        traces.append(made.trace)

    found = counted(tmp_path, *traces)

    assert (found.counted, found.cut) == (2, True)


@pytest.mark.parametrize(
    ("span", "is_sql"),
    [
        (("db", "SELECT a FROM b", {}), True),
        (("neutron.db", "INSERT INTO b VALUES (...)", {}), True),
        (("DELETE /v2.0/ports/{id}", "DELETE /v2.0/ports/{id}", {}), False),
        (("wsgi", "GET /v3/users", {}), False),
        (("SELECT shop", "", {"db.system": "postgresql", "db.operation": "SELECT"}), True),
        (("query", "", {"db.system.name": "mysql", "db.operation.name": "INSERT"}), True),
        (("connect", "", {"db.system": "sqlite"}), False),
        (("GET", "", {"db.system": "redis", "db.operation": "GET"}), False),
        (("select", "SELECT 1", {"db.system": "redis"}), False),
        (("updates", "update_ports", {}), False),
    ],
)
def test_statements_of_sql_are_told_from_other_spans(
    span: tuple[str, str, dict[str, Any]], is_sql: bool
) -> None:
    name, detail, attributes = span
    found = Span("a", "", name, "s", "h", 0, 1, detail, "", "", 0, attributes)

    assert is_statement(found) is is_sql


def test_the_same_statement_of_a_driver_counts_once(tmp_path: Path) -> None:
    made = Made(0)
    request = made.request("/a", made.root())
    outer = made.add("db", "net/api", request, detail="SELECT a FROM b")
    made.add("SELECT", "net/api", outer, detail="SELECT a FROM b")

    found = counted(tmp_path, made.trace)

    (one,) = found.requests[RequestKey(0, "")].iterations
    assert (one.spans, one.sql) == (3, 1)


def test_calls_are_named_by_method_and_path() -> None:
    def named(name: str, detail: str) -> str:
        return call_name(Span("a", "", name, "net/api", "h", 0, 1, detail))

    assert named("wsgi", "GET /v2.0/ports") == "GET /v2.0/ports"
    assert named("GET /items", "/items") == "GET /items"
    assert named("rpc", "report_state") == "rpc report_state"
    assert named("", "") == "net/api"
