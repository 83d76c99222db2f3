"""Prepares a workload in this process: plug-in, context, tracing, warm-up."""

from __future__ import annotations

import inspect
import logging
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from oslo_config import cfg

from osbench import __version__
from osbench.common.config import options
from osbench.common.deployment.record import Deployment
from osbench.common.errors import OsbenchError, PluginError
from osbench.common.machine.cpu_quota import usable_cores
from osbench.common.network.response_bound import BOUND_KEY, worker_bound
from osbench.common.plugin.loading import mixed_scenario
from osbench.common.plugin.loading.neighbours import is_of_osbench
from osbench.common.plugin.loading.plugin_import import place, reason
from osbench.common.plugin.plugins import Plugins
from osbench.common.plugin.scenario import TELL_KEY
from osbench.common.plugin.scenario_plugin import ScenarioPlugin
from osbench.common.plugin.scripted_runner import ScriptedRunner
from osbench.common.protocol.messages import Specification
from osbench.worker.engine.asides import Asides
from osbench.worker.engine.body import Body, without_loop
from osbench.worker.engine.failures import Failures, KeptFailures
from osbench.worker.engine.iteration_arguments import expander
from osbench.worker.engine.users.forked_children import process_forks
from osbench.worker.engine.users.possible_users import refuse_too_many
from osbench.worker.http.observer import OBSERVER_KEY, Observer
from osbench.worker.http.server_names import HTTP_KEY
from osbench.worker.session.row_feed import RowFeed
from osbench.worker.session.users_of import users_of
from osbench.worker.session.worker_cloud import WorkerCloud, worker_cloud
from osbench.worker.tracing.span_buffer import SpanBuffer
from osbench.worker.tracing.span_writer import SpanWriter
from osbench.worker.tracing.trace_ids import seed_of

if TYPE_CHECKING:
    from osbench.worker.tracing.profiling import Tracer, TraceSink


LOG = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True)
class Prepared:
    """A workload that this process can start: its scenario, arguments and users are in `body`."""

    specification: Specification
    body: Body
    #: Its scenario is `async def`. A few users of one may be threads nevertheless: see `body`.
    coroutines: bool
    #: The runner whose own code starts the iterations; None for all others.
    script: ScriptedRunner | None = None


