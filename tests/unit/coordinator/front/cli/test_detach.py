"""A command that starts itself in the background, and waits until its run has begun."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from osbench.common.errors import OsbenchError
from osbench.coordinator.front.cli import detach

RUN = "20260401-101500-abcd"
FAULTY = {"error": {"message": "a.yaml: 1 problem", "problems": [{"place": "0", "message": "no"}]}}


class Child:
    """A background process that is in the next state at each look."""

    def __init__(self, states: Iterator[tuple[int | None, bool]], said: str = "") -> None:
        self._states = states
        self._said = said
        self.interrupted = False

    @property
    def exit_code(self) -> int | None:
        code, self.begun = next(self._states)
        return code

    def output(self) -> str:
        return self._said

    def interrupt(self) -> None:
        self.interrupted = True


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    """Start a detached run whose process is the given one."""

    def start(child: Child) -> str:
        monkeypatch.setattr(detach, "DetachedRun", lambda *_: child)
        monkeypatch.setattr(detach, "LOOK_S", 0)
        return detach.start_detached(str(tmp_path), RUN)

    return start


def test_a_run_that_has_begun_and_ended_between_two_looks_has_begun(started) -> None:
    assert started(Child(iter([(None, False), (0, True)]))) == RUN


def test_a_run_that_begins_late_is_waited_for(started) -> None:
    assert started(Child(iter([*[(None, False)] * 3000, (None, True)]))) == RUN


@pytest.mark.parametrize(
    ("code", "said", "message", "exit_code"),
    [
        (2, "Error: no such file\n", "no such file", 2),
        (3, json.dumps(FAULTY), "a.yaml: 1 problem\n  0: no", 3),
        (-9, "", "the run did not begin", 2),
        (0, "7", "7", 2),
    ],
)
def test_a_run_that_does_not_begin_says_why(started, code, said, message, exit_code) -> None:
    with pytest.raises(OsbenchError) as caught:
        started(Child(iter([(None, False), (code, False)]), said))

    assert (str(caught.value), caught.value.exit_code) == (message, exit_code)


def test_ctrl_c_while_it_begins_ends_the_process_too(started) -> None:
    def states() -> Iterator[tuple[int | None, bool]]:
        yield None, False
        raise KeyboardInterrupt

    child = Child(states())

    with pytest.raises(KeyboardInterrupt):
        started(child)

    assert child.interrupted
