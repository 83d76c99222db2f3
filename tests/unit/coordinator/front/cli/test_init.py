"""What the command line says of plug-ins and options, and the sample task it writes."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import click
import jsonschema
import pytest
import yaml
from click.testing import CliRunner, Result

from osbench.common.plugin import signature
from osbench.common.plugin.plugins import Plugins
from osbench.coordinator.front.cli import main
from osbench.coordinator.front.cli.commands.plugin import example, scenario_text
from osbench.coordinator.task.taskfile.template import render


def coord(*arguments: str) -> Result:
    return CliRunner().invoke(main, arguments, env={"COLUMNS": "200"})


@pytest.fixture(autouse=True)
def at_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)


def test_the_sample_task_is_valid_and_not_overwritten(tmp_path: Path) -> None:
    written = coord("init", "first.yaml")
    checked = coord("validate", "first.yaml")
    again = coord("init", "first.yaml")

    assert written.exit_code == 0
    assert checked.exit_code == 0, checked.output
    assert "2 workloads" in checked.output
    assert again.exit_code == 2
    assert "exists" in again.output


@pytest.mark.parametrize(
    "url", ["http://shop", "https://shop:8443/items?n=1", "http://[::1]:80/{{ a }}/{b}?c={%25%7d}"]
)
def test_the_task_of_an_address_is_valid_and_has_it(tmp_path: Path, url: str) -> None:
    coord("init", "first.yaml", "--url", url)
    checked = coord("validate", "first.yaml")
    parts = urlsplit(url)

    text, problems = render((tmp_path / "first.yaml").read_text("utf-8"), ".", {})
    assert not problems
    for subtask in yaml.safe_load(text)["subtasks"]:
        flow = subtask["scenario"]["HttpFlow.run"]
        path = flow["steps"][0]["path"].replace("{brace}", "{")
        assert flow["base"] + path.removesuffix("" if parts.path else "/") == url
    assert checked.exit_code == 0, checked.output
    assert "OK, 2 subtasks, 2 workloads" in checked.output
    assert "note:" not in checked.output


@pytest.mark.parametrize("url", ["shop", "ftp://shop/", "http://", "http://a'b/", "http://a:b/"])
def test_an_address_that_is_none_is_refused_and_nothing_written(tmp_path: Path, url: str) -> None:
    refused = coord("init", "first.yaml", "--url", url)

    assert refused.exit_code == 2
    assert refused.output.startswith("Error: --url: write http:// or https:// and a host")
    assert not (tmp_path / "first.yaml").exists()


@pytest.mark.parametrize("kind", ["runner", "sla"])
def test_examples_fit_their_schemas(kind: str) -> None:
    plugins = Plugins()

    for name in plugins.names(kind):
        schema = plugins.get(kind, name).CONFIG_SCHEMA
        jsonschema.validate(example(schema), schema)


def test_plug_ins_of_rally_in_a_path_are_listed_and_its_files_that_cannot_be_used_are_told(
    tmp_path, caplog
):
    pytest.importorskip("rally")
    (tmp_path / "old.py").write_text("from rally.benchmark.scenarios import base\n", "utf-8")
    (tmp_path / "good.py").write_text(
        'from rally.task import scenario\n\n\n@scenario.configure(name="Good.work")\n'
        'class Work(scenario.Scenario):\n    """It works."""\n\n    def run(self):\n        pass\n',
        "utf-8",
    )

    listed = coord("plugin", "list", "scenario", "--plugin-path", str(tmp_path))

    rows = [line.split()[:3] for line in listed.stdout.splitlines()]
    assert [row for row in rows if row[2] == "rally"] == [["scenario", "Good.work", "rally"]]
    (told,) = caplog.messages
    assert "old.py:1: rally.benchmark.scenarios.base was removed in rally 0.1.0" in told


def test_every_plugin_is_listed_with_a_sentence() -> None:
    listed = coord("plugin", "list")

    rows = [line.split(None, 2) for line in listed.output.splitlines()[1:]]
    assert {"scenario", "runner", "sla"} <= {row[0] for row in rows}
    assert [row[1] for row in rows if row[1] == "Dummy.dummy"] == ["Dummy.dummy"]
    assert all(len(row) == 3 for row in rows)


def test_a_runner_is_shown_with_schema_and_example() -> None:
    shown = coord("plugin", "show", "runner", "rps")

    sample = yaml.safe_load(shown.output.partition("example:")[2])
    assert '"max_concurrency"' in shown.output
    assert set(sample["runner"]["rps"]) >= {"duration", "rps"}


def test_a_scenario_is_shown_with_its_arguments() -> None:
    shown = coord("plugin", "show", "scenario", "HttpRequests.check_request")

    sample = yaml.safe_load(shown.output.partition("example:")[2])
    given = {"url": "...", "method": "GET", "status_code": None}
    assert sample["scenario"] == {"HttpRequests.check_request": given}


def test_examples_of_scenarios_have_arguments_of_the_right_types(tmp_path: Path) -> None:
    Path("mine.py").write_text(
        "from osbench.plugin import scenario\n\n"
        "class Mine(scenario.Scenario):\n"
        "    @scenario.configure()\n"
        "    def all(self, a, b: bool, c: float, d: list[dict], e: int | None, f: str, g={1: ()}):"
        "\n"
        "        pass\n"
    )
    plugins = Plugins(["mine.py"])

    for name in plugins.scenario_names():
        shown = scenario_text(plugins, name)

        sample = yaml.safe_load(shown.partition("example:")[2].partition("\ncontexts")[0])
        plugin = plugins.scenario(name)
        function = getattr(plugin.cls, plugin.method)
        args = sample["scenario"][name] or {}
        assert signature.name_problems(name, function, args) == []
        assert signature.type_problems(name, function, args) == {}
        if name == "Mine.all":
            values = ["...", True, 1.0, [{}], 1, "...", {"1": []}]
            assert list(sample["scenario"][name].values()) == values


def test_an_unknown_plugin_is_one_message() -> None:
    shown = coord("plugin", "show", "runner", "rsp")

    assert shown.exit_code == 2
    assert "rps" in shown.output


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        ("rps", 0, "runner rps"),
        ("Dummy.dummy", 0, "scenario Dummy.dummy"),
        ("Dummy.dumy", 2, "did you mean Dummy.dummy"),
        ("nothing-like-it", 2, "`osbench-coord plugin list` lists them"),
        ("runers rps", 2, "'runers' is not a kind of plug-in; choose from scenario, runner"),
        ("runner rps stages", 2, "one plug-in at a time"),
    ],
)
def test_a_plugin_is_shown_by_its_name_alone(words: str, code: int, said: str) -> None:
    shown = coord("plugin", "show", *words.split())

    assert shown.exit_code == code
    assert said in shown.output


def test_options_are_shown_without_secrets(tmp_path: Path) -> None:
    Path("osbench.conf").write_text("[messaging]\nredis_url = redis://:geheim@example.org/0\n")

    shown = coord("config", "show", "--config-file", "osbench.conf")

    assert "enable_profiler = True" in shown.output
    assert "redis_url = ***" in shown.output
    assert "geheim" not in shown.output


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_scripts_name_the_command(shell: str) -> None:
    script = coord("completion", shell)

    assert script.exit_code == 0, script.output
    assert "_OSBENCH_COORD_COMPLETE" in script.output


SCENARIOS = """\
from osbench.plugin import scenario


