"""Whose spans stand under whose in an iteration's trace."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from osprofiler.drivers import base

from services.lab import Lab

Span = dict[str, Any]
CLIENT = "osbench"


class Trace:
    """The spans of one iteration that hang together: parent by parent up to its root."""

    def __init__(self, lab: Lab, trace_id: str) -> None:
        report = base.get_driver(lab.trace_store, conf={}).get_report(trace_id)
        roots = [one for one in report["children"] if one["info"]["name"] == "osbench.iteration"]
        assert len(roots) == 1, (trace_id, [one["info"]["name"] for one in report["children"]])
        (self.root,) = roots
        #: Spans whose parent is in no event of the trace; what is below them is not counted.
        self.astray = [project(one) for one in report["children"] if one is not self.root]

    def requests(self, service: str) -> list[Span]:
        """Requests that a service has traced, each right under an action of the iteration."""
        return [
            span
            for parent, span in pairs(self.root)
            if (project(span), span["info"]["name"]) == (service, "wsgi")
            and project(parent) == CLIENT
            and parent is not self.root
        ]

    def own(self, service: str) -> set[str]:
        """Names of the service's spans below those of its requests."""
        return {
            span["info"]["name"]
            for request in self.requests(service)
            for _, span in pairs(request)
            if project(span) == service
        }


def project(span: Span) -> str:
    """Who wrote a span; Zaqar has a capital there."""
    return str(span["info"]["project"]).lower()


def pairs(span: Span) -> Iterator[tuple[Span, Span]]:
    """Every span below one, with its parent."""
    for child in span["children"]:
        yield span, child
        yield from pairs(child)
