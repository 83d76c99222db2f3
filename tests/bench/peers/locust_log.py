"""Locust's fast HTTP client: GET after GET of the path that BENCH_URL has."""

from __future__ import annotations

import os
from urllib.parse import urlsplit

import locust_report  # noqa: F401 - it listens
from locust import FastHttpUser, constant, task

URL = urlsplit(os.environ["BENCH_URL"])


class Get(FastHttpUser):
    wait_time = constant(0)
    host = f"{URL.scheme}://{URL.netloc}"

    @task
    def get(self):
        self.client.get(URL.path)
