"""An entry point for a class stands for its scenarios, and one is found without the others."""

from __future__ import annotations

import configparser
import importlib
import pkgutil
import subprocess
import sys
from pathlib import Path

import pytest

from helpers.readme import REPOSITORY
from osbench.common import errors
from osbench.common.plugin import plugin_files
from osbench.common.plugin.plugins import Plugins

SHOP = '''
from osbench.plugin import scenario

class Base(scenario.Scenario):
    @scenario.configure(name="Base.inherited")
    def inherited(self): pass

class Shop(Base):
    @scenario.configure(name="Shop.buy", context={"users": {}})
    def buy(self, what: str):
        """Buy something."""

    @scenario.configure()
    def look(self):
        """Look around."""

    def helper(self): pass

class Plain(scenario.Scenario):
    """Has a method run."""
    def run(self, size: int = 1): pass

@scenario.configure(name="Ignored")
class Both(scenario.Scenario):
    """Is one, and has another."""
    def run(self): pass

    @scenario.configure()
    def more(self): pass

class Stray(scenario.Scenario):
    @scenario.configure(name="Stray.home")
    def home(self): pass

    @scenario.configure(name="Elsewhere.away")
    def away(self): pass

class NoScenario:
    @scenario.configure()
    def odd(self): pass
'''


#: Names of entry points that `points` makes begin with one of these.
THEIRS = ("Shop", "Broken", "Stray", "Plain", "Short", "Their", "Both", "short", "Odd")


