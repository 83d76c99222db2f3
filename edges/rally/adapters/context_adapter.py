"""Rally's contexts as osbench's; Rally's context object is stored between setup and cleanup."""

from __future__ import annotations

import functools
import importlib
from collections.abc import Callable
from typing import Any, ClassVar, cast

from osbench.common.errors import ContextError
from osbench.common.plugin.context import Context
from osbench.common.plugin.left_behind import LeftBehind
from osbench.edges.rally import importing, plugin_registry
from osbench.edges.rally.context_object import codec
from osbench.edges.rally.context_object.cleanup_errors import CleanupErrors
from osbench.edges.rally.context_object.environment import KEY, context_object, task_in_names
from osbench.edges.rally.context_object.rally_users import (
    native_users,
    remove_orphans,
    users_for_rally,
)
from osbench.edges.rally.context_object.repeated_pages import ended_lists

#: Key in `made` while the setup of a context has not finished.
BEGUN = "rally_begun"


class RallyContext(Context):
    """Base class of adapters: each runs setup and cleanup of a Rally context."""

    #: The class of Rally's or of one of its plug-ins.
    RALLY: ClassVar[Any]

    def setup(self) -> None:
        """Run Rally's setup on the context object; store the object in `made` before and after.

        The object is of the Rally context before, else a new one. Exceptions of Rally's setup pass.
        Raises ContextError if the object cannot be stored.
        """
        carried = self._carried()
        # if this process is killed, cleanup finds the resources by the object's owner id
        self.made[BEGUN] = True
        self._keep(carried)
        try:
            with ended_lists():
                self.RALLY(carried).setup()
        except Exception:
            self._keep_if_possible(carried)
            raise
        del self.made[BEGUN]
        self._keep(carried)

    def cleanup(self) -> None:
        """Run Rally's cleanup on the context object stored in `made`; do nothing if none is stored.

        If setup of Rally's `users` did not finish, also removes its users and projects by name.
        Raises LeftBehind, a ContextError, if Rally logs that resources are left.
        """
        packed = self.made.get(KEY)
        if packed is None:
            return
        carried = codec.unpack(packed)
        if self.made.get(BEGUN):
            # Rally's cleanup relies on keys that its setup sets at the beginning
            carried = {"users": [], "tenants": {}} | carried
        with CleanupErrors() as errors, ended_lists():
            rally = self.RALLY(carried)
            rally.cleanup()
            if self.made.get(BEGUN):
                remove_orphans(rally)
        if errors.messages:
            raise LeftBehind(
                f"left behind: {'; '.join(errors.messages)}",
                kinds=errors.kinds,
                users=native_users(carried),
                is_ours=_names_of(rally),
                task=task_in_names(self.made),
            )

    def _carried(self) -> dict[str, Any]:
        packed = self.surroundings.context.get(KEY)
        if packed is not None:
            carried: dict[str, Any] = codec.unpack(packed)
            return carried
        begun = context_object(self.surroundings, self.surroundings.scenario)
        platform = begun["env"]["platforms"].get("openstack")
        return begun if platform is None else begun | users_for_rally(self.surroundings, platform)

    def _keep(self, carried: dict[str, Any]) -> None:
        self.made[KEY] = codec.pack(carried)
        self.keep()

    def _keep_if_possible(self, carried: dict[str, Any]) -> None:
        try:
            self._keep(carried)
        except ContextError:
            # a half-made object may hold anything; the stored one still has the owner id
            return


def _names_of(rally: Any) -> Callable[[str], bool]:
    """Return whether a name is of the resources that cleanup of a Rally context object removes.

    Of the scenario for contexts whose cleanup is all that they do, else the context's.
    """
    utils: Any = importlib.import_module("rally.common.utils")
    scenario: Any = importlib.import_module("rally.task.scenario").Scenario
    after = rally.get_fullname().partition("@")[0] in ("cleanup", "admin_cleanup")
    cls, owner = scenario if after else type(rally), rally.get_owner_id()
    return lambda name: bool(utils.name_matches_object(name, cls, task_id=owner, exact=False))


def context_class(name: str) -> type[Context] | None:
    """Return the adapter class of Rally's context `name` or `name@platform`; imports Rally.

    None if there is none or Rally is not installed. Raises PluginError if Rally is broken, or if
    several platforms have the name.
    """
    if not importing.load():
        return None
    found = plugin_registry.plugin("context", name)
    return None if found is None else adapter(found)


@functools.cache
def adapter(rally: Any) -> type[RallyContext]:
    """Return the adapter class of a Rally context class; the same one each time."""
    body = {
        "RALLY": rally,
        "NAME": rally.get_fullname(),
        "ORDER": rally.get_order(),
        "HIDDEN": rally.is_hidden(),
        "CONFIG_SCHEMA": rally.CONFIG_SCHEMA,
        "__module__": __name__,
        "__doc__": rally.__doc__,
    }
    return cast(type[RallyContext], type(rally.__name__, (RallyContext,), body))
