"""The kinds of resources that scenarios and contexts create, and how to list and delete them.

Resources are found by name (see `osbench.common.openstack.resource_names`), and deleted by id.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from http import HTTPStatus
from types import MappingProxyType
from typing import Any
from urllib.parse import parse_qs, quote, urlsplit

from osbench.common.openstack import neutron
from osbench.common.openstack.cloud import Cloud
from osbench.common.openstack.request_errors import RequestFailed

#: Limit on domains of Keystone that are searched.
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
    #: Suffix that the service itself appends to names.
    appended: re.Pattern[str] | None = None
    #: It belongs to the cloud, not to a project: the administrator lists it.
    everywhere: bool = False
    #: Parameters that restrict the list to names with a prefix.
    narrowed: Callable[[str, Cloud], Mapping[str, Any]] = lambda beginning, cloud: {}
    #: Parameters of further lists, for objects that the first one omits.
    further: Callable[[Cloud], Sequence[Mapping[str, Any]]] = _none
    #: Page size, with the last object's id as `marker`; 0 lists all at once.
    page: int = 500
    #: Added to the path of a deletion.
    forced: str = ""
    #: A deletion is accepted first and completed later.
    slow: bool = False
    #: The service may lack the kind, and answers 404 for its list.
    optional: bool = False
    #: Detaches an object from others, which would forbid its deletion.
    release: Callable[[Cloud, str], None] | None = None


def _starts(beginning: str, _: Cloud) -> Mapping[str, Any]:
    return {"name__startswith": beginning}


def _own(_: str, cloud: Cloud) -> Mapping[str, Any]:
    return {"owner": cloud.project_id}


def _matching(beginning: str, _: Cloud) -> Mapping[str, Any]:
    return {"name": f"^{beginning}"}


def _hidden(_: Cloud) -> Sequence[Mapping[str, Any]]:
    return ({"os_hidden": "true"},)


def _domains(cloud: Cloud) -> Sequence[Mapping[str, Any]]:
    """Parameters per domain: Keystone's default lists omit objects of other domains."""
    try:
        found = cloud.document("GET", "keystone", "domains")["domains"]
    except RequestFailed as error:
        if error.status != HTTPStatus.FORBIDDEN:
            raise
        return ()
    return [{"domain_id": domain["id"]} for domain in found[:MOST_DOMAINS]]


def _in_project(_: str, cloud: Cloud) -> Mapping[str, Any]:
    """Administrators see the objects of all projects."""
    return {"project_id": cloud.project_id}


def _remove_interfaces(cloud: Cloud, router: str) -> None:
    """Remove the interfaces of a router; its gateway goes with it."""
    path = f"{neutron.path_of('router', router)}/remove_router_interface"
    for port in neutron.listed(cloud, "port", device_id=router):
        if port["device_owner"] in _INTERFACES:
            body = {"port_id": port["id"]}
            cloud.request("PUT", neutron.SERVICE, path, json=body, expected=(200, 404))


#: Owners of ports that are interfaces of routers: usual, distributed, highly available ones.
_INTERFACES = (
    "network:router_interface",
    "network:router_interface_distributed",
    "network:ha_router_replicated_interface",
)


def _of_neutron(name: str, kind: str, **more: Any) -> Kind:
    return Kind(
        name=name,
        service=neutron.SERVICE,
        path=neutron.path_of(kind),
        key=f"{kind}s",
        narrowed=_in_project,
        **more,
    )


#: Names of objects in a workbook start with the workbook's name and a dot.
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
                # of several servers made by one request
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
        "octavia": (
            Kind(
                name="load balancers",
                service="octavia",
                path="lbaas/loadbalancers",
                key="loadbalancers",
                narrowed=_in_project,
                # with its listeners and pools
                forced="?cascade=true",
                slow=True,
            ),
        ),
        "neutron": (
            # these have no name
            _of_neutron("floating IPs", "floatingip", named="description", optional=True),
            _of_neutron("routers", "router", release=_remove_interfaces, optional=True),
            _of_neutron("ports", "port"),
            _of_neutron("subnets", "subnet"),
            _of_neutron("networks", "network"),
            # with their rules
            _of_neutron("security groups", "security_group", optional=True),
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
                # the marker is a name or an id, depending on Mistral's version
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
                # Zaqar's limit
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
    """The kinds of a service, as `keystone`, or one kind, as `keystone.users`."""
    service, _, only = name.partition(".")
    return tuple(kind for kind in KINDS[service] if only in ("", _word(kind)))


def _word(kind: Kind) -> str:
    return kind.name.lower().replace(" ", "_")


#: Names that `kinds` accepts.
KIND_NAMES = sorted(
    name
    for service, several in KINDS.items()
    for name in (service, *(f"{service}.{_word(kind)}" for kind in several))
)


def probe(kind: Kind, cloud: Cloud, beginning: str) -> None:
    """Check that an account may list a kind of objects. Raises RequestFailed."""
    params = dict(kind.narrowed(beginning, cloud))
    if kind.page:
        params["limit"] = 1
    _page(kind, cloud, params)


def find(kind: Kind, cloud: Cloud, beginning: str, is_ours: Callable[[str], bool]) -> Iterator[str]:
    """Ids of the objects of a kind that an account can see and whose name `is_ours`."""
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
        document = _page(kind, cloud, params)
        page = document.get(kind.key, [])
        fresh = [one for one in page if str(one[kind.identified]) not in seen]
        seen.update(str(one[kind.identified]) for one in fresh)
        yield from fresh
        # a service that does not support markers returns the same page again
        if not kind.page or not fresh:
            return
        params["marker"] = _marker(document) or fresh[-1][kind.identified]


def _page(kind: Kind, cloud: Cloud, params: Mapping[str, Any]) -> Mapping[str, Any]:
    """A page of a list, empty if the service lacks the kind. Raises RequestFailed."""
    try:
        return cloud.document("GET", kind.service, kind.path, params=params) or {}
    except RequestFailed as error:
        if not kind.optional or error.status != HTTPStatus.NOT_FOUND:
            raise
        return {}


def delete(kind: Kind, cloud: Cloud, identity: str) -> None:
    """Delete an object; a missing one counts as deleted. Raises RequestFailed."""
    if kind.release is not None:
        kind.release(cloud, identity)
    path = f"{kind.path}/{quote(identity, safe='')}{kind.forced}"
    cloud.request("DELETE", kind.service, path, expected=(200, 202, 204, 404))


def _fits(one: Mapping[str, Any], kind: Kind, is_ours: Callable[[str], bool]) -> bool:
    name = str(one.get(kind.named) or "")
    # objects with a name chosen by the user have osbench's name as a tag
    names = {name, *map(str, one.get("tags") or ())}
    if kind.appended is not None:
        names.add(kind.appended.sub("", name))
    return any(map(is_ours, names))


def _marker(document: Mapping[str, Any]) -> str:
    """The marker in a link to the next page, as Zaqar returns it."""
    for link in document.get("links") or ():
        if isinstance(link, dict) and link.get("rel") == "next":
            return parse_qs(urlsplit(link.get("href", "")).query).get("marker", [""])[0]
    return ""
