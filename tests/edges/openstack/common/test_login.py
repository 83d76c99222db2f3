"""Threads that share a token, one of which was rejected with it."""

import threading
from types import SimpleNamespace

from osbench.common.deployment.credential import Credential
from osbench.edges.openstack.common.login import login


class InvalidatedOnExit:
    """keystoneauth1's lock: when a thread leaves it, another one invalidates the token."""

    def __init__(self, plugin):
        self.plugin = plugin
        self.other = threading.Thread(target=plugin.invalidate)

    def __enter__(self):
        return self

    def __exit__(self, *reason):
        self.other.start()
        self.other.join(0.05)


def test_a_token_that_another_thread_invalidates_at_that_moment_is_still_returned(monkeypatch):
    credential = Credential(
        auth_url="http://keystone/v3", username="u", password="p", project_name="demo"
    )
    plugin = login(credential)
    token = SimpleNamespace(auth_token="t1", will_expire_soon=lambda _: False)
    monkeypatch.setattr(plugin, "get_auth_ref", lambda session: token)
    plugin._lock = InvalidatedOnExit(plugin)

    assert plugin.get_token(object()) == "t1"

    plugin._lock.other.join(60)
    assert plugin.auth_ref is None
