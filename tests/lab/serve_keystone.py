"""Serves Keystone with waitress; run by the interpreter of Keystone's own environment."""

from __future__ import annotations

import sys

import waitress


def main() -> None:
    """Serve on 127.0.0.1:PORT, the only argument, with eight threads."""
    port = int(sys.argv[1])
    # Importing the application parses sys.argv with Keystone's own options.
    del sys.argv[1:]
    from keystone.wsgi.api import application

    waitress.serve(application, host="127.0.0.1", port=port, threads=8)


if __name__ == "__main__":
    main()
