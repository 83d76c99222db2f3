"""The criterion `drill`: what it takes for passed, and how it says why not."""

import dataclasses

import pytest

from osbench.coordinator.results.drill_figures import DrillFigures
from osbench.coordinator.results.workload_statistics import WorkloadStatistics
from osbench.coordinator.sla.drill import DrillLimits

FOUND = DrillFigures(fault_s=10.0, bad=50, recovery_s=6.5, recovery_ci=(6.25, 7.0))
BOTH = {"failed": {"max": 50}, "recovery_s": {"max": 6.5}}


class Kept(WorkloadStatistics):
    def __init__(self, drill):
        super().__init__()
        self._kept = drill

    @property
    def drill(self):
        return self._kept


def judged(config, drill):
    return DrillLimits(config).check(Kept(drill))


def test_limits_are_kept_up_to_their_value():
    verdict = judged(BOTH, FOUND)

    assert verdict.success
    assert verdict.detail == (
        "50 iterations did not succeed from the fault on, allowed 50; recovered after 6.50s"
        " (95 %: 6.25s to 7.00s), allowed 6.50s"
    )


@pytest.mark.parametrize(
    ("config", "drill", "detail"),
    [
        ({"failed": {"max": 49}}, FOUND, "50 iterations did not succeed from the fault on"),
        ({"recovery_s": {"max": 6}}, FOUND, "recovered after 6.50s"),
        (
            {"recovery_s": {"max": 6}},
            DrillFigures(fault_s=1.0, doubt="the load had not recovered when it ended"),
            "the load had not recovered when it ended, allowed 6.00s to recover",
        ),
        (
            {"failed": {"max": 99}},
            dataclasses.replace(
                FOUND, problem="the hook that begins the fault (“x”) has not fired"
            ),
            "the hook that begins the fault (“x”) has not fired",
        ),
        (BOTH, None, "has no `phases`"),
    ],
)
def test_what_is_above_or_not_known_fails(config, drill, detail):
    verdict = judged(config, drill)

    assert not verdict.success
    assert detail in verdict.detail
    assert ";" not in verdict.detail
