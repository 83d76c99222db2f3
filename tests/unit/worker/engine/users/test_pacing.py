"""Turns of users whose rate is limited."""

from __future__ import annotations

from osbench.worker.engine.users import pacing
from osbench.worker.engine.users.pacing import Pacing


def test_the_first_turn_is_at_once_also_where_the_clock_is_younger_than_an_interval(monkeypatch):
    # the clock may count from the start of the machine
    monkeypatch.setattr(pacing, "monotonic_ns", lambda: 5_000_000_000)
    limited = Pacing()
    limited.set_rate(0.01)

    waits = []
    turns = limited.turns(0, 0)
    try:
        while len(waits) < 3:
            waits.append(next(turns))
    except StopIteration as had:
        assert had.value == 5_000_000_000

    assert waits == []
