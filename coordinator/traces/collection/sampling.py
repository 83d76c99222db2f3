"""Whether and how densely a workload is profiled: workload over deployment over file."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from oslo_config import cfg

from osbench.common.config.options import AUTO
from osbench.common.deployment.record import Deployment
from osbench.common.task import Workload
from osbench.coordinator.traces.collection.sample_rate import SampleRatePlan


@dataclass(frozen=True, kw_only=True)
class Sampling:
    """Sampling of a workload: the iterations that are traced."""

    #: Share of them.
    rate: float
    #: "on", or why it is not attempted.
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
) -> Sampling:
    """Return the sampling of a workload; `planned` is the number of its iterations, if known.

    `in_all` is `planned_in_all` of its task; `otlp`: the run receives spans, and needs neither a
    key nor a store.
    """
    if not _wanted(workload, deployment, conf):
        return Sampling(rate=0.0, state="switched off")
    if not otlp and (deployment is None or not deployment.profiler_hmac_key):
        return Sampling(rate=0.0, state="no key")
    rate, reason = conf.benchmark.profiler_sample_rate, ""
    if rate == AUTO:
        rate, reason = _plan(conf).rate(planned, in_all)
    readable = otlp or (deployment is not None and readable_store(deployment) is not None)
    return Sampling(
        rate=float(rate), state="on" if readable else "store not redis://", reason=reason
    )


def readable_store(deployment: Deployment) -> str | None:
    """Return the connection string of a readable trace store with traces of runs, else None."""
    store = deployment.profiler_conn_str or ""
    known = deployment.profiler_hmac_key and store.startswith(("redis://", "rediss://"))
    return store if known else None


def planned_in_all(
    workloads: Iterable[tuple[Workload, int | None]],
    deployment: Deployment | None,
    conf: cfg.ConfigOpts,
) -> int:
    """Return the known number of iterations of all workloads that are traced."""
    return sum(
        planned or 0 for workload, planned in workloads if _wanted(workload, deployment, conf)
    )


def _wanted(workload: Workload, deployment: Deployment | None, conf: cfg.ConfigOpts) -> bool:
    wanted = workload.enable_profiler
    if wanted is None and deployment is not None:
        wanted = deployment.enable_profiler
    return bool(conf.benchmark.enable_profiler if wanted is None else wanted)


def _plan(conf: cfg.ConfigOpts) -> SampleRatePlan:
    traces = conf.traces
    return SampleRatePlan(
        tail_percent=traces.tail_percent,
        tail_traces=traces.tail_traces,
        budget=traces.store_budget_mib << 20,
        spans_per_trace=traces.spans_per_trace,
    )
