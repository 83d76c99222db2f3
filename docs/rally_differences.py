"""Prints how osbench's own scenarios differ from Rally's of the same name, from both code bases.

    python docs/rally_differences.py > docs/rally-differences.md

Rally and rally-openstack must be installed (osbench[rally]).
"""

from __future__ import annotations

import importlib
import importlib.metadata
import inspect
import pkgutil
import sys
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

from osbench.common.errors import OsbenchError
from osbench.common.plugin.plugins import Plugins
from osbench.common.plugin.signature import signature_of
from osbench.edges.openstack.common import waits

#: Arguments that all own scenarios have.
_COMMON = frozenset(("retries", "session", "timeouts"))
_HEAD = """# Differences from Rally's scenarios

`python docs/rally_differences.py` makes this page from the code of osbench and of
rally-openstack {version}. [OpenStack](openstack.md#scenarios) describes osbench's own scenarios,
and [Rally](rally.md) the way of Rally's scenarios in osbench.

Own scenarios have Rally's arguments and defaults, apart from the second table. All of them also
take `session`, `retries`, and `timeouts` if they wait ([Waits](openstack.md#waits)).
"""


def page() -> str:
    """Return the page as Markdown. Raises ImportError without Rally."""
    rallys = dict(sorted(_scenarios_of_rally()))
    plugins = Plugins()
    own = {name: method for name in rallys if (method := _own(plugins, name)) is not None}
    parts = [
        _HEAD.format(version=importlib.metadata.version("rally-openstack")),
        "## Names\n",
        f"rally-openstack has {len(rallys)} scenarios, and {len(own)} of them are osbench's own. "
        "The others run by the bridge to Rally:\n",
        "| group | without an own scenario |",
        "|---|---|",
        *_rows_of_names([name for name in rallys if name not in own]),
        "",
        "## Arguments\n",
        "| scenario | only in Rally | only in osbench | other defaults |",
        "|---|---|---|---|",
        *_rows_of_arguments(rallys, own),
        "",
        "## Timeouts\n",
        "Timeouts and pauses between polls in seconds. osbench polls every 0.1 to 5 s.\n",
        "| option | Rally | osbench | pause of Rally | own scenarios |",
        "|---|---|---|---|---|",
        *_rows_of_timeouts(own),
    ]
    return "\n".join(parts) + "\n"


def _scenarios_of_rally() -> Iterator[tuple[str, inspect.Signature]]:
    """Yield the name and the arguments of each scenario of rally-openstack."""
    from rally import plugins  # noqa: PLC0415 - an extra
    from rally.task import scenario  # noqa: PLC0415

    plugins.load()
    for cls in scenario.Scenario.get_all():
        if cls.__module__.startswith("rally_openstack."):
            yield cls.get_name(), signature_of(cls.run)


def _own(plugins: Plugins, name: str) -> Any:
    try:
        found = plugins.scenario(f"{name}@native")
    except OsbenchError:
        return None
    return getattr(found.cls, found.method)


def _rows_of_names(names: list[str]) -> Iterator[str]:
    groups: dict[str, list[str]] = {}
    for name in names:
        group, _, short = name.partition(".")
        groups.setdefault(group, []).append(f"`{short}`")
    for group, shorts in groups.items():
        yield f"| `{group}` | {', '.join(shorts)} |"


def _rows_of_arguments(
    rallys: Mapping[str, inspect.Signature], own: Mapping[str, Any]
) -> Iterator[str]:
    """Yield a row for each scenario whose arguments or defaults are not Rally's."""
    for name, method in own.items():
        theirs, ours = _arguments(rallys[name]), _arguments(signature_of(method))
        open_ended = "**" in theirs, "**" in ours
        absent = [one for one in theirs if one not in ours and not (one != "**" and open_ended[1])]
        further = [one for one in ours if one not in theirs and not open_ended[0]]
        others = [
            f"`{one}`: {ours[one]!r}, Rally {theirs[one]!r}"
            for one in ours.keys() & theirs.keys()
            if _plain(ours[one]) != _plain(theirs[one])
        ]
        if absent or further or others:
            columns = (_listed(absent), _listed(further), "; ".join(sorted(others)))
            yield f"| `{name}` | {' | '.join(columns)} |"


def _rows_of_timeouts(own: Mapping[str, Any]) -> Iterator[str]:
    """Yield a row for each wait of own scenarios: its timeouts, and the number of scenarios."""
    options = _options_of_rally()
    users: Counter[str] = Counter()
    for method in own.values():
        needs = getattr(method, "needs", None)
        users.update(needs.waits if needs else ())
    for name, wait in waits.WAITS.items():
        if users[name]:
            option = waits.option_of(name)
            theirs = f"{options[option]:g}" if option in options else "no option"
            pause = options.get(f"{name}_poll_interval", wait.poll_s)
            yield f"| `{option}` | {theirs} | {wait.timeout_s:g} | {pause:g} | {users[name]} |"


def _options_of_rally() -> dict[str, Any]:
    """Return the defaults of the options of rally-openstack, by name."""
    found: dict[str, Any] = {}
    for one in pkgutil.iter_modules(importlib.import_module("rally_openstack.common.cfg").__path__):
        module = importlib.import_module(f"rally_openstack.common.cfg.{one.name}")
        listed = getattr(module, "OPTS", {})
        found |= {option.name: option.default for option in listed.get("openstack", ())}
    return found


def _arguments(signature: inspect.Signature) -> dict[str, Any]:
    """Return the arguments of a scenario with their defaults; "**" for further ones."""
    found = {}
    for one in list(signature.parameters.values())[1:]:
        if one.name not in _COMMON:
            further = one.kind is one.VAR_KEYWORD
            found["**" if further else one.name] = None if further else one.default
    return found


def _plain(default: Any) -> Any:
    return "" if default is inspect.Parameter.empty else default


def _listed(names: list[str]) -> str:
    return ", ".join("further ones" if name == "**" else f"`{name}`" for name in names)


if __name__ == "__main__":
    sys.stdout.write(page())
