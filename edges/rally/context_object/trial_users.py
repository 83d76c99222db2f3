"""Temporary users in a cloud for a validation, created by Rally."""

from __future__ import annotations

import importlib
import logging
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from osbench.common.deployment.record import Deployment
from osbench.common.errors import ContextError
from osbench.common.plugin.context import ContextEnvironment
from osbench.common.secrets.masking import error_text
from osbench.edges.rally.context_object.cleanup_errors import CleanupErrors
from osbench.edges.rally.context_object.environment import context_object, platform_data

LOG = logging.getLogger(__name__)

#: Rally's context of users, with its configuration for a validation.
USERS = {"users@openstack": dict[str, Any]()}


def platforms(deployment: Deployment | None) -> dict[str, Any]:
    """Return Rally's validation context for validators of platforms; sends no request.

    It has no platform without an OpenStack deployment. Raises ContextError as `platform_data` does.
    """
    known = {}
    if deployment is not None and deployment.platform == "openstack":
        known["openstack"] = platform_data(deployment)
    return {"task": {"uuid": ""}, "platforms": known}


@contextmanager
def users(deployment: Deployment) -> Iterator[dict[str, Any]]:
    """Yield Rally's validation context for validators that query the cloud; clean up afterwards.

    Rally's context `users` is set up: users of the record, else a new user in a new project.
    Resources that cannot be removed are logged. Raises ContextError if setup fails.
    """
    rally: Any = importlib.import_module("rally.task.context")
    environment = ContextEnvironment(run="validate", deployment=deployment)
    carried = context_object(environment, "")
    carried["config"] = dict(USERS)
    manager = rally.ContextManager(carried)
    try:
        try:
            manager.setup()
        except Exception as error:
            raise ContextError(
                f"deployment {deployment.name} cannot be used: {error_text(error)}; "
                f"`osbench-coord deployment check {deployment.name}` looks for the cause"
            ) from error
        yield carried
    finally:
        _clean_up(manager)


def _clean_up(manager: Any) -> None:
    with CleanupErrors() as errors:
        try:
            manager.cleanup()
        except Exception as error:  # noqa: BLE001 - not to hide an error before
            LOG.warning("left behind: %s", error_text(error))
    for message in errors.messages:
        LOG.warning("left behind: %s", message)
