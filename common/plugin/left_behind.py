"""The error of a context whose cleanup has left resources behind that something else may remove."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

from osbench.common.errors import ContextError


class LeftBehind(ContextError):
    """Raised if a context of another project could not remove resources, which it knows by names.

    `kinds`: kinds as that project names them, such as "zaqar.queues"; "" if unknown. `users`: the
    users that have them, as `CloudUser.to_dict` returns them. `is_ours`: whether a name is of such
    a resource. `task`: the task's id in these names.
    """

    def __init__(
        self,
        message: str,
        *,
        kinds: Collection[str],
        users: Sequence[Mapping[str, Any]],
        is_ours: Callable[[str], bool],
        task: str,
    ) -> None:
        super().__init__(message)
        self.kinds = kinds
        self.users = users
        self.is_ours = is_ours
        self.task = task
