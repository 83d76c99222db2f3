"""What osbench's own scenarios do on each service of the lab, and Rally's where it can."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

#: Iterations of each workload.
TIMES = 2
USERS = {"users": {"tenants": 2, "users_per_tenant": 1, "user_choice_method": "round_robin"}}

NOT_IN_RALLY = "Rally has no such scenario"
NO_CONTEXT = "Rally has no such context"
PAGES = "Rally reads the first page of messages only"
LOOKED_UP = "Rally looks the external network up in each iteration, as an action"
NO_MICROVERSION = "Rally refuses microversions of this service"
NO_QUOTAS = "Rally's context fails: the client of Designate cannot get quotas"
NO_SECURITY = "Rally's context fails with any security service"
NO_WORDS = "Rally takes nics for a list, whatever it is"


@dataclass(frozen=True, kw_only=True)
class Load:
    """One workload."""

    scenario: str
    #: A span of each service that each of its traces contains below a request to it; "" where
    #: the service writes one span a request.
    spans: Mapping[str, str]
    args: Mapping[str, Any] = field(default_factory=dict)
    contexts: Mapping[str, Any] = field(default_factory=dict)
    #: Iterations that fail, and what each of them says.
    failing: int = 0
    said: str = ""
    #: Iterations run one after another.
    serial: bool = False
    #: Why Rally does not run it, where it does not.
    not_by_rally: str = ""

    def subtask(self) -> dict[str, Any]:
        """As a task of Rally and of osbench says it."""
        closed = {"constant": {"times": TIMES, "concurrency": 2}}
        return {
            "title": self.scenario,
            "scenario": {self.scenario: dict(self.args)},
            "contexts": dict(self.contexts),
            "runner": {"serial": {"times": TIMES}} if self.serial else closed,
            "sla": {"failure_rate": {"max": 100 if self.failing else 0}},
        }


def keystone() -> list[Load]:
    """All 21 of `KeystoneBasic`, and tokens."""
    of_users = (
        "add_and_remove_user_role",
        "create_add_and_list_user_roles",
        "create_and_list_ec2credentials",
        "create_and_delete_ec2credential",
    )
    of_admin: dict[str, dict[str, Any]] = {
        "create_user": {},
        "create_delete_user": {},
        "create_user_set_enabled_and_delete": {},
        "create_and_list_users": {},
        "create_user_update_password": {},
        "create_and_update_user": {"update_user_kwargs": {"enabled": False}},
        "create_tenant": {},
        "create_tenant_with_users": {"users_per_tenant": 1},
        "create_and_list_tenants": {},
        "create_update_and_delete_tenant": {},
        "authenticate_user_and_validate_token": {},
        "create_and_delete_role": {},
        "create_and_get_role": {},
        "create_and_list_roles": {},
        "get_entities": {},
        "create_and_delete_service": {},
        "create_and_list_services": {},
    }
    of = {"keystone": "db"}
    return [
        Load(scenario="Authenticate.keystone", spans=of, contexts=USERS),
        *(
            Load(scenario=f"KeystoneBasic.{name}", spans=of, args=args)
            for name, args in of_admin.items()
        ),
        *(Load(scenario=f"KeystoneBasic.{name}", spans=of, contexts=USERS) for name in of_users),
        Load(
            scenario="KeystoneBasic.get_entities",
            spans=of,
            args={"service_name": "nothing"},
            failing=TIMES,
            said="there is no service named nothing",
        ),
    ]


def zaqar() -> list[Load]:
    """Queues and messages."""
    of = {"zaqar": "sqlalchemy_queue_controller"}
    producer = "ZaqarBasic.producer_consumer"
    return [
        # passes in Rally without reaching Zaqar: its client makes a queue with the first message
        Load(scenario="ZaqarBasic.create_queue", spans=of, contexts=USERS),
        Load(
            scenario="ZaqarBasic.create_queue",
            spans=of,
            contexts={"zaqar_queues": {"messages_per_queue": 2}},
            not_by_rally=NO_CONTEXT,
        ),
        # no more than one page of messages, all that Rally reads
        Load(
            scenario=producer,
            spans=of,
            args={"min_msg_count": 15, "max_msg_count": 15},
        ),
        Load(
            scenario=producer,
            spans=of,
            args={"min_msg_count": 30, "max_msg_count": 30},
            not_by_rally=PAGES,
        ),
        Load(
            scenario=producer,
            spans=of,
            args={"min_msg_count": 15_000, "max_msg_count": 15_000},
            failing=TIMES,
            said="400 Bad Request: Message collection size is too large",
        ),
    ]


def image(folder: Path) -> dict[str, Any]:
    """An image's arguments."""
    data = folder / "image.raw"
    data.write_bytes(b"x" * 100_000)
    return {"image_location": str(data), "container_format": "bare", "disk_format": "raw"}


