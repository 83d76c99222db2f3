"""The command `report`, and what `run` exports."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from importlib.metadata import EntryPoint
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from click.testing import CliRunner, Result

from helpers.export_servers import collector, search_server
from helpers.readme import REPOSITORY
from helpers.result_rows import row
from helpers.stored_runs import RUN, stored_run
from osbench.common.config import config
from osbench.common.errors import (
    ExportError,
    FleetError,
    PluginError,
    Problem,
    TaskError,
    UsageError,
)
from osbench.common.plugin import entry_points
from osbench.common.plugin.exporter import ExportedRun, LiveExporter, RunSnapshot
from osbench.common.plugin.plugins import Plugins
from osbench.coordinator.front.cli.base import CommandSettings
from osbench.coordinator.front.cli.commands.report import report
from osbench.coordinator.front.cli.group import Group
from osbench.coordinator.front.cli.options.export_options import ExportOptions, RunExportOptions
from osbench.coordinator.front.cli.run_exports import RunExports, exports_of
from osbench.coordinator.report.exporting import Export
from osbench.coordinator.report.stored_run import StoredRun
from osbench.coordinator.results.storage import failure
from osbench.coordinator.results.storage.run_directory import RunDirectory
from osbench.coordinator.results.storage.run_documents import read_timeline, write_timeline

SAMPLE = REPOSITORY / "samples" / "plugins" / "exporter.py"

FAILS = """
from osbench.plugin import exporter

class Fails(exporter.Exporter):
    NAME = "fails"
    FILE = "fails.txt"

    def export(self, run, path):
        path.write_text("half of it")
        raise RuntimeError("no route to http://u:hunter2@archive")

class Full(exporter.Exporter):
    NAME = "full"
    FILE = "full.txt"

    def export(self, run, path):
        raise OSError(28, "No space left on device")

class Folder(exporter.Exporter):
    NAME = "folder"

    def export(self, run, path):
        (path / "a.txt").write_text("a")
        (path / "b.txt").write_text("b")
