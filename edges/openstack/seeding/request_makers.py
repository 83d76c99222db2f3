"""The kind of a seed for all other objects: made by a request that the file describes."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import Any, ClassVar

from osbench.common.errors import DeploymentError
from osbench.edges.openstack.coordinator.resources import Kind
from osbench.edges.openstack.seeding.seed_maker import SeedMaker

_TEXT: Mapping[str, Any] = {"type": "string", "minLength": 1}


class SeedRequests(SeedMaker):
    """Objects with a name that a POST to a list makes, and a DELETE of the list's path removes.

    `service`: its name or catalogue type. `path`: of the list. `key`: of an object in documents,
    `list`: of several; "" for none.
    """

    WORD: ClassVar[str] = "objects"
    PROPERTIES: ClassVar[Mapping[str, Any]] = {
        "service": _TEXT,
        "path": _TEXT,
        "key": {"type": "string"},
        "list": {"type": "string"},
    }
    REQUIRED: ClassVar[tuple[str, ...]] = ("group", "service", "path")
    RESERVED: ClassVar[tuple[str, ...]] = ("name",)

    @cached_property
    def kind(self) -> Kind:
        """The kind that the entry describes."""
        last = self.option["path"].strip("/").rpartition("/")[2]
        return Kind(
            name=self.entry.group,
            service=self.option["service"],
            path=self.option["path"].strip("/"),
            key=self.option.get("list", last.replace("-", "_")),
            page=0,
        )

    def prepare(self) -> None:
        """Check that the list has the key. Raises DeploymentError: nothing would be found again."""
        super().prepare()
        kind = self.kind
        document = self.cloud.document("GET", kind.service, kind.path)
        listed = document.get(kind.key) if kind.key and isinstance(document, dict) else document
        if not isinstance(listed, list):
            keys = ", ".join(map(str, document)) if isinstance(document, dict) else "no object"
            raise DeploymentError(
                f"{self.entry.place}: the list {kind.path} of {kind.service} has no list "
                f"{kind.key!r}, but {keys}: give its key by `list`"
            )

    @property
    def key(self) -> str:
        """Key of an object in documents: the entry's, else the list's without its last letter."""
        return str(self.option.get("key", self.kind.key.removesuffix("s")))
