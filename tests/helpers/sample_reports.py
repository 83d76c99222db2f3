"""Reports with known numbers, for tests of what is made from them."""

import random
from dataclasses import replace

import msgpack
import numpy as np

from helpers.result_rows import row_of
from helpers.summaries import to_json
from osbench.common.plugin.hook import Event
from osbench.common.plugin.sla import Verdict
from osbench.common.protocol.columns import Failure, decode_rows, encode_rows
from osbench.common.protocol.exchanges import OWN, pack_exchange, pack_other
from osbench.common.task import HookConfig, Named
from osbench.common.values.outcomes import Outcome
from osbench.coordinator.plugins.contexts.history import ContextRecord, ContextStep, Fault
from osbench.coordinator.plugins.hooks.executor import Error, HookReport, Result
from osbench.coordinator.report.run_outcome import RunOutcome
from osbench.coordinator.results.accounting.charts import Charts
from osbench.coordinator.results.accounting.outcome import WorkloadOutcome
from osbench.coordinator.results.accounting.totals import Accounting, Cost, Offered, Shift, Tracing
from osbench.coordinator.results.accounting.worker_figures import WorkerFigures
from osbench.coordinator.results.accounting.workload_statistics import WorkloadStatistics

MS = 1_000_000
ACTIONS = ("keystone_v3.create_token", "http.post")
FAILURES = [
    Failure(
        number=1,
        etype="GatewayTimeout",
        message="HTTP 504 from http://keystone.example/v3/auth/tokens: [bold]no[/bold] answer",
        traceback='Traceback (most recent call last):\n  File "x.py", line 1, in run\n',
    ),
    Failure(number=2, etype="IterationTimeout", message="no end after 2 s", traceback="f()"),
]


