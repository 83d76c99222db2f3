"""Requests to change the load, and their answers, through the run directory."""

from __future__ import annotations

import threading

import pytest

from osbench.common.errors import UsageError
from osbench.coordinator.storage import control_requests
from osbench.coordinator.storage.control_requests import ControlRequests, ask
from osbench.coordinator.storage.run_directory import RunDirectory


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

    with pytest.raises(UsageError, match="run run has no load now"):
        ask(directory, {"rate": 50})

    assert list(ControlRequests(directory).take()) == []
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

    with pytest.raises(UsageError, match="ended before it answered"):
        ask(directory, {"rate": 50})


def test_what_is_no_request_of_ours_asks_for_nothing(directory):
    folder = directory.path / control_requests.FOLDER
    folder.mkdir()
    (folder / "1.asked").write_text("[1]")
    (folder / "2.asked").write_text("{")
    (folder / "3.other").write_text("{}")
    (folder / "4.asked").mkdir()

    found = dict(ControlRequests(directory).take())

    assert found == {"1": {}, "2": {}, "4": {}}


def test_requests_come_in_the_order_in_which_they_were_made(directory):
    folder = directory.path / control_requests.FOLDER
    folder.mkdir()
    for at in (2, 3, 1):
        (folder / f"{at:020}-x.asked").write_text(f'{{"rate": {at}}}')

    assert [asked["rate"] for _, asked in ControlRequests(directory).take()] == [1, 2, 3]
