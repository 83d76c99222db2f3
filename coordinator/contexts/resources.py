"""What scenarios and contexts leave in a cloud, and how each kind is listed and deleted.

Everything is found by its name (see `names`), and deleted by its id.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from http import HTTPStatus
from types import MappingProxyType
from typing import Any
from urllib.parse import parse_qs, quote, urlsplit

from osbench.common.openstack.cloud import Cloud
from osbench.common.openstack.request_errors import RequestFailed

#: Domains of Keystone that are looked through.
MOST_DOMAINS = 500


def _none(_: Cloud) -> Sequence[Mapping[str, Any]]:
    return ()


@dataclass(frozen=True, kw_only=True)
class Kind:
    """One kind of objects of a service."""

    #: For messages, in the plural.
    name: str
    service: str
    #: Path of the list, and key of the list in the answer.
    path: str
    key: str
    #: Field that holds the name, and field that holds the id.
    named: str = "name"
    identified: str = "id"
    #: What a service itself appends to names.
    appended: re.Pattern[str] | None = None
    #: It belongs to the cloud, not to a project: the administrator lists it.
    everywhere: bool = False
    #: Parameters of the list for a beginning of names, beside that of the page.
    narrowed: Callable[[str, Cloud], Mapping[str, Any]] = lambda beginning, cloud: {}
    #: Parameters of further lists, which show what the first leaves out.
    further: Callable[[Cloud], Sequence[Mapping[str, Any]]] = _none
    #: Objects that are asked for at once, with the last one's id as `marker`; 0 is all of them.
    page: int = 500
    #: Added to the path of a deletion.
    forced: str = ""
    #: Deleting it is accepted first and done later.
    slow: bool = False


def _starts(beginning: str, _: Cloud) -> Mapping[str, Any]:
    return {"name__startswith": beginning}


def _own(_: str, cloud: Cloud) -> Mapping[str, Any]:
    return {"owner": cloud.project_id}


def _matching(beginning: str, _: Cloud) -> Mapping[str, Any]:
    return {"name": f"^{beginning}"}


def _hidden(_: Cloud) -> Sequence[Mapping[str, Any]]:
    return ({"os_hidden": "true"},)


def _domains(cloud: Cloud) -> Sequence[Mapping[str, Any]]:
    """Keystone lists the roles of no domain, and users perhaps of one: each domain's apart."""
    try:
        found = cloud.document("GET", "keystone", "domains")["domains"]
    except RequestFailed as error:
        if error.status != HTTPStatus.FORBIDDEN:
            raise
        return ()
    return [{"domain_id": domain["id"]} for domain in found[:MOST_DOMAINS]]


#: What is in a workbook has the workbook's name before its own.
_IN_WORKBOOK = re.compile(r"\..+\Z", re.DOTALL)

#: Kinds by service, in the order in which they are deleted.
KINDS: Mapping[str, tuple[Kind, ...]] = MappingProxyType(
    {
        "nova": (
            Kind(
                name="servers",
                service="nova",
                path="servers",
                key="servers",
                # of several that are made at once
                appended=re.compile(r"-\d+\Z"),
                narrowed=_matching,
                slow=True,
            ),
        ),
        "cinder": (
            Kind(name="volumes", service="cinder", path="volumes", key="volumes", slow=True),
        ),
        "glance": (
            Kind(
                name="images",
                service="glance",
                path="images",
                key="images",
                narrowed=_own,
                further=_hidden,
            ),
        ),
        "mistral": (
            Kind(
                name="executions",
                service="mistral",
                path="executions",
                key="executions",
                named="workflow_name",
                appended=_IN_WORKBOOK,
                forced="?force=true",
            ),
            Kind(
                name="workflows",
                service="mistral",
                path="workflows",
                key="workflows",
                appended=_IN_WORKBOOK,
            ),
            Kind(
                name="actions",
                service="mistral",
                path="actions",
                key="actions",
                appended=_IN_WORKBOOK,
                # the marker is a name or an id, as Mistral's age has it
                page=0,
            ),
            Kind(
                name="workbooks",
                service="mistral",
                path="workbooks",
                key="workbooks",
                identified="name",
                page=0,
            ),
        ),
        "zaqar": (
            Kind(
                name="queues",
                service="zaqar",
                path="queues",
                key="queues",
                identified="name",
                # Zaqar refuses to be asked for more
                page=20,
            ),
        ),
        "placement": (
            Kind(
                name="resource providers",
                service="placement",
                path="resource_providers",
                key="resource_providers",
                identified="uuid",
                everywhere=True,
                page=0,
            ),
        ),
        "keystone": tuple(
            Kind(
                name=name,
                service="keystone",
                path=name,
                key=name,
                everywhere=True,
                narrowed=_starts,
                further=further,
                page=0,
            )
            for name, further in (
                ("users", _domains),
                ("projects", _domains),
                ("roles", _domains),
                ("services", _none),
            )
        ),
    }
)


