"""Base of scenarios with servers of Nova: boots, changes, lists and deletes them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any, ClassVar

from osbench.common.errors import DeploymentError
from osbench.common.plugin.atomic import ActionTimer, action_timer
from osbench.edges.openstack.common.cloud import Cloud
from osbench.edges.openstack.common.object_lists import sought
from osbench.edges.openstack.scenarios import server_arguments
from osbench.edges.openstack.scenarios.openstack_scenario import ACCEPTED, further_arguments
from osbench.edges.openstack.scenarios.resource_scenario import ResourceKind, ResourceScenario

SERVER = ResourceKind(service="nova", path="servers", key="server", reason="fault")
#: Waits of `WAITS`, for servers.
BOOT, DELETE = "nova_server_boot", "nova_server_delete"
#: Arguments of scenarios that hold arguments for new servers.
_NESTED = ("boot_server_args", "boot_server_kwargs", "create_vm_params")


class Servers(ResourceScenario):
    """Base of scenarios with servers of Nova: boots, lists, changes and deletes them.

    New servers get the network and security group that contexts made for their project.
    """

    OBJECTS: ClassVar[Mapping[str, str]] = MappingProxyType(
        {
            "image": "image",
            "from_image": "image",
            "to_image": "image",
            "flavor": "flavor",
            "to_flavor": "flavor",
        }
    )
    QUOTAS: ClassVar[Mapping[str, tuple[str, str]]] = MappingProxyType(
        {"flavor": ("nova", "instances")}
    )

    @classmethod
    def prepare(cls, context: dict[str, Any], cloud: Cloud) -> None:
        """Check the arguments for servers before the load; look up images and flavors by `cloud`.

        Stores their ids in `context` by argument, "" if not given. Raises DeploymentError if an
        argument is not supported or no single object matches.
        """
        args = context["args"]
        picks = bool(context.get("networks"))
        super().prepare(context, cloud)
        taking, further = further_arguments(cls.method(context), args)
        if taking == "server_kwargs":
            wanted = {key: args[key] for key in args if key == "auto_assign_nic"}
            server_arguments.check({**further, **wanted}, picks=picks)
        for name in _NESTED:
            server_arguments.check(args.get(name) or {}, name, picks=picks)
            if args.get(name) and further and taking == "server_kwargs":
                raise DeploymentError(
                    f"{min(further)} is given outside {name}, which has the other arguments of the "
                    "server; move it there"
                )
        for name, what in Servers.OBJECTS.items():
            given = args.get(name)
            context[name] = sought(cloud, what, given) if given else ""

    # the arguments of scenarios that boot a server

    def boot(
        self,
        image: dict[str, Any],
        flavor: dict[str, Any],
        auto_assign_nic: bool = False,
        **server_kwargs: Any,
    ) -> str:
        """Boot a server from the task's arguments and wait until it is active; return its id.

        `image` and `flavor` are ignored: their ids are in the context. `server_kwargs` are
        novaclient's arguments. Raises NotReady.
        """
        wanted = {**server_kwargs, "auto_assign_nic": auto_assign_nic}
        return self.booted(self.context["image"], wanted)

    # atomic actions

    @action_timer("nova.boot_server")
    def booted(self, image: str, wanted: Mapping[str, Any], flavor: str = "") -> str:
        """Boot a server and wait until it is active; return its id. Raises NotReady.

        `wanted` are novaclient's arguments. `image` may be "" (from a volume); flavor "" is the
        task's.
        """
        with ActionTimer(self, ACCEPTED):
            server = self._post_server(image, wanted, flavor)
        self.await_status(SERVER, server, "ACTIVE", wait=BOOT)
        return server

    @action_timer("nova.boot_servers")
    def boot_servers(self, image: str, count: int, wanted: Mapping[str, Any]) -> None:
        """Boot `count` servers, one request after another, then wait until each is active.

        `image` may be "" (from a volume), the flavor is the task's, `wanted` are novaclient's
        arguments. Raises NotReady if a server fails or does not become active in time.
        """
        with ActionTimer(self, ACCEPTED):
            servers = [self._post_server(image, wanted) for _ in range(count)]
        for server in servers:
            self.await_status(SERVER, server, "ACTIVE", wait=BOOT)

    @action_timer("nova.boot_servers")
    def boot_together(self, image: str, count: int, wanted: Mapping[str, Any]) -> list[str]:
        """Boot `count` servers by one request, wait until each is active; return their ids.

        Arguments as in `boot_servers`. Fails the iteration if the list of servers has another
        number of them. Raises NotReady.
        """
        name = self.new_name()
        several = {**wanted, "min_count": count, "max_count": count}
        with ActionTimer(self, ACCEPTED):
            self._post_server(image, several, name=name)
            # the response has the first of them only
            found = self.list_pages(SERVER, "servers/detail")
        servers = [str(one["id"]) for one in found if one["name"].startswith(name)]
        self.checked(
            len(servers) == count, f"{count} servers were requested, and {len(servers)} are listed"
        )
        for server in servers:
            self.await_status(SERVER, server, "ACTIVE", wait=BOOT)
        return servers

    def change_server(
        self,
        action: str,
        server: str,
        body: Mapping[str, Any],
        status: str,
        *,
        wait: str,
        cloud: Cloud | None = None,
        **fields: Any,
    ) -> dict[str, Any]:
        """Send `body` as an action on a server, wait for the state `status`; return the server.

        All is one atomic action, `nova.ACTION`; `wait` is a key of `WAITS`. `fields` of the server
        must have the given values, too. `cloud` sends the action (None: the user). Raises NotReady.
        """
        with ActionTimer(self, f"nova.{action}"):
            with ActionTimer(self, ACCEPTED):
                self.send_action(SERVER, server, body, cloud=cloud)
            return self.await_status(SERVER, server, status, wait=wait, **fields)

    def delete_server(self, server: str, force: bool = False) -> None:
        """Delete a server by its id and wait until it is gone.

        `force` makes Nova delete it at once. Raises NotReady.
        """
        self._delete_servers([server], force, "delete_server")

    def delete_servers(self, servers: Sequence[str], force: bool = False) -> None:
        """Request the deletion of servers, then wait until each is gone, as one action.

        `force` as in `delete_server`. Raises NotReady.
        """
        self._delete_servers(servers, force, "delete_servers")

    def _delete_servers(self, servers: Sequence[str], force: bool, action: str) -> None:
        with ActionTimer(self, f"nova.{'force_' if force else ''}{action}"):
            with ActionTimer(self, ACCEPTED):
                for server in servers:
                    if force:
                        self.send_action(SERVER, server, {"forceDelete": None})
                    else:
                        self.delete(SERVER, server)
            for server in servers:
                self.await_end(SERVER, server, wait=DELETE)

    @action_timer("nova.list_servers")
    def list_all(self, detailed: bool = True) -> list[dict[str, Any]]:
        """Return all servers of the project, page after page; with all fields if `detailed`."""
        return self.list_pages(SERVER, "servers/detail" if detailed else "servers")

    def _post_server(
        self, image: str, wanted: Mapping[str, Any], flavor: str = "", *, name: str = ""
    ) -> str:
        fields = {
            "name": name or self.new_name(),
            "flavorRef": flavor or self.context["flavor"],
        }
        if image:
            fields["imageRef"] = image
        sent, microversion = server_arguments.body(fields, self._with_contexts(wanted))
        found = self.cloud.document("POST", "nova", "servers", json=sent, microversion=microversion)
        return str(found["server"]["id"])

    def _with_contexts(self, wanted: Mapping[str, Any]) -> dict[str, Any]:
        """Return a copy of `wanted` with the security group that contexts made for the project.

        Without `nics` it also gets a network that contexts made.
        """
        found = dict(wanted)
        project = self.cloud.project_id if self._made_for_projects() else ""
        networks = self.context.get("networks", {}).get(project)
        if networks and not found.get("nics"):
            # as Rally: the first network, unless one is to be picked
            turn = self.context["iteration"] if found.get("auto_assign_nic") else 0
            one = networks[turn % len(networks)]
            found["nics"] = [{"net-id": one["id"] if isinstance(one, Mapping) else one}]
        for group in self.context.get("ssh_groups", {}).get(project, ()):
            groups = list(found.get("security_groups") or ())
            found["security_groups"] = groups if group in groups else [*groups, group]
        return found

    def _made_for_projects(self) -> bool:
        return bool(self.context.get("networks") or self.context.get("ssh_groups"))
