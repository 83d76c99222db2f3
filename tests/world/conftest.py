"""Tests of worlds run apart from the others: ports are filled before osbench is imported.

`make world-tests` begins pytest with `-p world.ports`.
"""

from __future__ import annotations

import sys

collect_ignore_glob = [] if "world.ports" in sys.modules else ["test_*.py"]
