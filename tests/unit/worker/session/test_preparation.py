"""What kind of virtual users a workload gets."""

from __future__ import annotations

import asyncio
import re
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from helpers.preparing import specified
from osbench import __version__
from osbench.common.config.config import load
from osbench.common.errors import PluginError
from osbench.common.network.response_bound import BOUND_KEY, ResponseBound
from osbench.common.plugin.atomic import Names, Recorder
from osbench.common.plugin.plugins import Plugins
from osbench.common.protocol.messages import Specification
from osbench.worker.engine.body import without_loop
from osbench.worker.session.preparation import Preparation
from osbench.worker.session.workloads import Workloads

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


def test_the_setting_bounds_responses_of_all_clients(tmp_path):
    (tmp_path / "osbench.conf").write_text("[worker]\nresponse_limit_mib = 3\n")
    plugins = Plugins()
    hashed = plugins.scenario(HTTP).source_hash
    preparation = Preparation(load([str(tmp_path / "osbench.conf")]), plugins)

    context = preparation.prepare(specified(0, HTTP, source_hash=hashed)).body.context

    assert context[BOUND_KEY] == ResponseBound(3 << 20, "[worker] response_limit_mib")
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


SCRIPTED = """
from osbench.common.plugin.scripted_runner import ScriptedRunner


class Own(ScriptedRunner):
    NAME = "prepared_own"
    SOURCE_HASH = "here"
"""


OWN_SCENARIO = """
from osbench.plugin import scenario

class Own(scenario.Scenario):
    @scenario.configure()
    def go(self): pass
"""


@pytest.mark.parametrize(
    ("name", "remedy"),
    [
        (HTTP, f"install the same build of osbench {__version__} here"),
        ("Own.go", "bring the same file here"),
        ("Dummy.dummy + Own.go", "bring the same file here"),
        (
            "Dummy.dummy + Dummy.dummy_exception",
            f"install the same build of osbench {__version__} here",
        ),
    ],
)
def test_a_scenario_of_another_source_is_refused(tmp_path: Path, name: str, remedy: str) -> None:
    (tmp_path / "own.py").write_text(OWN_SCENARIO)
    preparation = Preparation(load(()), Plugins([str(tmp_path)]))

    with pytest.raises(PluginError, match=re.escape(remedy)):
        preparation.prepare(specified(0, name, source_hash="another"))


@pytest.fixture
def own(tmp_path: Path) -> Plugins:
    (tmp_path / "own.py").write_text(SCRIPTED)
    return Plugins([str(tmp_path / "own.py")])


def scripted(plugins: Plugins, name: str, source_hash: str) -> Specification:
    script = {"runner": name, "config": {"a": 1}, "source_hash": source_hash}
    hashed = plugins.scenario(HTTP).source_hash
    return specified(0, HTTP, users_each=1000, source_hash=hashed, script=script)


def test_a_runner_whose_own_code_starts_iterations_has_threads(own: Plugins) -> None:
    wanted = scripted(own, "prepared_own", "here")

    ready = Preparation(load(()), own).prepare(wanted)

    assert ready.script is not None
    assert ready.script.config == {"a": 1}
    assert (ready.body.is_coroutine, ready.coroutines) == (False, False)


@pytest.mark.parametrize(("name", "source_hash"), [("prepared_own", "there"), ("constant", "")])
def test_a_runner_of_another_file_is_refused(own: Plugins, name: str, source_hash: str) -> None:
    wanted = scripted(own, name, source_hash)

    with pytest.raises(PluginError, match=f"runner {name} differs from the coordinator's: bring"):
        Preparation(load(()), own).prepare(wanted)


def test_the_code_of_a_runner_is_begun_once_for_a_workload() -> None:
    anything: Any = SimpleNamespace(log=None, begun_bytes=0)
    workloads = Workloads(
        run="r", equipment=anything, store=anything, shipper=anything, news=lambda: None
    )
    begun: list[Any] = []
    script: Any = SimpleNamespace(drive=begun.append)

    workloads._once(0, script)(anything)
    again = workloads._once(0, script)
    workloads._once(1, script)(anything)

    assert len(begun) == 2
    with pytest.raises(PluginError, match="is not begun again"):
        again(anything)
