"""User-seconds that were asked for and that no worker had."""

from __future__ import annotations

from collections.abc import Iterable

from osbench.coordinator.fleet.worker import Member


class Shortfall:
    """Adds up, for one workload of a closed runner, what its workers lacked in users."""

    def __init__(self) -> None:
        self.user_s = 0.0
        self._until_s = 0.0
        self._mourned: set[str] = set()

    def count(self, elapsed_s: float, missing: int, *, asked: bool) -> None:
        """Since the last call so many users were missing; `asked`: there was work for them."""
        since_s = elapsed_s - max(0.0, self._until_s)
        self._until_s = elapsed_s
        if asked and since_s > 0:
            self.user_s += since_s * max(0, missing)

    def mourn(self, members: Iterable[Member], elapsed_s: float, stop_s: float | None) -> list[str]:
        """Users of those given up since the last call were missing since they fell silent.

        Answers a sentence on each.
        """
        found = []
        for member in members:
            if not member.fenced or member.incarnation in self._mourned:
                continue
            self._mourned.add(member.incarnation)
            silent_s = max(0.0, elapsed_s - member.silence_s)
            until_s = elapsed_s if stop_s is None else min(elapsed_s, stop_s)
            self.user_s += member.lost_share * max(0.0, until_s - silent_s)
            what = "sent results that cannot be read" if member.garbled else "fell silent"
            found.append(
                f"worker {member.beat.host}:{member.beat.pid} {what} {silent_s:.0f} s into the "
                f"load and was given up {elapsed_s - silent_s:.0f} s later"
            )
        return found
