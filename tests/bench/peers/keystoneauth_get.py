"""GET after GET by keystoneauth1 with nothing around it."""

from __future__ import annotations

import json
import os
import sys
import time

from keystoneauth1.identity import V3Password
from keystoneauth1.session import Session


def main(url, seconds):
    """Print the requests a second; they have a token where there is a credential."""
    credential = os.environ.get("BENCH_CREDENTIAL")
    session = Session(auth=V3Password(**json.loads(credential)) if credential else None)
    if credential:
        session.get_token()
    # the first request opens the connection, as osbench's first iteration does
    begin = time.monotonic()
    count = 0
    while time.monotonic() < begin + seconds:
        session.get(url, authenticated=bool(credential))
        count += 1
    print(json.dumps({"rate": count / (time.monotonic() - begin)}))


if __name__ == "__main__":
    main(sys.argv[1], float(sys.argv[2]))
