import random

import numpy as np
import pytest

from helpers.synthetic_traces import (
    Fault,
    Work,
    find,
    iteration,
    many_queries,
    queue_wait,
    slow_query,
    spans_of,
    stretch,
    table_of,
    traces,
)
from osbench.common.values.outcomes import Outcome
from osbench.edges.traces.analysis.bootstrap import corrected_p
from osbench.edges.traces.analysis.digest import Digest, Survey, digest_of
from osbench.edges.traces.analysis.explanation import explain, members
from osbench.edges.traces.analysis.features import Features
from osbench.edges.traces.analysis.quantiles import limits, rows_between, slow_bands
from osbench.edges.traces.model.span_keys import DETAILS, KEYS, OTHER, SpanKey, Vocabulary

MS = 1e-3


def explained(*faults, count=1600, **options):
    digest = digest_of(traces(count, *faults, **options))
    features = digest.table.close()
    found = explain(features)
    (answer,) = found.answers
    check(features, answer)
    return found.sentence, answer, digest


def check(features, answer):
    """Holds for every explanation: parts sum to wholes."""
    parts = np.bincount(features.rows(), features.time, minlength=len(features))
    assert (parts == features.total).all()
    for band in answer.bands:
        if band.enough:
            shown = sum(cause.excess_s for cause in band.causes)
            assert shown + band.rest_s == pytest.approx(band.excess_s, abs=1e-9)
        for cause in band.causes:
            both = cause.more_calls_s + cause.slower_calls_s
            assert both == pytest.approx(cause.excess_s, abs=1e-12)
            low, high = cause.interval_s
            assert low - 1e-9 <= cause.excess_s <= high + 1e-9


def test_one_slow_call():
    sentence, answer, _ = explained(Fault(share=0.03, harm=slow_query), count=3100)

    top, middle = answer.bands
    for band in (top, middle):
        assert band.clear == band.causes[0]
        assert str(band.clear.key) == "shop/api db SELECT prices"
        assert band.clear.slower_calls_s > 0.95 * band.clear.excess_s
    assert top.clear.share > 0.95
    assert top.clear.host == "b"
    assert sentence.startswith("The slowest 1 % of traces (p99+) take 5")
    assert "shop/api db SELECT prices on host b" in sentence
    assert "a call instead of 1." in sentence
    assert answer.variance[0].about == "SELECT prices"
    assert answer.variance[0].share > 0.9


def test_too_many_calls():
    sentence, answer, _ = explained(Fault(share=0.03, harm=many_queries))

    cause = answer.bands[0].clear
    assert str(cause.key) == "shop/api db SELECT items"
    # the slowest of them are those whose calls are long, too
    assert cause.more_calls_s > 0.7 * cause.excess_s
    assert "21 calls instead of 1." in sentence
    # repetition does not make another shape
    assert len(answer.shapes) == 1


def test_a_fault_below_the_highest_band_is_found_there():
    """The slowest 1 % have another reason than the 3 % below them."""

    def pause(work, chance):
        stretch(work, chance.uniform(0, work.length), 300)

    _, answer, _ = explained(
        Fault(share=0.035, harm=many_queries), Fault(share=0.008, harm=pause), count=3100
    )

    top, below = answer.bands
    assert top.clear is None
    assert str(below.clear.key) == "shop/api db SELECT items"
    assert answer.described_band == below


def test_a_queue_between_hosts_whose_clocks_differ():
    sentence, answer, digest = explained(
        Fault(share=0.03, harm=queue_wait), clocks={"b": 10.0, "c": -10.0}
    )

    assert answer.bands[0].clear.what == "wait in queue"
    assert "waiting in the queue to stock/engine (from shop/api, rpc -> reserve)" in sentence
    apart = {(one.reference, one.host): one.add_ns / 1e6 for one in digest.clocks.skews}
    assert apart["b", "c"] == pytest.approx(20, abs=0.6)
    assert apart["b", "w1"] == pytest.approx(10, abs=0.6)


