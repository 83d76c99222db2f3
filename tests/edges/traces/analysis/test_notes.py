import pytest

from helpers.synthetic_traces import Work, find, spans_of, traces
from osbench.edges.traces.analysis.coverage import SpanCounts, TraceCoverage
from osbench.edges.traces.analysis.digest import digest_of
from osbench.edges.traces.analysis.notes import missing_parts, trace_notes
from osbench.edges.traces.model.clock_skew import Clocks, HostSkew


def notes_on(found):
    digest = digest_of(found)
    return list(trace_notes(digest.coverage, digest.clocks, 0))


def test_orphans_are_counted_by_service():
    def lose(work, chance):
        find(work, "rpc").lost = True

    assert notes_on(traces(20, change=lose))[0] == (
        "stock/engine: 20 spans left out (100 %), the spans around them are not recorded"
    )


def test_spans_of_threads_that_kept_a_trace_are_counted_by_service():
    def late(work, chance):
        api = find(work, "wsgi")
        for number in range(0 if chance.random() < 0.9 else 30):
            start = api.end + 1000 + number
            api.add(Work(name="run", start=start, length=1, service="pool", host="b"))

    (line,) = (line for line in notes_on(traces(100, change=late)) if "left out" in line)

    assert "written into traces that its threads had kept" in line
    # the first could be work that continues after the reply
    assert "left out (97 %)" in line


def test_incomplete_traces_and_work_after_the_reply_are_reported():
    def harm(work, chance):
        api = find(work, "wsgi")
        api.add(Work(name="notify", start=api.end - 0.1, length=50, service="bus", host="c"))
        find(work, "reserve").lost_stop = True

    lines = notes_on(traces(10, change=harm))

    assert lines[0] == "10 of 10 traces incomplete: 10 stops and 0 starts of spans are missing"
    assert lines[1].startswith("bus notify continued after its caller's end 10 times, 49.9 ms on")


def test_of_many_services_the_worst_are_named():
    coverage = TraceCoverage(
        services={f"s{n}": SpanCounts(count=100, orphan=n) for n in range(1, 31)}
    )

    first, *_, last = trace_notes(coverage, Clocks(), 0)

    assert first.startswith("s30: 30 spans left out (30 %)")
    assert last == "spans of 20 more services left out"


@pytest.mark.parametrize(
    ("add_ms", "low_ms", "high_ms", "line"),
    [
        (10, 9, 11, "the clock of b is 10.0 ms behind the clock of a (+-1.00 ms), corrected"),
        (-10, -11, -9, "the clock of b is 10.0 ms ahead of the clock of a (+-1.00 ms), corrected"),
        (10, 10, None, "the clock of b is at least 10.0 ms behind the clock of a, corrected"),
        (0, -1, 2, "the clocks of a and b may agree (-1.00 ms to +2.00 ms)"),
    ],
)
def test_clocks_are_reported_by_pair_of_hosts(add_ms, low_ms, high_ms, line):
    def ns(value):
        return None if value is None else value * 10**6

    offset = HostSkew(
        reference="a",
        host="b",
        add_ns=ns(add_ms),
        low_ns=ns(low_ms),
        high_ns=ns(high_ms),
        samples=9,
    )

    assert list(trace_notes(TraceCoverage(), Clocks([offset]), 0)) == [line]


def test_a_clock_that_only_one_bound_is_known_of():
    """A cast says no more than that it was taken after it was sent."""
    root = Work(name="osbench.iteration", start=0, length=10).add(
        Work(name="cast", start=5, length=100, service="bus", host="c")
    )

    (_, line) = notes_on(spans_of(root, number=n, clocks={"c": -50}) for n in range(10))

    assert line == "the clock of w1 is at least 45.0 ms ahead of the clock of c, corrected"


def test_names_that_services_write_cannot_steer_a_terminal():
    coverage = TraceCoverage(services={"a\x1b[2Jb": SpanCounts(count=2, orphan=1)})

    (line,) = trace_notes(coverage, Clocks(), 0)

    assert "\x1b" not in line


@pytest.mark.parametrize(
    ("sources", "looks_at"),
    [
        ({}, "hmac_keys"),
        ({"by_otlp": True}, "OTEL_EXPORTER_OTLP_ENDPOINT"),
        ({"by_otlp": True, "queried": True}, "OTEL_TRACES_SAMPLER"),
    ],
)
def test_services_without_spans_are_told_with_what_to_look_at(sources, looks_at):
    def unanswered(work, chance):
        work.inner[0].inner = []

    coverage = digest_of(traces(5, change=unanswered)).coverage

    (line,) = missing_parts(coverage, **sources)

    advice = ("hmac_keys", "OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_TRACES_SAMPLER")
    assert line.startswith("no service wrote a span into any of 5 traces. Look at ")
    assert [one for one in advice if one in line] == [looks_at]


def test_a_service_that_is_called_and_wrote_no_span_is_named():
    def call(work, chance):
        find(work, "wsgi").service = "nova/api"
        work.add(Work(name="nova.list", start=work.start, length=0.1, service="osbench"))
        work.add(Work(name="glance.list", start=work.start, length=0.1, service="osbench"))

    (line,) = (line for line in notes_on(traces(7, change=call)) if "wrote no span" in line)

    assert line.startswith("glance wrote no span into any of 7 traces that call it")


def test_no_service_is_named_if_none_wrote_a_span():
    own = {"osbench": SpanCounts(count=9)}
    coverage = TraceCoverage(traces=2, services=own, called={"nova": 2})

    assert [line for line in missing_parts(coverage) if "nova" in line] == []
