"""Requests to real services, and faults behind them that explanations have to name."""

from __future__ import annotations

import contextlib
import uuid
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from services import operations
from services.catalogue import admin
from services.lab import Fault, Lab
from services.temporary import temporary_lab

#: The message that is read again and again lives as long as Zaqar lets one.
_TTL_S = 1_209_600


@dataclass(frozen=True, kw_only=True)
class Case:
    """A request that changes nothing, one call that a service makes to answer it, and its span."""

    service_type: str
    path: str
    times: int
    #: Makes some of the calls slow.
    fault: Fault
    #: Its name in explanations: service, trace point, and a part of its detail.
    who: str
    what: str
    about: str

    def workload(self) -> dict[str, Any]:
        """A subtask; two virtual users, as more would only wait for the processor."""
        request = {"service_type": self.service_type, "path": self.path}
        return {
            "scenario": {"OpenStack.request": request},
            "runner": {"constant": {"times": self.times, "concurrency": 2}},
        }

    def is_named_by(self, cause: dict[str, Any]) -> bool:
        """Whether a cause is the call."""
        named = (cause["who"], cause["what"]) == (self.who, self.what)
        return named and self.about in cause["about"]


@contextlib.contextmanager
def faulty_lab() -> Iterator[Lab]:
    """A Zaqar and a Glance, with what they need, ready for faults to be injected."""
    with temporary_lab() as lab:
        lab.options = replace(lab.options, faults=True)
        operations.start(lab, ["zaqar", "glance"])
        yield lab


def zaqar(lab: Lab) -> Case:
    """A message is read, through a proxy that holds some commands to Redis up."""
    client = admin(lab)
    common: dict[str, Any] = {
        "endpoint_filter": {"service_type": "messaging"},
        "headers": {"Client-ID": str(uuid.uuid4())},
    }
    client.put("/v2/queues/read", json={}, **common)
    message = {"messages": [{"body": "to be read", "ttl": _TTL_S}]}
    made = client.post("/v2/queues/read/messages", json=message, **common).json()
    return Case(
        service_type="zaqar",
        path=made["resources"][0].removeprefix("/v2/"),
        times=1100,
        fault=Fault(service="zaqar", text="HGETALL"),
        who="Zaqar-server",
        what="redis_message_controller",
        about="MessageController.get",
    )


def glance() -> Case:
    """Images are listed, by a query that is slow now and then."""
    return Case(
        service_type="image",
        path="/v2/images?limit=5",
        times=1100,
        fault=Fault(service="glance", text="FROM images"),
        who="glance/api",
        what="db",
        about="FROM images",
    )


def keystone() -> Case:
    """Regions are listed, by a query that is slow now and then; all else is in caches."""
    return Case(
        service_type="identity",
        path="/regions",
        times=1100,
        fault=Fault(service="keystone", text="FROM region"),
        who="keystone/public",
        what="db",
        about="FROM region",
    )
