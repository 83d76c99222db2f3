"""Makes a seed: lists its resources, makes missing ones in parallel, and lists them again."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from osbench.common.errors import ContextError, DeploymentError
from osbench.common.ports import clock as time
from osbench.common.secrets.masking import error_text
from osbench.edges.openstack.common.request_errors import AuthenticationFailed, RequestFailed
from osbench.edges.openstack.coordinator.cloud_access import AT_ONCE, CloudAccess, with_retries
from osbench.edges.openstack.coordinator.resource_cleanup import SETTLE_S
from osbench.edges.openstack.coordinator.resources import delete
from osbench.edges.openstack.seeding.maker_table import MAKERS
from osbench.edges.openstack.seeding.parallel_work import ParallelWork
from osbench.edges.openstack.seeding.seed_file import SeedPlan
from osbench.edges.openstack.seeding.seed_group import SeedGroup
from osbench.edges.openstack.seeding.seed_maker import SeedObject
from osbench.edges.openstack.seeding.seed_quotas import LowQuota, lift, limited_quotas, refuse_low

LOG = logging.getLogger(__name__)

#: Failures in a row after which a group is given up.
GIVE_UP = 10
#: Time between two reports of progress, and time for responses after Ctrl-C, seconds.
TELL_S = 0.5
GRACE_S = 5.0


@dataclass(frozen=True, kw_only=True)
class SeedProgress:
    """Progress of a group: counts of its objects, seconds since its first creation."""

    group: SeedGroup
    done: int
    failed: int
    #: Objects that were to be made.
    wanted: int
    elapsed_s: float


class SeedMaking:
    """Makes the resources of a seed that are not there, group after group.

    Call `look`, then `make`; the account is in `groups` at any time.
    """

    def __init__(
        self,
        plan: SeedPlan,
        access: CloudAccess,
        *,
        at_once: int = AT_ONCE,
        tell: Callable[[SeedProgress], None] = lambda _: None,
        say: Callable[[str], None] = lambda _: None,
    ) -> None:
        """Store the settings; no request is sent.

        `tell` gets progress every `TELL_S` seconds, `say` a message on each changed quota.
        """
        self._plan = plan
        self._access = access
        self._at_once = at_once
        self._tell = tell
        self._say = say
        self.groups = [
            SeedGroup(plan.name, MAKERS[entry.word](entry, access)) for entry in plan.entries
        ]
        #: Messages on surplus objects that could not be removed.
        self.problems: list[str] = []
        self._quotas: list[LowQuota] = []
        self._project = ""

    def look(self) -> None:
        """Look up all that creations need, list all that is there, check quotas; creates nothing.

        Raises DeploymentError if a service, image, flavor, domain or admin is missing, a login is
        refused or a quota is too low; RequestFailed or OSError if a request fails.
        """
        try:
            for group in self.groups:
                with_retries(lambda one: one.maker.prepare(), group)
            for group in self.groups:
                with_retries(lambda one: one.look(), group)
                group.existing = len(group.ids)
            with_retries(lambda one: one._look_at_quotas(), self)
        except AuthenticationFailed as error:
            name = self._access.deployment.name
            raise DeploymentError(
                f"deployment {name}: {error}; check it with `osbench-coord deployment check {name}`"
            ) from None
        except ContextError as error:
            raise DeploymentError(str(error)) from None

    def make(self) -> None:
        """Make and finish all objects that are not ready; failures are in the groups.

        After KeyboardInterrupt, which is raised again, calls in flight have `GRACE_S` to end.
        Raises RequestFailed or OSError if quotas cannot be set, or a list fails.
        """
        if self._plan.unlimited:
            for change in lift(self._access, self._quotas, self._project):
                self._say(change)
        done: dict[str, SeedGroup] = {}
        for group in self.groups:
            parent = done.get(group.entry.of)
            if parent:
                group.join(parent)
            self._make_group(group, parent.ids if parent else None)
            done[group.entry.group] = group

    @property
    def complete(self) -> bool:
        """Whether everything is there, each object once."""
        return not self.problems and all(group.complete for group in self.groups)

    def _look_at_quotas(self) -> None:
        makers = [group.maker for group in self.groups if group.maker.quotas()]
        if makers:
            self._project = self._access.projects[0].project_id
            self._quotas = limited_quotas(makers, self._project)
        if not self._plan.unlimited:
            refuse_low(self._quotas, self._plan.source)

    def _make_group(self, group: SeedGroup, parents: Mapping[int, str] | None) -> None:
        # groups before it may have taken an hour
        with_retries(lambda one: one.look(), group)
        objects = with_retries(lambda one: one.unready(parents), group)
        group.existing = len(group.ids)
        if orphaned := group.not_tried - len(objects):
            group.errors[f"not tried: its {group.entry.of} is missing"] = orphaned
        if objects:
            work = ParallelWork(
                objects,
                lambda one: with_retries(group.maker.make, one),
                at_once=self._at_once,
                give_up=GIVE_UP,
            )
            self._run(group, work, len(objects))
            try:
                self._verify(group, parents, work)
            except BaseException:
                # by the responses, since the list is not known
                group.settle(work.done, work.failed, listed=False)
                raise
            group.settle(work.done, work.failed)
            if work.gave_up:
                group.errors[f"given up after {GIVE_UP} failures in a row"] += 1
        self._remove_surplus(group)

    def _run(self, group: SeedGroup, work: ParallelWork[SeedObject], wanted: int) -> None:
        begin = time.monotonic()

        def tell() -> None:
            self._tell(
                SeedProgress(
                    group=group,
                    done=len(work.done),
                    failed=len(work.failed),
                    wanted=wanted,
                    elapsed_s=time.monotonic() - begin,
                )
            )

        try:
            work.start()
            while not work.wait(TELL_S):
                tell()
            tell()
        except KeyboardInterrupt:
            work.stop()
            try:
                work.wait(GRACE_S)
            finally:
                late = "interrupted before its response; it may be there"
                failed: list[tuple[SeedObject, Exception | str]] = list(work.failed)
                failed += [(one, late) for one in work.close()]
                group.settle(work.done, failed, listed=False)
            raise

    def _verify(
        self,
        group: SeedGroup,
        parents: Mapping[int, str] | None,
        work: ParallelWork[SeedObject],
    ) -> None:
        """List the group again, until all that was made is listed, or twice."""
        tried = [*work.done, *(one for one, _ in work.failed)]
        if work.failed or any(one.retried for one in tried):
            # a service may still be processing a request whose response was lost
            time.sleep(SETTLE_S)
        for _ in range(2):
            with_retries(lambda one: one.look(), group)
            group.unready(parents)
            if all(one.number in group.ids for one in work.done):
                break
            # a list may be older than a response
            time.sleep(SETTLE_S)

    def _remove_surplus(self, group: SeedGroup) -> None:
        """Remove objects whose name an earlier object has, as after a lost response."""
        maker = group.maker
        for identity in group.surplus():
            try:
                with_retries(lambda one: delete(maker.kind, maker.cloud, one), identity)
                group.doubles += 1
            except (RequestFailed, AuthenticationFailed, OSError) as error:
                LOG.debug("removal of a second %s", group.entry.group, exc_info=True)
                self.problems.append(
                    f"{maker.kind.name}: a second object of one name is left: {error_text(error)}"
                )


def reasons(group: SeedGroup) -> Iterator[str]:
    """Yield the reasons of a group's failures with their number, the most frequent first."""
    for reason, number in group.errors.most_common():
        yield f"{number:,} x {reason}" if number > 1 else reason
