"""Removes the resources of a seed, which no clean-up of runs takes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from osbench.common.errors import ContextError, DeploymentError
from osbench.common.plugin.context import ContextEnvironment
from osbench.edges.openstack.common import neutron
from osbench.edges.openstack.common.resource_names import of_seed, seeded_as
from osbench.edges.openstack.coordinator.cloud_access import CloudAccess
from osbench.edges.openstack.coordinator.resource_cleanup import remove_resources
from osbench.edges.openstack.coordinator.resources import Kind, kinds, names_of
from osbench.edges.openstack.seeding.maker_table import MAKERS
from osbench.edges.openstack.seeding.request_makers import SeedRequests
from osbench.edges.openstack.seeding.seed_maker import SeedEntry


class SeedRemoval:
    """The removal of all resources of a seed, by their names, whatever its file says now."""

    def __init__(self, seed: str, access: CloudAccess, entries: Sequence[SeedEntry] = ()) -> None:
        """Store the settings; no request is sent.

        `entries`: of the file, whose `objects` are removed, too.
        """
        self._seed = seed
        self._access = access
        described = [
            SeedRequests(entry, access).kind for entry in entries if entry.word == SeedRequests.WORD
        ]
        known = [kinds(maker.KIND)[0] for maker in MAKERS.values() if maker.KIND]
        self._kinds = [*described, *known]
        #: Projects of the seed, by id.
        self._projects: set[str] = set()
        #: Kinds that only an admin can list, if the record has none.
        self.unseen: list[str] = []

    def show_progress(self, environment: ContextEnvironment) -> None:
        """Report further progress to another environment of the same deployment."""
        self._access = CloudAccess(environment, "the command seed")

    def find(self) -> dict[str, int]:
        """Return the number of resources of each kind that has some; removes nothing.

        Raises DeploymentError, AuthenticationFailed, RequestFailed or OSError if a list fails.
        """
        found: dict[str, int] = {}
        self.unseen, here = [], []
        for kind in self._kinds:
            if kind.everywhere and self._access.deployment.admin is None:
                self.unseen.append(kind.name)
            elif self._is_there(kind):
                here.append(kind)
                objects = self._access.objects(kind, of_seed(self._seed))
                ours = [
                    identity
                    for identity, (_, one) in objects.items()
                    if any(map(self._is_ours, names_of(one, kind)))
                ]
                found |= {kind.name: len(ours)} if ours else {}
                if kind.key == "projects":
                    self._projects = set(ours)
        self._kinds = here
        return found

    def remove(self) -> None:
        """Remove the resources of all kinds that `find` could list, and return once none is left.

        Raises ContextError with the kinds of which some are left.
        """
        problems = list(self._remove_security_groups())
        try:
            beginning = of_seed(self._seed)
            remove_resources(self._access, self._kinds, beginning, self._is_ours, settle_s=0.0)
        except ContextError as error:
            problems.append(str(error))
        if problems:
            raise ContextError("; ".join(problems))

    def _is_ours(self, name: str) -> bool:
        return seeded_as(name, self._seed) is not None

    def _is_there(self, kind: Kind) -> bool:
        try:
            return bool(self._access.owners(kind)[0].address(kind.service))
        except DeploymentError:
            # the cloud does not have the service
            return False

    def _remove_security_groups(self) -> Iterator[str]:
        """Remove security groups of the seed's projects, which Neutron keeps; yield problems."""
        if not self._projects or not any(one.service == neutron.SERVICE for one in self._kinds):
            return
        try:
            self._access.each(
                "security groups of projects removed",
                sorted(self._projects),
                lambda project: neutron.remove_security_groups(self._access.admin, project),
            )
        except Exception as error:  # noqa: BLE001 - the rest is removed nevertheless
            yield f"security groups of projects: {error}"
