"""A name means our plug-in or Rally's, and an absent one is reported with what to do about it."""

from __future__ import annotations

import logging
import os
import subprocess
import sys
from pathlib import Path

import pytest

from helpers.import_path import import_path
from osbench.common.errors import PluginError
from osbench.common.plugin.plugin_names import NATIVE, RALLY
from osbench.common.plugin.plugins import Plugins
from osbench.edges.rally import plugin_hints, plugin_registry

INSTALL = "which is not installed: pip install 'osbench[rally]'"


@pytest.fixture
def without_rally(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "rally", None)


@pytest.fixture
def rally() -> None:
    pytest.importorskip("rally", reason="Rally is not installed: pip install osbench[rally]")


def look(plugins: Plugins, kind: str, name: str) -> str:
    """Whose plug-in a name means, or why there is none."""
    try:
        if kind == "scenario":
            return plugins.scenario(name).source
        return plugins.find(kind, name).source
    except PluginError as error:
        return str(error)


@pytest.mark.usefixtures("without_rally")
@pytest.mark.parametrize(
    ("kind", "name", "said"),
    [
        ("scenario", "Dummy.dummy", NATIVE),
        ("scenario", "Dummy.dummy@native", NATIVE),
        ("scenario", "Dummy.openstack", f"is a plug-in of Rally, {INSTALL}"),
        ("scenario", "Dummy.dummy@rally", f"is a plug-in of Rally, {INSTALL}"),
        ("scenario", "Mine.own@rally", f"needs Rally, {INSTALL}"),
        ("context", "stacks@openstack", f"is a plug-in of Rally, {INSTALL}"),
        ("context", "stacks", f"is a plug-in of Rally, {INSTALL}"),
        ("sla", "outliers@default", f"is a plug-in of Rally, {INSTALL}"),
        ("hook", "fault_injection@openstack", f"is a plug-in of Rally, {INSTALL}"),
        ("trigger", "event@rally", f"is a plug-in of Rally, {INSTALL}"),
        ("runner", "constant@rally", f"is a plug-in of Rally, {INSTALL}"),
        ("context", "users@default", f"needs Rally, {INSTALL}"),
        ("scenario", "NovaServers.bot_server", "did you mean NovaServers.boot_server"),
    ],
)
def test_without_rally_its_plugins_name_the_extra(kind, name, said):
    assert said in look(Plugins(), kind, name)


@pytest.mark.usefixtures("without_rally")
def test_rally_cannot_be_preferred_where_it_is_not():
    assert look(Plugins(prefer=RALLY), "scenario", "Dummy.dummy") == (
        "Rally's plug-ins are preferred, but Rally is not installed: pip install 'osbench[rally]', "
        "or leave out --prefer"
    )


@pytest.mark.usefixtures("without_rally")
def test_a_plugin_file_of_rally_needs_rally(tmp_path: Path):
    (tmp_path / "theirs.py").write_text("from rally.task import scenario\n")
    plugins = Plugins([str(tmp_path)])

    assert look(plugins, "scenario", "Dummy.dummy") == NATIVE
    assert "holds plug-ins of Rally, which is not installed" in look(plugins, "scenario", "A.b")


@pytest.mark.parametrize("extra", ["installed", "absent"])
@pytest.mark.parametrize(
    ("kind", "name", "release"),
    [
        ("scenario", "SaharaJob.create_launch_job", "rally-openstack 4.0.0"),
        ("scenario", "NovaAgents.list_agents", "rally-openstack 2.3.0"),
        ("scenario", "CeilometerMeters.list_meters", "rally-openstack 2.2.0"),
        ("scenario", "EC2Servers.boot_server", "rally-openstack 2.0.0"),
        ("scenario", "NovaSecGroup.create_and_list_secgroups", "rally 0.10.0"),
        ("scenario", "TempestScenario.all", "rally 0.8.0"),
        ("scenario", "Dummy.dummy_with_scenario_output", "rally 0.7.0"),
        ("context", "murano_packages", "rally-openstack 4.0.0"),
        ("context", "profiles@openstack", "rally-openstack 4.0.0"),
        ("context", "fuel_environments", "rally 0.10.0"),
    ],
)
def test_what_rally_has_removed_is_named_as_such(request, extra, kind, name, release):
    request.getfixturevalue("rally" if extra == "installed" else "without_rally")

    said = look(Plugins(), kind, name)

    assert said.endswith(f"{name!r} was removed from Rally in {release}")


