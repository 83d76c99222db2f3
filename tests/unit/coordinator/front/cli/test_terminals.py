"""Commands as terminals of 80 and 120 columns and as pipes show them: a golden file each."""

import io
import json
import re
import sys

import pytest

from helpers.cli_commands import command
from helpers.made_runs import made_run
from helpers.sample_reports import full_report
from helpers.summaries import to_json
from helpers.synthetic_traces import Fault, slow_query, traces
from osbench.coordinator.front.cli.commands import runs
from osbench.coordinator.front.cli.group import Group
from osbench.coordinator.results.storage.run_directory import RunDirectory
from osbench.edges.traces.model.spans import uuid_form
from osbench.edges.traces.sources.otlp import to_otlp

#: By name of the golden file: the command's words.
SHOWN = {
    "runs-list": "runs list",
    "runs-show": "runs show 20260401",
    "status": "status 20260403",
    "sla": "sla 20260403",
    "errors": "results 20260403 --errors",
    "compare": "compare 20260401 20260402",
    "trends": "trends",
    "trace-show": "trace show TRACE --from spans.json",
    "trace-explain": "trace explain spans.json",
    "trace-rank": "trace rank spans.json",
    "plugins": "plugin list sla",
    "deployments": "deployment list",
}
ESCAPE = re.compile(r"\x1b\[[0-9;]*m")


class Tty(io.StringIO):
    """Standard output that is a terminal."""

    def isatty(self):
        return True


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    """A directory with three runs, a failed one last, and a file of traces."""
    home = tmp_path_factory.mktemp("home")
    data = home / "data"
    data.mkdir()
    made_run(data, 2_000, run="20260401-101500-abcd")
    made_run(data, 2_000, run="20260402-101500-abcd", seed=2)
    failed = RunDirectory.create(str(data), "20260403-120000-ab12cd")
    failed.write("summary.json", to_json(full_report()))
    failed.close()
    (home / "osbench.conf").write_text(f"[DEFAULT]\ndata_dir = {data}\n")
    found = list(traces(1_000, Fault(share=0.05, harm=slow_query)))
    (home / "spans.json").write_text(json.dumps(to_otlp(found)))
    (home / "trace").write_text(uuid_form(found[0].trace_id))
    return home


@pytest.fixture
def call(home, monkeypatch):
    """Run a command with standard output of a kind, and return what it printed."""
    monkeypatch.chdir(home)
    for name in ("COLUMNS", "NO_COLOR", "FORCE_COLOR", "COLORTERM"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("TERM", "xterm-256color")
    # what a summary holds changes
    monkeypatch.setattr(runs, "size", lambda _: "12.3 kB")

    def call(words, out, columns=None, **environment):
        for name, value in environment.items():
            monkeypatch.setenv(name, value)
        if columns:
            monkeypatch.setenv("COLUMNS", str(columns))
        monkeypatch.setattr(sys, "stdout", out)
        trace = (home / "trace").read_text()
        first, *rest = [trace if word == "TRACE" else word for word in words.split()]
        group = Group(commands=[command(first)])
        with pytest.raises(SystemExit):
            group.main([first, *rest, "--config-file", "osbench.conf"])
        return out.getvalue().replace(str(home), "HOME")

    return call


@pytest.mark.parametrize("name", SHOWN)
@pytest.mark.parametrize("width", [80, 120])
def test_a_command_looks_like_its_golden_file_on_a_terminal(call, golden, name, width):
    text = call(SHOWN[name], Tty(), width)

    shown = "".join(f"{line.rstrip()}\n" for line in ESCAPE.sub("", text).splitlines())
    assert max(map(len, shown.splitlines())) <= width or name in ("errors", "sla", "status")
    golden(f"terminals/{name}-{width}.txt", shown)


@pytest.mark.parametrize("name", SHOWN)
def test_a_command_looks_like_its_golden_file_in_a_pipe(call, golden, name):
    text = call(SHOWN[name], io.StringIO())

    assert "\x1b" not in text
    assert not [line for line in text.splitlines() if line != line.rstrip()]
    golden(f"terminals/{name}-piped.txt", text)


@pytest.mark.parametrize("name", SHOWN)
def test_without_colours_a_terminal_shows_the_same_words(call, name):
    coloured = call(SHOWN[name], Tty(), 80)
    plain = call(SHOWN[name], Tty(), 80, NO_COLOR="1")

    assert ESCAPE.sub("", plain) == ESCAPE.sub("", coloured)
    # bold, dim, italic and the end of them remain: they are no colours
    assert not re.search(r"\x1b\[[0-9;]*(3[0-7]|4[0-7]|9[0-7]|38|48)[;m]", plain)
