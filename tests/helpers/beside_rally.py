"""Runs a scenario of Rally in the process of a test, on the small cloud, to compare requests."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import parse_qsl, urlencode, urlsplit

from helpers.cloud_workload import PARTS, actions
from helpers.fake_cloud import ADMIN, PASSWORD, FakeCloud

#: Ids, and names that osbench and Rally give.
_ID = re.compile(r"\b[0-9a-f]{8}-?(?:[0-9a-f]{4}-?){3}[0-9a-f]{12}\b")
_NAME = re.compile(r"osb-[\w-]+?-i\d+-[0-9a-f]{16}|[cs][-_]rally[-_]\w{8}[-_]\w{8}")
#: Address ranges, which depend on the iterations before.
_RANGE = re.compile(r"\b\d+\.\d+\.\d+\.0/24\b")
#: Fields that Rally's clients send with the value that services take without them.
_USUAL = (("min_count", 1), ("max_count", 1))
#: Logins, and questions for the versions of a service.
_NO_REQUEST = re.compile(r"/v3(/|$)|/\w+(/v[\d.]+)?/?$")


def said(cloud: FakeCloud) -> list[str]:
    """The requests since the last `clear`: "METHOD path?query {body}", without ids, names, ranges.

    Each of several equal ones in a row once, as polls; without logins, and values that are null,
    false or empty.
    """
    found: list[str] = []
    for (method, address, _), body in zip(cloud.seen, cloud.bodies, strict=True):
        split = urlsplit(address)
        if _NO_REQUEST.match(split.path):
            continue
        query = urlencode(sorted(parse_qsl(split.query)))
        sent = json.dumps(_filled(json.loads(body)), sort_keys=True) if body else ""
        line = f"{method} {split.path.rstrip('/')}{'?' * bool(query)}{query} {sent}".rstrip()
        line = _RANGE.sub("RANGE", _ID.sub("ID", _NAME.sub("NAME", line)))
        if not found or found[-1] != line:
            found.append(line)
    return found


def clear(cloud: FakeCloud) -> None:
    cloud.seen.clear()
    cloud.bodies.clear()


def _filled(value: Any) -> Any:
    if not isinstance(value, dict):
        return value
    inner = {key: _filled(one) for key, one in value.items()}
    return {
        key: one
        for key, one in inner.items()
        if one not in (None, False, {}, [], "") and (key, one) not in _USUAL
    }


def timed(scenario: Any) -> dict[str, int]:
    """Actions of an iteration of osbench, nested as "outer > inner", without parts of waits."""
    return {
        name: count
        for name, count in actions(scenario).items()
        if name.rpartition(" > ")[2] not in PARTS
    }


def run_rally(
    cloud: FakeCloud,
    name: str,
    args: Mapping[str, Any],
    tenant: Mapping[str, Any],
    context: Mapping[str, Any],
    iteration: int,
    **user_context: Any,
) -> dict[str, int]:
    """Run Rally's scenario once as the administrator; returns its actions as `timed` does.

    `tenant`, `context` and `user_context` are what its contexts would have made. Rally must be
    installed.
    """
    from rally.common import cfg
    from rally.task import scenario
    from rally_openstack.common.credential import OpenStackCredential

    if not cfg.CONF._args:
        cfg.CONF([], project="rally")
    project = cloud.find("projects", ADMIN)["id"]
    credential = OpenStackCredential(
        auth_url=cloud.auth_url,
        username=ADMIN,
        password=PASSWORD,
        tenant_name=ADMIN,
        user_domain_name="Default",
        project_domain_name="Default",
        permission="admin",
    )
    user = {"id": cloud.find("users", ADMIN)["id"], "credential": credential, "tenant_id": project}
    user |= user_context
    made = {
        "task": {"uuid": "t" * 36},
        "owner_id": "o" * 36,
        "iteration": iteration,
        "admin": {"credential": credential},
        "users": [user],
        "user": user,
        "tenants": {project: {"id": project, "name": ADMIN, **tenant}},
        **context,
    }
    made["tenant"] = made["tenants"][project]
    found = scenario.Scenario.get(name)(made)
    found.run(**args)
    counts: dict[str, int] = {}
    for path in _paths(found.atomic_actions(), ""):
        counts[path] = counts.get(path, 0) + 1
    return counts


def _paths(several: list[dict[str, Any]], outer: str) -> Iterator[str]:
    for one in several:
        path = f"{outer}{one['name']}"
        yield path
        yield from _paths(one.get("children") or [], f"{path} > ")
