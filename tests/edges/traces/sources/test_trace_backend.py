"""Queries of Tempo and Jaeger, in all forms of their answers."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator

import pytest

from helpers.json_server import serving
from helpers.trace_backends import FakeJaeger, FakeTempo, StoredTraces
from osbench.common.errors import UsageError
from osbench.edges.traces.sources import trace_backend
from osbench.edges.traces.sources.trace_backend import BackendState, TraceBackend

TRACE = "0a1b2c3d4e5f60718293a4b5c6d7e8f9"
BEGIN_NS = 1_775_000_000_000_000_000
SECRET = "hunter2-secret"


def span(span_id: str, parent: str = "", **members: object) -> dict[str, object]:
    return {
        "traceId": TRACE,
        "spanId": span_id,
        "parentSpanId": parent,
        "name": "GET /items",
        "kind": 2,
        "startTimeUnixNano": str(BEGIN_NS),
        "endTimeUnixNano": str(BEGIN_NS + 5_000_000),
        "attributes": [{"key": "http.route", "value": {"stringValue": "/items"}}],
        **members,
    }


def store(server: StoredTraces, *spans: dict[str, object]) -> None:
    resource = {"attributes": [{"key": "service.name", "value": {"stringValue": "shop"}}]}
    scopes = [{"spans": list(spans or (span("00f067aa0ba902b7"),))}]
    server.store({"resourceSpans": [{"resource": resource, "scopeSpans": scopes}]})


@pytest.fixture(params=["tempo", "older tempo", "jaeger", "streaming jaeger"])
def server(request: pytest.FixtureRequest) -> Iterator[StoredTraces]:
    made: StoredTraces
    if "tempo" in request.param:
        made = tempo = FakeTempo()
        tempo.older = "older" in request.param
    else:
        made = jaeger = FakeJaeger()
        jaeger.streamed = "streaming" in request.param
    with serving(made) as running:
        yield running


@pytest.fixture
def tempo() -> Iterator[FakeTempo]:
    with serving(FakeTempo()) as running:
        yield running


def backend(server: StoredTraces, headers: str = "", place: str = "") -> TraceBackend:
    return TraceBackend(f"{server.kind}+{place or server.url}", headers)


def test_a_trace_is_read_with_its_ids_kinds_and_errors(server: StoredTraces) -> None:
    inner = span("1f1e1d1c1b1a1918", "00f067aa0ba902b7", kind=3, status={"code": 2}, name="SELECT")
    store(server, span("00f067aa0ba902b7", "b7ad6b7169203331"), inner)

    answer = backend(server).ask(TRACE)

    assert (answer.state, answer.skipped, answer.why) == (BackendState.FOUND, 0, "")
    root, query = sorted(answer.spans, key=lambda one: one.kind, reverse=True)
    assert (root.span_id, root.parent_id) == ("00f067aa0ba902b7", "b7ad6b7169203331")
    assert (root.service, root.kind, root.error) == ("shop", "server", "")
    assert (query.span_id, query.parent_id) == ("1f1e1d1c1b1a1918", root.span_id)
    assert (query.kind, query.error, query.duration_ns) == ("client", "error", 5_000_000)


def test_a_trace_that_is_not_there_is_missing(server: StoredTraces) -> None:
    asked = backend(server)

    assert asked.ask(TRACE).state is BackendState.MISSING
    store(server)
    assert asked.ask(TRACE).state is BackendState.FOUND


def test_a_backend_that_works_passes_the_check(server: StoredTraces) -> None:
    asked = backend(server)
    if isinstance(server, FakeTempo) and server.older:
        # answers 404 to both, and has one of them
        assert asked.ask(TRACE).why == ""

    asked.check()


def test_jaeger_is_asked_for_spans_as_they_were_stored() -> None:
    with serving(FakeJaeger()) as jaeger:
        store(jaeger)
        backend(jaeger).ask(TRACE)

        assert list(jaeger.paths) == ["/api/v3/traces/ID?raw_traces=true"]


def test_an_older_tempo_is_asked_twice_only_until_it_is_known(tempo: FakeTempo) -> None:
    tempo.older = True
    store(tempo)
    asked = backend(tempo)

    for _ in range(3):
        asked.ask(TRACE)

    assert tempo.paths == {"/api/v2/traces/ID": 1, "/api/traces/ID": 3}


def test_a_partial_trace_is_told_from_a_whole_one(tempo: FakeTempo) -> None:
    tempo.partial = frozenset([TRACE])
    store(tempo, span("00f067aa0ba902b7"), span("1f1e1d1c1b1a1918"))

    answer = backend(tempo).ask(TRACE)

    assert answer.state is BackendState.PARTIAL
    assert len(answer.spans) == 1


def test_spans_of_other_traces_and_malformed_ones_are_left_out(tempo: FakeTempo) -> None:
    store(tempo, span("00f067aa0ba902b7"), span("1f1e1d1c1b1a1918", startTimeUnixNano="never"))
    other = span("2f1e1d1c1b1a1918", traceId="f" * 32)
    tempo.keep = lambda _id, spans, _number: [*spans, (spans[0][0], other)]

    answer = backend(tempo).ask(TRACE)

    assert [one.span_id for one in answer.spans] == ["00f067aa0ba902b7"]
    assert answer.skipped == 1


@pytest.mark.parametrize(
    ("status", "text", "state"),
    [
        (401, "no org id", BackendState.REFUSED),
        (403, "", BackendState.REFUSED),
        (429, "job queue full", BackendState.BUSY),
        (503, "", BackendState.BUSY),
        (422, "trace exceeds max size (max bytes: 5000000)", BackendState.TOO_LARGE),
        (500, "trace exceeds max size (max bytes: 5000000)", BackendState.TOO_LARGE),
        (500, "it broke", BackendState.FAILED),
        (302, "", BackendState.FAILED),
        (200, "<html>log in</html>", BackendState.FAILED),
        (200, "[]", BackendState.FAILED),
        (200, '{"data": []}', BackendState.FAILED),
        (200, "[" * 100_000, BackendState.FAILED),
        (200, '{"resourceSpans": "no list"}', BackendState.FAILED),
        (200, '{"error": {"message": "deadline exceeded"}}', BackendState.FAILED),
        (200, "{}", BackendState.MISSING),
        (200, '{"trace": {"resourceSpans": [7, {"scopeSpans": {}}]}}', BackendState.MISSING),
    ],
)
def test_other_answers_say_what_they_are(
    tempo: FakeTempo, status: int, text: str, state: BackendState
) -> None:
    tempo.status, tempo.text = status, text
    tempo.zipped = False

    answer = backend(tempo).ask(TRACE)

    assert answer.state is state
    if status != 200:
        assert answer.why == f"HTTP {status} {text}".strip()
    assert answer.spans == ()


def test_an_answer_that_is_too_large_is_not_read_zipped_or_not(
    tempo: FakeTempo, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(trace_backend, "ANSWER_BYTES", 1 << 20)
    tempo.status, tempo.text = 200, " " * (2 << 20)

    states = set()
    for tempo.zipped in (True, False):
        states.add(backend(tempo).ask(TRACE).state)

    assert states == {BackendState.TOO_LARGE}


def test_a_server_that_never_answers_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trace_backend, "_READ_S", 0.05)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        place = f"http://127.0.0.1:{silent.getsockname()[1]}"

        answer = TraceBackend(f"jaeger+{place}").ask(TRACE)

    assert answer.state is BackendState.TIMED_OUT


def test_an_answer_that_drips_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trace_backend, "_RESPONSE_S", -1.0)
    with serving(FakeJaeger()) as jaeger:
        store(jaeger)

        assert backend(jaeger).ask(TRACE).state is BackendState.TIMED_OUT


def test_nobody_at_an_address_is_told_without_its_password() -> None:
    with socket.create_server(("127.0.0.1", 0)) as closed:
        port = closed.getsockname()[1]
    asked = TraceBackend(f"tempo+http://anna:{SECRET}@127.0.0.1:{port}")

    answer = asked.ask(TRACE)

    assert answer.state is BackendState.UNREACHABLE
    assert "refused" in answer.why
    with pytest.raises(UsageError, match="cannot query traces at tempo") as told:
        asked.check()
    assert SECRET not in answer.why + asked.shown + str(told.value)


def test_headers_and_credentials_are_sent(tempo: FakeTempo) -> None:
    tempo.needed = ("X-Scope-OrgID", "team a")
    place = tempo.url.replace("//", f"//anna:{SECRET}@")
    asked = backend(tempo, "X-Scope-OrgID=team%20a, X-Other=1", place)
    store(tempo)

    assert asked.ask(TRACE).state is BackendState.FOUND
    sent = tempo.headers[-1]
    assert (sent["x-scope-orgid"], sent["x-other"]) == ("team a", "1")
    assert sent["authorization"].startswith("Basic ")


def test_credentials_that_are_lacking_are_told_before_the_run(tempo: FakeTempo) -> None:
    tempo.needed = ("X-Scope-OrgID", "team")

    with pytest.raises(UsageError, match=r"HTTP 401 no org id; set \[traces\] query_headers"):
        backend(tempo).check()


@pytest.mark.parametrize(("status", "where"), [(500, "log"), (302, "address")])
def test_a_failed_check_says_where_to_look(tempo: FakeTempo, status: int, where: str) -> None:
    tempo.status, tempo.text, tempo.zipped = status, "it broke", False

    with pytest.raises(UsageError, match=f"HTTP {status} it broke; look at its {where}$"):
        backend(tempo).check()


@pytest.mark.parametrize("kind", ["tempo", "jaeger"])
def test_a_server_without_the_api_is_told_before_the_run(kind: str) -> None:
    with serving(FakeTempo()) as tempo, pytest.raises(UsageError) as told:
        TraceBackend(f"{kind}+{tempo.url}/elsewhere").check()

    assert f"it does not have the API of {kind}" in str(told.value)


@pytest.mark.parametrize(
    "url",
    [
        "",
        "http://tempo:3200",
        "tempo://tempo:3200",
        "tempo+http://",
        "tempo+ftp://tempo",
        "zipkin+http://zipkin:9411",
        "tempo+http://tempo:99999",
        "tempo+http://tempo:3200?x=1",
        "tempo+http://[::1",
    ],
)
def test_other_urls_are_refused(url: str) -> None:
    with pytest.raises(UsageError, match="is not an address to query traces at"):
        TraceBackend(url)


def test_a_refused_url_does_not_show_its_password() -> None:
    with pytest.raises(UsageError) as told:
        TraceBackend(f"zipkin+http://anna:{SECRET}@zipkin")

    assert SECRET not in str(told.value)


@pytest.mark.parametrize("headers", ["token", "=x", "a=b,c", "a=b%0d%0aHost: x", "é=1"])
def test_other_headers_are_refused(headers: str) -> None:
    with pytest.raises(UsageError, match="query_headers must be name=value"):
        TraceBackend("tempo+http://tempo:3200", headers)


def test_values_are_kept_only_if_they_are_asked_for(tempo: FakeTempo) -> None:
    secret = {"key": "url.query", "value": {"stringValue": SECRET}}
    store(tempo, span("00f067aa0ba902b7", attributes=[secret]))

    without = backend(tempo).ask(TRACE)
    everything = TraceBackend(f"tempo+{tempo.url}", everything=True).ask(TRACE)

    assert SECRET not in repr(without)
    assert SECRET in repr(everything)


def test_many_threads_may_ask(tempo: FakeTempo) -> None:
    store(tempo)
    asked = backend(tempo)
    states: list[BackendState] = []

    def ask() -> None:
        states.extend(asked.ask(TRACE).state for _ in range(5))

    threads = [threading.Thread(target=ask) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert states == [BackendState.FOUND] * 30
