"""The criterion `stream`: percentiles of first bytes, first events, and times between events."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from osbench.common.plugin.plugins import Plugins
from osbench.common.plugin.sla import Verdict
from osbench.common.protocol.columns import decode_rows, encode_rows, pack_actions, row
from osbench.common.protocol.exchanges import OWN, pack_exchange
from osbench.common.task import Named
from osbench.common.values.histogram import Histogram
from osbench.common.values.outcomes import Outcome
from osbench.coordinator.plugins.sla.evaluator import SlaEvaluator
from osbench.coordinator.results.accounting.generator_delay import GeneratorDelay, rows_without
from osbench.coordinator.results.accounting.workload_statistics import (
    Timings,
    WorkloadStatistics,
)
from osbench.coordinator.task.taskfile.schema.schema_errors import validate
from osbench.edges.streams.criteria.first_byte import FirstByte
from osbench.edges.streams.criteria.stream_times import StreamTimes

MS = 1_000_000


def statistics(**times_ms: list[int]) -> WorkloadStatistics:
    """Statistics with times, in ms, by path: `__` stands for " > ", `_` for a space."""
    found = WorkloadStatistics()
    for name, values in times_ms.items():
        timings = Timings()
        timings.ok = Histogram.of(one * MS for one in values)
        # events of streams that were cut do not count
        found.actions[name.replace("__", " > ").replace("_", " ")] = timings
    return found


LIMIT: dict[str, Any] = {"of": "between_events", "p": 90}
FOUND = {
    "chat__first_event": [300, 310],
    "chat__between_events": [*range(1, 11)],
    "buy__chat__between_events": [1000],
    "between_events": [5000],
    "chat": [2000],
}


@pytest.mark.parametrize(
    ("limit", "success", "detail"),
    [
        ({**LIMIT, "max_s": 0.01, "action": "chat"}, True, "p90 of between events of chat 9.00ms"),
        ({**LIMIT, "max_s": 0.008, "action": "chat"}, False, "allowed 8.00ms"),
        # of all streams, but not of an action of the same name outside a request
        ({**LIMIT, "p": 100, "max_s": 1}, True, "p100 of between events 1.00s, allowed 1.00s"),
        ({**LIMIT, "max_s": 2, "action": "buy > chat"}, True, "of buy > chat 1.00s"),
        (
            {"of": "first_event", "max_s": 0.3, "action": "chat"},
            False,
            "p95 of first event",
        ),
        ({"of": "first_event", "max_s": 9, "action": "x"}, False, "no event was recorded"),
        ({"of": "first_byte", "max_s": 9}, False, "no request of a successful iteration"),
    ],
)
def test_a_limit(limit: dict[str, Any], success: bool, detail: str) -> None:
    verdict = StreamTimes(limit).check(statistics(**FOUND))

    assert verdict.success is success
    assert detail in verdict.detail


def test_several_limits_are_all_judged() -> None:
    limits = [
        {**LIMIT, "max_s": 1, "action": "chat"},
        {"of": "first_event", "max_s": 0.1, "action": "chat"},
    ]
    criterion = StreamTimes(limits)

    verdict = criterion.check(statistics(**FOUND))

    assert not verdict.success
    assert len(verdict.detail.split("; ")) == 2
    assert criterion.judged_actions(limits) == ["chat > between events", "chat > first event"]
    assert StreamTimes.judged_actions([{**limits[0], "of": "first_byte"}]) == ["chat"]
    assert FirstByte.judged_actions({"max_s": 1, "action": "s3.get"}) == ["s3.get"]


@pytest.mark.parametrize(
    "config",
    [
        {"max_s": 1},
        {"of": "last_event", "max_s": 1},
        {"of": "first_event"},
        {"of": "first_event", "max_s": 0},
        {"of": "first_event", "max_s": 1, "percent": 3},
        [],
    ],
)
def test_a_mistyped_limit_is_refused(config: Any) -> None:
    assert validate(config, StreamTimes.CONFIG_SCHEMA, "sla.stream")


def judged(blocked_ms: int, beats: int) -> Verdict:
    """The verdict on events of which one came late, with a loop that was blocked so often."""
    found = statistics(chat__between_events=[20] * 97 + [20 + blocked_ms] * 3)
    lags = [blocked_ms * MS] * beats + [0] * (100 - beats)
    found.add_loop(np.array(lags, np.int64), {})
    config = {"of": "between_events", "p": 99, "max_s": 0.05, "action": "chat"}
    evaluator = SlaEvaluator([Named(name="stream", config=config)], Plugins())
    (verdict,) = evaluator.judge(found, delay=GeneratorDelay(found))
    return verdict


def judged_first_bytes(criterion: str, blocked_ms: int, beats: int) -> Verdict:
    """The verdict on first bytes of which three came late, as of `judged`."""
    waits = [20] * 97 + [20 + blocked_ms] * 3
    packed = [pack_exchange(0, OWN, 0, 0, 0, one * MS, 1000, 9, 9, 200) for one in waits]
    rows = [
        row(
            iteration=number,
            outcome=Outcome.OK,
            due=0,
            started=0,
            ended=(one + 1) * MS,
            actions=pack_actions([0, -1, 0, (one + 1) * MS, 0]),
            extra=(b"", None, exchange),
        )
        for number, (one, exchange) in enumerate(zip(waits, packed, strict=True), 1)
    ]
    columns = decode_rows(encode_rows(rows, ["chat"], 0))
    found = WorkloadStatistics()
    found.add(columns, worker="w")
    lags = np.array([blocked_ms * MS] * beats + [0] * (100 - beats), np.int64)
    found.add_loop(lags, {})
    of = {"of": "first_byte"} if criterion == "stream" else {}
    config = {**of, "p": 99, "max_s": 0.05, "action": "chat"}
    evaluator = SlaEvaluator([Named(name=criterion, config=config)], Plugins())
    evaluator.add(columns, rows_without(columns, lags))
    (verdict,) = evaluator.judge(found, delay=GeneratorDelay(found))
    return verdict


@pytest.mark.parametrize("criterion", ["stream", "first_byte"])
def test_first_bytes_are_disputed_as_events_are(criterion: str) -> None:
    late, punctual = (judged_first_bytes(criterion, 100, beats) for beats in (3, 0))

    assert not late.success
    assert late.disputed
    assert not punctual.success
    assert not punctual.disputed


def test_events_that_the_generator_may_have_delayed_are_disputed() -> None:
    verdict = judged(100, beats=3)

    assert not verdict.success
    assert verdict.disputed
    assert "may be the generator's own doing" in verdict.detail


def test_late_events_of_a_punctual_generator_are_the_service_s() -> None:
    verdict = judged(100, beats=0)

    assert not verdict.success
    assert not verdict.disputed
