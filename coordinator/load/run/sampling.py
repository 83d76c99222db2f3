"""Decides whether a workload is traced, and which fraction of its iterations.

The setting of the workload precedes that of the deployment, which precedes the configuration: of
Rally for a scenario of Rally, if it says so, else of osbench.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from oslo_config import cfg

from osbench.common.config.options import AUTO
from osbench.common.deployment.record import Deployment
from osbench.common.task import Workload
from osbench.coordinator.formatting import count

#: Bytes of an event in Redis, measured with OSProfiler's driver; a span has two events.
EVENT_BYTES = 450


@dataclass(frozen=True, kw_only=True)
class SampleRatePlan:
    """Settings from which `rate` computes the fraction of iterations to trace.

    These are the number of slow traces to get, and the space in the trace store.
    """

    #: Percentile above which traces are wanted, and their number.
    tail_percent: float
    tail_traces: int
    #: Bytes that the traces may take in the trace store.
    budget: int
    #: Estimated spans per trace, including spans of services.
    spans_per_trace: int

    def rate(self, iterations: int | None, in_all: int = 0) -> tuple[float, str]:
        """Return the fraction of the iterations to trace, 0 to 1, and the reason as text.

        It is the fraction that gives `tail_traces` above `tail_percent`, unless `budget` allows
        less. It is 1 if `iterations` is None (a duration decides their number) or 0. `in_all` is
        the number for all workloads that share the budget; 0 if there is only this one.
        """
        if not iterations:
            return 1.0, (
                "all of them: the number of iterations is not known, nor whether"
                f" {count(self.budget >> 20)} MiB are enough for their traces"
            )
        tail = 1 - self.tail_percent / 100
        wanted = min(1.0, self.tail_traces / (iterations * tail)) if tail > 0 else 1.0
        each = 2 * EVENT_BYTES * self.spans_per_trace
        # the budget is divided by iterations, so that all workloads have the same highest rate
        allowed = self.budget / (max(in_all, iterations) * each)
        name = f"p{self.tail_percent:g}"
        if allowed < wanted:
            slow = int(iterations * allowed * tail)
            shared = (
                f" of all {count(in_all)} iterations of the task" if in_all > iterations else ""
            )
            return allowed, (
                f"the most that fits into {count(self.budget >> 20)} MiB{shared}; of"
                f" {count(iterations)} iterations about {count(slow)} traced ones will be above"
                f" {name}, of {self.tail_traces} wanted"
            )
        slow = round(iterations * wanted * tail)
        if wanted == 1.0 and slow < self.tail_traces:
            return 1.0, (
                f"all of them: of {count(iterations)} iterations only about {count(slow)} are"
                f" above {name}, of {self.tail_traces} wanted"
            )
        return wanted, (
            f"of {count(iterations)} iterations about {count(slow)} traced ones will be above"
            f" {name}"
        )


@dataclass(frozen=True, kw_only=True)
class Sampling:
    """Tracing of one workload: which fraction of its iterations is traced, and why.

    If none is traced, or traces cannot be read, `state` has the reason.
    """

    #: Fraction of the iterations that are traced, 0 to 1.
    rate: float
    #: "on", or why no trace is taken or read.
    state: str
    #: How the rate was worked out; "" if it was given.
    reason: str = ""


def sampling(
    workload: Workload,
    deployment: Deployment | None,
    conf: cfg.ConfigOpts,
    planned: int | None = None,
    in_all: int = 0,
    *,
    otlp: bool = False,
    of_source: bool | None = None,
) -> Sampling:
    """Return whether a workload is traced, which fraction of its iterations, and why.

    `planned` is the number of its iterations, None if unknown; `in_all` is `planned_in_all` of its
    task. `otlp`: the run receives or queries spans, and needs neither a key nor a store.
    `of_source`: whether the scenario's framework traces by its configuration; None: it says
    nothing.
    """
    if not _is_profiled(workload, deployment, conf, of_source):
        return Sampling(rate=0.0, state="switched off")
    if not otlp and (deployment is None or not deployment.profiler_hmac_key):
        return Sampling(rate=0.0, state="no key")
    rate, reason = conf.benchmark.profiler_sample_rate, ""
    if rate == AUTO:
        rate, reason = _plan(conf).rate(planned, in_all)
    if not rate:
        return Sampling(rate=0.0, state="sample rate 0", reason=reason)
    if otlp or (deployment is not None and deployment.readable_store):
        state = "on"
    elif deployment is not None and deployment.profiler_conn_str:
        state = "store not redis://"
    else:
        state = "no store in the record"
    return Sampling(rate=float(rate), state=state, reason=reason)


def planned_in_all(
    workloads: Iterable[tuple[Workload, int | None, bool | None]],
    deployment: Deployment | None,
    conf: cfg.ConfigOpts,
) -> int:
    """Return the sum of the planned iterations of workloads for which tracing is switched on.

    `workloads` has each with its planned number, of which None, unknown, counts as 0, and with
    `of_source` as in `sampling`.
    """
    return sum(
        planned or 0
        for workload, planned, of_source in workloads
        if _is_profiled(workload, deployment, conf, of_source)
    )


def _is_profiled(
    workload: Workload,
    deployment: Deployment | None,
    conf: cfg.ConfigOpts,
    of_source: bool | None,
) -> bool:
    wanted = workload.enable_profiler
    if wanted is None and deployment is not None:
        wanted = deployment.enable_profiler
    if wanted is None:
        wanted = of_source
    return bool(conf.benchmark.enable_profiler if wanted is None else wanted)


def _plan(conf: cfg.ConfigOpts) -> SampleRatePlan:
    traces = conf.traces
    return SampleRatePlan(
        tail_percent=traces.tail_percent,
        tail_traces=traces.tail_traces,
        budget=traces.store_budget_mib << 20,
        spans_per_trace=traces.spans_per_trace,
    )
