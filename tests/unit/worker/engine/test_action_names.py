"""Names of actions and checks: few enough, and plain text, for what result blocks can have."""

from __future__ import annotations

from typing import Any

import msgpack
import pytest

from osbench.common.plugin.atomic import NAME_CHARS, NAMES_LIMIT, OTHER, ActionTimer, Names
from osbench.common.plugin.scenario import CHECK_CHARS, Scenario
from osbench.worker.engine.body import _packed_outputs


class Place(str):
    """Text that is shown as another one, as members of some enumerations are."""

    __slots__ = ()

    def __str__(self) -> str:
        return "Place.SHOP"


class Nameless:
    """An object that cannot be shown."""

    def __str__(self) -> str:
        raise RuntimeError("broken")


#: What a scenario gives as a name, and what it is in results.
NAMES = [
    ("plain", "plain"),
    ("red \x1b[31m", r"red \x1b[31m"),
    ("two\nlines\tx", r"two\x0alines\x09x"),
    ("half \ud800", r"half \ud800"),
    (b"raw \xff", r"raw \xff"),
    (None, "None"),
    (7, "7"),
    (True, "True"),
    (["a"], "['a']"),
    (Place("shop"), "shop"),
    (Nameless(), "(a name that cannot be formed: RuntimeError)"),
    ("", "(no name)"),
]


def test_names_beyond_the_limit_share_one() -> None:
    names = Names()

    numbers = [names.number(f"get {item}") for item in range(NAMES_LIMIT + 50)]

    assert len(names.names) == NAMES_LIMIT + 1
    assert set(numbers[NAMES_LIMIT:]) == {names.ids[OTHER]}
    assert names.number("get 7") == 7


@pytest.mark.parametrize(("name", "plain"), NAMES)
def test_a_name_of_an_action_becomes_plain_text(name: Any, plain: str) -> None:
    scenario = Scenario({})

    for _ in range(2):
        with ActionTimer(scenario, name):
            pass

    names = scenario._recorder.names.names
    assert names == [plain]
    assert msgpack.unpackb(msgpack.packb(names)) == [plain]


@pytest.mark.parametrize(("name", "plain"), NAMES)
def test_a_name_of_a_check_becomes_plain_text(name: Any, plain: str) -> None:
    scenario = Scenario({})

    scenario.verify(name, True)
    scenario.verify(name, False)

    (packed,) = _packed_outputs(scenario._outputs) or ()
    assert msgpack.unpackb(packed)["item"] == {plain: [1, 1]}


def test_long_names_are_cut_where_they_are_given() -> None:
    scenario = Scenario({})

    scenario.verify("x" * 100_000, True)
    with ActionTimer(scenario, "x" * 100_000):
        pass

    # else the outputs of the iteration are too large, and left out
    (packed,) = _packed_outputs(scenario._outputs) or ()
    assert msgpack.unpackb(packed)["item"] == {"x" * CHECK_CHARS: [1, 0]}
    assert scenario._recorder.names.names == ["x" * NAME_CHARS]


def test_the_span_of_an_action_has_its_name_as_plain_text() -> None:
    opened = []

    class Profiler:
        def open(self, name: Any) -> int:
            opened.append(name)
            return 1

        def close(self, span: int, info: Any) -> None:
            pass

    scenario = Scenario({})
    scenario._recorder.profiler = Profiler()

    with ActionTimer(scenario, b"raw \xff"):  # type: ignore[arg-type]  # as scenarios may do
        pass

    assert opened == [r"raw \xff"]
