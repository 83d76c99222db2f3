"""What kind of virtual users a workload gets."""

from __future__ import annotations

import asyncio

import pytest

from helpers.preparing import specified
from osbench.common.config.config import load
from osbench.common.network.answer_bound import BOUND_KEY, AnswerBound
from osbench.common.plugin.atomic import Names, Recorder
from osbench.common.plugin.plugins import Plugins
from osbench.worker.engine.body import without_loop
from osbench.worker.session.preparation import Preparation

HTTP = "HttpRequests.check_request"


@pytest.mark.parametrize(
    ("users_each", "is_coroutine"), [(1, False), (2, False), (3, True), (1000, True), (0, True)]
)
def test_few_virtual_users_of_http_are_threads(users_each, is_coroutine):
    plugins = Plugins()
    preparation = Preparation(load(()), plugins)
    hashed = plugins.scenario(HTTP).source_hash
    wanted = specified(0, HTTP, users_each=users_each, source_hash=hashed)

    body = preparation.prepare(wanted).body

    assert body.is_coroutine == is_coroutine


def test_the_setting_bounds_answers_of_all_clients(tmp_path):
    (tmp_path / "osbench.conf").write_text("[worker]\nanswer_limit_mib = 3\n")
    plugins = Plugins()
    hashed = plugins.scenario(HTTP).source_hash
    preparation = Preparation(load([str(tmp_path / "osbench.conf")]), plugins)

    context = preparation.prepare(specified(0, HTTP, source_hash=hashed)).body.context

    assert context[BOUND_KEY] == AnswerBound(3 << 20, "[worker] answer_limit_mib")
    assert context["http"]._of_loop._ready._bound is context[BOUND_KEY]


@pytest.mark.parametrize("in_loop", [True, False], ids=["loop", "thread"])
def test_an_observer_sees_the_requests_of_a_workload(in_loop):
    plugins = Plugins()
    hashed = plugins.scenario(HTTP).source_hash
    seen = []
    prepared = Preparation(load(()), plugins).prepare(
        specified(0, HTTP, source_hash=hashed), lambda request, *_: seen.append(request.url)
    )
    request = "GET", "http://127.0.0.1:9/a", [], {}, Recorder(Names())

    clients = prepared.body.context["http"]
    with pytest.raises(ConnectionError):
        asyncio.run(clients.status(*request)) if in_loop else clients.blocking_status(*request)

    assert seen == ["http://127.0.0.1:9/a"]


def test_a_method_that_waits_for_nothing_is_called_and_answers():
    async def work(number: int) -> int:
        return number + 1

    assert without_loop(work)(1) == 2


def test_a_method_that_waits_for_a_loop_fails_and_is_closed():
    ended = []

    async def work() -> None:
        try:
            await asyncio.sleep(0)
        finally:
            ended.append(True)

    with pytest.raises(RuntimeError, match=r"work waits for an event loop"):
        without_loop(work)()
    assert ended == [True]
