"""Scenarios of Barbican: secrets, containers of secrets, and orders, as the administrator."""

from __future__ import annotations

import base64
import hashlib
import os
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

from osbench.common.plugin.atomic import ActionTimer
from osbench.common.ports import clock as time
from osbench.edges.openstack.scenarios.openstack_scenario import (
    OpenStackScenario,
    openstack,
    without_none,
)

_LISTED: Mapping[str, Any] = {"services": ("barbican",), "admin": True, "users": False}
_SCENARIO: Mapping[str, Any] = {**_LISTED, "cleanup": ("barbican",)}
#: Scenarios for which Rally's client of Barbican sends a further request.
_DELETED: Mapping[str, Any] = {**_SCENARIO, "less": "gets a secret before its deletion"}
#: A secret from a password is kept for so long, and its key derived with so many rounds.
_KEPT = timedelta(days=5)
_ROUNDS = 1000


class BarbicanScenario(OpenStackScenario):
    """Base of scenarios that create, list, get and delete objects of Barbican."""

    def post(self, action: str, path: str, fields: Mapping[str, Any]) -> str:
        """Create an object below `path` by an action of that name; return its reference, a URL."""
        with ActionTimer(self, action):
            found = self.admin.document("POST", "barbican", path, json=without_none(fields))
        return str(found[f"{path[:-1]}_ref"])

    def list_page(self, action: str, path: str) -> None:
        """List the first ten objects at `path`, as Rally, by an action of that name."""
        with ActionTimer(self, action):
            self.admin.document("GET", "barbican", path, params={"limit": 10, "offset": 0})

    def delete(self, action: str, path: str, reference: str) -> None:
        """Delete the object with a reference, in the list at `path`, by an action of that name."""
        with ActionTimer(self, action):
            self.admin.request("DELETE", "barbican", _path_of(path, reference))

    def create_secret(self, **fields: Any) -> str:
        """Create an opaque secret with further `fields`, as an action; return its reference."""
        wanted = {"name": self.new_name(), "secret_type": "opaque", **fields}
        return self.post("barbican.create_secret", "secrets", wanted)


class BarbicanSecrets(BarbicanScenario):
    """Rally's `BarbicanSecrets` scenarios, as the administrator; secrets have no payload."""

    @classmethod
    def check_arguments(cls, method: str, args: Mapping[str, Any]) -> list[str]:
        """Return messages of the base class, and one on a `payload` that is not text."""
        found = super().check_arguments(method, args)
        payload = args.get("payload", "")
        if not isinstance(payload, str):
            found.append(f"payload must be text, got {payload!r}; put it in quotes")
        return found

    @openstack("BarbicanSecrets.list", **_LISTED)
    def list(self) -> None:
        """List ten secrets."""
        self.list_page("barbican.list_secrets", "secrets")

    @openstack("BarbicanSecrets.create", **_SCENARIO)
    def create(self) -> None:
        """Create a secret."""
        self.create_secret()

    @openstack("BarbicanSecrets.create_and_delete", **_DELETED)
    def create_and_delete(self) -> None:
        """Create a secret and delete it."""
        self.delete("barbican.delete_secret", "secrets", self.create_secret())

    @openstack("BarbicanSecrets.create_and_get", **_SCENARIO)
    def create_and_get(self) -> None:
        """Create a secret, get its metadata, and check that they are of this secret."""
        secret = self.create_secret()
        found = self._get(secret)
        self.checked(found["secret_ref"] == secret, "Barbican returned another secret")

    @openstack("BarbicanSecrets.get", **_SCENARIO)
    def get(self, secret_ref: str | None = None) -> None:
        """Get the metadata of the secret `secret_ref`, its URL; without one, of a new secret."""
        self._get(secret_ref or self.create_secret())

    @openstack("BarbicanSecrets.create_and_list", **_SCENARIO)
    def create_and_list(self) -> None:
        """Create a secret and list ten secrets."""
        self.create_secret()
        self.list_page("barbican.list_secrets", "secrets")

    @openstack("BarbicanSecrets.create_symmetric_and_delete", **_DELETED)
    def create_symmetric_and_delete(
        self, payload: str, algorithm: str, bit_length: int, mode: str
    ) -> None:
        """Create a secret for five days from a key that is derived from `payload`; delete it."""
        # as Rally's: PBKDF2 with SHA-256, for which a random salt makes each key another one
        key = hashlib.pbkdf2_hmac("sha256", payload.encode(), os.urandom(16), _ROUNDS)
        expires = datetime.fromtimestamp(time.time(), UTC) + _KEPT
        secret = self.create_secret(
            payload=base64.b64encode(key).decode(),
            payload_content_type="application/octet-stream",
            payload_content_encoding="base64",
            algorithm=algorithm,
            bit_length=bit_length,
            mode=mode,
            expiration=expires.isoformat(),
        )
        self.delete("barbican.delete_secret", "secrets", secret)

    def _get(self, secret: str) -> Any:
        with ActionTimer(self, "barbican.get_secret"):
            return self.admin.document("GET", "barbican", _path_of("secrets", secret))


