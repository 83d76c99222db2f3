"""The queries of the Grafana dashboard, asked of a Prometheus that has read a run and a worker."""

from __future__ import annotations

import re
import time
from pathlib import Path

import pytest

from helpers.dashboard import DASHBOARD, panels
from helpers.json_server import LoopbackServer, QuietHandler, serving
from helpers.runs import Cluster, site
from osbench.edges.traces.counters.prometheus import Prometheus
from servers import RedisServer
from servers.child import PATIENCE_S, free_port
from servers.prometheus_server import prometheus

pytestmark = pytest.mark.functional


class MetricsFile(LoopbackServer):
    """Serves a file of the exporter `openmetrics`."""

    def __init__(self, path: Path) -> None:
        super().__init__(_FileHandler)
        self.path = path


class _FileHandler(QuietHandler):
    server: MetricsFile

    def do_GET(self) -> None:
        body = self.server.path.read_bytes()
        self.send_response(200)
        self.send_header("Content-Type", "application/openmetrics-text; version=1.0.0")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


def labels_of(server: Prometheus, query: str) -> set[str]:
    """Names of the labels of the series of a query, once it has any."""
    deadline = time.monotonic() + PATIENCE_S
    while not (found := server.at(query)):
        assert time.monotonic() < deadline, f"no series: {query}"
        time.sleep(0.1)
    return {name for one in found for name in one.labels}


def test_each_query_has_series_with_the_labels_of_its_legend(redis: RedisServer) -> None:
    with site() as here:
        cluster = Cluster(here, redis)
        port = free_port()
        cluster.start_worker("--metrics", str(port))
        cluster.await_idle(1)
        task = here.task(
            {
                "scenario": {"Dummy.dummy_exception": {}},
                "runner": {"constant": {"times": 5, "concurrency": 1}},
                "sla": {"failure_rate": {"max": 100}},
            }
        )
        exported = here.home / "run.prom"
        run = here.begin("osbench-coord", "run", "--export", f"openmetrics={exported}", task)
        assert run.finish().code == 0
        with (
            serving(MetricsFile(exported)) as file,
            prometheus(
                {"run": file.url.removeprefix("http://"), "worker": f"127.0.0.1:{port}"}
            ) as running,
        ):
            server = Prometheus(running.url)
            # Grafana's own variables, with values of Grafana's
            values = {"$workload": "(0|1)", "$__rate_interval": "1m"}
            for panel in panels():
                for target in panel["targets"]:
                    query = target["expr"]
                    for name, value in values.items():
                        query = query.replace(name, value)
                    assert "$" not in query
                    found = labels_of(server, query)
                    legend = set(re.findall(r"{{(\w+)}}", target["legendFormat"]))
                    assert legend <= found, query
            variable = DASHBOARD["templating"]["list"][1]["query"]["query"]
            asked = re.fullmatch(r"label_values\((\w+), (\w+)\)", variable)
            assert asked is not None
            assert asked[2] in labels_of(server, asked[1])
