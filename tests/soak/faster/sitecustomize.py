"""Makes the clocks of the protocol run faster; Python imports this from PYTHONPATH at start.

OSBENCH_SOAK_SPEED  heartbeats, polls, turns of the load and shipments come so many times as often:
                    ten minutes then have as many of them as two hours have without
"""

import importlib
import os
import sys

SPEED = float(os.environ.get("OSBENCH_SOAK_SPEED") or 1)

#: Intervals by module, and the command that has the module.
INTERVALS = {
    "osbench.common.protocol.timers": ("", ("BEAT_S", "POLL_S")),
    "osbench.worker.process.agent": ("osbench.worker.main", ("READ_S", "OFFSET_S", "OFFER_S")),
    "osbench.worker.process.beat_sender": ("osbench.worker.main", ("LIST_S",)),
    "osbench.coordinator.load.run.load_loop": ("osbench-coord", ("READ_S", "TEND_S", "RESTATE_S")),
    "osbench.coordinator.load.run.specification": ("osbench-coord", ("SHIP_S",)),
    "osbench.coordinator.load.run.workload.load_view": ("osbench-coord", ("SHOW_S",)),
}

_command = " ".join(sys.orig_argv)
if SPEED != 1 and "osbench" in _command:
    for _name, (_whose, _intervals) in INTERVALS.items():
        if _whose in _command:
            _module = importlib.import_module(_name)
            for _interval in _intervals:
                setattr(_module, _interval, getattr(_module, _interval) / SPEED)
