"""One run, every exporter: what their own consumers read of each agrees with the ledger."""

from __future__ import annotations

import csv
import io
import json
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from hdrh.histogram import HdrHistogram
from hdrh.log import HistogramLogReader
from junitparser import JUnitXml
from prometheus_client.openmetrics import parser
from pyarrow import parquet

from helpers.export_servers import collector, search_server
from helpers.otlp_reading import attribute, metrics_of, spans_of, states_of
from helpers.runs import STATES, Finished, Site, checked, site
from servers import counting_server, redis_server

pytestmark = pytest.mark.functional

#: States that a row can have.
ROWS = ("ok", "failed", "timed_out", "dropped")
FORMATS = ("html", "junit", "csv", "csv-times", "json", "rally", "parquet", "hdr", "openmetrics")
EVIL = '</script><img src=x onerror=alert(1)>=HYPERLINK("x")'
PASSWORD = "planted-password"
FAILING = """
from osbench.plugin import exporter

class Fails(exporter.Exporter):
    NAME = "fails"
    FILE = "fails.txt"

    def export(self, run, path):
        raise ValueError("no")
"""


@dataclass(frozen=True, kw_only=True)
class Exported:
    """A run and what was exported of it."""

    site: Site
    #: What `run` printed.
    done: Finished
    #: Folder of the files, which are named after their exporters.
    files: Path
    #: Documents of the search engine, by index.
    documents: dict[str, list[dict[str, Any]]]
    #: OTLP requests.
    metrics: list[bytes]
    traces: list[bytes]

    @property
    def workloads(self) -> list[dict[str, Any]]:
        found = self.done.result["workloads"]
        assert isinstance(found, list)
        return found

    def expected(self) -> list[dict[str, int]]:
        """By workload: what the ledger has counted."""
        return [{state: checked(one)[state] for state in ROWS} for one in self.workloads]

    def text(self, name: str) -> str:
        return (self.files / name).read_text("utf-8")


@pytest.fixture(scope="module")
def exported() -> Iterator[Exported]:
    with site() as here, redis_server(password=PASSWORD) as redis, counting_server() as web:
        # two arrivals start within this time on any machine; all others wait for longer than it
        here.configure({"benchmark": {"max_lag_s": 10}})
        here.deployment(
            {
                "osbench": {
                    "services": {"web": web.url},
                    "profiler_hmac_key": "a key",
                    "profiler_conn_str": redis.url,
                }
            }
        )
        request = {"url": f"{web.url}/{{run}}/{{iteration}}", "method": "GET", "status_code": 200}
        task = here.task(
            {
                "title": "=ok\x1b[31m",
                "scenario": {"HttpRequests.check_request": request},
                "runner": {"constant": {"times": 60, "concurrency": 3}},
            },
            {
                "scenario": {
                    "Dummy.dummy_exception": {
                        "message": f"{EVIL} redis://u:{PASSWORD}@h",
                        "size_of_message": 0,
                    }
                },
                "runner": {"serial": {"times": 7}},
            },
            {
                "scenario": {"Dummy.dummy": {"sleep": 30}},
                "runner": {"constant": {"times": 2, "concurrency": 2, "timeout": 0.3}},
            },
            {
                "scenario": {"Dummy.dummy": {"sleep": 12}},
                "runner": {"rps": {"times": 30, "rps": 100, "max_concurrency": 2}},
            },
        )
        files = here.home / "files"
        with search_server() as search, collector() as otlp:
            done = here.run(task, "--export", f"json={files / 'at-the-end.json'}")
            assert done.code in (1, 4), done.err
            wanted = [part for name in FORMATS for part in (f"--{name}", str(files / name))]
            written = here.coord(
                *("report", "last", *wanted),
                *("--export", f"opensearch={search.url}", "--export", f"otlp={otlp.url}"),
                *("--export", f"otlp={files / 'otlp'}"),
            )
            assert written.code == 0, written.err
            again = here.call("report", "last", "--html", str(files / "html-again"))
            assert again.code == 0, again.err
            assert written.out == ""
            documents = {index: search.found(index) for index in search.documents}
        yield Exported(
            site=here,
            done=done,
            files=files,
            documents=documents,
            metrics=otlp.metrics,
            traces=otlp.traces,
        )


def counted(pairs: Any, workloads: int) -> list[dict[str, int]]:
    """Pairs of workload and state as sums."""
    found = [dict.fromkeys(ROWS, 0) for _ in range(workloads)]
    for workload, state in pairs:
        found[int(workload)][state] += 1
    return found


def state_of(outcome: str) -> str:
    return "dropped" if outcome.startswith("dropped_") else outcome


def test_the_run_has_every_kind_of_row(exported: Exported) -> None:
    sums = Counter[str]()
    for one in exported.expected():
        sums.update(one)

    assert all(sums[state] > 0 for state in ROWS), sums


