"""Values that the members of a group of steps see, and a login that they share."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

from osbench.common.plugin.scenario import Scenario
from osbench.worker.scenarios.flow.flow_steps import Relogin
from osbench.worker.scenarios.flow.placeholders import FilledValues


class MemberSaved(dict[str, Any]):
    """Saved values as one member sees them; `own` has the values that it saved itself."""

    def __init__(self, before: Mapping[str, Any]) -> None:
        super().__init__(before)
        self.own: dict[str, Any] = {}

    def update(self, *made: Any, **named: Any) -> None:
        """Save values of this member."""
        super().update(*made, **named)
        self.own.update(*made, **named)


class MemberValues:
    """Values of placeholders for one member: saved values as they were when the group began.

    So a member never depends on which of the others ends first.
    """

    __slots__ = ("_values", "logins", "saved")

    def __init__(self, values: FilledValues) -> None:
        self._values = values
        self.saved = MemberSaved(values["saved"])
        #: How many logins of the group its values are from.
        self.logins = 0

    def __getitem__(self, kind: str) -> Mapping[str, Any]:
        return self.saved if kind == "saved" else self._values[kind]

    def renew(self, logins: int) -> None:
        """Take the values that the user has after a login; the member's own ones stay."""
        own, self.saved = self.saved.own, MemberSaved(self._values["saved"])
        self.saved.update(own)
        self.logins = logins


class SharedLogin:
    """Logs a user in once more for all members of a group whose requests were refused meanwhile."""

    def __init__(self, relogin: Relogin, values: FilledValues) -> None:
        """`values` are the user's own ones, which the login changes."""
        self._relogin, self._values = relogin, values
        self._turn = asyncio.Lock()
        self._logins = 0
        self._error: Exception | None = None

    async def __call__(self, scenario: Scenario, values: FilledValues) -> None:
        """Log in, unless another member has done so since this one took its `values`.

        Raises the exception of the login; of a failed one, each member that waited for it does.
        """
        assert isinstance(values, MemberValues)
        async with self._turn:
            if self._error is not None:
                raise self._error
            if values.logins == self._logins:
                try:
                    await self._relogin(scenario, self._values)
                except Exception as error:
                    self._error = error
                    raise
                self._logins += 1
            values.renew(self._logins)
