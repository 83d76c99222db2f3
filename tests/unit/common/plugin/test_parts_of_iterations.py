"""Parts of an iteration are drawn by their weights and timed under their names."""

from __future__ import annotations

import asyncio
from collections import Counter

import pytest

from osbench.common.plugin.atomic import WIDTH
from osbench.common.plugin.scenario import Scenario


class Visitor(Scenario):
    """Looks, asks, or tries to buy."""

    def look(self) -> str:
        return "look"

    def ask(self) -> str:
        return "ask"

    def buy(self) -> str:
        raise LookupError("sold out")

    async def wait(self) -> str:
        await asyncio.sleep(0)
        return "wait"


def actions(scenario: Scenario) -> list[tuple[str, bool]]:
    """Names of the atomic actions made, and whether each failed."""
    recorder = scenario._recorder
    names = {number: name for name, number in recorder.names.ids.items()}
    rows = [recorder.actions[at : at + WIDTH] for at in range(0, len(recorder.actions), WIDTH)]
    return [(names[row[0]], bool(row[4])) for row in rows]


def test_parts_are_drawn_by_their_weights():
    visitor = Visitor({})
    drawn = Counter(visitor.one_of({visitor.look: 3, visitor.ask: 1}) for _ in range(4000))

    # 3 of 4, eleven standard deviations wide
    assert 2700 < drawn["look"] < 3300
    assert drawn["look"] + drawn["ask"] == 4000


def test_a_part_of_weight_0_is_never_made():
    visitor = Visitor({})

    assert {visitor.one_of({visitor.look: 1, visitor.buy: 0}) for _ in range(200)} == {"look"}


def test_a_part_is_an_atomic_action_of_its_name_that_fails_with_it():
    visitor = Visitor({})

    visitor.one_of({visitor.look: 1})
    with pytest.raises(LookupError, match="sold out"):
        visitor.one_of({visitor.buy: 1})

    assert actions(visitor) == [("look", False), ("buy", True)]


def test_a_coroutine_is_awaited_and_timed_to_its_end():
    visitor = Visitor({})

    assert asyncio.run(visitor.one_of({visitor.wait: 1})) == "wait"
    assert actions(visitor) == [("wait", False)]


@pytest.mark.parametrize("weights", [[], [0, 0], [2, -1]])
def test_weights_of_which_none_can_be_drawn_are_refused(weights):
    visitor = Visitor({})
    parts = dict(zip([visitor.look, visitor.buy], weights, strict=False))

    with pytest.raises(ValueError, match="weights must be 0 or more"):
        visitor.one_of(parts)


@pytest.mark.parametrize("part", ["look", None])
def test_what_is_no_method_is_named(part):
    visitor = Visitor({})

    with pytest.raises(TypeError, match=rf"needs methods, .* without \(\); got {part!r}"):
        visitor.one_of({part: 1})
