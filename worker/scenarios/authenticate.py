"""Scenarios that authenticate against Keystone."""

from __future__ import annotations

from typing import Any

from osbench.common.atomic import action_timer
from osbench.common.errors import DeploymentError
from osbench.common.scenario import Scenario, configure
from osbench.worker.deadlines import request_limit_s
from osbench.worker.sessions import Sessions


class Authenticate(Scenario):
    """Rally's `Authenticate` scenarios."""

    @classmethod
    def warm_up(cls, context: dict[str, Any]) -> None:
        """Open the deployment's sessions. Raises DeploymentError where there is none."""
        deployment = context.get("deployment")
        if deployment is None or deployment.platform != "openstack":
            raise DeploymentError("Authenticate.keystone needs a deployment of OpenStack")
        context["sessions"] = sessions = Sessions(deployment, request_limit_s(context))
        sessions.discover()

    @configure(name="Authenticate.keystone")
    @action_timer("authenticate.keystone")
    def keystone(self) -> None:
        """Get a new token from Keystone, for each of the deployment's users in turn."""
        sessions: Sessions = self.context["sessions"]
        sessions.authenticate(sessions.credential(self.context["iteration"]))
