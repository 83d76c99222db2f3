"""What the workloads of a run share."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from osbench.common.clock import ClockOffset
from osbench.coordinator.contexts.context_stack import ContextStack
from osbench.coordinator.fleet.pool import Fleet
from osbench.coordinator.storage.run_directory import RunDirectory
from osbench.coordinator.transport.channel import Channel, Controls
from osbench.coordinator.transport.receiver import Reader


@dataclass(slots=True)
class Interruption:
    """What the user wants: 0 nothing, 1 drain (first Ctrl-C), 2 stop now (second)."""

    level: int = 0


@dataclass(slots=True)
class RunState:
    """What the workloads of a run share."""

    channel: Channel
    controls: Controls
    fleet: Fleet
    directory: RunDirectory
    offset: ClockOffset
    interruption: Interruption
    lost_after_s: float
    #: How long a run whose workers have all died waits for others.
    wait_s: float
    #: How long Redis or the broker may be away under load, seconds.
    patience_s: float
    #: Raises when something of ours has died (local mode).
    check: Callable[[], None]
    #: The server's run id when the run began.
    boot: str
    #: Asks for it again, after Redis was away.
    greet: Callable[[], str]
    batch_ids: Iterator[int]
    contexts: ContextStack
    reader: Reader
    #: Redis does not answer.
    away: bool = False
    #: Stop the load of all workloads once an SLA can't be met any more.
    abort_on_sla: bool = False
    #: Which one, and why; "" while there is none.
    breach: str = ""
    #: Sentences on workers that were given up.
    losses: list[str] = field(default_factory=list)

    @property
    def stopped_for(self) -> str | None:
        """Why no more load is to be started: "interrupted", "sla", or None."""
        if self.interruption.level:
            return "interrupted"
        return "sla" if self.breach else None
