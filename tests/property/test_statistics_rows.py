from hypothesis import given
from hypothesis import strategies as st

from helpers.result_rows import row_of
from helpers.sample_reports import shown
from osbench.common.protocol.columns import Failure, decode_rows, encode_rows
from osbench.common.protocol.exchanges import pack_exchange
from osbench.coordinator.results.accounting.workload_statistics import WorkloadStatistics

NAMES = ("boot", "wait")
FAILURES = [
    Failure(number=number, etype="Boom", message=f"number {number}", traceback="")
    for number in (1, 2)
]
times = st.integers(0, 30 * 10**9)


@st.composite
def rows(draw):
    count = draw(st.integers(1, 20))
    made = []
    for iteration in draw(st.permutations(range(count))):
        outcome = draw(st.integers(1, 7))
        due, wait, length = draw(times), draw(st.integers(0, 10**8)), draw(times)
        started, ended = due + wait, due + wait + length
        if outcome > 3:
            made.append(row_of(iteration, outcome, due, 0, 0, 0, 0, (), None))
            continue
        actions = draw(st.sampled_from([(), (0,), (0, 1), (1, 0, 1)]))
        flat = [
            value
            for place, name in enumerate(actions)
            for value in (name, place - 1, started + place, ended, place % 2)
        ]
        failure = draw(st.integers(0, 3)) if outcome > 1 else 0
        # a request of any of its actions, or of none
        place = draw(st.integers(-1, len(actions) - 1))
        request = pack_exchange(place, draw(st.integers(-1, 1)), 0, 0, 0, wait, length, 9, due, 200)
        extra = draw(
            st.sampled_from(
                [None, (bytes([iteration]) * 16, None, b""), (b"", None, request + request)]
            )
        )
        made.append(row_of(iteration, outcome, due, started, ended, 0, failure, flat, extra))
    return made


def statistics_of(parts):
    statistics = WorkloadStatistics()
    statistics.add_failures("w1", FAILURES)
    for part in parts:
        statistics.add(decode_rows(encode_rows(part, NAMES, 0)), worker="w1")
    return statistics


@given(rows(), st.data())
def test_statistics_depend_on_the_rows_alone(made, data):
    order = data.draw(st.permutations(made))
    cuts = sorted(data.draw(st.sets(st.integers(1, len(made) - 1) if made[1:] else st.nothing())))
    parts = [order[a:b] for a, b in zip([0, *cuts], [*cuts, len(order)], strict=True)]

    assert shown(statistics_of(parts)) == shown(statistics_of([made]))


@given(rows())
def test_states_sum_to_the_rows(made):
    statistics = statistics_of([made])

    states = ("ok", "failed", "timed_out", "dropped")
    assert sum(statistics.count(state) for state in states) == len(made)
    assert statistics.service.ok.count == statistics.count("ok")
    assert sum(series for series in statistics.profile.series(100).ends) == statistics.ran
