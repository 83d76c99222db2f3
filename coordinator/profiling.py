"""Whether and how densely a workload is profiled: workload over deployment over file."""

from __future__ import annotations

from oslo_config import cfg

from osbench.common.deployment import Deployment
from osbench.common.task import Workload


def sampling(
    workload: Workload, deployment: Deployment | None, conf: cfg.ConfigOpts
) -> tuple[float, str]:
    """Share of the iterations to profile, and "on" or why it is not attempted."""
    wanted = workload.enable_profiler
    if wanted is None and deployment is not None:
        wanted = deployment.enable_profiler
    if wanted is None:
        wanted = conf.benchmark.enable_profiler
    if not wanted:
        return 0.0, "switched off"
    if deployment is None or not deployment.profiler_hmac_key:
        return 0.0, "no key"
    rate = float(conf.benchmark.profiler_sample_rate)
    store = deployment.profiler_conn_str or ""
    return rate, "on" if store.startswith(("redis://", "rediss://")) else "store not redis://"
