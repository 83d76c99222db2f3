"""Runs the script in its first argument in a process that has no OSProfiler.

What services import of it is a stand-in: classes stay as they are, no statement of SQL is hooked,
the middleware is the application itself. keystoneauth1 is told that there is none. All that is
left are the services' own looks at `[profiler] enabled`, which is false.
"""

from __future__ import annotations

import importlib
import runpy
import sys
from pathlib import Path
from types import ModuleType

from oslo_config import cfg

OPTIONS = [cfg.BoolOpt(name, default=False) for name in ("enabled", "trace_sqlalchemy")]


class WsgiMiddleware:
    """No middleware."""

    def __new__(cls, application, *args, **kwargs):
        return application

    @classmethod
    def factory(cls, *args, **kwargs):
        """Paste's way to make one."""
        return lambda application: application


def trace_cls(*args, **kwargs):
    """Leave a class as it is."""
    return lambda traced: traced


def set_defaults(conf, **kwargs):
    """Register what services read."""
    conf.register_opts(OPTIONS, group="profiler")


def list_opts():
    """The same for listings."""
    return [("profiler", OPTIONS)]


def wrap_session(module, session):
    """Leave a session as it is."""
    return session


def do_nothing(*args, **kwargs):
    """Stand in for what would trace."""


STAND_IN = {
    "opts": {"set_defaults": set_defaults, "list_opts": list_opts},
    "profiler": {"trace_cls": trace_cls, "get": do_nothing},
    "initializer": {"init_from_conf": do_nothing},
    "sqlalchemy": {"wrap_session": wrap_session, "add_tracing": do_nothing},
    "web": {
        "WsgiMiddleware": WsgiMiddleware,
        "get_trace_id_headers": dict,
        "enable": do_nothing,
        "disable": do_nothing,
    },
}


def install():
    """Put the stand-in where OSProfiler would be imported from."""
    sys.modules["osprofiler.web"] = None
    session = importlib.import_module("keystoneauth1.session")
    assert session.osprofiler_web is None
    package = sys.modules["osprofiler"] = ModuleType("osprofiler")
    package.__path__ = []
    for name, content in STAND_IN.items():
        module = ModuleType(f"osprofiler.{name}")
        module.__dict__.update(content)
        setattr(package, name, module)
        sys.modules[module.__name__] = module


if __name__ == "__main__":
    install()
    del sys.argv[0]
    # what lies beside the script is found there, as when it is run itself
    sys.path[0] = str(Path(sys.argv[0]).parent)
    runpy.run_path(sys.argv[0], run_name="__main__")