def glance(folder: Path) -> list[Load]:
    """Images."""
    given = image(folder)
    images = {
        "image_url": given["image_location"],
        "container_format": "bare",
        "disk_format": "raw",
        "images_per_tenant": 1,
    }
    of = {"glance": "db"}
    return [
        Load(
            scenario="GlanceImages.list_images",
            spans=of,
            contexts={**USERS, "images": images, "roles": ["reader"]},
        ),
        *(
            Load(scenario=f"GlanceImages.{name}", spans=of, args=given)
            for name in (
                "create_and_list_image",
                "create_and_get_image",
                "create_and_delete_image",
                "create_and_download_image",
                "create_and_update_image",
                "create_and_deactivate_image",
                "import_and_delete_image",
            )
        ),
        Load(
            scenario="Authenticate.validate_glance",
            spans=of,
            args={"repetitions": 2},
        ),
        Load(
            scenario="GlanceImages.create_and_get_image",
            spans={"glance": ""},
            args={**given, "visibility": "public"},
            failing=TIMES,
            said="403 Forbidden: You are not authorized to complete publicize_image action",
        ),
    ]


def placement() -> list[Load]:
    """Resource providers, and a request of the task's own."""
    of = {"placement": ""}
    return [
        *(
            Load(scenario=f"Placement.{name}", spans=of, not_by_rally=NOT_IN_RALLY)
            for name in (
                "list_resource_providers",
                "create_resource_provider",
                "create_and_delete_resource_provider",
            )
        ),
        Load(
            scenario="OpenStack.request",
            spans={"keystone": "db"},
            args={
                "service_type": "keystone",
                "path": "/auth/projects",
                "checks": {"$.links.next": None},
            },
            not_by_rally=NOT_IN_RALLY,
        ),
    ]


def workbook(folder: Path, action: str) -> dict[str, str]:
    """The argument of a workbook with one task that does this."""
    file = folder / f"{action}.yaml"
    file.write_text(
        'version: "2.0"\nname: replaced\n'
        f"workflows:\n  quick:\n    tasks:\n      only: {{action: {action}}}\n",
        "utf-8",
    )
    return {"definition": str(file)}


def mistral(folder: Path) -> list[Load]:
    """Workbooks and executions."""
    given = workbook(folder, "std.noop")
    of, engine = {"mistral": "db"}, {"mistral": "engine"}
    create = "MistralWorkbooks.create_workbook"
    execute = "MistralExecutions.create_execution_from_workbook"
    listed = {"scenario": "MistralWorkbooks.list_workbooks", "spans": of}
    return [
        Load(scenario=create, spans=of, args=given),
        Load(scenario=create, spans=of, args={**given, "do_delete": True}, contexts=USERS),
        Load(**listed),
        Load(**listed, contexts={"workbooks": given}, not_by_rally=NO_CONTEXT),
        Load(scenario=execute, spans=engine, args=given),
        Load(scenario=execute, spans=engine, args={**given, "do_delete": True}),
        Load(scenario="MistralExecutions.list_executions", spans=of),
        Load(
            scenario=execute,
            spans=engine,
            args=workbook(folder, "std.fail"),
            failing=TIMES,
            said="the execution failed",
        ),
    ]


