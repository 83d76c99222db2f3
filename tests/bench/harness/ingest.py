"""CPU that the coordinator spends on blocks of a size: `python -m bench.harness.ingest`."""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from pathlib import Path

from bench.harness.intake import Intake
from bench.harness.stream import Stream
from osbench.common.protocol.envelope import Signer
from osbench.common.protocol.keyring import Keyring
from osbench.coordinator.load.transport.channel import READ_LIMIT


def main() -> None:
    """Print seconds of CPU, rows and blocks; with --values also write what was counted."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--rows", type=int, required=True, help="rows of a block")
    parser.add_argument("--blocks", type=int, required=True)
    parser.add_argument("--values", type=Path, help="file for the values of a row's histograms")
    given = parser.parse_args()
    signer = Signer(Keyring.generate())
    stream = Stream(given.rows, signer)
    if given.values:
        given.values.write_bytes(stream.values().astype("<i8").tobytes())
    signed = [stream.signed(block) for block in range(given.blocks)]
    with tempfile.TemporaryDirectory() as folder:
        intake = Intake(Path(folder), stream, signer)
        intake.cut(range(given.blocks))
        begin = time.process_time()
        for at in range(0, given.blocks, READ_LIMIT):
            intake.take(signed[at : at + READ_LIMIT])
        cpu_s = time.process_time() - begin
        rows = given.rows * given.blocks
        intake.close(rows)
    print(json.dumps({"cpu_s": cpu_s, "rows": rows, "blocks": given.blocks}))


if __name__ == "__main__":
    main()
