"""Finished runs with known rows, complete enough to be certified, and keys for that."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from helpers.result_rows import row
from helpers.sample_reports import constant_workload
from osbench.common.plugin.plugins import Plugins
from osbench.common.protocol.columns import encode_rows
from osbench.common.protocol.messages import Block
from osbench.common.task import Named, Workload
from osbench.common.values.outcomes import Outcome
from osbench.coordinator.load.run.workload.planned_results import planned_results
from osbench.coordinator.report.exit_code import exit_code
from osbench.coordinator.report.findings.load_bounds import GENERATOR, load_bounds
from osbench.coordinator.report.model.measure import measured_report
from osbench.coordinator.report.run_outcome import RunOutcome
from osbench.coordinator.report.timeline import to_timeline
from osbench.coordinator.results.accounting.accounts import Accounts
from osbench.coordinator.results.accounting.totals import Offered, Warmup
from osbench.coordinator.results.accounting.worker_figures import WorkerFigures
from osbench.coordinator.results.storage import digests
from osbench.coordinator.results.storage.run_directory import RunDirectory
from osbench.coordinator.results.storage.run_documents import write_timeline
from osbench.edges.certificate.certificate_file import sealed_content
from osbench.edges.certificate.run_evidence import evidence_of
from osbench.edges.certificate.sealed_statement import SealedStatement
from osbench.edges.certificate.sealing import seal_of
from osbench.edges.certificate.signing_key import SealingKey

RUN = "20260401-120000-ab12cd"
T0_AT = 1775044801.25
LIMIT_S = 0.1
USERS = 2
#: Incarnations of the two workers, whose membership has the last letter as its id.
WORKERS = ("node1.7.a", "node2.8.b")
_SLA = {"failure_rate": {"max": 5}, "percentile": {"p": 95, "max_s": 5}}


@dataclass(frozen=True, kw_only=True)
class PlannedRun:
    """A closed run with known rows: how many iterations ended how, in how many blocks."""

    ok: int = 57
    failed: int = 2
    #: Iterations that were granted, and have no row.
    lost: int = 0
    blocks: int = 6
    #: How late threads of the workers were at each beat, nanoseconds.
    late_ns: int = 0
    seed: int = 1
    run: str = RUN
    title: str = "Shop"
    sla: Mapping[str, Any] | None = None
    #: Records of the journal after the begin; and records that only the files have.
    records: tuple[dict[str, Any], ...] = ()
    forged: tuple[dict[str, Any], ...] = ()

    @property
    def criteria(self) -> dict[str, Any]:
        """Criteria by name."""
        return dict(_SLA if self.sla is None else self.sla)

    @property
    def planned(self) -> int:
        """Iterations of the plan."""
        return self.ok + self.failed + self.lost

    def bodies(self) -> list[dict[str, Any]]:
        """Result blocks, each of one of the two workers."""
        chance = random.Random(self.seed)
        outcomes = [Outcome.OK] * self.ok + [Outcome.FAILED] * self.failed
        chance.shuffle(outcomes)
        rows, ends = [], [0] * USERS
        for number, outcome in enumerate(outcomes, 1):
            user = number % USERS
            took = chance.randint(10, 200)
            failure = 1 if outcome is Outcome.FAILED else 0
            times = {"due": ends[user], "started": ends[user], "ended": ends[user] + took}
            rows.append((user, row(number, outcome=outcome, failure=failure, **times)))
            ends[user] += took
        lags = np.full(40, self.late_ns, "<i8").tobytes() if self.late_ns else b""
        found: list[dict[str, Any]] = []
        share = -(-len(rows) // self.blocks)
        numbers = [0] * USERS
        for begin in range(0, len(rows), share):
            for user in range(USERS):
                mine = [one for owner, one in rows[begin : begin + share] if owner == user]
                if mine:
                    numbers[user] += 1
                    found.append(self._body(user, numbers[user], mine, lags))
        return found

    def _body(self, user: int, number: int, rows: Iterable[Any], lags: bytes) -> dict[str, Any]:
        block = Block(
            run=self.run,
            incarnation=WORKERS[user],
            membership=WORKERS[user][-1],
            number=number,
            workload=0,
            columns=encode_rows(list(rows), (), 0),
            failures=[[1, "ValueError", "no stock", "Traceback", ""]] if number == 1 else [],
            thread_lags=lags,
        )
        return dict(vars(block))

    def begin(self) -> list[dict[str, Any]]:
        """Records of the journal before the first block."""
        members = [
            {"do": "member", "mid": one[-1], "incarnation": one, "name": one} for one in WORKERS
        ]
        cuts = [
            {
                "do": "cut",
                "mid": one[-1],
                "seq": 1,
                "workload": 0,
                # the numbers of a worker are every second
                "intervals": [
                    [number, number + 1]
                    for number in range(1, self.planned + 1)
                    if number % USERS == user
                ],
            }
            for user, one in enumerate(WORKERS)
        ]
        opened = {"do": "open", "run": self.run, "epoch": 1}
        started = {"do": "start", "workload": 0, "t0_at": T0_AT}
        return [opened, *members, started, *cuts, *self.records]

    def end(self) -> list[dict[str, Any]]:
        """Records of the journal after the last block."""
        closed = {"do": "close", "workload": 0, "budget": self.planned, "unused": False}
        return [{**closed, "allotted": self.planned, "planned": self.planned, "at_s": 60.0}]

    @property
    def manifest(self) -> dict[str, Any]:
        """The content of run.json."""
        runner = {"constant": {"times": self.planned, "concurrency": USERS}}
        workload = {
            **{"name": "Dummy.dummy", "scenario": "Dummy.dummy", "scenario_source": "native"},
            **{"args": {}, "runner": runner, "sla": self.criteria, "idempotent": False},
            **{"warmup": 0.0, "abort": {}, "args_from": "", "users": {}, "think": {}, "http": {}},
            **{"contexts": {}, "hooks": [], "phases": {}},
        }
        about = {"run_id": self.run, "osbench": "0.2.0", "digests": digests.FORMAT}
        asked = {"task": self.title, "description": "", "source": "shop.yaml", "tags": []}
        where = {"started_at": T0_AT - 1, "deployment": None, "trace_store": ""}
        return {**about, **asked, **where, "workloads": [workload]}


def certified_run(data: Path, plan: PlannedRun = PlannedRun()) -> RunDirectory:
    """Write the directory of a finished run; its summary is measured as a live run does."""
    directory = RunDirectory.create(str(data), plan.run)
    bodies = plan.bodies()
    directory.write("run.json", plan.manifest)
    directory.decide([*plan.begin(), *plan.forged])
    half = len(bodies) // 2
    directory.keep(bodies[:half])
    directory.keep(bodies[half:])
    directory.decide(plan.end())
    outcome = _run_outcome(plan, bodies)
    summary = measured_report(outcome).to_json()
    timeline = {"complete": True, **to_timeline(outcome, summary, LIMIT_S)}
    write_timeline(directory, timeline, sync=False)
    directory.finish("summary.json", summary)
    directory.close()
    return RunDirectory(directory.path)


def _run_outcome(plan: PlannedRun, bodies: Sequence[Mapping[str, Any]]) -> RunOutcome:
    (asked,) = plan.manifest["workloads"]
    ((runner_name, config),) = asked["runner"].items()
    criteria = tuple(Named(name=name, config=one) for name, one in asked["sla"].items())
    plugins = Plugins()
    workload = Workload(
        place="",
        position=0,
        scenario="Dummy.dummy",
        args={},
        runner=Named(name=runner_name, config=config),
        sla=criteria,
    )
    runner = cast(Any, plugins.get("runner", runner_name))(config)
    one = SimpleNamespace(workload=workload, runner=runner)
    conf = SimpleNamespace(benchmark=SimpleNamespace(lag_limit_s=LIMIT_S))
    results = planned_results(
        cast(Any, one), cast(Any, SimpleNamespace(plugins=plugins, conf=conf))
    )
    accounts = Accounts()
    accounts.register(0, results)
    for record in plan.begin():
        accounts.apply(record)
    accounts.take([Block(**body) for body in bodies])
    for record in plan.end():
        accounts.apply(record)
    statistics, sums = results.statistics, results.ledger.accounting()
    last_s = (statistics.last_end or 0) / 1e9
    offered = Offered(duration_s=last_s, concurrency=USERS, concurrency_held=1.0, waited_s=0.0)
    outcome = replace(
        constant_workload(),
        name="Dummy.dummy",
        scenario="Dummy.dummy",
        coroutines=False,
        accounting=sums,
        warmup=Warmup(),
        offered=offered,
        statistics=statistics,
        verdicts=results.judge(users=USERS),
        workers=tuple(
            WorkerFigures(incarnation=name, host=name[:5], pid=7, cores=4, virtual_users=1)
            for name in WORKERS
        ),
        stages=tuple(results.stages.figures(last_s)),
        charts=results.charts,
        hooks=(),
        contexts=(),
        t0_at=T0_AT,
        elapsed_s=last_s,
    )
    outcome = replace(outcome, bounds=load_bounds(outcome, LIMIT_S, interrupted=False))
    return RunOutcome(
        run_id=plan.run,
        title=plan.title,
        started_at=T0_AT - 1,
        finished_at=T0_AT + 60,
        exit_code=exit_code(
            broken=False,
            interrupted=False,
            aborted=False,
            accountings=[sums],
            limited=any(bound.fault == GENERATOR for bound in outcome.bounds),
            verdicts=outcome.verdicts,
        ),
        workloads=(outcome,),
    )


def new_digests(directory: RunDirectory) -> RunDirectory:
    """Write digests that fit the present files: whoever owns a run can do that."""
    path = directory.path
    summary = (path / "summary.json").read_bytes()
    listed = digests.new_listing(path, {}, summary)
    (path / digests.DIGESTS).write_text(json.dumps(listed, indent=1))
    return RunDirectory(path)


def changed_json(directory: RunDirectory, name: str, change: Callable[[Any], None]) -> RunDirectory:
    """Change a JSON document of a run, and its digests."""
    path = directory.path / name
    document = json.loads(path.read_text("utf-8"))
    change(document)
    path.write_text(json.dumps(document))
    return new_digests(directory)


def signing_key(seed: int = 1) -> SealingKey:
    """A key that is the same in each test."""
    return SealingKey(Ed25519PrivateKey.from_private_bytes(bytes([seed]) * 32))


def statement_of(directory: RunDirectory, key: SealingKey | None = None) -> SealedStatement:
    """The statement on a run."""
    evidence = evidence_of(directory, Plugins())
    owner = signing_key() if key is None else key
    return SealedStatement(evidence=evidence, seal=seal_of(evidence, owner.public, Plugins()))


def certificate_of(directory: RunDirectory) -> bytes:
    """The content of a certificate of a run."""
    return sealed_content(statement_of(directory), signing_key())