def test_of_the_last_release_with_them_17_scenarios_and_9_contexts_are_gone():
    last = "rally-openstack 4.0.0"
    gone = {
        kind: [name for name, since in plugin_hints.removed_plugins(kind).items() if since == last]
        for kind in ("scenario", "context")
    }

    assert {kind: len(found) for kind, found in gone.items()} == {"scenario": 17, "context": 9}


@pytest.mark.usefixtures("rally")
@pytest.mark.parametrize("kind", ["scenario", "context", "sla", "hook", "trigger"])
def test_all_that_rally_has_is_known_without_it(kind):
    assert Plugins().source(RALLY).titles(kind)
    # other tests leave plug-ins of their own in Rally's registry
    theirs = {
        one.get_name() if kind == "scenario" else one.get_fullname()
        for one in plugin_registry.plugins(kind)
        if one.__module__.partition(".")[0] in ("rally", "rally_openstack")
    }

    assert theirs
    assert theirs <= plugin_hints.names(kind)


@pytest.mark.usefixtures("rally")
def test_a_plugin_that_is_newer_than_the_rally_here_is_named_as_such():
    name = "NeutronFWaaS.create_and_list_firewall_rules"
    plugins = Plugins()
    plugins.source(RALLY).ready()
    if plugin_registry.plugin("scenario", name) is not None:
        pytest.skip("the rally-openstack here has it")

    said = look(plugins, "scenario", f"{name}@rally")
    assert "installed here: it came after 4.1.0" in said


@pytest.mark.usefixtures("rally")
@pytest.mark.parametrize(
    ("kind", "name", "by_default", "preferring_rally"),
    [
        ("scenario", "Dummy.dummy", NATIVE, RALLY),
        ("scenario", "Dummy.dummy@native", NATIVE, NATIVE),
        ("scenario", "Dummy.dummy@rally", RALLY, RALLY),
        ("scenario", "Dummy.dummy@default", RALLY, RALLY),
        ("scenario", "Dummy.openstack", RALLY, RALLY),
        ("sla", "failure_rate", NATIVE, RALLY),
        ("sla", "percentile", NATIVE, NATIVE),
        ("hook", "sys_call@rally", RALLY, RALLY),
        ("trigger", "event", NATIVE, RALLY),
        ("runner", "constant", NATIVE, NATIVE),
        ("context", "dummy_context", NATIVE, RALLY),
        ("context", "stacks@openstack", RALLY, RALLY),
    ],
)
def test_who_is_meant(kind, name, by_default, preferring_rally):
    assert look(Plugins(), kind, name) == by_default
    assert look(Plugins(prefer=RALLY), kind, name) == preferring_rally


@pytest.mark.usefixtures("rally")
@pytest.mark.parametrize(
    ("name", "for_ours", "for_rallys"),
    [
        ("dummy_context", "dummy_context@native", "dummy_context@default"),
        ("dummy_context@default", "dummy_context@native", "dummy_context@default"),
        ("dummy_context@rally", "dummy_context@default", "dummy_context@default"),
        ("dummy_context@native", "dummy_context@native", "dummy_context@native"),
        ("stacks", "stacks@openstack", "stacks@openstack"),
    ],
)
def test_contexts_go_with_the_scenario_they_are_for(name, for_ours, for_rallys):
    plugins = Plugins()
    ours, rallys = plugins.scenario("Dummy.dummy"), plugins.scenario("Dummy.openstack")

    assert plugins.find("context", name, beside=ours).address == for_ours
    assert plugins.find("context", name, beside=rallys).address == for_rallys


@pytest.mark.usefixtures("rally")
def test_an_address_means_the_same_whoever_is_preferred():
    for plugins in (Plugins(), Plugins(prefer=RALLY)):
        for name in ("Dummy.dummy@native", "Dummy.dummy@rally", "Dummy.openstack"):
            found = plugins.scenario(name)
            again = Plugins().scenario(found.address)
            assert (again.cls, again.source) == (found.cls, found.source)


def test_rally_is_not_imported_for_what_is_ours():
    code = (
        "import sys; from osbench.common.plugin.plugins import Plugins; p = Plugins();"
        "p.scenario('Dummy.dummy'); p.get('context', 'dummy_context'); p.get('sla', 'outliers');"
        "print('rally' in sys.modules)"
    )

    printed = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True)

    assert printed.stdout.decode().strip() == "False"


