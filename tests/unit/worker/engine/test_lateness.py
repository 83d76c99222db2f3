"""How late a process is, and for how long it could run nothing."""

from __future__ import annotations

import pytest

from osbench.worker.engine import lateness
from osbench.worker.engine.lateness import KEPT, Lateness, Stalls

BEAT_NS = 5_000_000
SECOND_NS = 1_000_000_000


def test_a_late_beat_stands_for_those_that_were_missed():
    late = Lateness(BEAT_NS)

    late.note(1000)
    late.note(3 * BEAT_NS)

    assert late.take() == [1000, 3 * BEAT_NS, 2 * BEAT_NS, BEAT_NS]
    assert late.take() == []


def test_latenesses_that_nobody_takes_are_bounded():
    late = Lateness(BEAT_NS)

    for _ in range(20):
        late.note(100 * SECOND_NS)

    assert len(late.take()) == KEPT


@pytest.mark.parametrize(
    ("used_s", "late_s", "found"),
    [
        (3.9, 4.0, [["lock", 4 * SECOND_NS]]),
        (0.1, 4.0, [["stopped", 4 * SECOND_NS]]),
        (0.9, 0.9, []),
    ],
)
def test_a_stall_with_cpu_is_the_interpreters_lock(monkeypatch, used_s, late_s, found):
    cpu = [0]
    monkeypatch.setattr(lateness.time, "process_time_ns", lambda: cpu[0])
    stalls = Stalls()

    cpu[0] += int(used_s * SECOND_NS)
    stalls.note(int(late_s * SECOND_NS))

    assert stalls.take() == found
    assert stalls.take() == []
