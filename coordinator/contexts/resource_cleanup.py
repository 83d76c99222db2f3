"""Removes what has a name of ours: looks, deletes, and looks again until there is nothing."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Sequence

from osbench.common.errors import ContextError
from osbench.common.openstack.cloud import Cloud
from osbench.common.openstack.request_errors import RequestFailed
from osbench.coordinator.contexts.cloud_access import CloudAccess
from osbench.coordinator.contexts.resources import Kind, delete, find, kinds

LOG = logging.getLogger(__name__)

#: After the last object is gone, wait so long and look once more: a service may still be at a
#: request whose sender was not waited for. Longer where it was killed or has given up.
SETTLE_S = 1.0
SETTLE_LATE_S = 5.0
#: Longest time without another object gone, seconds, and that for what is deleted slowly.
PATIENCE_S = 20.0
PATIENCE_SLOW_S = 300.0
#: Shortest time between two looks, seconds.
PAUSE_S = 0.5
#: Deletions at the same time: some services delete slower the more of them there are.
AT_ONCE = 4
#: Refusals that are told.
MAX_REFUSALS_SHOWN = 3


def remove_resources(
    access: CloudAccess,
    what: Sequence[str],
    beginning: str,
    is_ours: Callable[[str], bool],
    *,
    settle_s: float,
) -> int:
    """Delete everything of some services or kinds with a name of ours; answers how many objects.

    All these names have the same beginning. A kind that cannot be looked through, or of which
    something stays, does not keep the others: raises ContextError once they are through.
    """
    gone, again = 0, False
    left = [kind for name in what for kind in kinds(name)]
    problems: list[str] = []
    while True:
        found = 0
        for kind in left[:]:
            try:
                found += _KindRemoval(access, kind, beginning, is_ours).run()
            except Exception as error:
                LOG.debug("sweep of %s", kind.name, exc_info=True)
                problems.append(_described(kind, error))
                left.remove(kind)
        gone += found
        if not found and (again or not settle_s):
            break
        again = True
        time.sleep(settle_s)
    if problems:
        raise ContextError("; ".join(problems))
    return gone


def _described(kind: Kind, error: Exception) -> str:
    if isinstance(error, ContextError):
        return str(error)
    text = str(error).strip().partition("\n")[0]
    return f"{kind.name}: {type(error).__name__}: {text}"


class _KindRemoval:
    """One kind of objects."""

    def __init__(
        self, access: CloudAccess, kind: Kind, beginning: str, is_ours: Callable[[str], bool]
    ) -> None:
        self._access = access
        self._kind = kind
        self._beginning = beginning
        self._is_ours = is_ours
        self._refusals: dict[str, str] = {}

    def run(self) -> int:
        """Delete until there is nothing; answers how many objects there were."""
        asked: set[str] = set()
        left: set[str] = set()
        progress_at = time.monotonic()
        while True:
            there = self._look()
            before, left = left, {identity for _, identity in there}
            if not left:
                return len(asked)
            if before - left or left - asked:
                progress_at = time.monotonic()
            self._check(left, time.monotonic() - progress_at)
            asked |= left
            self._delete(there)
            if not self._kind.slow and not self._refusals:
                return len(asked)
            time.sleep(PAUSE_S)

    def _look(self) -> list[tuple[Cloud, str]]:
        clouds = [self._access.admin] if self._kind.everywhere else self._access.projects
        found = self._access.each(
            f"looking for {self._kind.name}",
            clouds,
            lambda cloud: [
                (cloud, one) for one in find(self._kind, cloud, self._beginning, self._is_ours)
            ],
        )
        # a public object is seen from every project
        return list(
            {identity: (cloud, identity) for some in found for cloud, identity in some}.values()
        )

    def _delete(self, there: Sequence[tuple[Cloud, str]]) -> None:
        self._refusals = {}
        self._access.each(f"{self._kind.name} removed", there, self._delete_one, AT_ONCE)

    def _delete_one(self, one: tuple[Cloud, str]) -> None:
        cloud, identity = one
        try:
            delete(self._kind, cloud, identity)
        except RequestFailed as error:
            # perhaps it is still being made, or in use by what is just deleted
            self._refusals[identity] = str(error)

    def _check(self, left: set[str], idle_s: float) -> None:
        if idle_s < (PATIENCE_SLOW_S if self._kind.slow else PATIENCE_S):
            return
        said = "; ".join(list(dict.fromkeys(self._refusals.values()))[:MAX_REFUSALS_SHOWN])
        raise ContextError(
            f"{len(left)} {self._kind.name} are left" + (f": {said}" if said else "")
        )
