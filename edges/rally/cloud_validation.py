"""Runs Rally's validators that need a deployment or its cloud, or lists those not run."""

from __future__ import annotations

import importlib
import logging
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from osbench.common.deployment.record import Deployment
from osbench.common.errors import ContextError, Problem
from osbench.common.plugin.context import ContextEnvironment
from osbench.common.plugin.plugin_source import SourceUse
from osbench.common.secrets.masking import error_text
from osbench.edges.rally import validators
from osbench.edges.rally.context_object.cleanup_errors import CleanupErrors
from osbench.edges.rally.context_object.environment import context_object, platform_data
from osbench.edges.rally.validators import PLATFORM, SEMANTIC

LOG = logging.getLogger(__name__)

#: Advice for a missing deployment record.
_GIVE = "no deployment is in use: give --deployment, or see osbench-coord deployment create"


def problems(uses: Sequence[SourceUse], deployment: Deployment | None) -> list[Problem]:
    """Return the problems that Rally's validators find with a deployment or its cloud.

    Validators that query the cloud run only if others find no problem, and the cloud is an
    OpenStack. For them a temporary user is created in it, unless the record has users, and removed
    after. If the record cannot be used or setup fails, this is the only problem. `deployment` None:
    only problems of missing platforms.
    """
    try:
        known = known_platforms(deployment)
        found = _problems_of(_needing(uses, PLATFORM), PLATFORM, known)
        if found and deployment is None:
            return [Problem(one.place, f"{one.message}; {_GIVE}") for one in found]
        looking = _needing(uses, SEMANTIC)
        if found or not looking or deployment is None or not known["platforms"]:
            return found
        with trial_users(deployment) as validation_context:
            return _problems_of(looking, SEMANTIC, validation_context)
    except ContextError as error:
        return [Problem("", str(error))]


def unasked_checks(uses: Sequence[SourceUse]) -> list[str]:
    """Return the names of platforms and validators that `problems` would check, platforms first."""
    found = {
        (within != PLATFORM, f"platform {name}" if within == PLATFORM else name)
        for use in uses
        for within, name in validators.needing(use.kind, use.name)
    }
    return [name for _, name in sorted(found)]


def _needing(uses: Sequence[SourceUse], kind: str) -> list[SourceUse]:
    return [
        use
        for use in uses
        if any(within == kind for within, _ in validators.needing(use.kind, use.name))
    ]


def _problems_of(uses: Sequence[SourceUse], within: str, validation_context: Any) -> list[Problem]:
    return [
        Problem(use.place, message)
        for use in uses
        for message in validators.problems(
            use.kind,
            use.name,
            use.config,
            within=within,
            workload=use.workload,
            validation_context=validation_context,
        )
    ]


#: Rally's context of users, with its configuration for a validation.
_USERS = {"users@openstack": dict[str, Any]()}


def known_platforms(deployment: Deployment | None) -> dict[str, Any]:
    """Return Rally's validation context for validators of platforms. Raises as `platform_data`."""
    known = {}
    if deployment is not None and deployment.platform == "openstack":
        known["openstack"] = platform_data(deployment)
    return {"task": {"uuid": ""}, "platforms": known}


@contextmanager
def trial_users(deployment: Deployment) -> Iterator[dict[str, Any]]:
    """Yield Rally's validation context for validators that query the cloud; clean up afterwards.

    Rally's context `users` is set up: users of the record, else a new user in a new project.
    Resources that cannot be removed are logged. Raises ContextError if setup fails.
    """
    rally: Any = importlib.import_module("rally.task.context")
    environment = ContextEnvironment(run="validate", deployment=deployment)
    carried = context_object(environment, "")
    carried["config"] = dict(_USERS)
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
