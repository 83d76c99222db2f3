"""Counts a finished run again from its journal and result blocks, without deployment and Redis.

`summary.json` is not used: the decisions and results that a live run noted suffice.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from osbench.common.errors import OsbenchError
from osbench.common.plugin.plugins import Plugins
from osbench.common.plugin.runner import Runner
from osbench.common.protocol.messages import Block
from osbench.common.task import Named, Workload
from osbench.common.values.intervals import Intervals
from osbench.coordinator.formatting import count, plain
from osbench.coordinator.load.run.run_history import RunHistory
from osbench.coordinator.load.run.steering.steered_runner import SteeredRunner
from osbench.coordinator.load.run.workload.planned_results import planned_results
from osbench.coordinator.results.accounting.accounts import Accounts, Arrival
from osbench.coordinator.results.accounting.load_profile import arrival_window
from osbench.coordinator.results.accounting.totals import Offered
from osbench.coordinator.results.accounting.workload_results import WorkloadResults
from osbench.coordinator.results.storage.digests import rows_of
from osbench.coordinator.results.storage.run_directory import RunDirectory
from osbench.coordinator.results.storage.run_documents import read_timeline
from osbench.edges.certificate.refusal import CertificateRefused

Ints = NDArray[np.int64]


class _WatchedAccounts(Accounts):
    """Accounts that also note blocks which are there twice, and count blocks and their rows."""

    def __init__(self) -> None:
        super().__init__()
        self.blocks = self.rows = self.doubled = 0

    def take(self, blocks: Sequence[Block]) -> list[Arrival]:
        """Count blocks as `Accounts.take` does, and note doubled ones."""
        seen: set[tuple[str, int]] = set()
        for block in blocks:
            key = (block.membership, block.number)
            self.doubled += key in seen or self._member_of(block).has(block.number)
            seen.add(key)
            self.blocks += 1
            self.rows += rows_of(vars(block))
        return super().take(blocks)


class _PlannedArrivals:
    """Due times of all arrivals of the journal, by workload; 16 bytes for each arrival."""

    def __init__(self) -> None:
        self._found: defaultdict[int, list[tuple[Ints, Ints]]] = defaultdict(list)

    def apply(self, record: Mapping[str, Any]) -> None:
        """Note the due times of a record that grants or drops arrivals; ignore others."""
        name = {"cut": "intervals", "drop": "numbers"}.get(record["do"])
        dues = np.frombuffer(record.get("dues", b""), "<i8")
        if name is not None and len(dues):
            numbers = Intervals((int(low), int(high)) for low, high in record[name])
            # before members are made: others may have written the file
            if len(numbers) != len(dues):
                raise ValueError(f"{len(numbers)} arrivals have {len(dues)} due times")
            self._found[int(record["workload"])].append((numbers.members(), dues))

    def rate(self, number: int, warmup_ns: int, planned_s: float | None) -> float | None:
        """Return planned arrivals per second after the warm-up; None for fewer than two."""
        found = self._found.get(number)
        if not found:
            return None
        numbers, dues = (np.concatenate(some) for some in zip(*found, strict=True))
        # an arrival that moved to another worker is there again
        dues = dues[np.unique(numbers, return_index=True)[1]]
        warm = dues[dues >= warmup_ns]
        if not len(warm):
            return None
        planned_ns = None if planned_s is None else int(planned_s * 1e9)
        window = arrival_window(int(warm.min()), int(warm.max()), len(warm), planned_ns)
        return len(warm) * 1e9 / window if window else None


@dataclass(frozen=True, kw_only=True)
class CountedWorkload:
    """A workload of a run, counted again."""

    workload: Workload
    runner: Runner
    results: WorkloadResults
    #: The load that journal and blocks show.
    offered: Offered


@dataclass(frozen=True, kw_only=True)
class Recount:
    """A run, counted again from journal and blocks."""

    workloads: tuple[CountedWorkload, ...]
    #: Limit of late starts by which the load generator was judged, seconds.
    lag_limit_s: float
    #: Result blocks, and rows in them.
    blocks: int
    rows: int
    #: Changes of the load that were not planned: by hand, while it went on.
    changes: int
    #: Sentences on losses and faults that the files show.
    disturbances: tuple[str, ...]


def count_again(directory: RunDirectory, plugins: Plugins) -> Recount:
    """Count a finished run again. Reads all of its journal and blocks.

    Raises DamagedRun for damaged files, CertificateRefused if the run cannot be counted here: a
    plug-in is missing, or the runner reads a file that the run directory does not have. Files that
    do not fit each other raise any exception.
    """
    manifest, timeline = directory.read("run.json"), read_timeline(directory)
    if manifest is None or timeline is None:
        missing = "run.json" if manifest is None else "timeline"
        raise CertificateRefused(
            f"run {directory.path.name}: {missing} is missing or cannot be read"
        )
    (lag_limit_s,) = {float(one["lag_limit_s"]) for one in timeline["workloads"]}
    names = {number: str(one["name"]) for number, one in enumerate(manifest["workloads"])}
    accounts, history, arrivals = _WatchedAccounts(), RunHistory(names), _PlannedArrivals()
    asked = [_workload(number, one) for number, one in enumerate(manifest["workloads"])]
    loads = [(workload, _runner(workload, plugins)) for workload in asked]
    for number, load in enumerate(loads):
        accounts.register(number, _empty_results(*load, plugins, lag_limit_s))

    def seen(record: Mapping[str, Any]) -> None:
        history.apply(record)
        arrivals.apply(record)

    accounts.fold(directory, seen)
    counted = tuple(
        CountedWorkload(
            workload=workload,
            runner=runner,
            results=accounts.results[number],
            offered=_offered_load(number, runner, accounts, history, arrivals),
        )
        for number, (workload, runner) in enumerate(loads)
    )
    return Recount(
        workloads=counted,
        lag_limit_s=lag_limit_s,
        blocks=accounts.blocks,
        rows=accounts.rows,
        changes=sum(
            len(accounts.changes[number])
            for number, one in enumerate(counted)
            if one.results.trials is None
        ),
        disturbances=tuple(_disturbances(accounts, history)),
    )


def _workload(number: int, one: Mapping[str, Any]) -> Workload:
    ((runner, config),) = one["runner"].items()
    return Workload(
        place=f"workloads[{number}]",
        position=number,
        scenario=str(one["scenario"]),
        args=dict(one["args"]),
        runner=Named(name=runner, config=config),
        args_from=str(one["args_from"]),
        sla=tuple(Named(name=name, config=config) for name, config in one["sla"].items()),
        idempotent=bool(one["idempotent"]),
        warmup_s=float(one["warmup"]),
        abort=dict(one["abort"]),
        phases=dict(one["phases"]),
    )


def _runner(workload: Workload, plugins: Plugins) -> Runner:
    name = workload.runner.name
    try:
        kind = plugins.get("runner", name)
        for criterion in workload.sla:
            plugins.get("sla", criterion.name)
    except OsbenchError as error:
        raise CertificateRefused(
            f"the run cannot be counted again here: {error}; name its file by --plugin-path"
        ) from None
    assert issubclass(kind, Runner)
    if any(key in workload.runner.config for key in kind.FILES):
        raise CertificateRefused(
            f"the runner {plain(name)} reads a file that the run directory does not have, so the"
            " load cannot be derived from the run again"
        )
    return kind(workload.runner.config)


def _empty_results(
    workload: Workload, runner: Runner, plugins: Plugins, lag_limit_s: float
) -> WorkloadResults:
    # the parts of a plan that results need: the rest of it needs a deployment
    conf = SimpleNamespace(benchmark=SimpleNamespace(lag_limit_s=lag_limit_s))
    one = SimpleNamespace(workload=workload, runner=runner)
    return planned_results(cast(Any, one), cast(Any, SimpleNamespace(plugins=plugins, conf=conf)))


def _offered_load(
    number: int,
    runner: Runner,
    accounts: Accounts,
    history: RunHistory,
    arrivals: _PlannedArrivals,
) -> Offered:
    """Return the offered load next to the requested one, as a live run computes it."""
    results, load = accounts.results[number], SteeredRunner(runner, accounts.changes[number])
    statistics, sums = results.statistics, results.ledger.accounting()
    duration_s = (statistics.last_end or 0) / 1e9
    cut_short = history.cut_short(number, sums.settled - sums.not_started)
    if runner.OPEN:
        return Offered(
            duration_s=duration_s,
            rate_planned=arrivals.rate(number, results.warmup_ns, runner.planned_s),
            rate_offered=statistics.rate_started,
            cut_short=cut_short,
        )
    users, missing_s = load.concurrency, history.missing_user_s(number, duration_s)
    if load.is_search:
        # its plan only has a bound
        users = max((int(level) for _, level in load.asked()), default=0)
    if load.is_scripted:
        # the code has as many at once as it likes
        users, missing_s = max(1, round(statistics.profile.peak())), 0.0
    wanting_s = results.want_ns / 1e9 + missing_s
    asked_s = results.busy_s + wanting_s
    return Offered(
        duration_s=duration_s,
        concurrency=users,
        concurrency_held=results.busy_s / asked_s if asked_s > 0 else None,
        waited_s=wanting_s / max(1, users),
        cut_short=cut_short,
    )


def _disturbances(accounts: _WatchedAccounts, history: RunHistory) -> Iterator[str]:
    """Yield a message for each fault of the run that journal and blocks show."""
    yield from history.losses()
    if accounts.epoch > 1:
        yield f"its coordinator died and the run was resumed ({count(accounts.epoch - 1, 'time')})"
    if accounts.doubled:
        yield f"the file blocks has {count(accounts.doubled, 'block')} twice"
    for member in accounts.memberships.values():
        name = plain(member.name)
        if member.have:
            gap = member.acknowledged + 1
            yield f"the file blocks lacks block {gap} of worker {name}, and has later ones"
        if member.damaged:
            yield f"a result block of worker {name} cannot be read"
        if member.lost:
            yield f"worker {name} was lost"
    if accounts.refused:
        yield f"{count(accounts.refused, 'block')} belong to no workload of the run"
    late = sum(one.started_late for one in accounts.results.values())
    if late:
        yield f"{count(late, 'iteration')} started after the lease of the worker had ended"
