"""Criteria with `over_s`: they hold in every window, and fail for good in one that does not."""

from dataclasses import replace

import numpy as np
import pytest

from helpers.result_rows import row_of
from osbench.common.plugin.plugins import Plugins
from osbench.common.protocol.columns import decode_rows, encode_rows
from osbench.common.values.outcomes import Outcome
from osbench.coordinator.results.accounting.workload_statistics import WorkloadStatistics
from osbench.coordinator.task.taskfile.schema.schema_errors import validate

PLUGINS = Plugins()
SECOND = 1_000_000_000


def criterion(name, config):
    kind = PLUGINS.get("sla", name)
    assert not validate(config, kind.CONFIG_SCHEMA, "")
    assert not kind.check_config(config)
    return kind(config)


def rows(*spans, took_s=0.01, lag_s=0.0, outcome=Outcome.OK):
    """Ten iterations a second over some spans of seconds, by their end."""
    found = []
    for begin, end in spans:
        for ended in np.arange(begin, end, 0.1) + 0.05:
            started = ended - took_s
            instants = [int(at * SECOND) for at in (started - lag_s, started, ended)]
            found.append(row_of(len(found) + 1, int(outcome), *instants, 0, 0, (), None))
    return decode_rows(encode_rows(found, [], 0))


def judged(made, *blocks):
    statistics = WorkloadStatistics()
    for block in blocks:
        made.add(block)
        statistics.add(block, worker="w")
    return made.check(statistics), made.breach(statistics, None)


WELL = rows((1, 30), (40, 100))
#: What is wrong in 10 of 100 seconds, for each criterion that has windows.
WRONG = {
    "failure_rate": ({"max": 20}, rows((30, 40), outcome=Outcome.FAILED)),
    "percentile": ({"p": 80, "max_s": 0.5}, rows((30, 40), took_s=0.9)),
    "start_lag": ({"p": 80, "max_s": 0.5}, rows((30, 40), lag_s=0.9)),
    "throughput": ({"min": 5}, rows((30, 40), outcome=Outcome.FAILED)),
}


@pytest.mark.parametrize("name", WRONG)
def test_ten_bad_seconds_of_a_hundred_fail_windows_and_not_the_whole(name):
    config, bad = WRONG[name]

    whole, _ = judged(criterion(name, config), WELL, bad)
    windows, breach = judged(criterion(name, config | {"over_s": 10}), WELL, bad)

    assert whole.success
    assert not windows.success
    assert "from 30 s to 40 s" in windows.detail
    # a rate over all time can be made good, what happened in a window cannot
    assert (breach is None) == (name == "throughput")


@pytest.mark.parametrize("name", WRONG)
def test_a_load_without_bad_windows_passes(name):
    config, _ = WRONG[name]

    verdict, breach = judged(criterion(name, config | {"over_s": 10}), rows((0, 100)))

    assert verdict.success, verdict.detail
    assert breach is None


@pytest.mark.parametrize("name", WRONG)
def test_a_load_shorter_than_a_window_is_judged_as_a_whole(name):
    config, bad = WRONG[name]
    at_once = replace(
        bad,
        due=bad.due - 30 * SECOND,
        started=bad.started - 30 * SECOND,
        ended=bad.ended - 30 * SECOND,
    )

    verdict, breach = judged(criterion(name, config | {"over_s": 60}), at_once)

    assert not verdict.success or name == "throughput"
    assert breach is None


@pytest.mark.parametrize("name", WRONG)
def test_without_data_windows_fail_and_stop_nothing(name):
    config, _ = WRONG[name]

    verdict, breach = judged(criterion(name, config | {"over_s": 10}))

    assert not verdict.success
    assert breach is None


@pytest.mark.parametrize(
    ("name", "config", "message"),
    [
        ("failure_rate", {"min": 5, "over_s": 10}, "over_s goes with max"),
        ("failure_rate", {"min": 1, "max": 5, "over_s": 10}, "without min"),
        (
            "percentile",
            {"p": 9, "max_s": 1, "action": "a", "over_s": 5},
            "over_s is for iterations",
        ),
    ],
)
def test_windows_that_mean_nothing_are_refused(name, config, message):
    kind = PLUGINS.get("sla", name)

    assert not validate(config, kind.CONFIG_SCHEMA, "")
    assert message in kind.check_config(config)[0]


def test_a_window_is_a_second_long_at_least():
    (problem,) = validate(
        {"max": 5, "over_s": 0.5}, PLUGINS.get("sla", "failure_rate").CONFIG_SCHEMA, "sla"
    )

    assert "at least 1" in problem.message


def test_response_times_have_windows_of_their_own():
    late = rows((0, 20), took_s=0.1, lag_s=2)
    limit = {"p": 99, "max_s": 1, "over_s": 5}

    service, _ = judged(criterion("percentile", limit), late)
    response, _ = judged(criterion("percentile", [limit | {"of": "response"}]), late)

    assert service.success
    assert not response.success
