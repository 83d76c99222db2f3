"""Makes the sessions that OpenStack's clients create for themselves use osbench's HTTP client."""

from __future__ import annotations

from typing import Any

import requests
from keystoneauth1 import session as keystoneauth_session

from osbench.edges.openstack.common.thread_sessions import KeepAliveAdapter
from osbench.edges.openstack.worker.fast_session import FastSession
from osbench.edges.openstack.worker.short_way import ShortWay


class ClientSessions:
    """Replacement of the function of keystoneauth1 that creates a session of `requests`.

    keystoneauth1 has no option for it; its own test fixture for recorded requests replaces the same
    function. Use `install`; keystoneauth1 then calls the instance.
    """

    def __init__(self, short_way: ShortWay) -> None:
        self._short_way = short_way
        self._module: Any = keystoneauth_session
        self._construct = self._module._construct_session

    def install(self) -> None:
        """Make sessions that keystoneauth1 creates from now on, in this process, `FastSession`s."""
        self._module._construct_session = self

    def remove(self) -> None:
        """Restore keystoneauth1's own function; sessions created before stay as they are."""
        self._module._construct_session = self._construct

    def __call__(
        self, session_obj: requests.Session | None = None, **options: Any
    ) -> requests.Session:
        """Return `session_obj` if given; else a new FastSession with keystoneauth1's adapters."""
        made: requests.Session = self._construct(session_obj, **options)
        if session_obj:
            return made
        fast = FastSession(self._short_way)
        adapter = KeepAliveAdapter(self._short_way.bound, **options)
        for prefix in made.adapters:
            fast.mount(prefix, adapter)
        return fast