def nova(folder: Path) -> list[Load]:
    """Servers; also from an image that was made for them."""
    given = {"image": {"name": "lab-image"}, "flavor": {"name": "m1.tiny"}}
    of = {"nova": "compute_api"}
    quotas = {"nova": {"instances": 5}, "neutron": {"network": 3}}
    return [
        Load(scenario="NovaServers.boot_server", spans=of, args=given),
        Load(
            scenario="NovaServers.boot_server",
            spans=of,
            args={**given, "nics": "none"},
            not_by_rally=NO_WORDS,
        ),
        Load(
            scenario="NovaServers.boot_and_delete_server",
            spans=of,
            args=given,
            contexts={**USERS, "quotas": quotas},
        ),
        Load(scenario="NovaServers.boot_and_list_server", spans=of, args=given),
        Load(scenario="NovaServers.list_servers", spans=of),
        *_server_changes(given),
        *_beside_servers(given),
        Load(
            scenario="GlanceImages.create_image_and_boot_instances",
            spans={"glance": "db", **of},
            args={**image(folder), "flavor": {"name": "m1.tiny"}, "number_instances": 2},
        ),
        Load(
            scenario="Authenticate.validate_nova",
            spans={"nova": "db"},
            args={"repetitions": 1},
        ),
        Load(
            scenario="Authenticate.validate_neutron",
            spans={"neutron": "neutron.db"},
            args={"repetitions": 1},
        ),
        Load(
            scenario="NovaServers.boot_server",
            spans=of,
            args=given,
            contexts={"users": {}, "quotas": {"nova": {"instances": 1}}},
            failing=1,
            said="403 Forbidden: Quota exceeded for instances",
            serial=True,
        ),
    ]


#: Scenarios that need a volume of their own, and those that need volumes of a context.
_ON_VOLUMES: Mapping[str, Mapping[str, Any]] = {
    "create_and_list_volume": {},
    "create_and_get_volume": {},
    "create_and_extend_volume": {"new_size": 2},
    "create_and_update_volume": {"update_volume_kwargs": {"update_name": True, "description": "d"}},
    "create_volume_and_clone": {"nested_level": 2},
    "create_and_accept_transfer": {},
    "create_volume_and_update_readonly_flag": {},
}
_OF_CONTEXT: Mapping[str, Mapping[str, Any]] = {
    "create_from_volume_and_delete_volume": {"size": 1},
    "create_and_delete_snapshot": {},
    "create_and_list_snapshots": {},
    "create_volume_from_snapshot": {},
}


def _server_changes(given: Mapping[str, Any]) -> list[Load]:
    """Servers of Nova on the one host of the lab, whose driver uploads no images."""
    image, flavor = given["image"], given["flavor"]
    bounces = [{name: 1} for name in ("hard_reboot", "soft_reboot", "stop_start", "lock_unlock")]
    several: dict[str, Mapping[str, Any]] = {
        "boot_and_show_server": given,
        "boot_and_update_server": given,
        "boot_and_get_console_output": {**given, "length": 5},
        "boot_and_delete_multiple_servers": {**given, "count": 2},
        "boot_lock_unlock_and_delete": given,
        "pause_and_unpause_server": given,
        "suspend_and_resume_server": given,
        "shelve_and_unshelve_server": {**given, "force_delete": True},
        "boot_and_bounce_server": {**given, "actions": bounces},
        "resize_server": {**given, "to_flavor": {"name": "m1.small"}},
        "boot_and_rebuild_server": {"from_image": image, "to_image": image, "flavor": flavor},
    }
    moves = ("boot_and_migrate_server", "boot_and_live_migrate_server")
    return [
        *(
            Load(scenario=f"NovaServers.{name}", spans={"nova": ""}, args=args)
            for name, args in several.items()
        ),
        *(
            Load(
                scenario=f"NovaServers.{name}",
                spans={"nova": ""},
                args=given,
                failing=TIMES,
                said="a migration needs two hypervisors; this cloud has 1",
            )
            for name in moves
        ),
    ]


