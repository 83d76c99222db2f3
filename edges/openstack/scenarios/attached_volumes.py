"""Base of scenarios that attach volumes of Cinder to servers of Nova."""

from __future__ import annotations

from typing import Any

from osbench.common.plugin.atomic import ActionTimer, action_timer
from osbench.edges.openstack.scenarios.openstack_scenario import ACCEPTED
from osbench.edges.openstack.scenarios.servers import SERVER, Servers
from osbench.edges.openstack.scenarios.volumes import CREATE, VOLUME, Volumes, drawn_size

#: Waits of `WAITS`, for an attachment and its end. Rally has no own option for the first.
ATTACH, DETACH = "nova_server_resize_revert", "nova_detach_volume"


class AttachedVolumes(Servers, Volumes):
    """Base of scenarios that attach volumes to servers, detach and extend them; each is awaited."""

    @action_timer("nova.attach_volume")
    def attach(self, server: str, volume: str) -> None:
        """Attach a volume to a server, by their ids, and wait until it is in use.

        Raises NotReady.
        """
        with ActionTimer(self, ACCEPTED):
            wanted = {"volumeAttachment": {"volumeId": volume}}
            self.cloud.document("POST", "nova", _attachments(server), json=wanted)
        self.await_status(VOLUME, volume, "in-use", wait=ATTACH)

    @action_timer("nova.detach_volume")
    def detach(self, server: str, volume: str) -> None:
        """Detach a volume from a server, and wait until it is available. Raises NotReady."""
        with ActionTimer(self, ACCEPTED):
            self.cloud.request("DELETE", "nova", f"{_attachments(server)}/{volume}")
        self.await_status(VOLUME, volume, "available", wait=DETACH)

    @action_timer("nova.list_attachments")
    def attached_to(self, server: str) -> set[str]:
        """Return the ids of the volumes that are attached to a server."""
        found = self.cloud.document("GET", "nova", _attachments(server))["volumeAttachments"]
        return {one["volumeId"] for one in found}

    @action_timer("cinder_v3.extend_volume")
    def extend(self, volume: str, new_size: Any) -> None:
        """Extend a volume to `new_size`, as for `drawn_size`, and await it. Raises NotReady."""
        with ActionTimer(self, ACCEPTED):
            self.send_action(VOLUME, volume, {"os-extend": {"new_size": drawn_size(new_size)}})
        self.await_status(VOLUME, volume, "available", "in-use", wait=CREATE)


def _attachments(server: str) -> str:
    return f"{SERVER.path}/{server}/os-volume_attachments"
