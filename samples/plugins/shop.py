"""A scenario that makes HTTP requests with a client that it brings along."""

from __future__ import annotations

import threading
from typing import Any

import requests

from osbench.plugin import atomic, scenario

#: Longest request, seconds, if the workload sets no timeout.
TIMEOUT_S = 30.0


class Shop(scenario.Scenario):
    """Scenarios with the shop of samples/webservice.py."""

    @classmethod
    def warm_up(cls, context: dict[str, Any]) -> None:
        """Make room for a session of each virtual user: it is not for several threads."""
        context["sessions"] = threading.local()

    @scenario.configure(name="Shop.add_item")
    def add_item(self, url: str, name: str = "lamp") -> None:
        """Look at the items, think, and add one."""
        with atomic.ActionTimer(self, "shop.list"):
            self._call("GET", f"{url}/items")
        self.sleep_between(0.01, 0.05)
        with atomic.ActionTimer(self, "shop.add"):
            self._call("POST", f"{url}/items", json={"name": name})

    def _call(self, method: str, url: str, **options: Any) -> Any:
        mine = self.context["sessions"]
        if not hasattr(mine, "session"):
            mine.session = requests.Session()
        # made for each request: they name the atomic action that it belongs to
        headers = self.trace_headers()
        timeout_s = self.context["timeout_s"] or TIMEOUT_S
        answer = mine.session.request(method, url, headers=headers, timeout=timeout_s, **options)
        answer.raise_for_status()
        return answer.json()
