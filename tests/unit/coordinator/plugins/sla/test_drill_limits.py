"""The criterion `drill`: what it takes for passed, and how it says why not."""

import dataclasses

import pytest

from osbench.coordinator.plugins.sla.drill import DrillLimits
from osbench.coordinator.results.accounting.drill_figures import DrillFigures, LeftFigures, LeftKind
from osbench.coordinator.results.accounting.workload_statistics import WorkloadStatistics

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


SERVERS = LeftKind(kind="servers", in_error=2, changing=1)
LOST = {"volumes": "503 Service Unavailable"}


@pytest.mark.parametrize(
    ("left", "most", "success", "detail"),
    [
        (LeftFigures(kinds=(SERVERS,)), 3, True, "3 resources left in error, allowed 3"),
        (LeftFigures(kinds=(SERVERS,)), 2, False, "3 resources left in error, allowed 2"),
        (LeftFigures(kinds=(LeftKind(kind="servers"),)), 0, True, "0 resources left in error"),
        (LeftFigures(), 0, True, "0 resources left in error, allowed 0"),
        (
            LeftFigures(kinds=(SERVERS,), unlisted=LOST),
            3,
            False,
            "3 resources left in error, and volumes could not be listed: 503 Service Unavailable,"
            " allowed 3",
        ),
        (LeftFigures(unlisted=LOST), 3, False, "volumes could not be listed: 503"),
        (
            LeftFigures(problem="Ctrl-C ended the search for resources in error"),
            3,
            False,
            "Ctrl-C ended",
        ),
        (None, 3, False, "resources in error were not searched: the load did not end as planned"),
    ],
)
def test_resources_left_in_error_are_limited_and_what_is_not_known_fails(
    left, most, success, detail
):
    drill = dataclasses.replace(FOUND, left=left)

    verdict = judged({"left_in_error": {"max": most}}, drill)

    assert verdict.success == success
    assert verdict.detail.startswith(detail)


def test_all_limits_that_are_exceeded_are_said():
    drill = dataclasses.replace(FOUND, recovery_s=None, doubt="it had not recovered")

    verdict = judged({**BOTH, "failed": {"max": 1}, "left_in_error": {"max": 0}}, drill)

    assert [text.partition(",")[0] for text in verdict.detail.split("; ")] == [
        "50 iterations did not succeed from the fault on",
        "resources in error were not searched: the load did not end as planned",
        "it had not recovered",
    ]
