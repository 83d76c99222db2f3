"""The kinds of resources that scenarios and contexts create, and how to list and delete them.

Resources are found by name (see the module `resource_names`), and deleted by id.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from http import HTTPStatus
from types import MappingProxyType
from typing import Any
from urllib.parse import parse_qs, quote, urlsplit

from osbench.edges.openstack.common import neutron
from osbench.edges.openstack.common.cloud import Cloud
from osbench.edges.openstack.common.request_errors import RequestFailed

#: Limit on domains of Keystone that are searched.
MOST_DOMAINS = 500


def _none(_: Cloud) -> Sequence[Mapping[str, Any]]:
    return ()


@dataclass(frozen=True, kw_only=True)
class Kind:
    """A kind of objects of a service, such as servers of Nova, and how to list and delete them."""

    #: For messages, in the plural.
    name: str
    service: str
    #: Path of the list, and key of the list in the response.
    path: str
    key: str
    #: Field that holds the name ("meta.name": in the field `meta`), and field that holds the id, or
    #: a URL that ends with it (`..._ref`); several with "/" between them are parts of an object's
    #: path.
    named: str = "name"
    identified: str = "id"
    #: Suffix that the service itself appends to names.
    appended: re.Pattern[str] | None = None
    #: Key of the object in an element of the list; "" where the element is the object.
    inner: str = ""
    #: It belongs to the cloud, not to a project: the administrator lists it.
    everywhere: bool = False
    #: It belongs to a user, not to a project: each user lists its own.
    personal: bool = False
    #: Parameters that restrict the list to names with a prefix.
    narrowed: Callable[[str, Cloud], Mapping[str, Any]] = lambda beginning, cloud: {}
    #: Parameters that restrict the list to one name.
    exact: Callable[[str], Mapping[str, Any]] = lambda name: {"name": name}
    #: Parameters of further lists, for objects that the first one omits.
    further: Callable[[Cloud], Sequence[Mapping[str, Any]]] = _none
    #: Page size, with the last object's id as `marker`; 0 lists all at once.
    page: int = 500
    #: Pages begin at a number of objects, `offset`, and not after the object `marker`.
    counted: bool = False
    #: Added to the path of a deletion.
    forced: str = ""
    #: A deletion is accepted first and completed later.
    slow: bool = False
    #: The service may lack the kind, and responds with 404 to its list.
    optional: bool = False
    #: Path of the list if it has more fields than that at `path`, and which of its objects count.
    list_path: str = ""
    only: Callable[[Mapping[str, Any]], bool] = lambda one: True
    #: Path of the list with times of creation and states, if that at `path` lacks them.
    details: str = ""
    #: Field with the state of an object, such as ERROR; "" if objects have none.
    state: str = ""
    #: Field that names the change that is being made to an object, if that is not in its state.
    change: str = ""
    #: Unlocks an object whose deletion is refused with 409.
    unlock: Callable[[Cloud, str], None] | None = None
    #: Detaches an object from others, which would forbid its deletion.
    release: Callable[[Cloud, str], None] | None = None

    @property
    def detailed(self) -> Kind:
        """Return a copy whose list has times of creation and states."""
        return replace(self, list_path=self.details or self.list_path)

    def identity(self, one: Mapping[str, Any]) -> str:
        """Return the id of an object: the part of its URL below the path of the list.

        `one` is the object as the service describes it. For stacks of Heat the id is NAME/ID.
        """
        parts = ((field, str(one[field])) for field in self.identified.split("/"))
        return "/".join(
            value.rpartition("/")[2] if field.endswith("_ref") else value for field, value in parts
        )

    def objects(self, document: Any) -> list[Mapping[str, Any]]:
        """Return the objects in the JSON of a response to a list request; empty for None."""
        page = (document or {}).get(self.key, ()) if self.key else document or ()
        return [one[self.inner] if self.inner else one for one in page]


def _starts(beginning: str, _: Cloud) -> Mapping[str, Any]:
    return {"name__startswith": beginning}


def _own(_: str, cloud: Cloud) -> Mapping[str, Any]:
    return {"owner": cloud.project_id}


def _matching(beginning: str, _: Cloud) -> Mapping[str, Any]:
    return {"name": f"^{beginning}"}


def _private(_: str, __: Cloud) -> Mapping[str, Any]:
    # without it private flavors and types of volumes are left out
    return {"is_public": "None"}


def _equal(name: str) -> Mapping[str, Any]:
    # Nova takes it for a regular expression
    return {"name": f"^{re.escape(name)}$"}


def _unlock_server(cloud: Cloud, identity: str) -> None:
    body = {"unlock": None}
    cloud.request("POST", "nova", f"servers/{identity}/action", json=body, expected=(202, 404))


def _of_a_snapshot(volume: Mapping[str, Any]) -> bool:
    return bool(volume.get("snapshot_id"))


def _without_hosts(cloud: Cloud, identity: str) -> None:
    """Remove all hosts from an aggregate, because Nova deletes only empty ones."""
    path = f"os-aggregates/{identity}"
    response = cloud.request("GET", "nova", path, expected=(200, 404))
    if response.status_code == HTTPStatus.NOT_FOUND:
        return
    for host in response.json()["aggregate"].get("hosts") or ():
        body = {"remove_host": {"host": host}}
        cloud.request("POST", "nova", f"{path}/action", json=body, expected=(200, 404))


def _without_objects(cloud: Cloud, identity: str) -> None:
    """Delete all objects in a Swift container, because Swift deletes only empty ones."""
    params = {"format": "json"}
    before = None
    while found := cloud.document("GET", "swift", identity, params=params, expected=(200, 204)):
        # a service that does not know markers
        if found == before:
            return
        before = found
        for one in found:
            path = f"{identity}/{quote(one['name'], safe='')}"
            cloud.request("DELETE", "swift", path, expected=(200, 204, 404))
        # a listing may be older than a deletion
        params["marker"] = found[-1]["name"]


def _prefix_query(beginning: str, _: Cloud) -> Mapping[str, Any]:
    return {"prefix": beginning, "format": "json"}


def _hidden_query(_: Cloud) -> Sequence[Mapping[str, Any]]:
    return ({"os_hidden": "true"},)


def _domains(cloud: Cloud) -> Sequence[Mapping[str, Any]]:
    """Return the parameters of one list request per domain, at most `MOST_DOMAINS`.

    They are needed because Keystone's lists omit objects of other domains. Empty if listing domains
    is forbidden. Raises RequestFailed for other refusals.
    """
    try:
        found = cloud.document("GET", "keystone", "domains")["domains"]
    except RequestFailed as error:
        if error.status != HTTPStatus.FORBIDDEN:
            raise
        return ()
    return [{"domain_id": domain["id"]} for domain in found[:MOST_DOMAINS]]


def _in_project(_: str, cloud: Cloud) -> Mapping[str, Any]:
    """Return parameters for the client's project only: administrators would see all."""
    return {"project_id": cloud.project_id}


