"""Each rule of the product is needed: without it something breaks that else does not."""

from __future__ import annotations

import pytest

from world.__main__ import shown
from world.mutants import MUTANTS, without
from world.seeds import IN_SCENES, SHOWN

#: How many schedules are tried from the seed of a rule.
TRIED = 40


@pytest.mark.parametrize("name", SHOWN)
def test_a_schedule_breaks_without_the_rule(name: str) -> None:
    first = SHOWN[name]

    assert shown(name, range(first, first + TRIED)), f"make world WITHOUT={name}"


@pytest.mark.parametrize("name", IN_SCENES)
def test_a_scene_breaks_without_the_rule(name: str) -> None:
    scene, behind = IN_SCENES[name], MUTANTS[name].behind

    with without(name, *behind), pytest.raises(AssertionError):
        scene()
    with without(*behind):
        scene()


def test_every_rule_is_shown_or_says_why_not() -> None:
    unseen = {name for name, rule in MUTANTS.items() if rule.unseen}

    assert set(SHOWN) | set(IN_SCENES) | unseen == set(MUTANTS)
    assert len(SHOWN) + len(IN_SCENES) + len(unseen) == len(MUTANTS)
