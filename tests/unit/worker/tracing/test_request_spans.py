"""Spans of services hang below the step that made the request, for every client and engine."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from time import monotonic_ns
from types import SimpleNamespace
from typing import Any

import pytest
from osprofiler import _utils

from helpers.engines import COROUTINES, THREADS, batch, until
from helpers.fake_cloud import FakeCloud, fake_cloud
from helpers.recording_server import RecordingServer, recording_server
from osbench.common.deployment.record import Deployment
from osbench.common.plugin.atomic import ActionTimer
from osbench.common.plugin.context import ContextEnvironment
from osbench.common.plugin.plugins import Plugins
from osbench.common.plugin.scenario import Scenario, VirtualUser
from osbench.edges.openstack.worker.fast_session import ClientSessions
from osbench.edges.openstack.worker.short_way import SHORT_WAY, ShortWay
from osbench.worker.engine.body import Body, without_loop
from osbench.worker.engine.closed_coroutines import ClosedCoroutines
from osbench.worker.engine.closed_engine import ClosedEngine
from osbench.worker.engine.engine import EngineSetup
from osbench.worker.engine.users.user_plan import UserPlan
from osbench.worker.http.http_clients import HttpClients
from osbench.worker.http.user.http_session import HttpSession, LoopHttpSession
from osbench.worker.http.user.request_base import Base
from osbench.worker.scenarios.http_flow import HttpFlow
from osbench.worker.scenarios.http_requests import HttpRequests
from osbench.worker.tracing.iteration_profiler import IterationProfiler
from osbench.worker.tracing.profiling import Tracer
from osbench.worker.tracing.task_profiler import TaskProfiler
from osbench.worker.tracing.trace_ids import span_text

KEY = "key"
BOTH = pytest.mark.parametrize("users", [THREADS, COROUTINES])
Headers = Mapping[str, str]


@pytest.fixture
def server() -> Iterator[RecordingServer]:
    with recording_server() as made:
        yield made


@pytest.fixture
def cloud() -> Iterator[FakeCloud]:
    with fake_cloud() as made:
        yield made


class Steps:
    """The spans of one iteration that an engine has run, by their ids."""

    def __init__(
        self,
        cls: type[Scenario],
        method: str,
        users: str,
        args: Mapping[str, Any] | None = None,
        context: Mapping[str, Any] | None = None,
    ) -> None:
        traces: list[Any] = []
        kept: Any = SimpleNamespace(put=traces.append)
        kind = TaskProfiler if users == COROUTINES else IterationProfiler
        function = getattr(cls, method)
        if users == THREADS and cls is HttpRequests:
            function = without_loop(function)
        body = Body(
            cls=cls,
            function=function,
            is_coroutine=users == COROUTINES,
            arguments=lambda _: dict(args or {}),
            context={"run": "r", "timeout_s": 0.0, **(context or {})},
            users=UserPlan.of(cls, open_http=_opener(users)),
            tracer=Tracer(KEY, "r", 1.0, kept, 0, kind=kind),
        )
        made = ClosedCoroutines if users == COROUTINES else ClosedEngine
        setup = EngineSetup(body=body, t0_ns=monotonic_ns(), request_work=lambda: None)
        engine: Any = made(setup)
        try:
            engine.set_user_limit(1)
            engine.add(batch((1, 2)))
            until(lambda: engine.rows)
        finally:
            engine.close()
        assert body.failures.fresh() == []
        ((ids, spans),) = traces
        self._names = {span_text(ids, span[0]): span[2] for span in spans}

    def of_osprofiler(self, headers: Headers) -> str:
        """The name of the span that OSProfiler puts the service's span below."""
        said = _utils.signed_unpack(headers["x-trace-info"], headers["x-trace-hmac"], [KEY])
        return self._names[said["parent_id"]]

    def of_opentelemetry(self, headers: Headers) -> str:
        """The name of the span that OpenTelemetry puts the service's span below."""
        parent = headers["traceparent"].split("-")[2]
        return next(name for id_, name in self._names.items() if _low(id_) == parent)

    def of(self, headers: Headers) -> str:
        """The name of the span that both put the service's span below."""
        name = self.of_osprofiler(headers)
        assert self.of_opentelemetry(headers) == name
        return name


def _low(span_id: str) -> str:
    return span_id.replace("-", "")[16:]


def _opener(users: str) -> Callable[[VirtualUser], Any]:
    kind = LoopHttpSession if users == COROUTINES else HttpSession
    clients = HttpClients([])
    return lambda _: kind(clients, Base())


