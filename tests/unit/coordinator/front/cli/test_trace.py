import json
from dataclasses import replace

import pytest
from click.testing import CliRunner

from helpers.result_rows import row_of
from helpers.synthetic_traces import (
    Fault,
    Work,
    find,
    many_queries,
    queue_wait,
    slow_query,
    spans_of,
    stretch,
    traces,
)
from osbench.common.protocol.columns import encode_rows
from osbench.common.values.outcomes import Outcome
from osbench.coordinator.results.storage.run_directory import RunDirectory
from osbench.edges.traces.analysis.digest import Digest, Survey
from osbench.edges.traces.analysis.features import NO_GROUP
from osbench.edges.traces.collection.archive import Archive
from osbench.edges.traces.model.spans import uuid_form
from osbench.edges.traces.sources.otlp import to_otlp
from osbench.edges.traces.trace_command import trace as command

LOG = """\
2020-02-27T08:04:25.000000          {a} {a} {b} engine-run-start
2020-02-27T08:04:25.250000          {a} {b} {c} task-run-start
2020-02-27T08:04:25.750000 0.500000 {a} {b} {c} task-run-stop
2020-02-27T08:21:05.123456 1000.123456 {a} {a} {b} engine-run-stop <- !!!
2020-02-27T08:04:26.000000          {d} {d} {e} task-run-start
2020-02-27T08:04:26.250000 0.250000 {d} {d} {e} task-run-stop {{"statement": "SELECT 1"}}
""".format(
    **{
        letter: f"{letter * 8}-{letter * 4}-4{letter * 3}-8{letter * 3}-{letter * 12}"
        for letter in "abcde"
    }
)
RANKED = f"""\
Total time | Max time | Avg time | Occurrences | Trace name
{"-" * 91}
1000.123     1000.123   1000.123   1             engine-run
0.750        0.500      0.375      2             task-run
"""


@pytest.fixture
def call(tmp_path):
    """Call the command with a data directory of the test, in its folder."""
    conf = tmp_path / "osbench.conf"
    conf.write_text(f"[DEFAULT]\ndata_dir = {tmp_path}\n")

    def run(*args, code=0):
        words = [
            str(tmp_path / word) if (tmp_path / str(word)).is_file() else word for word in args
        ]
        done = CliRunner().invoke(command, [*map(str, words), "--config-file", str(conf)])
        assert done.exit_code == code, done.output
        return done.stdout if not code else done.output

    return run


@pytest.fixture
def spans(tmp_path):
    """Write traces to a file."""

    def write(name, found):
        (tmp_path / name).write_text(json.dumps(to_otlp(found)))
        return name

    return write


def test_a_log_is_ranked_as_mistrals_guide_does(call, tmp_path):
    (tmp_path / "mistral.log").write_text(LOG)

    said = call("rank", "mistral.log", tmp_path / "report.txt", "--by", "self")
    shown = call("rank", "mistral.log", "--mistral")

    assert (tmp_path / "report.txt").read_text() == shown == RANKED
    lines = said.splitlines()
    assert lines[0].startswith("total")
    assert lines[0].split()[1:8] == ["own", "critical", "mean", "p50", "p95", "p99", "max"]
    assert "engine-run" in lines[1]
    assert "task-run" in lines[2]


def test_a_ranking_in_json_has_what_mistral_leaves_out(call, tmp_path):
    (tmp_path / "mistral.log").write_text(LOG)

    engine, task = json.loads(call("rank", "mistral.log", "--json"))["ranking"]

    assert engine["self_s"] == pytest.approx(999.623456)
    assert engine["critical_s"] == pytest.approx(999.623456)
    assert (task["p99_s"], task["traces"], task["count"]) == (pytest.approx(0.5, rel=1e-3), 2, 2)