def _beside_servers(given: Mapping[str, Any]) -> list[Load]:
    """Key pairs, server groups, and what only the administrator does."""
    flavor = {"ram": 64, "vcpus": 1, "disk": 1}
    zone = {"availability_zone": "lab-zone"}
    group = {"policies": ["affinity"]}
    several: dict[str, Mapping[str, Any]] = {
        "NovaKeypair.create_and_list_keypairs": {},
        "NovaKeypair.create_and_get_keypair": {},
        "NovaKeypair.create_and_delete_keypair": {},
        "NovaKeypair.boot_and_delete_server_with_keypair": given,
        "NovaServerGroups.create_and_list_server_groups": {**group, "all_projects": True},
        "NovaServerGroups.create_and_get_server_group": group,
        "NovaServerGroups.create_and_delete_server_group": group,
        "NovaFlavors.list_flavors": {},
        "NovaFlavors.create_flavor": flavor,
        "NovaFlavors.create_and_get_flavor": flavor,
        "NovaFlavors.create_and_delete_flavor": flavor,
        "NovaFlavors.create_and_list_flavor_access": flavor,
        "NovaFlavors.create_flavor_and_add_tenant_access": {**flavor, "is_public": False},
        "NovaFlavors.create_flavor_and_set_keys": {**flavor, "extra_specs": {"hw:a": "b"}},
        "NovaAggregates.list_aggregates": {},
        "NovaAggregates.create_and_list_aggregates": zone,
        "NovaAggregates.create_and_get_aggregate_details": zone,
        "NovaAggregates.create_and_update_aggregate": zone,
        "NovaAggregates.create_and_delete_aggregate": zone,
        "NovaHypervisors.list_hypervisors": {},
        "NovaHypervisors.list_and_get_hypervisors": {},
        "NovaHypervisors.statistics_hypervisors": {},
        "NovaHypervisors.list_and_search_hypervisors": {},
        "NovaServices.list_services": {"binary": "nova-compute"},
        "NovaAvailabilityZones.list_availability_zones": {},
    }
    return [
        *(Load(scenario=name, spans={"nova": ""}, args=args) for name, args in several.items()),
        # two iterations would add the one host to two aggregates at a time
        Load(
            scenario="NovaAggregates.create_aggregate_add_and_remove_host",
            spans={"nova": ""},
            args=zone,
            serial=True,
        ),
        Load(
            scenario="NovaServers.list_servers",
            spans={"nova": ""},
            contexts={
                **USERS,
                "keypair": {},
                "flavors": [{"name": "lab-flavor", "ram": 64, "disk": 1}],
                "servers": {**given, "servers_per_tenant": 1},
            },
        ),
    ]


_LIMITS = {"consumer": "both", "write_iops_sec": "10", "read_iops_sec": "1000"}
#: Scenarios of types of volumes and QoS, and lists of types and transfers.
_DEFINED: Mapping[str, Mapping[str, Any]] = {
    "CinderVolumes.list_types": {},
    "CinderVolumes.list_transfers": {},
    "CinderVolumeTypes.create_and_delete_volume_type": {"description": "lab"},
    "CinderVolumeTypes.create_and_get_volume_type": {},
    "CinderVolumeTypes.create_and_list_volume_types": {},
    "CinderVolumeTypes.create_and_update_volume_type": {"update_name": True},
    "CinderVolumeTypes.create_and_set_volume_type_keys": {"volume_type_key": {"a": "b"}},
    "CinderVolumeTypes.create_volume_type_and_encryption_type": {"provider": "luks"},
    "CinderVolumeTypes.create_volume_type_add_and_list_type_access": {},
    "CinderQos.create_and_get_qos": _LIMITS,
    "CinderQos.create_and_list_qos": _LIMITS,
    "CinderQos.create_and_set_qos": {
        **_LIMITS,
        "set_consumer": "back-end",
        "set_write_iops_sec": "20",
        "set_read_iops_sec": "2000",
    },
}


