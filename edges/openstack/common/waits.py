"""Waits of OpenStack scenarios until an object is ready: Rally's options for them, and the limits.

Names of options and defaults as in rally-openstack 4.1 (`rally_openstack/common/cfg`).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from osbench.common.config import rally_conf
from osbench.common.errors import ConfigError

#: Key of a workload's context: the timeouts that rally.conf sets, by option.
CONFIGURED_KEY = "wait_timeouts"

_TIMEOUT = "_timeout"


@dataclass(frozen=True, kw_only=True)
class RallyWait:
    """Rally's defaults for one wait, seconds; osbench has the same timeout."""

    timeout_s: float
    #: The pause between polls, and the pause before the first one: 0 also if Rally has an option
    #: for it and does not pause. osbench polls more often.
    poll_s: float
    prepoll_s: float = 0.0


#: Waits by the name that Rally's options begin with: NAME_timeout, NAME_poll_interval and
#: NAME_prepoll_delay.
WAITS: Mapping[str, RallyWait] = MappingProxyType(
    {
        "cinder_backup_restore": RallyWait(timeout_s=600.0, poll_s=2.0),
        "cinder_volume_create": RallyWait(timeout_s=600.0, poll_s=2.0, prepoll_s=2.0),
        "cinder_volume_delete": RallyWait(timeout_s=600.0, poll_s=2.0),
        "glance_image_create": RallyWait(timeout_s=120.0, poll_s=1.0, prepoll_s=2.0),
        "glance_image_import": RallyWait(timeout_s=120.0, poll_s=2.0),
        "heat_stack_check": RallyWait(timeout_s=3600.0, poll_s=1.0),
        "heat_stack_create": RallyWait(timeout_s=3600.0, poll_s=1.0, prepoll_s=2.0),
        "heat_stack_delete": RallyWait(timeout_s=3600.0, poll_s=1.0),
        "heat_stack_restore": RallyWait(timeout_s=3600.0, poll_s=1.0),
        "heat_stack_resume": RallyWait(timeout_s=3600.0, poll_s=1.0),
        "heat_stack_snapshot": RallyWait(timeout_s=3600.0, poll_s=1.0),
        "heat_stack_suspend": RallyWait(timeout_s=3600.0, poll_s=1.0),
        "heat_stack_update": RallyWait(timeout_s=3600.0, poll_s=1.0, prepoll_s=2.0),
        "ironic_node_create": RallyWait(timeout_s=300.0, poll_s=1.0, prepoll_s=1.0),
        "ironic_node_delete": RallyWait(timeout_s=300.0, poll_s=1.0),
        "magnum_cluster_create": RallyWait(timeout_s=2400.0, poll_s=2.0, prepoll_s=5.0),
        "manila_access_create": RallyWait(timeout_s=300.0, poll_s=3.0),
        "manila_access_delete": RallyWait(timeout_s=180.0, poll_s=2.0),
        "manila_share_create": RallyWait(timeout_s=300.0, poll_s=3.0, prepoll_s=2.0),
        "manila_share_delete": RallyWait(timeout_s=180.0, poll_s=2.0),
        "mistral_execution": RallyWait(timeout_s=200.0, poll_s=1.0),
        "nova_detach_volume": RallyWait(timeout_s=200.0, poll_s=2.0),
        # Rally has these values, and no options for them
        "nova_floating_ip": RallyWait(timeout_s=60.0, poll_s=1.0),
        "nova_server_boot": RallyWait(timeout_s=300.0, poll_s=2.0, prepoll_s=1.0),
        "nova_server_delete": RallyWait(timeout_s=300.0, poll_s=2.0),
        "nova_server_image_create": RallyWait(timeout_s=300.0, poll_s=2.0),
        "nova_server_image_delete": RallyWait(timeout_s=300.0, poll_s=2.0),
        "nova_server_live_migrate": RallyWait(timeout_s=400.0, poll_s=2.0),
        "nova_server_migrate": RallyWait(timeout_s=400.0, poll_s=2.0),
        "nova_server_pause": RallyWait(timeout_s=300.0, poll_s=2.0, prepoll_s=2.0),
        "nova_server_reboot": RallyWait(timeout_s=300.0, poll_s=2.0, prepoll_s=2.0),
        "nova_server_rebuild": RallyWait(timeout_s=300.0, poll_s=1.0, prepoll_s=1.0),
        "nova_server_rescue": RallyWait(timeout_s=300.0, poll_s=2.0, prepoll_s=2.0),
        "nova_server_resize": RallyWait(timeout_s=400.0, poll_s=4.0),
        "nova_server_resize_confirm": RallyWait(timeout_s=200.0, poll_s=2.0),
        # attached volumes, too
        "nova_server_resize_revert": RallyWait(timeout_s=200.0, poll_s=2.0),
        "nova_server_resume": RallyWait(timeout_s=300.0, poll_s=2.0, prepoll_s=2.0),
        "nova_server_shelve": RallyWait(timeout_s=300.0, poll_s=2.0, prepoll_s=2.0),
        "nova_server_start": RallyWait(timeout_s=300.0, poll_s=1.0),
        "nova_server_stop": RallyWait(timeout_s=300.0, poll_s=2.0),
        "nova_server_suspend": RallyWait(timeout_s=300.0, poll_s=2.0, prepoll_s=2.0),
        "nova_server_unpause": RallyWait(timeout_s=300.0, poll_s=2.0, prepoll_s=2.0),
        "nova_server_unrescue": RallyWait(timeout_s=300.0, poll_s=2.0, prepoll_s=2.0),
        "nova_server_unshelve": RallyWait(timeout_s=300.0, poll_s=2.0, prepoll_s=2.0),
        "octavia_create_loadbalancer": RallyWait(timeout_s=500.0, poll_s=2.0),
        "vm_ping": RallyWait(timeout_s=120.0, poll_s=1.0),
        # Rally has these values, and no options for them
        "vm_ssh": RallyWait(timeout_s=120.0, poll_s=1.0),
    }
)


