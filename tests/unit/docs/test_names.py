"""No function of a module is named by a lone participle: its name says the act or the result."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from helpers.readme import REPOSITORY

FOLDERS = ("common", "worker", "coordinator", "edges", "src/osbench/plugin")
#: Ends like a participle, and is a verb or a noun.
REGULAR = re.compile(r"(?!(?:embed|exceed|feed|need|proceed|seed|speed)$)[a-z]+ed")
IRREGULAR = re.compile(
    r"(?:un|mis|over)?(?:begun|borne?|bought|bound|broken|brought|built|caught|chosen|cut|dealt"
    r"|done|drawn|driven|fallen|fed|felt|forgotten|found|frozen|given|gone|got|grown|heard|held"
    r"|hidden|kept|known|laid|led|left|lent|lost|made|meant|met|paid|put|read|ridden|risen|run|said"
    r"|seen|sent|set|shown|shut|sold|sought|spent|split|spoilt|spoken|stolen|sunk|swept|sworn|taken"
    r"|thought|thrown|told|torn|understood|woken|won|worn|wound|woven|written)"
)
#: Adverbs and prepositions that stood for a result, too.
OTHERS = {"instead", "within"}

PLUGIN = "part of the interface for authors of plug-ins"
EXCEPTIONS = {
    "common/text/escaping.py: escaped": PLUGIN,
    "common/files/named_files.py: expanded": PLUGIN,
    "common/plugin/runner.py: split": f"{PLUGIN}, and a verb",
    "common/protocol/redis_keys.py: run": "a noun: the key of a run, beside `worker` and `offer`",
    "coordinator/formatting.py: spaced": "an adjective: `duration` with a space, for running text",
    "coordinator/front/cli/commands/run.py: run": "a verb: the name of the command",
    "coordinator/results/statistics/action_paths.py: unknown": PLUGIN,
    "edges/openstack/common/neutron.py: listed": PLUGIN,
    "edges/openstack/common/object_lists.py: sought": PLUGIN,
}


def is_lone_participle(name: str) -> bool:
    word = name.strip("_")
    return bool(REGULAR.fullmatch(word) or IRREGULAR.fullmatch(word) or word in OTHERS)


def lone_participles(root: Path) -> Iterator[str]:
    """Yield `PATH: NAME` for each function of a module whose name is one."""
    for folder in FOLDERS:
        for path in sorted((root / folder).rglob("*.py")):
            for node in ast.parse(path.read_text("utf-8")).body:
                if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                    continue
                if is_lone_participle(node.name):
                    yield f"{path.relative_to(root)}: {node.name}"


def test_functions_are_named_by_their_act_or_their_result() -> None:
    assert set(lone_participles(REPOSITORY)) - EXCEPTIONS.keys() == set()


def test_every_exception_is_there() -> None:
    assert EXCEPTIONS.keys() - set(lone_participles(REPOSITORY)) == set()


@pytest.mark.parametrize(
    "name", ["_made", "_asked", "checked", "unknown", "_misread", "_instead", "_read", "overridden"]
)
def test_lone_participles_are_seen(tmp_path: Path, name: str) -> None:
    path = tmp_path / "worker" / "http" / "images.py"
    path.parent.mkdir(parents=True)
    path.write_text(f"async def {name}(image):\n    pass\n", "utf-8")

    assert list(lone_participles(tmp_path)) == [f"worker/http/images.py: {name}"]


@pytest.mark.parametrize(
    "name", ["_delete_images", "masked_text", "_is_allowed", "send", "seed", "_need", "overrun_s"]
)
def test_verbs_and_nouns_are_no_participles(name: str) -> None:
    assert not is_lone_participle(name)
