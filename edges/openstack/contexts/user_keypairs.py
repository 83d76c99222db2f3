"""The context `keypair`: key pairs of users in Nova."""

from __future__ import annotations

from collections.abc import Mapping
from http import HTTPStatus
from typing import Any, ClassVar

from osbench.plugin.cloud import Cloud, CloudAccess, PerProjectContext


class UserKeypairs(PerProjectContext):
    """Creates a key pair in Nova for every user that iterations act as."""

    NAME: ClassVar[str] = "keypair"
    ORDER: ClassVar[int] = 310
    SERVICE: ClassVar[str] = "nova"
    KEY: ClassVar[str] = "keypairs"
    KINDS: ClassVar[tuple[str, ...]] = ("nova.keypairs",)
    CONFIG_SCHEMA: ClassVar[Mapping[str, Any]] = {
        "type": "object",
        "properties": {},
        "additionalProperties": False,
        "examples": [{}],
    }

    def setup(self) -> None:
        """Create one key pair per user; store their names and keys by user id."""
        self.make_all()

    def places(self, access: CloudAccess) -> list[Cloud]:
        """Return one client per user, instead of one per project."""
        return access.each_user

    def owner(self, cloud: Cloud) -> str:
        """Return the user's id, by which the user's key pairs are stored."""
        return cloud.user_id

    def make(self, cloud: Cloud, name: str) -> dict[str, str]:
        """Create the key pair `name`; return a dict of `name`, and the keys `private`, `public`.

        A key pair of an earlier attempt is deleted first, because its private key was lost.
        """
        wanted = {"keypair": {"name": name}}
        response = cloud.request(
            "POST", "nova", "os-keypairs", json=wanted, expected=(200, 201, 409)
        )
        if response.status_code == HTTPStatus.CONFLICT:
            # a try whose response, with the private key, was lost has created it
            cloud.request("DELETE", "nova", f"os-keypairs/{name}", expected=(202, 204, 404))
            response = cloud.request("POST", "nova", "os-keypairs", json=wanted)
        made = response.json()["keypair"]
        return {"name": name, "private": made["private_key"], "public": made["public_key"]}
