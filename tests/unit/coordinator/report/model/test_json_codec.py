"""Dataclasses as JSON values and back."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import pytest

from helpers.older_summaries import NAMES, older_summary
from osbench.common.errors import DamagedRun
from osbench.coordinator.report.model.json_codec import OMITTED, from_json, to_json
from osbench.coordinator.report.model.model import Report


@dataclass(frozen=True, kw_only=True)
class Leaf:
    """A part."""

    size: int
    word: str = "none"


@dataclass(frozen=True, kw_only=True)
class Tree:
    """A whole."""

    name: str = ""
    leaf: Leaf | None = None
    leaves: tuple[Leaf, ...] = ()
    by_name: Mapping[str, Leaf] = field(default_factory=dict)
    bounds: tuple[float | None, ...] | None = None
    anything: Any = None
    remark: str | None = field(default=None, metadata=OMITTED)


def test_all_comes_back() -> None:
    tree = Tree(
        name="oak",
        leaf=Leaf(size=1),
        leaves=(Leaf(size=2, word="two"),),
        by_name={"three": Leaf(size=3)},
        bounds=(0.5, None),
        anything={"deep": [1, {"er": None}]},
        remark="old",
    )

    assert from_json(Tree, to_json(tree)) == tree


def test_keys_are_in_the_order_of_the_fields_and_an_omitted_one_needs_a_value() -> None:
    assert list(to_json(Tree())) == ["name", "leaf", "leaves", "by_name", "bounds", "anything"]
    assert to_json(Tree(remark=""))["remark"] == ""


def test_what_is_absent_or_null_gets_its_default_and_what_is_unknown_is_dropped() -> None:
    found = from_json(Tree, {"leaf": {"size": 4, "colour": "red"}, "leaves": None, "roots": 7})

    assert found == Tree(leaf=Leaf(size=4, word="none"))


@pytest.mark.parametrize(
    ("document", "problem"),
    [
        ({"leaf": {}}, "leaf: expected size in Leaf"),
        ({"leaf": 3}, r"leaf: expected an object \(Leaf\), found 3"),
        ({"leaves": "ab"}, "leaves: expected an array, found 'ab'"),
        ({"by_name": []}, r"by_name: expected an object, found \[\]"),
        ("x" * 99, "expected an object .*'x{39}\\.\\.\\.$"),
    ],
)
def test_another_shape_is_named_with_its_place(document: Any, problem: str) -> None:
    with pytest.raises(ValueError, match=problem):
        from_json(Tree, document)


def test_a_summary_with_parts_of_another_shape_is_damaged() -> None:
    document = older_summary("0.1.0")
    document["workloads"][0]["latency"]["service"] = "fast"

    with pytest.raises(DamagedRun, match=r"of run 2026.* is damaged: .* found 'fast'") as caught:
        Report.from_json(document)

    assert str(caught.value).startswith("summary.json of run ")
    assert "--damaged" not in str(caught.value)


@pytest.mark.parametrize("name", NAMES)
def test_summaries_of_older_releases_keep_all_that_they_have(name: str) -> None:
    document = older_summary(name)

    found = Report.from_json(document).to_json()

    assert _cut(found, document) == document


def _cut(whole: Any, part: Any) -> Any:
    """What stands at the places of `part`."""
    if isinstance(part, dict):
        return {key: _cut(whole[key], inner) for key, inner in part.items()}
    if isinstance(part, list):
        return [_cut(*pair) for pair in zip(whole, part, strict=True)]
    return whole


@pytest.mark.parametrize("document", [{}, {"workloads": None}, {"workloads": [5]}])
def test_a_summary_without_workloads_is_damaged(document):
    with pytest.raises(DamagedRun, match="is damaged"):
        Report.from_json({"run_id": "r", **document})


@pytest.mark.parametrize(
    ("document", "where"),
    [
        ({"name": 1}, "name: expected a text, found 1"),
        ({"leaf": {"size": "4"}}, "leaf: size: expected a number, found '4'"),
        ({"leaf": {"size": True}}, "leaf: size: expected a number, found True"),
        ({"leaf": {"size": float("nan")}}, "leaf: size: expected a number, found nan"),
        ({"leaves": [{"size": 1}, {"size": []}]}, "leaves: size: expected a number"),
        ({"bounds": [0.5, "x"]}, "bounds: expected a number, found 'x'"),
    ],
)
def test_a_plain_value_of_another_type_is_refused_by_its_name(
    document: dict[str, Any], where: str
) -> None:
    with pytest.raises(ValueError) as caught:
        from_json(Tree, document)

    assert where in str(caught.value)