def test_a_trace_is_shown_as_a_tree(call, spans):
    (found,) = traces(1, Fault(share=1.0, harm=many_queries))
    file = spans("one.json", [found])

    text = call("show", found.trace_id[:9], "--from", file)
    printed = json.loads(call("show", uuid_form(found.trace_id), "--from", file, "--json"))

    assert text.startswith(f"Trace {uuid_form(found.trace_id)} of one.json")
    assert "* osbench/worker osbench.iteration  @w1" in text
    assert "* (waited for stock/engine)" in text
    assert "more like it" in text
    root = printed["spans"][0]
    assert printed["duration_s"] == root["duration_s"]
    parts = sum(span["critical_s"] + span["waited_s"] for span in printed["spans"])
    assert parts == pytest.approx(root["duration_s"])


def test_a_trace_is_written_for_perfetto(call, spans, tmp_path):
    found = list(traces(3))
    file = spans("some.json", found)
    out = tmp_path / "perfetto.json"

    call("show", "--perfetto", out, found[1].trace_id, "--from", file)

    events = json.loads(out.read_text())["traceEvents"]
    shown = {event["args"]["trace"] for event in events if event["ph"] == "X"}
    assert shown == {uuid_form(found[1].trace_id)}
    assert "osbench.iteration" in {event["name"] for event in events}


def test_a_file_for_perfetto_that_cannot_be_written_is_named(call, spans, tmp_path):
    found = list(traces(1))
    file = spans("some.json", found)
    out = tmp_path / "nowhere" / "perfetto.json"

    said = call("show", "--perfetto", out, found[0].trace_id, "--from", file, code=2)

    assert f"cannot write {out}: No such file or directory" in said


def test_what_is_wrong_with_a_trace_is_shown_next_to_it(call, spans):
    api = Work(name="wsgi", start=1, length=5, service="api", error="Boom")
    lost = Work(name="gone", start=2, length=2, service="api", lost=True)
    lost.add(Work(name="orphaned", start=2, length=1, service="db"))
    late = Work(name="cast", start=5, length=50, service="engine")
    root = Work(name="osbench.iteration", start=0, length=9).add(api.add(lost, late))

    found = spans_of(root)
    file = spans("one.json", [found])

    text = call("show", found.trace_id, "--from", file)
    printed = json.loads(call("show", found.trace_id, "--from", file, "--json"))

    assert printed["duration_s"] == pytest.approx(0.009)
    assert "api wsgi  @w1  Boom" in text
    assert "engine cast  @w1  [after its caller's end]" in text
    assert "left out (orphan): db orphaned" in text


def test_an_explanation_begins_with_its_answer(call, spans):
    def cast(work, chance):
        api = find(work, "wsgi")
        api.add(Work(name="notify", start=api.end - 0.1, length=50, service="bus", host="c"))

    slow = Fault(share=0.03, harm=slow_query)
    file = spans("slow.json", traces(1500, slow, clocks={"b": 10.0}, change=cast))

    text = call("explain", file)
    printed = json.loads(call("explain", file, "--json"))

    said = " ".join(text.split())
    assert said.startswith(printed["sentence"])
    assert "shop/api db SELECT prices on host b" in printed["sentence"]
    rest = said.removeprefix(printed["sentence"])
    assert "* stands out: " in rest
    assert "Shares of all variance: " in rest
    assert "the clock of w1 is 10" in rest
    assert "bus notify continued after its caller's end 1,500 times" in rest
    (answer,) = printed["answers"]
    assert answer["bands"][0]["causes"][0]["clear"] is True
    assert printed["census"]["traces"] == 1500
    assert [offset["host"] for offset in printed["clocks"]] == ["c", "w1"]


def test_what_a_faster_span_would_change(call, spans):
    file = spans("slow.json", traces(300, Fault(share=0.2, harm=slow_query)))
    changes = ("--what-if", "shop/api db SELECT prices: 0", "--what-if", "stock/*: -10 %")

    text = call("explain", file, *changes)
    printed = json.loads(call("explain", file, *changes, "--json"))

    (one,) = printed["predictions"]
    assert printed["changes"] == list(changes[1::2])
    assert [shift["name"] for shift in one["shifts"]] == ["p50", "p95", "p99"]
    assert one["shifts"][1]["after_s"] < 0.5 * one["shifts"][1]["before_s"]
    assert text.startswith(f"{one['name']}: p50 ")
    assert "Changed, in 300 traces: shop/api db SELECT prices; stock/engine reserve" in text
    assert one["caveat"] in text
    best = json.loads(call("explain", file, "--json"))["best"]
    assert [place["about"] for places in best.values() for place in places[:1]] == ["SELECT prices"]


