"""The command `seed` as `--help` lists it: its section and first line."""

from __future__ import annotations

from osbench.coordinator.front.cli.listed_command import OPERATE, ListedCommand

SEED = ListedCommand(
    "seed",
    "Make resources in a cloud that outlive runs.",
    place="osbench.edges.openstack.seeding.seed_command:seed",
    section=OPERATE,
)
