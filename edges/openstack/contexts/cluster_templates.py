"""The context `cluster_templates`: a template for clusters of Magnum."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from osbench.plugin.cloud import Cloud, PerProjectContext

_TEXTS = (
    *("image_id", "flavor_id", "master_flavor_id", "external_network_id", "fixed_network"),
    *("fixed_subnet", "dns_nameserver", "coe", "http_proxy", "https_proxy", "no_proxy"),
    *("network_driver", "volume_driver", "server_type", "docker_storage_driver"),
)
_SWITCHES = (
    *("tls_disabled", "public", "registry_enabled", "master_lb_enabled", "floating_ip_enabled"),
)


class ClusterTemplates(PerProjectContext):
    """Creates a template of clusters in every project, from which iterations create clusters."""

    NAME: ClassVar[str] = "cluster_templates"
    ORDER: ClassVar[int] = 470
    SERVICE: ClassVar[str] = "magnum"
    KEY: ClassVar[str] = "cluster_templates"
    KINDS: ClassVar[tuple[str, ...]] = ("magnum.cluster_templates",)
    CONFIG_SCHEMA: ClassVar[Mapping[str, Any]] = {
        "type": "object",
        "properties": {
            **{name: {"type": "string"} for name in _TEXTS},
            **{name: {"type": "boolean"} for name in _SWITCHES},
            "docker_volume_size": {"type": "integer", "description": "GB"},
            "labels": {"type": "string", "description": "`NAME=VALUE,...`"},
        },
        "required": ["image_id", "external_network_id", "coe"],
        "additionalProperties": False,
        "examples": [
            {"image_id": "fedora-coreos", "external_network_id": "public", "coe": "kubernetes"}
        ],
    }

    @classmethod
    def check_config(cls, config: Any) -> list[str]:
        """Return messages on `labels` that are not pairs of name and value, and on `public`.

        Else []. A public template would be in the list of each project.
        """
        texts = config.get("labels", "").split(",") if config.get("labels") else []
        wrong = [one for one in texts if not one.partition("=")[1]]
        if config.get("public"):
            return ["public is only in Rally; name the context cluster_templates@rally"]
        return [f"labels must be NAME=VALUE,..., got {wrong[0]!r}"] if wrong else []

    def setup(self) -> None:
        """Create the templates; store their ids by project id, one in each list."""
        self.make_all()

    def make(self, cloud: Cloud, name: str) -> str:
        """Create a template named `name` from the configuration; return its id.

        A template of that name counts as created by an earlier attempt.
        """
        path = "clustertemplates"
        there = cloud.document("GET", "magnum", path)[path]
        for one in there:
            if one["name"] == name:
                return str(one["uuid"])
        wanted = {**self.config, "name": name}
        if "labels" in wanted:
            pairs = (one.partition("=") for one in wanted["labels"].split(",") if one)
            wanted["labels"] = {key.strip(): value for key, _, value in pairs}
        return str(cloud.document("POST", "magnum", path, json=wanted)["uuid"])