class Shopping(Scenario):
    """Requests of a thread, one of them by the library requests."""

    def run(self, url: str) -> None:
        self.http.get(f"{url}/first")
        with ActionTimer(self, "basket"):
            self.http.get(f"{url}/second")
            self.http.get(f"{url}/third", auth=("a", "b"))


class ShoppingOnLoop(Scenario):
    """The same of a coroutine."""

    async def run(self, url: str) -> None:
        await self.http.get(f"{url}/first")
        with ActionTimer(self, "basket"):
            await self.http.get(f"{url}/second")
            await self.http.get(f"{url}/third", auth=("a", "b"))


@BOTH
def test_of_a_session_of_http(server: RecordingServer, users: str) -> None:
    cls = ShoppingOnLoop if users == COROUTINES else Shopping

    steps = Steps(cls, "run", users, {"url": server.url})

    found = [steps.of(one.headers) for one in server.taken()]
    assert found == ["GET /first", "GET /second", "GET /third"]


@BOTH
@pytest.mark.parametrize("more", [{}, {"auth": ("a", "b")}])
def test_of_http_requests(server: RecordingServer, users: str, more: dict[str, Any]) -> None:
    context: dict[str, Any] = {"run": "r"}
    HttpRequests.warm_up(context)
    args = {"url": f"{server.url}/a", "method": "GET", "status_code": 200, **more}

    steps = Steps(HttpRequests, "check_request", users, args, context)

    assert [steps.of(one.headers) for one in server.taken()] == ["requests.check_request"]


def test_of_a_flow_and_its_redirects(server: RecordingServer) -> None:
    wanted = f"/to?code=302&url={server.url}/there"
    args = {
        "base": server.url,
        "steps": [{"path": "/first"}, {"path": wanted, "name": "moved"}],
        "mix": [{"name": "branch", "steps": [{"path": "/last"}]}],
    }
    context: dict[str, Any] = {"args": args}
    HttpFlow.warm_up(context)

    steps = Steps(HttpFlow, "run", COROUTINES, args, context)

    found = [steps.of(one.headers) for one in server.taken()]
    assert found == ["GET /first", "moved", "moved", "GET /last"]


@pytest.mark.parametrize("way", ["short", "requests"])
def test_of_a_request_to_a_cloud(cloud: FakeCloud, way: str) -> None:
    plugin = Plugins().scenario("OpenStack.request@native")
    args = {"service_type": "identity", "path": "/users"}
    context: dict[str, Any] = {
        "deployment": Deployment.from_spec("cloud", cloud.deployment()),
        "run": "r",
        "workload": 0,
        "scenario": "OpenStack.request",
        "args": args,
        "timeout_s": 0.0,
    }
    if way == "short":
        context[SHORT_WAY] = ShortWay()
    plugin.cls.warm_up(context)
    # the token is refused: the request and a new token are steps below the step
    cloud.tokens.clear()
    cloud.seen.clear()

    steps = Steps(plugin.cls, plugin.method, THREADS, args, context)

    found = [(path, steps.of(headers)) for _, path, headers in cloud.seen]
    assert found == [
        ("/v3/users", "openstack.get_identity"),
        ("/v3/auth/tokens", "re-authentication"),
        ("/v3/users", "retry"),
    ]


RALLY = '''
from keystoneauth1 import session
from rally.task import atomic, scenario


@scenario.configure(name="Asking.cloud")
class Asking(scenario.Scenario):
    """Asks as OpenStack's clients do."""

    @atomic.action_timer("asked")
    def ask(self, url):
        session.Session().get(url, authenticated=False)

    def run(self, url):
        self.ask(url)
'''


@pytest.mark.parametrize("way", ["short", "requests"])
def test_of_a_plug_in_of_rally(
    server: RecordingServer, way: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    pytest.importorskip("rally_openstack", reason="the extra osbench[rally] is not installed")
    file = tmp_path_factory.mktemp("rally") / f"osbench_asking_{way}.py"
    file.write_text(RALLY.replace("Asking.cloud", f"Asking.{way}"), "utf-8")
    plugin = Plugins([str(file)]).scenario(f"Asking.{way}")
    assert plugin.prepare is not None
    args, context = plugin.prepare(
        {"url": f"{server.url}/a"}, ContextEnvironment(run="r", scenario=plugin.name)
    )
    plugin.cls.warm_up(context)
    sessions = ClientSessions(ShortWay())
    if way == "short":
        sessions.install()

    try:
        steps = Steps(plugin.cls, plugin.method, THREADS, args, context)
    finally:
        sessions.remove()

    # keystoneauth1 knows the headers of OSProfiler only
    assert [steps.of_osprofiler(one.headers) for one in server.taken()] == ["asked"]
