"""A deployment record with the users of a seed, for runs that act as them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from osbench.common.deployment.record import Deployment
from osbench.common.errors import UsageError
from osbench.coordinator.task.deployments.registry import Deployments
from osbench.edges.openstack.common.resource_names import in_seed, seeded_as
from osbench.edges.openstack.seeding.identity_makers import SeedUsers
from osbench.edges.openstack.seeding.seed_file import SeedPlan
from osbench.edges.openstack.seeding.seed_group import SeedGroup
from osbench.edges.openstack.seeding.seed_maker import SeedEntry


def check_record(name: str, plan: SeedPlan, deployments: Deployments) -> None:
    """Raise UsageError unless a record `name` with the users of a seed can be stored.

    They need a password and a project. An existing record is replaced only if all of its users are
    of the seed. Raises DeploymentError if the name is malformed, or the record cannot be read.
    """
    if not any(map(_can_log_in, plan.entries)):
        raise UsageError(
            f"--record: {plan.source} has no users who can log in: write users: {{count: 10, of: "
            "projects, password: ...}, below projects"
        )
    if name in deployments.names() and not _is_of_seed(deployments.get(name), plan.name):
        raise UsageError(
            f"--record: deployment {name} exists, with other users: take another name, or delete it"
        )


def store_record(
    name: str, record: Deployment, groups: Sequence[SeedGroup], seed: str, deployments: Deployments
) -> int:
    """Store or replace the record `name`: as `record`, with the users of a seed that can log in.

    Returns the number of its users. Raises DeploymentError if it cannot be written.
    """
    users = [user for group in groups for user in _users(group, seed)]
    (platform, content), *_ = record.spec.items()
    spec = {platform: {**content, "users": users}}
    used = deployments.used() == name
    if name in deployments.names():
        deployments.delete(name)
    deployments.create(Deployment.from_spec(name, spec), use=used)
    return len(users)


def _can_log_in(entry: SeedEntry) -> bool:
    return entry.word == SeedUsers.WORD and bool(entry.of) and "password" in entry.options


def _is_of_seed(record: Deployment, seed: str) -> bool:
    return bool(record.users) and all(seeded_as(one.username, seed) for one in record.users)


def _users(group: SeedGroup, seed: str) -> list[dict[str, Any]]:
    entry, maker = group.entry, group.maker
    if not _can_log_in(entry) or not isinstance(maker, SeedUsers):
        return []
    return [
        {
            "username": in_seed(seed, entry.group, number),
            "password": entry.options["password"],
            "project_name": in_seed(seed, entry.of, group.parent_of(number)),
            **maker.domain_names,
        }
        for number in sorted(group.ids)
    ]
