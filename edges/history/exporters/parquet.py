"""Exporter `parquet`: a table of the iterations for notebooks and data bases."""

from __future__ import annotations

import importlib.util
import itertools
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

from osbench.plugin import exporter
from osbench.plugin.errors import ExportError

#: Rows that are held in memory and written together.
ROW_GROUP = 100_000


class Parquet(exporter.Exporter):
    """Writes iterations.parquet: a row for each iteration that ended or was dropped.

    It has the columns of `csv`, with separate columns for state, type and message of the error, and
    the start as a timestamp. The file's metadata has the run's id and its JSON object. Needs
    pyarrow: `pip install osbench[parquet]`.
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
        """Write the rows of the run to `path`, `ROW_GROUP` at a time, so that memory is bounded."""
        # pyarrow takes a quarter of a second to import
        import pyarrow as pa  # noqa: PLC0415 - see above
        from pyarrow import parquet  # noqa: PLC0415 - see above

        schema = pa.schema(
            [(one.name, _type(pa, one)) for one in exporter.ITERATION_COLUMNS],
            metadata={
                "osbench.run_id": str(run.summary["run_id"]),
                "osbench.summary": json.dumps(run.summary),
            },
        )
        instants = [int(at * 1e6) for at in run.t0_at]
        rows = run.rows()
        with parquet.ParquetWriter(path, schema, compression="zstd") as writer:
            while some := list(itertools.islice(rows, ROW_GROUP)):
                arrays = [
                    pa.array(_values(one, some, instants), schema.field(one.name).type)
                    for one in exporter.ITERATION_COLUMNS
                ]
                writer.write_table(pa.Table.from_arrays(arrays, schema=schema))


def _type(pa: Any, column: exporter.ExportColumn) -> Any:
    if column.name == "workload":
        # which are few, and have been so in all files
        return pa.int32()
    return {
        "count": pa.int64(),
        "seconds": pa.float64(),
        "word": pa.dictionary(pa.int32(), pa.string()),
        "text": pa.string(),
        "flag": pa.bool_(),
        "timestamp": pa.timestamp("us", tz="UTC"),
    }[column.kind]


def _values(
    column: exporter.ExportColumn, rows: Sequence[exporter.IterationRow], instants: Sequence[int]
) -> list[Any]:
    """Return a column's values of `rows` in the units of the file; None for missing values.

    Durations are seconds, times microseconds since 1970. `instants`: t0 of each workload,
    microseconds since 1970.
    """
    found = list(map(column.get, rows))
    match column.kind:
        case "seconds":
            return [None if one is None else one / 1e9 for one in found]
        case "timestamp":
            return [
                None if one is None else instants[row.workload] + one // 1000
                for row, one in zip(rows, found, strict=True)
            ]
        case "word" | "text":
            return [one or None for one in found]
    return found
