"""A coordinator has imported what messages need before it sends the first one."""

from __future__ import annotations

import subprocess
import sys

import pytest

PROGRAM = """
import sys
from osbench.common.protocol import broker
from osbench.coordinator.load.transport.publisher import Publisher
app = getattr(broker, "{name}")("memory://")
app.conf.broker_transport_options = {{}}
publisher = Publisher(app, None, "memory://")
publisher.send([])
known = set(sys.modules)
publisher.send([("w", b"x")])
print(any(one.startswith("celery.") for one in {{*sys.modules}} - known))
"""


@pytest.mark.parametrize(
    ("name", "imports"), [("application", True), ("sending_application", False)]
)
def test_the_first_message_imports_nothing_of_celery(name: str, imports: bool) -> None:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM.format(name=name)],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )

    assert done.stdout == f"{imports}\n", done.stderr
