from dataclasses import replace

import jsonschema
import pytest

from helpers.iterations import TICK, Action, Iteration, columns, failed, ok, statistics
from osbench.common.plugin.plugins import Plugins
from osbench.common.values.outcomes import Outcome
from osbench.coordinator.front.cli.commands.plugin import example
from osbench.coordinator.task.taskfile.schema.schema_errors import validate

PLUGINS = Plugins()
NAMES = (
    "failure_rate",
    "max_avg_duration",
    "max_avg_duration_per_atomic",
    "max_seconds_per_iteration",
    "outliers",
    "percentile",
    "performance_degradation",
    "start_lag",
    "throughput",
)
CONFIGS = {
    "failure_rate": {"max": 100},
    "max_avg_duration": 1,
    "max_avg_duration_per_atomic": {"boot": 1},
    "max_seconds_per_iteration": 1,
    "outliers": {},
    "percentile": {"p": 50, "max_s": 1},
    "performance_degradation": {"max_degradation": 0},
    "start_lag": {"max_s": 1},
    "throughput": {"min": 0.1},
}
#: Half a second in ticks.
HALF = 256


def criterion(name, config):
    """A criterion as a task file names it."""
    kind = PLUGINS.get("sla", name)
    assert not validate(config, kind.CONFIG_SCHEMA, "")
    assert not kind.check_config(config)
    return kind(config)


def judged(name, config, iterations):
    """Its verdict after some iterations."""
    made, rows = criterion(name, config), columns(iterations)
    made.add(rows)
    return made.check(statistics(rows))


def breach(name, config, iterations, plan):
    """What makes a run that aborts on SLA failure stop after some iterations."""
    made, rows = criterion(name, config), columns(iterations)
    made.add(rows)
    return made.breach(statistics(rows), plan)


def test_every_criterion_can_be_found_and_has_a_schema_with_an_example():
    found = PLUGINS.names("sla")

    assert set(NAMES) <= set(found)
    for name in NAMES:
        kind = PLUGINS.get("sla", name)
        assert name == kind.NAME
        jsonschema.Draft7Validator.check_schema(kind.CONFIG_SCHEMA)
        criterion(name, example(kind.CONFIG_SCHEMA))


@pytest.mark.parametrize("name", NAMES)
def test_without_any_iteration_it_fails_and_nothing_is_breached(name):
    made = criterion(name, CONFIGS[name])

    verdict = made.check(statistics())

    assert not verdict.success
    assert verdict.criterion == name
    assert verdict.detail
    assert made.breach(statistics(), 10) is None
    assert made.breach(statistics(), None) is None


@pytest.mark.parametrize(
    "name", ["max_avg_duration", "outliers", "percentile", "performance_degradation"]
)
def test_failed_iterations_are_no_data_for_durations(name):
    verdict = judged(name, CONFIGS[name], failed(1, 1, 1))

    assert not verdict.success
    assert "succeeded" in verdict.detail


def test_the_longest_iteration_may_also_be_a_failed_one():
    iterations = ok(HALF) + failed(2 * HALF)

    assert judged("max_seconds_per_iteration", 1, iterations).success
    verdict = judged("max_seconds_per_iteration", 0.99, iterations)
    assert not verdict.success
    assert verdict.detail == "longest iteration 1.00s, allowed 990ms"


def test_pauses_are_no_part_of_a_duration():
    iterations = [Iteration(ticks=HALF, idle=HALF)]

    assert judged("max_seconds_per_iteration", 0.5, iterations).success
    assert judged("max_avg_duration", 0.5, iterations).success


def test_an_average_is_of_successful_iterations():
    iterations = ok(HALF, 3 * HALF) + failed(100 * HALF)

    assert judged("max_avg_duration", 1, iterations).success
    verdict = judged("max_avg_duration", 0.999, iterations)
    assert not verdict.success
    assert verdict.detail == "average of 2 successful iterations 1.00s, allowed 999ms"


def test_actions_are_averaged_over_all_their_calls():
    inner = Action(name="poll", ticks=10)
    iterations = [
        Iteration(
            ticks=4 * HALF,
            actions=(
                Action(name="boot", ticks=HALF, within=(inner, inner)),
                Action(name="boot", ticks=3 * HALF, failed=True),
            ),
        ),
        Iteration(
            ticks=HALF, outcome=Outcome.FAILED, actions=(Action(name="boot", ticks=99 * HALF),)
        ),
    ]

    assert judged("max_avg_duration_per_atomic", {"boot": 1}, iterations).success
    assert not judged("max_avg_duration_per_atomic", {"boot": 0.999}, iterations).success
    assert judged("max_avg_duration_per_atomic", {"boot > poll": 0.02}, iterations).success
    verdict = judged("max_avg_duration_per_atomic", {"boot": 9, "poll": 9}, iterations)
    assert not verdict.success
    assert (
        verdict.detail
        == "boot: average of 2 1.00s, allowed 9.00s; poll: no iteration had such an action; "
        "did you mean boot > poll? known are boot, boot > poll"
    )


