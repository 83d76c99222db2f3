"""The iterations of a run in Parquet and in OpenSearch, as golden files hold them."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from pyarrow import parquet

from helpers.export_servers import search_server
from helpers.sample_iterations import sample_run
from osbench.common.plugin.exporter import ITERATION_COLUMNS
from osbench.common.plugin.plugins import Plugins

Golden = Callable[[str, str], None]


def lines(found: list[Any]) -> str:
    """A line of JSON for each; values keep their types and keys their order."""
    return "".join(f"{json.dumps(one)}\n" for one in found)


def test_parquet_has_the_same_types_and_values(tmp_path: Path, golden: Golden) -> None:
    path = tmp_path / "exported"
    Plugins().get("exporter", "parquet")({}).export(sample_run(tmp_path), path)
    table = parquet.read_table(path)

    schema = [f"{field.name}: {field.type}\n" for field in table.schema]
    rows = [
        {**one, "started_at": one["started_at"] and one["started_at"].isoformat()}
        for one in table.to_pylist()
    ]
    assert set(table.column_names) == {one.name for one in ITERATION_COLUMNS}
    golden("iterations-parquet.txt", "".join(schema) + lines(rows))


def test_documents_of_opensearch_are_the_same(tmp_path: Path, golden: Golden) -> None:
    run: Any = sample_run(tmp_path)

    with search_server() as server:
        Plugins().get("exporter", "opensearch")({}).send(run, server.url)
        kept = server.documents["osbench-iterations"]

    golden("iterations-opensearch.txt", lines([[key, one] for key, one in kept.items()]))