"""

Invoke = Callable[..., Result]


@pytest.fixture
def invoke(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Invoke:
    """Call the command in a folder, with a data directory that holds one run."""
    conf = tmp_path / "osbench.conf"
    conf.write_text(f"[DEFAULT]\ndata_dir = {tmp_path / 'data'}\n")
    stored_run(tmp_path / "data", [row(at, ended=at) for at in range(1, 31)])
    (tmp_path / "plugin.py").write_text(FAILS)
    (tmp_path / "desk").mkdir()
    monkeypatch.chdir(tmp_path / "desk")
    group = Group(commands=[report])

    def call(*args: str) -> Result:
        return CliRunner().invoke(group, ["report", *args, "--config-file", str(conf)])

    return call


def broken_off(tmp_path: Path) -> RunDirectory:
    """A later run, which has ended without results."""
    directory = RunDirectory.create(str(tmp_path / "data"), "20260402-000000-ffff")
    directory.write(
        "run.json",
        {
            "run_id": "20260402-000000-ffff",
            "task": "Weekly",
            "description": "",
            "tags": [],
            "workloads": [],
        },
    )
    return directory


def test_several_formats_are_written_at_once(invoke: Invoke) -> None:
    found = invoke(
        *("--json", "deep/r.json", "--csv", "r.csv", "--junit", "r.xml"),
        *("--export", "hdr", "--export", "csv-times=tables", "--export", "json=tables/x.json"),
        *("--to", "out", "--option", "json.indent=0", "--option", "hdr.time=response"),
    )

    assert (found.exit_code, found.stdout) == (0, "")
    written = {str(path) for path in Path().rglob("*") if path.is_file()}
    assert written == {
        *("deep/r.json", "r.csv", "r.xml"),
        *("out/latency.hlog", "tables/times.csv", "tables/x.json"),
    }
    assert found.stderr.splitlines() == [
        *("wrote r.xml", "wrote r.csv", "wrote deep/r.json", "wrote out/latency.hlog"),
        *("wrote tables/times.csv", "wrote tables/x.json"),
    ]
    assert len(Path("deep/r.json").read_text().splitlines()) == 1


def test_two_calls_write_the_same(invoke: Invoke) -> None:
    for name in ("a", "b"):
        wanted = [f"--export={one}={name}" for one in ("csv", "hdr", "otlp", "json", "junit")]
        assert invoke(*wanted).exit_code == 0

    files = sorted(path.name for path in Path("a").iterdir())
    assert len(files) == 5
    for name in files:
        assert Path("a", name).read_bytes() == Path("b", name).read_bytes()


def test_the_sample_exporter(invoke: Invoke) -> None:
    found = invoke("--export", "slowest", "--option", "most=3", "--plugin-path", str(SAMPLE))

    assert found.exit_code == 0, found.output
    head, *lines = Path("slowest.txt").read_text("utf-8").splitlines()
    assert head == f"run {RUN}"
    assert [line.split()[4] for line in lines] == ["30", "29", "28"]
    assert lines[0].startswith("0.030000 s  ok  Dummy.dummy 30")


def test_an_exporter_may_write_several_files(invoke: Invoke, tmp_path: Path) -> None:
    plugin = str(tmp_path / "plugin.py")

    found = invoke("--export", "folder=new/place", "--plugin-path", plugin)

    assert found.exit_code == 0, found.output
    assert sorted(path.name for path in Path("new/place").iterdir()) == ["a.txt", "b.txt"]


def test_results_are_sent_to_servers(invoke: Invoke) -> None:
    with search_server() as search, collector() as otlp:
        found = invoke("--export", f"opensearch={search.url}", "--export", f"otlp={otlp.url}")

        assert found.exit_code == 0, found.output
        assert f"sent 31 documents to {search.url}" in found.stderr
        assert len(search.found("osbench-iterations")) == 30
        assert len(otlp.metrics) == 1


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((), "nothing is requested"),
        (("--option", "a=1"), "nothing is requested: give --html FILE"),
        (("--export", "jsn"), "there is no exporter 'jsn'"),
        (("--export", "json="), "after ="),
        (("--json", "x", "--option", "indent"), "must be NAME=VALUE"),
        (("--json", "x", "--option", "indent=a"), "indent"),
        (("--csv", "x", "--option", "indent=1"), "indent"),
        (("--json", "x", "--option", "indent=["), "is not YAML"),
        (("--json", "x", "--csv", "y", "--option", "indent=1"), "csv.indent=VALUE"),
        (("--export", "json", "--to", "/dev/null/x"), "cannot write to /dev/null/x"),
        (("--json", "."), "is a directory"),
        (
            ("--export", "json=http://u:hunter2@x"),
            "writes files; give it a path instead of the URL http://***@x",
        ),
        (("--export", "opensearch"), "give its address as opensearch=URL"),
        (("--export", "opensearch=folder"), "give its address as opensearch=URL"),
    ],
)
def test_wrong_usage_is_told_before_anything_is_written(
    invoke: Invoke, arguments: tuple[str, ...], message: str
) -> None:
    found = invoke(*arguments)

    assert found.exit_code == 2
    assert message in found.stderr
    assert found.stdout == ""
    assert not list(Path().iterdir())


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("fails", "RuntimeError: no route to http://***@archive"),
        ("full", "cannot write full.txt: No space left on device"),
    ],
)
def test_an_exporter_that_fails_leaves_no_half_of_a_file(
    invoke: Invoke, tmp_path: Path, name: str, message: str
) -> None:
    Path(f"{name}.txt").write_text("of yesterday")

    plugin = str(tmp_path / "plugin.py")
    found = invoke("--export", name, "--json", "r.json", "--plugin-path", plugin)

    assert found.exit_code == 2
    assert message in found.stderr
    assert Path(f"{name}.txt").read_text() == "of yesterday"
    # the others are written all the same
    assert sorted(path.name for path in Path().iterdir()) == [f"{name}.txt", "r.json"]


def test_a_run_without_results_is_a_failed_test(invoke: Invoke, tmp_path: Path) -> None:
    directory = broken_off(tmp_path)
    failure.keep(directory, FleetError("no worker is free"))
    directory.close()

    found = invoke("--junit", "r.xml", "--json", "r.json")

    assert found.exit_code == 0, found.output
    suite = ElementTree.parse("r.xml").getroot()
    error = suite.find("testcase[@name='Weekly']/error")
    assert error is not None
    assert (suite.get("name"), suite.get("errors"), suite.get("tests")) == ("Weekly", "1", "1")
    assert (error.get("type"), error.text) == ("exit code 2", "no worker is free")
    assert json.loads(Path("r.json").read_text())["error"]["message"] == "no worker is free"


def test_a_killed_run_has_an_exit_code_too(invoke: Invoke, tmp_path: Path) -> None:
    broken_off(tmp_path).close()

    found = invoke("--junit", "r.xml", "--csv", "r.csv")

    assert found.exit_code == 2
    assert "ended without results: its coordinator was killed" in found.stderr
    assert "csv needs results" in found.stderr
    error = ElementTree.parse("r.xml").getroot().find("testcase/error")
    assert error is not None
    assert error.get("type") == "exit code 3"


def test_a_run_that_goes_on_has_no_results_yet(invoke: Invoke, tmp_path: Path) -> None:
    directory = broken_off(tmp_path)

    found = invoke("--junit", "r.xml", "--html", "r.html")

    assert found.exit_code == 2
    assert "is still running" in found.stderr
    assert not Path("r.xml").exists()
    assert "Weekly" in Path("r.html").read_text("utf-8")
    directory.close()


@pytest.mark.parametrize("option", ["--junit=r.xml", "--export=junit=r.xml"])
def test_an_exporter_of_a_missing_edge_is_named(
    invoke: Invoke, monkeypatch: pytest.MonkeyPatch, option: str
) -> None:
    read = entry_points.installed_points

    def without_edges(kinds: Iterable[str]) -> dict[str, list[EntryPoint]]:
        return {
            kind: [point for point in points if not point.module.startswith("osbench.edges.")]
            for kind, points in read(kinds).items()
        }

    monkeypatch.setattr(entry_points, "installed_points", without_edges)

    found = invoke(option, "--json", "r.json")

    assert found.exit_code == PluginError("").exit_code
    assert found.stderr == (
        "Error: no installed package has the entry point 'junit' of the group osbench.exporter: "
        "install osbench again\n"
    )
    assert not Path("r.json").exists()


# what `run` exports


class Watching(LiveExporter):
    """Notes what it gets; fails at first."""

    NAME = "watching"
    FILE = "watching.txt"
    INTERVAL_S = 0.01

    def __init__(self) -> None:
        super().__init__({})
        self.seen: list[tuple[RunSnapshot, str]] = []
        self.twice = threading.Event()

    def push(self, snapshot: RunSnapshot, target: str) -> None:
        self.seen.append((snapshot, target))
        if len(self.seen) == 1:
            raise RuntimeError("not yet: http://u:hunter2@x")
        self.twice.set()

    def export(self, run: ExportedRun, path: Path) -> None:
        raise RuntimeError("never")


@pytest.fixture
def stored(tmp_path: Path) -> Iterator[StoredRun]:
    yield stored_run(tmp_path / "data", [row(1, ended=5)])


@pytest.mark.skipif(not Path("/proc/version").exists(), reason="no /proc of Linux")
def test_a_folder_that_takes_no_file_is_refused_before_a_run() -> None:
    # root may write everywhere, says its mode
    page = Export(Plugins().get("exporter", "json")({}), "/proc/x.json", exact=True)

    with pytest.raises(UsageError, match=r"^cannot write (to )?/proc"):
        page.check()


def test_a_target_that_is_lost_under_load_is_a_failed_export(
    stored: StoredRun, tmp_path: Path
) -> None:
    folder = tmp_path / "reports"
    page = Export(Plugins().get("exporter", "json")({}), str(folder / "r.json"), exact=True)
    page.check()

    (folder / "r.json").mkdir(parents=True)
    with pytest.raises(ExportError, match=r"^cannot write .*r\.json: Is a directory; "):
        page.write(stored)
    assert [path.name for path in folder.iterdir()] == ["r.json"]

    (folder / "r.json").rmdir()
    folder.rmdir()
    folder.touch()
    with pytest.raises(ExportError, match=r"^cannot write to .*reports: File exists; "):
        page.write(stored)


def test_an_export_that_failed_is_in_the_notes_and_the_exit_code(
    stored: StoredRun, tmp_path: Path
) -> None:
    exports = RunExports([Export(Watching(), str(tmp_path))], stored.directory, lambda _: None)
    well = replace(stored.report, exit_code=0, notes=("before",))

    report = exports.write(well)
    failed = exports.write(replace(well, exit_code=1))

    assert (report.exit_code, failed.exit_code) == (5, 1)
    before, said = report.notes
    assert before == "before"
    assert said.startswith("export watching failed: the exporter watching raises RuntimeError")
    assert stored.directory.read("summary.json") == json.loads(json.dumps(failed.to_json()))


def test_a_failing_export_is_a_warning(
    stored: StoredRun, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    said: list[str] = []
    json_too = Export(Plugins().get("exporter", "json")({}), str(tmp_path / "r.json"), exact=True)
    exports = RunExports(
        [Export(Watching(), str(tmp_path)), json_too], stored.directory, said.append
    )

    exports.write(stored.report)

    assert said == [f"wrote {tmp_path / 'r.json'}"]
    assert (
        "Warning: export watching failed: the exporter watching raises" in capsys.readouterr().err
    )


def test_ctrl_c_gives_an_export_up_and_keeps_the_report(
    stored: StoredRun,
) -> None:
    class Waiting(Watching):
        def send(self, run: Any, url: str) -> str:
            raise KeyboardInterrupt

    said: list[str] = []
    export = Export(Waiting(), "http://u:planted@nobody.test")

    report = RunExports([export], stored.directory, said.append).write(stored.report)

    assert said == ["sending results to http://***@nobody.test; Ctrl-C gives that up"]
    assert "export watching failed: given up by Ctrl-C; the run is kept" in report.notes[-1]


def test_snapshots_are_pushed_under_load(
    stored: StoredRun, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    watching = Watching()
    exports = RunExports([Export(watching, str(tmp_path))], stored.directory, lambda _: None)
    timeline = read_timeline(stored.directory)
    assert timeline is not None

    with exports.around():
        while not watching.twice.is_set():
            timeline["at"] += 1
            write_timeline(stored.directory, timeline, sync=False)

    snapshot, target = watching.seen[1]
    assert target == str(tmp_path)
    assert snapshot.summary["run_id"] == RUN
    assert snapshot.durations()[0]["service"].count == 1
    warned = capsys.readouterr().err
    assert warned.count("Warning") == 1
    assert "RuntimeError: not yet: http://***@x" in warned


def test_a_run_that_cannot_start_is_reported(tmp_path: Path) -> None:
    said: list[str] = []
    chosen: Any = ExportOptions(
        files={}, exports=(f"junit={tmp_path / 'r.xml'}", f"csv={tmp_path}")
    ).chosen(config.load([]), ())
    exports = RunExports(chosen, RunDirectory.of(str(tmp_path), "none"), said.append)

    with pytest.raises(TaskError), exports.around():
        raise TaskError("t.yaml", [Problem("subtasks[0]", "is missing")])

    assert said == [f"wrote {tmp_path / 'r.xml'}"]
    error = ElementTree.parse(tmp_path / "r.xml").getroot().find("testcase/error")
    assert error is not None
    assert error.text == "t.yaml: 1 problem\nsubtasks[0]: is missing"
    assert not list(tmp_path.glob("*.csv"))


def test_a_configured_plug_in_path_that_cannot_be_used_is_reported(tmp_path: Path) -> None:
    conf = tmp_path / "osbench.conf"
    conf.write_text(f"[coordinator]\nplugin_path = {tmp_path / 'absent.py'}\n")
    options = RunExportOptions(exports=(f"junit={tmp_path / 'r.xml'}",))
    directory = RunDirectory.of(str(tmp_path), "none")

    with pytest.raises(PluginError, match=r"absent\.py"):
        exports_of(options, CommandSettings((str(conf),)), (), directory, lambda _: None)

    error = ElementTree.parse(tmp_path / "r.xml").getroot().find("testcase/error")
    assert error is not None
    assert "absent.py" in str(error.text)


def test_an_accident_in_a_run_is_reported(tmp_path: Path) -> None:
    chosen = ExportOptions(files={}, exports=(f"junit={tmp_path / 'r.xml'}",)).own()
    exports = RunExports(chosen, RunDirectory.of(str(tmp_path), "none"), lambda _: None)

    with pytest.raises(ZeroDivisionError), exports.around():
        raise ZeroDivisionError("at http://u:planted@h")

    error = ElementTree.parse(tmp_path / "r.xml").getroot().find("testcase/error")
    assert error is not None
    assert error.get("type") == "exit code 1"
    assert error.text == "internal error: ZeroDivisionError: at http://***@h"


@pytest.mark.parametrize(
    ("name", "file"),
    [
        ("html", "r.json"),
        ("html", "r.XML"),
        ("html", "r.pdf"),
        ("json", "r.html"),
        ("junit", "r.json"),
        ("csv", "r.parquet"),
    ],
)
def test_a_file_named_as_one_of_another_format_is_refused_before_a_run(
    tmp_path: Path, name: str, file: str
) -> None:
    target = str(tmp_path / file)

    with pytest.raises(UsageError, match=f"the exporter {name} writes .* give a name that ends in"):
        ExportOptions(files={name: target}).own()


@pytest.mark.parametrize(
    ("name", "file"),
    [
        ("html", "r.htm"),
        ("html", "r.HTML"),
        ("html", "page"),
        ("html", "r.new"),
        ("html", "run.2026-01-01"),
        ("rally", "r.json"),
        ("csv", "r.txt"),
    ],
)
def test_other_names_of_files_are_taken(tmp_path: Path, name: str, file: str) -> None:
    (export,) = ExportOptions(files={name: str(tmp_path / file)}).own()

    assert export.name == name