def test_outliers_are_judged_from_the_first_that_may_be_one():
    iterations = ok(10, 11, 10, 11, 90, 10)

    assert judged("outliers", {"max": 1}, iterations).success
    assert not judged("outliers", {}, iterations).success
    assert judged("outliers", {"min_iterations": 6}, iterations).success
    assert judged("outliers", {"sigmas": 1000}, iterations).success
    few = judged("outliers", {"min_iterations": 7}, iterations)
    assert few.success
    assert "6 successful iterations (judged from number 7 on)" in few.detail


def test_degradation_is_the_slowest_against_the_fastest():
    iterations = ok(100, 250, 150) + failed(1, 10_000)

    assert judged("performance_degradation", {"max_degradation": 150}, iterations).success
    verdict = judged("performance_degradation", {"max_degradation": 149}, iterations)
    assert not verdict.success
    assert "150 % slower, allowed 149 %" in verdict.detail


def test_a_fastest_iteration_of_no_time_fails():
    verdict = judged("performance_degradation", {"max_degradation": 100}, ok(0, 0))

    assert not verdict.success


HUNDRED = [
    Iteration(ticks=number, lag=number, actions=(Action(name="boot", ticks=2 * number, within=()),))
    for number in range(1, 101)
]


@pytest.mark.parametrize(
    ("config", "ticks"),
    [
        ({"p": 50}, 50),
        ({"p": 99}, 99),
        ({"p": 99.5, "of": "service"}, 100),
        ({"p": 100}, 100),
        ({"p": 0.5}, 1),
        ({"p": 90, "of": "response"}, 180),
        ({"p": 75, "action": "boot"}, 150),
    ],
)
def test_any_percentile_of_anything(config, ticks):
    limit_s = ticks * TICK / 1e9

    # told to 0.1 %
    assert judged("percentile", {**config, "max_s": limit_s * 1.001}, HUNDRED).success
    assert not judged("percentile", {**config, "max_s": limit_s * 0.999}, HUNDRED).success


def test_all_percentiles_of_a_list_must_hold():
    good, bad = {"p": 50, "max_s": 9}, {"p": 99, "max_s": 0.1, "of": "response"}

    assert judged("percentile", [good, good], HUNDRED).success
    verdict = judged("percentile", [good, bad], HUNDRED)

    assert not verdict.success
    assert verdict.detail == (
        "p50 of service time 97.7ms, allowed 9.00s; p99 of response time 387ms, allowed 100ms"
    )


def test_an_action_that_never_succeeded_has_no_percentile():
    config = [{"p": 50, "max_s": 9}, {"p": 50, "max_s": 9, "action": "delete"}]
    deletion = Action(name="delete", ticks=1, failed=True)
    failing = [Iteration(ticks=1, outcome=Outcome.FAILED, actions=(deletion,)), *ok(1)]

    verdict = judged("percentile", config, failing)

    assert not verdict.success
    assert verdict.detail.endswith("p50 of delete: no iteration succeeded")


@pytest.mark.parametrize(
    ("action", "said"),
    [
        ("boot", "no iteration had such an action; did you mean Boot? known are Boot"),
        ("delete", "no iteration had such an action; known are Boot"),
    ],
)
def test_a_misspelt_action_is_told_with_those_there_are(action, said):
    iterations = [Iteration(ticks=1, actions=(Action(name="Boot", ticks=1),))]
    failing = [replace(iterations[0], outcome=Outcome.FAILED)]
    failing = [replace(iterations[0], outcome=Outcome.FAILED)]
    percentile = {"p": 50, "max_s": 9, "action": action}

    verdicts = [
        judged("percentile", percentile, iterations),
        judged("max_avg_duration_per_atomic", {action: 9}, iterations),
    ]

    assert not any(verdict.success for verdict in verdicts)
    assert judged("percentile", percentile, failing).detail == f"p50 of {action}: {said}"
    assert [v.detail for v in verdicts] == [f"p50 of {action}: {said}", f"{action}: {said}"]


def test_an_action_in_a_scenario_without_any_is_told_so():
    verdict = judged("percentile", {"p": 50, "max_s": 9, "action": "boot"}, ok(1))

    assert verdict.detail == "p50 of boot: no iteration had such an action, nor any other"


def test_of_many_actions_some_are_listed():
    actions = tuple(Action(name=f"step-{at:02}", ticks=1) for at in range(12))

    verdict = judged("max_avg_duration_per_atomic", {"x": 9}, [Iteration(ticks=1, actions=actions)])

    assert verdict.detail.endswith("step-08, step-09 and 2 others")


def test_throughput_counts_successes_from_first_start_to_last_end():
    iterations = ok(HALF, HALF) + failed(HALF, HALF)

    assert judged("throughput", {"min": 1}, iterations).success
    verdict = judged("throughput", {"min": 1.01}, iterations)
    assert not verdict.success
    assert verdict.detail == "1.00 successful iterations/s, at least 1.01/s required"
    assert not judged("throughput", {"min": 0.001}, failed(HALF)).success


