"""Lists objects of a service, page by page, and finds their ids by name."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from http import HTTPStatus
from types import MappingProxyType
from typing import Any

from osbench.common.errors import DeploymentError
from osbench.edges.openstack.common.cloud import Cloud

#: Page size of look-ups; services may return fewer.
_PAGE = 1000


@dataclass(frozen=True, kw_only=True)
class _List:
    service: str
    path: str
    key: str


_LISTS: Mapping[str, _List] = MappingProxyType(
    {
        "image": _List(service="glance", path="images", key="images"),
        "flavor": _List(service="nova", path="flavors", key="flavors"),
        "volume type": _List(service="cinder", path="types", key="volume_types"),
    }
)


def listed_objects(
    cloud: Cloud,
    service: str,
    path: str,
    key: str,
    params: Mapping[str, Any] | None = None,
    *,
    page: int = 0,
) -> list[dict[str, Any]]:
    """Return all objects of a list, from all pages; one page if `params` have a limit.

    `key`: the key of the list in a document. `page`: the page size to request; 0: the service's
    default. Ends at a page without a new object.
    """
    objects: list[dict[str, Any]] = []
    known: set[str] = set()
    asked = {**(params or {}), **({"limit": page} if page else {})}
    while True:
        document = cloud.document("GET", service, path, params=asked)
        some = document[key]
        fresh = identities(some) - known
        if not fresh:
            return objects
        known |= fresh
        objects += some
        # Glance has the former key, other services the latter
        more = document.get("next") or document.get(f"{key}_links")
        if not more or "limit" in (params or {}):
            return objects
        asked["marker"] = some[-1]["id"]


def identities(page: Iterable[Mapping[str, Any]]) -> set[str]:
    """Return the ids of objects; the text of an object without one."""
    return {str(one.get("id") or one) for one in page}


def sought(cloud: Cloud, what: str, given: Any) -> str:
    """Return the id of an image or flavor that a task gives by id, name or regular expression.

    Text, or the key `id`, is an id and returned without a request. Else the key `name` or `regex`:
    an equal name comes first, then names that it matches as a regular expression. Raises
    DeploymentError unless exactly one object matches.
    """
    wanted = given if isinstance(given, Mapping) else {"id": given}
    if "id" in wanted:
        return str(wanted["id"])
    name = str(wanted.get("name") or wanted.get("regex") or "")
    found = _every(cloud, what)
    fitting = [one for one in found if one["name"] == name]
    if not fitting:
        try:
            pattern = re.compile(name)
        except re.error as error:
            raise DeploymentError(
                f"there is no {what} {name!r}, and it is not a regular expression: {error}; give "
                "an exact name"
            ) from None
        fitting = [one for one in found if pattern.search(one["name"] or "")]
    return _only(what, name, fitting, found)


def require(cloud: Cloud, what: str, given: Any) -> None:
    """Raise DeploymentError unless the image, flavor or volume type `given` exists; asks the cloud.

    `what`: which of the three. `given` is as in `sought`; of a volume type a name or id.
    """
    one = _LISTS[what]
    if what == "volume type":
        id_of(cloud, what, given)
        return
    identity = sought(cloud, what, given)
    response = cloud.request("GET", one.service, f"{one.path}/{identity}", expected=(200, 404))
    if response.status_code != HTTPStatus.OK:
        raise DeploymentError(
            f"there is no {what} with the id {identity!r}; give the id or name of an existing one"
        )


def id_of(cloud: Cloud, what: str, given: str) -> str:
    """Return the id of the image, flavor or volume type (`what`) with the name or id `given`.

    Raises DeploymentError unless exactly one object matches.
    """
    found = _every(cloud, what)
    return _only(what, given, [one for one in found if given in (one["id"], one["name"])], found)


def _every(cloud: Cloud, what: str) -> list[dict[str, Any]]:
    one = _LISTS[what]
    return listed_objects(cloud, one.service, one.path, one.key, page=_PAGE)


def _only(what: str, name: str, fitting: list[dict[str, Any]], found: list[dict[str, Any]]) -> str:
    if len(fitting) != 1:
        if fitting:
            raise DeploymentError(
                f"there is more than one {what} {name!r}: give the exact name, or an id"
            )
        there = ", ".join(sorted(str(one["name"]) for one in found)[:10])
        raise DeploymentError(
            f"there is no {what} {name!r}; {f'choose from {there}' if there else 'create one'}"
        )
    return str(fitting[0]["id"])
