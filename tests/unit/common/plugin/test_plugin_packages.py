"""Plug-in files within a package: relative imports, and imports of the package by its name."""

from __future__ import annotations

import hashlib
import re
import sys
from pathlib import Path

import pytest

from osbench.common.errors import PluginError
from osbench.common.plugin.plugins import Plugins

SCENARIO = """
from osbench.plugin import scenario

class {name}(scenario.Scenario):
    WORD = WORD

    @scenario.configure(name="{name}.go")
    def go(self):
        pass
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with a package of a name that no other test uses."""
    name = f"shop_{hashlib.sha256(str(tmp_path).encode()).hexdigest()[:8]}"
    return tmp_path / name


def written(folder: Path, **files: str) -> Path:
    """Write the files of a package; `__` in a name stands for a slash."""
    for name, text in {"__init__": "", "helpers": "WORD = 'hello'\n", **files}.items():
        path = folder / f"{name if name == '__init__' else name.replace('__', '/')}.py"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return folder


def scenario(name: str, head: str) -> str:
    return head + SCENARIO.format(name=name)


@pytest.mark.parametrize("whole", [True, False])
def test_a_folder_that_is_a_package_loads_and_so_does_a_file_of_it(
    folder: Path, whole: bool
) -> None:
    written(
        folder,
        relative=scenario("Rel", "from .helpers import WORD"),
        absolute=scenario("Abs", f"from {folder.name}.helpers import WORD"),
        plain=scenario("Plain", "WORD = 'hello'"),
    )
    (folder / "sub").mkdir()
    (folder / "sub" / "__init__.py").write_text("")
    (folder / "sub" / "deep.py").write_text(scenario("Deep", "from ..helpers import WORD"))
    files = ("relative", "absolute", "plain", "sub/deep")
    paths = [str(folder)] if whole else [str(folder / f"{name}.py") for name in files]

    plugins = Plugins(paths)

    for name in ("Rel.go", "Abs.go", "Plain.go", "Deep.go"):
        assert plugins.scenario(name).cls.WORD == "hello"  # type: ignore[attr-defined]
    assert plugins.reasons() == []


def test_a_package_that_imports_its_plug_ins_itself_has_each_once(folder: Path) -> None:
    written(
        folder,
        __init__="from .base import Base\nfrom .one import One\n",
        base="WORD = 1\nclass Base: pass\n",
        one=scenario("One", "from .base import WORD, Base")
        + "    def base(self): return isinstance(self, Base)\n",
    )

    plugins = Plugins([str(folder)])

    assert plugins.scenario("One.go").cls is sys.modules[f"{folder.name}.one"].One


def test_a_helper_is_one_module_for_all_files_of_a_package(folder: Path) -> None:
    written(
        folder,
        helpers="class Word: pass\nWORD = Word()\n",
        a=scenario("A", "from .helpers import WORD"),
        b=scenario("B", f"import {folder.name}.helpers\nWORD = {folder.name}.helpers.WORD"),
        c=scenario("C", f"import {folder.name}.a\nWORD = {folder.name}.a.WORD"),
    )

    plugins = Plugins([str(folder)])

    words = {id(plugins.scenario(f"{name}.go").cls.WORD) for name in "ABC"}  # type: ignore[attr-defined]
    assert len(words) == 1


def test_the_hash_covers_the_package(folder: Path) -> None:
    written(folder, a=scenario("A", "from .helpers import WORD"))
    before = Plugins([str(folder / "a.py")]).scenario("A.go").source_hash

    (folder / "helpers.py").write_text("WORD = 'other'\n")
    after = Plugins([str(folder / "a.py")]).scenario("A.go")

    assert after.source_hash != before
    assert after.cls.WORD == "other"  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("files", "said"),
    [
        (
            {"a": "from .nothing import X\n"},
            "a.py:1: ModuleNotFoundError: No module named '{}.",
        ),
        ({"__init__": "boom\n", "a": "from . import helpers\n"}, "__init__.py:1: NameError"),
        ({"__init__": "import sys; sys.exit(3)\n", "a": "from . import b\n"}, "__init__.py:1: "),
    ],
)
def test_what_fails_is_told_with_its_place(folder: Path, files: dict[str, str], said: str) -> None:
    written(folder, **files)

    with pytest.raises(PluginError, match=said.format(folder.name)):
        Plugins([str(folder / "a.py")]).scenario("A.go")


def test_a_relative_import_without_a_package_is_told_what_to_do(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("from .helpers import WORD\n")

    with pytest.raises(PluginError, match=re.escape("put an __init__.py into its folder")):
        Plugins([str(tmp_path / "a.py")]).scenario("A.go")


def test_a_package_with_the_name_of_an_installed_one_is_told(tmp_path: Path) -> None:
    folder = written(tmp_path / "json", a=scenario("A", "from .helpers import WORD"))

    with pytest.raises(PluginError, match="its package json has the name of another one"):
        Plugins([str(folder / "a.py")]).scenario("A.go")
