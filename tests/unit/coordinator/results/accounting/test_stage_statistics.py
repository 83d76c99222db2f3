"""Statistics of the stages of a load."""

import pytest

from helpers.result_rows import row_of
from osbench.common.protocol.columns import decode_rows, encode_rows
from osbench.common.values.outcomes import Outcome
from osbench.coordinator.plugins.runners.constant import Constant
from osbench.coordinator.plugins.runners.constant_for_duration import ConstantForDuration
from osbench.coordinator.plugins.runners.rps import Rps
from osbench.coordinator.plugins.runners.stages import StagedRate
from osbench.coordinator.plugins.runners.user_stages import StagedUsers
from osbench.coordinator.results.accounting.stage_statistics import MOST_STAGES, StageStatistics

SECOND = 1_000_000_000


def rows(*spans):
    """Rows of (due, started, ended, outcome), in seconds."""
    return decode_rows(
        encode_rows(
            [
                row_of(number, int(outcome), *(int(at * SECOND) for at in times), 0, 0, (), None)
                for number, (*times, outcome) in enumerate(spans, 1)
            ],
            [],
            0,
        )
    )


def of(runner):
    return StageStatistics(runner.asked(), is_open=runner.OPEN, lasts_s=runner.lasts_s)


def spans(statistics, until_s):
    return [(one.from_s, one.to_s, one.begin, one.end) for one in statistics.figures(until_s)]


UP_AND_DOWN = StagedRate(
    {
        "stages": [
            {"duration": 10, "target": 20},
            {"duration": 0, "target": 5},
            {"duration": 30, "target": 5},
        ]
    }
)


def test_iterations_belong_to_the_stage_in_which_they_were_due():
    found = of(UP_AND_DOWN)
    ok = Outcome.OK

    found.add(rows((1, 1, 2, ok), (9, 11, 12, ok), (10, 10, 10.5, ok), (39, 39, 45, ok)))
    found.add(rows((9, 9, 10, Outcome.FAILED), (11, 11, 20, Outcome.TIMED_OUT)))
    found.add(rows((12, 12, 12, Outcome.DROPPED_LATE), (13, 13, 13, Outcome.DROPPED_CAPACITY)))
    first, second = found.figures(45)

    assert (first.from_s, first.to_s, first.begin, first.end) == (0, 10, 0, 20)
    assert (first.ok, first.failed, first.timed_out, first.dropped) == (2, 1, 0, 0)
    assert (second.from_s, second.to_s, second.begin, second.end) == (10, 40, 5, 5)
    assert (second.ok, second.failed, second.timed_out, second.dropped) == (2, 0, 1, 2)
    assert first.ok_per_s == pytest.approx(0.2)
    # response times of an open load: the second was late by two seconds
    assert first.p99_s == pytest.approx(3, rel=0.01)
    assert second.p50_s == pytest.approx(0.5, rel=0.01)


def test_a_stage_in_which_nothing_ended_well_has_no_percentiles():
    first, _ = of(UP_AND_DOWN).figures(45)

    assert (first.ok, first.ok_per_s, first.p50_s, first.p99_s) == (0, 0, None, None)


def test_a_load_that_was_cut_short_has_the_stages_that_had_begun():
    assert spans(of(UP_AND_DOWN), 25) == [(0, 10, 0, 20), (10, 25, 5, 5)]
    assert spans(of(UP_AND_DOWN), 10) == [(0, 10, 0, 20)]


@pytest.mark.parametrize(
    ("runner", "stages"),
    [
        (Constant({"times": 10, "concurrency": 4, "ramp_up": 2}), [(0, 2, 0, 4), (2, 60, 4, 4)]),
        (
            ConstantForDuration({"duration": 20, "concurrency": 4, "ramp_up": 2}),
            [(0, 2, 0, 4), (2, 20, 4, 4)],
        ),
        (
            Rps({"times": 99, "rps": {"start": 1, "end": 3, "step": 1, "duration": 5}}),
            [(0, 5, 1, 1), (5, 10, 2, 2), (10, 60, 3, 3)],
        ),
        (
            StagedUsers(
                {"start": 2, "stages": [{"duration": 3, "users": 8}, {"duration": 4, "users": 0}]}
            ),
            [(0, 3, 2, 8), (3, 7, 8, 0)],
        ),
    ],
)
def test_every_change_of_what_is_asked_for_begins_a_stage(runner, stages):
    assert spans(of(runner), 60) == stages


