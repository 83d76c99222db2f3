"""What a newcomer does wrong in a plug-in file is told with file and line, and helpers import."""

from __future__ import annotations

import contextlib
import logging
import os
import re
import threading
from pathlib import Path

import pytest

from osbench.common import errors
from osbench.common.plugin.loading.exits import exits_refused
from osbench.common.plugin.plugins import Plugins

HEAD = "from osbench.plugin import atomic, scenario\n"


def written(folder: Path, text: str, name: str = "mine.py") -> str:
    """A plug-in file; returns its path."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).write_text(HEAD + text)
    return str(folder / name)


def scenario_of(body: str) -> str:
    """A class with one scenario, whose decorator is in line 3 of the file."""
    return f"class Mine(scenario.Scenario):\n    @scenario.configure(name='Mine.go')\n{body}"


@pytest.mark.parametrize(
    ("body", "line", "says"),
    [
        ("    def go():\n        pass\n", 3, "Mine.go is called with the scenario object first"),
        ("    def go(*, url):\n        pass\n", 3, "write `def go(self, ...)`"),
        ("    @staticmethod\n    def go(url):\n        pass\n", 3, "Mine.go is a staticmethod"),
        ("    @classmethod\n    def go(cls):\n        pass\n", 3, "Mine.go is a classmethod"),
        (
            "    def go(self):\n        pass\n\n    def warm_up(cls, context):\n        pass\n",
            7,
            "warm_up of Mine belongs to the class: write @classmethod",
        ),
        ("    def go(self):\n        yield\n", 3, "Mine.go has `yield`: it is a generator"),
        ("    async def go(self):\n        yield\n", 3, "Mine.go has `yield`"),
        (
            "    @atomic.action_timer('go')\n    def go(self):\n        yield\n",
            3,
            "Mine.go has `yield`",
        ),
        (
            "    def go(self):\n        pass\n\n    def on_start(self):\n        yield\n",
            7,
            "Mine.on_start has `yield`",
        ),
        (
            "    async def go(self): pass\n\n    async def on_stop(self):\n        yield\n",
            6,
            "Mine.on_stop has `yield`",
        ),
    ],
)
def test_a_scenario_that_cannot_be_called(tmp_path: Path, body: str, line: int, says: str) -> None:
    file = written(tmp_path, scenario_of(body))

    plugins = Plugins([file])
    with pytest.raises(errors.PluginError) as caught:
        plugins.scenario("Mine.go")

    (fault,) = plugins.faults()
    assert fault.startswith(f"{file}:{line}: ")
    assert says in fault
    assert fault in str(caught.value)


def test_a_class_whose_run_takes_no_instance(tmp_path: Path) -> None:
    text = "@scenario.configure(name='Mine')\nclass Mine(scenario.Scenario):\n    def run():\n"
    file = written(tmp_path, f"{text}        pass\n")

    with pytest.raises(errors.PluginError, match=r"mine\.py:4: scenario Mine\.run is called with"):
        Plugins([file]).scenario("Mine")


def test_an_argument_in_the_place_of_self_is_named(tmp_path: Path) -> None:
    file = written(tmp_path, scenario_of("    def go(url):\n        pass\n"))

    problems = Plugins([file]).scenario("Mine.go").check_args({"url": "http://x"})

    assert problems == ["Mine.go has no argument 'url'; it is in the place of self"]


def test_a_file_that_ends_the_process(tmp_path: Path) -> None:
    before = os._exit
    file = written(tmp_path, "import os\nos._exit(7)\n")

    (fault,) = Plugins([file]).faults()

    assert re.search(r"mine\.py:3: SystemExit: os\._exit\(7\) was", fault)
    assert os._exit is before


def test_a_thread_that_ends_the_process_is_refused_and_logged(
    caplog: pytest.LogCaptureFixture,
) -> None:
    def leave() -> None:
        with contextlib.suppress(SystemExit):
            os._exit(7)

    with exits_refused():
        thread = threading.Thread(target=leave)
        thread.start()
        thread.join()

    line = leave.__code__.co_firstlineno + 2
    assert caplog.messages == [f"os._exit(7) was called and refused: {__file__}:{line}"]


def test_what_a_file_prints_is_told_with_its_place_and_not_on_stdout(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    file = written(tmp_path, "print('one')\n\ndef tell():\n    print('two', end='\\n')\ntell()\n")

    with caplog.at_level(logging.WARNING):
        Plugins([file]).import_files()

    assert capsys.readouterr().out == ""
    told = [record.getMessage() for record in caplog.records]
    assert told == [f"{file}:2 prints: one", f"{file}:5 prints: two"]


def test_a_module_beside_a_plugin_can_be_imported(tmp_path: Path) -> None:
    (tmp_path / "near_one.py").write_text("import near_two\nVALUE = near_two.VALUE\n")
    (tmp_path / "near_two.py").write_text("VALUE = 7\n")
    (tmp_path / "near_pack").mkdir()
    (tmp_path / "near_pack" / "__init__.py").write_text("from near_pack.deep import MORE\n")
    (tmp_path / "near_pack" / "deep.py").write_text("MORE = 8\n")
    body = "    def go(self):\n        import near_pack\n        return VALUE, near_pack.MORE\n"
    file = written(tmp_path, f"from near_one import VALUE\n{scenario_of(body)}")

    found = Plugins([file]).scenario("Mine.go")

    assert found.cls({"iteration": 1}).go() == (7, 8)  # type: ignore[attr-defined]


def test_a_base_class_in_a_module_beside_is_the_same_class_for_all(tmp_path: Path) -> None:
    written(tmp_path, "class Base(scenario.Scenario):\n    pass\n", "near_base.py")
    imported = f"from near_base import Base\n{scenario_of('    def go(self): pass')}"
    written(tmp_path, imported.replace("(scenario.Scenario)", "(Base)"))

    plugins = Plugins([str(tmp_path)])

    # else the base class, imported a second time, would look like a scenario without a name
    assert plugins.notes() == []
    assert plugins.scenario("Mine.go").cls.__mro__[1].__name__ == "Base"


def test_an_installed_module_wins_over_one_beside_a_plugin(tmp_path: Path) -> None:
    (tmp_path / "json.py").write_text("raise OSError('not this one')\n")
    file = written(tmp_path, "import json\njson.dumps({})\n")

    Plugins([file]).import_files()


def test_a_fault_in_a_module_beside_is_told_with_its_place(tmp_path: Path) -> None:
    (tmp_path / "near_broken.py").write_text("\nVALUE = 1 / 0\n")
    file = written(tmp_path, "import near_broken\n")

    (fault,) = Plugins([file]).faults()

    assert re.search(r"^\S+near_broken\.py:2: ZeroDivisionError: ", fault)


def test_two_folders_with_a_module_of_one_name(tmp_path: Path) -> None:
    paths = []
    for name in ("one", "two"):
        paths.append(written(tmp_path / name, "import near_same\n"))
        (tmp_path / name / "near_same.py").write_text("")

    (fault,) = Plugins(paths).faults()

    assert re.search(r"imports near_same, .*another name", fault)


def test_the_hash_of_a_scenario_covers_what_it_imports_from_its_folder(tmp_path: Path) -> None:
    (tmp_path / "near_hashed.py").write_text("VALUE = 1\n")
    file = written(tmp_path, f"import near_hashed\n{scenario_of('    def go(self): pass')}")
    before = Plugins([file]).scenario("Mine.go").source_hash

    (tmp_path / "near_hashed.py").write_text("VALUE = 2\n")

    assert Plugins([file]).scenario("Mine.go").source_hash != before


@pytest.mark.parametrize(
    ("body", "says"),
    [
        (
            "from osbench.plugin import context\n@context.configure(name='a')\n"
            "class A(context.Context): pass\n",
            "only scenarios have that decorator; other classes have their name as NAME",
        ),
        (
            "from osbench.plugin.context import Context\n",
            "write `from osbench.plugin import context`",
        ),
    ],
)
def test_what_osbench_spells_otherwise_is_told(tmp_path: Path, body: str, says: str) -> None:
    file = written(tmp_path, body)

    with pytest.raises(errors.PluginError, match=re.escape(says)):
        Plugins([file]).get("context", "mine")
