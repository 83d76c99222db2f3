"""The run directory alone says what the report says, and its files have their digests."""

from __future__ import annotations

from collections.abc import Iterator

from osbench.common.errors import OsbenchError
from osbench.coordinator.load.run.workload.planned_results import planned_results
from osbench.coordinator.results.accounting.accounts import Accounts
from osbench.coordinator.results.storage.run_directory import RunDirectory
from world.coordinators import SimulatedRun
from world.judges.finding import Finding


def of_run(run: SimulatedRun) -> Iterator[Finding]:
    """Fold journal and blocks anew."""
    assert run.services is not None
    directory = RunDirectory(run.folder)
    folded = Accounts()
    for one in run.plan.workloads:
        folded.register(one.number, planned_results(one, run.plan))
    try:
        folded.fold(directory)
    except (AssertionError, OsbenchError) as error:
        yield Finding("cannot be folded", str(error))
        return
    for number, results in run.services.accounts.results.items():
        if run.summary is not None and run.summary["workloads"][number]["not_begun"]:
            # nothing of it was decided
            continue
        found = folded.results[number].ledger.accounting()
        if found != results.ledger.accounting():
            yield Finding("folds to something else", f"{found}, {results.ledger.accounting()}")
    problems = directory.files.problems()
    if problems:
        yield Finding("files without their digests", "; ".join(problems))
