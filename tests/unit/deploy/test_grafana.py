"""The Grafana dashboard fits Grafana's classic model of dashboards.

kinds/dashboard/dashboard_kind.cue of grafana/grafana has it. That queries have series is tested
with a real Prometheus, in tests/functional/test_grafana_dashboard.py.
"""

from __future__ import annotations

import re
from typing import Any

from helpers.dashboard import DASHBOARD, panels

#: Plug-ins of panels that are part of Grafana.
PANELS = {"timeseries", "state-timeline", "table", "stat"}
WIDTH = 24


def test_the_dashboard_has_what_every_dashboard_has() -> None:
    assert re.fullmatch(r"[a-zA-Z0-9_-]{8,40}", DASHBOARD["uid"])
    # an id is that of one Grafana
    assert "id" not in DASHBOARD
    # the oldest that has state timelines, and no migration changes what we use
    assert 36 <= DASHBOARD["schemaVersion"] <= 42
    assert re.fullmatch(r"\d+[smh]", DASHBOARD["refresh"])
    assert re.fullmatch(r"now-\d+[mh]", DASHBOARD["time"]["from"])


def test_every_query_goes_to_the_data_source_that_is_chosen() -> None:
    source, workload = DASHBOARD["templating"]["list"]

    assert (source["type"], source["query"]) == ("datasource", "prometheus")
    chosen = {"type": "prometheus", "uid": f"${{{source['name']}}}"}
    asked: list[dict[str, Any]] = [workload, *panels()]
    asked += [target for panel in panels() for target in panel["targets"]]
    assert [one["datasource"] for one in asked] == [chosen] * len(asked)
    # of a variable of several values both are lists
    assert (workload["multi"], workload["includeAll"]) == (True, True)
    assert workload["current"] == {"text": ["All"], "value": ["$__all"]}


def test_panels_are_of_grafana_and_their_queries_have_names() -> None:
    for panel in panels():
        assert panel["type"] in PANELS
        assert panel["title"]
        references = [target["refId"] for target in panel["targets"]]
        assert len(references) == len(set(references)) > 0
        assert {"defaults", "overrides"} <= panel["fieldConfig"].keys()
        steps = panel["fieldConfig"]["defaults"].get("thresholds", {}).get("steps", [])
        # the first one begins below everything
        assert [one["value"] for one in steps[:1]] in ([], [None])
    assert len({panel["id"] for panel in panels()}) == len(panels())


def test_panels_fill_the_grid_without_overlap() -> None:
    places = [panel["gridPos"] for panel in panels()]
    cells = [
        (x, y)
        for one in places
        for x in range(one["x"], one["x"] + one["w"])
        for y in range(one["y"], one["y"] + one["h"])
    ]

    assert len(cells) == len(set(cells))
    assert all(0 <= x < WIDTH for x, _ in cells)
    # a gap would be closed by Grafana, which moves panels up
    assert len(cells) == WIDTH * (max(y for _, y in cells) + 1)
