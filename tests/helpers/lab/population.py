"""How many things a lab's cloud has, of whomever they are."""

from __future__ import annotations

import sqlite3
import subprocess
import time
from contextlib import closing
from typing import Any

from keystoneauth1.session import Session

from servers.child import PATIENCE_S
from services.catalogue import admin
from services.lab import Lab
from services.mariadb import database_url

#: Counted by the service's API: type in the catalogue, path, key.
_LISTED = {
    "keystone": (
        ("identity", "/users", "users"),
        ("identity", "/projects", "projects"),
        ("identity", "/roles", "roles"),
        ("identity", "/services", "services"),
        ("identity", "/credentials", "credentials"),
    ),
    "glance": (("image", "/v2/images?limit=1000", "images"),),
    "placement": (("placement", "/resource_providers", "resource_providers"),),
    "nova": (
        ("compute", "/servers?all_tenants=1", "servers"),
        ("compute", "/os-server-groups?all_projects=1", "server_groups"),
        ("compute", "/flavors?is_public=None", "flavors"),
        ("compute", "/os-aggregates", "aggregates"),
    ),
    "neutron": tuple(
        ("network", f"/v2.0/{kind.replace('_', '-')}", kind)
        for kind in ("networks", "subnets", "ports", "routers", "floatingips", "quotas")
    ),
    "cinder": (
        ("block-storage", "/volumes?all_tenants=1", "volumes"),
        ("block-storage", "/snapshots?all_tenants=1", "snapshots"),
    ),
    # of the administrator's project only, for which all scenarios work
    "barbican": tuple(
        ("key-manager", f"/v1/{kind}?limit=100", kind)
        for kind in ("secrets", "containers", "orders")
    ),
    "designate": (("dns", "/v2/zones?limit=1000", "zones"),),
    "manila": tuple(
        ("shared-file-system", f"/{kind.replace('_', '-')}?all_tenants=1", kind)
        for kind in ("shares", "share_networks", "security_services")
    ),
    "ironic": (("baremetal", "/v1/nodes", "nodes"),),
}
#: Lets Designate list the zones of all projects.
_EVERYWHERE = {"X-Auth-All-Projects": "true"}
#: Neither Mistral's workbooks nor Zaqar's queues are visible to other projects.
_MISTRAL = ("workbooks_v2", "workflow_definitions_v2", "workflow_executions_v2")
_COUNT_MISTRAL = """
import sys, sqlalchemy
url, *tables = sys.stdin.read().split()
with sqlalchemy.create_engine(url).connect() as connection:
    for table in tables:
        print(connection.execute(sqlalchemy.text(f"SELECT COUNT(*) FROM {table}")).scalar())
"""


def population(lab: Lab, *services: str) -> dict[str, int]:
    """How many things of each kind these services have, by its name."""
    client = admin(lab)
    found = {
        key: len(_listed(client, kind, path)[key])
        for service in services
        for kind, path, key in _LISTED.get(service, ())
    }
    if "zaqar" in services:
        with closing(sqlite3.connect(lab.home("zaqar") / "zaqar.db")) as database:
            (found["queues"],) = database.execute("SELECT COUNT(*) FROM Queues").fetchone()
    if "neutron" in services:
        found["security groups of no project"] = _of_no_project(client)
    if "manila" in services:
        found["share_servers"] = _share_servers(client)
    if "mistral" in services:
        found |= _of_mistral(lab)
    return found


def _listed(client: Session, kind: str, path: str) -> dict[str, list[dict[str, Any]]]:
    response = client.get(path, endpoint_filter={"service_type": kind}, headers=_EVERYWHERE)
    found: dict[str, list[dict[str, Any]]] = response.json()
    return found


def _of_no_project(client: Session) -> int:
    """Neutron makes one for each project that is used, and keeps it when the project goes."""
    identity, network = ({"service_type": kind} for kind in ("identity", "network"))
    projects = client.get("/projects", endpoint_filter=identity).json()["projects"]
    known = {one["id"] for one in projects}
    groups = client.get("/v2.0/security-groups", endpoint_filter=network).json()["security_groups"]
    return sum(one["project_id"] not in known for one in groups)


def _share_servers(client: Session) -> int:
    """Count share servers, after those whose network is gone, which Manila removes soon."""
    deadline = time.monotonic() + PATIENCE_S
    while True:
        servers = _listed(client, "shared-file-system", "/share-servers")["share_servers"]
        if all(server["share_network_id"] for server in servers) or time.monotonic() > deadline:
            return len(servers)
        time.sleep(0.5)


def _of_mistral(lab: Lab) -> dict[str, int]:
    done = subprocess.run(
        [str(lab.environment("mistral") / "bin" / "python"), "-c", _COUNT_MISTRAL],
        # the password of the database is no argument
        input=" ".join((database_url(lab, "mistral"), *_MISTRAL)),
        capture_output=True,
        text=True,
        check=True,
    )
    return dict(zip(_MISTRAL, map(int, done.stdout.split()), strict=True))
