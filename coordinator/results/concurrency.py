"""User-seconds that a closed load asked for and that no worker provided."""

from __future__ import annotations


class MissingUsers:
    """Adds up, for one workload, the virtual users that its workers lacked."""

    def __init__(self) -> None:
        self.user_s = 0.0
        self._until_s = 0.0

    def count(self, elapsed_s: float, missing: int, *, asked: bool) -> None:
        """Since the last call `missing` users were missing; `asked`: there was work for them."""
        since_s = elapsed_s - max(0.0, self._until_s)
        self._until_s = elapsed_s
        if asked and since_s > 0:
            self.user_s += since_s * max(0, missing)

    def add_lost(self, users: int, since_s: float, until_s: float) -> None:
        """The users of a lost worker were missing from `since_s` on, seconds after t0."""
        self.user_s += users * max(0.0, until_s - since_s)
