"""Charts of iterations, as they come from workers."""

from __future__ import annotations

import msgpack

from osbench.common.protocol.iteration_outputs import outputs


def _packed(kind, **item):
    return msgpack.packb({"kind": kind, "item": item})


def test_charts_are_kept_by_kind_and_soft_checks_are_none():
    chart = {"title": "Sizes", "chart_plugin": "Pie", "data": [["a", 1]]}

    found = outputs([_packed("additive", **chart), _packed("complete", **chart), _packed("checks")])

    assert found == {"additive": [chart], "complete": [chart], "malformed": []}


def test_the_connection_string_beside_a_trace_id_is_left_out():
    chart = {"title": "Trace", "chart_plugin": "OSProfiler"}
    data = {"trace_id": ["1"], "conn_str": "redis://:secret@host"}

    found = outputs([_packed("complete", **chart, data=data)])

    assert found["complete"] == [{**chart, "data": {"trace_id": ["1"]}}]


def test_what_is_no_chart_is_malformed():
    nameless = {"data": []}

    found = outputs([b"\xc1", _packed("additive", **nameless), _packed("other", **nameless)])

    assert found["malformed"] == [None, nameless, {"kind": "other", "item": nameless}]