def test_start_lag_is_of_all_that_ran():
    iterations = [*HUNDRED[:50], Iteration(ticks=1, lag=1000, outcome=Outcome.FAILED)]

    assert judged("start_lag", {"p": 98, "max_s": 0.1}, iterations).success
    assert not judged("start_lag", {"max_s": 0.1}, iterations).success


@pytest.mark.parametrize(
    ("name", "config", "words"),
    [
        ("failure_rate", {"min": 2, "max": 1}, "got min 2 and max 1"),
        ("max_avg_duration_per_atomic", {"boot": -1}, "boot must not be negative"),
        ("percentile", {"p": 1, "max_s": 1, "of": "response", "action": "a"}, "no response time"),
        ("percentile", [{"p": 1, "max_s": 1, "of": "response", "action": "a"}], "'a'"),
    ],
)
def test_what_cannot_be_met_is_refused(name, config, words):
    kind = PLUGINS.get("sla", name)

    (problem,) = kind.check_config(config)

    assert words in problem


@pytest.mark.parametrize(
    ("name", "config", "words"),
    [
        ("percentile", {"p": 101, "max_s": 1}, "must be at most 100"),
        ("percentile", {"p": 0, "max_s": 1}, "must be more than 0"),
        ("percentile", {"p": 50}, "max_s is missing"),
        ("percentile", [], "must hold at least 1"),
        ("percentile", 5, "an object or a list"),
        ("percentile", {"p": 5, "max_s": 1, "of": "lag"}, "must be one of"),
        ("percentile", [{"p": 5, "max_s": 1, "act": "x"}], "unknown key"),
        ("throughput", {}, "min is missing"),
        ("throughput", {"min": 0}, "must be more than 0"),
        ("start_lag", {"p": 99}, "max_s is missing"),
        ("start_lag", {"max_s": -1}, "must be more than 0"),
    ],
)
def test_schemas_say_what_is_wrong(name, config, words):
    (problem,) = validate(config, PLUGINS.get("sla", name).CONFIG_SCHEMA, "sla")

    assert words in problem.message


@pytest.mark.parametrize(
    ("name", "config", "iterations", "plan"),
    [
        ("failure_rate", {"max": 10}, failed(1, 1), 19),
        ("failure_rate", {"max": 0}, failed(1), None),
        ("max_seconds_per_iteration", 0.1, ok(1, HALF), None),
        ("max_avg_duration", 0.1, ok(10 * HALF), 49),
        ("outliers", {}, ok(10, 11, 10, 90), None),
        ("performance_degradation", {"max_degradation": 99}, ok(1, 2), None),
        ("percentile", {"p": 90, "max_s": 0.1}, ok(HALF, HALF), 19),
        ("percentile", {"p": 100, "max_s": 0.1}, ok(1, HALF), None),
        ("percentile", {"p": 100, "max_s": 0.1, "action": "boot"}, HUNDRED, None),
        ("start_lag", {"p": 90, "max_s": 0.1}, [Iteration(ticks=1, lag=HALF)], 9),
    ],
)
def test_what_nothing_can_mend_is_breached(name, config, iterations, plan):
    verdict = breach(name, config, iterations, plan)

    assert verdict is not None
    assert verdict == judged(name, config, iterations)
    assert not verdict.success


@pytest.mark.parametrize(
    ("name", "config", "iterations", "plan"),
    [
        ("failure_rate", {"max": 10}, failed(1, 1), 20),
        ("failure_rate", {"max": 10}, failed(1, 1), None),
        ("failure_rate", {"min": 50}, ok(1, 1), 2),
        ("max_seconds_per_iteration", 1, ok(1, HALF), None),
        ("max_avg_duration", 0.1, ok(10 * HALF), 50),
        ("max_avg_duration", 0.1, ok(10 * HALF), None),
        ("max_avg_duration_per_atomic", {"boot": 0.001}, HUNDRED, 100),
        ("outliers", {"max": 1}, ok(10, 11, 10, 90), None),
        ("performance_degradation", {"max_degradation": 100}, ok(1, 2), None),
        ("percentile", {"p": 90, "max_s": 0.1}, ok(HALF, HALF), 20),
        ("percentile", {"p": 99, "max_s": 0.1}, ok(HALF, HALF), None),
        ("percentile", {"p": 99, "max_s": 0.001, "action": "boot"}, HUNDRED, 100),
        ("start_lag", {"p": 90, "max_s": 0.1}, [Iteration(ticks=1, lag=HALF)], 10),
        ("throughput", {"min": 1000}, ok(HALF), 1),
    ],
)
def test_what_may_still_come_right_is_not(name, config, iterations, plan):
    assert breach(name, config, iterations, plan) is None
