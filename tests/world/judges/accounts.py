"""Every number of the plan is in one final state, and the report's sums are those of the sets."""

from __future__ import annotations

from collections.abc import Iterator

from world.coordinators import SimulatedRun
from world.judges.finding import Finding


def of_run(run: SimulatedRun) -> Iterator[Finding]:
    """Compare the ledger's sets, its sums, and the report."""
    assert run.services is not None and run.summary is not None
    for number, results in run.services.accounts.results.items():
        ledger, sums = results.ledger, results.ledger.accounting()
        settled, lost, back = run.sets(number)
        if not ledger.closed:
            if run.known.starts or not run.interrupts:
                yield Finding("not closed")
            continue
        # a load of some seconds has given out more than it began
        last = sums.planned + ledger._unused
        beyond = set(range(ledger.allotted + 1, last + 1))
        without = set(range(1, last + 1)) - settled - lost - back - beyond
        # what came back after the end was not started, and is in no set any more
        if len(without) != sums.not_started + ledger._unused - len(back | beyond):
            yield Finding("numbers without a state", f"{sorted(without)[:8]} of {last}")
        if settled & lost or settled & back or lost & back:
            yield Finding("two states")
        if sums.ok + sums.failed + sums.timed_out + sums.dropped != len(settled):
            yield Finding("counted otherwise than settled", f"{sums} and {len(settled)} settled")
        if sums.lost != len(lost):
            yield Finding("lost otherwise than counted", f"{sums.lost} and {len(lost)}")
        told = run.summary["workloads"][number]["accounting"]
        asked = run.plan.task.workloads[number].runner.config.get("times")
        if asked is not None and told["planned"] != asked:
            yield Finding("the plan is another one", f"{told['planned']} of {asked}")
        for name in ("planned", "ok", "failed", "timed_out", "dropped", "lost", "not_started"):
            if told[name] != getattr(sums, name):
                yield Finding("the report counts otherwise", f"{name}: {told[name]} and {sums}")
        total = sum(told[name] for name in ("ok", "failed", "timed_out", "dropped"))
        if total + told["lost"] + told["not_started"] != told["planned"]:
            yield Finding("sums do not add up", str(told))
