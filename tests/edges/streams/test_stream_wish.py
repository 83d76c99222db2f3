"""The key `stream` of steps and requests, and the messages on its mistakes."""

from __future__ import annotations

from typing import Any

import pytest

from osbench.edges.streams.stream_wish import StreamWish, step_problems
from osbench.worker.scenarios.http_flow import HttpFlow

GOOD = [
    {"events": "sse"},
    {"events": "json", "read_for": 2, "until": "x", "max_events": 3},
    {"read_for": 0.5},
    {"events": "bytes"},
    {"events": "chunks", "max_events": 1},
]


@pytest.mark.parametrize("stream", GOOD)
def test_streams_that_can_be_read(stream):
    step = {"path": "/", "stream": stream, "check": {"header a": "b"}, "save": {"c": "cookie c"}}

    assert not [*step_problems(step)]
    assert StreamWish.of(stream).events == stream.get("events", "").replace("bytes", "")


def test_durations_of_scenarios_may_be_texts():
    assert StreamWish.of({"read_for": "1m30s"}).read_for_s == 90


def test_numbers_that_are_equal_are_not_the_same_text():
    found = [StreamWish.of({"events": "sse", "until": one}).until for one in (1, 1.0, "1")]

    assert found == ["1", "1.0", "1"]


@pytest.mark.parametrize(
    ("stream", "said"),
    [
        (
            {"event": "sse"},
            "no key 'event', only events, read_for, until, max_events; did you mean",
        ),
        ({"events": "SSE"}, "must be sse, lines, json, chunks or bytes, got 'SSE'"),
        ({"events": 3}, "got 3"),
        ({"read_for": 0}, "read_for of stream must be seconds above 0"),
        ({"read_for": -1}, "got -1"),
        ({"read_for": True}, "got True"),
        ({"read_for": "soon"}, "got 'soon'"),
        ({"read_for": float("inf")}, "got inf"),
        ({"read_for": None}, "got None"),
        ({"read_for": 1e300}, "at most 1,000,000,000"),
        ({"events": "sse", "until": ""}, "until of stream must be a text"),
        ({"events": "sse", "until": ["a"]}, "until of stream must be a text"),
        ({"events": "sse", "max_events": 0}, "max_events of stream must be an integer from 1"),
        ({"events": "sse", "max_events": 1.5}, "got 1.5"),
        ({"events": "sse", "max_events": True}, "got True"),
        ({"until": "x"}, "until of stream needs events"),
        ({"events": "bytes", "max_events": 2}, "max_events of stream needs events"),
        ({"max_events": 2}, "max_events of stream needs events"),
        ({"events": "chunks", "until": "x"}, "sse, lines or json, not chunks"),
    ],
)
def test_mistakes_in_the_mapping(stream: dict[str, Any], said: str) -> None:
    (problem,) = step_problems({"path": "/", "stream": stream})

    assert said in problem
    with pytest.raises(TypeError, match=r"of stream|stream has"):
        StreamWish.of(stream)


@pytest.mark.parametrize(
    ("step", "said"),
    [
        ({"check": {"text": "a"}}, "'text' of check is not there; until: TEXT of stream"),
        ({"check": {"$.a": 1}}, "'$.a' of check"),
        ({"verify": {"text": "a"}}, "'text' of verify"),
        ({"save": {"a": "$.a"}}, "'$.a' of save"),
        ({"save": {"a": "regex a"}}, "'regex a' of save"),
        ({"method": "HEAD"}, "HEAD has no body"),
        ({"timeout": 2}, "timeout (2 s) ends the stream as a failure before read_for (2 s)"),
    ],
)
def test_mistakes_beside_the_mapping(step: dict[str, Any], said: str) -> None:
    whole = {"path": "http://a/", "stream": {"events": "sse", "read_for": 2}, **step}

    assert any(said in one for one in step_problems(whole))
    # a flow refuses it before the load
    assert any(said in one for one in HttpFlow.check_arguments("run", {"steps": [whole]}))


@pytest.mark.parametrize("stream", [True, False, None, "sse"])
def test_streams_that_are_no_mappings_are_not_looked_at(stream):
    assert not [*step_problems({"path": "/", "stream": stream, "check": {"header a": "b"}})]


def test_a_flow_knows_the_actions_of_events():
    steps = [{"path": "http://a/", "name": "chat", "stream": {"events": "sse"}}]

    assert {"chat", "first event", "between events"} <= {
        *(HttpFlow.action_names("run", {"steps": steps}) or ())
    }
    del steps[0]["stream"]
    assert "first event" not in (HttpFlow.action_names("run", {"steps": steps}) or ())
