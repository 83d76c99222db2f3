"""Plug-in files that take long to import, or that patch what this process lives on."""

from __future__ import annotations

import sys
import time
from pathlib import Path

import pytest

from osbench.common.errors import PluginError
from osbench.common.plugin.loading.slow_import import told_if_slow
from osbench.common.plugin.plugins import Plugins
from servers.child import PATIENCE_S

#: What osbench uses of gevent, as gevent 24 has it.
GEVENT = {
    "__init__.py": "",
    "events.py": """
subscribers = []
class GeventWillPatchAllEvent: pass
""",
    "monkey.py": """
from gevent import events
patched = False
def patch_all():
    global patched
    for one in events.subscribers:
        one(events.GeventWillPatchAllEvent())
    patched = True
""",
}
EVENTLET = {
    "__init__.py": "from eventlet import patcher\nmonkey_patch = patcher.monkey_patch\n",
    "patcher.py": "already_patched = {}\ndef monkey_patch(): already_patched['socket'] = True\n",
}


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Write a package that can be imported."""
    monkeypatch.syspath_prepend(str(tmp_path / "site"))

    def write(name: str, files: dict[str, str]) -> None:
        (tmp_path / "site" / name).mkdir(parents=True)
        for file, text in files.items():
            (tmp_path / "site" / name / file).write_text(text)

    yield write
    for name in [one for one in sys.modules if one.partition(".")[0] in ("gevent", "eventlet")]:
        del sys.modules[name]


@pytest.mark.parametrize(
    "imported", ["from gevent import monkey", "import gevent.monkey as monkey"]
)
def test_patches_of_gevent_are_refused_before_they_are_made(package, tmp_path, imported) -> None:
    package("gevent", GEVENT)
    (tmp_path / "a.py").write_text(f"{imported}\nmonkey.patch_all()\n")

    with pytest.raises(PluginError, match=r"a\.py:2: PatchRefused: monkey patches of gevent"):
        Plugins([str(tmp_path / "a.py")]).scenario("A.go")

    assert sys.modules["gevent.monkey"].patched is False


def test_patches_of_eventlet_are_refused(package, tmp_path) -> None:
    package("eventlet", EVENTLET)
    (tmp_path / "a.py").write_text("import eventlet\neventlet.monkey_patch()\n")

    with pytest.raises(PluginError, match=r"a\.py.*monkey patches of eventlet are refused"):
        Plugins([str(tmp_path / "a.py")]).scenario("A.go")


def test_packages_that_patch_nothing_may_be_imported(package, tmp_path) -> None:
    package("gevent", GEVENT)
    package("eventlet", EVENTLET)
    (tmp_path / "a.py").write_text("import eventlet, gevent, gevent.monkey\n")

    assert Plugins([str(tmp_path / "a.py")]).faults() == []


class Waiting:
    """Stands for an import: takes until its slowness was told."""

    def __init__(self, caplog: pytest.LogCaptureFixture) -> None:
        self.caplog = caplog

    def wait(self, times: int) -> None:
        deadline = time.monotonic() + PATIENCE_S
        while len(self.caplog.records) < times:
            assert time.monotonic() < deadline


def test_an_import_that_takes_long_is_told_with_its_line(caplog) -> None:
    with told_if_slow(__file__, after_s=0.001):
        Waiting(caplog).wait(2)

    said = [record.getMessage() for record in caplog.records]
    assert said[0].startswith(f"plug-in file {__file__}:")
    assert said[0].endswith("its import takes longer than 0.001 s")
    assert said[1].endswith("its import takes longer than 0.002 s")


def test_an_import_that_fails_ends_the_watch(caplog) -> None:
    with pytest.raises(ValueError, match="boom"), told_if_slow(__file__, after_s=3600):
        raise ValueError("boom")

    assert not caplog.records


def test_patches_that_a_package_makes_as_it_is_imported_are_refused_too(package, tmp_path) -> None:
    package("eventlet", EVENTLET)
    folder = tmp_path / "patching_package"
    folder.mkdir()
    (folder / "__init__.py").write_text(
        "import eventlet\neventlet.monkey_patch()\nfrom . import a\n"
    )
    (folder / "a.py").write_text("from . import b\n")
    (folder / "b.py").write_text("")

    with pytest.raises(PluginError, match="monkey patches of eventlet are refused"):
        Plugins([str(folder / "a.py")]).scenario("A.go")
