"""The criterion `stream_rate`: low percentiles of the events or bytes per second in a stream."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from osbench.common.plugin.output_values import pack_output
from osbench.common.plugin.plugins import Plugins
from osbench.common.plugin.sla import Verdict
from osbench.common.protocol.columns import Columns, decode_rows, encode_rows, row
from osbench.common.task import Named
from osbench.common.values.outcomes import Outcome
from osbench.coordinator.plugins.sla.evaluator import SlaEvaluator
from osbench.coordinator.results.accounting.generator_delay import GeneratorDelay, rows_without
from osbench.coordinator.results.accounting.workload_statistics import WorkloadStatistics
from osbench.coordinator.task.taskfile.schema.schema_errors import validate
from osbench.edges.streams.criteria.stream_rate import StreamRate
from osbench.edges.streams.event_times import BYTE_RATE, EVENT_RATE

MS = 1_000_000
CHAT, ROWS = [30.0] * 4 + [20.0] * 96, [5000.0] * 100


def rows(rates: Sequence[Any], name: str = "chat", title: Any = EVENT_RATE) -> Columns:
    """Iterations of one stream each with these rates."""
    found = []
    for number, rate in enumerate(rates, 1):
        chart = {"title": title, "chart_plugin": "StatsTable", "data": [[name, rate]]}
        found.append(
            row(
                iteration=number,
                outcome=Outcome.OK,
                due=0,
                started=0,
                ended=1000 * MS,
                actions=[0, -1, 0, 5, 0],
                extra=(b"", [pack_output("additive", chart)], b""),
            )
        )
    return decode_rows(encode_rows(found, (name,), 0))


def verdict(config: Any, *blocks: Columns) -> Verdict:
    criterion = StreamRate(config)
    for block in blocks:
        criterion.add(block)
    return criterion.check(WorkloadStatistics())


@pytest.mark.parametrize(
    ("limit", "success", "detail"),
    [
        # 5 % of the rates of chat are at most 20.0
        ({"min_events_s": 19.9}, True, "p5 of events/s in a stream 20.0, at least 19.9 required"),
        ({"min_events_s": 25, "action": "chat"}, False, "of chat 20.0, at least 25 required"),
        ({"min_events_s": 25, "p": 97, "action": "chat"}, True, "p97 of events/s in a stream"),
        ({"min_events_s": 1, "action": "rows"}, False, "no stream with a rate was recorded"),
        ({"min_kb_s": 4990}, True, "p5 of kB/s in a stream 5,000"),
        ({"min_kb_s": 5010, "action": "rows"}, False, "of rows 5,000, at least 5010 required"),
        ({"min_kb_s": 1, "action": "chat"}, False, "no stream with a rate was recorded"),
    ],
)
def test_a_limit(limit: dict[str, Any], success: bool, detail: str) -> None:
    found = verdict(limit, rows(CHAT), rows(ROWS, "rows", BYTE_RATE))

    assert found.success is success
    assert detail in found.detail


def test_several_limits_are_all_judged() -> None:
    limits = [{"min_events_s": 1}, {"min_kb_s": 9000, "action": "rows"}]

    found = verdict(limits, rows(CHAT), rows(ROWS, "rows", BYTE_RATE))

    assert not found.success
    assert len(found.detail.split("; ")) == 2
    assert StreamRate.judged_actions(limits) == ["rows"]


def test_values_of_other_charts_are_left_out() -> None:
    values = (0.0, -1.0, 5e-324, float("nan"), float("inf"), "fast", None, 10**18)
    strange = [rows([rate]) for rate in values]
    others = [rows([1.0], title=one) for one in ("Rate of something else", ["a list"])]

    found = verdict({"min_events_s": 19}, rows(CHAT), *others, *strange)

    assert found.success, found.detail


@pytest.mark.parametrize(
    "config",
    [{}, {"p": 5}, {"min_events_s": 1, "min_kb_s": 1}, [{"min_kb_s": 1}, {"action": "chat"}]],
)
def test_a_limit_has_one_least_rate(config: Any) -> None:
    assert not validate(config, StreamRate.CONFIG_SCHEMA, "sla.stream_rate")

    (message,) = StreamRate.check_config(config)

    assert message.startswith("needs either min_events_s or min_kb_s, got ")


@pytest.mark.parametrize(
    "config",
    [{"min_events_s": 0}, {"min_events": 3}, {"min_kb_s": "3"}, {"min_kb_s": 3, "p": 101}, []],
)
def test_a_mistyped_limit_is_refused(config: Any) -> None:
    assert validate(config, StreamRate.CONFIG_SCHEMA, "sla.stream_rate")


@pytest.mark.parametrize(("blocked_ms", "disputed"), [(0, False), (40, True)])
def test_a_rate_that_the_generator_may_have_lowered_is_disputed(
    blocked_ms: int, disputed: bool
) -> None:
    """Ten streams have a pace of 60 ms instead of 20, with a loop that was blocked or was not."""
    found, columns = WorkloadStatistics(), rows([1000 / 60] * 10 + [50.0] * 90)
    lags = np.array([blocked_ms * MS] * 50 + [0] * 50, np.int64)
    found.add(columns, worker="w")
    found.add_loop(lags, {})
    evaluator = SlaEvaluator([Named(name="stream_rate", config={"min_events_s": 40})], Plugins())
    evaluator.add(columns, rows_without(columns, lags))

    (judged,) = evaluator.judge(found, delay=GeneratorDelay(found))

    assert not judged.success
    assert judged.disputed is disputed
