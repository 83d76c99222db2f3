"""Plug-ins are found by entry point and by path, and every fault says where it lies."""

import hashlib
import importlib
import importlib.metadata
import re
import subprocess
import sys
from collections import Counter, defaultdict
from functools import partial
from pathlib import Path

import pytest
from pytest import MonkeyPatch

from osbench.common import errors
from osbench.common.plugin import entry_points
from osbench.common.plugin.loading import neighbours
from osbench.common.plugin.loading.neighbours import SourceFiles
from osbench.common.plugin.plugins import KINDS, Plugins

SCENARIO = '''
from osbench.plugin import scenario

@scenario.configure(name="Mine.first", context={"users": {}})
class First(scenario.Scenario):
    """Does the first thing.

    And more.
    """
    def run(self, url, tries: int = 1):
        pass

class Mine(scenario.Scenario):
    @scenario.configure()
    def second(self, **kwargs):
        """Does the second thing."""

    @scenario.configure(name="Other.name")
    def third(self): pass

    def no_scenario(self): pass

class Heir(Mine):
    pass
'''


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "mine.py").write_text(SCENARIO)
    return tmp_path


def test_every_entry_point_of_ours_loads():
    plugins = Plugins()

    loaded = [plugins.scenario(name) for name in plugins.scenario_names()]

    assert len(loaded) >= 11
    for one in loaded:
        assert one.title, f"{one.name} has no docstring"
        assert len(one.source_hash) == 64
    for kind in KINDS:
        for name in plugins.names(kind):
            assert plugins.get(kind, name)


def test_naming_one_scenario_does_not_import_the_others():
    code = (
        "import sys; from osbench.common.plugin.plugins import Plugins;"
        "Plugins().scenario('Dummy.dummy');"
        "print([m for m in sys.modules if m in ('pycurl', 'keystoneauth1')])"
    )

    printed = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True)

    assert printed.stdout.decode().strip() == "[]"


def test_scenarios_of_a_file(folder: Path):
    plugins = Plugins([str(folder / "mine.py")])

    first, second = plugins.scenario("Mine.first"), plugins.scenario("Mine.second")

    names = {"Mine.first", "Mine.second", "Other.name"}
    assert names <= set(plugins.scenario_names())
    assert not [n for n in plugins.scenario_names() if n.startswith("Heir")]
    assert (first.method, first.title) == ("run", "Does the first thing.")
    assert first.context == {"users": {}}
    assert (second.method, second.title, second.context) == (
        "second",
        "Does the second thing.",
        {},
    )
    assert first.source_hash == hashlib.sha256(SCENARIO.encode()).hexdigest()
    assert callable(getattr(second.cls({"iteration": 1}), second.method))


def test_a_changed_file_is_read_anew(folder: Path):
    before = Plugins([str(folder)]).scenario("Mine.first")
    (folder / "mine.py").write_text(SCENARIO.replace("tries: int = 1", "tries: int = 2"))

    after = Plugins([str(folder)]).scenario("Mine.first")

    assert before.source_hash != after.source_hash
    assert after.cls.run.__defaults__ == (2,)
    assert [f.name for f in folder.iterdir()] == ["mine.py"]


def test_a_native_scenario_has_one_identity_however_osbench_is_installed(tmp_path: Path) -> None:
    module = "osbench.worker.scenarios.dummy"
    here = Path(str(importlib.import_module(module).__file__))
    installed = tmp_path / "osbench" / "dummy.py"
    installed.parent.mkdir()
    (installed.parent / "__init__.py").write_text("SOMETHING = 'else'\n")
    installed.write_bytes(here.read_bytes())

    identity = SourceFiles().source_hash(module, installed)

    assert identity == Plugins().scenario("Dummy.dummy").source_hash
    installed.write_bytes(here.read_bytes() + b"\n")
    assert SourceFiles().source_hash(module, installed) != identity


def test_another_version_of_osbench_has_other_native_scenarios(monkeypatch: MonkeyPatch) -> None:
    before = Plugins().scenario("Dummy.dummy").source_hash

    monkeypatch.setattr(neighbours, "__version__", "9.9.9")

    assert Plugins().scenario("Dummy.dummy").source_hash != before