def _remove_interfaces(cloud: Cloud, router: str) -> None:
    """Remove a router's interfaces, because Neutron deletes only routers without any."""
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


def _kind(service: str, path: str, key: str = "", name: str = "", **more: Any) -> Kind:
    # most lists have the key of their path, and their kinds the words of the key
    key = key or path
    return Kind(service=service, path=path, key=key, name=name or key.replace("_", " "), **more)


def _of_neutron(name: str, kind: str, **more: Any) -> Kind:
    path = neutron.path_of(kind)
    return _kind(neutron.SERVICE, path, f"{kind}s", name, narrowed=_in_project, **more)


def _of_barbican(name: str) -> Kind:
    # the administrator's, a page has 100 at most
    named = "meta.name" if name == "orders" else "name"
    return _kind(
        "barbican",
        name,
        named=named,
        identified=f"{name[:-1]}_ref",
        everywhere=True,
        page=100,
        counted=True,
        state="status",
    )


def _of_gnocchi(path: str, **more: Any) -> Kind:
    # lists are without a key
    name = f"{path.partition('/')[0].replace('_', ' ')}s".replace("policys", "policies")
    return Kind(name=name, service="gnocchi", path=path, key="", **more)


#: Names of objects in a workbook start with the workbook's name and a dot.
_IN_WORKBOOK = re.compile(r"\..+\Z", re.DOTALL)

