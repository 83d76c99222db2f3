"""Traced runs from their load to the reason of slow iterations, as the pages on traces say."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator

import pytest

from helpers.json_server import serving
from helpers.machine import Machine
from helpers.readme import REPOSITORY, blocks, files
from helpers.trace_backends import FakeTempo
from servers import folder

pytestmark = pytest.mark.functional

TRACES, FILES, HTTP = "docs/traces.md", "docs/trace-files.md", "docs/trace-http.md"
OSPROFILER, LIMITS = "docs/trace-osprofiler.md", "docs/limits.md"


@pytest.fixture
def machine() -> Iterator[Machine]:
    """A machine with the samples and an empty folder to type in."""
    with folder() as home:
        desk = home / "desk"
        desk.mkdir()
        (desk / "samples").symlink_to(REPOSITORY / "samples")
        yield Machine(home, folder=desk, forked=True)


def test_the_guide_from_a_traced_run_to_the_reason_of_its_slow_iterations(
    machine: Machine,
) -> None:
    documents = (OSPROFILER, TRACES, FILES, LIMITS)
    redis, shop, *steps = (block for one in documents for block in blocks("traces", one))
    for document in documents:
        for name, text in files(document).items():
            (machine.folder / name).write_text(machine.text(text), encoding="utf-8")

    with machine.running(redis) as store:
        machine.wait_for_port("6379", store)
        with machine.running(shop) as terminal:
            machine.wait_for_port("8080", terminal)
            ran, explained, predicted, shown, *others = map(machine.run, steps)
            ranked, compared, exported, logged, gated = others

    desk = machine.folder
    summary = json.loads((desk / "result.json").read_text("utf-8"))
    (tracing,) = (workload["tracing"] for workload in summary["workloads"])
    assert tracing["cost"]["traced"] + tracing["cost"]["untraced"] == 4000
    assert tracing["cost"]["p50"]["low_s"] is not None
    # what is slow is named, in the summary too
    why = json.loads((desk / "why.json").read_text("utf-8"))
    sentence = why["sentence"]
    assert "shop/web recompute" in sentence
    assert " ".join(explained.split()).startswith(sentence)
    assert sentence == tracing["explanation"]
    assert "why slow" in ran
    cause = why["answers"][0]["bands"][0]["causes"][0]
    assert cause["clear"]
    # on a busy machine the rest of a slow iteration is waiting
    assert cause["share"] > 0.3
    assert "1 request per iteration, at most 1" in gated
    assert "shop db*: 1 call per iteration, at most 1" in gated
    # a slow one takes 300 ms, and on a busy machine all of them some more
    now = re.search(r"p99 ([\d.]+)(m?s) -> ", predicted)
    assert now and float(now[1]) / (1000 if now[2] == "ms" else 1) >= 0.3
    assert "Left out: queues" in predicted
    what_if = json.loads((desk / "what-if.json").read_text("utf-8"))["predictions"][0]
    assert what_if["shifts"][2]["gain_s"] > 0.1
    (best,) = why["best"].values()
    assert best[0]["what"] == "recompute"
    # a slow one has it on its path
    assert "* shop/web recompute" in shown
    slowest = json.loads((desk / "slowest.json").read_text("utf-8"))
    parts = sum(span["critical_s"] + span["waited_s"] for span in slowest["spans"])
    assert parts == pytest.approx(slowest["duration_s"])
    names = {row["name"]: row for row in json.loads((desk / "rank.json").read_text())["ranking"]}
    assert names["osbench.iteration"]["count"] == tracing["traced"]
    assert names["osbench.iteration"]["total_s"] >= names["recompute"]["total_s"] > 0
    assert "wsgi" in ranked
    report = (desk / "report.txt").read_text("utf-8")
    assert logged.endswith(report)
    assert report.splitlines()[2].split() == [
        *("1000.123", "1000.123", "1000.123", "1", "engine-start-workflow")
    ]
    assert "HttpRequests.check_request: " in compared
    assert json.loads((desk / "traces.json").read_text("utf-8"))["traceEvents"]
    assert "osbench.iteration;" in (desk / "slow.folded").read_text("utf-8")
    assert "osbench.iteration" in exported


def test_the_guide_to_slow_iterations_of_a_service_without_spans(machine: Machine) -> None:
    shop, explaining = blocks("untraced", HTTP)
    text = files(HTTP)["untraced.yaml"]
    (machine.folder / "untraced.yaml").write_text(machine.text(text), encoding="utf-8")

    with machine.running(shop) as terminal:
        machine.wait_for_port("8080", terminal)
        said = " ".join(machine.run(explaining).split())

    assert re.search(r"why slow The slowest [12] % of iterations \(p9[89]\+\) take ", said)
    # in the summary, and by the command
    assert said.count(" of that is first byte of report, ") == 2
    assert "Ordinary iteration: iteration " in said


def test_the_tutorial_names_the_slow_call_and_predicts_a_faster_one(machine: Machine) -> None:
    service, *steps = blocks("first-traces", "docs/first-traces.md")

    with machine.running(service) as terminal:
        machine.wait_for_port("8080", terminal)
        ran, explained, shown, predicted = (" ".join(machine.run(step).split()) for step in steps)

    cause = "items SELECT * FROM items WHERE owner = ? LIMIT ?"
    assert "received by OTLP" in ran
    assert "exit code" in ran
    assert cause in ran
    assert "For example:" in explained
    assert cause in shown
    assert f" traces: {cause}" in predicted
    assert "SLA percentile, p99 of response time at most 150ms" in predicted
    assert (machine.folder / "report.html").stat().st_size


def test_services_send_the_token_of_the_guide_with_their_spans(machine: Machine) -> None:
    service, step = blocks("otlp", "docs/trace-opentelemetry.md")

    with machine.running(service) as terminal:
        machine.wait_for_port("8080", terminal)
        printed = " ".join(machine.run(step).split())

    assert "600 spans of this run received by OTLP" in printed
    assert "refused" not in printed


def test_the_guide_queries_the_traces_of_a_service_from_tempo(machine: Machine) -> None:
    service, step = blocks("tempo", "docs/trace-backends.md")

    with serving(FakeTempo()) as tempo:
        machine.place("4318", tempo.server_port)
        machine.place("3200", tempo.server_port)
        with machine.running(service) as terminal:
            machine.wait_for_port("8080", terminal)
            printed = " ".join(machine.run(step).split())

    cause = "items SELECT * FROM items WHERE owner = ? LIMIT ?"
    assert printed.count(cause) > 2
    # in the notes of the run, and of the explanation
    assert printed.count("1,500 of 1,500 traces found at tempo+http://127.0.0.1:") == 2
