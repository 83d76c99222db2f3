"""Logins while Keystone is overloaded: one at a time, after pauses, with a shared failure."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from keystoneauth1 import exceptions

from osbench.common.deployment.credential import Credential
from osbench.common.ports import clock
from osbench.edges.openstack.common.login import login
from osbench.edges.openstack.common.login_gate import FIRST_PAUSE_S, LONGEST_PAUSE_S, LoginGate


class Overloaded:
    """A Keystone that answers 503 to so many logins."""

    def __init__(self, times: int, after: str = "") -> None:
        self.times = times
        self.after = after
        self.asked = 0

    def __call__(self) -> str:
        self.asked += 1
        if self.asked > self.times:
            return "token"
        error = exceptions.ServiceUnavailable()
        error.response = type("Answer", (), {"headers": {"Retry-After": self.after}})()
        raise error


def refused(gate: LoginGate, log_in: Any) -> float:
    """Seconds that a refused login took."""
    begin = clock.monotonic()
    with pytest.raises(exceptions.ServiceUnavailable):
        gate.through(log_in)
    return clock.monotonic() - begin


def test_pauses_grow_up_to_a_bound_and_end_with_a_token(virtual_time):
    gate, keystone = LoginGate(), Overloaded(8)

    pauses = [refused(gate, keystone) for _ in range(8)]

    assert pauses[:3] == pytest.approx([0.0, FIRST_PAUSE_S, 2 * FIRST_PAUSE_S])
    assert max(pauses) == pytest.approx(LONGEST_PAUSE_S)
    assert gate.through(keystone) == "token"
    begin = clock.monotonic()
    assert gate.through(keystone) == "token"
    assert clock.monotonic() == begin


def test_the_pause_that_keystone_asks_for_is_kept_up_to_the_bound(virtual_time):
    gate, keystone = LoginGate(), Overloaded(3, after="7")

    pauses = [refused(gate, keystone) for _ in range(3)]
    far = LoginGate()
    refused(far, Overloaded(1, after="9999"))

    assert pauses == pytest.approx([0.0, 7.0, 7.0])
    assert refused(far, Overloaded(1)) == pytest.approx(LONGEST_PAUSE_S)


def test_other_errors_pass_without_a_pause(virtual_time):
    gate = LoginGate()
    begin = clock.monotonic()

    def wrong() -> None:
        raise exceptions.Unauthorized

    for _ in range(3):
        with pytest.raises(exceptions.Unauthorized):
            gate.through(wrong)

    assert clock.monotonic() == begin


def test_who_waited_while_another_failed_shares_the_failure_and_does_not_ask(virtual_time):
    gate, keystone = LoginGate(), Overloaded(9)
    seen = gate.failures
    refused(gate, keystone)

    with pytest.raises(exceptions.ServiceUnavailable):
        gate.through(keystone, seen)

    assert keystone.asked == 1


def test_coroutines_get_the_last_answer_instead_of_a_pause(virtual_time):
    gate, keystone = LoginGate(), Overloaded(9)
    refused(gate, keystone)
    begin = clock.monotonic()

    async def ask() -> None:
        with pytest.raises(exceptions.ServiceUnavailable):
            gate.through(keystone)

    asyncio.run(ask())

    assert (keystone.asked, clock.monotonic()) == (1, begin)


def test_coroutines_do_not_wait_for_a_thread_that_pauses(virtual_time):
    class Held:
        """The lock of a gate while a thread has its turn, and a pause in it."""

        def __enter__(self) -> None:
            raise AssertionError("the loop waits for the thread")

        def __exit__(self, *reason: object) -> None:
            pass

        def acquire(self, *, blocking: bool) -> bool:
            assert not blocking
            return False

    gate, keystone = LoginGate(), Overloaded(9)
    refused(gate, keystone)
    gate._turn = Held()

    async def ask() -> None:
        with pytest.raises(exceptions.ServiceUnavailable):
            gate.through(keystone)

    asyncio.run(ask())

    assert keystone.asked == 1


def test_threads_of_one_account_share_one_refused_login(virtual_time):
    class Waiting:
        """The lock of an account: while this thread waits for it, another one is refused."""

        def __enter__(self) -> None:
            refused(plugin._gate, keystone)

        def __exit__(self, *reason: object) -> None:
            pass

    keystone = Overloaded(9)
    plugin = login(
        Credential(auth_url="http://keystone/v3", username="u", password="p", project_name="demo")
    )
    plugin._reading = Waiting()

    with pytest.raises(exceptions.ServiceUnavailable):
        plugin.get_token(object())

    assert keystone.asked == 1