def test_a_slow_answer_of_one_service_with_work_after_the_reply():
    def cast(work, chance):
        api = find(work, "wsgi")
        api.add(Work(name="notify", start=api.end - 0.1, length=500, service="bus", host="c"))

    _, answer, digest = explained(
        Fault(share=0.03, harm=slow_query), count=1500, change=cast, clocks={"c": -10.0}
    )

    assert str(answer.bands[0].clear.key) == "shop/api db SELECT prices"
    assert not any(cause.what == "notify" for cause in answer.bands[0].causes)
    after = digest.coverage.after["bus notify"]
    assert after.count == 1500
    assert after.after_ns / 1500 == pytest.approx(499.9e6, rel=0.03)


def test_lost_stops_and_missing_parents_are_counted_and_do_not_hide_the_fault():
    def lose(work, chance):
        if chance.random() < 0.1:
            find(work, "db", "SELECT items").lost_stop = True
        if chance.random() < 0.1:
            find(work, "rpc").lost = True

    _, answer, digest = explained(Fault(share=0.03, harm=slow_query), count=2000, change=lose)

    assert str(answer.bands[0].clear.key) == "shop/api db SELECT prices"
    coverage = digest.coverage
    assert coverage.incomplete == coverage.lost_stops == answer.incomplete
    assert 150 < coverage.incomplete < 250
    assert 150 < coverage.services["stock/engine"].orphan < 250
    assert coverage.services["shop/api"].orphan == 0


def test_the_traces_of_a_band_are_those_that_are_explained():
    """Incomplete ones among the slowest are in no band."""
    chance = np.random.default_rng(4)
    times = chance.integers(1000, 2000, (1000, 3))
    whole = np.ones(1000, bool)
    whole[:100] = False
    times[:100] *= 10
    features = table_of(times, whole=whole)

    (answer,) = explain(features).answers

    for band in answer.bands:
        found = members(features, band.name)
        assert len(found) == band.traces
        assert {one.trace_id for one in band.exemplars} <= found


def test_where_most_traces_are_incomplete_the_sentence_says_that_they_are_compared():
    chance = np.random.default_rng(4)
    some, most = np.arange(700) < 300, np.arange(700) >= 300
    times = chance.integers(1000, 2000, (700, 3))

    left_out, used = (explain(table_of(times, whole=~lost)).answers[0] for lost in (some, most))

    assert (left_out.traces, left_out.incomplete, left_out.gaps) == (400, 300, 0)
    assert "incomplete" not in left_out.sentence
    assert (used.traces, used.incomplete, used.gaps) == (700, 0, 400)
    assert "Most of the traces, 400 of 700, are incomplete and are compared" in used.sentence


def test_of_more_traces_than_are_drawn_from_the_parts_sum_to_the_whole():
    chance = np.random.default_rng(3)

    features = table_of((1e6 * chance.lognormal(size=(60_000, 3))).astype(np.int64))
    (answer,) = explain(features).answers

    for band in answer.bands:
        assert abs(band.rest_s) < 1e-12
        assert sum(one.excess_s for one in band.causes) == pytest.approx(band.excess_s, rel=1e-9)


def test_p_values_of_causes_are_corrected_for_all_keys():
    """Of 950 parts that vary by chance the 60 greatest differences are all "significant"."""
    chance = np.random.default_rng(2)

    (answer,) = explain(table_of(chance.integers(0, 1000, (600, 950)))).answers

    assert answer.bands[0].enough
    assert min(cause.p for cause in answer.bands[0].causes) > 0.05


def longer(name: str, detail: str = ""):
    """A harm: one part of the work takes 60 ms longer."""

    def harm(work, chance):
        stretch(work, find(work, name, detail).end - 0.01, 60.0)

    return harm


@pytest.mark.parametrize("seed", range(2))
def test_two_equal_causes_are_both_in_the_first_sentence(seed):
    sentence, answer, _ = explained(
        Fault(share=0.015, harm=longer("db", "SELECT prices")),
        Fault(share=0.015, harm=longer("reserve")),
        seed=seed,
    )

    assert {str(cause.key) for cause in answer.bands[0].named} == {
        "shop/api db SELECT prices",
        "stock/engine reserve",
    }
    first, _, second = sentence.partition("; and ")
    for part, other in ((first, second), (second, first)):
        assert ("SELECT prices on host b" in part) != ("SELECT prices" in other)
        assert "% (95 %: " in part


