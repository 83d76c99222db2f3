"""Counters on the page: as many lines as charts have room for, those that say most first."""

from __future__ import annotations

from helpers.planted_counters import counters_of, queue, share
from osbench.edges.traces.page.counter_part import counter_charts


def test_the_fullest_resources_and_the_most_variable_queues_have_lines() -> None:
    shares = [share("CPU", f"db{at}", [at / 10, at / 10]) for at in range(1, 7)]
    queues = [queue("jobs", f"mq{at}", [10.0 - at, 10.0 + at]) for at in range(1, 5)]

    charts = counter_charts(counters_of(*shares, *queues))

    assert [one.label for one in charts.shares] == [f"CPU of db{at}" for at in (6, 5, 4, 3, 2)]
    assert [one.label for one in charts.queues] == [f"jobs of mq{at}" for at in (4, 3, 2)]
    assert len(charts.rows) == 10
    assert charts.more == 0


def test_a_table_without_room_for_all_counters_says_how_many_it_lacks() -> None:
    charts = counter_charts(counters_of(*(share("CPU", f"db{at}", [0.1]) for at in range(62))))

    assert len(charts.rows) == 60
    assert charts.more == 2
