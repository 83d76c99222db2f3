"""Neither the order of events nor how often they came changes a trace."""

from hypothesis import given, settings
from hypothesis import strategies as st

from helpers.examples import examples
from helpers.synthetic_traces import events_of, shuffled, traces
from osbench.edges.traces.sources.pairing import event_of, pair


@settings(max_examples=examples(60))
@given(st.integers(0, 10**6), st.integers(0, 10**6), st.sets(st.integers(0, 13)))
def test_shuffled_and_repeated_events_change_nothing(seed, order, lost):
    events = [
        event
        for trace in traces(2, seed=seed)
        for number, event in enumerate(events_of(trace))
        if number not in lost
    ]

    plain = pair(map(event_of, events))
    other = pair(map(event_of, shuffled(events, order)))

    assert {key: trace.spans for key, trace in plain.items()} == {
        key: trace.spans for key, trace in other.items()
    }
