"""Base of the kinds of a seed: the body of a creation, the wait until it is ready, its quotas."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from http import HTTPStatus
from typing import Any, ClassVar

from osbench.common.errors import Problem
from osbench.edges.openstack.common.cloud import Cloud
from osbench.edges.openstack.common.request_errors import RequestFailed
from osbench.edges.openstack.common.resource_names import GROUP_NAME, MOST_SEEDED
from osbench.edges.openstack.coordinator.cloud_access import CloudAccess
from osbench.edges.openstack.coordinator.per_project import await_status
from osbench.edges.openstack.coordinator.resources import Kind, delete, kinds, with_name

#: States of objects that a service is still making, and of objects that it removes, small letters.
_PENDING = ("creating", "downloading", "build", "queued")
_LEAVING = ("deleting", "deleted", "soft_deleted", "pending_delete")

READY, UNFINISHED, BROKEN, ABSENT = "ready", "unfinished", "broken", "absent"


@dataclass(frozen=True, kw_only=True)
class SeedEntry:
    """A group of equal resources in a seed file, checked."""

    #: Path in the file, for messages.
    place: str
    #: Key of the file, such as "ports", and the word for the group in names, such as "port".
    word: str
    group: str
    count: int
    #: The group that the objects belong to, such as the networks of ports; "" for none.
    of: str = ""
    options: Mapping[str, Any] = field(default_factory=dict)


@dataclass(kw_only=True)
class SeedObject:
    """An object that is to be made or finished: number, name, and how far it is."""

    number: int
    name: str
    #: Id of the object that it belongs to; "" for none.
    parent: str = ""
    #: "" until it is known to be there.
    identity: str = ""
    #: Id of an object of this name that is in error, and is replaced; "" for none.
    replaces: str = ""
    #: A creation was sent, whose response may have been lost; and sent again.
    requested: bool = False
    retried: bool = False


class SeedMaker:
    """Base of the kinds of a seed: makes the objects of one entry of the file.

    A subclass sets the class variables, and overrides `fields` and other methods.
    """

    #: Key of an entry in files, the word in names unless the entry has `group`, and `KIND_NAMES`.
    WORD: ClassVar[str] = ""
    GROUP: ClassVar[str] = ""
    KIND: ClassVar[str] = ""
    #: Key of an object in documents of the service; "" if it is the document.
    KEY: ClassVar[str] = ""
    #: Words of kinds that the objects may be `of`; whether they have to.
    PARENTS: ClassVar[tuple[str, ...]] = ()
    NEEDS_PARENT: ClassVar[bool] = False
    #: Without `count` there is one object for each parent.
    ONE_EACH: ClassVar[bool] = False
    #: JSON schemas of further keys; the required ones; the attributes that osbench sets itself.
    PROPERTIES: ClassVar[Mapping[str, Any]] = {}
    REQUIRED: ClassVar[tuple[str, ...]] = ()
    RESERVED: ClassVar[tuple[str, ...]] = ("name", "project_id", "tenant_id")
    #: Name of its quota in the service; "" if there is none.
    QUOTA: ClassVar[str] = ""
    #: The wait of `WAITS` until an object has the status READY_STATUS; "" if it is ready at once.
    WAIT: ClassVar[str] = ""
    READY_STATUS: ClassVar[str] = ""

    def __init__(self, entry: SeedEntry, access: CloudAccess) -> None:
        self.entry = entry
        self._access = access

    @classmethod
    def schema(cls) -> dict[str, Any]:
        """Return the JSON schema of an entry of the kind."""
        of = {"of": {"type": "string"}} if cls.PARENTS else {}
        return {
            "type": "object",
            "properties": {
                "count": {"type": "integer", "minimum": 0, "maximum": MOST_SEEDED},
                "group": {"type": "string", "pattern": f"^{GROUP_NAME}$"},
                **of,
                **cls.PROPERTIES,
                "fields": {"type": "object"},
            },
            "required": [*(() if cls.ONE_EACH else ("count",)), *cls.REQUIRED],
            "additionalProperties": False,
        }

    @classmethod
    def problems(cls, entry: SeedEntry, entries: Sequence[SeedEntry]) -> list[Problem]:
        """Return problems of an entry that its schema does not show; `entries`: all of the file."""
        return [
            Problem(f"{entry.place}.fields", f"osbench sets {name} itself; leave it out")
            for name in entry.options.get("fields", {})
            if name in cls.RESERVED
        ]

    @cached_property
    def kind(self) -> Kind:
        """The kind as it is listed and deleted, with states."""
        return kinds(self.KIND)[0].detailed

    @cached_property
    def cloud(self) -> Cloud:
        """The client that makes the objects: the admin, or the first user of the record."""
        return self._access.owners(self.kind)[0]

    @property
    def key(self) -> str:
        """Key of an object in documents of the service; "" if it is the document."""
        return self.KEY

    @property
    def option(self) -> Mapping[str, Any]:
        """The keys of the entry other than count, group and `of`."""
        return self.entry.options

    def prepare(self) -> None:
        """Look up all that creations need, before the first one. Raises DeploymentError."""
        self.cloud.address(self.kind.service)

    def quotas(self) -> dict[str, int]:
        """Return how much of each quota of the service all objects of the entry take."""
        return {self.QUOTA: self.entry.count} if self.QUOTA else {}

    def inspect(self, objects: Sequence[SeedObject]) -> None:
        """Ask the cloud about the state of objects that are there, if their list lacks it."""

    def state(self, one: Mapping[str, Any], parent: str) -> str:
        """Return READY, UNFINISHED, BROKEN or ABSENT for an object as the list has it.

        `parent`: the id of the object that it belongs to, "" for none or if it is not known yet.
        """
        if not self.WAIT or not self.kind.state:
            return READY
        status = str(one.get(self.kind.state, "")).lower()
        if status in _LEAVING:
            return ABSENT
        if status.startswith("error") or status.endswith("error"):
            return BROKEN
        return UNFINISHED if status in _PENDING else READY

    def fields(self, one: SeedObject) -> dict[str, Any]:
        """Return the attributes of an object for its creation, without its name."""
        return {}

    def make(self, one: SeedObject) -> None:
        """Make an object, or go on with it, until it is ready; several threads call this.

        Called again after a transient error: an object whose response was lost is found by its
        name. Raises RequestFailed, ContextError if it fails or does not get ready in time, and
        errors of the connection.
        """
        if one.replaces:
            delete(self.kind, self.cloud, one.replaces)
            one.replaces = ""
        if not one.identity and one.requested:
            one.retried = True
            one.identity = self.find(one)
        one.requested = True
        one.identity = one.identity or self.create(one)
        self.complete(one)

    def find(self, one: SeedObject) -> str:
        """Return the id of the object with this name that is not being removed; "" if none."""
        there = [
            found
            for found in with_name(self.kind, self.cloud, one.name)
            if self.state(found, one.parent) in (READY, UNFINISHED)
        ]
        return self.kind.identity(there[0]) if there else ""

    def create(self, one: SeedObject) -> str:
        """Send the creation of an object; return its id. An existing object of the name is used."""
        fields = {**self.option.get("fields", {}), **self.fields(one), "name": one.name}
        body = {self.key: fields} if self.key else fields
        kind = self.kind
        try:
            document = self.cloud.document("POST", kind.service, kind.path, json=body)
        except RequestFailed as error:
            # a quota that is used up is also a conflict
            there = self.find(one) if error.status == HTTPStatus.CONFLICT else ""
            if not there:
                raise
            return there
        return kind.identity(document[self.key] if self.key else document)

    def complete(self, one: SeedObject) -> None:
        """Wait until a created object is ready; it may be ready already."""
        if self.WAIT:
            kind = self.kind
            path = f"{kind.path}/{one.identity}"
            await_status(
                self.cloud, kind.service, path, self.key, self.READY_STATUS, self.WAIT, "error"
            )
