"""Evidence of a certificate: counted again from journal and blocks, or refused by name."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgpack
import pytest

from helpers.certified_runs import (
    RUN,
    T0_AT,
    WORKERS,
    PlannedRun,
    certified_run,
    changed_json,
    new_digests,
)
from osbench.common.plugin.plugins import Plugins
from osbench.common.protocol.columns import decode_rows
from osbench.common.values.outcomes import Outcome
from osbench.coordinator.results.storage.frames import FrameFile, read_frames
from osbench.coordinator.results.storage.run_directory import RunDirectory
from osbench.edges.certificate.refusal import CertificateRefused
from osbench.edges.certificate.run_evidence import evidence_of
from osbench.edges.certificate.sealed_statement import RunEvidence


def derived(directory: RunDirectory) -> RunEvidence:
    """The evidence in a run."""
    return evidence_of(directory, Plugins())


def refusal(directory: RunDirectory) -> str:
    """The message by which a run is refused."""
    with pytest.raises(CertificateRefused) as refused:
        derived(directory)
    return str(refused.value)


@pytest.mark.parametrize("seed", range(5))
def test_counts_of_drawn_rows_are_in_the_evidence(tmp_path: Path, seed: int) -> None:
    chance = random.Random(seed)
    ok, failed = chance.randint(20, 400), chance.randint(0, 40)
    plan = PlannedRun(ok=ok, failed=failed, blocks=chance.randint(1, 9), seed=seed)

    found = derived(certified_run(tmp_path, plan))

    (workload,) = found.workloads
    sums = workload.accounting
    assert (sums.planned, sums.ok, sums.failed, sums.lost) == (ok + failed, ok, failed, 0)
    assert (found.rows, found.blocks) == (ok + failed, len(plan.bodies()))
    times = sorted(
        int(ended - started)
        for body in plan.bodies()
        for started, ended, outcome in _times(body)
        if outcome == Outcome.OK
    )
    assert workload.main_times.count == ok
    assert workload.main_times.max == pytest.approx(times[-1] / 1e9, rel=2e-3)
    p95 = times[-(-95 * ok // 100) - 1] / 1e9
    assert p95 <= (workload.main_times.p95 or 0) <= p95 * 1.002
    met = 100 * failed <= 5 * (ok + failed)
    assert {one.criterion: one.success for one in workload.criteria} == {
        "failure_rate": met,
        "percentile": True,
    }
    assert found.exit_code == (0 if met else 1)


def _times(body: dict[str, Any]) -> Any:
    rows = decode_rows(body["columns"])
    return zip(rows.started.tolist(), rows.ended.tolist(), rows.outcome.tolist(), strict=True)


def test_a_run_with_lost_iterations_is_refused_with_their_number(tmp_path: Path) -> None:
    said = refusal(certified_run(tmp_path, PlannedRun(lost=3)))

    assert "exit code 3" in said
    assert "Dummy.dummy: 3 lost iterations" in said
    assert said.endswith("Run the task again.")


def test_a_run_that_its_generator_limited_is_refused_with_the_remedy(tmp_path: Path) -> None:
    said = refusal(certified_run(tmp_path, PlannedRun(late_ns=400_000_000)))

    assert "was limited by its load generator" in said
    assert "threads of the workers were late by 400 ms" in said
    assert "Add workers or hosts" in said


def test_a_generator_that_was_the_limit_is_not_hidden_by_an_edited_report(tmp_path: Path) -> None:
    def whiten(summary: Any) -> None:
        summary["exit_code"], summary["workloads"][0]["bounds"] = 0, []

    directory = certified_run(tmp_path, PlannedRun(late_ns=400_000_000))

    said = refusal(changed_json(directory, "summary.json", whiten))

    assert "summary.json does not follow from journal and blocks" in said
    assert "workload 0 (Dummy.dummy).bounds is []" in said
    assert "exit_code is 0, and should be 4" in said


def test_a_grant_of_more_arrivals_than_due_times_takes_no_memory(tmp_path: Path) -> None:
    cut = {"do": "cut", "mid": "a", "seq": 9, "workload": 0, "intervals": [[1, 10**12]]}

    said = refusal(certified_run(tmp_path, PlannedRun(forged=({**cut, "dues": bytes(8)},))))

    assert f"expected a due time for each of {10**12 - 1} arrivals, got 1" in said


DISTURBED = {
    "resumed": ({"do": "open", "run": RUN, "epoch": 2}, "the run was resumed (1 time)"),
    "a lost worker": (
        {
            **{"do": "lost", "workload": 0, "mid": "a", "at_s": 2.0, "silent_s": 1.0, "users": 1},
            **{"host": "node1", "pid": 7, "label": ""},
        },
        "worker node1.7.a was lost",
    ),
    "an outage": (
        {"do": "outage", "server": "Redis", "is_broker": False, "lasted_s": 4.0},
        "Redis",
    ),
}


@pytest.mark.parametrize("case", DISTURBED)
def test_a_disturbed_run_is_refused_by_name(tmp_path: Path, case: str) -> None:
    record, named = DISTURBED[case]

    said = refusal(certified_run(tmp_path, PlannedRun(records=(record,))))

    assert "was disturbed" in said
    assert named in said


def _without_end(directory: RunDirectory) -> None:
    for name in ("summary.json", "digests.json"):
        (directory.path / name).unlink()


def _resumable(directory: RunDirectory) -> None:
    (directory.path / "plan").write_bytes(b"x")


def _of_older_release(directory: RunDirectory) -> None:
    (directory.path / "digests.json").unlink()
    path = directory.path / "run.json"
    path.write_text(path.read_text("utf-8").replace('"digests": 1,', ""))


def _without_request(directory: RunDirectory) -> None:
    (directory.path / "run.json").unlink()


UNFINISHED: dict[str, tuple[Callable[[RunDirectory], None], str]] = {
    "no report": (_without_end, "did not end"),
    "a plan": (_resumable, "did not end"),
    "older": (_of_older_release, "made by an older osbench"),
    "no request": (_without_request, "is not the directory of a run"),
}


@pytest.mark.parametrize("case", UNFINISHED)
def test_a_run_without_an_end_is_refused_by_name(tmp_path: Path, case: str) -> None:
    directory = certified_run(tmp_path)
    change, named = UNFINISHED[case]
    change(directory)

    assert named in refusal(RunDirectory(directory.path))


def test_a_running_run_is_refused(tmp_path: Path) -> None:
    directory = certified_run(tmp_path)
    holder = RunDirectory(directory.path)
    holder.lock()

    said = refusal(directory)
    holder.close()

    assert "is still running" in said


ALTERED: dict[str, Callable[[Any], None]] = {
    ".accounting.ok": lambda one: one["accounting"].update(ok=58, failed=1),
    ".throughput.ok_per_s": lambda one: one["throughput"].update(ok_per_s=1e6),
    ".latency.service.ok.p95": lambda one: one["latency"]["service"]["ok"].update(p95=1e-3),
    ".latency.service.ok.ci.p95": lambda one: one["latency"]["service"]["ok"]["ci"].update(
        p95=[0.001, 0.002]
    ),
    ".offered.concurrency": lambda one: one["offered"].update(concurrency=200),
    ".offered.concurrency_held": lambda one: one["offered"].update(concurrency_held=0.5),
    ".sla[0].detail": lambda one: one["sla"][0].update(detail="none failed"),
    ".errors": lambda one: one.update(errors=[]),
    ".bounds": lambda one: one.update(
        bounds=[{"cause": "service", "fault": "service", "sentence": "the service was slow"}]
    ),
    ".search": lambda one: one.update(
        search={"kind": "found", "rate": 9e9, "low": 8e9, "high": 9.5e9}
    ),
    "has a criterion uptime": lambda one: one["sla"].append(
        {"criterion": "uptime", "success": True, "detail": "99.999 %"}
    ),
}


@pytest.mark.parametrize("place", ALTERED)
def test_a_report_that_says_more_than_the_rows_is_refused_by_place(
    tmp_path: Path, place: str
) -> None:
    directory = certified_run(tmp_path)

    changed = changed_json(
        directory, "summary.json", lambda summary: ALTERED[place](summary["workloads"][0])
    )

    assert place in refusal(changed)


def _rewrite(directory: RunDirectory, name: str, change: Callable[[list[bytes]], None]) -> None:
    path = directory.path / name
    frames = list(read_frames(path))
    change(frames)
    path.unlink()
    file = FrameFile(path)
    file.append(frames)
    file.close()


def _without_bounds(frames: list[bytes]) -> None:
    """Take the sizes of blocks out of the journal, as an owner of the files would."""
    for place, frame in enumerate(frames):
        record = msgpack.unpackb(frame)
        record["blocks"], record["bytes"] = 0, 0
        frames[place] = msgpack.packb(record)


def test_blocks_that_are_doubled_or_missing_are_refused(tmp_path: Path) -> None:
    found = {}
    for case in ("doubled", "missing"):
        directory = certified_run(tmp_path / case)
        _rewrite(directory, "journal", _without_bounds)
        _rewrite(
            directory,
            "blocks",
            lambda frames: frames.append(frames[0]) if case == "doubled" else frames.pop(0),  # noqa: B023 - called here
        )
        found[case] = refusal(new_digests(directory))

    assert "blocks twice" in found["doubled"] or "twice" in found["doubled"]
    assert f"lacks block 1 of worker {WORKERS[0]}" in found["missing"]


def test_a_block_of_another_run_is_refused(tmp_path: Path) -> None:
    directory = certified_run(tmp_path / "one")
    other = certified_run(tmp_path / "two", PlannedRun(run="20260401-120000-ffffff"))
    _rewrite(directory, "journal", _without_bounds)
    (directory.path / "blocks").write_bytes((other.path / "blocks").read_bytes())

    said = refusal(new_digests(directory))

    assert "belongs to run 20260401-120000-ffffff" in said


CLAIMED: dict[str, Callable[[Any], None]] = {
    "had 59 iterations, and run.json plans 59,000": lambda one: one["runner"]["constant"].update(
        times=59_000
    ),
    "and run.json of Shop.buy_all": lambda one: one.update(scenario="Shop.buy_all"),
}


@pytest.mark.parametrize("said", CLAIMED)
def test_a_task_that_asks_for_more_than_was_made_is_refused(tmp_path: Path, said: str) -> None:
    changed = changed_json(
        certified_run(tmp_path), "run.json", lambda one: CLAIMED[said](one["workloads"][0])
    )

    assert said in refusal(changed)


HOSTILE: dict[str, Callable[[Any], None]] = {
    "no workloads": lambda one: one.update(workloads=None),
    "two runners": lambda one: one["workloads"][0]["runner"].update(rps={"rps": 1}),
    "unknown runner": lambda one: one["workloads"][0].update(runner={"warp@native": {}}),
    "runner of a list": lambda one: one["workloads"][0].update(runner={"constant": [1]}),
    "huge number": lambda one: one["workloads"][0].update(
        runner={"constant": {"times": 10**300, "concurrency": 10**300}}
    ),
    "a file": lambda one: one["workloads"][0].update(runner={"replay": {"file": "/dev/zero"}}),
    "no criteria": lambda one: one["workloads"][0].update(sla=7),
    "another run": lambda one: one.update(run_id="x"),
    "phases of a drill": lambda one: one["workloads"][0].update(phases={"a": 1}),
}


@pytest.mark.parametrize("case", HOSTILE)
def test_a_request_of_another_shape_is_refused_without_a_traceback(
    tmp_path: Path, case: str
) -> None:
    directory = changed_json(certified_run(tmp_path), "run.json", HOSTILE[case])

    assert refusal(directory)


def test_the_limit_of_the_judge_and_the_hosts_are_sealed(tmp_path: Path) -> None:
    found = derived(certified_run(tmp_path))

    assert found.lag_limit_s == 0.1
    assert [(one.host, one.processes, one.cores) for one in found.hosts] == [
        ("node1", 1, 4),
        ("node2", 1, 4),
    ]
    assert found.started_at is not None
    assert T0_AT > 0
