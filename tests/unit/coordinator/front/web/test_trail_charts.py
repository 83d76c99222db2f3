"""The small charts of the live view: lines over time, with gaps, and the ends of their axes."""

from __future__ import annotations

import pytest

from osbench.coordinator.front.web.trail_charts import trail_charts


def test_a_rate_and_two_percentiles_are_lines_from_zero_to_their_greatest_value() -> None:
    points = [[1.0, 10.0, 0.1, 0.2], [2.0, 20.0, 0.1, 0.4], [3.0, 0.0, 0.1, 0.2]]

    rate, times = trail_charts(points, "response")

    assert (rate.title, rate.most) == ("iterations per second", "20.0")
    assert (times.title, times.most) == ("response time of the last seconds", "400ms")
    assert [name for name, _ in times.lines] == ["p50", "p95"]
    assert (rate.begin, rate.end) == ("1.00s", "3.00s")
    # the greatest value is at the top, 0 at the bottom
    assert rate.lines == [("rate", "M0 40.0L300 1.0L600 79.0")]


def test_seconds_without_an_iteration_interrupt_a_line() -> None:
    points = [[0.0, 0.0, 1.0, 1.0], [1.0, 0.0, None, None], [2.0, 0.0, 1.0, 1.0]]

    _, times = trail_charts(points, "service")

    assert times.lines[0] == ("p50", "M0 1.0M600 1.0")


@pytest.mark.parametrize("points", [[], [[1.0, 2.0, None, None]]])
def test_one_point_is_not_a_line(points: list[list[float | None]]) -> None:
    assert trail_charts(points, "service") == []
