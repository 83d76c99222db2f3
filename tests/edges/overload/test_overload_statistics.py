"""Verdicts on overloads whose fate is known: of services, of the generator, and of odd loads."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from helpers.planted_overloads import NS, Floats, resumed, rows_of
from osbench.common.protocol.columns import Columns
from osbench.common.values.outcomes import Outcome
from osbench.coordinator.plugins.runners.schedule import Even
from osbench.coordinator.results.accounting.generator_delay import GeneratorDelay
from osbench.coordinator.results.accounting.workload_statistics import WorkloadStatistics
from osbench.edges.overload.overload_plan import OverloadPlan
from osbench.edges.overload.overload_statistics import OverloadStatistics
from osbench.edges.overload.recovers import Recovers
from truth.overloads import RIGHT, draw, falsehood, pauses_of, verdict_of

PLAN = OverloadPlan.of(
    {"times": 2, "for": 10, "back_to": 0.5, "before": 20, "watch": 40}, capacity=100
)
DUE = Even(PLAN.curve).due(0, None, 1000)


@pytest.mark.parametrize("kind", RIGHT)
def test_a_planted_service_is_named_right(kind: str) -> None:
    one, random = draw(kind, seed=7)

    assert verdict_of(one) == (RIGHT[kind], "")
    assert falsehood(one, pauses_of(random, one))[1] == ""


def usual() -> Floats:
    """Times of a steady service, seconds."""
    return 0.02 * np.exp(np.random.default_rng(1).normal(0, 0.1, len(DUE)))


def statistics(
    took: Floats,
    *,
    well: Any = None,
    started: Floats | None = None,
    until_s: float = 1000.0,
    dropped: Any = None,
    plan: OverloadPlan = PLAN,
) -> OverloadStatistics:
    """The statistics of a load; `dropped` arrivals never started."""
    made = OverloadStatistics(plan)
    started = DUE if started is None else started
    well = np.ones(len(DUE), bool) if well is None else well
    for here in np.array_split(np.flatnonzero(until_s > DUE), 40):
        columns = rows_of(here, DUE, started, started + took, well)
        if dropped is not None:
            columns.outcome[dropped[here]] = Outcome.DROPPED_MAX_CONCURRENCY
        made.add(columns)
        made.add_lateness("w", columns, np.zeros(100, np.int64))
    return made


def found(made: OverloadStatistics) -> dict[str, Any]:
    overload = made.figures().overload
    assert overload is not None
    return dict(overload)


def test_a_service_that_notices_nothing_was_not_overloaded() -> None:
    made = found(statistics(usual()))

    assert made["verdict"] == "not overloaded"
    assert made["sentences"][0].startswith("not overloaded: 200/s had no effect")


def test_failures_that_stay_are_stuck_and_failures_that_end_are_back() -> None:
    after = PLAN.return_s <= DUE
    overload = (PLAN.begin_s <= DUE) & ~after

    back = found(statistics(usual(), well=~(overload | (after & (PLAN.return_s + 5 > DUE)))))
    stuck = found(statistics(usual(), well=~(overload | after)))

    assert back["verdict"] == "back"
    low, high = back["back_ci"]
    assert low <= 5 <= high
    assert stuck["verdict"] == "stuck"
    assert "no iteration succeeds and 100 % fail (before: 0 %)" in stuck["sentences"][0]
    assert "watched 40.0s after the return" in stuck["sentences"][0]


def test_an_answer_of_stuck_needs_an_observation_that_a_backlog_could_drain_in() -> None:
    bad = PLAN.begin_s <= DUE

    early = found(statistics(usual(), well=~bad, until_s=PLAN.return_s + 15))

    assert early["verdict"] == "unknown"
    assert "a plain backlog of this overload takes 20.0s to drain: raise `watch`" in early["reason"]
    assert early["is_generators"] is False


def test_waiting_in_the_generator_is_not_the_services() -> None:
    # the service is always quick; arrivals start up to 8 s late from the overload on
    late = np.where(PLAN.begin_s <= DUE, 8.0, 0.0)

    made = statistics(usual(), started=DUE + late)

    assert found(made)["verdict"] == "not overloaded"


def test_arrivals_that_were_dropped_say_nothing_of_the_service() -> None:
    dropped = (PLAN.begin_s <= DUE) & (np.arange(len(DUE)) % 2 == 0)

    made = found(statistics(usual(), dropped=dropped))

    assert made["verdict"] == "unknown"
    assert made["is_generators"] is True
    assert [round(one["own_share"], 2) for one in made["phases"]] == [0, 0.5, 0.5, 0.5]


@pytest.mark.parametrize(
    ("from_s", "to_s", "when"), [(20, 30, "of the overload"), (30, 42, "after the return")]
)
def test_a_service_that_came_back_while_arrivals_were_dropped_has_no_answer(
    from_s: float, to_s: float, when: str
) -> None:
    bad = (PLAN.begin_s <= DUE) & (PLAN.return_s + 12 > DUE)
    dropped = (from_s <= DUE) & (to_s > DUE) & (np.arange(len(DUE)) % 5 < 2)

    made = found(statistics(usual(), well=~bad, dropped=dropped))

    assert (made["verdict"], made["is_generators"]) == ("unknown", True)
    assert f"% of the arrivals {when} never reached the service" in made["reason"]


def test_a_service_that_fails_beside_drops_is_stuck_all_the_same() -> None:
    since = PLAN.begin_s <= DUE
    dropped = since & (np.arange(len(DUE)) % 2 == 0)

    assert found(statistics(usual(), well=~since, dropped=dropped))["verdict"] == "stuck"


def test_slowness_that_a_late_generator_explains_is_not_the_services() -> None:
    pauses = tuple((float(at), at + 2.0) for at in range(31, 70, 3))
    made = OverloadStatistics(PLAN)
    started = resumed(DUE, pauses)
    ended = resumed(started + usual(), pauses)
    beats = np.arange(0, 80, 0.01)
    lags = resumed(beats, pauses) - beats
    for second in range(80):
        here = np.flatnonzero(ended.astype(int) == second)
        if len(here):
            columns = rows_of(here, DUE, started, ended, np.ones(len(DUE), bool))
            made.add(columns)
            beat = beats.astype(int) == second
            made.add_lateness("w", columns, (lags[beat] * NS).astype(np.int64))

    verdict = found(made)["verdict"]

    assert verdict in ("unknown", "not overloaded")


def test_a_service_that_is_not_steady_before_the_overload_has_no_answer() -> None:
    took = np.where(PLAN.begin_s / 2 <= DUE, 5.0, 1.0) * usual()

    made = found(statistics(took, well=PLAN.begin_s > DUE))

    assert made["verdict"] == "unknown"
    assert "not steady before the overload" in made["reason"]


def test_a_relapse_is_not_called_stuck() -> None:
    bad = ((PLAN.begin_s <= DUE) & (PLAN.return_s > DUE)) | (PLAN.return_s + 25 < DUE)

    made = found(statistics(usual(), well=~bad))

    assert made["verdict"] == "unknown"
    assert "is worse again at the end" in made["reason"]


def test_a_service_that_still_recovers_at_the_end_has_no_answer() -> None:
    since = DUE - PLAN.return_s
    took = np.where(since > 0, 10 - since / 5, 1.0) * np.where(PLAN.begin_s > DUE, usual(), 1.0)

    made = found(statistics(took))

    assert made["verdict"] == "unknown"
    assert "still recovering when the load ended" in made["reason"]


@pytest.mark.parametrize(
    ("until_s", "reason"),
    [
        (15.0, "the load ended before the overload"),
        (25.0, "the load ended before it returned to its share"),
        (30.5, "40 arrivals are needed"),
    ],
)
def test_a_load_that_was_cut_short_says_so(until_s: float, reason: str) -> None:
    made = found(statistics(usual(), until_s=until_s))

    assert made["verdict"] == "unknown"
    assert reason in made["reason"]


def test_a_load_that_was_changed_says_so() -> None:
    # a third of all after the return never came: `control`, or a coordinator that was gone
    made = OverloadStatistics(PLAN)
    here = np.flatnonzero((PLAN.return_s > DUE) | (np.arange(len(DUE)) % 3 > 0))
    made.add(rows_of(here, DUE, DUE, DUE + usual(), np.ones(len(DUE), bool)))

    overload = found(made)

    assert overload["verdict"] == "unknown"
    assert (
        "after the return 33.3 arrivals per second were counted, and 50.0 planned"
        in (overload["reason"])
    )


def test_no_rows_are_no_error() -> None:
    made = OverloadStatistics(PLAN)

    assert found(made)["verdict"] == "unknown"
    assert found(made)["loop"] == []


def test_requests_that_have_stayed_up_are_named() -> None:
    made = OverloadStatistics(PLAN)
    since = PLAN.begin_s <= DUE
    here = np.arange(len(DUE))
    columns = with_requests(rows_of(here, DUE, DUE, DUE + usual(), ~since), np.where(since, 3, 1))
    made.add(columns)

    overload = found(made)

    (requests,) = [one for one in overload["held_by"] if one["name"] == "requests per iteration"]
    assert (requests["before"], requests["overload"], requests["end"]) == (1, 3, 3)
    assert (
        "still changed at the end: requests per iteration 1 before, 3.00 in the overload"
        in overload["sentences"][1].replace("1.00", "1")
    )


def with_requests(columns: Columns, numbers: Any) -> Columns:
    """The rows with so many HTTP requests each, over kept connections."""
    exchanges = np.zeros(int(numbers.sum()), columns.exchanges.dtype)
    exchanges["client"] = -1
    return Columns(
        **{
            **{name: getattr(columns, name) for name in vars(columns)},
            "exchanges": exchanges,
            "exchanged": np.repeat(np.arange(len(columns)), numbers),
        }
    )


def test_the_last_phase_of_a_load_that_was_stopped_has_its_own_figures() -> None:
    made = OverloadStatistics(PLAN)
    here = np.flatnonzero(PLAN.return_s + 10 > DUE)
    # four requests in the last five seconds of it
    numbers = np.where(PLAN.return_s + 5 <= DUE[here], 4, 1)
    columns = rows_of(here, DUE, DUE, DUE + usual(), np.ones(len(DUE), bool))
    made.add(with_requests(columns, numbers))

    phases = found(made)["phases"]

    assert [one["to_s"] for one in phases] == pytest.approx([20, 30, 35, 40], abs=0.1)
    assert [one["requests"] for one in phases] == [1, 1, 1, 4]
    assert phases[3]["in_flight"] == pytest.approx(50 * 0.02, rel=0.05)


def judged(made: OverloadStatistics, within: float) -> Any:
    whole = WorkloadStatistics(is_open=True, drill=made)
    return Recovers({"within": within}).check(whole)


def test_the_criterion_judges_the_time_after_the_return() -> None:
    bad = (PLAN.begin_s <= DUE) & (PLAN.return_s + 5 > DUE)
    made = statistics(usual(), well=~bad)

    assert judged(made, 8).success
    late = judged(made, 3)
    assert not late.success
    assert late.detail.startswith("back at 50.0/s: as before 5.00s after the return")
    assert late.detail.endswith("allowed 3.00s")


def test_the_criterion_fails_for_a_service_that_is_stuck_and_passes_for_one_that_holds() -> None:
    assert not judged(statistics(usual(), well=PLAN.begin_s > DUE), 1000).success
    assert judged(statistics(usual()), 0).success


def test_the_criterion_fails_without_an_overload() -> None:
    verdict = Recovers({"within": 5}).check(WorkloadStatistics(is_open=True))

    assert (verdict.success, verdict.detail) == (
        False,
        "the workload has no overload: use the runner overload",
    )


def test_a_criterion_that_only_drops_break_is_met_without_them() -> None:
    dropped = (PLAN.begin_s <= DUE) & (np.arange(len(DUE)) % 2 == 0)
    made = statistics(usual(), dropped=dropped)
    whole = WorkloadStatistics(is_open=True, drill=made)

    without = GeneratorDelay(whole).statistics_without

    assert not judged(made, 5).success
    assert without is not None
    assert Recovers({"within": 5}).check(without).success