def test_csv_agrees_with_the_ledger(exported: Exported) -> None:
    rows = list(csv.DictReader(io.StringIO(exported.text("csv"))))

    pairs = ((one["workload"], state_of(one["outcome"])) for one in rows)
    found = counted(pairs, len(exported.workloads))
    assert found == exported.expected()
    assert len({(one["workload"], one["iteration"]) for one in rows}) == len(rows)
    assert all(one["worker"] for one in rows if one["service_s"])
    assert exported.site.call("results", "last", "--csv").out == exported.text("csv")


def test_json_is_the_object_of_the_run(exported: Exported) -> None:
    assert json.loads(exported.text("json")) == exported.done.result
    assert json.loads(exported.text("at-the-end.json")) == exported.done.result


def test_times_have_the_counts_of_the_ledger(exported: Exported) -> None:
    rows = list(csv.DictReader(io.StringIO(exported.text("csv-times"))))

    for number, (workload, states) in enumerate(
        zip(exported.workloads, exported.expected(), strict=True)
    ):
        service = {
            one["state"]: int(one["count"])
            for one in rows
            if one["time"] == "service"
            and one["subtask"].lstrip("'")[:3] == workload["subtask"][:3]
        }
        ran = {state: count for state, count in states.items() if count and state != "dropped"}
        assert service == ran, number


def test_junitparser_reads_a_case_for_each_workload(exported: Exported) -> None:
    (suite,) = JUnitXml.fromfile(str(exported.files / "junit"))
    cases = list(suite)

    assert suite.tests == len(cases) == len(exported.workloads)
    assert suite.failures == sum(
        not all(verdict["success"] for verdict in one["sla"]) for one in exported.workloads
    )
    assert [case.name for case in cases] == [
        f"{one['name']} [{one['position']}]" for one in exported.workloads
    ]
    assert f"7 x DummyError: {EVIL}" in cases[1].system_err
    assert "Traceback" in cases[1].system_err
    assert cases[0].system_err is None


