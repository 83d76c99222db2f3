"""GET after GET by keystoneauth1 with nothing around it."""

from __future__ import annotations

import json
import sys
import time

from keystoneauth1.session import Session


def main(url, seconds):
    """Print the requests a second."""
    session = Session()
    # the first request opens the connection, as osbench's first iteration does
    begin = time.monotonic()
    count = 0
    while time.monotonic() < begin + seconds:
        session.get(url, authenticated=False)
        count += 1
    print(json.dumps({"rate": count / (time.monotonic() - begin)}))


if __name__ == "__main__":
    main(sys.argv[1], float(sys.argv[2]))
