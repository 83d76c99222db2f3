"""Entries of Keystone's catalogue, and the users that the services are."""

from __future__ import annotations

from typing import Any

from keystoneauth1 import session
from keystoneauth1.identity import v3

from services.lab import Lab

INTERFACES = ("public", "internal", "admin")


def admin(lab: Lab, auth_url: str = "") -> session.Session:
    """A session of the lab's administrator, at the lab's Keystone unless an address is given."""
    return session.Session(
        auth=v3.Password(
            auth_url=auth_url or lab.auth_url,
            username=lab.username,
            password=lab.password,
            project_name=lab.project_name,
            user_domain_name=lab.domain_name,
            project_domain_name=lab.domain_name,
        ),
        timeout=60,
    )


class Catalogue:
    """Creates what does not exist yet; may be called any number of times."""

    def __init__(self, lab: Lab) -> None:
        self._lab = lab
        self._session = admin(lab)

    def register(self, name: str, kind: str, url: str) -> None:
        """Let a service have a user of its name, with the roles that services need, and URLs."""
        project = self._found_or_made("project", "service", {"domain_id": "default"})
        user = self._found_or_made(
            "user", name, {"domain_id": "default", "password": self._lab.service_password}
        )
        for role in ("admin", "service"):
            role_id = self._found_or_made("role", role, {})
            self._ask("PUT", f"/projects/{project}/users/{user}/roles/{role_id}")
        service = self._found_or_made("service", name, {"type": kind})
        there = {
            one["interface"]: one
            for one in self._ask("GET", f"/endpoints?service_id={service}")["endpoints"]
        }
        for interface in INTERFACES:
            endpoint = {"interface": interface, "url": url, "service_id": service}
            endpoint["region"] = self._lab.region_name
            if interface not in there:
                self._ask("POST", "/endpoints", {"endpoint": endpoint})
            elif there[interface]["url"] != url:
                self._ask("PATCH", f"/endpoints/{there[interface]['id']}", {"endpoint": endpoint})

    def _found_or_made(self, what: str, name: str, more: dict[str, str]) -> str:
        found = self._ask("GET", f"/{what}s?name={name}")[f"{what}s"]
        if not found:
            found = [self._ask("POST", f"/{what}s", {what: {"name": name, **more}})[what]]
        return str(found[0]["id"])

    def _ask(self, method: str, path: str, body: dict[str, Any] | None = None) -> Any:
        answer = self._session.request(self._lab.auth_url + path, method, json=body)
        return answer.json() if answer.content else None