class BarbicanContainers(BarbicanScenario):
    """Rally's `BarbicanContainers` scenarios, as the administrator."""

    @openstack("BarbicanContainers.list", **_LISTED)
    def list(self) -> None:
        """List ten containers."""
        self.list_page("barbican.list_container", "containers")

    @openstack("BarbicanContainers.create_and_delete", **_SCENARIO)
    def create_and_delete(self) -> None:
        """Create a generic container without secrets and delete it."""
        self._create_and_delete("container_create", "generic")

    @openstack("BarbicanContainers.create_and_add", **_SCENARIO)
    def create_and_add(self) -> None:
        """Create a secret, create a generic container with it, and delete the container."""
        secret = {"name": "secret", "secret_ref": self.create_secret()}
        self._create_and_delete("container_create", "generic", secret)

    @openstack("BarbicanContainers.create_certificate_and_delete", **_SCENARIO)
    def create_certificate_and_delete(self) -> None:
        """Create a container for a certificate, without one, and delete it."""
        self._create_and_delete("create_certificate_container", "certificate")

    @openstack("BarbicanContainers.create_rsa_and_delete", **_SCENARIO)
    def create_rsa_and_delete(self) -> None:
        """Create a container for an RSA key, without one, and delete it."""
        self._create_and_delete("create_rsa_container", "rsa")

    def _create_and_delete(self, action: str, kind: str, *secrets: Mapping[str, str]) -> None:
        wanted = {"name": self.new_name(), "type": kind, "secret_refs": [*secrets]}
        made = self.post(f"barbican.{action}", "containers", wanted)
        self.delete("barbican.container_delete", "containers", made)


class BarbicanOrders(BarbicanScenario):
    """Rally's `BarbicanOrders` scenarios, as the administrator."""

    @openstack("BarbicanOrders.list", **_LISTED)
    def list(self) -> None:
        """List ten orders."""
        self.list_page("barbican.orders_list", "orders")

    @openstack("BarbicanOrders.create_key_and_delete", **_SCENARIO)
    def create_key_and_delete(self) -> None:
        """Order a key for AES of 256 bits and delete the order."""
        self._create_and_delete("key", algorithm="aes", bit_length=256)

    @openstack("BarbicanOrders.create_asymmetric_and_delete", **_SCENARIO)
    def create_asymmetric_and_delete(self) -> None:
        """Order an asymmetric key, with Rally's values for AES and 256 bits; delete the order."""
        self._create_and_delete("asymmetric", algorithm="aes", bit_length=256)

    @openstack("BarbicanOrders.create_certificate_and_delete", **_SCENARIO)
    def create_certificate_and_delete(self) -> None:
        """Order a certificate and delete the order; recent releases of Barbican refuse it."""
        self._create_and_delete("certificate")

    def _create_and_delete(self, kind: str, **fields: Any) -> None:
        wanted = {"type": kind, "meta": {"name": self.new_name(), **fields}}
        order = self.post(f"barbican.create_{kind}", "orders", wanted)
        self.delete("barbican.orders_delete", "orders", order)


def _path_of(path: str, reference: str) -> str:
    return f"{path}/{reference.rpartition('/')[2]}"
