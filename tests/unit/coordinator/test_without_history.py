"""Without the edge that compares and archives runs, the core works, and names what is missing."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import httpx
import pytest
from click.testing import CliRunner

from helpers.kept_runs import kept_run
from helpers.web import TOKENS, serving
from osbench.common.errors import PluginError
from osbench.common.plugin import entry_points
from osbench.coordinator.front.cli import main, repeated_runs

RUNS = ["20260401-101500-abcd", "20260402-101500-abcd"]
#: Groups and names of entry points of the edge.
GROUPS = {"comparison", "run_store", "runs_command"}
COMMANDS = {"compare", "duel", "gate", "plan", "trends"}


@pytest.fixture(autouse=True)
def _bare(monkeypatch: pytest.MonkeyPatch) -> None:
    """As if the package with these entry points were not installed."""
    read = entry_points.installed_points

    def installed(kinds: Any) -> Any:
        found = read(kinds)
        return {
            kind: [
                one
                for one in points
                if kind not in GROUPS and not (kind == "command" and one.name in COMMANDS)
            ]
            for kind, points in found.items()
        }

    monkeypatch.setattr(entry_points, "installed_points", installed)


@pytest.fixture
def here(tmp_path: Path) -> Path:
    """A data directory with two runs of a task."""
    data = tmp_path / "here"
    for seed, name in enumerate(RUNS, 1):
        kept_run(data, run=name, seed=seed, count=500)
    return data


@pytest.mark.parametrize(
    ("args", "missing"),
    [
        (("runs", "list", "--archive", "team"), "'archive' of the group osbench.run_store"),
        (("web", "--archive", "team"), "'archive' of the group osbench.run_store"),
        (
            ("run", "--scenario", "Dummy.dummy", "--archive", "team"),
            "'archive' of the group osbench.run_store",
        ),
    ],
)
def test_a_missing_archive_is_one_message(
    here: Path, tmp_path: Path, args: tuple[str, ...], missing: str
) -> None:
    conf = tmp_path / "osbench.conf"
    conf.write_text(f"[DEFAULT]\ndata_dir = {here}\n")

    done = CliRunner().invoke(main, ["--config-file", str(conf), *args])

    assert done.exit_code == PluginError("").exit_code, done.output
    assert done.stderr == (
        f"Error: no installed package has the entry point {missing}: install osbench again\n"
    )
    assert done.stdout == ""


@pytest.mark.parametrize(
    "args",
    [
        ("compare", "last", "last"),
        ("trends",),
        ("duel", "a.yaml", "b.yaml"),
        ("gate", "a.yaml"),
        ("plan", "a.yaml"),
        ("runs", "push", "team"),
        ("runs", "pull", "team"),
    ],
)
def test_a_missing_command_is_unknown(args: tuple[str, ...]) -> None:
    done = CliRunner().invoke(main, args)

    name = args[1] if args[0] == "runs" else args[0]
    assert done.exit_code == 2
    assert f"No such command '{name}'." in done.stderr


def test_other_commands_of_runs_do_without_it(here: Path, tmp_path: Path) -> None:
    conf = tmp_path / "osbench.conf"
    conf.write_text(f"[DEFAULT]\ndata_dir = {here}\n")

    listed = CliRunner().invoke(main, ["--config-file", str(conf), "runs", "list"])
    shown = CliRunner().invoke(main, ["runs", "--help"])

    assert listed.exit_code == shown.exit_code == 0
    assert all(name in listed.stdout for name in RUNS)
    assert "prune" in shown.stdout
    assert "push" not in shown.stdout


def test_repeated_runs_are_refused_before_the_first(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(repeated_runs, "run_tagged", lambda *_: pytest.fail("a run began"))
    unused = cast("Any", SimpleNamespace())

    with pytest.raises(PluginError, match=r"'spread' of the group osbench\.comparison"):
        repeated_runs.run_repeatedly(unused, unused, unused, times=2, as_json=False)


def test_a_browser_sees_runs_and_why_they_are_not_compared(here: Path) -> None:
    headers = {"Authorization": f"Bearer {TOKENS.token}"}
    with (
        serving(here) as server,
        httpx.Client(base_url=server.url, timeout=60, headers=headers) as client,
    ):
        listed = client.get("/")
        report = client.get(f"/runs/{RUNS[1]}")
        trend = client.get(f"/runs/{RUNS[1]}/trends")
        compared = client.get("/compare", params={"run": RUNS})

    assert listed.status_code == report.status_code == 200
    assert trend.status_code == compared.status_code == 409
    for refused in (trend, compared):
        assert "no installed package has the entry point" in refused.text