def cinder() -> list[Load]:
    """Volumes."""
    of, alone = {"cinder": "rpc"}, {"cinder": ""}
    create = "CinderVolumes.create_volume"
    return [
        Load(scenario=create, spans=of, args={"size": 1}),
        Load(
            scenario="CinderVolumes.create_and_delete_volume",
            spans=of,
            args={"size": {"min": 1, "max": 2}},
            contexts={**USERS, "quotas": {"cinder": {"volumes": 7}}},
        ),
        Load(scenario="CinderVolumes.list_volumes", spans=alone),
        *(
            Load(scenario=f"CinderVolumes.{name}", spans=of, args={"size": 1, **args})
            for name, args in _ON_VOLUMES.items()
        ),
        *(
            Load(
                scenario=f"CinderVolumes.{name}",
                spans=of,
                args=args,
                contexts={**USERS, "volumes": {"size": 1, "volumes_per_tenant": 2}},
            )
            for name, args in _OF_CONTEXT.items()
        ),
        *(
            Load(scenario=name, spans=alone, args=args, contexts=USERS)
            for name, args in _DEFINED.items()
        ),
        Load(
            scenario="Authenticate.validate_cinder",
            spans=alone,
            args={"repetitions": 1},
        ),
        Load(
            scenario=create,
            spans=alone,
            args={"size": 1},
            contexts={"users": {}, "quotas": {"cinder": {"volumes": 1}}},
            failing=1,
            said="413 Request Entity Too Large: VolumeLimitExceeded",
            serial=True,
        ),
    ]


def neutron() -> list[Load]:
    """Networks and all that is in them; quotas."""
    of = {"neutron": "neutron.db"}
    topology = {"subnets_per_network": 2, "subnet_cidr_start": "10.50.0.0/28"}
    down = {"admin_state_up": False}
    args: dict[str, dict[str, Any]] = {
        "create_and_list_networks": {},
        "create_and_show_network": {"network_create_args": {"mtu": 1400}},
        "create_and_update_networks": {"network_update_args": down},
        "create_and_delete_networks": {},
        "create_and_list_subnets": topology,
        "create_and_update_subnets": {**topology, "subnet_update_args": {"enable_dhcp": False}},
        "create_and_list_routers": topology,
        "create_and_show_routers": topology,
        "create_and_update_routers": {**topology, "router_update_args": down},
        "create_and_delete_routers": topology,
        "create_and_list_floating_ips": {},
        "create_and_delete_floating_ips": {"floating_network": "lab-external"},
    }
    ports = {"ports_per_network": 2}
    in_networks: dict[str, dict[str, Any]] = {
        "create_and_show_subnets": topology,
        "create_and_delete_subnets": topology,
        "create_and_list_ports": ports,
        "create_and_show_ports": ports,
        "create_and_update_ports": {**ports, "port_update_args": down},
        "create_and_delete_ports": ports,
    }
    networks = {**USERS, "network": {"networks_per_tenant": 2, "subnets_per_network": 2}}
    rules = {"security_group_rules_count": 2}
    groups: dict[str, dict[str, Any]] = {
        "create_and_list_security_groups": {},
        "create_and_show_security_group": {},
        "create_and_delete_security_groups": {},
        "create_and_update_security_groups": {},
        "create_and_list_security_group_rules": rules,
        "create_and_show_security_group_rule": {},
        "create_and_delete_security_group_rule": {},
    }
    whole = {"users": {"tenants": 1, "users_per_tenant": 2, "user_choice_method": "round_robin"}}
    return [
        *(
            Load(scenario=f"NeutronNetworks.{name}", spans=of, args=given)
            for name, given in args.items()
        ),
        *(
            Load(scenario=f"NeutronNetworks.{name}", spans=of, args=given, contexts=networks)
            for name, given in in_networks.items()
        ),
        *(
            Load(scenario=f"NeutronSecurityGroup.{name}", spans=of, args=given)
            for name, given in groups.items()
        ),
        Load(
            scenario="NeutronNetworks.associate_and_dissociate_floating_ips",
            spans=of,
            args={"floating_network": "lab-external"},
            not_by_rally=LOOKED_UP,
        ),
        Load(
            scenario="NeutronNetworks.set_and_clear_router_gateway",
            spans=of,
            args={"network_create_args": {"router:external": True}},
            contexts={**USERS, "roles": ["admin"], "router": {"routers_per_tenant": 2}},
        ),
        Load(
            scenario="NeutronNetworks.list_agents",
            spans=of,
            contexts={**USERS, "roles": ["admin"]},
        ),
        Load(
            scenario="NeutronSubnets.delete_subnets",
            spans=of,
            contexts={
                **whole,
                "network": {"subnets_per_network": 2, "dualstack": True, "router": {}},
            },
        ),
        Load(
            scenario="NeutronNetworks.create_and_list_ports",
            spans=of,
            args=ports,
            contexts={**networks, "quotas": {"neutron": {"port": 9}}},
        ),
        Load(scenario="Quotas.neutron_update", spans=of, contexts=USERS),
        Load(
            scenario="NeutronNetworks.create_and_delete_networks",
            spans=of,
            contexts={**whole, "quotas": {"neutron": {"network": 0}}},
            failing=TIMES,
            said="409 Conflict: Quota exceeded for resources: ['network']",
        ),
    ]


