"""Serves a WSGI application with waitress; run by the interpreter of the service's environment."""

from __future__ import annotations

import importlib
import os
import sys

import waitress


def main() -> None:
    """Serve MODULE:ATTRIBUTE on 127.0.0.1:PORT with THREADS, the three arguments."""
    module, _, attribute = sys.argv[1].partition(":")
    port, threads = map(int, sys.argv[2:])
    # Importing an application parses sys.argv with the service's own options.
    del sys.argv[1:]
    application = getattr(importlib.import_module(module), attribute)
    if "LAB_FAULT" in os.environ:
        # only now: it imports SQLAlchemy, and a service may care for the order of its imports
        slow_queries = importlib.import_module("slow_queries")
        slow_queries.install(os.environ["LAB_FAULT"], os.environ["LAB_SERVICE"])
    waitress.serve(application, host="127.0.0.1", port=port, threads=threads)


if __name__ == "__main__":
    main()
