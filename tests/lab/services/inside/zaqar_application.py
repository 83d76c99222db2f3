"""Zaqar's WSGI application, its profiler's switches doing what their help says.

Zaqar 23 with [profiler] enabled does not start where a store's switch is off: that store's driver
is then nothing. And OSProfiler's initializer turns requests' tracing on for good, whatever
`enabled` and `trace_wsgi_transport` say.
"""

from __future__ import annotations

import functools

from osprofiler import web
from zaqar.storage import utils
from zaqar.transport.middleware import profile


def mended(load):
    """Load the driver of a store that is not to be traced, too."""

    @functools.wraps(load)
    def load_storage_driver(conf, *args, **kwargs):
        driver = load(conf, *args, **kwargs)
        if driver is None:
            conf.set_override("enabled", False, "profiler")
            try:
                driver = load(conf, *args, **kwargs)
            finally:
                conf.clear_override("enabled", "profiler")
        return driver

    return load_storage_driver


def switched(install):
    """Leave requests untraced where that is what the switches say."""

    @functools.wraps(install)
    def install_wsgi_tracer(app, conf):
        if not (conf.profiler.enabled and conf.profiler.trace_wsgi_transport):
            web.disable()
        return install(app, conf)

    return install_wsgi_tracer


utils.load_storage_driver = mended(utils.load_storage_driver)
profile.install_wsgi_tracer = switched(profile.install_wsgi_tracer)

from zaqar.transport.wsgi.app import application  # noqa: E402 - made of what is mended above

__all__ = ["application"]
