"""Options that do not go together: each command line with its exit code and message."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner

from helpers.result_rows import row
from helpers.stored_runs import stored_run
from osbench.coordinator.front.cli import main

SCENARIO = "--scenario Dummy.dummy"

#: Each is refused for what it combines, or leaves out: nothing is started or written.
REFUSED = (
    "run",
    f"run task.yaml {SCENARIO}",
    "run task.yaml --rps 5 --times 9",
    "run task.yaml --arg sleep=1",
    "run task.yaml --duration 5s --concurrency 2 --timeout 1m",
    f"run {SCENARIO} --task-args times=3",
    f"run {SCENARIO} --task-args-file args.yaml",
    "run task.yaml --once --repeat 3",
    "run task.yaml --once --detach",
    "run task.yaml --once -q",
    f"run {SCENARIO} --once --rps 5",
    f"run {SCENARIO} --once --duration 5",
    f"run {SCENARIO} --once --times 5 --concurrency 2",
    "run task.yaml --verbose",
    "run task.yaml --repeat 3 --detach",
    "run task.yaml --repeat 3 --web",
    "run task.yaml --repeat 3 --metrics 9100",
    "run task.yaml --repeat 3 --report page.html --export csv",
    "run task.yaml --detach --web",
    f"run {SCENARIO} --write - --otlp",
    f"run {SCENARIO} --write - --archive team",
    "runs pull team last --newest 2",
    "runs pull team last --task Naps --tag nightly",
    "run task.yaml --otlp=nowhere",
    f"run {SCENARIO} --write - --traces-from tempo+http://tempo:3200",
    "run task.yaml --traces-from http://tempo:3200",
    "run task.yaml --export-option json.indent=0",
    f"run {SCENARIO} --times 5 --duration 5",
    f"run {SCENARIO} --rps 5 --concurrency 2 --duration 5",
    f"run {SCENARIO} --rps 5",
    f"run {SCENARIO} --rps 5 --times 5 --duration 5",
    "run task.yaml --once --repeat 3 --json",
    "resume last --export-option json.indent=0",
    "rerun last --export-option json.indent=0",
    "plan",
    f"plan task.yaml {SCENARIO}",
    "plan task.yaml --rps 5",
    f"plan {SCENARIO} --task-args times=3",
    f"plan {SCENARIO} --rps 5 --concurrency 2 --duration 5",
    f"plan {SCENARIO} --rps 5",
    f"plan {SCENARIO} --times 5 --duration 5",
    "plan task.yaml --no-calibration",
    "plan task.yaml --no-calibration --cost 1ms",
    "plan task.yaml --no-calibration --cost 1ms --service-time 1ms --calibrate-s 9",
    "plan task.yaml --cost 1ms",
    "plan task.yaml --service-time 1ms",
    "init new.yaml --from-har shop.har --from-openapi shop.yaml",
    "init new.yaml --host shop",
    "init new.yaml --with-assets",
    "init new.yaml --from-openapi shop.yaml --host shop",
    "init new.yaml --from-har shop.har --from-access-log access.log",
    "init new.yaml --from-har shop.har --base http://127.0.0.1:8080",
    "init new.yaml --all-methods --log-field time=ts",
    "results --errors --outputs",
    "results --iteration 1 --outputs 2 --errors",
    "results --errors --csv",
    "results --iteration 1 --rally-json",
    "results --json --csv",
    "trends --by-load --fingerprint abc",
    "report",
    "report --option json.indent=0",
    "compare 20260401",
    "compare 20260401 20260402 20260403",
    "compare 20260401 --against",
    "runs prune",
    "cleanup",
    "cleanup last --orphans",
    "cleanup last --older 2h",
    "cleanup last --yes",
    "cleanup --orphans --plugin-path x.py",
    "cleanup --orphans",
    "cleanup --orphans --older soon",
    "control",
    "control --rate 5 --users 5",
    "control --pause --resume-load",
    "keys new --rotate --force",
    "deployment create --name lab",
    "deployment create --name lab --file lab.json --from-env",
    "trace rank last --mistral --json",
    "trace show last:17 --run 20260401",
    "trace show last:17 --perfetto x.json --json",
)


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a data directory that holds one run."""
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    (tmp_path / ".osbench").mkdir()
    stored_run(tmp_path / ".osbench", [row(1, ended=1)])
    (tmp_path / "task.yaml").write_text("Dummy.dummy: [{}]")
    return tmp_path


def test_options_that_do_not_go_together_are_refused(
    site: Path, golden: Callable[[str, str], None]
) -> None:
    def refusal(line: str) -> str:
        done = CliRunner().invoke(main, line.split(), prog_name="osbench-coord", terminal_width=80)
        return f"$ osbench-coord {line}\n{done.output}exit code {done.exit_code}\n"

    told = [refusal(line) for line in REFUSED]

    golden("refusals.txt", "\n".join(told))
    assert [one for one in told if not one.endswith("exit code 2\n")] == []
    assert sorted(path.name for path in site.iterdir()) == [".osbench", "task.yaml"]
