"""Scenarios of Magnum: cluster templates and clusters."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from osbench.common.errors import DeploymentError
from osbench.common.plugin.atomic import ActionTimer
from osbench.edges.openstack.common.cloud import Cloud
from osbench.edges.openstack.scenarios.openstack_scenario import (
    ACCEPTED,
    OpenStackScenario,
    openstack,
    waits,
    without_none,
)
from osbench.edges.openstack.scenarios.resource_scenario import ResourceKind, ResourceScenario

_CLUSTER = ResourceKind(
    service="magnum", path="clusters", key="cluster", failed="failed", reason="status_reason"
)
_CREATE = "magnum_cluster_create"


class MagnumClusterTemplates(OpenStackScenario):
    """Rally's `MagnumClusterTemplates` scenario: list the templates of clusters."""

    @openstack("MagnumClusterTemplates.list_cluster_templates", services=("magnum",))
    def list_cluster_templates(
        self,
        limit: int | None = None,
        marker: str | None = None,
        sort_key: str | None = None,
        sort_dir: str | None = None,
        detail: bool = False,
    ) -> None:
        """List templates of clusters: a page of `limit` from `marker` on, all fields if asked."""
        params = {"limit": limit, "marker": marker, "sort_key": sort_key, "sort_dir": sort_dir}
        path = "clustertemplates/detail" if detail else "clustertemplates"
        with ActionTimer(self, "magnum.list_cluster_templates"):
            self.cloud.document("GET", "magnum", path, params=without_none(params))


class MagnumClusters(ResourceScenario):
    """Rally's `MagnumClusters` scenarios: create and list clusters."""

    @classmethod
    def prepare(cls, context: dict[str, Any], cloud: Cloud) -> None:
        """Raise DeploymentError if clusters are created, and no template is given or made."""
        creates = context["scenario"].partition("@")[0].endswith(".create_and_list_clusters")
        given = context["args"].get("cluster_template_uuid") or context.get("cluster_templates")
        if creates and not given:
            raise DeploymentError(
                "needs a template of clusters: give the context cluster_templates, or the argument "
                "cluster_template_uuid"
            )

    @openstack("MagnumClusters.list_clusters", services=("magnum",))
    def list_clusters(
        self,
        limit: int | None = None,
        marker: str | None = None,
        sort_key: str | None = None,
        sort_dir: str | None = None,
    ) -> None:
        """List clusters: a page of `limit` from `marker` on."""
        params = {"limit": limit, "marker": marker, "sort_key": sort_key, "sort_dir": sort_dir}
        self._list(params)

    @openstack(
        "MagnumClusters.create_and_list_clusters",
        services=("magnum", "nova"),
        cleanup=("magnum.clusters", "nova.keypairs"),
    )
    @waits(_CREATE)
    def create_and_list_clusters(
        self, node_count: int, cluster_template_uuid: str | None = None, **cluster_kwargs: Any
    ) -> None:
        """Create a keypair, a cluster with it, wait until it is complete; check that it is listed.

        Without `cluster_template_uuid` its template is of the context `cluster_templates`. Further
        arguments are fields of the cluster.
        """
        name = self.new_name()
        with ActionTimer(self, "nova.create_keypair"):
            body = {"keypair": {"name": name}}
            self.cloud.document("POST", "nova", "os-keypairs", json=body)
        wanted = {
            **cluster_kwargs,
            "name": self.new_name(),
            "cluster_template_id": cluster_template_uuid or self._template(),
            "node_count": node_count,
            "keypair": name,
        }
        with ActionTimer(self, "magnum.create_cluster"):
            with ActionTimer(self, ACCEPTED):
                made = self.cloud.document("POST", "magnum", _CLUSTER.path, json=wanted)
            cluster = str(made["uuid"])
            self.await_status(_CLUSTER, cluster, "CREATE_COMPLETE", wait=_CREATE)
        found = {one["uuid"] for one in self._list({})}
        self.checked(cluster in found, "the cluster that was created is not in the list")

    def _template(self) -> str:
        return str(self.context["cluster_templates"][self.cloud.project_id][0])

    def _list(self, params: Mapping[str, Any]) -> Any:
        with ActionTimer(self, "magnum.list_clusters"):
            sent = without_none(params)
            return self.cloud.document("GET", "magnum", _CLUSTER.path, params=sent)["clusters"]
