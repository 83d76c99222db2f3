"""mistral-server, changed in memory so that its spans reach the trace store, under their requests.

As it ships, Mistral 23 writes spans to a log regardless of [profiler] connection_string; its API
has no notifier, so that the parent of the engine's spans is not recorded; and a thread of the
engine keeps the first trace it ever saw, as OSProfiler's init() leaves a profiler that is there.
"""

from __future__ import annotations

import functools
import os
import sys

# First, because it chooses the threads of oslo.service.
from mistral.cmd import launch  # isort: skip

import osprofiler.web
from mistral import context
from mistral.utils import profiler as mistral_profiler
from oslo_config import cfg
from osprofiler import notifier, profiler


@functools.cache
def store(pid):
    """The store's driver of a process: connections do not survive a fork."""
    return notifier.create(
        cfg.CONF.profiler.connection_string,
        project="mistral",
        service="mistral",
        host="127.0.0.1",
        conf=cfg.CONF,
    )


def notify(info, context=None):
    """Send an event to the store."""
    store(os.getpid())(info, context=context)


def set_up(binary, host):
    """Trace in this process, and in those that it forks."""
    if cfg.CONF.profiler.enabled:
        notifier.set(notify)
        osprofiler.web.enable(cfg.CONF.profiler.hmac_keys)


def forgetting(deserialize):
    """Let a thread forget its last trace before it reads the context of a call."""

    @functools.wraps(deserialize)
    def deserialized(self, values):
        profiler.clean()
        return deserialize(self, values)

    return deserialized


def traced(launch_any):
    """Set tracing up before the API and the engine are forked."""

    @functools.wraps(launch_any)
    def launched(options):
        set_up("mistral", "127.0.0.1")
        launch_any(options)

    return launched


mistral_profiler.setup = set_up
serializer = context.RpcContextSerializer
serializer.deserialize_context = forgetting(serializer.deserialize_context)
launch.launch_any = traced(launch.launch_any)
sys.exit(launch.main())
