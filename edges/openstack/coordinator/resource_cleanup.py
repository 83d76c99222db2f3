"""Removes resources with names given by osbench: lists and deletes until none is left."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence

from osbench.common.errors import ContextError
from osbench.common.ports import clock as time
from osbench.common.secrets.masking import error_text
from osbench.edges.openstack.common.cloud import Cloud
from osbench.edges.openstack.common.request_errors import RequestFailed
from osbench.edges.openstack.coordinator.cloud_access import CloudAccess
from osbench.edges.openstack.coordinator.resources import Kind, delete, kinds, names_of

LOG = logging.getLogger(__name__)

#: Seconds after the last deletion at which resources are listed once more: a service may still be
#: processing a request whose response was not awaited. Longer if a process was killed or an
#: iteration timed out.
SETTLE_S = 1.0
SETTLE_LATE_S = 5.0
#: Longest time without a successful deletion, seconds, and that for kinds with slow deletion.
PATIENCE_S = 20.0
PATIENCE_SLOW_S = 300.0
#: Seconds after which the deletion of an object that was accepted is requested again: some
#: services, such as Heat, begin anew with each request.
AGAIN_S = 10.0
#: Shortest time between two listings, seconds.
PAUSE_S = 0.5
#: Concurrent deletions; with more of them some services become slower.
AT_ONCE = 4
#: Refusals that are shown in a message.
MAX_REFUSALS_SHOWN = 3


def remove_resources(
    access: CloudAccess,
    what: Sequence[str | Kind],
    beginning: str,
    is_ours: Callable[[str], bool],
    *,
    settle_s: float,
) -> int:
    """Delete all objects whose name satisfies `is_ours`; return the number of objects found.

    `what`: services or kinds, by name (`KIND_NAMES`) or as they are, in order of deletion.
    `beginning`: prefix of all these names, to shorten lists. After `settle_s` seconds all kinds are
    searched again, until a search finds nothing; with 0 only if something was found. Raises
    ContextError after all kinds are done if one could not be listed or deleted, or objects are
    still listed `PATIENCE_S` after the service has accepted their deletion.
    """
    known: set[tuple[str, str]] = set()
    left = [kind for one in what for kind in ((one,) if isinstance(one, Kind) else kinds(one))]
    problems: list[str] = []
    looked_again, progress_at = False, time.monotonic()
    while True:
        found: set[tuple[str, str]] = set()
        for kind in left[:]:
            try:
                removal = _KindRemoval(access, kind, beginning, is_ours)
                found |= {(kind.name, identity) for identity in removal.run()}
            except Exception as error:
                LOG.debug("removal of %s", kind.name, exc_info=True)
                problems.append(_problem_text(kind, error))
                left.remove(kind)
        if not found and (looked_again or not settle_s):
            break
        if found - known:
            progress_at = time.monotonic()
        elif found and time.monotonic() - progress_at >= PATIENCE_S:
            of_kinds = ", ".join(sorted({name for name, _ in found}))
            problems.append(f"{len(found)} {of_kinds} are left: their deletion was accepted")
            break
        looked_again = True
        time.sleep(settle_s if found - known else max(settle_s, PAUSE_S))
        known |= found
    if problems:
        raise ContextError("; ".join(problems))
    return len(known)


def _problem_text(kind: Kind, error: Exception) -> str:
    if isinstance(error, ContextError):
        return str(error)
    text = error_text(error).strip().partition("\n")[0]
    return f"{kind.name}: {text}"


class _KindRemoval:
    """The removal of all matching objects of one kind, in rounds of listing and deletion."""

    def __init__(
        self, access: CloudAccess, kind: Kind, beginning: str, is_ours: Callable[[str], bool]
    ) -> None:
        self._access = access
        self._kind = kind
        self._beginning = beginning
        self._is_ours = is_ours
        self._refusals: dict[str, str] = {}
        self._accepted_at: dict[str, float] = {}

    def run(self) -> set[str]:
        """Delete the matching objects until none is listed any more; return their ids.

        If deletion is immediate and none was refused, they are not listed again. Raises
        ContextError if the list does not change for `PATIENCE_S` seconds, `PATIENCE_SLOW_S` for
        slow kinds.
        """
        asked: set[str] = set()
        left: set[str] = set()
        progress_at = time.monotonic()
        while True:
            there = self._look()
            before, left = left, {identity for _, identity in there}
            if not left:
                return asked
            if before - left or left - asked:
                progress_at = time.monotonic()
            self._check(left, time.monotonic() - progress_at)
            asked |= left
            self._delete(there)
            if not self._kind.slow and not self._refusals:
                return asked
            time.sleep(PAUSE_S)

    def _look(self) -> list[tuple[Cloud, str]]:
        found = self._access.objects(self._kind, self._beginning)
        return [
            (cloud, identity)
            for identity, (cloud, one) in found.items()
            if any(map(self._is_ours, names_of(one, self._kind)))
        ]

    def _delete(self, there: Sequence[tuple[Cloud, str]]) -> None:
        now = time.monotonic()
        due = [
            (cloud, identity)
            for cloud, identity in there
            if now - self._accepted_at.get(identity, -AGAIN_S) >= AGAIN_S
        ]
        self._refusals = {}
        self._access.each(f"{self._kind.name} removed", due, self._delete_one, AT_ONCE)

    def _delete_one(self, one: tuple[Cloud, str]) -> None:
        cloud, identity = one
        try:
            delete(self._kind, cloud, identity)
            self._accepted_at[identity] = time.monotonic()
        except RequestFailed as error:
            # it may still be being created, or be in use by an object that is being deleted
            self._refusals[identity] = str(error)

    def _check(self, left: set[str], idle_s: float) -> None:
        if idle_s < (PATIENCE_SLOW_S if self._kind.slow else PATIENCE_S):
            return
        reasons = "; ".join(list(dict.fromkeys(self._refusals.values()))[:MAX_REFUSALS_SHOWN])
        raise ContextError(
            f"{len(left)} {self._kind.name} are left" + (f": {reasons}" if reasons else "")
        )