def test_a_span_that_no_trace_has(call, spans):
    file = spans("some.json", traces(40))

    said = call("explain", file, "--what-if", "shop/api db SELECT price: -50%", code=2)
    wrong = call("explain", file, "--what-if", "shop/api db: 50%", code=2)

    assert "no span matches 'shop/api db SELECT price'; the nearest are shop/api db SELECT" in said
    assert "'50%' must be between -0% and -100%, such as -50%, or 0" in wrong


def test_nothing_in_a_trace_steers_the_terminal(call, spans):
    """Names, hosts and services come from outside: an escape sequence is printed as text."""
    evil = "\x1b[2J\x9b2J"

    def harm(work, chance):
        slow_query(work, chance)
        engine = find(work, "reserve")
        stretch(work, engine.start - 0.001, 300)

    def changed(one):
        marked = [
            span._replace(
                name=f"{span.name}{evil}",
                service=f"{span.service}{evil}",
                host=f"{span.host}{evil}",
            )
            for span in one.spans
        ]
        lost = marked[-1]._replace(span_id="f" * 16, parent_id="e" * 16)
        return replace(one, spans=(*marked, lost))

    found = [changed(one) for one in traces(600, Fault(share=0.08, harm=harm))]
    many, some = spans("many.json", found), spans("some.json", found[:20])

    for words in (
        ("explain", many),
        ("explain", some, "--what-if", "*: -50%"),
        ("rank", some),
        ("rank", some, "--mistral"),
        ("compare", some, some),
        ("show", found[0].trace_id, "--from", some),
    ):
        said = call(*words)
        assert "[2J" in said
        assert "\x1b" not in said
        assert "\x9b" not in said


def test_two_runs_are_compared(call, spans):
    before = spans("before.json", traces(300))
    after = spans("after.json", traces(300, Fault(share=0.5, harm=queue_wait), seed=2))

    text = call("compare", before, after)
    same = call("compare", before, spans("again.json", traces(300, seed=3)))
    printed = json.loads(call("compare", before, after, "--json"))

    assert "more than before" in text
    assert "is waiting in the queue to stock/engine" in text
    assert "No difference beyond chance" in same
    (found,) = printed["comparisons"]
    assert found["changes"][0]["what"] == "wait in queue"
    changes = sum(change["added_s"] for change in found["changes"])
    assert changes == pytest.approx(found["added_s"])


def test_runs_without_a_workload_in_common(call, spans):
    one = spans("one.json", traces(3))
    other = spans("other.json", [spans_of(Work(name="engine-run", start=0, length=1))])

    said = call("compare", one, other, code=2)

    assert "one.json and other.json have no workload in common" in said


def test_folded_stacks_sum_to_the_durations(call, spans):
    found = list(traces(40))

    lines = call("export", spans("some.json", found), "--format", "folded").splitlines()

    stacks = dict(line.rsplit(" ", 1) for line in lines)
    total = sum(next(s for s in one.spans if not s.parent_id).duration_ns for one in found)
    assert sum(map(int, stacks.values())) == pytest.approx(total / 1000, abs=len(stacks))
    root, action = "osbench/worker osbench.iteration", "osbench/worker shop.buy"
    assert f"{root};{action};shop/api wsgi GET /items;(waited for)" in stacks


def test_trace_events_nest_in_their_threads(call, spans, tmp_path):
    parallel = Work(name="osbench.iteration", start=0, length=100).add(
        Work(name="a", start=10, length=50), Work(name="b", start=20, length=60)
    )
    file = spans("some.json", [*traces(3), spans_of(parallel, number=77)])

    call("export", file, "--to", tmp_path / "out.json")

    events = json.loads((tmp_path / "out.json").read_text())["traceEvents"]
    threads = {}
    for event in events:
        if event["ph"] == "X":
            threads.setdefault((event["pid"], event["tid"]), []).append(event)
    assert len({process for process, _ in threads}) == 3
    for inside in threads.values():
        open_ = []
        for event in inside:
            end = event["ts"] + event["dur"]
            while open_ and open_[-1] <= event["ts"]:
                open_.pop()
            assert not open_ or end <= open_[-1]
            open_.append(end)


