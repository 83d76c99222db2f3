"""How long it takes to collect the traces of a run from a Redis that holds those of many."""

from __future__ import annotations

import argparse
import json
import os
import tempfile
import time
from collections.abc import Sequence

import osprofiler.drivers.redis_driver  # makes its driver known
import osprofiler.opts
import psutil
from osprofiler.drivers import base

from helpers.synthetic_traces import Fault, Work, events_of, find, slow_query, traces
from osbench.common.protocol.columns import encode_rows, row
from osbench.common.values.outcomes import Outcome
from osbench.coordinator.results.storage.run_directory import RunDirectory
from osbench.edges.traces.collection.collector import Collection, CollectionSettings
from osbench.edges.traces.collection.retention import Retention
from osbench.edges.traces.model.spans import Trace, uuid_form
from servers import RedisServer, redis_server

#: Traces of other runs for each of ours.
OTHERS = 9


def fill(server: RedisServer, count: int) -> list[Trace]:
    """Store so many traces of 12 events each, and those of other runs."""

    def six_spans(root: Work, _: object) -> None:
        api = find(root, "wsgi")
        api.inner = [work for work in api.inner if work.name != "rpc"]
        api.add(Work(name="render", start=api.end - 0.5, length=0.3, service="shop/api", host="b"))

    found = list(traces(count, Fault(share=0.03, harm=slow_query), change=six_spans))
    client = server.client()
    pipeline = client.pipeline(transaction=False)
    for number, trace in enumerate(found, 1):
        events = [json.dumps(event) for event in events_of(trace)]
        for other in range(OTHERS + 1):
            trace_id = os.urandom(16).hex() if other else trace.trace_id
            pipeline.lpush(f"osprofiler_opt:{uuid_form(trace_id)}", *events)
        if number % 100 == 0:
            pipeline.execute()
    pipeline.execute()
    client.close()
    return found


def read_with_osprofiler(url: str, found: Sequence[Trace]) -> float:
    """Seconds that OSProfiler's own reader takes."""
    osprofiler.opts.set_defaults(osprofiler.opts.cfg.CONF)
    began = time.perf_counter()
    for trace in found:
        # a driver adds each report to the last
        base.get_driver(url, conf={}).get_report(uuid_form(trace.trace_id))
    return time.perf_counter() - began


def collect(url: str, found: Sequence[Trace], folder: str) -> dict[str, float]:
    """Seconds to read, explain, keep and delete, by the clock and of CPU; bytes of growth."""
    rows = [
        row(
            iteration=n,
            outcome=Outcome.OK,
            due=0,
            started=0,
            ended=max(span.duration_ns for span in trace.spans),
            extra=(raw, None, b""),
        )
        for n, trace in enumerate(found, 1)
        for raw in [bytes.fromhex(trace.trace_id)]
    ]
    directory = RunDirectory.create(folder, "bench")
    columns = encode_rows(rows, (), 0)
    directory.keep([{"workload": 0, "incarnation": "w", "columns": columns, "failures": []}])
    settings = CollectionSettings(
        retention=Retention(slowest=500, failed=200, share=0.05, limit=256 << 20),
        late_s=5.0,
        expiry_s=600,
    )
    before = psutil.Process().memory_info().rss
    began, cpu = time.perf_counter(), time.process_time()
    done = Collection(directory, ["Shop.buy"], settings, warmup_ns={}).collect(url)
    took = {"collect_s": time.perf_counter() - began, "cpu_s": time.process_time() - cpu}
    directory.close()
    if "SELECT prices" not in done.sentences[0]:
        raise SystemExit(f"another fault was found than there is: {done.sentences[0]}")
    return {**took, "grown": psutil.Process().memory_info().rss - before}


def main() -> None:
    """Print what both take."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--traces", type=int, required=True)
    parser.add_argument("--read", type=int, required=True, help="traces for OSProfiler's reader")
    given = parser.parse_args()
    with redis_server() as server, tempfile.TemporaryDirectory() as folder:
        found = fill(server, given.traces)
        reader_s = read_with_osprofiler(server.url, found[: given.read])
        took = collect(server.url, found, folder)
    print(json.dumps({**took, "reader_s": reader_s}))


if __name__ == "__main__":
    main()
