"""A Flask service for `opentelemetry-instrument`; what is slow in 3 % of requests is planted.

flask_service.py PORT db      a query
flask_service.py PORT queue   the wait before the service begins with a request
"""

from __future__ import annotations

import random
import sqlite3
import sys
import time

from flask import Flask

PORT, SLOW = int(sys.argv[1]), sys.argv[2]
SLOW_S = 0.2

app = Flask(__name__)


def is_slow(kind: str) -> bool:
    return kind == SLOW and random.random() < 0.03


@app.get("/items/<int:number>")
def item(number: int) -> dict[str, int]:
    connection = sqlite3.connect(":memory:")
    connection.create_function("pause", 1, lambda seconds: time.sleep(seconds) or 1)
    cursor = connection.cursor()
    seconds = SLOW_S if is_slow("db") else 0.001
    cursor.execute("SELECT pause(?) AS items", (seconds,))
    cursor.fetchall()
    connection.close()
    return {"number": number}


class Queue:
    """Waits before the instrumented application is called."""

    def __init__(self, inner):
        self._inner = inner

    def __call__(self, environ, start):
        if is_slow("queue"):
            time.sleep(SLOW_S)
        return self._inner(environ, start)


app.wsgi_app = Queue(app.wsgi_app)

if __name__ == "__main__":
    app.run(port=PORT, threaded=True)
