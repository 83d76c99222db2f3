"""The scenario that sends a request to any service of an OpenStack cloud."""

from __future__ import annotations

from typing import Any

from osbench.common.errors import DeploymentError
from osbench.common.plugin.atomic import ActionTimer
from osbench.common.plugin.request_values import as_text
from osbench.edges.openstack.common.cloud import Cloud
from osbench.edges.openstack.scenarios.openstack_scenario import OpenStackScenario, openstack
from osbench.worker.http import jsonpath


class OpenStack(OpenStackScenario):
    """Scenario that sends one request to any service of a cloud, as specified in the task."""

    @classmethod
    def prepare(cls, context: dict[str, Any], cloud: Cloud) -> None:
        """Check before the load that the service exists and the JSONPaths of `checks` are valid.

        With `as_admin`, gets a token of the administrator. Raises DeploymentError, and errors of
        authentication.
        """
        args = context["args"]
        if args.get("as_admin"):
            context["user_selector"].warm(admin=True, users=False)
        cloud.address(args["service_type"])
        for path in args.get("checks") or {}:
            try:
                jsonpath.compiled_query(path)
            except jsonpath.BadPath as error:
                raise DeploymentError(
                    f"checks of OpenStack.request: {error}; write a JSONPath such as $.id"
                ) from None

    @openstack("OpenStack.request")
    def request(
        self,
        service_type: str,
        path: str = "",
        method: str = "GET",
        headers: dict[str, Any] | None = None,
        body: Any = None,
        status: int | None = None,
        checks: dict[str, Any] | None = None,
        as_admin: bool = False,
    ) -> None:
        """Send a request to a service and check the response.

        `service_type` is a type of the catalogue, or a name such as keystone, glance or nova; then
        `path` is without the version. `body` is sent as JSON, text as it is. The response must have
        the expected `status` (any below 400 by default), and each JSONPath of `checks` must lead to
        the given value, with `[*]` at least once. Created resources are not cleaned up.
        """
        text = isinstance(body, str)
        sent = {str(name): as_text(value) for name, value in (headers or {}).items()}
        cloud = self.as_administrator() if as_admin else self.cloud
        with ActionTimer(self, f"openstack.{method.lower()}_{service_type}"):
            response = cloud.request(
                method,
                service_type,
                path,
                headers=sent,
                expected=(status,) if status is not None else (),
                data=body.encode() if text else None,
                json=None if text else body,
            )
        if checks:
            try:
                document = response.json()
            except ValueError:
                raise AssertionError(
                    f"{method} {path or '/'} of {service_type} (HTTP {response.status_code}): the "
                    "response is not JSON, which checks need; correct service_type or path, or "
                    "leave checks out"
                ) from None
            for place, wanted in checks.items():
                found = jsonpath.values(document, place)
                self.checked(wanted in found, f"{place} is {_values_text(found)}, not {wanted!r}")


def _values_text(values: list[Any]) -> str:
    return ", ".join(map(repr, values[:3])) if values else "not there"
