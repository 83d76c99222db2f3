"""Packages that oslo.config imports, and that are loaded when they are used."""

from __future__ import annotations

import subprocess
import sys

import pytest

#: Prints the modules of these packages that are loaded.
LOADED = (
    "print(sorted(m for m in sys.modules"
    " if m.partition('.')[0] in ('netaddr', 'rfc3986', 'stevedore') and '.' in m))"
)
BEGIN = "import sys, threading; import osbench.common.config.config; "


def printed(code: str) -> str:
    command = [sys.executable, "-c", BEGIN + code]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_reading_options_loads_none_of_them() -> None:
    code = "osbench.common.config.config.load(()); import netaddr, rfc3986, stevedore; " + LOADED

    assert printed(code) == "[]"


@pytest.mark.parametrize(
    ("code", "result"),
    [
        ("import netaddr; print(netaddr.IPAddress('10.0.0.1') + 1)", "10.0.0.2"),
        ("from netaddr import IPAddress as A; print(A('10.0.0.1') + 1)", "10.0.0.2"),
        ("import netaddr.ip; print(netaddr.ip.IPAddress('10.0.0.1') + 1)", "10.0.0.2"),
        ("from netaddr import *; print(IPAddress('10.0.0.1') + 1)", "10.0.0.2"),
        ("from stevedore import driver; print(driver.__name__)", "stevedore.driver"),
        ("import rfc3986; print(type(rfc3986.exceptions).__name__)", "module"),
        ("from oslo_config import types; print(types.URI()('http://host/'))", "http://host/"),
        ("from oslo_config import types; print(types.IPAddress()('::1'))", "::1"),
    ],
)
def test_each_way_to_use_one_loads_it(code: str, result: str) -> None:
    assert printed(code) == result


def test_threads_that_use_one_at_once_find_all_of_it() -> None:
    code = """
import netaddr
found = []
barrier = threading.Barrier(8)
def use():
    barrier.wait()
    found.append(str(netaddr.IPNetwork('10.0.0.0/30').broadcast))
threads = [threading.Thread(target=use) for _ in range(8)]
[one.start() for one in threads]
[one.join() for one in threads]
print(len(found), set(found))
"""

    assert printed("\n" + code) == "8 {'10.0.0.3'}"


def test_a_name_that_it_lacks_is_an_attribute_error() -> None:
    code = "import netaddr; print(hasattr(netaddr, 'nothing'), type(netaddr).__name__)"

    assert printed(code) == "False module"