def test_every_source_file_is_read_once(folder: Path, monkeypatch: MonkeyPatch) -> None:
    (folder / "__init__.py").touch()
    (folder / "helper.py").write_text("WORD = 'help'\n")
    (folder / "mine.py").write_text("from .helper import WORD\n" + SCENARIO)
    read: Counter[Path] = Counter()

    def counted(path: Path) -> bytes:
        read[path] += 1
        return path.read_bytes()

    monkeypatch.setattr(neighbours, "read_named", counted)
    plugins = Plugins([str(folder)])

    for name in plugins.scenario_names():
        plugins.scenario(name)

    assert read[folder / "helper.py"] == read[folder / "mine.py"] == 1
    assert set(read.values()) == {1}
    assert not [path for path in read if path.name == "__init__.py" and path.parent != folder]


def test_folders_with_equal_file_names_and_hidden_ones(tmp_path: Path):
    for name in ("one", "two/deep", ".git"):
        (tmp_path / name).mkdir(parents=True)
        word = name[:3].strip(".").title()
        (tmp_path / name / "plugin.py").write_text(
            SCENARIO.replace("Mine", word).replace("Other", word)
        )

    names = Plugins([str(tmp_path / "one"), str(tmp_path), str(tmp_path)]).scenario_names()

    assert {"One.first", "Two.first", "One.second", "Two.second"} <= set(names)
    assert "Git.first" not in names


def test_runners_and_criteria_of_a_file(tmp_path: Path):
    (tmp_path / "more.py").write_text(
        "from osbench.plugin import runner, sla\n"
        "class Shared(runner.Runner):\n    pass\n"
        "class Burst(Shared):\n    NAME = 'burst'\n"
        "class Calm(sla.Sla):\n    NAME = 'calm'\n"
    )

    plugins = Plugins([str(tmp_path)])

    assert plugins.get("runner", "burst").__name__ == "Burst"
    assert plugins.get("sla", "calm").__name__ == "Calm"
    assert "" not in plugins.names("runner")
    assert plugins.names("runner") == sorted(plugins.names("runner"))


@pytest.mark.parametrize(
    ("kind", "asked", "said"),
    [
        ("runner", "constnat", "there is no runner 'constnat'; did you mean constant"),
        ("sla", "zzz", "there is no SLA criterion 'zzz'"),
    ],
)
def test_an_unknown_name_gets_near_ones(kind: str, asked: str, said: str):
    with pytest.raises(errors.PluginError, match=said):
        Plugins().get(kind, asked)


def test_an_unknown_scenario_gets_near_ones():
    with pytest.raises(errors.PluginError, match=r"'Dummy\.dumy'; did you mean Dummy\.dummy"):
        Plugins().scenario("Dummy.dumy")


def test_a_kind_that_does_not_exist():
    with pytest.raises(ValueError, match="no such kind of plug-in: runers"):
        Plugins().names("runers")


@pytest.mark.parametrize(
    ("text", "line", "said"),
    [
        ("\n\nimport not_there_at_all\n", 3, "ModuleNotFoundError: No module named"),
        ("x = 1\ndef broken(:\n", 2, "SyntaxError: "),
        ("def f():\n    raise ValueError\n\nf()\n", 2, "ValueError; correct it"),
        ("import sys\nsys.exit('bye')\n", 2, "SystemExit: bye"),
        ("import json\njson.loads('')\n", 2, "JSONDecodeError: "),
    ],
)
def test_a_file_that_fails_names_line_and_reason(tmp_path: Path, text: str, line: int, said: str):
    file = tmp_path / "bad.py"
    file.write_text(text)

    (fault,) = Plugins([str(tmp_path)]).faults()

    assert re.search(said, fault)
    assert fault.startswith(f"{file}:{line}: ")
    assert "\n" not in fault
    assert not [name for name in sys.modules if name.endswith("_bad")]


def test_a_file_that_fails_is_logged_and_refuses_only_what_may_be_in_it(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
):
    (tmp_path / "bad.py").write_text("import not_there_at_all\n")
    (tmp_path / "good.py").write_text(SCENARIO)
    plugins = Plugins([str(tmp_path)])

    assert plugins.scenario("Mine.first").source == "native"
    assert plugins.get("runner", "constant")
    for look in (plugins.scenario, partial(plugins.get, "sla")):
        with pytest.raises(errors.PluginError, match=r"'Mine.absent', .*bad\.py:1: ModuleNotFound"):
            look("Mine.absent")
    plugins.warn()
    (said,) = caplog.messages
    assert "bad.py:1: ModuleNotFoundError" in said


