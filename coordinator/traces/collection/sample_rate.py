"""How many iterations to trace, so that there are slow ones enough and not too much is stored."""

from __future__ import annotations

from dataclasses import dataclass

from osbench.coordinator.formatting import count

#: Bytes that an event takes in Redis, measured with OSProfiler's own; a span has two.
EVENT_BYTES = 450


@dataclass(frozen=True, kw_only=True)
class SampleRatePlan:
    """What a sample is planned for."""

    #: Percentile above which traces are wanted, and how many.
    tail_percent: float
    tail_traces: int
    #: Bytes that the trace store may have at once.
    budget: int
    #: Spans of one trace, services' included, as far as they can be guessed.
    spans_per_trace: int

    def rate(self, iterations: int | None, in_all: int = 0) -> tuple[float, str]:
        """Share of the iterations to trace, 0 to 1, and a sentence of why.

        `iterations` is None where a duration decides how many there will be. `in_all` are those
        of all workloads that share the store, by which the budget is divided; 0 for this alone.
        """
        if not iterations:
            return 1.0, (
                "all of them: how many iterations there will be is not known, nor whether"
                f" {count(self.budget >> 20)} MiB hold their traces"
            )
        tail = 1 - self.tail_percent / 100
        wanted = min(1.0, self.tail_traces / (iterations * tail)) if tail > 0 else 1.0
        each = 2 * EVENT_BYTES * self.spans_per_trace
        # each workload has its part of the budget, so that all have the same share at most
        allowed = self.budget / (max(in_all, iterations) * each)
        name = f"p{self.tail_percent:g}"
        if allowed < wanted:
            slow = int(iterations * allowed * tail)
            shared = (
                f" of all {count(in_all)} iterations of the task" if in_all > iterations else ""
            )
            return allowed, (
                f"as much as {count(self.budget >> 20)} MiB hold{shared}; of {count(iterations)}"
                f" iterations about {count(slow)} traced ones will be above {name}, where"
                f" {self.tail_traces} are wanted"
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
