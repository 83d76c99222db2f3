from helpers.synthetic_traces import MS, Work, spans_of
from osbench.edges.traces.analysis.digest import digest_of


def test_a_call_whose_own_time_is_in_pieces_is_one_call():
    work = Work(name="osbench.iteration", start=0, length=100).add(
        Work(name="db", start=10, length=10), Work(name="db", start=40, length=20)
    )

    features = digest_of([spans_of(work)]).table.close()

    rows = {
        features.keys[number].what: (time, calls)
        for (number, _), time, calls in zip(
            features.places, features.time.tolist(), features.calls.tolist(), strict=True
        )
    }
    assert rows == {"osbench.iteration": (70 * MS, 1), "db": (30 * MS, 2)}
    assert features.total.tolist() == [100 * MS]