@pytest.fixture
def points(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Install a package with a module shop, and one that cannot be imported, by its metadata."""
    (tmp_path / "their_shop.py").write_text(SHOP)
    (tmp_path / "their_broken.py").write_text("raise OSError('no library')\n")
    told = tmp_path / "theirs-1.0.dist-info"
    told.mkdir()
    (told / "METADATA").write_text("Metadata-Version: 2.1\nName: theirs\nVersion: 1.0\n")
    monkeypatch.syspath_prepend(tmp_path)

    def given(*lines: str) -> Plugins:
        (told / "entry_points.txt").write_text("\n".join(["[osbench.scenario]", *lines]))
        return Plugins()

    yield given
    for name in ("their_shop", "their_broken"):
        sys.modules.pop(name, None)


def their_names(plugins: Plugins) -> list[str]:
    return [name for name in plugins.scenario_names() if name.startswith(THEIRS)]


def test_a_class_stands_for_the_methods_that_it_marks_itself(points):
    plugins = points("Shop = their_shop:Shop")

    buy, look = plugins.scenario("Shop.buy"), plugins.scenario("Shop.look@native")

    assert their_names(plugins) == ["Shop.buy", "Shop.look"]
    assert (buy.cls.__name__, buy.method, buy.title) == ("Shop", "buy", "Buy something.")
    assert buy.context == {"users": {}}
    assert buy.check_args({}) == ["argument 'what' of Shop.buy is missing"]
    assert (look.method, look.title) == ("look", "Look around.")


def test_one_scenario_is_found_without_the_classes_of_others(points):
    plugins = points("Shop = their_shop:Shop", "Broken = their_broken:Broken")

    assert plugins.scenario("Shop.buy").method == "buy"
    assert "their_broken" not in sys.modules
    for ask in (lambda: plugins.scenario("Broken.any"), plugins.scenario_names):
        with pytest.raises(errors.PluginError, match=r"^Broken .* loaded: OSError: no library"):
            ask()


def test_a_method_that_does_not_exist_gets_names_of_its_class(points):
    plugins = points(
        "Shop = their_shop:Shop", "Broken = their_broken:Broken", "Shoq.buy = their_shop:Shop.buy"
    )

    with pytest.raises(errors.PluginError, match=r"'Shop\.buyy'; did you mean Shop\.buy\?$"):
        plugins.scenario("Shop.buyy")
    assert "their_broken" not in sys.modules


def test_the_name_of_the_class_alone_gets_its_scenarios(points):
    plugins = points("Shop = their_shop:Shop")

    with pytest.raises(errors.PluginError, match=r"no scenario 'Shop'; did you mean Shop\.buy or"):
        plugins.scenario("Shop")


def test_a_class_that_does_not_exist_gets_names_of_all_that_can_be_imported(points):
    plugins = points("Broken = their_broken:Broken", "Shop = their_shop:Shop")

    with pytest.raises(errors.PluginError, match=r"'Shopp\.buy'; did you mean Shop\.buy"):
        plugins.scenario("Shopp.buy")


def test_a_scenario_of_another_beginning_than_its_entry_point(points):
    plugins = points("Stray = their_shop:Stray")

    with pytest.raises(errors.PluginError) as caught:
        plugins.scenario("Stray.home")

    assert str(caught.value) == (
        "scenario 'Elsewhere.away' (entry point their_shop:Stray of theirs): its name must begin "
        "with 'Stray' and a dot, since the entry point of its class has that name"
    )


@pytest.mark.parametrize("name", ["Plain", "Short", "Their.plain"])
def test_a_class_with_run_has_the_name_of_its_entry_point(points, name: str):
    plugins = points(f"{name} = their_shop:Plain")

    found = plugins.scenario(name)

    assert their_names(plugins) == [name]
    assert (found.name, found.method, found.title) == (name, "run", "Has a method run.")


def test_a_class_that_is_a_scenario_and_has_others(points):
    plugins = points("Both = their_shop:Both")

    assert their_names(plugins) == ["Both", "Both.more"]
    assert plugins.scenario("Both").method == "run"
    assert plugins.scenario("Both.more").method == "more"


def test_an_entry_point_of_one_method_is_found_beside_a_class(points):
    plugins = points(
        "Shop = their_shop:Shop", "Shop.also = their_shop:Shop.look", "short = their_shop:Shop.buy"
    )

    assert their_names(plugins) == ["Shop.also", "Shop.buy", "Shop.look", "short"]
    assert plugins.scenario("Shop.also").method == "look"
    assert plugins.scenario("short").method == "buy"


def test_a_name_of_a_class_and_of_a_method_names_both_places(points):
    plugins = points("Shop = their_shop:Shop", "Shop.buy = their_shop:Shop.look")

    for ask in (lambda: plugins.scenario("Shop.buy"), plugins.scenario_names):
        with pytest.raises(errors.PluginError) as caught:
            ask()

        assert "'Shop.buy' is defined twice" in str(caught.value)
        assert "entry point their_shop:Shop.look of theirs" in str(caught.value)
        assert "entry point their_shop:Shop of theirs (Shop.buy)" in str(caught.value)
    assert plugins.scenario("Shop.look").method == "look"


@pytest.mark.parametrize(
    ("target", "said"),
    [
        ("NoScenario", r"NoScenario\.odd is marked as a scenario; derive NoScenario"),
        ("SHOP", "cannot be loaded: AttributeError"),
        ("scenario", "is neither a class nor a method of one"),
    ],
)
def test_an_entry_point_of_what_is_no_scenario(points, target: str, said: str):
    plugins = points(f"Odd = their_shop:{target}")

    with pytest.raises(errors.PluginError, match=said) as caught:
        plugins.scenario("Odd.odd")

    assert f"entry point their_shop:{target}" in str(caught.value)


def test_every_scenario_of_ours_has_an_entry_point():
    """By its class: one that setup.cfg lacks is not found."""
    setup = configparser.ConfigParser()
    setup.read(REPOSITORY / "setup.cfg")
    declared = setup["options.entry_points"]["osbench.scenario"].split("\n")
    points = dict(line.split(" = ") for line in declared if line)
    packages = {target.partition(":")[0].rpartition(".")[0] for target in points.values()}
    marked = set()
    for package in map(importlib.import_module, packages):
        for found in pkgutil.iter_modules(package.__path__):
            module = importlib.import_module(f"{package.__name__}.{found.name}")
            for cls in plugin_files.classes(module):
                marked |= {name for name, _ in plugin_files.scenarios(cls, str(module.__file__))}

    assert packages == {
        "osbench.edges.flows",
        "osbench.edges.openstack.scenarios",
        "osbench.worker.scenarios",
    }
    assert len(marked) > 60
    assert {name.partition(".")[0] for name in marked} == points.keys()
    assert marked <= set(Plugins().scenario_names())


def test_a_worker_that_starts_imports_no_scenario():
    code = (
        "import sys; from osbench.common.plugin.plugins import Plugins;"
        "Plugins(['samples/plugins']).import_files();"
        "print([m for m in sys.modules if m.startswith('osbench.worker')])"
    )

    printed = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, check=True, cwd=REPOSITORY
    )

    assert printed.stdout.decode().strip() == "[]"
