"""The resource of a staircase that is full first, as far as the numbers say it."""

from __future__ import annotations

from collections.abc import Mapping

from osbench.coordinator.report.staircase.staircase import StaircaseStep
from osbench.edges.staircase.full_resources import first_full


def step(load: float, resources: Mapping[str, float]) -> StaircaseStep:
    return StaircaseStep(
        load=load,
        throughput=load,
        p50_s=0.1,
        p95_s=0.2,
        p99_s=0.3,
        concurrency=load,
        count=100,
        resources=resources,
    )


def told(*steps: tuple[float, Mapping[str, float]]) -> str:
    return first_full([step(*one) for one in steps], "/s")


def test_the_first_above_the_limit_is_named_with_its_load_and_the_one_before() -> None:
    found = told(
        (10, {"CPU of db1": 0.4, "disk of db1": 0.2}),
        (20, {"CPU of db1": 0.71, "disk of db1": 0.5}),
        (30, {"CPU of db1": 0.93, "disk of db1": 0.8}),
        (40, {"CPU of db1": 0.97, "disk of db1": 0.99}),
    )

    assert found == (
        "CPU of db1 is the first resource above 90 %: 93 % on average at 30/s; at 20/s 71 %."
    )


def test_two_at_the_same_load_are_both_named() -> None:
    found = told((10, {"a": 0.4, "b": 0.2}), (20, {"a": 0.91, "b": 0.95}))

    assert found.startswith("b is the first resource above 90 %, with a: 95 % on average at 20/s")


def test_without_one_none_is_named_as_the_limit() -> None:
    found = told((10, {"a": 0.4, "b": 0.2}), (20, {"a": 0.62, "b": 0.3}))

    assert found == (
        "None of 2 resources that are watched reaches 90 %: the fullest is a, 62 % on average at"
        " 20/s."
    )


def test_what_is_full_from_the_least_load_on_is_told_apart() -> None:
    always = {"memory of db1": 0.94}

    alone = told((10, always), (20, always))
    beside = told((10, always | {"CPU of db1": 0.3}), (20, always | {"CPU of db1": 0.4}))
    before = told((10, always | {"CPU of db1": 0.3}), (20, always | {"CPU of db1": 0.99}))

    full = "Already above 90 % at the least load, 10/s: memory of db1."
    assert alone == f"No other resource is watched. {full}"
    assert beside == (
        "None of 1 other resources that are watched reaches 90 %: the fullest is CPU of db1, 40 %"
        f" on average at 20/s. {full}"
    )
    assert before.startswith("CPU of db1 is the first resource above 90 %: 99 %")
    assert before.endswith(full)


def test_steps_without_counters_have_no_sentence() -> None:
    assert told((10, {}), (20, {})) == ""


def test_equal_loads_are_taken_together() -> None:
    found = told((10, {"a": 0.5}), (20, {"a": 0.98}), (20, {"a": 0.84}), (30, {"a": 0.95}))

    assert "91 % on average at 20/s" in found
