"""Locust's fast HTTP client: GET after GET of one address."""

from __future__ import annotations

import os

import locust_report  # noqa: F401 - it listens
from locust import FastHttpUser, constant, task


class Get(FastHttpUser):
    wait_time = constant(0)
    host = os.environ["BENCH_URL"].rstrip("/")

    @task
    def get(self):
        self.client.get(os.environ.get("BENCH_PATH", "/"))
