"""The work of one iteration, prepared once per workload so that running it allocates little."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from osbench.common.plugin.atomic import Names, Recorder
from osbench.common.plugin.scenario import OUTPUT_LIMIT, Scenario
from osbench.common.protocol.messages import Batch
from osbench.worker.engine.failures import Failures

if TYPE_CHECKING:
    from osbench.worker.tracing.profiling import Tracer


@dataclass(frozen=True, kw_only=True)
class Body:
    """A scenario with its arguments and context, ready for any iteration number."""

    cls: type[Scenario]
    #: The method that runs an iteration, unbound.
    function: Callable[..., Any]
    #: Keyword arguments for an iteration number.
    arguments: Callable[[int], dict[str, Any]]
    #: Takes the rows that come with a batch; None without a data file.
    feed: Callable[[Batch], None] | None = None
    #: The context of every iteration; "iteration" is added to a copy.
    context: Mapping[str, Any]
    #: Bound of one iteration, nanoseconds; 0 is none.
    timeout_ns: int = 0
    tracer: Tracer | None = None
    names: Names = field(default_factory=Names)
    failures: Failures = field(default_factory=Failures)

    def instance(self, iteration: int, recorder: Recorder) -> Scenario:
        """A new scenario object whose actions go to `recorder`."""
        scenario: Scenario = object.__new__(self.cls)
        scenario._recorder = recorder
        context = dict(self.context)
        context["iteration"] = iteration
        scenario.__init__(context)  # type: ignore[misc]
        return scenario

    def extras(self, outputs: list[bytes] | None, trace: bytes) -> Any:
        """The last column of a row: trace id and outputs, None where there are neither."""
        if outputs is not None and not _small(outputs):
            outputs = None
            self.failures.cut += 1
        return (trace, outputs) if trace or outputs else None


def _small(outputs: Any) -> bool:
    # a scenario may use an attribute of this name for values that cannot be shipped
    if type(outputs) is not list or any(type(part) is not bytes for part in outputs):
        return False
    return sum(map(len, outputs)) <= OUTPUT_LIMIT
