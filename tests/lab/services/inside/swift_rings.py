"""Writes rings of Swift, each of one device on this host: swift_rings.py FOLDER NAME=PORT..."""

import sys
from pathlib import Path

from swift.common.ring.ring import RingData

PART_POWER = 4
folder = Path(sys.argv[1])
for pair in sys.argv[2:]:
    name, _, port = pair.partition("=")
    device = {
        **{"id": 0, "region": 1, "zone": 1, "weight": 1.0, "device": "device"},
        **{"ip": "127.0.0.1", "port": int(port)},
        **{"replication_ip": "127.0.0.1", "replication_port": int(port)},
    }
    ring = RingData([[0] * 2**PART_POWER], [device], 32 - PART_POWER)
    ring.save(str(folder / f"{name}.ring.gz"))