class Preparation:
    """Prepares workloads; holds resources that they share in a process, such as the span writer.

    These resources are kept from one run to the next.
    """

    def __init__(self, conf: cfg.ConfigOpts, plugins: Plugins) -> None:
        self._conf = conf
        self._plugins = plugins
        self._writer: SpanWriter | None = None
        #: Spans that travel with results.
        self.spans = SpanBuffer(conf.worker.trace_queue_spans)
        self._cloud: WorkerCloud | None = None
        self._store = ""
        self._processes = int(conf.worker.processes or usable_cores())

    def prepare(self, specification: Specification, observer: Observer | None = None) -> Prepared:
        """Load the scenario, call its `warm_up` and return the prepared workload.

        Logs OpenStack users in if the workload needs it. `observer` is called with the requests of
        osbench's own HTTP clients. Raises PluginError if scenario or runner is missing or not the
        coordinator's, or if `warm_up` is `async def` or fails; FleetError for more virtual users
        than are possible; and other errors, such as of logging users in.
        """
        plugin = self._scenario(specification)
        function = getattr(plugin.cls, plugin.method)
        is_coroutine = plugin.is_coroutine
        refuse_too_many(specification.users_each, self._processes, coroutines=is_coroutine)
        context, asides = self._context(specification), Asides()
        context[TELL_KEY] = asides.add
        if observer is not None:
            context[OBSERVER_KEY] = observer
        if inspect.iscoroutinefunction(plugin.cls.warm_up):
            raise PluginError(
                f"warm_up of scenario {plugin.name} must be `def`, as no event loop runs before "
                "the load; it is `async def`"
            )
        _warm_up(plugin, context)
        arguments = expander(specification.args, specification.run)
        feed = None
        if specification.columns:
            feed = RowFeed(specification.columns, specification.rows_key)
        script = self._script(specification.script) if specification.script else None
        few = bool(script) or 0 < specification.users_each <= plugin.cls.THREADS_UP_TO
        if is_coroutine and few:
            function, is_coroutine = without_loop(function), False
        users = users_of(specification, plugin.cls, context, is_coroutine=is_coroutine)
        body = Body(
            cls=plugin.cls,
            function=function,
            is_coroutine=is_coroutine,
            arguments=feed.over(arguments) if feed is not None else arguments,
            feed=feed.add if feed is not None else None,
            context=context,
            timeout_ns=int(specification.timeout_s * 1e9),
            users=users,
            tracer=self._tracer(specification, is_coroutine=is_coroutine),
            failures=KeptFailures() if script else Failures(),
            asides=asides,
        )
        return Prepared(
            specification=specification,
            body=body,
            coroutines=plugin.is_coroutine and not script,
            script=script,
        )

    def span_counts(self) -> list[int]:
        """Return three counts of spans since this process began: written, dropped and waiting."""
        sinks = [self.spans.stats()] + ([self._writer.stats()] if self._writer else [])
        return [
            sum(int(stats[name]) for stats in sinks) for name in ("written", "dropped", "waiting")
        ]

    def close(self, timeout_s: float) -> None:
        """Write waiting spans to the trace store, at most `timeout_s` seconds; drop the rest."""
        if self._writer is not None:
            self._writer.close(timeout_s)

    def _scenario(self, specification: Specification) -> ScenarioPlugin:
        """Return the plug-in of the scenario that the specification names.

        Raises PluginError if it is missing or its source is not the coordinator's.
        """
        plugin = self._plugins.scenario(specification.scenario)
        if plugin.source_hash != specification.source_hash:
            parts = map(self._plugins.scenario, plugin.name.split(mixed_scenario.SEPARATOR))
            remedy = "bring the same file here"
            if all(is_of_osbench(part.cls.__module__) for part in parts):
                remedy = f"install the same build of osbench {__version__} here"
            raise PluginError(
                f"scenario {plugin.name} differs from the coordinator's "
                f"(source {plugin.source_hash[:12]}, expected "
                f"{specification.source_hash[:12]}): {remedy}, then restart osbench-worker"
            )
        return plugin

    def _script(self, wanted: Mapping[str, Any]) -> ScriptedRunner:
        """Return the runner whose own code starts iterations, made with its configuration.

        `wanted` has its name (`runner`), `config` and `source_hash`. Raises PluginError if it is
        missing or its source is not the coordinator's.
        """
        name, config = str(wanted["runner"]), wanted["config"]
        kind = self._plugins.get("runner", name)
        if not issubclass(kind, ScriptedRunner) or wanted["source_hash"] != kind.SOURCE_HASH:
            raise PluginError(
                f"runner {name} differs from the coordinator's: bring the same file here, then "
                "restart osbench-worker"
            )
        return kind(config)

    def _context(self, specification: Specification) -> dict[str, Any]:
        context = {
            **specification.context,
            "run": specification.run,
            "workload": specification.workload,
            "scenario": specification.scenario,
            "args": specification.args,
            "timeout_s": specification.timeout_s,
            BOUND_KEY: worker_bound(self._conf),
            HTTP_KEY: specification.http,
        }
        if specification.deployment:
            deployment = Deployment.from_dict(specification.deployment)
            context["deployment"] = deployment
            fast = self._conf.worker.openstack_transport == options.FAST
            if fast and (deployment.admin or deployment.users):
                self._cloud = self._cloud or worker_cloud()
                context |= self._cloud.use_fast_transport(worker_bound(self._conf))
        return context

    def _tracer(self, specification: Specification, *, is_coroutine: bool) -> Tracer | None:
        if specification.sample_rate <= 0:
            return None
        key = store = None
        if specification.deployment:
            deployment = Deployment.from_dict(specification.deployment)
            key, store = deployment.profiler_hmac_key, deployment.profiler_conn_str
        if not key and not specification.otlp:
            return None
        # without a key nothing of OSProfiler is attempted
        sink: TraceSink | None = self._writer_for(store) if key else None
        if sink is None and specification.otlp:
            sink = self.spans
        # OSProfiler is slow to import, and many runs do not need it
        from osbench.worker.tracing.iteration_profiler import IterationProfiler  # noqa: PLC0415
        from osbench.worker.tracing.profiling import Tracer  # noqa: PLC0415
        from osbench.worker.tracing.task_profiler import TaskProfiler  # noqa: PLC0415

        return Tracer(
            key or "",
            specification.run,
            specification.sample_rate,
            sink,
            seed_of(f"{specification.run}/{specification.workload}"),
            specification.scenario,
            kind=TaskProfiler if is_coroutine else IterationProfiler,
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


def _warm_up(plugin: ScenarioPlugin, context: dict[str, Any]) -> None:
    """Call the class method `warm_up` of a scenario with `context`.

    Errors of osbench are raised as they are; others become PluginError, with file and line of the
    scenario, and are logged. A child process that `warm_up` forked and that returns ends here.
    """
    forks = process_forks()
    generation = forks.generation
    try:
        plugin.cls.warm_up(context)
        forks.end_if_child(generation)
    except OsbenchError:
        forks.end_if_child(generation)
        raise
    except BaseException as error:
        forks.end_if_child(generation, error)
        LOG.warning("warm_up of scenario %s failed", plugin.name, exc_info=True)
        file = str(sys.modules[plugin.cls.__module__].__file__)
        raise PluginError(
            f"{place(error, file)}: warm_up of scenario {plugin.name} failed: {reason(error)}; "
            "correct it there"
        ) from error