#: Kinds by service, in the order in which they are deleted.
KINDS: Mapping[str, tuple[Kind, ...]] = MappingProxyType(
    {
        "nova": (
            _kind(
                "nova",
                "servers",
                # of several servers made by one request
                appended=re.compile(r"-\d+\Z"),
                details="servers/detail",
                state="status",
                change="OS-EXT-STS:task_state",
                narrowed=_matching,
                exact=_equal,
                slow=True,
                unlock=_unlock_server,
            ),
            _kind(
                "nova",
                "os-keypairs",
                "keypairs",
                inner="keypair",
                identified="name",
                personal=True,
                page=0,
            ),
            _kind("nova", "os-server-groups", "server_groups", page=0),
        ),
        # objects that only the administrator makes
        "nova_admin": (
            _kind(
                "nova",
                "os-aggregates",
                "aggregates",
                everywhere=True,
                page=0,
                release=_without_hosts,
            ),
            _kind("nova", "flavors", everywhere=True, narrowed=_private),
        ),
        # objects that only the administrator makes
        "cinder_admin": (
            _kind("cinder", "types", "volume_types", everywhere=True, narrowed=_private, page=0),
            _kind(
                "cinder",
                "qos-specs",
                "qos_specs",
                everywhere=True,
                page=0,
                # also while types have them
                forced="?force=true",
            ),
        ),
        "cinder": (
            # an offered volume cannot be deleted
            _kind("cinder", "os-volume-transfer", "transfers", page=0),
            # some back ends delete a snapshot only after the volumes that were created from it,
            # and a volume only after its snapshots
            _kind(
                "cinder",
                "volumes",
                name="volumes of snapshots",
                list_path="volumes/detail",
                only=_of_a_snapshot,
                slow=True,
            ),
            *(
                _kind("cinder", name, details=f"{name}/detail", state="status", slow=True)
                for name in ("backups", "snapshots", "volumes")
            ),
        ),
        "heat": (
            _kind(
                "heat",
                "stacks",
                named="stack_name",
                identified="stack_name/id",
                state="stack_status",
                slow=True,
            ),
        ),
        "swift": (
            Kind(
                name="containers",
                service="swift",
                path="",
                key="",
                identified="name",
                narrowed=_prefix_query,
                release=_without_objects,
            ),
        ),
        "glance": (
            _kind("glance", "images", narrowed=_own, further=_hidden_query, state="status"),
        ),
        "octavia": (
            _kind(
                "octavia",
                "lbaas/loadbalancers",
                "loadbalancers",
                name="load balancers",
                narrowed=_in_project,
                state="provisioning_status",
                # with its listeners and pools
                forced="?cascade=true",
                slow=True,
            ),
        ),
        # objects that only the administrator makes
        "neutron_admin": (
            _kind("neutron", "bgpvpn/bgpvpns", "bgpvpns", everywhere=True, page=0, optional=True),
        ),
        "neutron": (
            # these have no name
            _of_neutron(
                "floating ips", "floatingip", named="description", state="status", optional=True
            ),
            # a trunk holds its ports, and a group its policies with their rules
            _of_neutron("trunks", "trunk", state="status", optional=True),
            *(
                _kind(
                    neutron.SERVICE,
                    f"fwaas/{key}",
                    key,
                    narrowed=_in_project,
                    state="status" if key == "firewall_groups" else "",
                    optional=True,
                )
                for key in ("firewall_groups", "firewall_policies", "firewall_rules")
            ),
            _of_neutron(
                "routers", "router", release=_remove_interfaces, state="status", optional=True
            ),
            _of_neutron("ports", "port", state="status"),
            _of_neutron("subnets", "subnet"),
            _of_neutron("networks", "network", state="status"),
            # with their rules
            _of_neutron("security groups", "security_group", optional=True),
        ),
        "designate": (
            _kind(
                "designate",
                "zones",
                # zones are domains
                appended=re.compile(r"\.name\.\Z"),
                state="status",
                slow=True,
            ),
        ),
        "barbican": tuple(map(_of_barbican, ("orders", "containers", "secrets"))),
        "manila": (
            _kind(
                "manila", "shares", details="shares/detail", state="status", counted=True, slow=True
            ),
            _kind("manila", "share-networks", "share_networks", counted=True),
            # Manila takes parameters of an administrator's list for filters
            _kind("manila", "security-services", "security_services", page=0),
        ),
        "magnum": (
            _kind("magnum", "clusters", identified="uuid", state="status", slow=True),
            _kind(
                "magnum", "clustertemplates", name="cluster templates", identified="uuid", page=0
            ),
        ),
        "ironic": (
            _kind("ironic", "nodes", identified="uuid", everywhere=True, state="provision_state"),
        ),
        "gnocchi": (
            _of_gnocchi("resource/generic", named="original_resource_id"),
            _of_gnocchi("metric"),
        ),
        # objects that only the administrator makes
        "gnocchi_admin": (
            _of_gnocchi("archive_policy_rule", identified="name", everywhere=True, page=0),
            _of_gnocchi("archive_policy", identified="name", everywhere=True, page=0),
            _of_gnocchi("resource_type", identified="name", everywhere=True, page=0),
        ),
        "mistral": (
            _kind(
                "mistral",
                "executions",
                named="workflow_name",
                state="state",
                appended=_IN_WORKBOOK,
                forced="?force=true",
            ),
            _kind("mistral", "workflows", appended=_IN_WORKBOOK),
            _kind(
                "mistral",
                "actions",
                appended=_IN_WORKBOOK,
                # the marker is a name or an id, depending on Mistral's version
                page=0,
            ),
            _kind("mistral", "workbooks", identified="name", page=0),
        ),
        "zaqar": (
            _kind(
                "zaqar",
                "queues",
                identified="name",
                # Zaqar's limit
                page=20,
            ),
        ),
        "placement": (
            _kind("placement", "resource_providers", identified="uuid", everywhere=True, page=0),
        ),
        "keystone": tuple(
            # Keystone cuts lists without a limit at 1,000 objects, of any name
            _kind("keystone", name, everywhere=True, narrowed=_starts, further=further, page=1000)
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
    """Return the kinds of a service, such as `keystone`, or one kind, such as `keystone.users`.

    In order of deletion. Raises KeyError for an unknown service; empty for an unknown kind.
    """
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
    """Send one list request for a kind, to check that the account of `cloud` may list it.

    `beginning`: prefix of names. Raises RequestFailed if it may not, DeploymentError if the cloud
    lacks the service.
    """
    params = dict(kind.narrowed(beginning, cloud))
    if kind.page:
        params["limit"] = 1
    _page(kind, cloud, params)


def beginning_with(kind: Kind, cloud: Cloud, beginning: str) -> Iterator[Mapping[str, Any]]:
    """Yield the objects of a kind that the account of `cloud` can see, each once.

    Only names with the prefix `beginning` are requested, but a service may ignore the prefix:
    callers have to check names. Objects are mappings as the service describes them.
    """
    seen: set[str] = set()
    narrowed = kind.narrowed(beginning, cloud)
    for more in ({}, *kind.further(cloud)):
        for one in _listed_objects(kind, cloud, {**narrowed, **more}):
            identity = kind.identity(one)
            if identity not in seen and kind.only(one):
                seen.add(identity)
                yield one


def with_name(kind: Kind, cloud: Cloud, name: str) -> list[Mapping[str, Any]]:
    """Return the objects of a kind with exactly this name that the account of `cloud` can see.

    Only those are requested, but a service may ignore the name: then all objects are read. Raises
    the errors of `Cloud.document`.
    """
    params = {**kind.narrowed(name, cloud), **kind.exact(name)}
    return [one for one in _listed_objects(kind, cloud, params) if name in names_of(one, kind)]


def _listed_objects(
    kind: Kind, cloud: Cloud, params: dict[str, Any]
) -> Iterator[Mapping[str, Any]]:
    """Yield the objects of one list, page after page, until a page has no new ones.

    Links to a next page are followed even then: Keystone compares names after it has cut a page.
    `params`: parameters of the request; limit and marker are added to it. Raises RequestFailed.
    """
    if kind.page:
        params["limit"] = kind.page
    seen: set[str] = set()
    markers: set[str] = set()
    while True:
        document = _page(kind, cloud, params)
        fresh = [one for one in kind.objects(document) if kind.identity(one) not in seen]
        seen.update(map(kind.identity, fresh))
        yield from fresh
        following = _marker(document)
        # a service that does not support markers returns the same page again
        if not kind.page or not (fresh or following) or following in markers:
            return
        markers |= {following} - {""}
        if kind.counted:
            params["offset"] = len(seen)
            continue
        params["marker"] = following or kind.identity(fresh[-1]).rpartition("/")[2]


def _page(kind: Kind, cloud: Cloud, params: Mapping[str, Any]) -> Any:
    """Return the JSON response to one list request; {} if the service lacks an optional kind.

    Raises RequestFailed, and DeploymentError if the cloud lacks the service.
    """
    try:
        return cloud.document("GET", kind.service, kind.list_path or kind.path, params=params)
    except RequestFailed as error:
        if not kind.optional or error.status != HTTPStatus.NOT_FOUND:
            raise
        return {}


def delete(kind: Kind, cloud: Cloud, identity: str) -> None:
    """Request the deletion of the object `identity`; before that, detach or empty it if necessary.

    If it is refused as locked (409), it is unlocked and requested again. Returns once the service
    has accepted; a missing object counts as deleted. Raises RequestFailed if the service refuses.
    """
    if kind.release is not None:
        kind.release(cloud, identity)
    # the parts of a path are names of osbench and ids, which have no "/"
    path = f"{kind.path}/{quote(identity)}{kind.forced}"
    done = (200, 202, 204, 404)
    if kind.unlock is not None:
        response = cloud.request("DELETE", kind.service, path, expected=(*done, 409))
        if response.status_code != HTTPStatus.CONFLICT:
            return
        kind.unlock(cloud, identity)
    cloud.request("DELETE", kind.service, path, expected=done)


def names_of(one: Mapping[str, Any], kind: Kind) -> set[str]:
    """Return all strings of an object that may be a name given by osbench.

    These are its name, its tags, and its name without a suffix that the service appends.
    """
    found: Any = one
    for field in kind.named.split("."):
        found = (found or {}).get(field)
    name = str(found or "")
    # objects with a name chosen by the user have osbench's name as a tag
    names = {name, *map(str, one.get("tags") or ())}
    if kind.appended is not None:
        names.add(kind.appended.sub("", name))
    return names


def _marker(document: Any) -> str:
    """Return the `marker` of a response's link to the next page; "" if there is none.

    Links of Zaqar are a list, Keystone's a mapping.
    """
    links = (document.get("links") if isinstance(document, dict) else None) or ()
    following = [links.get("next")] if isinstance(links, dict) else []
    following += [
        link.get("href") for link in links if isinstance(link, dict) and link.get("rel") == "next"
    ]
    for href in filter(None, following):
        return parse_qs(urlsplit(str(href)).query).get("marker", [""])[0]
    return ""
