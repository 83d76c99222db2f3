"""How long a run waits for servers that are away, also once it was interrupted."""

from __future__ import annotations

import pytest

from osbench.common.errors import StoreLost, StoreUnreachable
from osbench.coordinator.load.transport import outages
from osbench.coordinator.load.transport.outages import INTERRUPTED_S, Outage, Outages

AWAY = StoreUnreachable("Redis does not respond", server="Redis")


class Desk:
    """Outages of a run under a clock."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = 0.0
        monkeypatch.setattr(outages.time, "monotonic", lambda: self.now)
        self.noted: list[tuple[Outage, float]] = []
        self.outages = Outages(lambda server, lasted_s: self.noted.append((server, lasted_s)), 60.0)

    def fail(self, at_s: float, *, interrupted: bool = True) -> None:
        """A command fails. Raises StoreLost if that has lasted for too long."""
        self.now = at_s
        self.outages.take(AWAY)
        self.outages.lose_patience(AWAY, interrupted=interrupted)

    def answer(self, at_s: float) -> None:
        """A command succeeds."""
        self.now = at_s
        self.outages.redis_answers()


@pytest.fixture
def desk(monkeypatch: pytest.MonkeyPatch) -> Desk:
    return Desk(monkeypatch)


def test_a_run_that_was_interrupted_waits_for_each_outage(desk: Desk) -> None:
    desk.fail(1.0)
    desk.answer(1.5)

    desk.fail(1.5 + 2 * INTERRUPTED_S)

    assert desk.outages.redis == "Redis"


def test_it_does_not_wait_for_long(desk: Desk) -> None:
    desk.fail(1.0)

    with pytest.raises(StoreLost, match="and the run was interrupted"):
        desk.fail(1.1 + INTERRUPTED_S)


def test_one_that_was_not_waits_as_long_as_the_option_says(desk: Desk) -> None:
    desk.fail(1.0, interrupted=False)
    desk.fail(50.0, interrupted=False)

    with pytest.raises(StoreLost, match="for 60 s"):
        desk.fail(62.0, interrupted=False)


def test_an_outage_is_noted_when_it_is_over(desk: Desk) -> None:
    desk.answer(10.0)
    desk.fail(11.0, interrupted=False)

    desk.answer(14.0)

    assert desk.noted == [(Outage("Redis", is_broker=False), pytest.approx(4.0))]
