"""Scheduling settings of a worker process, so that its threads run as soon as they are due."""

from __future__ import annotations

import ctypes
import logging
import os
import platform
import struct

from osbench.common.errors import ConfigError

LOG = logging.getLogger(__name__)

#: prctl option: how late a sleeping thread may wake, nanoseconds.
_PR_SET_TIMERSLACK = 29
#: Numbers of sched_setattr and sched_getattr by machine; syscalls(2).
_CALLS = {"x86_64": (314, 315), "aarch64": (274, 275), "riscv64": (274, 275)}
#: struct sched_attr, sched_setattr(2): size, policy, flags, nice, priority, runtime, deadline,
#: period. Runtime is the slice of an ordinary thread, nanoseconds.
_ATTRIBUTES = struct.Struct("=IIQiIQQQ")
_RUNTIME = 5
#: The shortest slice that Linux grants.
SLICE_NS = 100_000
#: The lowest priority of SCHED_RR: what else is real-time on this host goes first.
PRIORITY = 1


def sharpen_timers() -> None:
    """Ask the kernel to wake sleepers within 1 ns instead of 50 us; threads inherit it.

    Does nothing outside Linux.
    """
    libc = ctypes.CDLL(None, use_errno=True)
    if hasattr(libc, "prctl"):
        libc.prctl(_PR_SET_TIMERSLACK, ctypes.c_ulong(1), 0, 0, 0)


def shorten_slice() -> None:
    """Ask the kernel for short time slices; threads inherit it. A refusal is only logged.

    A thread with a short slice that wakes takes the core from one with a longer slice. It gets no
    more CPU than before, but sooner (Linux 6.12, without any right).
    """
    refusal = _refusal_of_slice()
    if refusal:
        LOG.info("no short slices: %s; starts may be later while the host is busy", refusal)


def _refusal_of_slice() -> str:
    """Ask the kernel for slices of `SLICE_NS`; return why they are not granted, or ""."""
    calls = _CALLS.get(platform.machine())
    if calls is None:
        return f"unknown on {platform.machine()}"
    if os.sched_getscheduler(0) != os.SCHED_OTHER:
        return "the scheduling policy is not the ordinary one"
    nice = os.getpriority(os.PRIO_PROCESS, 0)
    asked = _ATTRIBUTES.pack(_ATTRIBUTES.size, os.SCHED_OTHER, 0, nice, 0, SLICE_NS, 0, 0)
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.syscall(calls[0], 0, asked, 0):
        return os.strerror(ctypes.get_errno())
    granted = ctypes.create_string_buffer(_ATTRIBUTES.size)
    if libc.syscall(calls[1], 0, granted, _ATTRIBUTES.size, 0):
        return os.strerror(ctypes.get_errno())
    # older kernels take the request and ignore it
    known = _ATTRIBUTES.unpack(granted.raw)[_RUNTIME] == SLICE_NS
    return "" if known else "Linux 6.12 or newer has them"


def begin_realtime() -> None:
    """Run this process under SCHED_RR (real-time); threads inherit it.

    Raises ConfigError if this user may not.
    """
    try:
        os.sched_setscheduler(0, os.SCHED_RR, os.sched_param(PRIORITY))
    except OSError as error:
        raise ConfigError(
            f"[worker] realtime: the kernel refuses SCHED_RR: {error.strerror}; raise this user's "
            "limit of real-time priority (LimitRTPRIO=, ulimit -r) to 1, or set it to false"
        ) from None