def test_one_band_is_exported_as_otlp_and_read_again(call, spans, tmp_path):
    file = spans("some.json", traces(200, Fault(share=0.04, harm=slow_query)))

    call("export", file, "--format", "otlp", "--band", "p99+", "--to", tmp_path / "slow.json")
    text = call("rank", "slow.json")

    assert " 2 " in next(line for line in text.splitlines() if "osbench.iteration" in line)
    short = call("rank", "slow.json", "--rows", "1")
    assert "not shown" in short
    assert "not shown" not in text
    # as in version 0.1.0
    assert call("rank", "slow.json", "--limit", "1") == short
    assert "has no matching trace" in call("export", file, "--trace", "ffff" * 8, code=2)
    said = call("export", file, "--band", "slow", code=2)
    assert "'slow' is not a band; write middle, failed, p97+ or p95-p97" in said


@pytest.fixture
def kept(tmp_path):
    """Make a run of two workloads whose traces are kept; returns its traces."""

    def make(run):
        found = list(traces(8))
        survey = Survey()
        for trace in found:
            survey.add(trace)
        directory = RunDirectory.create(str(tmp_path), run)
        archive, digest = Archive(directory.path), Digest(survey, ["Shop.buy", "Shop.sell"])
        for at, trace in enumerate(found):
            # 1 to 5 of the first workload, 4 to 6 of the second
            number, group = (at + 1, 0) if at < 5 else (at - 1, 1)
            digest.add_iteration(
                trace, group=group, iteration=number, outcome=Outcome.OK, kept=True
            )
            archive.keep(trace)
        described = {"traced": 8, "skipped": 0, "usual": [], "clocks": [], "ranking": []}
        archive.close(digest.table.close(), described | {"census": digest.coverage.to_dict()})
        directory.close()
        return found

    return make


def test_an_iteration_is_found_in_its_workload(call, kept):
    found = kept("20260401-b")

    assert call("show", "6").startswith(
        f"Trace {uuid_form(found[7].trace_id)}, iteration 6 of Shop.sell in 20260401-b"
    )
    for workload in ("0", "Shop.buy"):
        assert f"Trace {uuid_form(found[4].trace_id)}, iteration 5" in call(
            "show", "5", "--workload", workload
        )
    assert "iteration 5 is in several workloads" in call("show", "5", code=2)
    assert "iteration 6 of 20260401-b has no trace" in call("show", "6", "--workload", 0, code=2)
    assert "20260401-b has no workload 2; choose from 0 Shop.buy, 1 Shop.sell" in call(
        "show", "5", "--workload", 2, code=2
    )


def test_a_trace_kept_but_not_drawn_is_found_in_its_workload(call, tmp_path):
    """It is compared with none, so that only the results know its workload."""
    drawn, other = list(traces(2))
    directory = RunDirectory.create(str(tmp_path), "20260401-b")
    archive, digest = Archive(directory.path), Digest(Survey(), ["Shop.buy", "Shop.sell"])
    directory.write(
        "run.json", {"workloads": [{"scenario": "Shop.buy"}, {"scenario": "Shop.sell"}]}
    )
    for number, (trace, group) in enumerate(((drawn, 0), (other, NO_GROUP))):
        digest.add_iteration(trace, group=group, iteration=5, outcome=Outcome.OK, kept=True)
        archive.keep(trace)
        row = row_of(5, Outcome.OK, 0, 0, 1, 0, 0, [], (bytes.fromhex(trace.trace_id), None, b""))
        columns = encode_rows([row], [], 0)
        directory.keep([{"workload": number, "columns": columns, "incarnation": "w1"}])
    described = {"traced": 2, "skipped": 0, "usual": [], "clocks": [], "ranking": []}
    archive.close(digest.table.close(), described | {"census": digest.coverage.to_dict()})
    directory.close()

    for number, trace in enumerate((drawn, other)):
        said = call("show", "5", "--workload", number)
        assert f"Trace {uuid_form(trace.trace_id)}, iteration 5" in said
    assert "iteration 5 is in several workloads" in call("show", "5", code=2)


