"""Files of queries, and the default ones."""

from __future__ import annotations

from pathlib import Path

import pytest

from osbench.common.config.config import load
from osbench.common.errors import UsageError
from osbench.coordinator.results.accounting.counter_figures import CounterKind
from osbench.edges.traces.counters.counter_collection import counter_settings
from osbench.edges.traces.counters.counter_query import read_queries
from osbench.edges.traces.counters.default_queries import DEFAULT_QUERIES


def written(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "counters.yaml"
    path.write_text(text, "utf-8")
    return path


def conf_of(tmp_path: Path, **values: object) -> object:
    lines = "".join(f"{name} = {value}\n" for name, value in values.items())
    path = tmp_path / "osbench.conf"
    path.write_text(f"[metrics]\n{lines}", "utf-8")
    return load([str(path)])


def test_queries_are_read_with_kinds_units_and_labels(tmp_path: Path) -> None:
    path = written(
        tmp_path,
        """
        - {name: pool, query: pool_used / pool_size, kind: share, host_label: node}
        - {name: jobs, query: "sum by (instance) (jobs)", kind: queue}
        - {name: reads, query: "rate(reads[$window])", unit: /s}
        """,
    )

    pool, jobs, reads = read_queries(path)

    assert (pool.kind, pool.unit, pool.host_label) == (CounterKind.SHARE, "share", "node")
    assert (jobs.kind, jobs.unit, jobs.host_label) == (CounterKind.QUEUE, "", "instance")
    assert (reads.kind, reads.unit) == (CounterKind.FLOW, "/s")


def test_all_problems_of_a_file_are_told_with_their_places(tmp_path: Path) -> None:
    path = written(
        tmp_path,
        """
        - {name: a, query: up, kind: gauge, colour: red}
        - {name: "", query: 7}
        - nothing
        - {name: a, query: up, host_label: "no label", unit: [1]}
        """,
    )

    with pytest.raises(UsageError) as caught:
        read_queries(path)

    told = str(caught.value)
    assert "[metrics] queries: 8 problems" in told
    assert f"{path}, entry 1: unknown key 'colour'; there are name, query, kind" in told
    assert f"{path}, entry 1: `kind` must be one of share, queue, flow" in told
    assert f"{path}, entry 2: `name` must be a text of 1 to 60 characters" in told
    assert f"{path}, entry 3: must be a mapping" in told
    assert f"{path}, entry 4: `host_label` must be the name of a label" in told
    assert f"{path}: the name 'a' is given twice" in told


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "must be a list of 1 to 100 queries"),
        ("name: x", "must be a list of 1 to 100 queries"),
        ("- [", "is not YAML"),
        ("- {name: [}", "is not YAML"),
    ],
)
def test_other_files_are_refused(tmp_path: Path, text: str, why: str) -> None:
    with pytest.raises(UsageError, match=why):
        read_queries(written(tmp_path, text))


def test_a_file_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"queries: .*none.yaml: No such file"):
        read_queries(tmp_path / "none.yaml")


def test_names_of_default_queries_differ_and_their_parentheses_close() -> None:
    assert len({one.name for one in DEFAULT_QUERIES}) == len(DEFAULT_QUERIES)
    for one in DEFAULT_QUERIES:
        for begin, end in ("()", "[]", "{}"):
            assert one.query.count(begin) == one.query.count(end), one.name
        # a rate takes a range
        assert one.query.count("rate(") == one.query.count("[$window]"), one.name


def test_own_queries_stand_beside_the_default_ones_or_replace_them(tmp_path: Path) -> None:
    path = written(tmp_path, "[{name: CPU, query: my_cpu, kind: share}, {name: x, query: x}]")
    address = "http://127.0.0.1:9090"

    both = counter_settings(conf_of(tmp_path, prometheus=address, queries=path))
    alone = counter_settings(
        conf_of(tmp_path, prometheus=address, queries=path, default_queries="false")
    )

    assert both is not None
    assert alone is not None
    assert len(both.queries) == len(DEFAULT_QUERIES) + 1
    assert next(one.query for one in both.queries if one.name == "CPU") == "my_cpu"
    assert [one.name for one in alone.queries] == ["CPU", "x"]


def test_without_an_address_there_are_no_counters(tmp_path: Path) -> None:
    assert counter_settings(conf_of(tmp_path)) is None