@pytest.mark.parametrize("name", ["nowhere", "text.txt"])
def test_a_path_that_is_no_plugin(tmp_path: Path, name: str):
    (tmp_path / "text.txt").write_text("")

    with pytest.raises(errors.PluginError, match=r"neither a \.py file nor a folder"):
        Plugins([str(tmp_path / name)]).scenario_names()


def test_a_name_defined_twice_names_both_places(tmp_path: Path):
    (tmp_path / "a.py").write_text(SCENARIO)
    (tmp_path / "b.py").write_text(SCENARIO)

    with pytest.raises(errors.PluginError) as caught:
        Plugins([str(tmp_path)]).scenario_names()

    assert "'Mine.first' is defined twice" in str(caught.value)
    assert f"{tmp_path}/a.py" in str(caught.value)
    assert f"{tmp_path}/b.py" in str(caught.value)


def test_a_fault_counts_once_if_a_name_was_defined_twice_before(tmp_path: Path):
    (tmp_path / "a.py").write_text("import absent_module, osbench")
    (tmp_path / "b.py").write_text(SCENARIO)
    (tmp_path / "c.py").write_text(SCENARIO)
    plugins = Plugins([str(tmp_path)])
    with pytest.raises(errors.PluginError, match="is defined twice"):
        plugins.faults()
    (tmp_path / "c.py").unlink()

    assert len(plugins.faults()) == 1


def test_a_file_does_not_override_what_is_built_in(tmp_path: Path):
    (tmp_path / "dummy.py").write_text(SCENARIO.replace("Mine.first", "Dummy.dummy"))

    with pytest.raises(errors.PluginError) as caught:
        Plugins([str(tmp_path)]).scenario_names()

    assert "osbench.worker.scenarios.dummy:Dummy of osbench (Dummy.dummy)" in str(caught.value)
    assert f"{tmp_path}/dummy.py (First.run)" in str(caught.value)


@pytest.mark.parametrize(
    "text",
    [
        "@scenario.configure(name='A.b')\nclass A:\n    def run(self): pass\n",
        "@scenario.configure(name='A.b')\nclass A(scenario.Scenario):\n    pass\n",
        "class A:\n    @scenario.configure()\n    def b(self): pass\n",
    ],
)
def test_a_mark_on_what_is_no_scenario(tmp_path: Path, text: str):
    (tmp_path / "odd.py").write_text("from osbench.plugin import scenario\n" + text)

    (fault,) = Plugins([str(tmp_path)]).faults()

    assert re.search(r"odd\.py: .*A.*; derive", fault)


def test_a_runner_that_is_no_runner(monkeypatch: pytest.MonkeyPatch):
    point = importlib.metadata.EntryPoint("wrong", "pathlib:Path", "osbench.runner")
    gone = importlib.metadata.EntryPoint("gone", "osbench.not_there:X", "osbench.sla")
    found = defaultdict(list, runner=[point], sla=[gone])
    monkeypatch.setattr(entry_points, "installed_points", lambda kinds: found)

    with pytest.raises(errors.PluginError, match=r"pathlib:Path\) must be a subclass of .*Runner"):
        Plugins().get("runner", "wrong")
    with pytest.raises(errors.PluginError, match=r"gone .* cannot be loaded: ModuleNotFoundError"):
        Plugins().get("sla", "gone")


def test_without_a_source_native_plugins_are_found_and_missed(monkeypatch: pytest.MonkeyPatch):
    read = entry_points.installed_points
    monkeypatch.setattr(
        entry_points, "installed_points", lambda kinds: {**read(kinds), "source": []}
    )
    plugins = Plugins()

    found = plugins.scenario("Dummy.dummy")

    assert found.source == "native"
    with pytest.raises(errors.PluginError, match=r"no scenario 'Dummy\.dumy'; did you mean Dummy"):
        plugins.scenario("Dummy.dumy")
    with pytest.raises(errors.PluginError, match=r"no installed package has the source .* 'rally'"):
        plugins.scenario("Dummy.dummy@rally")
