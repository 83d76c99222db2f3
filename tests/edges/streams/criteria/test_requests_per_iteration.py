"""The criterion `requests_per_iteration`."""

from dataclasses import replace

import numpy as np
import pytest

from helpers.iterations import columns, failed, ok, statistics
from osbench.coordinator.task.taskfile.schema.schema_errors import validate
from osbench.edges.streams.criteria.requests_per_iteration import RequestsPerIteration


def criterion(**config):
    assert not validate(config, RequestsPerIteration.CONFIG_SCHEMA, "")
    assert not RequestsPerIteration.check_config(config)
    return RequestsPerIteration(config)


def rows(*requests, first=1, iterations=None):
    """Successful iterations that made so many requests."""
    made = columns(iterations or ok(*[1] * len(requests)), first)
    return replace(made, exchanged=np.repeat(np.arange(len(requests)), requests))


@pytest.mark.parametrize(
    ("config", "requests", "success", "detail"),
    [
        ({"max": 3}, (1, 3), True, "1 to 3 requests per iteration, at most 3"),
        ({"min": 1, "max": 1}, (1, 1), True, "1 request per iteration, at least 1 and at most 1"),
        (
            {"max": 3},
            (1, 40, 3),
            False,
            "more than 3 in 1 of 3 successful iterations, 40 in iteration 2",
        ),
        (
            {"min": 2},
            (2, 3, 1, 1),
            False,
            "fewer than 2 in 2 of 4 successful iterations, 1 in iteration 3",
        ),
        ({"max": 0}, (0, 0), True, "0 requests per iteration, at most 0"),
        (
            {"max": 3},
            (0, 0),
            False,
            "no request was recorded: osbench records only its own HTTP clients",
        ),
    ],
)
def test_requests_are_counted_by_iteration(config, requests, success, detail):
    made, found = criterion(**config), rows(*requests)
    made.add(found)

    verdict = made.check(statistics(found))

    assert (verdict.success, verdict.detail) == (success, detail)


def test_blocks_one_after_another_and_failed_iterations():
    made = criterion(max=5)
    made.add(rows(2, 4))
    made.add(rows(9, first=3, iterations=failed(1)))
    none = made.breach(statistics(), 10)
    made.add(rows(1, 7, 6, first=4))

    verdict = made.breach(statistics(), 10)

    assert none is None
    assert verdict == made.check(statistics())
    assert verdict.detail == "more than 5 in 2 of 5 successful iterations, 7 in iteration 5"


def test_without_a_successful_iteration_it_fails():
    assert criterion(max=1).check(statistics()).detail == "no iteration has succeeded"


def test_bounds_that_no_number_is_between():
    assert RequestsPerIteration.check_config({"min": 2, "max": 1}) == ["min 2 is above max 1"]
    assert RequestsPerIteration.check_config({"min": 2}) == []
    assert validate({}, RequestsPerIteration.CONFIG_SCHEMA, "")
