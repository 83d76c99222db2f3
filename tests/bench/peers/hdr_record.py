"""hdrhistogram, recording the values of a block one by one: five histograms, as osbench keeps."""

from __future__ import annotations

import argparse
import json
import time
from array import array
from pathlib import Path

from hdrh.histogram import HdrHistogram

COLUMNS = 5
HIGHEST_NS = 24 * 3600 * 10**9


def main():
    """Print seconds of CPU and rows."""
    parser = argparse.ArgumentParser()
    parser.add_argument("values", type=Path)
    given = parser.parse_args()
    values = array("q")
    values.frombytes(given.values.read_bytes())
    rows = len(values) // COLUMNS
    columns = [values[at * rows : (at + 1) * rows].tolist() for at in range(COLUMNS)]
    histograms = [HdrHistogram(1, HIGHEST_NS, 3) for _ in columns]
    begin = time.process_time()
    for histogram, column in zip(histograms, columns, strict=True):
        record = histogram.record_value
        for value in column:
            record(value)
    cpu_s = time.process_time() - begin
    assert all(histogram.get_total_count() == rows for histogram in histograms)
    print(json.dumps({"cpu_s": cpu_s, "rows": rows}))


if __name__ == "__main__":
    main()