def test_of_three_causes_all_are_named():
    faults = [
        Fault(share=0.02, harm=longer(*which))
        for which in (("db", "SELECT prices"), ("db", "SELECT items"), ("reserve",))
    ]

    sentence, answer, _ = explained(*faults)

    assert len(answer.bands[0].named) == 3
    assert sentence.count("; and ") == 2


def test_a_second_cause_is_named_beside_one_that_is_most_of_it():
    _, answer, _ = explained(
        Fault(share=0.03, harm=longer("db", "SELECT prices")),
        Fault(share=0.012, harm=longer("reserve")),
        count=3100,
    )

    assert [str(cause.key) for cause in answer.bands[0].named] == [
        "shop/api db SELECT prices",
        "stock/engine reserve",
    ]


@pytest.mark.parametrize("seed", range(2))
def test_nothing_is_clear_where_nothing_is_wrong(seed):
    def noise(work, chance):
        """Pauses of the machine, and a heavy tail of one part."""
        if chance.random() < 0.02:
            stretch(work, chance.uniform(0, work.length), 60 * chance.random())
        engine = find(work, "reserve")
        stretch(work, engine.end - 1e-6, engine.length * chance.lognormvariate(0, 0.7))

    sentence, answer, _ = explained(seed=seed, change=noise if seed % 2 else None)

    assert not any(band.clear for band in answer.bands)
    assert "no single cause stands out" in sentence


def test_too_few_slow_traces_are_not_ranked():
    sentence, answer, _ = explained(Fault(share=0.03, harm=slow_query), count=400)

    assert not any(band.enough or band.causes for band in answer.bands)
    assert sentence == (
        "Too few slow traces for an explanation: 20 of 400 are at p95 or above, 30 are needed;"
        " it takes 200 more traces of successful iterations."
    )


def test_a_short_run_is_explained_by_more_of_its_traces():
    sentence, answer, _ = explained(Fault(share=0.03, harm=slow_query), count=1100)

    assert [band.name for band in answer.bands] == ["p97+", "p95-p97"]
    assert answer.bands[0].traces == 33
    assert str(answer.bands[0].clear.key) == "shop/api db SELECT prices"
    assert sentence.startswith("The slowest 3 % of traces (p97+) take ")


def test_the_first_requests_that_wake_a_service_up_do_not_hide_what_makes_the_others_slow():
    """Three of 5 s are more than all that the fault adds, and no part of any tail."""
    cold = iter(range(10_000))

    def wake(work, chance):
        if next(cold) < 3:
            stretch(work, find(work, "wsgi").start, 5000)

    sentence, answer, _ = explained(
        Fault(share=0.03, harm=slow_query), count=1100, change=wake, seed=3
    )

    assert answer.far == 3
    assert [one.duration_s > 5 for one in answer.farthest] == [True] * 3
    assert "shop/api db SELECT prices on host b" in sentence
    assert answer.bands[0].to_s < 0.5
    assert answer.variance[0].about == "SELECT prices"


def test_a_slow_share_of_the_requests_is_never_set_aside():
    """However far they are from all others: one in a hundred is a fault, not an accident."""

    def stall(work, chance):
        stretch(work, find(work, "db", "SELECT prices").end - 0.01, 5000)

    _, answer, _ = explained(Fault(share=0.012, harm=stall))

    assert answer.far == 0
    assert str(answer.bands[0].clear.key) == "shop/api db SELECT prices"


@pytest.mark.parametrize(
    ("slow", "named"),
    [
        (range(20, 1100, 40), True),
        ((*range(200, 214), *range(700, 713)), False),
        (range(500, 527), False),
    ],
    ids=["27 at all times", "27 in two stalls", "27 in one"],
)
def test_what_happened_once_is_no_pattern(slow, named):
    chance, found = random.Random(7), []
    for number in range(1100):
        root = iteration(chance)
        if number in slow:
            slow_query(root, chance)
        found.append(spans_of(root, number=number))
    survey = Survey()
    for trace in found:
        survey.add(trace)
    digest = Digest(survey, ["Shop.buy"])
    for number, trace in enumerate(found):
        digest.add_iteration(trace, group=0, iteration=number, outcome=Outcome.OK, kept=True)

    (answer,) = explain(digest.table.close()).answers

    first = answer.bands[0].causes[0]
    assert str(first.key) == "shop/api db SELECT prices"
    assert first.share > 0.8
    assert first.clear is named
    assert (first.share_interval[0] > 0.5) is named


