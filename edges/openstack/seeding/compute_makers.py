"""Kinds of a seed in Nova: servers and key pairs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from osbench.edges.openstack.common.object_lists import sought
from osbench.edges.openstack.seeding.seed_maker import SeedMaker, SeedObject

_NAME: Mapping[str, Any] = {"type": "string", "minLength": 1}


class SeedServers(SeedMaker):
    """Servers with an image and a flavor, given by name, in networks of the seed if there are."""

    WORD: ClassVar[str] = "servers"
    GROUP: ClassVar[str] = "server"
    KIND: ClassVar[str] = "nova.servers"
    KEY: ClassVar[str] = "server"
    PARENTS: ClassVar[tuple[str, ...]] = ("networks",)
    PROPERTIES: ClassVar[Mapping[str, Any]] = {"image": _NAME, "flavor": _NAME}
    REQUIRED: ClassVar[tuple[str, ...]] = ("image", "flavor")
    RESERVED: ClassVar[tuple[str, ...]] = ("name", "imageRef", "flavorRef", "networks")
    QUOTA: ClassVar[str] = "instances"
    WAIT: ClassVar[str] = "nova_server_boot"
    READY_STATUS: ClassVar[str] = "ACTIVE"

    def prepare(self) -> None:
        """Look up image and flavor. Raises DeploymentError if they do not exist."""
        super().prepare()
        self._image = sought(self.cloud, "image", {"name": self.option["image"]})
        self._flavor = sought(self.cloud, "flavor", {"name": self.option["flavor"]})

    def fields(self, one: SeedObject) -> dict[str, Any]:
        """Return image, flavor and network."""
        network = {"networks": [{"uuid": one.parent}]} if one.parent else {}
        return {"imageRef": self._image, "flavorRef": self._flavor, **network}


class SeedKeypairs(SeedMaker):
    """Key pairs of the record's first user, whose private keys are discarded."""

    WORD: ClassVar[str] = "keypairs"
    GROUP: ClassVar[str] = "keypair"
    KIND: ClassVar[str] = "nova.keypairs"
    KEY: ClassVar[str] = "keypair"
    QUOTA: ClassVar[str] = "key_pairs"
