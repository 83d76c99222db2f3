"""Customers of the shop of samples/webservice.py, for Locust: see docs/coming-from-locust.md."""

import csv
from itertools import cycle
from pathlib import Path

from locust import HttpUser, between, events, task

with Path(__file__).with_name("customers.csv").open(encoding="utf-8") as file:
    CUSTOMERS = cycle(list(csv.DictReader(file)))


class Shopper(HttpUser):
    """Logs in once, then looks three times as often as it buys."""

    host = "http://127.0.0.1:8080"
    wait_time = between(0.01, 0.05)

    def on_start(self) -> None:
        """Log in; the session keeps the cookie."""
        self.client.post("/login", name="login", json=next(CUSTOMERS))

    @task(3)
    def look(self) -> None:
        """Look at the newest item."""
        item = self.client.get("/items", name="list").json()[0]["id"]
        with self.client.get(f"/items/{item}", name="item", catch_response=True) as answer:
            if answer.json()["id"] != item:
                answer.failure("another item")

    @task
    def buy(self) -> None:
        """Order an item."""
        order = {"item": 1}
        with self.client.post("/orders", name="order", json=order, catch_response=True) as answer:
            if answer.status_code != 201:
                answer.failure(f"status {answer.status_code}")


@events.quitting.add_listener
def judge(environment, **_) -> None:  # noqa: ANN001, ANN003 - as for Locust it is written
    """Fail the run where orders are slow; failed requests make the exit code 1 by themselves."""
    if environment.stats.get("order", "POST").get_response_time_percentile(0.95) > 2000:
        environment.process_exit_code = 1
