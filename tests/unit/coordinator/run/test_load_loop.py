"""The loop over workloads goes on where Redis is away for a moment, before the load too."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from osbench.common.errors import StoreAway, StoreLost
from osbench.coordinator.run.load_loop import Concert


class Player:
    """A conductor whose steps are noted, and that needs one look at heartbeats to be ready."""

    def __init__(self) -> None:
        self.steps: list[str] = []
        self.crew = SimpleNamespace(ready=False)

    def prepare(self) -> None:
        self.steps.append("prepare")

    def gather(self) -> None:
        self.steps.append("gather")
        self.crew.ready = True

    def start(self, t0_at: float) -> None:
        self.steps.append("start")

    def turn(self, *, poll: bool) -> None:
        self.steps.append("turn")

    def elapsed(self) -> float:
        return 0.0

    def finished(self) -> bool:
        return "turn" in self.steps

    def settle(self) -> None:
        self.steps.append("settle")

    def end_hooks(self) -> None:
        self.steps.append("end")

    def show(self) -> None:
        """Nobody looks."""


class Failing:
    """A step that fails so often."""

    def __init__(self, step: Any, times: int) -> None:
        self._step = step
        self.left = times

    def __call__(self, *args: Any, **fields: Any) -> Any:
        if self.left:
            self.left -= 1
            raise StoreAway("Redis does not answer")
        return self._step(*args, **fields)


def nothing(*args: Any) -> None:
    """A step that does not matter here."""


def state(boot: str = "b") -> Any:
    return SimpleNamespace(
        reader=SimpleNamespace(take_in=nothing),
        fleet=SimpleNamespace(poll=nothing, members={}),
        controls=SimpleNamespace(change=nothing),
        channel=SimpleNamespace(trim=nothing, behind=False, untrimmed=0, broker_away_s=0.0),
        offset=SimpleNamespace(now_s=lambda: 0.0),
        interruption=SimpleNamespace(level=0),
        check=nothing,
        greet=lambda: boot,
        boot="b",
        away=False,
        patience_s=60.0,
    )


@pytest.mark.parametrize("where", ["prepare", "poll", "start", "turn"])
def test_a_moment_without_redis_changes_nothing(where):
    run, player = state(), Player()
    owner = run.fleet if where == "poll" else player
    failing = Failing(getattr(owner, where), 2 if where != "start" else 1)
    setattr(owner, where, failing)

    Concert(run, [player]).run()

    assert not failing.left
    assert not run.away
    assert player.steps[0] == "prepare"
    assert player.steps[-3:] == ["turn", "settle", "end"]


def test_another_redis_before_the_load_ends_the_run():
    run, player = state("another"), Player()
    run.fleet.poll = Failing(run.fleet.poll, 1)

    with pytest.raises(StoreLost, match="restarted"):
        Concert(run, [player]).run()

    assert "start" not in player.steps
