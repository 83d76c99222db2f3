"""The version of the Python that runs this process, and whether its build is optimised."""

from __future__ import annotations

import functools
import platform
import sys
import sysconfig

#: Switch of CPython's `configure` that optimises the interpreter by a profile (PGO).
_SWITCH = "--enable-optimizations"
#: Distributions optimise theirs by other means than this switch.
_DISTRIBUTION = "/usr"


@functools.cache
def is_unoptimised() -> bool:
    """Return whether this is a CPython built without profile-guided optimisation (PGO).

    Such a build, the default of pyenv, takes about a fifth more CPU (docs/performance.md). False if
    the build does not record its switches, and for a Python of the system (in /usr).
    """
    asked = sysconfig.get_config_var("CONFIG_ARGS")
    if platform.python_implementation() != "CPython" or asked is None:
        return False
    return sys.base_prefix != _DISTRIBUTION and _SWITCH not in asked


def python_build() -> str:
    """Return the version of this Python, as in "3.11.7" or "3.11.7, not optimised"."""
    version = platform.python_version()
    return f"{version}, not optimised" if is_unoptimised() else version
