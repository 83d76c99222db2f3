"""Ports pass names of the standard library on: the same objects, so that no call is added."""

from __future__ import annotations

import os
import secrets
import subprocess
import sys
import threading
import time
from types import ModuleType

import pytest

from osbench.common.ports import chance, clock, disk, threads

PORTS = [(clock, time), (threads, threading), (chance, secrets), (disk, os)]


@pytest.mark.parametrize(("port", "library"), PORTS, ids=lambda module: module.__name__)
def test_a_port_has_the_objects_of_the_standard_library(
    port: ModuleType, library: ModuleType
) -> None:
    assert port.__all__
    for name in port.__all__:
        assert getattr(port, name) is getattr(library, name), name


@pytest.mark.parametrize(("port", "_"), PORTS, ids=lambda module: module.__name__)
def test_a_port_says_what_each_name_promises(port: ModuleType, _: ModuleType) -> None:
    for name in port.__all__:
        assert name == "TIMEOUT_MAX" or f"`{name}`" in (port.__doc__ or ""), name


def test_a_clock_that_is_set_before_other_imports_is_the_engines_clock() -> None:
    program = """
from osbench.common.ports import clock
clock.monotonic_ns = lambda: 42
from osbench.worker.engine import closed_engine, engine
print(closed_engine.monotonic_ns(), engine.monotonic_ns())
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, check=True)

    assert done.stdout == b"42 42\n"