def barbican() -> list[Load]:
    """Secrets, containers and orders; Barbican has no spans."""
    key = {"payload": "lab", "algorithm": "aes", "bit_length": 256, "mode": "cbc"}
    args: dict[str, Mapping[str, Any]] = {
        "BarbicanSecrets.list": {},
        "BarbicanSecrets.create": {},
        "BarbicanSecrets.create_and_delete": {},
        "BarbicanSecrets.create_and_get": {},
        "BarbicanSecrets.get": {},
        "BarbicanSecrets.create_and_list": {},
        "BarbicanSecrets.create_symmetric_and_delete": key,
        "BarbicanContainers.list": {},
        "BarbicanContainers.create_and_delete": {},
        "BarbicanContainers.create_and_add": {},
        "BarbicanContainers.create_certificate_and_delete": {},
        "BarbicanContainers.create_rsa_and_delete": {},
        "BarbicanOrders.list": {},
        "BarbicanOrders.create_key_and_delete": {},
        "BarbicanOrders.create_asymmetric_and_delete": {},
    }
    return [
        *(Load(scenario=name, spans={}, args=given) for name, given in args.items()),
        Load(
            scenario="BarbicanOrders.create_certificate_and_delete",
            spans={},
            failing=TIMES,
            said="400 Bad Request",
        ),
    ]


def ironic() -> list[Load]:
    """Nodes of Ironic's fake hardware."""
    of = {"ironic": "db"}
    fake = {"driver": "fake-hardware", "properties": {"cpus": 4, "cpu_arch": "x86_64"}}
    create, delete = "IronicNodes.create_and_list_node", "IronicNodes.create_and_delete_node"
    listed = {"detail": True, "associated": False, "maintenance": False, "sort_dir": "desc"}
    return [
        Load(scenario=create, spans=of, args=fake),
        Load(scenario=create, spans=of, args={**fake, **listed}),
        Load(scenario=delete, spans=of, args=fake),
        Load(
            scenario=delete,
            spans=of,
            args={**fake, "extra": {"of": "the lab"}},
            contexts={"api_versions": {"ironic": {"version": "1.10"}}},
            not_by_rally=NO_MICROVERSION,
        ),
        Load(
            scenario=create,
            spans={"ironic": ""},
            args={"driver": "ipmi"},
            failing=TIMES,
            said="No valid host was found. Reason: No conductor service registered which supports "
            "driver ipmi",
        ),
    ]