THEIRS = '''
from {beside} import PAUSE
from rally.task import scenario

@scenario.configure(name="{name}")
class Theirs(scenario.Scenario):
    """Theirs, from a file."""
    def run(self, pause=PAUSE):
        pass
'''
OURS = '''
from osbench.plugin import scenario

class {cls}(scenario.Scenario):
    @scenario.configure()
    def one(self):
        """Ours, from a file."""
'''


@pytest.mark.usefixtures("rally")
def test_a_folder_of_rally_plugins_with_other_files(tmp_path: Path):
    (tmp_path / "names_beside.py").write_text("PAUSE = 0.5\n")
    (tmp_path / "theirs.py").write_text(THEIRS.format(beside="names_beside", name="Theirs.one"))
    plugins = Plugins([str(tmp_path)])

    found = plugins.scenario("Theirs.one")

    assert (found.source, found.title) == (RALLY, "Theirs, from a file.")
    assert "Theirs.one@default" in plugins.source(RALLY).titles("scenario")
    assert "Theirs.one" not in plugins.scenario_names()


@pytest.mark.usefixtures("rally")
def test_a_folder_with_plugins_of_both(tmp_path: Path):
    (tmp_path / "theirs.py").write_text(THEIRS.format(beside="json", name="Both.two"))
    text = (tmp_path / "theirs.py").read_text().replace("from json import PAUSE", "PAUSE = 1")
    (tmp_path / "theirs.py").write_text(text)
    (tmp_path / "ours.py").write_text(OURS.format(cls="Both"))
    plugins = Plugins([str(tmp_path)])

    assert plugins.scenario("Both.one").source == NATIVE
    assert plugins.scenario("Both.two").source == RALLY


@pytest.mark.dear
@pytest.mark.usefixtures("rally")
def test_plugins_that_rally_finds_by_itself(tmp_path: Path):
    text = THEIRS.replace("from {beside} import PAUSE", "PAUSE = 1")
    package = tmp_path / "site" / "team_plugins"
    installed = tmp_path / "site" / "team_plugins-1.0.dist-info"
    at_home = tmp_path / ".rally" / "plugins"
    for folder in (package, installed, at_home):
        folder.mkdir(parents=True)
    (package / "__init__.py").write_text("")
    (package / "own.py").write_text(text.format(name="Package.own"))
    (installed / "METADATA").write_text("Metadata-Version: 2.1\nName: team_plugins\nVersion: 1.0\n")
    (installed / "entry_points.txt").write_text("[rally_plugins]\npath = team_plugins\n")
    (at_home / "own.py").write_text(text.format(name="Home.own"))
    code = (
        "from osbench.common.plugin.plugins import Plugins; p = Plugins();"
        "print([p.scenario(name).source for name in ('Package.own', 'Home.own')])"
    )

    printed = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", code],
        check=False,
        capture_output=True,
        env=os.environ | {"HOME": str(tmp_path)} | import_path(tmp_path / "site"),
    )

    assert printed.stdout.decode().strip() == "['rally', 'rally']", printed.stderr.decode()


@pytest.mark.usefixtures("rally")
def test_what_rally_says_of_docstrings_is_silent_and_nothing_else(
    caplog: pytest.LogCaptureFixture,
):
    titles = Plugins().source(RALLY).titles("scenario")
    logging.getLogger("rally.task.scenario").warning("something else")

    assert "ManilaShares.create_share_then_allow_and_deny_access@openstack" in titles
    assert caplog.messages == ["something else"]


@pytest.mark.usefixtures("rally")
def test_a_rally_plugin_that_cannot_be_imported_says_why_each_time(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
):
    (tmp_path / "broken.py").write_text(THEIRS.format(beside="nowhere_at_all", name="Broken.one"))
    plugins = Plugins([str(tmp_path)])

    for _ in range(2):
        with pytest.raises(
            PluginError,
            match=r"no scenario 'Broken.one', .*broken\.py:\d: ModuleNotFoundError: No module",
        ):
            plugins.scenario("Broken.one")
    assert not caplog.messages
    plugins.warn()
    assert [text.removeprefix("plug-in file ") for text in caplog.messages] == plugins.faults()
    assert plugins.scenario("Dummy.dummy@rally").source == RALLY
    assert plugins.scenario("Dummy.dummy").source == NATIVE
