"""Quotas of the project that a seed is made in: too low ones are reported, or lifted."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from osbench.common.errors import DeploymentError
from osbench.edges.openstack.common.request_errors import RequestFailed
from osbench.edges.openstack.contexts.quotas import project_quotas, set_quotas
from osbench.edges.openstack.coordinator.cloud_access import CloudAccess
from osbench.edges.openstack.seeding.seed_maker import SeedMaker

#: A quota without limit.
NO_LIMIT = -1


@dataclass(frozen=True, kw_only=True)
class LowQuota:
    """A quota that is less than the seed needs, or may be, since others use it, too."""

    service: str
    name: str
    limit: int
    needed: int

    def __str__(self) -> str:
        return f"{self.name} of {self.service}: {self.limit:,}, and the seed needs {self.needed:,}"


def limited_quotas(makers: Sequence[SeedMaker], project: str) -> list[LowQuota]:
    """Return the quotas with a limit that the resources of a seed take, in a project (an id).

    A service whose quotas cannot be read is left out: its creations will show the limit.
    """
    needed: dict[str, Counter[str]] = {}
    clients = {}
    for maker in makers:
        service = maker.kind.service
        clients[service] = maker.cloud
        needed.setdefault(service, Counter()).update(maker.quotas())
    found = []
    for service, amounts in needed.items():
        if not amounts:
            continue
        try:
            limits = project_quotas(clients[service], service, project)
        except RequestFailed:
            continue
        found += [
            LowQuota(service=service, name=name, limit=limits[name], needed=amount)
            for name, amount in amounts.items()
            if isinstance(limits.get(name), int) and limits[name] >= 0
        ]
    return found


def refuse_low(quotas: Sequence[LowQuota], source: str) -> None:
    """Raise DeploymentError if quotas are lower than the seed needs; names all of them."""
    low = [one for one in quotas if one.limit < one.needed]
    if low:
        listed = "\n".join(f"  {one}" for one in low)
        raise DeploymentError(
            f"{source}: quotas of the project are too low; raise them, make less, or write "
            f"`quotas: unlimited` into the file, which lifts them as the admin\n{listed}"
        )


def lift(access: CloudAccess, quotas: Sequence[LowQuota], project: str) -> Iterator[str]:
    """Remove the limits of quotas of a project; yield a message for each, with the former limit.

    Raises DeploymentError without an admin in the record, RequestFailed if a service refuses.
    """
    for one in quotas:
        set_quotas(access.admin, one.service, project, {one.name: NO_LIMIT})
        yield f"quota {one.name} of {one.service}: {one.limit:,} before, now without limit"