class Words(HTMLParser):
    """The text of a page, as it reads without scripts and styles."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self._hidden = 0
        self.parts: list[str] = []
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        self._hidden += tag in ("script", "style")

    def handle_endtag(self, tag: str) -> None:
        self._hidden -= tag in ("script", "style")

    def handle_data(self, data: str) -> None:
        if not self._hidden:
            self.parts.append(data)

    @property
    def text(self) -> str:
        return " ".join(" ".join(self.parts).split())


def test_the_page_has_the_sums_of_the_ledger(exported: Exported) -> None:
    page = exported.text("html")
    words = Words(page)

    sums = [checked(one) for one in exported.workloads]
    total = {state: sum(one[state] for one in sums) for state in ("planned", *STATES)}
    states = " + ".join(f"{total[state]} {state.replace('_', ' ')}" for state in STATES)
    assert f"{total['planned']} planned = {states}" in words.text
    assert page == exported.text("html-again")
    assert EVIL in words.text
    assert not [one for tag, one in words.tags if tag == "img" and one.get("src") == "x"]
    assert page.count("</script") == sum(tag == "script" for tag, _ in words.tags)


def test_rally_json_has_what_ran(exported: Exported) -> None:
    (task,) = json.loads(exported.text("rally"))["tasks"]

    for subtask, states in zip(task["subtasks"], exported.expected(), strict=True):
        (workload,) = subtask["workloads"]
        failed = states["failed"] + states["timed_out"]
        assert workload["total_iteration_count"] == len(workload["data"]) == states["ok"] + failed
        assert workload["failed_iteration_count"] == failed


def test_pyarrow_reads_the_rows(exported: Exported) -> None:
    table = parquet.read_table(exported.files / "parquet")

    pairs = zip(table["workload"].to_pylist(), table["state"].to_pylist(), strict=True)
    assert counted(pairs, len(exported.workloads)) == exported.expected()
    lines = list(csv.DictReader(io.StringIO(exported.text("csv"))))
    assert table["service_s"].to_pylist() == [
        float(one["service_s"]) if one["service_s"] else None for one in lines
    ]
    begun = min(at for at in table["started_at"].to_pylist() if at)
    assert exported.done.result["started_at"] < begun.isoformat()


def test_hdrhistogram_reads_the_interval_log(exported: Exported) -> None:
    reader = HistogramLogReader(str(exported.files / "hdr"), HdrHistogram(1, 864 * 10**12, 3))
    sums: dict[str, HdrHistogram] = {}
    while (histogram := reader.get_next_interval_histogram()) is not None:
        tag = histogram.get_tag()
        sums.setdefault(tag, HdrHistogram(1, 864 * 10**12, 3)).add(histogram)
    reader.close()

    for number, (workload, states) in enumerate(
        zip(exported.workloads, exported.expected(), strict=True)
    ):
        found = sums.get(f"{number}-{workload['name']}")
        assert (found.get_total_count() if found else 0) == states["ok"]
        if found:
            times = workload["latency"]["service"]["ok"]
            assert found.get_value_at_percentile(50) / 1e9 == pytest.approx(times["p50"], rel=2e-3)
            assert found.get_max_value() / 1e9 == pytest.approx(times["max"], rel=2e-3)


def test_prometheus_reads_the_openmetrics(exported: Exported) -> None:
    families = {
        one.name: one for one in parser.text_string_to_metric_families(exported.text("openmetrics"))
    }

    found = [dict.fromkeys(ROWS, 0) for _ in exported.workloads]
    for sample in families["osbench_iterations"].samples:
        if sample.labels["state"] in ROWS:
            found[int(sample.labels["workload"])][sample.labels["state"]] = int(sample.value)
    assert found == exported.expected()
    counts = {
        int(one.labels["workload"]): one.value
        for one in families["osbench_service_seconds"].samples
        if one.name.endswith("_count")
    }
    assert counts == {at: states["ok"] for at, states in enumerate(exported.expected())}


def test_opentelemetry_reads_metrics_and_spans(exported: Exported) -> None:
    (request,) = exported.metrics

    found = [{state: one[state] for state in ROWS} for one in states_of(request)]
    assert found == exported.expected()
    for point in metrics_of(request)["osbench.iteration.service_time"]:
        number = attribute(point, "osbench.workload")
        times = exported.workloads[number]["latency"]["service"]["ok"]
        assert point.count == exported.expected()[number]["ok"]
        assert point.zero_count + sum(point.positive.bucket_counts) == point.count
        assert point.sum == pytest.approx(times["mean"] * times["count"])
        low, high = (
            2 ** ((point.positive.offset + at) / 2**point.scale)
            for at in (0, len(point.positive.bucket_counts))
        )
        assert low < times["min"] * 1.02
        assert times["max"] <= high <= times["max"] * 1.05
    spans = spans_of(exported.traces)
    kept = sum(one["tracing"]["kept"] for one in exported.workloads)
    assert len({one.trace_id for one in spans}) == kept > 0
    assert (exported.files / "otlp" / "otlp-metrics.jsonl").read_bytes().strip() == request
    in_files = exported.text("otlp/otlp-traces.jsonl").splitlines()
    assert len(spans_of(in_files)) == len(spans)


def test_the_search_engine_has_each_document_once(exported: Exported) -> None:
    rows, workloads = (
        exported.documents[f"osbench-{name}"] for name in ("iterations", "workloads")
    )

    pairs = ((one["workload"], one["state"]) for one in rows)
    assert counted(pairs, len(exported.workloads)) == exported.expected()
    workloads.sort(key=lambda one: one["workload"])
    assert [{state: one[state] for state in ROWS} for one in workloads] == exported.expected()


def test_no_output_holds_a_secret_or_obeys_a_name(exported: Exported) -> None:
    parts = [path.read_bytes() for path in exported.files.rglob("*") if path.is_file()]
    parts += [json.dumps(exported.documents).encode(), *exported.metrics, *exported.traces]

    assert len(parts) > len(FORMATS)
    assert not [part for part in parts if PASSWORD.encode() in part]
    assert b"\x1b" not in b"".join(
        (exported.files / name).read_bytes() for name in ("csv", "csv-times", "junit")
    )
    assert "'=ok" in exported.text("csv-times")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("missing.yaml",), "missing.yaml"),
        (("--scenario", "Dummy.dummy", "--plugin-path", "absent.py"), "absent.py"),
        (("--scenario", "Shop.buy", "--plugin-path", "broken.py"), "broken.py"),
    ],
)
def test_a_run_that_cannot_start_is_a_failed_test(
    guest: Site, options: tuple[str, ...], message: str
) -> None:
    guest.write("broken.py", "def broken(:\n")

    done = guest.call("run", *options, "--quiet", "--export", "junit=r.xml")

    (suite,) = JUnitXml.fromfile(str(guest.home / "r.xml"))
    assert done.code == 2
    (case,) = suite
    assert (suite.errors, case.result[0].type) == (1, "exit code 2")
    told = case.result[0]
    assert message in f"{told.message}\n{told.text}"
    assert "\n: " not in told.text


def test_a_failing_export_leaves_the_run_alone_and_is_in_its_exit_code(guest: Site) -> None:
    guest.write("plugin.py", FAILING)
    dummy = ("--scenario", "Dummy.dummy", "--times", "3", "--plugin-path", "plugin.py")
    refused = guest.call("run", *dummy, "--export", "csv=/dev/null/x")
    assert refused.code == 2
    assert "cannot write to /dev/null/x" in refused.err
    assert not (guest.data / "runs").exists()

    done = guest.run(*dummy, "--export", "fails", "--export", "csv")

    assert done.code == 5
    assert done.sums["ok"] == 3
    assert done.result["notes"][0].startswith("export fails failed: the exporter fails raises")
    assert "Warning: export fails failed: the exporter fails raises ValueError" in done.err
    assert len((guest.home / "iterations.csv").read_text("utf-8").splitlines()) == 4
