"""Requests to change the load, and their answers, through the run directory."""

from __future__ import annotations

import os
import signal
import threading

import pytest

from osbench.common.errors import OsbenchError, UsageError
from osbench.coordinator.results.storage import control_requests
from osbench.coordinator.results.storage.control_requests import (
    ABORT,
    AbortWatch,
    ControlRequests,
    abort,
    ask,
)
from osbench.coordinator.results.storage.run_directory import RunDirectory


@pytest.fixture
def directory(tmp_path):
    """Of a run with a coordinator: this process."""
    made = RunDirectory.create(str(tmp_path), "run")
    yield made
    made.close()


def answering(directory, **fields):
    """A coordinator that answers the next request; what was asked is in its result."""
    requests, found = ControlRequests(directory), []

    def answer():
        while not found:
            for request, asked in requests.take():
                found.append(asked)
                requests.answer(request, **fields)

    thread = threading.Thread(target=answer, daemon=True)
    thread.start()
    return found


def left(directory):
    return list((directory.path / control_requests.FOLDER).iterdir())


def test_a_request_is_answered_and_leaves_nothing(directory):
    found = answering(directory, said="50 arrivals/s")

    assert ask(directory, {"rate": 50}) == "50 arrivals/s"
    assert found == [{"rate": 50}]
    assert left(directory) == []


def test_a_refusal_is_an_error_of_use(directory):
    answering(directory, error="give --users")

    with pytest.raises(UsageError, match="give --users"):
        ask(directory, {"rate": 50})


def test_a_request_that_nobody_takes_is_withdrawn(directory, monkeypatch):
    monkeypatch.setattr(control_requests, "SEEN_S", 0.1)

    with pytest.raises(UsageError, match="run run has not taken the request within"):
        ask(directory, {"rate": 50})

    assert list(ControlRequests(directory).take()) == []
    assert left(directory) == []


def test_a_reply_to_a_requester_that_has_given_up_is_not_written(directory, monkeypatch):
    monkeypatch.setattr(control_requests, "SEEN_S", 0)
    monkeypatch.setattr(control_requests, "ANSWERED_S", 0)
    requests, taken = ControlRequests(directory), []
    write = control_requests._write

    def written(place, fields):
        write(place, fields)
        taken.extend(requests.take())

    monkeypatch.setattr(control_requests, "_write", written)

    with pytest.raises(UsageError, match="run run does not respond"):
        ask(directory, {"rate": 50})
    ((request, _),) = taken
    requests.answer(request, said="50 arrivals/s")

    assert left(directory) == []


def test_a_run_without_a_coordinator_is_not_asked(tmp_path):
    RunDirectory.create(str(tmp_path), "run").close()

    with pytest.raises(UsageError, match="not running on this machine"):
        ask(RunDirectory.of(str(tmp_path), "run"), {"rate": 50})


def test_a_coordinator_that_ends_meanwhile_has_not_answered(directory):
    requests = ControlRequests(directory)

    def end():
        while not list(requests.take()):
            pass
        directory.close()

    thread = threading.Thread(target=end, daemon=True)
    thread.start()

    with pytest.raises(UsageError, match="ended before it responded"):
        ask(directory, {"rate": 50})


def test_what_is_no_request_of_ours_asks_for_nothing(directory):
    folder = directory.path / control_requests.FOLDER
    folder.mkdir()
    (folder / "load-1.asked").write_text("[1]")
    (folder / "load-2.asked").write_text("{")
    (folder / "load-3.other").write_text("{}")
    (folder / "load-4.asked").mkdir()
    (folder / "5.asked").write_text("{}")
    (folder / "abort-6.asked").write_text("{}")

    found = dict(ControlRequests(directory).take())

    assert found == {"load-1": {}, "load-2": {}, "load-4": {}}


def test_requests_come_in_the_order_in_which_they_were_made(directory):
    folder = directory.path / control_requests.FOLDER
    folder.mkdir()
    for at in (2, 3, 1):
        (folder / f"load-{at:020}-x.asked").write_text(f'{{"rate": {at}}}')

    assert [asked["rate"] for _, asked in ControlRequests(directory).take()] == [1, 2, 3]


def test_a_run_is_asked_to_end_and_answers(directory):
    ended = []

    with AbortWatch(directory, ended.append):
        first, second = abort(directory), abort(directory, now=True)

    assert ended == [False, True]
    assert first == "run run is ending: running iterations end, then it reports"
    assert second == "run run is ending: running iterations are abandoned"
    assert left(directory) == []


def test_a_coordinator_that_does_not_answer_is_told_and_not_asked_later(directory):
    with pytest.raises(OsbenchError, match=r"has not taken the request within 0\.1 s"):
        abort(directory, timeout_s=0.1)

    assert list(ControlRequests(directory, ABORT).take()) == []
    assert left(directory) == []


def test_nothing_is_signalled_by_a_number_in_a_file(directory, monkeypatch):
    """The number in the lock of an older release may be that of a stranger by now."""
    (directory.path / "lock").write_text("1")
    for name in ("kill", "killpg"):
        monkeypatch.setattr(os, name, lambda *_: pytest.fail("a process was signalled"))
    before = signal.signal(signal.SIGINT, lambda *_: pytest.fail("this process was signalled"))

    try:
        with pytest.raises(OsbenchError, match="has not taken the request"):
            abort(directory, timeout_s=0.1)
    finally:
        signal.signal(signal.SIGINT, before)


def test_a_run_that_is_over_is_not_asked_to_end(directory):
    directory.close()

    with pytest.raises(UsageError, match="not running on this machine"):
        abort(directory)


def test_a_request_to_an_earlier_coordinator_ends_nothing(directory):
    folder = directory.path / control_requests.FOLDER
    folder.mkdir()
    (folder / "abort-1.asked").write_text("{}")
    ended = []

    with AbortWatch(directory, ended.append):
        said = abort(directory, now=True)

    assert "abandoned" in said
    assert ended == [True]


def test_requests_to_end_are_not_for_those_who_change_the_load(directory):
    folder = directory.path / control_requests.FOLDER
    folder.mkdir()
    (folder / "abort-1.asked").write_text("{}")

    assert list(ControlRequests(directory).take()) == []
    assert [request for request, _ in ControlRequests(directory, ABORT).take()] == ["abort-1"]
