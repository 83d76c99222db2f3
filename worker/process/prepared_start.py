"""Start of workers in two steps: first the imports, then arguments from standard input.

Local mode starts its workers so, before it knows how many a task needs.
"""

from __future__ import annotations

import importlib
import json
import os
import sys
from collections.abc import Sequence

from osbench.common.machine.import_block import import_block
from osbench.common.plugin import entry_points

#: The module that worker processes run, and what Celery imports when it starts.
_MODULES = (
    "osbench.worker.process.process",
    "celery.app.amqp",
    "celery.app.control",
    "celery.app.events",
    "celery.backends.base",
    "celery.concurrency.solo",
    "celery.loaders.app",
    "celery.worker.autoscale",
    "celery.worker.components",
    "celery.worker.consumer.delayed_delivery",
    "celery.worker.strategy",
    "kombu.transport.redis",
    "osbench.worker.scenarios.dummy",
)


def import_modules(further: Sequence[str] = ()) -> None:
    """Import the modules of worker processes, and `further` ones, which forked ones share."""
    with import_block():
        for name in (*_MODULES, *further):
            importlib.import_module(name)
    # reads the metadata of all packages, and keeps what it finds
    entry_points.names("scenario")


def await_arguments() -> list[str] | None:
    """Import the modules of worker processes, then read and return the command's arguments.

    Waits for one line of JSON on standard input with `arguments`, further `modules` to import, and
    `environment`, which replaces this process's environment. Returns None if the input ends without
    it. Standard input is empty afterwards.
    """
    import_modules()
    line = sys.stdin.buffer.readline()
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    if not line.endswith(b"\n"):
        return None
    order = json.loads(line)
    import_modules(order["modules"])
    environment = order["environment"]
    if environment != dict(os.environ):
        os.environ.clear()
        os.environ.update(environment)
    return [str(one) for one in order["arguments"]]
