"""Pages on the code name what is there, and the code keeps to the structure they describe."""

from __future__ import annotations

import ast
import configparser
import functools
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

from helpers.readme import REPOSITORY, text

PAGE = "docs/architecture.md"
#: Pages that name functions, classes and files of the code.
PAGES = (PAGE, "docs/accounting.md")
FOLDERS = ("common", "worker", "coordinator", "edges")
#: Lines of a page that is read at a glance.
SCREEN = 50
#: Attributes that are read of an object one after another, at most.
DEPTH = 2
#: Every chain that is too long looks like this, outside of imports.
LONG = re.compile(r"\w\s*\.\s*\w+\s*\.\s*\w+\s*\.\s*\w")
IMPORTS = re.compile(r"^\s*(?:from|import)\s.*$", re.M)

FUNCTION = ast.FunctionDef | ast.AsyncFunctionDef


def modules() -> list[Path]:
    return [
        path.relative_to(REPOSITORY)
        for folder in FOLDERS
        for path in sorted((REPOSITORY / folder).rglob("*.py"))
    ]


def section(title: str) -> str:
    """The part of the page under a heading, to the next heading of its level."""
    level = title.split(maxsplit=1)[0]
    found = re.search(rf"^{re.escape(title)}$(.*?)(?=^{level} |^## |\Z)", text(PAGE), re.M | re.S)
    assert found, title
    return found.group(1)


def named(part: str) -> list[tuple[str, str]]:
    """Each `module.py`: `name`, `name` of a part of the page."""
    pairs = []
    for path, names in re.findall(r"`([\w/]+\.py)`: ((?:`[\w.]+`(?:, )?)+)", part):
        pairs += [(path, name) for name in re.findall(r"`([\w.]+)`", names)]
    return pairs


@functools.cache
def defined(path: str) -> set[str]:
    """Functions and classes of a module; methods as Class.method."""
    tree = ast.parse((REPOSITORY / path).read_text("utf-8"))
    found = set()
    for node in tree.body:
        if isinstance(node, FUNCTION | ast.ClassDef):
            found.add(node.name)
        if isinstance(node, ast.ClassDef):
            inner = (one for one in node.body if isinstance(one, FUNCTION))
            found.update(f"{node.name}.{one.name}" for one in inner)
    return found


@pytest.mark.parametrize("page", PAGES)
def test_functions_that_a_page_names_are_there(page: str) -> None:
    pairs = named(text(page))

    assert len(pairs) > 15
    for path, name in pairs:
        assert name in defined(path), f"{path} has no {name}"


@pytest.mark.parametrize(
    "title", ["### A result block", "### A lost worker", "### A finished workload"]
)
def test_each_path_is_read_in_three_modules_at_most(title: str) -> None:
    table = "\n".join(line for line in section(title).splitlines() if line.startswith("|"))
    paths = {path for path, _ in named(table)}

    assert 2 <= len(paths) <= 3, paths


@pytest.mark.parametrize("page", PAGES)
def test_classes_that_a_page_names_are_there(page: str) -> None:
    spans = re.findall(r"`([A-Z]\w*[a-z]\w*)(?:\.\w+)*`", text(page))

    assert len(spans) > 10
    code = "\n".join((REPOSITORY / path).read_text("utf-8") for path in modules())
    # or names of types
    there = re.findall(r"^(?:class )?([A-Z]\w+)(?=[(:\[]| = )", code, re.M)
    assert set(spans) - set(there) == set()


@pytest.mark.parametrize("page", PAGES)
def test_files_and_folders_that_a_page_names_are_there(page: str) -> None:
    spans = re.findall(r"`((?:common|worker|coordinator|edges|src)/[^`]*)`", text(page))

    assert spans
    for span in spans:
        braces = re.search(r"\{([^}]*)\}", span)
        names = braces.group(1).split(",") if braces else [""]
        for name in names:
            path = re.sub(r"\{[^}]*\}", name, span)
            assert (REPOSITORY / path).exists(), path


def test_every_edge_has_a_readme_that_names_its_entry_points() -> None:
    declared = configparser.ConfigParser(interpolation=None)
    declared.optionxform = str  # type: ignore[assignment, method-assign]
    declared.read(REPOSITORY / "setup.cfg")
    edges = [path for path in (REPOSITORY / "edges").iterdir() if (path / "__init__.py").exists()]

    assert edges
    for edge in edges:
        readme = (edge / "README.md").read_text("utf-8")
        assert len(readme.splitlines()) <= SCREEN, edge.name
        groups = {
            group
            for group, lines in declared["options.entry_points"].items()
            if f"osbench.edges.{edge.name}." in lines
        }
        assert groups, edge.name
        for group in groups:
            assert f"`{group}`" in readme, (edge.name, group)
        assert f"tests/edges/{edge.name}" in readme


