"""What the HTML report of a finished run costs: seconds and bytes; two calls must be equal."""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from pathlib import Path

from helpers.made_runs import made_run
from helpers.shown_page import page_of
from osbench.coordinator.report.run_facts import read_facts


def main() -> None:
    """Print seconds, size in bytes and equality of two reports of some iterations."""
    parser = argparse.ArgumentParser()
    parser.add_argument("iterations", type=int)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        directory = made_run(Path(folder), given.iterations)
        begun, cpu = time.perf_counter(), time.process_time()
        page = page_of(read_facts(directory))
        seconds, cpu = time.perf_counter() - begun, time.process_time() - cpu
        again = page_of(read_facts(directory))
    found = {"seconds": seconds, "cpu_s": cpu, "bytes": len(page.encode()), "same": page == again}
    print(json.dumps(found))


if __name__ == "__main__":
    main()
