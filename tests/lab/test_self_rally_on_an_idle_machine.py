"""The task of Rally's own job `self-rally`, with its plug-ins, on osbench: Rally's verdicts.

It takes either of them some three minutes, so that it runs on demand. With
OSBENCH_SELF_RALLY=osbench osbench runs it, and its verdicts are compared with those taken once from
Rally 5.1.1: it has 39 rows of SLA and all of them pass. With OSBENCH_SELF_RALLY=both Rally runs the
task here as well, after osbench; then the rows of both are compared, and the seconds that each has
taken. Some of the rows limit durations of what is done by the processor alone: they fail on a busy
machine.
"""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import subprocess
import sys
import tarfile
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from helpers.commands import coord
from helpers.lab.rally_command import Rally, workloads
from servers import missing
from services.environments import cache

ASKED = os.environ.get("OSBENCH_SELF_RALLY", "")

pytestmark = [
    pytest.mark.lab,
    pytest.mark.timing,
    pytest.mark.timeout(1200),
    pytest.mark.skipif(
        ASKED not in ("osbench", "both"),
        reason="takes three minutes or six: ask with OSBENCH_SELF_RALLY=osbench or =both",
    ),
]

#: The release whose source distribution has task and plug-ins, and that gave the verdicts.
RELEASE = "5.1.1"
ROWS = 39

#: Position of the workload, criterion, verdict.
Row = tuple[int, str, bool]


@pytest.fixture(scope="module")
def jobs() -> Path:
    """The folder rally-jobs of Rally's source distribution, downloaded once."""
    folder = cache() / f"rally-{RELEASE}-jobs"
    folder.parent.mkdir(parents=True, exist_ok=True)
    with folder.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not folder.exists():
            fetch(folder)
    return folder


def fetch(folder: Path) -> None:
    """Download the distribution and keep the folder; skips the test where it cannot be had."""
    draft = folder.with_suffix(".draft")
    shutil.rmtree(draft, ignore_errors=True)
    done = subprocess.run(
        [
            *(sys.executable, "-m", "pip", "--disable-pip-version-check", "download", "--quiet"),
            # what builds it is here with Rally: nothing else is downloaded
            *("--no-deps", "--no-binary", "rally", "--no-build-isolation"),
            *("--dest", str(draft), f"rally=={RELEASE}"),
        ],
        capture_output=True,
        text=True,
        check=False,
    )
    found = list(draft.glob("rally-*.tar.gz"))
    if done.returncode or not found:
        said = " ".join(done.stderr.splitlines()[-2:])
        missing(f"the source distribution of Rally {RELEASE} cannot be had: {said}")
    with tarfile.open(found[0]) as archive:
        archive.extractall(draft, filter="data")
    (draft / f"rally-{RELEASE}" / "rally-jobs").rename(folder)
    shutil.rmtree(draft)


def on_osbench(home: Path, jobs: Path) -> tuple[list[Row], float]:
    """The rows, and the seconds from the command's start to its end."""
    begun = time.monotonic()
    task, plugins = str(jobs / "self-rally.yaml"), str(jobs / "plugins")
    ran = coord(home, "run", task, "--plugin-path", plugins, "--json", within_s=900)
    took_s = time.monotonic() - begun
    result = json.loads(ran.stdout)
    # 4: where a thousand names are made at once no virtual user is free in time
    assert ran.returncode in (0, 1, 4), result
    sums = [workload["accounting"] for workload in result["workloads"]]
    assert all(one["planned"] == one["ok"] + one["failed"] + one["timed_out"] for one in sums)
    rows = [
        (position, verdict["criterion"], verdict["success"])
        for position, workload in enumerate(result["workloads"])
        for verdict in workload["sla"]
    ]
    return rows, took_s


def on_rally(home: Path, jobs: Path) -> tuple[list[Row], float]:
    """The same of Rally itself."""
    rally = Rally(home)
    rally.run("db", "create")
    rally.run("env", "create", "--name", "none")
    plugins, task = str(jobs / "plugins"), str(jobs / "self-rally.yaml")
    begun = time.monotonic()
    rally.run("--plugin-paths", plugins, "task", "start", task, codes=(0, 2))
    took_s = time.monotonic() - begun
    rows = [
        (position, verdict["criterion"], verdict["success"])
        for position, workload in enumerate(workloads(rally.report("report.json")))
        for verdict in workload["sla_results"]["sla"]
    ]
    return rows, took_s


def test_the_task_of_rallys_own_job_gets_rallys_verdicts(
    jobs: Path, tmp_path: Path, record_property: Callable[[str, object], None]
) -> None:
    pytest.importorskip("rally", reason="the extra osbench[rally] is not installed")
    for name in ("osbench", "rally"):
        (tmp_path / name).mkdir()

    ours, took_s = on_osbench(tmp_path / "osbench", jobs)

    record_property("seconds", round(took_s, 1))
    assert len(ours) == ROWS
    if ASKED == "both":
        theirs, rally_took_s = on_rally(tmp_path / "rally", jobs)
        print(f"self-rally: osbench {took_s:.1f} s, Rally {rally_took_s:.1f} s")
        assert ours == theirs
        assert took_s < rally_took_s
    else:
        assert [row for row in ours if not row[2]] == []