def designate(zone: str) -> list[Load]:
    """Zones and record sets; `zone` is the id of the one zone of the users' project."""
    api = {"designate": ""}
    basic = "DesignateBasic"
    zones = {**USERS, "zones": {"zones_per_tenant": 2}}
    return [
        Load(scenario=f"{basic}.create_and_list_zones", spans=api),
        Load(scenario=f"{basic}.create_and_delete_zone", spans=api, contexts=USERS),
        Load(scenario=f"{basic}.list_zones", spans=api),
        Load(scenario=f"{basic}.list_recordsets", spans=api, args={"zone_id": zone}),
        *(
            Load(
                scenario=f"{basic}.{name}",
                spans=api,
                args={"recordsets_per_zone": 3},
                contexts=zones,
            )
            for name in ("create_and_delete_recordsets", "create_and_list_recordsets")
        ),
        Load(
            scenario=f"{basic}.create_and_list_zones",
            spans=api,
            contexts={"users": {}, "quotas": {"designate": {"zones": 2}}},
            failing=1,
            said="413 REQUEST ENTITY TOO LARGE: Quota exceeded for zones",
            serial=True,
            not_by_rally=NO_QUOTAS,
        ),
    ]


def manila() -> list[Load]:
    """Shares on a back end without share servers, and on one that has them."""
    of, api = {"manila": "db"}, {"manila": ""}
    nfs = {"share_proto": "NFS", "size": 1}
    address = {"access_type": "ip", "access": "10.0.0.1"}
    changes: dict[str, Mapping[str, Any]] = {
        "create_and_delete_share": nfs,
        "create_and_list_share": {**nfs, "detailed": False},
        "create_and_extend_share": {**nfs, "new_size": 2},
        "create_and_shrink_share": {**nfs, "size": 2, "new_size": 1},
        "create_share_then_allow_and_deny_access": {**nfs, **address},
    }
    records: dict[str, Mapping[str, Any]] = {
        "list_shares": {},
        "list_share_servers": {},
        "create_share_network_and_delete": {},
        "create_share_network_and_list": {},
        "create_security_service_and_delete": {"security_service_type": "kerberos"},
        "attach_security_service_to_share_network": {},
    }
    networks = {**USERS, "manila_share_networks": {"use_share_networks": True}}
    guarded = {**networks, "manila_security_services": {"security_services": [{"type": "ldap"}]}}
    on_servers = {**nfs, "share_type": "with-servers"}
    shares = {**nfs, "shares_per_tenant": 1}
    # Rally has no defaults for them
    some = {
        **{"sets": 2, "set_size": 2, "delete_size": 2},
        **{"key_min_length": 4, "key_max_length": 8},
        **{"value_min_length": 4, "value_max_length": 8},
    }
    latest = {"api_versions": {"manila": {"version": "2.65"}}}
    return [
        *(
            Load(scenario=f"ManilaShares.{name}", spans=of, args=args)
            for name, args in changes.items()
        ),
        *(
            Load(scenario=f"ManilaShares.{name}", spans=api, args=args)
            for name, args in records.items()
        ),
        *(
            Load(
                scenario=f"ManilaShares.{name}",
                spans=of,
                args={**args, "share_type": "with-servers"},
                contexts=networks,
            )
            for name, args in changes.items()
        ),
        Load(
            scenario="ManilaShares.set_and_delete_metadata",
            spans=api,
            args=some,
            contexts={**USERS, "manila_shares": shares},
        ),
        Load(
            scenario="ManilaShares.set_and_delete_metadata",
            spans=api,
            args=some,
            contexts={**guarded, "manila_shares": {**shares, "share_type": "with-servers"}},
            not_by_rally=NO_SECURITY,
        ),
        *(
            Load(
                scenario=f"ManilaShares.{name}",
                spans=of,
                args=args,
                contexts=latest,
                not_by_rally=NO_MICROVERSION,
            )
            for name, args in changes.items()
        ),
        Load(
            scenario="ManilaShares.create_and_list_share",
            spans=api,
            args=nfs,
            contexts={"users": {}, "quotas": {"manila": {"shares": 1}}},
            failing=1,
            said="413 Request Entity Too Large: ShareLimitExceeded",
            serial=True,
        ),
        Load(
            scenario="ManilaShares.create_and_delete_share",
            spans=api,
            args=on_servers,
            failing=TIMES,
            said="400 Bad Request: Share network must be set",
        ),
    ]
