"""Arguments for new servers: from novaclient's names, as tasks have them, to Nova's API."""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterable, Mapping
from types import MappingProxyType
from typing import Any

from osbench.common.errors import DeploymentError

#: The first microversion that takes "none" and "auto" for networks.
_WITHOUT_NETWORKS = "2.37"
#: Arguments with another name in Nova's API.
_RENAMED = {
    "meta": "metadata",
    "admin_pass": "adminPass",
    "disk_config": "OS-DCF:diskConfig",
    "access_ip_v4": "accessIPv4",
    "access_ip_v6": "accessIPv6",
}
#: Arguments that are sent unchanged; some of them need a later microversion.
_SAME = frozenset(
    (
        "availability_zone",
        "block_device_mapping_v2",
        "config_drive",
        "description",
        "host",
        "hostname",
        "hypervisor_hostname",
        "key_name",
        "max_count",
        "min_count",
        "tags",
        "trusted_image_certificates",
    )
)
_NICS = {
    "net-id": "uuid",
    "port-id": "port",
    "v4-fixed-ip": "fixed_ip",
    "v6-fixed-ip": "fixed_ip",
    "tag": "tag",
}
_PICKED = "auto_assign_nic"


def _base64_text(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


def _networks(nics: Any) -> Any:
    if isinstance(nics, str):
        return nics
    return [{_NICS[key]: value for key, value in nic.items() if value} for nic in nics]


def _groups(groups: Iterable[Any]) -> list[Any]:
    return [{"name": group} if isinstance(group, str) else group for group in groups]


def _personality(files: Mapping[str, str]) -> list[dict[str, str]]:
    return [{"path": path, "contents": _base64_text(text)} for path, text in sorted(files.items())]


#: Arguments whose values are converted, too: the name in Nova's API and the conversion.
_OTHERS: Mapping[str, tuple[str, Callable[[Any], Any]]] = MappingProxyType(
    {
        "nics": ("networks", _networks),
        "userdata": ("user_data", _base64_text),
        "security_groups": ("security_groups", _groups),
        "files": ("personality", _personality),
    }
)


def check(wanted: Mapping[str, Any], place: str = "", *, picks: bool = False) -> None:
    """Check before the load that osbench can send all arguments for a server (novaclient's).

    `place` is the argument that contains them, for messages; "" for none. `picks`: contexts made
    networks, from which `auto_assign_nic` may pick. Raises DeploymentError for the first problem.
    """
    within = f" in {place}" if place else ""
    known = _SAME | _RENAMED.keys() | _OTHERS.keys() | {"scheduler_hints", _PICKED}
    unknown = sorted(set(wanted) - known)
    if unknown:
        raise DeploymentError(
            f"{unknown[0]}{within}: unknown argument for servers; use {', '.join(sorted(known))}, "
            "or Rally's scenario as NAME@rally"
        )
    nics = wanted.get("nics")
    if wanted.get(_PICKED) and not nics and not picks:
        raise DeploymentError(
            f"{_PICKED}{within}: there is no network of a context to pick; use nics, the context "
            "network, or NAME@rally"
        )
    for nic in () if nics is None or isinstance(nics, str) else nics:
        for key in sorted(set(nic) - _NICS.keys()):
            raise DeploymentError(
                f"nics{within}: unknown key {key}; use {', '.join(sorted(_NICS))}, or Rally's "
                "scenario as NAME@rally"
            )


def body(fields: Mapping[str, Any], wanted: Mapping[str, Any]) -> tuple[dict[str, Any], str]:
    """Return the JSON body of a request for a server, and the least microversion for its networks.

    It is "" if any will do. `fields` are in Nova's form (`name`, `flavorRef`, `imageRef`),
    `wanted` in novaclient's, accepted by `check`; None values are left out. With block devices an
    image in `fields` is added as the first of them.
    """
    server = dict(fields)
    for name, value in wanted.items():
        if value is None:
            continue
        if name in _SAME:
            server[name] = value
        elif name in _RENAMED:
            server[_RENAMED[name]] = value
        elif name in _OTHERS:
            other, translate = _OTHERS[name]
            server[other] = translate(value)
    disks = wanted.get("block_device_mapping_v2")
    if disks and "imageRef" in fields:
        # with disks given, Nova requires the image among them, as novaclient does
        own = {
            "uuid": fields["imageRef"],
            "source_type": "image",
            "destination_type": "local",
            "boot_index": 0,
            "delete_on_termination": True,
        }
        server["block_device_mapping_v2"] = [own, *disks]
    whole: dict[str, Any] = {"server": server}
    if wanted.get("scheduler_hints"):
        whole["os:scheduler_hints"] = wanted["scheduler_hints"]
    return whole, _WITHOUT_NETWORKS if isinstance(server.get("networks"), str) else ""
