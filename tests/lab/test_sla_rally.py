"""Each criterion that Rally has against Rally's own class, on the same iterations."""

from __future__ import annotations

import random
import re
from typing import Any

import hypothesis.strategies as st
import jsonschema
import pytest
from hypothesis import HealthCheck, event, given, settings

from helpers.iterations import TICKS_A_SECOND, Action, Iteration, as_rally, columns, statistics
from helpers.lab.rally_judge import RallyJudge
from osbench.common.plugin.plugins import Plugins
from osbench.common.plugin.sla import Sla
from osbench.common.values.outcomes import RAN, Outcome

PLUGINS = Plugins()
pytestmark = pytest.mark.lab

NAMES = ("boot", "delete", "list")


def seconds(ticks: int) -> float:
    return ticks / TICKS_A_SECOND


# few different values make ties, many make tails
TICKS = st.one_of(st.integers(1, 4), st.integers(1, 3000))
ACTIONS = st.builds(
    Action,
    name=st.sampled_from(NAMES),
    ticks=TICKS,
    failed=st.booleans(),
    within=st.lists(st.builds(Action, name=st.sampled_from(NAMES), ticks=TICKS), max_size=2).map(
        tuple
    ),
)
ITERATIONS = st.lists(
    st.builds(
        Iteration,
        ticks=TICKS,
        outcome=st.sampled_from([Outcome.OK, Outcome.OK, *RAN]),
        idle=st.integers(0, 5),
        lag=st.integers(0, 5),
        actions=st.lists(ACTIONS, max_size=3).map(tuple),
    ),
    max_size=60,
)
LIMIT = TICKS.map(seconds)
CONFIGS = {
    "failure_rate": st.one_of(
        st.fixed_dictionaries({"max": st.sampled_from([0, 20, 50, 99.5, 100])}),
        st.fixed_dictionaries({"min": st.sampled_from([0, 10, 50]), "max": st.just(75)}),
    ),
    "max_seconds_per_iteration": LIMIT,
    "max_avg_duration": LIMIT,
    "max_avg_duration_per_atomic": st.dictionaries(st.sampled_from(NAMES), LIMIT, min_size=1),
    "outliers": st.fixed_dictionaries(
        {"max": st.integers(0, 6)},
        optional={
            "min_iterations": st.integers(3, 12),
            # no integer: a duration exactly at the limit is a matter of rounding
            "sigmas": st.sampled_from([0.7071, 1.37, 2.9]),
        },
    ),
    "performance_degradation": st.fixed_dictionaries(
        {"max_degradation": st.sampled_from([0, 50, 100, 200, 1000, 100_000])}
    ),
}


def has_data(criterion: str, config: Any, iterations: list[Iteration]) -> bool:
    """Whether there is anything that a criterion could judge."""
    if criterion in ("failure_rate", "max_seconds_per_iteration"):
        return bool(iterations)
    succeeded = [one for one in iterations if one.outcome == Outcome.OK]
    if criterion != "max_avg_duration_per_atomic":
        return bool(succeeded)
    return set(config) <= {action.name for one in succeeded for action in one.actions}


def ours(criterion: str, config: Any, blocks: list[list[Iteration]]) -> Any:
    """Our verdict, of results that came in blocks."""
    kind = PLUGINS.get("sla", criterion)
    assert issubclass(kind, Sla)
    found = kind(config)
    parts = [columns(block) for block in blocks if block]
    for part in parts:
        found.add(part)
    return found.check(statistics(*parts))


@pytest.mark.parametrize("criterion", CONFIGS)
@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_verdicts_are_rallys_save_that_no_data_is_a_failure(
    judge: RallyJudge, criterion: str, data: st.DataObject
) -> None:
    iterations = data.draw(ITERATIONS)
    config = data.draw(CONFIGS[criterion])
    cut = data.draw(st.integers(0, len(iterations)))
    theirs = judge.ask(criterion, config, iterations=as_rally(iterations))

    verdict = ours(criterion, config, [iterations[:cut], iterations[cut:]])

    if has_data(criterion, config, iterations):
        assert verdict.success == theirs["success"], (verdict, theirs)
        event(f"{criterion} {verdict.success}")
    else:
        assert not verdict.success
    assert verdict.criterion == theirs["criterion"]


@pytest.mark.parametrize("seed", range(12))
def test_as_many_outliers_as_rally_finds(judge: RallyJudge, seed: int) -> None:
    chance = random.Random(seed)
    ticks = [
        chance.choice([10, 20, 30]) if seed % 2 else chance.randint(50, 900) for _ in range(300)
    ]
    iterations = [
        Iteration(ticks=one, outcome=chance.choice([Outcome.OK] * 5 + [Outcome.FAILED]))
        for one in ticks
    ]
    config = {"max": 0, "sigmas": 0.5 + seed / 20.3, "min_iterations": 3 + seed}
    theirs = judge.ask("outliers", config, iterations=as_rally(iterations))

    verdict = ours("outliers", config, [iterations[:seed], iterations[seed:90], iterations[90:]])

    assert first_number(verdict.detail) == first_number(theirs["detail"])
    assert first_number(verdict.detail) > 0


def first_number(text: str) -> int:
    found = re.search(r"\d+", text)
    assert found
    return int(found[0])


@pytest.mark.parametrize(("most", "success"), [(1, True), (0, False)])
def test_outliers_with_rallys_defaults(judge: RallyJudge, most: int, success: bool) -> None:
    iterations = [Iteration(ticks=ticks) for ticks in (10, 11, 12, 10, 11, 12, 90, 12)]

    theirs = judge.ask("outliers", {"max": most}, iterations=as_rally(iterations))

    assert theirs["success"] == success
    assert ours("outliers", {"max": most}, [iterations]).success == success


@pytest.mark.parametrize(
    ("criterion", "config"),
    [
        ("failure_rate", {"max": 0}),
        ("failure_rate", {"min": 1.5, "max": 100}),
        ("failure_rate", {}),
        ("failure_rate", {"max": 101}),
        ("failure_rate", {"max": -1}),
        ("failure_rate", {"maximum": 1}),
        ("failure_rate", 5),
        ("max_seconds_per_iteration", 2.5),
        ("max_seconds_per_iteration", 0),
        ("max_seconds_per_iteration", -1),
        ("max_seconds_per_iteration", "1"),
        ("max_avg_duration", 1),
        ("max_avg_duration", 0),
        ("max_avg_duration", {"max": 1}),
        ("max_avg_duration_per_atomic", {"boot": 1.5, "any name": 2}),
        ("max_avg_duration_per_atomic", {}),
        ("max_avg_duration_per_atomic", {"boot": "1"}),
        ("max_avg_duration_per_atomic", 1),
        ("outliers", {}),
        ("outliers", {"max": 0, "min_iterations": 3, "sigmas": 0.1}),
        ("outliers", {"max": -1}),
        ("outliers", {"max": 1.5}),
        ("outliers", {"min_iterations": 2}),
        ("outliers", {"sigmas": 0}),
        ("outliers", {"sigma": 1}),
        ("performance_degradation", {"max_degradation": 0}),
        ("performance_degradation", {"max_degradation": -1}),
        ("performance_degradation", {}),
        ("performance_degradation", {"max_degradation": 1, "min": 1}),
    ],
)
def test_schemas_take_what_rally_takes(judge: RallyJudge, criterion: str, config: Any) -> None:
    theirs = judge.ask(criterion, config)

    schema = PLUGINS.get("sla", criterion).CONFIG_SCHEMA  # type: ignore[attr-defined]

    assert jsonschema.Draft7Validator(schema).is_valid(config) == (not theirs), theirs
