import csv
import io
import json

import pytest
from click.testing import CliRunner

from helpers.result_rows import row_of
from helpers.sample_reports import full_report
from helpers.summaries import to_json
from osbench.common.protocol.columns import encode_rows
from osbench.common.values.outcomes import Outcome
from osbench.coordinator.front.cli.commands.results import results
from osbench.coordinator.front.cli.group import Group
from osbench.coordinator.results.storage.run_directory import RunDirectory


@pytest.fixture
def invoke(tmp_path):
    """Call the command with a data directory of the test."""
    conf = tmp_path / "osbench.conf"
    conf.write_text(f"[DEFAULT]\ndata_dir = {tmp_path}\n")
    group = Group(commands=[results])

    def call(*args):
        return CliRunner().invoke(group, ["results", *args, "--config-file", str(conf)])

    return call


def make_run(data_dir, run_id, *, summary=None, blocks=()):
    directory = RunDirectory.create(str(data_dir), run_id)
    directory.keep(blocks)
    if summary is not None:
        directory.write("summary.json", summary)
    directory.close()


def block(rows, failures=(), worker="w1"):
    return {
        "workload": 0,
        "incarnation": worker,
        "columns": encode_rows(rows, (), 0) if rows else {},
        "failures": list(failures),
    }


def test_the_text_of_a_run_is_printed_again(invoke, tmp_path):
    make_run(tmp_path, "20260401-a", summary=to_json(full_report()))

    found = invoke("20260401-a")

    assert found.exit_code == 0
    assert found.stdout.startswith("Run 20260401-120000-ab12cd  Nightly: tokens\n")
    assert "Exit code 3" in found.stdout


def test_json_is_what_the_run_kept(invoke, tmp_path):
    summary = to_json(full_report())
    make_run(tmp_path, "20260401-a", summary=summary)
    make_run(tmp_path, "20260402-b", summary={**summary, "exit_code": 0})

    by_prefix, last = invoke("20260401", "--json"), invoke("last", "--json")

    assert json.loads(by_prefix.stdout) == summary
    assert json.loads(last.stdout)["exit_code"] == 0


def test_csv_holds_every_iteration_once_with_its_error(invoke, tmp_path):
    ok = row_of(1, Outcome.OK, 0, 10, 20, 0, 0, (), None)
    failed = row_of(2, Outcome.FAILED, 0, 10, 20, 0, 1, (), None)
    blocks = [
        block([ok], [[1, "Boom", "no route", "tb"]]),
        block([], worker="w2"),
        block([ok, failed]),
    ]
    make_run(tmp_path, "20260401-a", blocks=blocks)

    found = invoke("last", "--csv")

    lines = list(csv.DictReader(io.StringIO(found.stdout)))
    assert [line["iteration"] for line in lines] == ["1", "2"]
    assert [line["error"] for line in lines] == ["", "Boom: no route"]


def test_an_unknown_run_is_reported(invoke, tmp_path):
    text, document = invoke("nightly"), invoke("nightly", "--json")

    assert text.exit_code == document.exit_code == 2
    assert "there is no run in" in text.stderr
    assert "there is no run in" in json.loads(document.stdout)["error"]["message"]


@pytest.mark.parametrize(
    ("summary", "message"),
    [
        (None, "ended without a report: its coordinator was killed"),
        ({"format": 99}, "has format 99"),
    ],
)
def test_a_summary_that_cannot_be_read_is_reported(invoke, tmp_path, summary, message):
    make_run(tmp_path, "20260401-a", summary=summary)

    found = invoke("last")

    assert found.exit_code == 2
    assert message in found.stderr
    assert "Traceback" not in found.stderr


def test_a_damaged_summary_is_reported(invoke, tmp_path):
    make_run(tmp_path, "20260401-a")
    (tmp_path / "runs" / "20260401-a" / "summary.json").write_text("{")

    found = invoke("last", "--json")

    assert found.exit_code == 3
    assert "is damaged" in json.loads(found.stdout)["error"]["message"]


def test_errors_of_virtual_users_are_among_the_errors(invoke, tmp_path):
    summary = to_json(full_report())
    life = {"what": "on_start", "type": "LoginError", "message": "401", "count": 2}
    for workload in summary["workloads"]:
        workload["errors"], workload["other_errors"] = [], 0
    summary["workloads"][1]["users"] = {"errors": [life]}
    make_run(tmp_path, "20260401-a", summary=summary)

    found = invoke("last", "--errors").stdout

    assert "2 x on_start of virtual users: LoginError: 401" in found
    assert found.count("no errors") == 1
