"""A private Prometheus, and an exporter of this host, from Debian's packages."""

from __future__ import annotations

import contextlib
import json
import shutil
import signal
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from servers import child

_EXPORTERS = ("prometheus-node-exporter", "node_exporter")
#: Seconds between two scrapes.
SCRAPE_S = 0.5


class PrometheusServer:
    """A Prometheus that scrapes some addresses, each by the name of its instance."""

    def __init__(self, folder: Path, targets: Mapping[str, str], port: int = 0) -> None:
        """`targets` are addresses (HOST:PORT) by the label `instance`."""
        self._folder = folder
        self.targets = dict(targets)
        self.port = port or child.free_port()
        self._child: child.Child | None = None

    @property
    def url(self) -> str:
        """Address of its API."""
        return f"http://127.0.0.1:{self.port}"

    def start(self) -> None:
        """Start it and wait until all targets were scraped several times."""
        config = self._folder / "prometheus.yml"
        jobs = [
            {"targets": [address], "labels": {"instance": name}}
            for name, address in self.targets.items()
        ]
        scrape = {"job_name": "tests", "static_configs": jobs}
        interval = f"{int(1000 * SCRAPE_S)}ms"
        times = {"scrape_interval": interval, "scrape_timeout": interval}
        # JSON is YAML
        config.write_text(json.dumps({"global": times, "scrape_configs": [scrape]}))
        command = [
            str(shutil.which("prometheus")),
            f"--config.file={config}",
            f"--storage.tsdb.path={self._folder / 'data'}",
            f"--web.listen-address=127.0.0.1:{self.port}",
        ]
        self._child = child.Child(command, folder=self._folder, log=self._folder / "log")
        assert self._child.wait_until(self._is_scraping), self._child.tail()

    def stop(self) -> None:
        """End it; its data are gone with the folder."""
        if self._child is not None:
            self._child.end(signal.SIGTERM)
            self._child = None

    def _is_scraping(self) -> bool:
        url = f"{self.url}/api/v1/query?query=count_over_time(up[1m])"
        with contextlib.suppress(OSError, ValueError, KeyError):
            with urllib.request.urlopen(url, timeout=5) as answer:
                found = json.load(answer)["data"]["result"]
            scraped = {one["metric"]["instance"]: int(one["value"][1]) for one in found}
            return all(scraped.get(name, 0) >= 3 for name in self.targets)
        return False


@contextlib.contextmanager
def prometheus(targets: Mapping[str, str], port: int = 0) -> Iterator[PrometheusServer]:
    """A running Prometheus; skips the test if the Debian package prometheus is missing."""
    if shutil.which("prometheus") is None:
        child.missing("Prometheus is not installed (Debian package prometheus)")
    with child.folder() as folder:
        server = PrometheusServer(folder, targets, port)
        try:
            server.start()
            yield server
        finally:
            server.stop()


@contextlib.contextmanager
def node_exporter(collectors: Sequence[str]) -> Iterator[str]:
    """HOST:PORT of an exporter of this host; skips the test if it is not installed."""
    path = next(filter(None, map(shutil.which, _EXPORTERS)), None)
    if path is None:
        child.missing("node_exporter is not installed (Debian package prometheus-node-exporter)")
    with child.folder() as folder:
        address = f"127.0.0.1:{child.free_port()}"
        command = [path, f"--web.listen-address={address}", "--collector.disable-defaults"]
        command += [f"--collector.{one}" for one in collectors]
        running = child.Child(command, folder=folder, log=folder / "log")
        try:
            assert running.wait_until(lambda: _answers(address)), running.tail()
            yield address
        finally:
            running.end()


def _answers(address: str) -> bool:
    try:
        with urllib.request.urlopen(f"http://{address}/metrics", timeout=5) as answer:
            return bool(answer.status == 200)
    except OSError:
        return False