def columns(count=1000, trace_every=100):
    """Iterations of 10 to 30 ms with a slow tail; some fail, time out or are dropped."""
    chance = random.Random(11)
    rows = []
    for number in range(1, count + 1):
        due = number * 10 * MS
        outcome, failure = Outcome.OK, 0
        length = int(chance.uniform(10, 30) * MS * (8 if chance.random() < 0.02 else 1))
        if number % 200 == 0:
            outcome, failure = Outcome.FAILED, 1
        elif number == 777:
            outcome, failure, length = Outcome.TIMED_OUT, 2, 2000 * MS
        elif number in (42, 43):
            rows.append(row_of(number, Outcome.DROPPED_LATE, due, 0, 0, 0, 0, (), None))
            continue
        started = due + int(chance.uniform(20_000, 90_000))
        ended = started + length
        failed = int(outcome == Outcome.FAILED)
        actions = [0, -1, started, 0 if outcome == Outcome.TIMED_OUT else ended, failed]
        actions += [1, 0, started + length // 4, started + length // 2, 0]
        trace = number.to_bytes(16, "big") if number % trace_every == 0 else b""
        extra = (trace, None, request(number, length // 4))
        rows.append(row_of(number, outcome, due, started, ended, 0, failure, actions, extra))
    return decode_rows(encode_rows(rows, [*ACTIONS, "libcurl: option proxies"], 0))


def request(number, length):
    """The request of an iteration, which takes place in its inner action."""
    if number % 20 == 1:
        return pack_other(1, 2)
    opened = (20_000, 300_000, 2 * MS) if number % 50 == 0 else (0, 0, 0)
    # that of a failure has no answer
    wait, rest = (0, 0) if number % 200 == 0 else (length - 200_000, 200_000)
    return pack_exchange(1, OWN, *opened, wait, rest, 310, 1200 + number % 7, 200)


def statistics(**options):
    """The statistics of `columns`."""
    made = WorkloadStatistics()
    made.add_failures("w1", FAILURES)
    made.add(columns(**options), worker="w1")
    lags = np.linspace(20_000, 3 * MS, 2000).astype(np.int64)
    made.add_loop(lags, {"shop.py:12 (Shop.pay)": 90 * MS, "shop.py:30 (Shop.pack)": 60 * MS})
    return made


def restart_hook():
    """A hook that worked once, and was not there the other time."""
    return HookReport(
        hook=HookConfig(
            action=Named(name="sys_call", config="systemctl restart keystone"),
            trigger=Named(name="event", config={"unit": "iteration", "at": [100, 500]}),
            description="a restart under load",
        ),
        results=(
            Result(
                status="success",
                event=Event(unit="iteration", value=100),
                started_at=1775044802.5,
                finished_at=1775044803.25,
                output={
                    "additive": [],
                    "complete": [
                        {"title": "System call", "chart_plugin": "TextArea", "data": ["done"]}
                    ],
                },
            ),
            Result(
                status="failed",
                event=Event(unit="iteration", value=500),
                started_at=1775044807.0,
                error=Error(etype="NotEnded", msg="had not ended when the workload was over"),
            ),
        ),
        counts={"failed": 1, "success": 1},
    )


def context_records():
    """A context that came and went, and one that could not be undone."""
    gone = Fault(etype="Conflict", msg="3 networks are still in use", details="f()")
    step = ContextStep(started_at=1775044799.0, finished_at=1775044799.75)
    late = ContextStep(started_at=1775044815.0, finished_at=1775044821.5, error=gone)
    return (
        ContextRecord(name="users@openstack", config={"tenants": 2}, setup=step, cleanup=step),
        ContextRecord(name="network@openstack", config={}, setup=step, cleanup=late),
    )


def charts():
    """Charts of 40 iterations, of every kind that adds up and of two that do not."""
    made = Charts()
    rows = []
    for number in range(1, 41):
        pairs = [["rows read", number % 7], ["bytes [sent]", number * 12.5]]
        items = [
            {"kind": "additive", "item": {"title": f"The {kind}", "chart_plugin": kind, **more}}
            for kind, more in (
                ("StatsTable", {"data": pairs, "label": "units"}),
                ("StackedArea", {"data": pairs, "description": "over the load"}),
                ("Pie", {"data": [*pairs, ["nothing", None]]}),
            )
        ]
        text = {"title": "Log", "chart_plugin": "TextArea", "data": ["a", "b"]}
        items.append({"kind": "complete", "item": text})
        packed = [msgpack.packb(item) for item in items]
        rows.append(row_of(number, Outcome.OK, 0, MS, 2 * MS, 0, 0, (), (b"", packed, b"")))
    made.add(decode_rows(encode_rows(rows, (), 0)))
    return made


def worker(name, host, **changes):
    """A worker process that took part, of which little is known."""
    return WorkerFigures(
        **{"incarnation": name, "host": host, "pid": 7, "version": "0.1.0", "virtual_users": 10},
        **changes,
    )


def rps_workload():
    """An open workload in which everything happened that can."""
    return WorkloadOutcome(
        name="Authenticate.keystone",
        scenario="Authenticate.keystone",
        title="Tokens under load",
        position=0,
        description="a token for each arrival",
        runner=Named(name="rps", config={"rps": 100, "times": 1003}),
        accounting=Accounting(
            planned=1003,
            ok=992,
            failed=5,
            timed_out=1,
            dropped=2,
            lost=1,
            not_started=2,
            drops={"late": 2, "capacity": 0},
            reruns=3,
            stale=1,
        ),
        offered=Offered(duration_s=12.25, rate_planned=100.0, rate_offered=99.63),
        tracing=Tracing(
            state="on",
            traced=10,
            sample_rate=0.01,
            spans_written=1030,
            spans_dropped=4,
            rate_reason="of 1,003 iterations about 1 traced one will be above p99",
            cost=Cost(
                traced=10,
                untraced=982,
                p50=Shift(added_s=0.0012, low_s=-0.0004, high_s=0.0028),
                p99=Shift(added_s=-0.003, low_s=None, high_s=None),
            ),
            kept=10,
            explanation="Too few slow traces for an explanation.",
        ),
        statistics=statistics(),
        verdicts=(
            Verdict(
                criterion="failure_rate",
                success=False,
                detail="6 of 998 iterations failed: 0.6012 %, allowed at most 0 %",
            ),
        ),
        hooks=(restart_hook(),),
        contexts=context_records(),
        charts=charts(),
        too_large=2,
        workers=(worker("a-1", "node1"), worker("a-2", "node1"), worker("b-1", "node2")),
    )


def constant_workload():
    """A closed workload with few iterations, all well."""
    made = WorkloadStatistics()
    rows = [row_of(n, Outcome.OK, 0, n * MS, (n + 5) * MS, 0, 0, (), None) for n in range(1, 9)]
    made.add(decode_rows(encode_rows(rows, (), 0)), worker="w1")
    return WorkloadOutcome(
        name="Dummy.dummy",
        scenario="Dummy.dummy",
        title="Dummy.dummy",
        position=0,
        runner=Named(name="constant", config={"times": 8, "concurrency": 2}),
        accounting=Accounting(planned=8, ok=8),
        offered=Offered(duration_s=0.013, concurrency=2, concurrency_held=0.9987),
        tracing=Tracing(state="no key"),
        statistics=made,
        verdicts=(Verdict(criterion="failure_rate", success=True, detail="0 of 8 failed"),),
    )


def run_report(*workloads, exit_code=0, notes=()):
    """A run of some workloads."""
    return RunOutcome(
        run_id="20260401-120000-ab12cd",
        title="Nightly: tokens",
        tags=("nightly", "keystone"),
        started_at=1775044800.0,
        finished_at=1775044862.345,
        exit_code=exit_code,
        workloads=workloads,
        notes=notes,
    )


def shown(statistics):
    """All that a report shows of statistics."""
    return to_json(run_report(replace(constant_workload(), statistics=statistics)))


def full_report():
    """A run with both workloads."""
    return run_report(
        rps_workload(),
        constant_workload(),
        exit_code=3,
        notes=("1 iteration was lost with worker b-1 on node2, which was silent for 10 s.",),
    )
