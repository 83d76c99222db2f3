"""What Zaqar's specification of profiling asks for: kinds of spans, and switches that remove them.

Iterations of osbench's own scenarios are traced through a Zaqar that has its messages in pools.
MongoDB, which the specification names too, is not in Debian: of the stores Redis and SQLAlchemy are
tested. Pooling has no separate switch, and SQL statements use the switch of the messages.
"""

from __future__ import annotations

import configparser
import io
import json
import uuid
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from helpers.runs import Site, site
from services import operations
from services.catalogue import admin
from services.faults import NotStarted
from services.lab import Lab
from services.zaqar import Zaqar

pytestmark = [pytest.mark.lab, pytest.mark.timeout(900)]

AS_SHIPPED = "zaqar.transport.wsgi.app:application"

WSGI = {"wsgi"}
STATEMENTS = {"db"}
REDIS = {"redis_message_controller"}
QUEUES = {"sqlalchemy_queue_controller"}
POOLS = {"sqlalchemy_pools_controller", "sqlalchemy_catalogue_controller"}
CONTROL = {"sqlalchemy_control_driver"}
POOLING = {
    "pooling_catalogue_controller",
    "pooling_message_controller",
    "pooling_queue_controller",
}
ALL = WSGI | STATEMENTS | REDIS | QUEUES | POOLS | CONTROL | POOLING

#: What is turned off, and the spans that go with it.
SWITCHES = [
    (["trace_message_store"], REDIS | STATEMENTS),
    (["trace_management_store"], CONTROL | POOLS),
    # Both of the stores' switches stand for the controller of queues.
    (["trace_message_store", "trace_management_store"], ALL - WSGI - POOLING),
    # Only pooling looks pools up.
    (["pooling"], POOLING | POOLS),
    # What a request's headers say is read where requests are traced: without it there is no trace.
    (["trace_wsgi_transport"], ALL),
    (["enabled"], ALL),
]


class Switched(Zaqar):
    """Zaqar with pooling, and some switches off."""

    def __init__(self, off: list[str], application: str = Zaqar.application) -> None:
        self._off = off
        self.application = application

    def files(self, lab: Lab) -> Mapping[Path, str]:
        ((path, text),) = super().files(lab).items()
        config = configparser.RawConfigParser()
        config.read_string(text)
        config["DEFAULT"]["pooling"] = str("pooling" not in self._off)
        for switch in self._off:
            if switch != "pooling":
                assert config.has_option("profiler", switch)
                config["profiler"][switch] = "False"
        written = io.StringIO()
        config.write(written)
        return {path: written.getvalue()}


@pytest.fixture(scope="module")
def here() -> Iterator[Site]:
    with site() as found:
        yield found


@pytest.fixture(scope="module")
def zaqar(own_zaqar: Lab, here: Site) -> Lab:
    """The lab, known to osbench, with a pool."""
    here.deployment(own_zaqar.deployment())
    start(own_zaqar, Switched([]))
    admin(own_zaqar).put(
        "/v2/pools/lab",
        json={"uri": own_zaqar.redis_url(1), "weight": 100},
        endpoint_filter={"service_type": "messaging"},
        headers={"Client-ID": str(uuid.uuid4())},
    )
    return own_zaqar


def start(lab: Lab, another: Zaqar) -> None:
    """Start another Zaqar instead of the one that runs."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(operations.ALL, "zaqar", another)
        operations.start(lab, ["zaqar"])


def run(here: Site) -> str:
    """Run the scenarios of Zaqar; the id of the run."""
    task = here.task(
        *(
            {
                "scenario": {f"ZaqarBasic.{name}": {}},
                "runner": {"constant": {"times": 1, "concurrency": 1}},
            }
            for name in ("create_queue", "producer_consumer")
        )
    )
    done = here.run(task, "--workers", "1")
    assert done.code == 0, done.err
    assert [one["accounting"]["ok"] for one in done.result["workloads"]] == [1, 1]
    return str(done.result["run_id"])


def spans(here: Site, run_id: str) -> set[str]:
    """Names of Zaqar's spans in the traces of a run."""
    exported = here.coord("trace", "export", run_id, "--format", "otlp")
    assert exported.code == 0, exported.err
    found: dict[str, set[str]] = {}
    for group in json.loads(exported.out)["resourceSpans"]:
        about = {one["key"]: one["value"]["stringValue"] for one in group["resource"]["attributes"]}
        names = found.setdefault(about["service.name"], set())
        names |= {span["name"] for scope in group["scopeSpans"] for span in scope["spans"]}
    assert "osbench.iteration" in found["osbench/worker"]
    return found.get("Zaqar-server", set())


def test_every_kind_of_span_is_found_and_ranked(here: Site, zaqar: Lab) -> None:
    start(zaqar, Switched([]))

    run_id = run(here)

    assert spans(here, run_id) == ALL
    ranked = json.loads(here.coord("trace", "rank", run_id, "--json").out)["ranking"]
    assert {row["name"] for row in ranked} >= ALL


@pytest.mark.parametrize(("off", "gone"), SWITCHES, ids=[" ".join(off) for off, _ in SWITCHES])
def test_a_switch_removes_its_own_kind(
    here: Site, zaqar: Lab, off: list[str], gone: set[str]
) -> None:
    start(zaqar, Switched(off))

    assert spans(here, run(here)) == ALL - gone


@pytest.mark.parametrize(
    ("switch", "says"),
    [
        ("trace_message_store", "'NoneType' object has no attribute '__module__'"),
        ("trace_management_store", "missing 1 required positional argument: 'control_driver'"),
    ],
)
def test_as_shipped_it_does_not_start_without_a_stores_switch(
    zaqar: Lab, switch: str, says: str
) -> None:
    with pytest.raises(NotStarted, match=says):
        start(zaqar, Switched([switch, "pooling"], AS_SHIPPED))


@pytest.mark.parametrize(("switch", "left"), [("trace_wsgi_transport", ALL), ("enabled", WSGI)])
def test_as_shipped_it_traces_requests_whatever_the_switches_say(
    here: Site, zaqar: Lab, switch: str, left: set[str]
) -> None:
    start(zaqar, Switched([switch], AS_SHIPPED))

    assert spans(here, run(here)) == left