def option_of(wait: str) -> str:
    """Return the name of the option with the timeout of a wait."""
    return f"{wait}{_TIMEOUT}"


def limit_s(wait: str, *given: Mapping[str, float]) -> float:
    """Return the timeout of a wait in seconds: of the first of `given` that has it, else Rally's.

    `given` are timeouts by option.
    """
    option = option_of(wait)
    return next((one[option] for one in given if option in one), WAITS[wait].timeout_s)


def rally_sleeps(waits: Iterable[str]) -> str:
    """Return in words how long Rally sleeps in these waits, at least one, by default."""
    known = [WAITS[wait] for wait in waits]
    before_s = max(wait.prepoll_s for wait in known)
    between_s = max(wait.poll_s for wait in known)
    before = f"up to {before_s:g} s before the first poll and " if before_s else ""
    return f"{before}up to {between_s:g} s between polls"


def configured_timeouts() -> dict[str, float]:
    """Return the timeouts of `WAITS` that Rally's configuration file sets, by option; seconds.

    {} without a file. Raises ConfigError if the file or a timeout is invalid.
    """
    file = rally_conf.configuration_file()
    if file is None:
        return {}
    found = rally_conf.openstack_options(file)
    known = {option: found[option] for option in map(option_of, WAITS) if option in found}
    for option, text in known.items():
        if _seconds(text) is None:
            raise ConfigError(
                f"{file}: {option} must be a number of seconds from 0 on, got {text!r}"
            )
    return {option: float(text) for option, text in known.items()}


def problems(timeouts: Any, waits: Iterable[str]) -> list[str]:
    """Return messages on errors in the argument `timeouts` of a scenario with these waits."""
    options = sorted(map(option_of, waits))
    if not isinstance(timeouts, Mapping):
        return [
            f"timeouts must be a mapping of options to seconds, such as {{{options[0]}: 60}}, "
            f"got {timeouts!r}"
        ]
    unknown = [
        f"timeouts: the scenario has no {option!r}; it has {', '.join(options)}"
        for option in timeouts
        if option not in options
    ]
    return unknown + [
        f"timeouts: {option} must be a number of seconds from 0 on, got {value!r}"
        for option, value in timeouts.items()
        if option in options and (isinstance(value, bool | str) or _seconds(value) is None)
    ]


def _seconds(value: Any) -> float | None:
    try:
        number = float(value)
    except (TypeError, ValueError):
        return None
    return number if math.isfinite(number) and number >= 0 else None