def kinds(name: str) -> tuple[Kind, ...]:
    """The kinds of a service, or one: `keystone` or `keystone.users`."""
    service, _, only = name.partition(".")
    return tuple(kind for kind in KINDS[service] if only in ("", kind.name.replace(" ", "_")))


#: What `kinds` knows.
NAMES = sorted(
    name
    for service, several in KINDS.items()
    for name in (service, *(f"{service}.{kind.name.replace(' ', '_')}" for kind in several))
)


def probe(kind: Kind, cloud: Cloud, beginning: str) -> None:
    """See whether an account may list a kind of objects. Raises RequestFailed."""
    params = dict(kind.narrowed(beginning, cloud))
    if kind.page:
        params["limit"] = 1
    cloud.request("GET", kind.service, kind.path, params=params)


def find(kind: Kind, cloud: Cloud, beginning: str, is_ours: Callable[[str], bool]) -> Iterator[str]:
    """Ids of the objects of a kind with names of ours, which begin so, as one account sees them."""
    seen: set[str] = set()
    narrowed = kind.narrowed(beginning, cloud)
    for more in ({}, *kind.further(cloud)):
        for one in _listed(kind, cloud, {**narrowed, **more}):
            identity = str(one[kind.identified])
            if identity not in seen and _fits(one, kind, is_ours):
                seen.add(identity)
                yield identity


def _listed(kind: Kind, cloud: Cloud, params: dict[str, Any]) -> Iterator[Mapping[str, Any]]:
    """The objects of one list, page after page."""
    if kind.page:
        params["limit"] = kind.page
    seen: set[str] = set()
    while True:
        document = cloud.document("GET", kind.service, kind.path, params=params) or {}
        page = document.get(kind.key, [])
        fresh = [one for one in page if str(one[kind.identified]) not in seen]
        seen.update(str(one[kind.identified]) for one in fresh)
        yield from fresh
        # a service that does not know the marker answers with the same page again
        if not kind.page or not fresh:
            return
        params["marker"] = _marker(document) or fresh[-1][kind.identified]


def delete(kind: Kind, cloud: Cloud, identity: str) -> None:
    """Delete an object; one that is not there any more is as good. Raises RequestFailed."""
    path = f"{kind.path}/{quote(identity, safe='')}{kind.forced}"
    cloud.request("DELETE", kind.service, path, expected=(200, 202, 204, 404))


def _fits(one: Mapping[str, Any], kind: Kind, is_ours: Callable[[str], bool]) -> bool:
    name = str(one.get(kind.named) or "")
    # what has a name of the user's choice has a tag of ours
    names = {name, *map(str, one.get("tags") or ())}
    if kind.appended is not None:
        names.add(kind.appended.sub("", name))
    return any(map(is_ours, names))


def _marker(document: Mapping[str, Any]) -> str:
    """The marker of a link to the next page, as Zaqar has it."""
    for link in document.get("links") or ():
        if isinstance(link, dict) and link.get("rel") == "next":
            return parse_qs(urlsplit(link.get("href", "")).query).get("marker", [""])[0]
    return ""