@pytest.mark.parametrize(
    ("count", "names"),
    [
        (0, ["p95+"]),
        (600, ["p95+"]),
        (749, ["p95+"]),
        (750, ["p96+", "p95-p96"]),
        (1500, ["p98+", "p95-p98"]),
        (3000, ["p99+", "p95-p99"]),
        (10**7, ["p99+", "p95-p99"]),
    ],
)
def test_bands_of_so_many_traces(count, names):
    assert slow_bands(count) == names


def test_bands_by_name():
    assert limits("p97+") == (97, 100)
    assert limits("p95-p99") == (95, 99)
    assert limits("middle") == (40, 60)
    for wrong in ("p100+", "p99-p95", "p97", "slow", "p95-p95"):
        with pytest.raises(
            ValueError, match=r"is not a band; write middle, failed, p97\+ or p95-p97"
        ):
            limits(wrong)


@pytest.mark.parametrize("count", [1, 7, 600, 1001, 3000])
def test_bands_take_each_slow_trace_once(count):
    ordered = np.arange(count)

    parts = [rows_between(ordered, *limits(name)) for name in (*slow_bands(count), "p0-p95")]

    assert sorted(np.concatenate(parts)) == list(range(count))


def test_failures_are_kept_apart():
    survey, chance = Survey(), random.Random(5)
    found = list(traces(1000))
    for trace in found:
        survey.add(trace)
    digest = Digest(survey, ["Shop.buy"])
    boom = Work(name="osbench.iteration", start=0, length=5000, error="Boom")
    for number, trace in enumerate(found):
        failed = chance.random() < 0.1
        digest.add_iteration(
            spans_of(boom, number=number) if failed else trace,
            group=0,
            iteration=number,
            outcome=Outcome.FAILED if failed else Outcome.OK,
            kept=True,
        )

    (answer,) = explain(digest.table.close()).answers

    assert answer.traces + answer.failed == 1000
    assert answer.failures.enough
    assert str(answer.failures.causes[0].key) == "osbench/worker osbench.iteration"
    assert answer.p99_s < 0.1
    assert answer.failures.exemplars[0].iteration >= 0


def test_groups_are_answered_for_themselves():
    other = [
        spans_of(Work(name="engine-run", start=0, length=n), number=9000 + n) for n in range(5)
    ]

    found = explain(digest_of([*traces(50), *other]).table.close())

    assert [answer.name for answer in found.answers] == [
        "osbench/worker osbench.iteration",
        "osbench/worker engine-run",
    ]
    assert found.sentence.startswith("osbench/worker osbench.iteration: Too few")


def test_exemplars_are_typical_and_can_be_shown():
    _, answer, _ = explained(Fault(share=0.03, harm=slow_query))

    for exemplar in answer.bands[0].exemplars:
        assert exemplar.kept
        assert exemplar.duration_s == pytest.approx(answer.bands[0].mean_s, rel=0.2)
    assert answer.ordinary[0].duration_s == pytest.approx(answer.p50_s, rel=0.1)


def test_nothing_to_explain():
    assert explain(digest_of([]).table.close()).sentence == "There is no complete trace to explain."


def test_features_come_back_as_they_were_written():
    features = digest_of(traces(20)).table.close()

    again = Features.from_dict(features.to_dict())

    assert explain(again) == explain(features)
    assert again.keys == features.keys
    assert again.traces == features.traces


def test_keys_are_bounded_in_number():
    vocabulary = Vocabulary()

    numbers = {vocabulary.number(SpanKey("s", "db", f"SELECT {n}")) for n in range(5 * KEYS)}
    many = {vocabulary.number(SpanKey("s", f"name-{n}", "")) for n in range(5 * KEYS)}

    assert len(numbers) == DETAILS + 1
    assert SpanKey("s", "db", OTHER) in vocabulary.keys
    assert len(many) <= KEYS
    assert len(vocabulary.keys) <= KEYS + 1
    assert vocabulary.number(SpanKey("s", "db", "SELECT 0")) in numbers


def test_p_values_are_corrected_for_their_number():
    found = corrected_p(np.array([0.01, 0.5, 0.02, 0.04]))

    assert found == pytest.approx([0.04, 0.5, 0.04, 0.04 * 4 / 3])
