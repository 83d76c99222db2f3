"""How the coordinator's memory grows with the number of iterations."""

from __future__ import annotations

import argparse
import gc
import json
import tempfile
from pathlib import Path

import psutil

from bench.harness.intake import Intake
from bench.harness.stream import Stream
from osbench.common.protocol.envelope import Signer
from osbench.common.protocol.keyring import Keyring

ROWS = 10_000


def main() -> None:
    """Print the resident memory, bytes, after each of some numbers of iterations."""
    parser = argparse.ArgumentParser()
    parser.add_argument("iterations", type=int, nargs="+", help="ascending")
    given = parser.parse_args()
    process = psutil.Process()
    signer = Signer(Keyring.generate())
    stream = Stream(ROWS, signer)
    found, block = {}, 0
    with tempfile.TemporaryDirectory() as folder:
        intake = Intake(Path(folder), stream, signer)
        for iterations in given.iterations:
            while block * ROWS < iterations:
                intake.cut([block])
                intake.take([stream.signed(block)])
                block += 1
            gc.collect()
            found[iterations] = process.memory_info().rss
        intake.close(block * ROWS)
    print(json.dumps(found))


if __name__ == "__main__":
    main()
