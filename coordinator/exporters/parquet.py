"""Exporter `parquet`: a table of the iterations for notebooks and data bases."""

from __future__ import annotations

import importlib.util
import itertools
import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, ClassVar

from osbench.plugin import exporter
from osbench.plugin.errors import ExportError

#: Rows that are held in memory and written together.
ROW_GROUP = 100_000


class Parquet(exporter.Exporter):
    """Writes iterations.parquet: a row for each iteration that ended or was dropped.

    Columns are those of `csv`, with the state, the type and the message of the error, and the
    start as an instant, on their own. The file's metadata has the run's id and its JSON object.
    Needs pyarrow: `pip install osbench[parquet]`.
    """

    NAME: ClassVar[str] = "parquet"
    FILE: ClassVar[str] = "iterations.parquet"

    def __init__(self, config: Mapping[str, Any]) -> None:
        super().__init__(config)
        if importlib.util.find_spec("pyarrow") is None:
            raise ExportError(
                "the exporter parquet needs pyarrow: install it with pip install 'osbench[parquet]'"
            )

    def export(self, run: exporter.ExportedRun, path: Path) -> None:
        """Write row group by row group."""
        # pyarrow takes a quarter of a second to import
        import pyarrow as pa  # noqa: PLC0415 - see above
        from pyarrow import parquet  # noqa: PLC0415 - see above

        columns = _columns(pa, run)
        schema = pa.schema(
            [(name, kind) for name, kind, _ in columns],
            metadata={
                "osbench.run_id": str(run.summary["run_id"]),
                "osbench.summary": json.dumps(run.summary),
            },
        )
        rows = run.rows()
        with parquet.ParquetWriter(path, schema, compression="zstd") as writer:
            while some := list(itertools.islice(rows, ROW_GROUP)):
                arrays = [pa.array(list(map(get, some)), kind) for _, kind, get in columns]
                writer.write_table(pa.Table.from_arrays(arrays, schema=schema))


Column = tuple[str, Any, Callable[[exporter.IterationRow], Any]]


def _columns(pa: Any, run: exporter.ExportedRun) -> list[Column]:
    """Name, type and value of each column."""
    word = pa.dictionary(pa.int32(), pa.string())
    instants = [int(at * 1e6) for at in run.t0_at]

    def started_at(row: exporter.IterationRow) -> int | None:
        at = row.started_ns
        return None if at is None else instants[row.workload] + at // 1000

    return [
        ("workload", pa.int32(), lambda row: row.workload),
        ("iteration", pa.int64(), lambda row: row.iteration),
        ("state", word, lambda row: row.state),
        ("outcome", word, lambda row: row.outcome),
        ("warmup", pa.bool_(), lambda row: row.warmup),
        ("started_at", pa.timestamp("us", tz="UTC"), started_at),
        ("due_s", pa.float64(), lambda row: row.due_s),
        ("started_s", pa.float64(), lambda row: row.started_s),
        ("service_s", pa.float64(), lambda row: row.service_s),
        ("response_s", pa.float64(), lambda row: row.response_s),
        ("start_lag_s", pa.float64(), lambda row: row.start_lag_s),
        ("error_type", word, lambda row: row.error_type or None),
        ("error", word, lambda row: row.error or None),
        ("trace_id", pa.string(), lambda row: row.trace_id or None),
        ("worker", word, lambda row: row.worker or None),
    ]
