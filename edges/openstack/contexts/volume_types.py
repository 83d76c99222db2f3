"""The context `volume_types`: types of volumes of Cinder."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from osbench.plugin import context
from osbench.plugin.cloud import CloudAccess
from osbench.plugin.errors import ContextError


class VolumeTypes(context.Context):
    """Creates types of volumes with the given names, as the administrator, and deletes them."""

    NAME: ClassVar[str] = "volume_types"
    ORDER: ClassVar[int] = 410
    CONFIG_SCHEMA: ClassVar[Mapping[str, Any]] = {
        "type": "array",
        "items": {"type": "string"},
        "minItems": 1,
        "uniqueItems": True,
        "description": "names of the types",
        "examples": [["fast", "encrypted"]],
    }

    def setup(self) -> None:
        """Create the types; store their ids and names. Raises ContextError if a name is taken."""
        access = CloudAccess(self.surroundings, self.NAME)
        # stored before the first request
        self.made["volume_types"] = []
        self.keep()
        self.made["volume_types"] = access.each(
            "volume types made", self.config, lambda name: self._make(access, name)
        )

    def cleanup(self) -> None:
        """Delete the types that setup has created, by their description.

        Does nothing if setup did not begin.
        """
        if "volume_types" not in self.made:
            return
        access = CloudAccess(self.surroundings, self.NAME)
        access.each(
            "volume types removed",
            [one["id"] for one in self._own(access)],
            lambda one: access.admin.request(
                "DELETE", "cinder", f"types/{one}", expected=(202, 404)
            ),
        )

    def _own(self, access: CloudAccess) -> list[dict[str, Any]]:
        """Return the types of this context that exist, as Cinder describes them."""
        params = {"is_public": "None"}
        found = access.admin.document("GET", "cinder", "types", params=params)["volume_types"]
        return [one for one in found if one.get("description") == access.beginning]

    def _make(self, access: CloudAccess, name: str) -> dict[str, Any]:
        # the description shows whose it is, since the task gives the name
        wanted = {"name": name, "description": access.beginning}
        response = access.admin.request(
            "POST", "cinder", "types", json={"volume_type": wanted}, expected=(200, 409)
        )
        if response.status_code == 409:
            # a try whose response was lost may have created it
            own = [one for one in self._own(access) if one["name"] == name]
            if not own:
                raise ContextError(f"there is a type of volumes {name!r} already: choose a name")
            return {"id": str(own[0]["id"]), "name": name}
        return {"id": str(response.json()["volume_type"]["id"]), "name": name}
