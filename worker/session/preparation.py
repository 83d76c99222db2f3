"""Prepares a workload in this process: plug-in, context, tracing, warm-up."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from oslo_config import cfg

from osbench.common.deployment.record import Deployment
from osbench.common.errors import PluginError
from osbench.common.plugin.plugins import Plugins
from osbench.common.protocol.messages import Specification
from osbench.worker.engine.body import Body
from osbench.worker.engine.iteration_arguments import expander
from osbench.worker.session.row_feed import RowFeed
from osbench.worker.tracing.sampler import seed_of
from osbench.worker.tracing.span_writer import SpanWriter

if TYPE_CHECKING:
    from osbench.worker.tracing.profiling import Tracer


@dataclass(frozen=True, kw_only=True)
class Prepared:
    """A workload that is ready to start."""

    specification: Specification
    body: Body


class Preparation:
    """Prepares workloads; holds the span writer that the workloads of a process share."""

    def __init__(self, conf: cfg.ConfigOpts, plugins: Plugins) -> None:
        self._conf = conf
        self._plugins = plugins
        self._writer: SpanWriter | None = None
        self._store = ""

    def prepare(self, specification: Specification) -> Prepared:
        """Load the scenario, build the body, warm up. The caller reports any exception.

        Raises PluginError where the scenario is missing or has another version.
        """
        plugin = self._plugins.scenario(specification.scenario)
        if plugin.source_hash != specification.source_hash:
            raise PluginError(
                f"scenario {plugin.name} differs from the coordinator's "
                f"(source {plugin.source_hash[:12]}, expected "
                f"{specification.source_hash[:12]}): bring the same file here, then restart "
                "osbench-worker"
            )
        context = self._context(specification)
        plugin.cls.warm_up(context)
        arguments = expander(specification.args, specification.run)
        feed = None
        if specification.columns:
            feed = RowFeed(specification.columns, specification.rows_key)
        body = Body(
            cls=plugin.cls,
            function=getattr(plugin.cls, plugin.method),
            arguments=feed.over(arguments) if feed is not None else arguments,
            feed=feed.add if feed is not None else None,
            context=context,
            timeout_ns=int(specification.timeout_s * 1e9),
            tracer=self._tracer(specification),
        )
        return Prepared(specification=specification, body=body)

    def span_counts(self) -> list[int]:
        """Spans written, dropped and waiting so far in this process."""
        if self._writer is None:
            return [0, 0, 0]
        stats = self._writer.stats()
        return [int(stats[name]) for name in ("written", "dropped", "waiting")]

    def close(self, timeout_s: float) -> None:
        """Write the waiting spans, for at most `timeout_s` seconds."""
        if self._writer is not None:
            self._writer.close(timeout_s)

    def _context(self, specification: Specification) -> dict[str, Any]:
        context = {
            **specification.context,
            "run": specification.run,
            "workload": specification.workload,
            "scenario": specification.scenario,
            "args": specification.args,
            "timeout_s": specification.timeout_s,
        }
        if specification.deployment:
            context["deployment"] = Deployment.from_dict(specification.deployment)
        return context

    def _tracer(self, specification: Specification) -> Tracer | None:
        if specification.sample_rate <= 0 or not specification.deployment:
            return None
        deployment = Deployment.from_dict(specification.deployment)
        key, store = deployment.profiler_hmac_key, deployment.profiler_conn_str
        if not key:
            return None
        # OSProfiler is slow to import, and many runs do not need it
        from osbench.worker.tracing.profiling import Tracer  # noqa: PLC0415 - see above

        return Tracer(
            key,
            specification.run,
            specification.sample_rate,
            self._writer_for(store),
            seed_of(f"{specification.run}/{specification.workload}"),
            specification.scenario,
        )

    def _writer_for(self, store: str | None) -> SpanWriter | None:
        if not store or not SpanWriter.supports(store):
            return None
        if self._writer is None or store != self._store:
            self.close(1.0)
            worker = self._conf.worker
            self._writer = SpanWriter(store, worker.trace_expiry_s, worker.trace_queue_spans)
            self._store = store
        return self._writer
