"""The world that is played now, for what the product reaches through modules."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from world.fibers import Fiber, Scheduler
    from world.world import World

#: None before the first one.
WORLD: World | None = None
_SCHEDULER: Scheduler | None = None


def begin(scheduler: Scheduler) -> None:
    """Make a scheduler the present one."""
    global _SCHEDULER  # noqa: PLW0603 - one is played at a time
    _SCHEDULER = scheduler


def scheduler() -> Scheduler:
    """The present one."""
    assert _SCHEDULER is not None, "no world has begun"
    return _SCHEDULER


def fiber() -> Fiber | None:
    """The fiber that runs; None where the world itself does."""
    return None if _SCHEDULER is None else _SCHEDULER.current


def world() -> World:
    """The present world."""
    assert WORLD is not None
    return WORLD