@pytest.mark.parametrize(
    "runner",
    [
        Constant({"times": 10}),
        Rps({"times": 10, "rps": 5}),
        ConstantForDuration({"duration": 5}),
        StagedRate({"start": 3, "stages": [{"duration": 5, "target": 3}]}),
    ],
)
def test_a_load_without_a_change_has_no_stages(runner):
    found = of(runner)
    found.add(rows((1, 1, 2, Outcome.OK)))

    assert spans(found, 60) == []


def test_too_many_stages_have_no_statistics():
    stages = [{"duration": 1, "target": at} for at in range(1, MOST_STAGES + 2)]

    assert spans(of(StagedRate({"stages": stages})), 1e6) == []
    assert len(spans(of(StagedRate({"stages": stages[:-1]})), 1e6)) == MOST_STAGES


def test_iterations_run_and_end_in_stages_whenever_they_were_due():
    found = of(UP_AND_DOWN)
    ok = Outcome.OK

    # across the change at 10 s, across the end at 40 s, and what was not started
    found.add(rows((9, 9, 12, ok), (38, 38, 45, ok), (20, 20, 20, Outcome.DROPPED_LATE)))
    found.add(rows((1, 1, 4, ok), (9, 9.5, 10.5, Outcome.FAILED), (39, 41, 42, ok)))
    first, second = found.figures(45)

    assert first.ended_per_s == pytest.approx(1 / 10)
    assert second.ended_per_s == pytest.approx(1 / 30)
    assert first.in_flight == pytest.approx((1 + 3 + 0.5) / 10)
    assert second.in_flight == pytest.approx((2 + 2 + 0.5) / 30)
    assert first.ok_per_s == pytest.approx(2 / 10)


def test_an_overload_ends_less_than_it_begins():
    # 10/s, then 40/s; one is served after the other, 20 of them a second
    arrivals = [at / 10 for at in range(100)] + [10 + at / 40 for at in range(400)]
    free, served = 0.0, []
    for due in arrivals:
        free = max(due, free) + 0.05
        served.append((due, due, free, Outcome.OK))
    runner = StagedRate(
        {
            "start": 10,
            "stages": [
                {"duration": 10, "target": 10},
                {"duration": 0, "target": 40},
                {"duration": 10, "target": 40},
            ],
        }
    )
    found = of(runner)

    found.add(rows(*served))
    light, heavy = found.figures(30)

    assert (light.ok_per_s, heavy.ok_per_s) == (10, 40)
    assert light.ended_per_s == pytest.approx(10)
    assert heavy.ended_per_s == pytest.approx(20, rel=0.02)
    assert light.in_flight == pytest.approx(0.5, rel=0.02)
    # it grows by 20 each second, to 200
    assert heavy.in_flight == pytest.approx(100, rel=0.02)


def test_think_time_is_no_time_in_flight_nor_in_times():
    thinking = decode_rows(
        encode_rows(
            [row_of(1, int(Outcome.OK), SECOND, 2 * SECOND, 6 * SECOND, 3 * SECOND, 0, (), None)],
            [],
            0,
        )
    )
    found, closed = of(UP_AND_DOWN), of(StagedUsers({"stages": [{"duration": 10, "users": 8}] * 2}))

    found.add(thinking)
    closed.add(thinking)
    (first,), (of_closed, _) = found.figures(10), closed.figures(20)

    assert first.in_flight == of_closed.in_flight == pytest.approx(0.1)
    assert first.p50_s == pytest.approx(2, rel=0.01)
    assert of_closed.p50_s == pytest.approx(1, rel=0.01)


def test_an_iteration_may_run_through_stages():
    steps = [{"duration": 1, "target": at} for at in range(1, 6)]
    found = of(StagedRate({"stages": steps}))

    found.add(rows((0.5, 0.5, 4.25, Outcome.OK)))

    flights = [stage.in_flight for stage in found.figures(5)]
    assert flights == pytest.approx([0.5, 1, 1, 1, 0.25])
    assert [stage.ended_per_s for stage in found.figures(5)] == [0, 0, 0, 0, 1]
