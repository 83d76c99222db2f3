"""Exporters of Rally and of its plug-ins get a run as Rally's own results."""

import json
from pathlib import Path

import pytest

from helpers.result_rows import row_of
from helpers.sample_reports import restart_hook
from helpers.stored_runs import stored_run
from osbench.common.errors import ExportError
from osbench.common.plugin.plugins import Plugins
from osbench.coordinator.report.exporting import Export, exporter_of
from osbench.coordinator.report.stored_run import StoredRun
from osbench.edges.rally import importing

PLUGIN = '''
import json
from rally.task import exporter


@exporter.configure("adapters_list")
class List(exporter.TaskExporter):
    """Lists scenarios."""

    def generate(self):
        (task,) = self.tasks_results
        one = task["subtasks"][0]["workloads"][0]
        hooks = [hook["config"]["action"] for hook in one["hooks"]]
        found = json.dumps([one["name"], one["runner_type"], len(one["data"]), hooks])
        if "://" in self.output_destination:
            return {"print": f"sent {found}"}
        return {"files": {self.output_destination: found}}
'''
ROW = row_of(1, 1, 0, 0, 1_000_000, 0, 0, (), None)


@pytest.fixture
def plugins(tmp_path: Path) -> Plugins:
    if not importing.is_installed():
        pytest.skip("the extra osbench[rally] is not installed")
    (tmp_path / "exporters.py").write_text(PLUGIN)
    return Plugins([str(tmp_path / "exporters.py")])


@pytest.fixture
def run(tmp_path: Path) -> StoredRun:
    found = stored_run(tmp_path, [ROW], hooks=(restart_hook(),))
    given = {"args": {"sleep": 1}, "sla": {}}
    found.directory.write("run.json", {"run_id": "r", "task": "t", "workloads": [given]})
    return found


def export(plugins: Plugins, name: str, target: str, run: StoredRun) -> str:
    made = Export(exporter_of(plugins, name), target)
    made.check()
    return made.write(run)


def test_a_plug_in_of_rally_writes_the_file_that_it_is_told(
    plugins: Plugins, run: StoredRun, tmp_path: Path
) -> None:
    path = tmp_path / "list.txt"

    said = export(plugins, "adapters_list", str(path), run)

    name, runner, rows, hooks = json.loads(path.read_text())
    workload = run.summary["workloads"][0]
    assert said == f"wrote {path}"
    assert (name, runner, rows) == (workload["name"], workload["runner"]["type"], 1)
    # as in Rally's database: the name apart from the configuration
    assert hooks == [list(next(iter(workload["hooks"][0]["action"].items())))]


def test_a_plug_in_of_rally_sends_to_a_url(plugins: Plugins, run: StoredRun) -> None:
    assert export(plugins, "adapters_list@default", "http://h/x", run).startswith('sent ["')


# Rally calls it; Python 3.12 warns of it
@pytest.mark.filterwarnings("ignore:datetime.datetime.utcnow:DeprecationWarning")
def test_rallys_own_exporters_are_there(plugins: Plugins, run: StoredRun, tmp_path: Path) -> None:
    path = tmp_path / "results.json"

    export(plugins, "json@default", str(path), run)

    (task,) = json.loads(path.read_text())["tasks"]
    (workload,) = task["subtasks"][0]["workloads"]
    assert isinstance(workload["hooks"][0]["config"]["action"], dict)
    assert len(workload["data"]) == 1


def test_what_rally_refuses_is_one_message(plugins: Plugins, run: StoredRun) -> None:
    with pytest.raises(ExportError, match=r"^the exporter elastic"):
        export(plugins, "elastic", "gopher://h:1/x", run)
