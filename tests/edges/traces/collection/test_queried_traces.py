"""Queries at the end of a run: late spans, failures and bounds."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from osbench.coordinator.results.storage.run_directory import RunDirectory
from osbench.edges.traces.collection import queried_traces
from osbench.edges.traces.collection.queried_traces import (
    QUERIED,
    QueriedTraces,
    QuerySettings,
)
from osbench.edges.traces.model.spans import Span
from osbench.edges.traces.sources.span_spool import SpooledTraces
from osbench.edges.traces.sources.trace_backend import (
    BackendResponse,
    BackendState,
    TraceBackend,
)

FOUND, MISSING = BackendState.FOUND, BackendState.MISSING


def trace_id(number: int) -> str:
    return f"{number:02x}" * 16


def spans(*parents: str, kind: str = "server") -> tuple[Span, ...]:
    """A span for each parent, numbered from 1."""
    return tuple(
        Span(f"{number:016x}", parent, "work", "shop", "h1", 10**18, 1000, kind=kind)
        for number, parent in enumerate(parents, 1)
    )


class ScriptedBackend(TraceBackend):
    """Answers as a function of the trace and of how often it was asked for it."""

    def __init__(self, answer: Callable[[str, int], BackendResponse]) -> None:
        super().__init__("tempo+http://tempo:3200")
        self._script = answer
        self.asked: Counter[str] = Counter()
        self.order: list[str] = []
        self._lock = threading.Lock()

    def ask(self, trace_id: str) -> BackendResponse:
        with self._lock:
            self.asked[trace_id] += 1
            self.order.append(trace_id)
            number = self.asked[trace_id]
        return self._script(trace_id, number)


def answer(one: str, state: BackendState, *parents: str, **members: str) -> BackendResponse:
    kind = members.pop("kind", "server")
    return BackendResponse(trace_id=one, state=state, spans=spans(*parents, kind=kind), **members)


@pytest.fixture
def directory(tmp_path: Path) -> RunDirectory:
    made = RunDirectory.create(str(tmp_path), "20260401-a")
    (made.path / "traces").mkdir()
    return made


@pytest.fixture(autouse=True)
def pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(queried_traces, "_PAUSES_S", (0.0,) * 5)


def fetched(
    directory: RunDirectory,
    backend: TraceBackend,
    count: int,
    wanted: Callable[[], bool] = lambda: True,
    **settings: float,
) -> tuple[QueriedTraces, SpooledTraces, list[str]]:
    queries = QueriedTraces(directory, QuerySettings(backend=backend, **settings), wanted)
    queries.fetch([trace_id(number) for number in range(1, count + 1)])
    spool = SpooledTraces(directory.path / "traces" / QUERIED)
    return queries, spool, list(queries.notes())


def test_what_is_there_is_queried_once(directory: RunDirectory) -> None:
    backend = ScriptedBackend(lambda one, _number: answer(one, FOUND, "", "0" * 15 + "1"))

    queries, spool, notes = fetched(directory, backend, 50)

    assert set(backend.asked.values()) == {1}
    assert queries.found() == frozenset(map(trace_id, range(1, 51)))
    assert {len(one.spans) for one in spool} == {2}
    (note,) = notes
    assert note.startswith("50 of 50 traces found at tempo+http://tempo:3200, in ")


def test_spans_that_come_late_are_queried_again(directory: RunDirectory) -> None:
    backend = ScriptedBackend(
        lambda one, number: answer(one, FOUND, "") if number > 2 else answer(one, MISSING)
    )

    queries, _, notes = fetched(directory, backend, 4)

    assert set(backend.asked.values()) == {3}
    assert len(queries.found()) == 4
    assert len(notes) == 1


def test_rounds_end_if_nothing_more_comes(directory: RunDirectory) -> None:
    backend = ScriptedBackend(lambda one, _number: answer(one, MISSING))

    _, spool, notes = fetched(directory, backend, 3)

    assert set(backend.asked.values()) == {3}
    assert list(spool) == []
    assert notes[1:] == [
        "3 are not there: not sampled, not stored yet, or past its retention",
    ]


def test_without_time_for_late_spans_there_is_one_round(directory: RunDirectory) -> None:
    backend = ScriptedBackend(lambda one, _number: answer(one, MISSING))

    fetched(directory, backend, 3, late_s=0.0)

    assert set(backend.asked.values()) == {1}


def test_a_trace_whose_caller_is_missing_is_queried_again_and_counted_once(
    directory: RunDirectory,
) -> None:
    def script(one: str, number: int) -> BackendResponse:
        # the parent of the first is a worker's or another service's; the second's comes late
        late = ("f" * 16, "0" * 15 + "3", "0" * 15 + "1")[: 2 if number == 1 else 3]
        return answer(one, FOUND, *late, kind="client" if number == 1 else "server")

    _, spool, _ = fetched(directory, ScriptedBackend(script), 1)

    (trace,) = spool
    assert (len(trace.spans), trace.duplicates) == (3, 0)


def test_a_trace_that_was_found_stays_found(directory: RunDirectory) -> None:
    def script(one: str, number: int) -> BackendResponse:
        if number > 1:
            return answer(one, BackendState.BUSY, why="HTTP 503")
        return answer(one, FOUND, "f" * 16, kind="client")

    queries, _, notes = fetched(directory, ScriptedBackend(script), 1)

    assert len(queries.found()) == 1
    assert len(notes) == 1


def test_credentials_that_are_refused_end_the_queries(directory: RunDirectory) -> None:
    refused = BackendState.REFUSED
    backend = ScriptedBackend(lambda one, _number: answer(one, refused, why="HTTP 401 no org id"))

    _, _, notes = fetched(directory, backend, 200, parallel=1)

    assert len(backend.order) < 9
    assert "1 were refused: look at [traces] query_headers (HTTP 401 no org id)" in notes
    assert "199 were not queried: no other query succeeded" in notes


def test_a_backend_that_is_away_is_not_queried_for_all(directory: RunDirectory) -> None:
    away = BackendState.UNREACHABLE
    backend = ScriptedBackend(lambda one, _number: answer(one, away, why="Connection refused"))

    _, _, notes = fetched(directory, backend, 200)

    assert "20 could not be queried (Connection refused)" in notes
    assert "180 were not queried: no other query succeeded" in notes


def test_a_backend_that_is_away_for_a_moment_is_queried_again(directory: RunDirectory) -> None:
    def script(one: str, number: int) -> BackendResponse:
        state = BackendState.UNREACHABLE if number == 1 and one < trace_id(8) else FOUND
        return answer(one, state, *([""] if state is FOUND else []))

    queries, _, notes = fetched(directory, ScriptedBackend(script), 30)

    assert len(queries.found()) == 30
    assert len(notes) == 1


def test_each_failure_is_counted_with_its_first_reason(directory: RunDirectory) -> None:
    states = [
        BackendState.PARTIAL,
        BackendState.TOO_LARGE,
        BackendState.BUSY,
        BackendState.TIMED_OUT,
        BackendState.FAILED,
        FOUND,
    ]

    def script(one: str, _number: int) -> BackendResponse:
        state = states[int(one[:2], 16) % 6]
        parents = [""] if state in (FOUND, BackendState.PARTIAL) else []
        return answer(one, state, *parents, why="" if parents else f"of {state}")

    queries, _, notes = fetched(directory, ScriptedBackend(script), 12)

    assert notes[0].startswith("4 of 12 traces found")
    assert notes[1:] == [
        "2 are there in part only, and are not compared",
        "2 are too large (of too large)",
        "2 were refused, since it was too busy (of busy)",
        "2 had no response in time (of timed out)",
        "2 could not be read (of failed)",
    ]
    assert len(queries.found()) == 2


def test_no_query_begins_after_the_time_for_all_of_them(directory: RunDirectory) -> None:
    backend = ScriptedBackend(lambda one, _number: answer(one, FOUND, ""))

    _, _, notes = fetched(directory, backend, 9, limit_s=-1.0)

    assert notes[-1] == "9 were not queried: [traces] query_limit_s was over"


def test_an_answer_that_never_comes_holds_nothing_up(directory: RunDirectory) -> None:
    hung = threading.Event()

    def script(one: str, _number: int) -> BackendResponse:
        if one == trace_id(1):
            hung.wait()
        return answer(one, FOUND, "")

    def others_came() -> bool:
        return len(backend.order) < 5

    backend = ScriptedBackend(script)
    _, _, notes = fetched(directory, backend, 5, wanted=others_came, parallel=2)
    hung.set()

    assert notes[-1].endswith("not queried: the run was stopped")


def test_spans_take_no_more_room_than_they_may(directory: RunDirectory) -> None:
    backend = ScriptedBackend(lambda one, _number: answer(one, FOUND, ""))

    _, _, notes = fetched(directory, backend, 5, limit_bytes=0)

    assert notes[-1] == "5 were not queried: [traces] otlp_limit_mib is full"


def test_an_error_of_ours_costs_one_trace(directory: RunDirectory) -> None:
    def script(one: str, _number: int) -> BackendResponse:
        if one == trace_id(2):
            raise RuntimeError("oops")
        return answer(one, FOUND, "")

    queries, _, notes = fetched(directory, ScriptedBackend(script), 3)

    assert len(queries.found()) == 2
    assert notes[1:] == ["1 could not be read (RuntimeError)"]


def test_traces_are_queried_in_the_order_given(directory: RunDirectory) -> None:
    backend = ScriptedBackend(lambda one, _number: answer(one, FOUND, ""))

    fetched(directory, backend, 20, parallel=1)

    assert backend.order == [trace_id(number) for number in range(1, 21)]


def test_what_an_earlier_collection_left_is_not_read(directory: RunDirectory) -> None:
    (directory.path / "traces" / QUERIED).write_bytes(b"rest")

    _, spool, _ = fetched(
        directory, ScriptedBackend(lambda one, _number: answer(one, FOUND, "")), 1
    )

    assert len(list(spool)) == 1
    assert spool.damaged == 0
