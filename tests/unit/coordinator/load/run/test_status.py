"""When contexts that are being undone are left to `cleanup`."""

from __future__ import annotations

from osbench.coordinator.load.run.status import UNDO_S, Interruption


def test_a_clean_up_without_end_is_left_some_time_after_ctrl_c() -> None:
    interruption = Interruption()

    assert not interruption.leaves(10.0)
    assert not interruption.leaves(10.0 + 2 * UNDO_S)

    interruption.level = 1
    assert not interruption.leaves(5000.0)
    assert not interruption.leaves(5000.0 + UNDO_S - 1)
    interruption.level = 2
    assert not interruption.leaves(5000.0 + UNDO_S - 1)
    assert interruption.leaves(5000.0 + UNDO_S)


def test_a_third_ctrl_c_leaves_them_at_once() -> None:
    assert Interruption(level=3).leaves(0.0)
