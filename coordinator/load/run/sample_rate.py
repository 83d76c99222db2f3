"""Computes the fraction of iterations to trace, from the wanted slow traces and the store's
size.
"""

from __future__ import annotations

from dataclasses import dataclass

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
        less. `iterations` is None if a duration decides their number: then it is 1. `in_all` is the
        number for all workloads that share the budget; 0 if there is only this one.
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
                f" {name}, where {self.tail_traces} are wanted"
            )
        slow = round(iterations * wanted * tail)
        if wanted == 1.0 and slow < self.tail_traces:
            return 1.0, (
                f"all of them: of {count(iterations)} iterations only about {count(slow)} are"
                f" above {name}, where {self.tail_traces} are wanted"
            )
        return wanted, (
            f"of {count(iterations)} iterations about {count(slow)} traced ones will be above"
            f" {name}"
        )
