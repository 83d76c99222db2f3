"""The numbers of a criterion's configuration, by path."""

from __future__ import annotations

import pytest

from osbench.coordinator.plugins.sla.evaluator import limits_of


@pytest.mark.parametrize(
    ("config", "limits"),
    [
        ({"max": 0}, {"max": 0.0}),
        (2.5, {"limit": 2.5}),
        ([{"p": 95, "max_s": 0.5}, {"p": 99.9, "max_s": 1}], {"p95.max_s": 0.5, "p99.9.max_s": 1}),
        ({"p": 95, "max_s": 0.5, "of": "service"}, {"p95.max_s": 0.5}),
        ({"spans": {"calls": {"max": 12}}, "strict": True}, {"spans.calls.max": 12.0}),
        ([3, 4], {"0": 3.0, "1": 4.0}),
        ("off", {}),
        (None, {}),
    ],
)
def test_numbers_are_found_by_path(config: object, limits: dict[str, float]) -> None:
    assert limits_of(config) == limits
