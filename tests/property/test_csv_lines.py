"""Lines of CSV are those of the module `csv`, whatever the texts hold, and times are exact."""

from __future__ import annotations

import csv
import io
from decimal import Decimal

from hypothesis import given
from hypothesis import strategies as st

from osbench.common.plugin.exporter import IterationRow
from osbench.common.text.spreadsheet import cell
from osbench.coordinator.plugins.exporters.csv import COLUMNS, write

texts = st.text(st.one_of(st.sampled_from(",\"\n\r\t=; '\x00"), st.characters()), max_size=8)
times = st.one_of(st.none(), st.integers(-(2**63), 2**63))
rows = st.builds(
    IterationRow,
    *(st.integers(0, 9), st.integers(1, 2**62), st.sampled_from(["ok", "failed", "dropped_late"])),
    *(times, times, times, st.integers(0, 2**62)),
    *(texts, texts, texts, texts, st.booleans()),
)


@given(st.lists(rows, max_size=5))
def test_lines_are_read_as_they_were_written(given_rows: list[IterationRow]) -> None:
    file = io.StringIO(newline="")

    write(given_rows, file)

    header, *lines = csv.reader(io.StringIO(file.getvalue(), newline=""))
    assert header == [one.name for one in COLUMNS]
    for row, line in zip(given_rows, lines, strict=True):
        found = dict(zip(header, line, strict=True))
        error = f"{row.error_type}: {row.error}" if row.error_type else row.error
        assert (found["error"], found["worker"]) == (cell(error), cell(row.worker))
        for name in ("due", "started", "service", "response", "start_lag"):
            exact = getattr(row, f"{name}_ns")
            shown = found[f"{name}_s"]
            assert (Decimal(shown) * 10**9 if shown else None) == exact
            assert not shown or len(shown.partition(".")[2]) == 9
    again = io.StringIO(newline="")
    csv.writer(again, lineterminator="\n").writerows([header, *lines])
    assert again.getvalue() == file.getvalue()
