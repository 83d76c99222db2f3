"""Runs Rally's validators that need a deployment or its cloud, or lists those not run."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from osbench.common.deployment.record import Deployment
from osbench.common.errors import ContextError, Problem
from osbench.common.plugin.plugin_source import SourceUse
from osbench.edges.rally import validators
from osbench.edges.rally.context_object import trial_users
from osbench.edges.rally.validators import PLATFORM, SEMANTIC

#: Advice for a missing deployment record.
_GIVE = "no deployment is in use: give --deployment, or see osbench-coord deployment create"


def problems(uses: Sequence[SourceUse], deployment: Deployment | None) -> list[Problem]:
    """Return the problems that Rally's validators find with a deployment or its cloud.

    Validators that query the cloud run only if others find no problem. For them a temporary user is
    created in the cloud, unless the record has users, and removed after. `deployment` None: only
    problems of missing platforms.
    """
    try:
        known = trial_users.platforms(deployment)
        found = _problems_of(_needing(uses, PLATFORM), PLATFORM, known)
        if found and deployment is None:
            return [Problem(one.place, f"{one.message}; {_GIVE}") for one in found]
        looking = _needing(uses, SEMANTIC)
        if found or not looking or deployment is None or not known["platforms"]:
            return found
        with trial_users.users(deployment) as validation_context:
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