def test_an_id_is_found_by_its_beginning(call, kept):
    found = {trace.trace_id[:4]: uuid_form(trace.trace_id) for trace in kept("20260401-b")}
    assert list(found) == ["f5b1", "73a9", "fd3f", "d7a5", "457c", "fe55", "38b4", "3365"]

    assert found["d7a5"] in call("show", "d")
    assert found["f5b1"] in call("show", "F5B1-")
    # no iteration has this number
    assert found["3365"] in call("show", "336")
    assert "'f' could be any of 3 traces of 20260401-b" in call("show", "f", code=2)
    assert (
        "20260401-b has kept no trace 'zzz'; `osbench-coord trace explain 20260401-b` names some"
    ) in call("show", "zzz", code=2)
    assert "has no trace: it was not sampled" in call("show", "999", code=2)


def test_an_empty_id_does_not_mean_the_only_trace(call, kept, tmp_path):
    trace, *_ = kept("20260401-b")
    path = tmp_path / "one.json"
    call("export", "last", "--format", "otlp", "--trace", trace.trace_id, "--to", path)

    assert "'' is neither an iteration number" in call("show", "", "--from", path, code=2)


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (("explain", "20269999"), "no run '20269999' in "),
        (("explain", "absent.json"), "; there is no file of that name either"),
        (("rank", "20260401"), "'20260401' could be any of 20260401-a, 20260401-b"),
        (("show", "1", "--run", "x"), "no run 'x' in "),
        (("show", "1", "--from", "x"), "File 'x' does not exist"),
        (("rank", "last", "--rows", "-3"), "-3 is not in the range"),
        (("rank", "last", "--rows", "3", "--limit", "3"), "cannot be combined"),
        (("compare", "last"), "Missing argument"),
        (("export", "last", "--to", "/nowhere/x"), "cannot write /nowhere/x: No such file"),
        (("export", "last", "--trace", "zzz"), "has no matching trace"),
        (("show", "-", "--run", "20260401-a"), "'-' is neither an iteration number nor a trace id"),
        (("show", "²", "--run", "20260401-a"), "20260401-a has kept no trace '²'"),
        (("export", "last", "--trace", ""), "'' is neither an iteration number nor a trace id"),
        (("export", "last", "--band", "failed"), "has no matching trace"),
    ],
)
def test_what_cannot_be_is_reported_in_one_message(call, kept, words, why):
    for run in ("20260401-a", "20260401-b"):
        kept(run)

    said = call(*words, code=2)

    assert why in said
    assert "Traceback" not in said
    assert said.count("Error: ") == 1


def test_a_file_of_spans_without_one_that_can_be_read(call, tmp_path):
    for name, text, why in (
        ("none.json", '{"resourceSpans": 3}', "has no spans"),
        (
            "odd.json",
            '{"resourceSpans": [{"scopeSpans": [{"spans": [{}]}]}]}',
            "has no spans: 1 entry could not be read",
        ),
    ):
        (tmp_path / name).write_text(text)
        for words in (("rank",), ("explain",), ("export",), ("show", "17", "--from")):
            assert why in call(*words, name, code=2)


def test_a_run_without_traces_says_what_it_takes(call, tmp_path):
    directory = RunDirectory.create(str(tmp_path), "20260401-a")
    workload = {"name": "shop", "warmup": {"seconds": 0}, "tracing": {"state": "no key"}}
    directory.write("summary.json", {"workloads": [workload]})
    directory.close()

    for name in ("rank", "export"):
        said = call(name, "last", code=2)
        assert "run 20260401-a has no traces (tracing: no key)" in said
    said = call("explain", "last", code=2)
    assert "run 20260401-a has no traces, and no iteration after its warm-up" in said