class _Shared(scenario.Scenario):
    pass


class Between(_Shared):
    pass


class Good(Between):
    @scenario.configure(name="Good.one")
    def one(self):
        pass


class Forgotten(scenario.Scenario):
    def run(self):
        pass
"""


@pytest.mark.parametrize(
    "command",
    [
        ("plugin", "list", "scenario"),
        ("validate", "one.yaml", "two.yaml"),
        ("run", "absent.yaml"),
    ],
)
def test_a_scenario_that_nothing_marks_is_reported_once_with_its_line(
    command: tuple[str, ...],
) -> None:
    Path("mine.py").write_text(SCENARIOS)
    task = {"Good.one": [{"runner": {"type": "constant", "times": 1, "concurrency": 1}}]}
    for name in ("one.yaml", "two.yaml"):
        Path(name).write_text(yaml.safe_dump(task))

    finished = coord(*command, "--plugin-path", "mine.py")

    warnings = [line for line in finished.stderr.splitlines() if line.startswith("Warning")]
    assert len(warnings) == 1, finished.stderr
    assert f"{Path('mine.py').resolve()}:18: class Forgotten derives from Scenario" in warnings[0]
    assert "no task can name it" in warnings[0]
    assert finished.exit_code == (2 if command[0] == "run" else 0), finished.output


def commands(group: click.Group, *words: str) -> Iterator[tuple[tuple[str, ...], click.Command]]:
    """Every command that does something, and the groups of them."""
    yield words, group
    context = click.Context(group)
    for name in group.list_commands(context):
        _, command, _ = group.resolve_command(context, [name])
        if isinstance(command, click.Group):
            yield from commands(command, *words, name)
        else:
            yield (*words, name), command


@pytest.mark.parametrize(("words", "command"), list(commands(main)))
def test_help_has_examples_and_whole_sentences(
    words: tuple[str, ...], command: click.Command
) -> None:
    shown = CliRunner().invoke(main, (*words, "--help"), terminal_width=80)

    assert shown.exit_code == 0
    lines = [line.rstrip() for line in shown.output.splitlines()]
    assert not [line for line in lines if line.endswith("...") and line.startswith("  ")]
    if not isinstance(command, click.Group):
        assert f"osbench-coord {' '.join(words)}" in shown.output.partition("Example")[2]