def test_the_wire_is_forbidden_to_every_edge() -> None:
    """`edges/traces/sources` alone reads a Redis: the store of OSProfiler."""
    settings = tomllib.loads((REPOSITORY / "pyproject.toml").read_text("utf-8"))
    (contract,) = (
        one
        for one in settings["tool"]["importlinter"]["contracts"]
        if "know the wire" in one["name"]
    )
    forbidden = {name.split(".")[2] for name in contract["source_modules"] if ".edges." in name}

    assert forbidden == {path.parent.name for path in (REPOSITORY / "edges").glob("*/__init__.py")}


def test_the_page_lists_the_packages_that_import_clients_of_redis_and_celery() -> None:
    client = re.compile(r"^\s*(?:from|import) (?:celery|kombu|redis)\b", re.M)
    importing = {
        str(path.parent)
        for path in modules()
        if client.search((REPOSITORY / path).read_text("utf-8"))
    }
    sentence = text(PAGE).partition("\nClients of Redis or Celery are imported only by ")[2]

    assert set(re.findall(r"`([\w/]+)`", sentence.partition("\n\n")[0])) == importing


def test_every_folder_says_what_it_is_for() -> None:
    for folder in {path.parent for path in modules()}:
        docstring = ast.get_docstring(ast.parse((REPOSITORY / folder / "__init__.py").read_text()))
        assert docstring, folder


def test_two_modules_give_redis_the_commands_of_runs() -> None:
    """The others have a `Wire` or a `Store`; clients are checked, and the doctor asks servers."""
    speaking = [
        str(path)
        for path in modules()
        if re.search(r"with [^\n]*\btranslating_errors\(", (REPOSITORY / path).read_text("utf-8"))
    ]

    assert speaking == [
        "common/protocol/redis_client.py",
        "common/protocol/store.py",
        "common/protocol/wire.py",
        "coordinator/front/doctor/redis_checks.py",
    ]


def test_the_top_of_the_coordinator_holds_what_has_no_package() -> None:
    here = {path.name for path in modules() if path.parent == Path("coordinator")}

    assert here == {"__init__.py", "main.py", "formatting.py", "text_table.py"}


def test_the_coordinator_has_few_rooms_and_each_has_few() -> None:
    """Three to nine names a level; the modules of a room are apart from that."""
    for folder in (REPOSITORY / "coordinator", *(REPOSITORY / "coordinator").iterdir()):
        rooms = list(folder.glob("*/__init__.py")) if folder.is_dir() else []
        assert len(rooms) <= 9, folder


def chains(path: Path) -> Iterator[tuple[int, str]]:
    """Attributes of attributes of an object, each with its line; a method's call is not one."""
    source = (REPOSITORY / path).read_text("utf-8")
    if not LONG.search(IMPORTS.sub("", source)):
        return
    imported: set[str] = set()
    outermost: list[tuple[ast.AST, ast.Attribute]] = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import | ast.ImportFrom):
            imported.update((one.asname or one.name).partition(".")[0] for one in node.names)
        elif not isinstance(node, ast.Attribute):
            outermost += [
                (node, inner)
                for inner in ast.iter_child_nodes(node)
                if isinstance(inner, ast.Attribute)
            ]
    for parent, node in outermost:
        names, inner = [], node
        while isinstance(inner, ast.Attribute):
            names.append(inner.attr)
            inner = inner.value
        if not isinstance(inner, ast.Name) or inner.id in imported:
            continue
        names.append(inner.id)
        names.reverse()
        own = names[0] == "self"
        called = isinstance(parent, ast.Call) and parent.func is node
        # configuration is data: a group and an option of it
        if "conf" not in names and len(names) - 1 - own - called > DEPTH:
            yield node.lineno, ".".join(names)


def test_no_module_reaches_far_into_objects_of_others() -> None:
    paths = modules()

    assert len(paths) > 500
    assert [f"{path}:{line}: {far}" for path in paths for line, far in chains(path)] == []


def test_a_chain_that_is_too_long_is_found(tmp_path: Path) -> None:
    path = tmp_path / "module.py"
    path.write_text("def f(a):\n    a.b.c.d()\n    return a.conf.c.d.e, a.b.c.d\n")

    assert list(chains(path)) == [(3, "a.b.c.d")]


def test_a_class_name_means_one_thing() -> None:
    found: dict[str, list[Path]] = {}
    for path in modules():
        for name in re.findall(r"^class (\w+)", (REPOSITORY / path).read_text("utf-8"), re.M):
            found.setdefault(name, []).append(path)

    assert len(found) > 500
    assert {name: paths for name, paths in found.items() if len(paths) > 1} == {}


def test_a_module_name_means_one_thing() -> None:
    """But for modules of commands, and a module that has its package's name."""
    found: dict[str, set[Path]] = {}
    for path in modules():
        if path.parent.name in ("commands", path.stem):
            continue
        if path.stem not in ("__init__", "__main__", "main"):
            found.setdefault(path.stem, set()).add(path)

    assert {name: paths for name, paths in found.items() if len(paths) > 1} == {}
