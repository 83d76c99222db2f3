"""Error messages on plug-ins that only Rally has, had, or will have."""

from __future__ import annotations

import functools
import importlib.metadata
import importlib.util
from collections.abc import Iterator, Mapping

from osbench.edges.rally import known
from osbench.edges.rally.importing import is_installed

#: What to do where a task needs Rally and it is not installed.
INSTALL = "pip install 'osbench[rally]'"

#: The distribution with the plug-ins for OpenStack.
OPENSTACK = "rally-openstack"


def why_absent(kind: str, name: str) -> str | None:
    """Return why a plug-in that Rally has or had is missing; None if Rally never had `name`.

    The text follows the plug-in's name in a message: removed in a release, not installed, with the
    command to install it, or not in the installed release. `name` may end with `@platform`.
    """
    bare = name.partition("@")[0]
    since = removed_plugins(kind).get(bare)
    if since is not None:
        return f"was removed from Rally in {since}"
    if bare not in _bare(kind) or (name != bare and name not in names(kind)):
        return None
    if not is_installed():
        return f"is a plug-in of Rally, which is not installed: {INSTALL}"
    if importlib.util.find_spec("rally_openstack") is None:
        return f"is a plug-in of {OPENSTACK}, which is not installed: {INSTALL}"
    found = importlib.metadata.version(OPENSTACK)
    if bare.partition(".")[0] in known.NEWER:
        return f"is not in {OPENSTACK} {found}, installed here: it came after {known.PUBLISHED}"
    return f"is not in {OPENSTACK} {found}, installed here"


@functools.cache
def names(kind: str) -> frozenset[str]:
    """Return the names of Rally's plug-ins of a kind, such as "hook", from the table `known`.

    Rally is not imported. Names have the form `name@platform`, of scenarios `Class.method`. Empty
    for an unknown kind.
    """
    if kind == "scenario":
        return frozenset(_plugin_names(known.SCENARIOS))
    text = known.CONTEXTS if kind == "context" else known.OTHERS.get(kind, "")
    return frozenset(text.split())


@functools.cache
def removed_plugins(kind: str) -> Mapping[str, str]:
    """Return plug-ins that Rally dropped: the first release without each, such as "rally 0.7.0".

    Empty for other kinds than "scenario" and "context".
    """
    if kind == "scenario":
        dropped = known.REMOVED_SCENARIOS.items()
        return {name: release for release, text in dropped for name in _plugin_names(text)}
    if kind == "context":
        contexts = known.REMOVED_CONTEXTS.items()
        return {name: release for release, text in contexts for name in text.split()}
    return {}


@functools.cache
def _bare(kind: str) -> frozenset[str]:
    return frozenset(name.partition("@")[0] for name in names(kind))


def _plugin_names(text: str) -> Iterator[str]:
    """Yield `Group.one`, `Group.two` for a line `Group: one two`, and lines that continue it."""
    group = ""
    for line in text.split("\n"):
        head, colon, rest = line.partition(":")
        if colon:
            group = head
        yield from (f"{group}.{name}" for name in (rest if colon else line).split())
