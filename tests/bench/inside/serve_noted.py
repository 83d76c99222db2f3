"""Runs the script in its second argument; notes in the file of the first when requests come.

A line each: the second of the wall clock.
"""

from __future__ import annotations

import functools
import runpy
import sys
import time
from pathlib import Path

import waitress


def noting(serve, notes):
    """waitress.serve for applications whose requests are noted."""

    @functools.wraps(serve)
    def served(application, **options):
        def noted(environ, start_response):
            notes.write(f"{time.time()}\n")
            return application(environ, start_response)

        serve(noted, **options)

    return served


if __name__ == "__main__":
    with Path(sys.argv[1]).open("a", buffering=1) as file:
        waitress.serve = noting(waitress.serve, file)
        del sys.argv[:2]
        # what lies beside the script is found there, as when it is run itself
        sys.path[0] = str(Path(sys.argv[0]).parent)
        runpy.run_path(sys.argv[0], run_name="__main__")
